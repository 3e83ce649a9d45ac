"""Calling the command as ``python -m neardup`` does, but in this process: a hundred starts would take minutes."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Call:
    """How a call ended and what it printed."""

    code: int
    out: bytes
    err: str


def call(*arguments: str | Path, stdin: bytes = b"", folder: Path | None = None) -> Call:
    """Run ``python -m neardup`` with these arguments in a folder; its standard streams are files."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        code = 0
        with _as_a_process([str(argument) for argument in arguments], given, out, err), _inside(folder):
            try:
                runpy.run_module("neardup", run_name="__main__")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            sys.stdout.flush()
            sys.stderr.flush()
        out.seek(0)
        err.seek(0)
        return Call(code, out.read(), err.read().decode())


@contextlib.contextmanager
def _as_a_process(arguments: list[str], given: io.IOBase, out: io.IOBase, err: io.IOBase) -> Iterator[None]:
    """Put arguments and streams where a process has them; put back all that a command may change in its process."""
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    finders, paths = list(sys.meta_path), list(sys.path)
    # Another test may have imported it; a process begins without.
    entry = sys.modules.pop("neardup.__main__", None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    sys.argv = ["neardup", *arguments]
    streams = [io.TextIOWrapper(stream, encoding="utf-8") for stream in (given, out, err)]  # type: ignore[type-var]
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        sys.meta_path[:], sys.path[:] = finders, paths
        if entry is not None:
            sys.modules["neardup.__main__"] = entry
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for stream in streams:
            stream.detach()


@contextlib.contextmanager
def _inside(folder: Path | None) -> Iterator[None]:
    with contextlib.chdir(folder) if folder is not None else contextlib.nullcontext(os.getcwd()):
        yield
