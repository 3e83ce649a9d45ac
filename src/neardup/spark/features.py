"""What all workers need alike: sent to each machine once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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
    """A value that was given to all workers; ``value`` is it, there and here."""

    def __init__(self, spark: SparkSession, value: Value) -> None:
        self._broadcast: Any = spark.sparkContext.broadcast(value)

    @property
    def value(self) -> Value:
        """The value; a worker loads it once."""
        value: Value = self._broadcast.value
        return value

    def forget(self) -> None:
        """Let the workers' memory go, once nothing will ask for the value any more."""
        self._broadcast.destroy()


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


Words = npt.NDArray[np.uint64]

#: In the place of a size: why a document was rejected.
SET_ASIDE = {-1: NO_TEXT, -2: NOT_UTF8, -3: NO_ID}
_NO_TEXT, _NOT_UTF8, _NO_ID = SET_ASIDE
#: What is known of a document besides what its frame brings along; ``size`` is negative for one that was rejected.
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
    extractor = Extractor(recipe, statistics.value if statistics else None, digests=bool(recipe.second_step))
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


def counts_of(stages: Stages, sets: DataFrame, features: int, most_bits: int) -> Table:
    """Return the table of counts of all sets' features, as ``neardup.kernels.counts`` understands it.

    Parameters
    ----------
    stages : Stages
        As many workers as it says fill tables, which are then added up.
    sets : DataFrame
        row, features.
    features : int
        How many features all sets have together: the table has about twice as many slots, so that few share one.
    most_bits : int
        It has 2**most_bits slots (bytes) at most. Raising it tells more features apart in large collections, so that
        fewer travel; each worker, the driver and each machine hold such a table.
    """
    bits = min(max(features.bit_length(), FEWEST_BITS), most_bits)
    narrow = sets.select("row", "features").coalesce(stages.workers)
    merged = stages.run(
        "counts", lambda: merged_counts(narrow.mapInArrow(partial(count_batches, bits), BLOBS), stages.workers)
    )
    return table_of(merged, 1 << bits)


def count_batches(bits: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the slices of the table of a partition's sets; in a worker."""
    table = np.zeros(1 << bits, np.uint8)
    shift = np.uint64(64 - bits)
    for batch in batches:
        sets = held(batch)
        count_features(sets.addresses, sets.sizes, np.arange(len(sets.sizes)), shift, table)
    yield from slices_of(table)


#: A feature and its df.
_COUNTED = ("<u8", "<i8")
#: Features that more than one document holds, at most: the driver and each worker hold sixteen bytes for each.
_FEATURES_AT_ONCE = 1 << 27


def statistics_of(stages: Stages, documents: DataFrame, recipe: Recipe) -> Statistics:
    """Return the document frequencies of a recipe's features in documents, before clipping and signatures.

    Raises
    ------
    RecipeError
        If the documents share too many features for every worker to know them.
    """
    columns = [name for name in ("row", "text", "id") if name in documents.columns]
    place = labels(stages.workers)
    parts = documents.select(*columns).mapInArrow(partial(collect_batches, recipe, place), BLOBS)
    merged = stages.run(
        "collection", lambda: exchange(parts, stages.workers).mapInArrow(partial(merge_batches, place), BLOBS)
    )
    blobs = merged.select("label", "kind", "data").toArrow().to_batches()
    return statistics_from(blobs)


def statistics_from(batches: Iterable[pa.RecordBatch]) -> Statistics:
    """Return the statistics of a collection from the blobs that ``merge_batches`` gave."""
    told, blobs = [], []
    for _, kind, data in blobs_of(batches):
        if kind == TOLD:
            told.append(json.loads(data.to_pybytes()))
        else:
            blobs.append(data)
    shared = sum(part.get("shared", 0) for part in told)
    if shared > _FEATURES_AT_ONCE:
        raise RecipeError(
            f"the recipe goes by the document frequencies of {shared:,} features that documents share, and workers "
            f"hold {_FEATURES_AT_ONCE:,} at most; clip more coarse features, or run it on this machine"
        )
    features, df = joined(blobs, _COUNTED)
    order = np.argsort(features)
    return Statistics(
        documents=sum(part.get("documents", 0) for part in told),
        distinct=sum(part.get("distinct", 0) for part in told),
        heaviest=max((part.get("heaviest", 0) for part in told), default=0),
        features=features[order],
        df=df[order],
    )


def collect_batches(recipe: Recipe, place: np.ndarray, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of a partition's documents with their df, for those who add them up; in a worker."""
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if weighs else None)
    outbox, documents, heaviest = Outbox(place, ENTRIES), 0, 0
    for batch in batches:
        ends = np.cumsum(lengths_of(as_bytes(batch.column("text"))))
        begin = 0
        while begin < batch.num_rows:
            before = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, before + _PIECE, side="right")), begin + 1)
            texts, faults = checked_texts(batch.slice(begin, end - begin))
            block = extractor(texts.filter(pa.array(faults == 0)) if faults.any() else texts)
            features, df = np.unique(block.features, return_counts=True)
            documents += len(block.sizes)
            heaviest = max(heaviest, heaviest_of(block))
            yield from outbox.add(place_of(features, len(place)), [features, df.astype(np.int64)])
            begin = end
    yield from outbox.flush()
    told = {"documents": documents, "heaviest": heaviest}
    yield blob_batch([(int(place[0]), TOLD, json.dumps(told).encode())])


def merge_batches(place: np.ndarray, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of a partition that several documents hold, with their df; in a worker."""
    blobs = []
    for label, kind, data in blobs_of(batches):
        if kind == ENTRIES:
            blobs.append(data)
        else:
            yield blob_batch([(label, kind, data.to_pybytes())])
    features, df = joined(blobs, _COUNTED)
    distinct, where = np.unique(features, return_inverse=True)
    total = np.bincount(where, weights=df, minlength=len(distinct)).astype(np.int64)
    several = total > 1
    for piece in pieces([distinct[several], total[several]]):
        yield blob_batch([(int(place[0]), ENTRIES, pack(*piece))])
    told = {"distinct": len(distinct), "shared": int(several.sum())}
    yield blob_batch([(int(place[0]), TOLD, json.dumps(told).encode())])
