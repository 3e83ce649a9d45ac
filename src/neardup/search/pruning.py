"""The first half of the join: which sets can have a partner, and the rare-first prefix of each."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neardup._kernels.counting import add_counts, count_features, prefix_rooms, prefixes
from neardup.measures import Rule
from neardup.parallel import in_order
from neardup.spill import Memory

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: Another round of counting pays when at least this share of the sets has left.
_WORTH_A_ROUND = 0.2
#: Sets in a piece of work.
SETS_AT_A_TIME = 4096
#: The least number of bits that choose a slot or a bucket.
FEWEST_BITS = 10
#: What the counts may take, however small the memory budget: fewer slots than features would tell little.
_LEAST_FOR_COUNTS = 1 << 24
_PARTS_BETWEEN_RELEASES = 8

Done = TypeVar("Done")


class Prefixes(NamedTuple):
    """The prefix of set m is keys[starts[m]:starts[m] + lengths[m]]; length -1: it has no partner."""

    shared: Integers
    lengths: Integers
    bitmaps: Words
    starts: Integers
    keys: Words

    def of(self, chosen: npt.NDArray[Any]) -> Prefixes:
        """Return those of the chosen sets."""
        return Prefixes(self.shared[chosen], self.lengths[chosen], self.bitmaps[chosen], self.starts[chosen], self.keys)


class Steps:
    """What all steps of a join need, and how each goes over the sets."""

    def __init__(self, addresses: Words, sizes: Integers, rule: Rule, threads: int, memory: Memory) -> None:
        self.addresses, self.sizes, self.rule, self.threads = addresses, sizes, rule, threads
        self.memory = memory
        self.statistics = {"rounds": 0, "candidates": 0, "verified": 0}

    def each(self, function: Callable[[int], Done], count: int) -> Iterator[Done]:
        """Yield function(begin) for the first of every few thousand sets, in order."""
        for number, done in enumerate(in_order(function, range(0, count, SETS_AT_A_TIME), self.threads)):
            if number % _PARTS_BETWEEN_RELEASES == 0:
                self.memory.release()
            yield done


def prune(steps: Steps, members: Integers) -> tuple[Integers, Prefixes]:
    """Return the sets that can have a partner, and their prefixes."""
    while True:
        steps.statistics["rounds"] += 1
        shift, counts = _counts(steps, members)
        prefix = _prefixes(steps, members, shift, counts)
        able = prefix.lengths >= 0
        remaining = members[able]
        if len(remaining) == 0 or len(remaining) > (1 - _WORTH_A_ROUND) * len(members):
            steps.statistics["sets_with_enough_shared_features"] = len(remaining)
            return remaining, prefix.of(able)
        steps.memory.give_back(prefix.keys)
        members = remaining


def _counts(steps: Steps, members: Integers) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
    """Return in how many of the members' sets the features of each slot occur, at most 255."""
    bits = max(int(steps.sizes[members].sum()).bit_length(), FEWEST_BITS)
    while bits > FEWEST_BITS and (steps.threads << bits) > max(steps.memory.room / 2, _LEAST_FOR_COUNTS):
        bits -= 1
    shift = np.uint64(64 - bits)
    tables = [np.zeros(1 << bits, np.uint8) for _ in range(steps.threads)]
    free = queue.SimpleQueue[npt.NDArray[np.uint8]]()
    for table in tables:
        free.put(table)

    def count(begin: int) -> None:
        table = free.get()
        part = members[begin : begin + SETS_AT_A_TIME]
        count_features(steps.addresses, steps.sizes, part, shift, table)
        free.put(table)

    for _ in steps.each(count, len(members)):
        pass
    for other in tables[1:]:
        add_counts(tables[0], other)
    return shift, tables[0]


def _prefixes(steps: Steps, members: Integers, shift: np.uint64, counts: npt.NDArray[np.uint8]) -> Prefixes:
    count = len(members)
    rooms = np.empty(count, np.int64)
    prefix_rooms(steps.sizes[members], steps.rule, rooms)
    begins = np.cumsum(rooms) - rooms
    found = Prefixes(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, 8), np.uint64),
        np.empty(count, np.int64),
        steps.memory.array(np.uint64, int(rooms.sum())),
    )

    def fill(begin: int) -> None:
        part = slice(begin, begin + SETS_AT_A_TIME)
        results = *(array[part] for array in found[:-1]), found.keys, int(begins[begin])
        prefixes(steps.addresses, steps.sizes, members[part], shift, counts, steps.rule, results)

    for _ in steps.each(fill, count):
        pass
    return found
