"""How pairs and dropped documents grow with the corpus: of its first documents, and of random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.exploration.sample import hashes_of
from neardup.features.reading import Progress
from neardup.keep.keepers import graph, keepers
from neardup.pages.numbers import share
from neardup.pipeline.pipeline import Collected, checked_threads, collect
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, measure
from neardup.runtime import Clock
from neardup.search.engines import PAIRS_PER_DOCUMENT, StepProgress, find_pairs
from neardup.search.engines import most_pairs as most_of
from neardup.search.findings import Documents, recipe_details
from neardup.search.margin import narrowed
from neardup.search.matches import Matches, members_of
from neardup.search.thresholds import Figures, Levels, levels_of
from neardup.version import __version__

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The smallest part of the corpus whose figures are told is one in so many; the next is twice as large, and so on.
_PARTS = 16
#: Where as many random documents have fewer pairs than this in the mean, nothing is said of their density.
_ENOUGH = 50
#: Densities that differ by a smaller factor than this are told as the same.
_SAME = 1.25
#: Pairs stand close together where so many times more of them than by chance are in one part.
_CLOSE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The figures of some documents of a corpus, as if they were all of it.

    Attributes
    ----------
    documents : int
        How many.
    pairs : int
        Of them that match.
    dropped : int
        How many of them would be dropped.
    """

    documents: int
    pairs: int
    dropped: int

    @property
    def per_million(self) -> float:
        """Matching pairs in a million of all their pairs."""
        every = self.documents * (self.documents - 1) // 2
        return 1e6 * self.pairs / every if every else 0.0

    @property
    def share(self) -> float:
        """The share that would be dropped."""
        return self.dropped / self.documents if self.documents else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"per_million": self.per_million, "share": self.share}


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How the figures at one threshold grow with the number of documents.

    Attributes
    ----------
    threshold : float
        Pairs at or above it match.
    first : tuple of Size
        A sixteenth of the documents, an eighth, a quarter, a half and all of them: the first ones of the input.
    drawn : tuple of Size
        As many documents, drawn at random; a larger draw holds the smaller ones.
    together : float
        The share of the matching pairs that lie within one of sixteen consecutive parts of the input; by chance it is
        about a sixteenth.
    seed : int
        Another one draws others.
    """

    threshold: float
    first: tuple[Size, ...]
    drawn: tuple[Size, ...]
    together: float
    seed: int

    @property
    def sentence(self) -> str:
        """How the density of pairs and the share of dropped documents change with the size, by figure."""
        head, every = f"At {self.threshold:g}", self.first[-1]
        if not every.pairs:
            return f"{head} no pair matches, so there is nothing that could grow."
        place = next((i for i, size in enumerate(self.first[:-1]) if self._expected(size) >= _ENOUGH), None)
        if place is None:
            pairs = f"{every.pairs:,} pairs match" if every.pairs > 1 else "one pair matches"
            return f"{head} {pairs}: too few to tell how they grow with the corpus."
        first, drawn = self.first[place], self.drawn[place]
        close = "stand close together" if self.together * _PARTS >= _CLOSE else "stand anywhere"
        dropped, of_all = share(drawn.dropped, drawn.documents), share(every.dropped, every.documents)
        return (
            f"{head} {_figure(first.per_million)} pairs in a million match among the first {first.documents:,} "
            f"documents of the input, and {_figure(every.per_million)} among all {every.documents:,}: the density "
            f"{self._change(first, every)}. Documents that match {close} in the input: {share(self.together, 1)} of "
            f"the pairs lie within one of its sixteen parts, by chance it would be {share(1, _PARTS)}. Random "
            f"documents are as dense at any size, but for chance ({_figure(drawn.per_million)} for "
            f"{drawn.documents:,}); what grows is the share that is dropped, {dropped} of these and {of_all} of all."
        )

    def _expected(self, size: Size) -> float:
        """Return how many pairs as many random documents have in the mean."""
        return self.first[-1].per_million * size.documents * (size.documents - 1) / 2e6

    @staticmethod
    def _change(first: Size, every: Size) -> str:
        if every.per_million * _SAME < first.per_million:
            return "falls as documents come in"
        if every.per_million > first.per_million * _SAME:
            return "rises as documents come in"
        return "stays about the same as documents come in"

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "threshold": self.threshold,
            "seed": self.seed,
            "first": [size.as_dict() for size in self.first],
            "drawn": [size.as_dict() for size in self.drawn],
            "together": self.together,
            "sentence": self.sentence,
        }


def growth_of(
    known: Levels, place: int, threshold: float, *, present: Bools, rows: Integers, seed: int
) -> Growth | None:
    """Return how pairs and dropped documents grow, from known pairs; None of so few that a part has not two documents.

    What a recipe takes from the collection, such as weights of features, stays that of the whole.

    Parameters
    ----------
    known : Levels
        The pairs.
    place, threshold : int, float
        Which threshold, by its place among those of ``known`` and as a number.
    present : bool[n]
        False for documents set aside.
    rows : int64[n]
        The row of each document, by which chance goes.
    seed : int
        Another one draws other documents.
    """
    documents = np.flatnonzero(present)
    if len(documents) < 2 * _PARTS:
        return None
    at_random = documents[by_chance(rows[documents], seed)]
    every = _size(known, place, documents)
    sizes = [len(documents) * 2**i // _PARTS for i in range(_PARTS.bit_length() - 1)]
    within = sum(int(known.pairs(_mask(part, len(rows)))[place]) for part in np.array_split(documents, _PARTS))
    return Growth(
        threshold=threshold,
        first=(*(_size(known, place, documents[:size]) for size in sizes), every),
        drawn=(*(_size(known, place, at_random[:size]) for size in sizes), every),
        together=within / every.pairs if every.pairs else 0.0,
        seed=seed,
    )


def by_chance(rows: Integers, seed: int) -> Integers:
    """Return places in the order in which samples are drawn, which rows and seed alone determine.

    So a larger draw holds the smaller ones.
    """
    return np.argsort(hashes_of(rows, seed), kind="stable")


def _size(known: Levels, place: int, chosen: Integers) -> Size:
    figures = known.figures(_mask(chosen, len(known.order)))
    return Size(documents=len(chosen), pairs=int(figures.pairs[place]), dropped=int(figures.dropped[place]))


def _mask(chosen: Integers, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[chosen] = True
    return mask


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


#: Among so many documents all pairs are looked for, to tell at which threshold they will not be too many.
_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """What the searches of a curve found.

    Attributes
    ----------
    lowest : Fraction or None
        The lowest threshold whose pairs are all known; None where there is none.
    matches : Matches or None
        Those pairs.
    own : Matches
        What ``dedup`` finds at the recipe's own threshold, if that is lower; else pairs that hold those.
    dropped : dict
        How many documents are dropped at lower thresholds, for some of these.
    """

    lowest: Fraction | None
    matches: Matches | None
    own: Matches
    dropped: dict[Fraction, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Searches:
    """The searches that make a curve.

    Attributes
    ----------
    read : Collected
        The corpus; its features are at hand.
    recipe : Recipe
        What is compared.
    thresholds : sequence of Fraction
        Those of the curve, ascending, the recipe's own among them.
    worth : sequence of Fraction
        Those that are worth a search of their own where not all pairs are known.
    most_pairs : int
        More pairs of distinct documents are too many.
    seed : int
        Which documents tell how many pairs there will be.
    threads : int
        They change the time, never the answer.
    progress : callable
        Told (documents done, documents in all) from time to time.
    """

    read: Collected
    recipe: Recipe
    thresholds: Sequence[Fraction]
    worth: Sequence[Fraction]
    most_pairs: int
    seed: int
    threads: int
    progress: StepProgress

    def run(self) -> Searched:
        """Find all pairs at the lowest threshold; where they are too many, at one where they are not.

        Raises
        ------
        RecipeError
            If the recipe has weights, and too many pairs match at its own threshold.
        """
        found = self._find(self.thresholds[0], self.most_pairs, give_up=True)
        return Searched(self.thresholds[0], found, found) if found.complete else self._higher(found)

    def _higher(self, too_many: Matches) -> Searched:
        own, weighted = self.recipe.exact_threshold, self.recipe.is_weighted
        at_own = self._find(own, self.most_pairs, give_up=weighted)
        if weighted and not at_own.complete:
            raise RecipeError(
                f"more than {self.most_pairs:,} pairs match at {self.recipe.threshold:g}, too many for a curve of "
                f"weights {self.recipe.weights!r}; raise the threshold, or leave the weights out"
            )
        expected = self._expected(members_of(too_many.representative))
        few = [at for at, pairs in zip(self.thresholds, expected, strict=True) if 2 * pairs <= self.most_pairs]
        if at_own.complete:
            lowest, matches = self._first([at for at in few if at < own])
            if matches is None:
                lowest, matches = own, at_own
        else:
            lowest, matches = self._first([at for at in few if at > own] or self.thresholds[-1:])
        searched = Searched(lowest, matches, at_own)
        if not weighted:
            self._count(searched)
        return searched

    def _first(self, thresholds: Sequence[Fraction]) -> tuple[Fraction, Matches] | tuple[None, None]:
        """Return the first that has not too many pairs, and these; fewer and fewer of them are looked at."""
        place, step = 0, 1
        while place < len(thresholds):
            found = self._find(thresholds[place], self.most_pairs, give_up=True)
            if found.complete:
                return thresholds[place], found
            place, step = place + step, 2 * step
        return None, None

    def _expected(self, distinct: npt.NDArray[np.int64]) -> list[float]:
        """Return about how many pairs there are at each threshold, from all pairs of a few documents."""
        some = distinct[by_chance(self.read.names.rows[distinct], self.seed)[:_LOOKED_AT]]
        others = np.ones(len(self.read.names), np.bool_)
        others[some] = False
        found = self._find(self.thresholds[0], None, excluded=others)
        known = levels_of(found, self.recipe.measure, self.read.order, self.thresholds).pairs()
        share = len(distinct) * (len(distinct) - 1) / max(len(some) * (len(some) - 1), 1)
        return [pairs * share for pairs in known.tolist()]

    def _count(self, searched: Searched) -> None:
        """Count what is dropped at the thresholds below."""
        for at in self.worth:
            if searched.lowest is None or at < searched.lowest:
                found = searched.own if at == self.recipe.exact_threshold else self._find(at, 0)
                pairs = graph(len(self.read.order), found.left, found.right, np.zeros(len(found.left)))
                kept = keepers(found.representative, pairs, self.read.order)
                searched.dropped[at] = int(kept.dropped.sum())

    def _find(
        self,
        threshold: Fraction,
        most_pairs: int | None,
        *,
        give_up: bool = False,
        excluded: npt.NDArray[np.bool_] | None = None,
    ) -> Matches:
        return find_pairs(
            self.read.store,
            self.recipe.changed(threshold=float(threshold)),
            self.read.statistics,
            threads=self.threads,
            excluded=~self.read.present if excluded is None else excluded,
            keep_order=self.read.order,
            most_pairs=most_pairs,
            give_up=give_up,
            progress=self.progress,
        )


#: The thresholds of the table, and those that take a search of their own where not all pairs are known.
_COARSE = Fraction(1, 20)
_FINEST_STEP = Fraction(1, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one threshold would give.

    Attributes
    ----------
    threshold : float
        Pairs at or above it match.
    dropped : int
        Documents that ``dedup`` would drop.
    pairs, families, largest_family : int or None
        As in the summary of ``dedup``; None below ``Curve.lowest``, where the pairs are too many to know them all.
    """

    threshold: float
    dropped: int
    pairs: int | None = None
    families: int | None = None
    largest_family: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Pairs, dropped documents and families of a whole corpus at each threshold.

    Attributes
    ----------
    recipe : Recipe
        What was compared; its threshold is one of the points.
    documents : int
        How many the corpus has.
    asked : float
        The lowest threshold that was asked for, or the recipe's where that is lower.
    lowest : float or None
        From where on all pairs are known: ``asked``, or more where there they are too many; None where they are too
        many everywhere.
    most_pairs : int
        More pairs of distinct documents than this are too many.
    points : tuple of Point
        By threshold, ascending: one for each step from ``lowest`` on; below it, one for each 0.05.
    """

    recipe: Recipe
    documents: int
    asked: float
    lowest: float | None
    most_pairs: int
    points: tuple[Point, ...]

    @property
    def complete(self) -> bool:
        """Whether all pairs are known at every point."""
        return self.lowest == self.asked

    @property
    def note(self) -> str:
        """What is not known and why; empty where all is."""
        if self.complete:
            return ""
        what = "pairs of distinct documents than we look for"
        if self.lowest is None:
            head = f"At every threshold there are more {what}, {self.most_pairs:,}: how many is not known."
        else:
            head = (
                f"At {self.asked:g} there are more {what}, {self.most_pairs:,}: pairs and families are known from "
                f"{self.lowest:g} on."
            )
        if self.recipe.is_weighted:
            return head
        return f"{head} Dropped documents are exact at every point: who stays is known without all pairs."

    @property
    def table(self) -> tuple[Point, ...]:
        """The points to tell: those at multiples of 0.05, the ends, and the recipe's own threshold."""
        told = {self.asked, self.lowest, float(self.recipe.exact_threshold), 1.0}
        return tuple(
            point for point in self.points if point.threshold in told or _exact(point.threshold) % _COARSE == 0
        )

    def at(self, threshold: float) -> Point | None:
        """Return the point of a threshold, None where there is none."""
        return next((point for point in self.points if _exact(point.threshold) == _exact(threshold)), None)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "recipe": asdict(self.recipe),
            "in_words": self.recipe.in_words(),
            "documents": self.documents,
            "asked": self.asked,
            "lowest": self.lowest,
            "complete": self.complete,
            "most_pairs": self.most_pairs,
            "note": self.note,
            "points": [asdict(point) for point in self.points],
        }


