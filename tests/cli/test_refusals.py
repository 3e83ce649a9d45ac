"""What is the user's to mend: one sentence, exit code 2 (130 when interrupted), never half an output."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TextIO

import pytest
from calling import FOX, NEVER, RULES, finished, names_in, process, refused, write_lines
from saying import says

BIG = 8_000


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["missing.jsonl"], ("missing.jsonl", "exist", "file, folder, glob or URI")),
        (["bare"], ("bare", "no document")),
        (["*.nothing"], ("*.nothing", "no file")),
        (["corpus.jsonl", "--text-column", "body"], ("corpus.jsonl", "'body'", "--text-column", "columns are id")),
        (["corpus.jsonl", "--id-column", "key"], ("corpus.jsonl", "'key'", "--id-column", "columns are id")),
        (["corpus.jsonl", "--threshold", "1.2"], ("threshold", "1.2", "(0, 1]")),
        (["corpus.jsonl", "--threshold", "0"], ("threshold", "0.0", "(0, 1]")),
        (["corpus.jsonl", "--threshold", "high"], ("--threshold", "'high'", "number", "0.8")),
        (["corpus.jsonl", "--threshold", "nan"], ("threshold", "nan")),
        (["corpus.jsonl", "--measure", "jacard"], ("measure", "'jacard'", " jaccard, ", "cosine")),
        (["corpus.jsonl", "--features", "wrods:5"], ("features", "'wrods:5'", "words:4")),
        (["corpus.jsonl", "--features", "words:0"], ("n is 0", "1..100")),
        (["corpus.jsonl", "--set", "normalize=lower"], ("normalize", "'lower'", " words")),
        (["corpus.jsonl", "--set", "jaccard_floor=2"], ("jaccard_floor", "2.0", "[0, 1]")),
        (["corpus.jsonl", "--recipe", "nws"], ("recipe", "'nws'", "file", "checksum, cornell, ")),
        (["corpus.jsonl", "--keep", "nope"], ("column", "'nope'")),
        (["corpus.jsonl", "--time-column", "date"], ("--time-column", "--keep", "newest", "oldest")),
        (["corpus.jsonl", "--memory", "lots"], ("--memory", "'lots'", "size", "512MB")),
        (["corpus.jsonl", "--max-document", "-1"], ("--max-document", "'-1'", "size", "512MB")),
        (["corpus.jsonl", "--threads", "0"], ("--threads", "'0'", "whole number", "from 1")),
        (["corpus.jsonl", "-o", "taken.jsonl"], ("taken.jsonl", "exists", "another name", "--force")),
        (["corpus.jsonl", "-o", "corpus.jsonl", "--force"], ("corpus.jsonl", "input", "another file")),
        (["folder", "-o", "folder/out.jsonl"], ("folder/out.jsonl", "input folder folder")),
        (["corpus.jsonl", "-o", "no/out.jsonl"], ("folder no ", "exist", "make it")),
        (["corpus.jsonl", "-o", "out.xlsx"], ("out.xlsx", "suffix", ".parquet")),
        (["corpus.jsonl", "--duplicates", "taken.jsonl"], ("taken.jsonl", "exists", "--force")),
        (["corpus.jsonl", "--duplicates", "out.jsonl"], ("out.jsonl", "-o", "--duplicates")),
        (["corpus.jsonl", "--summary", "summary.txt"], ("summary.txt", ".json")),
        (["corpus.jsonl", "--quarantine", "bad.csv"], ("bad.csv", ".jsonl")),
        (["broken.jsonl", "--strict"], ("broken.jsonl", "line 2", "JSON")),
        (["corpus.jsonl", "-o", "-", "--json"], ("-o -", "--json", "stdout")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(
    arguments: list[str], parts: tuple[str, ...], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("bare", "folder"):
        (tmp_path / folder).mkdir()
    write_lines(tmp_path / "folder" / "a.jsonl", [{"id": 1, "text": FOX}])
    (tmp_path / "taken.jsonl").write_text("mine")
    (tmp_path / "broken.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2\n')
    before = names_in(tmp_path), names_in(tmp_path / "folder")
    output = [] if "-o" in arguments else ["-o", "out.jsonl"]
    assert says(refused("dedup", *arguments, *output), *parts)
    assert (names_in(tmp_path), names_in(tmp_path / "folder")) == before
    assert (tmp_path / "taken.jsonl").read_text() == "mine"


def test_an_output_must_be_named(corpus: Path) -> None:
    assert says(refused("dedup", corpus), "no output", "-o FILE", "--dry-run")
    assert says(refused("pairs", corpus), "no output", "-o FILE", "--print")


def test_refusals_of_pairs_come_first(corpus: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.parquet"
    taken.write_text("mine")
    assert says(refused("pairs", corpus, "-o", taken), str(taken), "exists")
    said = refused("pairs", tmp_path / "missing.jsonl", "--print", "--threshold", "7")
    assert says(said, "threshold", "7.0", "(0, 1]")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_no_permission(corpus: Path, tmp_path: Path) -> None:
    corpus.chmod(0)
    assert says(refused("dedup", corpus, "--dry-run"), str(corpus), "read", "user")
    corpus.chmod(0o600)
    locked = tmp_path / "locked"
    locked.mkdir(0o500)
    assert says(refused("dedup", corpus, "-o", locked / "out.jsonl"), str(locked), "written", "user")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of more than a little disk holds."""
    rows = [{"id": i, "text": f"{i} of {i * 7} and {i * 13} {FOX[: 20 + i % 60]} {i * 31}"} for i in range(BIG)]
    return write_lines(tmp_path_factory.mktemp("big") / "big.jsonl", rows)


