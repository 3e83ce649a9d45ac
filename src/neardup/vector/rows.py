"""Documents as rows of features in ascending order, so that two rows are compared in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup._kernels.overlaps import overlaps
from neardup._kernels.pairing import add_shared, add_up, sort_rows

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_NO_WEIGHTS = np.empty(0, np.int64)


class Rows(NamedTuple):
    """The features of documents: those of d are features[heads[d]:heads[d + 1]].

    Attributes
    ----------
    heads : int64[n + 1]
        Where the features of each document begin.
    features : uint64[m]
        Ascending in each row, none twice; but tokens in their order, repeats repeated.
    weights : int64[m]
        At least 1; empty for sets.
    sums, squares : int64[n]
        The sum of a row's weights, and that of their squares, or -1 where it is 2**61 or more; the number of features,
        for sets.
    """

    heads: Integers
    features: Words
    weights: Integers
    sums: Integers
    squares: Integers

    @classmethod
    def of(cls, sizes: Integers, features: Words, weights: Integers = _NO_WEIGHTS) -> Self:
        """Return rows of so many features each, which lie one behind the other, as they are."""
        heads = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sums = squares = sizes
        if len(weights):
            sums, squares = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
            add_up(heads, weights, sums, squares)
        return cls(heads, features, weights, sums, squares)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of some documents, then those of others."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.heads) for part in parts)])
        features = np.concatenate([np.empty(0, np.uint64), *(part.features for part in parts)])
        weights = np.concatenate([_NO_WEIGHTS, *(part.weights for part in parts)])
        return cls.of(sizes, features, weights)

    def ascending(self) -> Self:
        """Sort the features of each row in place, and the weights with them; return the rows."""
        sort_rows(self.heads, self.features, self.weights)
        return self

    def counts(self, left: Integers, right: Integers, *, weighted: bool = False, minima: bool = False) -> Integers:
        """Return int64[k, 3], the o, a and b of ``neardup.measures`` for pairs of rows.

        Of a row whose square is too large, a or b is -1 and o is none: ``products`` has them.

        Parameters
        ----------
        left, right : int64[k]
            The rows of each pair.
        weighted : bool
            Whether weights count; else they are sets.
        minima : bool
            Of weights: whether o is the sum of the smaller ones, else the dot product.
        """
        shared = np.empty(len(left), np.int64)
        if not weighted:
            overlaps(self.heads, self.features, left, right, shared)
            return np.column_stack(
                [shared, self.heads[left + 1] - self.heads[left], self.heads[right + 1] - self.heads[right]]
            )
        add_shared(self.heads, self.features, self.weights, not minima, left, right, shared)
        totals = self.sums if minima else self.squares
        return np.column_stack([shared, totals[left], totals[right]])

    def products(self, left: int, right: int) -> tuple[int, int, int]:
        """Return the dot product of two rows' weights and both squares, whatever their size."""
        f, g = (
            dict(zip(self.features[part].tolist(), self.weights[part].tolist(), strict=True))
            for part in (slice(*self.heads[row : row + 2]) for row in (left, right))
        )
        return (
            sum(f[x] * g[x] for x in f.keys() & g.keys()),
            sum(x * x for x in f.values()),
            sum(x * x for x in g.values()),
        )
