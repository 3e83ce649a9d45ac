"""kill -9 at random moments, under load: afterwards every item has one verdict and one place, as without kills.

The suite kills a few times; ``NEARDUP_KILLS=200 pytest tests/watch/test_kills.py`` does it as often as one likes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from newsroom import Newsroom, edited, feed_of, files_in, lines_of, names_in, rows_of, text_of

KILLS = int(os.environ.get("NEARDUP_KILLS", "12"))
#: Files for each kill, so that there is always something left to do.
FILES = 24
FOLDERS = ("out", "duplicates", "quarantine", "done")


class Starter:
    """Starts watchers as processes of their own."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("forking.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        return int(self._process.stdout.readline())

    def start(self, room: Newsroom, place: str, *, reports: bool = False) -> int:
        folders = [part for name in FOLDERS[1:] for part in (f"--{name}", str(getattr(room, name)))]
        now = ["--settle", "0", "--patience", "0", "--poll", "0.1", "--place", place, "--recipe", "ddd", "--once"]
        arguments = ["watch", str(room.inbox), "--store", str(room.store), "--originals", str(room.out), *folders, *now]
        page = ["--report", str(room.root / "report.html"), "--report-every", "1s", "--report-items", "50"]
        return self.ask(json.dumps([*arguments, *(page if reports else [])]))

    def ended(self) -> int:
        return self.ask("")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    found = Starter()
    yield found
    found.close()


def fill(room: Newsroom, kills: int) -> None:
    """A stream of single files, pages of several items, repeated ids and files that cannot be read."""
    chosen = random.Random(5)
    for number in range(FILES * kills):
        kind = number % 12
        if kind == 11:
            items = [
                (f"guid-{chosen.randrange(40)}", text_of(chosen.randrange(9000), 40))
                for _ in range(chosen.randrange(6))
            ]
            room.deliver(f"feeds/{number % 5}-{number}.xml", feed_of(items))
        elif kind == 10:
            lines = [{"id": f"{number}-{i}", "text": text_of(chosen.randrange(number * 9 + 9), 40)} for i in range(11)]
            room.deliver(f"lines/{number}.jsonl", lines_of(lines) + ("{broken\n" if number % 24 == 10 else ""))
        elif kind == 9:
            room.deliver(f"bad/{number}.txt", bytes([255, 254, 255, number % 256]))
        else:
            text = text_of(number if kind % 3 else chosen.randrange(number + 1))
            room.deliver(f"{'abc'[kind % 3]}/{number:05}.txt", edited(text) if kind == 4 else text)


def outcome(room: Newsroom) -> dict[str, Any]:
    """Everything that a run leaves, but for the times of day."""
    found: dict[str, Any] = {"verdicts": [row[:4] for row in rows_of(room.store)]}
    for name in FOLDERS:
        found[name] = {path: _timeless(path, content) for path, content in files_in(getattr(room, name)).items()}
    found["inbox"] = names_in(room.inbox)
    return found


def _timeless(path: str, content: bytes) -> Any:
    if ".neardup.json" not in path:
        return content
    lines = content.decode().splitlines() if path.endswith("l") else [content.decode()]
    return [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, starter: Starter) -> dict[str, Any]:
    """What runs without kills leave, and how long they take, by where files go."""
    found: dict[str, Any] = {}
    for place in ("move", "link"):
        room = Newsroom(tmp_path_factory.mktemp("whole"))
        fill(room, KILLS)
        begin = time.monotonic()
        starter.start(room, place)
        assert starter.ended() == 0, Path(f"{room.inbox}.log").read_text()
        found[place] = outcome(room), time.monotonic() - begin
    return found


@pytest.mark.parametrize("way", ["move", "link", "move to another disk", "move with reports"])
def test_killed_at_any_moment(way: str, tmp_path: Path, starter: Starter, expected: dict[str, Any]) -> None:
    place = way.split()[0]
    whole, seconds = expected[place]
    kills = KILLS if way == "move" else KILLS // 3
    # How long a run takes says little about the next one: where few were killed in time, once more and sooner.
    longest = 1.5 * seconds / kills + 0.15
    for attempt in range(8):
        base = tmp_path / str(attempt)
        base.mkdir()
        if _killed(way, base, starter, whole, kills, longest / 3**attempt) > 2:
            return
    pytest.fail("no run took long enough to be killed")


def _killed(way: str, base: Path, starter: Starter, whole: dict[str, Any], kills: int, longest: float) -> int:
    """Fill a room, kill its watchers within ``longest`` seconds, compare what is left with ``whole``; how many died."""
    place = way.split()[0]
    room = Newsroom(base, _other_disk(base) if "disk" in way else None)
    fill(room, KILLS)
    chosen = random.Random()
    moments, killed = [], 0
    try:
        while killed < kills:
            pid = starter.start(room, place, reports="reports" in way)
            moments.append(chosen.uniform(0.0, longest))
            time.sleep(moments[-1])
            os.kill(pid, signal.SIGKILL)
            if starter.ended() == -signal.SIGKILL:
                killed += 1
            elif not names_in(room.inbox) or place == "link":
                break
        starter.start(room, place, reports="reports" in way)
        assert starter.ended() == 0, Path(f"{room.inbox}.log").read_text()[-3000:]
        if "reports" in way:
            assert (room.root / "report.html").read_text("utf-8").endswith("</html>\n")
        found = outcome(room)
        for name, wanted in whole.items():
            assert found[name] == wanted, f"{name} after kills at {moments}"
        assert all(row[-1] for row in rows_of(room.store))
        return killed
    finally:
        if "disk" in way:
            _remove(room.out)


def _other_disk(tmp_path: Path) -> Path:
    memory = Path("/dev/shm")  # noqa: S108  a folder of its own is made in it
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    folder = memory / f"neardup-{os.getpid()}-{tmp_path.parent.name}-{tmp_path.name}"
    folder.mkdir()
    return folder


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)
