"""The clock of a flow: one wrong date, or several between right ones, never move it; a flow that moved on does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streaming import DAY, FOX, HOUR, NOON, ROSE, SetClock

import neardup as nd
from neardup.search.window import FlowClock, WindowLength

#: Ten years, in seconds.
DECADE = 3650 * DAY
#: Times in seconds after noon, their flags, and the clock afterwards.
CASES: dict[str, tuple[list[float], list[str], float]] = {
    "wrong dates that agree, between right ones": (
        [0, DECADE, 60, DECADE + 60, 120, DECADE + 120, 180],
        ["", "ahead", "", "ahead", "", "ahead", ""],
        180,
    ),
    "wrong dates in a row that do not agree": (
        [0, DECADE, 3 * DECADE, 2 * DECADE, 60],
        ["", "ahead", "ahead", "ahead", ""],
        60,
    ),
    "a silence of a week": ([0, 7 * DAY, 7 * DAY + 60, 7 * DAY - HOUR], ["", "ahead", "", ""], 7 * DAY + 60),
    "late items do not interrupt a flow that has moved on": (
        [0, 7 * DAY, -2 * DAY, 7 * DAY + 60],
        ["", "ahead", "late", ""],
        7 * DAY + 60,
    ),
    "after a late item the clock is where it was": ([0, -2 * DAY, 60], ["", "late", ""], 60),
    "the confirming time may be the earlier one": ([0, 7 * DAY, 6 * DAY + 1], ["", "ahead", ""], 7 * DAY),
}


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "store"])
@pytest.mark.parametrize("name", CASES)
def test_a_clock_trusts_two_in_a_row(name: str, stored: bool, tmp_path: Path) -> None:
    times, flags, clock = CASES[name]
    options: dict[str, Any] = {"now": SetClock(NOON + 9 * DECADE), "path": tmp_path / "news.db" if stored else None}
    documents = [nd.Document(f"d{i}", f"{FOX} {i} {i}", NOON + time) for i, time in enumerate(times)]
    with nd.Index(**options) as index:
        verdicts = index.add_many(documents)
        assert ([verdict.flag for verdict in verdicts], index.statistics.clock) == (flags, NOON + clock)
    # One by one, with a restart and a check before each.
    found, index = list[nd.Verdict](), nd.Index(**options | ({"path": tmp_path / "other.db"} if stored else {}))
    for document in documents:
        if stored:
            index.close()
            index = nd.Index(**options | {"path": tmp_path / "other.db"})
        (checked,) = index.check([document])
        found.append(index.add(document))
        assert found[-1] == checked
    assert (found, index.statistics.clock) == (verdicts, NOON + clock)
    index.close()


def test_a_corpus_of_1987_is_replayed_with_dates_of_today_in_it() -> None:
    today = NOON + 4 * DECADE
    with nd.Index(now=SetClock(today)) as index:
        for hour in range(40):
            index.add(nd.Document(f"right-{hour}", f"{ROSE} {hour}", NOON + HOUR * hour))
            assert index.add(nd.Document(f"wrong-{hour}", f"{FOX} {hour}", today)).flag == "ahead"
        assert index.statistics.clock == NOON + 39 * HOUR
        assert index.statistics.late == 0


def test_a_system_clock_that_is_set_back_loses_nothing() -> None:
    clock = SetClock(NOON)
    with nd.Index(now=clock) as index:
        index.add(nd.Document("a", FOX))
        clock.time = NOON - 30 * DAY
        # Dated items are later than the system clock; they have the time of the flow, as arriving ones do.
        dated, arrived = index.add(nd.Document("b", FOX, NOON + 60)), index.add(nd.Document("c", FOX))
        assert (dated.flag, dated.of, dated.time) == ("future", "a", NOON)
        assert (arrived.flag, arrived.of, arrived.time) == ("", "a", NOON)


def test_a_future_item_is_no_evidence_for_the_clock() -> None:
    with nd.Index(now=SetClock(NOON + 8 * DAY)) as index:
        times = [0, 7 * DAY, 9 * DAY, 7 * DAY + 60]
        verdicts = index.add_many(nd.Document(f"{i}", f"{FOX} {i}", NOON + time) for i, time in enumerate(times))
        assert [verdict.flag for verdict in verdicts] == ["", "ahead", "future", ""]
        assert index.statistics.clock == NOON + 7 * DAY + 60


def test_a_clock_is_a_value() -> None:
    clock = FlowClock(WindowLength.parse("100s"))
    first, after = clock.event_time(5_000_000, 100.0)
    assert (clock.time, after.time, first.flag) == (None, 5_000_000, "")
    ahead, waiting = after.event_time(900_000_000, 1000.0)
    assert (ahead.flag, waiting.time, waiting.pending) == ("ahead", 5_000_000, 900_000_000)
    assert [waiting.event_time(901_000_000, 1000.0)[0].confirms for _ in range(2)] == [True, True]


def test_after_a_jump_only_what_agrees_is_in_the_window(tmp_path: Path) -> None:
    options: dict[str, Any] = {"now": SetClock(NOON + 90 * DAY), "path": tmp_path / "news.db"}
    with nd.Index(**options) as index:
        old = [nd.Document(f"old-{i}", " ".join(f"word{i * 31 + n}" for n in range(9)), NOON + i) for i in range(5)]
        index.add_many(old)
        index.add(nd.Document("first", FOX, NOON + 9 * DAY))
        assert len(index) == 6
        # The check sees the first one at its own time, and changes nothing.
        checked = index.check([nd.Document("x", FOX, NOON + 9 * DAY + 60), nd.Document("y", old[0].text, NOON + 60)])
        assert [verdict.of for verdict in checked] == ["first", "old-0"]
        assert index.add(nd.Document("second", FOX, NOON + 9 * DAY + 60)).of == "first"
        assert list(index) == ["first"]
        assert index.add(nd.Document("late", old[1].text, NOON + 60)).flag == "late"
    with nd.Index(**options) as index:
        assert list(index) == ["first"]
        assert index.add(nd.Document("third", FOX, NOON + 10 * DAY)).of == "first"
        assert index.add(nd.Document("fourth", FOX, NOON + 10 * DAY + 1)).of is None
