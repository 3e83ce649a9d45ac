"""Transformers for pipelines of scikit-learn: features and sketches of texts as matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from neardup.documents.tables import table_of
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import Extractor
from neardup.features.reading import gather_text_statistics
from neardup.features.sketches import MAX_ID, check_whole_number
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.kernels.grams import COUNTED
from neardup.kernels.sketches import minhash, simhash
from neardup.recipe import Recipe
from neardup.recipe.kinds import MAX_MINIMA
from neardup.runtime import default_threads, map_in_order
from neardup.text.bulk import text_buffers

#: Bytes of text that a thread takes at a time: small enough for the processor's cache.
_PIECE = 1 << 20


def texts_of(data: Any) -> pa.LargeStringArray:
    """Return texts as one Arrow array.

    Parameters
    ----------
    data : iterable of str
        A list, an array, a pandas or Polars series, an Arrow array, or a table or data frame of one column.

    Raises
    ------
    InputError
        If the data is a single text or not one column of texts, or holds anything else, such as None.
    """
    table = table_of(_only_column(data))
    if table.num_columns != 1:
        raise InputError(f"{table.num_columns} columns are not one column of texts; give one, such as data['text']")
    column = table.column(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise InputError(f"text {first} is None; leave such texts out, or give '' in their place")
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InputError(f"{type(data).__name__} of {kind} holds no texts; give str, which UTF-8 can write")
    try:
        texts = pa.concat_arrays([pa.array([], pa.large_string()), *column.cast(pa.large_string()).chunks])
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError("a text is no valid UTF-8; decode the texts before") from None
    return texts


def _only_column(data: Any) -> Any:
    """Return the column of a two-dimensional array or data frame with one column; else the data."""
    if getattr(data, "ndim", 1) != 2 or data.shape[1] != 1:
        return data
    return data.iloc[:, 0] if hasattr(data, "iloc") else data[:, 0]


def pieces(texts: pa.LargeStringArray) -> Iterator[pa.LargeStringArray]:
    """Yield texts in pieces of about ``_PIECE`` bytes, at least one."""
    _, ends = text_buffers(texts)
    cuts = np.searchsorted(ends, np.arange(ends[0], ends[-1], _PIECE)[1:])
    bounds = [0, *np.unique(cuts).tolist(), len(texts)]
    for begin, end in pairwise(bounds):
        yield texts.slice(begin, end - begin)


Integers = npt.NDArray[np.int64]

_MAX_THREADS = 1024
_FEATURES = Recipe().features


class TextTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base of all transformers: checks texts, learns from the collection, and makes rows in pieces.

    Attributes
    ----------
    recipe_ : Recipe
        The recipe of the features, with all defaults filled in.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None if the features do not depend on them.
    """

    features: str
    normalize: str
    stop_words: str
    antecedents: str
    clip: str
    threads: int | None
    content: str

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the document frequencies of texts, which ``clip``, ``weights`` and ``terms`` need.

        Parameters
        ----------
        X : iterable of str
            The texts, at least one: see ``texts_of``.
        y : object
            Ignored.

        Raises
        ------
        InputError
            If the texts are no column of texts, or there are none.
        RecipeError
            If a parameter is unknown, out of range or does not fit another one, or clipping leaves no feature.
        """
        return self._fit(texts_of(X))

    def transform(self, X: Any) -> Any:
        """Return a row for each text; it does not depend on the other texts of the call.

        Parameters
        ----------
        X : iterable of str
            The texts.

        Raises
        ------
        NotFittedError
            If ``fit`` was not called before.
        InputError
            If the texts are no column of texts.
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
        """Check the parameters that are not part of the recipe, and return the number of columns."""
        raise NotImplementedError

    def _extractor_of(self, recipe: Recipe, statistics: Statistics | None) -> Extractor:
        return Extractor(recipe, statistics)

    def _rows(self, block: Block, heads: Integers) -> Any:
        """Return the rows of texts; the features of text d are block.features[heads[d]:heads[d + 1]]."""
        raise NotImplementedError

    def _fit(self, texts: pa.LargeStringArray) -> Self:
        recipe, columns, threads = self._recipe(), self._columns(), self._threads()
        if not len(texts):
            raise InputError("there is no text to learn from; give at least one")
        statistics = gather_text_statistics(pieces(texts), recipe, threads=threads) if recipe.needs_statistics else None
        self._extractor = self._extractor_of(recipe, statistics)
        self.recipe_, self.statistics_, self._n_features_out = recipe, statistics, columns
        return self

    def _transform(self, texts: pa.LargeStringArray) -> Any:
        parts = list(map_in_order(self._transform_piece, pieces(texts), self._threads()))
        return vstack(parts, "csr") if issparse(parts[0]) else np.concatenate(parts)

    def _transform_piece(self, texts: pa.LargeStringArray) -> Any:
        block = self._extractor(texts)
        return self._rows(block, np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64))

    def _threads(self) -> int:
        if self.threads is None:
            return default_threads()
        return check_whole_number(self.threads, "threads", 1, _MAX_THREADS)

    def _choices(self) -> dict[str, Any]:
        names = ("content", "features", "normalize", "stop_words", "antecedents", "clip")
        return {name: getattr(self, name) for name in names}


