"""Inputs: every format, codec and source gives the same documents; what cannot be read is refused."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_files import FORMATS, ROWS, compress, encode_rows, encode_table, full_mask, rows_of, texts_of, write_input
from sentences import says

from neardup import errors
from neardup.documents import corpus_of, open_corpus
from neardup.documents.streams import read_ahead

TEXTS = [row["text"] for row in ROWS]
TABLE = pa.Table.from_pylist(ROWS)


def read_texts(*inputs: Path | str) -> list[str]:
    with open_corpus(inputs) as corpus:
        return texts_of(corpus)


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [
        *((suffix, "") for suffix in FORMATS),
        *((s, c) for s in (".jsonl", ".csv", ".parquet") for c in (".gz", ".zst", ".bz2")),
    ],
)
def test_every_format_gives_the_same_documents(tmp_path: Path, suffix: str, codec: str) -> None:
    path = tmp_path / f"a{suffix}{codec}"
    path.write_bytes(compress(encode_rows(ROWS, suffix), codec))
    with open_corpus([path]) as corpus:
        batches = list(corpus.scan())
        assert (corpus.text_column, corpus.id_column, corpus.raw_rows) == ("text", "id", len(ROWS))
        assert not corpus.rejected.counts
        assert corpus.total_bytes == path.stat().st_size >= sum(batch.bytes_read for batch in batches)
    assert [text for batch in batches for text in batch.texts.to_pylist()] == TEXTS
    assert [row for batch in batches for row in batch.rows.tolist()] == list(range(len(ROWS)))
    assert [int(key) for batch in batches for key in batch.ids.to_pylist()] == list(range(len(ROWS)))
    for batch in batches:
        assert (batch.texts.type, batch.texts.offset, batch.texts.null_count) == (pa.large_string(), 0, 0)
        batch.texts.validate(full=True)
        assert batch.ids.type == (pa.large_string() if suffix in (".csv", ".tsv") else pa.int64())


@pytest.mark.parametrize(
    ("name", "suffix", "codec"),
    [("a.jsonl", ".jsonl", ".zst"), ("a.csv", ".csv", ".gz"), ("a.csv", ".parquet", ""), ("a.jsonl", ".arrow", ".zst")],
)
def test_the_content_of_a_file_decides_its_format_before_its_name(
    tmp_path: Path, name: str, suffix: str, codec: str
) -> None:
    (tmp_path / name).write_bytes(compress(encode_rows(ROWS, suffix), codec))
    assert read_texts(tmp_path / name) == TEXTS


def test_arrow_streams_are_read(tmp_path: Path) -> None:
    with pa.ipc.new_stream(str(tmp_path / "s.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=7)
    assert read_texts(tmp_path / "s.arrow") == TEXTS


def test_raw_rows_count_over_all_inputs_in_order(tmp_path: Path) -> None:
    names = ["b.jsonl", "a.parquet", "c.csv.gz"]
    for number, name in enumerate(names):
        write_input(tmp_path, name, ROWS[number * 10 : number * 10 + 10])
    with open_corpus([tmp_path / name for name in names]) as corpus:
        assert texts_of(corpus) == TEXTS[:30]
        assert rows_of(corpus) == list(range(30))
    assert read_texts(tmp_path) == TEXTS[10:20] + TEXTS[:10] + TEXTS[20:30]
    assert read_texts(str(tmp_path / "*.csv*")) == TEXTS[20:30]
    assert read_texts((tmp_path / "b.jsonl").as_uri()) == TEXTS[:10]


@pytest.mark.parametrize(("suffix", "codec"), [(".csv", ".gz"), (".arrow", ".zst")])
def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, suffix: str, codec: str) -> None:
    data = io.BytesIO(compress(encode_rows(ROWS, suffix), codec))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    with open_corpus(["-"]) as corpus:
        assert texts_of(corpus) == TEXTS
        assert corpus.take([3]).column("text").to_pylist() == [TEXTS[3]]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (encode_rows(ROWS[:2], ".jsonl"), TEXTS[:2]),
        (compress(encode_rows(ROWS[:2], ".csv"), ".gz"), TEXTS[:2]),
        (b"no table", ["no table"]),
        (b"", []),
    ],
)
def test_the_content_of_a_pipe_decides_its_format(tmp_path: Path, content: bytes, texts: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert read_texts(tmp_path / "pipe") == texts
    writer.join()


def test_a_folder_of_texts_has_a_document_per_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfbee")
    (tmp_path / "a.md").write_text("ay")
    (tmp_path / "sub" / "README").write_text("")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xff")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8")
    (tmp_path / ".hidden.txt").write_text("no")
    with open_corpus([tmp_path], allow_torn=True) as corpus:
        (batch,) = list(corpus.scan())
        assert batch.ids.to_pylist() == ["a.md", "b.txt", "sub/README"]
        assert batch.texts.to_pylist() == ["ay", "bee", ""]
        assert batch.rows.tolist() == [0, 1, 3]
        (note,) = corpus.notes
        assert says(note, f"{tmp_path}:", "4 text files", "left out 1")
        (example,) = corpus.rejected.examples
        assert says(example, f"{tmp_path}/bad.txt:", "not valid UTF-8", "(byte 0)")
        assert corpus.take([3, 0]).to_pydict() == {"id": ["sub/README", "a.md"], "text": ["", "ay"]}
    assert read_texts(tmp_path / "a.md", tmp_path / "b.txt") == ["ay", "bee"]


def test_folders_that_match_a_pattern_beside_files_are_noted(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write_input(tmp_path, "a.jsonl", ROWS[:2])
    write_input(tmp_path, "sub/b.jsonl", ROWS[2:4])
    for pattern, texts, notes in (
        ("*", TEXTS[:2], [f"{tmp_path}/*: read 1 file and left out 1 folder"]),
        ("**", TEXTS[:4], []),
        ("s*", TEXTS[2:4], []),
    ):
        with open_corpus([tmp_path / pattern]) as corpus:
            assert texts_of(corpus) == texts
            assert corpus.notes == notes


def test_data_files_of_a_folder_are_read_before_text_files(tmp_path: Path) -> None:
    write_input(tmp_path, "x.jsonl", ROWS[:2])
    (tmp_path / "README.md").write_text("about")
    with open_corpus([tmp_path]) as corpus:
        assert texts_of(corpus) == TEXTS[:2]
        (note,) = corpus.notes
        assert says(note, f"{tmp_path}:", "1 data file", "left out 1 other")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"ID": 1, "Title": "a", "TEXT": "t"}, ("TEXT", "ID")),
        ({"content": "t", "body": "b", "uuid": "u"}, ("content", "uuid")),
        ({"_id": "x", "Body": "t"}, ("Body", "_id")),
        ({"id": 1.5, "text": "t"}, ("text", None)),
        ({"id": 2.0, "text": "t"}, ("text", "id")),
        ({"text": ["t"], "body": "b"}, ("body", None)),
    ],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_are_detected(
    tmp_path: Path, row: dict[str, Any], expected: tuple[str, str | None], suffix: str
) -> None:
    path = write_input(tmp_path, f"a{suffix}", [row])
    with open_corpus([path]) as corpus:
        assert (corpus.text_column, corpus.id_column) == expected
        assert len(texts_of(corpus)) == 1
    with open_corpus([path], id_column="") as corpus:
        assert corpus.id_column is None
        assert next(corpus.scan()).ids is None


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "large_binary", "dictionary"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_texts_may_be_of_any_text_type(tmp_path: Path, kind: str, suffix: str) -> None:
    texts = pa.array(["a", "é", "", None, "a"])
    texts = texts.dictionary_encode() if kind == "dictionary" else texts.cast(getattr(pa, kind)())
    path = tmp_path / f"a{suffix}"
    path.write_bytes(encode_table(pa.table({"text": texts, "id": list("vwxyz")}), suffix))
    with open_corpus([path], order_column="text") as corpus:
        (batch,) = list(corpus.scan())
        assert batch.texts.to_pylist() == ["a", "é", "", "a"]
        assert batch.ids.to_pylist() == ["v", "w", "x", "z"]
        assert dict(corpus.rejected.counts) == {"no text": 1}
        assert corpus.take([4, 0]).column("id").to_pylist() == ["z", "v"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64()], ids=str)
def test_ids_may_be_of_any_id_type(tmp_path: Path, kind: pa.DataType) -> None:
    pq.write_table(pa.table({"text": ["a"], "id": pa.array([7], kind)}), tmp_path / "a.parquet")
    with open_corpus([tmp_path / "a.parquet"]) as corpus:
        assert next(corpus.scan()).ids == pa.array([7], pa.int64())


@pytest.mark.parametrize(("name", "ids"), [("a.jsonl", ["", "b"]), ("a.parquet", ["", "b"]), ("a.csv", ["b"])])
def test_an_empty_id_is_an_id_except_in_csv(tmp_path: Path, name: str, ids: list[str]) -> None:
    with open_corpus([write_input(tmp_path, name, [{"id": "", "text": "a"}, {"id": "b", "text": "b"}])]) as corpus:
        assert [name for batch in corpus.scan() for name in batch.ids.to_pylist()] == ids
        assert dict(corpus.rejected.counts) == ({} if len(ids) == 2 else {"no id": 1})


def test_blank_lines_byte_order_marks_and_line_ends_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\n{"text":"a"}\r\n  \n\r\n {"text":"b"} \n\n{"text":"c\\u0000"}')
    assert read_texts(path) == ["a", "b", "c\0"]
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfid;text\r\n1;"x ""y"""\r\n\r\n007;a,b\r\n')
    with open_corpus([path]) as corpus:
        (batch,) = list(corpus.scan())
        assert batch.texts.to_pylist() == ['x "y"', "a,b"]
        assert batch.ids.to_pylist() == ["1", "007"]


