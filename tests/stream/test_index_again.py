"""The same again: known documents, versions, and documents older than the window."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from streaming import FOX, NOON, ROSE, SetClock

import neardup as nd
from neardup.errors import InputError, RecipeError

HOUR, DAY = 3600, 86_400
SHIP = "Two ferries were late this morning because a storm had closed the northern harbour of the island"


@pytest.fixture(params=["memory", "store"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    clock = {"now": SetClock(NOON + 90 * DAY)}
    return clock | ({"path": tmp_path / "news.db"} if request.param == "store" else {})


def test_an_id_with_its_text_is_known(options: dict[str, Any]) -> None:
    with nd.Index("ddd", **options) as index:
        first = index.add(nd.Document("a", FOX, NOON))
        again, other = index.add_many([nd.Document("a", FOX, NOON + 60), nd.Document("b", FOX, NOON + 61)])
        assert again == first._replace(known=True)
        assert (other.kind, other.of, other.known) == ("exact", "a", False)
        assert index.add_many(2 * [nd.Document("a", FOX, NOON)]) == [again, again]
        # In one batch as well.
        verdicts = index.add_many([nd.Document("c", ROSE, NOON + 62), nd.Document("c", ROSE)])
        assert verdicts == [verdicts[0], verdicts[0]._replace(known=True)]
        assert (index.statistics.documents, index.verdict_of("a")) == (3, first)


def test_another_text_under_an_id_is_a_version(options: dict[str, Any]) -> None:
    with nd.Index("ddd", **options) as index:
        index.add(nd.Document("a", FOX, NOON))
        near, new, known = index.add_many(
            [nd.Document("a", f"{FOX} today", NOON), nd.Document("a", ROSE, NOON), nd.Document("a", ROSE, NOON)]
        )
        assert (near.id, near.kind, near.of, near.version_of) == ("a~2", "near", "a", "a")
        assert (new.id, new.kind, new.version_of, new.known) == ("a~3", "original", "a", False)
        assert known == new._replace(known=True)
        assert index.add(nd.Document("a", ROSE, NOON)) == known
        assert index.add(nd.Document("a", FOX, NOON)).id == "a"
        # An id that looks like a version is one if it has that text, and any other id otherwise.
        assert index.add(nd.Document("a~3", ROSE, NOON)).known
        assert index.add(nd.Document("a~4", SHIP, NOON)).version_of is None
        assert index.add(nd.Document("a", f"{ROSE} and more of it", NOON)).id == "a~5"
        assert index.verdict_of("a~3") == new


def test_a_version_that_repeats_another_document_is_known(options: dict[str, Any]) -> None:
    with nd.Index("ddd", **options) as index:
        index.add_many([nd.Document("other", ROSE, NOON), nd.Document("a", FOX, NOON)])
        verdict = index.add(nd.Document("a", ROSE, NOON))
        assert (verdict.id, verdict.kind, verdict.of) == ("a~2", "exact", "other")
        assert [index.add(nd.Document("a", ROSE, NOON)) for _ in range(2)] == [verdict._replace(known=True)] * 2
        assert index.statistics.documents == 3


def test_a_known_document_is_known_beside_one_far_ahead(options: dict[str, Any]) -> None:
    with nd.Index("ddd", **options) as index:
        first = index.add(nd.Document("a", FOX, NOON))
        batch = [nd.Document("a", FOX, NOON), *(nd.Document(f"{n}", f"{SHIP} {n}", NOON + 9 * DAY) for n in range(3))]
        for _ in range(2):
            assert index.add_many([*batch, batch[0]])[0] == first._replace(known=True)


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_versions_may_replace(options: dict[str, Any], batch: int) -> None:
    documents = [
        nd.Document(name, text, NOON + place)
        for place, (name, text) in enumerate(
            [("a", FOX), ("b", SHIP), ("a", ROSE), ("a", ROSE), ("c", FOX), ("a", FOX)]
        )
    ]
    with nd.Index("ddd", versions="replace", **options) as index:
        verdicts = [
            verdict for at in range(0, len(documents), batch) for verdict in index.add_many(documents[at : at + batch])
        ]
        assert [(v.id, v.kind, v.of, v.known) for v in verdicts] == [
            ("a", "original", None, False),
            ("b", "original", None, False),
            ("a", "original", None, False),
            ("a", "original", None, True),
            ("c", "original", None, False),
            ("a", "exact", "c", False),
        ]
        assert (index.statistics.documents, sorted(index)) == (3, ["b", "c"])


def test_versions_may_be_refused(options: dict[str, Any]) -> None:
    with nd.Index("ddd", versions="refuse", **options) as index:
        index.add(nd.Document("a", FOX, NOON))
        with pytest.raises(InputError, match="id 'a' already has a verdict on another text; give each"):
            index.add_many([nd.Document("b", SHIP, NOON), nd.Document("a", ROSE, NOON)])
        assert index.add(nd.Document("a", FOX, NOON)).known
        assert list(index) == ["a"]
    with pytest.raises(RecipeError, match="versions 'all' is unknown; choose keep, replace or refuse"):
        nd.Index(versions="all")


def test_late_documents_are_compared_by_their_exact_text(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    late = [
        nd.Document(name, text, NOON - 9 * DAY, origin="wire") for name, text in zip("xyz", [SHIP] * 3, strict=True)
    ]
    with nd.Index("ddd", **options) as index:
        index.add(nd.Document("a", FOX, NOON))
        assert [index.check([one])[0].kind for one in late] == ["original"] * 3
        with caplog.at_level(logging.WARNING, "neardup.stream"):
            verdicts = index.add_many(late)
        assert [(v.kind, v.of, v.flag) for v in verdicts] == [
            ("original", None, "late"),
            ("exact", "x", "late"),
            ("exact", "x", "late"),
        ]
        assert [record.getMessage().split(";")[0] for record in caplog.records] == [
            "document 'x' of 'wire' is older than the window of 24h"
        ]
        assert index.check(late[1:2])[0].of == "x"
        assert [v.known for v in index.add_many(late)] == [True] * 3
        assert (index.statistics.late, index.statistics.window_documents) == (3, 1)


def test_a_feed_that_is_polled_for_a_month_passes_everything_once(options: dict[str, Any]) -> None:
    """Polls every six hours; the feed lists the items of three weeks."""
    clock = SetClock(NOON)
    passed, sizes = list[str](), list[int]()
    with nd.Index("ddd", **(options | {"now": clock})) as index:
        for poll in range(120):
            now = NOON + 6 * HOUR * poll
            clock.time = now
            listed = range(max(poll - 84, -84), poll + 1)
            feed = [
                nd.Document(f"g{n}", f"item {n} of the feed " + " ".join(f"w{n * 31 + k}" for k in range(30)), t)
                for n in listed
                if (t := NOON + 6 * HOUR * n)
            ]
            # The newest first, as feeds have it.
            passed += [v.id for v in index.add_many(feed[::-1]) if not v.is_duplicate and not v.known]
            sizes.append(index.statistics.window_documents)
    assert len(passed) == len(set(passed)) == 120 + 84
    assert max(sizes) <= 10


def test_a_store_of_the_format_before_is_continued(tmp_path: Path) -> None:
    options: dict[str, Any] = {"path": tmp_path / "news.db", "now": SetClock(NOON + 90 * DAY)}
    with nd.Index("ddd", **options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", f"{FOX} today", NOON)])
    with sqlite3.connect(options["path"]) as store:
        store.executescript(
            "DROP INDEX kept_digest; DELETE FROM kept; ALTER TABLE documents DROP COLUMN version_of; "
            "ALTER TABLE state DROP COLUMN sum; "
            "PRAGMA user_version = 2"
        )
    store.close()
    with nd.Index("ddd", **options) as index:
        assert index.verdict_of("b") is not None
        assert index.add(nd.Document("a", FOX, NOON)).known
        assert index.add(nd.Document("a", ROSE, NOON)).version_of == "a"


def test_memory_is_flat_over_ten_windows_of_polls(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """New, known, late and changed items of ever new sources."""
    monkeypatch.setattr("neardup.stream.index._MAX_NUMBERED", 20)
    caplog.set_level(logging.CRITICAL, "neardup.stream")
    clock, days, sizes, names = SetClock(NOON), 6, list[tuple[int, int, int]](), set[str]()
    with nd.Index("ddd", now=clock) as index:
        for hour in range(0, 24 * days, 2):
            clock.time = now = NOON + HOUR * hour
            texts = {n: " ".join(f"w{n * 31 + k}" for k in range(12)) for n in range(max(hour - 9, 0), hour + 1)}
            feed = [nd.Document(f"g{n}", text, NOON + HOUR * n, origin="feed") for n, text in texts.items()]
            changing = nd.Document(f"page-{hour // 4}", f"{SHIP} {hour} {hour * 7}", now)
            late = nd.Document(f"late-{hour}", FOX if hour % 4 else ROSE, now - 9 * DAY, origin=f"source {hour}")
            verdicts = index.add_many([*feed, changing, late, *feed[:3]])
            assert [verdict.known for verdict in verdicts[len(feed) + 2 :]] == [True] * len(feed[:3])
            names |= {verdict.id for verdict in verdicts}
            if hour % 24 == 22:
                kept = sum(index.verdict_of(name) is not None for name in names)
                sizes.append((kept, index.statistics.window_documents, index.statistics.bytes))
        assert (index.statistics.late, index.statistics.documents, len(names)) == (12 * days, 48 * days - 1, 287)
        assert max(map(len, (index._late_origins, index._last_version))) <= 21
    # From the third day on, nothing grows.
    assert sizes[2][:2] == sizes[-1][:2]
    assert sizes[-1][2] <= 1.05 * sizes[2][2]
