"""What partners must share: one of their bands, or one of the blocks of their fingerprints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from neardup._kernels.flowing import BY_KEYS, BY_PREFIX, FINGERPRINTS
from neardup.errors import RecipeError
from neardup.measures import Rule, rule
from neardup.recipe import Recipe
from neardup.search.lsh import bands_of, keys_of

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Keys = Callable[[Words, Integers], Words]

_BITS = 64


def check_keys(recipe: Recipe) -> None:
    """Refuse a recipe that no window can serve.

    Raises
    ------
    RecipeError
        If documents have no keys by the recipe, so that a window could only compare with all of them.
    """
    if recipe.measure == "semantic" or (recipe.second_step and recipe.second_step.measure == "semantic"):
        raise RecipeError(
            "measure 'semantic' has no keys to find documents in a window by; choose a measure of sets, or simhash"
        )
    if recipe.is_weighted:
        raise RecipeError(
            f"weights {recipe.weights!r} have no keys to find documents in a window by; leave weights empty, or choose "
            "the recipe simhash"
        )


def kind_of(recipe: Recipe) -> tuple[int, Rule, Keys]:
    """Return what a window holds for a recipe, its rule, and what gives documents' keys from features and sizes.

    Raises
    ------
    RecipeError
        As ``check_keys`` does.
    """
    check_keys(recipe)
    if recipe.measure == "hamming":
        most = int(recipe.threshold)
        return FINGERPRINTS, Rule(0, most, 1, 0, 1), partial(block_keys, most=most)
    found = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    if recipe.search == "lsh":
        plan = bands_of(recipe)
        return BY_KEYS, found, lambda features, sizes: keys_of((features, sizes), plan, recipe.seed)
    return BY_PREFIX, found, lambda features, sizes: np.empty((len(sizes), 0), np.uint64)


def block_keys(features: Words, sizes: Integers, most: int) -> Words:
    """Return the most + 1 blocks of each fingerprint, with their places.

    Of two fingerprints that differ in at most so many bits, one block at least is equal (Manku, Jain & Das Sarma, WWW
    2007, 3). Raising ``most`` makes blocks shorter, so that more documents share one.
    """
    values = np.zeros(len(sizes), np.uint64)
    values[sizes > 0] = features
    blocks = most + 1
    ends = np.arange(blocks + 1) * _BITS // blocks
    keys = np.empty((len(values), blocks), np.uint64)
    for b in range(blocks):
        width = int(ends[b + 1] - ends[b])
        mask = np.uint64((1 << width) - 1)
        keys[:, b] = (values >> np.uint64(ends[b])) & mask
        # Places go above the bits; a block of all 64 bits is the only one.
        keys[:, b] += np.uint64(b) << np.uint64(min(width, _BITS - 7)) if blocks > 1 else np.uint64(0)
    return keys
