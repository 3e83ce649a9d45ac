"""``neardup explore``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from commands import neardup, start_process, wait_for_end, write_lines
from sentences import says

WORDS = [f"word{at}" for at in range(400)]
SMALL = ("--lengths", "1-3", "--examples", "1")


def story(seed: int) -> list[str]:
    return random.Random(seed).choices(WORDS, k=60)


def documents() -> list[dict[str, Any]]:
    """Seventy stories, some sent again with a change, and what no story should be."""
    found: list[dict[str, Any]] = []
    for seed in range(70):
        words = story(seed)
        found.append({"id": f"s{seed}", "title": f"Story {seed}", "text": " ".join(words)})
        if seed % 3 == 0:
            found.append(
                {"id": f"s{seed}-again", "title": "Again", "text": " ".join([*words[:55], *story(seed + 99)[:5]])}
            )
        if seed % 7 == 0:
            found.append({"id": f"s{seed}-copy", "title": "Copy", "text": " ".join(words)})
    hostile = "\x1b[31m<script>alert(1)</script> قال المتحدث \u202e 港口 \u0000 " + " ".join(WORDS[:30])
    found += [
        {"id": "hostile\x1b[0m", "title": "\x07", "text": hostile},
        {"id": "hostile-2", "title": "", "text": hostile + " x"},
    ]
    return [*found, {"id": "empty", "title": "", "text": ""}, {"id": "one", "title": "", "text": "word"}]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("stories") / "stories.jsonl", documents())


def test_the_terminal_shows_the_figures_of_json(stories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stdout = neardup("explore", stories, *SMALL).stdout
    lines = stdout.splitlines()
    assert says(lines[0], "all 108 documents", "5,778 pairs")
    found = json.loads(neardup("explore", stories, *SMALL, "--json").stdout)
    points = {f"{one['threshold']:g}": one for one in found["curve"]["points"]}
    figures = (line.split() for line in lines if line.strip().startswith(("0.", "1 ")) and "%" in line)
    rows = {cells[0]: cells for cells in figures if cells[1].isdigit()}
    assert {"0.2", "0.3", "0.5", "0.8", "1", f"{found['advice']['threshold']:g}"} <= set(rows)
    for threshold, cells in rows.items():
        names = ("pairs", "families", "largest_family", "dropped")
        assert cells[1:5] == [str(points[threshold][name]) for name in names]
    assert "10 copies of 10 texts" in stdout
    assert lines[-1].startswith(f"  neardup dedup {stories}")
    # Only the command is longer than the terminal is wide: it can be copied.
    assert [line for line in lines if len(line) > 80] in ([], lines[-1:])
    # Nothing of a document does anything to a terminal.
    assert not set(stdout) & {"\x1b", "\x07", "\u202e", "\x00"}


def test_a_pipe_without_unicode(stories: Path) -> None:
    started = start_process("explore", stories, *SMALL, env={"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})
    code, out, err = wait_for_end(started)
    assert (code, out.isascii(), "words:1" in out) == (0, True, True), err


def test_the_advised_command_runs(stories: Path, tmp_path: Path) -> None:
    found = json.loads(neardup("explore", stories, *SMALL, "--text-column", "text", "--json").stdout)
    command = found["advice"]["command"]
    assert command[2:4] == ["--text-column", "text"]
    kept = tmp_path / "kept.jsonl"
    neardup(*[kept if before == "-o" else word for before, word in zip(["", *command], command, strict=False)])
    point = next(one for one in found["curve"]["points"] if one["threshold"] == found["advice"]["threshold"])
    assert len(kept.read_text("utf-8").splitlines()) == 108 - point["dropped"]
