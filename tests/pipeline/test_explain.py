"""Explanations against a second, plain computation, and on texts of many scripts."""

from __future__ import annotations

import gc
import json
import os
import time
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.pipeline.counterfactual import find_counterfactual, match_criterion
from neardup.pipeline.explanation import explain
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), max_size=14).map(" ".join)
MIXED = st.text(st.sampled_from("aB \n.,-éß中文の한ไทยกลับمرحبا👍🏽\u0301\u200dﬁ１"), max_size=40)
RECIPES = st.builds(
    Recipe,
    features=st.sampled_from(["words:1", "words:2", "words:3", "words:5", "words:2:multiset", "qgrams:3"]),
    measure=st.sampled_from([name for name in SET_MEASURES if name != "euclidean"]),
    threshold=st.sampled_from([0.01, 0.3, 1 / 3, 0.5, 0.7, 0.8, 1.0]),
    jaccard_floor=st.sampled_from([0.0, 0.0, 0.2, 0.5]),
) | st.builds(
    Recipe,
    features=st.sampled_from(["words:1", "words:2:multiset"]),
    measure=st.just("euclidean"),
    threshold=st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]),
)


@given(left=WORDS, right=WORDS, recipe=RECIPES)
def test_the_verdict_flips_at_the_stated_threshold(left: str, right: str, recipe: Recipe) -> None:
    why = explain(left, right, recipe)
    (a, b), o, flip, bar = why.sizes, why.shared, why.flip, match_criterion(recipe)
    assert flip == find_counterfactual(recipe, o, a, b)
    assert flip.sentences
    if not a or not b:
        assert (why.match, why.needed, flip.threshold, flip.shared, flip.changed_words) == (False, *[None] * 4)
        return
    assert why.needed is not None
    assert why.match == (o >= why.needed)
    assert bar.is_met(why.needed, a, b)
    assert not bar.is_met(why.needed - 1, a, b)
    lower_matches = recipe.measure != "euclidean"
    if flip.threshold is not None:
        assert explain(left, right, recipe.changed(threshold=flip.threshold)).match != why.match
        step = Fraction(-1 if why.match == lower_matches else 1, 10_000)
        nearer = Fraction(str(flip.threshold)) + step
        if 0 < nearer <= (1 if lower_matches else 10):
            assert bar.is_met(o, a, b, nearer) == why.match
    elif not why.match:
        assert not bar.is_met(o, a, b, Fraction(1, 10**9) if lower_matches else Fraction(10))
    if flip.shared is None:
        assert not why.match
        assert not bar.is_met(min(a, b), a, b)
    else:
        assert bar.is_met(o + flip.shared, a, b) != why.match
        assert bar.is_met(o + flip.shared + (1 if why.match else -1), a, b) == why.match
    assert (flip.changed_words is None) == (not why.match)


@given(left=MIXED, right=MIXED, recipe=RECIPES)
def test_segments_and_passages_lie_on_the_texts(left: str, right: str, recipe: Recipe) -> None:
    why = explain(left, right, recipe)
    for text, segments, changes in (
        (left, why.left_segments, why.left_changes),
        (right, why.right_segments, why.right_changes),
    ):
        assert "".join(text[s.start : s.end] for s in segments) == text
        assert all(s.start < s.end for s in segments)
        assert all(0 <= c.start <= c.end <= len(text) for c in changes)
    assert bool(why.passages) == (why.shared > 0)
    for passage in why.passages:
        assert passage.text == left[passage.left.start : passage.left.end]
        assert passage.right == tuple(sorted(set(passage.right)))
        for span in passage.right:
            again = explain(passage.text, right[span.start : span.end], recipe)
            assert again.left_grams == again.right_grams
    json.dumps(why.as_dict())


