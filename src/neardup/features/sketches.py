"""MinHash and SimHash of any items, as values: to compare, to merge, and as bytes."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, RecipeError
from neardup.kernels.sketches import EMPTY, minhash_update, simhash

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


MOST_PERMUTATIONS = 4096
_BITS = 64


class MinHash:
    """A sketch of a set, by which its Jaccard with others is estimated: Fast Similarity Sketching.

    Items may be added one by one or in bulk, in any order and more than once: the sketch depends on the set alone.

    Parameters
    ----------
    num_perm : int
        Number of minima K, 1 to 4096. The error of an estimate falls with its root: ``standard_error``.
    seed : int
        Chooses the hash functions, 0 to 2**64 - 1. Only sketches of one seed can be compared.

    Notes
    -----
    Text is hashed with BLAKE2b to 64 bits (``neardup.features.sketches.item_id``). A slot holds the smallest
    (round, hash) among the items that fell into it, the round in the upper 16 bits; the slots of two sketches agree
    with the chance of the Jaccard, each. Sketching n items takes about n + K ln K steps, not n K [Dahlgaard,
    Knudsen & Thorup, FOCS 2017, arXiv 1704.04370].

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
        count = whole_number(num_perm, "num_perm", 1, MOST_PERMUTATIONS)
        self._seed = whole_number(seed, "seed", 0, LARGEST_ID)
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
        """Whether nothing was added."""
        return bool(self._slots[0] == np.uint64(EMPTY))

    def update(self, items: Items) -> None:
        """Add items: str, bytes, 64-bit integers, or a uint64 array of ids, which is fastest.

        Raises
        ------
        InputError
            If one is something else; then none is added.
        """
        minhash_update(ids_of(items), self._slots, np.uint64(self._seed))

    def insert(self, item: str | bytes | int) -> None:
        """Add one item."""
        self.update([item])

    def jaccard(self, other: MinHash) -> float:
        """Estimate |A and B| / |A or B| as the share of equal minima; 0 for two empty sets, which share nothing.

        Raises
        ------
        InputError
            If the other sketch has another ``num_perm`` or ``seed``.
        """
        self._check_like(other)
        if self.is_empty:
            return 0.0
        return float(np.count_nonzero(self._slots == other._slots)) / self.num_perm

    def standard_error(self, jaccard: float) -> float:
        """Return sqrt(J (1 - J) / K), the standard error of an estimate where the Jaccard is J.

        Raises
        ------
        RecipeError
            If J is outside [0, 1].
        """
        if not 0 <= jaccard <= 1:
            raise RecipeError(f"jaccard {jaccard} is outside [0, 1]")
        return math.sqrt(jaccard * (1 - jaccard) / self.num_perm)

    def merge(self, other: MinHash) -> None:
        """Make this the sketch of the union with another's set.

        Raises
        ------
        InputError
            If the other sketch has another ``num_perm`` or ``seed``.
        """
        self._check_like(other)
        np.minimum(self._slots, other._slots, out=self._slots)

    def __or__(self, other: object) -> MinHash:
        if not isinstance(other, MinHash):
            return NotImplemented
        union = self.copy()
        union.merge(other)
        return union

    def copy(self) -> MinHash:
        """Return a sketch of the same set, which goes its own way."""
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

    def _check_like(self, other: MinHash) -> None:
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
            If there are not as many bytes as a sketch has.
        """
        if len(data) % 8 or not 1 < len(data) // 8 <= MOST_PERMUTATIONS + 1:
            raise InputError(f"{len(data)} bytes are no MinHash: give what to_bytes returned")
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
        object.__setattr__(self, "value", whole_number(self.value, "simhash", 0, LARGEST_ID))

    @classmethod
    def of(cls, features: Items, weights: Iterable[int] | None = None) -> SimHash:
        """Return the SimHash of features: bit j is set when more weight has it set in its hash than has not.

        Parameters
        ----------
        features : iterable of str, bytes or int, or uint64[m]
            One that comes twice counts twice. Text is hashed as in ``sketches.items.item_id``; no features give 0.
        weights : iterable of int, optional
            One a feature, 0 or more, by default 1 each. They are summed in 64 bits.

        Raises
        ------
        InputError
            If a feature is something else, or the weights are not as many or too large.
        RecipeError
            If a weight is negative or not a whole number.
        """
        ids = ids_of(features)
        heads = np.array([0, len(ids)], np.int64)
        out = np.empty(1, np.uint64)
        simhash(ids, weights_of(weights, len(ids)), heads, out)
        return cls(int(out[0]))

    def distance(self, other: SimHash) -> int:
        """Return the Hamming distance: the number of bits that differ, 0 to 64."""
        return (self.value ^ other.value).bit_count()

    def similarity(self, other: SimHash) -> float:
        """Return 1 - d / 64 for the distance d; it estimates 1 - (angle between the vectors) / pi."""
        return 1 - self.distance(other) / _BITS

    def near(self, other: SimHash, k: int = 3) -> bool:
        """Return whether at most k bits differ; 3 is for web pages [Manku, Jain & Das Sarma 2007, 5]."""
        return self.distance(other) <= k

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"SimHash({self.value:#018x})"
