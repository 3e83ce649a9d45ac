"""What is known of the documents of pairs: texts, and where they have them titles and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.facts import Rows, facts_of, prefixes_of
from neardup.classifier.vector import COUNT_MEASURES, HALF_CHANGED, PAIR_MEASURES, Part, Vector
from neardup.errors import RecipeError
from neardup.features.embeddings import Encoder, cosine_counts, embed
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.kernels import Floats, Integers
from neardup.kernels.grams import LISTED
from neardup.kernels.pairs import edit_distances
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, similarities
from neardup.runtime import map_in_order

#: The time of a document whose time is not known.
NO_TIME = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Documents whose pairs are to be measured."""

    #: What is compared, content already taken from pages.
    texts: Sequence[str]
    #: None for a document without one, or where no measure takes them.
    titles: Sequence[str | None] | None = None
    #: int64[n]: microseconds since 1970, ``NO_TIME`` where it is not known.
    times: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.texts)


class Prepared(NamedTuple):
    """Documents that are ready to be measured in pairs."""

    documents: int
    #: What is compared, by name: features with their weights, ``tokens``, ``places``, ``facts``, ``titles``.
    rows: Mapping[str, Rows]
    texts: Sequence[str]
    #: int64[n]: microseconds since 1970; ``NO_TIME`` where it is not known.
    times: npt.NDArray[np.int64] | None
    #: float64[n, width]: rows of length 1.
    embeddings: npt.NDArray[np.float64] | None


Method = Callable[[Prepared, Integers, Integers], Floats]

_MICROSECONDS_AN_HOUR = 3_600_000_000
_NONE = np.empty(0, np.int64)


def alike(name: str, counts: Integers, unit: int = 1) -> Floats:
    """Return a similarity of pairs from o, a and b, where a and b may be 0: two empty sides are alike, one is not."""
    empty = counts[:, 1:] == 0
    found = similarities(name, np.column_stack([counts[:, 0], np.maximum(counts[:, 1:], 1)]), unit)
    found[empty.any(axis=1)] = 0.0
    found[empty.all(axis=1)] = 1.0
    return found


def alike_exactly(name: str, o: int, a: int, b: int, unit: int = 1) -> float:
    """Return the same of one pair whose o, a and b are too large for 64 bits."""
    if not (a and b):
        return 0.0
    known = measure(name)
    if known.distance:
        return float(known.similarity(0.0, (a + b - 2 * o) / unit, 0.0))
    return float(known.similarity(float(o), float(a), float(b)))


def _sizes(prepared: Prepared, left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return the tokens of the shorter and of the longer text of each pair."""
    sizes = prepared.rows["tokens"].sums
    return np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])


def _share(part: Integers, whole: Integers, none: Floats | float) -> Floats:
    """Return part / whole, and ``none`` where the whole is nothing."""
    return np.where(whole > 0, part / np.maximum(whole, 1), none)


def _length_ratio(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    shorter, longer = _sizes(prepared, left, right)
    return _share(shorter, longer, 1.0)


def _word_edit(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    _, longer = _sizes(prepared, left, right)
    distances = np.empty(len(left), np.int64)
    edit_distances(prepared.rows["tokens"].heads, prepared.rows["tokens"].features, left, right, distances, _NONE)
    return _share(longer - distances, longer, 1.0)


def _in_order(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    shorter, longer = _sizes(prepared, left, right)
    lengths = np.empty(len(left), np.int64)
    edit_distances(prepared.rows["tokens"].heads, prepared.rows["tokens"].features, left, right, _NONE, lengths)
    return _share(lengths, shorter, (longer == 0).astype(np.float64))


def _edit(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    ones, others = [prepared.texts[i] for i in left], [prepared.texts[i] for i in right]
    longer = np.array([max(len(one), len(other)) for one, other in zip(ones, others, strict=True)], np.int64)
    distances = np.asarray(cpdist(ones, others, scorer=Levenshtein.distance, dtype=np.int64, workers=1))
    return _share(longer - distances, longer, 1.0)


def _at_their_places(prepared: Prepared, left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return how many places of facts both texts of a pair have, and how many of them hold the same in both.

    A place may come several times in a text, with other facts; it counts once, and so it may hold more than one.
    """
    places = prepared.rows["places"].counts(left, right)[:, 0]
    facts = prepared.rows["facts"].counts(left, right)[:, 0]
    return places, np.minimum(facts, places)


def _facts(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    places, same = _at_their_places(prepared, left, right)
    return _share(same, places, 1.0)


def _facts_changed(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    places, same = _at_their_places(prepared, left, right)
    return np.asarray((places - same) / (places - same + HALF_CHANGED), np.float64)


def _title(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    counts = prepared.rows["titles"].counts(left, right)
    found = alike("dice", counts)
    found[(counts[:, 1:] == 0).any(axis=1)] = np.nan
    return found


def _hours_apart(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    if prepared.times is None:
        return np.full(len(left), np.nan)
    one, other = prepared.times[left], prepared.times[right]
    # As unsigned numbers: a difference may need 64 bits.
    apart = np.maximum(one, other).view(np.uint64) - np.minimum(one, other).view(np.uint64)
    return np.where((one != NO_TIME) & (other != NO_TIME), np.log1p(apart / _MICROSECONDS_AN_HOUR), np.nan)


def _semantic(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    if prepared.embeddings is None:
        return np.full(len(left), np.nan)
    return similarities("semantic", cosine_counts(prepared.embeddings, left, right))


METHODS: Mapping[str, Method] = MappingProxyType(
    {
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
)


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

    Raises ``RecipeError`` if the vector needs statistics or an encoder that are not there.
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
        """Return documents ready to be measured: everything about single documents, once for each."""
        pieces = list(map_in_order(self._made, _pieces(records.texts), self._threads))
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
        """Return the similarity vectors of pairs: float64[k, r], NaN where a title or a time is not known."""
        found = np.empty((len(left), len(self.vector)))

        def fill(begin: int) -> None:
            part = slice(begin, begin + _PAIRS_AT_A_TIME)
            # The same order whichever is left: nothing can depend on it.
            self._fill(prepared, np.minimum(left[part], right[part]), np.maximum(left[part], right[part]), found[part])

        for _ in map_in_order(fill, range(0, len(left), _PAIRS_AT_A_TIME), self._threads):
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
            yield _facts_of
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


def _facts_of(texts: pa.LargeStringArray) -> dict[str, Rows]:
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
