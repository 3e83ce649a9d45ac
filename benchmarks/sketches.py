"""Sketches of 128 minima: how fast, and how near their estimates are, beside the peers, each on one core.

sketches.py [--corpus N100k] [--documents 20000] [--pairs 2000] [--runs 3] [--peers rensa fastsketch ...]

Text to sketch: word 5-grams and their sketch, in MB of text a processor second. Hashes to sketch: the same 64-bit
features, given as one array. Errors: of the estimated Jaccard against the exact one, of pairs of stretches of the
corpus's words that overlap, Jaccard 0.1 to 0.95; beside it sqrt(J (1 - J) / 128), what independent minima give.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from corpora import corpus
from measuring import BENCH_HOME, HERE, RESULTS, machine, note, save, table
from sketch_peers import SLOTS, grams, taken

from neardup.features.extraction import extract
from neardup.kernels.sketches import minhash
from neardup.recipe import Recipe

#: The peers by name, with the environment each runs in.
PEERS = {
    "rensa": "rensa",
    "rensa-rho": "rensa",
    "fastsketch": "fastsketch",
    "datasketch": "datasketch",
    "daft": "daft",
}
_ONE_THREAD = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_JACCARDS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
_BATCH = 2000
_WORD = re.compile(r"\w+")


def normalised(text: str) -> str:
    """Return the words of a text in lower case, parted by spaces: what all agree on."""
    return " ".join(_WORD.findall(text.lower()))


def overlapping(texts: list[str], count: int) -> tuple[list[str], list[str], list[float]]:
    """Return pairs of stretches of the texts' words, with the exact Jaccard of their 5-grams."""
    rng = random.Random(1)  # noqa: S311
    words = [word for text in texts for word in text.split()]
    left, right, exact = [], [], []
    for number in range(count):
        wanted = _JACCARDS[number % len(_JACCARDS)]
        size = round(math.exp(rng.uniform(math.log(40), math.log(1500))))
        moved = round(size * (1 - wanted) / (1 + wanted))
        begin = rng.randrange(len(words) - 2 * size)
        left.append(" ".join(words[begin : begin + size + 4]))
        right.append(" ".join(words[begin + moved : begin + moved + size + 4]))
        a, b = set(grams(left[-1])), set(grams(right[-1]))
        exact.append(len(a & b) / len(a | b))
    return left, right, exact


