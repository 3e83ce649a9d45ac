"""Similarity vectors: what each measure and each named vector costs, a document and a pair, on one core; and g of them.

vector_cost.py [--corpus R20k] [--documents 20000] [--pairs 100000] [--runs 3]

Pairs are those that a wide candidate rule finds (Jaccard of word 3-grams of 0.1 or more), repeated until they suffice.
A document is prepared once, then each of its pairs is measured. Statistics of the collection are counted
before and not timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from corpora import corpus
from measuring import RESULTS, machine, note, save, table

import neardup as nd
from neardup.classifier.classifier import Machine
from neardup.classifier.values import Measurer, Records
from neardup.classifier.vector import VECTORS, Vector, statistics_for
from neardup.documents import corpus_of

RULE: dict[str, Any] = {"features": "words:3", "measure": "jaccard", "threshold": 0.1}
#: One of each kind that costs something of its own.
MEASURES = [
    "jaccard(words:1)",
    "jaccard(words:4)",
    "jaccard(qgrams:4)",
    "jaccard(terms:64)",
    "cosine(terms:64:tfidf)",
    "cosine(words:1:idf)",
    "weighted_jaccard(words:1:idf)",
    "overlap(prefixes:4)",
    "length_ratio",
    "word_edit",
    "in_order",
    "edit",
    "numbers",
    "names",
    "facts",
]


def candidates(texts: list[str], count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """Return the pairs that the candidate rule finds, repeated up to count, and how many it found."""
    found = np.array([(pair.left, pair.right) for pair in nd.dedup(texts, **RULE).pairs], np.int64).reshape(-1, 2)
    if not len(found):
        raise SystemExit("the candidate rule finds no pairs in these documents; take more of them")
    chosen = np.resize(np.random.default_rng(1).permutation(found), (count, 2))
    return chosen[:, 0].copy(), chosen[:, 1].copy(), len(found)


def best(function: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the least time of several runs in seconds, and what the last gave."""
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        given = function()
        taken.append(time.process_time() - begin)
    return min(taken), given


def cost(name: str, texts: list[str], pairs: tuple[Any, Any], runs: int) -> dict[str, Any]:
    """Return what a vector costs."""
    vector, (left, right) = Vector.parse(name), pairs
    collection = corpus_of(texts, text_column=None, id_column=None, order_column=None)
    measurer = Measurer(vector, statistics_for(vector, collection, threads=1), threads=1)
    few = measurer.prepare(Records(texts[:3]))
    measurer.measure(few, np.zeros(1, np.int64), np.ones(1, np.int64))
    prepare_s, prepared = best(lambda: measurer.prepare(Records(texts)), runs)
    measure_s, _ = best(lambda: measurer.measure(prepared, left, right), runs)
    return {
        "measures": len(vector),
        "us_a_document": round(prepare_s / len(texts) * 1e6, 2),
        "us_a_pair": round(measure_s / len(left) * 1e6, 2),
        "pairs_a_second": round(len(left) / measure_s),
    }


def deciding(measures: int, support: int, pairs: int, runs: int) -> dict[str, Any]:
    """Return what g of made-up vectors costs; with 0 support vectors that of the linear kernel."""
    drawn = np.random.default_rng(1)
    shape, gamma = (max(support, 1), measures), 1 / measures if support else 0.0
    plain = np.zeros(measures), np.zeros(measures), np.ones(measures)
    made = Machine(*plain, gamma, drawn.normal(size=shape), drawn.normal(size=shape[0]), 0.0, -1.0, 0.0)
    x = drawn.normal(size=(pairs, measures))
    made.score(x[:2])
    taken, _ = best(lambda: made.score(x), runs)
    return {"measures": measures, "us_a_pair": round(taken / pairs * 1e6, 3), "pairs_a_second": round(pairs / taken)}


def as_table(results: dict[str, Any]) -> str:
    """Return the cost of named vectors and of single measures as Markdown."""
    rows = [
        [name, some["measures"], *(f"{some[key]:,}" for key in ("us_a_document", "us_a_pair", "pairs_a_second"))]
        for kind in ("vectors", "measures")
        for name, some in results[kind].items()
    ]
    return table(["vector or measure", "measures", "µs a document", "µs a pair", "pairs a second"], rows)


def deciding_table(results: dict[str, Any]) -> str:
    """Return the cost of g as Markdown."""
    rows = [
        [name, f"{some['us_a_pair']:,}", f"{some['pairs_a_second']:,}"] for name, some in results["deciding"].items()
    ]
    return table(["machine of 13 measures", "µs a pair", "pairs a second"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="R20k")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "vector_cost.json")
    options = parser.parse_args()
    texts = pq.read_table(corpus(options.corpus), columns=["text"])["text"][: options.documents].to_pylist()
    left, right, found = candidates(texts, options.pairs)
    note(f"{len(texts):,} documents, {found:,} pairs among the candidates")
    results: dict[str, Any] = {
        "machine": machine(),
        "corpus": options.corpus,
        "documents": len(texts),
        "bytes_a_document": round(sum(len(text.encode()) for text in texts) / len(texts)),
        "candidate_rule": RULE,
        "pairs_in_net": found,
        "pairs": options.pairs,
        "vectors": {},
        "measures": {},
    }
    for kind, names in (("vectors", list(VECTORS)), ("measures", MEASURES)):
        for name in names:
            note(name)
            results[kind][name] = cost(name, texts, (left, right), options.runs)
    results["deciding"] = {
        f"RBF, {support:,} support vectors" if support else "linear": deciding(13, support, options.pairs, options.runs)
        for support in (0, 50, 200, 500, 2000)
    }
    save(options.out, "vector_cost", results)
    print("\n\n".join(make(results) for make in (as_table, deciding_table)))


if __name__ == "__main__":
    main()
