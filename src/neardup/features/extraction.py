"""Texts to feature sets, vectors and signatures: the steps ``normalize`` and ``features`` for a whole batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.ascii import text_marks
from neardup._kernels.grams import CONTIGUOUS, SINGLE, SKIPPING, SPOTS, WHOLE
from neardup._kernels.sets import BY_BOTH, BY_COUNT, BY_VALUE, COUNTED, LISTED, MULTISET, NO_WEIGHTS, SET
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
    "terms": SINGLE,
}
_WEIGHING = {"": NO_WEIGHTS, "tf": BY_COUNT, "idf": BY_VALUE, "tfidf": BY_BOTH}
_NO_TOKENS = np.zeros(1, np.uint64)
_NO_WEIGHTS = np.empty(0, np.int64)


class _Plan(NamedTuple):
    """What ``feature_sets`` takes besides texts."""

    numbers: tuple[int, ...]
    tables: tuple[Words, Words]
    lookup: tuple[Words, Integers, Integers]


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
        out = SCRATCH.take("features", np.uint64, room + len(block.sizes))
        weights = SCRATCH.take("weights", np.int64, len(out)) if self._counts else _NO_WEIGHTS
        plan = self._plan
        used = feature_sets(
            normal.text,
            normal.spans,
            heads,
            plan.numbers,
            plan.tables,
            plan.lookup,
            out,
            weights,
            block.sizes,
            block.marks,
        )
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
    way = _WAYS.get(wanted.kind, CONTIGUOUS)
    first, second = (*wanted.numbers, 0, 0)[:2]
    number, positional = {"windows": second, "terms": first}.get(wanted.kind, 1), wanted.positional
    if form == COUNTED and lookup is None and wanted.kind == "terms":
        # Nothing is chosen, and nothing has a rank, before the collection is known.
        way, first, number, positional = CONTIGUOUS, 1, 1, False
    weighing = _WEIGHING[recipe.weights] if form == COUNTED and lookup is not None else NO_WEIGHTS
    numbers = (wanted.traits.by_character, way, first, second, positional, number, form, weighing)
    known = (
        (lookup.keys, lookup.values, lookup.unseen) if lookup else (np.empty(0, np.uint64), _NO_WEIGHTS, _NO_WEIGHTS)
    )
    return _Plan(tuple(int(number) for number in numbers), _tables(recipe, wanted), known)


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
