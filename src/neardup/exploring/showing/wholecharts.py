"""The charts of a whole corpus: what each threshold would give, how that grows, how long documents are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neardup.exploring.showing.charts import logarithmic, rule_at
from neardup.exploring.telling import counted, rate, share
from neardup.pages.charts import COLOURS, count_axis, finished
from neardup.pages.parts import Chart, Html, bar, table

if TYPE_CHECKING:
    from neardup.exploring.curve import Curve, Point
    from neardup.exploring.growth import Growth, Size
    from neardup.exploring.makeup import Lengths

_HEIGHT = 300
#: Lengths in so few bins are marked where these begin: between them an axis would mark parts of a word.
_FEW_BINS = 8
_FIRST, _DRAWN = "the first of the input", "drawn at random"


def pairs_by_threshold(curve: Curve, advised: float) -> Chart:
    """Return how many pairs of the corpus each threshold would give."""
    known = [point for point in curve.points if point.pairs is not None]
    rows = [{"threshold": point.threshold, "number": point.pairs} for point in known if point.pairs]
    note = "Logarithmic." + ("" if curve.complete else f" Known from {curve.lowest:g} on." if known else "")
    told = f"Matching pairs of the whole corpus by threshold, on a logarithmic scale{_ends(known, 'pairs')}"
    return Chart(
        "pairs-by-threshold",
        "Pairs of the whole corpus",
        note,
        told,
        _stepped(rows, logarithmic("number", "matching pairs"), "matching pairs", COLOURS[0], advised, curve),
        points_table(curve, curve.points, advised, tall=True),
    )


def dropped_by_threshold(curve: Curve, advised: float) -> Chart:
    """Return how many documents of the corpus each threshold would drop."""
    import altair as alt

    rows = [{"threshold": point.threshold, "number": point.dropped} for point in curve.points]
    y = alt.Y(
        "number:Q",
        title="dropped documents",
        axis=count_axis(max(point.dropped for point in curve.points)),
        scale=alt.Scale(zero=True),
    )
    told = f"Documents that each threshold would drop{_ends(curve.points, 'dropped')}, of {curve.documents:,}"
    return Chart(
        "dropped-by-threshold",
        "Dropped documents",
        f"Of {counted(curve.documents, 'document')}, exact copies among them.",
        told,
        _stepped(rows, y, "dropped documents", COLOURS[1], advised, curve),
        points_table(curve, curve.points, advised, tall=True),
        "" if any(point.dropped for point in curve.points) else "no threshold would drop a document",
    )


def points_table(curve: Curve, points: Sequence[Point], advised: float, *, tall: bool = False) -> Html:
    """Return what thresholds would give, as a table; the advised one stands out."""
    rows = [
        [f"{point.threshold:g}", point.pairs, point.families, point.largest_family, point.dropped, _part(point, curve)]
        for point in points
    ]
    head = ["threshold", "pairs", "families", "largest family", "dropped", "of all"]
    best = {at for at, point in enumerate(points) if point.threshold == advised}
    return table(head, rows, caption="What each threshold would give", tall=tall, best=best, left=0)


def _part(point: Point, curve: Curve) -> Html:
    return bar(point.dropped / max(curve.documents, 1), share(point.dropped, curve.documents))


def _stepped(rows: Sequence[Any], y: Any, name: str, colour: str, advised: float, curve: Curve) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=[curve.points[0].threshold, 1], nice=False)
    chart = alt.Chart(alt.Data(values=list(rows))).encode(x=alt.X("threshold:Q", title="threshold", scale=scale), y=y)
    told = [alt.Tooltip("threshold:Q", format="~g"), alt.Tooltip("number:Q", format=",", title=name)]
    line = chart.mark_line(color=colour, strokeWidth=2)
    unseen = chart.mark_circle(size=120, opacity=0).encode(tooltip=told)
    return finished(alt.layer(*rule_at(advised, "advised", scale), line, unseen), height=_HEIGHT)


def _ends(points: Sequence[Point], name: str) -> str:
    """Return the figures at the lowest and highest thresholds."""
    if not points:
        return ""
    ends = [f"{getattr(point, name):,} at {point.threshold:g}" for point in (points[0], points[-1])]
    return f": {' and '.join(ends)}"


def growing_density(growth: Growth) -> Chart:
    """Return how dense matching pairs are among ever more documents."""
    import altair as alt

    y = alt.Y(
        "value:Q",
        title="matching pairs per million",
        axis=alt.Axis(format=",.3~r", tickCount=5),
        scale=alt.Scale(zero=True),
    )
    return Chart(
        "growing-density",
        "Density of pairs",
        "The number of documents is logarithmic.",
        f"Matching pairs per million pairs by number of documents. {growth.sentence}",
        _growing(growth, y, lambda size: size.per_million, "pairs per million", ",.3~r"),
        growth_table(growth),
    )


def growing_share(growth: Growth) -> Chart:
    """Return which part would be dropped of ever more documents."""
    import altair as alt

    y = alt.Y("value:Q", title="dropped, of all documents", axis=alt.Axis(format="~%"), scale=alt.Scale(zero=True))
    return Chart(
        "growing-share",
        "Share of dropped documents",
        "The number of documents is logarithmic.",
        f"The share of documents that would be dropped by number of documents. {growth.sentence}",
        _growing(growth, y, lambda size: size.share, "dropped", ".2%"),
        growth_table(growth),
    )


def growth_table(growth: Growth) -> Html:
    """Return the figures of a growing corpus."""
    rows = []
    for one, other in zip(growth.first, growth.drawn, strict=True):
        cells: list[object] = [f"{one.documents:,}"]
        for size in (one, other):
            cells += [size.pairs, rate(size.per_million), size.dropped, share(size.dropped, size.documents)]
        rows.append(cells)
    each = ["pairs", "per million", "dropped", "of all"]
    head = ["documents", *(f"{name}, {kind}" for kind in ("first", "random") for name in each)]
    caption = f"Of the first documents of the input, and of as many drawn at random; threshold {growth.threshold:g}"
    return table(head, rows, caption=caption, left=0)


def _growing(growth: Growth, y: Any, value: Any, name: str, form: str) -> dict[str, Any]:
    import altair as alt

    def rows_of(sizes: Sequence[Size], which: str) -> list[dict[str, Any]]:
        return [{"documents": size.documents, "value": value(size), "which": which} for size in sizes]

    values = [*rows_of(growth.first, _FIRST), *rows_of(growth.drawn, _DRAWN)]
    named = alt.Legend(title=None, orient="bottom")
    kinds = alt.Scale(domain=[_FIRST, _DRAWN], range=[COLOURS[0], COLOURS[1]])
    sizes = [size.documents for size in growth.first]
    chart = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X(
            "documents:Q",
            title="documents (logarithmic)",
            scale=alt.Scale(type="log", domain=[sizes[0], sizes[-1]], nice=False, padding=10),
            axis=alt.Axis(values=sizes, format=",d", grid=False),
        ),
        y=y,
        color=alt.Color("which:N", scale=kinds, legend=named),
    )
    shapes = alt.Shape("which:N", scale=alt.Scale(domain=[_FIRST, _DRAWN], range=["circle", "square"]), legend=named)
    told = [alt.Tooltip("which:N", title="documents"), alt.Tooltip("documents:Q", format=",", title="how many")]
    told.append(alt.Tooltip("value:Q", format=form, title=name))
    points = chart.mark_point(filled=True, size=60, opacity=1).encode(shape=shapes, tooltip=told)
    return finished(alt.layer(chart.mark_line(strokeWidth=2), points), height=_HEIGHT)


def lengths_chart(lengths: Lengths, key: str) -> Chart:
    """Return how many documents are how long."""
    import altair as alt

    bins = zip(lengths.edges, lengths.edges[1:], lengths.counts, strict=False)
    rows = [{"low": low, "high": high, "documents": count, "none": 0} for low, high, count in bins]
    chart = alt.Chart(alt.Data(values=[row for row in rows if row["documents"]])).mark_rect(color=COLOURS[2])
    few = len(lengths.edges) <= _FEW_BINS
    edge = alt.Axis(format=",d", values=list(lengths.edges)) if few else alt.Axis(format="~s", tickCount=8)
    told = [alt.Tooltip("low:Q", format=",", title="from"), alt.Tooltip("high:Q", format=",", title="below")]
    drawn = chart.encode(
        x=alt.X("low:Q", title=f"{lengths.unit} (logarithmic)", scale=alt.Scale(type="log", nice=False), axis=edge),
        x2="high:Q",
        y=alt.Y("documents:Q", title="documents", axis=count_axis(max(lengths.counts))),
        y2="none:Q",
        tooltip=[*told, alt.Tooltip("documents:Q", format=",")],
    )
    behind = table(
        [f"{lengths.unit} from", "below", "documents"],
        [[f"{row['low']:,}", row["high"], row["documents"]] for row in rows],
        caption=f"Documents by their length in {lengths.unit}",
        tall=True,
        left=0,
    )
    middle = dict(lengths.quantiles)[0.5]
    told_of = f"Documents by their length in {lengths.unit}, logarithmic: the middle one has {middle:,}"
    return Chart(
        key,
        f"Lengths in {lengths.unit}",
        f"Of {counted(lengths.documents, 'document')}; {lengths.empty:,} empty, {lengths.one:,} of one.",
        told_of,
        finished(drawn, height=220),
        behind,
    )
