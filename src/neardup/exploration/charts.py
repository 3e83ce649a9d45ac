"""The charts of what a sample shows: histograms with logarithmic counts, and pairs above each cutoff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neardup.exploration.messages import valley_in_short
from neardup.exploration.views import BINS, CUTOFFS, View, per_million
from neardup.pages.charts import COLOURS, FAINT, count_axis, finished
from neardup.pages.html import Chart, Html, bar, table
from neardup.pages.numbers import counted, rate, share

if TYPE_CHECKING:
    import altair as alt

    from neardup.exploration.advice import Advice
    from neardup.exploration.curve import Curve, Point
    from neardup.exploration.profile import Lengths
    from neardup.exploration.valley import Valley
    from neardup.pages.plot import Plot

#: From the shortest n-grams to the longest; legible on white and on near-black.
RAMP = ("#e0a22e", "#e07b39", "#d8525a", "#bf4a92", "#9157bd", "#5f6bd8", "#2f90c8")
#: So many bins are one where histograms lie over each other; more where there are fewer pairs, which would jump.
_TOGETHER, _TOGETHER_FEW, _FEW_PAIRS = 2, 5, 500_000
#: The lowest line of a logarithmic axis, for a logarithm of nothing.
_NOTHING = 0.5
TENTHS = [at / 10 for at in range(11)]
_UNLIKE = "no two documents of the sample have anything in common"
_SHOWN = "highlight == '' || datum.view == highlight"


def views_colours(views: Sequence[View]) -> list[str]:
    """Return a colour for each view: along a ramp by n, or one that tells names apart; weighted ones have their own."""
    if any(view.n is None for view in views):
        return [COLOURS[at % len(COLOURS)] for at in range(len(views))]
    last = max(sum(not view.recipe.is_weighted for view in views) - 1, 1)
    ramp = (RAMP[round(at * (len(RAMP) - 1) / last)] for at in range(last + 1))
    return [COLOURS[2] if view.recipe.is_weighted else next(ramp) for view in views]


def similarity_chart(
    views: Sequence[View],
    *,
    advised: View | None = None,
    valley: Valley | None = None,
    threshold: float | None = None,
    named: bool = True,
) -> Plot:
    """Return the histograms of views over each other, with logarithmic counts.

    Parameters
    ----------
    views : sequence of View
        A line each.
    advised : View, optional
        The one that is drawn thicker.
    valley : Valley, optional
        A stretch that is shaded.
    threshold : float, optional
        Where a rule stands.
    named : bool
        Whether the chart has a legend of its own.
    """
    from neardup.pages.plot import nothing

    if not any_alike(views):
        return nothing(_UNLIKE)
    chosen = next((view for view in views if view is advised), None)
    drawn: Plot = _over_each_other(views, chosen, valley, threshold, named=named).properties(
        datasets={"steps": _steps(views, chosen)}
    )
    return drawn


def overlaid(key: str, title: str, views: Sequence[View], advice: Advice | None, advised: View | None) -> Chart:
    """Return the histograms of views over each other, the advised one drawn thicker, the valley shaded."""
    chosen = next((view for view in views if view is advised), None)
    valley = None if advice is None or chosen is None else advice.valley
    together = _together(views)
    note = f"Each line is a histogram in steps of {together / BINS:g}; pairs that share nothing are in none of them."
    if valley is not None and advice is not None:
        where = "whole corpus" if advice.whole else "sample"
        note += f" Shaded: the valley of {advice.features} in the {where}."
    told = (
        f"Numbers of pairs on a logarithmic scale by similarity from 0 to 1, a line each for "
        f"{', '.join(view.name for view in views)}; {_range_told(views)}"
    )
    cut = None if advice is None or chosen is None else advice.threshold
    drawn = finished(_over_each_other(views, chosen, valley, cut, named=False), height=400)
    behind = _bins_table(views, together)
    steps = {"datasets": {"steps": _steps(views, chosen)}}
    return Chart(key, title, note, told, drawn | steps, behind, "" if any_alike(views) else _UNLIKE)


def apart(prefix: str, views: Sequence[View], advised: View | None) -> list[Chart]:
    """Return a small histogram for each view, all on the same scales, each with its valley shaded."""
    # They differ in their rows alone, and to make a chart takes longer than all that is counted in it.
    drawn = finished(_bars(max((count for view in views for count in view.counts), default=1)), height=170)
    found = []
    for at, (view, colour) in enumerate(zip(views, views_colours(views), strict=True)):
        note = f"{share(view.zero, view.pairs)} share nothing; valley {valley_in_short(view)}"
        told = (
            f"Numbers of pairs of {view.name} on a logarithmic scale by similarity from 0 to 1: {view.zero:,} of "
            f"{view.pairs:,} share nothing, {view.equal:,} have similarity 1"
        )
        rows = [
            {"view": view.name, "low": low, "high": high, "pairs": pairs, "none": _NOTHING, "colour": colour}
            for low, high, pairs in _binned(view, 1)
            if pairs
        ]
        valley = [] if view.valley is None else [{"low": view.valley.low, "high": view.valley.high}]
        title = f"{view.name}, advised" if view is advised else view.name
        specification = drawn | {"datasets": {"bars": rows, "valley": valley}}
        behind = _bins_table([view], 1)
        missing = "" if any_alike([view]) else _UNLIKE
        found.append(Chart(f"{prefix}-{at}", title, note, told, specification, behind, missing))
    return found


def any_alike(views: Sequence[View]) -> bool:
    """Return whether two documents of the sample have anything in common, by any of the views."""
    return any(any(view.counts) for view in views)


def span() -> alt.Scale:
    """Return the scale of similarities."""
    import altair as alt

    return alt.Scale(domain=[0, 1], nice=False)


def _together(views: Sequence[View]) -> int:
    return _TOGETHER if max((view.pairs for view in views), default=0) >= _FEW_PAIRS else _TOGETHER_FEW


def _over_each_other(
    views: Sequence[View], chosen: View | None, valley: Valley | None, threshold: float | None, *, named: bool
) -> Plot:
    """Return the outlines of histograms, that of the chosen view filled; their rows are called ``steps``."""
    import altair as alt

    from neardup.pages.plot import Plot

    colours = coloured(views, chosen, named=named)
    x = alt.X("low:Q", title="similarity of a pair", scale=span(), axis=alt.Axis(values=TENTHS, format=".1f"))
    y = logarithmic("shown", "pairs (logarithmic)", least=_NOTHING)
    chart = alt.Chart(alt.NamedData(name="steps")).encode(x=x, y=y, **colours)
    lines = chart.mark_line(interpolate="step-after", strokeJoin="round")
    # A line tells nothing of its steps: what does are unseen points in the middle of each.
    unseen = chart.mark_circle(size=160).encode(
        x=alt.X("middle:Q", scale=span()),
        opacity=alt.value(0),
        strokeWidth=alt.value(0),
        tooltip=told_of("low", "high", "pairs"),
    )
    layers = [*_valley_and_rule(valley, threshold), lines, unseen]
    if chosen is not None:
        own = alt.Chart(alt.NamedData(name="steps")).transform_filter("datum.chosen")
        area = own.mark_area(interpolate="step-after").encode(
            x=x, y=y, y2=alt.YDatum(_NOTHING), color=colours["color"], opacity=alt.value(0.12)
        )
        layers.insert(-2, area)
    return Plot(layer=layers)


def _steps(views: Sequence[View], chosen: View | None) -> list[dict[str, Any]]:
    """Return where each step of each histogram begins; a last one ends it."""
    together = _together(views)
    rows = []
    # What comes last is drawn over the others.
    for view in sorted(views, key=lambda view: view is chosen):
        own = {"view": view.name, "chosen": view is chosen}
        bins = list(_binned(view, together))
        for low, high, pairs in [*bins, (1.0, 1.0, bins[-1][2])]:
            step = {"low": low, "high": high, "middle": (low + high) / 2, "pairs": pairs}
            rows.append(own | step | {"shown": max(pairs, _NOTHING)})
    return rows


def _binned(view: View, together: int) -> Iterator[tuple[float, float, int]]:
    for at in range(0, BINS, together):
        yield at / BINS, (at + together) / BINS, sum(view.counts[at : at + together])


def _bars(most: int) -> alt.LayerChart:
    """Return a histogram of rows that are called ``bars``, over a shaded ``valley``."""
    import altair as alt

    scale = alt.Scale(type="log", domain=[_NOTHING, max(most, 10) * 1.5])
    y = alt.Y("pairs:Q", title="pairs", scale=scale, axis=alt.Axis(format="~s", values=[100**at for at in range(7)]))
    band = alt.Chart(alt.NamedData(name="valley")).mark_rect(color=FAINT, opacity=0.16, clip=True)
    x = alt.X("low:Q", title=None, scale=span(), axis=alt.Axis(values=TENTHS[::2], format=".1f"))
    bars = alt.Chart(alt.NamedData(name="bars")).mark_rect()
    colour = alt.Color("colour:N", scale=None)
    return alt.layer(
        band.encode(x=x, x2="high:Q"),
        bars.encode(x=x, x2="high:Q", y=y, y2="none:Q", color=colour, tooltip=told_of("low", "high", "pairs")),
    )


def _valley_and_rule(valley: Valley | None, threshold: float | None) -> list[alt.Chart]:
    """Return the shaded valley with its name, and a rule at the threshold."""
    import altair as alt

    found = []
    if valley is not None:
        name = "valley" if valley.clear else "valley, not clear"
        stretch = [{"low": valley.low, "high": valley.high, "middle": (valley.low + valley.high) / 2, "name": name}]
        chart = alt.Chart(alt.Data(values=stretch)).encode(x=alt.X("low:Q", scale=span()))
        found.append(chart.mark_rect(color=FAINT, opacity=0.16, clip=True).encode(x2="high:Q"))
        written = chart.mark_text(baseline="top", dy=22, fontSize=12)
        found.append(written.encode(x=alt.X("middle:Q", scale=span()), y=alt.value(0), text="name:N"))
    if threshold is not None:
        found += rule_at(threshold, "advised", span())
    return found


def logarithmic(name: str, title: str, *, least: float | None = None, ends: Sequence[float] | None = None) -> alt.Y:
    """Return a logarithmic axis with a line for each power of ten; ``least`` is its lowest end, ``ends`` are both."""
    import altair as alt

    given: dict[str, Any] = {} if least is None else {"domainMin": least}
    given |= {} if ends is None else {"domain": list(ends)}
    axis = alt.Axis(format="~s", values=[10.0**power for power in range(-3, 13)])
    return alt.Y(f"{name}:Q", title=title, scale=alt.Scale(type="log", **given), axis=axis)


def rule_at(threshold: float, name: str, scale: alt.Scale) -> list[alt.Chart]:
    """Return a dashed rule at a threshold, with its name beside it."""
    import altair as alt

    data = alt.Data(values=[{"low": threshold, "name": f"{name} {threshold:g}"}])
    x = alt.X("low:Q", scale=scale)
    rule = alt.Chart(data).mark_rule(color=FAINT, strokeDash=[5, 4], strokeWidth=1.5).encode(x=x)
    place = {"align": "left", "dx": 5} if threshold < 0.75 else {"align": "right", "dx": -5}
    name_of = alt.Chart(data).mark_text(baseline="top", dy=4, fontSize=12, **place)
    return [rule, name_of.encode(x=x, y=alt.value(0), text="name:N")]


def _legend() -> alt.Legend:
    import altair as alt

    # Else it would be as faint as the area below the advised line.
    return alt.Legend(title=None, symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2)


def coloured(views: Sequence[View], chosen: View | None, *, named: bool = False) -> dict[str, Any]:
    """Return colour and width of lines; a page's own legend makes those faint that it does not show."""
    import altair as alt

    scale = alt.Scale(domain=[view.name for view in views], range=views_colours(views))
    found = {"color": alt.Color("view:N", scale=scale, legend=_legend() if named else None)}
    if not named:
        found["opacity"] = alt.condition(_SHOWN, alt.value(1), alt.value(0.12))
    if chosen is not None:
        thick = alt.FieldEqualPredicate(field="view", equal=chosen.name)
        found["strokeWidth"] = alt.condition(thick, alt.value(3), alt.value(1.4))
    return found


