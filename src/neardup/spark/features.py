"""Texts as feature sets in the workers, and what all of them say together: counts, document frequencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.records import NO_ID, NO_TEXT, NOT_UTF8, as_bytes, as_strings, lengths_of, not_utf8
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import Extractor, set_digests
from neardup.features.reading import heaviest_of
from neardup.features.statistics import Statistics
from neardup.kernels.counts import add_counts, count_features
from neardup.kernels.grams import COUNTED
from neardup.recipe import Recipe
from neardup.search.join import FEWEST_BITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.stages import Stages

Value = TypeVar("Value")


class Shared(Generic[Value]):
    """A value that was given to all workers; ``value`` is it, there and here.

    Spark asks operators with state for their layout in a process that is given no broadcasts, so that a worker looks
    for the value when it is needed, and not when this arrives.

    Parameters
    ----------
    spark : SparkSession
        Whose workers.
    value : object
        What they are given.
    """

    def __init__(self, spark: SparkSession, value: Value) -> None:
        self._find: Callable[..., Any] | None = None
        self._found: Any = spark.sparkContext.broadcast(value)

    @property
    def value(self) -> Value:
        """The value; a process loads it once."""
        find = self._find
        if find is not None:
            self._find, self._found = None, find(*self._found)
        value: Value = self._found.value
        return value

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        find, number = (self._find, self._found) if self._find is not None else self._found.__reduce__()
        return object.__new__, (Shared,), {"_find": find, "_found": number}


Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: In the place of a size: why a document was rejected.
SET_ASIDE = {-1: NO_TEXT, -2: NOT_UTF8, -3: NO_ID}
_NO_TEXT, _NOT_UTF8, _NO_ID = SET_ASIDE
#: What is known of a document besides what its frame brings along; ``size`` is negative for one that was rejected.
COLUMNS = (
    "row bigint, text_mark0 bigint, text_mark1 bigint, text_bytes bigint, size int, mark0 bigint, mark1 bigint, "
    "features binary"
)
#: Bytes of text that are looked at in one go: small enough for the processor's cache.
_PIECE = 1 << 21
#: Spark's rows hold no value of 2 GB.
_MOST_FEATURES = (1 << 31) // 8 - 1


def extract_batches(
    recipe: Recipe, statistics: Shared[Statistics] | None, carried: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the features of batches of documents; in a worker."""
    extractor = Extractor(recipe, statistics.value if statistics else None, digests=bool(recipe.second_step))
    for batch in batches:
        for piece in pieces(batch):
            yield _extracted(extractor, piece, carried)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of a few megabytes of text."""
    ends = np.cumsum(lengths_of(as_bytes(batch.column("text"))))
    begin = 0
    while begin < batch.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _PIECE, side="right")), begin + 1)
        yield batch.slice(begin, end - begin)
        begin = end


def _extracted(extractor: Extractor, batch: pa.RecordBatch, carried: list[str]) -> pa.RecordBatch:
    texts, faults = checked_texts(batch)
    block = extractor(texts)
    longest = int(block.sizes.max(initial=0))
    if longest > _MOST_FEATURES:
        raise InputError(
            f"the document at row {batch.column('row')[int(block.sizes.argmax())]} has {longest:,} features, and a row "
            f"of Spark holds {_MOST_FEATURES:,} at most; cut it, or leave it out"
        )
    ends = np.concatenate([[0], np.cumsum(block.sizes * 8)]).astype(np.int32)
    features = pa.BinaryArray.from_buffers(
        pa.binary(), batch.num_rows, [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(block.features))]
    )
    # No step meets the features of two sets again, so that digests decide which sets are equal.
    marks, texts = (
        np.ascontiguousarray(each.T).view(np.int64)
        for each in (set_digests(block.features, block.sizes), block.text_marks)
    )
    sizes = np.where(faults < 0, faults, block.sizes).astype(np.int32)
    found = [batch.column("row"), texts[0], texts[1], block.text_bytes, sizes, marks[0], marks[1]]
    columns = [pa.array(column) if isinstance(column, np.ndarray) else column for column in found]
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    return pa.RecordBatch.from_arrays(
        [*columns, features, *(batch.column(name) for name in carried)], [*names, *carried]
    )


def checked_texts(batch: pa.RecordBatch) -> tuple[pa.LargeStringArray, Integers]:
    """Return the texts of a batch, those of documents that are rejected empty, and why they are: int64[n], or 0."""
    binary = as_bytes(batch.column("text"))
    faults = np.zeros(batch.num_rows, np.int64)
    if "id" in batch.schema.names and batch.column("id").null_count:
        faults[batch.column("id").is_null().to_numpy(zero_copy_only=False)] = _NO_ID
    bad = not_utf8(binary)
    faults[bad] = _NOT_UTF8
    if binary.null_count:
        faults[binary.is_null().to_numpy(zero_copy_only=False)] = _NO_TEXT
    if faults.any():
        values = binary.to_pylist()
        binary = pa.array(
            [b"" if fault else value for value, fault in zip(values, faults, strict=True)], pa.large_binary()
        )
    return as_strings(binary), faults


class Held(NamedTuple):
    """The sets of a batch: their addresses and sizes are good as long as the batch is.

    Attributes
    ----------
    rows, sizes : int64[n]
        Which documents they are, and how many features each has.
    addresses : uint64[n]
        Where the features of each begin.
    data : pyarrow.Buffer or None
        What holds them, one set behind the other.
    """

    rows: Integers
    sizes: Integers
    addresses: Words
    data: pa.Buffer | None

    def features(self) -> Words:
        """Return a copy of the features of all sets."""
        if self.data is None or not len(self.sizes):
            return np.empty(0, np.uint64)
        begin = int(self.addresses[0]) - self.data.address
        return np.frombuffer(self.data, "<u8", int(self.sizes.sum()), begin).copy()


def held(batch: pa.RecordBatch, column: str = "features") -> Held:
    """Return the sets of a batch with the columns row and features."""
    array = batch.column(column)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    address = data.address if data is not None else 0
    rows: Any = batch.column("row").to_numpy()
    return Held(rows, np.diff(ends) // 8, np.uint64(address) + ends[:-1].astype(np.uint64), data)


Table = npt.NDArray[np.uint8]
#: The bytes of a slice.
_SLICE = 1 << 20
_SLICES = "slice int, data binary"
#: The driver's table of counts, and those of the workers, have so many slots at most: 128 MB.
MOST_COUNT_BITS = 27


class SetsAlone:
    """Sets as they come in batches, without those that are equal to an earlier one; in a worker.

    Parameters
    ----------
    copies : Shared
        The rows of those, ascending: int64[k].
    """

    def __init__(self, copies: Shared[Integers]) -> None:
        self._copies = copies

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Held]:
        """Yield the sets of batches of row and features, some thousand at a time."""
        copies = self._copies.value
        for batch in batches:
            rows = batch.column("row").to_numpy()
            if len(copies):
                at = np.minimum(np.searchsorted(copies, rows), len(copies) - 1)
                batch = batch.filter(pa.array(copies[at] != rows))
            for begin in range(0, batch.num_rows, _SETS_AT_A_TIME):
                yield held(batch.slice(begin, _SETS_AT_A_TIME))


#: Sets that kernels are given in one go.
_SETS_AT_A_TIME = 4096


def counts_of(sets: DataFrame, alone: SetsAlone, features: int, tables: int) -> Table:
    """Return in how many sets the features of each slot occur, as ``neardup.kernels.counts`` understands it.

    Parameters
    ----------
    sets : DataFrame
        row, features.
    alone : SetsAlone
        It says which of them count.
    features : int
        How many features all sets have together: the table has about twice as many slots, so that few share one.
    tables : int
        So many workers fill tables, which are then added up.
    """
    bits = min(max(features.bit_length(), FEWEST_BITS), MOST_COUNT_BITS)
    parts = sets.coalesce(tables).mapInArrow(partial(count_batches, bits, alone), _SLICES)
    table = np.zeros(1 << bits, np.uint8)
    for row in parts.groupBy("slice").applyInArrow(add_slices, _SLICES).collect():
        begin, part = row["slice"] * _SLICE, np.frombuffer(row["data"], np.uint8)
        table[begin : begin + len(part)] = part
    return table


def count_batches(bits: int, alone: SetsAlone, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the table of a partition's sets in slices; in a worker."""
    table, shift = np.zeros(1 << bits, np.uint8), np.uint64(64 - bits)
    for sets in alone(batches):
        count_features(sets.addresses, sets.sizes, np.arange(len(sets.sizes)), shift, table)
    for number, begin in enumerate(range(0, len(table), _SLICE)):
        part = table[begin : begin + _SLICE]
        if part.any():
            yield pa.RecordBatch.from_pydict({"slice": pa.array([number], pa.int32()), "data": [part.tobytes()]})


