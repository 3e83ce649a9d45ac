"""Where the valley between unrelated and related pairs lies.

A histogram of similarities falls steeply from where the unrelated pairs are, and then it does not: it goes on evenly,
or rises again, up to 1. So how densely pairs lie at t, within 0.05 of it, is compared with how densely they lie above
t, on average: A(t) / (1 - t), where A(t) is the number of pairs at or above t. While the histogram falls, pairs at t
are the denser ones by far. Where they become the sparser ones, a mass of pairs lies behind them: the related ones.

A clear valley is the lowest stretch, 0.08 long at least, in which pairs are at most half as dense as above it. Where
there is none, there may be one that is not clear: pairs are nowhere more than a quarter denser than above it, and
somewhere no denser. A counts pairs from one end, so that empty bins and single pairs do not lead astray, as they do a
search for the emptiest bin. The last tenth, 0.9 to 1, is no place for the valley: many near-copies are not quite equal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import pairwise
from math import log10
from statistics import median_low
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import RecipeError
from neardup.exploration.sample import NONE_CLOSE, SamplePairs, all_pairs
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore, Vectors
from neardup.recipe import Recipe
from neardup.recipe.measures import measure
from neardup.recipe.recipe import command_words
from neardup.runtime import in_order

#: The last hundredth in which a valley may lie, how far around a place pairs are counted, and how long a valley is.
_LAST, _AROUND, _LONG = 90, 5, 8
#: Fewer pairs above a place make no valley there, and fewer than these no clear one.
FEWEST, FEWEST_CLEAR = 10, 30
#: How dense pairs may be, of the mean above: in a clear valley; in another, and somewhere in it.
_CLEAR, _EVEN, _SPARSER = 0.5, 1.25, 1.0
#: The part of the pairs above its lower end that a cut may lose as far as twice the way.
_KEPT = 0.95


@dataclass(frozen=True, slots=True)
class Valley:
    """The stretch of similarities between the unrelated pairs and the related ones.

    Attributes
    ----------
    low, high : float
        Where it begins and ends; 0.9 where it goes on up to the copies.
    at : float
        Where to cut: half-way from its lower end to where one in twenty of the pairs above that end would be lost.
    before, after : int
        How many pairs lie below ``low`` (those that share nothing, too), and at or above ``high``.
    depth : float
        Pairs in the stretch, per million of all: the fewer, the deeper.
    clear : bool
        Whether it is sparse, and at least 30 pairs lie above ``low``.
    sparse : bool
        Whether pairs in it are at most half as dense as above it. Else they thin out slowly, and no cut is sharp.
    """

    low: float
    high: float
    at: float
    before: int
    after: int
    depth: float
    clear: bool
    sparse: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


def valley_of(above: Sequence[float] | npt.NDArray[np.float64], known: int = 0) -> Valley | None:
    """Return the valley of a distribution of similarities.

    Parameters
    ----------
    above : sequence of float
        101 numbers: how many pairs are at or above each hundredth, all pairs first; none above the one before.
    known : int
        The hundredth from which on the numbers are known, besides the first: no valley is looked for below.

    Returns
    -------
    Valley or None
        None where pairs thin out up to 0.9, or where fewer than 10 lie above the place where they cease to: then there
        are no related pairs to speak of, or they are no kind of their own.
    """
    pairs = np.asarray(above, np.float64)
    total = pairs[0]
    # Where everything resembles everything, the unrelated pairs are not at 0: the valley is right of the middle pair.
    first = int(np.flatnonzero(2 * pairs >= total)[-1]) + 1 if total else _LAST + 1
    first = max(first, known)
    places = np.arange(first, _LAST + 1)
    places = places[pairs[places] >= FEWEST]
    if not len(places):
        return None
    before, behind = np.maximum(places - _AROUND, first), places + _AROUND
    density = (pairs[before] - pairs[behind]) / (behind - before) * (100 - places) / pairs[places]
    found = _lowest(density, _CLEAR, _CLEAR)
    sparse = found is not None
    found = found or _lowest(density, _EVEN, _SPARSER)
    if found is None:
        return None
    begin, end = int(places[found[0]]), int(places[found[1]])
    kept = int(np.count_nonzero(pairs[begin : end + 1] >= _KEPT * pairs[begin])) - 1
    return Valley(
        begin / 100,
        end / 100,
        (begin + kept // 2) / 100,
        round(total - pairs[begin]),
        round(pairs[end]),
        float(1e6 * (pairs[begin] - pairs[end]) / total),
        sparse and bool(pairs[begin] >= FEWEST_CLEAR),
        sparse,
    )


def _lowest(density: npt.NDArray[np.float64], most: float, least: float) -> tuple[int, int] | None:
    """Return the first stretch, from and to which place, that has no more than ``most``, and once at most ``least``."""
    inside = np.concatenate([[False], density <= most, [False]])
    for begin, end in list(pairwise(np.flatnonzero(inside[1:] != inside[:-1]).tolist()))[::2]:
        if end - begin >= _LONG and density[begin:end].min() <= least:
            return begin, end - 1
    return None


#: Bin i holds the pairs with i/100 < s <= (i + 1)/100, in exact fractions; those that share nothing are apart.
BINS = 100
#: Where pairs are counted, and read.
CUTOFFS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def per_million(pairs: int, of: int) -> float:
    """Return how many pairs in a million that is; 0 of none."""
    return 1e6 * pairs / of if of else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The similarities of all pairs of a sample by one recipe.

    Attributes
    ----------
    name : str
        For people: the features, or the name of the recipe.
    recipe : Recipe
        What was compared; its threshold does not matter.
    n : int or None
        The length of its n-grams or q-grams; None for a named recipe.
    weighted : bool
        Whether features have weights.
    documents, empty : int
        Documents of the sample, and those of them without a feature.
    pairs : int
        All pairs of them.
    zero, equal : int
        Pairs that share nothing, and those of similarity 1.
    counts : tuple of int
        ``BINS`` of them: pairs with i/100 < s <= (i + 1)/100.
    edges : tuple of int
        ``BINS + 1`` of them: pairs of similarity i/100 exactly.
    valley : Valley or None
        Between unrelated and related pairs, where there is one.
    seconds : float
        What it took; no part of what is written down.
    typical : int
        The number of features of a document, in the median.
    """

    name: str
    recipe: Recipe
    n: int | None
    weighted: bool
    documents: int
    empty: int
    pairs: int
    zero: int
    counts: tuple[int, ...]
    edges: tuple[int, ...]
    valley: Valley | None
    seconds: float
    typical: int = 0

    @property
    def features(self) -> str:
        """What is compared, as recipes write it: words:4:multiset."""
        return self.recipe.features

    @property
    def measure(self) -> str:
        """The measure, as recipes write it."""
        return self.recipe.measure

    @property
    def multiset(self) -> bool:
        """Whether repeats count."""
        return self.recipe.parsed_features.multiset

    @property
    def equal(self) -> int:
        """Pairs of similarity 1."""
        return self.edges[BINS]

    @property
    def above(self) -> tuple[tuple[float, int], ...]:
        """Each of ``CUTOFFS`` with the number of pairs at or above it."""
        return tuple((cutoff, self.at_least(round(cutoff * BINS))) for cutoff in CUTOFFS)

    def at_least(self, hundredths: int) -> int:
        """Return how many pairs have a similarity of so many hundredths or more."""
        if hundredths <= 0:
            return self.pairs
        return sum(self.counts[hundredths:]) + self.edges[hundredths]

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "name": self.name,
            "features": self.features,
            "normalize": self.recipe.normalize,
            "measure": self.measure,
            "weights": self.recipe.weights,
            "n": self.n,
            "multiset": self.multiset,
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
            "valley": None if self.valley is None else self.valley.as_dict(),
        }


