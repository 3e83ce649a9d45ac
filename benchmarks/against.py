"""New documents against old ones, beside the peers that have a call for it: what each finds, misses, and takes.

    against.py [against] [--corpora N100k reuters] [--peers neardup ...] [--small]

    N100k    its last fifth against the rest; the planted copies of Jaccard 0.7 and more are to be found
    reuters  the last fifth by time against the rest; the pairs of a plain comparison of all are to be found

Found and missed: new documents with such a copy among the old ones. False: dropped ones that have no pair of 0.7 at
all, old or new. Base: what is done once with the old documents; new: what a delivery then takes. neardup drops copies
among the new documents, too. rensa's index and sketches are pickled; semhash keeps no base, and its model is replaced
by hashed words (0.9 of their cosine), for it would come from a network; datatrove cuts words at spaces.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from corpora import corpus
from measuring import (
    BENCH_HOME,
    HERE,
    JOB,
    NEARDUP,
    SHARED,
    Run,
    Section,
    machine,
    measure,
    note,
    run_sections,
    table,
    warm_up,
)
from peers import version

PEERS = ["neardup", "neardup, index", "rensa", "semhash", "datatrove"]
THRESHOLD = 0.7
Pairs = list[tuple[Any, Any]]


def read_reuters() -> tuple[list[dict[str, Any]], Pairs, Pairs]:
    """Return the documents in order, the pairs to be found, and all pairs."""
    data = SHARED / "data" / "reuters"
    with gzip.open(data / "reuters.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    records.sort(key=lambda one: one["timestamp"])
    with open(data / "exact_pairs_w5_j030.csv", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        pairs = [(row["id1"], row["id2"]) for row in rows if float(row["jaccard_w5"]) >= THRESHOLD]
    return records, pairs, pairs


def read_prepared(name: str) -> tuple[list[dict[str, Any]], Pairs, Pairs]:
    """Return the same of a prepared corpus."""
    file = corpus(name)

    def pairs(kind: str) -> Pairs:
        rows = pq.read_table(file.with_suffix(f".{kind}.parquet")).to_pylist()
        return [(row["a"], row["b"]) for row in rows if row["jaccard"] >= THRESHOLD]

    return pq.read_table(file, columns=["id", "text"]).to_pylist(), pairs("pairs"), pairs("truth") + pairs("pairs")


def run_neardup(index: bool, old: Path, new: Path, folder: Path) -> tuple[Run | None, Run, set[Any]]:
    """Return what neardup took for base and delivery, and what it dropped."""
    base, reference = None, old
    if index:
        reference = folder / "old.index"
        base = measure([*NEARDUP, "index", "build", old, "-o", reference, *JOB[:-1]])
    kept = folder / "kept.jsonl"
    run = measure([*NEARDUP, "dedup", new, "--against", reference, "-o", kept, *JOB])
    return base, run, ids_of(new) - ids_of(kept)


def ids_of(path: Path) -> set[Any]:
    """Return the ids of a file."""
    with open(path, encoding="utf-8") as file:
        return {json.loads(line)["id"] for line in file}


def run_peer(peer: str, old: Path, new: Path, folder: Path) -> tuple[Run | None, Run, set[Any]]:
    """Return the same of a peer."""
    python = BENCH_HOME / "venvs" / peer / "bin" / "python"
    base, run = (
        measure([python, HERE / "against_peers.py", peer, stage, old, new, folder]) for stage in ("base", "new")
    )
    dropped = set(json.loads((folder / "dropped.json").read_text("utf-8")))
    return (None if peer == "semhash" else base), run, dropped


def count_verdicts(new: set[Any], planted: Pairs, every: Pairs, dropped: set[Any]) -> dict[str, int]:
    """Return how many copies were found, missed, and dropped without a reason."""
    across = {one if one in new else other for one, other in planted if (one in new) != (other in new)}
    paired = {one for pair in every for one in pair}
    return {
        "found": len(across & dropped),
        "missed": len(across - dropped),
        "false": len(dropped - paired),
    }


def corpus_rows(name: str, peers: Sequence[str], small: bool) -> list[dict[str, Any]]:
    """Return what each peer finds and takes on a corpus."""
    records, planted, every = read_reuters() if name == "reuters" else read_prepared(name)
    records = records[:4000] if small else records
    cut = len(records) * 4 // 5
    rows = []
    for peer in peers:
        note(f"{name}, {peer}")
        with tempfile.TemporaryDirectory() as made:
            old, new = Path(made, "old.jsonl"), Path(made, "new.jsonl")
            for path, part in ((old, records[:cut]), (new, records[cut:])):
                lines = (json.dumps({"id": one["id"], "text": one["text"]}) + "\n" for one in part)
                path.write_text("".join(lines), "utf-8")
            if peer.startswith("neardup"):
                base, run, dropped = run_neardup(peer != "neardup", old, new, Path(made))
            else:
                base, run, dropped = run_peer(peer, old, new, Path(made))
            there = {one["id"] for one in records}
            known = [pair for pair in planted if there.issuperset(pair)]
            figures = count_verdicts(ids_of(new), known, every, dropped)
        rows.append(
            {"corpus": name, "peer": peer, **figures, "base": base and asdict(base), "new": asdict(run)},
        )
    return rows


def against(args: argparse.Namespace) -> dict[str, Any]:
    """Run all peers that are there on all corpora."""
    peers = [peer for peer in args.peers if peer.startswith("neardup") or (BENCH_HOME / "venvs" / peer).is_dir()]
    where = machine()
    where["versions"] |= {peer: version(peer, peer) for peer in peers if not peer.startswith("neardup")}
    warm_up()
    names = ["reuters"] if args.small else args.corpora
    return {"machine": where, "rows": [row for name in names for row in corpus_rows(name, peers, args.small)]}


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    header = ["corpus", "", "found", "missed", "false", "base CPU s", "wall s", "new CPU s", "wall s", "peak PSS MB"]
    rows = []
    for row in results["rows"]:
        parts = [row["base"], row["new"]]
        times = [f"{part[of]:.1f}" if part else "" for part in parts for of in ("cpu", "wall")]
        peak = max(part["pss"] for part in parts if part) / 1e6
        rows.append([row["corpus"], row["peer"], row["found"], row["missed"], row["false"], *times, f"{peak:.0f}"])
    return table(header, rows)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", nargs="+", default=["reuters", "N100k"])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)


if __name__ == "__main__":
    run_sections(__doc__, {"against": Section(against, {"against": as_table})}, options)
