"""The measures of a similarity vector besides those of ``neardup.recipe.measures``, in tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.features.reading import Progress, gather_statistics
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.recipe.kinds import LONGEST_GRAM
from neardup.recipe.measures import MEASURES


class CountMeasure(NamedTuple):
    """A measure of two feature sets, by o = |A and B|, a = |A| and b = |B|, that tells a few from many.

    A count alone grows with the length of texts, so that a machine would take long texts for what it never saw; each
    of these stays below 1.
    """

    #: In the symbols of ``neardup.recipe.measures``.
    formula: str
    #: What it says that a ratio does not.
    meaning: str
    #: ``value(o, a, b)`` on arrays of integers.
    value: Callable[[Any, Any, Any], Any]


class PairMeasure(NamedTuple):
    """A measure of two documents that takes no features of a recipe."""

    #: What it is; a difference where it says so, else more is more alike.
    formula: str
    source: str
    #: What it looks at: ``texts``, ``tokens`` (of the normalizer ``words``), ``facts`` (``neardup.classifier.facts``),
    #: ``titles``, ``times`` or ``embeddings``.
    takes: str
    range: str = "[0, 1]"


class OwnFeatures(NamedTuple):
    """A kind of features that similarity vectors have and recipes do not."""

    meaning: str
    #: The number behind the name where it is left out; 0 where there is none.
    default: int = 0


#: Shared features, and changed ones, of which the measure is one half.
HALF_SHARED, HALF_CHANGED = 64, 4
#: How many features are in both texts or in one alone, which a ratio does not say.
COUNT_MEASURES: dict[str, CountMeasure] = {
    "shared": CountMeasure("o / (o + 64)", "how much there is to go by", lambda o, a, b: o / (o + HALF_SHARED)),
    "apart": CountMeasure(
        "d / (d + 4) of d = a + b - 2 o, a difference",
        "how much changed",
        lambda o, a, b: (a + b - 2 * o) / (a + b - 2 * o + HALF_CHANGED),
    ),
    "swapped": CountMeasure(
        "d / (d + 4) of d = min(a, b) - o, a difference",
        "how much was put in the place of something else: a text that was only cut or continued has 0",
        lambda o, a, b: (np.minimum(a, b) - o) / (np.minimum(a, b) - o + HALF_CHANGED),
    ),
}
#: The measures that compare feature sets or weighted vectors, with features in brackets.
FEATURE_MEASURES = (*(name for name, m in MEASURES.items() if {"sets", "weights"} & set(m.takes)), *COUNT_MEASURES)
#: Those that add up the smaller of two weights; the others of weighted vectors take products.
SUMS_OF_MINIMA = ("weighted_jaccard", "overlap", "containment")
OWN_FEATURES: dict[str, OwnFeatures] = {
    "numbers": OwnFeatures("the distinct numbers of a text, by value"),
    "names": OwnFeatures("the distinct names of a text: words in upper case where none must be"),
    "prefixes": OwnFeatures("the first letters of each word, so many: a stem", 4),
}
#: Those that stand for jaccard(...) of the same.
JACCARD_OF = ("numbers", "names")
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
    "numbers": PairMeasure("jaccard(numbers)", "Socher et al., NIPS 2011, who ask whether they are the same", "facts"),
    "names": PairMeasure("jaccard(names)", "own", "facts"),
    "facts": PairMeasure("facts of both at their places / places of facts of both, at most 1", "own", "facts"),
    "facts_changed": PairMeasure(
        "d / (d + 4) of d = places of facts of both less facts of both at their places, a difference",
        "own",
        "facts",
        "[0, 1)",
    ),
    "title": PairMeasure("2 o / (a + b) of the words of both titles", "ICGICT 2014, formula (5)", "titles"),
    "hours_apart": PairMeasure("ln(1 + hours between both times), a difference", "own", "times", "[0, inf)"),
    "semantic": PairMeasure("cosine of both embeddings, 0 below 0", "Montanari & Puglisi 2012, 6", "embeddings"),
}


_PART = re.compile(r"\s*(?P<name>[a-z_]+)\s*(?:\(\s*(?P<features>[^(),]*?)\s*\))?\s*")
_OWN = re.compile(r"(?P<kind>[a-z]+)(?::(?P<number>\d+))?")
_WEIGHTS = ("tf", "idf", "tfidf")

_TERMS = (
    "jaccard({0}), cosine({0}), euclidean({0}), dice({0}), cosine({0}:tfidf), euclidean({0}:tfidf), "
    "extended_jaccard({0}:tfidf), dice({0}:tfidf)"
)
#: Vectors by name; a name may stand among measures and other names. All of ``default`` and ``cheap`` takes time that
#: grows with the length of the texts, not with its square, and nothing of the collection.
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


class Part(NamedTuple):
    """One measure of a similarity vector."""

    #: A name of ``FEATURE_MEASURES`` or of ``PAIR_MEASURES``.
    name: str
    #: What a measure of features compares: those of recipes, or of ``OWN_FEATURES``; empty for the others.
    features: str = ""
    #: ``tf``, ``idf`` or ``tfidf``; empty for sets.
    weights: str = ""

    @classmethod
    def parse(cls, text: str) -> Part:
        """Return the part that a text like ``cosine(terms:64:tfidf)`` names."""
        match = _PART.fullmatch(text)
        name = match["name"] if match else ""
        if match is None or (name not in FEATURE_MEASURES and name not in PAIR_MEASURES):
            takes = f"{', '.join(FEATURE_MEASURES)} with features in brackets, as in jaccard(words:4)"
            raise RecipeError(
                f"vector: {text.strip()!r} is not known; choose from {', '.join(PAIR_MEASURES)}, or from {takes}"
            )
        written = match["features"]
        if name in PAIR_MEASURES:
            if written is not None:
                raise RecipeError(f"vector: {name} takes no features; write it without brackets")
            return cls(name)
        if not written:
            raise RecipeError(f"vector: {name} takes features in brackets; write it like {name}(words:4)")
        try:
            return cls._compared(name, written)
        except RecipeError as error:
            raise RecipeError(f"vector: {text.strip()}: {error}") from None

    @classmethod
    def _compared(cls, name: str, written: str) -> Part:
        """Return the part of a measure and its features."""
        own = _OWN.fullmatch(written)
        if own is not None and own["kind"] in OWN_FEATURES:
            if name in MEASURES and "sets" not in MEASURES[name].takes:
                raise RecipeError(f"{name} takes weights, which {own['kind']} do not have; take jaccard")
            features = _own_features(own["kind"], own["number"])
            return cls(features) if name == "jaccard" and features in JACCARD_OF else cls(name, features)
        features, _, weights = written.rpartition(":")
        if weights not in _WEIGHTS:
            features, weights = written, ""
        if weights and name in COUNT_MEASURES:
            raise RecipeError(f"{name} counts features and takes no weights; leave {weights!r} out")
        # The recipe refuses what does not go together.
        features = cls(name, features, weights).recipe.features
        if features.startswith("checksum"):
            raise RecipeError(f"features {features!r} are one for each text; take words or qgrams")
        return cls(name, features, weights)

    @property
    def of_recipe(self) -> bool:
        """Whether it compares features that a recipe has."""
        return bool(self.features) and self.features.partition(":")[0] not in OWN_FEATURES

    @property
    def measure(self) -> str:
        """The measure that compares the features."""
        return "jaccard" if self.name in JACCARD_OF else self.name

    @property
    def recipe(self) -> Recipe:
        """The recipe that makes the features, where ``of_recipe``."""
        measure = "weighted_jaccard" if self.adds_minima else self.name if self.name in MEASURES else "jaccard"
        return Recipe(features=self.features, weights=self.weights, measure=measure, threshold=1.0)

    @property
    def adds_minima(self) -> bool:
        """Whether it adds up the smaller of two weights."""
        return bool(self.weights) and self.name in SUMS_OF_MINIMA

    @property
    def compared(self) -> str:
        """What is compared, as one text: features with their weights; empty where it is no features."""
        if self.name in JACCARD_OF:
            return self.name
        return ":".join(filter(None, (self.features, self.weights)))

    @property
    def counted(self) -> str:
        """The features whose document frequencies this part needs; empty where it needs none.

        All terms go by the same frequencies, however many are chosen, from the document or from its sentences.
        """
        if not self.of_recipe or not self.recipe.needs_statistics:
            return ""
        return "terms:1" if self.features.startswith("terms") else self.features

    def __str__(self) -> str:
        return f"{self.name}({self.compared})" if self.features else self.name


@dataclass(frozen=True, slots=True)
class Vector:
    """A selection of measures, in order: the vector SV(d1, d2) of a pair of documents.

    Source: ICGICT 2014, definition 1, where the user picks measures of term vectors.
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise RecipeError(f"vector is empty; name measures, or take one of {', '.join(VECTORS)}")
        for i, part in enumerate(self.parts):
            if part in self.parts[:i]:
                raise RecipeError(f"vector: {part} stands there twice; name it once")

    @classmethod
    def parse(cls, text: str) -> Vector:
        """Return the vector that a text names: ``default`` and the like, measures separated by commas, or both.

        A measure that is named again, as where two vectors share it, counts once, at its first place.
        """
        return cls(tuple(dict.fromkeys(_parts(text))))

    @property
    def names(self) -> tuple[str, ...]:
        """What each measure is called, in order."""
        return tuple(map(str, self.parts))

    @property
    def needs_statistics(self) -> bool:
        """Whether document frequencies of the collection are needed."""
        return any(part.counted for part in self.parts)

    @property
    def needs_titles(self) -> bool:
        """Whether titles of documents are compared."""
        return self._takes("titles")

    @property
    def needs_times(self) -> bool:
        """Whether times of documents are compared."""
        return self._takes("times")

    @property
    def needs_encoder(self) -> bool:
        """Whether an encoder must be handed over."""
        return self._takes("embeddings")

    def _takes(self, what: str) -> bool:
        return any(part.name in PAIR_MEASURES and PAIR_MEASURES[part.name].takes == what for part in self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __str__(self) -> str:
        return ", ".join(self.names)


def _parts(text: str) -> Iterator[Part]:
    if not text.strip():
        return
    for written in text.split(","):
        name = written.strip()
        if not name:
            raise RecipeError(f"vector {text.strip()!r}: nothing stands before or behind a comma; leave it out")
        if name in VECTORS:
            yield from _parts(VECTORS[name])
        elif re.fullmatch(r"[\w-]+", name) and name not in (*PAIR_MEASURES, *FEATURE_MEASURES):
            raise RecipeError(
                f"vector: {name!r} is not known; take one of {', '.join(VECTORS)}, one of {', '.join(PAIR_MEASURES)}, "
                "or a measure with features, such as jaccard(words:4)"
            )
        else:
            yield Part.parse(written)


def _own_features(kind: str, number: str | None) -> str:
    default = OWN_FEATURES[kind].default
    if number is None:
        return f"{kind}:{default}" if default else kind
    if not default:
        raise RecipeError(f"{kind} take no number; leave {number!r} out")
    if not 1 <= int(number) <= LONGEST_GRAM:
        raise RecipeError(f"{kind}: {int(number)} letters are outside 1..{LONGEST_GRAM}")
    return f"{kind}:{int(number)}"


def statistics_for(
    vector: Vector, corpus: Corpus, *, content: str = "", threads: int | None = None, report: Progress | None = None
) -> dict[str, Statistics]:
    """Return the document frequencies that a vector's measures go by, each by the ``counted`` of its parts.

    The corpus is read once for each kind of feature that is counted, and not at all where none is.
    """
    found: dict[str, Statistics] = {}
    for part in vector.parts:
        if part.counted and part.counted not in found:
            found[part.counted] = gather_statistics(
                corpus, part.recipe.changed(content=content), threads=threads, progress=report
            )
    return found
