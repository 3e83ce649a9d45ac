"""Texts to a sparse matrix of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from neardup._kernels.sets import COUNTED
from neardup.errors import RecipeError
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.recipe import Recipe
from neardup.sketches.items import whole_number
from neardup.transformers.base import Integers, TextTransformer

_MOST_COLUMNS = 1 << 62


class FeatureTransformer(TextTransformer):
    """Texts to a sparse matrix of their features: the sets or weighted vectors that a recipe compares.

    The value of a feature is 1 for sets, the number of its repeats for ``:multiset`` and ``weights="tf"``, idf =
    ln(1 + N / df) for ``"idf"``, and their product for ``"tfidf"``, for N fitted texts of which df hold the feature;
    one that no fitted text holds counts as held by one. idf is rounded to whole multiples of 2**-16 or coarser, as the
    join rounds it (``neardup.features.statistics``), so measures of rows are those of the recipe.

    Parameters
    ----------
    features, normalize, stop_words, antecedents, clip, weights : str
        As in ``neardup.recipe.Recipe``; ``features="terms:64"`` gives the 64 heaviest terms of each text. Clipping
        takes ``weights="tf"`` in the place of ``:multiset``.
    n_columns : int
        The number of columns n, 1 to 2**62. A feature x, a 64-bit hash, stands in column (x xor (x >> 32)) mod n;
        features that meet in a column are added up there. One meets some of m others with a chance of about m / n:
        raising n parts more of them, and makes models of the rows larger.
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
    ``transform`` gives a ``scipy.sparse.csr_matrix`` of float64 [texts, n_columns], sorted, without stored zeros; a
    text without features has an empty row. Columns have no names: a hash does not tell what it is the hash of
    [Weinberger et al., ICML 2009, 2, there with signs, which would make sets no sets].

    Examples
    --------
    >>> from neardup.transformers import FeatureTransformer
    >>> rows = FeatureTransformer("words:2").fit_transform(["a rose is a rose", "a rose is red"])
    >>> rows.shape
    (2, 1048576)
    >>> (rows @ rows.T).toarray().tolist()
    [[3.0, 2.0], [2.0, 3.0]]
    """

    def __init__(
        self,
        features: str = "words:5",
        normalize: str = "",
        stop_words: str = "",
        antecedents: str = "",
        clip: str = "",
        weights: str = "",
        n_columns: int = 1 << 20,
        threads: int | None = None,
        content: str = "",
    ) -> None:
        self.features = features
        self.normalize = normalize
        self.stop_words = stop_words
        self.antecedents = antecedents
        self.clip = clip
        self.weights = weights
        self.n_columns = n_columns
        self.threads = threads
        self.content = content

    def _recipe(self) -> Recipe:
        recipe = Recipe(measure="cosine", weights=self.weights, **self._choices())
        if recipe.clip and recipe.parsed_features.multiset:
            raise RecipeError(
                f"clip {recipe.clip!r} takes away single repeats, which features {recipe.features!r} count; "
                "leave it out, or leave :multiset out and take weights 'tf'"
            )
        return recipe

    def _columns(self) -> int:
        return whole_number(self.n_columns, "n_columns", 1, _MOST_COLUMNS)

    def _extractor_of(self, recipe: Recipe, statistics: Statistics | None) -> Extractor:
        self._unit = 1
        if statistics is not None and recipe.weights in ("idf", "tfidf"):
            self._unit = 1 << statistics.bits(recipe)
        return Extractor(recipe, statistics, COUNTED if recipe.parsed_features.multiset else None)

    def _rows(self, block: Block, heads: Integers) -> Any:
        # Features may all be multiples of a number, as those of windows are: the upper half must have its say.
        folded = block.features ^ (block.features >> np.uint64(32))
        columns = (folded % np.uint64(self._n_features_out)).astype(np.int64)
        values = block.weights / self._unit if len(block.weights) else np.ones(len(columns))
        rows = csr_matrix((values, columns, heads), shape=(len(block.sizes), self._n_features_out))
        rows.sum_duplicates()
        return rows
