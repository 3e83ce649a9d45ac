"""Bytes that come in: codecs, encodings, quotes, records and columns beyond a bound, folders, pipes and devices."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from input_files import ROWS, encode_rows, read_quarantine, texts_of

from neardup import errors
from neardup.documents import columnar as columnar_module
from neardup.documents import open_corpus
from neardup.documents import streams as streams_module
from neardup.documents.records import Reason

DATA = encode_rows(ROWS, ".jsonl")
TEXTS = [row["text"] for row in ROWS]
SKIPPABLE = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"bytes"


def zstd(data: bytes, window: int = 20) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window, enable_ldm=True)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


#: Options of LZMA that few writers use: the start of the file is another one.
SMALL_LZMA = {"id": lzma.FILTER_LZMA1, "dict_size": 1 << 12, "lc": 0, "lp": 2, "pb": 0}


@pytest.mark.parametrize(
    ("name", "content", "times"),
    [
        ("a.jsonl.zst", SKIPPABLE + zstd(DATA), 1),
        ("a.jsonl.zst", zstd(DATA) + SKIPPABLE + zstd(DATA) + SKIPPABLE, 2),
        ("a.jsonl.zst", zstd(DATA, 31), 1),
        ("a.jsonl", SKIPPABLE + zstd(DATA), 1),
        ("a.jsonl.gz", gzip.compress(DATA) + bytes(1000), 1),
        ("a.jsonl.gz", gzip.compress(DATA) + bytes(7) + gzip.compress(DATA), 2),
        ("a.jsonl.gz", b"".join(gzip.compress(line) for line in DATA.splitlines(keepends=True)), 1),
        ("a.jsonl.bz2", bz2.compress(DATA) + bz2.compress(DATA), 2),
        ("a.jsonl.xz", lzma.compress(DATA) + bytes(8) + lzma.compress(DATA), 2),
        ("a.jsonl.lzma", lzma.compress(DATA, lzma.FORMAT_ALONE), 1),
        ("a.jsonl.lzma", lzma.compress(DATA, lzma.FORMAT_ALONE, filters=[SMALL_LZMA]), 1),
        ("a.jsonl.lzma", DATA, 1),
        ("a.jsonl", lzma.compress(DATA), 1),
    ],
)
def test_every_form_of_a_codec_is_read_in_full(tmp_path: Path, name: str, content: bytes, times: int) -> None:
    (tmp_path / name).write_bytes(content)
    with open_corpus([tmp_path / name], id_column="") as corpus:
        assert texts_of(corpus) == TEXTS * times
        assert not corpus.torn_files


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.gz", gzip.compress(DATA) + b"something else"),
        ("a.jsonl.gz", gzip.compress(DATA)[:-4]),
        ("a.jsonl.zst", zstd(DATA) + zstd(DATA)[:20]),
        ("a.jsonl.xz", lzma.compress(DATA)[:-10]),
        ("a.jsonl.bz2", bz2.compress(DATA) + b"BZh9"),
    ],
)
def test_what_is_missing_or_strange_at_the_end_makes_a_file_torn(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with open_corpus([tmp_path / name], allow_torn=True) as corpus:
        assert texts_of(corpus) == TEXTS
        assert [torn.reason for torn in corpus.torn_files] == [Reason.DAMAGED_COMPRESSION]


def archive(kind: str) -> bytes:
    sink = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(sink, "w") as file:
            file.writestr("a.jsonl", DATA)
    else:
        with tarfile.open(fileobj=sink, mode="w") as file:
            entry = tarfile.TarInfo("a.jsonl")
            entry.size = len(DATA)
            file.addfile(entry, io.BytesIO(DATA))
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl.gz", gzip.compress(gzip.compress(DATA)), "compressed twice (gzip in gzip)"),
        ("a.jsonl.gz", gzip.compress(zstd(DATA)), "compressed twice (zstd in gzip)"),
        ("a.jsonl", archive("zip"), "is a zip archive"),
        ("a.jsonl.tar.gz", gzip.compress(archive("tar")), "is a tar archive"),
        ("a.jsonl", b"7z\xbc\xaf\x27\x1c" + DATA, "is a 7z archive"),
        ("a.csv", b"Rar!\x1a\x07\x01\0" + DATA, "is a RAR archive"),
        ("a.jsonl.lz4", b"\x04\x22\x4d\x18" + DATA, "compressed with lz4"),
        ("a.jsonl.sz", b"\xff\x06\x00\x00sNaPpY" + DATA, "compressed with snappy"),
        ("a.jsonl.br", b"\x1b\x03" + bytes(range(200)), "compressed with brotli by its name"),
        ("a.jsonl.lz", b"LZIP\0" + DATA, "compressed with lzip"),
        ("a.jsonl", b"ORC\x0a\0" + DATA, "an ORC file"),
        ("a.parquet", b"PARE\x15\0" + DATA, "an encrypted Parquet file"),
        ("a.gz", gzip.compress(b"filedesc://a.arc 0.0.0.0 20240101000000 text/plain 0\n", mtime=0), "is an ARC file"),
    ],
)
def test_other_compressions_and_archives_are_refused_by_name(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(errors.InputError) as caught:
        open_corpus([tmp_path / name])
    assert words in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [("a.csv", b"ORCID,text\n1,one two\n"), ("a.txt.gz", b"PAREIL text")])
def test_a_text_may_begin_with_the_letters_of_another_format(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with open_corpus([tmp_path / name], ids="rows") as corpus:
        assert len(texts_of(corpus)) == 1


JSON_LINES = [
    *(b"null{}", b"null,", b"null x", b"nullnull", b"null", b" null{}", b"nul", b"true", b"17", b'"x"', b" []", b"\0"),
    *(b'{"text": "b"}null', b'{"text": "b"}null{"text": "b"}', b'{"text": "b"}\rnull\r{"text": "b"}', b"{}{}"),
    *(b"\xef\xbb\xbf{}", b'{"text": "b", "x": ' + b"[" * 200_000 + b"]" * 200_000, b"\x1b", b"{\0}", b"-", b"NaN{}"),
]


@pytest.mark.parametrize("line", JSON_LINES, ids=lambda line: repr(line[:30]))
def test_no_line_of_json_ends_the_process(tmp_path: Path, line: bytes) -> None:
    path, good = tmp_path / "a.jsonl", b'{"text": "a b c"}\n'
    first = [] if line == b" []" else [line + b"\n" + good]
    for content in (good + line + b"\n", *first, good * 3 + line):
        path.write_bytes(content)
        with open_corpus([path], text_column="text", allow_torn=True) as corpus:
            assert set(texts_of(corpus)) == {"a b c"}
            assert corpus.rejected.total == 1
            corpus.copy(pa.array([True] * corpus.raw_rows).to_numpy(False), str(tmp_path / "o.jsonl"), force=True)


def test_deep_values_are_refused_where_a_type_must_be_inferred(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a", "x": ' + b"[" * 300_000 + b"]" * 300_000 + b"}\n")
    code = (
        "import sys, numpy, neardup\nfrom neardup.documents import open_corpus\n"
        f"c = open_corpus([{str(path)!r}])\nlist(c.scan())\n"
        f"try: c.copy(numpy.ones(1, bool), {str(tmp_path / 'o.parquet')!r})\n"
        "except neardup.InputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "do not fit one table" in done.stdout


HEADER = "id,text,more\n"


@pytest.mark.parametrize(
    ("rows", "kept", "broken"),
    [
        (['1,"a', "2,b,x", "3,c,x"], ["b", "c"], [2]),
        (['1,"a,x', "2,b,x", '3,other " c,x', "4,d,x"], ["b", 'other " c', "d"], [2]),
        (['1,"a"b,x', "2,b,x"], ["b"], [2]),
        (['1,"a" ,x', "2,b,x"], ["b"], [2]),
        (['1,"a\\"b",x', "2,b,x"], ["b"], [2]),
        (['"1","a', '"2","b","x"', '"3","c","x"'], ["b", "c"], [2]),
        (["1,b,x", '2,c,"x'], ["b"], [3]),
        (['1,"a, b', 'and ""c""",x', "2,b,x"], ['a, b\nand "c"', "b"], []),
        (['1,5" disk,x', '2,6" disk,x', "3,c,x"], ['5" disk', '6" disk', "c"], []),
        (['1,"",x', '2,"""",x'], ["", '"'], []),
        (['1,"a', '2,b",x,y,z', "3,c,x"], ["c"], [2]),
        ([f"{n},text {n},x" for n in range(5)] + ['5,"stray,x'] + [f"{n},text {n},x" for n in range(6, 200)]
         + ['200,stray",x', "201,b,x"], [f"text {n}" for n in range(200) if n != 5] + ['stray"', "b"], [7]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [1, 50, 1 << 20])
