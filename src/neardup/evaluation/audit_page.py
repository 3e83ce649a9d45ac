"""The page of an audit: figures, strata, figures by threshold, pairs to read."""

from __future__ import annotations

from collections.abc import Iterator

from neardup.evaluation.audit_result import AuditResult, Example, Examples
from neardup.evaluation.scores import Figure
from neardup.pages.diff_view import pair_fold
from neardup.pages.html import (
    Html,
    clip,
    escape,
    facts,
    join_html,
    named_inputs,
    notes,
    opening,
    search_field,
    section,
    table,
    text,
    tiles,
    to_html,
)
from neardup.pages.page import check_drawing, page
from neardup.version import __version__

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
    body = [
        opening(
            _TITLE,
            named_inputs(found.inputs),
            join_html([text(found.point), "; looked at: ", text(found.candidate_rule)]),
        ),
        tiles(list(_tiles(found))),
        notes(found.notes(), title="Before you trust the figures"),
        section(
            "points",
            "At other thresholds",
            _points(found),
            intro="Where a range of scores begins from which pairs were drawn, the labels say as much as at the "
            "working point.",
        ),
        section("strata", "What was drawn", _strata(found), intro=_drawn(found)),
        *_examples(found),
        section("about", "What was audited", _about(found, command)),
        section("reading", "How to read this", _reading()),
    ]
    scripts = ["search.js"] if found.examples is not None and any(found.examples.total.values()) else []
    return page(f"{_TITLE} - neardup", "\n".join(filter(None, body)), {}, scripts=scripts)


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


def _in_words(figure: Figure) -> str:
    return "not known" if figure.value is None else f"{figure.value:.1%} ({_percent(figure)})"


def _drawn(found: AuditResult) -> str:
    return (
        f"Of {found.candidates:,} pairs of distinct texts {found.drawn:,} were drawn at random: from each "
        f"range of scores on one side of the threshold, those with the smallest hashes (seed {found.seed}), half of "
        f"them from what is returned."
    )


def _points(found: AuditResult) -> Html:
    sign = "at most" if found.scale.distance else "at least"
    rows = [
        [
            f"{found.scale.shown(point.score):.4g}{', audited' if point.own else ''}",
            _figure(point.precision),
            _figure(point.recall),
            point.returned,
        ]
        for point in found.points
    ]
    head = [f"{found.scale.name}, {sign}", "precision", "recall among candidates", "pairs returned"]
    return table(head, rows, best=[at for at, point in enumerate(found.points) if point.own])


def _strata(found: AuditResult) -> Html:
    head = ["range of scores", "share of duplicates", "pairs", "drawn", "judged", "same", "unsure"]
    rows = [
        [
            f"{'' if band.returned else 'not '}returned, {band.between(found.scale_of(band))}",
            _figure(band.share) if band.judged else "nothing judged",
            *(band.pairs, band.drawn, band.judged, band.same, band.unsure),
        ]
        for band in found.strata
    ]
    names = dict.fromkeys(found.scale_of(band).name for band in found.strata)
    return table(head, rows, caption=f"Ranges of scores by {' / '.join(names)}")


def _figure(figure: Figure) -> Html:
    if figure.value is None:
        return escape("not known")
    return Html(f"{figure.value:.1%}<small>{escape(_percent(figure))}</small>")


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
    folds = join_html(_example(found, one, opened=at == 0 and kind == "wrong") for at, one in enumerate(shown))
    return Html(f"<h3>{escape(title)} ({total:,})</h3><p>{escape(meaning + cut)}</p>{folds}")


def _example(found: AuditResult, one: Example, *, opened: bool) -> Html:
    scale = found.scale if one.returned else found.other_scale
    said = [f"{scale.name} {scale.shown(one.score):.4g}"]
    if one.stands_for:
        said.append(f"stands for about {one.stands_for:,.0f} {'pair' if round(one.stands_for) == 1 else 'pairs'}")
    else:
        said.append("returned" if one.returned else "not returned")
    names = join_html([text(one.left.id), " and ", text(one.right.id)])
    title = one.left.title or one.right.title
    lead = join_html([" ", text(clip(title, _NAMED))]) if title else ""
    summary = Html(f'<strong>{names}</strong>{lead} <small class="dim">{to_html("; ".join(said))}</small>')
    return pair_fold(summary, one.left, one.right, opened=opened)


def _about(found: AuditResult, command: str) -> Html:
    rows: dict[str, object] = {
        "working point": text(found.point),
        "candidate rule": text(found.candidate_rule),
        "documents": found.documents,
        "copies": f"{found.copies:,} repeat another text byte for byte",
        "candidates": found.candidates,
        "precision": _in_words(found.precision),
        "recall among candidates": _in_words(found.recall),
        "seed of the sample": found.seed,
        "command": Html(f"<code>{escape(command)}</code>") if command else "",
        "version": f"neardup {__version__}",
    }
    return facts({name: value for name, value in rows.items() if value != ""})


def _reading() -> Html:
    return facts(
        {
            "precision": "The share of duplicates among the returned pairs, estimated: the share in each range of "
            "scores counts by the number of its pairs.",
            "recall among candidates": "The share of returned pairs among all duplicates that the candidate rule "
            "lets pass. Other pairs were not looked at.",
            "intervals": "95%: where the truth is known, at least 92 of 100 such samples gave intervals that hold it. "
            "They say what drawing pairs leaves open, not whether the labels are right.",
            "stands for": "Where few pairs of a range with many were drawn, each speaks for many that nobody read.",
            "documents in pairs": "Words that differ are marked and underlined; long equal passages are folded.",
        }
    )
