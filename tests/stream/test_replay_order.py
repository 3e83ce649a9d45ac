"""Documents in order of time: what is a time, who waits for whom, who is rejected."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.documents import Corpus, corpus_of, open_corpus
from neardup.errors import InputError, OutputError
from neardup.stream.replay import NO_TIME, Item, Timeline, read_items, read_timeline, reject_undated


def silent(stage: str, done: int, total: int | None) -> None:
    """Tell nobody."""


def opened(rows: list[dict[str, Any]]) -> Corpus:
    return corpus_of(pa.Table.from_pylist(rows), order_column="time")


def surveyed(corpus: Corpus, *, as_listed: bool = False) -> Timeline:
    return read_timeline(corpus, as_listed=as_listed, report=silent)


def plainly(rows: list[dict[str, Any]], *, as_listed: bool) -> list[Item]:
    """The items again: filter, then sort."""
    found = []
    for at, row in enumerate(rows):
        if row["time"] is not None:
            size = len(row["text"].encode())
            found.append(Item(at, row["id"], row["text"], row["time"] * 1_000_000, size))
    return found if as_listed else sorted(found, key=lambda item: item.time)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
times = st.none() | st.integers(0, 5) | st.integers(-(10**9), 0) | st.integers(10**8, 10**9)
documents = st.lists(
    st.fixed_dictionaries({"id": st.text("abc", max_size=3), "text": texts, "time": times}),
    unique_by=lambda row: row["id"],
)


@given(documents, st.booleans(), st.sampled_from([0, 3, 10**9]))
def test_documents_come_in_order(rows: list[dict[str, Any]], as_listed: bool, waiting: int) -> None:
    if rows and all(row["time"] is None for row in rows):
        return
    table = pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in (("id", "str"), ("text", "str"))}
        | {"time": pa.array([row["time"] for row in rows], pa.int64())}
    )
    corpus = corpus_of(table, order_column="time")
    timeline = surveyed(corpus, as_listed=as_listed)
    expected = plainly(rows, as_listed=as_listed)
    assert list(read_items(corpus, timeline, max_memory=waiting)) == expected
    assert timeline.text_bytes == sum(item.size for item in expected)
    reject_undated(corpus, timeline)
    assert corpus.rejected.counts[NO_TIME] == sum(row["time"] is None for row in rows)


def test_files_of_several_batches(tmp_path: Path) -> None:
    """More than one batch, through the file and past it, compressed JSON lines and Parquet together."""
    rng = random.Random(4)
    rows = [
        {"id": str(at), "text": f"{at} é " * rng.randint(0, 900), "time": rng.randint(10**8, 10**9)}
        for at in range(9000)
    ]
    half = len(rows) // 2
    lines, columns = tmp_path / "a.jsonl", tmp_path / "b.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows[:half]))
    pq.write_table(pa.Table.from_pylist(rows[half:]), columns, row_group_size=700)
    with open_corpus([lines, columns], order_column="time") as corpus:
        timeline = surveyed(corpus)
        expected = plainly(rows, as_listed=False)
        assert list(read_items(corpus, timeline, max_memory=1 << 20)) == expected
        assert list(read_items(corpus, timeline)) == expected


@pytest.mark.parametrize("waiting", [0, 10**9])
@pytest.mark.parametrize("change", ["longer", "shorter", "more", "fewer"])
def test_an_input_that_changes_is_noticed(tmp_path: Path, change: str, waiting: int) -> None:
    path = tmp_path / "c.jsonl"
    rows = [{"id": str(at), "text": f"text {at}", "time": 10 - at} for at in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open_corpus([path], order_column="time") as corpus:
        timeline = surveyed(corpus)
        changed = {"more": [*rows, rows[0]], "fewer": rows[:2]}.get(change, rows)
        text = {"longer": "text one", "shorter": "t"}.get(change, "text 1")
        changed[1] = changed[1] | {"text": text}
        path.write_text("".join(json.dumps(row) + "\n" for row in changed))
        with pytest.raises(InputError, match="changed"):
            list(read_items(corpus, timeline, max_memory=waiting))


def test_a_full_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *rest: object) -> None:
            """Nothing to close."""

        close, closed = __exit__, True

        def write(self, data: object) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("neardup.stream.replay.tempfile.TemporaryFile", lambda **_: Full())
    corpus = opened([{"text": "b", "time": 2}, {"text": "a", "time": 1}])
    with pytest.raises(OutputError) as caught:
        list(read_items(corpus, surveyed(corpus), max_memory=0))
    assert says(caught.value, "No space left", "sort the input", "by time")
