"""Locality-sensitive hashing from a stated recall: bands of minima bring candidates, and all are verified.

Two sets of Jaccard s agree in a band of r minima with probability s^r, so they share one of b bands with
1 - (1 - s^r)^b (Broder 1997; Leskovec, Rajaraman & Ullman, Mining of Massive Datasets, 3.4). Each document that passes
has its exact similarity, so there are no wrong pairs, only missing ones.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, log1p
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.features.recomputed import BoundedStore, RecomputedFeatures
from neardup.features.store import Block, FeatureStore, row_heads
from neardup.kernels.prefixes import band_keys, pairs_by_band
from neardup.kernels.sketches import minhash
from neardup.kernels.tables import table_size
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, measure, rule
from neardup.runtime import map_in_order
from neardup.search.matches import Matches, distinct_documents, set_representatives, sorted_pairs
from neardup.search.recomputed import RecomputedJoin

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: Sets in a piece of work.
_AT_A_TIME = 8192
#: Of so many sets, and so many of their minima, and so many pairs a minimum, the candidates among all are expected.
_SAMPLED = 20_000
_SLOTS = 4
_MOST_AGREEING = 200_000
_ROOM_FOR_PAIRS = 1 << 16


class Bands(NamedTuple):
    """How sketches are cut into bands.

    Attributes
    ----------
    bands, rows : int
        b bands of r minima each. More bands find more pairs and more candidates; more rows fewer of both.
    jaccard : float
        The least Jaccard that a pair at the threshold can have.
    recall : float
        1 - (1 - s^r)^b for that s: the share of such pairs that is found.
    """

    bands: int
    rows: int
    jaccard: float
    recall: float


def bands_for(jaccard: float, recall: float, num_perm: int) -> Bands:
    """Return the bands with the longest rows that reach a recall with at most so many minima.

    Parameters
    ----------
    jaccard : float
        s, in (0, 1].
    recall : float
        In (0, 1). Raising it takes more bands or shorter rows, so more candidates.
    num_perm : int
        The most minima, b r. Raising it allows longer rows, so fewer candidates, and longer sketching.

    Raises
    ------
    RecipeError
        If so few minima cannot reach the recall.

    Examples
    --------
    >>> bands_for(0.8, 0.99, 256)
    Bands(bands=26, rows=8, jaccard=0.8, recall=0.9915482340434243)
    """
    if jaccard >= 1:
        return Bands(1, num_perm, 1.0, 1.0)
    best = None
    for rows in range(1, num_perm + 1):
        bands = max(ceil(log1p(-recall) / log1p(-(jaccard**rows))), 1) if jaccard**rows < 1 else 1
        if bands * rows > num_perm:
            break
        best = Bands(bands, rows, jaccard, -np.expm1(bands * log1p(-(jaccard**rows))).item())
    if best is None:
        needed = ceil(log1p(-recall) / log1p(-jaccard))
        raise RecipeError(
            f"num_perm {num_perm} is too few for recall {recall} at a Jaccard of {jaccard:.4g}, which takes "
            f"{needed:,}; raise num_perm or the threshold, or choose search 'exact'"
        )
    return best


def bands_of(recipe: Recipe) -> Bands:
    """Return the bands of a recipe."""
    floor = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    least = max(measure(recipe.measure).least_jaccard(recipe.exact_threshold), floor, Fraction(0))
    return bands_for(float(least), recipe.recall, recipe.num_perm)


def lsh_join(
    store: FeatureStore, recipe: Recipe, *, threads: int, excluded: npt.NDArray[np.bool_], reference: int = 0
) -> Matches:
    """Find most pairs of a store's documents that match: of those at the threshold, the recipe's recall.

    Parameters
    ----------
    store : FeatureStore
        Feature sets.
    recipe : Recipe
        Its measure, threshold, ``recall``, ``num_perm`` and ``seed``.
    threads : int
        They change the time, never the answer.
    excluded : bool[n]
        Documents that must match nothing.
    reference : int
        How many of the documents, the last ones, are of a reference: pairs among them are not looked for.
    """
    plan = bands_of(recipe)
    sizes = store.sizes
    representative = set_representatives(store, excluded)
    members = distinct_documents(representative)
    wanted = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    own = int(np.searchsorted(members, len(sizes) - reference))
    step = max(len(members) // _SAMPLED, 1)
    sampled = members[::step]
    sketched = partial(_sketch, num_perm=plan.bands * plan.rows, seed=recipe.seed)
    verify = None
    if isinstance(store, BoundedStore) and store.recomputed is not None:
        passes = RecomputedJoin(store, store.recomputed, wanted, threads)
        keys, minima = _keys_again(store.recomputed, members, sampled, sketched, plan)
        verify = partial(_overlaps_again, passes, members), passes.room
        addresses = np.empty(0, np.uint64)
    else:
        every = map_in_order(lambda part: _keys(sketched(part), plan), store.set_blocks(), threads)
        keys = np.concatenate([np.empty((0, plan.bands), np.uint64), *every])[members]
        minima, addresses = sketched(store.sets_of(sampled)), store.addresses()[members]
    expected = _expected(minima, len(members), -(-own // step), plan)
    found, candidates, verified = _verified(keys, (addresses, sizes[members]), own, wanted, threads, verify)
    documents = members[found[:, :2]]
    counts = np.column_stack([found[:, 2], sizes[documents]])
    left, right, counts = sorted_pairs(documents[:, 0], documents[:, 1], counts)
    statistics = {
        "distinct_sets": len(members),
        "bands": plan.bands,
        "rows": plan.rows,
        "jaccard_at_threshold": plan.jaccard,
        "recall_at_threshold": plan.recall,
        "expected_candidates": expected,
        "candidates": candidates,
        "verified": verified,
        "pairs": len(left),
    }
    return Matches(representative, left, right, counts, statistics=statistics)


def _sketch(part: tuple[Words, Integers], num_perm: int, seed: int) -> Words:
    features, sizes = part
    heads = row_heads(sizes)
    minima = np.empty((len(sizes), num_perm), np.uint64)
    minhash(features, heads, np.uint64(seed), minima)
    return minima


def keys_of(part: tuple[Words, Integers], plan: Bands, seed: int) -> Words:
    """Return a hash of each band of the sketches of documents, their features and sizes: uint64[d, bands]."""
    return _keys(_sketch(part, plan.bands * plan.rows, seed), plan)


def _keys(minima: Words, plan: Bands) -> Words:
    keys = np.empty((len(minima), plan.bands), np.uint64)
    band_keys(minima, plan.rows, keys)
    return keys


def _keys_again(
    recomputed: RecomputedFeatures,
    members: Integers,
    sampled: Integers,
    sketched: Callable[[tuple[Words, Integers]], Words],
    plan: Bands,
) -> tuple[Words, Words]:
    """Return the keys of the members, and the minima of those sampled, from one more pass."""
    chosen, looked_at = np.zeros((2, len(recomputed.sizes)), np.bool_)
    chosen[members] = looked_at[sampled] = True

    def make(documents: Integers, block: Block) -> tuple[Words, Words]:
        minima = sketched((block.features, block.sizes))
        return _keys(minima, plan), minima[looked_at[documents]]

    keys, samples, done = np.empty((len(members), plan.bands), np.uint64), list[Words](), 0
    for found, sample in recomputed.map_blocks(chosen, make):
        keys[done : done + len(found)] = found
        samples.append(sample)
        done += len(found)
    return keys, np.concatenate([np.empty((0, plan.bands * plan.rows), np.uint64), *samples])


def _overlaps_again(passes: RecomputedJoin, members: Integers, found: Integers) -> Integers:
    """Return those of the candidates that match, their features made once more, with their overlaps."""
    documents = members[found[:, :2]]
    overlap = passes.overlaps(documents)
    return np.column_stack([found[:, :2], overlap])[overlap >= 0]


def _verified(
    keys: Words,
    chosen: tuple[Words, Integers],
    own: int,
    wanted: tuple[int, ...],
    threads: int,
    verify: tuple[Callable[[Integers], Integers], float] | None,
) -> tuple[Integers, int, int]:
    """Return the pairs that share a band and match, as (one, other, overlap), and how many were looked at.

    One of the two is among the first ``own`` sets. Where features are not held, ``verify`` says which candidates match,
    of so many bytes at a time.
    """
    width = table_size(int(chosen[1].max(initial=0)))
    found, candidates, verified = [np.empty((0, 3), np.int64)], 0, 0
    waiting = 0
    for band in range(keys.shape[1]):
        order = np.argsort(keys[:, band], kind="stable")

        def look(begin: int, band: int = band, order: Integers = order) -> list[tuple[Integers, int, int]]:
            table = np.empty(width, np.uint64)
            room = np.empty((_ROOM_FOR_PAIRS, 3), np.int64)
            end, parts = min(begin + _AT_A_TIME, len(order)), []
            while begin < end:
                at, written, looked, counted = pairs_by_band(
                    band, begin, end, order, keys, chosen, own, wanted, table, room
                )
                parts.append((room[:written].copy(), looked, counted))
                if at == begin:
                    room = np.empty((2 * len(room), 3), np.int64)
                begin = at
            return parts

        for parts in map_in_order(look, range(0, len(order), _AT_A_TIME), threads):
            for pairs, looked, counted in parts:
                found.append(pairs)
                candidates += looked
                verified += counted
                waiting += pairs.nbytes
        if verify is not None and (waiting > verify[1] or band == keys.shape[1] - 1):
            found, waiting = _matching(found, verify[0]), 0
    return np.concatenate(found), candidates, verified


def _matching(found: list[Integers], verify: Callable[[Integers], Integers]) -> list[Integers]:
    known = [part[part[:, 2] >= 0] for part in found]
    return [*known, verify(np.concatenate([part[part[:, 2] < 0] for part in found]))]


def _expected(minima: Words, members: int, own: int, plan: Bands) -> int:
    """Return how many candidates the minima of a sample of the sets let expect among all of them.

    One of the two is among the first ``own`` of the sample.

    Two sets of Jaccard s agree in a given minimum with probability s. So over all pairs that agree there, the sum of
    their probabilities of being candidates, each divided by s, has the wanted mean (Horvitz & Thompson 1952); s is
    estimated from the other minima.
    """
    slots = min(_SLOTS, minima.shape[1])
    total = 0.0
    for slot in range(slots):
        pairs, share = _agreeing(minima[:, slot])
        pairs = pairs[pairs.min(axis=1) < own]
        same = np.empty(len(pairs), np.int64)
        for begin in range(0, len(pairs), _AT_A_TIME):
            left, right = pairs[begin : begin + _AT_A_TIME].T
            same[begin : begin + _AT_A_TIME] = (minima[left] == minima[right]).sum(axis=1)
        jaccard = (same - 1)[same > 1] / (minima.shape[1] - 1)
        total += float(((1 - (1 - jaccard**plan.rows) ** plan.bands) / jaccard).sum()) / share
    expected: int = round(total / slots * (members / max(len(minima), 1)) ** 2)
    return expected


def _agreeing(values: Words) -> tuple[Integers, float]:
    """Return pairs of places with equal values, and which share they are of all such pairs."""
    order = np.argsort(values, kind="stable")
    ends = np.searchsorted(values[order], values[order], side="right")
    later = ends - np.arange(1, len(values) + 1)
    total = int(later.sum())
    step = max(total // _MOST_AGREEING, 1)
    chosen = np.arange(0, total, step)
    before = np.cumsum(later)
    first = np.searchsorted(before, chosen, side="right")
    second = first + 1 + chosen - (before[first] - later[first])
    return np.column_stack([order[first], order[second]]), len(chosen) / total if total else 1.0
