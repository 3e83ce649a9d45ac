"""Charts of a flow: what arrived when, how long after its original a duplicate came, and from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.pages.charts import COLOURS, count_axis, finished, time_axis
from neardup.pages.parts import Chart, table
from neardup.reporting.flow import NO_TIME, Flow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_DAY = 24 * _HOUR
#: Steps of time; the first one that gives no more bars than this is taken.
_STEPS = {
    "minute": _MINUTE,
    "ten minutes": 10 * _MINUTE,
    "hour": _HOUR,
    "six hours": 6 * _HOUR,
    "day": _DAY,
    "week": 7 * _DAY,
    "30 days": 30 * _DAY,
    "year": 365 * _DAY,
}
_BARS = 300
KINDS = ("originals", "duplicates")
#: Ends of the stretches of time by which a duplicate comes after what it repeats.
_LAGS = {
    "at once": _SECOND,
    "1 s to 1 min": _MINUTE,
    "1 to 10 min": 10 * _MINUTE,
    "10 min to 1 h": _HOUR,
    "1 to 3 h": 3 * _HOUR,
    "3 to 6 h": 6 * _HOUR,
    "6 to 12 h": 12 * _HOUR,
    "12 to 24 h": _DAY,
    "1 to 2 days": 2 * _DAY,
    "2 to 7 days": 7 * _DAY,
    "7 to 30 days": 30 * _DAY,
}
_LATER = "more than 30 days"
#: Sources that are listed.
_SOURCES = 25


def by_time(flow: Flow) -> list[Chart]:
    """Return the chart of originals and duplicates by the time that they were judged by; none if nothing arrived."""
    times = flow.times[flow.before :]
    if not len(times):
        return []
    first, last = int(times.min()), int(times.max())
    name, step = next(
        ((name, step) for name, step in _STEPS.items() if last // step - first // step < _BARS), ("year", 365 * _DAY)
    )
    bins, place = np.unique(times // step, return_inverse=True)
    is_duplicate = flow.of[flow.before :] >= 0
    is_duplicate |= flow.of[flow.before :] < -1
    counts = [
        np.bincount(place[~is_duplicate], minlength=len(bins)),
        np.bincount(place[is_duplicate], minlength=len(bins)),
    ]
    rows = []
    for at, number in enumerate(bins.tolist()):
        begin, end = (_moment(edge * step) for edge in (number, number + 1))
        originals, duplicates = (int(one[at]) for one in counts)
        for kind, low, high in ((KINDS[0], 0, originals), (KINDS[1], originals, originals + duplicates)):
            row = {"begin": begin, "end": end, "kind": kind, "low": low, "high": high}
            rows.append(row | {"originals": originals, "duplicates": duplicates})
    listed = rows[::2]
    return [
        Chart(
            key="arrived",
            title=f"What arrived, by {name}",
            note="by the time that items were judged by (UTC); stretches in which nothing came have no bar",
            told=f"Originals and duplicates by {name}, from {listed[0]['begin']} to {listed[-1]['end']}: "
            f"{int(counts[0].sum()):,} originals and {int(counts[1].sum()):,} duplicates.",
            specification=_time_chart(rows, f"items per {name}", int((counts[0] + counts[1]).max())),
            behind=table(
                ["from (UTC)", *KINDS],
                [[row["begin"], row["originals"], row["duplicates"]] for row in listed],
                tall=True,
            ),
        )
    ]


def _moment(microseconds: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="minutes").replace("+00:00", "Z")
    except OverflowError:
        return "9999-12-31T23:59Z"


def _time_chart(rows: Sequence[Mapping[str, Any]], title: str, most: int) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=list(KINDS), range=list(COLOURS[:2]))
    legend = alt.Legend(title=None, orient="top")
    told = [alt.Tooltip("begin:N", title="from"), *(alt.Tooltip(f"{kind}:Q", format=",") for kind in KINDS)]
    # A line around it shows a bar where there are so many that it is narrower than a dot.
    chart = alt.Chart(alt.Data(values=list(rows))).mark_rect(strokeWidth=0.7)
    return finished(
        chart.encode(
            x=alt.X("begin:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=time_axis()),
            x2="end:T",
            y=alt.Y("low:Q", title=title, axis=count_axis(most)),
            y2="high:Q",
            color=alt.Color("kind:N", scale=scale, legend=legend),
            stroke=alt.Stroke("kind:N", scale=scale, legend=legend),
            tooltip=told,
        )
    )


def by_lag(flow: Flow) -> list[Chart]:
    """Return the chart of how long after what they repeat duplicates came; none where there are none."""
    places = flow.duplicates[flow.of[flow.duplicates] >= 0]
    places = places[flow.times[flow.of[places]] != NO_TIME]
    if not len(places):
        return []
    # One may repeat an item that is of a later time than itself, if it arrived late.
    lag = np.abs(flow.times[places] - flow.times[flow.of[places]])
    counts = np.bincount(np.searchsorted(list(_LAGS.values()), lag), minlength=len(_LAGS) + 1)
    last = int(np.flatnonzero(counts)[-1])
    names = [*_LAGS, _LATER][: last + 1]
    reached = np.cumsum(counts) / len(places)
    rows = [
        {"name": name, "count": int(counts[at]), "share": f"{counts[at] / len(places):.0%}", "reached": f"{part:.0%}"}
        for at, (name, part) in enumerate(zip(names, reached.tolist(), strict=False))
    ]
    half = names[int(np.searchsorted(reached, 0.5))]
    return [
        Chart(
            key="lag",
            title="How long after its original a duplicate came",
            note=f"the percentages are shares of {len(places):,} duplicates. Added up from the top, as in the figures, "
            "they say what a shorter window would have seen; a longer one finds what comes later still",
            told=f"Of {len(places):,} duplicates, half came no later than {half} after what they repeat.",
            specification=_lag_chart(rows),
            behind=table(
                ["after the original", "duplicates", "share", "share up to here"],
                [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
            ),
        )
    ]


def _lag_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import altair as alt

    bars = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("count:Q", title="duplicates", axis=count_axis(max(row["count"] for row in rows))),
        y=alt.Y("name:N", title=None, sort=None),
        tooltip=[
            alt.Tooltip("name:N", title="after the original"),
            alt.Tooltip("count:Q", format=",", title="duplicates"),
            alt.Tooltip("share:N"),
            alt.Tooltip("reached:N", title="share up to here"),
        ],
    )
    said = bars.mark_text(align="left", dx=5).encode(text="share:N")
    return finished(alt.layer(bars.mark_bar(color=COLOURS[1]), said), height=24 * len(rows) + 50)


def by_source(flow: Flow) -> list[Chart]:
    """Return the chart of how much of each source repeats what was there; none where sources are not known, or one."""
    if flow.sources is None:
        return []
    sources = flow.sources.slice(flow.before)
    encoded = sources.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names, codes = encoded.dictionary.to_pylist(), pc.fill_null(encoded.indices, 0).to_numpy()
    if len(names) < 2:
        return []
    stopped = flow.of[flow.before :] != -1
    every = np.bincount(codes, minlength=len(names))
    duplicates = np.bincount(codes[stopped], minlength=len(names))
    order = np.lexsort((np.arange(len(names)), -every))
    rows: list[dict[str, Any]] = [
        {"name": names[at] or "(the inbox itself)", "items": int(every[at]), "duplicates": int(duplicates[at])}
        for at in order.tolist()
    ]
    cut = f"; the {_SOURCES} with most items of {len(rows):,}" if len(rows) > _SOURCES else ""
    most = max(rows, key=lambda row: row["duplicates"])
    return [
        Chart(
            key="sources",
            title="Who sends what was there already",
            note=f"by the folder that items came in, as they were taken{cut}",
            told=f"Most duplicates, {most['duplicates']:,} of {most['items']:,} items, came in {most['name']}.",
            specification=_source_chart(rows[:_SOURCES]),
            behind=table(
                ["folder", "items", "duplicates", "share"],
                [
                    [row["name"], row["items"], row["duplicates"], f"{row['duplicates'] / row['items']:.1%}"]
                    for row in rows[:_SOURCES]
                ],
                tall=True,
            ),
        )
    ]


def _source_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import altair as alt

    parts = []
    for row in rows:
        originals = row["items"] - row["duplicates"]
        for kind, count in zip(KINDS, (originals, row["duplicates"]), strict=True):
            parts.append(dict(row) | {"kind": kind, "count": count, "share": row["duplicates"] / row["items"]})
    chart = alt.Chart(alt.Data(values=parts)).mark_bar()
    return finished(
        chart.encode(
            x=alt.X("count:Q", title="items", axis=count_axis(max(row["items"] for row in rows))),
            y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=200)),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=list(KINDS), range=list(COLOURS[:2])),
                legend=alt.Legend(title=None, orient="top"),
            ),
            order=alt.Order("kind:N", sort="descending"),
            tooltip=[
                alt.Tooltip("name:N", title="folder"),
                alt.Tooltip("items:Q", format=","),
                alt.Tooltip("duplicates:Q", format=","),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        ),
        height=24 * len(rows) + 70,
    )
