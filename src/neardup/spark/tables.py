"""Tables of bytes that every worker fills for its part of the input, made one: slice by slice, then sent to all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.counting import add_counts
from neardup.spark.packing import BLOBS, ENTRIES, blob_batch, blobs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Table = npt.NDArray[np.uint8]
#: The bytes of a slice.
_SLICE = 1 << 20
_CODEC = pa.Codec("zstd", compression_level=1)


def slices_of(table: Table) -> Iterator[pa.RecordBatch]:
    """Yield a worker's table in slices, as blobs whose labels are the slices' numbers."""
    for number, begin in enumerate(range(0, len(table), _SLICE)):
        part = table[begin : begin + _SLICE]
        if part.any():
            yield blob_batch([(number, ENTRIES, _pressed(part))])


def _pressed(part: Table) -> bytes:
    """Return a slice as it travels: most slots are empty, so it needs a fifth of its bytes."""
    pressed: bytes = _CODEC.compress(part.tobytes(), asbytes=True)
    return len(part).to_bytes(4, "little") + pressed


def _unpressed(data: pa.Buffer) -> Table:
    size = int.from_bytes(data.slice(0, 4).to_pybytes(), "little")
    return np.frombuffer(_CODEC.decompress(data.slice(4), decompressed_size=size), np.uint8).copy()


def merged_counts(parts: DataFrame, partitions: int) -> DataFrame:
    """Return the slices of the sum of all workers' tables of counts, as blobs."""
    return parts.repartition(partitions, "label").sortWithinPartitions("label").mapInArrow(add_slices, BLOBS)


def table_of(slices: DataFrame, size: int) -> Table:
    """Return the table that ``merged_counts`` gives in slices: uint8[size]."""
    table = np.zeros(size, np.uint8)
    for row in slices.select("label", "data").collect():
        begin, part = row["label"] * _SLICE, _unpressed(pa.py_buffer(bytes(row["data"])))
        table[begin : begin + len(part)] = part
    return table


def add_slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sum of slices of one number that follow each other; in a worker."""
    number, total = -1, np.empty(0, np.uint8)
    for label, _, data in blobs_of(batches):
        part = _unpressed(data)
        if label == number:
            add_counts(total, part)
            continue
        if number >= 0:
            yield blob_batch([(number, ENTRIES, _pressed(total))])
        number, total = label, part
    if number >= 0:
        yield blob_batch([(number, ENTRIES, _pressed(total))])
