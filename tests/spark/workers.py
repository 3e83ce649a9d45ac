"""The search on Spark without Spark: the same worker functions, with lists in the place of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.kernels.counts import add_counts
from neardup.recipe import Recipe
from neardup.recipe.measures import rule
from neardup.search.lsh import bands_of
from neardup.spark import candidates, features
from neardup.spark import candidates as prefixes
from neardup.spark import features as counts
from neardup.spark import features as packing
from neardup.spark import features as tables
from neardup.spark import verify as items
from neardup.spark import verify as verifying

Batches = list[pa.RecordBatch]
Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Here:
    """A value that is shared with nobody."""

    def __init__(self, value: Any) -> None:
        self.value = value


def mapped(parts: Iterable[Batches], worker: Worker) -> list[Batches]:
    return [list(worker(iter(part))) for part in parts]


def exchanged(parts: Iterable[Batches], count: int) -> list[Batches]:
    """Every blob in the partition of its label, ordered by kind there, some in one batch."""
    place = {int(label): number for number, label in enumerate(packing.labels(count))}
    found: list[list[tuple[int, int, bytes]]] = [[] for _ in range(count)]
    for part in parts:
        for label, kind, data in packing.blobs_of(part):
            found[place[label]].append((label, kind, data.to_pybytes()))
    sent = []
    for rows in found:
        rows.sort(key=lambda row: row[1])
        sent.append([packing.blob_batch(rows[begin : begin + 3]) for begin in range(0, len(rows), 3)])
    return sent


def cut(table: pa.Table, partitions: int, records: int) -> list[Batches]:
    """A table in partitions of batches."""
    step = max(-(-len(table) // partitions), 1)
    return [table.slice(begin, step).to_batches(records) for begin in range(0, partitions * step, step)]


def of_kind(parts: Iterable[Batches], kind: int) -> list[Batches]:
    return [
        [packing.blob_batch([(label, k, data.to_pybytes())]) for label, k, data in packing.blobs_of(part) if k == kind]
        for part in parts
    ]


def edges_of(
    texts: list[str],
    recipe: Recipe,
    *,
    partitions: int = 2,
    homes: int = 2,
    block: int = 4096,
    bits: int = 16,
    sketched: bool = False,
) -> tuple[dict[int, int], dict[tuple[int, int], tuple[int, int, int, float]]]:
    """Which document stands for each one that is equal, and the pairs of those that match: o, a, b and similarity."""
    table = pa.table({"row": pa.array(range(len(texts)), pa.int64()), "text": pa.array(texts, pa.string())})
    known = mapped(cut(table, partitions, 7), partial(features.extract_batches, recipe, None, []))
    whole = pa.Table.from_batches([batch for part in known for batch in part]) if texts else None
    standing: dict[int, int] = {}
    if whole is None:
        return standing, {}
    seen: dict[Any, int] = {}
    for row, size, *mark in zip(*(whole[name].to_pylist() for name in ("row", "size", "mark0", "mark1")), strict=True):
        if size > 0:
            standing[row] = seen.setdefault((size, *mark), row)
    members = pa.array([standing.get(row) == row for row in range(len(texts))], pa.bool_())
    sets = cut(whole.filter(members).select(["row", "features"]).combine_chunks(), partitions, 5)
    wanted = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    meeting = packing.labels(3)
    if recipe.search == "lsh":
        entries = partial(prefixes.band_batches, bands_of(recipe), recipe.seed, meeting)
    else:
        total = np.zeros(1 << bits, np.uint8)
        counted = [batch for part in mapped(sets, partial(counts.count_batches, bits)) for batch in part]
        for label, _, data in packing.blobs_of(counted):
            begin, part = label * tables._SLICE, tables._unpressed(data)
            add_counts(total[begin : begin + len(part)], part)
        entries = partial(prefixes.prefix_batches, wanted, bits, Here(total), meeting)  # type: ignore[arg-type]
    plan = candidates.Plan(wanted, block, packing.labels(homes), meeting)
    met = mapped(exchanged(mapped(sets, entries), 3), partial(candidates.meet_batches, plan))
    cells = exchanged(of_kind(met, packing.CELLS), 3)
    met += mapped(cells, partial(candidates.cell_batches, plan))
    listed = of_kind(met, packing.PAIRS)
    for bits in [512] if sketched else []:
        held = mapped(routed(whole, listed), partial(items.sketch_batches, bits))
        passing = partial(verifying.filter_batches, partial(verifying.may_match, recipe), packing.labels(homes))
        listed = of_kind(mapped(exchanged(listed + held, homes), passing), packing.PAIRS)
    held = mapped(routed(whole, listed), items.feature_batches)
    found = mapped(
        exchanged(listed + held, homes), partial(verifying.check_batches, partial(verifying.check_sets, recipe))
    )
    rows = [tuple(row.values()) for part in found for batch in part for row in batch.to_pylist()]
    return standing, {(left, right): (*counted, s) for left, right, *counted, s in rows if left >= 0}


def routed(whole: pa.Table, listed: list[Batches]) -> list[Batches]:
    """The features of all documents that homes need, once for each home."""
    asked = {
        tuple(row.values())
        for part in mapped(listed, verifying.route_batches)
        for batch in part
        for row in batch.to_pylist()
    }
    rows, labels = (
        pa.array([pair[side] for pair in sorted(asked)], kind) for side, kind in enumerate((pa.int64(), pa.int32()))
    )
    chosen = whole.select(["row", "features"]).take(rows).append_column("label", labels)
    return cut(chosen.combine_chunks(), 2, 4)