class Ours:
    """The sketches of this package, from texts and from features."""

    def __init__(self) -> None:
        self._recipe = Recipe(features="words:5")

    def features(self, texts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the hashed 5-grams of texts, and where those of each begin."""
        blocks = [
            extract(pa.array(texts[begin : begin + _BATCH], pa.large_string()), self._recipe)
            for begin in range(0, len(texts), _BATCH)
        ]
        heads = np.concatenate([[0], *(block.sizes for block in blocks)]).cumsum()
        return np.concatenate([block.features for block in blocks]), heads

    def sketch(self, features: np.ndarray[Any, Any], heads: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return uint64[d, 128]."""
        out = np.empty((len(heads) - 1, SLOTS), np.uint64)
        minhash(features, heads, np.uint64(1), out)
        return out

    def run(self, texts: list[str], left: list[str], right: list[str]) -> dict[str, Any]:
        """Return what a peer says."""
        self.sketch(*self.features(texts[:10]))
        features_s, (features, heads) = taken(lambda: self.features(texts))
        hashed_s = [taken(lambda: self.sketch(features, heads))[0] for _ in range(3)]
        a, b = (self.sketch(*self.features(side)) for side in (left, right))
        return {
            "version": "",
            "features_s": features_s,
            "sketch_s": hashed_s[0],
            "hashed_s": min(hashed_s),
            "estimates": (a == b).mean(axis=1).tolist(),
        }


def run_peer(peer: str, folder: Path) -> dict[str, Any] | None:
    """Return what a peer says, or None where it is not prepared."""
    python = BENCH_HOME / "venvs" / PEERS[peer] / "bin" / "python"
    if not python.exists():
        note(f"{peer} is left out: ../shared/bench/prepare makes no environment for it unless asked")
        return None
    command = [str(python), str(HERE / "sketch_peers.py"), peer, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | _ONE_THREAD)
    if done.returncode:
        note(f"{peer} failed:\n{done.stderr[-1000:]}")
        return None
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def errors(estimates: list[float], exact: list[float]) -> dict[str, float]:
    """Return the mean absolute and the root mean square error, in all and by Jaccard, and what theory says."""
    found, true = np.array(estimates), np.array(exact)
    rounded = np.array(_JACCARDS)[np.abs(true[:, None] - np.array(_JACCARDS)).argmin(axis=1)]
    rms = {
        f"rmse_{jaccard}": round(float(np.sqrt(((found - true)[rounded == jaccard] ** 2).mean())), 4)
        for jaccard in _JACCARDS
        if (rounded == jaccard).any()
    }
    return {
        "bias": round(float((found - true).mean()), 5),
        "mean_absolute": round(float(np.abs(found - true).mean()), 4),
        "rmse": round(float(np.sqrt(((found - true) ** 2).mean())), 4),
        "theory": round(float(np.sqrt((true * (1 - true) / SLOTS).mean())), 4),
    } | rms


def best(runs: list[dict[str, Any]], key: str) -> float | None:
    """Return the least seconds of some runs."""
    seconds = [run[key] for run in runs if run[key] is not None]
    return min(seconds) if seconds else None


def compare(name: str, documents: int, pairs: int, runs: int, peers: list[str]) -> dict[str, Any]:
    """Run all, in turn, on one core."""
    where = machine()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    texts = pq.read_table(corpus(name), columns=["text"])["text"].to_pylist()[:documents]
    words = [normalised(text) for text in texts]
    left, right, exact = overlapping(words, pairs)
    text_bytes = sum(len(text.encode()) for text in texts)
    ours = Ours()
    said: dict[str, list[dict[str, Any]]] = {peer: [] for peer in ["neardup", *peers]}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        pq.write_table(pa.table({"text": texts, "normalised": words}), folder / "corpus.parquet")
        pq.write_table(pa.table({"left": left, "right": right}), folder / "pairs.parquet")
        features, heads = ours.features(texts)
        features.tofile(folder / "features.bin")
        heads.tofile(folder / "heads.bin")
        for number in range(runs):
            for peer in said:
                note(f"{peer}, round {number + 1} of {runs}")
                one = ours.run(texts, left, right) if peer == "neardup" else run_peer(peer, folder)
                if one is not None:
                    said[peer].append(one)
    rows = []
    for peer, records in said.items():
        if not records:
            continue
        hashed = best(records, "hashed_s")
        from_text = min(record["features_s"] + record["sketch_s"] for record in records)
        where["versions"] |= {peer: records[0]["version"]} if records[0]["version"] else {}
        rows.append(
            {
                "peer": peer,
                "features_s": best(records, "features_s"),
                "sketch_s": best(records, "sketch_s"),
                "mb_a_second": round(text_bytes / 1e6 / from_text, 1),
                "hashed_s": hashed,
                "ns_a_feature": None if hashed is None else round(1e9 * hashed / len(features), 2),
                "ns_a_document": None if hashed is None else round(1e9 * hashed / len(texts)),
                "errors": errors(records[0]["estimates"], exact),
            }
        )
    return {
        "machine": where,
        "corpus": {"name": name, "documents": len(texts), "text_mb": round(text_bytes / 1e6, 1)},
        "features": len(features),
        "pairs": pairs,
        "runs": runs,
        "rows": rows,
    }


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows = [
        [
            row["peer"],
            row["mb_a_second"],
            "" if row["ns_a_feature"] is None else row["ns_a_feature"],
            "" if row["ns_a_document"] is None else f"{row['ns_a_document']:,}",
            *(row["errors"][key] for key in ("bias", "mean_absolute", "rmse", "theory")),
        ]
        for row in results["rows"]
    ]
    header = ["", "text to sketch, MB a CPU second", "hashes to sketch, ns a feature", "ns a document"]
    return table([*header, "bias", "mean absolute error", "RMSE", "sqrt(J (1 - J) / 128)"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="N100k")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--out", type=Path, default=RESULTS / "sketches.json")
    options = parser.parse_args()
    results = compare(options.corpus, options.documents, options.pairs, options.runs, options.peers)
    save(options.out, "sketches", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
