"""The measurer: it turns pairs of documents into similarity vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.feature_rows import FeatureRows, extract_facts, extract_prefixes
from neardup.classifier.vector import (
    COUNT_MEASURES,
    HALF_CHANGED,
    NO_TIME,
    PAIR_MEASURES,
    Records,
    Vector,
    VectorComponent,
)
from neardup.errors import RecipeError
from neardup.features.extraction import Encoder, Extractor, cosine_counts, embed
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.kernels import Floats, Integers
from neardup.kernels.grams import LISTED
from neardup.kernels.pairs import edit_distances
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, similarities
from neardup.runtime import map_in_order


class PreparedDocuments(NamedTuple):
    """Documents with the inputs of all measures, each computed once."""

    documents: int
    #: By name: the features of a component, ``tokens``, ``numbers``, ``names``, ``places``, ``facts``, ``titles``.
    rows: Mapping[str, FeatureRows]
    texts: Sequence[str]
    times: Integers  #: int64[n]: microseconds since 1970, or ``NO_TIME``
    embeddings: Floats  #: float64[n, width]: rows of length 1; nothing if no measure compares embeddings


PairFunction = Callable[[PreparedDocuments, Integers, Integers], Floats]

_MICROSECONDS_PER_HOUR = 3_600_000_000
_UNUSED = np.empty(0, np.int64)


def similarities_with_empty(name: str, counts: Integers, unit: int = 1) -> Floats:
    """Return the similarity of each pair from its o, a and b (int64[k, 3]).

    Two empty sides have similarity 1; an empty side and another one have 0.
    """
    empty = counts[:, 1:] == 0
    values = similarities(name, np.column_stack([counts[:, 0], np.maximum(counts[:, 1:], 1)]), unit)
    values[empty.any(axis=1)] = 0.0
    values[empty.all(axis=1)] = 1.0
    return values


def exact_similarity(name: str, o: int, a: int, b: int, unit: int = 1) -> float:
    """Return the similarity of one pair whose o, a and b do not fit into 64 bits."""
    if not (a and b):
        return 0.0
    formula = measure(name)
    if formula.distance:
        return float(formula.similarity(0.0, (a + b - 2 * o) / unit, 0.0))
    return float(formula.similarity(float(o), float(a), float(b)))


def _token_counts(documents: PreparedDocuments, left: Integers, right: Integers) -> tuple[Integers, Integers]:
    sizes = documents.rows["tokens"].sums
    return np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])


def _ratio(part: Integers, whole: Integers, undefined: Floats | float) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1), undefined)


def _length_ratio(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    shorter, longer = _token_counts(documents, left, right)
    return _ratio(shorter, longer, 1.0)


def _word_edit(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    tokens, (_, longer) = documents.rows["tokens"], _token_counts(documents, left, right)
    distances = np.empty(len(left), np.int64)
    edit_distances(tokens.offsets, tokens.features, left, right, distances, _UNUSED)
    return _ratio(longer - distances, longer, 1.0)


def _in_order(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    tokens, (shorter, longer) = documents.rows["tokens"], _token_counts(documents, left, right)
    lengths = np.empty(len(left), np.int64)
    edit_distances(tokens.offsets, tokens.features, left, right, _UNUSED, lengths)
    return _ratio(lengths, shorter, (longer == 0).astype(np.float64))


def _edit(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    left_texts, right_texts = ([documents.texts[i] for i in side] for side in (left, right))
    longer = np.array([max(map(len, texts)) for texts in zip(left_texts, right_texts, strict=True)], np.int64)
    distances = np.asarray(cpdist(left_texts, right_texts, scorer=Levenshtein.distance, dtype=np.int64, workers=1))
    return _ratio(longer - distances, longer, 1.0)


def _fact_counts(documents: PreparedDocuments, left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return the number of places of facts in both texts, and of these with the same fact."""
    # A text may have a place several times with different facts.
    places = documents.rows["places"].pair_counts(left, right)[:, 0]
    facts = documents.rows["facts"].pair_counts(left, right)[:, 0]
    return places, np.minimum(facts, places)


