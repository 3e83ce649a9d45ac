"""The page of an audit: figures, strata, figures by threshold, pairs to read."""

from __future__ import annotations

from collections.abc import Iterator

from neardup.documents.column_paths import column_words
from neardup.evaluation.audit_result import AuditResult, Example, Examples
from neardup.evaluation.intervals import Figure
from neardup.pages import html
from neardup.pages.diff_view import pair_fold
from neardup.pages.html import Html, escape, text
from neardup.pages.page import check_drawing, page
from neardup.version import __version__

_TITLE = "How good is this result?"
#: Narrower intervals get one more digit.
_NARROW_INTERVAL = 0.05
_MAX_TITLE_LENGTH = 90
_KINDS = {
    "wrong": (
        "Returned, but judged different",
        "Each lowers precision. A higher threshold drops those with low scores, but lowers recall.",
    ),
    "missed": (
        "Judged the same, but not returned",
        "Each lowers recall. A lower threshold finds those with high scores, but lowers precision.",
    ),
    "unsure": (
        "Unsure",
        "Judged unsure, or same by as many labellers as different. The figures leave them out.",
    ),
}


def audit_page(audit: AuditResult, *, command: str = "") -> str:
    """Return the page of an audit, with its examples if it has any."""
    check_drawing("a page")
    body = [
        html.opening(
            _TITLE,
            html.named_inputs(audit.inputs),
            html.fill("{}; candidates: {}", text(audit.point), text(audit.candidate_rule)),
        ),
        html.tiles(list(_tiles(audit))),
        html.notes(audit.notes(), title="Before you trust the figures"),
        html.section(
            "points",
            "At other thresholds",
            _points(audit),
            intro="Each range of scores begins at one of these thresholds.",
        ),
        html.section("strata", "What was drawn", _strata(audit), intro=_sample_text(audit)),
        *_examples(audit),
        html.section("about", "What was audited", _about(audit, command)),
        html.section("reading", "How to read this", _reading()),
    ]
    scripts = ["search.js"] if audit.examples is not None and any(audit.examples.totals.values()) else []
    return page(f"{_TITLE} - neardup", "\n".join(filter(None, body)), scripts=scripts)


def _tiles(audit: AuditResult) -> Iterator[tuple[str, str, str]]:
    shares = (
        ("precision", audit.precision, "of the returned pairs are duplicates"),
        ("recall among candidates", audit.recall, "of the duplicates among the candidates are returned"),
    )
    for name, figure, meaning in shares:
        if figure.value is None:
            yield "not known", name, "until more of the drawn pairs are judged"
        else:
            yield f"{figure.value:.1%}", name, f"{_percent(figure)} {meaning}"
    yield f"{audit.working_point.returned:,}", "pairs returned", f"of {audit.candidates:,} candidates"
    value, low, high = audit.duplicates
    if value is not None and low is not None and high is not None:
        yield f"{value:,.0f}", "duplicates, estimated", f"{low:,.0f} to {high:,.0f} candidates"
    yield f"{audit.same + audit.different:,}", "pairs judged", f"of {audit.drawn:,} drawn"


