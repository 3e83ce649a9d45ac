"""The Python interface: what goes in, what a result answers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import naive
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from saying import says

import neardup as nd

NEWS = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million"
LATER = NEWS.replace("tuesday", "wednesday")
OTHER = "a late frost has damaged two thirds of the cherry crop in the northern valleys growers say"


def corpus(count: int = 200) -> list[str]:
    rng = random.Random(3)
    texts: list[str] = []
    for _ in range(count):
        if texts and rng.random() < 0.5:
            words = rng.choice(texts).split()
            for _ in range(rng.choice([0, 1, 2])):
                words[rng.randrange(len(words))] = f"w{rng.randrange(500)}"
        else:
            words = [f"w{rng.randrange(500)}" for _ in range(40)]
        texts.append(" ".join(words))
    return texts


def test_a_result_answers_who_and_why() -> None:
    result = nd.dedup([NEWS, OTHER, LATER, NEWS.upper() + "!"], threshold=0.4)
    assert result.kept == [0, 1]
    assert list(result) == [0, 1]
    assert [tuple(d) for d in result.dropped] == [(2, 0, pytest.approx(8 / 18), 1), (3, 0, 1.0, 1)]
    assert result.dropped[-1].id == 3
    assert [d.id for d in result.dropped[:1]] == [2]
    assert [(p.left, p.right) for p in result.pairs] == [(0, 2), (0, 3), (2, 3)]
    assert len(result.pairs) == 3
    family = result.families[0]
    assert (family.members, family.pairs, family.complete) == ([0, 2, 3], 3, True)
    assert family.smallest == pytest.approx(8 / 18)
    why = result.explain(0, 2)
    assert why.shared == 8
    assert why.match
    assert "2 kept, 2 dropped" in repr(result)


def test_at_a_higher_threshold_equals_another_run() -> None:
    texts = corpus()
    low = nd.dedup(texts, threshold=0.3, features="words:2")
    for threshold in (0.3, 0.5, 0.7, 0.9, 1.0):
        narrowed, again = low.at(threshold), nd.dedup(texts, threshold=threshold, features="words:2")
        assert narrowed.kept == again.kept
        assert list(narrowed.pairs) == list(again.pairs)
        assert narrowed.families == again.families
        assert narrowed.summary["fingerprint"] == again.summary["fingerprint"]
    with pytest.raises(nd.RecipeError) as caught:
        low.at(0.2)
    assert says(caught.value, "threshold 0.2 is below", "run's 0.3")


def test_borderline_pairs_are_those_that_only_just_match() -> None:
    result = nd.dedup(corpus(), threshold=0.4, features="words:2")
    found = result.borderline(5)
    weakest = sorted(p.similarity for p in result.pairs if p.similarity < 1)[:5]
    assert [p.similarity for p in found] == weakest


@pytest.mark.parametrize("keep", ["first", "longest", "shortest", "newest", "oldest", "score", "score:lowest"])
def test_keep_orders_are_those_of_naive(keep: str) -> None:
    texts = corpus()
    rng = random.Random(1)
    scores: list[int | None] = [rng.choice([None, *range(50)]) for _ in texts]
    times = [f"2024-01-{rng.randrange(1, 29):02d}T10:00:00+0{rng.randrange(5)}:00" for _ in texts]
    table = pa.table({"text": texts, "score": scores, "timestamp": times})
    result = nd.dedup(table, threshold=0.4, features="words:2", keep=keep)
    at = range(len(texts))
    moments = [pd.Timestamp(t).timestamp() for t in times]
    order = {
        "first": lambda: list(at),
        "longest": lambda: sorted(at, key=lambda d: -len(texts[d])),
        "shortest": lambda: sorted(at, key=lambda d: len(texts[d])),
        "newest": lambda: sorted(at, key=lambda d: -moments[d]),
        "oldest": lambda: sorted(at, key=lambda d: moments[d]),
        "score": lambda: sorted(at, key=lambda d: (scores[d] is None, -(scores[d] or 0))),
        "score:lowest": lambda: sorted(at, key=lambda d: (scores[d] is None, scores[d] or 0)),
    }[keep]()
    pairs = {(p.left, p.right): p.similarity for p in result.pairs}
    expected = naive.keepers(len(texts), pairs, order)
    assert {d.id: (d.keeper, d.similarity) for d in result.dropped} == expected
    if keep.startswith("score"):
        assert result.summary["without_keep_value"] == scores.count(None)


def test_a_keep_order_without_values_is_refused() -> None:
    table = pa.table({"text": [NEWS, LATER], "score": ["", ""]})
    with pytest.raises(nd.NeardupError, match="score"):
        nd.dedup(table, keep="points")
    with pytest.raises(nd.NeardupError, match="time"):
        nd.dedup(table, keep="newest")


FRAME = {"id": ["a", "b", "c"], "text": [NEWS, OTHER, NEWS], "n": [1, 2, 3]}


@pytest.mark.parametrize(
    "data",
    [pd.DataFrame(FRAME), pl.DataFrame(FRAME), pa.table(FRAME), pa.table(FRAME).to_batches()[0], FRAME],
    ids=["pandas", "polars", "pyarrow", "record batch", "dict"],
)
def test_tables_of_every_kind(data: Any, tmp_path: Path) -> None:
    result = nd.dedup(data)
    assert result.kept == ["a", "b"]
    assert result.dropped[0] == ("c", "a", 1.0, 1)
    assert result.table().to_pydict() == {"id": ["a", "b"], "text": [NEWS, OTHER], "n": [1, 2]}
    result.write(str(tmp_path / "clean.parquet"))
    assert pl.read_parquet(tmp_path / "clean.parquet").to_dict(as_series=False) == result.table().to_pydict()
    assert result.duplicates().to_pydict() == {
        "dropped": ["c"],
        "keeper": ["a"],
        "similarity": [1.0],
        "family": [1],
    }
    assert pl.DataFrame(result.pairs).rows() == [("a", "c", 1.0)]
    assert result.pairs.to_pandas().shape == (1, 3)
    with pytest.raises(nd.UnknownDocument, match="no document has the id 'z'"):
        result.explain("a", "z")


def test_texts_that_are_missing_are_rejected_and_counted() -> None:
    result = nd.dedup([NEWS, None, "", NEWS])
    assert result.kept == [0, 2]
    assert result.dropped[0].id == 3
    assert sum(result.summary["rejected"].values()) == 1
    with pytest.raises(nd.UnknownDocument):
        result.explain(0, 1)


def test_repeated_ids_are_refused_and_rows_numbered_where_asked() -> None:
    table = pa.table({"id": [1, 2, 1], "text": [NEWS, OTHER, LATER]})
    with pytest.raises(nd.InputError) as caught:
        nd.dedup(table)
    assert says(caught.value, "1 document", "'id'", "1 in row 0 and row 2", "id_column=''")
    assert nd.dedup(table, id_column="").summary["documents"] == 3


def test_the_summary_is_json_and_adds_up() -> None:
    result = nd.dedup([*corpus(), "", "x"], threshold=0.5, features="words:2")
    summary = json.loads(json.dumps(result.summary))
    assert summary["documents"] == summary["kept"] + summary["dropped"] == 202
    assert summary["pairs"] == len(result.pairs)
    assert summary["families"] == len(result.families)
    assert summary["largest_family"] == max(len(f.members) for f in result.families)
    assert summary["text_bytes"] == sum(len(t) for t in corpus()) + 1
    assert [stage["name"] for stage in summary["stages"]] == ["read and features", "join", "keep"]


def test_nothing_and_one_document_are_answered_too() -> None:
    for texts in ([], ["alone"], [""]):
        result = nd.dedup(texts)
        assert result.kept == list(range(len(texts)))
        assert len(result.dropped) == len(result.pairs) == len(result.families) == 0
        assert result.duplicates().num_rows == 0
        assert result.borderline() == []
        assert result.table().num_rows == len(texts)


def test_files_give_what_the_same_rows_in_memory_give(tmp_path: Path) -> None:
    texts = corpus()
    for part in range(4):
        lines = [json.dumps({"text": t}) for t in texts[part * 50 : part * 50 + 50]]
        (tmp_path / f"part{part}.jsonl").write_text("\n".join(lines) + "\n")
    from_files = nd.dedup_files(tmp_path, features="words:2", threshold=0.5, threads=3, memory=1_000_000)
    in_memory = nd.dedup(texts, features="words:2", threshold=0.5, threads=1)
    assert from_files.kept == in_memory.kept
    assert list(from_files.pairs) == list(in_memory.pairs)
    assert from_files.summary["search"]["spilled_bytes"] > 0
    with from_files:
        assert from_files.table()["text"].to_pylist() == [texts[i] for i in in_memory.kept]


def test_threads_below_one_are_refused() -> None:
    with pytest.raises(nd.RecipeError, match="threads 0 is below 1"):
        nd.dedup(["a"], threads=0)
