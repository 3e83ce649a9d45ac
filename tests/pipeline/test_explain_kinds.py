"""Explanations where a collection, weights, a signature or a second step have a say, against the definitions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import naive
import naive_features
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_features import Gram
from sentences import says

from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.features.extraction import extract_features, gram_hashes
from neardup.features.reading import gather_statistics
from neardup.features.statistics import Statistics
from neardup.pipeline.explanation import Explanation, SecondStepResult, explain
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.text.stop_words import antecedents, stop_words

WORDS = ["the", "a", "there", "cat", "Dog,", "fish.", "bird", "sea", "猫", "海。", "قطة", "بحر،"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
COLLECTIONS = st.lists(TEXTS, min_size=2, max_size=5)

CHOSEN = [
    Recipe(features="words:1"),
    Recipe(features="words:2:multiset"),
    Recipe(features="words:1", clip="df:2:0.9"),
    Recipe(features="words:1", clip="df:1:2"),
    Recipe(features="words:2", clip="idf:0.2:0.9"),
    Recipe(features="words:1:multiset", clip="df:2:9"),
    Recipe(features="qgrams:2:positional", clip="df:2:9"),
    Recipe(features="spots:1:1", clip="df:1:3"),
    Recipe(features="terms:2"),
    Recipe(features="terms:2:positional"),
    Recipe(features="terms:1:sentence"),
    Recipe(features="terms:2:sentence:positional", stop_words="none"),
    Recipe(features="terms:3", clip="df:2:1.0"),
    Recipe(features="windows:4:3"),
    Recipe(features="windows:4:3:multiset"),
    Recipe(features="windows:3:2", clip="df:1:2"),
]
WEIGHTED = [
    Recipe(features=features, weights=weights, measure=measure, threshold=0.5, clip=clip)
    for features, weights, measure, clip in (
        ("words:1", "tf", "weighted_jaccard", ""),
        ("words:1", "tf", "euclidean", ""),
        ("words:1", "idf", "weighted_jaccard", ""),
        ("words:1", "idf", "cosine", ""),
        ("words:1", "tfidf", "cosine", "df:1:3"),
        ("words:1", "tfidf", "dice", ""),
        ("words:2", "tfidf", "extended_jaccard", ""),
        ("qgrams:2", "tfidf", "euclidean", ""),
        ("terms:2", "tfidf", "cosine", ""),
        ("terms:1:sentence", "tf", "dice", ""),
    )
]
SIGNED = [
    Recipe(features="words:1", signature="minhash:16", measure="overlap", threshold=0.5),
    Recipe(features="words:1", signature="sketch:8", measure="overlap", threshold=0.5),
    Recipe(features="words:1", signature="supershingle:3:2", measure="overlap", threshold=0.5),
    Recipe(features="words:1", signature="simhash", measure="hamming", threshold=10),
    Recipe(features="words:1", signature="simhash", measure="hamming", threshold=10, weights="tfidf"),
    Recipe(features="words:1", signature="imatch:3"),
    Recipe(features="words:1", signature="imatch:2", clip="df:2:0.9"),
]


def statistics_of(texts: Sequence[str], recipe: Recipe) -> Statistics:
    with corpus_of(list(texts)) as corpus:
        return gather_statistics(corpus, recipe, threads=1)


class Definitions:
    """The features of a collection by the definitions; hashes alone are the library's."""

    def __init__(self, texts: Sequence[str], recipe: Recipe, bits: int) -> None:
        self.texts, self.recipe, self.bits = texts, recipe, bits
        self.stops = stop_words("" if recipe.stop_words == "none" else recipe.stop_words)
        self.begins = antecedents(recipe.stop_words) if recipe.features.startswith("spots") else frozenset()
        self.hashes: dict[Gram, int] = {}
        for text in texts:
            self.hashes |= dict(zip(self.grams(text), gram_hashes(text, recipe).tolist(), strict=True))

    def grams(self, text: str) -> list[Gram]:
        recipe = self.recipe
        segments = naive_features.grams(text, recipe.features, recipe.normalize, self.stops, self.begins)
        return [gram for segment in segments for gram in segment]

    def features(self) -> list[list[Gram]]:
        """The features of each text, repeats repeated, after clipping and choosing."""
        terms, clip, count = self.recipe.features.startswith("terms"), self.recipe.clip, len(self.texts)
        df = naive_features.frequencies(map(self.grams, self.texts))

        def idf(gram: Gram) -> int:
            if clip and not naive_features.passes_clip(clip, df[gram], count):
                return 0
            return max(round(naive_features.idf(df[gram], count) * (1 << self.bits)), 1)

        found = [
            naive_features.features(
                text,
                self.recipe.features,
                self.recipe.normalize,
                self.stops,
                self.begins,
                hashed=self.hashes.__getitem__,
                idf=idf,
            )
            for text in self.texts
        ]
        return naive_features.clipped(found, clip) if clip and not terms else found

    def vectors(self) -> list[dict[Gram, int]]:
        """The weighted vector of each text."""
        count, grams = len(self.texts), [self.grams(text) for text in self.texts]
        df = naive_features.frequencies(grams)
        kept = [
            [gram for gram in own if gram in set(chosen)] for own, chosen in zip(grams, self.features(), strict=True)
        ]
        return [naive_features.fixed_point_weights(own, self.recipe.weights, df, count, self.bits) for own in kept]


