"""What all transformers of texts have in common."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from neardup.errors import InputError
from neardup.features.extraction import Extractor
from neardup.features.gathering import gather_texts
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.parallel import default_threads, in_order
from neardup.recipe import Recipe
from neardup.sketches.items import whole_number
from neardup.transformers.texts import pieces, texts_of

Integers = npt.NDArray[np.int64]

_MOST_THREADS = 1024


class TextTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What all have in common: texts are checked, the collection is learnt from, and rows are made in pieces.

    Attributes
    ----------
    recipe_ : Recipe
        What a text's features are, with all that was left to its default.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None where features do not depend on them.
    """

    features: str
    normalize: str
    stop_words: str
    antecedents: str
    clip: str
    threads: int | None
    content: str

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from texts what features need to know of a collection: ``clip``, ``weights`` and ``terms`` do.

        Parameters
        ----------
        X : iterable of str
            The texts, at least one: see ``texts_of``.
        y : object
            Nothing is done with it.

        Raises
        ------
        InputError
            If it is no column of texts, or there is none.
        RecipeError
            If a parameter is unknown, out of range or does not fit another, or clipping leaves no feature.
        """
        return self._fit(texts_of(X))

    def transform(self, X: Any) -> Any:
        """Return a row for each text, however the texts are parted among calls.

        Parameters
        ----------
        X : iterable of str
            The texts.

        Raises
        ------
        NotFittedError
            If ``fit`` was not called before.
        InputError
            If it is no column of texts.
        """
        check_is_fitted(self)
        return self._transform(texts_of(X))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return ``fit(X).transform(X)``, which reads the texts once."""
        texts = texts_of(X)
        return self._fit(texts)._transform(texts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _recipe(self) -> Recipe:
        raise NotImplementedError

    def _columns(self) -> int:
        """Check what is no part of the recipe; return the number of columns."""
        raise NotImplementedError

    def _extractor_of(self, recipe: Recipe, statistics: Statistics | None) -> Extractor:
        return Extractor(recipe, statistics)

    def _rows(self, block: Block, heads: Integers) -> Any:
        """Return the rows of some texts; the features of text d are block.features[heads[d]:heads[d + 1]]."""
        raise NotImplementedError

    def _fit(self, texts: pa.LargeStringArray) -> Self:
        recipe, columns, threads = self._recipe(), self._columns(), self._threads()
        if not len(texts):
            raise InputError("no text is nothing to learn from; give at least one")
        statistics = gather_texts(pieces(texts), recipe, threads=threads) if recipe.needs_statistics else None
        self._extractor = self._extractor_of(recipe, statistics)
        self.recipe_, self.statistics_, self._n_features_out = recipe, statistics, columns
        return self

    def _transform(self, texts: pa.LargeStringArray) -> Any:
        parts = list(in_order(self._part, pieces(texts), self._threads()))
        return vstack(parts, "csr") if issparse(parts[0]) else np.concatenate(parts)

    def _part(self, texts: pa.LargeStringArray) -> Any:
        block = self._extractor(texts)
        return self._rows(block, np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64))

    def _threads(self) -> int:
        if self.threads is None:
            return default_threads()
        return whole_number(self.threads, "threads", 1, _MOST_THREADS)

    def _choices(self) -> dict[str, Any]:
        names = ("content", "features", "normalize", "stop_words", "antecedents", "clip")
        return {name: getattr(self, name) for name in names}
