"""Why two documents match or not: the grams they share and where, every measure, what would flip the verdict.

Plain Python on two texts, by the definitions alone; the kernels must come to the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

from neardup.measures import MEASURES, exact_fraction, measure
from neardup.passages import Gram, Passage, Segment, grams_of, passages_of, segments_of, units_of
from neardup.recipe import FEATURE_KINDS, Recipe

#: Thresholds are given with four decimals where that tells them from 0, with up to nine elsewhere.
_DECIMALS = range(4, 10)


class Flip(NamedTuple):
    """What would turn the verdict around.

    Attributes
    ----------
    threshold : float or None
        The nearest threshold, rounded away from this pair, that gives the other verdict; None where none in
        (0, 1] does.
    shared : int or None
        By how many the shared features would have to change at the same sizes: negative for a match; None
        where no number would do.
    changed_words : int or None
        For a match, an estimate of how many single changed words (characters, for q-grams) far from each
        other it survives.
    sentences : tuple of str
        The same in words.
    """

    threshold: float | None
    shared: int | None
    changed_words: int | None
    sentences: tuple[str, ...]


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
        a, b = self.sizes
        return _needed(self.recipe, a, b) if a and b else None

    @property
    def match(self) -> bool:
        """Whether the pair is at or above the threshold (and the floor on Jaccard); exact."""
        return self.needed is not None and self.shared >= self.needed

    @property
    def measures(self) -> dict[str, float]:
        """Every set measure of the pair; 0 where a document is empty."""
        a, b = self.sizes
        return {
            name: float(m.similarity(self.shared, a, b)) if a and b else 0.0 for name, m in MEASURES.items()
        }

    @property
    def similarity(self) -> float:
        """The recipe's measure of the pair."""
        return self.measures[self.recipe.measure]

    @property
    def flip(self) -> Flip:
        """What would turn the verdict around."""
        threshold, shared, words = self._flip_threshold(), self._flip_shared(), self._survives()
        said = self._say_threshold(threshold), self._say_shared(shared), self._say_words(words)
        return Flip(threshold, shared, words, tuple(sentence for sentence in said if sentence))

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, passages and segments for JSON, without the texts and their grams."""
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
            "passages": [
                {
                    "left": list(p.left),
                    "right": [list(span) for span in p.right],
                    "tokens": p.tokens,
                    "text": p.text,
                }
                for p in self.passages
            ],
            "segments": {
                "left": [segment._asdict() for segment in self.left_segments],
                "right": [segment._asdict() for segment in self.right_segments],
            },
            "flip": self.flip._asdict() | {"sentences": list(self.flip.sentences)},
            "fingerprint": self.recipe.fingerprint,
        }

    def __str__(self) -> str:
        return f"{'near-duplicates' if self.match else 'no near-duplicates'}: {self.reason}"

    @property
    def reason(self) -> str:
        """The verdict's numbers on one line."""
        (a, b), recipe = self.sizes, self.recipe
        floor_text = ""
        if recipe.jaccard_floor:
            least = exact_fraction(recipe.jaccard_floor, "jaccard_floor")
            sign = _sign("jaccard", self.shared, a, b, least)
            floor_text = f" with jaccard {_rounded(self.measures['jaccard'])} {sign} {recipe.jaccard_floor:g}"
        sign = _sign(recipe.measure, self.shared, a, b, exact_fraction(recipe.threshold, "threshold"))
        return (
            f"{recipe.measure} {_rounded(self.similarity)} {sign} {recipe.threshold:g}{floor_text}; "
            f"{self.shared:,} features shared, of {a:,} and {b:,}"
        )

    @property
    def _token(self) -> str:
        return "character" if FEATURE_KINDS[self.recipe.parsed_features.kind].by_character else "word"

    def _flip_threshold(self) -> float | None:
        if self.needed is None:
            return None
        for decimals in _DECIMALS:
            scale = 10**decimals
            # Floating point is a step off at most; the exact rule has the last word.
            near = floor(self.similarity * scale) if not self.match else ceil(self.similarity * scale)
            steps = range(near - 1, near + 2) if self.match else range(near + 1, near - 2, -1)
            for step in steps:
                if not 0 < step <= scale:
                    continue
                if _holds(self.recipe, self.shared, *self.sizes, Fraction(step, scale)) != self.match:
                    return float(Fraction(step, scale))
        return None

    def _flip_shared(self) -> int | None:
        if self.needed is None:
            return None
        if self.match:
            return self.needed - 1 - self.shared
        return self.needed - self.shared if self.needed <= min(self.sizes) else None

    def _survives(self) -> int | None:
        if self.needed is None or not self.match:
            return None
        return (self.shared - self.needed) // self.recipe.parsed_features.n

    def _say_threshold(self, threshold: float | None) -> str:
        if self.needed is None:
            empty = " and ".join(
                side for side, size in zip(("left", "right"), self.sizes, strict=True) if not size
            )
            verb = "documents have" if " " in empty else "document has"
            return f"The {empty} {verb} no {self._token}s to compare; such a document matches nothing."
        if threshold is None:
            if self.match:
                return "No threshold would part them: they are equal in what is compared."
            if not self.shared:
                return "No threshold would make them match: they share no feature."
            least = f"{self.recipe.jaccard_floor:g}"
            return f"No threshold would make them match: their Jaccard is below its floor of {least}."
        digits = f"{threshold:.9f}".rstrip("0")
        if self.match:
            return f"They no longer match at a threshold of {digits} or higher."
        return f"They match at a threshold of {digits} or lower."

    def _say_shared(self, shared: int | None) -> str:
        if self.needed is None:
            return ""
        if shared is None:
            return (
                f"At these sizes {self.needed:,} shared features would be needed, more than the smaller"
                " document has: their lengths alone keep them apart."
            )
        verdict, change = ("no longer match", "fewer") if self.match else ("match", "more")
        number = _count(abs(shared), "shared feature")
        return f"At these sizes they {verdict} with {number} {change} than {self.shared:,}."

    def _say_words(self, words: int | None) -> str:
        if words is None:
            return ""
        n = self.recipe.parsed_features.n
        if not words:
            return (
                f"One changed {self._token} may part them (an estimate: it is part of up to {n} {n}-grams)."
            )
        cost = f"each of them is part of up to {n} {n}-grams" if n > 1 else "each of them is one feature"
        return (
            f"About {_count(words, f'changed {self._token}')} far from each other would leave it a match "
            f"(an estimate: {cost})."
        )


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
    wanted = recipe.parsed_features
    units = units_of(left, recipe), units_of(right, recipe)
    grams = grams_of(units[0], wanted.n), grams_of(units[1], wanted.n)
    counts = [Counter(found) if wanted.multiset else dict.fromkeys(found, 1) for found in grams]
    return Explanation(
        left,
        right,
        recipe,
        counts[0],
        counts[1],
        segments_of(left, units[0], grams[0], counts[1]),
        segments_of(right, units[1], grams[1], counts[0]),
        tuple(passages_of(left, units, grams)),
    )


def _needed(recipe: Recipe, a: int, b: int) -> int:
    threshold = exact_fraction(recipe.threshold, "threshold")
    low, high = 1, a + b
    while low < high:
        middle = (low + high) // 2
        if _holds(recipe, middle, a, b, threshold):
            high = middle
        else:
            low = middle + 1
    return low


def _holds(recipe: Recipe, o: int, a: int, b: int, threshold: Fraction) -> bool:
    least = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    return (
        o > 0
        and measure(recipe.measure).reaches(o, a, b, threshold)
        and (not least or measure("jaccard").reaches(o, a, b, least))
    )


def _sign(name: str, o: int, a: int, b: int, threshold: Fraction) -> str:
    return ">=" if a and b and measure(name).reaches(o, a, b, threshold) else "<"


def _rounded(value: float) -> str:
    """Return a similarity with four decimals, cut so that only equal documents show 1."""
    return f"{floor(value * 10_000 + 1e-9) / 10_000:.4f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
