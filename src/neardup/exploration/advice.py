"""Which n, measure and threshold to begin with, and why.

The rule, in four steps:

1. **Features**: of the n-grams that were looked at, those with the widest gap between what unrelated pairs reach and
   what nine in ten alike pairs have (``separation``); of lengths within 0.02 of the widest gap the longest, whose
   features are rarer. Character q-grams, which are more to compare, take the place of words where they widen the gap by
   0.05. Where the sample has fewer than 10 alike pairs: the shortest n-grams whose unrelated pairs stay below 0.1.
2. **Measure**: Jaccard, whose formula people know and whose join is the fastest.
3. **Pairs**: those of the whole corpus from the curve's lowest threshold on: a sample of a large corpus has few related
   pairs, but the exact join has them all. Where there is no curve, those of the sample; and where the curve could not
   begin as low as it was asked to, for there are too many pairs: then the sample has enough of them.
4. **Threshold**: the cut in the valley (``valley``) of these, in steps of 0.05, and no lower than the lowest threshold
   of the curve. Where there is no valley: 0.5, where two documents of equal size share two thirds of their features, or
   what unrelated pairs reach, if that is more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.exploration.curve import Curve
from neardup.exploration.histogram import (
    BINS,
    FEWEST_CLEAR,
    Choice,
    Separation,
    Valley,
    View,
    above,
    alternatives_of,
    command_of,
    valley_of,
    why_features,
    why_threshold,
)
from neardup.exploration.sample import Sample
from neardup.recipe import Recipe
from neardup.recipe.measures import measure

Floats = npt.NDArray[np.float64]

#: Where there is no valley, and no higher than; and the steps of thresholds: in hundredths.
_MIDDLE, _HIGHEST, _STEP = 50, 90, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to begin with.

    Attributes
    ----------
    recipe : Recipe
        The advised features, measure and threshold.
    reason : str
        A sentence or two: why these.
    command : tuple of str
        What to run: the words behind ``neardup``.
    alternatives : tuple of (str, str)
        Other features, and why not these.
    valley : Valley or None
        Where the threshold was taken from.
    whole : bool
        Whether that is of the whole corpus; else of the sample.
    separations : tuple of (str, Separation)
        What unrelated and alike pairs reach, by the name of the view.
    """

    recipe: Recipe
    reason: str
    command: tuple[str, ...]
    alternatives: tuple[tuple[str, str], ...]
    valley: Valley | None = None
    whole: bool = False
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

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "features": self.features,
            "measure": self.measure,
            "threshold": self.threshold,
            "reason": self.reason,
            "command": list(self.command),
            "alternatives": [list(other) for other in self.alternatives],
            "valley": None if self.valley is None else self.valley.as_dict(),
            "whole": self.whole,
            "separations": [{"name": name} | found.as_dict() for name, found in self.separations],
        }


def pairs_above(view: View, sample: Sample, curve: Curve | None) -> tuple[Floats, int]:
    """Return how many pairs are at or above each hundredth: step 3 of the rule.

    Returns
    -------
    float64[101], int
        Those of the corpus, and the hundredth from where on they are known; else those of the sample, and 0.
    """
    own = above(view)
    exact = {} if curve is None else {point.threshold: point.pairs for point in curve.points if point.pairs is not None}
    places = [at for at in range(1, BINS + 1) if at / BINS in exact]
    if curve is None or not places or (not curve.complete and own[places[0]] >= FEWEST_CLEAR):
        return own, 0
    pairs = np.full(BINS + 1, float(sample.corpus_pairs))
    for at in places:
        pairs[at] = exact[at / BINS]
    return pairs, places[0]


def advise(
    choice: Choice,
    sample: Sample,
    curve: Curve | None,
    *,
    lowest: float,
    inputs: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Advice:
    """Advise a recipe: steps 2 to 4 of the rule.

    Parameters
    ----------
    choice : Choice
        The features.
    sample : Sample
        That of its views.
    curve : Curve, optional
        Of the whole corpus, by these features.
    lowest : float
        No lower threshold is advised.
    inputs, options : sequence of str
        What the command is to read, and options of reading.
    """
    view = choice.view
    pairs, known = pairs_above(view, sample, curve)
    valley, whole = valley_of(pairs, known), known > 0
    recipe = view.recipe
    if not measure(recipe.measure).distance:
        recipe = replace(recipe, threshold=_threshold(valley, choice.own.reach, lowest) / BINS)
    return Advice(
        recipe=recipe,
        reason=f"{why_features(choice)} {why_threshold(recipe, valley, pairs, whole=whole)}",
        command=command_of(recipe, inputs, options),
        alternatives=alternatives_of(choice, recipe, pairs, whole=whole),
        valley=valley,
        whole=whole,
        separations=tuple((other.name, own) for other, own in choice.separations),
    )


def _threshold(valley: Valley | None, reach: float, lowest: float) -> int:
    """Return the threshold in hundredths."""
    least = ceil(round(BINS * lowest, 6))
    if valley is None:
        return max(_up(max(_MIDDLE, min(round(BINS * reach), _HIGHEST))), least)
    at = max(round(BINS * valley.at), least)
    return at if at <= BINS * valley.high < _up(at) else min(_up(at), BINS)


def _up(hundredths: int) -> int:
    return -(-hundredths // _STEP) * _STEP
