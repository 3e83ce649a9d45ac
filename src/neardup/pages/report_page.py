"""The page of a report, with its charts: one file that needs only a browser."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import altair as alt

from neardup.documents.output import OutputFile
from neardup.pages import html
from neardup.pages.charts import (
    COLOURS,
    FAINT_COLOUR,
    LOG_FLOOR,
    Plot,
    bit_axis,
    count_axis,
    empty_plot,
    finish_chart,
    histogram,
    line,
    log_count_axis,
    similarity_axis,
    slider_rule,
    tooltips,
)
from neardup.pages.diff_view import beginning, changed, describe_change, side_by_side
from neardup.pages.html import Chart, Html, text
from neardup.pages.numbers import format_count
from neardup.pages.page import page
from neardup.pages.report import BINS, Example, Family, Report, Wording
from neardup.pages.sweep import BITS, Sweep, format_similarity, format_threshold
from neardup.pages.verdicts import COPY, EQUAL_FEATURES

_COPY_LABELS = {COPY: "copy of a dropped one", EQUAL_FEATURES: "equal to a dropped one"}


class Section(NamedTuple):
    """A further section of the page, and its charts."""

    content: Html
    charts: Sequence[Chart] = ()


def report_page(report: Report, sections: Sequence[Section] = ()) -> str:
    """Return a report as a page; further ``sections`` stand before those on costs and on the run."""
    charts, moving = build_charts(report)
    known = {"fingerprint": report.fingerprint} if report.fingerprint else {}
    body = html.render(
        "report.html",
        report=report,
        charts=charts,
        moving=moving,
        subject=[line for line in (", ".join(report.inputs), report.in_words, report.rule) if line],
        headline=_tiles(report),
        reasons=_reason_rows(report),
        rows=_dropped_rows(report),
        sections=[one.content for one in sections],
        run_facts=known | dict(report.facts) | dict(report.versions),
        copy_labels=_COPY_LABELS,
        Html=Html,
        beginning=beginning,
        changed=changed,
        describe_change=describe_change,
        side_by_side=side_by_side,
        family_title=_family_title,
        family_facts=_family_facts,
        family_more=_family_more,
        range_of=_range_of,
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
    names = [format_threshold(threshold, sweep.threshold_name) for threshold in sweep.thresholds]
    sign = "≤" if sweep.is_distance else "≥"
    rules = [f"{sweep.threshold_name} {sign} {threshold:g}" for threshold in sweep.thresholds]
    figures = {name: getattr(sweep, name) for name in ("own_index", "kept", "dropped", "pairs", "similarities")}
    return figures | {"names": names, "rules": rules}


def _share(number: int, of: int) -> str:
    return f"{number / of:.1%}" if of else ""


def _records_read(report: Report) -> int:
    return report.documents + sum(number for _, number in report.rejected)


def _tiles(report: Report) -> list[tuple[str, str, str]]:
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
            html.fill("{}<small>{}</small>", name, meaning),
            number,
            html.bar(number / read if read else 0, _share(number, read)),
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
    what, distance = (sweep.threshold_name, sweep.is_distance) if sweep else ("", False)
    ends = min(one.similarity for one in examples), max(one.similarity for one in examples)
    low, high = (format_similarity(what, end, distance=distance) for end in ends)
    return low if low == high else f"{low} to {high}"


def similarity_chart(counts: Sequence[int], of: str, *, y: str, cut: float | None = None) -> Plot:
    """Return a histogram of similarities as an Altair chart with a logarithmic axis of counts.

    ``counts`` come from ``bin_similarities``, ``of`` names the similarity. Bars below the chart's parameter ``cut`` are
    grey. For BITS there is a bar for each number of bits.
    """
    bins = [(at, count) for at, count in enumerate(counts) if count]
    if not bins:
        return empty_plot(f"no {y}")
    if of == BITS:
        rows = [_bit_bar(_differing_bits(at), count) for at, count in bins]
        x = bit_axis("low", of, max(_differing_bits(bins[0][0]), 0 if cut is None else round(64 * (1 - cut))))
        description = tooltips(bits=("d", of), count=(",", y))
        # The rule stands between two bars.
        end = "64 * (1 - cut) + 0.5"
        matches = f"datum.high <= {end} + 1e-9"
    else:
        rows = [{"low": at / BINS, "high": (at + 1) / BINS, "count": count, "none": LOG_FLOOR} for at, count in bins]
        lowest = min(row["low"] for row in rows)
        x = similarity_axis("low", of, lowest=lowest if cut is None else min(lowest, cut))
        description = tooltips(low=(".2f", "from"), high=(".2f", "to"), count=(",", y))
        end = "cut"
        matches = f"datum.high > {end} + 1e-9"
    drawn = histogram(rows, x, log_count_axis("count", y, most=max(counts)), description)
    if cut is None:
        return Plot(layer=[drawn])
    colour = alt.condition(matches, alt.value(COLOURS[0]), alt.value(FAINT_COLOUR))
    layers = [drawn.encode(color=colour), slider_rule(end)]
    chart: Plot = Plot(layer=layers).add_params(alt.param(name="cut", value=cut))
    return chart


def _differing_bits(at: int) -> int:
    """Return the number of 64 bits that differ in a bin of similarities; no two numbers share a bin."""
    return 64 * (BINS - at) // BINS


def _bit_bar(number: int, count: int) -> dict[str, float]:
    return {"bits": number, "low": number - 0.5, "high": number + 0.5, "count": count, "none": LOG_FLOOR}


def _sweep_chart(sweep: Sweep, wording: Wording) -> alt.LayerChart:
    rows = [
        {"at": at, "shown": threshold, "dropped": dropped, "pairs": pairs}
        for at, threshold, dropped, pairs in zip(
            sweep.similarities, sweep.thresholds, sweep.dropped, sweep.pairs, strict=True
        )
    ]
    if sweep.threshold_name == BITS:
        x, line_at = bit_axis("shown", f"threshold ({BITS})", round(sweep.thresholds[0])), "64 * (1 - cut)"
    else:
        title = (
            f"{sweep.threshold_name}, shown as a similarity"
            if sweep.is_distance
            else f"threshold ({sweep.threshold_name})"
        )
        x, line_at = similarity_axis("at", title, lowest=sweep.similarities[0]), "cut"
    y = alt.Y(
        "dropped:Q", title=_dropped_noun(wording), axis=count_axis(max(sweep.dropped)), scale=alt.Scale(domainMin=0)
    )
    tooltip = tooltips(shown=("~g", "threshold"), dropped=(",", wording.dropped), pairs=(",", "pairs"))
    cut = alt.param(name="cut", value=sweep.similarities[sweep.own_index])
    return alt.layer(*line(rows, x, y, tooltip), slider_rule(line_at)).add_params(cut)


def build_charts(report: Report) -> tuple[list[Chart], list[Chart]]:
    """Return the charts of a report, and those that its slider changes."""
    found = [_keepers_chart(report)]
    moving: list[Chart] = []
    if report.sweep is not None and len(report.sweep.thresholds) > 1:
        moving += [_pairs_chart(report)] if any(report.pair_similarity) else []
        moving.append(_thresholds_chart(report.sweep, report.wording))
    return [*found, *([_lags_chart(report.lags)] if report.lags else [])], moving


def _keepers_chart(report: Report) -> Chart:
    total, dropped, of = sum(report.similarity), _dropped_noun(report.wording), report.similarity_name
    alike = report.similarity[-1] if total else 0
    same = "equal in all bits" if of == BITS else "with 0.99 or more"
    documents = format_count(total, dropped.removesuffix("s"))
    description = f"Histogram of similarities to what they match: {documents}, {alike:,} {same}."
    return Chart(
        "similarity",
        report.wording.similarity_title,
        f"{report.wording.documents} by {of if of == BITS else 'similarity'}; the scale is logarithmic",
        description,
        finish_chart(similarity_chart(report.similarity, of, y=dropped)),
        _bins_table(report.similarity, of, dropped),
        "" if total else f"no {dropped}",
    )


def _pairs_chart(report: Report) -> Chart:
    total = sum(report.pair_similarity)
    description = f"Histogram of the similarities of {format_count(total, 'pair')}; those that do not match are grey."
    return Chart(
        "pairs",
        "Pairs on both sides of the threshold",
        f"{report.wording.pairs}; logarithmic; grey: beyond the slider",
        description,
        finish_chart(
            similarity_chart(report.pair_similarity, report.similarity_name, y="pairs", cut=report.threshold or 0)
        ),
        _bins_table(report.pair_similarity, report.similarity_name, "pairs"),
    )


def _thresholds_chart(sweep: Sweep, wording: Wording) -> Chart:
    first, last = sweep.dropped[0], sweep.dropped[-1]
    names = [format_threshold(threshold, sweep.threshold_name) for threshold in sweep.thresholds]
    description = (
        f"Line of {_dropped_noun(wording)} by threshold: {first:,} at {names[0]}, "
        f"{sweep.dropped[sweep.own_index]:,} at {names[sweep.own_index]}, {last:,} at {names[-1]}."
    )
    rows: list[list[Any]] = [
        [name, kept, dropped, pairs]
        for name, kept, dropped, pairs in zip(names, sweep.kept, sweep.dropped, sweep.pairs, strict=True)
    ]
    return Chart(
        "thresholds",
        wording.sweep_title,
        wording.sweep_caption,
        description,
        finish_chart(_sweep_chart(sweep, wording)),
        html.table(
            ["threshold", wording.kept, wording.dropped, "pairs"], rows, tall=True, highlighted=(sweep.own_index,)
        ),
        "" if any(sweep.dropped) else f"no {_dropped_noun(wording)} at any of these thresholds",
    )


def _dropped_noun(wording: Wording) -> str:
    return wording.dropped if wording.dropped.endswith("s") else f"{wording.dropped} {wording.documents}"


def _bins_table(counts: Sequence[int], of: str, what: str) -> Any:
    rows = [
        [_differing_bits(at) if of == BITS else f"{at / BINS:.2f} to {(at + 1) / BINS:.2f}", count]
        for at, count in enumerate(counts)
        if count
    ]
    return html.table([BITS if of == BITS else "similarity", what], rows, tall=True)


def _lags_chart(lags: Sequence[tuple[str, int]]) -> Chart:
    total = sum(count for _, count in lags)
    reached = [count / total for count in accumulate(count for _, count in lags)]
    rows = [
        {"name": name, "count": count, "share": f"{count / total:.0%}", "reached": f"{part:.0%}"}
        for (name, count), part in zip(lags, reached, strict=True)
    ]
    half = next(name for (name, _), part in zip(lags, reached, strict=True) if part >= 0.5)
    tooltip = tooltips(
        name=("", "after the original"),
        count=(",", "duplicates"),
        share=("", "share"),
        reached=("", "share up to here"),
    )
    axis = count_axis(max(count for _, count in lags))
    drawn = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=COLOURS[1])
        .encode(
            x=alt.X("count:Q", title="duplicates", axis=axis),
            y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=200)),
            tooltip=tooltip,
        )
    )
    shares = drawn.mark_text(align="left", dx=5).encode(text="share:N")
    return Chart(
        key="lag",
        title="How long after its original a duplicate came",
        note=f"shares of {format_count(total, 'duplicate')}; the figures below add them up for shorter windows",
        description=f"Of {format_count(total, 'duplicate')}, half came no later than {half} after what they repeat.",
        specification=finish_chart(alt.layer(drawn, shares), height=24 * len(rows) + 50),
        figures_table=html.table(
            ["after the original", "duplicates", "share", "share up to here"],
            [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
        ),
    )


def write_page(name: str, report: Report) -> None:
    """Write a report as a page, complete or not at all."""
    content = report_page(report).encode()
    with OutputFile(name) as file:
        file.write(content + b"\n")
