"""Texts as blocks of features, from normalization to signatures; digests that tell texts apart, whoever wrote them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.features.signatures import Signer
from neardup.features.statistics import Lookup, Statistics
from neardup.features.store import Block
from neardup.kernels.grams import (
    BY_BOTH,
    BY_COUNT,
    BY_VALUE,
    CONTIGUOUS,
    COUNTED,
    LISTED,
    MULTISET,
    NO_WEIGHTS,
    SET,
    SKIPPING,
    SPOTS,
    WHOLE,
    ascii_sets,
    choose_terms,
    clip_sets,
    drop_grams,
    feature_sets,
    form_sets,
    list_grams,
)
from neardup.kernels.tables import EMPTY_TABLE, enter, slots_for
from neardup.kernels.tokens import hash_tokens
from neardup.kernels.unicode import text_marks
from neardup.recipe import Recipe
from neardup.recipe.recipe import word_lists
from neardup.runtime import SCRATCH
from neardup.text.bulk import Comparable, ascii_table, comparable, text_buffers
from neardup.text.html import contents, method_of
from neardup.text.normalize import has_kernel
from neardup.text.sentences import segments

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_BYTES = 16
_NO_WEIGHTS = np.empty(0, np.int64)


def text_digests(data: npt.NDArray[Any], offsets: Integers) -> Words:
    """Return the 128 bits of BLAKE2b of each text (uint64[d, 2]), of uint8 texts and their int64[d + 1] offsets.

    Two texts with one digest are not known for any such hash; to find a pair takes some 2**64 of them.
    """
    view, ends = data.data, offsets.tolist()
    found = b"".join([blake2b(view[begin:end], digest_size=_BYTES).digest() for begin, end in pairwise(ends)])
    return np.frombuffer(found, "<u8").astype(np.uint64).reshape(-1, 2)


Allocate = Callable[[int], Words]

_WAYS = {
    "words": CONTIGUOUS,
    "qgrams": CONTIGUOUS,
    "windows": CONTIGUOUS,
    "sentence_words": CONTIGUOUS,
    "skips": SKIPPING,
    "clauses": WHOLE,
    "spots": SPOTS,
    "terms": CONTIGUOUS,
}
_WEIGHING = {"": NO_WEIGHTS, "tf": BY_COUNT, "idf": BY_VALUE, "tfidf": BY_BOTH}
_NO_TOKENS = np.zeros(EMPTY_TABLE, np.uint64)


class _Plan(NamedTuple):
    """What the kernels take besides texts.

    Attributes
    ----------
    by_character : bool
        Whether grams are of characters.
    shape : tuple of int
        The shape of ``grams_of``.
    form : int
        What becomes of the grams (``kernels.grams``).
    positional : bool
        Whether places, or the ranks of terms, are part of features.
    modulus : int
        One in so many grams is kept.
    terms : int
        How many of each segment are chosen; 0 where all features stay.
    tables : tuple
        Stop words and antecedents, as open tables of tokens.
    lookup : tuple or None
        Keys, values and unseen of a ``Lookup``.
    weighing : int
        Where weights come from (``kernels.grams``).
    """

    by_character: bool
    shape: tuple[int, int, int]
    form: int
    positional: bool
    modulus: int
    terms: int
    tables: tuple[Words, Words]
    lookup: tuple[Words, Integers, Integers] | None
    weighing: int

    @property
    def is_plain(self) -> bool:
        """Whether features are contiguous grams as sets or multisets, and nothing else."""
        ordinary = self.shape[0] == CONTIGUOUS and self.form in (SET, MULTISET)
        return (
            ordinary and not (self.positional or self.terms or len(self.tables[0]) > EMPTY_TABLE) and self.modulus == 1
        )


def _fresh(size: int) -> Words:
    return np.empty(size, np.uint64)


def extract(
    texts: pa.LargeStringArray, recipe: Recipe, statistics: Statistics | None = None, *, allocate: Allocate = _fresh
) -> Block:
    """Return the features of texts: see ``Extractor``, which does the same for batch after batch."""
    return Extractor(recipe, statistics)(texts, allocate)


def gram_hashes(text: str, recipe: Recipe) -> Words:
    """Return the hash of every gram of one text, in the order of the text, repeats repeated.

    They are those of the features before repeats are numbered, places added, windows sampled and terms chosen; those of
    text that the recipe ignores are left out.
    """
    extractor = Extractor(recipe.without_statistics(), None, LISTED)
    return np.maximum(extractor(pa.array([text], pa.large_string())).features, np.uint64(1))


class Extractor:
    """Makes the features of batches of texts.

    Parameters
    ----------
    recipe : Recipe
        Its ``content``, ``normalize``, ``features`` and what follows up to ``signature``.
    statistics : Statistics, optional
        Of the collection (``statistics.gather``); for recipes with ``needs_statistics``.
    form : int, optional
        What becomes of the grams (``kernels.grams``) in place of what the recipe asks for.
    digests : bool
        Whether something depends on which texts are equal, so that their marks are digests. They take time.
    """

    def __init__(
        self,
        recipe: Recipe,
        statistics: Statistics | None = None,
        form: int | None = None,
        *,
        digests: bool = False,
    ) -> None:
        self._digests = digests
        self._content = method_of(recipe.content) if recipe.content else None
        self._normalize, self._wanted = recipe.normalize, recipe.parsed_features
        self._signer = Signer(recipe, statistics) if recipe.signature and form is None else None
        if form is None:
            form = COUNTED if recipe.weights else MULTISET if self._wanted.multiset else SET
        self._counts = form == COUNTED
        lookup = None if statistics is None else statistics.lookup(recipe)
        self._plan = _plan(recipe, form, lookup)
        self._known = _known_grams(recipe)
        self._direct: tuple[Any, Any] | None = None
        special = self._content or self._wanted.unit or self._signer or self._plan.lookup or self._known is not None
        if self._plan.is_plain and self._wanted.kind != "checksum" and has_kernel(self._normalize) and not special:
            shape = self._plan.by_character, self._plan.shape[1], self._plan.form == MULTISET
            self._direct = (self._normalize == "words", ascii_table(self._normalize)), shape

    def __call__(self, texts: pa.LargeStringArray, allocate: Allocate = _fresh) -> Block:
        """Return the features of texts (no nulls), in uint64 arrays that ``allocate`` gives."""
        if self._content is not None:
            texts = contents(texts, self._content)
        data, offsets = text_buffers(texts)
        count = len(texts)
        block = Block(
            np.empty(0, np.uint64),
            np.empty(count, np.int64),
            np.empty((count, 2), np.uint64),
            text_digests(data, offsets) if self._digests else np.empty((count, 2), np.uint64),
            offsets[1:] - offsets[:-1],
            _NO_WEIGHTS,
        )
        if not self._digests:
            text_marks(data, offsets, block.text_marks)
        if self._wanted.kind == "checksum":
            return self._checksums(data, offsets, block, allocate)
        used, out, weights = self._features(data, offsets, block)
        if self._signer is not None:
            return self._signer.sign(block._replace(features=out[:used], weights=weights[:used]), allocate)
        features = allocate(used)
        features[:] = out[:used]
        kept = _NO_WEIGHTS
        if self._counts:
            kept = allocate(used).view(np.int64)
            kept[:] = weights[:used]
        return block._replace(features=features, weights=kept)

    def sets(self, data: npt.NDArray[np.uint8], offsets: Integers) -> tuple[Words, Integers]:
        """Return the features of a few texts and their numbers, as a block has them, without what costs more than they.

        Parameters
        ----------
        data : uint8[m]
            The texts as UTF-8.
        offsets : int64[d + 1]
            Where each begins, and where the last one ends.
        """
        if self._direct is not None:
            features, sizes = ascii_sets(data, offsets, *self._direct)
            if len(sizes):
                return features, sizes
        buffers = pa.py_buffer(offsets), pa.py_buffer(data)
        block = self(pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers))
        return block.features, block.sizes

    def _features(self, data: Any, offsets: Integers, block: Block) -> tuple[int, Words, Integers]:
        """Fill the sizes and marks of a block; return the number of features, and scratch that begins with them."""
        unit = self._wanted.unit
        ends, heads = segments(data, offsets, unit) if unit else (offsets, None)
        normal = comparable(data, ends, self._normalize)
        lengths = normal.spans[:, 1] - normal.spans[:, 0]
        room = int(lengths.sum())
        if not self._wanted.traits.by_character:
            room = (room + len(lengths)) // 2
        out = SCRATCH.take("features", np.uint64, room + len(lengths))
        weights = SCRATCH.take("weights", np.int64, len(out)) if self._counts else _NO_WEIGHTS
        plan, results = self._plan, (block.sizes, block.marks)
        if plan.is_plain and not unit and self._known is None:
            multiset = plan.form == MULTISET
            used = feature_sets(normal.text, normal.spans, plan.by_character, plan.shape[1], multiset, out, *results)
        else:
            heads = np.arange(len(offsets)) if heads is None else heads
            used = self._others(normal, heads, out, weights, results)
        if plan.lookup is not None and not plan.terms:
            used = clip_sets(out[:used], weights, plan.lookup, plan.weighing, *results)
        return used, out, weights

    def _others(
        self, normal: Comparable, heads: Integers, out: Words, weights: Integers, results: tuple[Integers, Words]
    ) -> int:
        """Write features that are more than contiguous grams; return how many."""
        plan = self._plan
        lengths = np.empty(len(normal.spans), np.int64)
        if plan.form == LISTED:
            used: int = list_grams(normal.text, normal.spans, plan.by_character, plan.shape, plan.tables, out, lengths)
            if self._known is not None:
                used = drop_grams(self._known, out, lengths)
            results[0][:] = np.add.reduceat(np.append(lengths, 0), heads[:-1]) if len(lengths) else 0
            return used
        listed = SCRATCH.take("listed", np.uint64, len(out))
        count = list_grams(normal.text, normal.spans, plan.by_character, plan.shape, plan.tables, listed, lengths)
        if self._known is not None:
            count = drop_grams(self._known, listed, lengths)
        grams = listed[:count]
        if plan.terms and plan.lookup is not None:
            choice = plan.terms, plan.positional, plan.weighing
            used = choose_terms(grams, lengths, heads, choice, plan.lookup, out, weights, *results)
        else:
            form = plan.form, plan.positional and not plan.terms, plan.modulus
            used = form_sets(grams, lengths, heads, form, out, weights, *results)
        return used

    def _checksums(self, data: Any, offsets: Integers, block: Block, allocate: Allocate) -> Block:
        """Return one feature a text, the first 64 bits of its hash; none for an empty text."""
        if self._normalize == "raw":
            normal = Comparable(data, np.stack([offsets[:-1], offsets[1:]], axis=1))
        else:
            normal = comparable(data, offsets, self._normalize)
        # The constructor itself: hashlib.new looks for it anew each time, which takes longer than most texts.
        digest_of = partial(getattr(hashlib, self._wanted.flags[0]), usedforsecurity=False)
        view = normal.text.data
        texts: list[Any] = [view[begin:end] for begin, end in normal.spans.tolist()]
        if self._normalize != "raw":
            # Comparable text parts tokens by one space or several.
            texts = [b" ".join(filter(None, bytes(text).split(b" "))) for text in texts]
        found = b"".join([digest_of(text).digest()[:16] for text in texts])
        digests = np.frombuffer(found, "<u8").astype(np.uint64).reshape(-1, 2)
        block.sizes[:] = list(map(bool, map(len, texts)))
        digests[block.sizes == 0] = 0
        some = block.sizes > 0
        block.marks[:] = digests
        features = allocate(int(some.sum()))
        features[:] = np.maximum(digests[some, 0], np.uint64(1))
        return block._replace(features=features)


def _plan(recipe: Recipe, form: int, lookup: Lookup | None) -> _Plan:
    wanted = recipe.parsed_features
    terms = wanted.numbers[0] if wanted.kind == "terms" else 0
    first, second = (1, 0) if terms else (*wanted.numbers, 0, 0)[:2]
    stops, begins = word_lists(recipe)
    return _Plan(
        by_character=wanted.traits.by_character,
        shape=(_WAYS.get(wanted.kind, CONTIGUOUS), first, second),
        form=form,
        positional=wanted.positional,
        modulus=second if wanted.kind == "windows" else 1,
        terms=terms,
        tables=(_token_table(stops), _token_table(begins)),
        lookup=(lookup.keys, lookup.values, lookup.unseen) if lookup is not None and len(lookup.keys) else None,
        weighing=_WEIGHING[recipe.weights] if form == COUNTED and lookup is not None else NO_WEIGHTS,
    )


def _known_grams(recipe: Recipe) -> Words | None:
    """Return the grams of the text that a recipe ignores, as an open table; None where it ignores none."""
    if not recipe.ignore:
        return None
    found = gram_hashes(recipe.ignore, recipe.changed(ignore="", content=""))
    table = np.zeros(slots_for(len(found)), np.uint64)
    enter(found, table)
    return table


def _token_table(words: frozenset[str]) -> Words:
    if not words:
        return _NO_TOKENS
    text = " ".join(sorted(words)).encode()
    padded = np.frombuffer(text + b" " * 64, np.uint8)
    tokens = np.empty(len(text), np.uint64)
    count = hash_tokens(padded, 0, len(text), False, np.empty(len(text) + 66, np.int64), tokens)
    table = np.zeros(slots_for(count), np.uint64)
    enter(tokens[:count], table)
    return table
