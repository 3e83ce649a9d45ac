"""Sets that a window enters by couples of features in place of single ones: which, and the table of their keys."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from neardup._kernels.bounds import need, smallest_partner
from neardup._kernels.posting import MOST_COUPLES, TAG, Lists, meetings
from neardup._kernels.shelving import TAG_BITS, WORDS, lengthen
from neardup.measures import Rule
from neardup.window.chunks import mapped

Integers = npt.NDArray[np.int64]

#: Sets of so many features or more, a size class's least, are entered by couples. Below, single features take less
#: memory, and their lists are not long.
_LEAST = 1448
#: A row has so many size classes: sizes grow fourfold. Raising it makes the largest documents of a row have more keys,
#: and fewer documents ask by the keys of two rows.
_CLASSES_A_ROW = 8
#: A shelf has room for 15 entries; of so many a table is made longer. Raising it saves memory and fills more shelves.
_ENTRIES_A_SHELF = 10
_ENDLESS = 1 << 62


def plan_of(rule: Rule, classes: Integers) -> Integers:
    """Return the plan (``_kernels.coupling``): a row for each range of sizes, none where matches may share too little.

    With 2**bits buckets and l keys to be shared, 2**bits + l features must be common to any match of a document of the
    row: then each document has keys enough. The fewest are those of the smallest document with its smallest partner.
    """
    rows: list[list[int]] = []
    for which in range(int(np.searchsorted(classes, _LEAST)), len(classes) - 1, _CLASSES_A_ROW):
        least = int(classes[which])
        bits, equal = max(least.bit_length() - 2, 0), int(meetings(classes, which))
        if need(rule, smallest_partner(rule, least), least) < (1 << bits) + equal:
            rows.clear()
        else:
            rows.append([least, bits, equal, 0])
    return np.array(rows, np.int64).reshape(-1, 4)


def new_salt() -> np.uint64:
    """Return an odd number that nobody can guess: it says which features share a bucket, and changes no answer."""
    return np.uint64(secrets.randbits(64) | 1)


def no_shelves() -> npt.NDArray[np.uint32]:
    """Return the table of shelves of a window that has entered no couples."""
    return np.zeros(WORDS, np.uint32)


def longer(lists: Lists, first: int) -> Lists:
    """Return lists with a table of so many shelves in place of none, or with one twice as long as theirs."""
    shelves = len(lists.shelves) // WORDS
    if shelves == 1:
        lists.counters[TAG] = first.bit_length() - 1
        return lists._replace(shelves=_table(first))
    table = _table(2 * shelves)
    lengthen(shelves.bit_length() - 1 - int(lists.counters[TAG]), lists, table)
    return lists._replace(shelves=table)


def allow(lists: Lists, gone: int) -> None:
    """Say after how many couples ever entered a longer table is wanted, of which so many are gone."""
    shelves = len(lists.shelves) // WORDS
    most = gone + _ENTRIES_A_SHELF * shelves if shelves > 1 else 0
    if shelves > 1 and shelves >> int(lists.counters[TAG]) == 1 << TAG_BITS:
        most = _ENDLESS
    lists.counters[MOST_COUPLES] = most


def first_shelves(slots: int, couples: int) -> int:
    """Return how many shelves a generation begins with, by the slots of its lists and the couples that are there."""
    wanted = couples // _ENTRIES_A_SHELF
    return max(slots >> 5, 1 << wanted.bit_length(), 2)


def _table(shelves: int) -> npt.NDArray[np.uint32]:
    found: npt.NDArray[np.uint32] = mapped(4 * WORDS * shelves, large_pages=True).view(np.uint32)
    return found