def test_a_stray_quote_costs_its_own_row(
    tmp_path: Path, rows: list[str], kept: list[str], broken: list[int], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "BLOCK", block)
    for end in ("\n", ""):
        (tmp_path / "a.csv").write_text(HEADER + "\n".join(rows) + end)
        with open_corpus([tmp_path / "a.csv"], allow_torn=True, quarantine=str(tmp_path / "q.jsonl")) as corpus:
            assert texts_of(corpus) == kept
            torn = [(file.reason, file.detail) for file in corpus.torn_files]
        lines = [entry["line"] for entry in read_quarantine(tmp_path / "q.jsonl") if entry["reason"] in TORN_QUOTES]
        assert lines == broken
        assert len(torn) == bool(broken)


TORN_QUOTES = {Reason.OPEN_QUOTE, Reason.CUT_LINE}


def test_quotes_are_characters_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('id\ttext\n1\t"a\n2\t"b" c\n3\t""\n')
    with open_corpus([path], quoting="none") as corpus:
        assert texts_of(corpus) == ['"a', '"b" c', '""']
        keep = pa.array([True, False, True]).to_numpy(False)
        corpus.copy(keep, str(tmp_path / "o.tsv"))
        assert (tmp_path / "o.tsv").read_text() == 'id\ttext\n1\t"a\n3\t""\n'
        corpus.copy(keep, str(tmp_path / "o.csv"))
    with open_corpus([tmp_path / "o.csv"]) as corpus:
        assert texts_of(corpus) == ['"a', '""']
    with pytest.raises(errors.RecipeError, match="quoting 'some' is not known"):
        open_corpus([path], quoting="some")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.txt", "a.csv.gz"])
