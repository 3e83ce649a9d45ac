"""What each threshold would give on the whole corpus: the figures of a run of its own, from one join."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saying import says

import neardup as nd
from neardup.documents import corpus_of, open_corpus
from neardup.exploration.curve import Curve, Point, Whole, curve_of
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.search.matches import Matches
from neardup.search.thresholds import levels_of

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MEASURES = ("jaccard", "overlap", "dice", "cosine", "containment")


def whole(data: Any, recipe: Recipe, **options: Any) -> Whole:
    corpus = corpus_of(data, text_column=None, id_column=None, order_column=None)
    return curve_of(corpus, recipe, threads=2, **options)


def small_corpus(seed: int, count: int = 40, words: int = 12) -> list[str]:
    """Return texts with copies, edited copies, empty ones and ones of a single word."""
    drawn = random.Random(seed)
    texts: list[str] = []
    for _ in range(count):
        kind = drawn.random()
        if texts and kind < 0.1:
            texts.append(drawn.choice(texts))
        elif texts and kind < 0.6:
            some = drawn.choice(texts).split() or ["one"]
            for _ in range(drawn.choice([1, 1, 2, 4])):
                some[drawn.randrange(len(some))] = f"w{drawn.randrange(40)}"
            texts.append(" ".join(some))
        else:
            texts.append(" ".join(f"w{drawn.randrange(40)}" for _ in range(drawn.choice([0, 1, words, 2 * words]))))
    return texts


def expected(texts: Sequence[str], recipe: Recipe, threshold: Fraction) -> tuple[int, int, int, int]:
    """Pairs, dropped documents, families and the largest family at one threshold, slow and plain."""
    features = recipe.parsed_features
    sets = [naive.grams(text, recipe.normalize, features.kind, features.n, features.multiset) for text in texts]
    pairs = naive.all_pairs(sets, recipe.measure, threshold)
    places = range(len(texts))
    order = {
        "first": list(places),
        "longest": sorted(places, key=lambda d: -len(texts[d])),
        "shortest": sorted(places, key=lambda d: len(texts[d])),
    }[recipe.keep]
    families = naive.families(len(texts), pairs)
    return len(pairs), len(naive.keepers(len(texts), pairs, order)), len(families), max(map(len, families), default=0)


def figures(point: Point) -> tuple[int | None, ...]:
    return point.pairs, point.dropped, point.families, point.largest_family


@settings(max_examples=50)
@given(
    seed=st.integers(0, 1 << 30),
    features=st.sampled_from(["words:1", "words:2", "words:3:multiset", "qgrams:3"]),
    measure=st.sampled_from(MEASURES),
    keep=st.sampled_from(["first", "longest", "shortest"]),
    lowest=st.sampled_from([0.05, 0.2, 0.25, 1 / 3, 0.6]),
    own=st.sampled_from([0.1, 0.5, 0.85, 2 / 3, 1.0]),
)
def test_each_point_is_what_plain_python_finds(
    seed: int, features: str, measure: str, keep: str, lowest: float, own: float
) -> None:
    texts = small_corpus(seed, 25)
    recipe = Recipe(features=features, measure=measure, keep=keep, threshold=own)
    curve = whole(texts, recipe, lowest=lowest, step=0.05).curve
    assert curve.complete
    assert curve.documents == len(texts)
    assert curve.asked == curve.lowest == min(lowest, own)
    assert [point.threshold for point in curve.points] == sorted(
        {min(lowest, own), own, *(k / 20 for k in range(1, 21) if k / 20 > min(lowest, own))}
    )
    for point in curve.points:
        at = Fraction(str(point.threshold)).limit_denominator(10**9)
        assert figures(point) == expected(texts, recipe, at), point


@given(
    counts=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50)).map(
            lambda c: (c[0], c[0] + c[1], c[0] + c[2])
        ),
        min_size=1,
        max_size=60,
    ),
    measure=st.sampled_from(MEASURES),
    thresholds=st.sets(st.fractions(Fraction(1, 60), 1, max_denominator=60), min_size=1, max_size=150),
    near=st.booleans(),
)
def test_the_level_of_a_pair_is_exact(
    counts: list[tuple[int, int, int]], measure: str, thresholds: set[Fraction], near: bool
) -> None:
    if near:  # thresholds that pairs reach exactly, and ones that are hardly higher
        for o, a, b in counts[:20]:
            exact = Fraction(o, a + b - o)
            thresholds |= {exact, min(exact + Fraction(1, 10**9), Fraction(1))}
    ascending = sorted(thresholds)
    reached = [[naive.reaches(measure, o, a, b, t) for t in ascending] for o, a, b in counts]
    joined = [place for place, row in enumerate(reached) if row[0]]
    array = np.array([counts[place] for place in joined], np.int64).reshape(-1, 3)
    left = np.arange(len(joined), dtype=np.int64)
    matches = Matches(np.arange(2 * len(joined) + 1), left, left + len(joined), array)
    levels = levels_of(matches, measure, np.arange(2 * len(joined) + 1), ascending)
    assert levels.level.tolist() == [sum(reached[place]) - 1 for place in joined]
    assert levels.pairs().tolist() == [sum(reached[place][k] for place in joined) for k in range(len(ascending))]


@given(seed=st.integers(0, 1 << 30), data=st.data())
def test_figures_of_chosen_documents_are_those_of_a_graph_of_them_alone(seed: int, data: st.DataObject) -> None:
    """More thresholds than bits of a word, documents in any keep order, some of them equal, some left out."""
    drawn = random.Random(seed)
    count, thresholds = drawn.randrange(1, 30), drawn.choice([1, 3, 64, 65, 150])
    groups = [drawn.randrange(count) for _ in range(count)]
    first = [groups.index(group) if drawn.random() < 0.95 else -1 for group in groups]
    representative = [d if place < 0 or first[place] < 0 else place for d, place in enumerate(first)]
    representative = [-1 if first[d] < 0 else place for d, place in enumerate(representative)]
    nodes = [d for d in range(count) if representative[d] == d]
    edges = {(i, j): drawn.randrange(thresholds) for i in nodes for j in nodes if i < j and drawn.random() < 0.2}
    order = drawn.sample(range(count), count)
    chosen = [drawn.random() < 0.7 for _ in range(count)]
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    reached = np.array([edges[i, j] + 1 for i, j in sorted(edges)], np.int64)
    counts = np.column_stack([reached, np.full((len(reached), 2), thresholds)])
    matches = Matches(np.array(representative), pairs[:, 0], pairs[:, 1], counts)
    fractions = [Fraction(k + 1, thresholds) for k in range(thresholds)]
    levels = levels_of(matches, "overlap", np.array(order), fractions)
    mask = data.draw(st.sampled_from([None, np.array(chosen)]))
    found = levels.figures(mask)
    members = [d for d in range(count) if mask is None or chosen[d]]
    for k in {0, thresholds // 2, thresholds - 1}:
        there = {
            (i, j): 1.0
            for i in members
            for j in members
            if i < j and representative[i] >= 0 and representative[j] >= 0
            for a, b in [sorted((representative[i], representative[j]))]
            if a == b or edges.get((a, b), -1) >= k
        }
        families = naive.families(count, there)
        assert found.pairs[k] == len(there)
        assert found.dropped[k] == len(naive.keepers(count, there, [d for d in order if d in members]))
        assert found.families[k] == len(families)
        assert found.largest_family[k] == max(map(len, families), default=0)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1 << 30),
    most=st.integers(0, 60),
    own=st.sampled_from([0.2, 0.4, 0.8, 1.0]),
    measure=st.sampled_from(["jaccard", "containment"]),
)
def test_where_the_pairs_are_too_many_nothing_is_guessed(seed: int, most: int, own: float, measure: str) -> None:
    texts = small_corpus(seed, 30)
    recipe = Recipe(features="words:1", threshold=own, measure=measure)
    curve, result, growth = whole(texts, recipe, most_pairs=most)
    distinct = {frozenset(text.split()): text for text in texts}
    assert [point.threshold for point in curve.points] == sorted({point.threshold for point in curve.points})
    for point in curve.points:
        at = Fraction(str(point.threshold))
        pairs, dropped, families, largest = expected(texts, recipe, at)
        assert point.dropped == dropped
        if curve.lowest is None or point.threshold < curve.lowest:
            assert (point.pairs, point.families, point.largest_family) == (None, None, None)
            assert at % Fraction(1, 20) == 0
        else:
            assert figures(point) == (pairs, dropped, families, largest)
    assert curve.complete == (curve.note == "")
    if curve.lowest is not None:
        assert expected(list(distinct.values()), recipe, Fraction(str(curve.lowest)))[0] <= most
    alone = run(corpus_of(texts, text_column=None, id_column=None, order_column=None), recipe, pairs_per_document=None)
    assert result.kept == alone.kept
    assert [(d.id, d.keeper, d.similarity) for d in result.dropped] == [
        (d.id, d.keeper, d.similarity) for d in alone.dropped
    ]
    if growth is not None and curve.lowest is not None:
        assert growth.threshold == max(curve.lowest, own)


def test_the_result_is_that_of_dedup() -> None:
    table = pa.table({"id": [*range(40)], "text": small_corpus(5)})
    recipe = Recipe(features="words:2", threshold=0.55, keep="longest")
    found = whole(table, recipe).result
    alone = run(corpus_of(table, text_column=None, id_column=None, order_column=None), recipe, threads=2)
    left_out = {"stages", "search"}
    assert {key: value for key, value in found.summary.items() if key not in left_out} == {
        key: value for key, value in alone.summary.items() if key not in left_out
    }
    assert found.families == alone.families
    assert list(found.pairs) == list(alone.pairs)
    assert found.at(0.7).kept == alone.at(0.7).kept


def test_points_are_what_dedup_says_at_each_threshold() -> None:
    texts = small_corpus(11, 120)
    recipe = Recipe(features="words:2:multiset", threshold=0.5)
    curve = whole(texts, recipe).curve
    assert len(curve.points) == 81
    for threshold in (0.2, 0.21, 0.33, 0.5, 0.77, 0.99, 1.0):
        summary = nd.dedup(texts, features="words:2:multiset", threshold=threshold).summary
        point = curve.at(threshold)
        assert point is not None
        names = ("threshold", "pairs", "dropped", "families", "largest_family")
        assert {name: getattr(point, name) for name in names} == {"threshold": threshold} | {
            name: summary[name] for name in names[1:]
        }
    assert curve.at(0.123) is None


@pytest.mark.parametrize("weights", ["idf", "tf"])
def test_weighted_vectors_have_a_curve_too(weights: str) -> None:
    texts = small_corpus(3, 60)
    recipe = Recipe(features="words:1", weights=weights, measure="cosine", threshold=0.5)
    curve = whole(texts, recipe, step=0.1).curve
    for point in curve.points:
        alone = nd.dedup(texts, features="words:1", weights=weights, measure="cosine", threshold=point.threshold)
        assert figures(point) == tuple(
            alone.summary[name] for name in ("pairs", "dropped", "families", "largest_family")
        )
    most = nd.dedup(texts, features="words:1", weights=weights, measure="cosine", threshold=0.5).summary["pairs"]
    raised = whole(texts, recipe, most_pairs=most).curve
    assert not raised.complete
    assert raised.lowest == raised.points[0].threshold
    assert "Dropped documents" not in raised.note
    with pytest.raises(nd.RecipeError) as caught:
        whole(texts, recipe, most_pairs=3)
    assert says(caught.value, "more than 3 pairs", "at 0.5", "curve of weights")


def test_slightly_different_copies_neither_explode_nor_lie() -> None:
    drawn = random.Random(1)
    body = [f"w{i}" for i in range(60)]
    texts = []
    for _ in range(1600):
        words = list(body)
        words[drawn.randrange(60)] = f"x{drawn.randrange(1000)}"
        texts.append(" ".join(words))
    curve, result, growth = whole(texts, Recipe(features="words:1", threshold=0.5))
    assert curve.most_pairs == 1_000_000
    assert not curve.complete
    # Two copies share 59 words of 61 if the same place was changed, else 58 of 62.
    assert curve.lowest == 0.94
    assert says(curve.note, "At 0.2", "more pairs", "1,000,000", "from 0.94 on")
    assert [point.dropped for point in curve.points if point.threshold < 0.94] == [1599] * 15
    assert all(point.pairs is None for point in curve.points if point.threshold < curve.lowest)
    assert len(result.dropped) == 1599
    assert not result.summary["all_pairs"]
    assert growth is not None
    assert growth.threshold == curve.lowest
    table = [point.threshold for point in curve.table]
    assert table == sorted({*(k / 20 for k in range(4, 21)), curve.lowest})


def test_neither_threads_nor_files_show(tmp_path: Path) -> None:
    texts = small_corpus(9, 90)
    rows = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "all.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(rows[:31]) + "\n", "utf-8")
    (tmp_path / "b.jsonl").write_text("\n".join(rows[31:]) + "\n", "utf-8")
    seen = set()
    for inputs, threads in ((["all.jsonl"], 1), (["all.jsonl"], 2), (["a.jsonl", "b.jsonl"], 2)):
        with open_corpus([str(tmp_path / name) for name in inputs]) as corpus:
            curve, _, growth = curve_of(corpus, Recipe(features="words:1", threshold=0.5), threads=threads)
        assert growth is not None
        seen.add(json.dumps([curve.as_dict(), growth.as_dict()]))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(signature="simhash", measure="hamming", threshold=3), ("measure 'hamming'", "no similarity")),
        (Recipe(measure="euclidean", threshold=3), ("measure 'euclidean'", "no similarity")),
        (Recipe(second_step="edit >= 0.9"), ("second_step 'edit >= 0.9'", "threshold", "leave it out")),
        (Recipe(search="lsh"), ("search 'lsh'", "other pairs", "search 'exact'")),
    ],
    ids=["bits", "distance", "second step", "lsh"],
)
def test_recipes_without_a_curve_are_refused(recipe: Recipe, message: tuple[str, ...]) -> None:
    with pytest.raises(nd.RecipeError) as caught:
        whole(["a b c"], recipe)
    assert says(caught.value, *message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lowest": 0.0}, ("lowest threshold 0.0", "(0, 1]")),
        ({"lowest": 1.5}, ("lowest threshold 1.5", "(0, 1]")),
        ({"step": 0.0001}, ("step 0.0001", "below 0.001", "at least")),
        ({"step": math.nan}, ("step nan", "not a number")),
        ({"threads": 0}, ("threads 0", "below 1")),
    ],
    ids=["zero", "above", "fine", "nan", "threads"],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: tuple[str, ...]) -> None:
    corpus = corpus_of(["a b c"], text_column=None, id_column=None, order_column=None)
    with pytest.raises(nd.RecipeError) as caught:
        curve_of(corpus, Recipe(), **options)
    assert says(caught.value, *message)


@pytest.mark.parametrize(
    "texts", [[], [""], ["", ""], ["one"], ["one", "one"], ["\ud800", "\x00", "مرحبا", "你好", "🙂"]]
)
def test_hardly_any_documents(texts: list[str]) -> None:
    curve, result, growth = whole(texts, Recipe(features="words:1", threshold=0.5))
    assert curve.complete
    assert {point.dropped for point in curve.points} == {len(result.dropped)}
    assert growth is None


def test_a_curve_is_ready_for_json() -> None:
    curve = whole(small_corpus(2), Recipe(features="words:1", threshold=0.5)).curve
    told = json.loads(json.dumps(curve.as_dict()))
    assert told["points"][0] == {
        "threshold": 0.2,
        "dropped": curve.points[0].dropped,
        "pairs": curve.points[0].pairs,
        "families": curve.points[0].families,
        "largest_family": curve.points[0].largest_family,
    }
    assert told["complete"] is True
    assert told["recipe"]["features"] == "words:1"


def test_a_curve_without_all_pairs_anywhere_says_so() -> None:
    curve = Curve(recipe=Recipe(), documents=3, asked=0.2, lowest=None, most_pairs=1, points=())
    assert says(curve.note, "At every threshold", "more pairs", "1: ", "not known")


@pytest.mark.shared
@pytest.mark.parametrize("name", ["adzuna", "peps"])
def test_real_corpora(name: str) -> None:
    path = DATA / name / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    with open_corpus([str(path)]) as corpus:
        curve, result, growth = curve_of(corpus, Recipe(features="words:4", threshold=0.5))
    for threshold in (0.2, 0.25, 0.5, 0.83):
        with open_corpus([str(path)]) as corpus:
            summary = run(corpus, Recipe(features="words:4", threshold=threshold)).summary
        point = curve.at(threshold)
        assert point is not None
        assert figures(point) == tuple(summary[key] for key in ("pairs", "dropped", "families", "largest_family"))
    assert growth is not None
    assert growth.first[-1].dropped == len(result.dropped)
