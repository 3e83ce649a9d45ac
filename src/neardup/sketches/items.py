"""What is sketched -> 64-bit ids and weights, checked: text, bytes, integers, arrays of ids."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, RecipeError

Words = npt.NDArray[np.uint64]
#: What is sketched: strings and bytes, which are hashed, and 64-bit integers, which are taken as they are.
Items: TypeAlias = Iterable[str | bytes | int] | Words

LARGEST_ID = (1 << 64) - 1
_MOST_WEIGHT = 1 << 62


def item_id(item: str | bytes | int) -> int:
    """Return the 64-bit id of an item: an integer is its own, of text it is BLAKE2b of the UTF-8 with 8 bytes.

    The bytes are read little-endian. Runs over documents make ids of tokens by hashes of their own, which are
    faster; a sketch of those ids equals one of the same ids given here as integers.

    Raises
    ------
    InputError
        If it is something else, or an integer outside 0..2**64 - 1.
    """
    if isinstance(item, str):
        item = item.encode("utf-8", "surrogatepass")
    if isinstance(item, bytes):
        return int.from_bytes(hashlib.blake2b(item, digest_size=8).digest(), "little")
    try:
        number = operator.index(item)
    except TypeError:
        raise InputError(f"item {item!r} is neither text nor an integer; give str, bytes or int") from None
    if not 0 <= number <= LARGEST_ID:
        raise InputError(f"item {number} is outside 0..2**64 - 1; give 64-bit integers, or text")
    return number


def ids_of(items: Items) -> Words:
    """Return the ids of items, uint64[m].

    Raises
    ------
    InputError
        If one is something else than ``item_id`` takes.
    """
    if isinstance(items, str | bytes):
        raise InputError(f"{items!r} is one item and would be taken apart; give [{items!r}], or use insert")
    if isinstance(items, np.ndarray):
        if items.dtype != np.uint64 or items.ndim != 1:
            what = f"{items.dtype}[{items.ndim}-d]"
            raise InputError(f"an array of {what} holds no ids; give a one-dimensional one of uint64")
        return np.ascontiguousarray(items)
    return np.array([item_id(item) for item in items], np.uint64)


def weights_of(weights: Iterable[int] | None, count: int) -> npt.NDArray[np.int64]:
    """Return the weights of so many features as int64, none where all are 1.

    Raises
    ------
    RecipeError
        If one is negative or not a whole number.
    InputError
        If they are not one a feature, or more than 2**62 in all.
    """
    if weights is None:
        return np.empty(0, np.int64)
    given = [whole_number(weight, "weight", 0, _MOST_WEIGHT) for weight in weights]
    if len(given) != count:
        raise InputError(f"{len(given)} weights do not fit {count} features; give one a feature, or none")
    if sum(given) > _MOST_WEIGHT:
        raise InputError(f"weights of {sum(given)} in all are more than 2**62; divide them")
    return np.array(given, np.int64)


def whole_number(value: Any, what: str, low: int, high: int) -> int:
    """Return an option that must be a whole number from low to high.

    Raises
    ------
    RecipeError
        If it is not.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise RecipeError(f"{what} {value!r} is not a whole number; give one in {low}..{high}") from None
    if not low <= number <= high:
        raise RecipeError(f"{what} {number} is outside {low}..{high}")
    return number
