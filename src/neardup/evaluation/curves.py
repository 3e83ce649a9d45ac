"""The curves of a comparison, as Vega-Lite: precision by recall, and F1 by threshold.

They are figures 5 and 6 of Montanari & Puglisi 2012, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neardup.pages.charts import COLOURS, FAINT, SHAPES, finished

if TYPE_CHECKING:
    import altair as alt

#: The values of F1 whose lines the precision-recall chart shows.
_LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)
#: Pixels.
_HEIGHT = 330
_FIGURES = ("precision", "recall", "f1")
_SHOWN = "highlight == '' || datum.recipe == highlight"


def points_of(recipes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a point for each recipe and threshold."""
    for recipe in recipes:
        for row in recipe["rows"]:
            point = {"recipe": recipe["name"], "scale": recipe["scale"], "threshold": row["threshold"]}
            point |= {name: row[name]["value"] for name in _FIGURES}
            point |= {f"{name} told": f"{value_text(row[name])} ({interval_text(row[name])})" for name in _FIGURES}
            yield point | {
                "low": row["f1"]["low"],
                "high": row["f1"]["high"],
                "returned": row["returned"],
                "correct": row["correct"],
                "best": row["threshold"] == recipe["best"]["threshold"],
            }


def _coloured(recipes: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart with a colour for each recipe, whose data is given later; those not chosen are faint."""
    import altair as alt

    names = [recipe["name"] for recipe in recipes]
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    return alt.Chart().encode(
        color=alt.Color("recipe:N", scale=alt.Scale(domain=names, range=colours), legend=None),
        opacity=alt.condition(_SHOWN, alt.value(1), alt.value(0.1)),
    )


def _told() -> list[alt.Tooltip]:
    """Return what a point tells when the pointer is on it."""
    import altair as alt

    told = [alt.Tooltip("recipe:N"), alt.Tooltip("threshold:Q", format="~g")]
    told += [alt.Tooltip(f"{name} told:N", title="F1" if name == "f1" else name) for name in _FIGURES]
    return [*told, alt.Tooltip("returned:Q", format=","), alt.Tooltip("correct:Q", format=",")]


def _dots(chart: alt.Chart, recipes: Sequence[Mapping[str, Any]]) -> list[alt.Chart]:
    """Return the points, the best ones ringed, and a larger unseen mark on each for the pointer to find."""
    import altair as alt

    names = [recipe["name"] for recipe in recipes]
    shapes = [SHAPES[at % len(SHAPES)] for at in range(len(names))]
    shaped = chart.encode(shape=alt.Shape("recipe:N", scale=alt.Scale(domain=names, range=shapes), legend=None))
    best = shaped.transform_filter("datum.best").mark_point(size=150, strokeWidth=2, clip=False)
    unseen = chart.mark_circle(size=260).encode(opacity=alt.value(0), tooltip=_told())
    return [shaped.mark_point(filled=True, size=34, clip=False), best, unseen]


def precision_recall(points: list[dict[str, Any]], recipes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the chart of precision by recall."""
    import altair as alt

    defined = [point for point in points if point["precision"] is not None]
    x = alt.X("recall:Q", scale=alt.Scale(domain=[_floor(defined, "recall"), 1]), title="recall")
    y = alt.Y("precision:Q", scale=alt.Scale(domain=[_floor(defined, "precision"), 1]), title="precision")
    chart = _coloured(recipes).encode(x=x, y=y)
    lines = chart.mark_line(strokeWidth=1.5, clip=True).encode(order="threshold:Q")
    layers = [_equal_f1(x, y, defined), lines, *_dots(chart, recipes)]
    return finished(alt.layer(*layers, data=alt.Data(values=defined)), height=_HEIGHT)


def _equal_f1(x: alt.X, y: alt.Y, points: list[dict[str, Any]]) -> alt.LayerChart:
    """Return the lines of equal F1, each named where it meets recall 1."""
    import altair as alt

    least = _floor(points, "precision")
    curve = [
        {"level": level, "recall": recall / 100, "precision": level * recall / (2 * recall - 100 * level)}
        for level in _LEVELS
        for recall in range(int(100 * level / (2 - level)) + 1, 101)
    ]
    ends = [{"level": level, "recall": 1, "precision": level / (2 - level)} for level in _LEVELS]
    lines = alt.Chart(alt.Data(values=curve)).mark_line(color=FAINT, opacity=0.5, strokeWidth=1, clip=True)
    names = alt.Chart(alt.Data(values=[end for end in ends if end["precision"] > least])).mark_text(
        align="right", dx=-2, dy=-6, fontSize=10
    )
    return alt.layer(
        lines.encode(x=x, y=y, detail="level:N"),
        names.encode(x=x, y=y, text=alt.Text("level:Q", format=".1f")),
    )


def f1_by_threshold(points: list[dict[str, Any]], recipes: Sequence[Mapping[str, Any]], title: str) -> dict[str, Any]:
    """Return the chart of F1 by threshold; recipes that know one answer are lines across."""
    import altair as alt

    moving = [point for point in points if point["scale"] != "fixed"]
    fixed = [point for point in points if point["scale"] == "fixed"]
    scale = alt.Scale(domain=[_floor(points, "f1"), 1])
    y = alt.Y("f1:Q", scale=scale, title="F1")
    x = alt.X("threshold:Q", scale=alt.Scale(zero=False, nice=False), title=title)
    coloured = _coloured(recipes)
    band = coloured.mark_area(clip=True).encode(
        x=x,
        y=alt.Y("low:Q", scale=scale, title="F1"),
        y2="high:Q",
        opacity=alt.condition("datum.recipe == highlight", alt.value(0.2), alt.value(0)),
    )
    chart = coloured.encode(x=x, y=y)
    rules = coloured.mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(y=y, tooltip=_told())
    layers = [band, chart.mark_line(strokeWidth=1.5, clip=True), *_dots(chart, recipes)]
    if fixed:
        layers.append(rules.properties(data=alt.Data(values=fixed)))
    return finished(alt.layer(*layers, data=alt.Data(values=moving)), height=_HEIGHT)


def _floor(points: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return where an axis begins: 0, or where all values are high, the tenth below them."""
    least = min((point[name] for point in points), default=0.0)
    return max(int(least * 10 - 0.5) / 10, 0.0) if least > 0.5 else 0.0


def value_text(figure: Mapping[str, Any]) -> str:
    """Return a figure for people."""
    return "none" if figure["value"] is None else f"{figure['value']:.3f}"


def interval_text(figure: Mapping[str, Any]) -> str:
    """Return a figure's interval for people; nothing where there is none."""
    return "" if figure["low"] is None else f"{figure['low']:.3f} to {figure['high']:.3f}"
