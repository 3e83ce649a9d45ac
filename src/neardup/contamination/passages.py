"""The items of a test set, and their passages: the texts to search for, as sets of n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents import Corpus, join_ids
from neardup.documents.arrays import is_text_type, type_words
from neardup.documents.column_paths import find_in_types, texts_in
from neardup.documents.records import Names, readable_texts
from neardup.errors import InputError, check_count, option
from neardup.features.extraction import Extractor
from neardup.kernels import Bools, Integers, Words
from neardup.kernels.contamination import insert_grams
from neardup.kernels.grams import LISTED
from neardup.kernels.tables import insert_keys, table_size
from neardup.recipe import Recipe
from neardup.text.normalize import tokens

ALL = "all"
#: Bits of the filter for each gram: with 16 of them, one gram in sixteen that is not in the table passes.
_FILTER_BITS = 16


@dataclass(frozen=True)
class Items:
    """The items of a test set."""

    names: Sequence[Any]  #: the ids, or row numbers
    columns: tuple[str, ...]  #: the compared ones; of several, the last is ``all``: their texts line by line
    texts: list[list[str]]  #: the text of each item, by column
    rejected: dict[str, int]  #: numbers of rejected rows, by reason


def read_items(corpus: Corpus, columns: Sequence[str] = ()) -> Items:
    """Return the items of a test set, which is read once; its text column, the first of ``columns``, decides which.

    Raises ``InputError`` if there is no item, an id is repeated, or a column is missing or not a text column.
    """
    batches = list(corpus.scan())
    texts = [text for batch in batches for text in batch.texts.to_pylist()]
    if not texts:
        reasons = ", ".join(f"{reason}: {number:,}" for reason, number in sorted(corpus.rejected.counts.items()))
        causes = f" ({reasons})" if reasons else ""
        raise InputError(f"the test set has no item{causes}: give a file with at least one text")
    rows = np.concatenate([batch.rows for batch in batches])
    ids = [batch.ids for batch in batches if batch.ids is not None]
    names = Names(rows, join_ids(ids) if ids else None)
    corpus.check_unique_ids(names)
    column_texts = [texts]
    if len(columns) > 1:
        table = corpus.take(rows)
        column_texts += [_column_texts(table, column) for column in columns[1:]]
    compared = tuple(columns) or (",".join(corpus.read_options.texts),)
    if len(compared) > 1:
        compared = (*compared, ALL)
        column_texts.append(["\n".join(parts) for parts in zip(*column_texts, strict=True)])
    return Items([names.name_at(at) for at in range(len(texts))], compared, column_texts, dict(corpus.rejected.counts))


def _column_texts(table: pa.Table, column: str) -> list[str]:
    path = find_in_types(column, {field.name: field.type for field in table.schema})
    if path is None:
        raise InputError(
            f"the test set has no column {column!r}: choose from {', '.join(table.column_names)} with "
            f"{option('--test-column', 'columns=')}"
        )
    if not is_text_type(path.as_text().kind):
        raise InputError(
            f"column {column!r} of the test set is of type {type_words(path.kind)!r}, and not text or a list of texts: "
            "choose another one, or a part of it by a path such as choices[].text"
        )
    return [text or "" for text in readable_texts(texts_in(table, column)).to_pylist()]


@dataclass(frozen=True)
class Passages:
    """The passages to search for, each an item's column with enough words, and an index of their grams."""

    items: Items
    ngrams: int  #: words of a gram
    #: int64[p]: item and column number of each passage, its words, and its distinct grams.
    item: Integers
    column: Integers
    words: Integers
    sizes: Integers
    #: int64[p + 1], int64[k]: offsets of the passages in the grams of all, which are in text order, as numbers from 0;
    #: -1 for those that do not count.
    heads: Integers
    gram_numbers: Integers
    #: int64[g + 1], int64: the passages that contain each gram.
    owner_heads: Integers
    owners: Integers
    distinct: Words  #: the gram of each number
    first_words: Words  #: the first words of passages shorter than a gram
    too_short: list[tuple[int, int]]  #: item and column numbers of texts with too few words

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def widths(self) -> Integers:
        """Words of the texts that are shorter than a gram, each of which is one gram: int64, ascending."""
        return np.unique(self.words[self.words < self.ngrams])

    @cached_property
    def tables(self) -> tuple[Words, Integers, Words, Words]:
        """First words of short passages, slots, keys and filter, as ``kernels.contamination.find_grams`` takes them."""
        size = table_size(len(self.distinct))
        keys, slots = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        bits = 1 << max((_FILTER_BITS * len(self.distinct)).bit_length(), 6)
        gram_filter = np.zeros(bits // 64, np.uint64)
        insert_grams(self.distinct, slots, keys, gram_filter)
        first = np.unique(self.first_words)
        first_slots = np.zeros(table_size(len(first)), np.uint64)
        insert_keys(first, first_slots)
        return first_slots, slots, keys, gram_filter

    def text(self, passage: int) -> str:
        """Return the text of a passage."""
        return self.items.texts[int(self.column[passage])][int(self.item[passage])]

    def grams(self, passage: int) -> Integers:
        """Return the gram numbers of a passage, in text order."""
        return self.gram_numbers[self.heads[passage] : self.heads[passage + 1]]

    def width(self, passage: int) -> int:
        """Return the number of words of each gram of a passage."""
        return min(int(self.words[passage]), self.ngrams)


def make_passages(items: Items, ngrams: int, min_words: int, ignore: str = "") -> Passages:
    """Return the passages of items: the texts of at least ``min_words`` words; shorter ones would be found everywhere.

    A text of fewer words than ``ngrams`` is one gram of all its words. Grams that occur in ``ignore`` do not count, and
    a text without any other gram is as one that is too short. Raises ``RecipeError`` if a number is not a
    whole number of at least 1, and ``InputError`` if no text has enough words.
    """
    for name, number in ((option("--ngrams"), ngrams), (option("--min-words"), min_words)):
        check_count(name, number, "give a number of words")
    count = len(items.names)
    texts = pa.array([text for column in items.texts for text in column], pa.large_string())
    singles, words = _list_grams(texts, 1)
    gram_numbers, sizes = _list_grams(texts, ngrams)
    sizes = np.where(words > 0, sizes, 0)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    is_ignored = _is_ignored(ignore, ngrams, np.repeat(np.minimum(words, ngrams), sizes), gram_numbers)
    counted = np.diff(np.concatenate([[0], np.cumsum(~is_ignored)])[starts])
    is_long = (words >= min_words) & (counted > 0)
    if not (words >= min_words).any():
        raise InputError(
            f"no item of the test set has {min_words} words, the minimum of {option('--min-words')}: lower it"
        )
    if not is_long.any():
        raise InputError(f"every item of the test set lies in the text of {option('--ignore')}: leave that out")
    chosen = np.flatnonzero(is_long)
    # Passages of one item are adjacent, in column order.
    chosen = chosen[np.lexsort((chosen // count, chosen % count))]
    parts = [np.arange(starts[at], starts[at + 1]) for at in chosen]
    heads = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
    places = np.concatenate(parts)
    counts = ~is_ignored[places]
    numbers = np.full(len(places), -1, np.int64)
    distinct, numbers[counts] = np.unique(gram_numbers[places[counts]], return_inverse=True)
    owner = np.repeat(np.arange(len(chosen)), sizes[chosen])
    pairs = np.unique(np.stack([numbers[counts], owner[counts]], axis=1), axis=0)
    owner_heads = np.searchsorted(pairs[:, 0], np.arange(len(distinct) + 1)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(words)])[:-1]
    short = chosen[words[chosen] < ngrams]
    return Passages(
        items,
        ngrams,
        chosen % count,
        chosen // count,
        words[chosen],
        np.bincount(pairs[:, 1], minlength=len(chosen)).astype(np.int64),
        heads,
        numbers,
        owner_heads,
        np.ascontiguousarray(pairs[:, 1]),
        distinct,
        singles[first[short]],
        [(int(at % count), int(at // count)) for at in np.flatnonzero(~is_long)],
    )


def _is_ignored(ignore: str, ngrams: int, widths: Integers, grams: Words) -> Bools:
    """Return which grams, of ``widths`` words each, occur in a text: bool[g]."""
    found, words = np.zeros(len(grams), np.bool_), [token.text for token in tokens(ignore)]
    for width in np.unique(widths).tolist():
        # A gram of fewer words than n is that of a whole text.
        windows = [" ".join(words[at : at + width]) for at in range(len(words) - width + 1)]
        found |= (widths == width) & np.isin(grams, _list_grams(pa.array(windows, pa.large_string()), ngrams)[0])
    return found


def _list_grams(texts: pa.LargeStringArray, n: int) -> tuple[Words, Integers]:
    """Return the n-grams of texts with repetitions, none of them 0, and their number per text."""
    block = Extractor(Recipe(features=f"words:{n}"), None, LISTED)(texts)
    return np.maximum(block.features, np.uint64(1)), block.sizes
