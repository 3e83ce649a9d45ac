"""Similarity vectors of pairs of documents: what is needed of each document once, then rows of numbers for pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.sets import LISTED
from neardup.errors import RecipeError
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.parallel import in_order
from neardup.recipe import Recipe
from neardup.vector.encoder import Encoder, embed
from neardup.vector.facts import facts_of, prefixes_of
from neardup.vector.methods import METHODS, alike, alike_exactly
from neardup.vector.prepared import Prepared
from neardup.vector.records import Records
from neardup.vector.rows import Rows
from neardup.vector.table import COUNT_MEASURES, PAIR_MEASURES
from neardup.vector.vector import Part, Vector

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Makes rows of texts, by name.
Maker = Callable[[pa.LargeStringArray], Mapping[str, Rows]]

_PAIRS_AT_A_TIME = 1 << 14
_CHARACTERS_AT_A_TIME = 1 << 19


class _Comparison(NamedTuple):
    """Parts that go by the same o, a and b."""

    rows: str
    weighted: bool
    minima: bool
    parts: list[tuple[int, Part]]


class Measurer:
    """Measures pairs of documents by the measures of a vector.

    A row depends on its two documents alone, and not on which of them is the left one.

    Parameters
    ----------
    vector : Vector
        The measures.
    statistics : mapping of str to Statistics
        Of the collection, from ``collection.statistics_for``; empty where the vector needs none.
    encoder : Encoder, optional
        For ``semantic``.
    threads : int
        They change the time, never the answer.

    Raises
    ------
    RecipeError
        If the vector needs statistics or an encoder that are not there.
    """

    def __init__(
        self,
        vector: Vector,
        statistics: Mapping[str, Statistics],
        *,
        encoder: Encoder | None = None,
        threads: int = 1,
    ) -> None:
        for part in vector.parts:
            if part.counted and part.counted not in statistics:
                raise RecipeError(f"{part} needs the document frequencies of {part.counted}; count them first")
        if vector.needs_encoder and encoder is None:
            raise RecipeError(
                "vector: semantic needs an encoder, an object with encode(texts): hand one over in Python, encoder=..."
            )
        self.vector = vector
        self._statistics, self._encoder, self._threads = dict(statistics), encoder, threads
        self._takes = {PAIR_MEASURES[part.name].takes for part in vector.parts if part.name in PAIR_MEASURES}
        self._sources = _sources(vector.parts)
        self._makers = list(self._all_makers())
        self._comparisons = self._compared()
        self._units = {part: self._statistics[part.counted].unit(part.recipe) for part in vector.parts if part.counted}

    def prepare(self, records: Records) -> Prepared:
        """Return documents ready to be measured: everything about single documents, once for each.

        Parameters
        ----------
        records : Records
            The documents; pairs name them by their places.
        """
        pieces = list(in_order(self._made, _pieces(records.texts), self._threads))
        rows = {name: Rows.joined([piece[name] for piece in pieces]) for name in pieces[0]} if pieces else {}
        if "titles" in self._takes:
            titles = records.titles if records.titles is not None else [None] * len(records)
            extractor = Extractor(Recipe(features="words:1"))
            rows |= _features("titles", extractor, _texts([title or "" for title in titles]))
        embeddings = None
        if self._encoder is not None and "embeddings" in self._takes:
            embeddings = embed(records.texts, self._encoder)
        return Prepared(len(records), rows, records.texts, records.times, embeddings)

    def measure(self, prepared: Prepared, left: Integers, right: Integers) -> Floats:
        """Return the similarity vectors of pairs: float64[k, r], NaN where a title or a time is not known.

        Parameters
        ----------
        prepared : Prepared
            From ``prepare``.
        left, right : int64[k]
            The places of each pair's documents.
        """
        found = np.empty((len(left), len(self.vector)))

        def fill(begin: int) -> None:
            part = slice(begin, begin + _PAIRS_AT_A_TIME)
            # The same order whichever is left: nothing can depend on it.
            self._fill(prepared, np.minimum(left[part], right[part]), np.maximum(left[part], right[part]), found[part])

        for _ in in_order(fill, range(0, len(left), _PAIRS_AT_A_TIME), self._threads):
            pass
        return found

    def _fill(self, prepared: Prepared, left: Integers, right: Integers, out: Floats) -> None:
        for rows, weighted, minima, parts in self._comparisons:
            counts = prepared.rows[rows].counts(left, right, weighted=weighted, minima=minima)
            heavy = (counts[:, 1:] < 0).any(axis=1)
            counts[heavy] = 0
            for column, part in parts:
                out[:, column] = self._value(part, counts)
            for pair in np.flatnonzero(heavy).tolist():
                products = prepared.rows[rows].products(int(left[pair]), int(right[pair]))
                for column, part in parts:
                    out[pair, column] = alike_exactly(part.measure, *products, self._units.get(part, 1))
        for column, part in enumerate(self.vector.parts):
            if part.name in METHODS:
                out[:, column] = METHODS[part.name](prepared, left, right)

    def _value(self, part: Part, counts: Integers) -> Floats:
        if part.name in COUNT_MEASURES:
            return np.asarray(COUNT_MEASURES[part.name].value(*counts.T), np.float64)
        return alike(part.measure, counts, self._units.get(part, 1))

    def _made(self, texts: Sequence[str]) -> dict[str, Rows]:
        """Return the rows of some documents."""
        found: dict[str, Rows] = {}
        array = _texts(texts)
        for maker in self._makers:
            found |= maker(array)
        return found

    def _all_makers(self) -> Iterator[Maker]:
        """Yield what makes the rows that the vector takes."""
        for source in dict.fromkeys(self._sources.values()):
            yield partial(_features, source.compared, Extractor(source.recipe, self._statistics.get(source.counted)))
        own = {part.compared for part in self.vector.parts if part.compared and not part.of_recipe}
        for name in sorted(own - {"numbers", "names"}):
            yield partial(_prefixes, name)
        if "facts" in self._takes or own & {"numbers", "names"}:
            yield _facts
        if "tokens" in self._takes:
            yield partial(_tokens, Extractor(Recipe(features="words:1"), None, LISTED))

    def _compared(self) -> list[_Comparison]:
        """Return the parts that compare features, those together that go by the same numbers."""
        found: dict[tuple[str, bool, bool], _Comparison] = {}
        for column, part in enumerate(self.vector.parts):
            if part.compared:
                rows = self._sources[part.compared].compared if part.of_recipe else part.compared
                key = rows, bool(part.weights), part.adds_minima
                found.setdefault(key, _Comparison(*key, [])).parts.append((column, part))
        return list(found.values())


def _sources(parts: Sequence[Part]) -> dict[str, Part]:
    """Return, by what parts compare, the parts whose extraction gives it: sets lie in weighted vectors of the same."""
    with_weights = {part.features: part for part in reversed(parts) if part.weights}
    found: dict[str, Part] = {}
    for part in parts:
        if part.of_recipe:
            source = part if part.weights else with_weights.get(part.features, part)
            found[part.compared] = found.get(source.compared, source)
    return found


def _texts(texts: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def _rows(block: Block) -> Rows:
    return Rows.of(block.sizes, block.features, block.weights)


def _features(name: str, extractor: Extractor, texts: pa.LargeStringArray) -> dict[str, Rows]:
    return {name: _rows(extractor(texts)).ascending()}


def _tokens(extractor: Extractor, texts: pa.LargeStringArray) -> dict[str, Rows]:
    return {"tokens": _rows(extractor(texts))}


def _prefixes(name: str, texts: pa.LargeStringArray) -> dict[str, Rows]:
    return {name: prefixes_of(texts, int(name.partition(":")[2]))}


def _facts(texts: pa.LargeStringArray) -> dict[str, Rows]:
    return facts_of(texts)._asdict()


def _pieces(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield texts in pieces of work for a thread."""
    begin = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= _CHARACTERS_AT_A_TIME:
            yield texts[begin:end]
            begin, size = end, 0
    if begin < len(texts) or not texts:
        yield texts[begin:]
