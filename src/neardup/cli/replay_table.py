"""What a replay prints: the hours as they end, and the totals."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

from neardup.cli.screen import count_text, size_text, visible

if TYPE_CHECKING:
    from neardup.documents import Corpus
    from neardup.replay.order import Timeline
    from neardup.replay.run import Hour, Totals

_HEAD = "hour (UTC)         items originals duplicates      held      MB  CPU µs     p99"


class Shown:
    """Prints hours as they end, and remembers them for the page.

    Parameters
    ----------
    stdout : file
        The real one: a progress bar on a terminal takes what is printed to itself, wherever stdout leads.
    as_json : bool
        Whether lines are JSON.
    """

    def __init__(self, stdout: Any, *, as_json: bool) -> None:
        self.hours: list[Hour] = []
        self._stdout, self._as_json = stdout, as_json

    def hour(self, hour: Hour) -> None:
        """Print an hour, and before it how long nothing came."""
        if not self.hours and not self._as_json:
            self._line(_HEAD)
        quiet = hour.hour - self.hours[-1].hour - 1 if self.hours else 0
        if quiet > 0:
            self._quiet(self.hours[-1].hour + 1, quiet)
        self.hours.append(hour)
        if self._as_json:
            self._line(json.dumps(hour.as_dict()))
            return
        begins = hour.begins.replace("T", " ").rstrip("Z")
        counts = f"{hour.items:>7,} {hour.originals:>9,} {hour.duplicates:>10,} {hour.held:>9,}"
        self._line(f"{begins:<16} {counts} {hour.bytes / 1e6:>7,.1f} {hour.median:>7,.0f} {hour.p99:>7,.0f}")

    def totals(self, totals: Totals, downstream: float) -> None:
        """Print the totals, where lines are JSON."""
        if self._as_json:
            self._line(json.dumps({"totals": totals.as_dict(downstream)}))

    def _quiet(self, first: int, hours: int) -> None:
        from neardup.replay.run import hour_text

        if self._as_json:
            self._line(json.dumps({"hour": hour_text(first), "quiet_hours": hours}))
        else:
            self._line(f"{'':<16} {'-':>7}  {count_text(hours, 'hour')} without items")

    def _line(self, line: str) -> None:
        out = sys.stdout if self._stdout.isatty() else self._stdout
        out.write(line + "\n")
        out.flush()


_FLAGS = {
    "late": "older than the window",
    "ahead": "after a gap longer than the window",
    "undecidable": "without features: originals, for nothing can match",
    "future": "later than now",
}


def show_totals(
    totals: Totals, timeline: Timeline, corpus: Corpus, downstream: float, places: dict[str, str | None]
) -> None:
    """Print the totals for people to stderr."""
    column = corpus.order_column
    rows = {
        "exact copies": f"{totals.exact:,}, texts that are equal byte for byte" if totals.exact else "",
        "set aside": f"{count_text(len(timeline.undated), 'document')} without a readable time in column {column!r}"
        if len(timeline.undated)
        else "",
        "flags": ", ".join(
            f"{count:,} {flag} ({_FLAGS.get(flag, flag)})" for flag, count in sorted(totals.flags.items())
        ),
        "window": f"at most {count_text(totals.most_held, 'document')}, {size_text(totals.most_bytes)}",
        "time an item": f"{_microseconds(totals.cpu, totals)} of processor time, {_microseconds(totals.wall, totals)} "
        "on the wall, on average",
        "balance": _balance(totals, downstream),
    }
    rows |= {name: place for name, place in places.items() if place}
    share = f" ({totals.share:.1%})" if totals.items else ""
    head = (
        f"{count_text(totals.items, 'item')}: {totals.items - totals.duplicates:,} originals, "
        f"{count_text(totals.duplicates, 'duplicate')}{share}"
    )
    typer.echo(typer.style(head, bold=True), err=True)
    for name, value in rows.items():
        if value:
            typer.echo(f"  {typer.style(f'{name:<12}', dim=True)}  {visible(value, lines=False)}", err=True)


def _microseconds(nanoseconds: int, totals: Totals) -> str:
    return f"{nanoseconds / 1e3 / max(totals.items, 1):,.0f} µs"


def _balance(totals: Totals, downstream: float) -> str:
    """Return the paper's: what duplicates would have cost behind the check, against what the check costs."""
    if not totals.items:
        return ""
    saved = totals.share * downstream
    return (
        f"P t_p = {totals.share:.1%} of {downstream:g} s = {saved:.3g} s saved an item, "
        f"{totals.balance(downstream):,.0f} times t_check = {totals.check:.3g} s"
    )
