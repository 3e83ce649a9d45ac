"""Features and sketches as transformers of scikit-learn: texts in, a matrix with a row per text out.

They need scikit-learn, which ``pip install 'neardup[sklearn]'`` brings. A row has what a recipe with the same choices
compares of the text.
"""

from __future__ import annotations

from neardup.errors import RecipeError

try:
    from neardup.transformers.steps import FeatureTransformer, SimHashTransformer, SketchTransformer
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] not in ("scipy", "sklearn"):
        raise
    raise RecipeError(
        f"the transformers need scikit-learn, and {error.name} is not installed; "
        "pip install 'neardup[sklearn]' brings it"
    ) from None

__all__ = ["FeatureTransformer", "SimHashTransformer", "SketchTransformer"]
