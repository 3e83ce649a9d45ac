"""The charts of a report: similarities, other thresholds, and when and where the items of a flow came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from neardup.pages.charts import COLOURS, FAINT, count_axis, finished, log_counts, time_axis
from neardup.pages.html import Chart, table
from neardup.pages.report import BINS, Arrivals, Report, Sweep, Wording

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
    """Return the charts of a report, with the tables behind them, and those that its slider moves."""
    found = [_to_keepers(report)] if any(report.similarity) else []
    moving: list[Chart] = []
    if report.sweep is not None and len(report.sweep.thresholds) > 1:
        moving += [_of_pairs(report)] if any(report.pair_similarity) else []
        moving.append(_of_thresholds(report.sweep, report.wording))
    return [*found, *(arrival_charts(report.arrivals) if report.arrivals else [])], moving


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
        "" if any(sweep.dropped) else f"no {wording.gone} at any of these thresholds",
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
    rows: list[dict[str, Any]] = []
    for begin, end, originals, duplicates in arrivals.stretches:
        for kind, low, high in ((KINDS[0], 0, originals), (KINDS[1], originals, originals + duplicates)):
            row = {"begin": begin, "end": end, "kind": kind, "low": low, "high": high}
            rows.append(row | {"originals": originals, "duplicates": duplicates})
    originals = sum(one[2] for one in arrivals.stretches)
    duplicates = sum(one[3] for one in arrivals.stretches)
    ends = arrivals.stretches[0][0], arrivals.stretches[-1][1]
    return Chart(
        key="arrived",
        title=f"What arrived, by {arrivals.step}",
        note="by the time that items were judged by (UTC); stretches in which nothing came have no bar",
        told=f"Originals and duplicates by {arrivals.step}, from {ends[0]} to {ends[1]}: {originals:,} originals and "
        f"{duplicates:,} duplicates.",
        specification=_time_chart(rows, f"items per {arrivals.step}", max(row["high"] for row in rows)),
        behind=table(["from (UTC)", *KINDS], [[one[0], one[2], one[3]] for one in arrivals.stretches], tall=True),
    )


def _time_chart(rows: Sequence[Mapping[str, Any]], title: str, most: int) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=list(KINDS), range=list(COLOURS[:2]))
    legend = alt.Legend(title=None, orient="top")
    told = [alt.Tooltip("begin:N", title="from"), *(alt.Tooltip(f"{kind}:Q", format=",") for kind in KINDS)]
    # A line around it shows a bar where there are so many that it is narrower than a dot.
    chart = alt.Chart(alt.Data(values=list(rows))).mark_rect(strokeWidth=0.7)
    return finished(
        chart.encode(
            x=alt.X("begin:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=time_axis()),
            x2="end:T",
            y=alt.Y("low:Q", title=title, axis=count_axis(most)),
            y2="high:Q",
            color=alt.Color("kind:N", scale=scale, legend=legend),
            stroke=alt.Stroke("kind:N", scale=scale, legend=legend),
            tooltip=told,
        )
    )


def _by_lag(lags: Sequence[tuple[str, int]]) -> Chart:
    total = sum(count for _, count in lags)
    reached = [count / total for count in accumulate(count for _, count in lags)]
    rows = [
        {"name": name, "count": count, "share": f"{count / total:.0%}", "reached": f"{part:.0%}"}
        for (name, count), part in zip(lags, reached, strict=True)
    ]
    half = next(name for (name, _), part in zip(lags, reached, strict=True) if part >= 0.5)
    return Chart(
        key="lag",
        title="How long after its original a duplicate came",
        note=f"the percentages are shares of {total:,} duplicates. Added up from the top, as in the figures, they say "
        "what a shorter window would have seen; a longer one finds what comes later still",
        told=f"Of {total:,} duplicates, half came no later than {half} after what they repeat.",
        specification=_lag_chart(rows),
        behind=table(
            ["after the original", "duplicates", "share", "share up to here"],
            [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
        ),
    )


def _lag_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import altair as alt

    bars = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("count:Q", title="duplicates", axis=count_axis(max(row["count"] for row in rows))),
        y=alt.Y("name:N", title=None, sort=None),
        tooltip=[
            alt.Tooltip("name:N", title="after the original"),
            alt.Tooltip("count:Q", format=",", title="duplicates"),
            alt.Tooltip("share:N"),
            alt.Tooltip("reached:N", title="share up to here"),
        ],
    )
    said = bars.mark_text(align="left", dx=5).encode(text="share:N")
    return finished(alt.layer(bars.mark_bar(color=COLOURS[1]), said), height=24 * len(rows) + 50)


def _by_source(sources: Sequence[tuple[str, int, int]]) -> Chart:
    rows: list[dict[str, Any]] = [
        {"name": name or "(the inbox itself)", "items": items, "duplicates": duplicates}
        for name, items, duplicates in sources
    ]
    cut = f"; the {_SOURCES} with most items of {len(rows):,}" if len(rows) > _SOURCES else ""
    most = max(rows, key=lambda row: row["duplicates"])
    listed = [
        [row["name"], row["items"], row["duplicates"], f"{row['duplicates'] / row['items']:.1%}"]
        for row in rows[:_SOURCES]
    ]
    return Chart(
        key="sources",
        title="Duplicates by source",
        note=f"by the folder that items came in, as they were taken{cut}",
        told=f"Most duplicates, {most['duplicates']:,} of {most['items']:,} items, came in {most['name']}.",
        specification=_source_chart(rows[:_SOURCES]),
        behind=table(["folder", "items", "duplicates", "share"], listed, tall=True),
    )


def _source_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import altair as alt

    parts = []
    for row in rows:
        originals = row["items"] - row["duplicates"]
        for kind, count in zip(KINDS, (originals, row["duplicates"]), strict=True):
            parts.append(dict(row) | {"kind": kind, "count": count, "share": row["duplicates"] / row["items"]})
    chart = alt.Chart(alt.Data(values=parts)).mark_bar()
    return finished(
        chart.encode(
            x=alt.X("count:Q", title="items", axis=count_axis(max(row["items"] for row in rows))),
            y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=200)),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=list(KINDS), range=list(COLOURS[:2])),
                legend=alt.Legend(title=None, orient="top"),
            ),
            order=alt.Order("kind:N", sort="descending"),
            tooltip=[
                alt.Tooltip("name:N", title="folder"),
                alt.Tooltip("items:Q", format=","),
                alt.Tooltip("duplicates:Q", format=","),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        ),
        height=24 * len(rows) + 70,
    )
