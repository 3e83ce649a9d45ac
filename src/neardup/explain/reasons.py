"""A pair's numbers on one line: what its measure says, against what threshold, and what of."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from neardup.explain.flip import bar_of, value_of
from neardup.explain.held import Counts
from neardup.measures import exact_fraction, measure
from neardup.recipe import Recipe

#: What is compared of two signatures.
_WORDS = {"minhash": "minima", "sketch": "minima", "supershingle": "super shingles"}


def decimals(value: float, *, up: bool = False) -> str:
    """Return a measure with four decimals, cut so that only the highest shows 1 or, with ``up``, only the lowest 0."""
    return f"{(ceil(value * 10_000 - 1e-9) if up else floor(value * 10_000 + 1e-9)) / 10_000:.4f}"


def reason_of(recipe: Recipe, counts: Counts, features: tuple[int, int, int], digests: tuple[str, str]) -> str:
    """Return the numbers of a verdict on one line, those of the first step.

    Parameters
    ----------
    recipe : Recipe
        What makes a match.
    counts : Counts
        As its measure takes them.
    features : (int, int, int)
        o, a and b of the feature sets.
    digests : (str, str)
        For checksums and I-Match, as hex digits.
    """
    signature, wanted = recipe.parsed_signature, recipe.parsed_features
    shared, a, b = features
    compared = _compared(recipe, counts)
    said = f"{shared:,} features shared, of {a:,} and {b:,}"
    if recipe.measure == "semantic":
        return compared
    if wanted.kind == "checksum" and a and b:
        return f"{wanted.flags[0]} digests {_equal(digests)}"
    if signature is None:
        return f"{compared}; {said}"
    if signature.kind == "imatch":
        return _imatch(features, digests, signature.numbers[0])
    if not (a and b):
        return f"nothing to compare; {said}"
    jaccard = decimals(value_of("jaccard", *features))
    if signature.kind == "simhash":
        return f"{compared}; {64 - counts.o} of 64 bits differ; the features' jaccard is {jaccard}"
    words = f"{counts.o:,} of {counts.a:,} {_WORDS[signature.kind]} equal"
    if signature.kind == "supershingle":
        return f"{compared}; {words}; the features' jaccard is {jaccard}"
    return f"{compared}; {words}, an estimate of jaccard, which is {jaccard}"


def _compared(recipe: Recipe, counts: Counts) -> str:
    o, a, b, unit = counts
    bar, known = bar_of(recipe, unit), measure(recipe.measure)
    value = value_of(recipe.measure, *counts)
    reached = bar._replace(floor=Fraction(0)).reached(o, a, b)
    sign = ("<=" if reached else ">") if known.distance else (">=" if reached else "<")
    shown = f"{value:.0f}" if recipe.measure == "hamming" else decimals(value, up=known.distance)
    least = ""
    if recipe.jaccard_floor:
        asked = exact_fraction(recipe.jaccard_floor, "jaccard_floor")
        jaccard = bar._replace(measure="jaccard", threshold=asked)
        least = f" with jaccard {decimals(value_of('jaccard', o, a, b))} "
        least += f"{'>=' if jaccard.reached(o, a, b) else '<'} {recipe.jaccard_floor:g}"
    return f"{recipe.measure} {shown} {sign} {recipe.threshold:g}{least}"


def _imatch(features: tuple[int, int, int], digests: tuple[str, str], least: int) -> str:
    shared, a, b = features
    if all(digests):
        return f"imatch digests {_equal(digests)}; {shared:,} lexicon terms shared, of {a:,} and {b:,}"
    return f"undecidable: {a:,} and {b:,} lexicon terms, and {least:,} are needed"


def _equal(digests: tuple[str, str]) -> str:
    left, right = digests
    return f"are equal: {left}" if left == right else f"differ: {left} and {right}"
