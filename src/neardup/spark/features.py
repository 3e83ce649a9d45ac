"""Feature sets in the workers, and what all of them count together: feature counts and document frequencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from zstandard import ZstdCompressor, ZstdDecompressor

from neardup.documents.arrays import as_bytes
from neardup.documents.records import Reason, as_strings, invalid_utf8, lengths_of
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import Extractor
from neardup.features.reading import largest_square_sum
from neardup.features.statistics import Statistics
from neardup.features.store import Block, set_addresses
from neardup.kernels.counts import add_counts, count_features, keyed_digests
from neardup.kernels.grams import COUNTED
from neardup.recipe import Recipe
from neardup.search.join import MIN_BITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.stages import Stages

Value = TypeVar("Value")


class Broadcast(Generic[Value]):
    """A value that is sent to all workers once; ``value`` is it, there and on the driver.

    Spark asks stateful operators for their layout in a process that has no broadcasts. So a worker looks the value up
    when it is first needed, not when this object arrives.
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
        return object.__new__, (Broadcast,), {"_find": find, "_found": number}


Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

#: Rows from here on belong to a reference; two of them are never compared.
FIRST_REFERENCE_ROW = 1 << 62
#: The row of what is not a document.
NO_ROW = -1
#: Why a document was rejected, by the negative number that takes the place of its size.
REJECTION_REASONS = {-1: Reason.NO_TEXT, -2: Reason.NOT_UTF8, -3: Reason.NO_ID}
_NO_TEXT, _NOT_UTF8, _NO_ID = REJECTION_REASONS
#: The columns of ``digest_batches``, before the carried ones. Rows of ``NO_ROW`` hold slices of count tables;
#: ``failed`` is why the extraction of a page failed.
DIGEST_COLUMNS = (
    "row bigint, text_digest0 bigint, text_digest1 bigint, text_bytes bigint, size int, digest0 bigint, "
    "digest1 bigint, slice int, data binary, failed string"
)
_DIGEST_NAMES = [column.split()[0] for column in DIGEST_COLUMNS.split(", ")]
#: Bytes of text that are processed at a time: they fit into the processor's cache.
_PIECE_BYTES = 1 << 21
#: A row of Spark holds less than 2 GiB.
_MAX_FEATURES = (1 << 31) // 8 - 1

#: Selects rows in a worker: a mask over their numbers.
RowFilter = Callable[[Integers], Bools]


class SetBatch(NamedTuple):
    """Feature sets in memory; the addresses are valid as long as ``features`` is alive.

    Attributes
    ----------
    rows, sizes : int64[n]
        The rows of the documents, and how many features each has.
    addresses : uint64[n]
        Where the features of each begin in memory.
    features : uint64[k]
        The sets, one after the other.
    """

    rows: Integers
    sizes: Integers
    addresses: Words
    features: Words


