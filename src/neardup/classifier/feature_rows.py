"""Rows of features, and the extraction of facts (numbers and names with their places) and of prefixes as rows."""

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
from neardup.kernels.entities import (
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
from neardup.kernels.pairs import count_overlaps, sort_rows, weight_sums
from neardup.kernels.unicode_tables import (
    IGNORABLE_RANGES,
    KNOWN_VERSIONS,
    UNSPACED_RANGES,
    arrays_digest,
    compose,
    in_ranges,
    properties,
)
from neardup.text.bulk import normalize_texts, text_buffers
from neardup.text.sentences import ASCII_TERMINATORS, TERMINATORS

_NO_WEIGHTS = np.empty(0, np.int64)


class FeatureRows(NamedTuple):
    """Features of n documents, one row each: row d is features[offsets[d]:offsets[d + 1]]."""

    offsets: Integers  #: int64[n + 1]: the start of each row
    #: uint64[m]: distinct and ascending in each row; token rows keep the order and repetitions of the text instead.
    features: Words
    weights: Integers  #: int64[m]: at least 1; empty for sets
    #: int64[n]: sum of a row's weights, and sum of their squares, or -1 if it is 2**61 or more; of a set, its size.
    sums: Integers
    squares: Integers

    @classmethod
    def from_sizes(cls, sizes: Integers, features: Words, weights: Integers = _NO_WEIGHTS) -> Self:
        """Return consecutive rows of the given sizes (int64[n])."""
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sums = squares = sizes
        if len(weights):
            sums, squares = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
            weight_sums(offsets, weights, sums, squares)
        return cls(offsets, features, weights, sums, squares)

    @classmethod
    def concatenate(cls, blocks: Sequence[FeatureRows]) -> FeatureRows:
        """Return the rows of all blocks, one block after the other."""
        if len(blocks) == 1:
            return blocks[0]
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(block.offsets) for block in blocks)])
        features = np.concatenate([np.empty(0, np.uint64), *(block.features for block in blocks)])
        weights = np.concatenate([_NO_WEIGHTS, *(block.weights for block in blocks)])
        return cls.from_sizes(sizes, features, weights)

    def sort(self) -> Self:
        """Sort each row's features, and their weights, in place; return the rows."""
        sort_rows(self.offsets, self.features, self.weights)
        return self

    def pair_counts(self, left: Integers, right: Integers, *, weighted: bool = False, minima: bool = False) -> Integers:
        """Return int64[k, 3]: o, a and b of ``neardup.recipe.measures`` for k pairs of rows.

        Unweighted rows are sets. Weighted, o is the dot product, or with ``minima`` the sum of the smaller weights.
        If a square does not fit, a or b is -1 and o is meaningless; ``exact_products`` gives all three.
        """
        shared = np.empty(len(left), np.int64)
        weights = self.weights if weighted else np.empty(0, np.int64)
        count_overlaps(self.offsets, self.features, weights, not minima, left, right, shared)
        totals = (self.sums if minima else self.squares) if weighted else np.diff(self.offsets)
        return np.column_stack([shared, totals[left], totals[right]])

    def exact_products(self, left: int, right: int) -> tuple[int, int, int]:
        """Return the dot product of two rows' weights and both squares, in Python's integers of any size."""
        f, g = (
            dict(zip(self.features[span].tolist(), self.weights[span].tolist(), strict=True))
            for span in (slice(*self.offsets[row : row + 2]) for row in (left, right))
        )
        return (
            sum(f[x] * g[x] for x in f.keys() & g.keys()),
            sum(x * x for x in f.values()),
            sum(x * x for x in g.values()),
        )


#: A quotation after one of these starts a sentence.
PAUSES = ",:;\u060c\u061b\u3001"
QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
_CLASSES = {"Nd": DIGIT, "Lu": UPPER, "Lt": UPPER, "Ll": LETTER, "Lm": LETTER, "Lo": LETTER}
_CLASSES |= dict.fromkeys(("Mn", "Mc", "Me"), MARK)
#: The digest of the tables, the same for all versions of Unicode in `KNOWN_VERSIONS`.
_DIGEST = "cfcd6e832af9c80c"


class Facts(NamedTuple):
    """Facts of texts, one row of distinct ascending hashes per text."""

    numbers: FeatureRows  #: values of numbers
    names: FeatureRows  #: names in lower case
    places: FeatureRows  #: the place of each fact: a hash of the words before and after it
    facts: FeatureRows  #: each fact with its place


@cache
def fact_tables() -> tuple[Bytes, Bytes, npt.NDArray[np.int32]]:
    """Return the class, digit value and lower-case letter of each code point, for ``find_facts``."""
    classes = np.full(TABLE_SIZE, OTHER, np.uint8)
    values = np.zeros(TABLE_SIZE, np.uint8)
    lower = np.arange(TABLE_SIZE, dtype=np.int32)
    table = properties()
    classes[table.newer & table.alnum] = LETTER
    for cp in np.flatnonzero(~(table.newer | table.ignorable)).tolist():
        character = chr(cp)
        classes[cp] = _CLASSES.get(unicodedata.category(character), OTHER)
        if classes[cp] == DIGIT:
            values[cp] = unicodedata.decimal(character)
        elif classes[cp] == UPPER and len(character.lower()) == 1:
            lower[cp] = ord(character.lower())
    classes[in_ranges(UNSPACED_RANGES, TABLE_SIZE) & (classes == LETTER)] = SINGLE
    classes[in_ranges(IGNORABLE_RANGES, TABLE_SIZE)] = IGNORED
    punctuation = {ASCII_TERMINATORS + TERMINATORS: STOP, PAUSES: PAUSE, QUOTES: QUOTE, "\n": FEED}
    for characters, character_class in punctuation.items():
        classes[[ord(character) for character in characters]] = character_class
    return classes, values, lower


def facts_digest() -> str:
    """Return the digest of `fact_tables`, sixteen hex digits; it is computed only for an unknown Unicode version."""
    return _DIGEST if unicodedata.unidata_version in KNOWN_VERSIONS else arrays_digest(fact_tables())


def extract_facts(texts: pa.LargeStringArray) -> Facts:
    """Return the facts of texts."""
    data, offsets = text_buffers(_composed(texts))
    capacity = (int(offsets[-1] - offsets[0]) + len(texts)) // 2 + len(texts)
    columns = [np.empty(capacity, np.uint64) for _ in range(4)]
    sizes = np.empty((len(texts), 4), np.int64)
    find_facts(data, offsets, fact_tables(), *columns, sizes)
    rows = (
        FeatureRows.from_sizes(column_sizes, hashes[: column_sizes.sum()].copy())
        for column_sizes, hashes in zip(sizes.T, columns, strict=True)
    )
    return Facts(*rows)


def extract_prefixes(texts: pa.LargeStringArray, letters: int) -> FeatureRows:
    """Return hashes of the first letters of each text's words: stems, for languages that inflect at the end."""
    data, offsets = text_buffers(texts)
    text, spans = normalize_texts(data, offsets, "words")
    hashes = np.empty(int((spans[:, 1] - spans[:, 0] + 1).sum()) // 2 + len(texts), np.uint64)
    sizes = np.empty(len(texts), np.int64)
    token_prefixes(text, spans, letters, hashes, sizes)
    return FeatureRows.from_sizes(sizes, hashes[: sizes.sum()].copy())


def _composed(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    return pa.array([compose(text) for text in texts.to_pylist()], pa.large_string())
