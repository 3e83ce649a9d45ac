"""Features and sketches as steps of scikit-learn: texts in, a matrix with a row a text out.

They need scikit-learn, which ``pip install 'neardup[sklearn]'`` brings. What they make of a text is what a recipe with
the same choices compares it by.
"""

from __future__ import annotations

from neardup.errors import RecipeError

try:
    from neardup.transformers.steps import FeatureTransformer, SimHashTransformer, SketchTransformer
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] not in ("scipy", "sklearn"):
        raise
    raise RecipeError(
        f"the transformers are steps of scikit-learn, and {error.name} is not installed; "
        "pip install 'neardup[sklearn]' brings it"
    ) from None

__all__ = ["FeatureTransformer", "SimHashTransformer", "SketchTransformer"]
