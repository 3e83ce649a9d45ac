"""The charts of a report: similarities, other thresholds, and how soon the duplicates of a flow came."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from neardup.pages.charts import (
    COLOURS,
    FAINT,
    NOTHING,
    bars,
    bit_axis,
    count_axis,
    finish_chart,
    histogram,
    line,
    log_count_axis,
    similarity_axis,
    slider_rule,
    tooltips,
)
from neardup.pages.html import Chart, table
from neardup.pages.numbers import format_count
from neardup.pages.report import BINS, BITS, Report, Sweep, Wording
from neardup.pages.sweep import format_threshold

if TYPE_CHECKING:
    import altair as alt

    from neardup.pages.plot import Plot

#: Between two marks of the axis of similarities.
_BAND = 0.05


def similarity_chart(counts: Sequence[int], of: str, *, y: str, cut: float | None = None) -> Plot:
    """Return a histogram of similarities as an Altair chart, counts on a logarithmic scale.

    The counts are in ``BINS`` bins, as ``binned`` gives them. What lies below ``cut``, a parameter of the chart, is
    faint. Where the similarities are of BITS, there is a bar for each number of bits.
    """
    import altair as alt

    from neardup.pages.plot import Plot, nothing

    some = [(place, count) for place, count in enumerate(counts) if count]
    if not some:
        return nothing(f"no {y}")
    if of == BITS:
        rows = [_bar(_bits(place), count) for place, count in some]
        x = bit_axis("low", of, max(_bits(some[0][0]), 0 if cut is None else round(64 * (1 - cut))))
        told = tooltips(bits=("d", of), count=(",", y))
        # The rule stands between two bars.
        end = "64 * (1 - cut) + 0.5"
        seen = f"datum.high <= {end} + 1e-9"
    else:
        rows = [{"low": at / BINS, "high": (at + 1) / BINS, "count": count, "none": NOTHING} for at, count in some]
        lowest = min(row["low"] for row in rows)
        x = similarity_axis("low", of, lowest=lowest if cut is None else min(lowest, cut), step=_BAND)
        told = tooltips(low=(".2f", "from"), high=(".2f", "to"), count=(",", y))
        end = "cut"
        seen = f"datum.high > {end} + 1e-9"
    drawn = histogram(rows, x, log_count_axis("count", y, most=max(counts)), told)
    if cut is None:
        return Plot(layer=[drawn])
    colour = alt.condition(seen, alt.value(COLOURS[0]), alt.value(FAINT))
    layers = [drawn.encode(color=colour), slider_rule(end)]
    chart: Plot = Plot(layer=layers).add_params(alt.param(name="cut", value=cut))
    return chart


def _bits(place: int) -> int:
    """Return how many of 64 bits differ where the similarity is in that bin; no two numbers share one."""
    return 64 * (BINS - place) // BINS


def _bar(number: int, count: int) -> dict[str, float]:
    return {"bits": number, "low": number - 0.5, "high": number + 0.5, "count": count, "none": NOTHING}


def _sweep_chart(sweep: Sweep, wording: Wording) -> alt.LayerChart:
    import altair as alt

    rows = [
        {"at": at, "shown": threshold, "dropped": dropped, "pairs": pairs}
        for at, threshold, dropped, pairs in zip(
            sweep.similarities, sweep.thresholds, sweep.dropped, sweep.pairs, strict=True
        )
    ]
    if sweep.what == BITS:
        x, line_at = bit_axis("shown", f"threshold ({BITS})", round(sweep.thresholds[0])), "64 * (1 - cut)"
    else:
        title = f"{sweep.what}, shown as a similarity" if sweep.distance else f"threshold ({sweep.what})"
        x, line_at = similarity_axis("at", title, lowest=sweep.similarities[0], step=_BAND), "cut"
    y = alt.Y("dropped:Q", title=_gone(wording), axis=count_axis(max(sweep.dropped)), scale=alt.Scale(domainMin=0))
    tooltip = tooltips(shown=("~g", "threshold"), dropped=(",", wording.gone), pairs=(",", "pairs"))
    cut = alt.param(name="cut", value=sweep.similarities[sweep.own])
    return alt.layer(*line(rows, x, y, tooltip), slider_rule(line_at)).add_params(cut)


def build_charts(report: Report) -> tuple[list[Chart], list[Chart]]:
    """Return the charts of a report, with the tables behind them, and those that its slider moves."""
    found = [_to_keepers(report)]
    moving: list[Chart] = []
    if report.sweep is not None and len(report.sweep.thresholds) > 1:
        moving += [_of_pairs(report)] if any(report.pair_similarity) else []
        moving.append(_of_thresholds(report.sweep, report.wording))
    return [*found, *([_by_lag(report.lags)] if report.lags else [])], moving


def _to_keepers(report: Report) -> Chart:
    total, gone, of = sum(report.similarity), _gone(report.wording), report.similarity_of
    alike = report.similarity[-1] if total else 0
    same = "equal in all bits" if of == BITS else "with 0.99 or more"
    documents = format_count(total, gone.removesuffix("s"))
    told = f"Histogram of similarities to what they match: {documents}, {alike:,} {same}."
    return Chart(
        "similarity",
        report.wording.alike,
        f"{report.wording.documents} by {of if of == BITS else 'similarity'}; the scale is logarithmic",
        told,
        finish_chart(similarity_chart(report.similarity, of, y=gone)),
        _bins(report.similarity, of, gone),
        "" if total else f"no {gone}",
    )


def _of_pairs(report: Report) -> Chart:
    total = sum(report.pair_similarity)
    told = f"Histogram of the similarities of {format_count(total, 'pair')}; those that do not match are grey."
    return Chart(
        "pairs",
        "Pairs on both sides of the threshold",
        f"{report.wording.pairs}; logarithmic; grey: beyond the slider",
        told,
        finish_chart(
            similarity_chart(report.pair_similarity, report.similarity_of, y="pairs", cut=report.threshold or 0)
        ),
        _bins(report.pair_similarity, report.similarity_of, "pairs"),
    )


def _of_thresholds(sweep: Sweep, wording: Wording) -> Chart:
    first, last = sweep.dropped[0], sweep.dropped[-1]
    names = [format_threshold(threshold, sweep.what) for threshold in sweep.thresholds]
    told = (
        f"Line of {_gone(wording)} by threshold: {first:,} at {names[0]}, "
        f"{sweep.dropped[sweep.own]:,} at {names[sweep.own]}, {last:,} at {names[-1]}."
    )
    rows: list[list[Any]] = [
        [name, kept, dropped, pairs]
        for name, kept, dropped, pairs in zip(names, sweep.kept, sweep.dropped, sweep.pairs, strict=True)
    ]
    return Chart(
        "thresholds",
        wording.moved,
        wording.points,
        told,
        finish_chart(_sweep_chart(sweep, wording)),
        table(["threshold", wording.kept, wording.gone, "pairs"], rows, tall=True, best=(sweep.own,)),
        "" if any(sweep.dropped) else f"no {_gone(wording)} at any of these thresholds",
    )


def _gone(wording: Wording) -> str:
    return wording.gone if wording.gone.endswith("s") else f"{wording.gone} {wording.documents}"


def _bins(counts: Sequence[int], of: str, what: str) -> Any:
    rows = [
        [_bits(place) if of == BITS else f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}", count]
        for place, count in enumerate(counts)
        if count
    ]
    return table([BITS if of == BITS else "similarity", what], rows, tall=True)


def _by_lag(lags: Sequence[tuple[str, int]]) -> Chart:
    import altair as alt

    total = sum(count for _, count in lags)
    reached = [count / total for count in accumulate(count for _, count in lags)]
    rows = [
        {"name": name, "count": count, "share": f"{count / total:.0%}", "reached": f"{part:.0%}"}
        for (name, count), part in zip(lags, reached, strict=True)
    ]
    half = next(name for (name, _), part in zip(lags, reached, strict=True) if part >= 0.5)
    tooltip = tooltips(
        name=("", "after the original"),
        count=(",", "duplicates"),
        share=("", "share"),
        reached=("", "share up to here"),
    )
    drawn = bars(rows, "count", "duplicates", max(count for _, count in lags), tooltip)
    shares = drawn.mark_text(align="left", dx=5).encode(text="share:N")
    return Chart(
        key="lag",
        title="How long after its original a duplicate came",
        note=f"the percentages are shares of {format_count(total, 'duplicate')}; the figures also add them up "
        "from the top, to what a shorter window would have seen",
        told=f"Of {format_count(total, 'duplicate')}, half came no later than {half} after what they repeat.",
        specification=finish_chart(alt.layer(drawn, shares), height=24 * len(rows) + 50),
        behind=table(
            ["after the original", "duplicates", "share", "share up to here"],
            [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
        ),
    )