#: Pairs at or above it are alike.
_ALIKE = 50
#: Fewer alike pairs say nothing of their level.
FEWEST_ALIKE = 10
#: The part of alike pairs that is at or above their level, and the parts of the bulk that its pace is taken from.
_MOST = 0.9
_PARTS = (0.5, 0.1, 0.01)
#: What stands for no pairs in logarithms.
_NONE = 1e-9


@dataclass(frozen=True, slots=True)
class Separation:
    """What the two kinds of pairs reach in one view.

    Attributes
    ----------
    reach : float
        The similarity that the most similar unrelated pair of the corpus is expected to have.
    alike : int
        How many pairs of the sample are taken as alike.
    level : float or None
        The similarity that nine in ten of them have at least; None where they are fewer than 10.
    between : float or None
        For each alike pair, the number of pairs in the middle third of the way from ``reach`` to ``level``: those that
        are neither. None where there is no level, or no way.
    """

    reach: float
    alike: int
    level: float | None
    between: float | None

    @property
    def gap(self) -> float | None:
        """How far the level lies above the reach; None where there is no level."""
        return None if self.level is None else self.level - self.reach

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"gap": self.gap}


def above(view: View) -> npt.NDArray[np.float64]:
    """Return float64[101]: how many pairs of a view are at or above each hundredth."""
    return np.array([view.at_least(i) for i in range(BINS + 1)], np.float64)


