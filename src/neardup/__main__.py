"""Entry point of the command ``neardup`` and of ``python -m neardup``."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from types import FrameType

from neardup import leave_at_once
from neardup.errors import Interrupted


def main() -> None:
    """Run the command line."""
    # SIGTERM and SIGHUP unwind the stack like Ctrl-C, so that no temporary file stays behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A process that was started with nohup ignores SIGHUP.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A document may have characters that the encoding of the terminal lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Imports and reading leave few cyclic references: collecting them as often as usual takes a tenth of the start.
    gc.set_threshold(50_000)
    try:
        from neardup.cli.app import app

        if signal.getsignal(signal.SIGINT) == leave_at_once:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        app(prog_name="neardup")
    except KeyboardInterrupt as interrupt:
        from neardup.cli.screen import print_interrupt

        sys.exit(print_interrupt(interrupt))
    finally:
        # What was written is decided: a signal would only spoil the exit code.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _replace_closed_streams() -> None:
    """Open the standard streams that the caller has closed.

    Messages are then discarded. Writing to stdout fails, because what it should hold would be lost.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


if __name__ == "__main__":
    main()