def test_empty_inputs_have_no_documents(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.csv", "b.csv", "c.jsonl.gz"):
        path = tmp_path / name
        path.write_bytes(compress(b"text\n" if name == "b.csv" else b"", name[-3:]))
        with open_corpus([path]) as corpus:
            assert texts_of(corpus) == []
            assert corpus.raw_rows == 0
            assert corpus.copy(np.zeros(0, dtype=bool), str(tmp_path / "o.jsonl"), force=True) == 0
            assert corpus.take([]).num_rows == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nonsense://x/y", None, "nonsense://x/y cannot be read"),
        ("a\0b", None, "cannot be read"),
        ("photo.jpg", b"\xff\xd8\xff", "is of no known format"),
        ("array.json", b'[{"text": "a"}]', "is a JSON array"),
        ("mac.csv", b"id,text\r1,a\r", "bare carriage return"),
        ("quoted.csv", b'"id","text"\r"1","a"\r', "bare carriage return"),
        ("twice.csv", b'"id","text"\r\r\n"1","a"\r\r\n', "bare carriage return"),
        ("indented.json", b'{\n "text": "a"\n}\n', "has objects of several lines"),
        ("wide.jsonl", '{"text": "a"}\n'.encode("utf-16"), "is encoded in UTF-16: convert it to UTF-8"),
        ("wide.csv", "text\na\n".encode("utf-16-be"), "is encoded in UTF-16: convert it to UTF-8"),
        ("wide.dat", "text,id\na,1\n".encode("utf-32"), "is encoded in UTF-32: convert it to UTF-8"),
    ],
)
def test_unreadable_inputs_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(errors.InputError, match=f"^.*{message}.*$"):
        open_corpus([name])