def told_of(*names: str) -> list[alt.Tooltip]:
    """Return what a point tells of its view when the pointer is on it."""
    import altair as alt

    forms: Mapping[str, tuple[str, str]] = {
        "low": (".2f", "above"),
        "high": (".2f", "up to"),
        "pairs": (",", "pairs"),
        "cutoff": ("~g", "cutoff"),
        "rate": (",.3~r", "pairs per million"),
    }
    told = [alt.Tooltip("view:N", title="compared")]
    return [*told, *(alt.Tooltip(f"{name}:Q", format=forms[name][0], title=forms[name][1]) for name in names)]


def _bins_table(views: Sequence[View], together: int) -> Any:
    """Return the figures of histograms: rows of similarity, bins of nothing left out."""
    binned = [list(_binned(view, together)) for view in views]
    rows: list[list[object]] = [["0, nothing shared", *(view.zero for view in views)]]
    for bins in zip(*binned, strict=True):
        if any(pairs for _, _, pairs in bins):
            low, high, _ = bins[0]
            rows.append([f"{low:.2f} to {high:.2f}", *(pairs for _, _, pairs in bins)])
    head = ["similarity above, up to", *(view.name for view in views)]
    return table(head, rows, caption="Pairs of the sample by similarity", tall=True)


def _range_told(views: Sequence[View]) -> str:
    nothing = [f"{share(view.zero, view.pairs)} of {view.name}" for view in (views[0], views[-1])]
    return f"of {counted(views[0].pairs, 'pair')} {' and '.join(dict.fromkeys(nothing))} share nothing"


