"""Documents to their features, batch by batch in the workers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.parts import NO_ID, NO_TEXT, NOT_UTF8
from neardup.documents.values import as_bytes, as_strings, lengths_of, not_utf8
from neardup.errors import InputError
from neardup.features.digests import set_digests
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.spark.sharing import Shared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: In the place of a size: why a document was set aside.
SET_ASIDE = {-1: NO_TEXT, -2: NOT_UTF8, -3: NO_ID}
_NO_TEXT, _NOT_UTF8, _NO_ID = SET_ASIDE
#: What is known of a document besides what its frame brings along; ``size`` is negative for one that was set aside.
COLUMNS = (
    "row bigint, text_mark0 bigint, text_mark1 bigint, text_bytes bigint, size int, mark0 bigint, mark1 bigint, "
    "features binary"
)
#: What equal texts have in common.
TEXT = ("text_mark0", "text_mark1", "text_bytes")
#: Bytes of text that are looked at in one go: small enough for the processor's cache.
_PIECE = 1 << 21
#: Spark's rows hold no value of 2 GB.
_MOST_FEATURES = (1 << 31) // 8 - 1


def features_of(
    documents: DataFrame, recipe: Recipe, statistics: Shared[Statistics] | None, carried: list[str]
) -> DataFrame:
    """Return the features of documents.

    Parameters
    ----------
    documents : DataFrame
        row, text, and the carried columns.
    recipe : Recipe
        Its steps up to ``signature``.
    statistics : Shared, optional
        Of the collection.
    carried : list of str
        Columns that are brought along; ``id`` must not be null.
    """
    kinds = dict(documents.dtypes)
    schema = ", ".join([COLUMNS, *(f"{name} {kinds[name]}" for name in carried)])
    worker = partial(extract_batches, recipe, statistics, carried)
    return documents.select(*dict.fromkeys(["row", "text", *carried])).mapInArrow(worker, schema)


def extract_batches(
    recipe: Recipe, statistics: Shared[Statistics] | None, carried: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the features of batches of documents; in a worker."""
    extractor = Extractor(recipe, statistics.value if statistics else None, digests=bool(recipe.then))
    for batch in batches:
        ends = np.cumsum(lengths_of(as_bytes(batch.column("text"))))
        begin = 0
        while begin < batch.num_rows:
            before = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, before + _PIECE, side="right")), begin + 1)
            yield _extracted(extractor, batch.slice(begin, end - begin), carried)
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
    """Return the texts of a batch, those of documents that are set aside empty, and why they are: int64[n], or 0."""
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
