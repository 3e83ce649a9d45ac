"""Documents as rows of features in ascending order, so that two rows are compared in one pass."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.kernels import Bytes, Integers, Words
from neardup.kernels.characters import IGNORABLE_RANGES, UNSPACED_RANGES, compose, in_ranges, properties
from neardup.kernels.facts import (
    DIGIT,
    FEED,
    IGNORED,
    LETTER,
    MARK,
    OTHER,
    PAUSE,
    QUOTE,
    SINGLE,
    STOP,
    TABLE_SIZE,
    UPPER,
    find_facts,
    token_prefixes,
)
from neardup.kernels.pairs import count_overlaps, shared_weights, sort_rows, weight_sums
from neardup.kernels.unicode_tables import KNOWN_VERSIONS, arrays_digest
from neardup.text.bulk import normalize_texts, text_buffers
from neardup.text.sentences import ASCII_TERMINATORS, TERMINATORS

_NO_WEIGHTS = np.empty(0, np.int64)


class Rows(NamedTuple):
    """The features of documents: those of d are features[heads[d]:heads[d + 1]]."""

    #: int64[n + 1]: where the features of each document begin.
    heads: Integers
    #: uint64[m]: ascending in each row, none twice; but tokens in their order, repeats repeated.
    features: Words
    #: int64[m]: at least 1; empty for sets.
    weights: Integers
    #: int64[n]: the sum of a row's weights, and that of their squares, or -1 where it is 2**61 or more; the number of
    #: features, for sets.
    sums: Integers
    squares: Integers

    @classmethod
    def of(cls, sizes: Integers, features: Words, weights: Integers = _NO_WEIGHTS) -> Self:
        """Return rows of so many features each, which lie one behind the other, as they are."""
        heads = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sums = squares = sizes
        if len(weights):
            sums, squares = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
            weight_sums(heads, weights, sums, squares)
        return cls(heads, features, weights, sums, squares)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of some documents, then those of others."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.heads) for part in parts)])
        features = np.concatenate([np.empty(0, np.uint64), *(part.features for part in parts)])
        weights = np.concatenate([_NO_WEIGHTS, *(part.weights for part in parts)])
        return cls.of(sizes, features, weights)

    def ascending(self) -> Self:
        """Sort the features of each row in place, and the weights with them; return the rows."""
        sort_rows(self.heads, self.features, self.weights)
        return self

    def counts(self, left: Integers, right: Integers, *, weighted: bool = False, minima: bool = False) -> Integers:
        """Return int64[k, 3], the o, a and b of ``neardup.recipe.measures`` for pairs of rows.

        Of a row whose square is too large, a or b is -1 and o is none: ``products`` has them.

        Unweighted, they are sets; with ``minima``, o is the sum of the smaller weights, else the dot product.
        """
        shared = np.empty(len(left), np.int64)
        if not weighted:
            count_overlaps(self.heads, self.features, left, right, shared)
            return np.column_stack(
                [shared, self.heads[left + 1] - self.heads[left], self.heads[right + 1] - self.heads[right]]
            )
        shared_weights(self.heads, self.features, self.weights, not minima, left, right, shared)
        totals = self.sums if minima else self.squares
        return np.column_stack([shared, totals[left], totals[right]])

    def products(self, left: int, right: int) -> tuple[int, int, int]:
        """Return the dot product of two rows' weights and both squares, whatever their size."""
        f, g = (
            dict(zip(self.features[part].tolist(), self.weights[part].tolist(), strict=True))
            for part in (slice(*self.heads[row : row + 2]) for row in (left, right))
        )
        return (
            sum(f[x] * g[x] for x in f.keys() & g.keys()),
            sum(x * x for x in f.values()),
            sum(x * x for x in g.values()),
        )


#: After a pause, the first word of a quotation begins a sentence.
PAUSES = ",:;\u060c\u061b\u3001"
QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
_CLASSES = {"Nd": DIGIT, "Lu": UPPER, "Lt": UPPER, "Ll": LETTER, "Lm": LETTER, "Lo": LETTER}
_CLASSES |= dict.fromkeys(("Mn", "Mc", "Me"), MARK)


#: The digest of the tables, for all versions of Unicode among `KNOWN_VERSIONS`.
_DIGEST = "cfcd6e832af9c80c"


class Facts(NamedTuple):
    """The facts of texts: one row for each text, ascending, none twice."""

    #: Hashes of values, and of names in lower case.
    numbers: Rows
    names: Rows
    #: Hashes of the words before and after each fact, and of those with the fact between them.
    places: Rows
    facts: Rows


@cache
def fact_tables() -> tuple[Bytes, Bytes, npt.NDArray[np.int32]]:
    """Return the class, the digit and the lower-case letter of each code point, as the kernel takes them."""
    classes = np.full(TABLE_SIZE, OTHER, np.uint8)
    values = np.zeros(TABLE_SIZE, np.uint8)
    lower = np.arange(TABLE_SIZE, dtype=np.int32)
    known = properties()
    classes[known.newer & known.alnum] = LETTER
    for cp in np.flatnonzero(~(known.newer | known.ignorable)).tolist():
        character = chr(cp)
        kind = _CLASSES.get(unicodedata.category(character), OTHER)
        classes[cp] = kind
        if kind == DIGIT:
            values[cp] = unicodedata.decimal(character)
        elif kind == UPPER and len(character.lower()) == 1:
            lower[cp] = ord(character.lower())
    classes[in_ranges(UNSPACED_RANGES, TABLE_SIZE) & (classes == LETTER)] = SINGLE
    classes[in_ranges(IGNORABLE_RANGES, TABLE_SIZE)] = IGNORED
    for characters, kind in ((ASCII_TERMINATORS + TERMINATORS, STOP), (PAUSES, PAUSE), (QUOTES, QUOTE), ("\n", FEED)):
        classes[[ord(character) for character in characters]] = kind
    return classes, values, lower


def facts_digest() -> str:
    """Return a digest of `fact_tables`, sixteen hex digits; computed for an unknown version of Unicode alone."""
    return _DIGEST if unicodedata.unidata_version in KNOWN_VERSIONS else arrays_digest(fact_tables())


def facts_of(texts: pa.LargeStringArray) -> Facts:
    """Return the facts of texts."""
    data, offsets = text_buffers(_composed(texts))
    room = (int(offsets[-1] - offsets[0]) + len(texts)) // 2 + len(texts)
    found = [np.empty(room, np.uint64) for _ in range(4)]
    sizes = np.empty((len(texts), 4), np.int64)
    find_facts(data, offsets, fact_tables(), *found, sizes)
    return Facts(*(Rows.of(size, some[: size.sum()].copy()) for size, some in zip(sizes.T, found, strict=True)))


def prefixes_of(texts: pa.LargeStringArray, letters: int) -> Rows:
    """Return the first letters of the words of texts, as hashes: a stem for languages that inflect at the end."""
    data, offsets = text_buffers(texts)
    text, spans = normalize_texts(data, offsets, "words")
    found = np.empty(int((spans[:, 1] - spans[:, 0] + 1).sum()) // 2 + len(texts), np.uint64)
    sizes = np.empty(len(texts), np.int64)
    token_prefixes(text, spans, letters, found, sizes)
    return Rows.of(sizes, found[: sizes.sum()].copy())


def _composed(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    return pa.array([compose(text) for text in texts.to_pylist()], pa.large_string())