#: The axis begins there at the latest: where all pairs are equal it would have no length.
_LARGEST = 1e5


def cutoffs_chart(key: str, views: Sequence[View], advised: View | None) -> Chart:
    """Return the pairs per million at or above each cutoff, a line for each view."""
    import altair as alt

    points = [
        (view, at, per_million(pairs, view.pairs))
        for view in views
        for at in range(BINS + 1)
        if (pairs := view.at_least(at))
    ]
    rows = [
        {"view": view.name, "cutoff": at / BINS, "rate": rate, "told": at / BINS in CUTOFFS}
        for view, at, rate in points
    ]
    least = min((rate for _, _, rate in points), default=1.0)
    x = alt.X("cutoff:Q", title="cutoff", scale=span(), axis=alt.Axis(values=TENTHS, format=".1f"))
    y = logarithmic("rate", "pairs per million at or above it", ends=(min(least, _LARGEST), 1e6))
    chart = alt.Chart(alt.NamedData(name="rows")).encode(x=x, y=y)
    lines = chart.mark_line().encode(**coloured(views, advised))
    marked = chart.transform_filter("datum.told").mark_point(filled=True, size=42, opacity=1)
    marked = marked.encode(tooltip=told_of("cutoff", "rate"), **coloured(views, None))
    specification = finished(alt.layer(lines, marked), height=360) | {"datasets": {"rows": rows}}
    told = (
        f"Pairs per million at or above each cutoff from 0 to 1, on a logarithmic scale, a line each for "
        f"{', '.join(view.name for view in views)}"
    )
    return Chart(
        key,
        "Pairs per million above each cutoff",
        "Logarithmic; the points are the cutoffs of the table.",
        told,
        specification,
        cutoffs_table(views, advised, rates=False),
        "" if any_alike(views) else "no two documents of the sample have anything in common",
    )


