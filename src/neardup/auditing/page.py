"""The page of an audit: the figures with their intervals, where they come from, and the pairs that were wrong."""

from __future__ import annotations

from collections.abc import Iterator

from neardup import __version__
from neardup.auditing.curves import charts_of, close_text, label_of, outlook_of
from neardup.auditing.examples import Example, Examples
from neardup.auditing.finding import Audit, figure_text
from neardup.evaluation.scoring import Figure
from neardup.pages.differences import side_by_side
from neardup.pages.excerpts import clipped
from neardup.pages.frame import check_drawing, page
from neardup.pages.parts import (
    Html,
    escaped,
    facts,
    figures,
    fold,
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

_TITLE = "How good is this result?"
#: Intervals narrower than that have a digit more.
_CLOSE = 0.05
#: Characters of a pair that the search field looks through, and of its title that its line shows.
_SEARCHED, _NAMED = 2000, 90
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


def audit_page(found: Audit, *, command: str = "") -> str:
    """Return the page of an audit, with its examples where it has some.

    Parameters
    ----------
    found : Audit
        What the labels say.
    command : str
        As it was typed, quoted for a shell; empty from Python.

    Raises
    ------
    OutputError
        If the packages that draw are not installed.
    """
    check_drawing("a page")
    charts = charts_of(found) if found.same + found.different else []
    outlook = outlook_of(found)
    body = [
        opening(_TITLE, joined([text(found.point), "; looked at: ", text(found.net)])),
        tiles(list(_tiles(found))),
        notes(found.cautions(), title="Before you trust the figures"),
        section("score", "Where duplicates are", figures(charts)) if charts else "",
        section(
            "points",
            "At other thresholds",
            _points(found),
            intro="Thresholds where strata begin: the labels say of these what they say of the working point.",
        ),
        section("strata", "What was drawn", _strata(found), intro=_drawn(found)),
        section("outlook", "What would narrow the intervals", _outlook(found), figures(outlook)),
        *_examples(found),
        section("about", "What was audited", _about(found, command)),
        section("reading", "How to read this", _reading()),
    ]
    scripts = ["search.js"] if found.examples is not None and any(found.examples.total.values()) else []
    return page(f"{_TITLE} - neardup", "\n".join(filter(None, body)), [*charts, *outlook], scripts=scripts)


def _tiles(found: Audit) -> Iterator[tuple[str, str, str]]:
    shares = (
        ("precision", found.precision, "of the returned pairs are duplicates"),
        ("recall above the net", found.recall, "of the duplicates above the net are returned"),
    )
    for name, figure, meaning in shares:
        known = figure.value is not None
        yield ("?" if figure.value is None else f"{figure.value:.1%}"), name, f"{_percent(figure)} {meaning}" * known
    yield f"{found.own.returned:,}", "pairs returned", f"of {found.candidates:,} above the net"
    number = found.duplicates
    if number.value is not None and number.low is not None and number.high is not None:
        yield (
            f"{number.value:,.0f}",
            "duplicates, estimated",
            f"{number.low:,.0f} to {number.high:,.0f} pairs above the net",
        )
    yield f"{found.same + found.different:,}", "pairs judged", f"of {found.drawn:,} drawn"


def _percent(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return ""
    digits = 1 if figure.high - figure.low < _CLOSE else 0
    return f"{figure.low:.{digits}%} to {figure.high:.{digits}%}"


def _drawn(found: Audit) -> str:
    return (
        f"Of {found.candidates:,} pairs of distinct texts {found.drawn:,} were drawn at random: from each stratum "
        f"those with the smallest hashes (seed {found.seed}), half of them from what is returned."
    )


def _points(found: Audit) -> Html:
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
    head = [f"{found.scale.name}, {sign}", "pairs returned", "precision", "recall above the net"]
    return table(head, rows, best=[at for at, point in enumerate(found.points) if point.own])


def _strata(found: Audit) -> Html:
    head = ["stratum", "pairs", "drawn", "judged", "same", "unsure", "share of duplicates"]
    rows = [
        [
            label_of(found, band),
            *(band.pairs, band.drawn, band.judged, band.same, band.unsure),
            _figure(band.share) if band.judged else "nothing judged",
        ]
        for band in found.strata
    ]
    names = dict.fromkeys(found.scale_of(band).name for band in found.strata)
    return table(head, rows, caption=f"Strata by {' / '.join(names)}")


def _figure(figure: Figure) -> Html:
    if figure.value is None:
        return escaped("not known")
    return Html(f"{figure.value:.3f}<small>{escaped(close_text(figure))}</small>")


def _outlook(found: Audit) -> Html:
    said = found.outlook()
    if not said:
        said = (
            ["Nothing: all pairs are judged."]
            if not found.missing and found.drawn == found.candidates
            else ["Every stratum needs labels before it can be told where more of them would help."]
        )
    return Html(f"<ul>{''.join(f'<li>{escaped(one)}</li>' for one in said)}</ul>")


def _examples(found: Audit) -> Iterator[Html]:
    examples = found.examples
    if examples is None or not any(examples.total.values()):
        return
    yield section(
        "pairs",
        "Pairs to read",
        search_field("pairs", label="Show pairs with these words or ids", noun="pairs"),
        *(_kind(found, examples, kind) for kind in _KINDS if examples.total[kind]),
        intro="Those that stand for most pairs of the whole come first.",
    )


def _kind(found: Audit, examples: Examples, kind: str) -> Html:
    shown, total = examples.shown[kind], examples.total[kind]
    title, meaning = _KINDS[kind]
    cut = f" {len(shown):,} of {total:,} are shown." if len(shown) < total else ""
    folds = joined(_example(found, one, opened=at == 0 and kind == "wrong") for at, one in enumerate(shown))
    return Html(f"<h3>{escaped(title)} ({total:,})</h3><p>{escaped(meaning + cut)}</p>{folds}")


def _example(found: Audit, one: Example, *, opened: bool) -> Html:
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
    words = " ".join(part for shown in (one.left, one.right) for part in (shown.id, shown.title, shown.text))
    return fold(summary, side_by_side(one.left, one.right), opened=opened, searched=words[:_SEARCHED])


def _about(found: Audit, command: str) -> Html:
    rows: dict[str, object] = {
        "working point": text(found.point),
        "net": text(found.net),
        "documents": found.documents,
        "copies": f"{found.copies:,} repeat another text byte for byte",
        "pairs above the net": found.candidates,
        "precision": figure_text(found.precision),
        "recall above the net": figure_text(found.recall),
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
            "recall above the net": "The share of returned pairs among all duplicates that the net lets pass. What "
            "lies below the net was not looked at.",
            "intervals": "95 %: of a hundred such samples at least ninety-two gave intervals that hold the truth, "
            "where it was known. They say what the drawing of pairs leaves open, not whether labels are right.",
            "stands for": "A pair of a large stratum of which few were drawn speaks for many others that nobody read.",
            "documents in pairs": "Words that differ are marked and underlined; what is long and equal is folded.",
        }
    )
