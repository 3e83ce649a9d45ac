"""The similarities of all pairs of a sample by one recipe, counted exactly: histograms and close pairs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.exploration.valley import Valley, find_valley
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, gather_statistics, largest_square_sum, pieces
from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore, Vectors
from neardup.keep.pairs import PairArrays
from neardup.kernels import Integers, Words
from neardup.kernels.bounds import OVERLAP
from neardup.kernels.grams import COUNTED
from neardup.kernels.postings import (
    COUNTS,
    EarlierPostings,
    count_numbered,
    count_pairs,
    fill_earlier_postings,
    number_features,
)
from neardup.kernels.tables import number_keys
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.runtime import map_in_order
from neardup.search.nearest import document_rows, document_values, empty_table, formula_code, kind_of

#: Bin i holds the pairs with i/100 < s <= (i + 1)/100, in exact fractions; those that share nothing are apart.
BINS = 100
#: Pairs are counted at or above these similarities, and examples are shown near them.
CUTOFFS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def per_million(pairs: int, of: int) -> float:
    """Return pairs per million of ``of``."""
    return 1e6 * pairs / of


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The similarities of all pairs of a sample by one recipe."""

    #: The features, or the name of the recipe.
    name: str
    #: The recipe of the comparison; its threshold has no effect.
    recipe: Recipe
    #: The length of its n-grams or q-grams; None for a named recipe.
    n: int | None
    #: Documents of the sample, and how many of these have no feature.
    documents: int
    empty: int
    pairs: int
    #: Pairs that share nothing.
    zero: int
    #: ``BINS`` counts: pairs with i/100 < s <= (i + 1)/100.
    counts: tuple[int, ...]
    #: ``BINS + 1`` counts: pairs with a similarity of exactly i/100.
    edges: tuple[int, ...]
    #: The valley between unrelated and related pairs, None if there is none.
    valley: Valley | None
    #: The median number of features of a document.
    typical: int = 0

    @property
    def features(self) -> str:
        """The compared features in the notation of recipes, such as words:4:multiset."""
        return self.recipe.features

    @property
    def measure(self) -> str:
        """The measure in the notation of recipes."""
        return self.recipe.measure

    @property
    def equal(self) -> int:
        """Pairs of similarity 1."""
        return self.edges[BINS]

    @property
    def above(self) -> tuple[tuple[float, int], ...]:
        """Each of ``CUTOFFS`` with the number of pairs at or above it."""
        return tuple((cutoff, self.at_least(round(cutoff * BINS))) for cutoff in CUTOFFS)

    def at_least(self, hundredths: int) -> int:
        """Return the number of pairs with a similarity of at least this many hundredths."""
        if hundredths <= 0:
            return self.pairs
        return sum(self.counts[hundredths:]) + self.edges[hundredths]

    def cumulative(self) -> npt.NDArray[np.float64]:
        """Return the number of pairs at or above each hundredth: float64[101]."""
        return np.array([self.at_least(i) for i in range(BINS + 1)], np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "name": self.name,
            "features": self.features,
            "normalize": self.recipe.normalize,
            "measure": self.measure,
            "weights": self.recipe.weights,
            "n": self.n,
            "multiset": self.recipe.parsed_features.multiset,
            "documents": self.documents,
            "empty": self.empty,
            "typical": self.typical,
            "pairs": self.pairs,
            "zero": self.zero,
            "equal": self.equal,
            "counts": list(self.counts),
            "edges": list(self.edges),
            "above": [
                {"cutoff": cutoff, "pairs": pairs, "per_million": round(per_million(pairs, self.pairs), 3)}
                for cutoff, pairs in self.above
            ],
            "valley": None if self.valley is None else asdict(self.valley),
        }


#: Documents per task of a thread, and the least capacity of its buffer of close pairs.
_DOCUMENTS_PER_TASK = 64
_PAIR_CAPACITY = 1 << 16
#: A bound of 101 hundredths, which no pair reaches.
NO_CLOSE_PAIRS = 101


