"""Entry point of the command ``neardup`` and of ``python -m neardup``."""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line."""
    # A polite kill unwinds the stack like Ctrl-C, so that no temporary file stays behind.
    signal.signal(signal.SIGTERM, _terminated)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A document may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from neardup.cli.app import app

        app(prog_name="neardup")
    except KeyboardInterrupt:
        sys.stderr.write("neardup: interrupted; nothing was written\n")
        sys.exit(130)


def _terminated(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
