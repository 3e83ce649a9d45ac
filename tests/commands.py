"""Runs of the command: in this process, and as a process of its own."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

from click.testing import CliRunner, Result

from neardup.cli.app import app

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
ROSE = "A rose by any other name would smell as sweet, said the poet to his friend in the garden at dawn"
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "fox", "text": FOX, "date": "2024-01-01", "score": 1},
    {"id": "rose", "text": ROSE, "date": "2024-01-02", "score": 2},
    {"id": "fox-again", "text": FOX.upper() + "!", "date": "2024-01-03", "score": 3},
    {"id": "fox-edited", "text": FOX + " today", "date": "2024-01-04", "score": 0},
    {"id": "empty", "text": "", "date": None, "score": None},
]
#: Seconds after which a wait has failed: no machine is that slow.
NEVER = 300
RULES = ("--features", "words:3", "--threshold", "0.8")


def neardup(*arguments: str | Path, code: int = 0, stdin: str | bytes | None = None, color: bool = False) -> Result:
    """Run the command in this process."""
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, words, input=stdin, prog_name="neardup", color=color)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments: str | Path, code: int = 2) -> str:
    """Return the line that a refused command prints to stderr; it prints nothing to stdout."""
    result = neardup(*arguments, code=code)
    assert result.stdout == ""
    # The first run of all announces that it compiles kernels, even if it is refused later.
    message = re.sub(r"^neardup: compiling kernels.*\n", "", result.stderr)
    assert message.startswith("neardup: ")
    assert message.count("\n") == 1, message
    return message.removeprefix("neardup: ").rstrip("\n")


def start_process(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command as a process of its own; with ``pausing`` it waits at its first write to the output."""
    paused = str(Path(__file__).with_name("paused_command.py"))
    program = [paused] if options.pop("pausing", False) else ["-m", "neardup"]
    command = [sys.executable, *program, *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    environment = os.environ | {"PYTHONUTF8": "1", "COLUMNS": "100"} | pipes.pop("env", {})
    if threading.current_thread() is threading.main_thread():
        # A runner in the background ignores it, and a library that another test has loaded may have put that back.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    return subprocess.Popen(command, text=True, env=environment, **pipes)


def forked(run: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Run a function in a process forked from one that has loaded commands: a tenth of the time of an interpreter."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["warm_commands"])
    process = context.Process(target=run, args=arguments)
    # The first start begins the process that is forked, which finds modules through its environment only.
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        process.start()
    return process


def wait_for_end(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a process to end; return its exit code, stdout and stderr."""
    try:
        out, err = started.communicate(timeout=NEVER)
    except subprocess.TimeoutExpired:
        started.kill()
        started.communicate()
        raise
    return started.returncode, out or "", err or ""


def in_terminal(*arguments: str | Path, stream: str) -> str:
    """Run the command with one stream on a terminal; return what the terminal shows."""
    ours, theirs = pty.openpty()
    started = start_process(*arguments, env={"TERM": "xterm", "NO_COLOR": ""}, **{stream: theirs})
    os.close(theirs)
    output = b""
    # Reading at the end of a terminal raises an error on Linux only.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 4096):
            output += piece
    os.close(ours)
    code, _, err = wait_for_end(started)
    assert code == 0, err
    return output.decode()


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def names_in(folder: Path) -> set[str]:
    """Return the names of the files in a folder, hidden ones too."""
    return {entry.name for entry in folder.iterdir()}