class Whole(NamedTuple):
    """What the exact join says of a whole corpus.

    Attributes
    ----------
    curve : Curve
        Every threshold.
    result : Result
        What ``dedup`` finds with the recipe, at its own threshold: there is no need to call ``at``.
    growth : Growth or None
        How the figures grow with the corpus, at the recipe's threshold or, where that is higher, at ``curve.lowest``;
        None of fewer than 32 documents, and where too many pairs match everywhere.
    """

    curve: Curve
    result: Result
    growth: Growth | None


def check_curve(recipe: Recipe) -> None:
    """Refuse a recipe that has no curve.

    Raises
    ------
    RecipeError
        In one sentence: what it has, why there is no curve, the way out.
    """
    if recipe.second_step:
        what, why = f"second_step {recipe.second_step!r}", "has a threshold of its own; leave it out"
    elif measure(recipe.measure).distance or recipe.measure == "semantic":
        what, why = f"measure {recipe.measure!r}", "is no similarity of features; take one, such as 'jaccard'"
    elif recipe.search != "exact":
        what, why = f"search {recipe.search!r}", "finds other pairs for each threshold; choose search 'exact'"
    else:
        return
    raise RecipeError(f"what each threshold gives comes from one exact join of features, and {what} {why}")


def curve_of(
    corpus: Corpus,
    recipe: Recipe,
    *,
    lowest: float = 0.2,
    step: float = 0.01,
    most_pairs: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    memory: int | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Whole:
    """Find what each threshold would give on a whole corpus, by one exact join at the lowest.

    Parameters
    ----------
    corpus : Corpus
        It is read once, or twice for recipes with ``needs_statistics``; it must stay open as long as the result is
        asked.
    recipe : Recipe
        For the exact join of sets or weighted vectors, by a similarity. Its own threshold is that of the result and
        of ``growth``.
    lowest : float
        The lowest threshold, in (0, 1]; where the recipe's is lower, that one. Lowering it finds more pairs, slower.
    step : float
        Thresholds are its multiples, besides the lowest, the recipe's and 1; in [0.001, 1]. Raising it makes the curve
        coarser and hardly changes the time.
    most_pairs : int, optional
        Where more pairs of distinct documents match, pairs and families are told from a higher threshold on, and each
        multiple of 0.05 below takes a search of its own for the dropped documents. Like ``dedup``, 20 a document by
        default, and a million at least. Raising it takes more memory, some 150 bytes a pair.
    seed : int
        Which documents ``growth`` draws.
    threads, memory, progress
        As in ``pipeline.run``.
    clock : Clock, optional
        Gets the stages.

    Raises
    ------
    RecipeError
        If the recipe is none for the exact join, a value is out of range, or there are weights and too many pairs
        match at the recipe's threshold.
    NeardupError
        If the input cannot be read.
    """
    check_curve(recipe)
    thresholds = _thresholds(recipe, lowest, step)
    threads = checked_threads(threads)
    clock = clock or Clock()
    report = progress or (lambda stage, done, total: None)
    read = collect(corpus, recipe, threads=threads, memory=memory, report=report, clock=clock)
    most = most_of(PAIRS_PER_DOCUMENT, len(read.names)) if most_pairs is None else most_pairs
    with read.store as store, clock.stage("join"):
        told = (thresholds[0], recipe.exact_threshold, 1)
        found = Searches(
            read=read,
            recipe=recipe,
            thresholds=thresholds,
            worth=[at for at in thresholds if at in told or at % _COARSE == 0],
            most_pairs=most,
            seed=seed,
            threads=threads,
            progress=partial(report, "join"),
        ).run()
        spilled = store.memory.spilled_bytes
    with clock.stage("thresholds"):
        above = [at for at in thresholds if found.lowest is not None and at >= found.lowest]
        points = [Point(threshold=float(at), dropped=dropped) for at, dropped in sorted(found.dropped.items())]
        growth = None
        joined = found.own
        if found.matches is not None:
            known = levels_of(found.matches, recipe.measure, read.order, above)
            points += _points(above, known.figures())
            place = above.index(max(recipe.exact_threshold, above[0]))
            at = float(above[place])
            growth = growth_of(known, place, at, present=read.present, rows=read.names.rows, seed=seed)
            if recipe.exact_threshold >= above[0]:
                joined = narrowed(found.matches, known.level >= place)
        curve = Curve(
            recipe=recipe,
            documents=int(read.present.sum()),
            asked=float(thresholds[0]),
            lowest=float(above[0]) if above else None,
            most_pairs=most,
            points=tuple(points),
        )
        result = _result(corpus, recipe, read, joined, clock, threads, spilled)
    return Whole(curve, result, growth)


def _thresholds(recipe: Recipe, lowest: float, step: float) -> list[Fraction]:
    """Return the thresholds of the curve, ascending."""
    own, part = recipe.exact_threshold, exact_fraction(step, "step")
    if part < _FINEST_STEP:
        raise RecipeError(f"step {step} is below {float(_FINEST_STEP)}; give at least that")
    first = min(exact_fraction(lowest, "lowest threshold"), own)
    multiples = (i * part for i in range(1, int(1 / part) + 1))
    return sorted({first, own, Fraction(1), *(at for at in multiples if at > first)})


def _points(thresholds: Sequence[Fraction], figures: Figures) -> list[Point]:
    rows = zip(thresholds, *(column.tolist() for column in figures), strict=True)
    return [
        Point(threshold=float(at), pairs=pairs, dropped=dropped, families=families, largest_family=largest)
        for at, pairs, dropped, families, largest in rows
    ]


def _exact(threshold: float) -> Fraction:
    return exact_fraction(threshold, "threshold")


def _result(
    corpus: Corpus, recipe: Recipe, read: Collected, joined: Matches, clock: Clock, threads: int, spilled: int
) -> Result:
    """Return the result of pairs at the recipe's threshold, as ``pipeline.run`` does."""
    store = read.store
    documents = Documents(read.names, read.order, store.text_marks, store.text_bytes, read.present)
    details = {
        "undecidable": int((read.present & (joined.representative < 0)).sum()),
        "without_keep_value": read.without_keep_value,
        "search": joined.statistics | {"spilled_bytes": spilled},
        "threads": threads,
        "version": __version__,
    } | recipe_details(recipe)
    return Result(corpus, recipe, documents, joined, details, clock, statistics=read.statistics)
