"""Why two documents match or not: the grams they share and where, every measure, what would flip the verdict.

Plain Python on two texts, by the definitions alone; the kernels must come to the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from neardup.flip import Flip, flip_of, needed, reaches
from neardup.measures import MEASURES, exact_fraction, measure
from neardup.passages import Gram, Passage, Segment, Span, changes_of, passages_of, segments_of, side_of
from neardup.recipe import Recipe


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Why two documents match or not.

    For the feature sets A (left) and B (right), a = |A|, b = |B| and o = |A and B|.

    Attributes
    ----------
    left, right : str
        The texts.
    recipe : Recipe
        What makes a match.
    left_grams, right_grams : mapping of gram to int
        The features as tuples of token texts, each with how often it counts: once in a set, as often as it
        stands in the text in a multiset.
    left_segments, right_segments : tuple of Segment
        Each text from its start to its end, cut where shared grams begin and end to cover it.
    left_changes, right_changes : tuple of Span
        Of what no shared gram covers, the words that differ; the others are the same in both texts, but too
        few in a row to be a gram.
    passages : tuple of Passage
        What both texts say in the same words, from left to right, each as long as it goes.
    """

    left: str
    right: str
    recipe: Recipe
    left_grams: Mapping[Gram, int]
    right_grams: Mapping[Gram, int]
    left_segments: tuple[Segment, ...]
    right_segments: tuple[Segment, ...]
    left_changes: tuple[Span, ...]
    right_changes: tuple[Span, ...]
    passages: tuple[Passage, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of features of each document, a and b."""
        return sum(self.left_grams.values()), sum(self.right_grams.values())

    @property
    def shared(self) -> int:
        """The number of features that both hold, o."""
        return sum(min(count, self.right_grams.get(gram, 0)) for gram, count in self.left_grams.items())

    @property
    def needed(self) -> int | None:
        """The least o with which such sizes match, be it more than there can be; None if one is empty."""
        return needed(self.recipe, *self.sizes)

    @property
    def match(self) -> bool:
        """Whether the pair is at or above the threshold (and the floor on Jaccard); exact."""
        return reaches(self.recipe, self.shared, *self.sizes)

    @property
    def measures(self) -> dict[str, float]:
        """Every set measure of the pair; 0 where a document is empty."""
        (a, b), o = self.sizes, self.shared
        return {name: float(m.similarity(o, a, b)) if a and b else 0.0 for name, m in MEASURES.items()}

    @property
    def similarity(self) -> float:
        """The recipe's measure of the pair."""
        return self.measures[self.recipe.measure]

    @property
    def flip(self) -> Flip:
        """What would turn the verdict around."""
        return flip_of(self.recipe, self.shared, *self.sizes)

    @property
    def reason(self) -> str:
        """The verdict's numbers on one line."""
        (a, b), recipe, values = self.sizes, self.recipe, self.measures
        least = ""
        if recipe.jaccard_floor:
            sign = _sign("jaccard", self.shared, a, b, exact_fraction(recipe.jaccard_floor, "jaccard_floor"))
            least = f" with jaccard {decimals(values['jaccard'])} {sign} {recipe.jaccard_floor:g}"
        sign = _sign(recipe.measure, self.shared, a, b, exact_fraction(recipe.threshold, "threshold"))
        return (
            f"{recipe.measure} {decimals(values[recipe.measure])} {sign} {recipe.threshold:g}{least}; "
            f"{self.shared:,} features shared, of {a:,} and {b:,}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, passages, segments and changes for JSON, without the texts and their grams."""
        return {
            "match": self.match,
            "measure": self.recipe.measure,
            "similarity": self.similarity,
            "threshold": self.recipe.threshold,
            "jaccard_floor": self.recipe.jaccard_floor,
            "features": self.recipe.features,
            "normalize": self.recipe.normalize,
            "sizes": list(self.sizes),
            "shared": self.shared,
            "needed": self.needed,
            "measures": self.measures,
            "flip": self.flip._asdict() | {"sentences": list(self.flip.sentences)},
            "passages": [
                {
                    "left": list(passage.left),
                    "right": [list(span) for span in passage.right],
                    "tokens": passage.tokens,
                    "text": passage.text,
                }
                for passage in self.passages
            ],
            "segments": {
                "left": [segment._asdict() for segment in self.left_segments],
                "right": [segment._asdict() for segment in self.right_segments],
            },
            "changes": {
                "left": [list(span) for span in self.left_changes],
                "right": [list(span) for span in self.right_changes],
            },
            "fingerprint": self.recipe.fingerprint,
        }

    def __str__(self) -> str:
        return f"{'near-duplicates' if self.match else 'no near-duplicates'}: {self.reason}"


def explain(left: str, right: str, recipe: Recipe) -> Explanation:
    """Explain why two texts match or not.

    Parameters
    ----------
    left, right : str
        The texts.
    recipe : Recipe
        How texts become features, the measure and its threshold.

    Examples
    --------
    >>> why = explain("A rose is a rose.", "A rose is a tulip.", Recipe(features="words:2", threshold=0.5))
    >>> print(why)
    near-duplicates: jaccard 0.7500 >= 0.5; 3 features shared, of 3 and 4
    >>> [passage.text for passage in why.passages]
    ['A rose is a', 'a rose']
    """
    sides = side_of(left, recipe), side_of(right, recipe)
    multiset = recipe.parsed_features.multiset
    counts = [Counter(side.grams) if multiset else dict.fromkeys(side.grams, 1) for side in sides]
    return Explanation(
        left,
        right,
        recipe,
        counts[0],
        counts[1],
        segments_of(sides[0], counts[1]),
        segments_of(sides[1], counts[0]),
        *changes_of(*sides),
        passages_of(*sides),
    )


def decimals(value: float) -> str:
    """Return a similarity with four decimals, cut so that only the highest shows 1."""
    return f"{floor(value * 10_000 + 1e-9) / 10_000:.4f}"


def _sign(name: str, o: int, a: int, b: int, threshold: Fraction) -> str:
    return ">=" if a and b and measure(name).reaches(o, a, b, threshold) else "<"
