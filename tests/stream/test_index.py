"""The window by examples: what a verdict says, the rules of time one by one, queries, removal, threads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from naive_window import Expected
from streaming import DAY, HOUR, NOON, SetClock, documents, said

import neardup as nd

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
ROSE = "A rose by any other name would smell as sweet, said the poet to his friend in the garden at dawn"
SHIP = "Two ships met in the strait at night and neither of their masters knew which of them was to give way"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def index(clock: SetClock) -> Iterator[nd.Index]:
    with nd.Index(now=clock) as opened:
        yield opened


def flow(index: nd.Index, *items: tuple[str, Any]) -> list[nd.Verdict]:
    """Add texts with their times in seconds after noon, named by how many came before."""
    first = index.statistics.arrived
    return [
        index.add(nd.Document(f"d{i}", text, None if after is None else NOON + after))
        for i, (text, after) in enumerate(items, first)
    ]


def test_an_item_is_original_a_copy_or_nearly_one(index: nd.Index) -> None:
    verdicts = flow(index, (FOX, 0), (ROSE, 1), (FOX, 2), (FOX.upper() + "!", 3), (FOX + " today", 4))
    assert [said(v) for v in verdicts] == [
        Expected("d0", "original", None, None, "", None),
        Expected("d1", "original", None, None, "", None),
        Expected("d2", "exact", "d0", 1.0, "", (15, 15, 15)),
        Expected("d3", "near", "d0", 1.0, "", (15, 15, 15)),
        Expected("d4", "near", "d0", 0.9375, "", (15, 16, 15)),
    ]
    assert [v.is_duplicate for v in verdicts] == [False, False, True, True, True]
    assert [v.time for v in verdicts] == [NOON, NOON + 1, NOON + 2, NOON + 3, NOON + 4]
    assert list(index) == ["d0", "d1"]
    assert len(index) == 2
    assert "d0" in index
    assert "d2" not in index
    assert "nobody" not in index


def test_statistics_count_what_came(index: nd.Index, clock: SetClock) -> None:
    empty = index.statistics
    assert (empty.arrived, empty.held, empty.clock) == (0, 0, None)
    clock.time = NOON + 3 * DAY
    flow(index, (FOX, 0), (FOX, HOUR), (ROSE, 20 * HOUR), ("...", 21 * HOUR), (SHIP, 30 * HOUR), (FOX, 5 * HOUR))
    flow(index, (FOX, 200 * HOUR), (SHIP, 70 * HOUR), (SHIP, 29 * HOUR), (ROSE + "!", 8 * HOUR))
    found = index.statistics
    assert (found.arrived, found.originals, found.duplicates) == (10, 7, 3)
    assert (found.late, found.ahead, found.future, found.undecidable) == (1, 1, 1, 1)
    assert found.originals + found.duplicates == found.arrived
    assert (found.held, found.clock) == (len(index), NOON + 30 * HOUR)
    assert found.bytes > 0
    assert found.segments >= 1


def test_originals_only_or_everything() -> None:
    # Each is near the one before it, and the third is too far from the first.
    texts = [" ".join(f"w{x}" for x in range(i, 30 + i)) for i in (0, 2, 4)]
    first = nd.Index(window=None).add_many(documents(texts))
    assert [(v.kind, v.of) for v in first] == [("original", None), ("near", "d0"), ("original", None)]
    every = nd.Index(window=None, against="everything").add_many(documents(texts))
    assert [(v.kind, v.of) for v in every] == [("original", None), ("near", "d0"), ("near", "d1")]


def test_the_most_similar_is_named_and_of_equals_the_first() -> None:
    index = nd.Index(features="words:1", threshold=0.5, window=None, against="everything")
    texts = ["a b c d", "a b c e f", "a b c", "a b c", "c b a x"]
    verdicts = index.add_many(documents(texts))
    assert [(v.of, v.similarity) for v in verdicts] == [
        (None, None), ("d0", 0.5), ("d0", 0.75), ("d2", 1.0), ("d2", 0.75),
    ]  # fmt: skip
    # Equal features count, not equal bytes: the first of the equally similar ones is named.
    assert [index.add(nd.Document("x", "C B A")).kind, said(index.add(nd.Document("y", "C B A")))[1:3]] == [
        "near",
        ("near", "d2"),
    ]


@pytest.mark.parametrize(
    ("measure", "threshold"),
    [("jaccard", 0.6), ("overlap", 0.75), ("dice", 0.75), ("cosine", 0.75), ("jaccard", 0.601)],
)
def test_at_exactly_the_threshold_it_matches(measure: str, threshold: float) -> None:
    index = nd.Index(features="words:1", measure=measure, threshold=threshold, window=None)
    kinds = [v.kind for v in index.add_many(documents(["a b c d", "a b c e"]))]
    assert kinds == ["original", "original" if threshold == 0.601 else "near"]


# Rule 1: the item's own time, or its arrival.


@pytest.mark.parametrize(
    "timestamp",
    [
        NOON,
        float(NOON),
        datetime(1987, 2, 26, 12, tzinfo=UTC),
        datetime(1987, 2, 26, 12),  # without a zone it is UTC
        datetime(1987, 2, 26, 7, tzinfo=timezone(timedelta(hours=-5))),
        "1987-02-26T12:00:00Z",
        "1987-02-26 13:00:00+01:00",
    ],
)
def test_the_time_of_an_item_is_its_own(index: nd.Index, clock: SetClock, timestamp: Any) -> None:
    clock.time = NOON + 5 * DAY
    assert index.add(nd.Document("a", FOX, timestamp)).time == NOON
    assert index.statistics.clock == NOON


def test_without_a_time_it_is_the_arrival_which_never_goes_back(index: nd.Index, clock: SetClock) -> None:
    times = []
    for now in (NOON, NOON + 60, NOON - DAY, NOON + 59, NOON + 61):
        clock.time = now
        times.append(index.add(nd.Document(str(now), f"{ROSE} {now}")).time)
    assert times == [NOON, NOON + 60, NOON + 60, NOON + 60, NOON + 61]
    assert index.statistics.clock == NOON + 61


# Rule 2: later than the clock on the wall.


def test_the_future_is_flagged_and_takes_the_time_of_the_flow(index: nd.Index, clock: SetClock) -> None:
    first = flow(index, (FOX, HOUR + 1))
    assert (first[0].flag, first[0].time) == ("future", NOON)
    clock.time = NOON + DAY
    verdicts = flow(index, (ROSE, HOUR), (SHIP, DAY + HOUR), (FOX, DAY + HOUR + 0.000001), (ROSE, 10 * DAY))
    assert [v.flag for v in verdicts] == ["", "", "future", "future"]
    assert [v.time for v in verdicts] == [NOON + HOUR, *[NOON + DAY + HOUR] * 3]
    assert index.statistics.clock == NOON + DAY + HOUR
    # It is judged at that time: the fox of yesterday noon is too old by now, the rose is a day old to the second.
    assert [(v.kind, v.of) for v in verdicts[2:]] == [("original", None), ("exact", "d1")]


def test_an_item_of_2099_does_no_harm(index: nd.Index, clock: SetClock) -> None:
    late = datetime(2099, 1, 1, tzinfo=UTC).timestamp() - NOON
    verdicts = flow(index, (FOX, 0), (SHIP, late), (FOX, 60), (SHIP, 120), (ROSE, late + 1), (ROSE, 180), (FOX, 240))
    assert [v.flag for v in verdicts] == ["", "future", "", "", "future", "", ""]
    assert [v.of for v in verdicts] == [None, None, "d0", "d1", None, "d4", "d0"]
    # The same where the clock on the wall is wrong as well.
    clock.time = NOON + late
    again = nd.Index(now=clock)
    found = flow(again, (FOX, 0), (SHIP, late), (FOX, 60), (ROSE, 120), (SHIP, 180), (FOX, 240))
    assert [(v.flag, v.of) for v in found] == [
        ("", None), ("ahead", None), ("", "d0"), ("", None), ("", None), ("", "d0"),
    ]  # fmt: skip
    assert again.statistics.clock == NOON + 240


# Rules 3 to 6: the clock of the flow.


def test_the_window_is_closed_at_both_ends(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 9 * DAY
    assert [v.of for v in flow(index, (FOX, 0), (ROSE, HOUR), (FOX, DAY), (ROSE, DAY + HOUR + 0.000001))] == [
        None,
        None,
        "d0",
        None,
    ]


def test_a_gap_longer_than_the_window_needs_two_witnesses(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 9 * DAY
    friday, monday = 0, 3 * DAY
    verdicts = flow(index, (FOX, friday), (ROSE, monday), (ROSE, monday + 60), (FOX, monday + 120), (FOX, monday + 180))
    assert [v.flag for v in verdicts] == ["", "ahead", "", "", ""]
    assert [v.of for v in verdicts] == [None, None, "d1", None, "d3"]
    assert verdicts[1].time == NOON + monday
    assert index.statistics.clock == NOON + monday + 180
    assert list(index) == ["d1", "d3"]


def test_the_second_witness_may_be_older_than_the_first(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 9 * DAY
    verdicts = flow(index, (FOX, 0), (ROSE, 5 * DAY), (SHIP, 4 * DAY), (SHIP, 5 * DAY))
    assert [v.flag for v in verdicts] == ["", "ahead", "", ""]
    assert verdicts[3].of == "d2"
    assert index.statistics.clock == NOON + 5 * DAY


def test_witnesses_too_far_apart_confirm_nothing(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 90 * DAY
    verdicts = flow(index, (FOX, 0), (ROSE, 10 * DAY), (SHIP, 12 * DAY), (FOX, 60), (ROSE, 10 * DAY), (SHIP, 11 * DAY))
    assert [v.flag for v in verdicts] == ["", "ahead", "ahead", "", "ahead", ""]
    # An item ahead is compared by its own time, also while it waits.
    assert [v.of for v in verdicts] == [None, None, None, "d0", "d1", None]
    assert index.statistics.clock == NOON + 11 * DAY


def test_a_witness_that_left_the_window_confirms_nothing(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 90 * DAY
    verdicts = flow(
        index, (FOX, 0), (ROSE, 7 * DAY), (SHIP, DAY), (SHIP, 2 * DAY), (ROSE, 6.5 * DAY), (ROSE, 6.5 * DAY)
    )
    assert [v.flag for v in verdicts] == ["", "ahead", "", "", "ahead", ""]
    assert [v.of for v in verdicts] == [None, None, None, "d2", None, "d4"]


def test_a_witness_that_was_removed_is_one_still(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 90 * DAY
    flow(index, (FOX, 0), (ROSE, 7 * DAY))
    index.remove("d1")
    verdicts = flow(index, (ROSE, 7 * DAY + 1), (ROSE, 7 * DAY + 2))
    assert [(v.flag, v.of) for v in verdicts] == [("", None), ("", "d2")]
    assert list(index) == ["d2"]


def test_late_items_are_judged_and_not_held(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 9 * DAY
    flow(index, (FOX, 0), (ROSE, 10 * HOUR), (SHIP, 30 * HOUR))
    late = flow(index, (ROSE, 5 * HOUR), (FOX, 5 * HOUR), (FOX, 5 * HOUR), (FOX, 6 * HOUR), (FOX, 6 * HOUR))
    assert [(v.flag, v.kind, v.of) for v in late] == [
        ("late", "exact", "d1"),
        ("late", "original", None),
        ("late", "original", None),
        ("", "original", None),
        ("", "exact", "d6"),
    ]
    assert [v.time for v in late] == [NOON + hours * HOUR for hours in (5, 5, 5, 6, 6)]
    assert index.statistics.clock == NOON + 30 * HOUR
    assert list(index) == ["d1", "d2", "d6"]


def test_out_of_order_inside_the_window_is_judged_rightly(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 9 * DAY
    verdicts = flow(
        index, (FOX, 20 * HOUR), (FOX, 0), (ROSE, 2 * HOUR), (ROSE, 19 * HOUR), (SHIP, 0), (SHIP, 24 * HOUR)
    )
    assert [v.of for v in verdicts] == [None, "d0", None, "d2", None, "d4"]
    assert {v.flag for v in verdicts} == {""}


def test_no_partner_is_further_than_the_window_on_either_side(index: nd.Index, clock: SetClock) -> None:
    clock.time = NOON + 9 * DAY
    # Held as not older than a window before the clock; but the late one is more than a day before them.
    verdicts = flow(index, (SHIP, 0), (FOX, 24 * HOUR), (ROSE, 23 * HOUR), (FOX, -1), (ROSE, -HOUR), (ROSE, -HOUR - 1))
    assert [(v.flag, v.of) for v in verdicts] == [
        ("", None), ("", None), ("", None), ("late", None), ("late", "d2"), ("late", None),
    ]  # fmt: skip


def test_system_time_that_jumps_changes_nothing_for_dated_items(index: nd.Index, clock: SetClock) -> None:
    flags = []
    for i, now in enumerate((0, 30 * DAY, 2, 400 * DAY, 4, 5)):
        clock.time = NOON + now
        flags += [(v.flag, v.of) for v in flow(index, (FOX, i))]
    assert flags == [("", None), *[("", "d0")] * 5]


@pytest.mark.parametrize(
    ("window_by", "after", "of"),
    [("time", 7200, "d0"), ("time", 7201, None), ("hour", 7200 + 2399, "d0"), ("hour", 7200 + 2400, None)],
)
def test_by_hours_times_are_floored(clock: SetClock, window_by: str, after: int, of: str | None) -> None:
    # The first came at 12:20, and the last that is two whole hours later at 14:59:59.
    clock.time = NOON + 9 * DAY
    index = nd.Index(window="2h", window_by=window_by, now=clock)
    verdicts = flow(index, (FOX, 1200), (FOX, 1200 + after))
    assert verdicts[1].of == of
    assert verdicts[1].time == NOON + 1200 + after


@pytest.mark.parametrize("window", [3, "3 documents"])
def test_a_window_of_documents_counts_all_that_arrive(window: int | str) -> None:
    index = nd.Index(window=window)
    # Times mean nothing; duplicates and texts without features count, too.
    texts = [FOX, FOX, "", FOX, ROSE, FOX, SHIP, SHIP, SHIP, ROSE, ROSE]
    verdicts = index.add_many(documents(texts, [NOON - 9 * DAY * i for i in range(len(texts))]))
    assert [v.of for v in verdicts] == [None, "d0", None, "d0", None, None, None, "d6", "d6", None, "d9"]
    assert {v.flag for v in verdicts} == {"", "undecidable"}


@pytest.mark.parametrize("window", [None, "endless"])
def test_an_endless_window_forgets_nothing(window: str | None) -> None:
    index = nd.Index(window=window)
    verdicts = index.add_many(documents([FOX, ROSE, FOX, ROSE], ["0001-01-01", "9999-12-31", "2024-01-01", None]))
    assert [(v.of, v.flag) for v in verdicts] == [(None, ""), (None, ""), ("d0", ""), ("d1", "")]


@pytest.mark.parametrize(
    ("window", "seconds"),
    [("24h", DAY), ("90m", 5400), ("7d", 7 * DAY), ("3600s", HOUR), (timedelta(minutes=5), 300), ("1h", HOUR)],
)
def test_windows_of_every_writing(clock: SetClock, window: str | timedelta, seconds: int) -> None:
    clock.time = NOON + 99 * DAY
    index = nd.Index(window=window, now=clock)
    verdicts = flow(index, (FOX, 0), (FOX, seconds), (FOX, seconds + 1), (ROSE, seconds), (ROSE, 2 * seconds + 1))
    assert [v.of for v in verdicts] == [None, "d0", None, None, None]
