"""Long streams and hostile documents: the verdicts of a quick twin, and memory in proportion to the window."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest
from naive_window import NaiveIndex, QuickIndex
from streaming import (
    AT_LENGTH,
    DAY,
    NOON,
    RECIPES,
    SetClock,
    assert_same_verdicts,
    documents,
    id_similarities,
    plain_verdict,
    window_ids,
)

import neardup as nd
from neardup.recipe import Recipe
from neardup.search import window as window_module
from neardup.search import window_index
from neardup.search.window_index import Epoch


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


def short_epochs(patch: pytest.MonkeyPatch, rate: int = 2) -> None:
    """Use tables with so few slots that most lists have several features, and epochs of some hundred documents."""
    patch.setattr(window_module, "_STAGES", {0: 64, 16: 64, 64: 128, 200: 1024})
    patch.setattr(window_module, "_LAST_STAGE", 200)
    patch.setattr(window_module, "_MIN_EPOCH", 100)
    patch.setattr(window_module, "_SAMPLE", 64)
    patch.setattr(window_module, "_REBUILD_RATE", rate)
    patch.setattr(window_module, "_SEARCHED_AT_A_TIME", 7)
    patch.setattr(window_module, "_INSERTED_AT_A_TIME", 5)
    patch.setattr(window_index, "_SLICE_DOCUMENTS", 3)


@pytest.mark.parametrize(
    ("recipe", "window", "against", "count", "short"),
    [
        ("default", 300, "everything", 1000, False),
        ("ddd", 100, "everything", 300, False),
        ("words", 150, "everything", 800, True),
        ("bits", "1h", "everything", 200, True),
        ("words", "1h", "everything", 2500, False),
        ("containment", "2h", "originals", 3000, False),
        ("euclidean", 150, "originals", 3000, False),
        ("lsh", 150, "everything", 400, True),
        ("minhash", "1h", "originals", 400, True),
    ][: None if AT_LENGTH else 4],
)
def test_verdicts_on_a_long_drift_equal_those_of_the_twin(
    recipe: str, window: Any, against: str, count: int, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if short:
        short_epochs(monkeypatch)
    rng, batch = random.Random(7), 90 if short else 500
    times = [NOON + 15 * i + rng.choice([0, 0, 0, -40, 30, -4000, -1800]) for i in range(count)]
    items, clock = documents(drift(count, 3), times), SetClock(NOON + 99 * DAY)
    plain = NaiveIndex if RECIPES[recipe].measure == "hamming" or RECIPES[recipe].second_step else QuickIndex
    index = nd.Index(RECIPES[recipe], window=window, against=against, now=clock)
    twin = plain(RECIPES[recipe], window=window, against=against, now=clock)
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


@pytest.mark.parametrize("rate", [1, 8] if AT_LENGTH else [8])
def test_ended_epochs_are_freed_without_garbage_collection(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A service makes so little garbage that Python may not collect it for days.
    short_epochs(monkeypatch, rate)
    gc.collect()
    gc.disable()
    try:
        with nd.Index("default", window=150) as index:
            for i in range(2000 if AT_LENGTH else 500):
                index.add(nd.Document(f"{i}", f"the text number {i} is about the town {i * 7919}"))
            # type(): dead proxies of other libraries, which isinstance() would touch, are among the objects.
            assert sum(type(object_) is Epoch for object_ in gc.get_objects()) <= 4
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [5, 7, 9, 11])
def test_an_emptied_window_loses_nothing_while_an_epoch_is_renewed(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "_STAGES", {0: 64, 4: 64})
    monkeypatch.setattr(window_module, "_REBUILD_RATE", 1)
    monkeypatch.setattr(window_index, "_SLICE_DOCUMENTS", 1)
    texts = [f"the text number {i} is about the town {i * 7919}" for i in range(40)]
    with nd.Index(RECIPES["default"], window="1h", now=SetClock(NOON + 99 * DAY)) as index:
        for i, text in enumerate(texts[:count]):
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
    ][: None if AT_LENGTH else 1],
    ids=lambda value: value.measure if isinstance(value, Recipe) else str(value),
)
def test_verdicts_on_long_texts_equal_those_of_the_twin(recipe: Recipe, window: Any) -> None:
    texts = long_texts(240 if AT_LENGTH else 30, 5)
    choices: dict[str, Any] = {"window": window, "against": "everything", "now": SetClock(NOON + 9_000_000)}
    index, twin = nd.Index(recipe, **choices), QuickIndex(recipe, **choices)
    items = documents(texts, [NOON + 20 * i for i in range(len(texts))])
    for begin in range(0, len(items), 60):
        assert_same_verdicts(index.add_many(items[begin : begin + 60]), twin.add_many(items[begin : begin + 60]))
        assert id_similarities(index.query(texts[begin])) == twin.query(texts[begin])
    assert index.statistics.duplicates > len(texts) // 8
    large = [len(set(text.split())) >= 1448 for text in texts]
    assert len(texts) // 5 < sum(large) < len(texts) * 5 // 6


def added(index: nd.Index, texts: list[str], bytes_per_byte: int = 40) -> list[nd.Verdict]:
    """Add texts, and check that the window grows by bytes in proportion to those that enter, and by 4 KB for each."""
    before = index.statistics.bytes
    verdicts = index.add_many(documents(texts))
    entered = [text for i, text in enumerate(texts) if f"d{i}" in index]
    limit = bytes_per_byte * sum(len(text.encode()) for text in entered) + 4096 * len(entered) + (1 << 22)
    assert index.statistics.bytes - before <= limit
    return verdicts


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("ddd", [(None, ""), ("d0", ""), ("d0", ""), (None, "")]),
        ("spotsigs", [(None, "undecidable")] * 4),
    ][: None if AT_LENGTH else 1],
)
def test_one_gram_very_often(recipe: str, expected: list[Any]) -> None:
    count = 1_000_000 if AT_LENGTH else 200_000
    texts = ["ha " * count, "ha " * (count - 1000), "HA " * 9, "ho " * count]
    # Few features, however long the text, so the text itself takes most of the memory.
    assert [(v.of, v.flag) for v in added(nd.Index(recipe, window=None), texts, 2)] == expected


def test_many_distinct_grams() -> None:
    rng, count = random.Random(5), 900_000 if AT_LENGTH else 30_000
    words, other = ([f"{rng.getrandbits(20):x}" for _ in range(count)] for _ in range(2))
    changed = [word if at % 200 else "changed" for at, word in enumerate(words)]
    texts = [" ".join(w) for w in (words, changed, other, words, words[: count // 9])]
    verdicts = added(nd.Index("default", now=SetClock()), texts)
    assert [v.of for v in verdicts] == [None, "d0", None, "d0", None]
    assert verdicts[1].similarity == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(("against", "entered"), [("originals", 1), ("everything", 1000)])
def test_a_thousand_copies(against: str, entered: int) -> None:
    index, text = nd.Index(against=against, now=SetClock()), " ".join(f"w{i}" for i in range(200))
    assert {(v.kind, v.of, v.similarity) for v in added(index, [text] * 1000)[1:]} == {("exact", "d0", 1.0)}
    assert len(index) == len(index.query(text)) == entered


@pytest.mark.parametrize(("against", "compared"), [("originals", 200), ("everything", 60)])
def test_a_thousand_slightly_different_copies(against: str, compared: int) -> None:
    words, compared = [f"w{i}" for i in range(150)], 300 if AT_LENGTH else compared
    texts = [" ".join([*words[: i % 150], f"x{i}", *words[i % 150 + 1 :]]) for i in range(1000)]
    recipe = Recipe(features="words:3", threshold=0.9)
    index, twin = nd.Index(recipe, window=None, against=against), QuickIndex(recipe, window=None, against=against)
    verdicts = added(index, texts)
    assert [plain_verdict(v) for v in verdicts[:compared]] == twin.add_many(documents(texts[:compared]))
    # From then on, another text has its new word at the same position: 145 of 151 grams are shared, or more.
    assert min(v.similarity or 0 for v in verdicts[150:]) == (145 / 151 if against == "everything" else 144 / 152)


def test_memory_is_released_when_segments_expire() -> None:
    rng = random.Random(1)
    index = nd.Index(window="3h", now=SetClock(NOON + 99 * DAY))
    sizes = []
    for hour in range(36):
        texts = [" ".join(f"w{rng.getrandbits(30)}" for _ in range(100)) for _ in range(60)]
        stamps = [NOON + 3600 * hour + 60 * i for i in range(60)]
        index.add_many(nd.Document(f"{hour}-{i}", t, s) for i, (t, s) in enumerate(zip(texts, stamps, strict=True)))
        sizes.append(index.statistics.bytes)
        assert index.statistics.segments <= 26
        assert len(index) <= 241
    # Its tables have their final size after 18 hours.
    assert max(sizes[28:]) <= 1.05 * max(sizes[20:28])