def test_a_full_disk(big: Path, tmp_path: Path, warm: None) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    outputs = "-o", tmp_path / "clean.jsonl", "--duplicates", tmp_path / "dups.csv"
    code, out, err = finished(process("dedup", big, *outputs, preexec_fn=limit))
    assert (code, out) == (2, "")
    assert says(err.splitlines()[-1], str(tmp_path), "disk is full", "free some space")
    assert "Traceback" not in err
    assert names_in(tmp_path) == set()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_stdout(corpus: Path, warm: None) -> None:
    with open("/dev/full", "w") as full:
        code, _, err = finished(process("pairs", corpus, "--print", *RULES, stdout=full))
    assert code == 2
    assert says(err.splitlines()[-1], "standard output", "No space left on device")
    assert "Traceback" not in err


def test_a_reader_that_leaves(corpus: Path, warm: None) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for arguments in (["pairs", corpus, "--print", *RULES], ["dedup", corpus, "-o", "-"], ["recipe", "list"]):
        code, _, err = finished(process(*arguments, stdout=writing))
        assert code == 1
        assert "Traceback" not in err
        assert "Broken" not in err
    os.close(writing)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=lambda n: str(n),
)
def test_interrupted_while_reading(number: int, code: int, tmp_path: Path) -> None:
    fifo, out = tmp_path / "slow.jsonl", tmp_path / "out"
    os.mkfifo(fifo)
    out.mkdir()
    started = process("dedup", fifo, "-o", out / "clean.jsonl", env=_temporary(tmp_path))
    with _once_it_reads(started, fifo) as file:
        file.write('{"id": 1, "text": "a"}\n')
        file.flush()
        _wait_until_read(started, file)
        started.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(timeout=1)
        if started.returncode is None:
            # Python notices a signal inside a read that waits; one that comes just before it, after that read.
            with contextlib.suppress(BrokenPipeError):
                os.write(file.fileno(), b'{"id": 2, "text": "b"}\n')
        ended = finished(started)
    assert ended == (code, "", "neardup: interrupted; nothing was written\n" if code == 130 else "")
    assert names_in(out) == set()
    assert number == signal.SIGKILL or names_in(tmp_path / "temporary") == set()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=lambda n: str(n),
)
def test_interrupted_while_writing(number: int, code: int, big: Path, tmp_path: Path, warm: None) -> None:
    outputs = "-o", tmp_path / "clean.jsonl.gz", "--duplicates", tmp_path / "dups.csv"
    started = process("dedup", big, *outputs, pausing=True, env=_temporary(tmp_path))
    _wait_for_partial(started, tmp_path, "clean")
    started.send_signal(number)
    ended, out, err = finished(started)
    assert (ended, out) == (code, "")
    assert err == ("neardup: interrupted; nothing was written\n" if code == 130 else "")
    left = names_in(tmp_path)
    if number == signal.SIGKILL:
        left = {name for name in left if ".partial-" not in name}
    assert left == {"temporary"}
    assert number == signal.SIGKILL or names_in(tmp_path / "temporary") == set()


def test_interrupted_as_an_output_begins(tmp_path: Path) -> None:
    # Between a file's beginning and the block that would remove it, there is a moment for a signal.
    program = "import sys; from neardup.documents.output import OutputFile; out = OutputFile('o.jsonl'); sys.exit(143)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=NEVER, check=False)
    assert ended.returncode == 143
    assert names_in(tmp_path) == set()


def _temporary(folder: Path) -> dict[str, str]:
    """Make a folder for temporary files, to see whether they are removed."""
    (folder / "temporary").mkdir()
    return {"TMPDIR": str(folder / "temporary")}


def _once_it_reads(started: subprocess.Popen[str], fifo: Path) -> TextIO:
    """Open a pipe for writing as soon as the process has opened it for reading."""
    end = time.monotonic() + NEVER
    while True:
        try:
            return open(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "w")
        except OSError:
            assert started.poll() is None, finished(started)
            assert time.monotonic() < end
        time.sleep(0.001)


def _wait_until_read(started: subprocess.Popen[str], file: TextIO) -> None:
    """Wait until nothing that was written to a pipe is left in it."""
    end = time.monotonic() + NEVER
    while struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, bytes(4)))[0]:
        assert started.poll() is None, finished(started)
        assert time.monotonic() < end
        time.sleep(0.001)


def _wait_for_partial(started: subprocess.Popen[str], folder: Path, name: str) -> None:
    end = time.monotonic() + NEVER
    while not list(folder.glob(f".{name}*")):
        assert started.poll() is None, "it ended before it was interrupted"
        if time.monotonic() > end:
            started.kill()
            pytest.fail(f"nothing was written: {finished(started)}")
        time.sleep(0.001)
