"""Starts many watchers quickly: everything is loaded once, and each line on stdin becomes a process of its own.

A line holds the arguments as JSON; the answer is the id of the process. An empty line waits for the last one and gives
its exit code. Small batches make many moments between a verdict and its file's move.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from neardup.cli.app import app
from neardup.flow.document import Document
from neardup.flow.index import Index
from neardup.watch import gathering


def answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


gathering._ITEMS = gathering._FILES = 7
with Index("ddd") as idle:
    idle.add_many(Document(str(number), f"words to warm up with {number}", 0.0) for number in range(3))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
last = 0
for line in sys.stdin:
    if not line.strip():
        answer(os.waitstatus_to_exitcode(os.waitpid(last, 0)[1]))
        continue
    last = os.fork()
    if not last:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(f"{json.loads(line)[1]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        app(json.loads(line), prog_name="neardup")
        os._exit(70)
    answer(last)
