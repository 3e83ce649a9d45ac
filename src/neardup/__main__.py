"""Entry point of the command ``neardup`` and of ``python -m neardup``."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import pairwise
from types import FrameType, ModuleType

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
    sys.meta_path.insert(0, _HiddenPackages())
    try:
        from neardup.cli.app import app

        # The allocator of Arrow reads it when it is loaded.
        os.environ.setdefault("MIMALLOC_PURGE_DELAY", _purge_delay(sys.argv))
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


#: With a memory limit of this size or more, freed memory may stay with the process for a while.
_LARGE_LIMIT = 2_000_000_000


def _purge_delay(arguments: Sequence[str]) -> str:
    """Return after how many milliseconds Arrow returns freed memory to the system.

    With a small memory limit that is at once. Otherwise the memory of one batch serves the next one, for 0.1 s or,
    without a limit, for 1 s: a new page costs more than filling it.
    """
    import typer

    from neardup.cli.screen import parse_size

    limits = [word.partition("=")[2] for word in arguments if word.startswith("--memory=")]
    limits += [value for option, value in pairwise(arguments) if option == "--memory"]
    try:
        sizes = [parse_size(limit) for limit in limits]
    except typer.BadParameter:
        return "0"
    return "1000" if not sizes else "100" if min(sizes) >= _LARGE_LIMIT else "0"


class _HiddenPackages(MetaPathFinder):
    """Hides pandas, SciPy and PyYAML from Arrow and Numba, which import them without need, for up to 0.1 s each."""

    def __init__(self) -> None:
        self._hidden: tuple[str, ...] = ("pandas", "scipy", "yaml")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse the hidden packages until one is imported that needs them; leave all others to the next finder."""
        if fullname in ("sklearn", "pyspark", "huggingface_hub"):
            self._hidden = ()
        if fullname in self._hidden:
            raise ModuleNotFoundError("not needed here", name=fullname)
        return None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


if __name__ == "__main__":
    main()
