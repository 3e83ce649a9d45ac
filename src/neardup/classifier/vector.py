"""Similarity vectors: their measures, how they are written, and the documents that they compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.documents import Corpus
from neardup.documents.column_paths import find_in_table, possible_paths
from neardup.documents.records import value_texts
from neardup.documents.tables import TIME_NAMES
from neardup.errors import RecipeError, option
from neardup.features.reading import Progress, gather_statistics
from neardup.features.statistics import Statistics
from neardup.kernels import Integers
from neardup.recipe import Recipe
from neardup.recipe.kinds import MAX_GRAM_LENGTH
from neardup.recipe.measures import MEASURES
from neardup.times import times_of


class CountMeasure(NamedTuple):
    """A measure of two feature sets by counts: o = |A and B|, a = |A| and b = |B|.

    A ratio cannot tell few features from many. A bare count grows with the length of the texts, far beyond the range
    of the training pairs, so each of these measures is bounded by 1.
    """

    formula: str  #: in the symbols of ``neardup.recipe.measures``
    meaning: str  #: what it shows beyond a ratio
    value: Callable[[Any, Any, Any], Any]  #: ``value(o, a, b)`` on integer arrays


class PairMeasure(NamedTuple):
    """A measure of two documents that compares no features of a recipe."""

    #: A similarity, unless it ends in "a difference".
    formula: str
    source: str
    #: The compared input: ``texts``, ``tokens`` (of the normalizer ``words``), ``facts`` (see ``extract_facts``),
    #: ``titles``, ``times`` or ``embeddings``.
    input: str
    range: str = "[0, 1]"


class VectorFeatures(NamedTuple):
    """A kind of features that exists in similarity vectors only, not in recipes."""

    meaning: str
    default: int = 0  #: the number after the name if it is left out; 0 for a kind without a number


#: The number of shared, or of changed, features for which a count measure is 1/2.
HALF_SHARED, HALF_CHANGED = 64, 4
COUNT_MEASURES: dict[str, CountMeasure] = {
    "shared": CountMeasure("o / (o + 64)", "how much evidence there is", lambda o, a, b: o / (o + HALF_SHARED)),
    "apart": CountMeasure(
        "d / (d + 4) of d = a + b - 2 o, a difference",
        "how much changed",
        lambda o, a, b: (a + b - 2 * o) / (a + b - 2 * o + HALF_CHANGED),
    ),
    "swapped": CountMeasure(
        "d / (d + 4) of d = min(a, b) - o, a difference",
        "how much was replaced: 0 for a text that was only cut or continued",
        lambda o, a, b: (np.minimum(a, b) - o) / (np.minimum(a, b) - o + HALF_CHANGED),
    ),
}
#: Measures of feature sets or weighted vectors, written with features in brackets.
FEATURE_MEASURES = (*(name for name, m in MEASURES.items() if {"sets", "weights"} & set(m.takes)), *COUNT_MEASURES)
#: Measures of weighted vectors that add up the smaller of two weights; the others add up products.
MINIMUM_MEASURES = ("weighted_jaccard", "overlap", "containment")
VECTOR_FEATURES: dict[str, VectorFeatures] = {
    "numbers": VectorFeatures("the distinct numbers of a text, by value"),
    "names": VectorFeatures("the distinct names of a text: capitalized words where grammar asks for no capital"),
    "prefixes": VectorFeatures("the first N letters of each word: a stem", 4),
}
#: Measures that are short for jaccard(...) of the same features.
JACCARD_SHORTHANDS = ("numbers", "names")
PAIR_MEASURES: dict[str, PairMeasure] = {
    "length_ratio": PairMeasure(
        "tokens of the shorter text / tokens of the longer one", "Wan, Dras, Dale & Paris, ALTW 2006", "tokens"
    ),
    "word_edit": PairMeasure(
        "1 - Levenshtein distance in tokens / tokens of the longer text", "Finch, Hwang & Sumita, IWP 2005", "tokens"
    ),
    "in_order": PairMeasure(
        "longest common subsequence of tokens / tokens of the shorter text", "Lin & Och, ACL 2004 (ROUGE-L)", "tokens"
    ),
    "edit": PairMeasure("1 - Levenshtein distance / length of the longer text", "blog of 19 April 2020", "texts"),
    "numbers": PairMeasure("jaccard(numbers)", "Socher et al., NIPS 2011, who test for equality", "facts"),
    "names": PairMeasure("jaccard(names)", "own", "facts"),
    "facts": PairMeasure("facts that both have at the same place / places that both have, at most 1", "own", "facts"),
    "facts_changed": PairMeasure(
        "d / (d + 4) of d = places that both have - facts that both have at the same place, a difference",
        "own",
        "facts",
        "[0, 1)",
    ),
    "title": PairMeasure("2 o / (a + b) of the words of both titles", "ICGICT 2014, formula (5)", "titles"),
    "hours_apart": PairMeasure("ln(1 + hours between both times), a difference", "own", "times", "[0, inf)"),
    "semantic": PairMeasure("cosine of both embeddings, 0 below 0", "Montanari & Puglisi 2012, 6", "embeddings"),
}


_COMPONENT = re.compile(r"\s*(?P<name>[a-z_]+)\s*(?:\(\s*(?P<features>[^(),]*?)\s*\))?\s*")
_VECTOR_FEATURES = re.compile(r"(?P<kind>[a-z]+)(?::(?P<number>[0-9]{1,9}))?")
_WEIGHTS = ("tf", "idf", "tfidf")

_TERMS = (
    "jaccard({0}), cosine({0}), euclidean({0}), dice({0}), cosine({0}:tfidf), euclidean({0}:tfidf), "
    "extended_jaccard({0}:tfidf), dice({0}:tfidf)"
)
#: Vectors by name; a list of measures may contain such names. ``default`` and ``cheap`` take time linear in the length
#: of the texts and need no document frequencies.
VECTORS: dict[str, str] = {
    "default": (
        "jaccard(words:4), containment(words:4), containment(words:1), shared(words:1), swapped(words:1), "
        "length_ratio, numbers, shared(numbers), swapped(numbers), names, apart(names), facts, facts_changed"
    ),
    "cheap": (
        "jaccard(words:4), containment(words:4), containment(words:1), shared(words:1), numbers, swapped(numbers), "
        "names, facts"
    ),
    "short": (
        "overlap(words:1), containment(words:1), apart(words:1), overlap(words:3), containment(words:3), "
        "apart(words:3), overlap(prefixes:4), containment(prefixes:4), apart(prefixes:4), overlap(terms:64), "
        "containment(terms:64), apart(terms:64), cosine(words:1:idf), weighted_jaccard(words:1:idf), "
        "euclidean(words:1:idf), edit, word_edit, in_order, length_ratio, shared(numbers), apart(numbers), "
        "swapped(numbers), shared(names), apart(names), swapped(names), facts"
    ),
    "terms-svm": _TERMS.format("terms:64"),
    "terms-svm-sentence": _TERMS.format("terms:4:sentence"),
}


#: The most measures of a vector as it is written.
_MOST_COMPONENTS = 1000


class VectorComponent(NamedTuple):
    """One component of a similarity vector: a measure and what it compares."""

    name: str  #: a name of ``FEATURE_MEASURES`` or of ``PAIR_MEASURES``
    features: str = ""  #: the compared features, of a recipe or of ``VECTOR_FEATURES``; empty for a pair measure
    weights: str = ""  #: ``tf``, ``idf`` or ``tfidf``; empty for sets

    @classmethod
    def parse(cls, text: str) -> VectorComponent:
        """Return the component written as ``text``, such as ``cosine(terms:64:tfidf)``."""
        match = _COMPONENT.fullmatch(text)
        name = match["name"] if match else ""
        if match is None or (name not in FEATURE_MEASURES and name not in PAIR_MEASURES):
            raise RecipeError(
                f"vector: {text.strip()!r} is not known; choose from {', '.join(PAIR_MEASURES)}, or from "
                f"{', '.join(FEATURE_MEASURES)} with features in brackets, as in jaccard(words:4)"
            )
        written = match["features"]
        if name in PAIR_MEASURES:
            if written is not None:
                raise RecipeError(f"vector: {name} takes no features; write it without brackets")
            return cls(name)
        if not written:
            raise RecipeError(f"vector: {name} takes features in brackets; write it like {name}(words:4)")
        try:
            return cls._of_features(name, written)
        except RecipeError as error:
            raise RecipeError(f"vector: {text.strip()}: {error}") from None

    @classmethod
    def _of_features(cls, name: str, written: str) -> VectorComponent:
        match = _VECTOR_FEATURES.fullmatch(written)
        if match is not None and match["kind"] in VECTOR_FEATURES:
            if name in MEASURES and "sets" not in MEASURES[name].takes:
                raise RecipeError(f"{name} takes weights, which {match['kind']} do not have; take jaccard")
            features = _vector_features(match["kind"], match["number"])
            return cls(features) if name == "jaccard" and features in JACCARD_SHORTHANDS else cls(name, features)
        features, _, weights = written.rpartition(":")
        if weights not in _WEIGHTS:
            features, weights = written, ""
        if weights and name in COUNT_MEASURES:
            raise RecipeError(f"{name} counts features and takes no weights; leave {weights!r} out")
        # Making the recipe checks the combination.
        features = cls(name, features, weights).recipe.features
        if features.startswith("checksum"):
            raise RecipeError(f"features {features!r} give one feature per text; take words or qgrams")
        return cls(name, features, weights)

    @property
    def has_recipe(self) -> bool:
        """Whether it compares features of a recipe."""
        return bool(self.features) and self.features.partition(":")[0] not in VECTOR_FEATURES

    @property
    def measure(self) -> str:
        """The measure that compares the features."""
        return "jaccard" if self.name in JACCARD_SHORTHANDS else self.name

    @property
    def recipe(self) -> Recipe:
        """The recipe that extracts the features, if ``has_recipe``."""
        measure = "weighted_jaccard" if self.uses_minima else self.name if self.name in MEASURES else "jaccard"
        return Recipe(features=self.features, weights=self.weights, measure=measure, threshold=1.0)

    @property
    def uses_minima(self) -> bool:
        """Whether it adds up the smaller of two weights."""
        return bool(self.weights) and self.name in MINIMUM_MEASURES

    @property
    def row_name(self) -> str:
        """The name of the compared rows: features with their weights; empty if it compares no features."""
        if self.name in JACCARD_SHORTHANDS:
            return self.name
        return ":".join(filter(None, (self.features, self.weights)))

    @property
    def df_features(self) -> str:
        """The features whose document frequencies it needs; empty if it needs none.

        All ``terms`` share one table of frequencies, whatever their number and whether they are chosen per document or
        per sentence.
        """
        if not self.has_recipe or not self.recipe.needs_statistics:
            return ""
        return "terms:1" if self.features.startswith("terms") else self.features

    def __str__(self) -> str:
        return f"{self.name}({self.row_name})" if self.features else self.name


@dataclass(frozen=True, slots=True)
class Vector:
    """The measures of a pair of documents, in order: the similarity vector SV(d1, d2).

    Source: ICGICT 2014, definition 1, where the user picks measures of term vectors.
    """

    components: tuple[VectorComponent, ...]

    def __post_init__(self) -> None:
        if not self.components:
            raise RecipeError(f"vector is empty; name measures, or take one of {', '.join(VECTORS)}")
        for i, component in enumerate(self.components):
            if component in self.components[:i]:
                raise RecipeError(f"vector: {component} is named twice; name it once")

    @classmethod
    def parse(cls, text: str) -> Vector:
        """Return the vector written as ``text``: measures and names of vectors, separated by commas.

        A repeated measure, as when two named vectors share one, counts once, in its first position.
        """
        if text.count(",") >= _MOST_COMPONENTS:
            raise RecipeError(f"vector: more than {_MOST_COMPONENTS} measures are too many; choose some")
        return cls(tuple(dict.fromkeys(_parse_components(text))))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the measures, in order."""
        return tuple(map(str, self.components))

    @property
    def needs_statistics(self) -> bool:
        """Whether it needs document frequencies of the collection."""
        return any(component.df_features for component in self.components)

    @property
    def needs_titles(self) -> bool:
        """Whether it compares titles."""
        return self._compares("titles")

    @property
    def needs_times(self) -> bool:
        """Whether it compares times."""
        return self._compares("times")

    @property
    def needs_encoder(self) -> bool:
        """Whether it compares embeddings."""
        return self._compares("embeddings")

    def _compares(self, kind: str) -> bool:
        return any(PAIR_MEASURES[part.name].input == kind for part in self.components if part.name in PAIR_MEASURES)

    def __len__(self) -> int:
        return len(self.components)

    def __str__(self) -> str:
        return ", ".join(self.names)


