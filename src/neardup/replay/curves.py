"""The curves of a replay, as Vega-Lite: time an item by size, hour and length; duplicates and memory by hour.

The first three are figures 7, 8 and 9 of Montanari & Puglisi 2012, section 4, with what the paper's text says of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.pages.charts import COLOURS, FAINT, count_axis, finished, log_axis, time_axis

if TYPE_CHECKING:
    import altair as alt

OURS, THEIRS = COLOURS[:2]
_MICROSECONDS = "µs an item"

Rows = Sequence[Mapping[str, Any]]


class PaperFigure(NamedTuple):
    """What the paper says in words of one of its curves.

    Attributes
    ----------
    at : int
        Documents, or bytes of a text.
    microseconds : float
        An item.
    says : str
        How it says so.
    """

    at: int
    microseconds: float
    says: str


#: Figure 7: "achieving the value of 1.2 seconds with size 8000".
BY_SIZE = PaperFigure(8_000, 1_200_000, "paper: 1.2 s")
#: Figure 9: 732 documents, of 5 KB on average: "less than 0,2 seconds".
BY_LENGTH = PaperFigure(5_000, 200_000, "paper: below 0.2 s")


def by_size(runs: Rows) -> dict[str, Any]:
    """Return the chart of time by the size of the corpus: mean and median of each run."""
    told = [("documents", ","), ("mean", ",.0f"), ("median", ",.0f"), ("p99", ",.0f")]
    return _against_paper(runs, "documents", "documents in the corpus", BY_SIZE, told)


def by_length(lengths: Rows) -> dict[str, Any]:
    """Return the chart of time by the length of the text."""
    told = [("low", ","), ("high", ","), ("documents", ","), ("mean", ",.0f"), ("p99", ",.0f")]
    return _against_paper(lengths, "size", "bytes of the text", BY_LENGTH, told)


def _against_paper(
    rows: Rows, field: str, title: str, paper: PaperFigure, told: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    import altair as alt

    x = alt.X(
        f"{field}:Q", scale=alt.Scale(type="log", nice=False, padding=12), title=title, axis=log_axis(format=",~g")
    )
    y = _log("mean", _MICROSECONDS)
    tooltip = [alt.Tooltip(f"{name}:Q", format=form) for name, form in told]
    ours = alt.Chart(alt.Data(values=_above_zero(rows, "mean", "p99")))
    theirs = alt.Chart(alt.Data(values=[{field: paper.at, "mean": paper.microseconds, "says": paper.says}]))
    mark = theirs.encode(x=x, y=y)
    return _finished(
        ours.mark_line(color=OURS, strokeWidth=1.5).encode(x=x, y=y),
        ours.mark_point(color=OURS, filled=True, size=42, opacity=1).encode(x=x, y=y, tooltip=tooltip),
        ours.mark_point(color=OURS, size=26, shape="triangle-up", opacity=0.8).encode(
            x=x, y=_log("p99", _MICROSECONDS), tooltip=tooltip
        ),
        mark.mark_point(color=THEIRS, filled=True, size=70, shape="diamond", opacity=1),
        mark.mark_text(color=THEIRS, align="right", dx=-9).encode(text="says:N"),
    )


def by_hour(hours: Rows) -> dict[str, Any]:
    """Return the chart of time by hour of the flow: the median, and the band up to p99."""
    import altair as alt

    chart = alt.Chart(alt.Data(values=_above_zero(hours, "cpu_us_median", "cpu_us_p99")))
    median = chart.encode(x=_hours(), y=_log("cpu_us_median", _MICROSECONDS))
    return _finished(
        median.mark_rule(color=OURS, opacity=0.35).encode(y2="cpu_us_p99:Q"),
        median.mark_point(color=OURS, filled=True, size=22, opacity=1).encode(tooltip=_told(alt)),
    )


def by_held(hours: Rows) -> dict[str, Any]:
    """Return the chart of time by the number of documents in the window."""
    import altair as alt

    chart = alt.Chart(alt.Data(values=_above_zero(hours, "cpu_us_median")))
    most = max(hour["held"] for hour in hours)
    x = alt.X("held:Q", title="documents in the window at the end of the hour", axis=count_axis(most))
    points = chart.mark_point(color=OURS, filled=True, size=26, opacity=0.6)
    return _finished(points.encode(x=x, y=_log("cpu_us_median", _MICROSECONDS), tooltip=_told(alt)))


def memory(hours: Rows, full: str | None) -> dict[str, Any]:
    """Return the chart of the window's memory by hour, with a line where the window is full for the first time."""
    import altair as alt

    rows = [_plain(hour) | {"mb": hour["bytes"] / 1e6} for hour in hours]
    chart = alt.Chart(alt.Data(values=rows)).encode(x=_hours(), y=alt.Y("mb:Q", title="MB"))
    # Both in one layer of their own, so that the page holds their rows once.
    both = alt.layer(
        chart.mark_line(color=OURS, strokeWidth=1.2, interpolate="step-after"),
        chart.mark_point(color=OURS, filled=True, size=18, opacity=1).encode(tooltip=_told(alt)),
    )
    layers = [both]
    if full is not None:
        moment = alt.Chart(alt.Data(values=[{"hour": full}])).mark_rule(color=FAINT, strokeDash=[5, 4])
        layers.append(moment.encode(x=_hours()))
    return _finished(*layers)


def _hours() -> alt.X:
    import altair as alt

    return alt.X("hour:T", scale=alt.Scale(type="utc"), title="hour of the flow (UTC)", axis=time_axis())


def _log(name: str, title: str) -> alt.Y:
    import altair as alt

    return alt.Y(f"{name}:Q", scale=alt.Scale(type="log"), title=title, axis=log_axis(format=",~g", tickCount=6))


def _told(alt: Any) -> list[Any]:
    """Return what an hour tells when the pointer is on it."""
    told = [alt.Tooltip("hour:N", title="hour")]
    told += [alt.Tooltip(f"{name}:Q", format=",") for name in ("originals", "duplicates", "held")]
    told += [alt.Tooltip("cpu_us_median:Q", title="median µs", format=",.0f")]
    return told


def _above_zero(rows: Rows, *names: str) -> list[dict[str, Any]]:
    """Return rows whose values a logarithm can take."""
    return [_plain(row) | {name: max(round(row[name], 1), 0.1) for name in names} for row in rows]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a chart needs of a row."""
    return {name: value for name, value in row.items() if name not in ("items", "bytes")}


def _finished(*layers: Any) -> dict[str, Any]:
    import altair as alt

    return finished(alt.layer(*layers))
