"""What each threshold would give on the whole corpus: pairs, dropped documents and families, from one exact join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from neardup import __version__
from neardup.clock import Clock
from neardup.details import recipe_details
from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.exploring.growth import Growth, growth_of
from neardup.exploring.raising import Searches
from neardup.findings import Documents
from neardup.measures import exact_fraction, measure
from neardup.pipeline import Collected, checked_threads, collect
from neardup.reading import Report
from neardup.recipe import Recipe
from neardup.result import Result
from neardup.search.around import narrowed
from neardup.search.engines import PAIRS_PER_DOCUMENT
from neardup.search.engines import most_pairs as most_of
from neardup.search.levels import Figures, levels_of
from neardup.search.matches import Matches

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
    if recipe.then:
        what, why = f"then {recipe.then!r}", "has a threshold of its own; leave it out"
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
    progress: Report | None = None,
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
