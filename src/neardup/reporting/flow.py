"""A flow as a report sees it: what arrived, one after the other, and what each duplicate repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.measures import SET_MEASURES
from neardup.recipe import Recipe
from neardup.sidebyside.shown import Shown

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: In the place of what an item repeats: nothing, or what is not among those that are reported.
ORIGINAL, ELSEWHERE = -1, -2
#: In the place of a time that is not known.
NO_TIME = -(1 << 62)


class Groups(NamedTuple):
    """Items that are connected by what they repeat.

    Attributes
    ----------
    root : int64[n]
        Of each item the first one it goes back to, itself for an original.
    roots : int64[f]
        Of those the ones that something repeats, in order of arrival.
    sizes : int64[f]
        How many items go back to each, itself among them.
    """

    root: Integers
    roots: Integers
    sizes: Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class Flow:
    """What arrived, in order of arrival; a number in this order is an item's place.

    Attributes
    ----------
    ids : pyarrow.Array
        What they are called, as strings.
    times : int64[n]
        Microseconds since 1970, or NO_TIME.
    of : int64[n]
        The place of what each repeats, always an earlier one; ORIGINAL, or ELSEWHERE.
    similarity : float64[n]
        To that; 0 for originals.
    exact : bool[n]
        Whether both texts are equal byte for byte.
    equal : bool[n]
        Whether both have equal features, as equal texts do.
    before : int
        So many of the first items came before those that are reported, and are here because others repeat them.
    sources : pyarrow.Array or None
        Where each came from, as strings; None where that is not known.
    elsewhere : mapping of int to str
        The ids of what items repeat that is ELSEWHERE.
    """

    ids: pa.Array
    times: Integers
    of: Integers
    similarity: Floats
    exact: Bools
    equal: Bools
    before: int = 0
    sources: pa.Array | None = None
    elsewhere: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.of)

    def id(self, place: int) -> str:
        """Return what an item is called."""
        return str(self.ids[place].as_py())

    def repeats(self, place: int) -> str:
        """Return the id of what an item repeats; empty for an original."""
        other = int(self.of[place])
        if other == ORIGINAL:
            return ""
        return self.elsewhere.get(place, "") if other == ELSEWHERE else self.id(other)

    @cached_property
    def duplicates(self) -> Integers:
        """The places of the reported items that repeat another one."""
        found = np.flatnonzero(self.of != ORIGINAL)
        return found[found >= self.before]

    @cached_property
    def groups(self) -> Groups:
        """The items by what they go back to."""
        root = np.where(self.of >= 0, self.of, np.arange(len(self.of)))
        while not np.array_equal(further := root[root], root):
            root = further
        roots, sizes = np.unique(root, return_counts=True)
        return Groups(root, roots[sizes > 1], sizes[sizes > 1])

    def members(self, root: int) -> Integers:
        """Return the places of the items that go back to one, itself first."""
        order, heads = self._by_root
        return order[heads[root] : heads[root + 1]]

    @cached_property
    def _by_root(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.groups.root, kind="stable")
        counts = np.bincount(self.groups.root, minlength=len(self))
        return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


#: Texts of items by their places; those that are not there any more are missing.
Texts = Callable[[list[int]], Mapping[int, Shown]]
#: How the texts of items begin, in a line, for the search, by their places; those that are not there are missing.
Words = Callable[[Integers], Mapping[int, str]]
#: Why a duplicate matches what it repeats, in a line, by its place; empty where that is not known.
Evidence = Callable[[int], str]
#: Which of some texts match each other, as pairs of places; None where that cannot be told.
Matching = Callable[[Mapping[int, Shown]], set[tuple[int, int]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the report of a flow has from what it says of single items.

    Attributes
    ----------
    texts, words, evidence, matching : callable
        See `Texts`, `Words`, `Evidence` and `Matching`.
    """

    texts: Texts
    words: Words
    evidence: Evidence
    matching: Matching


def counts_in_words(counts: tuple[int, int, int] | None, recipe: Recipe) -> str:
    """Return the whole numbers behind a similarity; empty where they say nothing to people.

    Parameters
    ----------
    counts : (int, int, int) or None
        o, a and b, as a verdict has them.
    recipe : Recipe
        By which it was made.
    """
    if counts is None or recipe.then or recipe.is_weighted:
        return ""
    o, a, b = counts
    if recipe.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if recipe.measure in SET_MEASURES and not recipe.signature and recipe.parsed_features.kind != "checksum":
        return shared_in_words(o, a, b)
    return ""


def shared_in_words(o: int, a: int, b: int) -> str:
    """Return how many features two sets of sizes a and b share; that is o of them."""
    inside = "one is wholly contained in the other: " if o == min(a, b) < max(a, b) else ""
    return f"{inside}{o:,} features shared, of {a:,} and {b:,}"
