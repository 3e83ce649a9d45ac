"""MinHash and SimHash of any items, as values that can be compared, merged and saved as bytes."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from neardup.errors import InputError, RecipeError
from neardup.kernels import Integers, Words
from neardup.kernels.sketches import EMPTY, minhash_update, simhash

#: Items to sketch: strings and bytes, which are hashed, and 64-bit integers, which are used as they are.
Items: TypeAlias = Iterable[str | bytes | int] | Words

MAX_ID = (1 << 64) - 1
_MAX_WEIGHT = 1 << 62


def item_id(item: str | bytes | int) -> int:
    """Return the 64-bit id of an item: an integer is its own id; text is hashed with BLAKE2b to 8 bytes.

    The bytes are read little-endian. Runs over documents hash tokens with a faster function of their own; a sketch of
    those hashes equals one of the same numbers passed here as integers.

    Raises
    ------
    InputError
        If the item is neither text nor an integer, or an integer outside 0..2**64 - 1.
    """
    if isinstance(item, str):
        item = item.encode("utf-8", "surrogatepass")
    if isinstance(item, bytes):
        return int.from_bytes(hashlib.blake2b(item, digest_size=8).digest(), "little")
    try:
        number = operator.index(item)
    except TypeError:
        raise InputError(f"item {item!r} is neither text nor an integer; give str, bytes or int") from None
    if not 0 <= number <= MAX_ID:
        raise InputError(f"item {number} is outside 0..2**64 - 1; give 64-bit integers, or text")
    return number


def _item_ids(items: Items) -> Words:
    """Return the ids of items: uint64[m]."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InputError(f"{items!r} is one item, not a collection; give [{items!r}], or use insert")
    if isinstance(items, np.ndarray):
        if items.dtype != np.uint64 or items.ndim != 1:
            shape = f"{items.dtype}[{items.ndim}-d]"
            raise InputError(f"an array of {shape} holds no ids; give a one-dimensional one of uint64")
        return np.ascontiguousarray(items)
    return np.array([item_id(item) for item in items], np.uint64)


def _check_weights(weights: Iterable[int] | None, count: int) -> Integers:
    """Return the weights of ``count`` features as int64; an empty array stands for weights of 1."""
    if weights is None:
        return np.empty(0, np.int64)
    checked = [check_whole_number(weight, "weight", 0, _MAX_WEIGHT) for weight in weights]
    if len(checked) != count:
        raise InputError(f"{len(checked)} weights do not fit {count} features; give one per feature, or none")
    if sum(checked) > _MAX_WEIGHT:
        raise InputError(f"weights add up to {sum(checked)}, above 2**62; scale them down")
    return np.array(checked, np.int64)


