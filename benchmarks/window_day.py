"""Is memory flat once the window is full? A flow of a million items a day, and real ones, half hour by half hour.

    window_day.py [million] [reuters] [saudinews] [--out FILE]

    million    N1M in the first 24 hours; then, at the same pace, N500k and N100k: mixes of other seeds, 38 hours in
               all. Those share the Reuters items with N1M, a fiftieth of what comes, so some of them are repeats.
    reuters    Reuters-21578 by its own timestamps, February to October 1987; noted every six hours
    saudinews  two days of an Arabic news crawl by its own timestamps

The window is 24 hours, the recipe ddd. The series of each are in the results, to be plotted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from arrivals import DAY, HOUR, RECIPE, START, arriving, documents_in, fresh, memory, renew, rows_of, texts_of, warm_up
from corpora import corpus
from measuring import HERE, RESULTS, SHARED, note, table

from neardup.stream.document import Document
from neardup.stream.index import Index
from neardup.times import microseconds_of

Row = dict[str, Any]

HALF_HOUR = HOUR / 2
#: Seconds of the flow from one note to the next.
DATED = {"reuters": 6 * HOUR, "saudinews": HALF_HOUR}
#: Where memory of the million a day is drawn.
PICTURE = HERE.parent / "docs" / "window-day.svg"
#: The hours of the flow that the table shows.
SHOWN = (6.0, 12.0, 18.0, 24.0, 30.0, 36.0)


def million(names: list[str], a_day: int | None) -> list[Row]:
    """Measure made corpora, one after the other, at a steady pace: as many a day as the first has documents."""
    files = [corpus(name) for name in names]
    note(" then ".join(names))
    pace = a_day or documents_in(files[0])
    return [{"flow": "+".join(names), "items_a_day": pace} | fresh(_steady, files, pace)]


def _steady(files: list[Path], a_day: int) -> Row:
    return _series(arriving(chain.from_iterable(texts_of(file) for file in files), a_day), HALF_HOUR)


def dated(name: str) -> list[Row]:
    """Measure a corpus that has timestamps."""
    note(name)
    return [{"flow": name} | fresh(_dated, SHARED / "data" / name / f"{name}.jsonl.gz", DATED[name])]


def _dated(file: Path, every: float) -> Row:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        found = map(json.loads, lines)
        rows = [((microseconds_of(row["timestamp"]) or 0) / 1e6, row["id"], row["text"]) for row in found]
    # Equal times stay in the order of the file.
    rows.sort(key=lambda row: row[0])
    first = rows[0][0]
    # Counted from the first item, so that both kinds of flow begin at hour 0.
    moved = ((when - first + START, name, text) for when, name, text in rows)
    return _series((Document(name, text, when) for when, name, text in moved), every)


def _series(documents: Iterator[Document], every: float) -> Row:
    """Run documents through a window; note memory each time so many seconds of the flow have passed."""
    warm_up(one_core=True)
    names = ("hours", "memory_mb", "window_mb", "held", "arrived", "cpu_us")
    series: dict[str, list[float]] = {name: [] for name in names}
    index, before = Index(RECIPE), memory()

    def part_of(document: Document) -> int:
        return int((document.microseconds or 0) / 1e6 - START) // int(every)

    for part, group in groupby(documents, part_of):
        cpu, arrived = time.process_time(), index.statistics.arrived
        index.add_many(group)
        cpu, found = time.process_time() - cpu, index.statistics
        each = 1e6 * cpu / (found.arrived - arrived)
        values = ((part + 1) * every / HOUR, memory(), round(found.bytes / 1e6, 1), found.held, found.arrived)
        for name, value in zip(names, (*values, round(each, 1)), strict=True):
            series[name].append(value)
        if (part + 1) * every % (2 * HOUR) == 0 and every == HALF_HOUR:
            note(f"  {values[0]:g} h: {values[4]:,} items, {values[3]:,} held, {values[1]:,.0f} MB, {each:.0f} µs")
    found = index.statistics
    return {
        "items": found.arrived,
        "duplicates": found.duplicates,
        "memory_before_mb": before,
        "peak_mb": memory("VmHWM"),
        "series": series,
    }


def _at(series: dict[str, list[float]], hour: float) -> int:
    """Return the place of the last note up to an hour."""
    return max((i for i, one in enumerate(series["hours"]) if one <= hour), default=0)


def as_table(results: dict[str, Any]) -> str:
    """Return memory before and after the window was full as Markdown."""
    header = ["flow", "items", "hours", "RSS MB at 24 hours", "most of it later", "at the end", "most / at 24 hours"]
    header += ["peak RSS MB", "window MB at 24 hours", "at the end"]
    rows: list[list[object]] = []
    for r in _flows(results):
        series = r["series"]
        full = _at(series, DAY / HOUR)
        sizes, later = series["memory_mb"], max(series["memory_mb"][full:])
        window = series["window_mb"]
        shown = [f"{value:,.0f}" for value in (series["hours"][-1], sizes[full], later, sizes[-1])]
        ratio = f"{later / sizes[full]:.2f}"
        of = [f"{value:,.0f}" for value in (r["peak_mb"], window[full], window[-1])]
        rows.append([r["flow"], f"{r['items']:,}", *shown, ratio, *of])
    return table(header, rows)


def hours_table(results: dict[str, Any]) -> str:
    """Return the million a day at some of its hours as Markdown."""
    rows: list[list[object]] = []
    for r in rows_of(results, "million"):
        series = r["series"]
        for hour in SHOWN:
            if hour <= series["hours"][-1]:
                i = _at(series, hour)
                values = (series[name][i] for name in ("arrived", "held", "memory_mb", "window_mb", "cpu_us"))
                rows.append([f"{hour:g}", *(f"{value:,.0f}" for value in values)])
    return table(["hour", "items", "held", "RSS MB", "window MB", "CPU µs an item"], rows)


def picture(results: dict[str, Any], file: Path) -> None:
    """Draw memory over the hours of the million a day."""
    import altair

    rows = [
        {"hour of the flow": hour, "GB": size / 1000, "of": of}
        for r in rows_of(results, "million")
        for of, name in (("process", "memory_mb"), ("window", "window_mb"))
        for hour, size in zip(r["series"]["hours"], r["series"][name], strict=True)
    ]
    lines = altair.Chart(altair.Data(values=rows)).mark_line().encode(x="hour of the flow:Q", y="GB:Q", color="of:N")
    full = altair.Chart(altair.Data(values=[{"hour": DAY / HOUR}])).mark_rule(strokeDash=[4, 4]).encode(x="hour:Q")
    altair.layer(lines, full).properties(width=640, height=260, background="white").save(str(file))


def _flows(results: dict[str, Any]) -> list[Row]:
    return [row for section in ("million", *DATED) for row in rows_of(results, section)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help="million, reuters, saudinews; all of them unless named")
    parser.add_argument("--corpora", nargs="+", default=["N1M", "N500k", "N100k"])
    parser.add_argument("--a-day", type=int, help="items a day, as many as the first corpus has unless given")
    parser.add_argument("--out", type=Path, default=RESULTS / "window_day.json")
    options = parser.parse_args()
    sections = {
        "million": lambda: million(options.corpora, options.a_day),
        "reuters": lambda: dated("reuters"),
        "saudinews": lambda: dated("saudinews"),
    }
    if unknown := set(options.sections) - set(sections):
        parser.error(f"no section {min(unknown)}; there are {', '.join(sections)}")
    chosen = {name: act for name, act in sections.items() if name in (options.sections or sections)}
    results = renew(options.out, "window_day", chosen)
    picture(results, PICTURE)
    print("\n\n".join(make(results) for make in (as_table, hours_table)))


if __name__ == "__main__":
    main()
