"""What idf weights do on a corpus: whether they part related from unrelated pairs better (blog of 19 April 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.facts import Rows
from neardup.documents import Corpus
from neardup.exploration.histogram import (
    BINS,
    CUTOFFS,
    FEWEST_CLEAR,
    Separation,
    View,
    alike_pairs,
    separation_of,
    vectors_of,
    view_of,
)
from neardup.exploration.sample import SamplePairs, frequencies_of
from neardup.features.reading import Progress
from neardup.features.store import Vectors
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities

#: From here on pairs are close; below, loosely related.
_CLOSE = 0.5
#: A difference that is told: pairs in between, with weights to without, and more of them than chance moves.
_FEWER, _MORE, _CHANCE = 0.8, 1.25, 2.0


@dataclass(frozen=True, slots=True)
class Moved:
    """Pairs of one band of the plain measure, and what weights make of the same pairs.

    Attributes
    ----------
    low, high : float
        The band: low <= plain similarity < high (the last one: <= 1).
    pairs : int
        Of the sample.
    plain, weighted : float
        The medians of their similarities, without and with weights.
    """

    low: float
    high: float
    pairs: int
    plain: float
    weighted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """The same features with and without idf weights.

    Attributes
    ----------
    plain, weighted : View
        Without and with: by Jaccard and by weighted Jaccard.
    plain_overlap, weighted_overlap : float or None
        Of each, pairs per million in the middle third of the way from what unrelated pairs reach to what nine in ten
        alike pairs have: the fewer, the better the two are parted. None where the sample has too few alike pairs.
    moved : tuple of Moved
        What the weights make of pairs, by bands.
    sentence : str
        What that means.
    """

    plain: View
    weighted: View
    plain_overlap: float | None
    weighted_overlap: float | None
    moved: tuple[Moved, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "plain": self.plain.as_dict(),
            "weighted": self.weighted.as_dict(),
            "plain_overlap": self.plain_overlap,
            "weighted_overlap": self.weighted_overlap,
            "moved": [asdict(band) for band in self.moved],
            "sentence": self.sentence,
        }


def weighted_recipe(recipe: Recipe) -> Recipe:
    """Return a recipe for the same features by weighted Jaccard with idf; repeats count if they do (tf times idf)."""
    features = recipe.features.removesuffix(":multiset")
    weights = "tfidf" if recipe.parsed_features.multiset else "idf"
    return recipe.changed(features=features, weights=weights, measure="weighted_jaccard")


def weighting_of(
    corpus: Corpus,
    texts: pa.LargeStringArray,
    plain: View,
    close: SamplePairs,
    corpus_pairs: int,
    *,
    threads: int = 1,
    report: Progress | None = None,
) -> Weighting:
    """Compare a sample with idf weights, whose document frequencies are those of the whole corpus.

    Parameters
    ----------
    corpus : Corpus
        It is read once.
    texts : pyarrow.LargeStringArray
        The sample.
    plain : View
        By the Jaccard of sets or multisets.
    close : SamplePairs
        Its pairs from 0.05 on at least, by the places of the texts.
    corpus_pairs : int
        All pairs of the corpus.
    threads, report
        As in ``frequencies.frequencies_of``.
    """
    recipe = weighted_recipe(plain.recipe)
    statistics = frequencies_of(corpus, recipe, texts, threads=threads, report=report)
    vectors = vectors_of(texts, recipe, statistics, threads=threads)
    weighted, _ = view_of(vectors, recipe, statistics, threads=threads)
    weighted = replace(weighted, name=f"{plain.name}, {recipe.weights}")
    moved = _moved(close, _same_pairs(vectors, close, statistics.unit(recipe)))
    alike = alike_pairs([plain])
    before, after = (separation_of(view, alike, corpus_pairs) for view in (plain, weighted))
    return Weighting(
        plain=plain,
        weighted=weighted,
        plain_overlap=before.between,
        weighted_overlap=after.between,
        moved=moved,
        sentence=_sentence(plain.name, before, after, moved),
    )


def _same_pairs(vectors: Vectors, close: SamplePairs, unit: int) -> npt.NDArray[np.float64]:
    if not len(close.left):
        return np.zeros(0)
    rows = Rows.of(np.diff(vectors.heads), vectors.features, vectors.weights).ascending()
    counts = rows.counts(close.left, close.right, weighted=True, minima=True)
    return similarities("weighted_jaccard", counts, unit)


def _moved(close: SamplePairs, weighted: npt.NDArray[np.float64]) -> tuple[Moved, ...]:
    found = []
    for low, high in pairwise((*CUTOFFS, 1 + 1 / BINS)):
        here = (close.similarity >= low) & (close.similarity < high)
        if here.any():
            medians = float(np.median(close.similarity[here])), float(np.median(weighted[here]))
            found.append(Moved(low, min(high, 1.0), int(here.sum()), *medians))
    return tuple(found)


def _sentence(name: str, before: Separation, after: Separation, moved: Sequence[Moved]) -> str:
    loose = [band for band in moved if band.high <= _CLOSE]
    close = [band for band in moved if band.low >= _CLOSE]
    # Of the loosely related ones those from 0.1 on, where there are some: more than a phrase in common.
    told = [*loose[min(1, len(loose) - 1) :][:1], *close[:1]]
    bands = [f"{one.low:g} to {one.high:g} move from {one.plain:.2f} to {one.weighted:.2f}" for one in told]
    moves = f" In the median, pairs of {' and those of '.join(bands)}." if told else ""
    if before.level is None or before.alike < FEWEST_CLEAR:
        return f"The sample has too few alike pairs to tell whether idf weights part them better.{moves}"
    if before.between is None or after.between is None:
        return f"By {name} unrelated pairs reach as far as alike ones, with idf weights or without.{moves}"
    return (
        f"On this corpus idf weights {_verdict(before.between, after.between, before.alike)}: for 100 alike pairs of "
        f"{name}, {100 * before.between:,.0f} others lie in the middle between unrelated and alike without weights, "
        f"and {100 * after.between:,.0f} with them.{moves}"
    )


def _verdict(before: float, after: float, alike: int) -> str:
    apart, most = alike * abs(after - before), alike * max(after, before)
    if _FEWER * before < after < _MORE * before or apart <= _CHANCE * sqrt(most):
        return "make little difference"
    return f"part the two kinds {'better' if after < before else 'worse'}"
