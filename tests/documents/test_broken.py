"""Random records with random damage: all good ones are read, and all broken ones rejected, in order."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import os
import random
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from input_files import (
    CODECS,
    ROWS,
    compress,
    encode_rows,
    encode_table,
    read_quarantine,
    rows_of,
    texts_of,
    write_damaged_group,
    write_input,
)
from sentences import says

from neardup import errors
from neardup.documents import join_ids, open_corpus
from neardup.documents import streams as streams_module
from neardup.documents.inputs import discover
from neardup.documents.jsonlines import JsonLines, json_source
from neardup.documents.records import ReadOptions, Reason, split_chunk
from neardup.documents.rejected import TornFile

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
KEY = st.integers(-(1 << 63), (1 << 63) - 1)
GOOD_LINES = st.builds(
    lambda text, key, ascii_only: (
        text,
        json.dumps({"id": key, "text": text, "x": None}, ensure_ascii=ascii_only).encode(),
    ),
    TEXT,
    KEY,
    st.booleans(),
)
BAD_LINES = st.sampled_from(
    [
        (Reason.NOT_JSON, b"nonsense"),
        (Reason.NOT_JSON, b'{"id": 1, "text": "a"'),
        (Reason.NOT_JSON, b'{"id": 1, "text": "a"} {"id": 2, "text": "b"}'),
        (Reason.NOT_JSON, b'{"id": 1, "text": "a\tb"}'),
        (Reason.NOT_AN_OBJECT, b"[1, 2]"),
        (Reason.NOT_AN_OBJECT, b'"text"'),
        (Reason.NO_TEXT, b'{"id": 1}'),
        (Reason.NO_TEXT, b'{"id": 1, "text": null}'),
        *((Reason.NOT_A_STRING, b'{"id": 1, "text": %s}' % number) for number in (b"17", b"1.5", b"-1e999", b"NaN")),
        (Reason.NOT_A_STRING, b'{"id": 1, "text": ["a"]}'),
        (Reason.NOT_UTF8, b'{"id": 1, "text": "\xff\x81"}'),
        (Reason.NOT_UTF8, b'{"id": 1, "text": "\\ud800"}'),
        (Reason.NO_ID, b'{"text": "a"}'),
        (Reason.NO_ID, b'{"text": "a", "id": null}'),
        (Reason.BAD_ID, b'{"text": "a", "id": [1]}'),
    ]
)
MANY = settings(suppress_health_check=list(HealthCheck), max_examples=20)


def check_reading(path: Path, data: bytes, block: int, good: list[str], bad: list[tuple[str, bytes]]) -> None:
    quarantine, codec = path.parent / "quarantine.jsonl", path.suffix if path.suffix in CODECS else ""
    path.write_bytes(compress(data, codec))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams_module, "BLOCK", block)
        options: dict[str, Any] = {"text_column": "text", "id_column": "id", "allow_torn": True}
        with open_corpus([path], quarantine=str(quarantine), **options) as corpus:
            assert texts_of(corpus) == good
            assert corpus.raw_rows == len(good) + len(bad)
            assert corpus.rejected.total == len(bad)
    entries = read_quarantine(quarantine)
    assert [entry["reason"] for entry in entries] == [reason for reason, _ in bad]
    for entry, (_, record) in zip(entries, bad, strict=True):
        raw = base64.b64decode(entry["record_base64"]) if "record_base64" in entry else None
        stored = entry["record"].encode() if raw is None else raw
        assert stored.rstrip(b"\r\n") == record.rstrip(b"\r\n")
        if b"\n" not in record:
            assert data.split(b"\n")[entry["line"] - 1].rstrip(b"\r") == record


@pytest.mark.parametrize("codec", CODECS)
@MANY
@given(lines=st.lists(st.one_of(GOOD_LINES, BAD_LINES.map(lambda bad: (None, bad)))), block=st.integers(1, 300))
def test_good_json_lines_are_read_and_broken_ones_rejected(
    tmp_path: Path, codec: str, lines: list[tuple[Any, Any]], block: int
) -> None:
    start = ("first", b'{"id": 0, "text": "first"}')
    lines = [start, *lines]
    data = b"".join((line if text is not None else line[1]) + b"\n" for text, line in lines)
    good = [text for text, _ in lines if text is not None]
    bad = [line for text, line in lines if text is None]
    check_reading(tmp_path / f"a.jsonl{codec}", data, block, good, bad)


def csv_line(*fields: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue().encode()


CSV_TEXT = st.text(st.sampled_from('ab,"\n;é '), max_size=12)
GOOD_ROWS = CSV_TEXT.map(lambda text: (text, csv_line("7", text, "x")))
BAD_ROWS = st.sampled_from(
    [
        (Reason.WRONG_FIELDS, b"1,a\n"),
        (Reason.OPEN_QUOTE, b'1,"a"b,x\n'),
        (Reason.OPEN_QUOTE, b'1,""a,x\n'),
        (Reason.NOT_UTF8, b"1,\xff\x81,b\n"),
        (Reason.NO_ID, b",a,b\n"),
    ]
)
ODD_ROWS = st.sampled_from(
    [
        ('5" disk', b'1,5" disk,x\n'),
        (' "a"', b'1, "a",x\n'),
        ("a\rb", b"1,a\rb,x\n"),
        ("crlf", b"1,crlf,x\r\n"),
    ]
)


@pytest.mark.parametrize("codec", CODECS)
@MANY
@given(rows=st.lists(st.one_of(GOOD_ROWS, ODD_ROWS, BAD_ROWS.map(lambda bad: (None, bad)))), block=st.integers(1, 200))
def test_good_rows_of_delimited_text_are_read_and_broken_ones_rejected(
    tmp_path: Path, codec: str, rows: list[tuple[Any, Any]], block: int
) -> None:
    # Without a single good row the input is refused.
    rows = [*rows, ("last", b"1,last,x\n")]
    data = b"\n" * (block % 2) + b"id,text,more\n" + b"".join(row if text is not None else row[1] for text, row in rows)
    good = [text for text, _ in rows if text is not None]
    bad = [row for text, row in rows if text is None]
    check_reading(tmp_path / f"a.csv{codec}", data, block, good, bad)


COLUMN_ROWS = st.lists(
    st.one_of(
        st.tuples(TEXT.map(str.encode), st.integers(0, 99), st.none()),
        st.tuples(st.none(), st.integers(0, 99), st.just(Reason.NO_TEXT)),
        st.tuples(st.just(b"a\xff"), st.integers(0, 99), st.just(Reason.NOT_UTF8)),
        st.tuples(st.just(b"a"), st.none(), st.just(Reason.NO_ID)),
        st.tuples(st.just(b"x" * 1000), st.just(1), st.just(Reason.TOO_LONG)),
    )
)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@MANY
@given(rows=COLUMN_ROWS, kind=st.sampled_from([pa.string(), pa.large_string(), pa.binary()]))
def test_good_rows_of_columns_are_read_and_broken_ones_rejected(
    tmp_path: Path, suffix: str, rows: list[Any], kind: pa.DataType
) -> None:
    # Without a single good row the input is refused.
    rows = [*rows, (b"last", 1, None)]
    # Strings may hold bytes that are no UTF-8, as in files.
    texts = pa.array([text for text, _, _ in rows], pa.binary()).cast(kind, safe=False)
    ids = pa.array([key for _, key, _ in rows], pa.int32())
    path, quarantine = tmp_path / "a.data", tmp_path / "quarantine.jsonl"
    path.write_bytes(encode_table(pa.table({"id": ids, "text": texts, "row": range(len(rows))}), suffix, 7))
    with open_corpus([path], text_column="text", quarantine=str(quarantine), max_document=999) as corpus:
        assert texts_of(corpus) == [text.decode() for text, _, fault in rows if fault is None]
        assert corpus.raw_rows == len(rows)
    entries = read_quarantine(quarantine)
    bad = [(row, fault) for row, (_, _, fault) in enumerate(rows) if fault is not None]
    assert [(entry["row"], entry["reason"]) for entry in entries] == bad
    assert [json.loads(entry["record"])["row"] for entry in entries] == [row for row, _ in bad]


ODD_LINES = [
    b'{"text": "a", "id": 1, "id": 2}',
    b'{"text": "a", "id": 1, "x": NaN, "y": -Infinity, "z": Infinity}',
    b'{"text": "a", "id": 1, "x": 1e999}',
    b'{"text": "a", "id": 1, "x": ' + b"1" * 5000 + b"}",
    b'{"text": "a", "id": 99999999999999999999}',
    b'{"text": "a", "id": 1.50}',
    b'{"text": "a", "id": true}',
    b'{"text": "a", "id": "x"}',
    b'{"text": "a", "id": 1, "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"text": "a", "id": "x", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"text": "a", "id": 1, "x": "\\ud800"}',
    b'{"text": "\\ud83d\\ude00", "id": 1}',
    b'{"text": "2020-01-01T00:00:00Z", "id": 1}',
    b'{"text": "a\\u0000b", "id": 1}',
    b'{"text": "a", "id": 1, "\xff": 1}',
    b'{"t\\u0065xt": "a", "id": 1}',
    b'{"text": "a", "id": 1}{"text": "b", "id": 1}',
    b'{"text":',
    b' {"text": "a", "id": 1}',
    b'{"text": "a", "id": 1}\x0b',
    b'{"text": "a", "id": 1}\x00',
    b"",
    b"  \t ",
    b'{"text": "a", "id": 1,}',
    b'{"text": "a", "id": 1} // note}',
    b'{"text": "a", "id": 1}\r',
    b'{"text": "a",\r "id": 1}',
]


def read_json(path: Path) -> list[Any]:
    source = json_source(discover([str(path)], [], "")[0], None)
    options = ReadOptions("text", "id")
    read: list[Any] = []
    for part in source.chunks(options):
        batch, faults = split_chunk(part, options, 0)
        keys = [str(key) for key in batch.ids.to_pylist()]
        read.append(sorted(zip(batch.rows.tolist(), batch.texts.to_pylist(), keys, strict=True)))
        read.append([(fault.row, fault.reason, fault.line, fault.record) for fault in faults])
    return read


@MANY
@given(lines=st.lists(st.one_of(st.sampled_from(ODD_LINES), GOOD_LINES.map(lambda good: good[1])), max_size=4))
def test_block_and_record_parsers_of_json_agree(tmp_path: Path, lines: list[bytes]) -> None:
    check_parsers(tmp_path / "a.jsonl", b"\n".join(lines))


def test_block_and_record_parsers_of_json_agree_on_each_line(tmp_path: Path) -> None:
    for line in ODD_LINES:
        check_parsers(tmp_path / "a.jsonl", line + b"\n")


def check_parsers(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    fast = read_json(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonLines, "parse_block", lambda *_: None)
        assert fast == read_json(path), data


@pytest.mark.parametrize("broken", ["", "nonsense\n"])
def test_order_values_stay_numbers_and_mixed_ids_become_strings(tmp_path: Path, broken: str) -> None:
    path, ids, scores = tmp_path / "a.jsonl", ["1", '"x"', "2.50"], ["10.5", "9", "1e2"]
    lines = [f'{{"text": "a", "id": {key}, "score": {score}}}\n' for key, score in zip(ids, scores, strict=True)]
    path.write_text("".join(lines) + broken)
    with open_corpus([path], order_column="score") as corpus:
        batches = list(corpus.scan())
    assert [value for batch in batches for value in batch.order.to_pylist()] == [10.5, 9.0, 100.0]
    assert join_ids([batch.ids for batch in batches]).to_pylist() == ["1", "x", "2.50"]


def test_strict_raises_at_the_first_broken_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"text": "a"}\n{"text": 1}\nnonsense\n')
    quarantine = tmp_path / "quarantine.jsonl"
    with (
        pytest.raises(errors.BrokenRecord) as caught,
        open_corpus([path], strict=True, quarantine=str(quarantine)) as corpus,
    ):
        list(corpus.scan())
    assert says(caught.value, "a.jsonl, line 3:", "text", "not a string", "without strict")
    assert not quarantine.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize(("suffix", "codec"), [(".jsonl", ".gz"), (".csv", ".zst")])
def test_a_file_that_is_cut_short_gives_all_records_before_the_break(tmp_path: Path, suffix: str, codec: str) -> None:
    noise = np.random.default_rng(0).bytes(150_000).hex()
    rows = [{"id": n, "text": noise[n * 1000 : n * 1000 + 1000]} for n in range(300)]
    data = compress(encode_rows(rows, suffix), codec)
    path, quarantine = tmp_path / f"a{suffix}{codec}", tmp_path / "quarantine.jsonl"
    path.write_bytes(data[: len(data) // 2])
    with open_corpus([path], quarantine=str(quarantine), allow_torn=True) as corpus:
        texts = texts_of(corpus)
        assert texts == [row["text"] for row in rows[: len(texts)]]
        assert 50 < len(texts) < 250
        assert corpus.torn_files == [TornFile(str(path), len(texts), Reason.DAMAGED_COMPRESSION)]
        assert dict(corpus.rejected.counts) == {Reason.DAMAGED_COMPRESSION: 1}
        assert corpus.raw_rows == len(texts)
        keep = np.ones(corpus.raw_rows, dtype=bool)
        assert corpus.copy(keep, str(tmp_path / f"o{suffix}")) == len(texts)
    (entry,) = read_quarantine(quarantine)
    assert encode_rows(rows, suffix).decode().splitlines()[entry["line"] - 1].startswith(entry["record"])


@pytest.mark.parametrize(
    ("suffix", "end", "torn"),
    [
        (".jsonl", b'{"id": 2, "te', True),
        (".jsonl", '{"id": 2, "text": "é'.encode()[:-1], True),
        (".jsonl", b'{"id": 2, "te\n', False),
        (".jsonl", b'{"id": 2}\r{"id": 3, "te', False),
        (".jsonl", b"nonsense", False),
        (".jsonl", b'{"id": 2, "text": 5}', False),
        (".jsonl", b'{"id": 2, "text": "\xff"}', False),
        (".jsonl", b'{"id": 2, "text": "b"}', None),
        (".csv", b"2", True),
        (".csv", b'2,"b', True),
        (".csv", b"2,b,c\n", False),
        (".csv", b"2,b", None),
    ],
)
def test_a_last_line_without_its_end_is_a_torn_file(tmp_path: Path, suffix: str, end: bytes, torn: bool | None) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(encode_rows([{"id": 1, "text": "ä"}], suffix) + end)
    with open_corpus([path], allow_torn=True) as corpus:
        assert len(texts_of(corpus)) == (2 if torn is None else 1)
        assert corpus.torn_files == ([TornFile(str(path), 1, Reason.CUT_LINE)] if torn else [])
        assert corpus.rejected.total == (0 if torn is None else 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"id": 2, "te', r"is torn \(last line is cut short\): 0 rows were read"),
        (
            "a.jsonl",
            b'nonsense\n{"id": 2, "te',
            r"has no usable record \(all 2 are rejected, the first in line 1: not valid JSON",
        ),
        (
            "a.jsonl",
            b'{"text": "\xff\x81"}\n',
            r"has no usable record \(its only one is rejected, the first in line 1: not valid UTF-8\)",
        ),
        ("a.jsonl", gzip.compress(b'{"id": 2}', mtime=0)[:-9], r"is torn \(compressed data is cut short or damaged\)"),
        ("a.csv", b"id,text\n1\n", r"has no usable record \(its only one"),
        ("a.parquet", b"PAR1", r"is torn \(unreadable file\): 0 rows were read"),
        ("a.arrow", b"ARROW1\0\0", r"is torn \(unreadable file\): 0 rows were read"),
        ("a.txt", b"\xff\0", r"has no usable record \(not valid UTF-8\)"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_file_without_a_usable_record_is_torn_alone_or_beside_others(
    tmp_path: Path, name: str, content: bytes, message: str, alone: bool
) -> None:
    (tmp_path / name).write_bytes(content)
    others = [] if alone else [write_input(tmp_path, "good.jsonl", ROWS[:2])]
    for allowed in (False, True):
        with (
            open_corpus([tmp_path / name, *others], allow_torn=allowed) as corpus,
            warnings.catch_warnings(record=True) as shown,
        ):
            warnings.simplefilter("always")
            assert len(texts_of(corpus)) == 2 * len(others)
            [torn] = corpus.torn_files
        assert (torn.file, torn.rows_read) == (str(tmp_path / name), 0)
        assert re.search(message, str(torn))
        assert [warning.category for warning in shown] == ([] if allowed else [errors.TornInput])


def test_torn_files_without_a_readable_record_are_accepted_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 2, "te')
    with open_corpus([path], allow_torn=True) as corpus:
        assert texts_of(corpus) == []
        assert corpus.torn_files == [TornFile(str(path), 0, Reason.CUT_LINE)]


def test_an_unreadable_file_among_others_is_rejected(tmp_path: Path) -> None:
    write_input(tmp_path, "a.jsonl", ROWS[:3])
    (tmp_path / "b.parquet").write_bytes(encode_rows(ROWS, ".parquet")[:-9])
    write_input(tmp_path, "c.jsonl", ROWS[3:5])
    with open_corpus([tmp_path]) as corpus:
        with pytest.warns(errors.TornInput, match=r"b\.parquet is torn \(unreadable file\): 0 rows.*allow_torn=True"):
            assert len(texts_of(corpus)) == 5
        assert dict(corpus.rejected.counts) == {Reason.UNREADABLE_FILE: 1}
        assert corpus.take([4]).column("id").to_pylist() == [4]


def test_an_unreadable_row_group_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = write_damaged_group(path)
    quarantine = tmp_path / "quarantine.jsonl"
    with open_corpus([path], quarantine=str(quarantine), allow_torn=True) as corpus:
        assert texts_of(corpus) == [text for text in texts[:100] + texts[200:] if text]
        assert corpus.raw_rows == 300
        assert corpus.torn_files == [TornFile(str(path), 200, Reason.UNREADABLE_GROUP)]
        assert dict(corpus.rejected.counts) == {Reason.NO_TEXT: 1, Reason.UNREADABLE_GROUP: 100}
        keep = np.ones(300, dtype=bool)
        keep[100:200] = False
        assert corpus.copy(keep, str(tmp_path / "o.parquet")) == 200
    first, entry = read_quarantine(quarantine)
    assert (first["row"], entry["row"], entry["rows"]) == (5, 100, 100)
    assert entry["detail"].startswith("row group 1, rows 100-199:")


def test_an_index_beyond_its_dictionary_is_an_unreadable_batch(tmp_path: Path) -> None:
    for last in (0, 9):
        texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, last], pa.int32()), ["a", "b"], safe=False)
        (tmp_path / "a.arrow").write_bytes(encode_table(pa.table({"text": texts}), ".arrow"))
        with open_corpus([tmp_path / "a.arrow"], allow_torn=True) as corpus:
            assert texts_of(corpus) == ([] if last else ["a", "b", "a"])
            assert dict(corpus.rejected.counts) == ({Reason.UNREADABLE_GROUP: 3} if last else {})


def test_a_second_scan_counts_from_zero(tmp_path: Path) -> None:
    path, quarantine = tmp_path / "a.jsonl", tmp_path / "quarantine.jsonl"
    path.write_text('{"text": "a"}\nnonsense\n')
    with open_corpus([path], quarantine=str(quarantine)) as corpus:
        assert texts_of(corpus) == texts_of(corpus) == ["a"]
        assert corpus.rejected.total == 1
    assert len(read_quarantine(quarantine)) == 1


AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"
NAMES = [
    *("a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.arrow", "a.jsonl.gz", "a.jsonl.zst", "a.csv.gz", "a.parquet.gz"),
    *("a.arrow.zst", "a.txt", "a.txt.gz"),
]


def read_and_copy(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.write_bytes(data)
    with suppress(errors.NeardupError), open_corpus([path], allow_torn=True) as corpus:
        rows = rows_of(corpus)
        assert len(rows) <= corpus.raw_rows
        corpus.take(rows[:5])
        keep = np.zeros(corpus.raw_rows, dtype=bool)
        keep[rows] = True
        assert corpus.copy(keep, str(folder / "o.jsonl"), force=True) == len(rows)
        corpus.copy(keep, str(folder / "o.parquet"), force=True)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12 if AT_LENGTH else 5, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200), head=st.sampled_from([b"", b"PAR1", b"ARROW1\0\0", b"\x1f\x8b\x08", b"{"]))
def test_random_bytes_end_in_documents_or_one_sentence(tmp_path: Path, name: str, data: bytes, head: bytes) -> None:
    read_and_copy(tmp_path, name, head + data)


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
        read_and_copy(tmp_path, name, bytes(data))
