"""Signatures: a few words computed from a document's features, which replace them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import count
from math import isqrt

import numpy as np

from neardup.features.statistics import Statistics
from neardup.features.store import Block, row_heads
from neardup.kernels import Integers, Words
from neardup.kernels.grams import digest_sets, minima_features
from neardup.kernels.sketches import linear_minima, minhash, simhash, supershingles
from neardup.recipe import Recipe


def is_prime(number: int) -> bool:
    """Return whether a whole number is prime; trial division takes up to 3 ms for those below 2**31."""
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def closest_prime(number: int) -> int:
    """Return the prime closest to a number, the smaller of two, at least 2.

    Examples
    --------
    >>> closest_prime(100)
    101
    """
    nearby = (number + sign * step for step in count() for sign in (-1, 1))
    return next(filter(is_prime, nearby))


#: The largest prime for which a product of two remainders fits into 62 bits.
_LARGEST_PRIME = 2**31 - 1


class Signer:
    """Computes the signatures of batches of documents, by the recipe's ``signature`` and ``seed``.

    A ``sketch`` uses the prime closest to the number of distinct features in the statistics, at most 2**31 - 1.
    """

    def __init__(self, recipe: Recipe, statistics: Statistics | None = None) -> None:
        signature = recipe.parsed_signature
        self._kind = "" if signature is None else signature.kind
        self._numbers: tuple[int, ...] = () if signature is None else signature.numbers
        self._minima_count = 0 if signature is None else signature.minima
        self._seed = np.uint64(recipe.seed)
        self._prime = closest_prime(min(statistics.distinct, _LARGEST_PRIME) if statistics else 2)
        # NumPy guarantees the raw bits of PCG64 for all versions, unlike the distributions made of them.
        raw = np.random.PCG64(recipe.seed).random_raw(2 * max(self._minima_count, 1))
        self._factors = (raw[0::2] % np.uint64(self._prime - 1) + np.uint64(1)).astype(np.int64)
        self._shifts = (raw[1::2] % np.uint64(self._prime)).astype(np.int64)

    def sign(self, block: Block, allocate: Callable[[int], Words]) -> Block:
        """Return the block with signatures instead of its features and weights."""
        heads = row_heads(block.sizes)
        sizes = np.zeros(len(block.sizes), np.int64)
        if self._kind == "simhash":
            values = np.empty(len(sizes), np.uint64)
            simhash(block.features, block.weights, heads, values)
            sizes[:] = block.sizes > 0
            features = allocate(int(sizes.sum()))
            features[:] = values[sizes > 0]
        elif self._kind == "imatch":
            features = self._sign_imatch(block, heads, sizes, allocate)
        else:
            features = self._sign_minima(block, heads, sizes, allocate)
        digests = np.empty((len(sizes), 2), np.uint64)
        digest_sets(features, sizes, digests)
        return block._replace(features=features, sizes=sizes, set_digests=digests, weights=np.empty(0, np.int64))

    def _sign_minima(self, block: Block, heads: Integers, sizes: Integers, allocate: Callable[[int], Words]) -> Words:
        minima = np.empty((len(sizes), self._minima_count), np.uint64)
        if self._kind == "sketch":
            linear_minima(block.features, heads, self._factors, self._shifts, self._prime, minima)
        else:
            minhash(block.features, heads, self._seed, minima)
        if self._kind == "supershingle":
            groups = np.empty((len(sizes), self._numbers[0]), np.uint64)
            supershingles(minima, self._numbers[1], groups)
            minima = groups
        sizes[:] = np.where(block.sizes > 0, minima.shape[1], 0)
        features = allocate(int(sizes.sum()))
        minima_features(minima, sizes, features)
        return features

    def _sign_imatch(self, block: Block, heads: Integers, sizes: Integers, allocate: Callable[[int], Words]) -> Words:
        hashes = []
        for d in np.flatnonzero(block.sizes >= self._numbers[0]).tolist():
            terms = np.sort(block.features[heads[d] : heads[d + 1]]).astype("<u8")
            digest = hashlib.sha1(terms.tobytes(), usedforsecurity=False).digest()
            hashes.append(max(int.from_bytes(digest[:8], "little"), 1))
            sizes[d] = 1
        features = allocate(len(hashes))
        features[:] = np.array(hashes, np.uint64)
        return features
