"""Several columns that make one text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_files import encode_rows
from sentences import says

import neardup as nd
from neardup.api import corpus_from
from neardup.documents.records import joined_column
from neardup.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"id": 1, "title": "a rose", "text": "is a rose is a rose"},
    {"id": 2, "title": "", "text": "a rose is a rose is a rose"},
    {"id": 3, "title": "a tulip", "text": ""},
    {"id": 4, "title": "a rose is a rose", "text": "is a rose"},
]
ONE = ["a rose\nis a rose is a rose", "a rose is a rose is a rose", "a tulip", "a rose is a rose\nis a rose"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", ".arrow", ""])
def test_several_columns_make_one_text(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(encode_rows(ROWS, suffix or ".jsonl"))
    columns = ["title", "text"]
    if suffix:
        corpus = nd.open_files(path, text_column="title,text")
    else:
        nulled = [{name: value or None for name, value in row.items()} for row in ROWS]
        corpus = corpus_from(nulled, columns, None)
    with corpus:
        batches = list(corpus.scan())
        assert [text for batch in batches for text in batch.texts.to_pylist()] == ONE
        assert corpus.take([2, 0])["title"].to_pylist() == [ONE[2], ONE[0]]
        assert corpus.take([3])["text"].to_pylist() == ["is a rose"]
    result = nd.dedup(ROWS, text_column=columns, features="words:2", threshold=0.9)
    assert result.kept == [1, 3]
    assert result.table()["title"].to_pylist() == [ONE[0], ONE[2]]
    result.write(str(tmp_path / "kept.jsonl"))
    assert [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()] == [ROWS[0], ROWS[2]]


def test_several_columns_of_text_work_with_a_reference_and_an_index(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"features": "words:2", "threshold": 0.9}
    assert nd.dedup(ROWS[1:], text_column="title,text", against=ROWS[:1], **chosen).kept == [3]
    index = nd.build_index(ROWS[:1], tmp_path / "index", text_column=["title", "text"], **chosen)
    result = nd.dedup(ROWS[1:], text_column=["title", "text"], against=index)
    assert result.kept == [3]
    assert result.explain(2, 1).match


def test_missing_columns_and_columns_without_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"title": 5, "text": "a b"}\n{"id": 1}\n{"title": "t"}\n{"title": null, "text": "c\\ud800"}\n')
    with nd.open_files(path, text_column="text,title", id_column="") as corpus:
        assert [text for batch in corpus.scan() for text in batch.texts.to_pylist()] == ["t"]
        assert sum(corpus.rejected.counts.values()) == 3
    for wrong, part in (("text,body", "'body'"), ("text,text", "once"), ([], "once"), (["text", ""], "once")):
        with pytest.raises(InputError) as caught:
            nd.open_files(path, text_column=wrong)
        assert says(caught.value, part)
    strange = nd.dedup({"a,b": ["x y", "x y"], "c": ["1", "2"]}, text_column="a,b", id_column="")
    assert strange.kept == [0]


TEXTS = st.lists(st.tuples(*[st.sampled_from([None, "", "a", "b c", "日本"])] * 3), max_size=6)


@given(TEXTS, st.sampled_from([pa.large_string(), pa.large_binary()]))
def test_columns_are_joined_row_by_row(rows: list[tuple[str | None, ...]], kind: pa.DataType) -> None:
    columns = [pa.array([row[at] for row in rows], kind) for at in range(3)]
    texts = [None if row == (None,) * 3 else "\n".join(filter(None, row)) for row in rows]
    assert joined_column(columns).equals(pa.array(texts, kind))
