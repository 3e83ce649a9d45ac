"""The command as a process: interrupted, killed, on a full disk, with nobody reading; outputs are whole or absent."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import FOX, NEVER, RULES, names_in, neardup, refused, start_process, wait_for_end, write_lines
from sentences import says

from neardup import files
from neardup.cli.app import app
from neardup.documents.output import OutputFile

WRITES = """
import os, sys, time
from neardup.documents.output import OutputFile
from neardup.files import PartialOutput
made = [OutputFile(name) for name in sys.argv[1:-1]]
folder = PartialOutput.for_target(sys.argv[-1], folder=True)
open(os.path.join(folder.path, "a.txt"), "w").close()
print("writing", flush=True)
time.sleep(60)
"""


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for outputs, beside one for temporary files."""
    for name in ("temporary", "out"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path / "out"


def temporary_files(out: Path) -> set[str]:
    return names_in(out.parent / "temporary")


def wait_until(condition: Callable[[], object], started: subprocess.Popen[str]) -> None:
    end = time.monotonic() + NEVER
    while not condition():
        assert started.poll() is None, wait_for_end(started)
        assert time.monotonic() < end
        time.sleep(0.001)


def unfinished_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if ".partial-" in path.name]


def test_a_full_disk_is_one_sentence(out: Path, warm: None, full_disk: Callable[[int], None]) -> None:
    rows = [{"id": i, "text": f"{i} of {i * 7} and {i * 13} {FOX[: 20 + i % 60]} {i * 31}"} for i in range(4_000)]
    big = write_lines(out.parent / "big.jsonl", rows)
    full_disk(200_000)
    message = refused("dedup", big, "-o", out / "clean.jsonl", "--duplicates", out / "dups.csv")
    assert says(message, str(out), "disk is full", "free some space")
    assert names_in(out) == set()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_stdout_is_one_sentence(corpus: Path, warm: None) -> None:
    with open("/dev/full", "w") as full:
        code, _, err = wait_for_end(start_process("pairs", corpus, "--print", *RULES, stdout=full))
    assert code == 2
    assert says(err.splitlines()[-1], "standard output", "No space left on device")
    assert "Traceback" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_help_on_a_full_stdout_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        code, _, err = wait_for_end(start_process("--help", stdout=full))
    assert code == 2
    assert says(err.strip(), "standard output", "No space left on device")


@pytest.mark.parametrize("line", ["recipe list", "--help"])
def test_a_closed_stdout_is_one_sentence(line: str) -> None:
    words = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "neardup", *line.split()]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert says(done.stderr.strip(), "standard output", "closed", "to a file")


def test_an_interruption_while_reading_leaves_nothing(out: Path) -> None:
    fifo = out.parent / "slow.jsonl"
    os.mkfifo(fifo)
    started = start_process("dedup", fifo, "-o", out / "clean.jsonl")
    ends: list[int] = []

    def opened() -> bool:
        try:
            ends.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    wait_until(opened, started)
    os.write(ends[0], b'{"id": 1, "text": "a"}\n')
    wait_until(lambda: not struct.unpack("i", fcntl.ioctl(ends[0], termios.FIONREAD, bytes(4)))[0], started)
    started.send_signal(signal.SIGINT)
    try:
        started.wait(timeout=1)
    except subprocess.TimeoutExpired:
        # Python notices a signal inside a read that waits; one that comes just before it, after that read.
        with suppress(BrokenPipeError):  # it has noticed, and takes its time to end
            os.write(ends[0], b'{"id": 2, "text": "b"}\n')
    assert wait_for_end(started) == (130, "", "neardup: interrupted; nothing was written\n")
    os.close(ends[0])
    assert names_in(out) == temporary_files(out) == set()


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (signal.SIGINT, "interrupted"),
        (signal.SIGTERM, "ended by SIGTERM"),
        (signal.SIGHUP, "ended by SIGHUP"),
    ],
)
def test_an_interruption_while_writing_leaves_nothing(
    number: int, cause: str, corpus: Path, out: Path, warm: None
) -> None:
    outputs = "-o", out / "clean.jsonl.gz", "--duplicates", out / "dups.csv"
    started = start_process("dedup", corpus, *outputs, pausing=True)
    wait_until(lambda: unfinished_files(out), started)
    started.send_signal(number)
    assert wait_for_end(started) == (128 + number, "", f"neardup: {cause}; nothing was written\n")
    assert names_in(out) == temporary_files(out) == set()


