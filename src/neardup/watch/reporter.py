"""Reports while the watcher runs: made by a process of its own, so that no item waits for a page."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from neardup.watch.log import Log

#: What a report is made of, as JSON takes it.
Task = Callable[[], Mapping[str, Any]]

#: Seconds after which a process that makes a report is ended.
LONGEST = 60.0
#: Of the time, at most this part goes into making reports, however often they are asked for.
_SHARE = 0.1
_ABOUT = "report"


class Reporter:
    """Has a report made from time to time, and once more in the end.

    The process reads the store as anybody may and writes the page beside its place. It never holds a lock that the
    watcher waits for; if it fails, that is told as a trouble, and the watcher goes on.

    Parameters
    ----------
    command : sequence of str
        Starts the process. It is given what a report is made of as JSON on stdin, prints what it came to as JSON on
        stdout, and in case of failure a sentence on stderr.
    task : callable
        Returns what a report is made of, as of now.
    every : float
        Seconds between two reports; infinite for one in the end alone.
    log : Log
        Told of each report, and of failures.
    clock : callable
        Seconds that never jump.

    Attributes
    ----------
    written : float or None
        By the clock, when the last report was written.
    """

    def __init__(
        self,
        command: Sequence[str],
        task: Task,
        *,
        every: float,
        log: Log,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.written: float | None = None
        self._command, self._task = list(command), task
        self._every, self._log, self._clock = every, log, clock
        self._due = clock() + every
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._made_of: Mapping[str, Any] = {}
        self._last: object = None

    def tick(self) -> None:
        """Take what a process came to, and start one if it is time to and something has happened; never wait."""
        if self._process is not None:
            self._reap()
        elif self._clock() >= self._due:
            self._due = self._clock() + self._every
            made_of = self._task()
            if made_of["state"] != self._last:
                self._start(made_of)

    @property
    def pause(self) -> float:
        """Seconds until `tick` has something to do."""
        if self._process is not None:
            return 0.5
        return max(self._due - self._clock(), 0.0)

    def finish(self) -> None:
        """Make the last report, and wait for it; an interruption ends it."""
        # What is being made is out of date by now.
        self.close()
        try:
            made_of = self._task()
            if made_of["state"] != self._last:
                self._start(made_of)
                self._wait()
        finally:
            self.close()

    def close(self) -> None:
        """End a process that is still at work: what it has not finished is not there."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self, made_of: Mapping[str, Any]) -> None:
        self._began, self._made_of = self._clock(), made_of
        pipe = subprocess.PIPE
        try:
            # A group of its own: Ctrl-C is for the watcher, which then has its last report made.
            self._process = subprocess.Popen(  # noqa: S603  our own module
                self._command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0
            )
        except OSError as error:
            self._failed(f"no process can be started ({error.strerror})")
            return
        # One that ended at once has said why on stderr.
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(made_of).encode())
                self._process.stdin.close()
        self._process.stdin = None

    def _wait(self) -> None:
        while self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=0.2)
            self._reap()

    def _reap(self) -> None:
        process = self._process
        if process is None:
            return
        took = self._clock() - self._began
        if process.poll() is None:
            if took > LONGEST:
                self.close()
                self._failed(f"it was not ready after {LONGEST:g} s; make it smaller with --report-items", took)
            return
        out, err = process.communicate()
        self._process = None
        if process.returncode:
            lines = err.decode("utf-8", "replace").split("\n")
            said = next((line for line in reversed(lines) if line.strip()), f"exit code {process.returncode}")
            self._failed(said.strip().removeprefix("neardup: "), took)
            return
        self.written, self._last = self._clock(), self._made_of["state"]
        self._put_off(took)
        self._log.well(_ABOUT, "reports are written again")
        found = {}
        with suppress(ValueError):
            found = json.loads(out)
        self._log.say("report", **found, seconds=round(took, 1))

    def _failed(self, why: str, took: float = 0.0) -> None:
        self._put_off(took)
        self._log.trouble(_ABOUT, f"no report: {why}; the watcher goes on")

    def _put_off(self, took: float) -> None:
        self._due = max(self._due, self._clock() + took / _SHARE)