@pytest.mark.parametrize("inputs", [5, [5], b"a.jsonl", None])
def test_names_of_files_are_texts_or_paths(inputs: Any) -> None:
    with pytest.raises(errors.InputError, match="is no name of a file: give a str or a path"):
        open_corpus(inputs)


def test_columns_with_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([["a"], ["b"], ["c"]], names=["text", "x", "x"])
    (tmp_path / "a.parquet").write_bytes(encode_table(table, ".parquet"))
    with pytest.raises(errors.InputError, match=r"a\.parquet has several columns named 'x': give each its own name"):
        open_corpus([tmp_path / "a.parquet"])
    with pytest.raises(errors.InputError, match="in memory has several columns named 'x'"):
        corpus_of(table)


def test_a_text_file_is_decoded_as_its_byte_order_mark_says(tmp_path: Path) -> None:
    for number, encoding in enumerate(("utf-8-sig", "utf-16", "utf-32")):
        (tmp_path / f"{number}.txt").write_text("naïve 日本 😀", encoding=encoding)
    with open_corpus([tmp_path]) as corpus:
        assert texts_of(corpus) == ["naïve 日本 😀"] * 3
        assert corpus.take([1])["text"].to_pylist() == ["naïve 日本 😀"]


def test_changed_inputs_are_refused(tmp_path: Path) -> None:
    path = write_input(tmp_path, "a.jsonl")
    with open_corpus([path]) as corpus:
        list(corpus.scan())
        path.write_bytes(path.read_bytes() + b"\n")
        with pytest.raises(errors.InputError, match="changed while"):
            corpus.copy(full_mask(corpus), str(tmp_path / "o.jsonl"))
        with pytest.raises(errors.InputError, match="changed while"):
            corpus.take([0])
    assert not (tmp_path / "o.jsonl").exists()


