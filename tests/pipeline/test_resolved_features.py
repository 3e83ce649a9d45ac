"""Grams in plain Python and their places, against the definitions and against the kernels' hashes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Hashable, Sequence

import naive_features
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.features.extraction import gram_hashes
from neardup.pipeline.resolved_features import text_grams
from neardup.recipe import Recipe
from neardup.text.stop_words import antecedents, stop_words

KINDS = [
    *("words:1", "words:3:multiset", "qgrams:1", "qgrams:4", "qgrams:3:positional", "skips:1:1", "skips:2:1"),
    *("skips:3:2:multiset", "clauses", "sentence_words:1", "sentence_words:3", "spots:1:1", "spots:1:2"),
    *("spots:2:3:multiset", "terms:2", "terms:3:sentence", "windows:5:2", "checksum:sha1"),
]
WORDS = ["the", "a", "is", "there", "cat", "dog", "Fish,", "bird.", "3.14", "e.g.;", "sea!", "\n\n", "(so)", ""]
TEXTS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.text(st.sampled_from("the a.,;?\n !\u3002\uff0c\u060c\u061f中文字的عربي\u0301１ab\u00ad"), max_size=60),
    st.text(max_size=40),
)


def recipes(spec: str) -> list[Recipe]:
    found = [Recipe(features=spec)]
    if spec.startswith(("words", "skips", "sentence")):
        found += [Recipe(features=spec, stop_words="en,zh"), Recipe(features=spec, normalize="whitespace")]
    if spec.startswith(("qgrams", "windows")):
        found.append(Recipe(features=spec, normalize="words"))
    if spec.startswith("spots"):
        found.append(Recipe(features=spec, antecedents="cat The", stop_words="none"))
    if spec.startswith("terms"):
        found.append(Recipe(features=spec, stop_words="none"))
    if spec.startswith("checksum"):
        found.append(Recipe(features=spec, normalize="raw"))
    return found


RECIPES = [recipe for spec in KINDS for recipe in recipes(spec)]


def pattern(items: Sequence[Hashable]) -> list[int]:
    """Which items are equal: for each the place of the first like it."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(item, place) for place, item in enumerate(items)]


def by_definition(text: str, recipe: Recipe) -> list[naive_features.Gram]:
    stops = stop_words("" if recipe.stop_words == "none" else recipe.stop_words)
    begins: frozenset[str] = frozenset()
    if recipe.features.startswith("spots"):
        begins = frozenset(recipe.antecedents.lower().split()) or antecedents(recipe.stop_words)
    segments = naive_features.grams(text, recipe.features, recipe.normalize, stops, begins)
    return [gram for segment in segments for gram in segment]


@settings(max_examples=10 * settings().max_examples)
@given(recipe=st.sampled_from(RECIPES), left=TEXTS, right=TEXTS)
def test_grams_and_their_places_are_those_of_the_definitions(recipe: Recipe, left: str, right: str) -> None:
    sides = text_grams(left, recipe), text_grams(right, recipe)
    expected = [by_definition(text, recipe) for text in (left, right)]
    assert [len(side.grams) for side in sides] == [len(grams) for grams in expected]
    assert pattern([*sides[0].grams, *sides[1].grams]) == pattern([*expected[0], *expected[1]])
    if not recipe.parsed_features.positional and not recipe.features.startswith("checksum"):
        hashes = [gram_hashes(text, recipe).tolist() for text in (left, right)]
        assert pattern([*hashes[0], *hashes[1]]) == pattern([*expected[0], *expected[1]])
    side = sides[0]
    assert len(side.places) == len(side.grams)
    units = side.units
    assert all(0 <= start <= end <= len(left) for start, end in zip(units.starts, units.ends, strict=True))
    for gram, place in zip(side.grams, side.places, strict=True):
        assert list(place) == sorted(set(place))
        texts = [units.texts[i] for i in place]
        if recipe.features.startswith(("windows", "checksum")):
            assert "".join(str(part) for part in gram).replace(" ", "") == "".join(texts).replace(" ", "")
        else:
            assert list(gram)[: len(texts)] == texts


def test_plain_grams_load_no_kernels() -> None:
    code = (
        "from neardup.pipeline.explanation import explain; from neardup.recipe import Recipe; import sys; "
        "explain('a b', 'b c', Recipe(features='words:1', second_step='jaccard(qgrams:2) >= 0.5')); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
