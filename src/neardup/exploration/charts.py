"""The charts of an exploration: histograms of similarity, thresholds, and lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from neardup.exploration.messages import threshold_name
from neardup.exploration.views import BINS, CUTOFFS, View, per_million
from neardup.pages import html
from neardup.pages.charts import (
    COLOURS,
    FAINT_COLOUR,
    LOG_FLOOR,
    Plot,
    count_axis,
    decade_ticks,
    empty_plot,
    finish_chart,
    histogram,
    hover_marks,
    label_side,
    line,
    log_axis,
    log_count_axis,
    similarity_axis,
    threshold_rule,
    tooltips,
)
from neardup.pages.html import Chart, Html
from neardup.pages.numbers import format_count, format_rate, format_share

if TYPE_CHECKING:
    from neardup.exploration.advice import Advice
    from neardup.exploration.curve import Curve, Point
    from neardup.exploration.profile import Lengths

#: Colours from the shortest n-grams to the longest; legible on white and on near-black.
_RAMP = ("#e0a22e", "#e07b39", "#d8525a", "#bf4a92", "#9157bd", "#5f6bd8", "#2f90c8")
#: Bins per step of overlaid histograms; more if there are few pairs, because single bins would be noisy.
_BINS_PER_STEP, _BINS_PER_STEP_OF_FEW, _FEW_PAIRS = 2, 5, 500_000
_NONE_SHARED = "no two documents of the sample have anything in common"
_IS_HIGHLIGHTED = "highlight == '' || datum.view == highlight"


def view_colours(views: Sequence[View]) -> list[str]:
    """Return a colour for each view: along a ramp by n, with another one for weights; distinct ones for recipes."""
    if any(view.n is None for view in views):
        return [COLOURS[at % len(COLOURS)] for at in range(len(views))]
    last = max(sum(not view.recipe.is_weighted for view in views) - 1, 1)
    ramp = (_RAMP[round(at * (len(_RAMP) - 1) / last)] for at in range(last + 1))
    return [COLOURS[2] if view.recipe.is_weighted else next(ramp) for view in views]


def similarity_chart(views: Sequence[View], advised: View | None = None, advice: Advice | None = None) -> Plot:
    """Return the overlaid histograms of views with a legend, the advised one thicker, and a rule at its threshold."""
    if not _any_shared(views):
        return empty_plot(_NONE_SHARED)
    data = {"steps": _step_rows(views, advised, _bins_per_step(views)), "valley": []}
    has_advised_view = any(view is advised for view in views)
    plot: Plot = _histogram_layers(
        advice, _highest_step(views), chosen=has_advised_view, legend_views=views
    ).properties(datasets=data)
    return plot


def histogram_chart(key: str, title: str, views: Sequence[View], advice: Advice, advised: View | None) -> Chart:
    """Return the overlaid histograms of views, the advised one thicker, the valley shaded."""
    has_advised_view = any(view is advised for view in views)
    bins_per_step = _bins_per_step(views)
    note = f"Each line is a histogram in steps of {bins_per_step / BINS:g}; pairs that share nothing are left out."
    if has_advised_view and advice.valley is not None:
        where = "whole corpus" if advice.whole else "sample"
        note += f" Shaded: the valley of {advice.features} in the {where}, the sparse range above unrelated pairs."
    nothing = [f"{format_share(view.zero, view.pairs)} of {view.name}" for view in (views[0], views[-1])]
    description = (
        f"Numbers of pairs on a logarithmic scale by similarity from 0 to 1, a line each for "
        f"{', '.join(view.name for view in views)}; of {format_count(views[0].pairs, 'pair')} "
        f"{' and '.join(dict.fromkeys(nothing))} share nothing"
    )
    plot = finish_chart(
        _histogram_layers(advice if has_advised_view else None, _highest_step(views), chosen=has_advised_view),
        height=340,
    )
    data = {
        "steps": _step_rows(views, advised, bins_per_step),
        "valley": _valley_rows(advice) if has_advised_view else [],
    }
    data_table, missing = _bins_table(views, bins_per_step), "" if _any_shared(views) else _NONE_SHARED
    return Chart(key, title, note, description, plot | {"datasets": data}, data_table, missing)


def _any_shared(views: Sequence[View]) -> bool:
    return any(any(view.counts) for view in views)


def _highest_step(views: Sequence[View]) -> int:
    return max(pairs for view in views for _, _, pairs in _merge_bins(view, _bins_per_step(views)))


def _bins_per_step(views: Sequence[View]) -> int:
    return _BINS_PER_STEP if max(view.pairs for view in views) >= _FEW_PAIRS else _BINS_PER_STEP_OF_FEW


def _histogram_layers(advice: Advice | None, most: int, *, chosen: bool, legend_views: Sequence[View] = ()) -> Plot:
    """Return outlines of histograms over a shaded valley, the chosen one filled, with a rule at an advised threshold.

    The data sets are ``steps`` (``_step_rows``), with up to ``most`` pairs in a step, and ``valley``
    (``_valley_rows``). The legend has the ``legend_views``.
    """
    style = _line_style(legend_views)
    x, y = similarity_axis("low", "similarity of a pair"), log_count_axis("shown", "pairs (logarithmic)", most=most)
    valley = alt.Chart(alt.NamedData(name="valley")).encode(x=x)
    chart = alt.Chart(alt.NamedData(name="steps")).encode(x=x, y=y, **style)
    area = alt.Chart(alt.NamedData(name="steps")).transform_filter("datum.chosen").mark_area(interpolate="step-after")
    filled = area.encode(x=x, y=y, y2=alt.YDatum(LOG_FLOOR), color=style["color"], opacity=alt.value(0.12))
    # A line has no tooltip for each step, so invisible points in the middle of the steps carry them.
    description = tooltips(view=("", "compared"), low=(".2f", "above"), high=(".2f", "up to"), pairs=(",", "pairs"))
    layers = [
        valley.mark_rect(color=FAINT_COLOUR, opacity=0.16, clip=True).encode(x2="high:Q"),
        valley.mark_text(baseline="top", dy=22, fontSize=12, **label_side(advice.threshold if advice else 0.0)).encode(
            x="name_at:Q", y=alt.value(0), text="name:N"
        ),
        *([] if advice is None else threshold_rule(advice.threshold, threshold_name(advice))),
        # Without rows its extent would be undefined.
        *([filled] if chosen else []),
        chart.mark_line(interpolate="step-after", strokeJoin="round"),
        hover_marks(chart, description).encode(x="middle:Q"),
    ]
    return Plot(layer=layers)


def _step_rows(views: Sequence[View], chosen: View | None, bins_per_step: int) -> list[dict[str, Any]]:
    """Return rows for the steps of each histogram; a last row ends the line at 1."""
    rows = []
    # The chosen one comes last, to be drawn over the others.
    for view, colour in sorted(zip(views, view_colours(views), strict=True), key=lambda one: one[0] is chosen):
        view_fields = {"view": view.name, "colour": colour, "chosen": view is chosen}
        bins = list(_merge_bins(view, bins_per_step))
        for low, high, pairs in [*bins, (1.0, 1.0, bins[-1][2])]:
            step = {"low": low, "high": high, "middle": (low + high) / 2, "pairs": pairs}
            rows.append(view_fields | step | {"shown": max(pairs, LOG_FLOOR)})
    return rows


def _valley_rows(advice: Advice) -> list[dict[str, Any]]:
    """Return a row for the shaded valley, with its name below that of the threshold, whose rule would cross it."""
    valley = advice.valley
    if valley is None:
        return []
    name = "valley" if valley.clear else "valley, not clear"
    return [{"low": valley.low, "high": valley.high, "name": name, "name_at": advice.threshold}]


def _merge_bins(view: View, bins_per_step: int) -> Iterator[tuple[float, float, int]]:
    for at in range(0, BINS, bins_per_step):
        yield at / BINS, (at + bins_per_step) / BINS, sum(view.counts[at : at + bins_per_step])


def _line_style(legend_views: Sequence[View] = ()) -> dict[str, Any]:
    """Return colour and width of lines, with a legend of the given views.

    Without them the legend of the page makes all lines but one faint.
    """
    width = alt.condition("datum.chosen", alt.value(3), alt.value(1.4))
    if legend_views:
        scale = alt.Scale(domain=[view.name for view in legend_views], range=view_colours(legend_views))
        # Without an opacity of its own the legend takes that of the filled area.
        legend = alt.Legend(title=None, symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2)
        return {"color": alt.Color("view:N", scale=scale, legend=legend), "strokeWidth": width}
    opacity = alt.condition(_IS_HIGHLIGHTED, alt.value(1), alt.value(0.12))
    colour = alt.Color("colour:N", scale=None)
    return {"color": colour, "detail": "view:N", "opacity": opacity, "strokeWidth": width}


def _bins_table(views: Sequence[View], bins_per_step: int) -> Any:
    """Return the figures of histograms as a table of steps, without those that are empty everywhere."""
    bins_of_views = [list(_merge_bins(view, bins_per_step)) for view in views]
    rows: list[list[object]] = [["0, nothing shared", *(view.zero for view in views)]]
    for bins in zip(*bins_of_views, strict=True):
        if any(pairs for _, _, pairs in bins):
            low, high, _ = bins[0]
            rows.append([f"{low:.2f} to {high:.2f}", *(pairs for _, _, pairs in bins)])
    head = ["similarity above, up to", *(view.name for view in views)]
    return html.table(head, rows, caption="Pairs of the sample by similarity", tall=True)


def cutoffs_table(views: Sequence[View], advised: View | None) -> Html:
    """Return a table of pairs per million at or above each cutoff."""
    head = ["compared", *(f">= {cutoff:g}" for cutoff in CUTOFFS), "= 1"]
    rows = [
        [view.name, *(format_rate(per_million(pairs, view.pairs)) for _, pairs in (*view.above, (1, view.equal)))]
        for view in views
    ]
    best = {at for at, view in enumerate(views) if view is advised}
    return html.table(head, rows, caption="Pairs per million at or above each cutoff", highlighted=best)


_CHART_HEIGHT = 240
#: Up to this many bins of lengths get their edges as ticks; otherwise the axis would have fractions of a word.
_FEW_BINS = 8


def threshold_charts(curve: Curve, advice: Advice) -> list[Chart]:
    """Return the charts of pairs and of dropped documents of the corpus by threshold."""
    most_pairs = max(point.pairs or 0 for point in curve.points)
    most_dropped = max(point.dropped for point in curve.points)
    pairs = Chart(
        "pairs-by-threshold",
        "Pairs of the whole corpus",
        "The axis of pairs is logarithmic.",
        f"Matching pairs of the whole corpus by threshold, on a logarithmic scale{_end_figures(curve.points, 'pairs')}",
        _threshold_plot(
            [{"threshold": point.threshold, "number": point.pairs} for point in curve.points if point.pairs],
            log_count_axis("number", "matching pairs", most=most_pairs),
            "matching pairs",
            COLOURS[0],
            advice,
            curve,
        ),
        points_table(curve, curve.points, advice, tall=True),
        "" if most_pairs else "no two documents match at any of these thresholds",
    )
    dropped = Chart(
        "dropped-by-threshold",
        "Dropped documents",
        f"Of {format_count(curve.documents, 'document')}, including exact copies.",
        f"Documents that each threshold would drop{_end_figures(curve.points, 'dropped')}, of {curve.documents:,}",
        _threshold_plot(
            [{"threshold": point.threshold, "number": point.dropped} for point in curve.points],
            alt.Y("number:Q", title="dropped documents", axis=count_axis(most_dropped), scale=alt.Scale(zero=True)),
            "dropped documents",
            COLOURS[1],
            advice,
            curve,
        ),
        points_table(curve, curve.points, advice, tall=True),
        "" if most_dropped else "no threshold would drop a document",
    )
    return [pairs, dropped]


def points_table(curve: Curve, points: Sequence[Point], advice: Advice, *, tall: bool = False) -> Html:
    """Return a table of the results of thresholds; the advised one is highlighted."""
    rows = [
        [
            f"{point.threshold:g}",
            point.pairs,
            point.families,
            point.largest_family,
            point.dropped,
            _share_bar(point, curve),
        ]
        for point in points
    ]
    head = ["threshold", "pairs", "families", "largest family", "dropped", "of all"]
    best = {at for at, point in enumerate(points) if point.threshold == advice.threshold}
    return html.table(head, rows, caption="What each threshold would give", tall=tall, highlighted=best, text_columns=0)


def _share_bar(point: Point, curve: Curve) -> Html:
    return html.bar(point.dropped / curve.documents, format_share(point.dropped, curve.documents))


def _threshold_plot(
    rows: Sequence[Any], y: Any, name: str, colour: str, advice: Advice, curve: Curve
) -> dict[str, Any]:
    x = similarity_axis("threshold", "threshold", lowest=curve.points[0].threshold)
    plot = line(rows, x, y, tooltips(threshold=("~g", "threshold"), number=(",", name)), colour)
    # The name stands at the bottom, because the line falls from the left.
    rule = threshold_rule(advice.threshold, threshold_name(advice), low=True)
    return finish_chart(alt.layer(*rule, *plot), height=_CHART_HEIGHT)


def _end_figures(points: Sequence[Point], name: str) -> str:
    ends = [f"{getattr(point, name):,} at {point.threshold:g}" for point in (points[0], points[-1])]
    return f": {' and '.join(ends)}"


def lengths_chart(lengths: Lengths) -> Chart:
    """Return the chart of documents by length."""
    bins = zip(lengths.edges, lengths.edges[1:], lengths.counts, strict=False)
    rows = [{"low": low, "high": high, "documents": count, "none": 0} for low, high, count in bins]
    has_few_bins = len(lengths.edges) <= _FEW_BINS
    ticks = list(lengths.edges) if has_few_bins else decade_ticks(lengths.edges[0], lengths.edges[-1])
    axis = log_axis(ticks, format=",d" if has_few_bins else "~s")
    scale = alt.Scale(type="log", nice=False)
    plot = histogram(
        [row for row in rows if row["documents"]],
        alt.X("low:Q", title="words (logarithmic)", scale=scale, axis=axis),
        alt.Y("documents:Q", title="documents", axis=count_axis(max(lengths.counts))),
        tooltips(low=(",", "from"), high=(",", "below"), documents=(",", "documents")),
    )
    data_table = html.table(
        ["words from", "below", "documents"],
        [[f"{row['low']:,}", row["high"], row["documents"]] for row in rows],
        caption="Documents by their length in words",
        tall=True,
        text_columns=0,
    )
    middle = dict(lengths.quantiles)[0.5]
    description = f"Documents by their length in words, logarithmic: the median is {middle:,}"
    return Chart(
        "lengths",
        "Lengths in words",
        f"Of {format_count(lengths.documents, 'document')}: {lengths.empty:,} empty, {lengths.one:,} of one word.",
        description,
        finish_chart(plot, height=180),
        data_table,
    )
