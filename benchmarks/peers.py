"""neardup beside its peers: the same job on the same corpora, in alternating runs.

    peers.py [--runs 3] [--small]

Needs ../shared/bench and the output of its ``prepare``. Every peer runs once a round; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
from pathlib import Path
from statistics import median

from harness import BENCH_HOME, NEARDUP, SHARED, Row, machine, print_progress, run_sections, section, warm_up

#: Each peer's variant that is fastest for the job, and its package. Polars removes exact copies only: a lower bound for
#: the cost of deduplication.
PEERS = {
    "neardup": ("dedup", "neardup"),
    "neardup-lsh": ("dedup", "neardup"),
    "polars": ("exact", "polars"),
    "daft": ("", "daft"),
    "rensa": ("stream", "rensa"),
    "gaoya": ("", "gaoya"),
    "datasketch": ("xxh", "datasketch"),
}
_FIGURES = {"cpu": "cpu_s", "wall": "wall_s", "tree_pss_mb": "pss_mb", "maxrss_mb": "rss_mb"}


def run_once(peer: str, variant: str, corpus: str) -> Row:
    """Run a peer once through the shared benchmark and return its record."""
    program = NEARDUP
    if peer == "neardup-lsh":
        peer, program = "neardup", [str(write_lsh_command())]
    python, script = BENCH_HOME / "venvs" / "base" / "bin" / "python", SHARED / "bench" / "bench.py"
    options = ["--runs", "1", *(["--variant", variant] if variant else [])]
    env = os.environ | {"NEARDUP": shlex.join(program), "BENCH_HOME": str(BENCH_HOME)}
    subprocess.run([python, script, peer, corpus, *options], check=True, env=env, stdout=subprocess.DEVNULL)
    records = json.loads((BENCH_HOME / "results.json").read_text("utf-8"))
    key = (peer, variant or "default", corpus, "e2e")
    return next(r for r in records if (r["peer"], r["variant"], r["corpus"], r["mode"]) == key)


def write_lsh_command() -> Path:
    """Write a script that runs neardup with --search lsh after its subcommand, and return its path."""
    script = BENCH_HOME / "neardup-lsh"
    script.write_text(f'#!/bin/sh\nfirst=$1; shift\nexec {shlex.join(NEARDUP)} "$first" --search lsh "$@"\n', "utf-8")
    script.chmod(0o755)
    return script


def version(peer: str, package: str) -> str:
    python = NEARDUP[0] if peer.startswith("neardup") else BENCH_HOME / "venvs" / peer / "bin" / "python"
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def row_of(corpus: str, peer: str, records: list[Row]) -> Row:
    """Return the medians of a peer, the recall and precision of its pairs, the pairs resolved and wrong removals."""
    score = records[-1]["score"]
    if peer == "neardup":
        print_progress(f"{corpus}, pairs of neardup")
        score |= {"pairs_all": run_once("neardup", "pairs", corpus)["score"]["pairs_all"]}
    figures = {name: round(median(r["median"][key] for r in records), 2) for key, name in _FIGURES.items()}
    name = f"{peer}, exact copies only" if peer == "polars" else peer
    row = {"corpus": corpus, "peer": peer, "name": name, "variant": PEERS[peer][0] or "default", "runs": len(records)}
    return row | figures | {"score": score, "pairs": score.get("pairs_all") or score.get("cluster_pairs")}


@section(
    "peers",
    "corpus |  | CPU s | wall s | peak PSS MB | neardup's CPU over it | recall | precision | true pairs resolved"
    " | wrong removals",
    "{corpus} | {name} | {cpu_s} | {wall_s} | {pss_mb} | {cpu_ratio:.2f} | {pairs[recall]:.3f} | {pairs[precision]:.3f}"
    " | {score[kept][resolved]:.3f} | {score[kept][removed_wrong_0.7]:,}",
)
def measure_peers(args: argparse.Namespace) -> Row:
    environment = machine()
    environment["versions"] |= {package: version(peer, package) for peer, (_, package) in PEERS.items()}
    warm_up()
    rows = []
    for corpus in ["R20k"] if args.small else ["R20k", "N100k", "N500k"]:
        records_of: dict[str, list[Row]] = {peer: [] for peer in PEERS}
        for number in range(args.runs):
            for peer, records in records_of.items():
                print_progress(f"{corpus}, {peer}, round {number + 1} of {args.runs}")
                record = run_once(peer, PEERS[peer][0], corpus)
                if record["runs"][0]["rc"]:
                    print_progress(f"{peer} failed on {corpus}")
                else:
                    records.append(record)
        found = [row_of(corpus, peer, records) for peer, records in records_of.items() if records]
        for row in found:
            if not row["peer"].startswith("neardup"):
                row["cpu_ratio"] = round(found[0]["cpu_s"] / row["cpu_s"], 3)
        rows += found
    return {"machine": environment, "rows": rows}


if __name__ == "__main__":
    run_sections(__doc__)