def test_differences_between_pointed_and_plain_texts_are_marked_in_the_original() -> None:
    pointed = "قَالَ وَزِيرُ الخَارِجِيَّةِ إِنَّ الاجْتِمَاعَ سَيُعْقَدُ يَوْمَ الأَحَـــدِ القَادِمِ فِي مَدِينَةِ جُدَّةَ"
    plain = "قال وزير الداخلية إن الاجتماع سيعقد يوم الأحد القادم في مدينة جدة"
    explanation = explain(pointed, plain, Recipe(features="words:2"))
    assert [pointed[change.start : change.end] for change in explanation.left_changes] == [pointed.split()[2]]
    assert [plain[change.start : change.end] for change in explanation.right_changes] == [plain.split()[2]]
    assert [passage.tokens for passage in explanation.passages] == [2, 9]
    for passage in explanation.passages:
        (right, *_), left = passage.right, passage.left
        # Both begin and end with the same words, points and all.
        assert len(pointed[: left.start].split()) == len(plain[: right.start].split())
        assert len(pointed[: left.end].split()) == len(plain[: right.end].split())
        assert pointed[left.end : left.end + 1] in (" ", "")


@pytest.mark.parametrize(
    ("recipe", "numbers", "sentences"),
    [
        (
            Recipe(threshold=0.8),
            (188, 193, 193),
            [
                ("no longer match", " 0.9495 or higher"),
                ("no longer match", " 171 or fewer shared features"),
                ("survive", " 3 more changed words", "estimate", "up to 5 5-grams"),
            ],
        ),
        (
            Recipe(threshold=0.8),
            (70, 100, 100),
            [("They match", " 0.5384 or lower"), ("they match", " 89 or more shared features")],
        ),
        (
            Recipe(threshold=0.8),
            (10, 10, 100),
            [("They match", " 0.1 or lower"), (" 49 shared features", "smaller document", "lengths alone", "apart")],
        ),
        (
            Recipe(measure="containment", jaccard_floor=0.5, threshold=0.8),
            (10, 10, 100),
            [("No threshold", "match", "Jaccard", "floor of 0.5."), (" 37 shared features", "lengths alone")],
        ),
        (
            Recipe(threshold=1.0),
            (5, 5, 5),
            [
                ("No threshold would separate", "highest"),
                ("no longer match", " 4 or fewer shared features"),
                ("One more changed word", "may part them", "estimate", "up to 5 5-grams"),
            ],
        ),
        (
            Recipe(threshold=0.5),
            (0, 2, 2),
            [("No threshold", "match", "share no feature"), ("they match", " 2 or more shared features")],
        ),
    ],
)
def test_sentences_state_what_would_reverse_the_verdict(
    recipe: Recipe, numbers: tuple[int, int, int], sentences: list[tuple[str, ...]]
) -> None:
    for message, words in zip(find_counterfactual(recipe, *numbers).sentences, sentences, strict=True):
        assert says(message, *words)


def alternating(count: int, end: str) -> str:
    """Equal runs of equal words, between words that no other text has."""
    return " ".join(f"a a a a a {end}{number}" for number in range(count))


def test_two_texts_with_a_million_common_places_get_a_bounded_answer() -> None:
    why = explain(alternating(1200, "y"), alternating(1200, "z"), Recipe(features="words:5"))
    found = why.as_dict()
    assert len(found["passages"]) == 100
    assert sum(len(passage["right"]) for passage in found["passages"]) == 100
    assert {passage["places"] for passage in found["passages"]} == {1200}
    for spans in (found["segments"], found["changes"]):
        assert len(spans["left"]) == len(spans["right"]) == 100
    assert why.totals[:1] == (1200,)
    assert found["notes"] == [
        "of 1,200 passages, the 100 longest are listed",
        "of 2,400 stretches of the left text, the 100 longest are listed",
        "of 2,400 stretches of the right text, the 100 longest are listed",
        "of 1,200 changes of the left text, the 100 longest are listed",
        "of 1,200 changes of the right text, the 100 longest are listed",
        "of 120,000 places of these passages of the right text, 100 are listed",
    ]
    assert len(json.dumps(found)) < 100_000