def check_whole_number(value: Any, name: str, low: int, high: int) -> int:
    """Return an option; raise ``RecipeError`` if it is not a whole number from ``low`` to ``high``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise RecipeError(f"{name} {value!r} is not a whole number; give one in {low}..{high}") from None
    if not low <= number <= high:
        raise RecipeError(f"{name} {number} is outside {low}..{high}")
    return number


MAX_PERMUTATIONS = 4096
_WORD_BITS = 64


class MinHash:
    """A sketch of a set that estimates its Jaccard similarity with other sets: Fast Similarity Sketching.

    Items may be added one by one or in bulk, in any order and more than once: the sketch depends on the set alone.

    Parameters
    ----------
    num_perm : int
        Number of minima K, 1 to 4096. The error of an estimate falls with its square root: ``standard_error``.
    seed : int
        Chooses the hash functions, 0 to 2**64 - 1. Only sketches with the same seed can be compared.

    Notes
    -----
    Text is hashed with BLAKE2b to 64 bits (``neardup.features.sketches.item_id``). A slot holds the smallest
    (round, hash) among the items that fell into it, the round in the upper 16 bits. A slot of two sketches is
    equal with a probability that is the Jaccard similarity. Sketching n items takes about n + K ln K steps, not n K
    [Dahlgaard, Knudsen & Thorup, FOCS 2017, arXiv 1704.04370].

    Examples
    --------
    >>> a, b = MinHash(), MinHash()
    >>> a.update(["a rose", "is", "a flower"])
    >>> b.update(["a rose", "is", "a flower"])
    >>> a.jaccard(b)
    1.0
    """

    __slots__ = ("_seed", "_slots")

    def __init__(self, num_perm: int = 128, *, seed: int = 1) -> None:
        count = check_whole_number(num_perm, "num_perm", 1, MAX_PERMUTATIONS)
        self._seed = check_whole_number(seed, "seed", 0, MAX_ID)
        self._slots = np.full(count, EMPTY, np.uint64)

    @property
    def num_perm(self) -> int:
        """The number of minima."""
        return len(self._slots)

    @property
    def seed(self) -> int:
        """The seed of the hash functions."""
        return self._seed

    @property
    def hashvalues(self) -> Words:
        """The minima, uint64[num_perm], read-only; all 2**64 - 1 for the empty set."""
        view = self._slots.view()
        view.flags.writeable = False
        return view

    @property
    def is_empty(self) -> bool:
        """Whether no item has been added."""
        return bool(self._slots[0] == np.uint64(EMPTY))

    def update(self, items: Items) -> None:
        """Add items: str, bytes, 64-bit integers, or a uint64 array of ids, which is fastest.

        Raises
        ------
        InputError
            If an item has another type; then nothing is added.
        """
        minhash_update(_item_ids(items), self._slots, np.uint64(self._seed))

    def insert(self, item: str | bytes | int) -> None:
        """Add one item."""
        self.update([item])

    def jaccard(self, other: MinHash) -> float:
        """Estimate |A and B| / |A or B| as the share of equal minima; 0 for two empty sets.

        Raises
        ------
        InputError
            If the other sketch has another ``num_perm`` or ``seed``.
        """
        self._check_comparable(other)
        if self.is_empty:
            return 0.0
        return float(np.count_nonzero(self._slots == other._slots)) / self.num_perm

    def standard_error(self, jaccard: float) -> float:
        """Return sqrt(J (1 - J) / K), the standard error of an estimate if the Jaccard similarity is J.

        Raises
        ------
        RecipeError
            If J is outside [0, 1].
        """
        if not 0 <= jaccard <= 1:
            raise RecipeError(f"jaccard {jaccard} is outside [0, 1]")
        return math.sqrt(jaccard * (1 - jaccard) / self.num_perm)

    def merge(self, other: MinHash) -> None:
        """Merge another sketch into this one: it becomes the sketch of the union.

        Raises
        ------
        InputError
            If the other sketch has another ``num_perm`` or ``seed``.
        """
        self._check_comparable(other)
        np.minimum(self._slots, other._slots, out=self._slots)

    def __or__(self, other: object) -> MinHash:
        if not isinstance(other, MinHash):
            return NotImplemented
        union = self.copy()
        union.merge(other)
        return union

    def copy(self) -> MinHash:
        """Return an independent sketch of the same set."""
        twin = MinHash(self.num_perm, seed=self._seed)
        twin._slots[:] = self._slots
        return twin

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MinHash):
            return NotImplemented
        return self._seed == other._seed and np.array_equal(self._slots, other._slots)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return self.num_perm

    def __repr__(self) -> str:
        return f"MinHash(num_perm={self.num_perm}, seed={self._seed})"

    def _check_comparable(self, other: MinHash) -> None:
        if not isinstance(other, MinHash):
            raise InputError(f"a MinHash cannot be compared with {type(other).__name__}; give a MinHash")
        if (self.num_perm, self._seed) != (other.num_perm, other._seed):
            raise InputError(f"{self!r} and {other!r} cannot be compared or merged; make both with the same parameters")

    def to_bytes(self) -> bytes:
        """Return the seed and the minima as little-endian words of 8 bytes; the same on every machine."""
        return np.concatenate([[np.uint64(self._seed)], self._slots]).astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> MinHash:
        """Return the sketch that ``to_bytes`` wrote.

        Raises
        ------
        InputError
            If the number of bytes is not that of a sketch.
        """
        if len(data) % 8 or not 1 < len(data) // 8 <= MAX_PERMUTATIONS + 1:
            raise InputError(f"{len(data)} bytes are not a MinHash: give what to_bytes returned")
        words = np.frombuffer(data, "<u8")
        sketch = cls(len(words) - 1, seed=int(words[0]))
        sketch._slots[:] = words[1:]
        return sketch


@dataclass(frozen=True, slots=True, repr=False)
class SimHash:
    """A 64-bit fingerprint: vectors at a small angle have fingerprints that differ in few bits [Charikar 2002, 3].

    Attributes
    ----------
    value : int
        The 64 bits, 0 to 2**64 - 1.

    Examples
    --------
    >>> a = SimHash.of(["a", "rose", "is", "a", "rose"])
    >>> a.distance(SimHash.of(["rose", "a", "is", "rose", "a"]))
    0
    """

    value: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_whole_number(self.value, "simhash", 0, MAX_ID))

    @classmethod
    def of(cls, features: Items, weights: Iterable[int] | None = None) -> SimHash:
        """Return the SimHash of features: bit j is set if more weight has it set in its hash than not.

        Parameters
        ----------
        features : iterable of str, bytes or int, or uint64[m]
            Repeats count. Text is hashed as by ``item_id``; no features give 0.
        weights : iterable of int, optional
            One per feature, 0 or more, by default 1 each. They are summed in 64 bits.

        Raises
        ------
        InputError
            If a feature has another type, or the weights are too few, too many or too large.
        RecipeError
            If a weight is negative or not a whole number.
        """
        ids = _item_ids(features)
        heads = np.array([0, len(ids)], np.int64)
        out = np.empty(1, np.uint64)
        simhash(ids, _check_weights(weights, len(ids)), heads, out)
        return cls(int(out[0]))

    def distance(self, other: SimHash) -> int:
        """Return the Hamming distance: the number of bits that differ, 0 to 64."""
        return (self.value ^ other.value).bit_count()

    def similarity(self, other: SimHash) -> float:
        """Return 1 - d / 64 for the distance d; it estimates 1 - (angle between the vectors) / pi."""
        return 1 - self.distance(other) / _WORD_BITS

    def near(self, other: SimHash, k: int = 3) -> bool:
        """Return whether at most k bits differ; 3 is for web pages [Manku, Jain & Das Sarma 2007, 5]."""
        return self.distance(other) <= k

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"SimHash({self.value:#018x})"
