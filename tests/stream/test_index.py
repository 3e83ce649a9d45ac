"""The window by examples: what a verdict says, and the rules of time one by one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from naive_window import Expected
from streaming import DAY, HOUR, NOON, SetClock, documents, said

import neardup as nd

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
ROSE = "A rose by any other name would smell as sweet, said the poet to his friend in the garden at dawn"
SHIP = "Two ships met in the strait at night and neither of their masters knew which of them was to give way"


def flow(index: nd.Index, *items: tuple[str, Any]) -> list[nd.Verdict]:
    """Add texts with their times in seconds after noon, named by how many came before."""
    first = index.statistics.documents
    return [
        index.add(nd.Document(f"d{i}", text, None if after is None else NOON + after))
        for i, (text, after) in enumerate(items, first)
    ]


def test_an_item_is_original_a_copy_or_nearly_one() -> None:
    index = nd.Index(now=SetClock())
    verdicts = flow(index, (FOX, 0), (ROSE, 1), (FOX, 2), (FOX.upper() + "!", 3), (FOX + " today", 4))
    assert [said(v) for v in verdicts] == [
        Expected("d0", "original", None, None, "", None),
        Expected("d1", "original", None, None, "", None),
        Expected("d2", "exact", "d0", 1.0, "", (15, 15, 15)),
        Expected("d3", "near", "d0", 1.0, "", (15, 15, 15)),
        Expected("d4", "near", "d0", 0.9375, "", (15, 16, 15)),
    ]
    assert [v.time for v in verdicts] == [NOON, NOON + 1, NOON + 2, NOON + 3, NOON + 4]
    assert (list(index), "d0" in index, "d2" in index, "nobody" in index) == (["d0", "d1"], True, False, False)


def test_originals_only_or_everything() -> None:
    # Each is near the one before it, and the third is too far from the first.
    texts = [" ".join(f"w{x}" for x in range(i, 30 + i)) for i in (0, 2, 4)]
    first = nd.Index(window=None).add_many(documents(texts))
    assert [v.of for v in first] == [None, "d0", None]
    every = nd.Index(window=None, against="everything").add_many(documents(texts))
    assert [v.of for v in every] == [None, "d0", "d1"]


def test_the_most_similar_is_named_and_of_equals_the_first() -> None:
    index = nd.Index(features="words:1", threshold=0.5, window=None, against="everything")
    texts = ["a b c d", "a b c e f", "a b c", "a b c", "c b a x", "C B A"]
    verdicts = index.add_many(documents(texts))
    # Equal features count, not equal bytes.
    assert [(v.of, v.similarity) for v in verdicts] == [
        (None, None), ("d0", 0.5), ("d0", 0.75), ("d2", 1.0), ("d2", 0.75), ("d2", 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "threshold"),
    [("jaccard", 0.6), ("overlap", 0.75), ("dice", 0.75), ("cosine", 0.75), ("jaccard", 0.601)],
)
def test_at_exactly_the_threshold_it_matches(measure: str, threshold: float) -> None:
    index = nd.Index(features="words:1", measure=measure, threshold=threshold, window=None)
    kinds = [v.kind for v in index.add_many(documents(["a b c d", "a b c e"]))]
    assert kinds == ["original", "original" if threshold == 0.601 else "near"]


def test_without_a_time_it_is_the_arrival_which_never_goes_back() -> None:
    clock = SetClock()
    index, times = nd.Index(now=clock), []
    for now in (NOON, NOON + 60, NOON - DAY, NOON + 59, NOON + 61):
        clock.time = now
        times.append(index.add(nd.Document(str(now), f"{ROSE} {now}")).time)
    assert times == [NOON, NOON + 60, NOON + 60, NOON + 60, NOON + 61]


def test_the_future_is_flagged_and_takes_the_time_of_the_flow() -> None:
    clock = SetClock()
    index = nd.Index(now=clock)
    (first,) = flow(index, (FOX, HOUR + 1))
    assert (first.flag, first.time) == ("future", NOON)
    clock.time = NOON + DAY
    verdicts = flow(index, (ROSE, HOUR), (SHIP, DAY + HOUR), (FOX, DAY + HOUR + 0.000001), (ROSE, 10 * DAY))
    assert [v.flag for v in verdicts] == ["", "", "future", "future"]
    assert [v.time for v in verdicts] == [NOON + HOUR, *[NOON + DAY + HOUR] * 3]
    # It is judged at that time: the fox of yesterday noon is too old by now, the rose is a day old to the second.
    assert [v.of for v in verdicts[2:]] == [None, "d1"]


class Case(NamedTuple):
    """Items with their times, what their verdicts are to say, and what the index says at the end."""

    items: list[tuple[str, float]]
    flags: list[str]
    of: list[str | None]
    clock: float | None = None
    held: list[str] | None = None


#: The year 2099, in seconds after that noon.
FAR = 3_500_000_000
CASES = {
    "closed at both ends": Case(
        [(FOX, 0), (ROSE, HOUR), (FOX, DAY), (ROSE, DAY + HOUR + 0.000001)], [""] * 4, [None, None, "d0", None]
    ),
    "2099 where the clock on the wall is wrong as well": Case(
        [(FOX, 0), (SHIP, FAR), (FOX, 60), (ROSE, 120), (SHIP, 180), (FOX, 240)],
        ["", "ahead", "", "", "", ""],
        [None, None, "d0", None, None, "d0"],
        240,
    ),
    "a gap longer than the window needs two witnesses": Case(
        [(FOX, 0), (ROSE, 3 * DAY), (ROSE, 3 * DAY + 60), (FOX, 3 * DAY + 120), (FOX, 3 * DAY + 180)],
        ["", "ahead", "", "", ""],
        [None, None, "d1", None, "d3"],
        3 * DAY + 180,
        ["d1", "d3"],
    ),
    "the second witness may be older than the first": Case(
        [(FOX, 0), (ROSE, 5 * DAY), (SHIP, 4 * DAY), (SHIP, 5 * DAY)],
        ["", "ahead", "", ""],
        [None, None, None, "d2"],
        5 * DAY,
    ),
    "an item ahead is compared by its own time, and witnesses too far apart confirm nothing": Case(
        [(FOX, 0), (ROSE, 10 * DAY), (SHIP, 12 * DAY), (FOX, 60), (ROSE, 10 * DAY), (SHIP, 11 * DAY)],
        ["", "ahead", "ahead", "", "ahead", ""],
        [None, None, None, "d0", "d1", None],
        11 * DAY,
    ),
    "a witness that left the window confirms nothing": Case(
        [(FOX, 0), (ROSE, 7 * DAY), (SHIP, DAY), (SHIP, 2 * DAY), (ROSE, 6.5 * DAY), (ROSE, 6.5 * DAY)],
        ["", "ahead", "", "", "ahead", ""],
        [None, None, None, "d2", None, "d4"],
    ),
    "late items are judged and not held": Case(
        [(FOX, 0), (ROSE, 10 * HOUR), (SHIP, 30 * HOUR), *[(t, 5 * HOUR) for t in (ROSE, FOX, FOX)], (FOX, 6 * HOUR)],
        ["", "", "", "late", "late", "late", ""],
        [None, None, None, "d1", None, None, None],
        30 * HOUR,
        ["d1", "d2", "d6"],
    ),
    "out of order inside the window": Case(
        [(FOX, 20 * HOUR), (FOX, 0), (ROSE, 2 * HOUR), (ROSE, 19 * HOUR), (SHIP, 0), (SHIP, 24 * HOUR)],
        [""] * 6,
        [None, "d0", None, "d2", None, "d4"],
    ),
    # Held as not older than a window before the clock; but the late one is more than a day before them.
    "no partner is further than the window on either side": Case(
        [(SHIP, 0), (FOX, 24 * HOUR), (ROSE, 23 * HOUR), (FOX, -1), (ROSE, -HOUR), (ROSE, -HOUR - 1)],
        ["", "", "", "late", "late", "late"],
        [None, None, None, None, "d2", None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_rules_of_time(name: str) -> None:
    case = CASES[name]
    index = nd.Index(now=SetClock(NOON + 2 * FAR))
    verdicts = flow(index, *case.items)
    assert ([v.flag for v in verdicts], [v.of for v in verdicts]) == (case.flags, case.of)
    assert [v.time for v in verdicts] == [NOON + after for _, after in case.items]
    assert case.clock is None or index.statistics.clock == NOON + case.clock
    assert case.held is None or list(index) == case.held


def test_a_witness_that_was_removed_is_one_still() -> None:
    index = nd.Index(now=SetClock(NOON + 90 * DAY))
    flow(index, (FOX, 0), (ROSE, 7 * DAY))
    index.remove("d1")
    verdicts = flow(index, (ROSE, 7 * DAY + 1), (ROSE, 7 * DAY + 2))
    assert [(v.flag, v.of) for v in verdicts] == [("", None), ("", "d2")]
    assert list(index) == ["d2"]


@pytest.mark.parametrize(
    ("window_by", "after", "of"),
    [("time", 7200, "d0"), ("time", 7201, None), ("hour", 7200 + 2399, "d0"), ("hour", 7200 + 2400, None)],
)
def test_by_hours_times_are_floored(window_by: str, after: int, of: str | None) -> None:
    # The first came at 12:20, and the last that is two whole hours later at 14:59:59.
    index = nd.Index(window="2h", window_by=window_by, now=SetClock(NOON + 9 * DAY))
    verdicts = flow(index, (FOX, 1200), (FOX, 1200 + after))
    assert (verdicts[1].of, verdicts[1].time) == (of, NOON + 1200 + after)


@pytest.mark.parametrize(
    ("window", "seconds"),
    [("24h", DAY), ("90m", 5400), ("7d", 7 * DAY), ("3600s", HOUR), (timedelta(minutes=5), 300)],
)
def test_windows_of_every_writing(window: str | timedelta, seconds: int) -> None:
    index = nd.Index(window=window, now=SetClock(NOON + 99 * DAY))
    verdicts = flow(index, (FOX, 0), (FOX, seconds), (FOX, seconds + 1), (ROSE, seconds), (ROSE, 2 * seconds + 1))
    assert [v.of for v in verdicts] == [None, "d0", None, None, None]