def explained(texts: Sequence[str], recipe: Recipe, definitions: Definitions) -> Explanation | None:
    """The first two texts explained; None where clipping leaves nothing of the collection, which is refused."""
    statistics = statistics_of(texts, recipe)
    if recipe.clip and any(map(definitions.grams, texts[:2])) and not any(definitions.features()):
        with pytest.raises(RecipeError, match="leaves none"):
            explain(texts[0], texts[1], recipe, statistics)
        return None
    return explain(texts[0], texts[1], recipe, statistics)


def check_places(why: Explanation) -> None:
    for text, segments in ((why.left, why.left_segments), (why.right, why.right_segments)):
        assert "".join(text[s.start : s.end] for s in segments) == text
    assert bool(why.passages) == (why.shared > 0)
    assert any(s.shared for s in why.left_segments) == (why.shared > 0)
    assert why.sentences
    json.dumps(why.as_dict())


@given(recipe=st.sampled_from(CHOSEN), texts=COLLECTIONS)
def test_selected_features_are_those_of_the_definitions(recipe: Recipe, texts: list[str]) -> None:
    definitions = Definitions(texts, recipe, statistics_of(texts, recipe).idf_bits(recipe))
    why = explained(texts, recipe, definitions)
    if why is None:
        return
    left, right = (set(features) for features in definitions.features()[:2])
    assert why.counts == (len(left & right), len(left), len(right), 1)
    assert (why.shared, *why.sizes) == why.counts[:3]
    for name in SET_MEASURES:
        similar = naive.similarity(name, *why.features) if left and right else 0.0
        distance = math.sqrt(len(left ^ right))
        assert why.measures[name] == pytest.approx(distance if name == "euclidean" else similar, abs=1e-12)
    assert why.match == naive.reaches("jaccard", *why.features, Fraction(str(recipe.threshold)))
    check_places(why)


@given(recipe=st.sampled_from(WEIGHTED), texts=COLLECTIONS)
def test_weights_are_those_of_the_definitions(recipe: Recipe, texts: list[str]) -> None:
    bits = statistics_of(texts, recipe).idf_bits(recipe)
    definitions = Definitions(texts, recipe, bits)
    why = explained(texts, recipe, definitions)
    if why is None:
        return
    f, g = definitions.vectors()[:2]
    assert why.counts[:3] == naive.vector_counts(recipe.measure, f, g)
    assert (why.shared, *why.sizes) == (len(f.keys() & g.keys()), len(f), len(g))
    if f and g:
        scaled = [{x: w / 2**bits for x, w in vector.items()} for vector in (f, g)]
        assert why.value == pytest.approx(naive.vector_measure(recipe.measure, *scaled), abs=1e-9)
        shown = 1 / (1 + why.value) if recipe.measure == "euclidean" else why.value
        assert why.similarity == pytest.approx(shown, abs=1e-9)
    if f and g and why.shared:
        assert why.match == (why.value <= 0.5 if recipe.measure == "euclidean" else why.value >= 0.5 - 1e-12)
    else:
        assert not why.match
    assert (why.flip.shared, why.flip.changed_words) == (None, None)
    check_flip(why, recipe, lambda changed: explain(texts[0], texts[1], changed, statistics_of(texts, recipe)))
    check_places(why)


