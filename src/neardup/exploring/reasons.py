"""The advice in words: why these features, why this threshold, what to run, and what else there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from neardup.exploring.choosing import LOW_REACH, SAME, Choice
from neardup.exploring.histogram import BINS
from neardup.exploring.valley import FEWEST_CLEAR, Valley
from neardup.measures import measure
from neardup.recipe import Recipe

Floats = npt.NDArray[np.float64]

#: A threshold for copies and light edits: that of the recipe ``default``.
_COPIES = 0.85
#: Fields of a recipe that no option is made of, or one in any case.
_SAID_APART = ("name", "description", "features", "threshold", "keep")


def why_features(choice: Choice) -> str:
    """Return why these features, in a sentence."""
    name, own = choice.view.name, choice.own
    if len(choice.separations) == 1:
        return f"Nothing else was looked at than {name}, by which unrelated pairs reach {own.reach:.2f}."
    if own.level is None or own.gap is None:
        some = f"{own.alike} alike pairs" if own.alike != 1 else "1 alike pair"
        begin = f"The sample has {some}, too few to go by"
        if own.reach <= LOW_REACH:
            return f"{begin}: {name} are the shortest n-grams whose unrelated pairs stay below {LOW_REACH:g}."
        return f"{begin}: with {name} unrelated pairs reach the least, {own.reach:.2f}."
    if own.gap <= 0:
        return (
            f"No n-grams part alike from unrelated pairs here: with {name}, which come closest, unrelated ones reach "
            f"{own.reach:.2f}, and nine in ten alike ones have {own.level:.2f} or more."
        )
    return (
        f"{name} part the pairs of the sample best: unrelated ones reach {own.reach:.2f}, and nine in ten of the "
        f"{own.alike:,} alike ones have {own.level:.2f} or more."
    )


def why_threshold(recipe: Recipe, valley: Valley | None, pairs: Floats, *, whole: bool) -> str:
    """Return why this threshold, in a sentence or two, from the pairs at or above each hundredth."""
    if measure(recipe.measure).distance:
        return f"The threshold is the recipe's own: {recipe.measure} is a distance."
    where, at = ("whole corpus" if whole else "sample"), recipe.threshold
    count = round(pairs[round(BINS * at)])
    found = (
        f"{count:,} {'pair is' if count == 1 else 'pairs are'} at {at:g} or above" if count else f"no pair is at {at:g}"
    )
    if 0 < count < FEWEST_CLEAR:
        found += ", too few to rely on"
    if valley is None:
        shared = f", where two texts of equal length share {200 * at / (1 + at):.0f} % of their n-grams"
        means = shared if recipe.measure == "jaccard" else ""
        return f"No valley says where to cut, so the threshold is {at:g}{means}. In the {where} {found}."
    raised = f"; {at:g} is the lowest that is advised" if at > valley.high else ""
    if valley.sparse:
        clear = "a clear valley" if valley.clear else "an empty stretch"
        return f"In the {where} {clear} reaches from {valley.low:g} to {valley.high:g}{raised}; {found}."
    return (
        f"In the {where} pairs thin out up to {valley.low:g} and lie evenly from there on, so that no cut is sharp"
        f"{raised}; {found}."
    )


def command_of(recipe: Recipe, inputs: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return what to run: the words behind ``neardup``."""
    words = ["dedup", *(inputs or ("INPUT",)), *options, "--features", recipe.features]
    usual = Recipe(features=recipe.features)
    for field in fields(Recipe):
        value = getattr(recipe, field.name)
        if field.name not in _SAID_APART and value != getattr(usual, field.name):
            words += [f"--{field.name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    return (*words, "--threshold", f"{recipe.threshold:g}", "-o", "kept.jsonl")


def alternatives_of(choice: Choice, recipe: Recipe, pairs: Floats, *, whole: bool) -> tuple[tuple[str, str], ...]:
    """Return what else there is, and why not that."""
    found = []
    for view, own in choice.separations:
        if view is choice.view:
            continue
        why = f"unrelated pairs reach {own.reach:.2f}"
        if own.level is not None and own.gap is not None:
            wide, best = own.gap, choice.own.gap or 0.0
            than = f"where {choice.view.name} leave {best:.2f}" if wide < best - SAME else "about as wide"
            why += f", nine in ten alike ones have {own.level:.2f} or more: a gap of {wide:.2f}, {than}"
        elif view.n is not None and choice.view.n is not None and view.n > choice.view.n:
            why += ", but one changed word costs more n-grams"
        found.append((view.name, why))
    if recipe.threshold < _COPIES and not measure(recipe.measure).distance:
        left, of = round(pairs[round(BINS * _COPIES)]), round(pairs[round(BINS * recipe.threshold)])
        where = "the corpus" if whole else "the sample"
        why = f"for copies and light edits alone: {left:,} of those {of:,} pairs of {where} are left"
        found.append((f"a threshold of {_COPIES:g}", why))
    return tuple(found)
