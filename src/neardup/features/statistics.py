"""Document frequencies of a collection: in how many documents each feature occurs, and the weights that follow."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import NamedTuple

import numpy as np

from neardup.errors import NeardupError, RecipeError
from neardup.kernels import Integers, Words
from neardup.kernels.tables import insert_values, table_size
from neardup.recipe import Recipe
from neardup.recipe.kinds import Clip

#: idf weights are multiples of 2**-16, or coarser if a vector's squared norm would reach 2**61.
_FINEST_BITS = 16
#: Squared norms stay below this, so that sums of squares and products fit into 63 bits.
_MAX_SQUARE = 1 << 61
_MARGIN = 1e-12


class Lookup(NamedTuple):
    """A hash table (``kernels.tables``) from features to their fixed-point idf, 1 without weights, 0 if clipped.

    unseen: int64[1], the value of a feature that is not in the table: that of a feature in one document.
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
        N, the number of documents, empty ones included.
    distinct : int
        The number of distinct features.
    largest_square_sum : int
        The largest sum over a document of squared feature counts.
    features, df : uint64[f], int64[f]
        The features that occur in more than one document, ascending, and in how many each occurs.
    """

    documents: int
    distinct: int
    largest_square_sum: int
    features: Words
    df: Integers

    def idf_bits(self, recipe: Recipe) -> int:
        """Return the number of fractional bits of idf weights, which are multiples of 2**-bits: 0 to 16.

        It is the largest number that keeps the squared norm of every document's vector below 2**61. That norm is at
        most ``largest_square_sum`` (``distinct`` if repeats do not count) times the square of the largest idf. Raises
        ``NeardupError`` if even whole numbers are too large.
        """
        if recipe.weights not in ("idf", "tfidf"):
            # Weights only choose the terms and are then dropped: nothing is squared.
            return _FINEST_BITS if recipe.parsed_features.kind == "terms" else 0
        square_sum = (
            self.largest_square_sum if recipe.weights == "tfidf" else min(self.largest_square_sum, self.distinct)
        )
        for bits in range(_FINEST_BITS, -1, -1):
            if square_sum * self._fixed_point_idf(1, bits) ** 2 < _MAX_SQUARE:
                return bits
        raise NeardupError(
            f"the squared counts of a document's features add up to {self.largest_square_sum:,}, too many for weights "
            f"'tfidf' of {self.documents:,} documents; choose weights 'idf', for which repeats do not count"
        )

    def unit(self, recipe: Recipe) -> int:
        """Return the value of o, a and b (``neardup.recipe.measures``) that stands for 1 in weighted vectors."""
        if recipe.weights not in ("idf", "tfidf"):
            return 1
        return 1 << (self.idf_bits(recipe) * (1 if recipe.measure == "weighted_jaccard" else 2))

    def idf(self, df: int) -> float:
        """Return ln(1 + N / df) (Manning, Raghavan & Schuetze 2008, 6.2.1, with 1 added).

        The 1 leaves some weight to features of all documents, so that two equal documents are never empty.
        """
        return log(1 + self.documents / df)

    def _fixed_point_idf(self, df: int, bits: int) -> int:
        """Return the idf in units of 2**-bits, at least 1."""
        return max(round((1 << bits) * self.idf(df)), 1)

    def lookup(self, recipe: Recipe) -> Lookup:
        """Return the lookup table for a recipe's clipping and weights; raise an error if clipping leaves no feature."""
        clip = recipe.parsed_clip
        by_idf = recipe.weights in ("idf", "tfidf") or recipe.parsed_features.kind == "terms"
        if clip is None and not by_idf:
            return Lookup(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))
        bits = self.idf_bits(recipe)
        frequencies, index = np.unique(self.df, return_inverse=True)
        values = np.ones(len(frequencies) + 1, np.int64)
        for i, df in enumerate([*frequencies.tolist(), 1]):
            if clip is not None and not self._passes_clip(clip, df):
                values[i] = 0
            elif by_idf:
                values[i] = self._fixed_point_idf(df, bits)
        singles = self.distinct > len(self.features)
        if self.distinct and not values[:-1].any() and not (singles and values[-1]):
            raise RecipeError(
                f"clip {recipe.clip!r} leaves none of the {self.distinct:,} features of {self.documents:,} documents; "
                "widen its bounds"
            )
        size = table_size(len(self.features))
        keys, table = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        insert_values(self.features, values[index], keys, table)
        return Lookup(keys, table, values[-1:].copy())

    def _passes_clip(self, clip: Clip, df: int) -> bool:
        if clip.by == "idf":
            share = log(self.documents / df) / log(self.documents) if self.documents > 1 else 0.0
            return float(clip.low) - _MARGIN <= share <= float(clip.high) + _MARGIN
        low, high = (
            bound * self.documents if share else bound
            for bound, share in zip((clip.low, clip.high), clip.shares, strict=True)
        )
        return low <= Fraction(df) <= high