def check_flip(why: Explanation, recipe: Recipe, again: Callable[[Recipe], Explanation]) -> None:
    if why.flip.threshold is not None:
        assert again(recipe.changed(threshold=why.flip.threshold)).match != why.match


@given(recipe=st.sampled_from(SIGNED), texts=COLLECTIONS)
def test_signatures_are_compared_as_a_run_does(recipe: Recipe, texts: list[str]) -> None:
    statistics = statistics_of(texts, recipe)
    try:
        block = extract_features(pa.array(texts[:2], pa.large_string()), recipe, statistics)
    except RecipeError:
        return
    why = explain(texts[0], texts[1], recipe, statistics)
    left, right = (part.tolist() for part in np.split(block.features, block.sizes[:1]))
    if recipe.signature == "simhash":
        assert why.counts[1:3] == (64 * len(left), 64 * len(right))
        if left and right:
            assert why.value == naive.hamming(left[0], right[0]) == 64 - why.counts.o
            assert why.match == (why.value <= 10)
    else:
        assert why.counts == (len(set(left) & set(right)), len(left), len(right), 1)
    assert why.flip.changed_words is None
    if why.flip.shared is not None:
        o, a, b, _ = why.counts
        assert (o + why.flip.shared >= (why.needed or 0)) != why.match
        assert 0 <= o + why.flip.shared <= max(a, b)
    check_flip(why, recipe, lambda changed: explain(texts[0], texts[1], changed, statistics))
    check_places(why)


@given(left=st.text("abc ", max_size=12), right=st.text("abc ", max_size=12))
def test_edit_distance_in_a_second_step(left: str, right: str) -> None:
    recipe = Recipe(features="qgrams:1", threshold=0.1, second_step="edit >= 0.6")
    why = explain(left, right, recipe)
    assert isinstance(why.second, SecondStepResult)
    longer = max(len(left), len(right))
    assert why.second.counts == (longer - naive.levenshtein(left, right), longer, longer)
    first = explain(left, right, recipe.changed(second_step=""))
    assert why.passed == first.match
    if longer:
        similar = Fraction(longer - naive.levenshtein(left, right), longer)
        assert why.match == (first.match and similar >= Fraction(3, 5))
        assert why.similarity == pytest.approx(float(similar))
        flip = why.second.flip
        if flip is not None:
            assert (similar >= Fraction(str(flip))) != why.second.passed


def test_explanations_describe_both_steps() -> None:
    recipe = Recipe(features="words:1", threshold=0.5, second_step="jaccard(words:2) >= 0.9")
    why = explain("a b c d e", "a b c e d", recipe)
    assert why.passed
    assert not why.match
    assert str(why).startswith("no near-duplicates: jaccard 1.0000 >= 0.5")
    assert str(why).endswith("then jaccard(words:2) 0.3333 < 0.9")
    assert says(why, " 5 features shared", "of 5 and 5")
    at_any, first, second = why.sentences
    assert says(at_any, "No threshold would separate", "highest")
    assert says(first, "no longer pass", "first step", " 3 or fewer shared features")
    assert says(second, "They pass", "second step", " 0.3333 or lower")
    assert why.as_dict()["second_step"] == {
        "measure": "jaccard",
        "features": "words:2",
        "threshold": 0.9,
        "value": pytest.approx(1 / 3),
        "passed": False,
        "counts": [2, 4, 4],
        "flip": 0.3333,
    }
