"""Every engine lists a pair once: with and without a reference, groups, a budget and threads."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from compared import edited_texts, numbered_words
from hypothesis import given
from hypothesis import strategies as st
from two_sides import SIDES, WAYS, constants, listed, named, plain_pairs

import neardup as nd
from neardup.kernels.window import HALF_RANGE
from neardup.search import bounded_join, engines, join, nearest, scan_count

#: The options of each engine, and constants of its modules that bring its paths about in a small corpus.
ENGINES: dict[str, tuple[dict[str, Any], dict[Any, dict[str, int]]]] = {
    "prefixes": ({"threshold": 0.5}, {}),
    "counted lists": (
        {"threshold": 0.5},
        {join: {"MIN_MEETINGS": -1, "_MEETINGS_PER_FEATURE": 0}, scan_count: {"_BATCH": 16, "_PIECE": 5}},
    ),
    "weights": ({"threshold": 0.5, "measure": "cosine", "weights": "tf"}, {}),
    "hamming": ({"threshold": 8, "measure": "hamming", "signature": "simhash"}, {}),
    "lsh": ({"threshold": 0.5, "search": "lsh"}, {}),
    "parts": (
        {"threshold": 0.5, "memory": 1_000_000},
        {bounded_join: {"_MIN_STORED": 0, "_MIN_PARTS": 8}},
    ),
    "second step": ({"threshold": 0.4, "second_step": "jaccard(qgrams:3) >= 0.5"}, {}),
    "some pairs": ({"threshold": 0.5, "pairs_per_document": 0}, {engines: {"_ALWAYS_ALLOWED_PAIRS": 5}}),
}


@pytest.mark.parametrize("engine", ENGINES)
@given(
    seed=st.integers(0, 10**9),
    count=st.integers(0, 60),
    against=st.booleans(),
    within=st.booleans(),
    threads=st.integers(1, 2),
)
def test_no_pair_comes_twice(engine: str, seed: int, count: int, against: bool, within: bool, threads: int) -> None:
    chosen, constants = ENGINES[engine]
    rng = random.Random(seed)
    texts = edited_texts(rng, count, numbered_words(30), sizes=(1, 5, 8, 20))
    sides = rng.choices("ab", k=count)
    rows = pa.table({"text": pa.array(texts, pa.string()), "side": pa.array(sides, pa.string())})
    split = rng.randint(0, count) if against else count
    options: dict[str, Any] = {"features": "words:1", "threads": threads} | chosen
    if within:
        options["within"] = "side"
        options.pop("pairs_per_document", None)
    if against:
        options["against"] = rows[split:]
    with pytest.MonkeyPatch.context() as patch:
        for module, values in constants.items():
            for name, value in values.items():
                patch.setattr(module, name, value)
        with nd.dedup(rows[:split], **options) as result:
            pairs = [(pair.left, pair.right, pair.right_from) for pair in result.pairs]
    assert len(pairs) == len(set(pairs)) == len(result.pairs)


@pytest.mark.parametrize("engine", WAYS)
def test_two_sides_with_the_density_limit_between_them(engine: str) -> None:
    way = WAYS[engine]
    expected = plain_pairs(way, SIDES)
    between = sum(right[0] == "o" for _, right in expected)
    assert between > 20
    assert len(expected) > between
    for chosen in constants(way):
        with pytest.MonkeyPatch.context() as patch:
            for module, name, value in chosen:
                patch.setattr(module, name, value)
            with nd.dedup(named("n", SIDES.new), against=named("o", SIDES.old), **way.options) as result:
                found = listed(result)
        assert sorted(found) == sorted(expected), chosen


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_MIN_LISTED", 1),
        ("_MIN_LISTED", 500),
        ("_QUERIES_PER_PIECE", 1),
        ("_CAPACITY", 1),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "weighted", "hamming"])
def test_neighbors_are_listed_once(engine: str, name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = WAYS[engine].options
    plain = list(nd.neighbors(SIDES.new, 59, **chosen))
    monkeypatch.setattr(nearest, "_LISTED_SHARE", 1 << 40)
    monkeypatch.setattr(nearest, name, value)
    assert list(nd.neighbors(SIDES.new, 59, threads=2, **chosen)) == plain
    pairs = {(neighbor.document, neighbor.neighbor) for neighbor in plain}
    assert len(plain) == len(pairs) > 1000


def test_more_documents_than_counting_tells_apart_are_joined_by_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "MIN_MEETINGS", -1)
    monkeypatch.setattr(join, "_MEETINGS_PER_FEATURE", 0)
    texts = edited_texts(random.Random(3), 100, numbered_words(30))
    assert join._MAX_COUNTED_SETS == HALF_RANGE
    recipe: dict[str, Any] = {"features": "words:1", "threshold": 0.5}
    counted = nd.dedup(texts, **recipe)
    monkeypatch.setattr(join, "_MAX_COUNTED_SETS", 50)
    by_prefix = nd.dedup(texts, **recipe)
    assert list(by_prefix.pairs) == list(counted.pairs)
    assert by_prefix.summary["search"]["candidates"] != counted.summary["search"]["candidates"]
