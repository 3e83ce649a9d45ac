"""The measures of a similarity vector besides those of ``neardup.measures``, in tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from neardup.measures import MEASURES


class CountMeasure(NamedTuple):
    """A measure of two feature sets, by o = |A and B|, a = |A| and b = |B|, that has no end.

    Attributes
    ----------
    formula : str
        In the symbols of ``neardup.measures``.
    meaning : str
        What it says that a ratio does not.
    value : callable
        ``value(o, a, b)`` on arrays of integers.
    """

    formula: str
    meaning: str
    value: Callable[[Any, Any, Any], Any]


class PairMeasure(NamedTuple):
    """A measure of two documents that takes no features of a recipe.

    Attributes
    ----------
    formula : str
        What it is; a difference where it says so, else more is more alike.
    source : str
        Where it comes from.
    takes : str
        What it looks at: ``texts``, ``tokens`` (of the normalizer ``words``), ``facts`` (``neardup.vector.facts``),
        ``titles``, ``times`` or ``embeddings``.
    range : str
        Its values.
    """

    formula: str
    source: str
    takes: str
    range: str = "[0, 1]"


class OwnFeatures(NamedTuple):
    """A kind of features that similarity vectors have and recipes do not.

    Attributes
    ----------
    meaning : str
        What a feature is.
    default : int
        The number behind the name where it is left out; 0 where there is none.
    """

    meaning: str
    default: int = 0


#: How many features are in both texts or in one alone, which a ratio does not say.
COUNT_MEASURES: dict[str, CountMeasure] = {
    "shared": CountMeasure("ln(1 + o)", "how much there is to go by", lambda o, a, b: np.log1p(o)),
    "apart": CountMeasure(
        "ln(1 + a + b - 2 o), a difference", "how much changed", lambda o, a, b: np.log1p(a + b - 2 * o)
    ),
    "swapped": CountMeasure(
        "ln(1 + min(a, b) - o), a difference",
        "how much was put in the place of something else: a text that was only cut or continued has 0",
        lambda o, a, b: np.log1p(np.minimum(a, b) - o),
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
        "ln(1 + places of facts of both less facts of both at their places), a difference", "own", "facts", "[0, inf)"
    ),
    "title": PairMeasure("2 o / (a + b) of the words of both titles", "ICGICT 2014, formula (5)", "titles"),
    "hours_apart": PairMeasure("ln(1 + hours between both times), a difference", "own", "times", "[0, inf)"),
    "semantic": PairMeasure("cosine of both embeddings, 0 below 0", "Montanari & Puglisi 2012, 6", "embeddings"),
}
