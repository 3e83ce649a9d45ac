"""Long streams against a quick twin, whole corpora, and the endless window against ``dedup``."""

from __future__ import annotations

import gc
import gzip
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_window import NaiveIndex, QuickIndex
from paths import SHARED as DATA
from streaming import (
    AT_LENGTH,
    CLASSIFIERS,
    DAY,
    NOON,
    RECIPES,
    TEXTS,
    SetClock,
    assert_same_verdicts,
    documents,
    examples,
    id_similarities,
    make_index,
    window_ids,
)

import neardup as nd
from neardup.recipe import Recipe
from neardup.search import window as window_module
from neardup.search import window_index
from neardup.search.window_index import Epoch


def dropped(verdicts: Sequence[nd.Verdict]) -> dict[str, tuple[str | None, float | None]]:
    return {v.id: (v.of, v.similarity) for v in verdicts if v.is_duplicate}


FACTS = st.sampled_from(
    [
        "Profit of Acme rose to 1,000 crowns",
        "Profit of Acme rose to 1000 crowns",
        "Profit of Acme rose to ١٠٠٠ crowns",
        "Profit of Borealis rose to 17 crowns",
        "profit rose to CROWNS",
        "اسعار النفط ارتفعت 17",
        "اسعار النفط ارتفعت",
        "naïve café",
        "naive cafe\u0301",
        "\x00",
    ]
)


@pytest.mark.parametrize("recipe", [*RECIPES, *CLASSIFIERS])
@settings(max_examples=examples(15))
@given(st.lists(st.one_of(TEXTS, FACTS), max_size=30))
def test_an_endless_window_equals_dedup(recipe: str, texts: list[str]) -> None:
    index = make_index(recipe, window=None)
    decision: Any = {"classifier": index.classifier} if index.classifier else {"recipe": index.recipe}
    found = nd.dedup(texts, **decision, keep="first", threads=1)
    expected = {f"d{drop.id}": (f"d{drop.keeper}", drop.similarity) for drop in found.dropped}
    assert dropped(index.add_many(documents(texts))) == expected


def corpus(name: str, count: int) -> list[tuple[str, str]]:
    """Return texts with their times."""
    with gzip.open(DATA / name / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(count), strict=False)]
    return [(row["text"], row["timestamp"]) for row in rows]


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not in ../shared/data beside the project")
@pytest.mark.parametrize(
    ("recipe", "against", "window", "window_by"),
    [
        ("default", "originals", "3h", "time"),
        ("default", "everything", 200, "time"),
        ("ddd", "originals", "24h", "hour"),
        ("ddd", "originals", "24h", "time"),
        ("ddd", "everything", "24h", "time"),
        ("default", "originals", 200, "time"),
        ("default", "everything", "3h", "time"),
    ][: None if AT_LENGTH else 3],
)
def test_verdicts_on_reuters_equal_those_of_the_twin(recipe: str, against: str, window: Any, window_by: str) -> None:
    """News as it was written, in the order of its times."""
    rows = corpus("reuters", 4000 if AT_LENGTH else 400)
    items = sorted(
        documents([text for text, _ in rows], [time for _, time in rows]), key=lambda item: item.microseconds or 0
    )
    choices: dict[str, Any] = {"window": window, "window_by": window_by, "against": against}
    index = nd.Index(recipe, **choices)
    twin = QuickIndex(recipe, **choices, now=lambda: NOON + 999 * DAY)
    found = index.add_many(items)
    assert_same_verdicts(found, twin.add_many(items))
    assert any(v.is_duplicate for v in found)
    assert window_ids(index, twin) == list(twin)


def drift(count: int, seed: int) -> list[str]:
    """Return texts whose words change over time, half of them edited copies, and a footer that becomes frequent."""
    rng = random.Random(seed)
    texts: list[str] = []
    for i in range(count):
        if texts and rng.random() < 0.5:
            words = texts[-rng.randint(1, min(len(texts), 400))].split()
            for _ in range(rng.randint(0, 2)):
                words[rng.randrange(len(words))] = f"w{i // 10 + rng.randrange(50)}"
        else:
            words = [f"w{i // 10 + int(rng.paretovariate(1)) % 300}" for _ in range(rng.randint(1, 24))]
        if i > count // 3 and rng.random() < 0.8 and words[-1] != "reserved":
            words += ["copyright", "by", "the", "agency", "all", "rights", "reserved"]
        texts.append(" ".join(words))
    return texts


