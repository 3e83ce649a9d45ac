"""Passages that many documents share: runs and counts against a slow and plain twin, and texts of all kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import corpus_of
from neardup.exploration.boilerplate import (
    MAX_OCCURRENCES,
    ExtendedPassage,
    PassageGrower,
    SharedRuns,
    fewest_texts,
    shared_runs,
    written,
)
from neardup.text.normalize import tokens

Run = tuple[str, ...]


def words_of(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def naive_runs(text: str, length: int) -> list[Run]:
    words = words_of(text)
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]


def found_in(
    texts: Sequence[str],
    run: int,
    least: int,
    counting: Sequence[bool] | None = None,
    most_places: int = MAX_OCCURRENCES,
) -> SharedRuns:
    """Return the shared runs of distinct texts."""
    counts = np.array([True] * len(texts) if counting is None else counting, np.bool_)
    every = np.ones(len(texts), np.bool_)
    return shared_runs(corpus_of(list(texts)), every, counts, run=run, least=least, most_places=most_places)


def by_words(found: SharedRuns, texts: Sequence[str]) -> dict[Run, int]:
    """Return in how many texts each shared run is."""
    named: dict[int, Run] = {}
    for run, text, place in zip(found.runs.tolist(), found.texts.tolist(), found.places.tolist(), strict=True):
        words = tuple(words_of(texts[text])[place : place + found.run])
        assert named.setdefault(run, words) == words
    return {words: int(found.often[run]) for run, words in named.items()}


PHRASES = ("a b c d", "b c d e f", "d e f", "a", "f f f f f", "x", "y z a b", "e f a b c", "")


@st.composite
def corpora(draw: st.DrawFn) -> list[str]:
    parts = st.lists(st.sampled_from(PHRASES), min_size=0, max_size=5)
    texts = draw(st.lists(parts.map(" ".join), min_size=1, max_size=14))
    return [f"{text} n{at}" for at, text in enumerate(texts)]


@given(corpora(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1 << 14))
def test_shared_runs_are_those_of_the_definition(texts: list[str], run: int, least: int, mask: int) -> None:
    counting = [bool(mask >> at & 1) for at in range(len(texts))]
    found = found_in(texts, run, least, counting)
    counts: dict[Run, int] = {}
    for text, counts_too in zip(texts, counting, strict=True):
        for one in set(naive_runs(text, run)):
            counts[one] = counts.get(one, 0) + counts_too
    often = {one: count for one, count in counts.items() if count >= least}
    assert by_words(found, texts) == often
    places = [
        (at, place) for at, text in enumerate(texts) for place, one in enumerate(naive_runs(text, run)) if one in often
    ]
    assert list(zip(found.texts.tolist(), found.places.tolist(), strict=True)) == places
    assert found.words == sum(len(words_of(text)) for text in texts)
    covered = {(at, place + step) for at, place in places for step in range(run)}
    assert found.covered == len(covered)


def holding(texts: Sequence[str], words: Run) -> list[int]:
    return [at for at, text in enumerate(texts) if words in naive_runs(text, len(words))]


def check(
    passages: Sequence[ExtendedPassage], found: SharedRuns, texts: Sequence[str], counting: Sequence[bool]
) -> set[Run]:
    """Hold passages against their texts; return the runs that they are made of."""
    runs = set()
    for one in passages:
        said = {
            tuple(words_of(texts[at])[place : place + one.words])
            for at, place in zip(one.texts.tolist(), one.places.tolist(), strict=True)
        }
        assert len(said) == 1
        (words,) = said
        assert one.texts.tolist() == holding(texts, words)
        assert one.often == sum(counting[at] for at in one.texts.tolist())
        runs |= {words[at : at + found.run] for at in range(len(words) - found.run + 1)}
    return runs


@given(corpora(), st.integers(1, 4), st.integers(2, 4))
def test_passages_occur_in_exactly_their_texts(texts: list[str], run: int, least: int) -> None:
    found = found_in(texts, run, least)
    passages, complete = PassageGrower(found, np.ones(len(texts), np.bool_)).passages()
    assert complete
    runs = check(passages, found, texts, [True] * len(texts))
    assert runs <= set(by_words(found, texts))
    ranks = [-one.often * one.words for one in passages]
    assert ranks == sorted(ranks)


def test_a_company_and_a_legal_line_are_two_passages() -> None:
    drawn = random.Random(3)
    about = (
        "Bright Harbour is a family of care homes in the north west and has looked after people for thirty years.",
        "At Copperfield we build engines for ships, and everybody who works with us owns a part of the company.",
    )
    legal = "By applying for this job you accept the terms of the site and its privacy policy."
    texts = [f"{' '.join(f'w{drawn.randrange(400)}' for _ in range(40))}. {about[at % 2]} {legal}" for at in range(40)]
    passages, _ = PassageGrower(found_in(texts, 8, fewest_texts(40)), np.ones(40, np.bool_)).passages()
    said = [(written(texts[one.texts[0]], int(one.places[0]), one.words), one.often) for one in passages]
    assert said[0] == (legal, 40)
    assert [(text.split()[0], times) for text, times in said[1:]] == [("Bright", 20), ("At", 20)]


def test_a_more_frequent_run_is_a_passage_of_its_own() -> None:
    footer = " ".join(f"f{step}" for step in range(60))
    about = [" ".join(f"about{one}x{step}" for step in range(12)) for one in range(4)]
    texts = [f"n{at} {about[at % 4]} {footer} {about[at % 4][::-1]} m{at}" for at in range(48)]
    found = found_in(texts, 8, 5)
    passages, _ = PassageGrower(found, np.ones(48, np.bool_)).passages()
    check(passages, found, texts, [True] * 48)
    assert [(one.words, one.often) for one in passages] == [(60, 48)] + 8 * [(12, 12)]


@pytest.mark.parametrize(
    "line",
    [
        "版权所有，未经书面授权不得转载或镜像。",
        "🎉🎊🥳🎈🎁🎂🍰🕯️ 🎶",
        "All\u0000rights\u0001reserved \u202eby us <b>and</b> our\u00a0 friends & partners",
    ],
)
def test_passages_of_all_scripts_are_found_as_written(line: str) -> None:
    texts = [f"{at}a{at} {line} {at}b{at}" for at in range(6)]
    passages, _ = PassageGrower(found_in(texts, 8, 5), np.ones(6, np.bool_)).passages()
    assert len(passages) == 1
    said = written(texts[0], int(passages[0].places[0]), passages[0].words)
    assert words_of(said) == words_of(line)
    assert said in texts[0]


def test_too_many_places_raise_the_least_count() -> None:
    common = "one two three four five six seven eight nine"
    texts = [f"{common} a{at}" for at in range(30)]
    texts += [f"p{at // 5} " + " ".join(f"q{at // 5}x{step}" for step in range(12)) + f" r{at}" for at in range(50)]
    every = found_in(texts, 8, 4)
    assert every.least == 4
    few = found_in(texts, 8, 4, most_places=100)
    assert few.least == 8
    assert by_words(few, texts) == {run: times for run, times in by_words(every, texts).items() if times >= 8}
