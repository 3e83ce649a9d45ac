"""What would turn a pair's verdict around, from its numbers alone: o, a and b of ``neardup.recipe.measures``."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, sqrt
from typing import NamedTuple

from neardup.pages.numbers import format_count
from neardup.pipeline.resolved_features import Counts
from neardup.recipe import Recipe
from neardup.recipe.kinds import FEATURE_KINDS
from neardup.recipe.measures import exact_fraction, measure

#: Thresholds are shown with four decimals; with up to nine where four would show 0.
_DECIMALS = range(4, 10)
#: Kinds of features of which one changed token changes at most n.
_GRAM_KINDS = ("words", "qgrams", "skips", "sentence_words")
#: Nouns for the compared words of signatures, one and several.
_SIGNATURE_NOUNS = {
    "minhash": ("minimum", "minima"),
    "sketch": ("minimum", "minima"),
    "supershingle": ("super shingle", "super shingles"),
}


class Counterfactual(NamedTuple):
    """What would reverse the verdict of the first step.

    Attributes
    ----------
    threshold : float or None
        The nearest threshold, rounded away from this pair, that gives the other verdict; None if there is none.
    shared : int or None
        By how many the shared features (or equal minima, or equal bits) would have to change at the same sizes:
        negative for a match; None if no number suffices, and for weights.
    changed_words : int or None
        For a match of sets, an estimate of how many changed words (characters, for q-grams) far from each other it
        survives; None for kinds without such an estimate, and with a second step.
    sentences : tuple of str
        The same as sentences.
    """

    threshold: float | None
    shared: int | None
    changed_words: int | None
    sentences: tuple[str, ...]


class MatchCriterion(NamedTuple):
    """What a pair must reach: a measure, its threshold, a floor on Jaccard (0: none), and the unit of o, a and b."""

    measure: str
    threshold: Fraction
    floor: Fraction = Fraction(0)
    unit: int = 1

    def is_met(self, o: int, a: int, b: int, threshold: Fraction | None = None) -> bool:
        """Return, exactly, whether a pair meets the criterion, or the criterion with another threshold."""
        if not (o and a and b):
            return False
        rule = measure(self.measure)
        bound = rule.bound(self.threshold if threshold is None else threshold, self.unit)
        enough = rule.reaches(o, a, b, bound)
        return enough and (not self.floor or measure("jaccard").reaches(o, a, b, self.floor))

    def least_overlap(self, a: int, b: int) -> int | None:
        """Return the least o that suffices for these sizes, even if it exceeds them; None if one size is 0."""
        if not (a and b):
            return None
        low, high = 1, a + b
        while low < high:
            middle = (low + high) // 2
            if self.is_met(middle, a, b):
                high = middle
            else:
                low = middle + 1
        return low

    def nearest_flip(self, o: int, a: int, b: int) -> float | None:
        """Return the nearest threshold, rounded away from the pair, that gives the other verdict; None if none does."""
        rule, match = measure(self.measure), self.is_met(o, a, b)
        value = measure_value(self.measure, o, a, b, self.unit)
        is_integer = rule.highest == 63
        for decimals in (0,) if is_integer else (4,) if rule.distance else _DECIMALS:
            scale = 10**decimals
            highest = rule.highest * scale
            # Floating point is at most one step off; the exact rule decides.
            up = match != rule.distance
            nearest = ceil(value * scale) if up else floor(value * scale)
            for step in range(nearest - 1, nearest + 2) if up else range(nearest + 1, nearest - 2, -1):
                if not (0 if is_integer else 1) <= step <= highest:
                    continue
                if self.is_met(o, a, b, Fraction(step, scale)) != match:
                    return float(Fraction(step, scale))
        return None


def measure_value(name: str, o: int, a: int, b: int, unit: int = 1) -> float:
    """Return the value of a measure in its own scale: a distance as a distance."""
    rule = measure(name)
    if name == "hamming":
        return float(max(a, b) - o)
    if rule.distance:
        return sqrt(max(a + b - 2 * o, 0) / unit)
    return float(rule.similarity(o, a, b)) if a and b else 0.0


def match_criterion(recipe: Recipe, unit: int = 1) -> MatchCriterion:
    """Return the criterion of the first step of a recipe."""
    floor = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    return MatchCriterion(recipe.measure, recipe.exact_threshold, floor, unit)


def find_counterfactual(
    recipe: Recipe, o: int, a: int, b: int, *, unit: int = 1, features: tuple[int, int, int] | None = None
) -> Counterfactual:
    """Return what would reverse the verdict on a pair.

    o, a, b and unit are what the recipe's measure takes; ``features`` are o, a and b of the feature sets, if they
    differ from those of a signature.

    Examples
    --------
    >>> find_counterfactual(Recipe(threshold=0.8), 90, 100, 100).sentences[0]
    'They no longer match at a threshold of 0.8182 or higher.'
    """
    sentence = _single_feature_sentence(recipe, o, features or (o, a, b))
    if sentence:
        return Counterfactual(None, None, None, (sentence,))
    criterion = match_criterion(recipe, unit)
    least = criterion.least_overlap(a, b)
    if least is None:
        return Counterfactual(None, None, None, (_empty_sentence(recipe, a, b),))
    match, threshold = criterion.is_met(o, a, b), criterion.nearest_flip(o, a, b)
    has_counts = not recipe.is_weighted and recipe.measure != "semantic"
    shared = _shared(o, least, min(a, b)) if has_counts else None
    words = _changed_words(recipe, o - least) if match else None
    sentences = (
        threshold_sentence(criterion, (o, a, b), threshold, _goal(recipe)),
        _shared_sentence(recipe, o, least, shared) if has_counts else "",
        _words_sentence(recipe, words),
    )
    return Counterfactual(threshold, shared, words, tuple(sentence for sentence in sentences if sentence))


_CANDIDATES = "become candidates"


def _no_longer(goal: str) -> str:
    return "are no longer candidates" if goal == _CANDIDATES else f"no longer {goal}"


def _goal(recipe: Recipe) -> str:
    """Return the verb phrase for a pair that reaches the threshold of the first step."""
    step = recipe.parsed_second_step
    if step is None:
        return "match"
    return _CANDIDATES if step.measure == "learned" else "pass the first step"


def _shared(o: int, least: int, largest: int) -> int | None:
    if o >= least:
        return least - 1 - o
    return least - o if least <= largest else None


def _changed_words(recipe: Recipe, spare: int) -> int | None:
    features = recipe.parsed_features
    plain_sets = not (recipe.weights or recipe.signature or recipe.clip or recipe.second_step)
    if not plain_sets or recipe.measure == "semantic" or features.kind not in _GRAM_KINDS:
        return None
    return spare // features.n


def threshold_sentence(
    criterion: MatchCriterion, pair: tuple[int, int, int], threshold: float | None, match: str
) -> str:
    """Return a sentence on the threshold that gives the other verdict; ``match`` is the verb phrase for a match."""
    distance, reached = measure(criterion.measure).distance, criterion.is_met(*pair)
    if threshold is not None:
        digits = f"{threshold:.9f}".rstrip("0").rstrip(".")
        verdict, direction = (_no_longer(match), "higher") if reached else (match, "lower")
        if distance:
            direction = {"higher": "lower", "lower": "higher"}[direction]
        return f"They {verdict} at a threshold of {digits} or {direction}."
    if reached:
        return f"No threshold would separate them: the measure is at its {'lowest' if distance else 'highest'}."
    none = f"No threshold would make them {match}"
    if criterion.measure == "semantic":
        return f"{none}: their cosine is not above 0."
    if not pair[0]:
        return f"{none}: they share no {'bit' if criterion.measure == 'hamming' else 'feature'}."
    return f"{none}: their Jaccard is below its floor of {float(criterion.floor):g}."


def _shared_sentence(recipe: Recipe, o: int, least: int, shared: int | None) -> str:
    match = _goal(recipe)
    verdict = _no_longer(match) if o >= least else match
    signature = recipe.parsed_signature
    if shared is None:
        return (
            f"At these sizes {least:,} shared features would be needed, more than the smaller "
            "document has: their lengths alone keep them apart."
        )
    change = "fewer" if o >= least else "more"
    if signature is None:
        number = f"{least - 1:,} or fewer" if o >= least else f"{least:,} or more"
        return f"At these sizes they {verdict} with {number} shared features."
    if signature.kind == "simhash":
        number = format_count(abs(shared), "bit")
        return f"They {verdict} with {number} {'more' if o >= least else 'fewer'} different."
    nouns = (f"equal {noun}" for noun in _SIGNATURE_NOUNS[signature.kind])
    return f"They {verdict} with {format_count(abs(shared), *nouns)} {change} than {o:,}."


def _words_sentence(recipe: Recipe, words: int | None) -> str:
    if words is None:
        return ""
    token, n = token_noun(recipe), recipe.parsed_features.n
    cost = f"(an estimate: a {token} is part of up to {n} {n}-grams)"
    if not words:
        return f"One more changed {token} may part them {cost}."
    apart = ", each far from the others" if words > 1 else ""
    return f"It would survive about {format_count(words, f'more changed {token}')}{apart} {cost}."


def _single_feature_sentence(recipe: Recipe, o: int, features: tuple[int, int, int]) -> str:
    """Return the sentence for documents of one feature, equal or not; empty for other recipes."""
    signature, (shared, a, b) = recipe.parsed_signature, features
    if signature is not None and signature.kind == "imatch":
        least = signature.numbers[0]
        if min(a, b) < least:
            return f"A document with fewer than {format_count(least, 'lexicon term')} matches nothing."
        if o:
            return "One lexicon term more or fewer in one of them would part them."
        verb = "stands" if a - shared == 1 else "stand"
        return (
            f"They match once they have the same lexicon terms: {a - shared:,} {verb} in the left "
            f"document alone, {b - shared:,} in the right one."
        )
    if recipe.parsed_features.kind == "checksum" and recipe.measure != "semantic" and a and b:
        normal = "text" if recipe.normalize == "raw" else "normal form"
        return f"Any change of the {normal} would part them." if o else f"Only those with an equal {normal} match."
    return ""


def _empty_sentence(recipe: Recipe, a: int, b: int) -> str:
    empty = " and the ".join(side for side, size in (("left", a), ("right", b)) if not size)
    verb = "have" if a == b else "has"
    has_tokens = recipe.parsed_features.kind in ("words", "qgrams", "skips", "clauses", "sentence_words", "checksum")
    noun = token_noun(recipe) if has_tokens and not recipe.clip else "feature"
    return f"The {empty} document {verb} no {noun} to compare, and an empty one matches nothing."


def token_noun(recipe: Recipe) -> str:
    """Return the noun for the tokens of a recipe: word or character."""
    return "character" if FEATURE_KINDS[recipe.parsed_features.kind].by_character else "word"


def format_measure(value: float, *, up: bool = False) -> str:
    """Return a measure with four decimals, cut so that only the highest shows 1 or, with ``up``, only the lowest 0."""
    return f"{(ceil(value * 10_000 - 1e-9) if up else floor(value * 10_000 + 1e-9)) / 10_000:.4f}"


def reason_line(recipe: Recipe, counts: Counts, features: tuple[int, int, int], digests: tuple[str, str]) -> str:
    """Return the numbers behind the verdict of the first step, on one line.

    ``features`` are o, a and b of the feature sets, ``digests`` those of checksums and I-Match as hex digits.
    """
    signature, parsed = recipe.parsed_signature, recipe.parsed_features
    shared, a, b = features
    compared = _comparison(recipe, counts)
    features_clause = f"{shared:,} features shared, of {a:,} and {b:,}"
    if recipe.measure == "semantic":
        return compared
    if parsed.kind == "checksum" and a and b:
        return f"{parsed.flags[0]} digests {_equal(digests)}"
    if signature is None:
        return f"{compared}; {features_clause}"
    if signature.kind == "imatch":
        return _imatch(features, digests, signature.numbers[0])
    if not (a and b):
        return f"nothing to compare; {features_clause}"
    jaccard = format_measure(measure_value("jaccard", *features))
    if signature.kind == "simhash":
        return f"{compared}; {64 - counts.o} of 64 bits differ; the features' jaccard is {jaccard}"
    words = f"{counts.o:,} of {counts.a:,} {_SIGNATURE_NOUNS[signature.kind][1]} equal"
    if signature.kind == "supershingle":
        return f"{compared}; {words}; the features' jaccard is {jaccard}"
    return f"{compared}; {words}, an estimate of jaccard, which is {jaccard}"


def _comparison(recipe: Recipe, counts: Counts) -> str:
    o, a, b, unit = counts
    criterion, rule = match_criterion(recipe, unit), measure(recipe.measure)
    value = measure_value(recipe.measure, *counts)
    reached = criterion._replace(floor=Fraction(0)).is_met(o, a, b)
    sign = ("<=" if reached else ">") if rule.distance else (">=" if reached else "<")
    formatted = f"{value:.0f}" if recipe.measure == "hamming" else format_measure(value, up=rule.distance)
    condition = ""
    if recipe.jaccard_floor:
        floor = exact_fraction(recipe.jaccard_floor, "jaccard_floor")
        jaccard = criterion._replace(measure="jaccard", threshold=floor)
        condition = f" with jaccard {format_measure(measure_value('jaccard', o, a, b))} "
        condition += f"{'>=' if jaccard.is_met(o, a, b) else '<'} {recipe.jaccard_floor:g}"
    return f"{recipe.measure} {formatted} {sign} {recipe.threshold:g}{condition}"


def _imatch(features: tuple[int, int, int], digests: tuple[str, str], least: int) -> str:
    shared, a, b = features
    if all(digests):
        return f"imatch digests {_equal(digests)}; {shared:,} lexicon terms shared, of {a:,} and {b:,}"
    return f"too little text to compare: {a:,} and {b:,} lexicon terms, and {least:,} are needed"


def _equal(digests: tuple[str, str]) -> str:
    left, right = digests
    return f"are equal: {left}" if left == right else f"differ: {left} and {right}"