def compare(recipe: Recipe, window: Any, against: str, count: int, batch: int) -> nd.Index:
    """Add a drift to an index and its twin, in batches and one by one, with removals and queries."""
    rng = random.Random(7)
    times = [NOON + 15 * i + rng.choice([0, 0, 0, -40, 30, -4000, -1800]) for i in range(count)]
    items, clock = documents(drift(count, 3), times), SetClock(NOON + 99 * DAY)
    plain = NaiveIndex if recipe.measure == "hamming" or recipe.second_step else QuickIndex
    index = nd.Index(recipe, window=window, against=against, now=clock)
    twin = plain(recipe, window=window, against=against, now=clock)
    for begin in range(0, count, batch):
        together, alone = items[begin : begin + batch * 4 // 5], items[begin + batch * 4 // 5 : begin + batch]
        assert_same_verdicts(index.add_many(together), twin.add_many(together))
        assert_same_verdicts([index.add(item) for item in alone], [twin.add(item) for item in alone])
        for removed_id in list(twin)[::50]:
            index.remove(removed_id)
            twin.remove(removed_id)
        assert window_ids(index, twin) == list(twin)
        for item in items[begin : begin + batch : 100]:
            assert id_similarities(index.query(item.text)) == twin.query(item.text)
    assert index.statistics.duplicates > count // 100
    return index


@pytest.mark.parametrize(
    ("recipe", "window", "against", "count"),
    [
        ("default", 300, "everything", 4000),
        ("words", "1h", "everything", 2500),
        ("ddd", 100, "everything", 1500),
        ("default", "1h", "originals", 4000),
        ("dice", None, "originals", 1500),
        ("containment", "2h", "originals", 3000),
        ("euclidean", 150, "originals", 3000),
    ][: None if AT_LENGTH else 3],
)
def test_verdicts_on_a_long_drift_equal_those_of_the_twin(recipe: str, window: Any, against: str, count: int) -> None:
    compare(RECIPES[recipe], window, against, count if AT_LENGTH else count // 4, 500)


@pytest.mark.parametrize(
    ("recipe", "window", "against", "count"),
    [
        ("words", 150, "everything", 1500),
        ("bits", "1h", "everything", 600 if AT_LENGTH else 300),
        ("lsh", 150, "everything", 400 if AT_LENGTH else 200),
        ("default", "1h", "originals", 1500),
        ("dice", "2h", "everything", 1500),
        ("checksum", 100, "originals", 1500),
        ("minhash", "1h", "originals", 400),
    ][: None if AT_LENGTH else 3],
)
def test_many_small_epochs_change_no_verdict(
    recipe: str, window: Any, against: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tables with so few slots that most lists have several features, and epochs of a few minutes.
    monkeypatch.setattr(window_module, "_STAGES", {0: 64, 16: 64, 64: 128, 200: 1024})
    monkeypatch.setattr(window_module, "_LAST_STAGE", 200)
    monkeypatch.setattr(window_module, "_MIN_EPOCH", 100)
    monkeypatch.setattr(window_module, "_SAMPLE", 64)
    monkeypatch.setattr(window_module, "_REBUILD_RATE", 2)
    monkeypatch.setattr(window_module, "_DOCUMENTS_AT_A_TIME", 7)
    monkeypatch.setattr(window_index, "_SLICE_DOCUMENTS", 3)
    compare(RECIPES[recipe], window, against, count, 90)


@pytest.mark.parametrize("rate", [1, 2, 3, 8] if AT_LENGTH else [1, 8])
def test_ended_epochs_are_freed_without_garbage_collection(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A service makes so little garbage that Python may not collect it for days.
    monkeypatch.setattr(window_module, "_STAGES", {0: 64, 16: 64, 64: 128, 200: 1024})
    monkeypatch.setattr(window_module, "_LAST_STAGE", 200)
    monkeypatch.setattr(window_module, "_MIN_EPOCH", 100)
    monkeypatch.setattr(window_module, "_SAMPLE", 64)
    monkeypatch.setattr(window_module, "_REBUILD_RATE", rate)
    monkeypatch.setattr(window_module, "_DOCUMENTS_AT_A_TIME", 7)
    gc.collect()
    gc.disable()
    try:
        with nd.Index("default", window=150) as index:
            for i in range(2000):
                index.add(nd.Document(f"{i}", f"the text number {i} is about the town {i * 7919}"))
            assert sum(isinstance(object_, Epoch) for object_ in gc.get_objects()) <= 4
    finally:
        gc.enable()


@pytest.mark.parametrize("documents", [5, 7, 9, 11])
def test_an_emptied_window_loses_nothing_while_an_epoch_is_renewed(
    documents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_module, "_STAGES", {0: 64, 4: 64})
    monkeypatch.setattr(window_module, "_REBUILD_RATE", 1)
    monkeypatch.setattr(window_index, "_SLICE_DOCUMENTS", 1)
    texts = [f"the text number {i} is about the town {i * 7919}" for i in range(40)]
    with nd.Index(RECIPES["default"], window="1h", now=SetClock(NOON + 99 * DAY)) as index:
        for i, text in enumerate(texts[:documents]):
            index.add(nd.Document(f"before-{i}", text, NOON + i))
        # They have no words: empty segments begin, and all others expire.
        for i in (1, 2):
            index.add(nd.Document(f"gap-{i}", "", NOON + 3000 * i))
        assert len(index) == 0
        for i, text in enumerate(texts):
            assert index.add(nd.Document(f"after-{i}", text, NOON + 6000 + i)).kind == "original"
        for i, text in enumerate(texts):
            assert index.add(nd.Document(f"again-{i}", text, NOON + 6060 + i)).of == f"after-{i}"
        assert len(index) == len(texts)