_MAX_COLUMNS = 1 << 62


@dataclass(eq=False, repr=False)
class FeatureTransformer(TextTransformer):
    """Texts to a sparse matrix of their features: the sets or weighted vectors that a recipe compares.

    The value of a feature is 1 for sets, the number of its repeats for ``:multiset`` and ``weights="tf"``, idf =
    ln(1 + N / df) for ``"idf"``, and their product for ``"tfidf"``, for N fitted texts of which df contain the feature;
    a feature that no fitted text contains has df 1. idf is rounded to multiples of 2**-16 or coarser, as the join
    rounds it (``neardup.features.statistics``), so measures of rows are those of the recipe.

    Parameters
    ----------
    features, normalize, stop_words, antecedents, clip, weights : str
        As in ``neardup.recipe.Recipe``; ``features="terms:64"`` gives the 64 heaviest terms of each text. Clipping
        takes ``weights="tf"`` in the place of ``:multiset``.
    n_columns : int
        The number of columns n, 1 to 2**62. A feature x, a 64-bit hash, is in column (x xor (x >> 32)) mod n;
        features in the same column are added up. A feature shares its column with one of m others with a chance of
        about m / n: raising n separates more of them, and makes models of the rows larger.
    threads : int, optional
        Threads to use, all processors by default. The number does not change the result.
    content : str
        As in ``neardup.recipe.Recipe``; ``content="html"`` takes the main content of pages.

    Attributes
    ----------
    recipe_ : Recipe
        The recipe of the features, with all defaults filled in.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None if the features do not depend on them.

    Notes
    -----
    ``transform`` gives a ``scipy.sparse.csr_matrix`` of float64 [texts, n_columns], sorted, without stored zeros; a
    text without features has an empty row. Columns have no names, because a hash does not say what was hashed
    [Weinberger et al., ICML 2009, 2, there with signs, with which sets would not be sets].

    Examples
    --------
    >>> from neardup.transformers import FeatureTransformer
    >>> rows = FeatureTransformer("words:2").fit_transform(["a rose is a rose", "a rose is red"])
    >>> rows.shape
    (2, 1048576)
    >>> (rows @ rows.T).toarray().tolist()
    [[3.0, 2.0], [2.0, 3.0]]
    """

    features: str = _FEATURES
    normalize: str = ""
    stop_words: str = ""
    antecedents: str = ""
    clip: str = ""
    weights: str = ""
    n_columns: int = 1 << 20
    threads: int | None = None
    content: str = ""

    def _recipe(self) -> Recipe:
        recipe = Recipe(measure="cosine", weights=self.weights, **self._choices())
        if recipe.clip and recipe.parsed_features.multiset:
            raise RecipeError(
                f"clip {recipe.clip!r} removes single repeats, which features {recipe.features!r} count; "
                "leave it out, or leave out :multiset and use weights 'tf'"
            )
        return recipe

    def _columns(self) -> int:
        return check_whole_number(self.n_columns, "n_columns", 1, _MAX_COLUMNS)

    def _extractor_of(self, recipe: Recipe, statistics: Statistics | None) -> Extractor:
        self._unit = 1
        if statistics is not None and recipe.weights in ("idf", "tfidf"):
            self._unit = 1 << statistics.idf_bits(recipe)
        return Extractor(recipe, statistics, COUNTED if recipe.parsed_features.multiset else None)

    def _rows(self, block: Block, heads: Integers) -> Any:
        # Features may all be multiples of a number, as those of windows are, so the upper half is mixed in.
        folded = block.features ^ (block.features >> np.uint64(32))
        columns = (folded % np.uint64(self._n_features_out)).astype(np.int64)
        values = block.weights / self._unit if len(block.weights) else np.ones(len(columns))
        rows = csr_matrix((values, columns, heads), shape=(len(block.sizes), self._n_features_out))
        rows.sum_duplicates()
        return rows


