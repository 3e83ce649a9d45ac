"""Arrays as blobs: millions of small entries travel between machines as a few thousand rows of bytes.

A row for each entry would cost Spark some fifty bytes and a microsecond; a blob holds the arrays of thousands of
entries one behind the other, and NumPy looks at them where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

#: label: which partition a blob goes to (``labels``); kind: what it holds.
BLOBS = "label int, kind int, data binary"
#: What blobs hold, in the order in which a worker sees them.
ITEMS, ENTRIES, PAIRS, CELLS, TOLD = range(5)
#: What a worker gathers before it sends blobs on.
FLUSH_BYTES = 32 << 20
#: The largest blob that is made where there is a choice.
BLOB_BYTES = 4 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)


def labels(partitions: int) -> npt.NDArray[np.int32]:
    """Return a label for each of n partitions that Spark's hash partitioning sends there: int32[n].

    Hashing the numbers 0..n - 1 would leave a third of the partitions empty and others with several.
    """
    found = np.full(partitions, -1, np.int64)
    begin, step = 0, 4 * partitions
    while (found < 0).any():
        tried = np.arange(begin, begin + step, dtype=np.int64)
        places, first = np.unique(_hash_of(tried).astype(np.int64) % partitions, return_index=True)
        fresh = found[places] < 0
        found[places[fresh]] = tried[first[fresh]]
        begin += step
    return found.astype(np.int32)


def _hash_of(values: Integers) -> npt.NDArray[np.int32]:
    """Return Murmur3 (x86, 32 bits, seed 42) of whole numbers of 32 bits, as Spark's ``hash`` does."""
    with np.errstate(over="ignore"):
        k = values.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = ((k << np.uint32(15)) | (k >> np.uint32(17))) * np.uint32(0x1B873593)
        h = np.uint32(42) ^ k
        h = ((h << np.uint32(13)) | (h >> np.uint32(19))) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (h ^ (h >> np.uint32(16))).view(np.int32)


def place_of(values: Array, partitions: int) -> Integers:
    """Return one of n partitions for each 64-bit value, spread evenly."""
    with np.errstate(over="ignore"):
        mixed = values.view(np.uint64) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _MIX
    return ((mixed >> np.uint64(33)) % np.uint64(partitions)).astype(np.int64)


def exchange(frame: DataFrame, partitions: int) -> DataFrame:
    """Return blobs, each in the partition of its label, ordered by kind there."""
    return frame.repartition(partitions, "label").sortWithinPartitions("kind")


def pack(*arrays: Array) -> bytes:
    """Return arrays of one length as a blob."""
    return b"".join(np.ascontiguousarray(array).data for array in arrays)


def unpack(data: pa.Buffer, dtypes: Sequence[str]) -> list[Array]:
    """Return the arrays of a blob, which they look into."""
    count = data.size // sum(np.dtype(name).itemsize for name in dtypes)
    found, at = [], 0
    for name in dtypes:
        array = np.frombuffer(data, name, count, at)
        found.append(array)
        at += array.nbytes
    return found


def joined(blobs: Sequence[pa.Buffer], dtypes: Sequence[str]) -> list[Array]:
    """Return the arrays of several blobs, joined."""
    parts = [unpack(blob, dtypes) for blob in blobs]
    return [
        np.concatenate([np.empty(0, name), *(part[i] for part in parts)]).astype(name, copy=False)
        for i, name in enumerate(dtypes)
    ]


def parted(place: Integers, partitions: int, arrays: Sequence[Array]) -> Iterator[tuple[int, list[Array]]]:
    """Yield (place, arrays of the entries that go there) for each place that has any."""
    order = np.argsort(place.astype(np.uint16) if partitions <= 1 << 16 else place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(partitions), side="right").tolist()
    moved = [array[order] for array in arrays]
    begin = 0
    for number, end in enumerate(ends):
        if end > begin:
            yield number, [array[begin:end] for array in moved]
        begin = end


def pieces(arrays: Sequence[Array]) -> Iterator[list[Array]]:
    """Yield arrays of one length in pieces that make blobs of some megabytes."""
    width = sum(array.itemsize * (array.size // max(len(array), 1)) for array in arrays)
    step = max(BLOB_BYTES // max(width, 1), 1)
    for begin in range(0, len(arrays[0]), step):
        yield [array[begin : begin + step] for array in arrays]


def blob_batch(rows: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Return (label, kind, data) as a batch of ``BLOBS``."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([label for label, _, _ in rows], pa.int32()),
            pa.array([kind for _, kind, _ in rows], pa.int32()),
            pa.array([data for _, _, data in rows], pa.binary()),
        ],
        ["label", "kind", "data"],
    )


class Outbox:
    """Gathers entries for partitions, and gives them as blobs when there are enough.

    Parameters
    ----------
    labels : int32[n]
        The label of each partition.
    kind : int
        What the blobs hold.
    """

    def __init__(self, labels: npt.NDArray[np.int32], kind: int) -> None:
        self._labels, self._kind = labels, kind
        self._places: list[Integers] = []
        self._waiting: list[Sequence[Array]] = []
        self._bytes = 0

    def add(self, place: Integers, arrays: Sequence[Array]) -> Iterator[pa.RecordBatch]:
        """Take entries for places; yield blobs if enough are waiting."""
        if len(place):
            self._places.append(place)
            self._waiting.append(arrays)
            self._bytes += sum(array.nbytes for array in arrays)
        if self._bytes >= FLUSH_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield all that is waiting."""
        if not self._places:
            return
        place = np.concatenate(self._places)
        arrays = [np.concatenate(parts) for parts in zip(*self._waiting, strict=True)]
        self._places, self._waiting, self._bytes = [], [], 0
        rows: list[tuple[int, int, bytes]] = []
        size = 0
        for number, own in parted(place, len(self._labels), arrays):
            for piece in pieces(own):
                rows.append((int(self._labels[number]), self._kind, pack(*piece)))
                size += len(rows[-1][2])
                if size >= BLOB_BYTES:
                    yield blob_batch(rows)
                    rows, size = [], 0
        if rows:
            yield blob_batch(rows)


def blobs_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    """Yield (label, kind, data) of each blob; the data stay valid."""
    for batch in batches:
        label, kind = batch.column("label").to_pylist(), batch.column("kind").to_pylist()
        data = batch.column("data")
        for i in range(batch.num_rows):
            yield label[i], kind[i], data[i].as_buffer()
