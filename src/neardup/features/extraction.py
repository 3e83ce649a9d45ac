"""Texts to blocks of features: normalization, tokens, grams, sets or vectors, signatures; digests; and embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import RecipeError
from neardup.features.signatures import Signer
from neardup.features.statistics import Lookup, Statistics
from neardup.features.store import Block
from neardup.kernels import Bytes, Floats, Integers, Words
from neardup.kernels.grams import (
    BY_BOTH,
    BY_COUNT,
    BY_VALUE,
    COUNTED,
    LISTED,
    MULTISET,
    NGRAMS,
    NO_WEIGHTS,
    SET,
    SKIP_GRAMS,
    SPOTS,
    WHOLE_SEGMENT,
    ascii_sets,
    build_sets,
    choose_terms,
    clip_sets,
    drop_grams,
    feature_sets,
    hash_tokens,
    list_grams,
)
from neardup.kernels.tables import EMPTY_TABLE_SIZE, insert_keys, table_size
from neardup.kernels.unicode import hash_texts
from neardup.recipe import Recipe
from neardup.recipe.recipe import word_lists
from neardup.runtime import SCRATCH
from neardup.text.bulk import ComparableTexts, ascii_table, normalize_texts, text_buffers
from neardup.text.normalize import has_kernel
from neardup.text.sentences import segment_texts

_BYTES = 16
_NO_WEIGHTS = np.empty(0, np.int64)


def text_digests(data: npt.NDArray[Any], offsets: Integers) -> Words:
    """Return 128 bits of BLAKE2b per text: uint64[d, 2], of uint8 texts and their int64[d + 1] offsets.

    No two texts with equal digests are known for this hash; finding a pair takes about 2**64 attempts.
    """
    view, ends = data.data, offsets.tolist()
    found = b"".join([blake2b(view[begin:end], digest_size=_BYTES).digest() for begin, end in pairwise(ends)])
    return np.frombuffer(found, "<u8").astype(np.uint64).reshape(-1, 2)


Allocate = Callable[[int], Words]

_GRAM_METHODS = {
    "words": NGRAMS,
    "qgrams": NGRAMS,
    "windows": NGRAMS,
    "sentence_words": NGRAMS,
    "skips": SKIP_GRAMS,
    "clauses": WHOLE_SEGMENT,
    "spots": SPOTS,
    "terms": NGRAMS,
}
_WEIGHING = {"": NO_WEIGHTS, "tf": BY_COUNT, "idf": BY_VALUE, "tfidf": BY_BOTH}
_NO_TOKENS = np.zeros(EMPTY_TABLE_SIZE, np.uint64)


class _KernelPlan(NamedTuple):
    """The arguments that the kernels of ``kernels.grams`` take besides texts.

    positional: a feature includes its position, or the rank of its term; modulus: grams are kept if they are 0 modulo
    this number; terms: how many of each segment are chosen, 0 to keep all features; tables: stop words and antecedents.
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
        """Whether features are contiguous grams as sets or multisets, without further steps."""
        has_more_steps = self.positional or self.terms or self.modulus > 1 or len(self.tables[0]) > EMPTY_TABLE_SIZE
        return self.shape[0] == NGRAMS and self.form in (SET, MULTISET) and not has_more_steps


def _new_array(size: int) -> Words:
    return np.empty(size, np.uint64)


def extract_features(
    texts: pa.LargeStringArray, recipe: Recipe, statistics: Statistics | None = None, *, allocate: Allocate = _new_array
) -> Block:
    """Return the features of one batch of texts; an ``Extractor`` does the same for many batches."""
    return Extractor(recipe, statistics)(texts, allocate)


def gram_hashes(text: str, recipe: Recipe) -> Words:
    """Return the hash of every gram of one text, in text order, with repeats.

    These are the features before repeats are numbered, positions added, windows sampled and terms chosen. Grams of text
    that the recipe ignores are left out.
    """
    extractor = Extractor(recipe.without_statistics(), None, LISTED)
    return np.maximum(extractor(pa.array([text], pa.large_string())).features, np.uint64(1))