def alike_pairs(views: Sequence[View]) -> int:
    """Return how many pairs of a sample are taken as alike."""
    return int(median_low(view.at_least(_ALIKE) for view in views)) if views else 0


def separation_of(view: View, alike: int, corpus_pairs: int) -> Separation:
    """Return what unrelated and alike pairs reach in a view.

    Parameters
    ----------
    view : View
        Of the sample.
    alike : int
        How many of its closest pairs are alike.
    corpus_pairs : int
        All pairs of the whole corpus: the more there are, the further the most similar unrelated one reaches.
    """
    pairs = above(view)
    reach = _reach(pairs, corpus_pairs)
    if alike < FEWEST_ALIKE:
        return Separation(reach, alike, None, None)
    level = _reached_by(pairs, _MOST * alike)
    if level <= reach:
        return Separation(reach, alike, level, None)
    third = (level - reach) / 3
    between = _at(pairs, reach + third) - _at(pairs, level - third)
    return Separation(reach, alike, level, between / alike)


def _reach(pairs: npt.NDArray[np.float64], corpus_pairs: int) -> float:
    total = pairs[0]
    if not total:
        return 0.0
    bulk = np.maximum(pairs - pairs[_ALIKE], 0.0) if 2 * pairs[_ALIKE] <= total else pairs
    places = [_reached_by(bulk, part * bulk[0]) for part in _PARTS]
    expected = [
        place + (place - before) / log10(earlier / part) * log10(max(part * corpus_pairs * bulk[0] / total, 1.0))
        for (earlier, part), (before, place) in zip(pairwise(_PARTS), pairwise(places), strict=True)
    ]
    return min(*expected, 1.0)


def _reached_by(pairs: npt.NDArray[np.float64], count: float) -> float:
    """Return the similarity that so many pairs have at least; between hundredths their number falls evenly in logs."""
    logs = -np.log(np.maximum(pairs, _NONE))
    return float(np.interp(-np.log(count), logs, np.arange(BINS + 1) / BINS))


def _at(pairs: npt.NDArray[np.float64], similarity: float) -> float:
    """Return how many pairs have a similarity at least."""
    return float(np.exp(np.interp(similarity, np.arange(BINS + 1) / BINS, np.log(np.maximum(pairs, _NONE)))))


#: Gaps within it are the same.
SAME = 0.02
#: What unrelated pairs may reach where no gap is known.
LOW_REACH = 0.1
#: By how much q-grams must widen the gap, and the measure whose views are chosen from.
_WORTH, _MEASURE = 0.05, "jaccard"


@dataclass(frozen=True, slots=True)
class Choice:
    """The features that were chosen.

    Attributes
    ----------
    view : View
        Of the sample, by them.
    separations : tuple of (View, Separation)
        All that were looked at.
    by_gap : bool
        Whether the sample had alike pairs enough to go by the gap.
    """

    view: View
    separations: tuple[tuple[View, Separation], ...]
    by_gap: bool

    @property
    def own(self) -> Separation:
        """What the two kinds reach by the chosen ones."""
        return next(found for view, found in self.separations if view is self.view)


