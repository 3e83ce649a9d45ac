"""The parts of the page that the whole corpus fills: what each threshold would give, and how that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.exploring.showing.wholecharts import (
    dropped_by_threshold,
    growing_density,
    growing_share,
    growth_table,
    pairs_by_threshold,
    points_table,
)
from neardup.exploring.telling import at_advised, counted, share
from neardup.pages.parts import Chart, Html, figures, section

if TYPE_CHECKING:
    from neardup.exploring.exploration import Exploration


def thresholds(exploration: Exploration, charts: list[Chart]) -> Html:
    """Return what each threshold would give on the whole corpus; nothing where nobody looked."""
    curve, advised = exploration.curve, exploration.advice.threshold
    if curve is None:
        return Html("")
    drawn = [dropped_by_threshold(curve, advised)]
    # No logarithm shows that there are none.
    if any(point.pairs for point in curve.points):
        drawn.insert(0, pairs_by_threshold(curve, advised))
    charts += drawn
    intro = (
        f"All {counted(curve.documents, 'document')}, {curve.recipe.features} by {curve.recipe.measure}: what neardup "
        "dedup would find with each threshold, by one exact join."
    )
    point = at_advised(exploration)
    told = ""
    if point is not None and point.pairs is not None:
        told = (
            f"At the advised {advised:g}: {counted(point.pairs, 'pair')}, {point.dropped:,} dropped "
            f"({share(point.dropped, curve.documents)})."
        )
    content = [figures(drawn), points_table(curve, curve.table, advised)]
    return section("thresholds", "What would each threshold do?", told, curve.note, *content, intro=intro)


def growing(exploration: Exploration, charts: list[Chart]) -> Html:
    """Return how pairs and dropped documents grow with the corpus; nothing where that is not known."""
    growth = exploration.growth
    if growth is None:
        return Html("")
    drawn = [growing_density(growth), growing_share(growth)]
    charts += drawn
    intro = (
        f"The same at {growth.threshold:g}, had the corpus been smaller: its first documents, in the order of the "
        f"input, and as many drawn at random (seed {growth.seed})."
    )
    content = [growth.sentence, figures(drawn), growth_table(growth)]
    return section("growth", "And as the corpus grows?", *content, intro=intro)
