"""What a watcher shows at a terminal: a panel that lives, and above it what should be read."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from neardup.watch.counters import Counters

if TYPE_CHECKING:
    from rich.console import RenderableType

    from neardup.watch.watcher import Watcher

#: Events that the panel shows by itself.
_IN_PANEL = frozenset({"duplicate", "progress", "started", "stopping", "stopped", "flagged", "report"})
_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


class Panel:
    """Shows a watcher at work on stderr.

    Parameters
    ----------
    watcher : Watcher
        What is shown.
    visible : callable
        Makes text harmless for a terminal.
    size_text : callable
        Bytes for people.
    """

    def __init__(self, watcher: Watcher, visible: Callable[[str], str], size_text: Callable[[int], str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._watcher = watcher
        self._visible = visible
        self._size_text = size_text
        self._begun = time.monotonic()
        self._live = Live(
            get_renderable=self._render,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def hear(self, event: str, fields: dict[str, Any]) -> None:
        """Show an event above the panel, if it is none that the panel shows."""
        from rich.text import Text

        if event not in _IN_PANEL:
            said = self._visible(sentence_of(event, fields))
            self._live.console.print(
                Text(f"{time.strftime('%H:%M:%S')}  {said}", "yellow" if event == "trouble" else "")
            )

    def _render(self) -> RenderableType:
        from rich.panel import Panel as Frame
        from rich.table import Table
        from rich.text import Text

        counters, statistics = self._watcher.counters, self._watcher.index.statistics
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column(overflow="fold")
        share = counters.duplicates / counters.items if counters.items else 0.0
        rate = f"{counters.rate:,.1f} a second, {self._watcher.inbox.waiting:,} files waiting"
        rows.add_row("items", f"{counters.items:,} in {span_text(time.monotonic() - self._begun)}; {rate}")
        rows.add_row("originals", f"{counters.originals:,}")
        rows.add_row("duplicates", f"{counters.duplicates:,} ({share:.1%}), {counters.exact:,} of them exact")
        if counters.quarantined:
            rows.add_row("set aside", f"{counters.quarantined:,} that cannot be read")
        hours = f"{statistics.hours:,} {'hour' if statistics.hours == 1 else 'hours'}"
        held = f"{statistics.held:,} documents, {hours}, {self._size_text(statistics.bytes)}"
        rows.add_row("window", held)
        rows.add_row("time", balance_text(counters))
        if self._watcher.reporter is not None:
            written = self._watcher.reporter.written
            ago = "none yet" if written is None else f"written {span_text(time.monotonic() - written)} ago"
            rows.add_row("report", ago)
        for place, verdict in enumerate(reversed(counters.last)):
            score = "" if verdict.similarity is None else f"{verdict.similarity:.4f} "
            line = Text(f"{verdict.kind:<5} {score}{self._visible(verdict.id)} = {self._visible(verdict.of or '')}")
            line.truncate(200, overflow="ellipsis")
            rows.add_row("" if place else "matches", line)
        return Frame(rows, title=Text(f"neardup watch {self._visible(self._watcher.settings.inbox)}"), expand=False)


def balance_text(counters: Counters) -> str:
    """Return the paper's balance: what duplicates would have cost behind the watcher, against what finding them did."""
    return f"saved {span_text(counters.saved_s)} of processing, spent {span_text(counters.check_s)} checking"


def span_text(seconds: float) -> str:
    """Return a time for people: 3 h 20 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    left = round(seconds)
    parts: list[str] = []
    for unit, size in _UNITS:
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts)


def sentence_of(event: str, fields: dict[str, Any]) -> str:
    """Return an event as a person reads it."""
    if event in ("quarantined", "noted"):
        reason, count = ("reason", "broken") if event == "quarantined" else ("note", "notes")
        more = f" and {fields[count] - 1:,} more" if fields[count] > 1 else ""
        where = "" if fields["where"] == "the file" else f", {fields['where']}"
        end = "; set aside" if event == "quarantined" else ""
        return f"{fields['file']}{where}: {fields[reason]}{more}{end}"
    if event == "repeated_id":
        return f"{fields['file']}: the id {fields['id']} was given before, so this item is {fields['judged_as']}"
    if event == "resumed":
        return f"an earlier run left {fields['items']:,} verdicts to carry out, on {fields['files']:,} files"
    about = f"{fields['file']}: " if "file" in fields else ""
    return f"{about}{fields.get('message', event)}"
