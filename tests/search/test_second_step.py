"""The second step, and embeddings, against plain tables of prefixes, sets and cosines."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import naive
import naive_features
import numpy as np
import pytest
from compared import PairsByPlace, edited_texts, keepers_of, pairs_of
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.search import engines
from neardup.search import second_step as second_step_module
from neardup.search.second_step import edit_counts

WORDS = ["fox", "dog", "Owl", "ran", "sat", "the", "élan", "東京", "a"]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
    | st.sampled_from(["Fox, dog!", "fox dog", "FOX DOG", "...", " "]),
    max_size=9,
)


def corpus(count: int) -> list[str]:
    """Texts of which many are others with another word, another case or another sign."""
    rng = random.Random(4)
    words = [f"w{number}" for number in range(40)]
    texts = edited_texts(rng, count, [*words, *map(str.upper, words), *(f"{word}," for word in words)], range(3, 12))
    return list(filter(None, texts))


Step = tuple[str, str, Fraction]


def features_of(text: str, features: str) -> set[Any]:
    recipe = Recipe(features=features)
    return set(naive_features.features(text, recipe.features, recipe.normalize))


def similarity(left: str, right: str, step: Step) -> float | None:
    """The similarity of two texts if it reaches the threshold of a step: measure, features, threshold."""
    measure, features, t = step
    if measure == "edit":
        longer = max(len(left), len(right))
        o = longer - naive.levenshtein(left, right)
        return o / longer if o > 0 and Fraction(o, longer) >= t else None
    f, g = features_of(left, features), features_of(right, features)
    o, a, b = len(f & g), len(f), len(g)
    return naive.similarity(measure, o, a, b) if naive.reaches(measure, o, a, b, t) else None


def naive_pairs(texts: Sequence[str], first: Step, second: Step) -> PairsByPlace:
    """All pairs that pass both steps; byte-equal texts with features match whatever the steps say."""
    found = {}
    for j, right in enumerate(texts):
        for i, left in enumerate(texts[:j]):
            if features_of(left, first[1]) and features_of(right, first[1]):
                value = 1.0 if left == right else None
                if value is None and similarity(left, right, first) is not None:
                    value = similarity(left, right, second)
                if value is not None:
                    found[i, j] = value
    return found


STEPS = [
    ("edit >= 0.8", ("edit", "", Fraction(4, 5))),
    ("edit >= 0.5", ("edit", "", Fraction(1, 2))),
    ("edit >= 1", ("edit", "", Fraction(1))),
    ("jaccard(words:2) >= 0.5", ("jaccard", "words:2", Fraction(1, 2))),
    ("overlap(qgrams:3) >= 0.75", ("overlap", "qgrams:3", Fraction(3, 4))),
    ("containment(words:1:multiset) >= 1", ("containment", "words:1:multiset", Fraction(1))),
    ("cosine(clauses) >= 0.5", ("cosine", "clauses", Fraction(1, 2))),
    ("dice(qgrams:2:positional) >= 0.6", ("dice", "qgrams:2:positional", Fraction(3, 5))),
]


@given(TEXTS, st.sampled_from(STEPS), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 3))
def test_pairs_pass_both_steps(texts: list[str], step: tuple[str, Step], threshold: float, threads: int) -> None:
    result = nd.dedup(texts, features="words:1", threshold=threshold, second_step=step[0], threads=threads)
    expected = naive_pairs(texts, ("jaccard", "words:1", Fraction(str(threshold))), step[1])
    assert pairs_of(result) == pytest.approx(expected)
    assert pairs_of(result).keys() == expected.keys()


def test_a_larger_corpus_passes_both_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, (second_step, step) = corpus(40), STEPS[1]
    choices: dict[str, Any] = {"features": "words:1", "threshold": 0.3, "second_step": second_step}
    result = nd.dedup(texts, threads=1, **choices)
    assert pairs_of(result) == pytest.approx(naive_pairs(texts, ("jaccard", "words:1", Fraction(3, 10)), step))
    assert keepers_of(result) == naive.keepers(len(texts), pairs_of(result), range(len(texts)))
    stricter = nd.dedup(texts, **choices | {"threshold": 0.8})
    assert pairs_of(result.at(0.8)) == pairs_of(stricter)
    assert 0 < len(stricter.pairs) < len(result.pairs)
    monkeypatch.setattr(second_step_module, "_PAIRS_AT_A_TIME", 7)
    again = nd.dedup(texts, threads=2, **choices)
    assert pairs_of(again) == pairs_of(result)
    assert again.families == result.families
    assert result.summary["search"]["first_step_pairs"] >= result.summary["search"]["pairs"]


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=5), st.sampled_from([0.1, 0.5, 0.9]))
def test_edit_counts_are_those_of_the_table_of_prefixes(pairs: list[tuple[str, str]], cutoff: float) -> None:
    pairs = [(left, right) for left, right in pairs if left or right]
    found = edit_counts([left for left, _ in pairs], [right for _, right in pairs], cutoff)
    for (left, right), (o, a, b) in zip(pairs, found.tolist(), strict=True):
        longer = max(len(left), len(right))
        same = longer - naive.levenshtein(left, right)
        assert a == b == longer
        assert o == same or (o == 0 and same < cutoff * longer)


def test_texts_at_exactly_the_threshold_match() -> None:
    # Of ten characters, some are replaced; 1 - 3 / 10 is not 7 / 10 in floating point, but here it is.
    base = "abcdefghij"
    for changed, threshold, match in [(1, 0.9, True), (2, 0.8, True), (3, 0.7, True), (3, 0.71, False), (4, 0.6, True)]:
        other = "x" * changed + base[changed:]
        result = nd.dedup([base, other], features="qgrams:1", threshold=0.1, second_step=f"edit >= {threshold}")
        assert len(result.pairs) == match, (changed, threshold)


def test_a_second_step_measures_all_pairs_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(60)
    choices: dict[str, Any] = {"features": "words:1", "threshold": 0.3, "second_step": "edit >= 0.6"}
    every = nd.dedup(texts, **choices)
    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 0)
    again = nd.dedup(texts, pairs_per_document=0, **choices)
    assert again.summary["all_pairs"]
    assert pairs_of(again) == pairs_of(every)


class Toy:
    """Counts letters: a row of 26 numbers for each text."""

    def encode(self, texts: list[str]) -> Any:
        return np.array([[text.casefold().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)


def cosine(left: str, right: str) -> float:
    f, g = (Toy().encode([text])[0].tolist() for text in (left, right))
    norms = math.hypot(*f) * math.hypot(*g)
    return sum(x * y for x, y in zip(f, g, strict=True)) / norms if norms else 0.0


def by_cosine(texts: Sequence[str], t: float) -> PairsByPlace:
    found = {}
    for j, right in enumerate(texts):
        for i, left in enumerate(texts[:j]):
            value = 1.0 if left and left == right else cosine(left, right)
            if value >= t:
                found[i, j] = value
    return found


@given(TEXTS, st.sampled_from([0.313, 0.717, 0.919]))
def test_semantic_pairs_are_those_of_all_cosines(texts: list[str], threshold: float) -> None:
    corpus = corpus_of(texts, text_column=None, id_column=None, order_column=None)
    result = run(corpus, Recipe(measure="semantic", threshold=threshold), encoder=Toy())
    assert pairs_of(result) == pytest.approx(by_cosine(texts, threshold), abs=2e-9)


def test_a_semantic_pair_at_the_threshold_stays_there() -> None:
    class Thirds:
        def encode(self, texts: list[str]) -> Any:
            return [[1, 0, 0], [1, 2, 2], [2, 1, 2]][: len(texts)]

    # The cosines are 1/3, 2/3 and 8/9: in whole numbers of 10**-9 the first two are less or more by a third of one.
    texts = ["one", "two", "three"]
    for threshold in (1 / 3, 0.333333333, 2 / 3, 0.666666667, 8 / 9, 0.888888889):
        first = nd.dedup(texts, measure="semantic", threshold=threshold, encoder=Thirds())
        assert pairs_of(first.at(threshold)) == pairs_of(first)
        second = nd.dedup(
            ["a one", "a two", "a three"], features="words:1", threshold=0.1, second_step=f"semantic >= {threshold}",
            encoder=Thirds(),
        )  # fmt: skip
        assert pairs_of(second) == pairs_of(first)
    assert len(nd.dedup(texts, measure="semantic", threshold=0.333333333, encoder=Thirds()).pairs) == 3


def test_semantic_as_second_step_is_a_cosine() -> None:
    texts, first = corpus(25), ("jaccard", "words:1", Fraction(3, 10))
    result = nd.dedup(texts, features="words:1", threshold=0.3, second_step="semantic >= 0.917", encoder=Toy())
    expected = {
        (i, j): value
        for (i, j), value in by_cosine(texts, 0.917).items()
        if texts[i] == texts[j] or similarity(texts[i], texts[j], first) is not None
    }
    assert pairs_of(result) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([1.0, 2.0], ("encoder", "shape (2,)", "2 texts")),
        ([[1.0], [2.0], [3.0]], ("encoder", "shape (3, 1)", "2 texts")),
        ([[1.0, 0.0], [math.nan, 1.0]], ("a row of", "finite numbers", "for each")),
        ([[1.0], [2.0, 3.0]], ("must have encode(texts)", "a row of", "finite numbers")),
        (None, ("encoder object fails",)),
    ],
)
def test_wrong_encoders_are_refused_in_one_sentence(answer: Any, words: tuple[str, ...]) -> None:
    encoder: Any = object() if answer is None else SimpleNamespace(encode=lambda texts: answer)
    with pytest.raises(RecipeError) as refused:
        nd.dedup(["a fox ran", "a fox sat"], features="words:1", measure="semantic", encoder=encoder)
    assert says(refused.value, *words)