def choose(views: Sequence[View], corpus_pairs: int) -> Choice:
    """Choose features: step 1 of the rule.

    Parameters
    ----------
    views : sequence of View
        Of the sample, at least one. n-grams by Jaccard are chosen from; where there are none, from all.
    corpus_pairs : int
        All pairs of the whole corpus.
    """
    grams = [view for view in views if view.n is not None and view.measure == _MEASURE]
    asked = grams or list(views)
    alike = alike_pairs(asked)
    found = tuple((view, separation_of(view, alike, corpus_pairs)) for view in asked)
    words = [one for one in found if one[0].features.startswith("words")] or list(found)
    others = [one for one in found if one not in words]
    if words[0][1].level is None:
        low = [view for view, own in words if own.reach <= LOW_REACH]
        chosen = min(low, key=_length) if low else min(words, key=lambda one: one[1].reach)[0]
        return Choice(chosen, found, by_gap=False)
    best, view = _widest(words)
    if others:
        wider, other = _widest(others)
        view = other if wider >= best + _WORTH else view
    return Choice(view, found, by_gap=True)


def _widest(found: Sequence[tuple[View, Separation]]) -> tuple[float, View]:
    """Return the widest gap, and the longest of those as wide."""
    gaps = [(own.gap or 0.0, view) for view, own in found]
    best = max(gap for gap, _ in gaps)
    return best, max((view for gap, view in gaps if gap >= best - SAME), key=_length)


def _length(view: View) -> int:
    return view.n or 0


Floats = npt.NDArray[np.float64]

#: A threshold for copies and light edits: that of the recipe ``default``.
_COPIES = 0.85
#: Fields of a recipe that no option is made of, or one in any case.
_SAID_APART = ("name", "description", "features", "threshold", "keep")


def why_features(choice: Choice) -> str:
    """Return why these features, in a sentence."""
    name, own = choice.view.name, choice.own
    if len(choice.separations) == 1:
        return f"Nothing else was looked at than {name}, by which unrelated pairs reach {own.reach:.2f}."
    if own.level is None or own.gap is None:
        some = f"{own.alike} alike pairs" if own.alike != 1 else "1 alike pair"
        begin = f"The sample has {some}, too few to go by"
        if own.reach <= LOW_REACH:
            return f"{begin}: {name} are the shortest n-grams whose unrelated pairs stay below {LOW_REACH:g}."
        return f"{begin}: with {name} unrelated pairs reach the least, {own.reach:.2f}."
    if own.gap <= 0:
        return (
            f"No n-grams part alike from unrelated pairs here: with {name}, which come closest, unrelated ones reach "
            f"{own.reach:.2f}, and nine in ten alike ones have {own.level:.2f} or more."
        )
    return (
        f"{name} part the pairs of the sample best: unrelated ones reach {own.reach:.2f}, and nine in ten of the "
        f"{own.alike:,} alike ones have {own.level:.2f} or more."
    )


def why_threshold(recipe: Recipe, valley: Valley | None, pairs: Floats, *, whole: bool) -> str:
    """Return why this threshold, in a sentence or two, from the pairs at or above each hundredth."""
    if measure(recipe.measure).distance:
        return f"The threshold is the recipe's own: {recipe.measure} is a distance."
    where, at = ("whole corpus" if whole else "sample"), recipe.threshold
    count = round(pairs[round(BINS * at)])
    found = (
        f"{count:,} {'pair is' if count == 1 else 'pairs are'} at {at:g} or above" if count else f"no pair is at {at:g}"
    )
    if 0 < count < FEWEST_CLEAR:
        found += ", too few to rely on"
    if valley is None:
        shared = f", where two texts of equal length share {200 * at / (1 + at):.0f} % of their n-grams"
        means = shared if recipe.measure == "jaccard" else ""
        return f"No valley says where to cut, so the threshold is {at:g}{means}. In the {where} {found}."
    raised = f"; {at:g} is the lowest that is advised" if at > valley.high else ""
    if valley.sparse:
        clear = "a clear valley" if valley.clear else "an empty stretch"
        return f"In the {where} {clear} reaches from {valley.low:g} to {valley.high:g}{raised}; {found}."
    return (
        f"In the {where} pairs thin out up to {valley.low:g} and lie evenly from there on, so that no cut is sharp"
        f"{raised}; {found}."
    )


