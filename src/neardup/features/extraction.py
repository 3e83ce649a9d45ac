"""Texts to feature sets, vectors and signatures: the steps ``normalize`` and ``features`` for a whole batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.ascii import text_marks
from neardup._kernels.choosing import BY_BOTH, BY_COUNT, BY_VALUE, NO_WEIGHTS, choose_terms, clip_sets
from neardup._kernels.grams import CONTIGUOUS, SKIPPING, SPOTS, WHOLE
from neardup._kernels.sets import COUNTED, LISTED, MULTISET, SET
from neardup._kernels.shingles import feature_sets
from neardup._kernels.tokens import enter, hash_tokens
from neardup.features.signatures import Signer
from neardup.features.statistics import Lookup, Statistics
from neardup.features.store import Block
from neardup.recipe import Recipe
from neardup.recipe.kinds import Features
from neardup.scratch import SCRATCH
from neardup.text.breaks import segments
from neardup.text.comparable import Comparable, comparable, text_buffers
from neardup.text.normalize import tokens
from neardup.text.stop_words import antecedents, stop_words

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
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
_NO_TOKENS = np.zeros(1, np.uint64)
_NO_WEIGHTS = np.empty(0, np.int64)


class _Plan(NamedTuple):
    """What the kernels take besides texts.

    Attributes
    ----------
    numbers : tuple of int
        The plan of ``feature_sets``.
    tables : tuple
        Stop words and antecedents.
    lookup : tuple or None
        Keys, values and unseen of a ``Lookup``.
    weighing : int
        Where weights come from.
    terms : int
        How many of each segment are chosen; 0 where all features stay.
    positional : bool
        Whether chosen terms carry their rank.
    """

    numbers: tuple[int, ...]
    tables: tuple[Words, Words]
    lookup: tuple[Words, Integers, Integers] | None
    weighing: int
    terms: int
    positional: bool


def _fresh(size: int) -> Words:
    return np.empty(size, np.uint64)


def extract(
    texts: pa.LargeStringArray, recipe: Recipe, statistics: Statistics | None = None, *, allocate: Allocate = _fresh
) -> Block:
    """Return the features of texts: see ``Extractor``, which does the same for batch after batch."""
    return Extractor(recipe, statistics)(texts, allocate)


def gram_hashes(text: str, recipe: Recipe) -> Words:
    """Return the hash of every gram of one text, in the order of the text, repeats repeated.

    They are those of the features before repeats are numbered, places added, windows sampled and terms chosen.
    """
    extractor = Extractor(recipe.without_statistics(), None, LISTED)
    return np.maximum(extractor(pa.array([text], pa.large_string())).features, np.uint64(1))


class Extractor:
    """Makes the features of batches of texts.

    Parameters
    ----------
    recipe : Recipe
        Its ``normalize``, ``features`` and what follows up to ``signature``.
    statistics : Statistics, optional
        Of the collection (``statistics.gather``); for recipes with ``needs_statistics``.
    form : int, optional
        What becomes of the grams (``_kernels.sets``) in place of what the recipe asks for.

    Raises
    ------
    RecipeError
        If a language has no stop words, or clipping leaves nothing.
    """

    def __init__(self, recipe: Recipe, statistics: Statistics | None = None, form: int | None = None) -> None:
        self._normalize, self._wanted = recipe.normalize, recipe.parsed_features
        self._signer = Signer(recipe, statistics) if recipe.signature and form is None else None
        if form is None:
            form = COUNTED if recipe.weights else MULTISET if self._wanted.multiset else SET
        self._counts = form == COUNTED
        lookup = None if statistics is None else statistics.lookup(recipe)
        self._plan = _plan(recipe, form, lookup)

    def __call__(self, texts: pa.LargeStringArray, allocate: Allocate = _fresh) -> Block:
        """Return the features of texts.

        Parameters
        ----------
        texts : pyarrow.LargeStringArray
            Valid UTF-8, no nulls.
        allocate : callable
            Gives a uint64 array of a size for what stays, as ``FeatureStore.allocate`` does.
        """
        data, offsets = text_buffers(texts)
        count = len(texts)
        block = Block(
            np.empty(0, np.uint64),
            np.empty(count, np.int64),
            np.empty((count, 2), np.uint64),
            np.empty(count, np.uint64),
            np.diff(offsets),
            _NO_WEIGHTS,
        )
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

    def _features(self, data: Any, offsets: Integers, block: Block) -> tuple[int, Words, Integers]:
        """Fill the sizes and marks of a block; return the number of features, and scratch that begins with them."""
        unit = self._wanted.unit
        ends, heads = segments(data, offsets, unit) if unit else (offsets, np.arange(len(offsets)))
        normal = comparable(data, ends, self._normalize)
        lengths = normal.spans[:, 1] - normal.spans[:, 0]
        room = int(lengths.sum()) if self._wanted.traits.by_character else int((lengths + 1).sum()) // 2
        out = SCRATCH.take("features", np.uint64, room + len(normal.spans))
        weights = SCRATCH.take("weights", np.int64, len(out)) if self._counts else _NO_WEIGHTS
        plan = self._plan
        if plan.terms and plan.lookup is not None:
            # Each segment's terms by themselves, of which the heaviest are chosen.
            lengths, marks = np.empty(len(normal.spans), np.int64), np.empty((len(normal.spans), 2), np.uint64)
            every = np.arange(len(lengths) + 1)
            used = feature_sets(
                normal.text, normal.spans, every, plan.numbers, plan.tables, out, _NO_WEIGHTS, lengths, marks
            )
            listed = out[:used].copy()
            choice = plan.terms, plan.positional, plan.weighing
            used = choose_terms(listed, lengths, heads, choice, plan.lookup, out, weights, block.sizes, block.marks)
            return used, out, weights
        used = feature_sets(
            normal.text, normal.spans, heads, plan.numbers, plan.tables, out, weights, block.sizes, block.marks
        )
        if plan.lookup is not None:
            used = clip_sets(out[:used], weights, plan.lookup, plan.weighing, block.sizes, block.marks)
        return used, out, weights

    def _checksums(self, data: Any, offsets: Integers, block: Block, allocate: Allocate) -> Block:
        """Return one feature a text, the first 64 bits of its hash; none for an empty text."""
        if self._normalize == "raw":
            normal = Comparable(data, np.stack([offsets[:-1], offsets[1:]], axis=1))
        else:
            normal = comparable(data, offsets, self._normalize)
        digests = np.zeros((len(block.sizes), 2), np.uint64)
        for d, (begin, end) in enumerate(normal.spans.tolist()):
            text = normal.text[begin:end].tobytes()
            if self._normalize != "raw":
                # Comparable text parts tokens by one space or several.
                text = b" ".join(filter(None, text.split(b" ")))
            block.sizes[d] = len(text) > 0
            if text:
                digest = hashlib.new(self._wanted.flags[0], text, usedforsecurity=False).digest()
                digests[d] = np.frombuffer(digest[:16], "<u8")
        some = block.sizes > 0
        block.marks[:] = digests
        features = allocate(int(some.sum()))
        features[:] = np.maximum(digests[some, 0], np.uint64(1))
        return block._replace(features=features)


def _plan(recipe: Recipe, form: int, lookup: Lookup | None) -> _Plan:
    wanted = recipe.parsed_features
    terms = wanted.numbers[0] if wanted.kind == "terms" else 0
    first, second = (1, 0) if terms else (*wanted.numbers, 0, 0)[:2]
    modulus = second if wanted.kind == "windows" else 1
    weighing = _WEIGHING[recipe.weights] if form == COUNTED and lookup is not None else NO_WEIGHTS
    # A term has no rank before terms are chosen, and none is chosen before the collection is known.
    placed = wanted.positional and not terms
    listed = LISTED if terms and lookup is not None else form
    way = _WAYS.get(wanted.kind, CONTIGUOUS)
    numbers = (int(wanted.traits.by_character), way, first, second, int(placed), modulus, listed)
    known = (lookup.keys, lookup.values, lookup.unseen) if lookup is not None and len(lookup.keys) else None
    return _Plan(numbers, _tables(recipe, wanted), known, weighing, terms, wanted.positional)


def _tables(recipe: Recipe, wanted: Features) -> tuple[Words, Words]:
    """Return the open tables of stop words and of antecedents."""
    languages = "" if recipe.stop_words == "none" else recipe.stop_words
    if wanted.kind != "spots":
        begins: frozenset[str] = frozenset()
    elif recipe.antecedents:
        begins = frozenset(token.text for token in tokens(recipe.antecedents, recipe.normalize))
    else:
        begins = antecedents(languages)
    return _token_table(stop_words(languages)), _token_table(begins)


def _token_table(words: frozenset[str]) -> Words:
    if not words:
        return _NO_TOKENS
    text = " ".join(sorted(words)).encode()
    padded = np.frombuffer(text + b" " * 64, np.uint8)
    tokens = np.empty(len(text), np.uint64)
    count = hash_tokens(padded, 0, len(text), False, np.empty(len(text) + 66, np.int64), tokens)
    table = np.zeros(1 << (2 * count).bit_length(), np.uint64)
    enter(tokens[:count], table)
    return table
