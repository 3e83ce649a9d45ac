"""Items: what documents hold that pairs are looked at by (features, sketches, texts), sent where they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.pairing import sort_rows
from neardup.spark.features import held
from neardup.spark.packing import BLOB_BYTES, ITEMS, blob_batch, pack, unpack

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
#: Sets whose sketches are made in one go.
_AT_A_TIME = 1024
_NO_WEIGHTS = np.empty(0, np.int64)


class Items(NamedTuple):
    """Some documents and what they hold, in the order of their rows.

    Attributes
    ----------
    rows : int64[n]
        Which documents they are, ascending.
    heads : int64[n + 1]
        Where the bytes of each begin; they lie one behind the other.
    data : uint8[m]
        The bytes.
    """

    rows: Integers
    heads: Integers
    data: Bytes

    def places(self, rows: Integers) -> Integers:
        """Return where documents are among these, -1 for those that are not: int64[k]."""
        if not len(self.rows):
            return np.full(len(rows), -1, np.int64)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[at] == rows, at, -1)

    def packed(self) -> bytes:
        """Return the items as a blob: how many, their rows, their lengths, their bytes."""
        return np.int64(len(self.rows)).tobytes() + pack(self.rows, np.diff(self.heads), self.data)


def unpacked(blob: pa.Buffer) -> Items:
    """Return the items of a blob, which they look into."""
    count = int(np.frombuffer(blob, "<i8", 1)[0])
    rows, lengths = unpack(blob.slice(8, 16 * count), ("<i8", "<i8"))
    heads = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Items(rows, heads, np.frombuffer(blob, np.uint8, int(heads[-1]), 8 + 16 * count))


def together(parts: Sequence[Items]) -> Items:
    """Return several parts as one, in the order of their rows."""
    rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(part.heads) for part in parts)])
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    heads = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _reordered(Items(rows, heads, data), np.argsort(rows, kind="stable"))


def _reordered(items: Items, order: Integers) -> Items:
    """Return the same items in another order; the bytes of each move as one piece."""
    if (order[1:] > order[:-1]).all():
        return items
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(items.rows), [None, pa.py_buffer(items.heads), pa.py_buffer(items.data)]
    ).take(pa.array(order))
    _, ends, moved = array.buffers()
    data = np.empty(0, np.uint8) if moved is None else np.frombuffer(moved, np.uint8).copy()
    return Items(items.rows[order], np.frombuffer(ends, np.int64)[: len(order) + 1].copy(), data)


def feature_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of sets, ascending, as blobs for the homes that need them; in a worker."""
    for batch in batches:
        sets, features = held(batch), held(batch).features()
        heads = np.concatenate([[0], np.cumsum(sets.sizes)]).astype(np.int64)
        sort_rows(heads, features, _NO_WEIGHTS)
        yield from _sent(batch, heads * 8, features.view(np.uint8))


def sketch_batches(bits: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield sizes and sketches of sets as blobs for the homes that need them; in a worker.

    Parameters
    ----------
    bits : int
        The bits of a sketch, a power of two: bit h mod ``bits`` is set where an odd number of features h fall there.
    batches : iterator
        row, label, features.
    """
    for whole in batches:
        for begin in range(0, whole.num_rows, _AT_A_TIME):
            batch = whole.slice(begin, _AT_A_TIME)
            sets, count = held(batch), batch.num_rows
            owner = np.repeat(np.arange(count), sets.sizes)
            places = owner * bits + (sets.features() & np.uint64(bits - 1)).astype(np.int64)
            odd = (np.bincount(places, minlength=count * bits) & 1).astype(np.uint8).reshape(count, bits)
            words = np.empty((count, 1 + bits // 64), np.uint64)
            words[:, 0] = sets.sizes
            words[:, 1:] = np.packbits(odd, axis=1).view(np.uint64)
            heads = np.arange(count + 1, dtype=np.int64) * (8 + bits // 8)
            yield from _sent(batch, heads, words.view(np.uint8).ravel())


def text_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the column ``item`` holds as blobs for the homes that need them; in a worker."""
    for batch in batches:
        array = batch.column("item").cast(pa.large_binary())
        _, ends, data = array.buffers()
        heads = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
        whole = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        yield from _sent(batch, heads - heads[:1], whole[heads[0] : heads[-1]])


def _sent(batch: pa.RecordBatch, heads: Integers, data: Bytes) -> Iterator[pa.RecordBatch]:
    """Yield what the documents of a batch hold, for the homes in its column label."""
    label = batch.column("label").to_numpy()
    order = np.argsort(label, kind="stable")
    moved, label = _reordered(Items(batch.column("row").to_numpy(), heads, data), order), label[order]
    # A blob ends with its home, or when it is large.
    cuts = (np.diff(label, prepend=label[:1]) != 0) | (np.diff(moved.heads[:-1] // BLOB_BYTES, prepend=0) != 0)
    bounds = [0, *np.flatnonzero(cuts).tolist(), len(label)]
    for begin, end in pairwise(bounds):
        if end > begin:
            part = slice(int(moved.heads[begin]), int(moved.heads[end]))
            own = Items(moved.rows[begin:end], moved.heads[begin : end + 1], moved.data[part])
            yield blob_batch([(int(label[begin]), ITEMS, own.packed())])
