"""The page of a replay: what the flow came to, and the curves of the source's figures 7 to 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from neardup import __version__
from neardup.documents.output import OutputFile
from neardup.pages.frame import check_drawing, escaped, page
from neardup.replay import curves
from neardup.replay.run import Hour
from neardup.replay.sizes import Measured


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
        "version": __version__,
    }


def replay_page(content: Mapping[str, Any]) -> str:
    """Return the page of a replay.

    Parameters
    ----------
    content : mapping
        What `page_content` gives. Its ``settings`` are those of ``Settings.as_dict``, the ``inputs``, and the ``batch``
        that is judged at once.

    Raises
    ------
    OutputError
        If the packages that draw are not installed.
    """
    check_drawing("a page")
    hours = [dict(hour) | {"hour_ends": _later(hour["hour"], 1)} for hour in content["hours"]]
    full = content["settings"]["hours_full"]
    begins_full = None if full is None or not hours else _later(hours[0]["hour"], full)
    if begins_full is not None and begins_full > hours[-1]["hour"]:
        begins_full = None
    charts: dict[str, Any] = {}
    captions: dict[str, tuple[str, str]] = {}
    for key, (rows, draw, title, note) in _charts(content, hours, begins_full).items():
        if rows:
            charts[key] = draw()
            captions[key] = title, note
    figures = "".join(
        f'<figure><figcaption>{title}<small>{note}</small></figcaption><div class="chart" id="{key}"></div></figure>'
        for key, (title, note) in captions.items()
    )
    body = [
        "<h1>A corpus replayed</h1>",
        f'<p class="dim">{_basis(content)}</p>',
        f"<p>{_verdict(content['totals'])}</p>",
        f'<section><h2>Curves</h2><div class="charts">{figures}</div></section>',
        "<h2>Time an item by the size of the corpus</h2>",
        _sizes_table(content["sizes"]),
        "<h2>Every hour</h2>",
        _hours_table(hours),
        "<h2>How to read this</h2>",
        _notes(content),
        f'<p class="dim">neardup {escaped(content["version"])}</p>',
    ]
    return page("A corpus replayed - neardup", "\n".join(body), charts)


def write_page(name: str, content: Mapping[str, Any]) -> None:
    """Write the page of a replay: it is there as a whole or not at all."""
    with OutputFile(name) as file:
        file.write(replay_page(content).encode() + b"\n")


def _charts(content: Mapping[str, Any], hours: Sequence[Mapping[str, Any]], full: str | None) -> dict[str, Any]:
    """Return for each chart its rows, how it is drawn, its title and a note."""
    marked = "points: mean; triangles: p99; diamond: what the paper's text gives"
    own = "separate runs, each from an empty index that keeps everything"
    sizes, lengths = content["sizes"], content["lengths"]
    return {
        "size": (sizes, lambda: curves.by_size(sizes), "Time by size of the corpus (figure 7)", f"{own}; {marked}"),
        "length": (
            lengths,
            lambda: curves.by_length(lengths),
            "Time by length of the text (figure 9)",
            f"the documents of the largest of those runs; {marked}",
        ),
        "hour": (hours, lambda: curves.by_hour(hours), "Time by hour (figure 8)", "point: median; line: up to p99"),
        "held": (
            hours,
            lambda: curves.by_held(hours),
            "Time by size of the window (figure 8)",
            "a point for each hour: its median",
        ),
        "items": (hours, lambda: curves.arrived(hours), "Originals and duplicates by hour", "of all that arrived"),
        "memory": (
            hours,
            lambda: curves.memory(hours, full),
            "Memory of the window by hour",
            ("dashed: the window is full; " if full else "") + "from then on it follows what arrives, not the corpus",
        ),
    }


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
        f"{escaped(', '.join(settings['inputs']))}; recipe {escaped(settings['recipe'])} "
        f"({escaped(settings['fingerprint'])}); window {escaped(settings['window'])} by "
        f"{escaped(settings['window_by'])}, compared with {against}{store}."
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


def _sizes_table(sizes: Sequence[Mapping[str, Any]]) -> str:
    head = ["documents", "mean µs", "median µs", "p99 µs"]
    rows = [[f"{run[name]:,.0f}" for name in ("documents", "mean", "median", "p99")] for run in sizes]
    return _table(head, rows)


def _hours_table(hours: Sequence[Mapping[str, Any]]) -> str:
    head = ["hour (UTC)", "items", "originals", "duplicates", "held", "window MB", "median µs", "p99 µs"]
    rows = [
        [
            hour["hour"],
            *(f"{hour[name]:,}" for name in ("items", "originals", "duplicates", "held")),
            f"{hour['bytes'] / 1e6:,.1f}",
            *(f"{hour[name]:,.0f}" for name in ("cpu_us_median", "cpu_us_p99")),
        ]
        for hour in hours
    ]
    return _table(head, rows, "scroll tall")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "scroll") -> str:
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<div class="{kind}" tabindex="0">{table}</div>'


def _notes(content: Mapping[str, Any]) -> str:
    batch = content["settings"]["batch"]
    each = (
        "each item was judged and timed by itself"
        if batch == 1
        else f"at most {batch:,} items of one hour were judged at once, and each counts as their mean"
    )
    notes = {
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
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in notes.items())}</dl>"
