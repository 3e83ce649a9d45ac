"""The page of an audit: figures, strata, charts of duplicates by score and of figures by threshold, pairs to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from neardup.evaluation.audit_result import AuditResult, Band, Example, Examples, figure_text, interval_text
from neardup.evaluation.population import Scale
from neardup.evaluation.scores import Figure
from neardup.pages.charts import COLOURS, count_axis, dashed, finished, kinds_of, tooltips
from neardup.pages.diff_view import pair_fold
from neardup.pages.html import (
    Chart,
    Html,
    clipped,
    escaped,
    facts,
    figures,
    html_of,
    joined,
    notes,
    opening,
    search_field,
    section,
    table,
    text,
    tiles,
)
from neardup.pages.page import check_drawing, page
from neardup.version import __version__

SIDES = ("returned", "not returned")
_FIGURES = ("precision", "recall among candidates")

Rows = Sequence[Mapping[str, Any]]


def charts_of(found: AuditResult) -> list[Chart]:
    """Return the charts of an audit; those of figures that are not known are left out."""
    return [*_by_score(found), *_by_threshold(found)]


def label_of(found: AuditResult, band: Band) -> str:
    """Return what a stratum is called: returned, 0.8 to 0.85."""
    return f"{SIDES[not band.returned]}, {band.between(found.scale_of(band))}"


def _by_score(found: AuditResult) -> list[Chart]:
    scales = dict.fromkeys(found.scale_of(band) for band in found.strata)
    return [_shares(found, scale, at) for at, scale in enumerate(scales)]


def _shares(found: AuditResult, scale: Scale, at: int) -> Chart:
    bands = [band for band in found.strata if found.scale_of(band) == scale and band.judged]
    rows = [_row_of(band, scale) for band in bands]
    sides = list(dict.fromkeys(row["side"] for row in rows))
    own = scale.shown(found.own.score) if scale == found.scale and found.scale == found.other_scale else None
    said = "; ".join(f"{row['side']} at {row['between']}: {row['share']:.2f}" for row in rows)
    way = "points: the share found; upright lines: 95 % intervals; level lines: the stratum"
    return Chart(
        key=f"share{at or ''}",
        title=f"Share of duplicates by {scale.name}",
        note=f"{way}{'; dashed: the working point' if own is not None else ''}",
        told=f"Share of duplicates in each stratum of {scale.name}. {said}",
        specification=_shares_chart(rows, sides, scale, own),
        behind=_strata(found, bands),
        missing="" if rows else "none of these pairs is judged yet",
    )


def _row_of(band: Band, scale: Scale) -> dict[str, Any]:
    ends = [scale.shown(end) for end in (band.low, band.high)]
    # A distance has no end where nothing is alike.
    low, high = (end if isfinite(end) else next(filter(isfinite, ends), 0.0) for end in ends)
    return {
        "side": SIDES[not band.returned],
        "low": low,
        "high": high,
        "middle": (low + high) / 2,
        "share": band.share.value,
        "least": band.share.low,
        "most": band.share.high,
        "interval": interval_text(band.share),
        "between": band.between(scale),
        "pairs": band.pairs,
        "judged": band.judged,
        "same": band.same,
    }


def _shares_chart(rows: Rows, sides: Sequence[str], scale: Scale, own: float | None) -> dict[str, Any]:
    import altair as alt

    axis = alt.Scale(zero=False, nice=False, padding=14, reverse=scale.distance)
    several = len(sides) > 1
    chart = alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        color=alt.Color("side:N", **kinds_of(SIDES, legend=several, symbolOpacity=1))
    )
    y = alt.Scale(domain=[0, 1])
    told = tooltips(
        between=("", scale.name),
        pairs=(",", "pairs"),
        judged=(",", "judged"),
        same=(",", "duplicates"),
        share=(".3f", "share"),
        interval=("", "interval"),
    )
    ends = [row[end] for row in rows for end in ("low", "high")]
    x = alt.X("middle:Q", title=scale.name, scale=axis, **_marks(scale, ends))
    share = alt.Y("share:Q", title="share of duplicates", scale=y)
    layers = [
        chart.mark_rule(strokeWidth=5, opacity=0.28).encode(x=alt.X("low:Q", scale=axis), x2="high:Q", y=share),
        chart.mark_rule(strokeWidth=1.6).encode(x=x, y=alt.Y("least:Q", scale=y), y2="most:Q"),
        chart.mark_point(filled=True, size=80, opacity=1).encode(
            x=x,
            y=share,
            shape=alt.Shape("side:N", **kinds_of(SIDES, ("circle", "diamond"), legend=several, symbolOpacity=1)),
            tooltip=told,
        ),
    ]
    if own is not None:
        layers.append(dashed([{"at": own}]).encode(x="at:Q"))
    return finished(alt.layer(*layers))


def _marks(scale: Scale, values: Sequence[float]) -> dict[str, Any]:
    """Return the axis of bits, which are whole; that of any other score is the usual one."""
    if scale.measure != "hamming" or not values:
        return {}
    return {"axis": count_axis(max(values))}


def _by_threshold(found: AuditResult) -> list[Chart]:
    rows = []
    for point in found.points:
        threshold = found.scale.shown(point.score)
        for name, figure in zip(_FIGURES, (point.precision, point.recall), strict=True):
            if figure.value is not None and isfinite(threshold):
                row = {"name": name, "at": threshold, "share": figure.value, "least": figure.low, "most": figure.high}
                rows.append(row | {"own": point.own, "interval": interval_text(figure), "returned": point.returned})
    if len({row["at"] for row in rows}) < 2:
        return []
    told = "; ".join(f"at {row['at']:.4g} {row['name']} {row['share']:.2f}" for row in rows)
    return [
        Chart(
            key="threshold",
            title="Precision and recall at other thresholds",
            note="ringed: the working point; shaded: 95 % intervals. A threshold that is chosen here ought to be "
            "audited again with other pairs",
            told=f"Precision and recall by threshold of {found.scale.name}: {told}",
            specification=_figures_chart(rows, found.scale),
            behind=_points(found),
        )
    ]


def _figures_chart(rows: Rows, scale: Scale) -> dict[str, Any]:
    import altair as alt

    chart = alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        x=alt.X(
            "at:Q",
            title=f"threshold of {scale.name}",
            scale=alt.Scale(zero=False, nice=False, padding=14, reverse=scale.distance),
            **_marks(scale, [row["at"] for row in rows]),
        ),
        color=alt.Color("name:N", **kinds_of(_FIGURES, COLOURS[2:], symbolOpacity=1, symbolType="circle")),
    )
    y = alt.Scale(domain=[0, 1])
    share = alt.Y("share:Q", title="share", scale=y)
    told = tooltips(
        name=("", "figure"),
        at=("~g", "threshold"),
        share=(".3f", "share"),
        interval=("", "interval"),
        returned=(",", "pairs returned"),
    )
    # Where the working point has no figures there is nothing to ring, and an empty layer has no extent.
    ring = chart.transform_filter("datum.own").mark_point(size=170, strokeWidth=2).encode(y=share)
    return finished(
        alt.layer(
            chart.mark_area(opacity=0.16).encode(y=alt.Y("least:Q", scale=y, title="share"), y2="most:Q"),
            chart.mark_line(strokeWidth=1.8).encode(y=share),
            chart.mark_point(filled=True, size=46, opacity=1).encode(y=share, tooltip=told),
            *([ring] if any(row["own"] for row in rows) else []),
        )
    )


_TITLE = "How good is this result?"
#: Intervals narrower than that have a digit more.
_CLOSE = 0.05
#: Characters of a title that the line of a pair shows.
_NAMED = 90
#: Of each kind of pairs: what they are called, and what to think of them.
_KINDS = {
    "wrong": (
        "Returned, but judged different",
        "Each costs precision. A higher threshold loses those with low scores, at the price of recall.",
    ),
    "missed": (
        "Judged the same, but not returned",
        "Each costs recall. A lower threshold finds those with high scores, at the price of precision.",
    ),
    "unsure": (
        "Nobody is sure",
        "Judged unsure, or by as many same as different. They are left out of the figures.",
    ),
}


def audit_page(found: AuditResult, *, command: str = "") -> str:
    """Return the page of an audit, with its examples where it has some."""
    check_drawing("a page")
    charts = charts_of(found) if found.same + found.different else []
    body = [
        opening(_TITLE, joined([text(found.point), "; looked at: ", text(found.candidate_rule)])),
        tiles(list(_tiles(found))),
        notes(found.notes(), title="Before you trust the figures"),
        section("score", "Where duplicates are", figures(charts)) if charts else "",
        section(
            "points",
            "At other thresholds",
            _points(found),
            intro="Where a stratum (a range of scores) begins, the labels say as much as at the working point.",
        ),
        section("strata", "What was drawn", _strata(found, found.strata), intro=_drawn(found)),
        *_examples(found),
        section("about", "What was audited", _about(found, command)),
        section("reading", "How to read this", _reading()),
    ]
    scripts = ["search.js"] if found.examples is not None and any(found.examples.total.values()) else []
    return page(f"{_TITLE} - neardup", "\n".join(filter(None, body)), charts, scripts=scripts)


def _tiles(found: AuditResult) -> Iterator[tuple[str, str, str]]:
    shares = (
        ("precision", found.precision, "of the returned pairs are duplicates"),
        ("recall among candidates", found.recall, "of the duplicates among the candidates are returned"),
    )
    for name, figure, meaning in shares:
        if figure.value is None:
            yield "not known", name, "until more of the drawn pairs are judged"
        else:
            yield f"{figure.value:.1%}", name, f"{_percent(figure)} {meaning}"
    yield f"{found.own.returned:,}", "pairs returned", f"of {found.candidates:,} candidates"
    number = found.duplicates
    if number.value is not None and number.low is not None and number.high is not None:
        yield (
            f"{number.value:,.0f}",
            "duplicates, estimated",
            f"{number.low:,.0f} to {number.high:,.0f} candidates",
        )
    yield f"{found.same + found.different:,}", "pairs judged", f"of {found.drawn:,} drawn"


def _percent(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return ""
    digits = 1 if figure.high - figure.low < _CLOSE else 0
    return f"{figure.low:.{digits}%} to {figure.high:.{digits}%}"


def _drawn(found: AuditResult) -> str:
    return (
        f"Of {found.candidates:,} pairs of distinct texts {found.drawn:,} were drawn at random: from each stratum, "
        f"a range of scores on one side of the threshold, those with the smallest hashes (seed {found.seed}), half of "
        f"them from what is returned."
    )


def _points(found: AuditResult) -> Html:
    sign = "at most" if found.scale.distance else "at least"
    rows = [
        [
            f"{found.scale.shown(point.score):.4g}{', audited' if point.own else ''}",
            point.returned,
            _figure(point.precision),
            _figure(point.recall),
        ]
        for point in found.points
    ]
    head = [f"{found.scale.name}, {sign}", "pairs returned", "precision", "recall among candidates"]
    return table(head, rows, best=[at for at, point in enumerate(found.points) if point.own])


def _strata(found: AuditResult, bands: Sequence[Band]) -> Html:
    head = ["stratum", "pairs", "drawn", "judged", "same", "unsure", "share of duplicates"]
    rows = [
        [
            label_of(found, band),
            *(band.pairs, band.drawn, band.judged, band.same, band.unsure),
            _figure(band.share) if band.judged else "nothing judged",
        ]
        for band in bands
    ]
    names = dict.fromkeys(found.scale_of(band).name for band in bands)
    return table(head, rows, caption=f"Strata by {' / '.join(names)}")


def _figure(figure: Figure) -> Html:
    if figure.value is None:
        return escaped("not known")
    return Html(f"{figure.value:.3f}<small>{escaped(interval_text(figure))}</small>")


def _examples(found: AuditResult) -> Iterator[Html]:
    examples = found.examples
    if examples is None or not any(examples.total.values()):
        return
    yield section(
        "pairs",
        "Pairs to read",
        search_field("pairs", label="Show pairs with these words or ids", noun="pairs"),
        *(_kind(found, examples, kind) for kind in _KINDS if examples.total[kind]),
        intro="Pairs that stand for the most others come first.",
    )


def _kind(found: AuditResult, examples: Examples, kind: str) -> Html:
    shown, total = examples.shown[kind], examples.total[kind]
    title, meaning = _KINDS[kind]
    cut = f" {len(shown):,} of {total:,} are shown." if len(shown) < total else ""
    folds = joined(_example(found, one, opened=at == 0 and kind == "wrong") for at, one in enumerate(shown))
    return Html(f"<h3>{escaped(title)} ({total:,})</h3><p>{escaped(meaning + cut)}</p>{folds}")


def _example(found: AuditResult, one: Example, *, opened: bool) -> Html:
    scale = found.scale if one.returned else found.other_scale
    said = [f"{scale.name} {scale.shown(one.score):.4g}"]
    if one.stands_for:
        said.append(f"stands for about {one.stands_for:,.0f} {'pair' if round(one.stands_for) == 1 else 'pairs'}")
    else:
        said.append("returned" if one.returned else "not returned")
    names = joined([text(one.left.id), " and ", text(one.right.id)])
    title = one.left.title or one.right.title
    lead = joined([" ", text(clipped(title, _NAMED))]) if title else ""
    summary = Html(f'<strong>{names}</strong>{lead} <small class="dim">{html_of("; ".join(said))}</small>')
    return pair_fold(summary, one.left, one.right, opened=opened)


def _about(found: AuditResult, command: str) -> Html:
    rows: dict[str, object] = {
        "working point": text(found.point),
        "candidate rule": text(found.candidate_rule),
        "documents": found.documents,
        "copies": f"{found.copies:,} repeat another text byte for byte",
        "candidates": found.candidates,
        "precision": figure_text(found.precision),
        "recall among candidates": figure_text(found.recall),
        "seed of the sample": found.seed,
        "command": Html(f"<code>{escaped(command)}</code>") if command else "",
        "version": f"neardup {__version__}",
    }
    return facts({name: value for name, value in rows.items() if value != ""})


def _reading() -> Html:
    return facts(
        {
            "precision": "The share of duplicates among the returned pairs, estimated: each stratum's share counts by "
            "the number of its pairs.",
            "recall among candidates": "The share of returned pairs among all duplicates that the candidate rule "
            "lets pass. Other pairs were not looked at.",
            "intervals": "95 %: where the truth is known, at least 92 of 100 such samples gave intervals that hold it. "
            "They say what drawing pairs leaves open, not whether the labels are right.",
            "stands for": "Where few pairs of a large stratum were drawn, each speaks for many that nobody read.",
            "documents in pairs": "Words that differ are marked and underlined; long equal passages are folded.",
        }
    )
