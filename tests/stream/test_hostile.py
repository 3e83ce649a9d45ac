"""Hostile documents: right verdicts, and memory in proportion to the text."""

from __future__ import annotations

import random

import pytest
from naive_window import QuickIndex
from streaming import AT_LENGTH, DAY, NOON, SetClock, documents, plain_verdict

import neardup as nd
from neardup.recipe import Recipe

#: The most bytes of a window per byte of text, beyond those of an empty window.
BYTES_PER_BYTE = 40
#: The most bytes per document, however short.
BYTES_PER_DOCUMENT = 4096


def grown(index: nd.Index, before: int, texts: list[str]) -> None:
    """Check that the window has not grown by more than its share for these texts."""
    limit = BYTES_PER_BYTE * sum(len(text.encode()) for text in texts) + BYTES_PER_DOCUMENT * len(texts)
    assert index.statistics.bytes - before <= limit + (1 << 22)


@pytest.mark.parametrize("recipe", ["default", "ddd", "spotsigs", "simhash"] if AT_LENGTH else ["ddd", "spotsigs"])
def test_one_gram_a_million_times(recipe: str) -> None:
    index = nd.Index(recipe, window=None)
    before = index.statistics.bytes
    texts = ["ha " * 1_000_000, "ha " * 999_000, "HA " * 9, "ho " * 1_000_000]
    kinds = [(v.kind, v.of, v.flag) for v in index.add_many(documents(texts))]
    if recipe == "spotsigs":
        assert kinds == [("original", None, "undecidable")] * 4
    elif recipe == "ddd":
        assert kinds == [("original", None, ""), ("near", "d0", ""), ("original", None, ""), ("original", None, "")]
    else:
        assert kinds == [("original", None, ""), ("near", "d0", ""), ("near", "d0", ""), ("original", None, "")]
    # Few features, however long the text, so the text itself takes most of the memory.
    assert index.statistics.bytes - before <= 2 * sum(map(len, texts)) + (1 << 22)


@pytest.mark.parametrize("recipe", ["default", "ddd"] if AT_LENGTH else ["default"])
def test_a_million_distinct_grams(recipe: str) -> None:
    rng, count = random.Random(5), 900_000 if AT_LENGTH else 200_000
    words = [f"{rng.getrandbits(20):x}" for _ in range(count)]
    other = [f"{rng.getrandbits(20):x}" for _ in range(count)]
    changed = list(words)
    for at in range(0, len(words), 200):
        changed[at] = "changed"
    texts = [" ".join(w) for w in (words, changed, other, words, words[: count // 9])]
    index = nd.Index(recipe, window="24h", now=SetClock())
    before = index.statistics.bytes
    verdicts = index.add_many(documents(texts))
    if recipe == "default":
        assert [(v.kind, v.of) for v in verdicts] == [
            ("original", None), ("near", "d0"), ("original", None), ("exact", "d0"), ("original", None),
        ]  # fmt: skip
        assert verdicts[1].similarity == pytest.approx(0.95, abs=0.01)
    else:
        # Any two such texts share the 65,536 grams of four digits, which are nearly all of their grams.
        assert [(v.kind, v.of) for v in verdicts][:4] == [
            ("original", None), ("near", "d0"), ("near", "d0"), ("exact", "d0"),
        ]  # fmt: skip
    grown(index, before, texts)


@pytest.mark.parametrize("against", ["originals", "everything"])
def test_thousands_of_copies(against: str) -> None:
    text = " ".join(f"w{i}" for i in range(200))
    index = nd.Index(against=against, now=SetClock())
    before = index.statistics.bytes
    verdicts = index.add_many(documents([text] * 2000))
    assert {(v.kind, v.of, v.similarity, v.flag) for v in verdicts[1:]} == {("exact", "d0", 1.0, "")}
    assert len(index) == (1 if against == "originals" else 2000)
    grown(index, before, [text] * len(index))
    assert index.add(nd.Document("other", f"{text} more")).of == "d0"
    assert len(index.query(text)) == (1 if against == "originals" else 2001)


@pytest.mark.parametrize(
    ("against", "compared"), [("originals", 2000 if AT_LENGTH else 400), ("everything", 300 if AT_LENGTH else 120)]
)
def test_thousands_of_slightly_different_copies(against: str, compared: int) -> None:
    words = [f"w{i}" for i in range(150)]
    texts = [" ".join([*words[: i % 150], f"x{i}", *words[i % 150 + 1 :]]) for i in range(2000)]
    recipe = Recipe(features="words:3", threshold=0.9)
    index, twin = nd.Index(recipe, window=None, against=against), QuickIndex(recipe, window=None, against=against)
    before = index.statistics.bytes
    verdicts = index.add_many(documents(texts))
    assert [plain_verdict(v) for v in verdicts[:compared]] == twin.add_many(documents(texts[:compared]))
    # From then on, another text has its new word at the same position: 145 of 151 grams are shared, or more.
    assert min(v.similarity or 0 for v in verdicts[150:]) == (145 / 151 if against == "everything" else 144 / 152)
    grown(index, before, [text for i, text in enumerate(texts) if f"d{i}" in index])


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
