"""Locality-sensitive hashing with a stated recall: bands of minima give candidates, and all are verified.

Two sets of Jaccard s agree in a band of r minima with probability s^r, so they share one of b bands with probability
1 - (1 - s^r)^b (Broder 1997; Leskovec, Rajaraman & Ullman, Mining of Massive Datasets, 3.4). The similarity of each
candidate is computed exactly: pairs may be missed, but none is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, inf, log1p
from typing import NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.features.recomputed import BoundedStore, RecomputedFeatures
from neardup.features.store import Block, FeatureStore, row_heads
from neardup.kernels import Integers, Words
from neardup.kernels.prefixes import band_keys, pairs_by_band
from neardup.kernels.sketches import minhash
from neardup.kernels.tables import table_size
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, measure, rule
from neardup.runtime import map_in_order
from neardup.search.bounded_join import BoundedJoin
from neardup.search.matches import Matches, distinct_documents, set_representatives, sorted_pairs

#: Sets per piece of work.
_PIECE = 8192
#: For the estimate of candidates: sampled sets, sampled minima of each, and sampled pairs per minimum.
_SAMPLED_SETS, _SAMPLED_MINIMA, _SAMPLED_PAIRS = 20_000, 4, 200_000
#: The first capacity for pairs.
_CAPACITY = 1 << 16


class Bands(NamedTuple):
    """The division of sketches into b bands of r rows: more bands find more pairs and more candidates, more rows fewer.

    jaccard: the smallest Jaccard s of a pair that reaches the threshold; recall: 1 - (1 - s^r)^b, the expected share of
    such pairs that is found.
    """

    bands: int
    rows: int
    jaccard: float
    recall: float


def bands_for(jaccard: float, recall: float, num_perm: int) -> Bands:
    """Return the bands with the longest rows that reach a recall with at most ``num_perm`` minima.

    jaccard: s, in (0, 1]. recall: in (0, 1); raising it leads to more bands or shorter rows, so to more candidates.
    num_perm: the most minima b r; raising it allows longer rows, so fewer candidates, but sketches take longer. Raises
    ``RecipeError`` if it is too few.

    Examples
    --------
    >>> bands_for(0.8, 0.99, 256)
    Bands(bands=26, rows=8, jaccard=0.8, recall=0.9915608591189361)
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
    jaccard = max(measure(recipe.measure).least_jaccard(recipe.exact_threshold), floor, Fraction(0))
    return bands_for(float(jaccard), recipe.recall, recipe.num_perm)


