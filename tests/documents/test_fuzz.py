"""Random and damaged files: what escapes is one of our errors, and nothing hangs."""

from __future__ import annotations

import os
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from input_files import ROWS, compress, encode_rows

from neardup.documents import open_corpus
from neardup.errors import NeardupError

AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"
NAMES = [
    *("a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.arrow", "a.jsonl.gz", "a.jsonl.zst", "a.csv.gz", "a.parquet.gz"),
    *("a.arrow.zst", "a.txt", "a.txt.gz"),
]


def _run(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.write_bytes(data)
    with (
        suppress(NeardupError),
        open_corpus([path], quarantine=str(folder / "quarantine.jsonl"), allow_torn=True) as corpus,
    ):
        count = sum(len(batch.texts) for batch in corpus.scan())
        assert count <= corpus.raw_rows
        keep = np.zeros(corpus.raw_rows, dtype=bool)
        keep[::2] = True
        corpus.take(np.flatnonzero(keep)[:5])
    with suppress(NeardupError), open_corpus([path], allow_torn=True) as corpus:
        rows = [row for batch in corpus.scan() for row in batch.rows.tolist()]
        keep = np.zeros(corpus.raw_rows, dtype=bool)
        keep[rows] = True
        assert corpus.copy(keep, str(folder / "o.jsonl"), force=True).rows == len(rows)
        corpus.copy(keep, str(folder / "o.parquet"), force=True)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12 if AT_LENGTH else 5, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200), head=st.sampled_from([b"", b"PAR1", b"ARROW1\0\0", b"\x1f\x8b\x08", b"{"]))
def test_random_bytes_end_in_documents_or_one_sentence(name: str, data: bytes, head: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder), name, head + data)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_end_in_documents_or_one_sentence(tmp_path: Path, name: str) -> None:
    suffix = name[1:].removesuffix(".gz").removesuffix(".zst")
    plain = b"some text" * 10 if suffix == ".txt" else encode_rows(ROWS, suffix)
    whole = compress(plain, name[name.rindex(".") :])
    chance = random.Random(name)
    for _ in range(25 if AT_LENGTH else 8):
        data = bytearray(whole)
        if chance.random() < 0.4:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.choice([0, 1, 1, 2, 30])):
            if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.2:
            place = chance.randrange(len(data) + 1)
            data[place:place] = chance.randbytes(chance.randrange(50))
        _run(tmp_path, name, bytes(data))
