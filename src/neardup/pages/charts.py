"""Charts that pages have in common, as Altair and Vega-Lite. The page itself decides on fonts and on dark or light."""

from __future__ import annotations

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

    Marked are the powers of ten; where ``most``, the highest count, is below 100, twice and five times these, too.
    """
    import altair as alt

    powers = [10**power for power in range(len(str(int(most))))]
    between = [part * power for power in powers for part in (1, 2, 5)]
    axis = log_axis(values=powers if len(powers) > 2 else between, format=",d")
    return alt.Y(f"{name}:Q", scale=alt.Scale(type="log", domainMin=0.5), title=title, axis=axis)


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