class AllPairs(NamedTuple):
    """The similarities of all pairs of some documents."""

    #: Pairs that have nothing in common.
    zero: int
    #: int64[100]: pairs with i/100 < s <= (i + 1)/100.
    counts: Integers
    #: int64[101]: pairs of similarity i/100 exactly.
    edges: Integers
    #: The pairs at or above the bound ``least``, by positions among the documents.
    close: PairArrays


def all_pairs(
    vectors: Vectors, measure: str, *, unit: int = 1, least: int = NO_CLOSE_PAIRS, threads: int = 1
) -> AllPairs:
    """Compare all pairs of documents, exactly; one without features shares nothing with any other.

    For ``hamming`` a document has one 64-bit value or none. A distance counts as the similarity that stands for it
    (``neardup.recipe.measures``); ``unit`` is the value of o, a and b that stands for 1. ``close`` collects pairs of at
    least ``least`` hundredths, 24 bytes each; 101 collects none.
    """
    formula, rows, totals = _prepare_rows(vectors, measure)
    count = len(totals)
    local = threading.local()

    def search(begin: int) -> tuple[Integers, Integers, list[Integers]]:
        if not hasattr(local, "scratch"):
            local.scratch = (
                np.zeros(count, np.int64),
                np.empty((max(count, _PAIR_CAPACITY if least <= 100 else 0), 3), np.int64),
            )
        counts, edges, found = np.zeros(101, np.int64), np.zeros(101, np.int64), []
        common, out = local.scratch
        end = min(begin + _DOCUMENTS_PER_TASK, count)
        while begin < end:
            begin, written = count_pairs(begin, end, (*formula, unit, least), rows, totals, common, counts, edges, out)
            found.append(out[:written].copy())
        return counts, edges, found

    counts, edges, close = np.zeros(101, np.int64), np.zeros(101, np.int64), [np.zeros((0, 3), np.int64)]
    for part in map_in_order(search, range(0, count, _DOCUMENTS_PER_TASK), threads):
        counts += part[0]
        edges += part[1]
        close += part[2]
    return AllPairs(int(counts[100]), counts[:100], edges, _pair_arrays(np.concatenate(close), totals, measure, unit))


def _prepare_rows(vectors: Vectors, measure: str) -> tuple[tuple[int, int], tuple[EarlierPostings, Words], Integers]:
    """Return code and kind of a measure, the rows to compare, and their totals."""
    if measure == "hamming" or not len(vectors.features):
        count = len(vectors.heads) - 1
        documents, found = document_values(vectors)
        values, totals = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        values[documents], totals[documents] = found, 64
        none = _postings(np.zeros(count + 1, np.int64), vectors.features[:0], vectors.weights[:0])
        return (OVERLAP, COUNTS), (none, values), totals
    kind = kind_of(measure, weighted=len(vectors.weights) > 0)
    totals = document_rows(vectors, measure).totals
    return (formula_code(measure), kind), (_postings(*vectors), vectors.features[:0]), totals


def _postings(heads: Integers, features: Words, weights: Integers) -> EarlierPostings:
    places, lengths = np.empty(len(features), np.int64), np.zeros(len(features), np.int64)
    distinct = number_features(features, empty_table(len(features)), places, lengths)
    sizes = len(heads), len(features), len(features), len(weights), len(features), len(weights)
    kinds = (np.int64,) * 4 + (np.int32, np.int64)
    postings = EarlierPostings(*map(np.empty, sizes, kinds))
    fill_earlier_postings(heads, places, lengths[:distinct], weights, postings)
    return postings


def _pair_arrays(rows: Integers, totals: Integers, measure: str, unit: int) -> PairArrays:
    later, earlier, common = rows.T
    order = np.lexsort((later, earlier))
    left, right = earlier[order], later[order]
    counts = np.column_stack([common[order], totals[left], totals[right]])
    return PairArrays(left, right, similarities(measure, counts, unit))


