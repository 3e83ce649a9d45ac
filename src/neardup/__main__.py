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


def main() -> None:
    """Run the command line."""
    # A polite kill unwinds the stack like Ctrl-C, so that no temporary file stays behind.
    signal.signal(signal.SIGTERM, _terminated)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A document may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Little of what is imported or read is garbage in circles: to look for it takes a tenth of a start.
    gc.set_threshold(50_000)
    sys.meta_path.insert(0, _WithoutThese())
    try:
        from neardup.cli.app import app

        # Arrow's allocator looks for it when it is loaded.
        os.environ.setdefault("MIMALLOC_PURGE_DELAY", _purge_delay(sys.argv))
        app(prog_name="neardup")
    except KeyboardInterrupt:
        sys.stderr.write("neardup: interrupted; nothing was written\n")
        sys.exit(130)


#: From this budget on, memory that is free may stay with the process for a while: what is read in that time.
_LARGE_BUDGET = 2_000_000_000


def _purge_delay(arguments: Sequence[str]) -> str:
    """Return after how many milliseconds what Arrow does not use any more goes back to the system.

    With a small budget that is at once. Else what one batch took is there for the next one, for a tenth of a second or,
    without a budget, for a whole one: a fresh page costs more than it takes to fill it.
    """
    import typer

    from neardup.cli.screen import parse_size

    joined = [given.partition("=")[2] for given in arguments if given.startswith("--memory=")]
    budgets = joined + [budget for option, budget in pairwise(arguments) if option == "--memory"]
    try:
        sizes = [parse_size(budget) for budget in budgets]
    except typer.BadParameter:
        return "0"
    return "1000" if not sizes else "100" if min(sizes) >= _LARGE_BUDGET else "0"


class _WithoutThese(MetaPathFinder):
    """Hides pandas, SciPy and PyYAML: Arrow and Numba would import them, for up to 0.1 s each; few need them."""

    def __init__(self) -> None:
        self._hidden: tuple[str, ...] = ("pandas", "scipy", "yaml")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse these until a package is asked for that needs them; leave all else to the others."""
        if fullname in ("sklearn", "pyspark", "huggingface_hub"):
            self._hidden = ()
        if fullname in self._hidden:
            raise ModuleNotFoundError("not needed here", name=fullname)
        return None


def _terminated(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