def _parse_components(text: str) -> Iterator[VectorComponent]:
    if not text.strip():
        return
    for written in text.split(","):
        name = written.strip()
        if not name:
            raise RecipeError(f"vector {text.strip()!r}: a comma has no measure before or after it; leave it out")
        if name in VECTORS:
            yield from _parse_components(VECTORS[name])
        elif re.fullmatch(r"[\w-]+", name) and name not in (*PAIR_MEASURES, *FEATURE_MEASURES):
            raise RecipeError(
                f"vector: {name!r} is not known; take one of {', '.join(VECTORS)}, one of {', '.join(PAIR_MEASURES)}, "
                "or a measure with features, such as jaccard(words:4)"
            )
        else:
            yield VectorComponent.parse(written)


def _vector_features(kind: str, number: str | None) -> str:
    default = VECTOR_FEATURES[kind].default
    if number is None:
        return f"{kind}:{default}" if default else kind
    if not default:
        raise RecipeError(f"{kind} take no number; leave {number!r} out")
    if not 1 <= int(number) <= MAX_GRAM_LENGTH:
        raise RecipeError(f"{kind}: {int(number)} letters are outside 1..{MAX_GRAM_LENGTH}")
    return f"{kind}:{int(number)}"


def vector_statistics(
    vector: Vector, corpus: Corpus, *, content: str = "", threads: int | None = None, progress: Progress | None = None
) -> dict[str, Statistics]:
    """Return the document frequencies that a vector needs, by the ``df_features`` of its components.

    Each kind of feature takes one pass over the corpus.
    """
    statistics: dict[str, Statistics] = {}
    for component in vector.components:
        if component.df_features and component.df_features not in statistics:
            recipe = component.recipe.changed(content=content)
            statistics[component.df_features] = gather_statistics(corpus, recipe, threads=threads, progress=progress)
    return statistics


