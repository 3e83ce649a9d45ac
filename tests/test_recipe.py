"""Recipes and measures: what they say, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import RecipeError
from neardup.measures import MEASURES, exact_fraction, measure, rule, similarities
from neardup.kinds import Features
from neardup.recipe import Recipe, load, names, parse


@pytest.mark.parametrize("name", names())
def test_every_recipe_that_ships_can_be_loaded_and_written(name: str) -> None:
    recipe = load(name)
    assert recipe.name == name
    assert recipe.description.endswith((".", ")."))
    assert parse(recipe.to_toml(), "itself") == recipe


def test_the_default_recipe_is_that_of_the_class() -> None:
    shipped = load("default")
    assert shipped == Recipe(description=shipped.description)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("threshold = 1.2", "threshold 1.2 is outside (0, 1]"),
        ("threshold = 0", "threshold 0 is outside (0, 1]"),
        ("threshold = nan", "threshold nan is not a number"),
        ('threshold = "0.7"', "threshold '0.7' is not a number"),
        ("threshold = true", "threshold True is not a number"),
        ('features = "words:0"', "n is 0, outside 1..100"),
        ('features = "words:5:bag"', "features 'words:5:bag' are not known"),
        ('features = "letters:3"', "features 'letters:3' are not known"),
        ("features = 5", "features 5 is not a text"),
        ('measure = "jacard"', "measure 'jacard' is not known; choose one of jaccard, overlap"),
        ('normalize = "lower"', "normalize 'lower' is not known; choose one of words"),
        ('normalize = "compact"', "normalize 'compact' leaves no tokens for features 'words:5'"),
        ('search = "magic"', "search 'magic' is not known; choose one of exact"),
        ("jaccard_floor = -1", "jaccard_floor -1 is outside [0, 1]"),
        ('keep = ""', "keep is empty"),
        ("treshold = 0.7", "unknown key 'treshold'; a recipe's keys are name, description"),
        ("threshold = ", "is not TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_sentence(tmp_path: Path, toml: str, words: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(toml)
    with pytest.raises(RecipeError) as refused:
        load(str(file))
    message = str(refused.value)
    assert words in message
    assert message.startswith(f"recipe {file}")
    assert "\n" not in message


def test_a_recipe_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(RecipeError, match=r"recipe 'nope' is neither a file nor one of default, jaccard"):
        load("nope")


def test_other_features_bring_their_normalizer() -> None:
    assert Recipe().normalize == "words"
    assert Recipe().changed(features="qgrams:4").normalize == "compact"
    assert Recipe().changed(features="words:3").normalize == "words"
    assert Recipe(normalize="whitespace").changed(features="qgrams:4").normalize == "whitespace"
    assert Recipe().changed(features="qgrams:4", normalize="words").normalize == "words"


def test_the_fingerprint_tells_answers_apart_not_names() -> None:
    base = Recipe()
    assert base.fingerprint == Recipe(name="other", description="same choices").fingerprint
    changes: list[dict[str, Any]] = [
        {"threshold": 0.7},
        {"features": "words:4"},
        {"features": "words:5:multiset"},
        {"measure": "dice"},
        {"keep": "longest"},
        {"jaccard_floor": 0.1},
        {"normalize": "whitespace"},
    ]
    assert len({base.fingerprint, *(base.changed(**c).fingerprint for c in changes)}) == len(changes) + 1
    assert Recipe(threshold=1).fingerprint == Recipe(threshold=1.0).fingerprint


def test_features_are_written_as_they_are_read() -> None:
    for text in ("words:5", "qgrams:4:multiset", "words:1"):
        assert str(Features.parse(text)) == text
    assert str(Features.parse("words")) == "words:4"


def test_thresholds_are_the_fractions_that_people_write() -> None:
    assert exact_fraction(0.7, "t") == Fraction(7, 10)
    assert exact_fraction(1 / 3, "t") == Fraction(1, 3)
    assert rule("jaccard", 0.8)[:3] == (0, 4, 5)


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500), st.sampled_from(list(MEASURES)))
def test_similarity_and_reaches_say_the_same(o: int, a: int, b: int, name: str) -> None:
    o = min(o, a, b)
    value = float(similarities(name, o, a, b))  # type: ignore[arg-type]
    assert 0 <= value <= 1
    assert (value == 1) == (o == (min(a, b) if name == "containment" else max(a, b)))
    assert measure(name).reaches(o, a, b, Fraction(value) - Fraction(1, 10**9))
    assert not measure(name).reaches(o, a, b, Fraction(value) + Fraction(1, 10**9))
