"""The options of an exploration with their defaults and bounds, for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.recipe import AnyRecipe

_HIGHEST_SEED = (1 << 32) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationOptions:
    """The options of an exploration, as ``neardup explore --help-all`` describes them; raises ``RecipeError``.

    Time and memory grow with the square of ``sample``. If documents are short (a median below 20 words) and ``qgrams``
    is empty, q-grams of 4 to 6 characters are compared as well. Thresholds, second steps and searches of ``recipes``
    are ignored. Lowering ``lowest``, in (0, 1], finds more pairs and takes longer.
    """

    sample: int = 2000
    seed: int = 0
    lengths: Sequence[int] = tuple(range(1, 8))
    qgrams: Sequence[int] = ()
    recipes: Sequence[AnyRecipe] = ()
    multiset: bool = False
    lowest: float = 0.2
    content: str = ""
    examples: int = 3
    curve: bool = True
    title_column: str | None = None
    time_column: str | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.sample < 2:
            raise RecipeError(f"sample {self.sample} is below 2; a pair needs two documents")
        if not 0 <= self.seed <= _HIGHEST_SEED:
            raise RecipeError(f"seed {self.seed} is outside 0..{_HIGHEST_SEED}")
        if self.examples < 0:
            raise RecipeError(f"examples {self.examples} is below 0; give 0 for none")
        if not 0 < self.lowest <= 1:
            raise RecipeError(f"lowest {self.lowest} is outside (0, 1]; give a similarity, such as 0.2")
        if not (self.lengths or self.qgrams or self.recipes):
            raise RecipeError("there is nothing to compare: give lengths, such as 1 to 7, qgrams, or a recipe")