def _facts(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    places, same = _fact_counts(documents, left, right)
    return _ratio(same, places, 1.0)


def _facts_changed(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    places, same = _fact_counts(documents, left, right)
    return np.asarray((places - same) / (places - same + HALF_CHANGED), np.float64)


def _title(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    counts = documents.rows["titles"].pair_counts(left, right)
    values = similarities_with_empty("dice", counts)
    values[(counts[:, 1:] == 0).any(axis=1)] = np.nan
    return values


def _hours_apart(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    first, second = documents.times[left], documents.times[right]
    # Unsigned, because the difference may need all 64 bits.
    difference = np.maximum(first, second).view(np.uint64) - np.minimum(first, second).view(np.uint64)
    known = (first != NO_TIME) & (second != NO_TIME)
    return np.where(known, np.log1p(difference / _MICROSECONDS_PER_HOUR), np.nan)


def _semantic(documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
    return similarities("semantic", cosine_counts(documents.embeddings, left, right))


PAIR_FUNCTIONS: dict[str, PairFunction] = {
    "length_ratio": _length_ratio,
    "word_edit": _word_edit,
    "in_order": _in_order,
    "edit": _edit,
    "facts": _facts,
    "facts_changed": _facts_changed,
    "title": _title,
    "hours_apart": _hours_apart,
    "semantic": _semantic,
}

#: Returns rows of texts by name.
RowExtractor = Callable[[pa.LargeStringArray], Mapping[str, FeatureRows]]

_BLOCK_PAIRS = 1 << 14
_PIECE_CHARACTERS = 1 << 19


class Measurer:
    """Measures pairs of documents by the components of a vector.

    The result for a pair depends on its two documents only, and not on their order. Raises ``RecipeError`` if the
    vector needs document frequencies or an encoder and they are missing.
    """

    def __init__(
        self,
        vector: Vector,
        statistics: Mapping[str, Statistics],
        *,
        encoder: Encoder | None = None,
        threads: int = 1,
    ) -> None:
        for component in vector.components:
            if component.df_features and component.df_features not in statistics:
                raise RecipeError(
                    f"{component} needs the document frequencies of {component.df_features}; count them first"
                )
        if vector.needs_encoder and encoder is None:
            raise RecipeError(
                "vector: semantic needs an encoder, an object with encode(texts); pass it in Python, encoder=..."
            )
        self.vector = vector
        self._statistics, self._encoder, self._threads = dict(statistics), encoder, threads
        self._inputs = {PAIR_MEASURES[part.name].input for part in vector.components if part.name in PAIR_MEASURES}
        self._sources = _row_sources(vector.components)
        self._extractors = list(self._row_extractors())
        self._groups = self._grouped_components()
        self._units = {
            component: self._statistics[component.df_features].unit(component.recipe)
            for component in vector.components
            if component.df_features
        }

    def prepare(self, records: Records) -> PreparedDocuments:
        """Return the documents with everything that depends on a single document."""
        pieces = list(map_in_order(self._extract_rows, _text_pieces(records.texts), self._threads))
        rows = {name: FeatureRows.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        if "titles" in self._inputs:
            titles = records.titles or [None] * len(records)
            extractor = Extractor(Recipe(features="words:1"))
            rows |= _feature_rows("titles", extractor, _text_array([title or "" for title in titles]))
        embeddings, times = np.empty((0, 0)), records.times
        if self._encoder is not None and "embeddings" in self._inputs:
            embeddings = embed(records.texts, self._encoder)
        if times is None:
            times = np.full(len(records), NO_TIME)
        return PreparedDocuments(len(records), rows, records.texts, times, embeddings)

    def measure(self, documents: PreparedDocuments, left: Integers, right: Integers) -> Floats:
        """Return the similarity vectors of k pairs: float64[k, r], NaN for a missing title or time.

        ``left`` and ``right`` (int64[k]) are rows of ``documents``.
        """
        x = np.empty((len(left), len(self.vector)))

        def fill(begin: int) -> None:
            part = slice(begin, begin + _BLOCK_PAIRS)
            # In one fixed order, so that no measure can depend on which document is the left one.
            self._fill(documents, np.minimum(left[part], right[part]), np.maximum(left[part], right[part]), x[part])

        for _ in map_in_order(fill, range(0, len(left), _BLOCK_PAIRS), self._threads):
            pass
        return x

    def _fill(self, documents: PreparedDocuments, left: Integers, right: Integers, out: Floats) -> None:
        for (name, weighted, minima), components in self._groups.items():
            rows = documents.rows[name]
            counts = rows.pair_counts(left, right, weighted=weighted, minima=minima)
            too_large = (counts[:, 1:] < 0).any(axis=1)
            counts[too_large] = 0
            for column, component in components:
                out[:, column] = self._values(component, counts)
            for pair in np.flatnonzero(too_large).tolist():
                products = rows.exact_products(int(left[pair]), int(right[pair]))
                for column, component in components:
                    out[pair, column] = exact_similarity(component.measure, *products, self._units.get(component, 1))
        for column, component in enumerate(self.vector.components):
            if component.name in PAIR_FUNCTIONS:
                out[:, column] = PAIR_FUNCTIONS[component.name](documents, left, right)

    def _values(self, component: VectorComponent, counts: Integers) -> Floats:
        if component.name in COUNT_MEASURES:
            return np.asarray(COUNT_MEASURES[component.name].value(*counts.T), np.float64)
        return similarities_with_empty(component.measure, counts, self._units.get(component, 1))

    def _extract_rows(self, texts: Sequence[str]) -> dict[str, FeatureRows]:
        array = _text_array(texts)
        return {name: rows for extract in self._extractors for name, rows in extract(array).items()}

    def _row_extractors(self) -> Iterator[RowExtractor]:
        for source in dict.fromkeys(self._sources.values()):
            extractor = Extractor(source.recipe, self._statistics.get(source.df_features))
            yield partial(_feature_rows, source.row_name, extractor)
        special = {part.row_name for part in self.vector.components if part.row_name and not part.has_recipe}
        for name in sorted(special - {"numbers", "names"}):
            yield partial(_prefix_rows, name)
        if "facts" in self._inputs or special & {"numbers", "names"}:
            yield lambda texts: extract_facts(texts)._asdict()
        if "tokens" in self._inputs:
            tokenizer = Extractor(Recipe(features="words:1"), None, LISTED)
            yield lambda texts: {"tokens": _rows(tokenizer(texts))}

    def _grouped_components(self) -> dict[tuple[str, bool, bool], list[tuple[int, VectorComponent]]]:
        """Return components and their columns by rows, whether weights count, and whether the smaller are summed."""
        groups: dict[tuple[str, bool, bool], list[tuple[int, VectorComponent]]] = {}
        for column, component in enumerate(self.vector.components):
            if component.row_name:
                source = self._sources[component.row_name].row_name if component.has_recipe else component.row_name
                key = source, bool(component.weights), component.uses_minima
                groups.setdefault(key, []).append((column, component))
        return groups


def _row_sources(components: Sequence[VectorComponent]) -> dict[str, VectorComponent]:
    """Return, by row name, the component whose extraction gives the rows: weighted vectors contain their sets."""
    weighted = {component.features: component for component in reversed(components) if component.weights}
    sources: dict[str, VectorComponent] = {}
    for component in components:
        if component.has_recipe:
            source = component if component.weights else weighted.get(component.features, component)
            sources[component.row_name] = sources.get(source.row_name, source)
    return sources


def _text_array(texts: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def _rows(block: Block) -> FeatureRows:
    return FeatureRows.from_sizes(block.sizes, block.features, block.weights)


def _feature_rows(name: str, extractor: Extractor, texts: pa.LargeStringArray) -> dict[str, FeatureRows]:
    return {name: _rows(extractor(texts)).sort()}


def _prefix_rows(name: str, texts: pa.LargeStringArray) -> dict[str, FeatureRows]:
    return {name: extract_prefixes(texts, int(name.partition(":")[2]))}


def _text_pieces(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield consecutive texts in pieces of work for a thread; one empty piece for no texts."""
    begin = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= _PIECE_CHARACTERS:
            yield texts[begin:end]
            begin, size = end, 0
    if begin < len(texts) or not texts:
        yield texts[begin:]
