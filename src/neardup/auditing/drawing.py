"""Which pairs are drawn: those whose ids have the smallest hashes.

Whose hash is small is chance, so the smallest of a stratum are a simple random sample of it. They do not depend on the
order of the input or on what else was drawn: a larger sample holds the smaller one, and where a working point moves,
much of what was judged can be used again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.pairs import Names

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_DRAW, _ASK = 0, 1


def draw(names: Names, left: Integers, right: Integers, place: Integers, counts: Sequence[int], seed: int) -> Integers:
    """Return which pairs are drawn, in an order that tells nothing of their strata.

    Parameters
    ----------
    names : Names
        Of the documents.
    left, right : int64[n]
        The pairs, by position.
    place : int64[n]
        The stratum of each.
    counts : sequence of int
        How many to draw from each stratum, no more than it holds.
    seed : int
        Another seed draws other pairs.
    """
    documents, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    hashes = _hashes([str(name) for name in names.of(documents).to_pylist()], seed)
    one, other = hashes[index[: len(left)]], hashes[index[len(left) :]]
    low, high = np.minimum(one, other), np.maximum(one, other)
    drawn = [np.zeros(0, np.int64)]
    by_stratum = np.argsort(place, kind="stable")
    begins = np.searchsorted(place[by_stratum], np.arange(len(counts) + 1))
    for stratum, count in enumerate(counts):
        members = by_stratum[begins[stratum] : begins[stratum + 1]]
        keys = _mixed(low[members], high[members], _DRAW)
        if 0 < count < len(members):
            small = keys <= np.partition(keys, count - 1)[count - 1]
            members, keys = members[small], keys[small]
        drawn.append(members[np.lexsort((high[members], low[members], keys))[:count]])
    chosen = np.concatenate(drawn)
    keys = _mixed(low[chosen], high[chosen], _ASK)
    order: Integers = chosen[np.lexsort((high[chosen], low[chosen], keys))]
    return order


def _hashes(names: Sequence[str], seed: int) -> Words:
    digests = b"".join(
        hashlib.blake2b(f"{seed} {name}".encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _mixed(low: Words, high: Words, purpose: int) -> Words:
    """Return a hash of each pair: splitmix64 of one, added to the other, again (Steele, Lea & Flood 2014)."""
    gamma = np.uint64((2 * purpose + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    return _finished(_finished(low + gamma) + high)


def _finished(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
