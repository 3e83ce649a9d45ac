"""What an exploration is asked to do: every option with its default and its bounds, for Python and the command line."""

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
    """What an exploration is asked to do.

    Attributes
    ----------
    sample : int
        How many documents are compared with each other; at least 2. Raising it shows rarer pairs; time and memory grow
        with its square.
    seed : int
        Which documents are drawn, and which pairs are shown; 0 to 2**32 - 1.
    lengths, qgrams : sequence of int
        Word n-grams and character q-grams to compare. Where documents are short (a median below 20 words) and no
        q-grams are asked for, those of 4 to 6 characters are compared, too.
    recipes : sequence of Recipe, str or path
        More recipes to compare, or their names or files; without thresholds, second steps and searches.
    multiset : bool
        Whether repeats of n-grams and q-grams count.
    lowest : float
        Where the curve begins, in (0, 1]; no lower threshold is advised. Lowering it finds more pairs, slower.
    content : str
        What of the texts is compared, as in ``Recipe``.
    examples : int
        How many pairs to show for each cutoff.
    curve : bool
        Whether to join the whole corpus; else every figure comes from the sample.
    title_column, time_column : str, optional
        Of the documents that are shown; detected by their names.

    Raises
    ------
    RecipeError
        If a value is out of range.
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
        """Refuse what is out of range."""
        if self.sample < 2:
            raise RecipeError(f"sample {self.sample} is below 2; a pair needs two documents")
        if not 0 <= self.seed <= _HIGHEST_SEED:
            raise RecipeError(f"seed {self.seed} is outside 0..{_HIGHEST_SEED}")
        if self.examples < 0:
            raise RecipeError(f"examples {self.examples} is below 0; give 0 for none")
        if not 0 < self.lowest <= 1:
            raise RecipeError(f"lowest {self.lowest} is outside (0, 1]; give a similarity, such as 0.2")
        if not (self.lengths or self.qgrams or self.recipes):
            raise RecipeError("there is nothing to compare by: give lengths, such as 1 to 7, qgrams, or a recipe")