class Extractor:
    """Extracts the features of batches of texts.

    statistics: document frequencies of the collection, for recipes with ``needs_statistics``; form: SET, MULTISET,
    COUNTED or LISTED (``kernels.grams``), to override that of the recipe; digests: whether ``text_digests`` are
    cryptographic, needed if a result depends on which texts are equal; it takes time.
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
        self.content = recipe.content
        if self.content:
            # Runs without pages need none of this.
            from neardup.text.contents import extract_contents, require_content

            require_content(self.content)
            self._extract_contents = extract_contents
        self._normalize, self._spec = recipe.normalize, recipe.parsed_features
        self._signer = Signer(recipe, statistics) if recipe.signature and form is None else None
        if form is None:
            form = COUNTED if recipe.weights else MULTISET if self._spec.multiset else SET
        self._counts = form == COUNTED
        lookup = None if statistics is None else statistics.lookup(recipe)
        self._plan = _kernel_plan(recipe, form, lookup)
        self._ignored = _ignored_grams(recipe)
        self._ascii_arguments: tuple[Any, Any] | None = None
        needs_more = self.content or self._spec.unit or self._signer or self._plan.lookup or self._ignored is not None
        if self._plan.is_plain and self._spec.kind != "checksum" and has_kernel(self._normalize) and not needs_more:
            shape = self._plan.by_character, self._plan.shape[1], self._plan.form == MULTISET
            self._ascii_arguments = (self._normalize == "words", ascii_table(self._normalize)), shape

    def __call__(self, texts: pa.LargeStringArray, allocate: Allocate = _new_array) -> Block:
        """Return the features of texts (no nulls), in uint64 arrays from ``allocate``."""
        failed: dict[int, str] = {}
        if self.content:
            texts, failed = self._extract_contents(texts, self.content)
        data, offsets = text_buffers(texts)
        count = len(texts)
        block = Block(
            np.empty(0, np.uint64),
            np.empty(count, np.int64),
            np.empty((count, 2), np.uint64),
            text_digests(data, offsets) if self._digests else np.empty((count, 2), np.uint64),
            offsets[1:] - offsets[:-1],
            _NO_WEIGHTS,
            failed,
        )
        if not self._digests:
            hash_texts(data, offsets, block.text_digests)
        if self._spec.kind == "checksum":
            return self._checksums(data, offsets, block, allocate)
        used, out, weights = self._extract(data, offsets, block)
        if self._signer is not None:
            return self._signer.sign(block._replace(features=out[:used], weights=weights[:used]), allocate)
        features = allocate(used)
        features[:] = out[:used]
        kept = _NO_WEIGHTS
        if self._counts:
            kept = allocate(used).view(np.int64)
            kept[:] = weights[:used]
        return block._replace(features=features, weights=kept)

    def sets(self, data: Bytes, offsets: Integers) -> tuple[Words, Integers]:
        """Return the features of a few texts, given as by ``text_buffers``, and the size of each set."""
        if self._ascii_arguments is not None:
            features, sizes = ascii_sets(data, offsets, *self._ascii_arguments)
            if len(sizes):
                return features, sizes
        buffers = pa.py_buffer(offsets), pa.py_buffer(data)
        block = self(pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers))
        return block.features, block.sizes

    def _extract(self, data: Any, offsets: Integers, block: Block) -> tuple[int, Words, Integers]:
        """Fill the sizes and set digests of a block; return the number of features, and the buffers that hold them."""
        unit = self._spec.unit
        ends, heads = segment_texts(data, offsets, unit) if unit else (offsets, None)
        normal = normalize_texts(data, ends, self._normalize)
        lengths = normal.spans[:, 1] - normal.spans[:, 0]
        room = int(lengths.sum())
        if not self._spec.traits.by_character:
            room = (room + len(lengths)) // 2
        out = SCRATCH.array("features", np.uint64, room + len(lengths))
        weights = SCRATCH.array("weights", np.int64, len(out)) if self._counts else _NO_WEIGHTS
        plan, results = self._plan, (block.sizes, block.set_digests)
        if plan.is_plain and not unit and self._ignored is None:
            multiset = plan.form == MULTISET
            used = feature_sets(normal.text, normal.spans, plan.by_character, plan.shape[1], multiset, out, *results)
        else:
            heads = np.arange(len(offsets)) if heads is None else heads
            used = self._extract_general(normal, heads, out, weights, results)
        if plan.lookup is not None and not plan.terms:
            used = clip_sets(out[:used], weights, plan.lookup, plan.weighing, *results)
        return used, out, weights

    def _extract_general(
        self, normal: ComparableTexts, heads: Integers, out: Words, weights: Integers, results: tuple[Integers, Words]
    ) -> int:
        """Write features that are more than contiguous grams; return how many."""
        plan = self._plan
        lengths = np.empty(len(normal.spans), np.int64)
        grams = out if plan.form == LISTED else SCRATCH.array("grams", np.uint64, len(out))
        count: int = list_grams(normal.text, normal.spans, plan.by_character, plan.shape, plan.tables, grams, lengths)
        if self._ignored is not None:
            count = drop_grams(self._ignored, grams, lengths)
        if plan.form == LISTED:
            results[0][:] = np.add.reduceat(np.append(lengths, 0), heads[:-1]) if len(lengths) else 0
        elif plan.terms and plan.lookup is not None:
            choice = plan.terms, plan.positional, plan.weighing
            count = choose_terms(grams[:count], lengths, heads, choice, plan.lookup, out, weights, *results)
        else:
            form = plan.form, plan.positional and not plan.terms, plan.modulus
            count = build_sets(grams[:count], lengths, heads, form, out, weights, *results)
        return count

    def _checksums(self, data: Any, offsets: Integers, block: Block, allocate: Allocate) -> Block:
        """Return one feature per text, the first 64 bits of its checksum; none for an empty text."""
        if self._normalize == "raw":
            normal = ComparableTexts(data, np.stack([offsets[:-1], offsets[1:]], axis=1))
        else:
            normal = normalize_texts(data, offsets, self._normalize)
        # Not `hashlib.new`, which looks the constructor up on each call: that takes longer than most texts.
        digest_of = partial(getattr(hashlib, self._spec.flags[0]), usedforsecurity=False)
        view = normal.text.data
        texts: list[Any] = [view[begin:end] for begin, end in normal.spans.tolist()]
        if self._normalize != "raw":
            # In comparable text, tokens are separated by one or more spaces.
            texts = [b" ".join(filter(None, bytes(text).split(b" "))) for text in texts]
        found = b"".join([digest_of(text).digest()[:16] for text in texts])
        digests = np.frombuffer(found, "<u8").astype(np.uint64).reshape(-1, 2)
        block.sizes[:] = [len(text) > 0 for text in texts]
        digests[block.sizes == 0] = 0
        nonempty = block.sizes > 0
        block.set_digests[:] = digests
        features = allocate(int(nonempty.sum()))
        features[:] = np.maximum(digests[nonempty, 0], np.uint64(1))
        return block._replace(features=features)


def _kernel_plan(recipe: Recipe, form: int, lookup: Lookup | None) -> _KernelPlan:
    spec = recipe.parsed_features
    terms = spec.numbers[0] if spec.kind == "terms" else 0
    first, second = (1, 0) if terms else (*spec.numbers, 0, 0)[:2]
    stop_words, antecedents = word_lists(recipe)
    return _KernelPlan(
        by_character=spec.traits.by_character,
        shape=(_GRAM_METHODS.get(spec.kind, NGRAMS), first, second),
        form=form,
        positional=spec.positional,
        modulus=second if spec.kind == "windows" else 1,
        terms=terms,
        tables=(_token_table(stop_words), _token_table(antecedents)),
        lookup=(lookup.keys, lookup.values, lookup.unseen) if lookup is not None and len(lookup.keys) else None,
        weighing=_WEIGHING[recipe.weights] if form == COUNTED and lookup is not None else NO_WEIGHTS,
    )


def _ignored_grams(recipe: Recipe) -> Words | None:
    """Return the grams of the text that a recipe ignores, as a hash table; None if it ignores nothing."""
    if not recipe.ignore:
        return None
    found = gram_hashes(recipe.ignore, recipe.changed(ignore="", content=""))
    table = np.zeros(table_size(len(found)), np.uint64)
    insert_keys(found, table)
    return table


def _token_table(words: frozenset[str]) -> Words:
    if not words:
        return _NO_TOKENS
    text = " ".join(sorted(words)).encode()
    padded = np.frombuffer(text + b" " * 64, np.uint8)
    tokens = np.empty(len(text), np.uint64)
    count = hash_tokens(padded, 0, len(text), False, np.empty(len(text) + 66, np.int64), tokens)
    table = np.zeros(table_size(count), np.uint64)
    insert_keys(tokens[:count], table)
    return table


#: A cosine is a whole number of this many parts.
COSINE_UNIT = 10**9


class Encoder(Protocol):
    """An object that computes embeddings: ``encode(texts)`` returns an array with one row of numbers per text."""

    def encode(self, texts: list[str]) -> Any:
        """Return the embeddings of texts."""


def embed(texts: Sequence[str], encoder: Encoder) -> Floats:
    """Return the embeddings of texts as rows of length 1, or of zeros if the encoder returns zeros.

    Raises ``RecipeError`` if the encoder fails or returns anything but a finite row per text.
    """
    if not len(texts):
        return np.empty((0, 1))
    try:
        rows = np.asarray(encoder.encode(list(texts)), np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise RecipeError(
            f"the encoder {type(encoder).__name__} fails ({error}); it must have encode(texts), which returns a "
            "row of finite numbers for each text"
        ) from error
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise RecipeError(
            f"the encoder returned an array of shape {rows.shape} for {len(texts):,} texts; it must return a row of "
            "finite numbers for each"
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def cosine_counts(embeddings: Floats, left: Integers, right: Integers) -> Integers:
    """Return o, a and b of pairs of embeddings as int64[n, 3]: their cosine, clipped to [0, 1], in units of 1e-9."""
    cosine = np.einsum("ij,ij->i", embeddings[left], embeddings[right])
    o = np.rint(np.clip(cosine, 0, 1) * COSINE_UNIT).astype(np.int64)
    return np.column_stack([o, np.full((len(o), 2), COSINE_UNIT, np.int64)])
