"""Start many watchers quickly: all modules are loaded once, and each line on stdin starts a forked process.

A line holds, as JSON, the arguments, after how many steps the process is killed (0: never), and how many seconds after
that step; the answer is its exit code. A step is a call that changes something on the disk. Who ends unkilled writes
how many there were beside its inbox. Small batches make many steps between a verdict and its file's move.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from neardup.cli.app import app
from neardup.stream.document import Document
from neardup.stream.index import Index
from neardup.stream.store import Store
from neardup.watch import batches, outputs

STEPS: list[tuple[Any, str]] = [
    *((os, name) for name in ("rename", "replace", "link", "unlink", "makedirs", "fsync")),
    (outputs, "rename_new"),
    (builtins, "open"),
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
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(f"{arguments[1]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
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


batches._BATCH_ITEMS = batches._BATCH_FILES = 7
with Index("ddd") as idle:
    idle.add_many(Document(str(number), f"words to warm up with {number}", 0.0) for number in range(3))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
for line in sys.stdin:
    child = os.fork()
    if not child:
        run(*json.loads(line))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.write(f"{code}\n")
    sys.stdout.flush()
