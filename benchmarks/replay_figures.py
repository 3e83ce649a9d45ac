"""Figures 7 and 9 of Montanari & Puglisi 2012 on a corpus: time an item by the size of the corpus and by its length.

    replay_figures.py CORPUS [--documents N] [--recipe ddd] [--out FILE]

Each size is a run of its own: the first documents of the corpus go one by one into an empty index that keeps everything
and compares with everything. The lengths are those of the documents of the largest run: texts from 2^(n/2) to
2^((n+1)/2) bytes are one row where there are five or more. The paper gives 1.2 s at 8,000 documents (an Opteron 8356),
and less than 0.2 s for its average text of 5 KB among 732 documents. Figure 8, time by hour, is on the page of
``neardup replay --report``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from arrivals import warm_up
from measuring import table

from neardup.documents import open_corpus
from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

#: The smallest run; each of the others is twice the one before.
_SMALLEST = 500
#: Fewer documents of about one length say nothing about it.
_FEWEST = 5


def texts_of(corpus: str, most: int) -> list[str]:
    """Return the first texts of a corpus."""
    with open_corpus([corpus]) as opened:
        return list(islice((text.as_py() for batch in opened.scan() for text in batch.texts), most))


def times_of(texts: Sequence[str], recipe: str) -> np.ndarray:
    """Return the microseconds of processor time that each text took on its way into an empty index."""
    taken = np.zeros(len(texts))
    with Index(recipe, window=None, against="everything") as index:
        for at, text in enumerate(texts):
            begin = time.thread_time_ns()
            index.add(Document(str(at), text, float(at)))
            taken[at] = time.thread_time_ns() - begin
    return taken / 1e3


def spread(times: np.ndarray) -> Row:
    """Return what is said of some times."""
    median, p99 = np.percentile(times, [50, 99], method="inverted_cdf").tolist()
    return {"mean_us": float(times.mean()), "median_us": median, "p99_us": p99}


def by_length(texts: Sequence[str], times: np.ndarray) -> list[Row]:
    """Return a row for each range of lengths with enough texts."""
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    steps = np.floor(2 * np.log2(np.maximum(sizes, 1))).astype(np.int64)
    found = []
    for step in np.unique(steps).tolist():
        of = steps == step
        if of.sum() >= _FEWEST:
            low, high = int(np.ceil(2 ** (step / 2))), int(np.ceil(2 ** ((step + 1) / 2)))
            found.append({"low": low, "high": high, "documents": int(of.sum())} | spread(times[of]))
    return found


def figures(texts: Sequence[str], recipe: str) -> Row:
    """Return both figures."""
    sizes = [size for step in range(20) if (size := _SMALLEST << step) <= len(texts)] or [len(texts)]
    runs = [(size, times_of(texts[:size], recipe)) for size in sizes]
    size, times = runs[-1]
    return {
        "by_size": [{"documents": size} | spread(times) for size, times in runs],
        "by_length": by_length(texts[:size], times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--documents", type=int, default=32_000)
    parser.add_argument("--recipe", default="ddd")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warm_up(one_core=True)
    found = figures(texts_of(options.corpus, options.documents), options.recipe)
    for rows in found.values():
        print(table(list(rows[0]), [[f"{value:,.0f}" for value in row.values()] for row in rows]))
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