@pytest.mark.parametrize("begin", [0, 300_000])
def test_windows_1252_is_read_and_named(tmp_path: Path, name: str, begin: int) -> None:
    texts = ["plain text"] * (begin // 10) + ["Zürich, schön und groß", "“quoted” – 5 €", "Ångström"]
    rows = [{"id": number, "text": text} for number, text in enumerate(texts)]
    suffix = name[1:].removesuffix(".gz")
    data = "\n".join(texts) if suffix == ".txt" else encode_rows(rows, suffix).decode()
    path = tmp_path / name
    encoded = data.encode("cp1252")
    path.write_bytes(gzip.compress(encoded) if name.endswith(".gz") else encoded)
    with open_corpus([path]) as corpus:
        assert texts_of(corpus) == (["\n".join(texts)] if suffix == ".txt" else texts)
        assert corpus.encodings == {str(path): "windows-1252"}
        if suffix != ".txt":
            corpus.copy(pa.array([True] * len(texts)).to_numpy(False), str(tmp_path / f"o{suffix}"))
            assert (tmp_path / f"o{suffix}").read_bytes() == data.replace("\r\n", "\n").encode()


@pytest.mark.parametrize("text", ["Привет, мир", "Γειά σου"])
def test_other_encodings_are_not_taken_for_windows_1252(tmp_path: Path, text: str) -> None:
    encoding = "cp1251" if text[0] == "П" else "cp1253"
    (tmp_path / "a.csv").write_bytes(
        b"id,text\n1,plain\n" + b"".join(b"2,%b\n" % text.encode(encoding) for _ in range(9))
    )
    with open_corpus([tmp_path / "a.csv"], id_column="") as corpus:
        assert texts_of(corpus) == ["plain"]
        assert dict(corpus.rejected.counts) == {Reason.NOT_UTF8: 9}
        assert corpus.encodings == {}


@pytest.mark.parametrize("suffix", [".jsonl.zst", ".csv.zst", ".jsonl"])
def test_a_record_beyond_the_bound_is_rejected_while_it_is_read(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "LARGEST_RECORD", 10_000)
    monkeypatch.setattr(streams_module, "BLOCK", 1000)
    long = "x" * 1_000_000
    rows = [{"id": 1, "text": "a"}, {"id": 2, "text": long}, {"id": 3, "text": "b"}]
    data = encode_rows(rows, "." + suffix.split(".")[1])
    (tmp_path / f"a{suffix}").write_bytes(zstd(data) if suffix.endswith(".zst") else data)
    with open_corpus([tmp_path / f"a{suffix}"], quarantine=str(tmp_path / "q.jsonl")) as corpus:
        assert texts_of(corpus) == ["a", "b"]
        assert dict(corpus.rejected.counts) == {Reason.TOO_LONG: 1}
        assert corpus.raw_rows == 3
        keep = pa.array([True, False, True]).to_numpy(False)
        assert corpus.copy(keep, str(tmp_path / "o.jsonl")) == 2
    [entry] = read_quarantine(tmp_path / "q.jsonl")
    assert entry["line"] == (3 if "csv" in suffix else 2)
    assert len(entry["record"]) < 2000


def test_copies_of_one_large_value_are_cut_by_decoded_bytes(tmp_path: Path) -> None:
    texts = ["x" * 100_000, "y" * 100_000] * 1000
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    batch = pa.table({"text": pa.array(texts).dictionary_encode()})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), batch.schema) as writer:
        writer.write_table(batch)
    for name in ("a.parquet", "a.arrow"):
        with open_corpus([tmp_path / name]) as corpus:
            sizes = [batch.texts.nbytes for batch in corpus.scan()]
        assert max(sizes) < 20 << 20
        assert sum(sizes) > 190 << 20


