"""The search on Spark without Spark: the same worker functions, with lists in the place of partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
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


class Here:
    """A value that is shared with nobody."""

    def __init__(self, value: Any) -> None:
        self.value = value


def here(value: Any) -> Any:
    """Such a value, for what takes one that was sent."""
    return Here(value)


def mapped(parts: Iterable[Batches], worker: Worker) -> list[Batches]:
    return [list(worker(iter(part))) for part in parts]


def cut(table: pa.Table, partitions: int, records: int) -> list[Batches]:
    """A table in partitions of batches."""
    step = max(-(-len(table) // partitions), 1)
    return [table.slice(begin, step).to_batches(records) for begin in range(0, partitions * step, step)]


def rows_of(parts: Iterable[Batches]) -> list[dict[str, Any]]:
    return [row for part in parts for batch in part for row in batch.to_pylist()]


def joined(
    entries: list[tuple[int, int, int, int, int]], wanted: Any, second: dict[int, bool] | None = None
) -> list[tuple[int, int]]:
    """Entries (key, before, row, size, rest) of one key that may match by their sizes: each pair once."""
    by_key = defaultdict(list)
    for entry in entries:
        by_key[entry[0]].append(entry)
    found = set()
    for own in by_key.values():
        for one, other in combinations(sorted(own, key=lambda entry: (entry[3], entry[2])), 2):
            least = required_overlap(wanted, one[3], other[3])
            met_before = other[1] and other[1] == one[1]
            apart = second is None or second[one[2]] != second[other[2]]
            fits = one[4] >= least and min(one[3], abs(other[4])) >= least
            if fits and apart and not met_before and min(one[2], other[2]) < features.FIRST_REFERENCE_ROW:
                found.add((min(one[2], other[2]), max(one[2], other[2])))
    return sorted(found)


def listed(blobs: list[pa.RecordBatch], wanted: Any) -> list[tuple[int, int]]:
    """The pairs of all parts of entries."""
    found = set()
    for number in sorted({number for batch in blobs for number in batch["part"].to_pylist()}):
        own = [batch.filter(pa.compute.equal(batch["part"], number)) for batch in blobs]
        found |= {
            (row["left"], row["right"])
            for row in rows_of([list(search.candidate_batches(wanted, None, None, iter(own)))])
        }
    return sorted(found)


def counts_of(known: list[Batches], bits: int) -> features.FeatureCounts:
    """The counts of all partitions, each one's in slices."""
    whole = pa.Table.from_batches([batch for part in known for batch in part])
    slices = whole.filter(pa.compute.is_valid(whole["slice"]))
    added = {}
    for number in set(slices["slice"].to_pylist()):
        some = slices.filter(pa.compute.equal(slices["slice"], number)).select(["slice", "data"])
        added[number] = features.add_slices(some)["data"].to_pylist()[0]
    return features.FeatureCounts(bits, added)


def edges_of(
    texts: list[str], recipe: Recipe, *, partitions: int = 2, homes: int = 2, bits: int = 16
) -> tuple[dict[int, int], dict[tuple[int, int], tuple[int, int, int, float]]]:
    """Which document stands for each one that is equal, and the pairs of those that match: o, a, b and similarity."""
    table = pa.table({"row": pa.array(range(len(texts)), pa.int64()), "text": pa.array(texts, pa.string())})
    given = cut(table, partitions, 7)
    keys = np.array([5, 6], np.uint64)
    known = mapped(given, partial(features.digest_batches, recipe, None, [], keys, bits))
    standing: dict[int, int] = {}
    if not texts:
        return standing, {}
    whole = pa.Table.from_batches([batch for part in known for batch in part])
    whole = whole.filter(pa.compute.not_equal(whole["row"], features.NO_ROW))
    seen: dict[Any, int] = {}
    for row, size, *mark in zip(
        *(whole[name].to_pylist() for name in ("row", "size", "digest0", "digest1")), strict=True
    ):
        if size > 0:
            standing[row] = seen.setdefault((size, *mark), row)
    others = np.array([row for row in range(len(texts)) if standing.get(row) != row], np.int64)

    def sets(choice: Any, worker: Any) -> list[Batches]:
        return mapped(given, lambda part: worker(features.set_batches(recipe, None, choice, part)))

    wanted = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    if recipe.search == "lsh":
        make: Any = partial(search.band_batches, homes, bands_of(recipe), recipe.seed)
    else:
        make = partial(search.prefix_batches, homes, wanted, here(counts_of(known, bits)))
    entries = sets(partial(features.is_included, here(others)), make)
    pairs = np.array(listed([batch for part in entries for batch in part], wanted), np.int64).reshape(-1, 2)
    edges: dict[tuple[int, int], tuple[int, int, int, float]] = {}
    sizes = dict(zip(whole["row"].to_pylist(), whole["size"].to_pylist(), strict=True))
    if not len(pairs):
        return standing, edges
    asked: Any = here(search.PairPlacement.of(pairs[:, 0], pairs[:, 1], homes))
    sent = [
        batch for part in sets(partial(search.is_needed, asked), partial(search.route_sets, asked)) for batch in part
    ]
    for home in range(homes):
        own = [batch.filter(pa.compute.equal(batch["part"], home)) for batch in sent]
        found = search.compare_parts(asked, partial(search.verify_sets, wanted), iter(own))
        for row in rows_of([list(found)]):
            left, right = row["left"], row["right"]
            counts = row["o"], sizes[left], sizes[right]
            edges[left, right] = *counts, float(similarities(recipe.measure, np.array([counts]))[0])
    return standing, edges
