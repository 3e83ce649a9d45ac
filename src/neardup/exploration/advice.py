"""Which n, measure and threshold to begin with, and why.

The rule, in four steps:

1. **Features**: the n-grams with the widest gap between the similarity that unrelated pairs reach and the one that 90%
   of similar pairs have at least (``measure_separation``). Among lengths within 0.02 of the widest gap, the longest
   wins, because its features are rarer. Character q-grams cost more to compare, so they replace words only if they
   widen the gap by 0.05. If the sample has fewer than 10 similar pairs: the shortest n-grams whose unrelated pairs
   stay below 0.1.
2. **Measure**: Jaccard, whose formula people know and whose join is the fastest.
3. **Pairs**: all pairs of the corpus at or above the curve's lowest threshold, because a sample of a large corpus has
   few related pairs. Without a curve, or with too many pairs for one: the pairs of the sample.
4. **Threshold**: the cut in the valley of these pairs (``find_valley``), rounded to a step of 0.05 and no lower than
   the curve's lowest threshold. Without a valley: 0.5, where two documents of equal size share two thirds of their
   features, or the similarity that unrelated pairs reach, if it is higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from math import ceil, log10
from statistics import median_low
from typing import Any

import numpy as np

from neardup.exploration.curve import Curve
from neardup.exploration.valley import FEWEST_CLEAR_PAIRS, Valley, find_valley
from neardup.exploration.views import BINS, View
from neardup.kernels import Floats
from neardup.recipe import Recipe
from neardup.recipe.measures import measure
from neardup.recipe.recipe import command_words

#: Pairs from this hundredth on are similar; fewer than the second number are too few for a level.
_SIMILAR_HUNDREDTHS, _FEWEST_SIMILAR = 50, 10
#: The share of similar pairs at or above their level, and the shares of the bulk that its decline is measured at.
_LEVEL_SHARE, _BULK_SHARES = 0.9, (0.5, 0.1, 0.01)
_LOG_FLOOR = 1e-9
#: Smaller differences between gaps do not count; the reach that unrelated pairs may have if no gap is known.
_GAP_TOLERANCE, _LOW_REACH = 0.02, 0.1
#: The gain in gap that q-grams must bring, and the measure of the views to choose from.
_LEAST_QGRAM_GAIN, _MEASURE = 0.05, "jaccard"
#: In hundredths: the threshold without a valley, the highest that unrelated pairs raise it to, and its step.
_DEFAULT_HUNDREDTHS, _HIGHEST_HUNDREDTHS, _STEP = 50, 90, 5
#: A threshold for copies and light edits, that of the recipe ``default``.
COPIES = 0.85
FEWEST_DOCUMENTS = 100
#: Fields of a recipe without an option in the command, or with one in any case.
_SEPARATE_FIELDS = ("name", "description", "features", "threshold", "keep")


@dataclass(frozen=True, slots=True)
class Separation:
    """How far apart unrelated and similar pairs are in one view."""

    #: The expected similarity of the most similar unrelated pair of the corpus.
    reach: float
    alike: int
    #: 90% of them have at least this similarity; None if they are fewer than 10.
    level: float | None

    @property
    def gap(self) -> float | None:
        """The level minus the reach; None without a level."""
        return None if self.level is None else self.level - self.reach


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen view, and how each candidate view separates pairs."""

    view: View
    separations: tuple[tuple[View, Separation], ...]

    @property
    def separation(self) -> Separation:
        """How the chosen view separates pairs."""
        return next(found for view, found in self.separations if view is self.view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The recipe to begin with, and why."""

    recipe: Recipe
    reason: str
    #: The command line after ``neardup``; empty without advice.
    command: tuple[str, ...]
    #: The documents of the corpus. If they are fewer than 100, the recipe is no advice, but the figures are by it.
    documents: int
    valley: Valley | None = None
    #: Whether the valley is that of the whole corpus, not of the sample.
    whole: bool = False
    #: How each view separates pairs, by its name.
    separations: tuple[tuple[str, Separation], ...] = ()

    @property
    def features(self) -> str:
        """The advised features."""
        return self.recipe.features

    @property
    def measure(self) -> str:
        """The advised measure."""
        return self.recipe.measure

    @property
    def threshold(self) -> float:
        """The advised threshold."""
        return self.recipe.threshold

    @property
    def given(self) -> bool:
        """Whether there are enough documents for an advice."""
        return self.documents >= FEWEST_DOCUMENTS

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "given": self.given,
            "features": self.features,
            "measure": self.measure,
            "threshold": self.threshold,
            "reason": self.reason,
            "command": list(self.command),
            "valley": None if self.valley is None else asdict(self.valley),
            "whole": self.whole,
            "separations": [{"name": name} | asdict(found) | {"gap": found.gap} for name, found in self.separations],
        }


def similar_pairs(views: Sequence[View]) -> int:
    """Return the number of pairs of a sample that count as similar."""
    return int(median_low(view.at_least(_SIMILAR_HUNDREDTHS) for view in views))


def measure_separation(view: View, similar: int, corpus_pairs: int) -> Separation:
    """Return how far apart unrelated and similar pairs are in a view.

    The ``similar`` closest pairs count as similar. The more pairs the corpus has, the higher its most similar unrelated
    one is expected to be.
    """
    pairs = view.cumulative()
    level = None if similar < _FEWEST_SIMILAR else _similarity_at_count(pairs, _LEVEL_SHARE * similar)
    return Separation(_reach(pairs, corpus_pairs), similar, level)


def _reach(pairs: Floats, corpus_pairs: int) -> float:
    total = pairs[0]
    bulk = np.maximum(pairs - pairs[_SIMILAR_HUNDREDTHS], 0.0) if 2 * pairs[_SIMILAR_HUNDREDTHS] <= total else pairs
    places = [_similarity_at_count(bulk, part * bulk[0]) for part in _BULK_SHARES]
    expected = [
        place + (place - before) / log10(earlier / part) * log10(max(part * corpus_pairs * bulk[0] / total, 1.0))
        for (earlier, part), (before, place) in zip(pairwise(_BULK_SHARES), pairwise(places), strict=True)
    ]
    return min(*expected, 1.0)


def _similarity_at_count(pairs: Floats, count: float) -> float:
    """Return the least similarity of the ``count`` closest pairs, with logarithms interpolated between hundredths."""
    logs = -np.log(np.maximum(pairs, _LOG_FLOOR))
    return float(np.interp(-np.log(count), logs, np.arange(BINS + 1) / BINS))


def choose_features(views: Sequence[View], corpus_pairs: int) -> Choice:
    """Choose features: step 1 of the rule.

    The candidates are n-grams by Jaccard; without any, all views of the sample.
    """
    grams = [view for view in views if view.n is not None and view.measure == _MEASURE]
    candidate_views = grams or list(views)
    similar = similar_pairs(candidate_views)
    found = tuple((view, measure_separation(view, similar, corpus_pairs)) for view in candidate_views)
    words = [one for one in found if one[0].features.startswith("words")] or list(found)
    qgrams = [one for one in found if one not in words]
    if words[0][1].level is None:
        low = [view for view, separation in words if separation.reach <= _LOW_REACH]
        return Choice(min(low, key=_length) if low else min(words, key=lambda one: one[1].reach)[0], found)
    best, view = _widest_gap(words)
    if qgrams:
        wider, other = _widest_gap(qgrams)
        view = other if wider >= best + _LEAST_QGRAM_GAIN else view
    return Choice(view, found)


def _widest_gap(found: Sequence[tuple[View, Separation]]) -> tuple[float, View]:
    """Return the widest gap, and the longest n-grams with about that gap."""
    gaps = [(separation.gap or 0.0, view) for view, separation in found]
    best = max(gap for gap, _ in gaps)
    return best, max((view for gap, view in gaps if gap >= best - _GAP_TOLERANCE), key=_length)


def _length(view: View) -> int:
    return view.n or 0


def advise(
    choice: Choice,
    curve: Curve | None,
    *,
    lowest: float,
    documents: int,
    inputs: Sequence[str] = (),
    reading: Sequence[str] = (),
) -> Advice:
    """Advise a recipe: steps 2 to 4 of the rule.

    ``curve`` is that of the whole corpus by these features; the advised threshold is at least ``lowest``.
    """
    view, whole = choice.view, curve is not None and curve.complete
    pairs, first_known = view.cumulative(), 0
    if curve is not None and whole:
        exact = {round(BINS * one.threshold, 6): one.pairs for one in curve.points}
        places = [at for at in range(1, BINS + 1) if at in exact]
        pairs, first_known = np.full(BINS + 1, documents * (documents - 1) / 2), places[0]
        pairs[places] = [exact[at] for at in places]
    valley, recipe = find_valley(pairs, first_known), view.recipe
    if not measure(recipe.measure).distance:
        recipe = replace(recipe, threshold=_threshold(valley, choice.separation.reach, lowest) / BINS)
    return Advice(
        recipe=recipe,
        reason=f"{_why_features(choice)} {_why_threshold(recipe, valley, pairs, whole=whole)}",
        command=_dedup_command(recipe, inputs, reading) if documents >= FEWEST_DOCUMENTS else (),
        valley=valley,
        documents=documents,
        whole=whole,
        separations=tuple((other.name, separation) for other, separation in choice.separations),
    )


def _threshold(valley: Valley | None, reach: float, lowest: float) -> int:
    least = ceil(round(BINS * lowest, 6))
    if valley is None:
        return max(_round_up(max(_DEFAULT_HUNDREDTHS, min(round(BINS * reach), _HIGHEST_HUNDREDTHS))), least)
    at = max(round(BINS * valley.at), least)
    return at if at <= BINS * valley.high < _round_up(at) else min(_round_up(at), BINS)


def _round_up(hundredths: int) -> int:
    return -(-hundredths // _STEP) * _STEP


def _why_features(choice: Choice) -> str:
    name, separation = choice.view.name, choice.separation
    if len(choice.separations) == 1:
        return f"Only {name} was compared; unrelated pairs reach {separation.reach:.2f}."
    if separation.level is None or separation.gap is None:
        similar_count = f"{separation.alike} similar pair{'' if separation.alike == 1 else 's'}"
        begin = f"The sample has {similar_count}, too few to judge by"
        if separation.reach <= _LOW_REACH:
            return f"{begin}: {name} are the shortest n-grams whose unrelated pairs stay below {_LOW_REACH:g}."
        return f"{begin}: unrelated pairs reach the least similarity, {separation.reach:.2f}, with {name}."
    reached = (
        f"unrelated pairs reach {separation.reach:.2f}, and 90% of the {separation.alike:,} similar pairs score at "
        f"least {separation.level:.2f}"
    )
    if separation.gap <= 0:
        return f"Nothing separates similar from unrelated pairs here; {name} comes closest: {reached}."
    return f"{name} separates pairs best: {reached}."


def _why_threshold(recipe: Recipe, valley: Valley | None, pairs: Floats, *, whole: bool) -> str:
    if measure(recipe.measure).distance:
        return f"The threshold is the recipe's own, because {recipe.measure} is a distance."
    where, at = ("whole corpus" if whole else "sample"), recipe.threshold
    count = round(pairs[round(BINS * at)])
    score = "1 pair scores" if count == 1 else f"{count:,} pairs score" if count else "no pair scores"
    found = f"{score} at least {at:g}"
    if 0 < count < FEWEST_CLEAR_PAIRS:
        found += ", too few to rely on"
    if valley is None:
        shared = f", where two texts of equal length share {200 * at / (1 + at):.0f}% of their n-grams"
        means = shared if recipe.measure == "jaccard" else ""
        none = "There is no valley to cut in (a range with few pairs)"
        return f"{none}, so the threshold is {at:g}{means}. In the {where}, {found}."
    raised = f"; {at:g} is the lowest threshold allowed" if at > valley.high else ""
    if valley.sparse:
        clear = "a clear valley (a range with few pairs)" if valley.clear else "an empty stretch"
        return f"The {where} has {clear} from {valley.low:g} to {valley.high:g}{raised}; {found}."
    return (
        f"In the {where}, pairs thin out up to {valley.low:g} and are spread evenly above it, so no cut is sharp"
        f"{raised}; {found}."
    )


def _dedup_command(recipe: Recipe, inputs: Sequence[str], reading: Sequence[str]) -> tuple[str, ...]:
    words = ["dedup", *(inputs or ("INPUT",)), *reading, "--features", recipe.features]
    defaults = Recipe(features=recipe.features)
    for field in fields(Recipe):
        value = getattr(recipe, field.name)
        if field.name not in _SEPARATE_FIELDS and value != getattr(defaults, field.name):
            words += command_words(field.name, f"{value:g}" if isinstance(value, float) else value)
    return (*words, "--threshold", f"{recipe.threshold:g}", "-o", "kept.jsonl")
