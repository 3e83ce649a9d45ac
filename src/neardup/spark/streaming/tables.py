"""Tables of documents, pairs and verdicts as blobs: what travels between the steps of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.flow.parts import Partners
from neardup.flow.sharing import Arrived, Entered

_WRITTEN = pa.ipc.IpcWriteOptions(compression="zstd")
_PAIRS = pa.schema(
    [
        ("place", pa.int64()),
        ("serial", pa.int64()),
        ("similarity", pa.float64()),
        ("o", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("same", pa.bool_()),
        ("g", pa.float64()),
        ("vector", pa.binary()),
    ]
)
NAMES = pa.schema([("serial", pa.int64()), ("id", pa.large_string())])
#: What comes out of a stream, for Arrow and for Spark.
VERDICTS = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("of", pa.string()),
        ("similarity", pa.float64()),
        ("time", pa.timestamp("us", "UTC")),
        ("flag", pa.string()),
        ("o", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("g", pa.float64()),
        ("evidence", pa.string()),
        ("serial", pa.int64()),
        ("origin", pa.string()),
    ]
)
VERDICT_COLUMNS = (
    "id string, kind string, of string, similarity double, time timestamp, flag string, o bigint, a bigint, b bigint, "
    "g double, evidence string, serial bigint, origin string"
)


def packed(table: pa.Table | pa.RecordBatch) -> bytes:
    """Return a table as a blob."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITTEN) as writer:
        writer.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(blobs: Sequence[bytes]) -> pa.Table:
    """Return the table of some blobs, one behind the other; there is one at least."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs])


def strings(column: pa.ChunkedArray) -> pa.LargeStringArray:
    """Return a column of texts as one array."""
    found = column.cast(pa.large_string()).combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def arrived_of(table: pa.Table) -> Arrived:
    """Return documents as a shard takes them."""
    return Arrived(*(strings(table[name]) for name in ("id", "text", "title")))


def pairs_table(places: Any, partners: Partners) -> pa.Table:
    """Return what documents match; places: which document each partner is one of."""
    o, a, b = partners.counts.T
    wide = partners.vectors.shape[1] > 0
    vectors = [row.tobytes() for row in partners.vectors] if wide else [b""] * len(places)
    columns = [places, partners.serials, partners.similarity, o, a, b, partners.same, partners.g, vectors]
    return pa.table([pa.array(c, field.type) for c, field in zip(columns, _PAIRS, strict=True)], schema=_PAIRS)


def partners_of(table: pa.Table) -> tuple[Any, Partners]:
    """Return places and partners of ``pairs_table``."""
    place, serial, similarity, o, a, b, same, g = (table[name].to_numpy() for name in _PAIRS.names[:-1])
    blobs = table["vector"].to_pylist()
    width = max(map(len, blobs), default=0) // 8
    vectors = np.full((len(place), width), np.nan)
    for i, blob in enumerate(blobs if width else ()):
        if blob:
            vectors[i] = np.frombuffer(blob)
    counts = np.column_stack([o, a, b]).astype(np.int64)
    return place, Partners(serial, similarity, counts, same.astype(np.bool_), g, vectors)


def names_table(names: Mapping[int, str], serials: Any) -> pa.Table:
    """Return the ids of documents that a shard holds."""
    wanted = serials.tolist()
    return pa.table([pa.array(wanted, pa.int64()), pa.array([names[s] for s in wanted], pa.large_string())], NAMES)


def entered_table(entered: Entered) -> pa.Table:
    """Return what entered a shard as a table."""
    columns: dict[str, Any] = dict(zip(Entered._fields[1:], entered[1:], strict=True))
    return pa.table({name: pa.array(column) for name, column in columns.items()} | entered.documents._asdict())


def entered_of(table: pa.Table) -> Entered:
    """Return what entered a shard from ``entered_table``."""
    documents = Arrived(*(strings(table[name]) for name in Arrived._fields))
    serials, times, leaves, parts, reals, again = (table[name].to_numpy() for name in Entered._fields[1:])
    return Entered(documents, serials, times, leaves, parts, reals, again.astype(np.bool_))