def _write_arrow(path: Path, batches: list[pa.RecordBatch], *, as_stream: bool, compression: str | None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if as_stream else pa.ipc.new_file
    with new(str(path), batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("as_stream", [True, False])
def test_batches_of_arrow_are_held_one_at_a_time(tmp_path: Path, as_stream: bool, compression: str | None) -> None:
    texts = [[f"{number} {row} " + "x" * 1000 for row in range(1000)] for number in range(30)]
    batches = [pa.record_batch({"text": pa.array(part)}) for part in texts]
    path = tmp_path / "a.arrow"
    _write_arrow(path, batches, as_stream=as_stream, compression=compression)
    expected = [text for part in texts for text in part]
    del batches
    before = pa.total_allocated_bytes()
    with open_corpus([path]) as corpus:
        held = [pa.total_allocated_bytes() - before]
        for _ in corpus.scan():
            held.append(pa.total_allocated_bytes() - before)
        assert max(held) < 12 << 20
        assert texts_of(corpus) == expected
        keep = pa.array([row % 1000 == 0 for row in range(30_000)]).to_numpy(False)
        assert corpus.copy(keep, str(tmp_path / "kept.arrow")) == 30
    assert [text.split()[0] for text in pa.ipc.open_file(tmp_path / "kept.arrow").read_all()["text"].to_pylist()] == [
        str(number) for number in range(30)
    ]


def test_what_would_decompress_to_far_more_than_its_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pa.array(["x" * 1_000_000] * 20)
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    for name, values in (("batch", texts), ("dictionary", pa.array(["x" * 20_000_000]).dictionary_encode())):
        batch = pa.record_batch({"text": values})
        for as_stream in (True, False):
            path = tmp_path / f"{name}{'-stream' if as_stream else ''}.arrow"
            _write_arrow(path, [batch], as_stream=as_stream, compression="zstd")
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 5
    for path in paths:
        with open_corpus([path]) as corpus:
            assert len(texts_of(corpus)) in (1, 20)
    monkeypatch.setattr(columnar_module, "_LARGEST_EXPANSION", 1 << 20)
    for path in paths:
        before = pa.total_allocated_bytes()
        with open_corpus([path], text_column="text", allow_torn=True) as corpus:
            assert pa.total_allocated_bytes() - before < 1 << 20
            assert texts_of(corpus) == []
            [torn] = corpus.torn_files
        assert "it claims 20" in torn.detail or "it claims 20" in corpus.rejected.examples[0], path


def test_a_parquet_page_with_a_wrong_checksum_is_an_unreadable_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"text {n}" for n in range(300)]})
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table, path, row_group_size=100, **options)
    data = bytearray(path.read_bytes())
    place = data.index(b"text 150")
    data[place] = ord("n")
    path.write_bytes(data)
    with open_corpus([path], allow_torn=True) as corpus:
        assert len(texts_of(corpus)) == 200
        assert "row group 1" in corpus.rejected.examples[0]
        assert [torn.reason for torn in corpus.torn_files] == [Reason.UNREADABLE_GROUP]


