"""Texts as feature sets in the workers, and what all of them say together: counts, document frequencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from zstandard import ZstdCompressor, ZstdDecompressor

from neardup.documents.records import NO_ID, NO_TEXT, NOT_UTF8, as_bytes, as_strings, lengths_of, not_utf8
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import Extractor
from neardup.features.reading import largest_square_sum
from neardup.features.statistics import Statistics
from neardup.features.store import Block, set_addresses
from neardup.kernels.counts import add_counts, count_features, keyed_digests
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
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

#: Rows from here on are those of a reference: of these, two are not compared.
REFERENCE = 1 << 62
#: What is not a document has this for a row.
NO_ROW = -1
#: In the place of a size: why a document was rejected.
SET_ASIDE = {-1: NO_TEXT, -2: NOT_UTF8, -3: NO_ID}
_NO_TEXT, _NOT_UTF8, _NO_ID = SET_ASIDE
#: What is known of a document besides what its frame brings along; ``size`` is negative for one that was rejected. In
#: rows of ``NO_ROW`` a slice of a table of counts.
COLUMNS = (
    "row bigint, text_mark0 bigint, text_mark1 bigint, text_bytes bigint, size int, mark0 bigint, mark1 bigint, "
    "slice int, data binary"
)
_NAMES = [column.split()[0] for column in COLUMNS.split(", ")]
#: Bytes of text that are looked at in one go: small enough for the processor's cache.
_PIECE = 1 << 21
#: Spark's rows hold no value of 2 GB.
_MOST_FEATURES = (1 << 31) // 8 - 1

#: Says which of some rows are looked at, in a worker.
Choice = Callable[[Integers], Bools]


class Held(NamedTuple):
    """Sets in memory: their addresses are good as long as the features are there.

    Attributes
    ----------
    rows, sizes : int64[n]
        Which documents they are, and how many features each has.
    addresses : uint64[n]
        Where the features of each begin.
    features : uint64[k]
        The sets one behind the other.
    """

    rows: Integers
    sizes: Integers
    addresses: Words
    features: Words


def known_batches(
    recipe: Recipe,
    statistics: Shared[Statistics] | None,
    carried: list[str],
    keys: Words,
    bits: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield what is known of the documents of batches, and at last how often features occur there; in a worker.

    Parameters
    ----------
    recipe : Recipe
        What features are.
    statistics : Shared, optional
        The document frequencies, where the recipe goes by them.
    carried : list of str
        Columns that are told as they are.
    keys : uint64[2]
        Of the marks of sets, drawn for each run.
    bits : int
        The table of counts has 2**bits slots; 0 for none.
    batches : iterator of RecordBatch
        row, text, and what is carried.
    """
    extractor = Extractor(recipe, statistics.value if statistics else None, digests=bool(recipe.second_step))
    table, shift = np.zeros(1 << bits if bits else 0, np.uint8), np.uint64(64 - max(bits, 1))
    schema = None
    for batch in batches:
        for piece in pieces(batch):
            texts, faults = checked_texts(piece)
            block = extractor(texts)
            if bits:
                every = np.arange(len(block.sizes))
                count_features(set_addresses(block.features, block.sizes), block.sizes, every, shift, table)
            yield (known := _known(block, faults, piece, carried, keys))
            schema = known.schema
    if schema is None:
        return
    for number, begin in enumerate(range(0, len(table), _SLICE)):
        part = table[begin : begin + _SLICE]
        if part.any():
            # Most slots are empty or were seen once.
            given = {"row": [NO_ROW], "slice": [number], "data": [_packed(part)]}
            columns = [pa.array(given.get(field.name, [None]), field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _known(block: Block, faults: Integers, batch: pa.RecordBatch, carried: list[str], keys: Words) -> pa.RecordBatch:
    # No step meets the features of two sets again, so that marks decide which are equal: whoever does not know the keys
    # finds none that only seem so.
    found_marks = np.empty((len(block.sizes), 2), np.uint64)
    keyed_digests(block.features, block.sizes, keys, found_marks)
    marks, texts = (np.ascontiguousarray(each.T).view(np.int64) for each in (found_marks, block.text_digests))
    sizes = np.where(faults < 0, faults, block.sizes).astype(np.int32)
    found = [texts[0], texts[1], block.text_bytes, sizes, marks[0], marks[1]]
    none = [pa.nulls(batch.num_rows, kind) for kind in (pa.int32(), pa.binary())]
    columns = [batch.column("row"), *map(pa.array, found), *none, *(batch.column(name) for name in carried)]
    return pa.RecordBatch.from_arrays(columns, [*_NAMES, *carried])


def set_batches(
    recipe: Recipe, statistics: Shared[Statistics] | None, choice: Choice, batches: Iterator[pa.RecordBatch]
) -> Iterator[Held]:
    """Yield the feature sets of the chosen documents of batches (row, text), some thousand at a time; in a worker."""
    extractor = Extractor(recipe, statistics.value if statistics else None)
    for batch in batches:
        for piece in pieces(batch.filter(pa.array(choice(batch.column("row").to_numpy())))):
            block = extractor(checked_texts(piece)[0])
            features = np.ascontiguousarray(block.features)
            rows = piece.column("row").to_numpy()
            yield Held(rows, block.sizes, set_addresses(features, block.sizes), features)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of a few megabytes of text."""
    ends = np.cumsum(lengths_of(as_bytes(batch.column("text"))))
    begin = 0
    while begin < batch.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _PIECE, side="right")), begin + 1)
        yield batch.slice(begin, end - begin)
        begin = end


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


def as_binary(sets: Held) -> pa.BinaryArray:
    """Return the features of each set as the bytes of a value.

    Raises
    ------
    InputError
        If a set is too large for a row.
    """
    longest = int(sets.sizes.max(initial=0))
    if longest > _MOST_FEATURES:
        raise InputError(
            f"the document at row {sets.rows[sets.sizes.argmax()]} has {longest:,} features, and a row of Spark holds "
            f"{_MOST_FEATURES:,} at most; cut it, or leave it out"
        )
    ends = np.concatenate([[0], np.cumsum(sets.sizes * 8)]).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(sets.sizes), [None, pa.py_buffer(ends), pa.py_buffer(sets.features)]
    )


def held(batch: pa.RecordBatch) -> Held:
    """Return the sets of a batch with the columns row and features, as ``as_binary`` makes them."""
    array = batch.column("features")
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    features = np.frombuffer(b"" if data is None else data, "<u8")[ends[0] // 8 : ends[-1] // 8]
    sizes = np.diff(ends) // 8
    return Held(batch.column("row").to_numpy(), sizes, set_addresses(features, sizes), features)


def is_other(rows: Shared[Integers], asked: Integers) -> Bools:
    """Return which rows are those of documents and none of ``rows``, which ascend; in a worker."""
    known = rows.value
    found: Bools = asked >= 0
    if len(known):
        found &= known[np.minimum(np.searchsorted(known, asked), len(known) - 1)] != asked
    return found


Table = npt.NDArray[np.uint8]
#: The bytes of a slice of a table.
_SLICE = 1 << 20
#: The driver's table of counts, and those of the workers, have so many slots at most: 256 MB.
_MOST_COUNT_BITS = 28


def count_bits(recipe: Recipe, text_bytes: int) -> int:
    """Return as bits how many slots a table of counts has: one to two for each feature, so that few share one.

    Words are taken to be of eight bytes, the space behind them included.
    """
    features = text_bytes if recipe.parsed_features.traits.by_character else text_bytes // 8
    return min(max(features.bit_length(), FEWEST_BITS), _MOST_COUNT_BITS)


class Counts:
    """In how many sets the features of each slot occur, as ``neardup.kernels.counts`` understands it.

    Parameters
    ----------
    bits : int
        There are 2**bits slots.
    slices : dict of int to bytes
        What is counted in slices of the table, as they travel; slots of all others are empty.
    """

    def __init__(self, bits: int, slices: dict[int, bytes]) -> None:
        self._bits, self._slices = bits, slices

    @cached_property
    def table(self) -> Table:
        """The table: uint8[2**bits]."""
        table = np.zeros(1 << self._bits, np.uint8)
        for number, data in self._slices.items():
            table[number * _SLICE : (number + 1) * _SLICE] = _unpacked(data)
        return table


def counts_of(slices: DataFrame, bits: int) -> Counts:
    """Return the sum of the tables of all workers.

    Parameters
    ----------
    slices : DataFrame
        slice, data: the tables of all workers.
    bits : int
        Each has 2**bits slots.
    """
    rows = slices.groupBy("slice").applyInArrow(add_slices, "slice int, data binary").collect()
    return Counts(bits, {row["slice"]: bytes(row["data"]) for row in rows})


def add_slices(slices: pa.Table) -> pa.Table:
    """Return the sum of the slices of one number; in a worker."""
    first, *others = (_unpacked(data) for data in slices["data"].to_pylist())
    total = first.copy()
    for other in others:
        add_counts(total, other)
    return pa.table({"slice": slices["slice"].slice(0, 1), "data": [_packed(total)]})


def _packed(part: Table) -> bytes:
    return ZstdCompressor(level=1).compress(part.tobytes())


def _unpacked(data: bytes) -> Table:
    return np.frombuffer(ZstdDecompressor().decompress(data), np.uint8)


#: A feature and its df; where there is no feature, how many documents there are and the heaviest of them.
FREQUENCIES = "feature bigint, df bigint, heaviest bigint"
#: Features that more than one document holds, at most: the driver and each worker hold sixteen bytes for each.
_FEATURES_AT_ONCE = 1 << 27


def statistics_of(stages: Stages, make: Callable[[], DataFrame]) -> Statistics:
    """Return the document frequencies of a recipe's features in documents, before clipping and signatures.

    Parameters
    ----------
    stages : Stages
        Gets the stage "frequencies".
    make : callable
        Gives what ``frequency_batches`` make of all documents, as ``FREQUENCIES``.

    Raises
    ------
    RecipeError
        If the documents share too many features for every worker to know them.
    """
    from pyspark.sql import functions as F

    def sums() -> DataFrame:
        return make().groupBy("feature").agg(F.sum("df").alias("df"), F.max("heaviest").alias("heaviest"))

    summed = stages.run("frequencies", sums)
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
            heaviest = max(heaviest, largest_square_sum(block))
            columns = [pa.array(features.view(np.int64)), pa.array(df), pa.nulls(len(df), pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, ["feature", "df", "heaviest"])
    columns = [pa.nulls(1, pa.int64()), pa.array([documents]), pa.array([heaviest])]
    yield pa.RecordBatch.from_arrays(columns, ["feature", "df", "heaviest"])
