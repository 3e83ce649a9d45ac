"""The sentences that page, terminal and notebook of an exploration share, and the cell of a notebook."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from neardup.errors import option
from neardup.exploration.advice import COPIES, FEWEST_DOCUMENTS
from neardup.exploration.views import CUTOFFS, per_million
from neardup.pages import html
from neardup.pages.html import Html, escape
from neardup.pages.numbers import format_count, format_share, format_short, sparkline
from neardup.recipe.measures import measure

if TYPE_CHECKING:
    from neardup.exploration.advice import Advice
    from neardup.exploration.curve import Curve, Point
    from neardup.exploration.examples import Examples
    from neardup.exploration.observations import Observations
    from neardup.exploration.profile import Copies, CorpusProfile, Lengths
    from neardup.exploration.sample import Sample
    from neardup.exploration.views import View


_MOST_NAMED = 3


def describe_sample(sample: Sample) -> str:
    """Return how many documents and pairs were compared."""
    pairs = format_count(sample.pairs, "pair")
    if len(sample) == sample.documents:
        return f"all {format_count(sample.documents, 'document')} compared pairwise: {pairs}"
    return f"{len(sample):,} of {format_count(sample.documents, 'document')} sampled and compared pairwise: {pairs}"


def format_advised_rule(advice: Advice) -> str:
    """Return the advised features, weights, measure and threshold: words:4, jaccard >= 0.45."""
    weights = f", {advice.recipe.weights}" if advice.recipe.weights not in ("", "none") else ""
    sign = "<=" if measure(advice.measure).distance else ">="
    return f"{advice.features}{weights}, {advice.measure} {sign} {advice.threshold:g}"


def explain_missing_advice(advice: Advice) -> str:
    """Return why there is no advice, and what is shown instead."""
    return (
        f"No advice: {format_count(advice.documents, 'document')} are too few to tell where related pairs begin; it "
        f"takes {FEWEST_DOCUMENTS} or more. The figures are by {format_advised_rule(advice)}: read pairs and choose."
    )


def threshold_name(advice: Advice) -> str:
    """Return the label of the threshold in charts."""
    return "advised" if advice.given else "threshold"


#: A drop of more than this share of the documents is doubtful.
_LARGE_DROP = 0.1


def doubts(exploration: Observations) -> list[str]:
    """Return the doubts about the advice: a large drop, and pairs that may be different documents."""
    advice, point = exploration.advice, advised_point(exploration)
    sentences: list[str] = []
    if not advice.given:
        return sentences
    documents = exploration.sample.documents
    if point is not None and point.dropped > _LARGE_DROP * documents:
        stricter = None if exploration.curve is None else exploration.curve.at(COPIES)
        other = (
            f" A threshold of {COPIES:g} would drop {format_share(stricter.dropped, documents)}." if stricter else ""
        )
        sentences.append(
            f"It would drop {format_share(point.dropped, documents)} of all documents. Where so many match, many may "
            "be one form with other facts, such as adverts for different jobs."
            f"{other if advice.threshold < COPIES else ''}"
        )
    if exploration.suspects:
        count = len(exploration.suspects)
        these = "this pair matches, though its" if count == 1 else f"these {count} pairs match, though their"
        sentences.append(
            f"At {advice.threshold:g} {these} texts differ in names or numbers. If these are different documents to "
            "you, raise the threshold, or label some pairs and train a classifier."
        )
    return sentences


def advised_command(advice: Advice) -> str:
    """Return the advised command line, quoted for a shell."""
    return shlex.join(("neardup", *advice.command))


def advised_point(exploration: Observations) -> Point | None:
    """Return the results of the advised threshold on the whole corpus; None if unknown."""
    curve = exploration.curve
    return None if curve is None else curve.at(exploration.advice.threshold)


def describe_drop(exploration: Observations) -> str:
    """Return how many documents the advised threshold would drop; empty if unknown."""
    point, sample = advised_point(exploration), exploration.sample
    if point is None:
        return ""
    dropped = f"{point.dropped:,} of {format_count(sample.documents, 'document')}"
    return f"It would drop {dropped} ({format_share(point.dropped, sample.documents)})."


def advised_view(exploration: Observations) -> View | None:
    """Return the view of the advised features and measure; None if it was not compared."""
    advice = exploration.advice
    fitting = (
        view
        for view in exploration.views
        if (view.features, view.measure, view.recipe.weights)
        == (advice.features, advice.measure, advice.recipe.weights)
    )
    return next(fitting, None)


def explain_incomplete_curve(curve: Curve) -> str:
    """Return why a curve has only the point of the advised threshold."""
    way_out = option("--lowest", "lowest")
    return (
        f"More than {curve.most_pairs:,} pairs of distinct documents match at {curve.asked:g}, too many to find them "
        f"all, so there is no curve of the whole corpus; raise {way_out} to get one."
    )


def format_valley(view: View) -> str:
    """Return the range of the valley, such as .12-.45, with a question mark if it is not clear; or none."""
    valley = view.valley
    if valley is None:
        return "none"
    return f"{_format_similarity(valley.low)}-{_format_similarity(valley.high)}{'' if valley.clear else '?'}"


def _format_similarity(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def describe_lengths(lengths: Lengths) -> str:
    """Return the median and the range of the lengths of documents."""
    at = {f"{part:g}": value for part, value in lengths.quantiles}
    return f"the median has {at['0.5']:,} words, 90% have {at['0.05']:,} to {at['0.95']:,}, the longest has {at['1']:,}"


def describe_band(examples: Examples) -> str:
    """Return the number of pairs in the band of a cutoff."""
    upper = "to 1" if examples.high > 1 else f"to {examples.high:g}"
    where = "the sample" if examples.origin == "sample" else "the whole corpus; the sample has none there"
    return f"{format_count(examples.found, 'pair')} from {examples.low:g} {upper} in {where}"


def describe_copies(copies: Copies) -> str:
    """Return the number of exact copies: 17 copies of 13 texts."""
    return (
        f"{format_count(copies.copies, 'copy', 'copies')} of {format_count(copies.groups, 'text')}"
        if copies.copies
        else "none"
    )


def describe_profile(profile: CorpusProfile) -> dict[str, list[str]]:
    """Return a summary of the contents of a corpus: a few lines by topic."""
    boilerplate, found = profile.boilerplate, profile.scripts
    scripts = [f"{one.name} {format_share(one.documents, found.documents)}" for one in found.scripts[:_MOST_NAMED]]
    others = sum(one.documents for one in found.scripts[_MOST_NAMED:])
    scripts += [f"others {format_share(others, found.documents)}"] if others else []
    families = format_count(profile.families_found, "family", "families")
    largest = f", the largest of {profile.families[0].documents:,} documents" if profile.families else ""
    return {
        "lengths": [describe_lengths(profile.words)],
        "scripts": [", ".join(scripts)],
        "exact copies": [describe_copies(profile.copies)],
        "boilerplate": [
            f"{format_count(boilerplate.found, 'passage')} of {boilerplate.run} words or more in "
            f"{format_count(boilerplate.documents, 'document')}, {boilerplate.share_of_words:.1%} of all words",
            *(f"{passage.documents:,} times: {passage.text}" for passage in boilerplate.passages[:_MOST_NAMED]),
        ],
        "templates": [
            f"{format_count(one.documents, 'document')}, {format_count(len(one.slots), 'slot')}, "
            f"{one.constant:,} words that never change"
            for one in profile.templates[:_MOST_NAMED]
        ],
        "families": [f"{families}{largest}"],
    }


def describe_templates(profile: CorpusProfile) -> str:
    """Return the number of templates, and what a template is."""
    examined = format_count(profile.families_examined, "largest family", "largest families")
    return f"{profile.templates_found:,} of the {examined} are one text with slots that each document fills differently"


#: Characters of a sparkline, each five hundredths of similarity.
_SPARKLINE_LENGTH = 20


def notebook_cell(exploration: Observations) -> str:
    """Return an exploration as HTML for a notebook cell."""
    advice, advised = exploration.advice, advised_view(exploration)
    rows = [
        (
            f"{view.name}{' (advised)' if view is advised and advice.given else ''}",
            Html(f'<span style="white-space:pre">{sparkline(view.counts, _SPARKLINE_LENGTH)}</span>'),
            *(format_short(per_million(pairs, view.pairs)) for _, pairs in view.above),
            format_valley(view),
        )
        for view in exploration.views
    ]
    head = ("compared", "similarity 0 to 1", *(f">= {cutoff:g}" for cutoff in CUTOFFS), "valley")
    rule, drop = escape(format_advised_rule(advice)), escape(describe_drop(exploration))
    advised_html = f"<strong>{rule}</strong>. {drop} {escape(advice.reason)}"
    advice_html = advised_html if advice.given else escape(explain_missing_advice(advice))
    command_line = f"<p><code>{escape(advised_command(advice))}</code></p>" if advice.given else ""
    return (
        # A notebook does not have the style of the page.
        f'<div class="neardup" style="overflow-x:auto"><p>{escape(describe_sample(exploration.sample))}</p>'
        f"<p>{advice_html}</p>"
        "<p>Pairs by similarity (logarithmic heights), and pairs per million at or above each cutoff</p>"
        f"{html.table(head, rows, text_columns=2)}{command_line}</div>"
    )
