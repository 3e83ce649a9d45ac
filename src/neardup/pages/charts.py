"""Charts for pages and notebooks, as Altair and Vega-Lite; a page sets fonts, and colours for dark and light.

It imports Altair, so import it only for drawing, after `check_drawing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from neardup.pages.page import vega_lite_version

#: Legible on white and on near-black; `SHAPES` tell points apart without colours.
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
    "#9a5a3c",
)
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
FAINT_COLOUR = "#8c8c8c"
_IS_POWER_OF_TEN = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
#: The lowest value of a logarithmic axis of counts; it stands for 0.
LOG_FLOOR = 0.5
_SIMILARITY_STEP = 0.05
_TICK_COUNT = 6
#: A Vega expression: the label of a tick on an axis of times.
_TIME_LABEL = (
    "utcseconds(datum.value) ? utcFormat(datum.value, '%H:%M:%S') "
    ": utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') "
    ": utcdate(datum.value) > 1 ? utcFormat(datum.value, '%b %d') "
    ": utcmonth(datum.value) ? utcFormat(datum.value, '%b') : utcFormat(datum.value, '%Y')"
)


def finish_chart(chart: Any, *, height: int = 300) -> dict[str, Any]:
    """Return the Vega-Lite of a chart that fills the width of its element; ``height`` is in pixels.

    The legend of a page sets its parameter ``highlight``.
    """
    whole = chart.add_params(alt.param(name="highlight", value="")).properties(
        width="container", height=height, autosize={"type": "fit", "contains": "padding"}
    )
    specification: dict[str, Any] = whole.to_dict()
    # The page's style sets colours and sizes, and a schema would be an address to fetch.
    return {key: value for key, value in specification.items() if key not in ("config", "$schema")}


def log_axis(values: Sequence[float], *, format: str = "~s") -> alt.Axis:
    """Return the axis of a logarithmic scale with faint lines between the powers of ten."""
    strength = {"condition": {"test": _IS_POWER_OF_TEN, "value": 0.8}, "value": 0.2}
    return alt.Axis(format=format, gridOpacity=strength, values=list(values))


def log_count_axis(name: str, title: str, *, most: float) -> alt.Y:
    """Return a logarithmic axis of counts that begins at one half, so that a count of one is visible.

    The ticks are powers of ten, and if ``most``, the highest count, is below 100, also twice and five times these. The
    axis ends with the first tick that is at least ``most``.
    """
    powers = [10**power for power in range(len(str(int(most))))]
    fine = [part * power for power in powers for part in (1, 2, 5)] + [10 * powers[-1]]
    top = next(tick for tick in fine if tick >= most)
    ticks = [tick for tick in (powers if len(powers) > 2 else fine) if tick < top] + [top]
    scale = alt.Scale(type="log", domain=[LOG_FLOOR, top])
    return alt.Y(f"{name}:Q", scale=scale, title=title, axis=log_axis(values=ticks))


def similarity_axis(name: str, title: str | None, *, lowest: float = 0.0) -> alt.X:
    """Return an axis of similarities, or thresholds of one, from a multiple of 0.05 up to 1."""
    lowest = int(lowest / _SIMILARITY_STEP + 1e-9) * _SIMILARITY_STEP
    # On a phone there is room for six labels.
    step = _SIMILARITY_STEP if lowest > 0.74 else 2 * _SIMILARITY_STEP
    ticks = [round(at * step, 2) for at in range(round(1 / step) + 1) if at * step >= lowest - 1e-9]
    scale = alt.Scale(domain=[round(lowest, 9), 1.0], nice=False, zero=False)
    return alt.X(f"{name}:Q", title=title, scale=scale, axis=alt.Axis(format=".2~f", values=ticks))


def tooltips(**columns: tuple[str, str]) -> list[alt.Tooltip]:
    """Return the tooltip of a mark: for each column its format, empty for texts, and its title."""
    return [
        alt.Tooltip(f"{name}:Q", format=form, title=title) if form else alt.Tooltip(f"{name}:N", title=title)
        for name, (form, title) in columns.items()
    ]


def histogram(rows: Sequence[Mapping[str, Any]], x: alt.X, y: alt.Y, tooltip: Sequence[alt.Tooltip]) -> alt.Chart:
    """Return bars from ``low`` to ``high`` on the x axis and from ``none`` to a count on the y axis."""
    bars = alt.Chart(alt.Data(values=list(rows))).mark_rect(stroke=None, color=COLOURS[0])
    return bars.encode(x=x, x2="high:Q", y=y, y2="none:Q", tooltip=list(tooltip))


def line(
    rows: Sequence[Mapping[str, Any]], x: alt.X, y: alt.Y, tooltip: Sequence[alt.Tooltip], colour: str = COLOURS[0]
) -> list[alt.Chart]:
    """Return a line, and invisible points on it that carry the tooltips."""
    base = alt.Chart(alt.Data(values=list(rows))).encode(x=x, y=y)
    return [base.mark_line(color=colour, strokeWidth=2), hover_marks(base, tooltip)]


def hover_marks(chart: alt.Chart, tooltip: Sequence[alt.Tooltip], *, size: int = 160) -> alt.Chart:
    """Return invisible marks at those of a chart, which carry the tooltips."""
    hidden = {"opacity": alt.value(0), "strokeWidth": alt.value(0)}
    return chart.mark_circle(size=size).encode(tooltip=list(tooltip), **hidden)


def color_scale(names: Sequence[str], marks: Sequence[str] = COLOURS, *, legend: bool = True) -> dict[str, Any]:
    """Return a scale that gives each name its own mark, a colour or one of `SHAPES`, with a legend above the chart."""
    chosen = [marks[at % len(marks)] for at in range(len(names))]
    shown = alt.Legend(title=None, orient="top") if legend else None
    return {"scale": alt.Scale(domain=list(names), range=chosen), "legend": shown}


def dashed_rules(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Return dashed rules for comparison; the caller encodes their axis."""
    return alt.Chart(alt.Data(values=list(rows))).mark_rule(color=FAINT_COLOUR, strokeDash=[5, 4], strokeWidth=1.5)


