"""The search on Spark without Spark: the same worker functions, with lists in the place of partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.kernels.bounds import need
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
            least = need(wanted, one[3], other[3])
            met_before = other[1] and other[1] == one[1]
            apart = second is None or second[one[2]] != second[other[2]]
            fits = one[4] >= least and min(one[3], abs(other[4])) >= least
            if fits and apart and not met_before and min(one[2], other[2]) < search.REFERENCE:
                found.add((min(one[2], other[2]), max(one[2], other[2])))
    return sorted(found)


def listed(blobs: list[pa.RecordBatch], wanted: Any) -> list[tuple[int, int]]:
    """The pairs of all parts of entries."""
    found = set()
    for number in sorted({number for batch in blobs for number in batch["part"].to_pylist()}):
        own = [batch.filter(pa.compute.equal(batch["part"], number)) for batch in blobs]
        found |= {
            (row["left"], row["right"]) for row in rows_of([list(search.listed_pairs(wanted, None, None, iter(own)))])
        }
    return sorted(found)


def table_of_counts(sets: list[Batches], alone: Any, bits: int) -> Any:
    """The counts of all sets, each worker's in slices."""
    total = np.zeros(1 << bits, np.uint8)
    parts = [pa.Table.from_batches(part) for part in mapped(sets, partial(features.count_batches, bits, alone)) if part]
    for number in range(-(-len(total) // features._SLICE)):
        some = [part.filter(pa.compute.equal(part["slice"], number)) for part in parts]
        slices = pa.concat_tables(some) if some else pa.table({"slice": []})
        if len(slices):
            begin, [added] = number * features._SLICE, features.add_slices(slices)["data"].to_pylist()
            total[begin : begin + len(added)] = np.frombuffer(added, np.uint8)
    return total


def edges_of(
    texts: list[str], recipe: Recipe, *, partitions: int = 2, homes: int = 2, bits: int = 16
) -> tuple[dict[int, int], dict[tuple[int, int], tuple[int, int, int, float]]]:
    """Which document stands for each one that is equal, and the pairs of those that match: o, a, b and similarity."""
    table = pa.table({"row": pa.array(range(len(texts)), pa.int64()), "text": pa.array(texts, pa.string())})
    known = mapped(cut(table, partitions, 7), partial(features.extract_batches, recipe, None, []))
    standing: dict[int, int] = {}
    if not texts:
        return standing, {}
    whole = pa.Table.from_batches([batch for part in known for batch in part])
    seen: dict[Any, int] = {}
    for row, size, *mark in zip(*(whole[name].to_pylist() for name in ("row", "size", "mark0", "mark1")), strict=True):
        if size > 0:
            standing[row] = seen.setdefault((size, *mark), row)
    copies = np.array([row for row, first in standing.items() if row != first], np.int64)
    alone = features.SetsAlone(here(copies))
    able = whole.filter(pa.array([row in standing for row in range(len(texts))], pa.bool_()))
    sets = cut(able.select(["row", "features"]).combine_chunks(), partitions, 5)
    wanted = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    if recipe.search == "lsh":
        make: Any = partial(search.band_batches, homes, alone, bands_of(recipe), recipe.seed)
    else:
        make = partial(search.prefix_batches, homes, wanted, alone, here(table_of_counts(sets, alone, bits)))
    pairs = listed([batch for part in mapped(sets, make) for batch in part], wanted)
    edges: dict[tuple[int, int], tuple[int, int, int, float]] = {}
    sizes = dict(zip(whole["row"].to_pylist(), whole["size"].to_pylist(), strict=True))
    for home in range(homes):
        own = [pair for pair in pairs if pair[0] % homes == home]
        if not own:
            continue
        asked = pa.table({side: [pair[i] for pair in own] for i, side in enumerate(("left", "right"))})
        held = whole.filter(pa.compute.is_in(whole["row"], pa.array(sorted({row for pair in own for row in pair}))))
        for left, right, o in zip(*search.check_sets(wanted, held, asked).to_pydict().values(), strict=True):
            counts = o, sizes[left], sizes[right]
            edges[left, right] = *counts, float(similarities(recipe.measure, np.array([counts]))[0])
    return standing, edges
