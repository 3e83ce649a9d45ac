"""The parts of the page that a sample fills: histograms, pairs above each cutoff, what idf weights do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.exploring.showing.charts import apart, overlaid, views_colours
from neardup.exploring.showing.cutoffcharts import cutoffs_chart, cutoffs_table
from neardup.exploring.telling import advised_view, rate, share
from neardup.pages.parts import Chart, Html, figures, legend, section, table

if TYPE_CHECKING:
    from neardup.exploring.exploration import Exploration
    from neardup.exploring.histogram import View
    from neardup.exploring.separation import Separation

#: Views of one kind share a chart; what each kind is called.
_KINDS = {"words": "Word n-grams", "qgrams": "Character q-grams", "": "Recipes"}

#: What a row says of a view: how it parts two kinds of pairs, and what its histogram looks like.
_PARTED = ("unrelated reach", "nine in ten alike have", "gap")
_FIGURES = ("share nothing", "of similarity 1", "valley", "per million in it", "pairs above it")


def grouped(views: Sequence[View]) -> dict[str, list[View]]:
    """Return views by what they compare: word n-grams, character q-grams, anything else."""
    found: dict[str, list[View]] = {}
    for view in views:
        kind = view.features.partition(":")[0] if view.n is not None else ""
        found.setdefault(kind if kind in _KINDS else "", []).append(view)
    return found


def histograms(exploration: Exploration, charts: list[Chart]) -> Html:
    """Return the histograms of all views, over each other and apart, and what they say in a table."""
    advice, advised = exploration.advice, advised_view(exploration)
    parts: list[Html] = []
    for kind, views in grouped(exploration.views).items():
        name = _KINDS[kind]
        whole = overlaid(f"over-{kind or 'recipes'}", f"{name}: pairs by similarity", views, advice, advised)
        small = apart(f"apart-{kind or 'recipes'}", views, advised)
        charts += [whole, *small]
        parts += [
            legend([view.name for view in views], views_colours(views), label="Show one of them"),
            figures([whole], wide=True),
            small_figures(small),
        ]
    intro = "Each pair by its similarity. Unrelated pairs are the mountain on the left, copies the rise at the right."
    return section("histograms", "How similar are two documents?", *parts, _views_table(exploration), intro=intro)


def small_figures(charts: Sequence[Chart]) -> Html:
    """Return small charts, as many in a row as there is room for."""
    cells = "".join(figures([chart], wide=True) for chart in charts)
    return Html(f'<div class="apart">{cells}</div>')


def _views_table(exploration: Exploration) -> Html:
    advised, parted = advised_view(exploration), dict(exploration.advice.separations)
    rows = [[view.name, *_parted(parted.get(view.name)), *_figures(view)] for view in exploration.views]
    best = {at for at, view in enumerate(exploration.views) if view is advised}
    head, rows = _filled(["compared", *_PARTED, *_FIGURES], rows)
    return table(head, rows, caption="How each parts pairs of the sample", best=best)


def _filled(head: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[str], list[list[object]]]:
    """Return a table without the columns that say nothing."""
    kept = [at for at in range(len(head)) if any(row[at] != "" for row in rows)]
    return [head[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _parted(found: Separation | None) -> list[str]:
    """Return what unrelated pairs reach, what alike ones have, and the gap between them."""
    if found is None or found.level is None or found.gap is None:
        return ["" if found is None else f"{found.reach:.2f}", "", ""]
    return [f"{found.reach:.2f}", f"{found.level:.2f}", f"{found.gap:.2f}"]


def _figures(view: View) -> list[object]:
    valley = view.valley
    found: list[object] = [share(view.zero, view.pairs), view.equal]
    if valley is None:
        return [*found, "none", "", ""]
    sure = "" if valley.clear else ", not clear"
    return [*found, f"{valley.low:g} to {valley.high:g}{sure}", rate(valley.depth), valley.after]


def cutoffs(exploration: Exploration, charts: list[Chart]) -> Html:
    """Return how many pairs are above each cutoff, as a chart and a table."""
    advised = advised_view(exploration)
    parts: list[Html] = []
    for kind, views in grouped(exploration.views).items():
        chart = cutoffs_chart(f"above-{kind or 'recipes'}", views, advised)
        charts.append(chart)
        parts += [
            legend([view.name for view in views], views_colours(views), label="Show one of them"),
            figures([chart], wide=True),
            cutoffs_table(views, advised),
        ]
    intro = "At or above a cutoff, per million pairs of the sample."
    return section("cutoffs", "How many pairs are above each cutoff?", *parts, intro=intro)


def weights(exploration: Exploration, charts: list[Chart]) -> Html:
    """Return what idf weights do on this corpus, beside the unweighted measure."""
    weighting = exploration.weighting
    if weighting is None:
        return Html("")
    both = [_told_by_weights(weighting.plain), _told_by_weights(weighting.weighted)]
    title = f"{weighting.plain.features} without and with idf weights"
    chart = overlaid("idf", title, both, None, None)
    charts.append(chart)
    overlaps = weighting.plain_overlap, weighting.weighted_overlap
    rows = [
        [view.name, "" if overlap is None else f"{overlap:.2f}", *_figures(view)]
        for view, overlap in zip(both, overlaps, strict=True)
    ]
    bands = [
        [f"{band.low:g} to {band.high:g}", band.pairs, f"{band.plain:.3f}", f"{band.weighted:.3f}"]
        for band in weighting.moved
    ]
    moved = table(
        ["similarity without weights", "pairs", "median without", "median with"],
        bands,
        caption="What weights make of the same pairs",
    )
    return section(
        "idf",
        "Does it help to weigh rare word sequences more?",
        legend([view.name for view in both], views_colours(both), label="Show one of them"),
        figures([chart], wide=True),
        table(["compared", "between the kinds, an alike pair", *_FIGURES], rows, caption="Without and with weights"),
        moved if bands else "",
        intro=weighting.sentence,
    )


def _told_by_weights(view: View) -> View:
    weights = f"{view.recipe.weights} weights" if view.weighted else "no weights"
    return replace(view, name=f"{weights}, {view.measure}")
