"""The more accurate measures of two texts, for pairs that passed a lighter one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import RecipeError
from neardup.explain.flip import bar_of_second, say_threshold, value_of
from neardup.explain.grams import set_counts
from neardup.explain.held import held_side
from neardup.explain.reasons import decimals
from neardup.recipe import Recipe
from neardup.recipe.second import SecondStep

if TYPE_CHECKING:
    from neardup.vector.encoder import Encoder


def edit_counts(left: str, right: str) -> tuple[int, int, int]:
    """Return o, a and b of the measure ``edit``: a = b = the length of the longer text, o = that less the distance.

    The Levenshtein distance: the fewest code points to insert, delete or replace.

    Examples
    --------
    >>> edit_counts("kitten", "sitting")
    (4, 7, 7)
    """
    from rapidfuzz.distance import Levenshtein

    longer = max(len(left), len(right))
    return longer - Levenshtein.distance(left, right), longer, longer


def text_counts(measure: str, left: str, right: str, encoder: Encoder | None = None) -> tuple[int, int, int]:
    """Return o, a and b of a measure on two texts; of ``semantic``, the cosine in units of 10**-9, 0 if negative.

    Parameters
    ----------
    measure : {"edit", "semantic"}
        The measure.
    left, right : str
        The texts, as they are.
    encoder : Encoder, optional
        Makes the embeddings for ``semantic``.

    Raises
    ------
    RecipeError
        If ``semantic`` is asked for without an encoder.
    """
    if measure == "edit":
        return edit_counts(left, right)
    if encoder is None:
        raise RecipeError(
            "measure 'semantic' needs an encoder, an object with encode(texts): hand one over in Python, "
            "explain(..., encoder=...)"
        )
    from neardup.vector.encoder import COSINE_UNIT, embed

    rows = embed([left, right], encoder)
    cosine = min(max(float(rows[0] @ rows[1]), 0.0), 1.0)
    return round(cosine * COSINE_UNIT), COSINE_UNIT, COSINE_UNIT


class Second(NamedTuple):
    """The second step on a pair: what it asks for, and the pair's o, a and b."""

    step: SecondStep
    counts: tuple[int, int, int]

    @property
    def value(self) -> float:
        """The measure of the pair."""
        return value_of(self.step.measure, *self.counts)

    @property
    def passed(self) -> bool:
        """Whether the pair is at or above the step's threshold; exact."""
        return bar_of_second(self.step).reached(*self.counts)

    @property
    def reason(self) -> str:
        """The step's numbers: then edit 0.9512 >= 0.9."""
        name, _, threshold = str(self.step).partition(" >= ")
        return f"then {name} {decimals(self.value)} {'>=' if self.passed else '<'} {threshold}"

    @property
    def flip(self) -> float | None:
        """The nearest threshold of the step that gives its other verdict; None where none does."""
        return bar_of_second(self.step).nearest(*self.counts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words."""
        return (say_threshold(bar_of_second(self.step), self.counts, self.flip, "pass the second step"),)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "measure": self.step.measure,
            "features": self.step.features,
            "threshold": self.step.threshold,
            "value": self.value,
            "passed": self.passed,
            "counts": list(self.counts),
            "flip": self.flip,
        }


def second_of(left: str, right: str, step: SecondStep, encoder: Encoder | None = None) -> Second:
    """Return what a second step says of two texts; equal texts pass every one.

    Raises
    ------
    RecipeError
        If it is ``semantic`` and there is no encoder.
    """
    if not step.features:
        return Second(step, text_counts(step.measure, left, right, encoder))
    if left == right:
        return Second(step, (1, 1, 1))
    recipe = Recipe(features=step.features)
    grams = [held_side(text, recipe, None).counted(recipe) for text in (left, right)]
    return Second(step, set_counts(*grams))
