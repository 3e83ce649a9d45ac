"""The time an item by the size of the corpus and by the length of the text: runs of their own, each from nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup.flow.document import Document
from neardup.flow.index import Index
from neardup.replay.order import Item, Report
from neardup.times import utc

#: The smallest run, and the largest; in between each is twice the one before.
SMALLEST, LARGEST = 500, 32_000
#: Bytes of text that are held for these runs.
_MOST_BYTES = 128 << 20
#: Fewer documents of about one length say nothing about it.
_FEWEST = 5


class SizeRun(NamedTuple):
    """A run from an empty index.

    Attributes
    ----------
    documents : int
        How many went in.
    mean, median, p99 : float
        Microseconds of processor time an item.
    """

    documents: int
    mean: float
    median: float
    p99: float


class Length(NamedTuple):
    """Documents of about one length.

    Attributes
    ----------
    low, high : int
        Bytes: from low to below high.
    size : float
        Their mean length in bytes.
    documents : int
        How many there are.
    mean, p99 : float
        Microseconds of processor time an item.
    """

    low: int
    high: int
    size: float
    documents: int
    mean: float
    p99: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Both curves.

    Attributes
    ----------
    sizes : tuple of SizeRun
        The smallest first.
    lengths : tuple of Length
        The shortest first, of the documents of the largest run.
    """

    sizes: tuple[SizeRun, ...]
    lengths: tuple[Length, ...]


class Sample:
    """Keeps the first documents of a flow, as many as the largest run takes."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._bytes = 0

    def see(self, items: Sequence[Item], verdicts: object) -> None:
        """Keep some documents, unless there are enough."""
        del verdicts
        for item in items:
            if len(self.items) < LARGEST and self._bytes + item.size <= _MOST_BYTES:
                self.items.append(item)
                self._bytes += item.size


def sizes_of(documents: int) -> list[int]:
    """Return the sizes of the runs that so many documents allow; all of them, where they are few."""
    sizes = [SMALLEST << step for step in range(LARGEST.bit_length()) if SMALLEST << step <= min(documents, LARGEST)]
    return sizes or ([documents] if documents else [])


def measured(items: Sequence[Item], fresh: Callable[[], Index], report: Report) -> Measured:
    """Run the first documents through empty indexes, one document at a time.

    Parameters
    ----------
    items : sequence of Item
        In the order of the flow.
    fresh : callable
        Gives an empty index that keeps all it is given.
    report : callable
        Told the stage, how many documents have gone through, and how many will.
    """
    sizes = sizes_of(len(items))
    runs: list[SizeRun] = []
    taken = np.zeros(0)
    done = 0
    for size in sizes:
        taken = np.zeros(size)
        with fresh() as index:
            for at, item in enumerate(items[:size]):
                document = Document(item.id, item.text, utc(item.time), title=item.title)
                begin = time.thread_time_ns()
                index.add(document)
                taken[at] = time.thread_time_ns() - begin
                if at % 256 == 0:
                    report("measure by size", done + at, sum(sizes))
        done += size
        taken /= 1e3
        runs.append(SizeRun(size, float(taken.mean()), *_median_and_p99(taken)))
    lengths = np.array([item.size for item in items[: len(taken)]], np.int64)
    return Measured(tuple(runs), tuple(_by_length(lengths, taken)))


def _median_and_p99(times: np.ndarray) -> tuple[float, float]:
    median, p99 = np.percentile(times, [50, 99], method="inverted_cdf").tolist()
    return median, p99


def _by_length(sizes: np.ndarray, times: np.ndarray) -> list[Length]:
    """Return the times of texts from 2**(n/2) bytes to below 2**((n+1)/2)."""
    steps = np.floor(2 * np.log2(np.maximum(sizes, 1))).astype(np.int64)
    found = []
    for step in np.unique(steps).tolist():
        of = steps == step
        if of.sum() >= _FEWEST:
            low, high = int(np.ceil(2 ** (step / 2))), int(np.ceil(2 ** ((step + 1) / 2)))
            p99 = _median_and_p99(times[of])[1]
            found.append(Length(low, high, float(sizes[of].mean()), int(of.sum()), float(times[of].mean()), p99))
    return found