def lsh_join(store: FeatureStore, recipe: Recipe, *, threads: int, reference_count: int = 0) -> Matches:
    """Find most pairs of a store's documents that match: of those at the threshold, the share of the recipe's recall.

    The last ``reference_count`` documents are of a reference; pairs among them are not searched.
    """
    plan = bands_of(recipe)
    sizes = store.sizes
    representative = set_representatives(store)
    members = distinct_documents(representative)
    match_rule = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    input_count = int(np.searchsorted(members, len(sizes) - reference_count))
    step = max(len(members) // _SAMPLED_SETS, 1)
    sampled = members[::step]
    sketch = partial(_minima, num_perm=plan.bands * plan.rows, seed=recipe.seed)
    verify, pending_limit = None, inf
    if isinstance(store, BoundedStore) and store.recomputed is not None:
        join = BoundedJoin(store, store.recomputed, match_rule, threads)
        keys, minima = _recompute_keys(store.recomputed, members, sampled, sketch, plan)
        verify, pending_limit = partial(_verify_recomputed, join, members), join.room
        addresses = np.empty(0, np.uint64)
    else:
        parts = map_in_order(lambda part: _keys(sketch(part), plan), store.set_blocks(), threads)
        keys = np.concatenate([np.empty((0, plan.bands), np.uint64), *parts])[members]
        minima, addresses = sketch(store.sets_of(sampled)), store.addresses()[members]
    expected = _expected_candidates(minima, len(members), -(-input_count // step), plan)
    found, candidates, verified = _matching_pairs(
        keys, (addresses, sizes[members]), input_count, match_rule, threads, verify, pending_limit
    )
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


def _minima(part: tuple[Words, Integers], num_perm: int, seed: int) -> Words:
    features, sizes = part
    heads = row_heads(sizes)
    minima = np.empty((len(sizes), num_perm), np.uint64)
    minhash(features, heads, np.uint64(seed), minima)
    return minima


def keys_of(part: tuple[Words, Integers], plan: Bands, seed: int) -> Words:
    """Return a hash of each band of the sketches of documents, given their features and sizes: uint64[d, bands]."""
    return _keys(_minima(part, plan.bands * plan.rows, seed), plan)


def _keys(minima: Words, plan: Bands) -> Words:
    keys = np.empty((len(minima), plan.bands), np.uint64)
    band_keys(minima, plan.rows, keys)
    return keys


def _recompute_keys(
    recomputed: RecomputedFeatures,
    members: Integers,
    sampled: Integers,
    sketch: Callable[[tuple[Words, Integers]], Words],
    plan: Bands,
) -> tuple[Words, Words]:
    """Return the keys of the members, and the minima of the sampled ones, from another pass over the input."""
    is_member, is_sampled = np.zeros((2, len(recomputed.sizes)), np.bool_)
    is_member[members] = is_sampled[sampled] = True

    def compute(documents: Integers, block: Block) -> tuple[Words, Words]:
        minima = sketch((block.features, block.sizes))
        return _keys(minima, plan), minima[is_sampled[documents]]

    keys, samples, count = np.empty((len(members), plan.bands), np.uint64), list[Words](), 0
    for block_keys, sample in recomputed.map_blocks(is_member, compute):
        keys[count : count + len(block_keys)] = block_keys
        samples.append(sample)
        count += len(block_keys)
    return keys, np.concatenate([np.empty((0, plan.bands * plan.rows), np.uint64), *samples])


def _verify_recomputed(join: BoundedJoin, members: Integers, candidates: Integers) -> Integers:
    """Return the candidates that match, with their overlaps, after recomputing their features."""
    overlaps = join.overlaps(members[candidates[:, :2]])
    return np.column_stack([candidates[:, :2], overlaps])[overlaps >= 0]


def _matching_pairs(
    keys: Words,
    sets: tuple[Words, Integers],
    input_count: int,
    match_rule: tuple[int, ...],
    threads: int,
    verify: Callable[[Integers], Integers] | None,
    pending_limit: float,
) -> tuple[Integers, int, int]:
    """Return matching pairs that share a band, (left, right, overlap) rows, and how many were candidates and verified.

    One of the two is among the first ``input_count`` sets. ``verify`` is given candidates whose features are not
    stored, whenever they take more than ``pending_limit`` bytes.
    """
    width = table_size(int(sets[1].max(initial=0)))
    found, candidates, verified = [np.empty((0, 3), np.int64)], 0, 0
    pending_bytes = 0
    for band in range(keys.shape[1]):
        order = np.argsort(keys[:, band], kind="stable")

        def match(begin: int, band: int = band, order: Integers = order) -> list[tuple[Integers, int, int]]:
            table = np.empty(width, np.uint64)
            pairs = np.empty((_CAPACITY, 3), np.int64)
            end, parts = min(begin + _PIECE, len(order)), []
            while begin < end:
                at, written, met, compared = pairs_by_band(
                    band, begin, end, order, keys, sets, input_count, match_rule, table, pairs
                )
                parts.append((pairs[:written].copy(), met, compared))
                if at == begin:
                    pairs = np.empty((2 * len(pairs), 3), np.int64)
                begin = at
            return parts

        for parts in map_in_order(match, range(0, len(order), _PIECE), threads):
            for pairs, met, compared in parts:
                found.append(pairs)
                candidates += met
                verified += compared
                pending_bytes += pairs.nbytes
        if verify and (pending_bytes > pending_limit or band == keys.shape[1] - 1):
            # Pairs of unknown overlap, -1, are replaced by those that match.
            rows = np.concatenate(found)
            known = rows[:, 2] >= 0
            found, pending_bytes = [rows[known], verify(rows[~known])], 0
    return np.concatenate(found), candidates, verified


def _expected_candidates(minima: Words, members: int, input_count: int, plan: Bands) -> int:
    """Return the expected number of candidates among all members, estimated from the minima of a sample.

    One of the two sets of a candidate is among the first ``input_count`` of the sample. Two sets of Jaccard s agree in
    a given minimum with probability s. So the sum over all pairs that agree there, of their probabilities of being
    candidates divided by s, has the required mean (Horvitz & Thompson 1952); s is estimated from the other minima.
    """
    slots = min(_SAMPLED_MINIMA, minima.shape[1])
    total = 0.0
    for slot in range(slots):
        pairs, share = _equal_pairs(minima[:, slot])
        pairs = pairs[pairs.min(axis=1) < input_count]
        equal = np.empty(len(pairs), np.int64)
        for begin in range(0, len(pairs), _PIECE):
            left, right = pairs[begin : begin + _PIECE].T
            equal[begin : begin + _PIECE] = (minima[left] == minima[right]).sum(axis=1)
        jaccard = (equal - 1)[equal > 1] / (minima.shape[1] - 1)
        total += float(((1 - (1 - jaccard**plan.rows) ** plan.bands) / jaccard).sum()) / share
    expected: int = round(total / slots * (members / max(len(minima), 1)) ** 2)
    return expected


def _equal_pairs(values: Words) -> tuple[Integers, float]:
    """Return a sample of the pairs of places with equal values, and its share of all such pairs."""
    order = np.argsort(values, kind="stable")
    ends = np.searchsorted(values[order], values[order], side="right")
    later = ends - np.arange(1, len(values) + 1)
    total = int(later.sum())
    step = max(total // _SAMPLED_PAIRS, 1)
    chosen = np.arange(0, total, step)
    pair_ends = np.cumsum(later)
    first = np.searchsorted(pair_ends, chosen, side="right")
    second = first + 1 + chosen - (pair_ends[first] - later[first])
    return np.column_stack([order[first], order[second]]), len(chosen) / total if total else 1.0
