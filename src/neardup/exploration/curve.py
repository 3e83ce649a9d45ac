"""The exact join of a whole corpus: what each threshold gives, and what is found at one of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Self

from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.features.reading import Progress
from neardup.keep.pairs import Pairs
from neardup.pipeline.pipeline import collect_features
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, measure, reaches_threshold, similarities
from neardup.runtime import Clock
from neardup.search.engines import PAIRS_PER_DOCUMENT, find_pairs, pair_limit
from neardup.search.findings import Documents, Findings, assemble_findings
from neardup.search.margin import select_pairs
from neardup.search.matches import Matches
from neardup.search.thresholds import levels_of

#: The thresholds of a curve are multiples of this, those of its table of that.
_STEP, _COARSE = Fraction(1, 100), Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one threshold would give."""

    #: Pairs at or above it match.
    threshold: float
    #: Documents that ``dedup`` would drop.
    dropped: int
    #: As in the summary of ``dedup``; None where there are too many pairs to find them all.
    pairs: int | None = None
    families: int | None = None
    largest_family: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Pairs, dropped documents and families of a whole corpus at each threshold."""

    #: What was compared; its threshold is one of the points.
    recipe: Recipe
    documents: int
    #: The lowest threshold.
    asked: float
    #: Whether all pairs at the lowest threshold were found. Where they were too many, the only point is that of the
    #: recipe's threshold.
    complete: bool
    #: More pairs of distinct documents than this are too many.
    most_pairs: int
    #: By threshold, ascending.
    points: tuple[Point, ...]

    @property
    def table(self) -> tuple[Point, ...]:
        """The points of a short table: multiples of 0.05, the lowest threshold, and the recipe's own."""
        wanted = {self.asked, float(self.recipe.exact_threshold)}
        return tuple(one for one in self.points if one.threshold in wanted or _exact(one.threshold) % _COARSE == 0)

    def at(self, threshold: float) -> Point | None:
        """Return the point of a threshold, None where there is none."""
        return next((point for point in self.points if _exact(point.threshold) == _exact(threshold)), None)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"in_words": self.recipe.in_words()}


def check_curve(recipe: Recipe) -> None:
    """Refuse a recipe that has no curve."""
    if recipe.second_step:
        what, why = f"second_step {recipe.second_step!r}", "has a threshold of its own; leave it out"
    elif measure(recipe.measure).distance or recipe.measure == "semantic":
        what, why = f"measure {recipe.measure!r}", "is no similarity of features; take one, such as 'jaccard'"
    elif recipe.search != "exact":
        what, why = f"search {recipe.search!r}", "finds other pairs at each threshold; choose search 'exact'"
    else:
        return
    raise RecipeError(f"what each threshold gives comes from one exact join of features, and {what} {why}")


class ThresholdSearch:
    """A corpus read once, its features at hand, joined at the lowest threshold; a context that frees the features.

    The corpus is read once, or twice for recipes with ``needs_statistics``; it must stay open as long as what was found
    is used. Lowering ``lowest`` finds more pairs, slower. Raises ``RecipeError`` if the recipe is not one for the exact
    join.
    """

    def __init__(
        self,
        corpus: Corpus,
        recipe: Recipe,
        lowest: float,
        *,
        threads: int,
        memory: int | None,
        clock: Clock,
        progress: Progress,
    ) -> None:
        check_curve(recipe)
        self._corpus, self._recipe = corpus, recipe.changed(threshold=lowest)
        self._threads, self._clock, self._progress = threads, clock, progress
        self._read = collect_features(corpus, recipe, threads=threads, memory=memory, report=progress, clock=clock)
        self._most = pair_limit(PAIRS_PER_DOCUMENT, len(self._read.names))
        with clock.stage("join"):
            self._matches = self._find(self._recipe, all_or_none=True)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Free the features."""
        self._read.store.close()

    @property
    def pairs(self) -> Pairs | None:
        """All pairs at the lowest threshold; None where they are too many."""
        return self._pairs(self._matches, self._recipe) if self._matches.complete else None

    def curve(self) -> Curve:
        """Return what each threshold would give; without points where the pairs are too many."""
        lowest = self._recipe.exact_threshold
        points: list[Point] = []
        if self._matches.complete:
            multiples = (i * _STEP for i in range(1, int(1 / _STEP) + 1))
            thresholds = sorted({lowest, *(at for at in multiples if at > lowest)})
            with self._clock.stage("thresholds"):
                figures = levels_of(self._matches, self._recipe.measure, self._read.keep_order, thresholds).figures()
            rows = zip(thresholds, *(column.tolist() for column in figures), strict=True)
            points = [
                Point(threshold=float(at), pairs=pairs, dropped=dropped, families=families, largest_family=largest)
                for at, pairs, dropped, families, largest in rows
            ]
        return Curve(
            recipe=self._recipe,
            documents=int(self._read.present.sum()),
            asked=float(lowest),
            complete=self._matches.complete,
            most_pairs=self._most,
            points=tuple(points),
        )

    def at(self, recipe: Recipe) -> tuple[Findings | None, Point | None]:
        """Return what ``dedup`` finds by the same recipe at a threshold of its own, no lower than the lowest.

        Nothing of weights where too many pairs match even there.
        """
        if self._matches.complete:
            known = self._matches
            reached = reaches_threshold(recipe.measure, known.counts, recipe.exact_threshold, known.unit)
            matches = select_pairs(known, reached)
        else:
            with self._clock.stage("join"):
                matches = self._find(recipe, all_or_none=recipe.is_weighted)
            if recipe.is_weighted and not matches.complete:
                return None, None
        read, pairs = self._read, self._pairs(matches, recipe)
        documents = Documents(read.names, read.keep_order, read.store.text_digests, read.store.text_bytes, read.present)
        found = assemble_findings(self._corpus, recipe, documents, matches, pairs, classifier=None, margin=None)
        point = Point(threshold=recipe.threshold, dropped=int(found.dropped_mask.sum()))
        if matches.complete:
            sizes = found.families.documents
            point = replace(point, pairs=len(pairs), families=len(sizes), largest_family=int(sizes.max(initial=0)))
        return found, point

    def _find(self, recipe: Recipe, *, all_or_none: bool) -> Matches:
        return find_pairs(
            self._read.store,
            recipe,
            self._read.statistics,
            threads=self._threads,
            excluded=~self._read.present,
            keep_order=self._read.keep_order,
            max_pairs=self._most,
            all_or_none=all_or_none,
            progress=partial(self._progress, "join"),
        )

    def _pairs(self, matches: Matches, recipe: Recipe) -> Pairs:
        similarity = similarities(recipe.measure, matches.counts, matches.unit)
        return Pairs(self._read.names, matches.representative, matches.left, matches.right, similarity)


def _exact(threshold: float) -> Fraction:
    return exact_fraction(threshold, "threshold")