def test_of_many_passages_the_longest_are_listed_first() -> None:
    runs = [" ".join(f"w{number}" for number in range(length)) for length in range(3, 120)]
    left, right = (" ".join(f"{run} {sign}{at}" for at, run in enumerate(runs)) for sign in "yz")
    why = explain(left, right, Recipe(features="words:3"))
    assert [passage.tokens for passage in why.passages] == list(range(119, 19, -1))
    assert why.totals.passages == len(runs)
    assert "of 117 passages, the 100 longest are listed" in why.notes


def test_a_pair_of_which_all_is_listed_has_no_notes() -> None:
    assert explain("a b c d e", "a b c d f", Recipe(features="words:2")).notes == ()


def test_long_texts_are_searched_at_their_beginning_and_the_notes_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.pipeline.passages.SEARCHED_GRAMS", 50)
    text = " ".join(f"w{number}" for number in range(200))
    why = explain(text, text + " end", Recipe(features="words:2"))
    assert [passage.tokens for passage in why.passages] == [51]
    assert why.notes == ("passages are looked for among the first 50,000 features of each text",)
    why = explain(f"a b {text}", f"a c {text.replace('w', 'v')}", Recipe(features="words:2"))
    assert why.left_changes == ((2, 2 + len("b " + " ".join(f"w{number}" for number in range(48)))),)
    assert why.notes == (
        "passages are looked for among the first 50,000 features of each text",
        "changes are looked for among the first 50,000 words outside the shared features of each text",
    )


def hostile_pairs(characters: int) -> dict[str, tuple[str, str]]:
    """Pairs of about so many characters each, of the shapes that make alignment and common runs slow."""
    words, random = [f"w{number}" for number in range(characters // 6)], Random(0)
    marks = "\u0301\u0323" * (characters // 2)
    han = ["".join(chr(0x4E00 + random.randrange(20_000)) for _ in range(characters)) for _ in range(2)]
    two = [" ".join(random.choices("ab", k=characters // 2)) for _ in range(2)]
    return {
        "all words distinct": (" ".join(words), " ".join(words[1:] + words[:1])),
        "shuffled": (" ".join(words), " ".join(random.sample(words, len(words)))),
        "nothing in common": (" ".join(words), " ".join(words).replace("w", "v")),
        "one word": ("a " * (characters // 2), "a " * (characters // 2 - 1) + "b"),
        "periodic": ("a.b." * (characters // 4), "b.a.c." + "a.b." * (characters // 4)),
        "two words": (two[0], two[1]),
        "one long word": ("x" * characters, "x" * characters + "y"),
        "marks": ("e" + marks, "e" + marks[::-1]),
        "Han": (han[0], han[1]),
        "alternating": (alternating(characters // 16, "y"), alternating(characters // 16, "z")),
        "sentences of a word": ("a. " * (characters // 3), "b? a. " * (characters // 6)),
        "lines without a word": ("\n" * characters + "a", ".\n" * (characters // 2)),
    }


@pytest.mark.parametrize("features", ["words:5", "qgrams:5", "sentence_words:2"])
def test_time_is_linear_for_hostile_texts(features: str) -> None:
    recipe = Recipe(features=features)
    small, large = hostile_pairs(2_000), hostile_pairs(16_000)
    # A collection of garbage goes through all that earlier tests left.
    gc.disable()
    try:
        for shape, pair in small.items():
            explain(*pair, recipe)
            begin = time.process_time()
            explain(*pair, recipe)
            middle = time.process_time()
            explain(*large[shape], recipe)
            # Eight times the text: 64 times the time if it were quadratic.
            assert time.process_time() - middle < 30 * max(middle - begin, 0.01), shape
    finally:
        gc.enable()


@pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="NEARDUP_LONG=1 runs the long drills")
def test_a_pair_of_megabytes_is_explained_in_seconds() -> None:
    explain("a é", "b é", Recipe(features="words:5"))
    for shape, pair in hostile_pairs(1_000_000).items():
        cut = tuple(text.encode()[:1_000_000].decode(errors="ignore") for text in pair)
        begin = time.process_time()
        explain(cut[0], cut[1], Recipe(features="words:5")).as_dict()
        assert time.process_time() - begin < 5, shape
