"""The charts of a report: how alike dropped documents and their keepers are, and what other thresholds would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neardup.pages.charts import COLOURS, FAINT, count_axis, finished, log_counts
from neardup.pages.parts import Chart, table
from neardup.reporting.model import BINS, Report, Sweep
from neardup.reporting.wording import Wording

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
