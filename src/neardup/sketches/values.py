"""Sketches of sets as values of their own: MinHash estimates a Jaccard, SimHash a cosine, from a few words each."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup._kernels.sketching import EMPTY, minhash_update, simhash
from neardup.errors import InputError, RecipeError
from neardup.sketches.file import packed, unpacked
from neardup.sketches.items import LARGEST_ID, Items, ids_of, weights_of, whole_number
from neardup.wholefile import read, write

Words = npt.NDArray[np.uint64]

MOST_PERMUTATIONS = 4096
_BITS = 64
#: What a saved sketch says of how it was made.
_MINHASH = {"kind": "minhash", "scheme": "fast-similarity-sketching", "hash": "blake2b-64"}
_SIMHASH = {"kind": "simhash", "scheme": "charikar", "hash": "blake2b-64"}


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
    Text is hashed with BLAKE2b to 64 bits (``neardup.sketches.items.item_id``). A slot holds the smallest (round, hash)
    among the items that fell into it, the round in the upper 16 bits; the slots of two sketches agree with the chance
    of the Jaccard, each. Sketching n items takes about n + K ln K steps, not n K [Dahlgaard, Knudsen & Thorup, FOCS
    2017, arXiv 1704.04370].

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
        """Return the sketch as bytes: its parameters, its minima and a checksum; the same on every machine."""
        return packed(_MINHASH | {"num_perm": self.num_perm, "seed": self._seed}, self._slots)

    @classmethod
    def from_bytes(cls, data: bytes) -> MinHash:
        """Return the sketch that ``to_bytes`` wrote.

        Raises
        ------
        InputError
            If the bytes are anything else, or were changed.
        """
        return cls._read(data, "the given bytes")

    @classmethod
    def _read(cls, data: bytes, name: str) -> MinHash:
        header, slots = unpacked(data, name, _MINHASH, ("num_perm", "seed"))
        if len(slots) != header["num_perm"]:
            raise InputError(f"{name} says {header['num_perm']} minima and holds {len(slots)}; make the sketch again")
        sketch = cls(len(slots), seed=header["seed"])
        sketch._slots[:] = slots
        return sketch

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file, which is replaced at once or not at all.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        write(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MinHash:
        """Return the sketch that ``save`` wrote.

        Raises
        ------
        InputError
            If the file cannot be read, holds something else, or was changed.
        """
        return cls._read(read(path, "give a file that save wrote"), os.fspath(path))


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

    def to_bytes(self) -> bytes:
        """Return the fingerprint as bytes, with a checksum; the same on every machine."""
        return packed(_SIMHASH, np.array([self.value], np.uint64))

    @classmethod
    def from_bytes(cls, data: bytes) -> SimHash:
        """Return the fingerprint that ``to_bytes`` wrote.

        Raises
        ------
        InputError
            If the bytes are anything else, or were changed.
        """
        _, words = unpacked(data, "the given bytes", _SIMHASH, ())
        if len(words) != 1:
            raise InputError(f"the given bytes hold {len(words)} words and a SimHash has one; make it again")
        return cls(int(words[0]))
