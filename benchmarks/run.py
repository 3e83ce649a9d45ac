"""Run the benchmarks: small ones of a minute or two, or with ``--full`` those whose numbers are published.

    run.py           on small made corpora; with the peers on R20k where they are prepared
    run.py --full    on N100k, N500k and the others at full size, into results/; on a quiet machine

Small results go to results/quick and are not kept under version control.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys

from measuring import BENCH_HOME, HERE, RESULTS, SHARED, note

QUICK = {
    "first_run": ["--runs", "1"],
    "growth": ["--corpora", "G20k", "G60k", "--runs", "1"],
    "memory": ["--corpora", "G60k", "--budgets", "200MB"],
    "hard": ["--scale", "0.1"],
    "blog_job": ["--documents", "20000"],
    "neighbors": ["--corpus", "G20k", "--documents", "200"],
    "window": ["--news", "G20k", "--mixes", "G20k", "--window", "2000", "--small-items", "1000", "--corpus", "G20k"],
    "window_store": ["--corpus", "G20k", "--stored", "0", "5000", "--batches", "5", "--singles", "300"],
    "vector_cost": ["--corpus", "G20k", "--documents", "5000", "--pairs", "20000", "--runs", "1"],
    "watch_report": ["--corpus", "G20k", "--items", "1000", "4000", "--batches", "40"],
    "window_day": ["million", "--corpora", "G20k", "G10k"],
    "explore": ["compare", "curve", "--compare", "G20k", "--documents", "300", "--curves", "G20k", "--runs", "1"],
}
QUICK_PEERS = {
    "peers": ["--corpora", "R20k", "--runs", "1"],
    "sketches": ["--documents", "2000", "--pairs", "400", "--runs", "1"],
}
QUICK_SPARK = {"spark": ["--corpora", "G20k", "--runs", "1", "--peers"]}
FULL: dict[str, list[str]] = {
    name: [] for name in [*QUICK, *QUICK_PEERS, "default_recipe", "methods", "choosing", "spark"]
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    with_peers = (SHARED / "bench" / "bench.py").exists() and (BENCH_HOME / "venvs").is_dir()
    if options.full:
        if not with_peers:
            raise SystemExit("the published numbers need ../shared/bench and what its prepare makes")
        chosen, folder = FULL, RESULTS
    else:
        on_spark = shutil.which("java") is not None and importlib.util.find_spec("pyspark") is not None
        chosen = QUICK | (QUICK_PEERS if with_peers else {}) | (QUICK_SPARK if on_spark else {})
        folder = RESULTS / "quick"
    failed = []
    for name, arguments in chosen.items():
        note(f"\n== {name}")
        command = [sys.executable, str(HERE / f"{name}.py"), *arguments, "--out", str(folder / f"{name}.json")]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
