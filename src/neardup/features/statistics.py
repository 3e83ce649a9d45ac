"""What a collection says of its features: in how many documents each occurs, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError, RecipeError
from neardup.kernels.tables import enter_values, slots_for
from neardup.recipe import Recipe
from neardup.recipe.kinds import Clip

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

#: idf weights are whole numbers of 2**-16, or coarser where a vector's square would not fit into 2**61.
_FINEST_BITS = 16
#: A vector's square is less, so that sums of squares and products fit into 63 bits.
_LARGEST_SQUARE = 1 << 61
_MARGIN = 1e-12


class Lookup(NamedTuple):
    """What the kernels look up for each feature.

    Attributes
    ----------
    keys, values : uint64[2**k], int64[2**k]
        An open table: the feature's idf as a whole number, 1 where there are no weights, 0 where clipping drops it.
    unseen : int64[1]
        The same for a feature that the table does not know: that of one document.
    """

    keys: Words
    values: Integers
    unseen: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """The document frequencies of a collection.

    Attributes
    ----------
    documents : int
        N, all documents, empty ones too.
    distinct : int
        The number of distinct features.
    heaviest : int
        The largest sum over a document of squared counts of features.
    features : uint64[f]
        Those that more than one document holds, ascending.
    df : int64[f]
        In how many documents each occurs.
    """

    documents: int
    distinct: int
    heaviest: int
    features: Words
    df: Integers

    def df_of(self, features: Words) -> Integers:
        """Return the df of features; 1 for one that is not known."""
        at = np.searchsorted(self.features, features)
        known = np.zeros(len(features), np.bool_)
        inside = at < len(self.features)
        known[inside] = self.features[at[inside]] == features[inside]
        found = np.ones(len(features), np.int64)
        found[known] = self.df[at[known]]
        return found

    def bits(self, recipe: Recipe) -> int:
        """Return how many binary places idf weights have: they are whole numbers of 2**-bits.

        As many as keep the square of every counted document's vector below 2**61, and 16 at most. Such a square is at
        most ``heaviest`` times the square of the largest idf; where repeats do not count, ``distinct`` times it. Where
        not even whole numbers keep it below, the collection is refused.
        """
        if recipe.weights not in ("idf", "tfidf"):
            # Terms are chosen by weights, which are then forgotten: nothing is squared.
            return _FINEST_BITS if recipe.parsed_features.kind == "terms" else 0
        most = self.heaviest if recipe.weights == "tfidf" else min(self.heaviest, self.distinct)
        for bits in range(_FINEST_BITS, -1, -1):
            if most * self._fixed(1, bits) ** 2 < _LARGEST_SQUARE:
                return bits
        raise NeardupError(
            f"the squared counts of a document's features add up to {self.heaviest:,}, too many for weights 'tfidf' of "
            f"{self.documents:,} documents; choose weights 'idf', for which repeats do not count"
        )

    def unit(self, recipe: Recipe) -> int:
        """Return how much of o, a and b of ``neardup.recipe.measures`` makes 1 for weighted vectors."""
        if recipe.weights not in ("idf", "tfidf"):
            return 1
        return 1 << (self.bits(recipe) * (1 if recipe.measure == "weighted_jaccard" else 2))

    def idf(self, df: int) -> float:
        """Return ln(1 + N / df) (Manning, Raghavan & Schuetze 2008, 6.2.1, with 1 added).

        The 1 leaves some weight to what all documents hold, so that two equal documents never come out empty.
        """
        return log(1 + self.documents / df)

    def _fixed(self, df: int, bits: int) -> int:
        """Return the idf as a whole number of 2**-bits, 1 at least."""
        return max(round((1 << bits) * self.idf(df)), 1)

    def lookup(self, recipe: Recipe) -> Lookup:
        """Return the table for a recipe's clipping and weights; clipping that leaves no feature is refused."""
        clip = recipe.parsed_clip
        by_idf = recipe.weights in ("idf", "tfidf") or recipe.parsed_features.kind == "terms"
        if clip is None and not by_idf:
            return Lookup(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))
        bits = self.bits(recipe)
        frequencies, place = np.unique(self.df, return_inverse=True)
        values = np.ones(len(frequencies) + 1, np.int64)
        for i, df in enumerate([*frequencies.tolist(), 1]):
            if clip is not None and not self._keeps(clip, df):
                values[i] = 0
            elif by_idf:
                values[i] = self._fixed(df, bits)
        singles = self.distinct > len(self.features)
        if self.distinct and not values[:-1].any() and not (singles and values[-1]):
            raise RecipeError(
                f"clip {recipe.clip!r} leaves none of the {self.distinct:,} features of {self.documents:,} documents; "
                "widen its bounds"
            )
        size = slots_for(len(self.features))
        keys, table = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        enter_values(self.features, values[place], keys, table)
        return Lookup(keys, table, values[-1:].copy())

    def _keeps(self, clip: Clip, df: int) -> bool:
        if clip.by == "idf":
            share = log(self.documents / df) / log(self.documents) if self.documents > 1 else 0.0
            return float(clip.low) - _MARGIN <= share <= float(clip.high) + _MARGIN
        low, high = (
            bound * self.documents if share else bound
            for bound, share in zip((clip.low, clip.high), clip.shares, strict=True)
        )
        return low <= Fraction(df) <= high
