"""What a watcher's report is made of: where everything is, and what only the watcher itself knows."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

from neardup.errors import OutputError, RecipeError
from neardup.pages.report import Extent
from neardup.watch.judge import Counters, Log
from neardup.watch.settings import Settings

if TYPE_CHECKING:
    from neardup.stream.index import Index
    from neardup.stream.store import Store

#: Linux counts ru_maxrss in kibibytes, macOS in bytes.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
#: What the page of a report has near its top; only such a file is replaced unasked.
_OURS = b"- neardup</title>"
_HEAD = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The report that a watcher is to write.

    Attributes
    ----------
    output : str
        The page.
    every : float
        Seconds between two of them; infinite for one in the end alone.
    items : int
        So many of the latest items are reported. Raising it takes time and memory in proportion.
    extent : Extent
        How much of them is listed.
    command : str
        What was typed.
    decision, precision : str or None, float or None
        The file of the learned decision, and its working point.

    Raises
    ------
    RecipeError
        If a number is out of range.
    """

    output: str
    every: float = inf
    items: int = 100_000
    extent: Extent
    command: str = ""
    decision: str | None = None
    precision: float | None = None

    def __post_init__(self) -> None:
        if self.items < 1:
            raise RecipeError(f"--report-items {self.items} is below 1: give how many of the latest items to report")

    def check(self, settings: Settings, store: str, *, force: bool) -> None:
        """Refuse a page that cannot be written, or would be in the way of items, before anything is touched.

        Parameters
        ----------
        settings : Settings
            The folders of the watcher.
        store : str
            Its store.
        force : bool
            Whether a file that is no report may be replaced.

        Raises
        ------
        OutputError
            With the reason and the way out.
        """
        from neardup.documents.output import check_place
        from neardup.pages.page import check_drawing

        if not self.output.endswith(".html"):
            raise OutputError(f"{self.output} does not end in .html, but a report is a page: name it so")
        folders = [getattr(settings, name) for name in ("inbox", "originals", "duplicates", "quarantine", "done")]
        # A service starts again and again, and each time its own last report is there.
        check_place(self.output, [*folders, store], force or _is_ours(self.output))
        check_drawing(self.output)


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _OURS in file.read(_HEAD)
    except OSError:
        return False


class Tasks:
    """Gives the task of a report as of now.

    Parameters
    ----------
    wanted : Wanted
        The report.
    settings : Settings
        Of the watcher.
    index : Index
        What judges.
    store : Store
        Of the index.
    counters : Counters
        What was done so far.
    flow : dict of str to str
        ``window`` and ``against``, as they were given.
    """

    def __init__(
        self,
        wanted: Wanted,
        settings: Settings,
        index: Index,
        store: Store,
        counters: Counters,
        flow: dict[str, str],
    ) -> None:
        self._wanted, self._settings = wanted, settings
        self._index, self._store, self._counters = index, store, counters
        self._flow = flow

    def __call__(self) -> dict[str, Any]:
        """Return the task, ready for JSON; its ``state`` changes with what there is to report."""
        wanted, settings, counters = self._wanted, self._settings, self._counters
        statistics = self._index.statistics
        return {
            "store": str(self._store.path),
            "output": wanted.output,
            "recipe": self._index.recipe.to_toml(),
            "decision": wanted.decision,
            "precision": wanted.precision,
            "inbox": settings.inbox,
            "originals": settings.originals,
            "duplicates": settings.duplicates,
            "content": settings.content,
            "items": wanted.items,
            "extent": asdict(wanted.extent),
            "command": wanted.command,
            **self._flow,
            "quarantined": counters.reasons.most_common(),
            "stages": self._stages(),
            "facts": {
                "written": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
                "in the window": f"{statistics.held:,} documents, {statistics.bytes / 1e6:,.1f} MB without their texts",
                "this run": f"{counters.files:,} files, {counters.items:,} items, {counters.duplicates:,} duplicates",
                "set aside": "in this run; what earlier runs set aside lies where it was put",
                "store": str(self._store.path),
            },
            "state": [self._store.next_serial, counters.quarantined],
        }

    def _stages(self) -> list[dict[str, Any]]:
        counters = self._counters
        wall, cpu = time.monotonic() - counters.begun, time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT
        return [
            {
                "name": name,
                "wall_s": round(max(seconds, 0.0), 3),
                "cpu_s": round(max(used, 0.0), 3),
                "peak_memory_bytes": peak,
            }
            for name, seconds, used in (
                ("verdicts", counters.check_s, counters.check_cpu_s),
                ("reading, moving, waiting", wall - counters.check_s, cpu - counters.check_cpu_s),
            )
        ]


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