def _percent(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return ""
    digits = 1 if figure.high - figure.low < _NARROW_INTERVAL else 0
    return f"{figure.low:.{digits}%} to {figure.high:.{digits}%}"


def _in_words(figure: Figure) -> str:
    return "not known" if figure.value is None else f"{figure.value:.1%} ({_percent(figure)})"


def _sample_text(audit: AuditResult) -> str:
    return (
        f"{audit.drawn:,} of the {audit.candidates:,} pairs of distinct texts were drawn at random, half of them from "
        f"the returned pairs: in each range of scores on one side of the threshold, those whose ids have the "
        f"smallest hashes (seed {audit.seed})."
    )


def _points(audit: AuditResult) -> Html:
    sign = "at most" if audit.returned_scale.is_distance else "at least"
    rows = [
        [
            f"{audit.returned_scale.threshold(point.score):.4g}{', audited' if point.is_working_point else ''}",
            _figure(point.precision),
            _figure(point.recall),
            point.returned,
        ]
        for point in audit.points
    ]
    head = [f"{audit.returned_scale.name}, {sign}", "precision", "recall among candidates", "pairs returned"]
    return html.table(head, rows, highlighted=[at for at, point in enumerate(audit.points) if point.is_working_point])


def _strata(audit: AuditResult) -> Html:
    head = ["range of scores", "share of duplicates", "pairs", "drawn", "judged", "same", "unsure"]
    rows = [
        [
            f"{'' if stratum.returned else 'not '}returned, {stratum.score_range(audit.stratum_scale(stratum))}",
            _figure(stratum.share) if stratum.judged else "none judged",
            *(stratum.pairs, stratum.drawn, stratum.judged, stratum.same, stratum.unsure),
        ]
        for stratum in audit.strata
    ]
    names = dict.fromkeys(audit.stratum_scale(stratum).name for stratum in audit.strata)
    return html.table(head, rows, caption=f"Ranges of scores by {' / '.join(names)}")


def _figure(figure: Figure) -> Html:
    if figure.value is None:
        return escape("not known")
    return html.fill("{}<small>{}</small>", f"{figure.value:.1%}", _percent(figure))


def _examples(audit: AuditResult) -> Iterator[Html]:
    examples = audit.examples
    if examples is None or not any(examples.totals.values()):
        return
    yield html.section(
        "pairs",
        "Pairs to read",
        html.search_field("pairs", label="Show pairs with these words or ids", noun="pairs"),
        *(_kind(audit, examples, kind) for kind in _KINDS if examples.totals[kind]),
        intro="The pairs that represent the most others come first.",
    )


def _kind(audit: AuditResult, examples: Examples, kind: str) -> Html:
    pairs, total = examples.pairs[kind], examples.totals[kind]
    title, meaning = _KINDS[kind]
    cut = f" {len(pairs):,} of {total:,} are shown." if len(pairs) < total else ""
    folds = html.join_html(_example(audit, pair, opened=at == 0 and kind == "wrong") for at, pair in enumerate(pairs))
    return html.fill("<h3>{} ({})</h3><p>{}</p>{}", title, total, meaning + cut, folds)


def _example(audit: AuditResult, pair: Example, *, opened: bool) -> Html:
    scale = audit.returned_scale if pair.returned else audit.unreturned_scale
    remark = "returned" if pair.returned else "not returned"
    if pair.weight:
        remark = f"represents about {pair.weight:,.0f} {'pair' if round(pair.weight) == 1 else 'pairs'}"
    title = pair.left.title or pair.right.title
    summary = html.fill(
        '<strong>{} and {}</strong>{} <small class="dim">{}</small>',
        text(pair.left.id),
        text(pair.right.id),
        html.fill(" {}", text(html.clip(title, _MAX_TITLE_LENGTH))) if title else "",
        f"{scale.name} {scale.threshold(pair.score):.4g}; {remark}",
    )
    return pair_fold(summary, pair.left, pair.right, is_open=opened)


def _about(audit: AuditResult, command: str) -> Html:
    rows: dict[str, object] = {
        "working point": text(audit.point),
        "candidate rule": text(audit.candidate_rule),
        "columns": text(column_words(audit.columns)) if audit.columns else "",
        "documents": audit.documents,
        "copies": f"{audit.copies:,} repeat another text byte for byte",
        "candidates": audit.candidates,
        "precision": _in_words(audit.precision),
        "recall among candidates": _in_words(audit.recall),
        "seed of the sample": audit.seed,
        "command": html.fill("<code>{}</code>", command) if command else "",
        "version": f"neardup {__version__}",
    }
    return html.facts({name: value for name, value in rows.items() if value != ""})


def _reading() -> Html:
    return html.facts(
        {
            "precision": "The estimated share of duplicates among the returned pairs. The share in each range of "
            "scores is weighted by the number of its pairs.",
            "recall among candidates": "The estimated share of returned pairs among the duplicates that pass the "
            "candidate rule. Other pairs were not examined.",
            "intervals": "95%: in simulations with a known truth, at least 92 of 100 such intervals contained it. "
            "They cover the chance of the draw, not errors in the labels.",
            "represents": "A judged pair stands for as many pairs as its range of scores has for each judged one.",
            "documents in pairs": "Words that differ are marked and underlined; long equal passages are folded.",
        }
    )
