"""neardup beside its peers: the same job on the same corpora, in alternating runs.

    peers.py [--corpora R20k N100k N500k] [--peers neardup polars daft ...] [--runs 3] [--small]

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
from typing import Any

from measuring import (
    BENCH_HOME,
    NEARDUP,
    SHARED,
    Section,
    machine,
    markdown_table,
    print_progress,
    run_sections,
    warm_up,
)

#: Each peer's variant that is fastest for the job, and its package.
PEERS = {
    "neardup": ("dedup", "neardup"),
    "neardup-lsh": ("dedup", "neardup"),
    "polars": ("exact", "polars"),
    "daft": ("", "daft"),
    "rensa": ("stream", "rensa"),
    "gaoya": ("", "gaoya"),
    "datasketch": ("xxh", "datasketch"),
}
#: This peer removes exact copies only: a lower bound for the cost of deduplication.
EXACT_COPY_PEER = "polars"
_FIGURES = {"cpu": "cpu_s", "wall": "wall_s", "tree_pss_mb": "pss_mb", "maxrss_mb": "rss_mb"}


def run_once(peer: str, variant: str, corpus: str) -> dict[str, Any]:
    """Run a peer once through the shared benchmark and return its record."""
    program = NEARDUP
    if peer == "neardup-lsh":
        peer, program = "neardup", [str(write_lsh_command())]
    command = [
        BENCH_HOME / "venvs" / "base" / "bin" / "python",
        SHARED / "bench" / "bench.py",
        peer,
        corpus,
        "--runs",
        "1",
    ]
    command += ["--variant", variant] if variant else []
    env = os.environ | {"NEARDUP": shlex.join(program), "BENCH_HOME": str(BENCH_HOME)}
    subprocess.run(list(map(str, command)), check=True, env=env, stdout=subprocess.DEVNULL)
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
    """Return the version of a peer in its own environment."""
    python = BENCH_HOME / "venvs" / peer / "bin" / "python"
    if peer.startswith("neardup"):
        python = Path(NEARDUP[0])
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def measure_peers(args: argparse.Namespace) -> dict[str, Any]:
    """Run all peers on all corpora."""
    peers, runs = args.peers, args.runs
    corpora = args.corpora or (["R20k"] if args.small else ["R20k", "N100k", "N500k"])
    environment = machine()
    environment["versions"] |= {
        package: version(peer, package) for peer, (_, package) in PEERS.items() if peer in peers
    }
    warm_up()
    rows = []
    for corpus in corpora:
        records_of: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
        for number in range(runs):
            for peer in peers:
                print_progress(f"{corpus}, {peer}, round {number + 1} of {runs}")
                record = run_once(peer, PEERS[peer][0], corpus)
                if record["runs"][0]["rc"]:
                    print_progress(f"{peer} failed on {corpus}")
                    continue
                records_of[peer].append(record)
        for peer, records in records_of.items():
            if records:
                figures = {name: round(median(r["median"][key] for r in records), 2) for key, name in _FIGURES.items()}
                row = {"corpus": corpus, "peer": peer, "variant": PEERS[peer][0] or "default"} | figures
                rows.append(row | {"runs": len(records), "score": records[-1]["score"]})
        if "neardup" in peers:
            print_progress(f"{corpus}, pairs of neardup")
            score = run_once("neardup", "pairs", corpus)["score"]
            next(r for r in rows if (r["corpus"], r["peer"]) == (corpus, "neardup"))["score"] |= {
                "pairs_all": score["pairs_all"]
            }
    return {"machine": environment, "rows": rows, "ratios": ratios(rows)}


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the CPU and wall time of neardup over that of each peer, by corpus."""
    ours = {row["corpus"]: row for row in rows if row["peer"] == "neardup"}
    return [
        {
            "corpus": row["corpus"],
            "peer": row["peer"],
            "cpu": round(ours[row["corpus"]]["cpu_s"] / row["cpu_s"], 3),
            "wall": round(ours[row["corpus"]]["wall_s"] / row["wall_s"], 3),
        }
        for row in rows
        if not row["peer"].startswith("neardup") and row["corpus"] in ours
    ]


def score_cells(score: dict[str, Any]) -> list[object]:
    """Return recall and precision of a peer's pairs, the share of pairs resolved, and wrong removals."""
    pairs = score.get("pairs_all") or score.get("cluster_pairs")
    kept = score.get("kept", {})
    return [
        f"{pairs['recall']:.3f}" if pairs else "",
        f"{pairs['precision']:.3f}" if pairs else "",
        f"{kept['resolved']:.3f}" if kept else "",
        f"{kept['removed_wrong_0.7']:,}" if kept else "",
    ]


def peers_table(results: dict[str, Any]) -> str:
    """Return cost and quality of each peer by corpus."""
    ratios = {(r["corpus"], r["peer"]): r for r in results["ratios"]}
    rows = []
    for r in results["rows"]:
        ratio = ratios.get((r["corpus"], r["peer"]))
        figures = [r["cpu_s"], r["wall_s"], r["pss_mb"], f"{ratio['cpu']:.2f}" if ratio else ""]
        name = f"{r['peer']}, exact copies only" if r["peer"] == EXACT_COPY_PEER else r["peer"]
        rows.append([r["corpus"], name, *figures, *score_cells(r["score"])])
    header = ["corpus", "", "CPU s", "wall s", "peak PSS MB", "neardup's CPU over it", "recall", "precision"]
    return markdown_table([*header, "true pairs resolved", "wrong removals"], rows)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", nargs="+")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))


if __name__ == "__main__":
    if not (SHARED / "bench" / "bench.py").exists() or not (BENCH_HOME / "venvs").is_dir():
        raise SystemExit("../shared/bench or the output of its prepare is missing; run ../shared/bench/prepare")
    run_sections(__doc__, {"peers": Section(measure_peers, {"peers": peers_table})}, options)
