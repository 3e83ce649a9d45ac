"""Recipes and measures: what they say, and what they refuse."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
import stop_words
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.errors import RecipeError
from neardup.recipe import Recipe, load_recipe
from neardup.recipe.measures import MEASURES, exact_fraction, measure, reaches_threshold, rule, similarities
from neardup.recipe.recipe import difference
from neardup.text import stop_words as lists
from neardup.text.normalize import kernel_tables
from neardup.text.stop_words import ANTECEDENTS


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("threshold = 1.2", ("threshold 1.2 is outside", "(0, 1]")),
        ("threshold = nan", ("threshold nan", "not a number")),
        ('threshold = "0.7"', ("threshold '0.7'", "not a number")),
        ('content = "page"', ("content 'page'", "not known", "html, html-fast, tags")),
        ("jaccard_floor = 2.0", ("jaccard_floor 2.0 is outside", "[0, 1]", "give")),
        ("recall = 1.0", ("recall 1.0 is outside", "(0, 1)", "search 'exact'")),
        ("recall = nan", ("recall nan is outside", "(0, 1)")),
        ("num_perm = 4097", ("num_perm 4097 is outside", "1..4096")),
        ("num_perm = 12.5", ("num_perm 12.5", "not a whole number")),
        ("seed = 4294967296", ("seed 4294967296 is outside", "0..4294967295")),
        ('weights = "bm25"', ("weights 'bm25'", "not known", "tf, idf, tfidf")),
        ('keep = ""', ("keep", "empty")),
        ("treshold = 0.7", ("key 'treshold'", "keys are name, description")),
        ("threshold = ", ("not TOML",)),
        ("a=" + "[" * 3_000, ("not TOML",)),
        ("a=" + "[" * 100_000, ("not a recipe", "keys")),
        ("a=" + "{a=" * 1_000, ("not TOML",)),
        ("num_perm = " + "9" * 3_900, ("num_perm", "63 bits")),
        ("num_perm = " + "9" * 5_000, ("not a recipe", "keys")),
        ("threshold = " + "9" * 400, ("threshold", "63 bits")),
        (".".join("a" * 100_000) + " = 1", ("not a recipe", "keys")),
        ("\n".join(f"[a{number}]" for number in range(10_000)), ("not a recipe", "keys")),
        ('features = "words:' + "9" * 5_000 + '"', ("features", "not known")),
        ('clip = "df:1:' + "9" * 5_000 + '"', ("clip", "not known")),
        ('second_step = "edit >= ' + "9" * 5_000 + '"', ("second_step",)),
        ('name = "' + "a" * 100_000, ("not TOML",)),
        ("name = '''" + "a" * 100_000, ("not TOML",)),
        ("threshold = 0.5\nthreshold = 0.6", ("not TOML",)),
        ("threshold = 2024-01-01", ("threshold", "not a number")),
        ("threshold = true", ("threshold", "not a number")),
        ("name = [1]", ("name", "not a text")),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_sentence(tmp_path: Path, toml: str, words: tuple[str, ...]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(toml)
    with pytest.raises(RecipeError) as refused:
        load_recipe(str(file))
    message = str(refused.value)
    assert says(message, *words)
    assert message.startswith(f"recipe {file}")


@pytest.mark.parametrize(
    ("before", "changes", "normalize", "stop_words"),
    [
        ({}, {"features": "qgrams:4"}, "compact", ""),
        ({}, {"features": "words:3"}, "words", ""),
        ({"normalize": "whitespace"}, {"features": "qgrams:4"}, "whitespace", ""),
        ({}, {"features": "qgrams:4", "normalize": "words"}, "words", ""),
        ({"features": "qgrams:4"}, {"features": "windows"}, "compact", ""),
        ({}, {"features": "spots"}, "words", "en"),
        ({"features": "spots"}, {"features": "words:5"}, "words", ""),
        ({"features": "spots"}, {"features": "spots:2"}, "words", "en"),
        ({"features": "spots", "stop_words": "de"}, {"features": "terms"}, "words", "de"),
        ({"stop_words": "en"}, {"features": "qgrams:4", "stop_words": ""}, "compact", ""),
        ({"features": "terms", "stop_words": "none"}, {}, "words", "none"),
    ],
)
def test_other_features_bring_their_normalizer_and_stop_words(
    before: dict[str, Any], changes: dict[str, Any], normalize: str, stop_words: str
) -> None:
    recipe = Recipe(**before).changed(**changes)
    assert (recipe.normalize, recipe.stop_words) == (normalize, stop_words)


def test_fingerprints_differ_for_results_and_not_for_names() -> None:
    base = Recipe()
    assert base.fingerprint == Recipe(name="other", description="same choices").fingerprint
    changes: list[dict[str, Any]] = [
        {"threshold": 0.7},
        {"features": "words:4"},
        {"features": "words:5:multiset"},
        {"measure": "dice"},
        {"keep": "longest"},
        {"jaccard_floor": 0.1},
        {"content": "html"},
        {"content": "tags"},
        {"normalize": "whitespace"},
        {"stop_words": "en"},
        {"stop_words": "en,de"},
        {"clip": "df:2:0.5"},
        {"signature": "minhash:9", "measure": "overlap"},
        {"signature": "minhash:9", "measure": "overlap", "seed": 2},
        {"weights": "tf", "measure": "cosine"},
        {"search": "lsh"},
        {"search": "lsh", "recall": 0.9},
        {"search": "lsh", "num_perm": 128},
        {"search": "lsh", "seed": 2},
        {"second_step": "edit >= 0.9"},
        {"second_step": "edit >= 0.91"},
        {"second_step": "jaccard(spots) >= 0.9"},
    ]
    assert len({base.fingerprint, *(base.changed(**c).fingerprint for c in changes)}) == len(changes) + 1
    assert Recipe(threshold=1).fingerprint == Recipe(threshold=1.0).fingerprint
    assert Recipe(features="words:4").fingerprint == Recipe(features="words").fingerprint
    assert Recipe(second_step="edit>=0.90").fingerprint == Recipe(second_step="edit >= 0.9").fingerprint


@pytest.mark.parametrize(
    ("choices", "others"),
    [
        ({}, {"recall": 0.9}),
        ({}, {"num_perm": 128}),
        ({}, {"seed": 2}),
        ({}, {"stop_words": "none"}),
        ({"signature": "imatch", "features": "words:1"}, {"seed": 2}),
        ({"signature": "simhash", "measure": "hamming", "threshold": 3}, {"seed": 2}),
        ({"stop_words": "en,de"}, {"stop_words": "de, en"}),
        ({"stop_words": "no"}, {"stop_words": "nb"}),
        ({"features": "spots", "antecedents": "is the"}, {"antecedents": "The  is!"}),
        ({"features": "spots"}, {"antecedents": " ".join(ANTECEDENTS)}),
    ],
)
def test_choices_without_effect_do_not_change_the_fingerprint(choices: dict[str, Any], others: dict[str, Any]) -> None:
    assert Recipe(**choices).fingerprint == Recipe(**choices).changed(**others).fingerprint


def test_other_lists_of_stop_words_change_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = [
        Recipe(),
        Recipe(features="spots", stop_words="none", antecedents="is"),
        Recipe(stop_words="fr"),
        Recipe(stop_words="en"),
        Recipe(features="spots"),
        Recipe(features="words:1", stop_words="de,en"),
        Recipe(second_step="jaccard(spots) >= 0.5"),
    ]
    before = [recipe.fingerprint for recipe in recipes]
    own = stop_words.get_stop_words
    lists.stop_words.cache_clear()
    lists._language_stop_words.cache_clear()
    monkeypatch.setattr(
        stop_words, "get_stop_words", lambda code: [*own(code), "harbour"] if code == "en" else own(code)
    )
    try:
        after = [recipe.fingerprint for recipe in recipes]
    finally:
        lists.stop_words.cache_clear()
        lists._language_stop_words.cache_clear()
    assert [one != other for one, other in zip(before, after, strict=True)] == [False] * 3 + [True] * 4


def test_another_version_of_trafilatura_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [Recipe(content=content) for content in ("", "tags", "html")]
    own = [recipe.fingerprint for recipe in before]
    stored = before[2].dependencies
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"{name} of tomorrow")
    assert [one == recipe.fingerprint for one, recipe in zip(own, before, strict=True)] == [True, True, False]
    assert "trafilatura of tomorrow" in difference(stored, before[2].dependencies)


def test_the_version_of_unicode_does_not_change_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = [Recipe(), Recipe(features="qgrams:4"), Recipe(normalize="whitespace"), Recipe(normalize="strip")]
    recipes.append(Recipe(features="checksum", normalize="raw"))
    before = [recipe.fingerprint for recipe in recipes]
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    # The tables of an unknown version are looked at, and these are the same.
    assert [recipe.fingerprint for recipe in recipes] == before
    monkeypatch.setattr(
        "neardup.text.normalize.kernel_tables",
        lambda name: [np.zeros(3, int)] if name == "words" else kernel_tables(name),
    )
    assert [recipe.fingerprint == one for recipe, one in zip(recipes, before, strict=True)] == [False] * 2 + [True] * 3


def test_differences_of_dependencies_are_described() -> None:
    now = Recipe(stop_words="en").dependencies
    assert difference(now, now) == difference({}, {}) == ""
    assert "older neardup" in difference({}, now)
    for name, word in (("chain", "chain"), ("Unicode tables", "Unicode tables"), ("stop words", "stop words")):
        message = difference(now | {name: "another"}, now)
        assert word in message
        assert "another" in message
        assert now[name] in message
    assert "none" in difference(Recipe().dependencies, now)
    assert not difference(Recipe(threshold=0.5).dependencies | {"chain": "another"}, now)


@pytest.mark.parametrize(
    ("choices", "needed"),
    [
        ({}, False),
        ({"clip": "df:2:1.0"}, True),
        ({"weights": "tf", "measure": "cosine"}, False),
        ({"weights": "idf", "measure": "cosine"}, True),
        ({"features": "terms"}, True),
        ({"signature": "sketch", "measure": "overlap"}, True),
        ({"signature": "minhash", "measure": "overlap"}, False),
        ({"signature": "simhash", "weights": "tfidf", "measure": "hamming", "threshold": 3}, True),
    ],
)
def test_recipes_state_whether_they_need_statistics(choices: dict[str, Any], needed: bool) -> None:
    recipe = Recipe(**choices)
    assert recipe.needs_statistics == needed
    assert recipe.is_weighted == ("weights" in choices and "signature" not in choices)
    before = recipe.without_statistics()
    assert (before.features, before.normalize, before.stop_words) == (
        recipe.features,
        recipe.normalize,
        recipe.stop_words,
    )
    assert not before.clip + before.weights + before.signature + before.second_step


def test_a_recipe_is_described_in_one_line() -> None:
    assert Recipe().in_words() == "words:5 (words), jaccard >= 0.85"
    assert says(Recipe(content="html").in_words(), "content html", "words:5 (words)", "jaccard >= 0.85")
    long = Recipe(features="words:1", stop_words="en", clip="df:2:0.5", weights="tfidf", measure="euclidean",
                  threshold=2.5, second_step="edit >= 0.9")  # fmt: skip
    assert long.in_words().split(", ")[0] == "words:1 (words)"
    assert says(long.in_words(), "without stop words", "of en", "clip df:2:0.5", "weights tfidf", "euclidean <= 2.5")
    assert long.in_words().endswith("then edit >= 0.9")
    assert says(Recipe(search="lsh").in_words(), "lsh (recall 0.99", "256 minima")
    assert says(
        load_recipe("spotsigs").in_words(), "spots:1:2:multiset (words)", ", stop words of en", "jaccard >= 0.44"
    )


def test_thresholds_are_the_fractions_as_written() -> None:
    assert exact_fraction(0.7, "t") == Fraction(7, 10)
    assert exact_fraction(1 / 3, "t") == Fraction(1, 3)
    assert rule("jaccard", 0.8)[:3] == (0, 4, 5)


@st.composite
def overlap_counts(draw: st.DrawFn) -> tuple[str, int, int, int, int]:
    """A measure, and o, a and b that a pair of what it compares can have, in some unit."""
    name = draw(st.sampled_from(list(MEASURES)))
    if name in ("hamming", "edit", "semantic"):
        a = b = 64 if name == "hamming" else draw(st.integers(1, 500))
    else:
        a, b = draw(st.integers(1, 500)), draw(st.integers(1, 500))
    unit = draw(st.sampled_from([1, 1 << 16, 1 << 32])) if "weights" in MEASURES[name].takes else 1
    return name, draw(st.integers(1, min(a, b))), a, b, unit


@given(overlap_counts(), st.integers(1, 10**4))
def test_similarity_and_reaches_agree(drawn: tuple[str, int, int, int, int], numerator: int) -> None:
    name, o, a, b, unit = drawn
    known, counts = measure(name), np.array([[o, a, b]]) * unit
    value = float(similarities(name, counts, unit)[0])
    assert 0 <= value <= 1
    assert (value == 1) == (o == (min(a, b) if name == "containment" else max(a, b)))
    if name == "hamming":
        bounds = [Fraction(k) for k in range(64)]
    elif name == "euclidean":
        bounds = [Fraction(a + b - 2 * o), Fraction(numerator, 100), Fraction(isqrt(max(a + b - 2 * o, 1)))]
    else:
        near = Fraction(value).limit_denominator(10**9)
        bounds = [near, min(near + Fraction(1, 10**9), Fraction(1)), Fraction(numerator, 10**4)]
    for t in bounds:
        expected = known.reaches(o * unit, a * unit, b * unit, known.bound(t, unit))
        assert reaches_threshold(name, counts, t, unit).tolist() == [expected], t
        if name in ("jaccard", "overlap", "dice", "cosine", "containment", "extended_jaccard", "hamming"):
            assert expected == naive.reaches(name, o, a, b, t)


def test_large_sums_lose_no_small_distance() -> None:
    # Three vectors' sums in units of 2**-32; in floating point a and b alone are only known to some hundreds.
    unit = 1 << 32
    o = 2**59 + 1
    counts = np.array([[o, o + 2 * unit, o + 2 * unit], [o, o + 2 * unit, o + 2 * unit + 1], [o, o, o + 77]])
    found = similarities("euclidean", counts, unit)
    assert found == pytest.approx([1 / 3, 1 / (1 + (4 + 1 / unit) ** 0.5), 1 / (1 + (77 / unit) ** 0.5)], rel=1e-14)
    assert reaches_threshold("euclidean", counts, Fraction(2), unit).tolist() == [True, False, True]
