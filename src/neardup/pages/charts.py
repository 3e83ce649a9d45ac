"""Charts that pages have in common, as Altair and Vega-Lite. The page itself decides on fonts and on dark or light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

#: Legible on white and on near-black; where colours alone would tell things apart, `SHAPES` do so, too.
COLOURS = (
    "#3f76d9",
    "#d9622b",
    "#2b9a66",
    "#c2478f",
    "#8a6fdf",
    "#b3871b",
    "#1f9ab3",
    "#d04848",
    "#6f8f2f",
    "#8c7a6b",
    "#5a86a8",
    "#a65fc4",
)
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
#: What is only there to compare with.
FAINT = "#8c8c8c"
#: Whether a mark on an axis is a power of ten, as Vega has it.
_POWER = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
#: So many marks an axis of counts has, about.
_MARKS = 6
#: What a mark on an axis of times says, as Vega has it.
_TIME = (
    "utcseconds(datum.value) ? utcFormat(datum.value, '%H:%M:%S') "
    ": utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') "
    ": utcdate(datum.value) > 1 ? utcFormat(datum.value, '%b %d') "
    ": utcmonth(datum.value) ? utcFormat(datum.value, '%b') : utcFormat(datum.value, '%Y')"
)

Rows = Sequence[Mapping[str, Any]]


def finished(chart: Any, *, height: int = 300) -> dict[str, Any]:
    """Return the Vega-Lite of a chart, as wide as its place; ``height`` is in pixels.

    It has the parameter ``highlight``, which a page's legend sets.
    """
    import altair as alt

    whole = chart.add_params(alt.param(name="highlight", value="")).properties(
        width="container", height=height, autosize={"type": "fit", "contains": "padding"}
    )
    specification: dict[str, Any] = whole.to_dict()
    # The page's own style decides on colours and sizes, and nothing is to be fetched.
    return {key: value for key, value in specification.items() if key not in ("config", "$schema")}


def log_axis(**options: Any) -> alt.Axis:
    """Return the axis of a logarithmic scale, whose lines between the powers of ten are faint."""
    import altair as alt

    strength = {"condition": {"test": _POWER, "value": 0.8}, "value": 0.2}
    return alt.Axis(**({"format": "~s", "gridOpacity": strength} | options))


def log_counts(name: str, title: str, *, most: float = 0) -> alt.Y:
    """Return an axis of counts on a logarithmic scale; its lowest line is half of one, so that one can be seen.

    Where ``most``, the highest count, is given and not small, only the powers of ten are marked.
    """
    import altair as alt

    powers = [10**power for power in range(len(str(int(most))))]
    marked = {"values": powers} if len(powers) > 2 else {"tickCount": 4}
    return alt.Y(f"{name}:Q", scale=alt.Scale(type="log", domainMin=0.5), title=title, axis=log_axis(**marked))


def count_axis(most: float, **options: Any) -> alt.Axis:
    """Return the axis of counts up to ``most``, each of its numbers whole and written in full."""
    import altair as alt

    # A step of one is the least: few numbers are all marked.
    marks = {"values": list(range(int(most) + 1))} if most < _MARKS else {"tickCount": _MARKS}
    return alt.Axis(**({"format": ",d"} | marks | options))


def time_axis() -> alt.Axis:
    """Return the axis of times, which are UTC: by hours and minutes within a day, else by the date."""
    import altair as alt

    return alt.Axis(labelExpr=_TIME)


def _counts(name: str, title: str, rows: Rows, logarithmic: bool) -> alt.Y:
    import altair as alt

    most = max((row[name] for row in rows), default=0)
    if logarithmic:
        return log_counts(name, title, most=most)
    return alt.Y(f"{name}:Q", title=title, axis=count_axis(most))


def histogram(
    rows: Rows, *, x: str, y: str = "documents", logarithmic: bool = False, colour: str = COLOURS[0], height: int = 300
) -> dict[str, Any]:
    """Return a histogram.

    Parameters
    ----------
    rows : sequence of mapping
        A bin each: ``low``, ``high`` and ``count``; bins of nothing need not be there.
    x, y : str
        What the axes show, with units.
    logarithmic : bool
        Whether counts are on a logarithmic scale.
    colour : str
        Of the bars.
    height : int
        In pixels.
    """
    import altair as alt

    shown = [dict(row) | {"none": 0.5 if logarithmic else 0} for row in rows if row["count"]]
    axis = _counts("count", y, shown, logarithmic)
    told = [alt.Tooltip("low:Q", format="~g", title="from"), alt.Tooltip("high:Q", format="~g", title="to")]
    chart = alt.Chart(alt.Data(values=shown)).mark_rect(color=colour, stroke=colour, strokeWidth=0.5)
    return finished(
        chart.encode(
            x=alt.X("low:Q", title=x, scale=alt.Scale(nice=False, zero=False)),
            x2="high:Q",
            y=axis,
            y2="none:Q",
            tooltip=[*told, alt.Tooltip("count:Q", format=",", title=y)],
        ),
        height=height,
    )


def bars(rows: Rows, *, x: str = "documents", y: str = "", colour: str = COLOURS[0]) -> dict[str, Any]:
    """Return bars from the left, one for each row (``name`` and ``count``), in the order of the rows."""
    import altair as alt

    chart = alt.Chart(alt.Data(values=[dict(row) for row in rows])).mark_bar(color=colour)
    return finished(
        chart.encode(
            x=alt.X("count:Q", title=x, axis=count_axis(max((row["count"] for row in rows), default=0))),
            y=alt.Y("name:N", title=y or None, sort=None, axis=alt.Axis(labelLimit=220)),
            tooltip=[alt.Tooltip("name:N", title=y or "name"), alt.Tooltip("count:Q", format=",", title=x)],
        ),
        height=max(60, 24 * len(rows) + 50),
    )


def lines(
    rows: Rows, names: Sequence[str], *, x: str, y: str, logarithmic: bool = False, height: int = 300
) -> dict[str, Any]:
    """Return lines, one for each name.

    Parameters
    ----------
    rows : sequence of mapping
        A point each: ``name``, ``x`` and ``y``.
    names : sequence of str
        The lines, in the order of `COLOURS`.
    x, y : str
        What the axes show, with units.
    logarithmic : bool
        Whether ``y`` is on a logarithmic scale, which leaves out points at zero.
    height : int
        In pixels.
    """
    import altair as alt

    kept = [dict(row) for row in rows if not logarithmic or row["y"] > 0]
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    axis = _counts("y", y, kept, logarithmic)
    chart = alt.Chart(alt.Data(values=kept)).encode(
        x=alt.X("x:Q", title=x, scale=alt.Scale(nice=False, zero=False)),
        y=axis,
        color=alt.Color("name:N", scale=alt.Scale(domain=list(names), range=colours), legend=None),
        opacity=alt.condition("highlight == '' || datum.name == highlight", alt.value(1), alt.value(0.12)),
    )
    told = [alt.Tooltip("name:N"), alt.Tooltip("x:Q", title=x, format="~g"), alt.Tooltip("y:Q", title=y, format=",~g")]
    seen = chart.mark_circle(size=200).encode(opacity=alt.value(0), tooltip=told)
    return finished(alt.layer(chart.mark_line(strokeWidth=1.8), seen), height=height)
