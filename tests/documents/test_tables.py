"""Data in memory, and the columns of texts: every form is read; what does not fit is refused."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_files import ROWS, encode_rows, full_mask, texts_of
from sentences import says

import neardup as nd
from neardup.documents import columnar as columnar_module
from neardup.documents import corpus_of, join_ids, join_order, open_corpus, repeated_ids
from neardup.documents.records import joined_column
from neardup.errors import InputError

TEXTS = [row["text"] for row in ROWS]


TABLE = pa.Table.from_pylist(ROWS)


class _Dataset:
    """What a Hugging Face dataset offers without the Arrow interface."""

    features: dict[str, str] = {}  # noqa: RUF012

    def with_format(self, _: str) -> _Dataset:
        return self

    def __getitem__(self, _: slice) -> pa.Table:
        return TABLE


class _Streamed:
    """What a Hugging Face dataset offers that is read as it comes: no item by its number."""

    features = None

    def with_format(self, _: str) -> _Streamed:
        return self

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        yield from (TABLE.slice(begin, 13) for begin in range(0, len(TABLE), 13))


def frames(package: str) -> Any:
    """Return pandas or Polars, which take long to import."""
    return importlib.import_module(package)


FORMS: dict[str, Callable[[], Any]] = {
    "list of texts": lambda: TEXTS,
    "iterator of texts": lambda: iter(TEXTS),
    "pandas series": lambda: frames("pandas").Series(TEXTS),
    "Polars series": lambda: frames("polars").Series(TEXTS),
    "array": lambda: pa.array(TEXTS),
    "chunked array": lambda: pa.chunked_array([TEXTS[:20], TEXTS[20:]]),
    "array of views": lambda: pa.array(TEXTS).cast(pa.string_view()),
    "NumPy array": lambda: np.array(TEXTS, dtype=object),
    "pandas frame": lambda: frames("pandas").DataFrame(ROWS),
    "Polars frame": lambda: frames("polars").DataFrame(ROWS),
    "lazy frame": lambda: frames("polars").LazyFrame(ROWS),
    "table": lambda: TABLE,
    "batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=7)),
    "dict of columns": lambda: {"id": range(len(ROWS)), "text": TEXTS},
    "dict of series": lambda: {"text": frames("pandas").Series(TEXTS)},
    "dataset": lambda: _Dataset(),
    "streaming dataset": lambda: _Streamed(),
    "iterator of dicts": lambda: iter(ROWS),
    "dicts of several keys": lambda: [*ROWS[:-1], {**ROWS[-1], "more": 1}],
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_data_in_memory_are_read(form: str, tmp_path: Path) -> None:
    with corpus_of(FORMS[form]()) as corpus:
        assert texts_of(corpus) == TEXTS
        assert corpus.total_bytes == sum(len(text.encode()) for text in TEXTS)
        assert corpus.take([3, 1]).column("text").to_pylist() == [TEXTS[3], TEXTS[1]]
        assert corpus.copy(full_mask(corpus), str(tmp_path / "o.parquet")) == len(TEXTS)
        assert corpus.copy(full_mask(corpus), str(tmp_path / "o.jsonl")) == len(TEXTS)


def test_a_dict_of_splits_becomes_one_table() -> None:
    with corpus_of({"train": _Dataset(), "test": _Streamed()}, id_column="") as corpus:
        assert texts_of(corpus) == TEXTS + TEXTS
        assert corpus.take([0, len(TEXTS)])["split"].to_pylist() == ["train", "test"]


def test_dicts_without_a_text_are_rejected() -> None:
    with corpus_of([{"text": "a", "n": 1}, {"n": 2}, None, {"text": None}]) as corpus:
        assert texts_of(corpus) == ["a"]
        assert dict(corpus.rejected.counts) == {"no text": 3}


def test_broken_texts_in_memory_are_rejected() -> None:
    with corpus_of(["a", None, "b\ud800", ""]) as corpus:
        assert texts_of(corpus) == ["a", ""]
        assert dict(corpus.rejected.counts) == {"no text": 1, "not valid UTF-8": 1}
        assert says(corpus.rejected.examples[0], "in memory, row 1: no text")


@pytest.mark.parametrize("data", [[], {"text": []}, pa.array([], pa.string())])
def test_data_without_rows_has_no_documents(data: Any) -> None:
    with corpus_of(data) as corpus:
        assert texts_of(corpus) == []


@pytest.mark.parametrize(
    "data", ["text", b"text", 17, [1, 2], ["a", 1], {"a": ["x"], "b": []}, None, {}, [{"text": "a"}, "b"]]
)
def test_other_data_is_refused_in_one_sentence(data: Any) -> None:
    with pytest.raises(InputError) as raised:
        corpus_of(data)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("target", [100, 10_000])
def test_small_batches_are_merged_and_large_ones_read_in_slices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: int
) -> None:
    monkeypatch.setattr("neardup.documents.records.MIN_BATCH_BYTES", 300)
    monkeypatch.setattr(columnar_module, "TARGET_BYTES", target)
    texts = [*(["x" * 30] * 40), "y" * 1000, *(["z"] * 10)]
    with pa.ipc.new_file(str(tmp_path / "one.arrow"), pa.schema({"text": pa.string()})) as writer:
        writer.write_table(pa.table({"text": texts}))
    for corpus in (corpus_of(texts), open_corpus([tmp_path / "one.arrow"])):
        with corpus:
            batches = list(corpus.scan())
        assert [text for batch in batches for text in batch.texts.to_pylist()] == texts
        assert all(batch.texts.offset == 0 and len(batch.rows) == len(batch.texts) for batch in batches)
        assert np.concatenate([batch.rows for batch in batches]).tolist() == list(range(51))
        assert len(batches) == (1 if target == 10_000 else pytest.approx(6, abs=1))


KEYS = st.lists(st.integers(0, 9))


@given(KEYS, st.integers(0, 3))
def test_repeated_ids_are_those_of_a_plain_loop(keys: list[int], first: int) -> None:
    expected = [place for place, key in enumerate(keys[first:]) if key in keys[first:][:place]]
    assert repeated_ids(pa.array(keys, pa.int64())[first:]).tolist() == expected
    strings = pa.array([str(key) for key in keys], pa.large_string())[first:]
    assert repeated_ids(strings).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.documents.records._MAX_ENCODED", 0)
        assert repeated_ids(strings).tolist() == expected
        # Strings with one hash are not called equal for it.
        patch.setattr("neardup.documents.records._hashes", lambda strings: np.zeros(len(strings), np.uint64))
        assert repeated_ids(strings).tolist() == expected


def test_ids_and_order_values_of_batches_are_joined_in_a_common_type() -> None:
    assert join_ids([pa.array([1]), pa.array([2])]).type == pa.int64()
    assert join_ids([pa.array([1]), pa.array(["x"], pa.large_string())]).to_pylist() == ["1", "x"]
    assert join_ids([]).to_pylist() == []
    strings = [pa.array(values, pa.large_string()) for values in (["10"], ["9", "", None])]
    assert join_order(strings).to_pylist() == [10, 9, None, None]
    assert join_order([pa.array([1]), pa.array([1.5]), pa.nulls(1)]).to_pylist() == [1.0, 1.5, None]
    assert join_order([pa.array(["2020"]), pa.array(["x"])]).to_pylist() == ["2020", "x"]
    days = pa.array([1], pa.date32())
    assert join_order([days]).type == pa.date32()
    with pytest.raises(InputError, match=r"'day' holds values of different types \(date and number\)"):
        join_order([days, pa.array([1.5])], "day")


TITLED: list[dict[str, Any]] = [
    {"id": 1, "title": "a rose", "text": "is a rose is a rose"},
    {"id": 2, "title": "", "text": "a rose is a rose is a rose"},
    {"id": 3, "title": "a tulip", "text": ""},
    {"id": 4, "title": "a rose is a rose", "text": "is a rose"},
]


JOINED = ["a rose\nis a rose is a rose", "a rose is a rose is a rose", "a tulip", "a rose is a rose\nis a rose"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_several_columns_make_one_text(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(encode_rows(TITLED, suffix))
    with nd.open_files(path, text_column="title,text") as corpus:
        assert texts_of(corpus) == JOINED
        assert corpus.take([2, 0])["title"].to_pylist() == [JOINED[2], JOINED[0]]
        assert corpus.take([3])["text"].to_pylist() == ["is a rose"]


def test_several_columns_in_memory_make_one_text_with_a_reference_and_an_index_too(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"text_column": ["title", "text"], "features": "words:2", "threshold": 0.9}
    result = nd.dedup(TITLED, **chosen)
    assert (result.kept, result.table()["title"].to_pylist()) == ([1, 3], [JOINED[0], JOINED[2]])
    result.write(str(tmp_path / "kept.jsonl"))
    assert [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()] == [TITLED[0], TITLED[2]]
    assert nd.dedup(TITLED[1:], against=TITLED[:1], **chosen).kept == [3]
    index = nd.build_index(TITLED[:1], tmp_path / "index", **chosen)
    again = nd.dedup(TITLED[1:], text_column="title,text", against=index)
    assert again.kept == [3]
    assert again.explain(2, 1).match


def test_missing_columns_and_columns_without_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"title": 5, "text": "a b"}\n{"id": 1}\n{"title": "t"}\n{"title": null, "text": "c\\ud800"}\n')
    with nd.open_files(path, text_column="text,title", id_column="") as corpus:
        assert [text for batch in corpus.scan() for text in batch.texts.to_pylist()] == ["t"]
        assert sum(corpus.rejected.counts.values()) == 3
    refusals: list[tuple[Any, str]] = [
        ("text,body", "'body'"),
        ("text,text", "once"),
        ([], "once"),
        (["text", ""], "once"),
        (5, "once"),
    ]
    for wrong, part in refusals:
        with pytest.raises(InputError, match=part):
            nd.open_files(path, text_column=wrong)
    strange = nd.dedup({"a,b": ["x y", "x y"], "c": ["1", "2"]}, text_column="a,b", id_column="")
    assert strange.kept == [0]


TRIPLES = st.lists(st.tuples(*[st.sampled_from([None, "", "a", "b c", "日本"])] * 3), max_size=6)


@given(TRIPLES, st.sampled_from([pa.large_string(), pa.large_binary()]))
def test_columns_are_joined_row_by_row(rows: list[tuple[str | None, ...]], kind: pa.DataType) -> None:
    columns = [pa.array([row[at] for row in rows], kind) for at in range(3)]
    texts = [None if row == (None,) * 3 else "\n".join(filter(None, row)) for row in rows]
    assert joined_column(columns).equals(pa.array(texts, kind))
