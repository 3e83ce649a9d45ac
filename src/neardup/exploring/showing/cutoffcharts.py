"""The chart and the table of pairs above each cutoff."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.exploring.histogram import BINS, CUTOFFS, View, per_million
from neardup.exploring.showing.charts import TENTHS, any_alike, coloured, logarithmic, span, told_of
from neardup.exploring.telling import rate as written
from neardup.pages.charts import finished
from neardup.pages.parts import Chart, Html, table

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
            *(
                written(per_million(pairs, view.pairs)) if rates else pairs
                for _, pairs in (*view.above, (1, view.equal))
            ),
        ]
        for view in views
    ]
    best = {at for at, view in enumerate(views) if view is advised}
    unit = "Pairs per million" if rates else "Pairs of the sample"
    return table(head, rows, caption=f"{unit} at or above each cutoff", best=best)
