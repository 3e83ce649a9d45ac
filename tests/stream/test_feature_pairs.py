"""Signatures of features: matching documents share enough of them, and their table keeps every document."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_window import NaiveIndex, QuickIndex
from streaming import AT_LENGTH, NOON, RECIPES, SetClock, assert_same_verdicts, documents, examples, id_similarities
from test_index_properties import STREAMS, WINDOWS, Step, follow_steps, timed_documents

import neardup as nd
from neardup.kernels.bits import mix
from neardup.kernels.bounds import required_overlap, smallest_partner
from neardup.kernels.window import (
    BUCKET_WORDS,
    CELL_BITS,
    FIRST,
    MIN_SIZE,
    NEXT,
    SHARED_KEYS,
    count_bucket_hits,
    insert_in_buckets,
    insertion_credit,
    pair_signatures,
    plan_row,
)
from neardup.recipe import Recipe, load_recipe
from neardup.recipe.measures import Rule, rule
from neardup.search import window_index
from neardup.search.window import kind_of
from neardup.search.window_index import _CLASSES, Epoch, double_table, empty_vocabulary, plan_of, set_growth_limit

_ALL = (1 << 64) - 1
Words = npt.NDArray[np.uint64]


def small_plans(patch: pytest.MonkeyPatch, least: int) -> None:
    """Use signatures for sets of this size and larger, with buckets that are soon full."""
    patch.setattr(window_index, "_MIN_SIGNATURE_SIZE", least)
    patch.setattr(window_index, "initial_bucket_count", lambda slots, signatures: 2)


def naive_signatures(order: list[int], credit: int, bits: int, salt: int) -> Counter[int]:
    """Return the signatures of a document, feature by feature and cell by cell."""

    def mixed(x: int) -> int:
        for _ in range(2):
            x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & _ALL
        return x ^ x >> 32

    cells: dict[int, list[int]] = defaultdict(list)
    for feature in order:
        if sum(len(cell) - 1 for cell in cells.values()) >= credit:
            break
        value = mixed(feature) * salt & _ALL
        cells[value >> (64 - bits)].append(value)
    pairs = (pair for cell in cells.values() for pair in combinations(cell, 2))
    return Counter(mixed((a * 0x9E3779B97F4A7C15 + b) & _ALL) for a, b in pairs)


RULES = st.one_of(
    st.builds(
        rule, st.sampled_from(["jaccard", "overlap", "dice", "cosine"]), st.integers(30, 100).map(lambda x: x / 100)
    ),
    st.builds(rule, st.just("containment"), st.sampled_from([0.5, 0.75, 0.9, 1.0]), st.sampled_from([0.3, 0.5, 0.8])),
    st.builds(rule, st.just("euclidean"), st.sampled_from([1.0, 2.0, 3.5, 9.0])),
)
SALTS = st.integers(0, (1 << 63) - 1).map(lambda x: 2 * x + 1)


def query_signatures(order: Words, found: Rule, plan: Any, row: int, salt: int) -> Words:
    """Return the keys by which a document looks up those of a row, as ``meet_sets`` does."""
    size, equal = len(order), int(plan[row, SHARED_KEYS])
    low = max(int(plan[row, MIN_SIZE]), smallest_partner(found, size))
    entering = plan_row(plan, size) == row
    credit = insertion_credit(found, size, equal) if entering else size - required_overlap(found, size, low) + equal
    keys: Words = pair_signatures(order, credit, int(plan[row, CELL_BITS]), np.uint64(salt))
    return keys


@settings(max_examples=examples(100))
@given(RULES, st.integers(1, 24), st.data(), SALTS)
def test_matching_documents_share_enough_signatures(found: Rule, first: int, data: st.DataObject, salt: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_plans(patch, first)
        plan = plan_of(found, _CLASSES)
    begins = [int(least) for least in plan[:, MIN_SIZE] if least <= 300]
    if not begins:
        return
    begin = data.draw(st.sampled_from(begins))
    size = data.draw(st.integers(begin, begin + 200))
    row = plan_row(plan, size)
    partners = [m for m in range(1, 2 * size) if required_overlap(found, size, m) <= min(size, m)]
    other = data.draw(st.sampled_from(partners))
    least = required_overlap(found, size, other)
    shared = data.draw(st.integers(least, min(size, other, least + 2)))
    # Features of one side only may come first in the order, last, or anywhere.
    seed = data.draw(st.integers(0, 1 << 30))
    lead = data.draw(st.sampled_from(["first", "last", "mixed", "own first, other last"]))
    rng = random.Random(seed)
    place = {"first": (0, 0), "last": (2, 2), "mixed": (1, 1), "own first, other last": (0, 2)}[lead]
    span = (1 << 40) if lead != "mixed" else 1
    marks = rng.sample(range(1 << 30), size + other - shared)
    common = [x + span for x in marks[:shared]]
    left = common + [x + place[0] * span for x in marks[shared:size]]
    right = common + [x + place[1] * span for x in marks[size:]]
    inserted, query = np.array(sorted(left), np.uint64), np.array(sorted(right), np.uint64)
    equal = int(plan[row, SHARED_KEYS])
    credit = insertion_credit(found, size, equal)
    keys = pair_signatures(inserted, credit, int(plan[row, CELL_BITS]), np.uint64(salt))
    assert Counter(keys.tolist()) == naive_signatures(inserted.tolist(), credit, int(plan[row, CELL_BITS]), salt)
    shared_keys = Counter(keys.tolist()) & Counter(query_signatures(query, found, plan, row, salt).tolist())
    assert shared_keys.total() >= equal >= 1


@settings(max_examples=examples(60))
@given(st.data())
def test_buckets_keep_every_document_in_the_window(data: st.DataObject) -> None:
    kind, found, _ = kind_of(load_recipe("ddd"))
    epoch = Epoch(empty_vocabulary(), found, kind, 64, 0)
    epoch.begin_segment(0)
    # Documents are entered here without their features.
    lists = double_table(epoch._lists, 2)
    set_growth_limit(lists, 0)
    pool = [int(mix(np.uint64(x))) for x in range(1, data.draw(st.integers(2, 90)))]
    key_counts: dict[int, Counter[int]] = {}
    for document in range(data.draw(st.integers(1, 40))):
        keys = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=30))
        insert_in_buckets(np.array(keys, np.uint64), document, lists)
        key_counts[document] = Counter(keys)
        lists.counters[NEXT] = document + 1
        action = data.draw(st.sampled_from(["", "", "lengthen", "drop"]))
        if action == "lengthen" and len(lists.buckets) // BUCKET_WORDS < 64:
            lists = double_table(lists, 2)
        elif action == "drop":
            first = data.draw(st.integers(int(lists.counters[FIRST]), document))
            lists.counters[FIRST] = first
            key_counts = {d: c for d, c in key_counts.items() if d >= first}
        query = data.draw(st.sets(st.sampled_from(pool), min_size=1))
        count_bucket_hits(np.array(sorted(query), np.uint64), lists)
        for d, left in key_counts.items():
            assert lists.hits[d] >= min(sum(left[key] for key in query), 127)
        lists.hits[:] = 0


SERVED = ["default", "ddd", "words", "multiset", "overlap", "dice", "cosine", "containment", "euclidean", "positional"]


@pytest.mark.parametrize("recipe", SERVED)
@pytest.mark.parametrize("least", [1, 8] if AT_LENGTH else [1])
@settings(max_examples=examples(12))
@given(STREAMS, st.sampled_from(WINDOWS), st.booleans())
def test_verdicts_on_streams_equal_those_of_the_twin(
    recipe: str, least: int, stream: list[Step], window: tuple[Any, str, int], every: bool
) -> None:
    clock = SetClock()
    choices: dict[str, Any] = {"window": window[0], "window_by": window[1], "now": clock}
    choices["against"] = "everything" if every else "originals"
    with pytest.MonkeyPatch.context() as patch:
        small_plans(patch, least)
        index, twin = nd.Index(RECIPES[recipe], **choices), NaiveIndex(RECIPES[recipe], **choices)
        follow_steps(index, twin, clock, timed_documents(stream, window[2]))


def long_texts(count: int, seed: int) -> list[str]:
    """Return texts of 700 to 3,000 different words, half of them edited copies of others."""
    rng = random.Random(seed)
    texts: list[list[str]] = []
    for i in range(count):
        if texts and rng.random() < 0.6:
            words = list(rng.choice(texts[-60:]))
            for _ in range(int(len(words) * rng.choice([0.01, 0.1, 0.2, 0.29, 0.31, 0.45]))):
                words[rng.randrange(len(words))] = f"w{rng.randrange(20_000)}"
            words = words[: int(len(words) * rng.choice([1, 1, 0.95, 0.72, 0.68]))]
        else:
            words = [f"w{rng.randrange(20_000)}" for _ in range(rng.choice([800, 1300, 2000, 3000]))]
        texts.append([*words, f"x{i}"])
    return [" ".join(words) for words in texts]


@pytest.mark.parametrize(
    ("recipe", "window"),
    [
        (Recipe(features="words:1", measure="overlap", threshold=0.7), 150),
        (Recipe(features="words:1", threshold=0.5), None),
        (Recipe(features="words:1", measure="cosine", threshold=0.8), "1h"),
        (Recipe(features="words:1", measure="containment", threshold=0.9, jaccard_floor=0.5), 150),
    ][: None if AT_LENGTH else 2],
    ids=lambda value: value.measure if isinstance(value, Recipe) else str(value),
)
def test_verdicts_on_long_texts_equal_those_of_the_twin(recipe: Recipe, window: Any) -> None:
    texts = long_texts(240 if AT_LENGTH else 64, 5)
    choices: dict[str, Any] = {"window": window, "against": "everything", "now": SetClock(NOON + 9_000_000)}
    index, twin = nd.Index(recipe, **choices), QuickIndex(recipe, **choices)
    items = documents(texts, [NOON + 20 * i for i in range(len(texts))])
    for begin in range(0, len(items), 60):
        assert_same_verdicts(index.add_many(items[begin : begin + 60]), twin.add_many(items[begin : begin + 60]))
        assert id_similarities(index.query(texts[begin])) == twin.query(texts[begin])
    assert index.statistics.duplicates > len(texts) // 8
    large = [len(set(text.split())) >= 1448 for text in texts]
    assert len(texts) // 5 < sum(large) < len(texts) * 5 // 6