def command_of(recipe: Recipe, inputs: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return what to run: the words behind ``neardup``."""
    words = ["dedup", *(inputs or ("INPUT",)), *options, "--features", recipe.features]
    usual = Recipe(features=recipe.features)
    for field in fields(Recipe):
        value = getattr(recipe, field.name)
        if field.name not in _SAID_APART and value != getattr(usual, field.name):
            words += command_words(field.name, f"{value:g}" if isinstance(value, float) else value)
    return (*words, "--threshold", f"{recipe.threshold:g}", "-o", "kept.jsonl")


def alternatives_of(choice: Choice, recipe: Recipe, pairs: Floats, *, whole: bool) -> tuple[tuple[str, str], ...]:
    """Return what else there is, and why not that."""
    found = []
    for view, own in choice.separations:
        if view is choice.view:
            continue
        why = f"unrelated pairs reach {own.reach:.2f}"
        if own.level is not None and own.gap is not None:
            wide, best = own.gap, choice.own.gap or 0.0
            than = f"where {choice.view.name} leave {best:.2f}" if wide < best - SAME else "about as wide"
            why += f", nine in ten alike ones have {own.level:.2f} or more: a gap of {wide:.2f}, {than}"
        elif view.n is not None and choice.view.n is not None and view.n > choice.view.n:
            why += ", but one changed word costs more n-grams"
        found.append((view.name, why))
    if recipe.threshold < _COPIES and not measure(recipe.measure).distance:
        left, of = round(pairs[round(BINS * _COPIES)]), round(pairs[round(BINS * recipe.threshold)])
        where = "the corpus" if whole else "the sample"
        why = f"for copies and light edits alone: {left:,} of those {of:,} pairs of {where} are left"
        found.append((f"a threshold of {_COPIES:g}", why))
    return tuple(found)


#: Texts in a piece of work for a thread.
_AT_A_TIME = 128
_GRAMS = ("words", "qgrams")


def check_comparable(recipe: Recipe, content: str) -> None:
    """Refuse a recipe whose similarities do not follow from features.

    Raises
    ------
    RecipeError
        In one sentence: what it compares, and the way out.
    """
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
    """Return texts as the array that features are made of."""
    return pa.array(texts, pa.large_string())


def vectors_of(
    texts: pa.LargeStringArray, recipe: Recipe, statistics: Statistics | None = None, *, threads: int = 1
) -> Vectors:
    """Return the features of texts, which are contents already where the recipe asks for these."""
    extractor = partial(Extractor(recipe.changed(content=""), statistics))
    with FeatureStore() as store:
        parts = [texts.slice(begin, _AT_A_TIME) for begin in range(0, len(texts), _AT_A_TIME)]
        for block in in_order(partial(extractor, allocate=store.allocate), parts, threads):
            store.add(block)
        return store.vectors()


def view_of(
    vectors: Vectors,
    recipe: Recipe,
    statistics: Statistics | None = None,
    *,
    name: str = "",
    least: int = NONE_CLOSE,
    threads: int = 1,
) -> tuple[View, SamplePairs]:
    """Compare all pairs of texts by a recipe, without its threshold, its second step and its search.

    Parameters
    ----------
    vectors : Vectors
        The features of the texts.
    recipe : Recipe
        What made them (``vectors_of``).
    statistics : Statistics, optional
        For a recipe with ``needs_statistics``.
    name : str
        Of the view; where it is empty, it is called by its features, and has an n.
    least : int
        Pairs of so many hundredths or more are returned; 101 for none.
    threads : int
        They change the time, never the answer.

    Returns
    -------
    View, SamplePairs
        The pairs by the places of the texts.
    """
    begin = time.perf_counter()
    unit = 1 if statistics is None else statistics.unit(recipe)
    found = all_pairs(vectors, recipe.measure, unit=unit, least=least, threads=threads)
    sizes, features = np.diff(vectors.heads), recipe.parsed_features
    view = View(
        name=name or recipe.features,
        recipe=recipe,
        n=features.n if features.kind in _GRAMS and not name else None,
        weighted=recipe.is_weighted,
        documents=len(sizes),
        empty=int((sizes == 0).sum()),
        typical=int(np.median(sizes)) if len(sizes) else 0,
        pairs=len(sizes) * (len(sizes) - 1) // 2,
        zero=found.zero,
        counts=tuple(found.counts.tolist()),
        edges=tuple(found.edges.tolist()),
        valley=None,
        seconds=0.0,
    )
    return replace(view, valley=valley_of(above(view)), seconds=time.perf_counter() - begin), found.close