def test_folders_are_read_once_and_hidden_names_are_skipped_with_a_note(tmp_path: Path) -> None:
    for name in ("in/a.jsonl", "in/z/b.jsonl", "in/_temporary/0/c.jsonl", "in/.staging/d.jsonl", "in/_SUCCESS"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"text": name}) + "\n")
    os.symlink(tmp_path / "in", tmp_path / "in/loop")
    os.symlink("z", tmp_path / "in/also-z")
    expected = ["in/a.jsonl", "in/z/b.jsonl"]
    with open_corpus([tmp_path / "in"]) as corpus:
        assert texts_of(corpus) == expected
        [note] = corpus.notes
        assert "left out 3 files of which the name or a folder begins with _ or ." in note
    for pattern in (str(tmp_path / "in/**/[abz].jsonl"), f"{(tmp_path / 'in').as_uri()}/**/[!_c].jsonl"):
        with open_corpus([pattern]) as corpus:
            found = texts_of(corpus)
            assert len(found) == len(set(found)), found
            assert set(expected) <= set(found)


def test_patterns_in_uris_match_within_their_steps(tmp_path: Path) -> None:
    for name in ("a1.jsonl", "a2.jsonl", "sub/a3.jsonl", "b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"text": name}) + "\n")
    for pattern, names in {
        "a*.jsonl": ["a1.jsonl", "a2.jsonl"],
        "*/a*.jsonl": ["sub/a3.jsonl"],
        "**/a[23].jsonl": ["a2.jsonl", "sub/a3.jsonl"],
    }.items():
        with open_corpus([f"{tmp_path.as_uri()}/{pattern}"]) as corpus:
            assert sorted(texts_of(corpus)) == names
    with pytest.raises(errors.InputError, match="matches no file"):
        open_corpus([f"{tmp_path.as_uri()}/*.parquet"])


def test_devices_silent_pipes_and_closed_stdin_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.documents.inputs._PATIENCE", 0.1)
    os.mkfifo(tmp_path / "pipe")
    for name, words in {"/dev/zero": "is neither a file", str(tmp_path / "pipe"): "nobody writes to"}.items():
        with pytest.raises(errors.InputError, match=words):
            open_corpus([name])
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(errors.InputError, match="standard input, which is closed"):
        open_corpus(["-"])


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_short_texts_in_any_encoding_of_parquet_are_read(tmp_path: Path, encoding: str, kind: pa.DataType) -> None:
    # Rows of few bytes are read as a dictionary, which Arrow does not make of these encodings.
    texts = [f"a text of some words, number {row % 900}" for row in range(3000)]
    table = pa.table({"text": pa.array(texts, kind), "label": pa.array(["a", "b", "c"] * 1000)})
    pq.write_table(
        table, tmp_path / "a.parquet", use_dictionary=["label"], column_encoding={"text": encoding}, row_group_size=1000
    )
    with open_corpus([tmp_path / "a.parquet"]) as corpus:
        assert texts_of(corpus) == texts
        assert not corpus.rejected.counts
        corpus.copy(np.arange(3000) % 2 == 0, str(tmp_path / "kept.parquet"))
    assert pq.read_table(tmp_path / "kept.parquet").column("label").to_pylist() == (["a", "b", "c"] * 1000)[::2]


def test_a_parquet_footer_without_a_total_is_read_and_one_with_more_rows_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"text {row}" for row in range(77)]}), path)
    whole = path.read_bytes()
    start = whole.index(b"\x16\x9a\x01", len(whole) - int.from_bytes(whole[-8:-4], "little") - 8)
    for number, rows in ((b"\x80\x00", 77), (b"\x9c\x01", 0)):
        path.write_bytes(whole[: start + 1] + number + whole[start + 3 :])
        with open_corpus([path], allow_torn=True, text_column="text") as corpus:
            assert len(texts_of(corpus)) == rows
            assert bool(corpus.torn_files) is (rows == 0)
