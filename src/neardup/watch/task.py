"""What a watcher's report is made of: where everything is, and what only the watcher itself knows."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

from neardup.errors import OutputError, RecipeError
from neardup.reporting.extent import Extent
from neardup.watch.counters import Counters
from neardup.watch.settings import Settings

if TYPE_CHECKING:
    from neardup.flow.index import Index
    from neardup.flow.store import Store

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
        from neardup.pages.frame import check_drawing

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
