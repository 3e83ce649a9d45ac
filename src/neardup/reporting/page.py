"""The page of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neardup.pages import parts
from neardup.pages.frame import page
from neardup.pages.parts import Chart, Html, bar, escaped, fold, joined
from neardup.reporting.drawing import charts_of
from neardup.reporting.lists import families_section, rows_section
from neardup.reporting.model import Case, Report, Sweep
from neardup.reporting.telling import value_of


def report_page(report: Report) -> str:
    """Return a report as a page: one file that needs nothing but a browser."""
    charts, moving = charts_of(report)
    body = [
        parts.opening(report.title, *_subject(report)),
        parts.tiles(_headline(report)),
        parts.notes(report.notes, title="What to know of this page"),
        _reasons(report),
        parts.section("similarity-section", "How alike", parts.figures(charts)) if charts else "",
        _threshold(report, moving),
        _cases(report),
        families_section(report),
        rows_section(report),
        *(section.content for section in report.sections),
        _costs(report),
        _made(report),
    ]
    words = report.wording
    said = {name: getattr(words, name) for name in ("kept", "gone", "stays", "goes", "run")}
    data = {} if report.sweep is None else {"sweep": _sweep(report.sweep), "wording": said}
    return page(
        f"{report.title} - neardup",
        joined(part for part in body if part),
        [*charts, *moving, *(chart for section in report.sections for chart in section.charts)],
        data=data,
        scripts=["search.js", "slider.js"],
        styles=["report.css"],
    )


def _subject(report: Report) -> list[str]:
    lines = [", ".join(report.inputs)] if report.inputs else []
    return [*lines, report.in_words] if report.in_words else lines


def _share(number: int, of: int) -> str:
    return f"{number / of:.1%}" if of else ""


def _of_all(number: int, came: int) -> str:
    return f"{_share(number, came)} of what came in" if came else ""


def _headline(report: Report) -> list[tuple[str, str, str]]:
    aside = sum(number for _, number in report.quarantined)
    came = report.documents + aside
    words = report.wording
    found = [
        (f"{came:,}", "came in", f"{aside:,} of them set aside" if aside else words.documents),
        (f"{report.kept:,}", words.tiles[0], _of_all(report.kept, came)),
        (f"{report.dropped:,}", words.tiles[1], _of_all(report.dropped, came)),
    ]
    if report.families_total:
        largest = f"the largest of {report.largest_family:,} {words.documents}"
        found.append((f"{report.families_total:,}", "families", largest))
    wall = sum(stage["wall_s"] for stage in report.stages)
    peak = max((stage["peak_memory_bytes"] for stage in report.stages), default=0)
    if report.stages:
        found.append((_seconds(wall), "time", f"{peak / 1e6:,.0f} MB of memory at most"))
    return found


def _seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _reasons(report: Report) -> Html:
    aside = sum(number for _, number in report.quarantined)
    came = report.documents + aside
    words = report.wording
    rows: list[list[object]] = [[words.kept, words.kept_means, *_counted(report.kept, came)]]
    rows += [[name, meaning, *_counted(number, came)] for name, number, meaning in report.reasons]
    rows += [[f"set aside: {name}", "never compared", *_counted(number, came)] for name, number in report.quarantined]
    table = parts.table(["what", "what that means", words.documents, "of what came in"], rows, left=2)
    return parts.section("reasons", words.sections[0], table)


def _counted(number: int, of: int) -> list[object]:
    return [number, bar(number / of if of else 0, _share(number, of))]


def _sweep(sweep: Sweep) -> Mapping[str, Any]:
    return {
        "thresholds": list(sweep.thresholds),
        "similarities": list(sweep.similarities),
        "kept": list(sweep.kept),
        "dropped": list(sweep.dropped),
        "pairs": list(sweep.pairs),
        "own": sweep.own,
        "what": sweep.what,
        "distance": sweep.distance,
    }


def _threshold(report: Report, charts: Sequence[Chart]) -> str:
    sweep = report.sweep
    if sweep is None or len(sweep.thresholds) < 2:
        return ""
    first, last = f"{sweep.thresholds[0]:g}", f"{sweep.thresholds[-1]:g}"
    words = report.wording
    how = "exactly as runs of their own" if sweep.exact else f"as far as the pairs of this {words.run} tell"
    intro = (
        f"What thresholds from {first} to {last} would do, {how}. The families and pairs below say what would become "
        f"of them. {sweep.note}"
    )
    control = Html(
        '<div class="threshold" role="group" aria-label="Another threshold"><div class="row">'
        '<label for="threshold">Threshold</label>'
        f'<input type="range" id="threshold" min="0" max="{len(sweep.thresholds) - 1}" step="1" value="{sweep.own}">'
        f'<button type="button" id="threshold-back" disabled>Back to this {words.run}</button></div>'
        '<output id="threshold-said" for="threshold" aria-live="polite"></output></div>'
    )
    # The slider stays in sight while the families are read, so it is in no section.
    section = parts.section("threshold-section", "Another threshold", intro=intro.strip())
    return joined([section, control, parts.figures(charts)])


def _cases(report: Report) -> str:
    if not (report.cases_above or report.cases_below or report.cases_elsewhere or report.cases_note):
        return ""
    folds = [
        _case_list("No match, but nearly", report.cases_below, report.sweep),
        _case_list("Only just a match", report.cases_above, report.sweep),
        _case_list("At other similarities", report.cases_elsewhere, report.sweep),
    ]
    intro = "Pairs to read: is the threshold where it should be? What only one text has is marked in both."
    note = Html(f'<p class="dim">{escaped(report.cases_note)}</p>') if report.cases_note else Html("")
    return parts.section("borderline", "At the border", note, *folds, intro=intro)


def _case_list(title: str, cases: Sequence[Case], sweep: Sweep | None) -> Html:
    if not cases:
        return Html("")
    what, distance = (sweep.what, sweep.distance) if sweep else ("", False)
    ends = min(case.similarity for case in cases), max(case.similarity for case in cases)
    told = [value_of(what, end, distance=distance) for end in ends]
    between = told[0] if told[0] == told[1] else f"{told[0]} to {told[1]}"
    return fold(f"{title} ({len(cases):,} pairs, {between})", *map(_case, cases))


def _case(case: Case) -> Html:
    states = f' data-matches="{escaped(case.matching)}"' if case.matching else ""
    return Html(f'<div class="case"{states}><span class="fate" hidden></span>{case.look}</div>')


def _costs(report: Report) -> str:
    if not report.stages:
        return ""
    wall = sum(stage["wall_s"] for stage in report.stages)
    rows: list[list[object]] = [
        [
            stage["name"],
            bar(stage["wall_s"] / wall if wall else 0, f"{stage['wall_s']:.3f}"),
            f"{stage['cpu_s']:.3f}",
            f"{stage['peak_memory_bytes'] / 1e6:,.0f}",
        ]
        for stage in report.stages
    ]
    head = ["stage", "time, s", "processor time, s", "peak of memory so far, MB"]
    return parts.section("costs", "Time and memory", parts.table(head, rows))


def _made(report: Report) -> Html:
    content: list[Html] = []
    if report.command:
        content += [Html("<h3>Command</h3>"), parts.command(report.command)]
    content += [Html("<h3>Recipe</h3>"), parts.command(report.recipe)] if report.recipe else []
    known = {"fingerprint": report.fingerprint} if report.fingerprint else {}
    return parts.section(
        "made", "How this was made", *content, parts.facts(known | dict(report.facts) | dict(report.versions))
    )
