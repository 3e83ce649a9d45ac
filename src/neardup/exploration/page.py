"""The page of an exploration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from neardup.documents.column_paths import column_words
from neardup.exploration import messages
from neardup.exploration.charts import (
    cutoffs_table,
    histogram_chart,
    lengths_chart,
    points_table,
    threshold_charts,
    view_colours,
)
from neardup.pages import html
from neardup.pages.diff_view import pair_fold
from neardup.pages.html import Chart, Html, text
from neardup.pages.numbers import format_count, format_share, format_size
from neardup.pages.page import page
from neardup.pages.sweep import rule_in_words

if TYPE_CHECKING:
    from neardup.exploration.advice import Separation
    from neardup.exploration.boilerplate import Passage
    from neardup.exploration.examples import ExamplePair, Examples
    from neardup.exploration.observations import Observations
    from neardup.exploration.profile import CorpusProfile
    from neardup.exploration.text_templates import Slot, Template
    from neardup.exploration.views import View


def exploration_page(exploration: Observations) -> str:
    """Return the page of an exploration."""
    charts: list[Chart] = []
    body = [
        html.opening(
            "How similar is this corpus to itself?",
            html.join_html(
                [html.named_inputs(exploration.inputs), f": {messages.describe_sample(exploration.sample)}."]
            ),
        ),
        _headline(exploration),
        _advice(exploration),
        html.notes(exploration.notes, title="Left out or changed"),
        _histograms(exploration, charts),
        _cutoffs(exploration),
        _thresholds(exploration, charts),
        _pairs(exploration),
        _contents(exploration.profile, charts),
        _how_to_read(exploration),
        _about(exploration),
    ]
    named = exploration.inputs[0] if len(exploration.inputs) == 1 else "A corpus"
    title = f"{named} explored - neardup"
    return page(title, "\n".join(filter(None, body)), charts, scripts=("search.js",), styles=("explore.css",))


def _folded_part(title: str, gist: str, *content: str) -> Html:
    return html.fold(html.fill("<h3>{}</h3><small>{}</small>", title, gist), *content)


def _headline(exploration: Observations) -> Html:
    sample, advice, copies = exploration.sample, exploration.advice, exploration.profile.copies
    drawn = "of all documents" if len(sample) == sample.documents else f"of {len(sample):,} random documents"
    rows = [
        (f"{sample.documents:,}", "documents", f"{format_size(sample.bytes)} of text"),
        (f"{sample.pairs:,}", "pairs compared", drawn),
    ]
    if advice.given:
        rows.append((advice.features, "advised", f"{advice.measure}, threshold {advice.threshold:g}"))
    point = messages.advised_point(exploration)
    if point is not None:
        families = "" if point.families is None else f" in {format_count(point.families, 'family', 'families')}"
        at = "" if advice.given else f" at {advice.threshold:g}"
        dropped = f"{format_count(point.dropped, 'document')}{families}{at}"
        rows.append((format_share(point.dropped, sample.documents), "would be dropped", dropped))
    of = f"copies of {format_count(copies.groups, 'text')}" if copies.copies else ""
    rows.append((f"{copies.copies:,}", "exact copies", of))
    return html.tiles(rows)


def _advice(exploration: Observations) -> Html:
    advice = exploration.advice
    begin, drop = messages.format_advised_rule(advice), messages.describe_drop(exploration)
    if not advice.given:
        return html.section(
            "advice",
            "Where to begin",
            html.fill('<p class="begin">{}</p>', messages.explain_missing_advice(advice)),
        )
    suspects = [_pair(pair) for pair in exploration.suspects]
    return html.section(
        "advice",
        "Where to begin",
        html.fill('<p class="begin">Begin with <strong>{}</strong>. {}</p>', begin, drop),
        rule_in_words(advice.recipe),
        advice.reason,
        html.command(messages.advised_command(advice)),
        html.notes(messages.doubts(exploration), title="What this advice is not sure of"),
        html.fill('<div id="suspects">{}</div>', html.join_html(suspects)) if suspects else "",
    )


#: Views of one kind share a chart; its title.
_KINDS = {"words": "Runs of words (n-grams)", "qgrams": "Runs of characters (q-grams)", "": "Recipes"}
#: Columns of the table of views: how each separates pairs, and its histogram.
_SEPARATION_COLUMNS = ("unrelated pairs reach", "90% of similar pairs score", "gap")
_VIEW_COLUMNS = ("valley", "pairs above it", "share nothing")
_VALLEY_EXPLANATION = (
    "The valley is the range with few pairs between unrelated and related ones. The similarity that unrelated pairs "
    "reach is estimated for the whole corpus; the wider the gap between it and the scores of similar pairs, the better."
)


def group_views(views: Sequence[View]) -> dict[str, list[View]]:
    """Return views by kind: word n-grams, character q-grams, others."""
    found: dict[str, list[View]] = {}
    for view in views:
        kind = view.features.partition(":")[0] if view.n is not None else ""
        found.setdefault(kind if kind in _KINDS else "", []).append(view)
    return found


def _histograms(exploration: Observations, charts: list[Chart]) -> Html:
    advice, advised = exploration.advice, messages.advised_view(exploration)
    parts: list[Html] = []
    for kind, views in group_views(exploration.views).items():
        chart = histogram_chart(
            f"over-{kind or 'recipes'}", f"{_KINDS[kind]}: pairs by similarity", views, advice, advised
        )
        charts.append(chart)
        parts += [html.legend([view.name for view in views], view_colours(views)), html.figures([chart], wide=True)]
    separations = dict(advice.separations)
    rows = [
        [view.name, *_separation_cells(separations.get(view.name)), *_view_cells(view)] for view in exploration.views
    ]
    best = {at for at, view in enumerate(exploration.views) if view is advised}
    head, rows = _drop_empty_columns(["compared", *_SEPARATION_COLUMNS, *_VIEW_COLUMNS], rows)
    separation_table = html.table(
        head, rows, caption="How well each separates similar pairs of the sample", highlighted=best
    )
    intro = (
        "All pairs of the sample by their similarity: unrelated pairs make the mountain on the left, copies the rise "
        "on the right. The axis of pairs is logarithmic."
    )
    return html.section(
        "histograms", "How similar are two documents?", *parts, _VALLEY_EXPLANATION, separation_table, intro=intro
    )


def _drop_empty_columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[str], list[list[object]]]:
    """Return a table without empty columns, and with dashes in empty cells."""
    kept = [at for at in range(len(head)) if any(row[at] != "" for row in rows)]
    return [head[at] for at in kept], [["–" if row[at] == "" else row[at] for at in kept] for row in rows]


def _separation_cells(found: Separation | None) -> list[str]:
    """Return the reach of unrelated pairs, the level of similar ones, and the gap between them."""
    if found is None or found.level is None or found.gap is None:
        return ["" if found is None else f"{found.reach:.2f}", "", ""]
    return [f"{found.reach:.2f}", f"{found.level:.2f}", f"{found.gap:.2f}"]


def _view_cells(view: View) -> list[object]:
    valley = view.valley
    nothing = format_share(view.zero, view.pairs)
    if valley is None:
        return ["none", "", nothing]
    unclear = Html("" if valley.clear else "<small>not clear</small>")
    return [html.join_html([f"{valley.low:.2f} to {valley.high:.2f}", unclear]), valley.after, nothing]


def _cutoffs(exploration: Observations) -> Html:
    advised = messages.advised_view(exploration)
    tables = (cutoffs_table(views, advised) for views in group_views(exploration.views).values())
    intro = "Pairs at or above each similarity, per million pairs of the sample."
    return html.section("cutoffs", "How many pairs are above each cutoff?", *tables, intro=intro)


def _thresholds(exploration: Observations, charts: list[Chart]) -> Html:
    curve, advice = exploration.curve, exploration.advice
    if curve is None:
        return Html("")
    drawn = threshold_charts(curve, advice) if curve.complete else []
    charts += drawn
    intro = (
        f"What neardup dedup would find at each threshold in all {format_count(curve.documents, 'document')}, by "
        f"{curve.recipe.features} and {curve.recipe.measure}, exactly."
    )
    content = [html.figures(drawn)] if drawn else [messages.explain_incomplete_curve(curve)]
    if curve.points and not drawn:
        content.append(points_table(curve, curve.table, advice))
    return html.section("thresholds", "What would each threshold do?", *content, intro=intro)


_LONGEST_PASSAGE = 90


def _pairs(exploration: Observations) -> Html:
    advice = exploration.advice
    if not exploration.examples:
        return Html("")
    intro = (
        f"Real pairs by {advice.features}, {advice.measure}, drawn from each band of similarity and spread over "
        "sources and lengths. Differences are marked. Set the threshold where pairs stop being duplicates."
    )
    field = html.search_field("examples", label="Find pairs by id or word", noun="pairs")
    whole = html.fill('<div id="examples">{}</div>', html.join_html(map(_band, exploration.examples)))
    return html.section("pairs", "Read pairs at each cutoff", field, whole, intro=intro)


def _band(examples: Examples) -> Html:
    near, gist = f"Near {examples.cutoff:g}", messages.describe_band(examples)
    if not examples.pairs:
        return html.fill('<p class="band"><strong>{}</strong> <small>{}</small></p>', near, gist)
    return _folded_part(near, gist, *map(_pair, examples.pairs))


def _pair(pair: ExamplePair) -> Html:
    ids = html.join_html((text(shown.title or shown.id) for shown in (pair.left, pair.right)), Html(" &middot; "))
    summary = html.fill('<strong class="figure">{}</strong> {}', f"{pair.similarity:.3f}", ids)
    return pair_fold(summary, pair.left, pair.right, head=_head(pair))


def _head(pair: ExamplePair) -> Html:
    shared: str = "no word in common"
    if pair.words:
        count, passage = format_count(pair.words, "word"), text(html.clip(pair.passage, _LONGEST_PASSAGE))
        shared = html.fill("longest shared run ({}): <q>{}</q>", count, passage)
    sources = [source for source in dict.fromkeys((pair.left_source, pair.right_source)) if source]
    origin = [html.fill("from {}", html.join_html(map(text, sources), " and "))] if sources else []
    return html.join_html([f"similarity {pair.similarity:.4g}", shared, *origin], "; ")


_EMPTY_LINES = re.compile(r"\s*\n\s*")
#: The most characters of a passage or a template, and the most fillers of a slot, to show.
_MOST_QUOTED, _MOST_FILLERS = 4_000, 4


def _contents(profile: CorpusProfile, charts: list[Chart]) -> Html:
    drawn = [lengths_chart(profile.words)] if any(profile.words.counts) else []
    charts += drawn
    gists = {name: lines[0] for name, lines in messages.describe_profile(profile).items() if lines}
    parts = [
        html.figures(drawn),
        _folded_part("Scripts", gists["scripts"], _scripts(profile)),
        _folded_part("Exact copies", gists["exact copies"], *_copies(profile)),
        _folded_part("Passages that many documents share", gists["boilerplate"], *_boilerplate(profile)),
    ]
    if profile.templates:
        parts.append(
            _folded_part("Templates", messages.describe_templates(profile), *map(_template, profile.templates))
        )
    parts.append(_folded_part("The largest families", gists["families"], *_families(profile)))
    intro = (
        f"{format_count(profile.documents, 'document')}, {format_size(profile.bytes)} of text; of those in the sample "
        f"{messages.describe_lengths(profile.words)}."
    )
    return html.section("contents", "What is the corpus made of?", *filter(None, parts), intro=intro)


def _scripts(profile: CorpusProfile) -> Html:
    found = profile.scripts
    rows = [
        [one.name, _ids(one.ids[:1]), one.documents, html.bar(one.share, format_share(one.share, 1))]
        for one in found.scripts
    ]
    caption = f"By the letters of {format_count(found.documents, 'document')} of the sample"
    return html.table(["script", "such as", "documents", "of the sample"], rows, caption=caption, text_columns=2)


def _ids(ids: Sequence[str]) -> Html:
    return html.join_html(map(text, ids), ", ")


def _copies(profile: CorpusProfile) -> list[str]:
    copies = profile.copies
    if not copies.copies:
        return ["No two texts are equal byte for byte, except empty ones."]
    verb = "equals" if copies.copies == 1 else "equal"
    introduction = (
        f"{format_count(copies.copies, 'document')} ({format_share(copies.copies, profile.documents)}) {verb} an "
        f"earlier one byte for byte: {format_size(copies.bytes)} of text."
    )
    rows = [[text(one.begins), _ids(one.ids), one.documents, format_size(one.bytes)] for one in copies.largest]
    head = ["begins", "such as", "documents", "each"]
    return [introduction, html.table(head, rows, caption="The most frequent texts", text_columns=2, tall=True)]


def _boilerplate(profile: CorpusProfile) -> list[str]:
    found = profile.boilerplate
    if not found.passages:
        return [f"No run of {found.run} words occurs in {found.least:,} different texts."]
    listed = "" if found.found == len(found.passages) else f"; the {len(found.passages)} largest are listed"
    introduction = f"Each has at least {found.run} words and is in {found.least:,} texts or more{listed}."
    items = html.join_html(html.fill("<li>{}</li>", _passage(passage)) for passage in found.passages)
    return [introduction, html.fill('<ol class="passages">{}</ol>', items)]


def _passage(passage: Passage) -> Html:
    unlike = "" if passage.unlike is None else f", {passage.unlike:,} of which otherwise differ"
    about = (
        f"{format_count(passage.documents, 'document')} ({format_share(passage.share, 1)}){unlike}; "
        f"{format_count(passage.words, 'word')}; such as "
    )
    quoted = html.excerpt(_EMPTY_LINES.sub("\n", passage.text), _MOST_QUOTED)
    return html.fill('<p class="dim">{}{}</p><blockquote dir="auto">{}</blockquote>', about, _ids(passage.ids), quoted)


def _template(template: Template) -> Html:
    summary = Html(
        f"<strong>{format_count(template.documents, 'document')}</strong>, {format_count(len(template.slots), 'slot')}"
        f", {template.constant:,} words that never change ({format_share(template.share, 1)} of each)"
    )
    rows = [[f"{at}", _fillers(slot), slot.distinct] for at, slot in enumerate(template.slots, 1)]
    compared = f"{format_count(template.compared, 'distinct text')} compared; such as "
    return html.fold(
        summary,
        html.fill('<p class="dim">{}{}</p>', compared, _ids(template.ids)),
        html.fill('<blockquote dir="auto">{}</blockquote>', html.join_html(_pieces(template))),
        html.table(
            ["slot", "most often", "different fillers"], rows, caption="What the slots hold", tall=True, text_columns=2
        ),
    )


def _pieces(template: Template) -> Iterator[Html]:
    """Yield the constant pieces of a template, and one filler in each slot, up to the most characters."""
    room = _MOST_QUOTED
    for at, (piece, slot) in enumerate(template.pieces):
        found = html.make_excerpt(_EMPTY_LINES.sub("\n", piece), room)
        slotted = f'<mark class="slot"><sup>{slot + 1}</sup><bdi>{found.html or "&nbsp;"}</bdi></mark>'
        yield found.html if slot < 0 else Html(slotted)
        room -= found.size
        if found.rest:
            yield html.format_rest(found.rest + sum(len(other) for other, _ in template.pieces[at + 1 :]))
            return


def _fillers(slot: Slot) -> Html:
    shown = [f"{text(filler) if filler else '(nothing)'} &times; {count:,}" for filler, count in slot.fillers]
    more = slot.distinct - min(len(shown), _MOST_FILLERS)
    return Html("; ".join(shown[:_MOST_FILLERS]) + (f"; {more:,} more" if more > 0 else ""))


def _families(profile: CorpusProfile) -> list[str]:
    rows = [
        [text(one.begins), _ids(one.ids), one.documents, one.pairs, one.smallest, one.mean, one.complete]
        for one in profile.families
    ]
    head = ["begins", "such as", "documents", "matching pairs", "least similar", "mean", "all match all"]
    listed = html.table(head, rows, caption="The largest families", tall=True, text_columns=2) if rows else ""
    return ["A family is all documents that matching pairs connect.", listed]


def _how_to_read(exploration: Observations) -> Html:
    sample = exploration.sample
    definitions: dict[str, object] = {
        "similarity": "Of two documents as sets of n-grams, by the named measure. Jaccard is the share of n-grams that "
        "both have among those that either has: 1 for the same n-grams, 0 for none in common.",
        "words:4, qgrams:5": "Every run of four words, or of five characters. Longer runs are shared by chance less "
        "often, and each changed word breaks more of them.",
        "unrelated, similar": "Unrelated pairs are the bulk. How far the most similar of them reaches in the whole "
        "corpus is estimated from how fast their number falls. Similar pairs are the closest of the sample. The wider "
        "the gap between that reach and the score of 90% of similar pairs, the better the features separate them.",
        "idf": "Rare n-grams count more than frequent ones. Compare the line with that of the same n-grams without "
        "weights: weights help if unrelated pairs become less similar and similar pairs stay similar.",
        "valley": "The sparse range between unrelated and related pairs. If it is not clear, pairs thin out slowly, or "
        "too few lie above it, so no cut is sharp.",
        "exact": "No sketches are used. Figures of the sample are exact for the sample; those of the whole corpus are "
        "what neardup dedup finds at that threshold.",
        "the cutoffs": "A share of pairs, not of documents: 6 pairs in a million are few, but a corpus of a million "
        "documents has three million of them.",
        "the whole corpus": "Each dropped document matches a kept one. A lower threshold can drop fewer documents, "
        "because a document that is dropped itself no longer drops others.",
        "the advice": "A place to begin. Read the pairs around it, then label some: no threshold suits every corpus.",
    }
    if len(sample) == sample.documents:
        definitions["exact"] = "Nothing is estimated: all pairs of all documents were compared."
    return html.section(
        "how-to-read", "How to read this", html.fold("What the words and figures mean", html.facts(definitions))
    )


def _about(exploration: Observations) -> Html:
    sample = exploration.sample
    run_facts: dict[str, object] = {
        "input": html.named_inputs(exploration.inputs),
        "columns": text(column_words(exploration.columns)),
        "sample": f"{messages.describe_sample(sample)}; seed {sample.seed}",
        "compared": text(", ".join(dict.fromkeys(view.name for view in exploration.views))),
        "neardup": exploration.version,
    }
    costs = html.fold("Time and memory", html.stages_table(exploration.stages)) if exploration.stages else ""
    return html.section("about", "About this page", html.facts(run_facts), costs)
