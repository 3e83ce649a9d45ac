"""Columns by name or path, in every format: which are found, what they hold, and what is refused."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from input_files import texts_of, write_input

import neardup as nd
from neardup.documents import corpus_of, open_corpus
from neardup.documents.arrays import plain_array, plain_type, type_words
from neardup.documents.column_paths import find_in_table
from neardup.errors import InputError

ROWS: list[dict[str, Any]] = [
    {
        "id": 7,
        "doc": {"text": "one", "parts": ["a", "b"]},
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "bot", "content": None},
            {"role": "x", "content": "yo"},
        ],
        "choices": ["p", "", "q"],
        "doc.title": "literal",
        "meta": {"id": "m1", "when": "2024-01-02"},
    },
    {
        "id": 8,
        "doc": {"text": "two", "parts": []},
        "messages": [{"role": "user", "content": "you"}],
        "choices": ["r"],
        "doc.title": "other",
        "meta": {"id": "m2", "when": "2024-01-03"},
    },
    {"id": 9, "doc": None, "messages": None, "choices": None, "doc.title": None, "meta": None},
]
#: A path, and its texts; a record without any is rejected.
PATHS = {
    "doc.text": ["one", "two"],
    "doc.parts[]": ["a\nb", ""],
    "doc.parts": ["a\nb", ""],
    "doc.parts[1]": ["b"],
    "messages[].content": ["hi\nyo", "you"],
    "messages[0].content": ["hi", "you"],
    "messages[2].content": ["yo"],
    "choices[]": ["p\nq", "r"],
    "choices": ["p\nq", "r"],
    "choices[0]": ["p", "r"],
    "doc.title": ["literal", "other"],
    "doc.title,choices[]": ["literal\np\nq", "other\nr"],
}


def frames(package: str) -> Any:
    """Return pandas or Polars, which take long to import."""
    return importlib.import_module(package)


FORMS: dict[str, Callable[[Path], Any]] = {
    "JSON lines": lambda folder: write_input(folder, "a.jsonl", ROWS),
    "JSON lines, a record at a time": lambda folder: _with_broken_line(folder),
    "Parquet": lambda folder: write_input(folder, "a.parquet", ROWS),
    "Arrow": lambda folder: write_input(folder, "a.arrow", ROWS),
    "dicts": lambda folder: ROWS,
    "table": lambda folder: pa.Table.from_pylist(ROWS),
    "Polars": lambda folder: frames("polars").DataFrame(ROWS),
    "pandas": lambda folder: frames("pandas").DataFrame(ROWS),
}


def _with_broken_line(folder: Path) -> Path:
    path = write_input(folder, "b.jsonl", ROWS)
    path.write_text(path.read_text() + "{broken\n")
    return path


def open_form(form: str, folder: Path, **options: Any) -> Any:
    data = FORMS[form](folder)
    return open_corpus([data], **options) if isinstance(data, Path) else corpus_of(data, **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", PATHS)
def test_a_path_gives_the_same_texts_in_every_form(form: str, path: str, tmp_path: Path) -> None:
    with open_form(form, tmp_path, text_column=path) as corpus:
        assert texts_of(corpus) == PATHS[path]
        rows = [row for batch in corpus.rescan() for row in batch.rows.tolist()]
        assert corpus.take(rows)[corpus.text_column].to_pylist() == PATHS[path]
        shown = {"doc.parts": "doc.parts[]", "choices": "choices[]"}.get(path, path)
        assert corpus.columns_used == {"text": shown, "id": "id"}


@pytest.mark.parametrize("form", FORMS)
def test_ids_and_order_may_be_paths(form: str, tmp_path: Path) -> None:
    options = {"text_column": "doc.text", "id_column": "meta.id", "order_column": "meta.when"}
    with open_form(form, tmp_path, **options) as corpus:
        [batch] = list(corpus.scan())
        assert batch.ids.to_pylist() == ["m1", "m2"]
        assert batch.order.to_pylist() == ["2024-01-02", "2024-01-03"]
        assert corpus.columns_used == {"text": "doc.text", "id": "meta.id", "order": "meta.when"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "path", ["doc.txt", "messages[].contents", "choices[].x", "doc[]", "nothing", "doc.text.x", "[]"]
)
def test_a_path_that_no_record_has_is_refused_with_the_columns(form: str, path: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"has no column .* its columns are id \(whole number\), doc \(object with text"
    ):
        open_form(form, tmp_path, text_column=path)


@pytest.mark.parametrize("path", ["messages", "doc", "id", "messages[]"])
def test_what_is_no_text_is_refused_in_the_words_of_users(path: str) -> None:
    with pytest.raises(InputError) as raised:
        corpus_of(ROWS, text_column=path)
    assert "messages (list of objects with " in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not any(word in str(raised.value) for word in ("struct", "string", "int64", "double"))


def test_nested_records_are_written_as_they_were(tmp_path: Path) -> None:
    path = write_input(tmp_path, "a.jsonl", ROWS)
    nd.dedup_files(path, text_column="messages[].content").write(tmp_path / "k.jsonl")
    assert (tmp_path / "k.jsonl").read_bytes() == b"".join(path.read_bytes().splitlines(keepends=True)[:2])
    nd.dedup_files(path, text_column="messages[].content").write(tmp_path / "k.parquet")
    assert pq.read_table(tmp_path / "k.parquet").column_names == list(ROWS[0])


def test_a_field_that_is_text_here_and_a_list_there_is_read_by_two_paths(tmp_path: Path) -> None:
    contents: list[Any] = ["plain words", [{"type": "text", "text": "in parts"}, {"type": "image", "url": "x"}]]
    rows = [{"messages": [{"content": content}, {"content": "ok"}]} for content in contents]
    for ordered in (rows, rows[::-1]):
        path = write_input(tmp_path, "m.jsonl", ordered)
        with open_corpus([path], text_column="messages[].content,messages[].content[].text") as corpus:
            assert sorted(texts_of(corpus)) == ["ok\nin parts", "plain words\nok"]
            assert len(corpus.take([0, 1])) == 2
        with open_corpus([path], text_column="messages[].content") as corpus:
            assert texts_of(corpus) == ["plain words\nok"]
            assert dict(corpus.rejected.counts) == {"text is not a string": 1}


def test_columns_that_begin_late_are_found_in_the_whole_file(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"n": n} for n in range(300)]
    rows += [{"n": 300, "body.html": "late", "deep": {"parts": ["x", "y"], "id": 2**63}}]
    path = write_input(tmp_path, "late.jsonl", rows)
    for name, text in (("body.html", "late"), ("deep.parts", "x\ny"), ("deep.parts[]", "x\ny"), ("deep.parts[1]", "y")):
        with open_corpus([path], text_column=name, id_column="deep.id") as corpus:
            assert texts_of(corpus) == [text]
            assert next(corpus.rescan()).ids.to_pylist() == [str(2**63)]
    with pytest.raises(InputError, match=r"has no column 'deep\.part'"):
        open_corpus([path], text_column="deep.part")


#: Public shapes: rows, options, and the columns that are used; None: refused.
SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str | None] | None]] = {
    "chat": ({"id": "c1", "messages": [{"role": "user", "content": "a"}], "source": "x"}, {}, None),
    "chat, named": (
        {"id": "c1", "messages": [{"role": "user", "content": "a"}], "source": "x"},
        {"text_column": "messages[].content"},
        {"text": "messages[].content", "id": "id"},
    ),
    "one string and a label": ({"n": 1, "label": "spam"}, {}, None),
    "checksums": ({"sha256": "e3b0", "size": 3}, {}, None),
    "token ids": ({"id": "a", "input_ids": [1, 2]}, {}, None),
    "one column": ({"headline": "a"}, {}, None),
    "one column, named": ({"headline": "a"}, {"text_column": "headline"}, {"text": "headline", "id": None}),
    "FineWeb": (
        {
            "text": "a",
            "id": "<urn:uuid:0>",
            "dump": "CC",
            "url": "http://a",
            "date": "2024-01-01",
            "language_score": 0.9,
        },
        {},
        {"text": "text", "id": "id"},
    ),
    "arXiv": (
        {"id": "0704.0001", "title": "t", "abstract": "a", "update_date": "2008-11-26", "versions": [{"v": "v1"}]},
        {},
        {"text": "abstract", "id": "id"},
    ),
    "Stack Exchange": (
        {"Id": 4, "PostTypeId": 1, "Body": "<p>a</p>", "CreationDate": "2008-07-31T21:42:52.667"},
        {},
        {"text": "Body", "id": "Id"},
    ),
    "crawl index": ({"url_surtkey": "com,a)/", "fetch_time": "2024-01-01", "content_digest": "X"}, {}, None),
    "two usual names": ({"content": "a", "text": "b"}, {}, {"text": "text", "id": None}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", "memory"])
def test_columns_of_public_shapes(shape: str, suffix: str, tmp_path: Path) -> None:
    row, options, used = SHAPES[shape]
    rows = [row, row | {name: value + "2" for name, value in row.items() if isinstance(value, str)}]
    rows[1] |= {name: 2 for name, value in row.items() if name.lower() == "id" and isinstance(value, int)}

    def opened() -> Any:
        if suffix == "memory":
            return corpus_of(rows, **options)
        return open_corpus([write_input(tmp_path, f"a{suffix}", rows)], **options)

    if used is None:
        with pytest.raises(InputError, match=r"no column is named like a text .*; name it with text_column: "):
            opened()
        return
    with opened() as corpus:
        assert len(texts_of(corpus)) == 2
        assert corpus.columns_used == used


TIMES = ["crawled", "crawled_at", "fetched", "date_crawled", "published", "publish_date", "date_publish", "seendate"]


@pytest.mark.parametrize("name", [*TIMES, "warc_date", "created_utc", "@timestamp", "CreationDate", "fetch_time"])
def test_newest_finds_usual_names_of_times(name: str) -> None:
    rows = [{"text": "a b c d e f", name: "2024-01-01"}, {"text": "a b c d e f", name: "2024-01-02"}]
    result = nd.dedup(rows, keep="newest")
    assert result.kept == [1]
    assert result.summary["columns"] == {"text": "text", "id": None, "time": name}


def test_a_missing_time_is_refused_in_the_words_of_users() -> None:
    rows = pa.table({"text": pa.array(["a"], pa.large_string()), "n": [1.5], "tags": [["x"]]})
    with pytest.raises(
        InputError, match=r"name it with time_column: text \(text\), n \(number\), tags \(list of texts\)"
    ):
        nd.dedup(rows, keep="newest")


IDS: dict[str, tuple[Any, list[Any] | None]] = {
    "doubles": (pa.array([1.0, 2.0, None]), [1, 2]),
    "doubles with a NaN": (pa.array([1.0, float("nan"), 3.0]), [1, 3]),
    "large doubles": (pa.array([1e22, 2.0, None]), ["10000000000000000000000", "2"]),
    "decimals": (pa.array([1, 2, None], pa.decimal128(30, 0)), [1, 2]),
    "unsigned": (pa.array([2**64 - 1, 2, None], pa.uint64()), [str(2**64 - 1), "2"]),
    "categories": (pa.array([5, 6, None]).dictionary_encode(), [5, 6]),
    "UUIDs": (pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None], pa.uuid()), None),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_type_are_ids_and_a_null_is_none(kind: str, tmp_path: Path) -> None:
    values, expected = IDS[kind]
    expected = expected or [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]
    table = pa.table({"text": ["a", "b", "c"], "id": values})
    pq.write_table(table, tmp_path / "a.parquet")
    for corpus in (corpus_of(table), open_corpus([tmp_path / "a.parquet"])):
        with corpus:
            [batch] = list(corpus.scan())
            assert batch.ids.to_pylist() == expected
            assert dict(corpus.rejected.counts) == {"no id": 1}


def test_ids_that_pandas_wrote_as_doubles_are_whole_numbers_in_json(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1.0, "text": "a"}\n{"id": null, "text": "b"}\n{"id": 1e2, "text": "c"}\n')
    with open_corpus([tmp_path / "a.jsonl"]) as corpus:
        [batch] = list(corpus.scan())
        assert batch.ids.to_pylist() == ["1", "1e2"]
        assert dict(corpus.rejected.counts) == {"no id": 1}


RARE: dict[str, Callable[[], Any]] = {
    "runs": lambda: pc.run_end_encode(pa.array(["a", "a", "b"])),
    "runs in lists": lambda: pa.ListArray.from_arrays([0, 1, 3], pc.run_end_encode(pa.array(["a", "a", "b"]))),
    "list views": lambda: pa.array([["a"], None, ["b", "c"]], pa.list_view(pa.string_view())),
    "sliced list views": lambda: pa.array([["z"], ["a"], None], pa.list_view(pa.string_view())).slice(1),
    "lists of views": lambda: pa.array([["a", "b"], None], pa.list_(pa.string_view())),
    "fixed lists of views": lambda: pa.array([["a", "b"], None], pa.list_(pa.string_view(), 2)),
    "categories in lists": lambda: pa.array([["a", "a"], None], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "categories in objects": lambda: pa.array(
        [{"x": "a"}, None], pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))])
    ),
    "categories of views": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.uint32()), pa.array(["a", "b"]).cast(pa.string_view())
    ),
    "categories of numbers": lambda: pa.array([1, 1, None]).dictionary_encode(),
    "JSON": lambda: pa.array(['{"a":1}', None], pa.json_()),
}


@pytest.mark.parametrize("kind", RARE)
def test_rare_arrow_types_have_a_plain_one_with_the_same_values(kind: str) -> None:
    array = RARE[kind]()
    plain = plain_array(array)
    plain.validate(full=True)
    assert plain.type == plain_type(array.type)
    assert plain.to_pylist() == array.to_pylist()


def test_paths_lead_through_maps_and_objects_that_are_null() -> None:
    table = pa.table(
        {
            "m": pa.array([[("k", "a"), ("l", "b")], None, []], pa.map_(pa.string(), pa.string())),
            "s": pa.array([{"x": [{"y": "1"}, None, {"y": "2"}]}, None, {"x": None}]),
        }
    )
    assert find_in_table(table, "m.k").to_pylist() == ["a", None, None]
    assert find_in_table(table, "s.x[].y").to_pylist() == [b"1\n2", None, None]
    assert find_in_table(table, "s.x[2].y").to_pylist() == ["2", None, None]
    assert find_in_table(table.slice(1), "s.x[].y").to_pylist() == [None, None]
    assert find_in_table(table, "s.z") is None


def test_words_of_types() -> None:
    words = {
        pa.large_string(): "text",
        pa.uint64(): "whole number",
        pa.float16(): "number",
        pa.decimal128(5, 2): "number",
        pa.bool_(): "true or false",
        pa.timestamp("ns", "UTC"): "time",
        pa.list_(pa.string_view()): "list of texts",
        pa.list_(pa.int8()): "list of whole numbers",
        pa.list_(pa.list_(pa.string())): "list of lists of texts",
        pa.struct([("a", pa.int8()), ("b", pa.string())]): "object with a, b",
        pa.list_(pa.struct([("role", pa.string())])): "list of objects with role",
        pa.dictionary(pa.int8(), pa.string()): "text",
        pa.map_(pa.string(), pa.string()): "map",
        pa.null(): "empty",
    }
    assert {kind: type_words(kind) for kind in words} == words


def test_kept_rows_choose_the_rows_of_a_data_set() -> None:
    frame = frames("pandas").DataFrame(
        {"id": ["x", "y", "z"], "text": ["a b c d e f", "a b c d e f", "other words here"]}
    )
    result = nd.dedup(frame)
    assert frame[result.kept_rows]["id"].tolist() == result.kept == ["x", "z"]
    assert np.flatnonzero(result.kept_rows).tolist() == [0, 2]


def test_every_summary_names_the_columns(tmp_path: Path) -> None:
    path = write_input(
        tmp_path, "a.jsonl", [{"key": n, "body": f"text number {n} of all", "t": f"{2000 + n // 2}"} for n in range(6)]
    )
    options: dict[str, Any] = {"text_column": "body", "id_column": "key"}
    used = {"text": "body", "id": "key"}
    assert nd.dedup_files(path, **options).summary["columns"] == used
    assert nd.dedup_files(path, keep="newest", time_column="t", **options).summary["columns"] == used | {"time": "t"}
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    assert nd.dedup_files(path, against=copy, **options).summary["reference_columns"] == used
    with nd.open_files(path, **options) as corpus:
        explored = nd.explore(corpus, lengths=[1], examples=0)
        assert explored.as_dict()["columns"] == used
    with nd.open_files(path, clusters="t", **options) as corpus:
        assert nd.compare(corpus, recipes=["default"]).to_dict()["columns"] == used | {"clusters": "t"}
    found = nd.check_contamination(
        [{"text": "some words of a longer text"}],
        [{"q": ["some words of a longer text", "b"]}],
        columns=["q"],
        min_words=2,
    )
    assert found.summary["test_columns"] == {"text": "q[]", "id": None}
    assert found.summary["train_columns"] == {"text": "text", "id": None}