def add_slices(slices: pa.Table) -> pa.Table:
    """Return the sum of the slices of one number; in a worker."""
    first, *others = (np.frombuffer(data, np.uint8) for data in slices["data"].to_pylist())
    total = first.copy()
    for other in others:
        add_counts(total, other)
    return pa.table({"slice": slices["slice"].slice(0, 1), "data": [total.tobytes()]})


#: A feature and its df; where there is no feature, how many documents there are and the heaviest of them.
_FREQUENCIES = "feature bigint, df bigint, heaviest bigint"
#: Features that more than one document holds, at most: the driver and each worker hold sixteen bytes for each.
_FEATURES_AT_ONCE = 1 << 27


def statistics_of(stages: Stages, documents: DataFrame, recipe: Recipe) -> Statistics:
    """Return the document frequencies of a recipe's features in documents, before clipping and signatures.

    Raises
    ------
    RecipeError
        If the documents share too many features for every worker to know them.
    """
    from pyspark.sql import functions as F

    columns = [name for name in ("row", "text", "id") if name in documents.columns]
    parts = documents.select(*columns).mapInArrow(partial(frequency_batches, recipe), _FREQUENCIES)
    sums = parts.groupBy("feature").agg(F.sum("df").alias("df"), F.max("heaviest").alias("heaviest"))
    summed = stages.run("frequencies", lambda: sums)
    distinct, shared = summed.agg(F.count("feature"), F.count_if(F.expr("feature is not null and df > 1"))).first()
    if shared > _FEATURES_AT_ONCE:
        raise RecipeError(
            f"the recipe goes by the document frequencies of {shared:,} features that documents share, and workers "
            f"hold {_FEATURES_AT_ONCE:,} at most; clip more coarse features, or run it on this machine"
        )
    told = summed.where("feature is null").first()
    found = summed.where("feature is not null and df > 1").select("feature", "df").toArrow()
    features, df = found["feature"].to_numpy().view(np.uint64), found["df"].to_numpy()
    order = np.argsort(features)
    documents_, heaviest = (0, 0) if told is None else (told["df"], told["heaviest"])
    return Statistics(documents_, distinct, heaviest, features[order], df[order])


def frequency_batches(recipe: Recipe, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of a partition's documents with their df; in a worker."""
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if weighs else None)
    documents, heaviest = 0, 0
    for batch in batches:
        for piece in pieces(batch):
            texts, faults = checked_texts(piece)
            block = extractor(texts.filter(pa.array(faults == 0)) if faults.any() else texts)
            features, df = np.unique(block.features, return_counts=True)
            documents += len(block.sizes)
            heaviest = max(heaviest, heaviest_of(block))
            columns = [pa.array(features.view(np.int64)), pa.array(df), pa.nulls(len(df), pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, ["feature", "df", "heaviest"])
    columns = [pa.nulls(1, pa.int64()), pa.array([documents]), pa.array([heaviest])]
    yield pa.RecordBatch.from_arrays(columns, ["feature", "df", "heaviest"])
