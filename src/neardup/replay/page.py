"""The page of a replay: what was stopped and why, and the curves of the source's figures 7 to 9."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from neardup.documents.output import OutputFile
from neardup.pages.frame import check_drawing
from neardup.pages.parts import Chart, Html, facts, figures, section, table
from neardup.replay import curves
from neardup.replay.run import Hour
from neardup.replay.sizes import Measured
from neardup.reporting.model import Report, Section
from neardup.reporting.page import report_page

Rows = Sequence[Mapping[str, Any]]

#: So many hours are drawn and listed.
_DRAWN = 600
#: What is told of an hour.
_COLUMNS = {
    "items": "items",
    "originals": "originals",
    "duplicates": "duplicates",
    "held": "held",
    "bytes": "window MB",
    "cpu_us_median": "median µs",
    "cpu_us_p99": "p99 µs",
}


def page_content(
    settings: Mapping[str, Any], hours: Sequence[Hour], totals: Mapping[str, Any], found: Measured
) -> dict[str, Any]:
    """Return what the page shows, as JSON takes it."""
    return {
        "settings": dict(settings),
        "hours": [hour.as_dict() for hour in hours],
        "totals": dict(totals),
        "sizes": [run._asdict() for run in found.sizes],
        "lengths": [length._asdict() for length in found.lengths],
    }


def replay_page(content: Mapping[str, Any], report: Report) -> str:
    """Return the page of a replay.

    Parameters
    ----------
    content : mapping
        What `page_content` gives. Its ``settings`` are those of ``Settings.as_dict``, the ``inputs``, and the ``batch``
        that is judged at once.
    report : Report
        What arrived, what was stopped, and why.

    Raises
    ------
    OutputError
        If the packages that draw are not installed.
    """
    check_drawing("a page")
    hours = content["hours"]
    full = content["settings"]["hours_full"]
    begins_full = None if full is None or not hours else _later(hours[0]["hour"], full)
    if begins_full is not None and begins_full > hours[-1]["hour"]:
        begins_full = None
    # A year of hours would make a page that no browser opens in a moment.
    step = -(-len(hours) // _DRAWN)
    hours, some = hours[::-1][::step][::-1] if step > 1 else hours, _some(step)
    flowing = _flowing(hours, begins_full, some) if hours else []
    costs = [*_measured(content["sizes"], content["lengths"]), *flowing]
    check = section("check", "What the check costs, and saves", Html(f"<p>{_verdict(content['totals'])}</p>"))
    sections = [
        Section(check),
        Section(section("curves", "Time and memory of the check", figures(costs), _explained(content)), costs)
        if costs
        else Section(Html("")),
        Section(section("hours", "Hour by hour", _hours_table(hours), intro=some.strip("; ").capitalize())),
    ]
    return report_page(
        replace(
            report,
            facts={"replayed": _basis(content)} | dict(report.facts),
            sections=[one for one in sections if one.content],
        )
    )


def write_page(name: str, content: Mapping[str, Any], report: Report) -> None:
    """Write the page of a replay: it is there as a whole or not at all."""
    data = replay_page(content, report).encode()
    with OutputFile(name) as file:
        file.write(data + b"\n")


def _measured(sizes: Rows, lengths: Rows) -> Iterator[Chart]:
    """Yield the charts of the runs by size and length, where there were any."""
    marked = "points: mean; triangles: p99; diamond: what the paper's text gives"
    if sizes:
        yield Chart(
            "size",
            "Time by size of the corpus (figure 7)",
            f"separate runs, each from an empty index that keeps everything; {marked}",
            f"Lines of the time an item, in microseconds, by the number of documents, for {len(sizes)} runs; both axes "
            f"are logarithmic. At {sizes[-1]['documents']:,} documents the mean is {sizes[-1]['mean']:,.0f} µs.",
            curves.by_size(sizes),
            _sizes_table(sizes),
        )
    if lengths:
        rows = [
            [row["low"], row["high"], row["documents"], *(f"{row[name]:,.0f}" for name in ("mean", "p99"))]
            for row in lengths
        ]
        yield Chart(
            "length",
            "Time by length of the text (figure 9)",
            f"the documents of the largest of those runs; {marked}",
            f"Points of the time an item, in microseconds, by the length of its text in bytes, for {len(lengths)} "
            "ranges of lengths; both axes are logarithmic.",
            curves.by_length(lengths),
            table(["from bytes", "to below", "documents", "mean µs", "p99 µs"], rows, left=0, tall=True),
        )


def _some(step: int) -> str:
    """Return what is said of hours that are left out."""
    ordinal = {2: "second", 3: "third"}.get(step, f"{step}th")
    return f"; every {ordinal} hour that had items, --json has all" if step > 1 else ""


def _flowing(hours: Rows, full: str | None, some: str) -> Iterator[Chart]:
    """Yield the charts of time and memory by hour."""
    count = f"for {len(hours)} hours"
    behind = ("cpu_us_median", "cpu_us_p99"), ("held", "cpu_us_median"), ("held", "bytes")
    times, held, memory = (_hours_table(hours, names) for names in behind)
    yield Chart(
        "hour",
        "Time by hour (figure 8)",
        f"point: median; line: up to p99{some}",
        f"Points of the median time an item, in microseconds on a logarithmic axis, {count}.",
        curves.by_hour(hours),
        times,
    )
    yield Chart(
        "held",
        "Time by size of the window (figure 8)",
        f"a point for each hour: its median{some}",
        f"Points of the median time an item, in microseconds, by the number of documents in the window, {count}.",
        curves.by_held(hours),
        held,
    )
    yield Chart(
        "memory",
        "Memory of the window by hour",
        ("dashed: the window is full; from then on " if full else "")
        + f"it follows what arrives, not the corpus{some}",
        f"A line of the window's memory in MB, {count}; at the end {hours[-1]['bytes'] / 1e6:,.1f} MB.",
        curves.memory(hours, full),
        memory,
    )


def _later(hour: str, hours: float) -> str:
    try:
        moment = datetime.fromisoformat(hour) + timedelta(hours=hours)
    except OverflowError:
        return hour
    return moment.isoformat(timespec="minutes").replace("+00:00", "Z")


def _basis(content: Mapping[str, Any]) -> str:
    settings = content["settings"]
    against = "originals only" if settings["against"] == "originals" else "everything in the window"
    store = ", each verdict on disk before the next" if settings["store"] and settings["batch"] == 1 else ""
    store = store or (", verdicts on disk" if settings["store"] else "")
    return (
        f"{', '.join(settings['inputs'])}; recipe {settings['recipe']} ({settings['fingerprint']}); window "
        f"{settings['window']} by {settings['window_by']}, compared with {against}{store}."
    )


def _verdict(totals: Mapping[str, Any]) -> str:
    if not totals["items"]:
        return "No document arrived."
    kept = (
        f"<strong>{totals['items']:,} items, {totals['duplicates']:,} duplicates ({totals['share']:.1%})</strong>, "
        f"{totals['exact']:,} of them byte for byte; from {totals['first']} to {totals['last']}."
    )
    spent, saved = totals["wall_us_mean"] / 1e6, totals["share"] * totals["downstream_s"]
    return (
        f"{kept} A check takes {_seconds(spent)} an item, and saves {totals['share']:.1%} of "
        f"{totals['downstream_s']:g} s downstream, {_seconds(saved)} an item: P &middot; t_p is "
        f"{totals['saved_by_spent']:,.0f} times t_check (the "
        "paper: 10 % of 10 s, against less than 5 ms)."
    )


def _seconds(value: float) -> str:
    return f"{value * 1e6:,.0f} µs" if value < 1e-3 else f"{value * 1e3:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def _sizes_table(sizes: Rows) -> Html:
    rows = [[f"{run[name]:,.0f}" for name in ("documents", "mean", "median", "p99")] for run in sizes]
    return table(["documents", "mean µs", "median µs", "p99 µs"], rows, left=0)


def _hours_table(hours: Rows, names: Sequence[str] = tuple(_COLUMNS)) -> Html:
    head = ["hour (UTC)", *(_COLUMNS[name] for name in names)]
    return table(head, [[hour["hour"], *(_cell(hour, name) for name in names)] for hour in hours], tall=True)


def _cell(hour: Mapping[str, Any], name: str) -> str:
    return f"{hour[name] / 1e6:,.1f}" if name == "bytes" else f"{hour[name]:,.0f}"


def _explained(content: Mapping[str, Any]) -> Html:
    batch = content["settings"]["batch"]
    each = (
        "each item was judged and timed by itself"
        if batch == 1
        else f"at most {batch:,} items of one hour were judged at once, and each counts as their mean"
    )
    meanings = {
        "time an item": f"Processor time of the thread that judges, in microseconds: features, search and entry into "
        f"the window; not reading. By hour {each}; in the runs by size and length always by itself. The time of the "
        "check in the balance is that on the wall, so writing to a disk counts there.",
        "figure 7": "The first documents of the flow into an empty index that has no time limit, and each "
        "compared with everything before it. The paper gives 1.2 s at 8,000 documents (an Opteron 8356).",
        "figure 9": "Texts from 2^(n/2) to 2^((n+1)/2) bytes are one point where there are five or more. The paper "
        "gives less than 0.2 s for its average text of 5 KB, among 732 documents.",
        "held": "Documents in the window when the hour ends.",
        "window MB": "Memory of the window, the texts left out.",
        "hours": "Hours without items have no row.",
    }
    return facts(meanings)
