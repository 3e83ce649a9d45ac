"""Pairs to read at each cutoff, as a part of the page: side by side, what differs marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.exploring.telling import band_in_words
from neardup.pages.differences import side_by_side
from neardup.pages.excerpts import clipped
from neardup.pages.parts import Html, escaped, fold, joined, search_field, section, text

if TYPE_CHECKING:
    from neardup.exploring.examples import ExamplePair, Examples
    from neardup.exploring.exploration import Exploration

#: Words of each text that are in the page; it says how many more there are.
_WORDS = 400
#: Characters of a text that the search looks through, and of a shared passage that is shown in a line.
_SEARCHED, _PASSAGE = 4_000, 90


def reading(exploration: Exploration) -> Html:
    """Return the pairs of each cutoff, folded; those of the cutoff nearest to the advised threshold are open."""
    advice = exploration.advice
    if not exploration.examples:
        return Html("")
    nearest = min(exploration.examples, key=lambda one: (not one.pairs, abs(one.cutoff - advice.threshold)))
    parts = [_cutoff(one, opened=one is nearest) for one in exploration.examples]
    intro = (
        f"Real pairs by {advice.features}, {advice.measure}, drawn from each band of similarity and spread over "
        "sources and lengths. What differs is marked. Where they stop being duplicates, the threshold belongs."
    )
    field = search_field("examples", label="Find pairs by id or word", noun="pairs")
    whole = joined([Html('<div id="examples">'), *parts, Html("</div>")])
    return section("pairs", "Read pairs at each cutoff", field, whole, intro=intro)


def _cutoff(examples: Examples, *, opened: bool) -> Html:
    said = f"<h3>Near {examples.cutoff:g}</h3><p class='dim'>{escaped(band_in_words(examples))}</p>"
    folds = [_pair(pair, opened=opened and not at) for at, pair in enumerate(examples.pairs)]
    return joined([Html(f'<div class="band">{said}'), *folds, Html("</div>")])


def _pair(pair: ExamplePair, *, opened: bool) -> Html:
    ids = joined((text(shown.title or shown.id) for shown in (pair.left, pair.right)), Html(" &middot; "))
    summary = Html(f'<strong class="figure">{pair.similarity:.3f}</strong> {ids}')
    found = " ".join(
        part[:_SEARCHED] for shown in (pair.left, pair.right) for part in (shown.id, shown.title, shown.text)
    )
    return fold(
        summary, side_by_side(pair.left, pair.right, words=_WORDS, head=_head(pair)), opened=opened, searched=found
    )


def _head(pair: ExamplePair) -> Html:
    """Return how alike two documents are, what they share, and where they come from."""
    parts = [escaped(f"similarity {pair.similarity:.4g}")]
    if pair.words:
        passage = text(clipped(pair.passage, _PASSAGE))
        parts.append(Html(f"longest shared run, {pair.words:,} words: <q>{passage}</q>"))
    else:
        parts.append(Html("no word in common"))
    sources = [source for source in dict.fromkeys((pair.left_source, pair.right_source)) if source]
    if sources:
        parts.append(Html(f"from {joined(map(text, sources), ' and ')}"))
    return Html("; ".join(parts))
