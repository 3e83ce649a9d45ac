"""A watcher in a forked process, which is killed at a step: a call that changes something on the disk."""

from __future__ import annotations

import builtins
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from neardup.cli.app import app
from neardup.stream.store import Store
from neardup.watch import judging, outputs
from neardup.watch.placement import Placer

STEPS: list[tuple[Any, str]] = [
    *((os, name) for name in ("rename", "replace", "link", "unlink", "makedirs", "fsync")),
    *((outputs, "rename_new"), (builtins, "open"), (Placer, "_move")),
    *((Store, name) for name in ("record", "mark_placed", "set_state")),
]
steps = 0


def counted(function: Any, last: int, after: float) -> Any:
    def call(*values: Any, **options: Any) -> Any:
        global steps
        steps += 1
        if steps == last:
            if after:
                # The system then ends the process at any point, as SIGKILL does.
                signal.setitimer(signal.ITIMER_REAL, after)
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return function(*values, **options)

    return call


def run(arguments: list[str], last: int, after: float) -> NoReturn:
    """Run the command, and kill it some seconds after its last step; step 0 never comes.

    A run to the end writes its number of steps beside its inbox.
    """
    log = os.open(f"{arguments[1]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 - as long as the process
    # Small batches make many steps between a verdict and its file's move.
    judging._BATCH_ITEMS = judging._BATCH_FILES = 7
    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name), last, after))
    code: Any = 70
    try:
        app(arguments, prog_name="neardup")
    except SystemExit as ended:
        code = ended.code
    signal.setitimer(signal.ITIMER_REAL, 0)
    Path(f"{arguments[1]}.steps").write_text(str(steps))
    os._exit(code or 0)
