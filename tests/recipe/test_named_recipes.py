"""The recipes that come with the package: each runs on whatever there is."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from fractions import Fraction
from functools import cache

import naive_features
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT
from sentences import says

import neardup as nd
from neardup.errors import RecipeError
from neardup.features import reading
from neardup.recipe import Recipe, load_recipe, names, parse

CORNELL = ROOT.parent / "shared" / "data" / "cornell"


def test_named_recipes_differ_and_can_be_saved() -> None:
    recipes = [load_recipe(name) for name in names()]
    assert len({recipe.fingerprint for recipe in recipes}) == len(recipes)
    assert [parse(recipe.to_toml(), "saved") for recipe in recipes] == recipes


@cache
def newswire() -> list[str]:
    lines = (ROOT / "examples" / "newswire.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def pairs_of(result: nd.Result) -> list[tuple[int, int, float]]:
    return [(p.left, p.right, p.similarity) for p in result.pairs]


@pytest.mark.parametrize("name", names())
def test_every_recipe_runs_on_the_newswire(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = newswire()
    result = nd.dedup(texts, recipe=name, threads=1)
    once = pairs_of(result)
    summary = result.summary
    assert summary["documents"] == len(texts) == summary["kept"] + summary["dropped"]
    assert 0 < summary["dropped"] < len(texts) / 2
    undecided = result._matches.representative < 0
    assert summary["undecidable"] == undecided.sum() < len(texts) / 3
    # Equal texts match, unless they cannot be decided; then none of them matches anything.
    places = defaultdict(list)
    for place, text in enumerate(texts):
        places[text].append(place)
    copies = {(i, j) for group in places.values() for i in group for j in group if i < j}
    assert len(copies) >= 18
    decided = {(i, j) for i, j in copies if not undecided[i]}
    found = {(left, right): similarity for left, right, similarity in once}
    assert decided == copies & found.keys()
    assert all(found[pair] == 1.0 for pair in decided)
    assert not any(undecided[i] or undecided[j] for i, j in found)
    if name == "checksum":
        assert found.keys() == decided
    else:
        assert len(found) > len(decided)
    # Threads, pieces and another run change nothing.
    monkeypatch.setattr(reading, "_PIECE", 3000)
    for threads in (1, 2):
        again = nd.dedup(texts, recipe=name, threads=threads)
        assert pairs_of(again) == once
        assert again.kept == result.kept
        assert again.duplicates().equals(result.duplicates())
        assert again.summary["fingerprint"] == summary["fingerprint"]


def answer(texts: list[str], name: str) -> nd.Result | str:
    """The result, or why there is none."""
    try:
        return nd.dedup(texts, recipe=name, threads=1)
    except RecipeError as error:
        return str(error)


@settings(max_examples=12)
@given(st.lists(st.text(max_size=40) | st.text("the a is fox ran. 東京,\u0301\n", max_size=60), max_size=6), st.data())
@pytest.mark.parametrize("name", names())
def test_every_recipe_takes_any_text(name: str, texts: list[str], data: st.DataObject) -> None:
    texts = texts + (data.draw(st.permutations(texts)) if texts else [])
    result = answer(texts, name)
    if isinstance(result, str):
        # Of few documents no word may be of middling frequency.
        assert name == "imatch"
        assert "leaves none of the" in result
        assert "\n" not in result
        return
    undecided = np.asarray(result._matches.representative) < 0
    found = {(p.left, p.right): p.similarity for p in result.pairs}
    for (left, right), similarity in found.items():
        assert 0 < similarity <= 1
        assert not undecided[left]
        assert not undecided[right]
    for i in range(len(texts)):
        assert texts[i] or undecided[i]
        for j in range(i):
            if texts[i] == texts[j] and not undecided[i]:
                assert found[j, i] == 1.0
    assert result.summary["undecidable"] == undecided.sum()


def test_a_lexicon_without_words_is_refused() -> None:
    with pytest.raises(RecipeError) as refused:
        nd.dedup(["fox ran off", "owl sat down"], recipe="imatch")
    assert says(refused.value, "clip 'idf:0.2:0.8'", "none of the 6", "2 documents", "widen its bounds")


def test_ddd_is_half_exact_by_content() -> None:
    # The paper's own example of a normal form; 9 of the 15 and 12 q-grams of two of these are shared.
    texts = ["A rose is a flower", "A rose, is a flower!", "a rose is a flower", "A rose is a tulip"]
    result = nd.dedup(texts, recipe="ddd", threshold=0.5)
    grams = [set(naive_features.features(text, "qgrams:4", "compact")) for text in texts]
    expected = [
        (i, j, len(grams[i] & grams[j]) / max(len(grams[i]), len(grams[j]))) for i in range(4) for j in range(i + 1, 4)
    ]
    assert pairs_of(result) == [(i, j, s) for i, j, s in expected if s >= 0.5]
    assert (0, 1, 1.0) in pairs_of(result)


needs_cornell = pytest.mark.skipif(not CORNELL.is_dir(), reason="the corpora are not in ../shared/data")


@pytest.mark.shared
@needs_cornell
def test_the_program_of_the_course_finds_its_ten_pairs() -> None:
    result = nd.dedup_files(CORNELL / "docs", recipe="cornell")
    found = {frozenset((p.left, p.right)): p.similarity for p in result.pairs}
    with open(CORNELL / "pairs.csv", encoding="utf-8", newline="") as file:
        ten = {frozenset((row["id1"], row["id2"])): float(row["exact_jaccard3"]) for row in csv.DictReader(file)}
    assert len(ten) == 10
    assert found.keys() == ten.keys()
    for pair, similarity in found.items():
        assert Fraction(similarity).limit_denominator(100).denominator in (1, 5, 25)
        # Four standard deviations of 25 draws.
        assert abs(similarity - ten[pair]) <= 4 * (ten[pair] * (1 - ten[pair]) / 25) ** 0.5
    assert len(result.dropped) == 10


@pytest.mark.shared
@needs_cornell
def test_the_exact_recipe_has_the_value_of_every_pair_of_the_course() -> None:
    low = Recipe(normalize="strip", features="words:3", threshold=0.0001)
    found = {
        frozenset((p.left, p.right)): f"{p.similarity:.6f}" for p in nd.dedup_files(CORNELL / "docs", recipe=low).pairs
    }
    with open(CORNELL / "exact_jaccard_all_pairs.csv", encoding="utf-8", newline="") as file:
        expected = {frozenset((row["id1"], row["id2"])): row["j3"] for row in csv.DictReader(file)}
    assert found == {pair: value for pair, value in expected.items() if float(value) > 0}
