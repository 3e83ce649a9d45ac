"""Signals at any moment of a command: it ends with one line, without a half-written output, a folder or a process."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import NEVER, names_in, start_process, wait_for_end
from web_pages import needs_html, page, paragraphs

_LONG = pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="NEARDUP_LONG=1 ends a hundred commands")
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
#: How many moments of a run are tried.
MOMENTS = 12
#: A variable of the environment that the processes of a command inherit.
MARK = "NEARDUP_TEST_OF_SIGNALS"


class Drill(NamedTuple):
    """A command in the folder of ``drill_inputs``, and the names of its outputs."""

    command: str
    outputs: set[str]


DRILLS = {
    "many outputs": Drill(
        "dedup lines.jsonl -o out/kept.jsonl.gz --duplicates out/dropped.csv --summary out/summary.json "
        "--report out/report.html",
        {"kept.jsonl.gz", "dropped.csv", "summary.json", "report.html"},
    ),
    "parquet": Drill("dedup lines.jsonl -o out/kept.parquet", {"kept.parquet"}),
    "spool": Drill(
        "dedup lines.jsonl --memory 120MB -o out/kept.jsonl --duplicates out/dropped.csv", {"kept.jsonl", "dropped.csv"}
    ),
    "pages": Drill("dedup pages.jsonl --html --threads 2 -o out/kept.jsonl", {"kept.jsonl"}),
    "folder": Drill("dedup texts -o out/kept/", {"kept"}),
    "pairs": Drill("pairs lines.jsonl -o out/pairs.parquet", {"pairs.parquet"}),
    "index": Drill("index build lines.jsonl -o out/index", {"index"}),
    "replay": Drill("replay lines.jsonl --window 24h -o out/verdicts.csv", {"verdicts.csv"}),
}


@pytest.fixture(scope="module")
def drill_inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    rng = random.Random(1)
    words = [f"w{number}" for number in range(3000)]
    texts: list[str] = []
    for number in range(40_000):
        texts.append(f"{rng.choice(texts)} x{number}" if number % 3 == 2 else " ".join(rng.choices(words, k=40)))
    rows = [
        {"id": f"d{number}", "text": text, "date": f"2024-01-{number % 28 + 1:02d}"}
        for number, text in enumerate(texts)
    ]
    (folder / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pages = [{"text": page(paragraphs(number), number % 3)} for number in range(150)]
    (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pages))
    (folder / "texts").mkdir()
    for number, text in enumerate(texts[:300]):
        (folder / "texts" / f"{number}.txt").write_text(text)
    return folder


def run_until(drill: Drill, inputs: Path, place: Path, seconds: float, number: signal.Signals) -> int:
    """Run a command, end it by a signal after some seconds, and check what it leaves; return its exit code."""
    place.mkdir()
    for name in ("out", "temporary"):
        (place / name).mkdir()
    environment = {"TMPDIR": str(place / "temporary"), MARK: str(place)}
    words = [str(place / word) if word.startswith("out/") else word for word in drill.command.split()]
    started = start_process(*words, cwd=inputs, env=environment)
    try:
        started.wait(seconds)
    except subprocess.TimeoutExpired:
        started.send_signal(number)
    code, _, said = wait_for_end(started)
    # Before Python has begun with the command, a signal ends it as any program.
    assert code in (0, 128 + number, -number), said
    if code > 0:
        lines = [line for line in said.splitlines() if "compiling kernels" not in line]
        cause = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        assert len(lines) == 1, said
        assert lines[0].startswith(f"neardup: {cause}; "), said
    written = set(said.rpartition("; written: ")[2].split(", ")) if "; written: " in said else set()
    expected = drill.outputs if code == 0 else {Path(name).name for name in written}
    assert names_in(place / "out") == expected, said
    assert code < 0 or names_in(place / "temporary") == set()
    end = time.monotonic() + NEVER
    while left := processes_of(place):
        assert time.monotonic() < end, left
        time.sleep(0.01)
    assert isinstance(code, int)
    return code


def processes_of(place: Path) -> list[bytes]:
    """The command lines of processes that a command in this place has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={place}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    return found


@_LONG
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_html) if name == "pages" else name for name in DRILLS])
def test_a_signal_at_any_moment_leaves_all_or_nothing(name: str, drill_inputs: Path, tmp_path: Path) -> None:
    begin = time.monotonic()
    assert run_until(DRILLS[name], drill_inputs, tmp_path / "whole", NEVER, signal.SIGTERM) == 0
    length = time.monotonic() - begin
    codes = [
        run_until(
            DRILLS[name], drill_inputs, tmp_path / f"{moment}-{number.name}", length * (moment + 0.5) / MOMENTS, number
        )
        for moment in range(MOMENTS)
        for number in SIGNALS
    ]
    assert sum(code > 0 for code in codes) > len(codes) / 2
