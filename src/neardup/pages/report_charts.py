"""The charts of a report: similarities, other thresholds, and how soon the duplicates of a flow came."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from neardup.pages.charts import (
    COLOURS,
    FAINT_COLOUR,
    LOG_FLOOR,
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


def similarity_chart(counts: Sequence[int], of: str, *, y: str, cut: float | None = None) -> Plot:
    """Return a histogram of similarities as an Altair chart with a logarithmic axis of counts.

    ``counts`` come from ``bin_similarities``, ``of`` names the similarity. Bars below the chart's parameter ``cut`` are
    grey. For BITS there is a bar for each number of bits.
    """
    import altair as alt

    from neardup.pages.plot import Plot, empty_plot

    bins = [(at, count) for at, count in enumerate(counts) if count]
    if not bins:
        return empty_plot(f"no {y}")
    if of == BITS:
        rows = [_bit_bar(_differing_bits(at), count) for at, count in bins]
        x = bit_axis("low", of, max(_differing_bits(bins[0][0]), 0 if cut is None else round(64 * (1 - cut))))
        description = tooltips(bits=("d", of), count=(",", y))
        # The rule stands between two bars.
        end = "64 * (1 - cut) + 0.5"
        matches = f"datum.high <= {end} + 1e-9"
    else:
        rows = [{"low": at / BINS, "high": (at + 1) / BINS, "count": count, "none": LOG_FLOOR} for at, count in bins]
        lowest = min(row["low"] for row in rows)
        x = similarity_axis("low", of, lowest=lowest if cut is None else min(lowest, cut))
        description = tooltips(low=(".2f", "from"), high=(".2f", "to"), count=(",", y))
        end = "cut"
        matches = f"datum.high > {end} + 1e-9"
    drawn = histogram(rows, x, log_count_axis("count", y, most=max(counts)), description)
    if cut is None:
        return Plot(layer=[drawn])
    colour = alt.condition(matches, alt.value(COLOURS[0]), alt.value(FAINT_COLOUR))
    layers = [drawn.encode(color=colour), slider_rule(end)]
    chart: Plot = Plot(layer=layers).add_params(alt.param(name="cut", value=cut))
    return chart


def _differing_bits(at: int) -> int:
    """Return the number of 64 bits that differ in a bin of similarities; no two numbers share a bin."""
    return 64 * (BINS - at) // BINS


def _bit_bar(number: int, count: int) -> dict[str, float]:
    return {"bits": number, "low": number - 0.5, "high": number + 0.5, "count": count, "none": LOG_FLOOR}


def _sweep_chart(sweep: Sweep, wording: Wording) -> alt.LayerChart:
    import altair as alt

    rows = [
        {"at": at, "shown": threshold, "dropped": dropped, "pairs": pairs}
        for at, threshold, dropped, pairs in zip(
            sweep.similarities, sweep.thresholds, sweep.dropped, sweep.pairs, strict=True
        )
    ]
    if sweep.threshold_name == BITS:
        x, line_at = bit_axis("shown", f"threshold ({BITS})", round(sweep.thresholds[0])), "64 * (1 - cut)"
    else:
        title = (
            f"{sweep.threshold_name}, shown as a similarity"
            if sweep.is_distance
            else f"threshold ({sweep.threshold_name})"
        )
        x, line_at = similarity_axis("at", title, lowest=sweep.similarities[0]), "cut"
    y = alt.Y(
        "dropped:Q", title=_dropped_noun(wording), axis=count_axis(max(sweep.dropped)), scale=alt.Scale(domainMin=0)
    )
    tooltip = tooltips(shown=("~g", "threshold"), dropped=(",", wording.dropped), pairs=(",", "pairs"))
    cut = alt.param(name="cut", value=sweep.similarities[sweep.own_index])
    return alt.layer(*line(rows, x, y, tooltip), slider_rule(line_at)).add_params(cut)


def build_charts(report: Report) -> tuple[list[Chart], list[Chart]]:
    """Return the charts of a report, and those that its slider changes."""
    found = [_keepers_chart(report)]
    moving: list[Chart] = []
    if report.sweep is not None and len(report.sweep.thresholds) > 1:
        moving += [_pairs_chart(report)] if any(report.pair_similarity) else []
        moving.append(_thresholds_chart(report.sweep, report.wording))
    return [*found, *([_lags_chart(report.lags)] if report.lags else [])], moving


def _keepers_chart(report: Report) -> Chart:
    total, dropped, of = sum(report.similarity), _dropped_noun(report.wording), report.similarity_name
    alike = report.similarity[-1] if total else 0
    same = "equal in all bits" if of == BITS else "with 0.99 or more"
    documents = format_count(total, dropped.removesuffix("s"))
    description = f"Histogram of similarities to what they match: {documents}, {alike:,} {same}."
    return Chart(
        "similarity",
        report.wording.similarity_title,
        f"{report.wording.documents} by {of if of == BITS else 'similarity'}; the scale is logarithmic",
        description,
        finish_chart(similarity_chart(report.similarity, of, y=dropped)),
        _bins_table(report.similarity, of, dropped),
        "" if total else f"no {dropped}",
    )


def _pairs_chart(report: Report) -> Chart:
    total = sum(report.pair_similarity)
    description = f"Histogram of the similarities of {format_count(total, 'pair')}; those that do not match are grey."
    return Chart(
        "pairs",
        "Pairs on both sides of the threshold",
        f"{report.wording.pairs}; logarithmic; grey: beyond the slider",
        description,
        finish_chart(
            similarity_chart(report.pair_similarity, report.similarity_name, y="pairs", cut=report.threshold or 0)
        ),
        _bins_table(report.pair_similarity, report.similarity_name, "pairs"),
    )


def _thresholds_chart(sweep: Sweep, wording: Wording) -> Chart:
    first, last = sweep.dropped[0], sweep.dropped[-1]
    names = [format_threshold(threshold, sweep.threshold_name) for threshold in sweep.thresholds]
    description = (
        f"Line of {_dropped_noun(wording)} by threshold: {first:,} at {names[0]}, "
        f"{sweep.dropped[sweep.own_index]:,} at {names[sweep.own_index]}, {last:,} at {names[-1]}."
    )
    rows: list[list[Any]] = [
        [name, kept, dropped, pairs]
        for name, kept, dropped, pairs in zip(names, sweep.kept, sweep.dropped, sweep.pairs, strict=True)
    ]
    return Chart(
        "thresholds",
        wording.sweep_title,
        wording.sweep_caption,
        description,
        finish_chart(_sweep_chart(sweep, wording)),
        table(["threshold", wording.kept, wording.dropped, "pairs"], rows, tall=True, highlighted=(sweep.own_index,)),
        "" if any(sweep.dropped) else f"no {_dropped_noun(wording)} at any of these thresholds",
    )


def _dropped_noun(wording: Wording) -> str:
    return wording.dropped if wording.dropped.endswith("s") else f"{wording.dropped} {wording.documents}"


def _bins_table(counts: Sequence[int], of: str, what: str) -> Any:
    rows = [
        [_differing_bits(at) if of == BITS else f"{at / BINS:.2f} to {(at + 1) / BINS:.2f}", count]
        for at, count in enumerate(counts)
        if count
    ]
    return table([BITS if of == BITS else "similarity", what], rows, tall=True)


def _lags_chart(lags: Sequence[tuple[str, int]]) -> Chart:
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
        note=f"shares of {format_count(total, 'duplicate')}; the figures add up what a shorter window would find",
        description=f"Of {format_count(total, 'duplicate')}, half came no later than {half} after what they repeat.",
        specification=finish_chart(alt.layer(drawn, shares), height=24 * len(rows) + 50),
        figures_table=table(
            ["after the original", "duplicates", "share", "share up to here"],
            [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
        ),
    )
