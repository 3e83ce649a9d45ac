"""What a killed process leaves beside its outputs goes when they are written again; a live one keeps what is its."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import FOX, finished, names_in, neardup, process, write_lines

from neardup import files as wholefile
from neardup.documents.output import OutputFile

WRITES = """
import os, sys, time
from neardup.documents.output import OutputFile
from neardup.files import Unfinished
made = [OutputFile(name) for name in sys.argv[1:-1]]
folder = Unfinished.beside(sys.argv[-1], folder=True)
open(os.path.join(folder.path, "a.txt"), "w").close()
print("writing", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that takes a moment to write."""
    rows = [{"id": i, "text": f"{i} of {i * 7} and {i * 13} {FOX[: 20 + i % 60]} {i * 31}"} for i in range(40_000)]
    return write_lines(tmp_path_factory.mktemp("big") / "big.jsonl", rows)


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for outputs, beside one for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def _until(done: Callable[[], object], started: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert started.poll() is None, "it ended before it was interrupted"
        assert time.monotonic() < end
        time.sleep(0.001)


def _partial(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if ".partial-" in path.name]


def _written_in_part(folder: Path) -> bool:
    return any(path.stat().st_size for path in _partial(folder))


def test_killed_while_writing_and_started_again(big: Path, out: Path, warm: None) -> None:
    outputs = "-o", out / "clean.jsonl.gz", "--duplicates", out / "dups.csv", "--quarantine", out / "q.jsonl"
    command = "dedup", big, *outputs
    for _ in range(2):
        started = process(*command)
        _until(lambda: _written_in_part(out), started)
        started.kill()
        finished(started)
        assert _partial(out)
        assert names_in(out.parent / "temporary")
    code, _, err = finished(process(*command))
    assert code == 0, err
    assert names_in(out) == {"clean.jsonl.gz", "dups.csv", "q.jsonl"}
    assert names_in(out.parent / "temporary") == set()


def test_a_writer_that_lives_is_left_alone(big: Path, out: Path, warm: None) -> None:
    slow = process("dedup", big, "-o", out / "clean.jsonl.gz")
    _until(lambda: _written_in_part(out), slow)
    slow.send_signal(signal.SIGSTOP)
    try:
        held, temporary = _partial(out), names_in(out.parent / "temporary")
        code, _, err = finished(process("dedup", big, "-o", out / "clean.jsonl.gz", "--force"))
        assert code == 0, err
        assert _partial(out) == held
        assert names_in(out.parent / "temporary") == temporary
    finally:
        slow.send_signal(signal.SIGCONT)
    first = (out / "clean.jsonl.gz").read_bytes()
    assert finished(slow)[0] == 0
    assert names_in(out) == {"clean.jsonl.gz"}
    assert (out / "clean.jsonl.gz").read_bytes() == first
    assert names_in(out.parent / "temporary") == set()


def _killed(*names: Path) -> None:
    started = subprocess.Popen([sys.executable, "-c", WRITES, *map(str, names)], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "writing\n"
    started.kill()
    started.communicate()


def test_only_what_is_written_again_is_swept(out: Path) -> None:
    _killed(out / "a.html", out / "b.html", out / "texts")
    mine = [out / ".a.html.partial-0123456789abcdef.txt", out / ".a.html.partial-xyz", out / ".a.html.partial-0"]
    for path in mine:
        path.write_text("mine")
    (out / ".a.html.partial-00000000000000aa").symlink_to(mine[0])
    left = {path.name for path in _partial(out)}
    with OutputFile(str(out / "a.html")) as file:
        file.write(b"page")
    gone = left - names_in(out)
    assert len(gone) == 1
    assert gone.pop().startswith(".a.html.partial-")
    wholefile.write(out / "b.html", b"page")
    texts = out.parent / "pages"
    texts.mkdir()
    (texts / "a.txt").write_text("one two three four five six")
    neardup("dedup", texts, "-o", out / "texts")
    kept = {path.name for path in mine} | {".a.html.partial-00000000000000aa"}
    assert names_in(out) == kept | {"a.html", "b.html", "texts"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_what_another_user_left_stays(out: Path) -> None:
    _killed(out / "a.html", out / "texts")
    for path in _partial(out):
        os.chown(path, 65534, 65534)
    before = names_in(out)
    wholefile.write(out / "a.html", b"page")
    assert names_in(out) == before | {"a.html"}


@pytest.mark.parametrize("name", ["文" * 80 + ".html", "a" * 250 + ".html"])
def test_names_that_fill_what_a_file_system_takes(name: str, out: Path) -> None:
    wholefile.write(out / name, b"page")
    with OutputFile(str(out / name)) as file:
        file.write(b"page")
    assert names_in(out) == {name}