def digest_batches(
    recipe: Recipe,
    statistics: Broadcast[Statistics] | None,
    carried: list[str],
    keys: Words,
    table_bits: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield sizes and digests of documents, then the count table of their features; runs in a worker.

    Parameters
    ----------
    carried : list of str
        Columns to pass on unchanged.
    keys : uint64[2]
        Keys of the set digests, drawn anew for each run.
    table_bits : int
        The count table has 2**table_bits slots; 0 for no table.
    batches : iterator of RecordBatch
        row, text and the carried columns.
    """
    extractor = Extractor(recipe, statistics.value if statistics else None, digests=bool(recipe.second_step))
    table = np.zeros(1 << table_bits if table_bits else 0, np.uint8)
    shift = np.uint64(64 - max(table_bits, 1))
    schema = None
    for batch in batches:
        for piece in split_batch(batch):
            texts, faults = checked_texts(piece)
            block = extractor(texts)
            if table_bits:
                members = np.arange(len(block.sizes))
                count_features(set_addresses(block.features, block.sizes), block.sizes, members, shift, table)
            yield (digests := _digests(block, faults, piece, carried, keys))
            schema = digests.schema
    if schema is None:
        return
    for number, begin in enumerate(range(0, len(table), _SLICE)):
        part = table[begin : begin + _SLICE]
        if part.any():
            # Compressed, because most slots are 0 or 1.
            values = {"row": [NO_ROW], "slice": [number], "data": [_compress(part)]}
            columns = [pa.array(values.get(field.name, [None]), field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _digests(block: Block, faults: Integers, batch: pa.RecordBatch, carried: list[str], keys: Words) -> pa.RecordBatch:
    # The digests alone decide which sets are equal. Their keys are secret, so nobody can write texts that collide.
    set_digests = np.empty((len(block.sizes), 2), np.uint64)
    keyed_digests(block.features, block.sizes, keys, set_digests)
    digests, text_digests = (np.ascontiguousarray(a.T).view(np.int64) for a in (set_digests, block.text_digests))
    sizes = np.where(faults < 0, faults, block.sizes).astype(np.int32)
    values = [text_digests[0], text_digests[1], block.text_bytes, sizes, digests[0], digests[1]]
    reasons = pa.array([block.failed.get(at) for at in range(batch.num_rows)], pa.string())
    no_slice = [pa.nulls(batch.num_rows, kind) for kind in (pa.int32(), pa.binary())]
    others = [*no_slice, reasons, *(batch.column(name) for name in carried)]
    columns = [batch.column("row"), *map(pa.array, values), *others]
    return pa.RecordBatch.from_arrays(columns, [*_DIGEST_NAMES, *carried])


def set_batches(
    recipe: Recipe, statistics: Broadcast[Statistics] | None, is_chosen: RowFilter, batches: Iterator[pa.RecordBatch]
) -> Iterator[SetBatch]:
    """Yield the feature sets of the chosen documents of batches (row, text); runs in a worker."""
    extractor = Extractor(recipe, statistics.value if statistics else None)
    for batch in batches:
        for piece in split_batch(batch.filter(pa.array(is_chosen(batch.column("row").to_numpy())))):
            block = extractor(checked_texts(piece)[0])
            features = np.ascontiguousarray(block.features)
            rows = piece.column("row").to_numpy()
            yield SetBatch(rows, block.sizes, set_addresses(features, block.sizes), features)


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in slices of a few megabytes of text."""
    ends = np.cumsum(lengths_of(as_bytes(batch.column("text"))))
    begin = 0
    while begin < batch.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _PIECE_BYTES, side="right")), begin + 1)
        yield batch.slice(begin, end - begin)
        begin = end


def checked_texts(batch: pa.RecordBatch) -> tuple[pa.LargeStringArray, Integers]:
    """Return the texts of a batch, and why each is rejected: int64[n] of ``REJECTION_REASONS``, 0 for good ones.

    The text of a rejected document is empty.
    """
    binary = as_bytes(batch.column("text"))
    faults = np.zeros(batch.num_rows, np.int64)
    if "id" in batch.schema.names and batch.column("id").null_count:
        faults[batch.column("id").is_null().to_numpy(zero_copy_only=False)] = _NO_ID
    faults[invalid_utf8(binary)] = _NOT_UTF8
    if binary.null_count:
        faults[binary.is_null().to_numpy(zero_copy_only=False)] = _NO_TEXT
    if faults.any():
        values = [b"" if fault else value for value, fault in zip(binary.to_pylist(), faults, strict=True)]
        binary = pa.array(values, pa.large_binary())
    return as_strings(binary), faults


