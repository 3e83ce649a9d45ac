"""The charts of a comparison: precision by recall, and F1 by threshold, as Vega-Lite.

They are figures 5 and 6 of Montanari & Puglisi 2012, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from neardup.evaluation.intervals import format_interval, format_value
from neardup.pages.charts import FAINT_COLOUR, SHAPES, color_scale, finish_chart, hover_marks, tooltips
from neardup.pages.html import Chart

_F1_LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)
_HEIGHT = 330
_FIGURES = ("precision", "recall", "f1")
#: A system or a row of ``Comparison.to_dict``.
Json = Mapping[str, Any]
_IS_HIGHLIGHTED = "highlight == '' || datum.recipe == highlight"


def build_charts(recipes: Sequence[Json]) -> Iterator[Chart]:
    """Yield the charts of these recipes."""
    points = list(_points(recipes))
    summary = f"of {len(recipes)} recipes; the figures are in the table below."
    yield Chart(
        "recall",
        "Precision by recall",
        "grey: lines of equal F1; higher and further right is better",
        f"Lines of precision by recall, {summary}",
        _precision_recall(points, recipes),
        missing="" if any(point["precision"] is not None for point in points) else "no recipe returns a labelled pair",
    )
    similar = [point for point in points if point["scale"] != "distance"]
    if any(point["scale"] in ("similarity", "probability") for point in similar):
        learned = any(point["scale"] == "probability" for point in similar)
        fixed = "; dashed: recipes with one answer" if any(point["scale"] == "fixed" for point in similar) else ""
        axis = "threshold (of the probability for a classifier)" if learned else "threshold"
        yield Chart(
            "threshold",
            "F1 by threshold",
            f"ringed: the best threshold; a chosen recipe shows its interval{fixed}",
            f"Lines of F1, from 0 to 1, by threshold, {summary}",
            _f1_by_threshold(similar, recipes, axis),
            missing=_without_duplicates(similar),
        )
    distant = [point for point in points if point["scale"] == "distance"]
    if distant:
        yield Chart(
            "distance",
            "F1 by Hamming distance",
            "in bits; simhash: pairs at or below the distance match",
            f"Lines of F1, from 0 to 1, by the largest Hamming distance of a match, in bits, {summary}",
            _f1_by_threshold(distant, recipes, "largest Hamming distance of a match"),
            missing=_without_duplicates(distant),
        )


def _without_duplicates(points: Sequence[Json]) -> str:
    """Return the message in place of a chart if F1 is 0 at every threshold; empty otherwise."""
    return "" if any(point["f1"] for point in points) else "no labelled duplicate is returned at any threshold"


def _points(recipes: Sequence[Json]) -> Iterator[dict[str, Any]]:
    for recipe in recipes:
        for row in recipe["rows"]:
            point = {"recipe": recipe["name"], "scale": recipe["scale"], "threshold": row["threshold"]}
            point |= {name: row[name]["value"] for name in _FIGURES}
            point |= {f"{name} text": f"{format_value(row[name])} ({format_interval(row[name])})" for name in _FIGURES}
            yield point | {
                "low": row["f1"]["low"],
                "high": row["f1"]["high"],
                "returned": row["returned"],
                "correct": row["correct"],
                "best": row["threshold"] == recipe["best"]["threshold"],
            }


def _colored_chart(recipes: Sequence[Json]) -> alt.Chart:
    """Return a chart without data that gives each recipe its colour; unselected recipes are faint."""
    names = [recipe["name"] for recipe in recipes]
    return alt.Chart().encode(
        color=alt.Color("recipe:N", **color_scale(names, legend=False)),
        opacity=alt.condition(_IS_HIGHLIGHTED, alt.value(1), alt.value(0.1)),
    )


def _point_tooltips() -> list[alt.Tooltip]:
    figures = {f"{name} text": ("", "F1" if name == "f1" else name) for name in _FIGURES}
    counts = {name: (",", name) for name in ("returned", "correct")}
    return tooltips(recipe=("", "recipe"), threshold=("~g", "threshold"), **figures, **counts)


def _point_layers(chart: alt.Chart, recipes: Sequence[Json]) -> list[alt.Chart]:
    """Return the points, rings around the best ones, and larger invisible marks that the pointer hits."""
    names = [recipe["name"] for recipe in recipes]
    shaped = chart.encode(shape=alt.Shape("recipe:N", **color_scale(names, SHAPES, legend=False)))
    best = shaped.transform_filter("datum.best").mark_point(size=150, strokeWidth=2, clip=False)
    return [shaped.mark_point(filled=True, size=34, clip=False), best, hover_marks(chart, _point_tooltips(), size=260)]


def _precision_recall(points: list[dict[str, Any]], recipes: Sequence[Json]) -> dict[str, Any]:
    defined = [point for point in points if point["precision"] is not None]
    # Flush labels would move the outer ones inwards, too near to their neighbours.
    ends, axis = [_axis_start(defined, "recall"), 1], alt.Axis(format=".2~f")
    x = alt.X("recall:Q", scale=alt.Scale(domain=ends), title="recall", axis=axis)
    scale = alt.Scale(domain=[_axis_start(defined, "precision"), 1])
    y = alt.Y("precision:Q", scale=scale, title="precision", axis=axis)
    chart = _colored_chart(recipes).encode(x=x, y=y)
    lines = chart.mark_line(strokeWidth=1.5, clip=True).encode(order="threshold:Q")
    layers = [_equal_f1(x, y, defined), lines, *_point_layers(chart, recipes)]
    return finish_chart(alt.layer(*layers, data=alt.Data(values=defined)), height=_HEIGHT)


def _equal_f1(x: alt.X, y: alt.Y, points: list[dict[str, Any]]) -> alt.LayerChart:
    """Return the lines of equal F1, each with its label to the right of the chart."""
    least = _axis_start(points, "precision")
    curve = [
        {"level": level, "recall": recall / 100, "precision": level * recall / (2 * recall - 100 * level)}
        for level in _F1_LEVELS
        for recall in (100 * level / (2 - level), *range(int(100 * level / (2 - level)) + 1, 101))
    ]
    ends = [
        {"name": f"F1 {level:g}", "recall": 1, "precision": level / (2 - level)}
        for level in _F1_LEVELS
        if level / (2 - level) > least
    ]
    lines = alt.Chart(alt.Data(values=curve)).mark_line(color=FAINT_COLOUR, opacity=0.5, strokeWidth=1, clip=True)
    names = alt.Chart(alt.Data(values=ends)).mark_text(align="left", baseline="middle", dx=10, fontSize=10)
    return alt.layer(
        lines.encode(x=x, y=y, detail="level:N"),
        names.encode(x=x, y=y, text="name:N"),
    )


def _f1_by_threshold(points: list[dict[str, Any]], recipes: Sequence[Json], title: str) -> dict[str, Any]:
    """Return the chart of F1 by threshold; recipes without a choice of thresholds are horizontal lines."""
    moving = [point for point in points if point["scale"] != "fixed"]
    fixed = [point for point in points if point["scale"] == "fixed"]
    scale = alt.Scale(domain=[_axis_start(points, "f1"), 1])
    axis = alt.Axis(format=".2~f")
    y = alt.Y("f1:Q", scale=scale, title="F1", axis=axis)
    x = alt.X("threshold:Q", scale=alt.Scale(zero=False, nice=False, padding=10), title=title, axis=axis)
    coloured = _colored_chart(recipes)
    band = coloured.mark_area(clip=True).encode(
        x=x,
        y=alt.Y("low:Q", scale=scale, title="F1"),
        y2="high:Q",
        opacity=alt.condition("datum.recipe == highlight", alt.value(0.2), alt.value(0)),
    )
    chart = coloured.encode(x=x, y=y)
    rules = coloured.mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(y=y, tooltip=_point_tooltips())
    layers = [band, chart.mark_line(strokeWidth=1.5, clip=True), *_point_layers(chart, recipes)]
    if fixed:
        layers.append(rules.properties(data=alt.Data(values=fixed)))
    return finish_chart(alt.layer(*layers, data=alt.Data(values=moving)), height=_HEIGHT)


def _axis_start(points: Sequence[Json], name: str) -> float:
    """Return the start of an axis: 0, or the tenth below the lowest value if that is above 0.5."""
    lowest = min((point[name] for point in points), default=0.0)
    return max(int(lowest * 10 - 0.5) / 10, 0.0) if lowest > 0.5 else 0.0
