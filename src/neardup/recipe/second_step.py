"""The second step of a recipe: a more accurate measure for the pairs that pass the first one."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from neardup.errors import RecipeError
from neardup.recipe.kinds import Features
from neardup.recipe.measures import SET_MEASURES, exact_fraction, measure

_LEARNED = re.compile(r"learned\((?P<fingerprint>[0-9a-f]{16})\)")
_STEP = re.compile(r"(?P<measure>[a-z_]+)\s*(?:\((?P<features>[^()]+)\))?\s*>=\s*(?P<threshold>[0-9.]{1,30})")


def learned_step(fingerprint: str) -> str:
    """Return the ``second_step`` of a recipe whose classifier decides (ICGICT 2014, 3.2.4)."""
    return f"learned({fingerprint})"


class SecondStep(NamedTuple):
    """A parsed second step, such as ``"edit >= 0.9"`` or ``"jaccard(words:2) >= 0.6"``.

    Source: Montanari & Puglisi 2012, 3.3.

    Attributes
    ----------
    measure : str
        ``edit`` or ``semantic`` on the texts, or a measure of feature sets; ``learned`` for a classifier.
    features : str
        The features of a set measure; empty for a measure on texts; the fingerprint of a classifier.
    threshold : float
        What a match must reach. Raising it finds fewer pairs. A classifier has its own.
    ignore : str
        Text whose features are ignored, for a measure of feature sets.
    """

    measure: str
    features: str
    threshold: float
    ignore: str = ""

    @classmethod
    def parse(cls, text: str) -> SecondStep:
        """Parse the text of a second step.

        Raises ``RecipeError`` if the text is not ``MEASURE >= NUMBER`` or ``MEASURE(FEATURES) >= NUMBER``, or the
        measure does not fit.
        """
        learned = _LEARNED.fullmatch(text.strip())
        if learned is not None:
            return cls("learned", learned["fingerprint"], 0.0)
        match = _STEP.fullmatch(text.strip())
        form = "write it like edit >= 0.9 or jaccard(words:2) >= 0.6"
        if match is None:
            raise RecipeError(f"second_step {text!r} is not known; {form}")
        definition = measure(match["measure"])
        on_sets = definition.name in SET_MEASURES and not definition.distance
        if not on_sets and definition.name not in ("edit", "semantic"):
            raise RecipeError(f"second_step {text!r}: {definition.name} is no second step; {form}")
        if on_sets != bool(match["features"]):
            argument = "features in brackets, as in jaccard(words:2)" if on_sets else "no features: it compares texts"
            raise RecipeError(f"second_step {text!r}: {definition.name} takes {argument}")
        features = str(Features.parse(match["features"])) if on_sets else ""
        if features.startswith(("terms", "checksum")):
            raise RecipeError(
                f"second_step {text!r}: {features} are no features for a second step; take words or qgrams"
            )
        value = float(exact_fraction(match["threshold"], "second_step: threshold"))  # type: ignore[arg-type]
        return cls(definition.name, features, value)

    @property
    def exact_threshold(self) -> Fraction:
        """The threshold as a fraction."""
        return exact_fraction(self.threshold, "threshold")

    def __str__(self) -> str:
        if self.measure == "learned":
            return f"learned({self.features})"
        threshold = Decimal(repr(self.threshold)).normalize()
        return f"{self.measure}{f'({self.features})' if self.features else ''} >= {threshold:f}"
