"""The search on Spark without Spark: the same worker functions, on lists in place of partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.kernels.bounds import required_overlap
from neardup.recipe import Recipe
from neardup.recipe.measures import rule, similarities
from neardup.search.lsh import bands_of
from neardup.spark import features, search

Batches = list[pa.RecordBatch]
Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def local_value(value: Any) -> Any:
    """Return a value in the place of a broadcast one."""
    return SimpleNamespace(value=value)


def map_parts(parts: Iterable[Batches], worker: Worker) -> list[Batches]:
    return [list(worker(iter(part))) for part in parts]


def split_table(table: pa.Table, partitions: int, records: int) -> list[Batches]:
    """Return a table in partitions of batches."""
    step = max(-(-len(table) // partitions), 1)
    return [table.slice(begin, step).to_batches(records) for begin in range(0, partitions * step, step)]


def rows_of(parts: Iterable[Batches]) -> list[dict[str, Any]]:
    return [row for part in parts for batch in part for row in batch.to_pylist()]


def naive_candidates(
    entries: list[tuple[int, int, int, int, int]], set_rule: Any, second: dict[int, bool] | None = None
) -> list[tuple[int, int]]:
    """Return the pairs of entries (key, previous, row, size, rest) that may match by their sizes, each once."""
    by_key = defaultdict(list)
    for entry in entries:
        by_key[entry[0]].append(entry)
    found = set()
    for chosen in by_key.values():
        for one, other in combinations(sorted(chosen, key=lambda entry: (entry[3], entry[2])), 2):
            least = required_overlap(set_rule, one[3], other[3])
            met_before = other[1] and other[1] == one[1]
            apart = second is None or second[one[2]] != second[other[2]]
            fits = one[4] >= least and min(one[3], abs(other[4])) >= least
            if fits and apart and not met_before and min(one[2], other[2]) < features.FIRST_REFERENCE_ROW:
                found.add((min(one[2], other[2]), max(one[2], other[2])))
    return sorted(found)


def candidates_of(blobs: list[pa.RecordBatch], set_rule: Any) -> list[tuple[int, int]]:
    """Return the candidate pairs of all parts of entries."""
    found = set()
    for number in sorted({number for batch in blobs for number in batch["part"].to_pylist()}):
        chosen = [batch.filter(pa.compute.equal(batch["part"], number)) for batch in blobs]
        found |= {
            (row["left"], row["right"])
            for row in rows_of([list(search.candidate_batches(set_rule, None, None, iter(chosen)))])
        }
    return sorted(found)


def counts_of(digests: list[Batches], bits: int) -> features.FeatureCounts:
    """Return the counts of all partitions."""
    whole = pa.Table.from_batches([batch for part in digests for batch in part])
    slices = whole.filter(pa.compute.is_valid(whole["slice"]))
    added = {}
    for number in set(slices["slice"].to_pylist()):
        some = slices.filter(pa.compute.equal(slices["slice"], number)).select(["slice", "data"])
        added[number] = features.add_slices(some)["data"].to_pylist()[0]
    return features.FeatureCounts(bits, added)


def find_edges(
    texts: list[str], recipe: Recipe, *, partitions: int = 2, parts: int = 2, bits: int = 16
) -> tuple[dict[int, int], dict[tuple[int, int], tuple[int, int, int, float]]]:
    """Return the representative of each document, and the matching pairs of these: o, a, b and similarity."""
    table = pa.table({"row": pa.array(range(len(texts)), pa.int64()), "text": pa.array(texts, pa.string())})
    batches = split_table(table, partitions, 7)
    keys = np.array([5, 6], np.uint64)
    digests = map_parts(batches, partial(features.digest_batches, recipe, None, [], keys, bits))
    representatives: dict[int, int] = {}
    if not texts:
        return representatives, {}
    whole = pa.Table.from_batches([batch for part in digests for batch in part])
    whole = whole.filter(pa.compute.not_equal(whole["row"], features.NO_ROW))
    seen: dict[Any, int] = {}
    for row, size, *mark in zip(
        *(whole[name].to_pylist() for name in ("row", "size", "digest0", "digest1")), strict=True
    ):
        if size > 0:
            representatives[row] = seen.setdefault((size, *mark), row)
    excluded = np.array([row for row in range(len(texts)) if representatives.get(row) != row], np.int64)

    def sets(choice: Any, worker: Any) -> list[Batches]:
        return map_parts(batches, lambda part: worker(features.set_batches(recipe, None, choice, part)))

    set_rule = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    if recipe.search == "lsh":
        make: Any = partial(search.band_batches, parts, bands_of(recipe), recipe.seed)
    else:
        make = partial(search.prefix_batches, parts, set_rule, local_value(counts_of(digests, bits)))
    entries = sets(partial(features.is_included, local_value(excluded)), make)
    pairs = np.array(candidates_of([batch for part in entries for batch in part], set_rule), np.int64).reshape(-1, 2)
    edges: dict[tuple[int, int], tuple[int, int, int, float]] = {}
    sizes = dict(zip(whole["row"].to_pylist(), whole["size"].to_pylist(), strict=True))
    if not len(pairs):
        return representatives, edges
    placement: Any = local_value(search.PairPlacement.of(pairs[:, 0], pairs[:, 1], parts))
    sent = [
        batch
        for part in sets(partial(search.is_needed, placement), partial(search.route_sets, placement))
        for batch in part
    ]
    for part in range(parts):
        chosen = [batch.filter(pa.compute.equal(batch["part"], part)) for batch in sent]
        found = search.compare_parts(placement, partial(search.verify_sets, set_rule), iter(chosen))
        for row in rows_of([list(found)]):
            left, right = row["left"], row["right"]
            counts = row["o"], sizes[left], sizes[right]
            edges[left, right] = *counts, float(similarities(recipe.measure, np.array([counts]))[0])
    return representatives, edges
