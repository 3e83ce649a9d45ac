"""The page of a report: one file that needs only a browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from neardup.documents.output import OutputFile, check_place
from neardup.errors import OutputError
from neardup.pages.diff_view import beginning, describe_change, side_by_side
from neardup.pages.html import Chart, Html, bar, escape, render, stages_table, table, text
from neardup.pages.numbers import format_count
from neardup.pages.page import check_drawing, page
from neardup.pages.report import COPY, EQUAL_FEATURES, Example, Family, Report, Sweep, Wording
from neardup.pages.report_charts import build_charts
from neardup.pages.sweep import format_similarity, format_threshold

#: Labels of a document that copies an earlier dropped one, but not its own keeper.
_COPY_LABELS = {COPY: "copy of a dropped one", EQUAL_FEATURES: "equal to a dropped one"}


class Section(NamedTuple):
    """A further section of the page, and its charts."""

    content: Html
    charts: Sequence[Chart] = ()


def report_page(report: Report, sections: Sequence[Section] = ()) -> str:
    """Return a report as a page; further ``sections`` stand before those on costs and on the run."""
    charts, moving = build_charts(report)
    known = {"fingerprint": report.fingerprint} if report.fingerprint else {}
    body = render(
        "report.html",
        report=report,
        charts=charts,
        moving=moving,
        subject=[line for line in (", ".join(report.inputs), report.in_words, report.rule) if line],
        tiles=_tiles(report),
        reasons=_reason_rows(report),
        rows=_dropped_rows(report),
        stages_table=stages_table,
        sections=[one.content for one in sections],
        facts=known | dict(report.facts) | dict(report.versions),
        copy_labels=_COPY_LABELS,
        Html=Html,
        table=table,
        beginning=beginning,
        describe_change=describe_change,
        side_by_side=side_by_side,
        family_title=_family_title,
        family_facts=_family_facts,
        family_more=_family_more,
        range_of=_range_of,
        format_count=format_count,
        format_threshold=format_threshold,
    )
    words, sweep = report.wording, report.sweep
    wording = {name: getattr(words, name) for name in ("kept", "dropped_label", "kept_verb", "dropped_verb", "run")}
    sweep_data = {} if sweep is None else _slider_data(sweep)
    return page(
        f"{report.title} - neardup",
        body,
        [*charts, *moving, *(chart for section in sections for chart in section.charts)],
        data={"sweep": sweep_data, "wording": wording} if sweep_data else {},
        scripts=["search.js", "slider.js"],
        styles=["report.css"],
    )


def _slider_data(sweep: Sweep) -> dict[str, Any]:
    """Return the data of the slider: the figures of a sweep, and its thresholds as names and rules."""
    names = [format_threshold(threshold, sweep.threshold_name) for threshold in sweep.thresholds]
    sign = "≤" if sweep.is_distance else "≥"
    rules = [f"{sweep.threshold_name} {sign} {threshold:g}" for threshold in sweep.thresholds]
    figures = {name: getattr(sweep, name) for name in ("own_index", "kept", "dropped", "pairs", "similarities")}
    return figures | {"names": names, "rules": rules}


def _share(number: int, of: int) -> str:
    return f"{number / of:.1%}" if of else ""


def _records_read(report: Report) -> int:
    """Return the number of records read, including rejected ones."""
    return report.documents + sum(number for _, number in report.rejected)


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    """Return the tiles of the headline: value, name and note of each."""
    read, words = _records_read(report), report.wording
    rejected = read - report.documents
    found = [(f"{read:,}", "read", f"{rejected:,} of them rejected" if rejected else words.documents)]
    for number, name in ((report.kept, words.kept), (report.dropped, words.dropped_label)):
        found.append((f"{number:,}", name, f"{_share(number, read)} of all read" if read else ""))
    if report.families_total:
        largest = f"the largest of {report.largest_family:,} {words.documents}"
        found.append((f"{report.families_total:,}", "families", largest))
    if report.stages:
        peak = max(stage["peak_memory_bytes"] for stage in report.stages)
        wall = sum(stage["wall_s"] for stage in report.stages)
        found.append((_format_seconds(wall), "time", f"{peak / 1e6:,.0f} MB peak memory"))
    return found


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _reason_rows(report: Report) -> list[list[object]]:
    words, read = report.wording, _records_read(report)
    rows = [
        (words.kept, words.kept_means, report.kept - report.released),
        *([("released", "was stopped first, and released later", report.released)] if report.released else []),
        *((name, meaning, number) for name, number, meaning in report.reasons),
        *((f"rejected: {name}", "never compared", number) for name, number in report.rejected),
    ]
    return [
        [
            Html(f"{escape(name)}<small>{escape(meaning)}</small>"),
            number,
            bar(number / read if read else 0, _share(number, read)),
        ]
        for name, meaning, number in rows
    ]


def _dropped_rows(report: Report) -> list[list[object]]:
    listed = {family.number for family in report.families}
    return [
        [
            text(row.id),
            text(row.lead),
            text(row.keeper),
            row.reason,
            f"{row.similarity:.4f}",
            Html(f'<a href="#family-{row.family}">{row.family:,}</a>') if row.family in listed else row.family or "",
        ]
        for row in report.rows
    ]


def _family_title(family: Family) -> str:
    first = family.members[0].document
    return family.lead or first.title or first.id


def _family_facts(family: Family, words: Wording) -> str:
    similar = "" if family.smallest is None else f"similarities from {family.smallest:.3f}"
    similar += "" if family.mean is None else f", mean {family.mean:.3f}"
    if family.equal:
        similar = "all equal"
    elif family.smallest is not None and family.smallest == family.mean:
        similar = f"similarity {family.mean:.3f}"
    facts = [f"{family.documents:,} {words.documents}", f"{family.kept:,} {words.kept}", similar]
    if family.complete is False and family.pairs is not None:
        all_pairs = family.documents * (family.documents - 1) // 2
        facts.append(f"{family.pairs:,} of {all_pairs:,} pairs match")
    return "; ".join(fact for fact in facts if fact)


def _family_more(family: Family, words: Wording) -> str:
    more = [f"{format_count(family.hidden, 'more member')} not listed"] if family.hidden else []
    if family.unmatched_pairs:
        pairs = format_count(family.unmatched_pairs, "pair")
        more.append(f"{pairs} of those listed match their {words.keeper}, but not each other")
    return "; ".join(more)


def _range_of(examples: Sequence[Example], sweep: Sweep | None) -> str:
    """Return the range of the similarities of pairs, in the unit of the threshold."""
    what, distance = (sweep.threshold_name, sweep.is_distance) if sweep else ("", False)
    ends = min(one.similarity for one in examples), max(one.similarity for one in examples)
    low, high = (format_similarity(what, end, distance=distance) for end in ends)
    return low if low == high else f"{low} to {high}"


def check_page(name: str, inputs: Sequence[str], *, force: bool) -> None:
    """Raise ``OutputError`` if the page cannot be written there, or the packages for charts are not installed."""
    if not name.endswith(".html"):
        raise OutputError(f"{name} does not end in .html, but a page is HTML: name it so")
    check_drawing(name)
    check_place(name, list(inputs), force, remote=True)


def write_page(name: str, report: Report) -> None:
    """Write a report as a page, complete or not at all."""
    content = report_page(report).encode()
    with OutputFile(name) as file:
        file.write(content + b"\n")
