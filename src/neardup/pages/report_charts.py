"""The charts of a report: similarities, other thresholds, and when and where the items of a flow came from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from neardup.pages.charts import (
    COLOURS,
    FAINT,
    NOTHING,
    bars,
    count_axis,
    finished,
    histogram,
    kinds_of,
    line,
    log_counts,
    moving_rule,
    similarities,
    time_axis,
    tooltips,
)
from neardup.pages.html import Chart, table
from neardup.pages.report import BINS, Arrivals, Report, Sweep, Wording

if TYPE_CHECKING:
    import altair as alt

    from neardup.pages.plot import Plot

#: Between two marks of the axis of similarities.
_BAND = 0.05


def similarity_chart(counts: Sequence[int], of: str, *, y: str, cut: float | None = None) -> Plot:
    """Return a histogram of similarities as an Altair chart, counts on a logarithmic scale.

    The counts are in ``BINS`` bins, as ``binned`` gives them. What lies below ``cut``, a parameter of the chart, is
    faint.
    """
    import altair as alt

    from neardup.pages.plot import Plot, nothing

    rows = [
        {"low": place / BINS, "high": (place + 1) / BINS, "count": count, "none": NOTHING}
        for place, count in enumerate(counts)
        if count
    ]
    if not rows:
        return nothing(f"no {y}")
    lowest = min(row["low"] for row in rows)
    drawn = histogram(
        rows,
        similarities("low", of, lowest=lowest if cut is None else min(lowest, cut), step=_BAND),
        log_counts("count", y, most=max(counts, default=0)),
        tooltips(low=(".2f", "from"), high=(".2f", "to"), count=(",", y)),
    )
    if cut is None:
        return Plot(layer=[drawn])
    above = alt.condition("datum.high > cut + 1e-9", alt.value(COLOURS[0]), alt.value(FAINT))
    chart: Plot = Plot(layer=[drawn.encode(color=above), moving_rule()]).add_params(alt.param(name="cut", value=cut))
    return chart


def _sweep_chart(sweep: Sweep, wording: Wording) -> alt.LayerChart:
    import altair as alt

    rows = [
        {"at": at, "shown": threshold, "dropped": dropped, "pairs": pairs}
        for at, threshold, dropped, pairs in zip(
            sweep.similarities, sweep.thresholds, sweep.dropped, sweep.pairs, strict=True
        )
    ]
    title = f"{sweep.what}, shown as a similarity" if sweep.distance else f"threshold ({sweep.what})"
    x = similarities("at", title, lowest=sweep.similarities[0], step=_BAND)
    y = alt.Y("dropped:Q", title=_gone(wording), axis=count_axis(max(sweep.dropped)), scale=alt.Scale(domainMin=0))
    tooltip = tooltips(shown=("~g", "threshold"), dropped=(",", wording.gone), pairs=(",", "pairs"))
    cut = alt.param(name="cut", value=sweep.similarities[sweep.own])
    return alt.layer(*line(rows, x, y, tooltip), moving_rule()).add_params(cut)


def charts_of(report: Report) -> tuple[list[Chart], list[Chart]]:
    """Return the charts of a report, with the tables behind them, and those that its slider moves."""
    found = [_to_keepers(report)]
    moving: list[Chart] = []
    if report.sweep is not None and len(report.sweep.thresholds) > 1:
        moving += [_of_pairs(report)] if any(report.pair_similarity) else []
        moving.append(_of_thresholds(report.sweep, report.wording))
    return [*found, *(arrival_charts(report.arrivals) if report.arrivals else [])], moving


def _to_keepers(report: Report) -> Chart:
    total, gone = sum(report.similarity), _gone(report.wording)
    alike = report.similarity[-1] if total else 0
    told = f"Histogram of the similarities of {total:,} {gone} to what they match; {alike:,} have 0.99 or more."
    return Chart(
        "similarity",
        report.wording.alike,
        f"{report.wording.documents} by similarity; the scale is logarithmic",
        told,
        finished(similarity_chart(report.similarity, report.similarity_of, y=gone)),
        _bins(report.similarity, gone),
        "" if total else f"no {gone}",
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
        "" if any(sweep.dropped) else f"no {_gone(wording)} at any of these thresholds",
    )


def _gone(wording: Wording) -> str:
    return wording.gone if wording.gone.endswith("s") else f"{wording.gone} {wording.documents}"


def _bins(counts: Sequence[int], what: str) -> Any:
    rows = [[f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}", count] for place, count in enumerate(counts) if count]
    return table(["similarity", what], rows, tall=True)


KINDS = ("originals", "duplicates")
#: Sources that are listed.
_SOURCES = 25


def arrival_charts(arrivals: Arrivals) -> list[Chart]:
    """Return the charts of when items came, how long after what they repeat, and from where."""
    charts = [_by_time(arrivals)]
    charts += [_by_lag(arrivals.lags)] if arrivals.lags else []
    return charts + ([_by_source(arrivals.sources)] if arrivals.sources else [])


def _by_time(arrivals: Arrivals) -> Chart:
    import altair as alt

    rows: list[dict[str, Any]] = []
    for begin, end, originals, duplicates in arrivals.stretches:
        for kind, low, high in ((KINDS[0], 0, originals), (KINDS[1], originals, originals + duplicates)):
            row = {"begin": begin, "end": end, "kind": kind, "low": low, "high": high}
            rows.append(row | {"originals": originals, "duplicates": duplicates})
    originals = sum(one[2] for one in arrivals.stretches)
    duplicates = sum(one[3] for one in arrivals.stretches)
    # A line around it shows a bar where there are so many that it is narrower than a dot.
    drawn = alt.Chart(alt.Data(values=rows)).mark_rect(strokeWidth=0.7)
    drawn = drawn.encode(
        x=alt.X("begin:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=time_axis()),
        x2="end:T",
        y=alt.Y("low:Q", title=f"items per {arrivals.step}", axis=count_axis(max(row["high"] for row in rows))),
        y2="high:Q",
        color=alt.Color("kind:N", **kinds_of(KINDS)),
        stroke=alt.Stroke("kind:N", **kinds_of(KINDS)),
        tooltip=tooltips(begin=("", "from"), **{kind: (",", kind) for kind in KINDS}),
    )
    return Chart(
        key="arrived",
        title=f"What arrived, by {arrivals.step}",
        note="by the time that items were judged by (UTC); stretches in which nothing came have no bar",
        told=f"Originals and duplicates by {arrivals.step}, from {arrivals.stretches[0][0]} to "
        f"{arrivals.stretches[-1][1]}: {originals:,} originals and {duplicates:,} duplicates.",
        specification=finished(drawn),
        behind=table(["from (UTC)", *KINDS], [[one[0], one[2], one[3]] for one in arrivals.stretches], tall=True),
    )


def _by_lag(lags: Sequence[tuple[str, int]]) -> Chart:
    import altair as alt

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
    drawn = bars(rows, "count", "duplicates", max(count for _, count in lags), tooltip)
    shares = drawn.mark_text(align="left", dx=5).encode(text="share:N")
    return Chart(
        key="lag",
        title="How long after its original a duplicate came",
        note=f"the percentages are shares of {total:,} duplicates; the figures also add them up from the top, to what "
        "a shorter window would have seen",
        told=f"Of {total:,} duplicates, half came no later than {half} after what they repeat.",
        specification=finished(alt.layer(drawn, shares), height=24 * len(rows) + 50),
        behind=table(
            ["after the original", "duplicates", "share", "share up to here"],
            [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
        ),
    )


def _by_source(sources: Sequence[tuple[str, int, int]]) -> Chart:
    import altair as alt

    rows = [(name or "(the inbox itself)", items, duplicates) for name, items, duplicates in sources]
    cut = f"; the {_SOURCES} with most items of {len(rows):,}" if len(rows) > _SOURCES else ""
    most, listed = max(rows, key=lambda row: row[2]), rows[:_SOURCES]
    parts = [
        {"name": name, "items": items, "duplicates": gone, "share": gone / items, "kind": kind, "count": count}
        for name, items, gone in listed
        for kind, count in zip(KINDS, (items - gone, gone), strict=True)
    ]
    tooltip = tooltips(
        name=("", "folder"), items=(",", "items"), duplicates=(",", "duplicates"), share=(".1%", "share of duplicates")
    )
    drawn = bars(parts, "count", "items", max(items for _, items, _ in rows), tooltip).encode(
        color=alt.Color("kind:N", **kinds_of(KINDS)), order=alt.Order("kind:N", sort="descending")
    )
    return Chart(
        key="sources",
        title="Duplicates by source",
        note=f"by the folder that items came in{cut}",
        told=f"Most duplicates, {most[2]:,} of {most[1]:,} items, came in {most[0]}.",
        specification=finished(drawn, height=24 * len(listed) + 70),
        behind=table(
            ["folder", "items", "duplicates", "share"],
            [[name, items, gone, f"{gone / items:.1%}"] for name, items, gone in listed],
            tall=True,
        ),
    )