def cutoffs_table(views: Sequence[View], advised: View | None, *, rates: bool = True) -> Html:
    """Return the pairs at or above each of the cutoffs as a table, per million or as they were counted."""
    head = ["compared", *(f">= {cutoff:g}" for cutoff in CUTOFFS), "= 1"]
    rows = [
        [
            view.name,
            *(rate(per_million(pairs, view.pairs)) if rates else pairs for _, pairs in (*view.above, (1, view.equal))),
        ]
        for view in views
    ]
    best = {at for at, view in enumerate(views) if view is advised}
    unit = "Pairs per million" if rates else "Pairs of the sample"
    return table(head, rows, caption=f"{unit} at or above each cutoff", best=best)


_HEIGHT = 300
#: Lengths in so few bins are marked where these begin: between them an axis would mark parts of a word.
_FEW_BINS = 8


def pairs_by_threshold(curve: Curve, advised: float) -> Chart:
    """Return how many pairs of the corpus each threshold would give."""
    known = [point for point in curve.points if point.pairs is not None]
    rows = [{"threshold": point.threshold, "number": point.pairs} for point in known if point.pairs]
    told = f"Matching pairs of the whole corpus by threshold, on a logarithmic scale{_ends(known, 'pairs')}"
    return Chart(
        "pairs-by-threshold",
        "Pairs of the whole corpus",
        "Logarithmic.",
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
