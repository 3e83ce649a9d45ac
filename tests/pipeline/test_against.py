"""A fixed side: new documents against a reference that stays, held equal to all pairs compared plainly."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import naive
import pyarrow as pa
import pytest
from classifiers import DATED, make_classifier, texts
from hypothesis import given
from hypothesis import strategies as st
from references import ENGINES, MEASURES, NEWS, OTHER, SMALL, WORDS, check, corpus, of_both
from sentences import says

import neardup as nd
from neardup.errors import InputError, RecipeError
from neardup.search import bounded_join


@given(WORDS, WORDS, st.sampled_from(MEASURES), st.integers(1, 3), st.booleans(), st.integers(0, 3))
def test_pairs_across_sides_are_those_of_a_plain_comparison(
    new: list[str], old: list[str], rule: tuple[str, float], threads: int, spare: bool, shortest: int
) -> None:
    measure, threshold = rule
    sets = [naive.grams(text, "words", "words", 1, False) for text in new + old]
    pairs = naive.all_pairs(sets, measure, Fraction(str(threshold)))
    result = nd.dedup(
        new,
        against=old,
        features="words:1",
        normalize="words",
        measure=measure,
        threshold=threshold,
        keep="shortest" if shortest else "first",
        threads=threads,
        pairs_per_document=0 if spare else None,
    )
    order = sorted(range(len(new)), key=lambda row: len(new[row])) if shortest else list(range(len(new)))
    check(result, len(new), pairs, order)


def sides(count: int) -> tuple[list[str], list[str]]:
    """Copies of some texts on both sides."""
    found = corpus(count)
    return found[: count // 3], found[count // 3 :]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_compares_the_input_with_the_reference(engine: str) -> None:
    (new, old), choices = sides(200), ENGINES[engine]
    pairs = of_both(new, old, **choices)
    assert sum(left < len(new) <= right for left, right in pairs) > 20
    check(nd.dedup(new, against=old, threads=2, **choices), len(new), pairs, list(range(len(new))))


@pytest.mark.parametrize("way", ["held", "candidates", "file"])
def test_recomputed_features_give_the_same_pairs_across_sides(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "held":
        monkeypatch.setattr(bounded_join, "_MIN_STORED", 0)
    if way == "file":
        monkeypatch.setattr(bounded_join, "_MAX_CANDIDATES", 0)
    new, old = sides(250)
    for choices in (ENGINES["sets"], ENGINES["clipped"]):
        pairs = of_both(new, old, **choices)
        result = nd.dedup(new, against=old, memory=SMALL, **choices)
        check(result, len(new), pairs, list(range(len(new))))
        assert result.summary["search"]["passes_over_the_input"] > 1


@pytest.mark.parametrize("memory", [None, SMALL])
def test_beyond_the_pair_limit_only_pairs_with_kept_documents_are_found(
    memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    (new, old), choices = sides(250), ENGINES["sets"]
    result = nd.dedup(new, against=old, pairs_per_document=0, memory=memory, **choices)
    assert not result.summary["all_pairs"]
    order = list(range(len(new)))
    check(result, len(new), of_both(new, old, **choices), order)
    whole = nd.dedup(new, against=old, pairs_per_document=None, **choices)
    assert list(result.dropped) == [
        drop._replace(family=limited.family) for drop, limited in zip(whole.dropped, result.dropped, strict=True)
    ]


def test_a_classifier_decides_across_sides() -> None:
    choices: dict[str, Any] = {"classifier": make_classifier(DATED), "title_column": "title", "time_column": "time"}
    known = texts(80, 5).table.select(["text", "title", "time"])
    new, old = known.slice(0, 30), known.slice(30)
    pairs = {(pair.left, pair.right): pair.similarity for pair in nd.dedup(known, **choices).pairs}
    check(nd.dedup(new, against=old, **choices), 30, pairs, list(range(30)))
    with pytest.raises(RecipeError, match="title"):
        nd.dedup(new, against=old.rename_columns(["text", "headline", "when"]), **choices)


def test_documents_are_named_by_the_ids_of_their_side() -> None:
    new = pa.table({"id": [7, 8, 9], "text": [NEWS, OTHER, NEWS + " said"]})
    old = pa.table({"id": [8, 3], "body": [NEWS, "x y z"], "text": [1, 2]})
    result = nd.dedup(new, against=old, threshold=0.5)
    assert result.kept == [8]
    assert result.duplicates().select(["dropped", "keeper", "keeper_from"]).to_pylist() == [
        {"dropped": 7, "keeper": 8, "keeper_from": "reference"},
        {"dropped": 9, "keeper": 8, "keeper_from": "reference"},
    ]
    assert [drop.keeper_from for drop in result.dropped] == ["reference", "reference"]
    assert {pair.right_from for pair in result.pairs} == {"input", "reference"}
    assert result.families[0].members == [7, 9]
    assert result.families[0].reference == (8,)
    assert result.explain(7, 8).shared == 0
    assert result.table()["id"].to_pylist() == [8]
    named = nd.dedup(new, against={"id": ["a", "b"], "text": [NEWS, "x"]}, threshold=0.5)
    assert named.kept == [8]
    assert named.duplicates()["dropped"].to_pylist() == [7, 9]
    assert named.duplicates()["keeper"].to_pylist() == ["a", "a"]
    assert named.pairs.to_arrow()["right"].to_pylist() == ["9", "a", "a"]


def test_the_same_documents_on_both_sides_are_refused(tmp_path: Path) -> None:
    data = [NEWS, OTHER]
    with pytest.raises(RecipeError, match="data itself"):
        nd.dedup(data, against=data)
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for name in (path, other):
        name.write_text('{"text": "a b c"}\n')
    (tmp_path / "link.jsonl").symlink_to(path)
    for same in (path, tmp_path, tmp_path / "link.jsonl", [other, path]):
        with pytest.raises(InputError) as caught:
            nd.dedup_files(path, against=same)
        assert says(caught.value, ".jsonl", "input and as reference", "leave it out")
    assert nd.dedup_files(path, against=other).kept == []
    with nd.open_files(other) as opened:
        assert nd.dedup(["a b c"], against=opened).kept == []


def test_repeated_ids_of_a_reference_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        nd.dedup([NEWS], against={"id": ["a", "a"], "text": [NEWS, OTHER]})
    assert says(caught.value, "'a'", "id_column=''")
