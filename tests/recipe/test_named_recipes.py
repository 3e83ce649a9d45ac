"""The recipes that come with the package: each runs on whatever there is."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import naive_features
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT
from sentences import says

import neardup as nd
from neardup.errors import RecipeError
from neardup.recipe import load_recipe, names, parse

CORNELL = ROOT.parent / "shared" / "data" / "cornell"


def test_named_recipes_differ_and_can_be_saved() -> None:
    recipes = [load_recipe(name) for name in names()]
    assert len({recipe.fingerprint for recipe in recipes}) == len(recipes)
    assert [parse(recipe.to_toml(), "saved") for recipe in recipes] == recipes


def pairs_of(result: nd.Result) -> list[tuple[int, int, float]]:
    return [(p.left, p.right, p.similarity) for p in result.pairs]


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


def test_a_classifier_is_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "c.neardup"
    path.write_bytes(b"PK\x03\x04\xf0\x9f")
    with pytest.raises(RecipeError) as refused:
        load_recipe(path)
    assert says(refused.value, "c.neardup", "is not a text file; give a TOML file, or a classifier with classifier=")


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
