"""How a corpus grows: the figures of its first documents and of random ones, each as a corpus of its own."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saying import says

import neardup as nd
from neardup.documents import corpus_of
from neardup.exploration.curve import Growth, Size, by_chance, curve_of
from neardup.recipe import Recipe


def growth_of(data: Any, recipe: Recipe, **options: Any) -> Growth | None:
    return curve_of(corpus_of(data, text_column=None, id_column=None, order_column=None), recipe, **options).growth


def texts_of(seed: int, count: int) -> list[str]:
    drawn = random.Random(seed)
    texts: list[str] = []
    for _ in range(count):
        words = [f"w{drawn.randrange(400)}" for _ in range(12)]
        if texts and drawn.random() < 0.5:
            words = drawn.choice(texts).split() or words
            words[drawn.randrange(12)] = f"w{drawn.randrange(400)}"
        texts.append(" ".join(words) if drawn.random() < 0.97 else "")
    return texts


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(0, 80),
    keep=st.sampled_from(["first", "longest"]),
    of=st.integers(0, 3),
)
def test_each_size_is_a_corpus_of_its_own(seed: int, count: int, keep: str, of: int) -> None:
    texts = texts_of(seed, count)
    growth = growth_of(texts, Recipe(features="words:1", threshold=0.6, keep=keep), seed=of, step=1.0)
    if count < 32:
        assert growth is None
        return
    assert growth is not None
    assert [size.documents for size in growth.first] == [count * part // 16 for part in (1, 2, 4, 8, 16)]
    at_random = by_chance(np.arange(count), of)
    for series, order in ((growth.first, np.arange(count)), (growth.drawn, at_random)):
        for size in series:
            alone = nd.dedup(
                [texts[d] for d in sorted(order[: size.documents])], features="words:1", threshold=0.6, keep=keep
            )
            assert (size.pairs, size.dropped) == (len(alone.pairs), len(alone.dropped))
    pairs = [(pair.left, pair.right) for pair in nd.dedup(texts, features="words:1", threshold=0.6).pairs]
    parts = {int(d): number for number, part in enumerate(np.array_split(np.arange(count), 16)) for d in part}
    within = sum(parts[left] == parts[right] for left, right in pairs)
    assert growth.together == (within / len(pairs) if pairs else 0)


def test_documents_that_are_set_aside_do_not_count() -> None:
    texts = texts_of(4, 60)
    ids = [*range(50), *range(10)]
    growth = growth_of(pa.table({"id": ids, "text": texts}), Recipe(features="words:1", threshold=0.6))
    alone = growth_of(texts[:50], Recipe(features="words:1", threshold=0.6))
    assert growth == alone


def test_a_draw_goes_by_seed_and_rows_and_holds_smaller_ones() -> None:
    order = by_chance(np.arange(1000), 3)
    assert sorted(order.tolist()) == list(range(1000))
    assert order.tolist() != by_chance(np.arange(1000), 4).tolist()
    rows = np.arange(0, 1000, 2)
    assert (2 * by_chance(rows, 3)).tolist() == [row for row in order.tolist() if row % 2 == 0]
    assert by_chance(np.arange(6), 0).tolist() == [0, 4, 5, 3, 1, 2]


def growth(first: list[tuple[int, int, int]], drawn: list[tuple[int, int, int]], together: float) -> Growth:
    sizes = [tuple(Size(documents=d, pairs=p, dropped=x) for d, p, x in series) for series in (first, drawn)]
    return Growth(threshold=0.5, first=sizes[0], drawn=sizes[1], together=together, seed=0)


def series(pairs: list[int]) -> list[tuple[int, int, int]]:
    return [(1000 * 2**i, each, each // 2) for i, each in enumerate(pairs)]


CHANCE = series([4, 16, 64, 256, 1024])


@pytest.mark.parametrize(
    ("first", "together", "said"),
    [
        (
            series([64, 128, 256, 512, 1024]),
            0.9,
            ("density falls", "match stand close"),
        ),
        (
            series([0, 0, 16, 128, 1024]),
            0.08,
            ("density rises", "match stand anywhere"),
        ),
        (CHANCE, 0.06, ("density stays", "about the same")),
    ],
    ids=["falls", "rises", "stays"],
)
def test_the_sentence_tells_what_the_density_does(
    first: list[tuple[int, int, int]], together: float, said: tuple[str, ...]
) -> None:
    sentence = growth(first, CHANCE, together).sentence
    assert says(sentence, *said)
    assert says(sentence, f"At 0.5 {32 * first[2][1] / 256:.3g} pairs", "first 4,000 documents")
    assert "8 among all 16,000" in sentence
    assert "(8 for 4,000)" in sentence
    assert says(sentence, "share", "dropped", "0.8 % of these", "3.2 % of all")


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([0] * 5, ("At 0.5", "no pair matches")),
        ([0, 0, 0, 0, 1], ("At 0.5", "one pair matches", "too few")),
        ([0, 0, 2, 9, 99], ("At 0.5", "99 pairs match", "too few")),
    ],
    ids=["none", "one", "few"],
)
def test_of_few_pairs_nothing_is_said(pairs: list[int], said: tuple[str, ...]) -> None:
    sentence = growth(series(pairs), series(pairs), 0.5).sentence
    assert says(sentence, *said)
    assert "density" not in sentence


def test_the_share_of_random_documents_grows_and_their_density_does_not() -> None:
    """A family of two for each ten documents, in any order: what a random sample says of its corpus."""
    drawn = random.Random(2)
    texts = [" ".join(f"{i}w{k}" for k in range(8)) for i in range(3600)]
    texts += [f"{text} more" for text in texts[:400]]
    drawn.shuffle(texts)
    found = growth_of(texts, Recipe(features="words:1", threshold=0.5))
    assert found is not None
    assert [size.pairs for size in found.first][-1] == 400
    half, whole = found.drawn[-2:]
    assert 0.7 < half.per_million / whole.per_million < 1.3
    assert [a.share < b.share for a, b in pairwise(found.drawn)] == [True] * 4


def test_growth_is_ready_for_json() -> None:
    found = growth(CHANCE, CHANCE, 0.5)
    told = json.loads(json.dumps(found.as_dict()))
    assert told["first"][0] == {
        "documents": 1000,
        "pairs": 4,
        "dropped": 2,
        "per_million": 4e6 / 499500,
        "share": 0.002,
    }
    assert told["sentence"] == found.sentence
