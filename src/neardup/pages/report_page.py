"""The charts of a report: how alike dropped documents and their keepers are, and what other thresholds would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neardup.documents.output import OutputFile, check_place
from neardup.errors import OutputError
from neardup.pages import html as parts
from neardup.pages.charts import COLOURS, FAINT, count_axis, finished, log_counts
from neardup.pages.html import Chart, Html, bar, escaped, fold, joined, table, text
from neardup.pages.page import check_drawing, page
from neardup.pages.report import BINS, COPY, EQUAL_FEATURES, KEPT, NEAR, Case, Family, Member, Report, Sweep, Wording
from neardup.pages.sections import value_of

if TYPE_CHECKING:
    import altair as alt

    from neardup.pages.plot import Plot

#: Between two marks of the axis of similarities.
_BAND = 0.05


def similarity_chart(counts: Sequence[int], of: str, *, y: str, cut: float | None = None) -> Plot:
    """Return a histogram of similarities as an Altair chart, counts on a logarithmic scale.

    Parameters
    ----------
    counts : sequence of int
        In ``BINS`` bins, as ``binned`` gives them.
    of : str
        What the similarity is, such as ``jaccard of words:5``.
    y : str
        What is counted.
    cut : float, optional
        What lies below is faint, and a line stands there; the chart's parameter ``cut``.
    """
    import altair as alt

    from neardup.pages.plot import Plot, nothing

    rows = [
        {"low": place / BINS, "high": (place + 1) / BINS, "count": count, "none": 0.5}
        for place, count in enumerate(counts)
        if count
    ]
    if not rows:
        return nothing(f"no {y}")
    lowest = min(row["low"] for row in rows)
    lowest = min(lowest, 1.0 if cut is None else cut)
    x = alt.X("low:Q", title=of, **_similarities(int(lowest / _BAND + 1e-9) * _BAND))
    told = [
        alt.Tooltip("low:Q", format=".2f", title="from"),
        alt.Tooltip("high:Q", format=".2f", title="to"),
        alt.Tooltip("count:Q", format=",", title=y),
    ]
    bars = alt.Chart(alt.Data(values=rows)).mark_rect(stroke=None)
    bars = bars.encode(
        x=x, x2="high:Q", y=log_counts("count", y, most=max(counts, default=0)), y2="none:Q", tooltip=told
    )
    if cut is None:
        return Plot(layer=[bars.encode(color=alt.value(COLOURS[0]))])
    above = alt.condition("datum.high > cut + 1e-9", alt.value(COLOURS[0]), alt.value(FAINT))
    line = alt.Chart(alt.Data(values=[{}])).transform_calculate(at="cut").mark_rule(color=COLOURS[1], strokeWidth=2)
    cuts = alt.param(name="cut", value=cut)
    drawn: Plot = Plot(layer=[bars.encode(color=above), line.encode(x=alt.X("at:Q", title=of))]).add_params(cuts)
    return drawn


def _similarities(lowest: float) -> dict[str, Any]:
    """Return the scale and the axis of similarities from the lowest to 1, with marks where people expect them."""
    import altair as alt

    marks = [place * _BAND for place in range(int(1 / _BAND) + 1) if place * _BAND >= lowest - 1e-9]
    axis = alt.Axis(format=".2~f", values=[round(mark, 2) for mark in marks])
    return {"scale": alt.Scale(domain=[round(lowest, 9), 1.0], nice=False, zero=False), "axis": axis}


def _sweep_chart(sweep: Sweep, wording: Wording) -> alt.LayerChart:
    import altair as alt

    rows = [
        {"at": at, "shown": threshold, "dropped": dropped, "pairs": pairs}
        for at, threshold, dropped, pairs in zip(
            sweep.similarities, sweep.thresholds, sweep.dropped, sweep.pairs, strict=True
        )
    ]
    title = f"{sweep.what}, shown as a similarity" if sweep.distance else f"threshold ({sweep.what})"
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("at:Q", title=title, **_similarities(sweep.similarities[0])),
        y=alt.Y("dropped:Q", title=_gone(wording), axis=count_axis(max(sweep.dropped)), scale=alt.Scale(domainMin=0)),
    )
    told = [
        alt.Tooltip("shown:Q", title="threshold", format="~g"),
        alt.Tooltip("dropped:Q", title=wording.gone, format=","),
        alt.Tooltip("pairs:Q", title="pairs", format=","),
    ]
    line = alt.Chart(alt.Data(values=[{}])).transform_calculate(at="cut").mark_rule(color=COLOURS[1], strokeWidth=2)
    return alt.layer(
        base.mark_line(color=COLOURS[0], strokeWidth=2),
        base.mark_circle(size=160, opacity=0).encode(tooltip=told),
        line.encode(x=alt.X("at:Q", title=title)),
    ).add_params(alt.param(name="cut", value=sweep.similarities[sweep.own]))


def charts_of(report: Report) -> tuple[list[Chart], list[Chart]]:
    """Return the charts of a report, with the tables behind them, and those that its slider moves.

    Of the first ones, the report's own come last.
    """
    found = [_to_keepers(report)] if any(report.similarity) else []
    moving: list[Chart] = []
    if report.sweep is not None and len(report.sweep.thresholds) > 1:
        moving += [_of_pairs(report)] if any(report.pair_similarity) else []
        moving.append(_of_thresholds(report.sweep, report.wording))
    return [*found, *report.curves], moving


def _to_keepers(report: Report) -> Chart:
    total, gone = sum(report.similarity), _gone(report.wording)
    alike = report.similarity[-1]
    told = f"Histogram of the similarities of {total:,} {gone} to what they match; {alike:,} have 0.99 or more."
    return Chart(
        "similarity",
        report.wording.alike,
        f"{report.wording.documents} by similarity; the scale is logarithmic",
        told,
        finished(similarity_chart(report.similarity, report.similarity_of, y=gone)),
        _bins(report.similarity, gone),
    )


def _of_pairs(report: Report) -> Chart:
    total = sum(report.pair_similarity)
    told = f"Histogram of the similarities of {total:,} pairs; those below the threshold are grey."
    return Chart(
        "pairs",
        "Pairs on both sides of the threshold",
        f"{report.wording.pairs}; logarithmic; grey: beyond the slider",
        told,
        finished(similarity_chart(report.pair_similarity, report.similarity_of, y="pairs", cut=report.threshold or 0)),
        _bins(report.pair_similarity, "pairs"),
    )


def _of_thresholds(sweep: Sweep, wording: Wording) -> Chart:
    first, last = sweep.dropped[0], sweep.dropped[-1]
    told = (
        f"Line of {_gone(wording)} by threshold: {first:,} at {sweep.thresholds[0]:g}, "
        f"{sweep.dropped[sweep.own]:,} at {sweep.thresholds[sweep.own]:g}, {last:,} at {sweep.thresholds[-1]:g}."
    )
    rows: list[list[Any]] = [
        [f"{threshold:g}", kept, dropped, pairs]
        for threshold, kept, dropped, pairs in zip(
            sweep.thresholds, sweep.kept, sweep.dropped, sweep.pairs, strict=True
        )
    ]
    return Chart(
        "thresholds",
        wording.moved,
        wording.points,
        told,
        finished(_sweep_chart(sweep, wording)),
        table(["threshold", wording.kept, wording.gone, "pairs"], rows, tall=True, best=(sweep.own,)),
        "" if any(sweep.dropped) else f"no {wording.document} {wording.goes} at any of these thresholds",
    )


def _gone(wording: Wording) -> str:
    return wording.gone if wording.gone.endswith("s") else f"{wording.gone} {wording.documents}"


def _bins(counts: Sequence[int], what: str) -> Any:
    rows = [[f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}", count] for place, count in enumerate(counts) if count]
    return table(["similarity", what], rows, tall=True)


#: Said of a document whose text or features a dropped one had before it, where its keeper has others.
_OF_DROPPED = {COPY: "copy of a dropped one", EQUAL_FEATURES: "equal to a dropped one"}
#: Families so near to the top are open at first, where there are few.
_OPENED, _FEW = 1, 3


def families_section(report: Report) -> Html:
    """Return the families of a report, each of which opens into its members."""
    if not report.families_total:
        return Html("")
    shown = [
        _family(family, report.wording, opened=at < _OPENED and len(report.families) <= _FEW)
        for at, family in enumerate(report.families)
    ]
    field = parts.search_field("family-list", label="Find families by id or word", noun="families")
    listed = Html(f'<div id="family-list">{joined(shown)}</div>')
    return parts.section("families", "Families", field, listed, intro=report.wording.families)


def _family(family: Family, words: Wording, *, opened: bool) -> Html:
    first = family.members[0].document if family.members else None
    title = text(family.lead or (first.title or first.id if first else ""))
    similar = "" if family.smallest is None else f"similarities from {family.smallest:.3f}"
    similar += "" if family.mean is None else f", {family.mean:.3f} in the mean"
    if family.equal:
        similar = "all equal"
    elif family.smallest is not None and family.smallest == family.mean:
        similar = f"similarity {family.mean:.3f}"
    facts = [f"{family.documents:,} {words.documents}", f"{family.kept:,} {words.kept}", similar]
    if family.complete is False and family.pairs is not None:
        every = family.documents * (family.documents - 1) // 2
        facts.append(f"{family.pairs:,} of {every:,} pairs match")
    summary = Html(
        f'<span class="lead">{title}</span><small>{escaped("; ".join(fact for fact in facts if fact))} '
        '<span class="fate" hidden></span></small>'
    )
    more = [f"{family.hidden:,} more members are not listed"] if family.hidden else []
    if family.apart:
        pairs = "pair" if family.apart == 1 else "pairs"
        more.append(f"{family.apart:,} {pairs} of those listed match their {words.keeper}, but not each other")
    note = Html(f'<p class="dim">{escaped("; ".join(more))}.</p>') if more else Html("")
    members = Html(f'<ul class="members">{joined(_member(member, words) for member in family.members)}</ul>')
    inside = fold(summary, members, note, key=f"family-{family.number}", opened=opened, printed=False)
    return Html(f'<div class="family" data-search="">{inside}</div>')


def _member(member: Member, words: Wording) -> Html:
    document = member.document
    kept = member.why == KEPT
    states = f' data-goes="{escaped(member.goes)}"' if member.goes else ""
    about = [f"<strong>{text(document.title)}</strong>"] if document.title else []
    about += [f"<span>{text(document.id)}</span>"]
    about += [f'<span class="dim">{escaped(_time(document.time))}</span>'] if document.time else []
    if kept:
        about.append(f'<span class="chip stays">{escaped(words.kept)}</span>')
    else:
        chips = [] if member.why == member.to_keeper else [_OF_DROPPED[member.why]]
        about += [f'<span class="chip">{escaped(name)}</span>' for name in (*chips, member.to_keeper)]
        similarity = f"{member.similarity:.4f} " if member.to_keeper == NEAR else ""
        about.append(f"<span>{similarity}of {text(member.keeper)}</span>")
    said = f'<p class="why">{escaped(member.evidence)}</p>' if member.evidence else ""
    apart = ""
    if member.apart:
        names = joined((text(name) for name in member.apart), ", ")
        apart = f'<p class="apart">Matches its {escaped(words.keeper)}, but not {names}.</p>'
    return Html(
        f'<li class="{"kept" if kept else "gone"}"{states}><div class="about">{"".join(about)}'
        f'<span class="fate" hidden></span></div>{said}{apart}{member.look}</li>'
    )


def _time(value: str) -> str:
    return value.replace("T", " ", 1)


def rows_section(report: Report) -> Html:
    """Return the documents that went, as a list to search."""
    if not report.rows_total:
        return Html("")
    listed = {family.number for family in report.families}
    rows = [
        [
            text(row.id),
            text(row.words),
            text(row.keeper),
            row.why,
            f"{row.similarity:.4f}",
            Html(f'<a href="#family-{row.family}">{row.family:,}</a>') if row.family in listed else row.family or "",
        ]
        for row in report.rows
    ]
    words = report.wording
    head = [words.document, "title, or how it begins", words.keeper, "why", "similarity", "family"]
    field = parts.search_field("dropped-list", label="Find them by id or word", noun=words.documents)
    table = parts.table(head, rows, tall=True, left=4, searched=[""] * len(rows))
    some = len(report.rows) < report.rows_total
    intro = f"{len(report.rows):,} of {report.rows_total:,} are listed." if some else ""
    return parts.section(
        "dropped", words.sections[1], field, Html(f'<div id="dropped-list">{table}</div>'), intro=intro
    )


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


def check_page(name: str, inputs: Sequence[str], *, force: bool) -> None:
    """Refuse a name that no page can have, and pages where the packages that draw charts are not installed.

    Raises
    ------
    OutputError
        If the name does not end in .html, is that of an input, or exists and ``force`` is not given.
    """
    if not name.endswith(".html"):
        raise OutputError(f"{name} does not end in .html, but a page is HTML: name it so")
    check_drawing(name)
    check_place(name, list(inputs), force)


def write_page(name: str, report: Report) -> None:
    """Write a report as a page: it is there as a whole or not at all."""
    content = report_page(report).encode()
    with OutputFile(name) as file:
        file.write(content + b"\n")
