"""kill -9 at random moments: afterwards every item has one verdict and one place, as without kills.

Kills come after so many steps of a watcher, not after seconds, so a slow machine and a fast one kill alike. The suite
kills a few times, a hundred with NEARDUP_LONG=1, and ``NEARDUP_KILLS=200`` times if one likes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import forking
import pytest
from commands import forked
from kills import kill_count
from newsroom import Newsroom, edited, feed_of, files_in, lines_of, names_in, rows_of, text_of

LONG = os.environ.get("NEARDUP_LONG") == "1"
KILLS = kill_count(4)
#: Files for each kill, so that there is always something left to do.
FILES = 16
FOLDERS = ("out", "duplicates", "quarantine", "done")


def run(room: Newsroom, place: str, *, steps: int = 0, after: float = 0.0) -> int:
    """Run a watcher to its end, or kill it some seconds after a number of steps; return its exit code."""
    folders = [part for name in FOLDERS[1:] for part in (f"--{name}", str(getattr(room, name)))]
    now = ["--settle", "0", "--patience", "0", "--poll", "0.1", "--place", place, "--recipe", "ddd", "--once"]
    arguments = ["watch", str(room.inbox), "--store", str(room.store), "--originals", str(room.out), *folders, *now]
    process = forked(forking.run, arguments, steps, after)
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode


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
    """Return the results of a run, without times of day."""
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
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], int]]:
    """Return the results of runs without kills and their numbers of steps, by placement."""
    found = {}
    for place in ("move", "link") if LONG else ("move",):
        room = Newsroom(tmp_path_factory.mktemp("whole"))
        fill(room, KILLS)
        assert run(room, place) == 0, Path(f"{room.inbox}.log").read_text()
        found[place] = outcome(room), int(Path(f"{room.inbox}.steps").read_text())
    return found


@pytest.mark.parametrize(
    "destination", ["move", "link", "move to another disk"] if LONG else ["move", "move to another disk"]
)
def test_a_watcher_killed_at_any_moment_loses_nothing(
    destination: str, tmp_path: Path, expected: dict[str, tuple[dict[str, Any], int]]
) -> None:
    place = destination.split()[0]
    expected_outcome, steps = expected[place]
    kills = KILLS if destination == "move" else max(KILLS // 3, 1)
    room = Newsroom(tmp_path, _other_disk(tmp_path) if "disk" in destination else None)
    fill(room, KILLS)
    chosen = random.Random(seed := random.getrandbits(32))
    try:
        for number in range(kills):
            # All kills together need fewer steps than a run, so no run ends before its kill; half die at the step
            # itself, the others a little later at any point.
            last = chosen.randint(1, max(4 * steps // (5 * kills), 1))
            after = chosen.choice([0.0, chosen.uniform(1e-6, 0.004)])
            code = run(room, place, steps=last, after=after)
            assert code in (-signal.SIGKILL, -signal.SIGALRM), (code, number, last, after, seed)
        code = run(room, place)
        assert code == 0, Path(f"{room.inbox}.log").read_text()[-3000:]
        found = outcome(room)
        for name, expected_part in expected_outcome.items():
            assert found[name] == expected_part, f"{name} after kills drawn from {seed}"
        assert all(row[-1] for row in rows_of(room.store))
    finally:
        if "disk" in destination:
            shutil.rmtree(room.out)


def _other_disk(tmp_path: Path) -> Path:
    places = (Path(name) for name in ("/dev/shm", "/tmp", "/var/tmp"))  # noqa: S108  a folder of its own is made in it
    folders = (place for place in places if place.is_dir() and place.stat().st_dev != tmp_path.stat().st_dev)
    if (other := next(folders, None)) is None:
        pytest.skip("there is no second file system here")
    folder = other / f"neardup-{os.getpid()}-{tmp_path.parent.name}-{tmp_path.name}"
    folder.mkdir()
    return folder
