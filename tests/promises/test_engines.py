"""One recipe, one answer: in memory and in a window, for any threads, budget, kind of table and cut of the input."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from promised_corpora import require_corpus, rows_of
from promised_engines import (
    BOTH_SIDES,
    COUNTS,
    QUESTIONS,
    Answer,
    Question,
    check_equal,
    in_a_window,
    in_memory,
    of_result,
    plainly,
    question_of,
    table_of,
    two_sides,
)

import neardup as nd


@pytest.mark.parametrize("corpus", COUNTS)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_an_endless_window_keeps_what_a_run_keeps(question: Question, corpus: str) -> None:
    require_corpus(corpus)
    table = table_of(corpus, COUNTS[corpus])
    if "index" in question.without:
        with pytest.raises(nd.NeardupError, match="tfidf"):
            in_a_window(table, **question.choices)
        return
    if question.needs_sample:
        with pytest.raises(nd.NeardupError, match="sample"):
            in_a_window(table, **question.choices)
    found = in_a_window(table, needs_sample=question.needs_sample, **question.choices)
    check_equal(found, in_memory(table, **question.choices))


def test_a_classifier_in_a_window_keeps_what_a_run_keeps(model: Path) -> None:
    table = table_of("newswire", 199)
    expected = in_memory(table, classifier=model)
    assert len(expected.dropped) > 50
    check_equal(in_a_window(table, classifier=model), expected)


#: What changes the work and not the answer.
RUN_OPTIONS: dict[str, dict[str, Any]] = {
    "one thread": {"threads": 1},
    "three threads": {"threads": 3},
    "a budget": {"memory": 2_000_000},
    "a budget and one thread": {"memory": 2_000_000, "threads": 1},
    "all pairs": {"pairs_per_document": None},
    "a margin": {"margin": 0.2},
}


@pytest.mark.parametrize("corpus", ["newswire", "adzuna", "reuters"])
@pytest.mark.parametrize("way", RUN_OPTIONS)
@pytest.mark.parametrize("name", ["default", "ddd", "jaccard", "containment", "clip"])
def test_threads_memory_and_margin_change_no_answer(name: str, way: str, corpus: str) -> None:
    require_corpus(corpus)
    choices = question_of(name).choices
    table = table_of(corpus, COUNTS[corpus])
    check_equal(in_memory(table, **choices, **RUN_OPTIONS[way]), _plain_run(corpus, name))


@cache
def _plain_run(corpus: str, name: str) -> Answer:
    choices = question_of(name).choices
    return in_memory(table_of(corpus, COUNTS[corpus]), **choices)


def _batches(table: pa.Table, size: int) -> pa.Table:
    return pa.Table.from_batches(table.combine_chunks().to_batches(max_chunksize=size))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_size_of_batches_changes_no_answer(size: int) -> None:
    table = table_of("newswire", 199)
    check_equal(in_memory(_batches(table, size), threshold=0.6), in_memory(table, threshold=0.6))


@pytest.mark.parametrize("kind", ["pandas", "polars", "texts"])
def test_the_kind_of_table_changes_no_answer(kind: str) -> None:
    table = table_of("newswire", 199)
    expected = in_memory(table, recipe="ddd")
    if kind == "texts":
        found = in_memory(table["text"].to_pylist(), recipe="ddd")
        names = table["id"].to_pylist()
        assert {names[row] for row in found.kept} == expected.kept
        return
    frame = pytest.importorskip(kind, reason=f"{kind} is not installed")
    data = table.to_pandas() if kind == "pandas" else frame.from_arrow(table)
    check_equal(in_memory(data, recipe="ddd"), expected)


@pytest.mark.parametrize("cuts", [[199], [1, 50, 199], [40, 80, 120, 160, 199]], ids=["one", "three", "five"])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_files_give_the_answer_of_the_table(ending: str, cuts: list[int], tmp_path: Path) -> None:
    table, begin = table_of("newswire", 199), 0
    files: list[Path] = []
    for end in cuts:
        part = table.slice(begin, end - begin)
        files.append(tmp_path / f"{len(files)}.{ending}")
        if ending == "parquet":
            pyarrow.parquet.write_table(part, files[-1], row_group_size=9)
        else:
            files[-1].write_text("".join(json.dumps(row) + "\n" for row in part.to_pylist()), "utf-8")
        begin = end
    with nd.dedup_files(files, recipe="ddd") as result:
        check_equal(of_result(result), in_memory(table, recipe="ddd"))
        assert result.table()["id"].to_pylist() == result.kept


@pytest.mark.parametrize("corpus", ["newswire", "adzuna", "r8"])
@pytest.mark.parametrize(
    ("measure", "threshold", "stricter"),
    [("jaccard", 0.5, [0.5, 0.6, 0.75, 0.85, 1.0]), ("overlap", 0.6, [0.7, 0.9]), ("euclidean", 8, [6, 3, 0.5])],
)
def test_a_result_moves_to_stricter_thresholds(
    measure: str, threshold: float, stricter: list[float], corpus: str
) -> None:
    require_corpus(corpus)
    table = table_of(corpus, COUNTS[corpus])
    with nd.dedup(table, measure=measure, threshold=threshold) as result:
        for value in stricter:
            moved = result.at(value)
            with nd.dedup(table, measure=measure, threshold=value) as other:
                check_equal(of_result(moved), of_result(other))
                assert [family.members for family in moved.families] == [family.members for family in other.families]
                assert moved.summary["dropped"] == other.summary["dropped"]
        with pytest.raises(nd.RecipeError):
            result.at(threshold + 1 if measure == "euclidean" else threshold - 0.1)


def test_a_margin_allows_lower_thresholds() -> None:
    table = table_of("newswire", 199)
    with nd.dedup(table, threshold=0.8, margin=0.3) as result:
        for threshold in (0.55, 0.7, 0.9):
            check_equal(of_result(result.at(threshold)), in_memory(table, threshold=threshold))


@pytest.mark.parametrize("threshold", [Fraction(3, 10), Fraction(17, 20), Fraction(1)], ids=str)
@pytest.mark.parametrize("corpus", ["newswire", "adzuna", "msrp", "r8"])
def test_the_default_recipe_equals_a_plain_comparison(corpus: str, threshold: Fraction) -> None:
    require_corpus(corpus)
    texts = {str(row["id"]): row["text"] for row in rows_of(corpus)[:400] if row["text"].isascii()}
    table = pa.table({"id": list(texts), "text": list(texts.values())})
    expected = plainly(texts, n=5, threshold=threshold)
    assert len(texts) > 100
    check_equal(in_memory(table, recipe="default", threshold=float(threshold)), expected)
    check_equal(in_a_window(table, recipe="default", threshold=float(threshold)), expected)


def test_a_store_gives_the_verdicts_of_an_index_in_memory(tmp_path: Path) -> None:
    rows = rows_of("newswire")
    documents = [nd.Document(row["id"], row["text"], row["timestamp"]) for row in rows]
    with nd.Index("ddd", window="24h") as index:
        expected = index.add_many(documents)
    verdicts = []
    for begin in range(0, len(documents), 45):
        # Each piece in a run of its own: the window comes back from the disk.
        with nd.Index("ddd", window="24h", path=tmp_path / "news.db") as index:
            verdicts += index.add_many(documents[begin : begin + 45])
            assert all(index.verdict_of(verdict.id) == verdict for verdict in verdicts[-45:])
    assert verdicts == expected


def test_all_interfaces_give_the_same_similarities() -> None:
    table = table_of("newswire", 199)
    with nd.dedup(table, threshold=0.5) as result:
        similar = {tuple(sorted((pair.left, pair.right))): pair.similarity for pair in result.pairs}
        for left, right, similarity in list(result.pairs)[::10]:
            why = result.explain(left, right)
            assert (why.match, why.similarity) == (True, similarity)
        drop = result.dropped[0]
        assert similar[tuple(sorted((drop.id, drop.keeper)))] == drop.similarity
    near = list(nd.neighbors(table, 3, threshold=0.5, of=["nw-0001"]))
    assert [(one.rank, one.similarity) for one in near] == [
        (rank + 1, similar[tuple(sorted(("nw-0001", one.neighbor)))]) for rank, one in enumerate(near)
    ]
    text = table["text"][0].as_py()
    with nd.Index("default", threshold=0.5, window=None, against="everything") as index:
        index.add_many(nd.Document(row["id"], row["text"]) for row in table.to_pylist())
        expected = {one.id: one.similarity for one in index.query(text)}
    found = nd.query(table, text, threshold=0.5).to_arrow().to_pylist()
    assert {row["document"]: row["similarity"] for row in found} == expected


@pytest.mark.parametrize(("corpus", "count"), [("newswire", 199), ("reuters", 700), ("peps", 40)])
@pytest.mark.parametrize(("threads", "indexed"), [(1, False), (2, True)])
def test_a_reference_drops_what_a_plain_comparison_drops(
    corpus: str, count: int, threads: int, indexed: bool, tmp_path: Path
) -> None:
    require_corpus(corpus)
    new, old, expected = two_sides(corpus, count)
    reference = nd.build_index(old, tmp_path / "old", **BOTH_SIDES) if indexed else old
    found = of_result(nd.dedup(new, against=reference, threads=threads, **BOTH_SIDES))
    assert found.kept == expected.kept
    assert found.dropped == expected.dropped
    assert expected.dropped or corpus == "reuters"