def encode_sets(sets: SetBatch) -> pa.BinaryArray:
    """Return each feature set as one binary value, without a copy.

    Raises
    ------
    InputError
        If a set is too large for a row.
    """
    largest = int(sets.sizes.max(initial=0))
    if largest > _MAX_FEATURES:
        raise InputError(
            f"the document at row {sets.rows[sets.sizes.argmax()]} has {largest:,} features, and a row of Spark holds "
            f"at most {_MAX_FEATURES:,}; split the document, or leave it out"
        )
    offsets = np.concatenate([[0], np.cumsum(sets.sizes * 8)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(sets.features)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(sets.sizes), buffers)


def decode_sets(batch: pa.RecordBatch) -> SetBatch:
    """Return the sets of a batch with the columns row and features, the latter from ``encode_sets``."""
    array = batch.column("features")
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    features = np.frombuffer(b"" if data is None else data, "<u8")[ends[0] // 8 : ends[-1] // 8]
    sizes = np.diff(ends) // 8
    return SetBatch(batch.column("row").to_numpy(), sizes, set_addresses(features, sizes), features)


def is_included(excluded: Broadcast[Integers], rows: Integers) -> Bools:
    """Return which rows are documents and not in ``excluded``, which is ascending; runs in a worker."""
    included: Bools = (rows >= 0) & ~sorted_contains(excluded.value, rows)
    return included


def sorted_contains(values: Integers, candidates: Integers) -> Bools:
    """Return which candidates are among ascending values; no table is built, as ``np.isin`` would."""
    if not len(values):
        return np.zeros(len(candidates), np.bool_)
    found: Bools = values[np.minimum(np.searchsorted(values, candidates), len(values) - 1)] == candidates
    return found


#: Slots in a slice of a count table.
_SLICE = 1 << 20
#: A count table, on the driver and in each worker, has at most 2**28 slots: 256 MB.
_MAX_TABLE_BITS = 28


def count_table_bits(recipe: Recipe, text_bytes: int) -> int:
    """Return the number of bits b of a count table with 2**b slots: one or two slots per feature, so few share one.

    A word is assumed to take eight bytes, the space after it included.
    """
    features = text_bytes if recipe.parsed_features.traits.by_character else text_bytes // 8
    return min(max(features.bit_length(), MIN_BITS), _MAX_TABLE_BITS)


class FeatureCounts:
    """The number of sets that contain the features of each of 2**bits slots, as in ``neardup.kernels.counts``.

    The table comes in compressed slices, by number; those that are missing are all 0.
    """

    def __init__(self, bits: int, slices: dict[int, bytes]) -> None:
        self._bits, self._slices = bits, slices

    @classmethod
    def of(cls, slices: DataFrame, bits: int) -> FeatureCounts:
        """Return the sum of all workers' tables, given as rows of slice and data."""
        rows = slices.groupBy("slice").applyInArrow(add_slices, "slice int, data binary").collect()
        return cls(bits, {row["slice"]: bytes(row["data"]) for row in rows})

    @cached_property
    def table(self) -> npt.NDArray[np.uint8]:
        """The table: uint8[2**bits]."""
        table = np.zeros(1 << self._bits, np.uint8)
        for number, data in self._slices.items():
            table[number * _SLICE : (number + 1) * _SLICE] = _decompress(data)
        return table


def add_slices(slices: pa.Table) -> pa.Table:
    """Return the sum of slices with the same number; runs in a worker."""
    tables = [_decompress(data) for data in slices["data"].to_pylist()]
    total = tables[0].copy()
    for table in tables[1:]:
        add_counts(total, table)
    return pa.table({"slice": slices["slice"].slice(0, 1), "data": [_compress(total)]})


def _compress(table: npt.NDArray[np.uint8]) -> bytes:
    return ZstdCompressor(level=1).compress(table.tobytes())


def _decompress(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(ZstdDecompressor().decompress(data), np.uint8)


#: A feature and its df; in a row without a feature, the number of documents and the largest square sum.
FREQUENCY_COLUMNS = "feature bigint, df bigint, largest bigint"
#: The driver and each worker hold sixteen bytes for each feature that several documents contain.
_MAX_SHARED_FEATURES = 1 << 27


def gather_statistics(stages: Stages, count: Callable[[], DataFrame]) -> Statistics:
    """Return the document frequencies of a recipe's features, before clipping and signatures.

    ``count`` returns the ``frequency_batches`` of all documents; their sums become the stage "frequencies".

    Raises
    ------
    RecipeError
        If the documents share more features than a worker can hold.
    """
    from pyspark.sql import functions as F

    def total() -> DataFrame:
        return count().groupBy("feature").agg(F.sum("df").alias("df"), F.max("largest").alias("largest"))

    frequencies = stages.run("frequencies", total)
    distinct, shared = frequencies.agg(F.count("feature"), F.count_if(F.expr("feature is not null and df > 1"))).first()
    if shared > _MAX_SHARED_FEATURES:
        raise RecipeError(
            f"the recipe needs the document frequencies of {shared:,} features that documents share, and a worker "
            f"holds at most {_MAX_SHARED_FEATURES:,}; choose coarser features, or run it on this machine"
        )
    totals = frequencies.where("feature is null").first()
    table = frequencies.where("feature is not null and df > 1").select("feature", "df").toArrow()
    features, df = table["feature"].to_numpy().view(np.uint64), table["df"].to_numpy()
    order = np.argsort(features)
    documents, largest = (0, 0) if totals is None else (totals["df"], totals["largest"])
    return Statistics(documents, distinct, largest, features[order], df[order])


def frequency_batches(recipe: Recipe, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of a partition's documents with their df; runs in a worker."""
    is_weighted = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if is_weighted else None)
    documents, largest = 0, 0
    names = ["feature", "df", "largest"]
    for batch in batches:
        for piece in split_batch(batch):
            texts, faults = checked_texts(piece)
            block = extractor(texts.filter(pa.array(faults == 0)) if faults.any() else texts)
            features, df = np.unique(block.features, return_counts=True)
            documents += len(block.sizes)
            largest = max(largest, largest_square_sum(block))
            columns = [pa.array(features.view(np.int64)), pa.array(df), pa.nulls(len(df), pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, names)
    yield pa.RecordBatch.from_arrays([pa.nulls(1, pa.int64()), pa.array([documents]), pa.array([largest])], names)
