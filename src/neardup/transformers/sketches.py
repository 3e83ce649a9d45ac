"""Texts to MinHash sketches and SimHashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from neardup._kernels.sketching import minhash, simhash
from neardup.errors import RecipeError
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.recipe import Recipe
from neardup.recipe.kinds import MOST_MINIMA
from neardup.sketches.items import LARGEST_ID, whole_number
from neardup.transformers.base import Integers, TextTransformer

_BITS = 64
#: What ``SimHashTransformer`` gives, and in how many columns.
_OUTPUTS = {"bits": _BITS, "values": 1}


class SketchTransformer(ClassNamePrefixFeaturesOutMixin, TextTransformer):  # type: ignore[misc]
    """Texts to MinHash sketches: the share of equal columns of two rows estimates the Jaccard of their features.

    Parameters
    ----------
    num_perm : int
        The number of minima K, 1 to 4096: the standard error is sqrt(J (1 - J) / K).
    seed : int
        Chooses the hash functions, 0 to 2**64 - 1. Only rows of one seed can be compared.
    features, normalize, stop_words, antecedents, clip : str
        As in ``neardup.recipe.Recipe``.
    threads : int, optional
        Threads to use, all processors by default. It changes the time, never the answer.
    content : str
        As in ``neardup.recipe.Recipe``; ``content="html"`` takes the main content of pages.

    Attributes
    ----------
    recipe_ : Recipe
        What a text's features are, with all that was left to its default.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None where features do not depend on them.

    Notes
    -----
    ``transform`` gives uint64 [texts, num_perm], the ``hashvalues`` of a ``neardup.MinHash`` of the features.
    A text without features has 2**64 - 1 in all columns, and is no more like another such text than like any other
    [Dahlgaard, Knudsen & Thorup, FOCS 2017, arXiv 1704.04370, 2]. The minima are names, not amounts: they are to be
    compared, not added.

    Examples
    --------
    >>> from neardup.transformers import SketchTransformer
    >>> a, b = SketchTransformer(features="words:2").fit_transform(["a rose is a rose", "A rose is a rose."])
    >>> float((a == b).mean())
    1.0
    """

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        features: str = "words:5",
        normalize: str = "",
        stop_words: str = "",
        antecedents: str = "",
        clip: str = "",
        threads: int | None = None,
        content: str = "",
    ) -> None:
        self.num_perm = num_perm
        self.seed = seed
        self.features = features
        self.normalize = normalize
        self.stop_words = stop_words
        self.antecedents = antecedents
        self.clip = clip
        self.threads = threads
        self.content = content

    def _recipe(self) -> Recipe:
        return Recipe(**self._choices())

    def _columns(self) -> int:
        self._seed = np.uint64(whole_number(self.seed, "seed", 0, LARGEST_ID))
        return whole_number(self.num_perm, "num_perm", 1, MOST_MINIMA)

    def _rows(self, block: Block, heads: Integers) -> Any:
        rows = np.empty((len(block.sizes), self._n_features_out), np.uint64)
        minhash(block.features, heads, self._seed, rows)
        return rows


class SimHashTransformer(ClassNamePrefixFeaturesOutMixin, TextTransformer):  # type: ignore[misc]
    """Texts to 64-bit SimHashes: rows of texts at a small angle differ in few bits.

    Parameters
    ----------
    features, normalize, stop_words, antecedents, clip, weights : str
        As in ``neardup.recipe.Recipe``. With weights, bit j is the side of more weight, not of more features.
    output : {"bits", "values"}
        ``bits`` for uint8 [texts, 64], 0 or 1, the lowest bit in column 0; ``values`` for uint64 [texts, 1].
    threads : int, optional
        Threads to use, all processors by default. It changes the time, never the answer.
    content : str
        As in ``neardup.recipe.Recipe``; ``content="html"`` takes the main content of pages.

    Attributes
    ----------
    recipe_ : Recipe
        What a text's features are, with all that was left to its default.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None where features do not depend on them.

    Notes
    -----
    Bit j is 1 when more weight has it set in its features' hashes than has not; the share of bits in which two rows
    differ estimates (angle between the vectors) / pi. A text without features has all bits 0 [Charikar, STOC 2002, 3;
    Manku, Jain & Das Sarma, WWW 2007, 2].

    Examples
    --------
    >>> from neardup.transformers import SimHashTransformer
    >>> a, b = SimHashTransformer("words:2").fit_transform(["a rose is a rose", "A rose is a rose."])
    >>> len(a), int((a != b).sum())
    (64, 0)
    """

    def __init__(
        self,
        features: str = "words:5",
        normalize: str = "",
        stop_words: str = "",
        antecedents: str = "",
        clip: str = "",
        weights: str = "",
        output: str = "bits",
        threads: int | None = None,
        content: str = "",
    ) -> None:
        self.features = features
        self.normalize = normalize
        self.stop_words = stop_words
        self.antecedents = antecedents
        self.clip = clip
        self.weights = weights
        self.output = output
        self.threads = threads
        self.content = content

    def _recipe(self) -> Recipe:
        # The measure and its threshold make the recipe whole; the features do not depend on them.
        return Recipe(signature="simhash", measure="hamming", threshold=3, weights=self.weights, **self._choices())

    def _columns(self) -> int:
        if self.output not in _OUTPUTS:
            raise RecipeError(f"output {self.output!r} is not known; choose one of {', '.join(_OUTPUTS)}")
        return _OUTPUTS[self.output]

    def _extractor_of(self, recipe: Recipe, statistics: Statistics | None) -> Extractor:
        return Extractor(recipe.changed(signature="", measure="cosine", threshold=1.0), statistics)

    def _rows(self, block: Block, heads: Integers) -> Any:
        values = np.empty(len(block.sizes), np.uint64)
        simhash(block.features, block.weights, heads, values)
        if self._n_features_out == 1:
            return values[:, np.newaxis]
        return ((values[:, np.newaxis] >> np.arange(_BITS, dtype=np.uint64)) & np.uint64(1)).astype(np.uint8)