def threshold_rule(threshold: float, name: str, *, low: bool = False) -> list[alt.Chart]:
    """Return a dashed rule at a threshold, with its name beside it, near the x axis if ``low``, else at the top."""
    rows = [{"at": threshold, "name": f"{name} {threshold:g}"}]
    rule, data = dashed_rules(rows).encode(x="at:Q"), alt.Data(values=rows)
    ends = {"baseline": "bottom", "dy": -4} if low else {"baseline": "top", "dy": 4}
    named = alt.Chart(data).mark_text(fontSize=12, **label_side(threshold), **ends)
    return [rule, named.encode(x="at:Q", y=alt.value("height" if low else 0), text="name:N")]


def label_side(threshold: float) -> dict[str, Any]:
    """Return the alignment of a label beside a rule at a threshold: on the side with more room."""
    return {"align": "left", "dx": 5} if threshold < 0.75 else {"align": "right", "dx": -5}


def bit_axis(name: str, title: str, most: int) -> alt.X:
    """Return an axis of differing bits from ``most`` down to 0, so that similar pairs stand on the right."""
    scale = alt.Scale(domain=[most + 0.5, -0.5], nice=False, zero=False)
    step = most // 16 + 1
    return alt.X(
        f"{name}:Q", title=title, scale=scale, axis=alt.Axis(format="d", values=list(range(0, most + 1, step)))
    )


def slider_rule(at: str) -> alt.Chart:
    """Return a rule at an expression of the parameter ``cut``, which a slider sets."""
    data = alt.Chart(alt.Data(values=[{}])).transform_calculate(at=at)
    return data.mark_rule(color=COLOURS[1], strokeWidth=2).encode(x="at:Q")


def decade_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from ``low`` to ``high``, for logarithmic axes."""
    ticks = [part * 10.0**power for power in range(-3, 13) for part in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def count_axis(most: float) -> alt.Axis:
    """Return the axis of counts up to ``most``, with whole numbers written in full."""
    # Vega would put fractions between few numbers.
    ticks = {"values": list(range(int(most) + 1))} if most < _TICK_COUNT else {"tickCount": _TICK_COUNT}
    return alt.Axis(format=",d", **ticks)


def time_axis() -> alt.Axis:
    """Return an axis of times in UTC: hours and minutes within a day, otherwise dates."""
    return alt.Axis(labelExpr=_TIME_LABEL)


def empty_plot(reason: str) -> Plot:
    """Return a chart that says why there is nothing to show."""
    return Plot(layer=[alt.Chart(alt.Data(values=[{}])).mark_text(fontSize=13, text=f"Nothing to show: {reason}")])


class Plot(alt.LayerChart):  # type: ignore[misc]
    """A layered chart that notebooks show as a picture, and that is saved to HTML with all of its scripts.

    By default Altair makes the browser fetch Vega from a server. A picture needs no scripts, and stays small in the
    notebook's file. If ``altair.renderers.enable`` has chosen another renderer, Altair shows the chart with that.
    """

    def to_html(self, *args: Any, **options: Any) -> str:
        """Return Altair's page, with its scripts inside."""
        return str(super().to_html(*args, **({"inline": True} | options)))

    def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
        """Write a file as Altair does, but a page with its scripts inside."""
        is_page = format == "html" or (format is None and str(fp).endswith(".html"))
        super().save(fp, format, **({"inline": True} if is_page else {}) | options)

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **options)
        return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_dict(), vl_version=vega_lite_version())}
