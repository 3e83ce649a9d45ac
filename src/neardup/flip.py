"""What would turn a pair's verdict around, from its numbers alone: sizes a and b, shared features o."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from neardup.measures import exact_fraction, measure
from neardup.recipe import FEATURE_KINDS, Recipe

#: Thresholds are given with four decimals; with up to nine where four do not tell them from 0.
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


def reaches(recipe: Recipe, o: int, a: int, b: int, threshold: Fraction | None = None) -> bool:
    """Return, exactly, whether a pair matches: by the recipe's threshold or another one, and by its floor."""
    if not (o and a and b):
        return False
    least = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    asked = exact_fraction(recipe.threshold, "threshold") if threshold is None else threshold
    return measure(recipe.measure).reaches(o, a, b, asked) and (not least or measure("jaccard").reaches(o, a, b, least))


def needed(recipe: Recipe, a: int, b: int) -> int | None:
    """Return the least o with which such sizes match, be it more than there can be; None if one is empty."""
    if not (a and b):
        return None
    low, high = 1, a + b
    while low < high:
        middle = (low + high) // 2
        if reaches(recipe, middle, a, b):
            high = middle
        else:
            low = middle + 1
    return low


def flip_of(recipe: Recipe, o: int, a: int, b: int) -> Flip:
    """Return what would turn the verdict on a pair around.

    Examples
    --------
    >>> flip_of(Recipe(threshold=0.8), 90, 100, 100).sentences[0]
    'They no longer match at a threshold of 0.8182 or higher.'
    """
    least = needed(recipe, a, b)
    if least is None:
        return Flip(None, None, None, (_say_empty(recipe, a, b),))
    pair = _Pair(recipe, o, a, b, least)
    threshold, shared, words = pair.threshold(), pair.shared(), pair.changed_words()
    said = pair.say_threshold(threshold), pair.say_shared(shared), pair.say_words(words)
    return Flip(threshold, shared, words, tuple(sentence for sentence in said if sentence))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The numbers of a pair, neither side empty."""

    recipe: Recipe
    o: int
    a: int
    b: int
    least: int

    @property
    def match(self) -> bool:
        return self.o >= self.least

    def threshold(self) -> float | None:
        similarity = float(measure(self.recipe.measure).similarity(self.o, self.a, self.b))
        for decimals in _DECIMALS:
            scale = 10**decimals
            # Floating point is a step off at most; the exact rule has the last word.
            near = ceil(similarity * scale) if self.match else floor(similarity * scale)
            for step in range(near - 1, near + 2) if self.match else range(near + 1, near - 2, -1):
                if not 0 < step <= scale:
                    continue
                if reaches(self.recipe, self.o, self.a, self.b, Fraction(step, scale)) != self.match:
                    return float(Fraction(step, scale))
        return None

    def shared(self) -> int | None:
        if self.match:
            return self.least - 1 - self.o
        return self.least - self.o if self.least <= min(self.a, self.b) else None

    def changed_words(self) -> int | None:
        return (self.o - self.least) // self.recipe.parsed_features.n if self.match else None

    def say_threshold(self, threshold: float | None) -> str:
        if threshold is not None:
            digits = f"{threshold:.9f}".rstrip("0")
            if self.match:
                return f"They no longer match at a threshold of {digits} or higher."
            return f"They match at a threshold of {digits} or lower."
        if self.match:
            return "No threshold would part them: the measure is at its highest."
        if not self.o:
            return "No threshold would make them match: they share no feature."
        least = f"{self.recipe.jaccard_floor:g}"
        return f"No threshold would make them match: their Jaccard is below its floor of {least}."

    def say_shared(self, shared: int | None) -> str:
        if shared is None:
            return (
                f"At these sizes {self.least:,} shared features would be needed, more than the smaller "
                "document has: their lengths alone keep them apart."
            )
        verdict, change = ("no longer match", "fewer") if self.match else ("match", "more")
        number = _count(abs(shared), "shared feature")
        return f"At these sizes they {verdict} with {number} {change} than {self.o:,}."

    def say_words(self, words: int | None) -> str:
        if words is None:
            return ""
        token, n = _token(self.recipe), self.recipe.parsed_features.n
        cost = f"(an estimate: a {token} is part of up to {n} {n}-grams)"
        if not words:
            return f"One more changed {token} may part them {cost}."
        apart = ", each far from the others" if words > 1 else ""
        return f"It would survive about {_count(words, f'more changed {token}')}{apart} {cost}."


def _say_empty(recipe: Recipe, a: int, b: int) -> str:
    empty = " and the ".join(side for side, size in (("left", a), ("right", b)) if not size)
    verb = "have" if a == b else "has"
    return f"The {empty} document {verb} no {_token(recipe)} to compare, and an empty one matches nothing."


def _token(recipe: Recipe) -> str:
    return "character" if FEATURE_KINDS[recipe.parsed_features.kind].by_character else "word"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