#: Stands for an unknown time.
NO_TIME = int(np.iinfo(np.int64).min)

#: Usual names of a title column, the likeliest first.
TITLE_NAMES = ("title", "headline", "heading", "subject")


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Documents whose pairs a classifier measures."""

    texts: Sequence[str]  #: the compared texts; of pages, their extracted content
    titles: Sequence[str | None] | None = None  #: None for a document without a title, or if no measure compares titles
    #: int64[n]: microseconds since 1970, or ``NO_TIME``; None if no measure compares times.
    times: Integers | None = None

    def __len__(self) -> int:
        return len(self.texts)


def read_records(
    table: pa.Table, texts: Sequence[str], vector: Vector, *, title_column: str = "", time_column: str = ""
) -> Records:
    """Return the records of a table's rows, with the titles and times that the vector compares.

    An empty column name stands for the usual names of such a column. Raises ``RecipeError`` if the vector needs a
    column that the table does not have.
    """
    title, time = needed_columns(vector, table.column_names, title_column=title_column, time_column=time_column)
    titles = [value or None for value in value_texts(_required(table, title))] if title else None
    times = None
    if time:
        microseconds, readable = times_of(_required(table, time))
        times = np.where(readable, microseconds, NO_TIME)
    return Records(texts, titles, times)


def _required(table: pa.Table, name: str) -> pa.Array:
    values = find_in_table(table, name)
    if values is None:
        raise RecipeError(f"no document has {name!r}, which the classifier compares: name another column")
    return values


def needed_columns(
    vector: Vector, names: Sequence[str], *, title_column: str = "", time_column: str = ""
) -> tuple[str, str]:
    """Return the title column and the time column that a vector needs; empty if it needs none.

    The other parameters and the error are those of ``read_records``.
    """
    title = time = ""
    if vector.needs_titles:
        title = find_measure_column(names, title_column, TITLE_NAMES, "title", option("--title-column"))
    if vector.needs_times:
        time = find_measure_column(names, time_column, TIME_NAMES, "hours_apart", option("--time-column"))
    return title, time


def find_usual_column(names: Sequence[str], usual_names: Sequence[str]) -> str:
    """Return the column with the first of the usual names, in any case; empty if there is none."""
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[name] for name in usual_names if name in lowered), "")


def find_measure_column(
    names: Sequence[str], chosen: str, usual_names: Sequence[str], measure: str, option: str
) -> str:
    """Return the column that a measure compares: the chosen one, or without a choice the first usual one.

    Raises ``RecipeError`` if there is none; the message names ``option`` as the way to choose one.
    """
    found = (chosen if possible_paths(chosen, names) else "") if chosen else find_usual_column(names, usual_names)
    if not found:
        missing = f"no column {chosen!r}" if chosen else f"none of the columns {', '.join(usual_names)}"
        raise RecipeError(
            f"the classifier's measure {measure} needs a column, and the input has {missing}; choose one of "
            f"{', '.join(names)} with {option}"
        )
    return found