def count_frequencies(
    corpus: Corpus,
    recipe: Recipe,
    texts: pa.LargeStringArray,
    *,
    threads: int = 1,
    report: Progress | None = None,
) -> Statistics:
    """Count in how many documents of a corpus, which is read once, each feature of some texts occurs.

    This equals ``features.reading.gather_statistics``, but only the features of these texts take memory.
    """
    if recipe.signature.startswith("sketch"):
        # The prime of a sketch depends on the number of all features.
        return gather_statistics(corpus, recipe, threads=threads, progress=report)
    is_weighted = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    plain, form = recipe.without_statistics(), COUNTED if is_weighted else None
    sample_features = np.unique(Extractor(plain.changed(content=""), None, form)(texts).features)
    table, df = empty_table(len(sample_features)), np.zeros(len(sample_features), np.int64)
    number_keys(sample_features, *table)
    documents = heaviest = 0
    for part in map_in_order(
        partial(_count_features, Extractor(plain, None, form)),
        pieces(corpus, "count", report, content=recipe.content),
        threads,
    ):
        count_numbered(part[0], table, df)
        documents += part[1]
        heaviest = max(heaviest, part[2])
    repeated = df > 1
    return Statistics(documents, len(sample_features), heaviest, sample_features[repeated], df[repeated])


def _count_features(extractor: Extractor, texts: pa.LargeStringArray) -> tuple[Words, int, int]:
    """Return the distinct features of documents, their number, and their largest sum of squared counts."""
    block = extractor(texts)
    return block.features, len(texts), largest_square_sum(block)


_TEXTS_PER_TASK = 128
_GRAM_KINDS = ("words", "qgrams")


def check_comparable(recipe: Recipe, content: str) -> None:
    """Check that a recipe computes similarities from features."""
    if recipe.measure == "semantic":
        raise RecipeError(
            f"recipe {recipe.name!r} compares embeddings (measure 'semantic'), and explore looks at all pairs by "
            "features, weights or simhashes: leave it out"
        )
    if content and recipe.content not in ("", content):
        raise RecipeError(
            f"recipe {recipe.name!r} compares content {recipe.content!r}, and the sample is of content {content!r}: "
            "give one of the two"
        )


def texts_array(texts: Sequence[str]) -> pa.LargeStringArray:
    """Return texts as the Arrow array that an extractor reads."""
    return pa.array(texts, pa.large_string())


def extract_vectors(
    texts: pa.LargeStringArray, recipe: Recipe, statistics: Statistics | None = None, *, threads: int = 1
) -> Vectors:
    """Return the features of texts; if the recipe has ``content``, the texts are already extracted contents."""
    extractor = Extractor(recipe.changed(content=""), statistics)
    with FeatureStore() as store:
        parts = [texts.slice(begin, _TEXTS_PER_TASK) for begin in range(0, len(texts), _TEXTS_PER_TASK)]
        for block in map_in_order(partial(extractor, allocate=store.allocate), parts, threads):
            store.add(block)
        return store.vectors()


def build_view(
    vectors: Vectors,
    recipe: Recipe,
    statistics: Statistics | None = None,
    *,
    name: str = "",
    least: int = NO_CLOSE_PAIRS,
    threads: int = 1,
) -> tuple[View, PairArrays]:
    """Return the view of texts by a recipe, and its pairs of at least ``least`` hundredths; 101 returns no pairs.

    Without ``name`` the view is named after its features and has an n.
    """
    unit = 1 if statistics is None else statistics.unit(recipe)
    found = all_pairs(vectors, recipe.measure, unit=unit, least=least, threads=threads)
    sizes, features = np.diff(vectors.heads), recipe.parsed_features
    view = View(
        name=name or recipe.features + (f", {recipe.weights}" if recipe.is_weighted else ""),
        recipe=recipe,
        n=features.n if features.kind in _GRAM_KINDS and not name else None,
        documents=len(sizes),
        empty=int((sizes == 0).sum()),
        typical=int(np.median(sizes)),
        pairs=len(sizes) * (len(sizes) - 1) // 2,
        zero=found.zero,
        counts=tuple(found.counts.tolist()),
        edges=tuple(found.edges.tolist()),
        valley=None,
    )
    return replace(view, valley=find_valley(view.cumulative())), found.close