def test_circular_links_end(tmp_path: Path) -> None:
    write_input(tmp_path, "a.jsonl", ROWS[:2])
    os.symlink(tmp_path, tmp_path / "loop")
    assert len(read_texts(tmp_path)) >= 2


def test_take_returns_rows_in_the_given_order(tmp_path: Path) -> None:
    paths = [write_input(tmp_path, "a.jsonl", ROWS[:5]), write_input(tmp_path, "b.parquet", ROWS[5:9])]
    with open_corpus(paths) as corpus:
        list(corpus.scan())
        assert corpus.take([8, 0, 0, 5]).to_pylist() == [ROWS[i] for i in (8, 0, 0, 5)]
        with pytest.raises(IndexError):
            corpus.take([9])


def test_reading_ahead_keeps_the_order_and_raises_errors_in_place() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise errors.InputError("broken")

    seen: list[int] = []
    with pytest.raises(errors.InputError, match="broken"):
        seen.extend(read_ahead(items()))
    assert seen == [0, 1, 2]
    taken = read_ahead(iter(range(1000)))
    assert [next(taken), next(taken)] == [0, 1]
    taken.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("neardup-read")]


def test_documents_are_named_by_id_row_or_file(tmp_path: Path) -> None:
    paths = [write_input(tmp_path, "a.jsonl", ROWS[:2]), write_input(tmp_path, "b.csv", ROWS[:2])]
    (tmp_path / "c.txt").write_text("text")
    with open_corpus([*paths, tmp_path / "c.txt"], ids="file+id") as corpus:
        ids = [key for batch in corpus.scan() for key in batch.ids.to_pylist()]
    a, b = (str(path) for path in paths)
    assert ids == [f"{a}:0", f"{a}:1", f"{b}:0", f"{b}:1", str(tmp_path / "c.txt")]
    with open_corpus(paths, ids="rows") as corpus:
        assert corpus.id_column is None
    nameless = write_input(tmp_path, "n.jsonl", [{"text": "t"}])
    refusals: list[tuple[Any, dict[str, Any], str]] = [
        (paths, {"ids": "rows", "id_column": "id"}, "ids rows and .*id_column id.*one of the two"),
        (paths, {"ids": "names"}, "ids 'names'.*column, rows, file\\+id"),
        ([nameless], {"ids": "file+id"}, "ids file\\+id.*column of ids.*id_column.*ids rows"),
    ]
    for inputs, options, message in refusals:
        with pytest.raises(errors.NeardupError, match=message):
            open_corpus(inputs, **options)
