"""Input files and their contents, for the tests of this folder."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.documents import Corpus

ROWS: list[dict[str, Any]] = [
    {"id": number, "title": f"Title {number}", "text": f"Text {number}, naïve “quotes” 日本 😀\nline two"}
    for number in range(50)
]
FORMATS = [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc"]
CODECS = ["", ".gz", ".zst"]


def compress(data: bytes, codec: str) -> bytes:
    if codec == ".gz":
        return gzip.compress(data, mtime=0)
    if codec in (".zst", ".bz2"):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, {".zst": "zstd", ".bz2": "bz2"}[codec]) as stream:
            stream.write(data)
        return bytes(sink.getvalue().to_pybytes())
    return data


def encode_rows(rows: Sequence[dict[str, Any]], suffix: str, group: int = 20) -> bytes:
    if suffix in (".jsonl", ".ndjson", ".json"):
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    if suffix in (".csv", ".tsv"):
        text = io.StringIO()
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)
        return text.getvalue().encode()
    return encode_table(pa.Table.from_pylist(list(rows)), suffix, group)


def encode_table(table: pa.Table, suffix: str, group: int = 20) -> bytes:
    sink = pa.BufferOutputStream()
    if suffix == ".parquet":
        pq.write_table(table, sink, row_group_size=group)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=group)
    return bytes(sink.getvalue().to_pybytes())


def write_input(folder: Path, name: str, rows: Sequence[dict[str, Any]] = ROWS) -> Path:
    codec = next((codec for codec in CODECS[1:] if name.endswith(codec)), "")
    suffix = name[name.index(".") :].removesuffix(codec)
    path = folder / name
    path.write_bytes(compress(encode_rows(rows, suffix), codec))
    return path


def texts_of(corpus: Corpus) -> list[str]:
    return [text for batch in corpus.scan() for text in batch.texts.to_pylist()]


def rows_of(corpus: Corpus) -> list[int]:
    return [row for batch in corpus.scan() for row in batch.rows.tolist()]


def full_mask(corpus: Corpus) -> np.ndarray:
    return np.ones(corpus.raw_rows, dtype=bool)


def read_quarantine(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_damaged_group(path: Path) -> list[str | None]:
    """Write a Parquet file of three groups of 100 rows, the second of which cannot be read; return all texts.

    Row 5 has none.
    """
    texts = [None if n == 5 else "".join(f"{n * k} " for k in range(40)) for n in range(300)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100, compression="zstd", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    data[middle : middle + 200] = bytes(200)
    path.write_bytes(data)
    return texts
