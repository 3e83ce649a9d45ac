"""The wide net: a low bound on one set measure, below which no pair is looked at."""

from __future__ import annotations

from neardup.errors import RecipeError
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.recipe.second_step import SecondStep

#: Full documents that share fewer of their three-word shingles have not been seen to be near-duplicates.
NET = "jaccard(words:3) >= 0.1"


def net_of(text: str = NET, *, content: str = "") -> Recipe:
    """Return the recipe whose pairs a decision looks at.

    Parameters
    ----------
    text : str
        ``MEASURE(FEATURES) >= NUMBER``, a measure of feature sets. Raising the number gives fewer candidate pairs,
        faster, and may lose near-duplicates for good.
    content : str
        As in ``Recipe``.

    Raises
    ------
    RecipeError
        If it is not written so, or the measure is none of feature sets.
    """
    try:
        step = SecondStep.parse(text)
    except RecipeError as error:
        said, own = str(error).partition(";")[0], f"second_step {text!r}"
        reason = said.removeprefix(own) if said.startswith(own) else f": {said.removeprefix('second_step: ')}"
        raise RecipeError(f"net {text!r}{reason}; write it like {NET}") from None
    if step.measure not in SET_MEASURES:
        raise RecipeError(f"net {text!r}: {step.measure} is no measure of feature sets; write it like {NET}")
    return Recipe(name="net", content=content, features=step.features, measure=step.measure, threshold=step.threshold)
