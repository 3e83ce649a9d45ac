"""kill -9 of a process that changes an index, at random moments: what was returned is on disk, nothing is half done.

``NEARDUP_LONG=1 python -m pytest -k kill tests/stream tests/service tests/watch`` kills three hundred times.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

from commands import forked
from kills import kill_count
from streaming import DAY, HOUR, NOON

import neardup as nd
from neardup.errors import UnknownDocument

KILLS = kill_count(3)
#: Changes between two kills, so that there is always something left to do.
EACH = 24


def now() -> float:
    return NOON + 900.0 * DAY


def documents(number: int) -> list[nd.Document]:
    """Return one of many batches: copies, changed ids, late ones, wrong dates, and a flow that moves on."""
    dice = random.Random(number)
    begin, batch = NOON + 600 * number + (number // 60) * 3 * DAY, list[nd.Document]()
    for place in range(dice.choice([1, 1, 3, 9])):
        words = random.Random(dice.randrange(number + 1) * 10 + place)
        text = " ".join(f"w{words.randrange(999)}" for _ in range(20))
        offset = dice.choice([0, 0, 0, 0, 60, -HOUR, -9 * DAY, 9 * DAY])
        name = f"{number}-{place}" if dice.random() < 0.9 else f"page-{dice.randrange(5)}"
        batch.append(nd.Document(name, text, begin + offset))
    return batch


def change(index: nd.Index, number: int) -> None:
    """Make a change, which may have been made before the process was killed."""
    earlier = f"{number - 1 - number % 3}-0"
    with contextlib.suppress(UnknownDocument):
        if number % 7 == 3:
            index.forget(earlier)
        elif number % 7 == 5:
            index.release(earlier, "ann")
        elif number % 7 == 6 and index.verdict_of(earlier) is not None:
            index.replace(nd.Document(earlier, f"another text number {number}", NOON))
        else:
            index.add_many(documents(number))


def work(path: str, log: str, end: int) -> None:
    """Make all changes that the log does not have, and log each once it is made."""
    handle = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    begin = os.fstat(handle).st_size
    with nd.Index("ddd", path=path, now=now, keep_texts=True) as index:
        index.reports_late = False
        for number in range(begin, end):
            change(index, number)
            os.write(handle, b".")


def outcome(path: Path) -> tuple[Any, ...]:
    with nd.Index("ddd", path=path, now=now, keep_texts=True) as index:
        assert index.store is not None
        rows = [row.verdict for row in index.store.latest_documents(10**6)]
        statistics = index.statistics._replace(bytes=0, segments=0, window_documents=0)
        held = [(name, index.text_of(name)) for name in index]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        released = connection.execute("SELECT id, kind, of FROM released ORDER BY id").fetchall()
    return rows, held, statistics, released


def test_an_index_killed_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    dice = random.Random(seed := random.getrandbits(32))
    path, log, changes = tmp_path / "news.db", tmp_path / "log", EACH * (KILLS + 1)
    log.touch()
    for kill in range(KILLS + 1):
        process = forked(work, str(path), str(log), changes)
        if kill < KILLS:
            made = log.stat().st_size + dice.randrange(EACH // 2)
            while process.is_alive() and log.stat().st_size <= made:
                time.sleep(0.001)
            time.sleep(dice.choice([0.0, dice.uniform(0, 0.004)]))
            os.kill(process.pid or 0, signal.SIGKILL)
        process.join(300)
        assert process.exitcode == (0 if kill == KILLS else -signal.SIGKILL), seed
    work(str(tmp_path / "whole.db"), str(tmp_path / "whole"), changes)
    for found, expected in zip(outcome(path), outcome(tmp_path / "whole.db"), strict=True):
        assert found == expected, f"after kills drawn from {seed}"