_BITS = 64
#: The outputs of ``SimHashTransformer``, with their numbers of columns.
_OUTPUTS = {"bits": _BITS, "values": 1}


@dataclass(eq=False, repr=False)
class SketchTransformer(ClassNamePrefixFeaturesOutMixin, TextTransformer):  # type: ignore[misc]
    """Texts to MinHash sketches: the share of equal columns of two rows estimates the Jaccard of their features.

    Parameters
    ----------
    num_perm : int
        The number of minima K, 1 to 4096: the standard error is sqrt(J (1 - J) / K).
    seed : int
        Chooses the hash functions, 0 to 2**64 - 1. Only rows with the same seed can be compared.
    features, normalize, stop_words, antecedents, clip : str
        As in ``neardup.recipe.Recipe``.
    threads : int, optional
        Threads to use, all processors by default. The number does not change the result.
    content : str
        As in ``neardup.recipe.Recipe``; ``content="html"`` takes the main content of pages.

    Attributes
    ----------
    recipe_ : Recipe
        The recipe of the features, with all defaults filled in.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None if the features do not depend on them.

    Notes
    -----
    ``transform`` gives uint64 [texts, num_perm], the ``hashvalues`` of a ``neardup.MinHash`` of the features.
    The row of a text without features is 2**64 - 1 in all columns. Two such rows are equal, but that does not make the
    texts similar [Dahlgaard, Knudsen & Thorup, FOCS 2017, arXiv 1704.04370, 2]. The minima are identifiers, not
    quantities: compare them, do not add them.

    Examples
    --------
    >>> from neardup.transformers import SketchTransformer
    >>> a, b = SketchTransformer(features="words:2").fit_transform(["a rose is a rose", "A rose is a rose."])
    >>> float((a == b).mean())
    1.0
    """

    num_perm: int = 128
    seed: int = 1
    features: str = _FEATURES
    normalize: str = ""
    stop_words: str = ""
    antecedents: str = ""
    clip: str = ""
    threads: int | None = None
    content: str = ""

    def _recipe(self) -> Recipe:
        return Recipe(**self._choices())

    def _columns(self) -> int:
        self._seed = np.uint64(check_whole_number(self.seed, "seed", 0, MAX_ID))
        return check_whole_number(self.num_perm, "num_perm", 1, MAX_MINIMA)

    def _rows(self, block: Block, heads: Integers) -> Any:
        rows = np.empty((len(block.sizes), self._n_features_out), np.uint64)
        minhash(block.features, heads, self._seed, rows)
        return rows


@dataclass(eq=False, repr=False)
class SimHashTransformer(ClassNamePrefixFeaturesOutMixin, TextTransformer):  # type: ignore[misc]
    """Texts to 64-bit SimHashes: the rows of texts at a small angle differ in few bits.

    Parameters
    ----------
    features, normalize, stop_words, antecedents, clip, weights : str
        As in ``neardup.recipe.Recipe``. With weights, bit j is that of more weight, not of more features.
    output : {"bits", "values"}
        ``bits`` for uint8 [texts, 64], 0 or 1, the lowest bit in column 0; ``values`` for uint64 [texts, 1].
    threads : int, optional
        Threads to use, all processors by default. The number does not change the result.
    content : str
        As in ``neardup.recipe.Recipe``; ``content="html"`` takes the main content of pages.

    Attributes
    ----------
    recipe_ : Recipe
        The recipe of the features, with all defaults filled in.
    statistics_ : Statistics or None
        The document frequencies of the fitted texts; None if the features do not depend on them.

    Notes
    -----
    Bit j is 1 if features with more than half of the weight have it set in their hashes; the share of bits in which
    two rows differ estimates (angle between the vectors) / pi. A text without features has all bits 0 [Charikar, STOC
    2002, 3; Manku, Jain & Das Sarma, WWW 2007, 2].

    Examples
    --------
    >>> from neardup.transformers import SimHashTransformer
    >>> a, b = SimHashTransformer("words:2").fit_transform(["a rose is a rose", "A rose is a rose."])
    >>> len(a), int((a != b).sum())
    (64, 0)
    """

    features: str = _FEATURES
    normalize: str = ""
    stop_words: str = ""
    antecedents: str = ""
    clip: str = ""
    weights: str = ""
    output: str = "bits"
    threads: int | None = None
    content: str = ""

    def _recipe(self) -> Recipe:
        # The measure and its threshold make the recipe valid; the features do not depend on them.
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