def test_an_output_that_fails_to_close_after_an_interruption_is_no_error(
    corpus: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(file: OutputFile, data: object) -> int:
        raise KeyboardInterrupt

    def discarded(file: OutputFile) -> None:
        discard(file)
        raise ValueError("write to closed file")

    discard = OutputFile.discard
    monkeypatch.setattr(OutputFile, "write", interrupted)
    monkeypatch.setattr(OutputFile, "discard", discarded)
    arguments = ["dedup", str(corpus), "-o", str(out / "clean.jsonl.gz")]
    result = CliRunner().invoke(app, arguments, prog_name="neardup")
    assert result.exit_code == 130
    assert result.stderr.endswith("neardup: interrupted; nothing was written\n")
    assert names_in(out) == set()


def test_an_interruption_before_all_outputs_are_complete_writes_none(
    corpus: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(content: object, name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("neardup.cli.screen.write_json", interrupted)
    outputs = "-o", out / "clean.jsonl", "--summary", out / "summary.json"
    stderr = neardup("dedup", corpus, *outputs, code=130).stderr
    assert stderr.endswith("neardup: interrupted; nothing was written\n")
    assert names_in(out) == set()


def test_a_killed_command_can_be_repeated(corpus: Path, out: Path, warm: None) -> None:
    command = "dedup", corpus, "-o", out / "clean.jsonl.gz", "--duplicates", out / "dups.csv"
    started = start_process(*command, pausing=True)
    wait_until(lambda: unfinished_files(out), started)
    started.kill()
    wait_for_end(started)
    assert set(out.iterdir()) == set(unfinished_files(out))
    assert temporary_files(out)
    neardup(*command)
    assert names_in(out) == {"clean.jsonl.gz", "dups.csv"}


def test_files_of_a_running_command_are_kept(corpus: Path, out: Path, warm: None) -> None:
    slow = start_process("dedup", corpus, "-o", out / "clean.jsonl.gz", pausing=True)
    wait_until(lambda: unfinished_files(out), slow)
    unfinished, spooled = unfinished_files(out), temporary_files(out)
    neardup("dedup", corpus, "-o", out / "clean.jsonl.gz", "--force")
    assert (unfinished_files(out), temporary_files(out)) == (unfinished, spooled)
    first = (out / "clean.jsonl.gz").read_bytes()
    slow.send_signal(signal.SIGUSR1)
    assert wait_for_end(slow)[0] == 0
    assert names_in(out) == {"clean.jsonl.gz"}
    assert (out / "clean.jsonl.gz").read_bytes() == first
    assert temporary_files(out) == set()


def test_an_interruption_at_the_start_of_an_output_leaves_nothing(tmp_path: Path) -> None:
    # Between a file's beginning and the block that would remove it, there is a moment for a signal.
    program = "import sys; from neardup.documents.output import OutputFile; out = OutputFile('o.jsonl'); sys.exit(143)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=NEVER, check=False)
    assert ended.returncode == 143
    assert names_in(tmp_path) == set()


def _killed(*names: Path) -> None:
    started = subprocess.Popen([sys.executable, "-c", WRITES, *map(str, names)], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "writing\n"
    started.kill()
    started.communicate()


def test_only_leftovers_of_the_same_output_are_removed(out: Path) -> None:
    _killed(out / "a.html", out / "b.html", out / "texts")
    own_files = [out / ".a.html.partial-0123456789abcdef.txt", out / ".a.html.partial-xyz", out / ".a.html.partial-0"]
    for path in own_files:
        path.write_text("mine")
    (out / ".a.html.partial-00000000000000aa").symlink_to(own_files[0])
    left = {path.name for path in unfinished_files(out)}
    with OutputFile(str(out / "a.html")) as file:
        file.write(b"page")
    swept = left - names_in(out)
    assert len(swept) == 1
    assert swept.pop().startswith(".a.html.partial-")
    files.write_file(out / "b.html", b"page")
    texts = out.parent / "pages"
    texts.mkdir()
    (texts / "a.txt").write_text("one two three four five six")
    neardup("dedup", texts, "-o", out / "texts")
    kept = {path.name for path in own_files} | {".a.html.partial-00000000000000aa"}
    assert names_in(out) == kept | {"a.html", "b.html", "texts"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_files_of_another_user_are_kept(out: Path) -> None:
    _killed(out / "a.html", out / "texts")
    for path in unfinished_files(out):
        os.chown(path, 65534, 65534)
    before = names_in(out)
    files.write_file(out / "a.html", b"page")
    assert names_in(out) == before | {"a.html"}


@pytest.mark.parametrize("name", ["文" * 80 + ".html", "a" * 250 + ".html"])
def test_file_names_of_the_maximum_length_work(name: str, out: Path) -> None:
    files.write_file(out / name, b"page")
    with OutputFile(str(out / name)) as file:
        file.write(b"page")
    assert names_in(out) == {name}
