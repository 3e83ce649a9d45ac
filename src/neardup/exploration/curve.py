"""The exact join of a whole corpus: the results of each threshold, and the findings at one of them."""

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
from neardup.search.engines import PAIRS_PER_DOCUMENT, PairSearch, pair_limit
from neardup.search.findings import Findings, assemble_findings
from neardup.search.margin import select_pairs
from neardup.search.matches import Matches
from neardup.search.thresholds import count_at_thresholds

#: The thresholds of a curve are multiples of the first, those of its table of the second.
_STEP, _TABLE_STEP = Fraction(1, 100), Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The results of one threshold."""

    threshold: float
    dropped: int
    #: As in the summary of ``dedup``; None if there are too many pairs to find them all.
    pairs: int | None = None
    families: int | None = None
    largest_family: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Pairs, dropped documents and families of a whole corpus at each threshold."""

    #: The recipe of the join; its threshold is one of the points.
    recipe: Recipe
    documents: int
    asked: float
    #: Whether all pairs at the lowest threshold were found. If they were too many, the only point is that of the
    #: recipe's threshold.
    complete: bool
    #: More pairs of distinct documents than this are too many.
    most_pairs: int
    points: tuple[Point, ...]

    @property
    def table(self) -> tuple[Point, ...]:
        """The points of a short table: multiples of 0.05, the lowest threshold, and the recipe's own."""
        table_thresholds = {self.asked, float(self.recipe.exact_threshold)}
        return tuple(
            one
            for one in self.points
            if one.threshold in table_thresholds or _exact_threshold(one.threshold) % _TABLE_STEP == 0
        )

    def at(self, threshold: float) -> Point | None:
        """Return the point of a threshold; None if there is none."""
        return next(
            (point for point in self.points if _exact_threshold(point.threshold) == _exact_threshold(threshold)), None
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"in_words": self.recipe.in_words()}


def check_curve(recipe: Recipe) -> None:
    """Raise ``RecipeError`` if a recipe has no curve."""
    if recipe.second_step:
        what, why = f"second_step {recipe.second_step!r}", "has its own threshold; leave it out"
    elif measure(recipe.measure).distance or recipe.measure == "semantic":
        what, why = f"measure {recipe.measure!r}", "is no similarity of features; choose one, such as 'jaccard'"
    elif recipe.search != "exact":
        what, why = f"search {recipe.search!r}", "finds other pairs at each threshold; choose search 'exact'"
    else:
        return
    raise RecipeError(f"a curve of thresholds comes from one exact join of features, and {what} {why}")


class ThresholdSearch:
    """The features of a corpus, joined at the lowest threshold; a context manager that frees them.

    The corpus must stay open as long as the findings are used. Lowering ``lowest`` finds more pairs and takes longer.
    Raises ``RecipeError`` if the recipe does not use the exact join.
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
        self._clock = clock
        self._features = collect_features(corpus, recipe, threads=threads, memory=memory, report=progress, clock=clock)
        self._most_pairs = pair_limit(PAIRS_PER_DOCUMENT, len(self._features.names))
        search = PairSearch(
            store=self._features.store,
            statistics=self._features.statistics,
            keep_order=self._features.keep_order,
            threads=threads,
        )
        self._find_pairs = partial(search, max_pairs=self._most_pairs, progress=partial(progress, "join"))
        with clock.stage("join"):
            self._matches = self._find_pairs(self._recipe, all_or_none=True)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Free the features."""
        self._features.store.close()

    @property
    def pairs(self) -> Pairs | None:
        """All pairs at the lowest threshold; None if they are too many."""
        return self._pair_table(self._matches, self._recipe) if self._matches.complete else None

    def curve(self) -> Curve:
        """Return the results of each threshold; without points if the pairs are too many."""
        lowest = self._recipe.exact_threshold
        points: list[Point] = []
        if self._matches.complete:
            multiples = (i * _STEP for i in range(1, int(1 / _STEP) + 1))
            thresholds = sorted({lowest, *(at for at in multiples if at > lowest)})
            with self._clock.stage("thresholds"):
                figures = count_at_thresholds(
                    self._matches, self._recipe.measure, self._features.keep_order, thresholds
                )
            rows = zip(thresholds, *(column.tolist() for column in figures), strict=True)
            points = [
                Point(threshold=float(at), pairs=pairs, dropped=dropped, families=families, largest_family=largest)
                for at, pairs, dropped, families, largest in rows
            ]
        return Curve(
            recipe=self._recipe,
            documents=int(self._features.present.sum()),
            asked=float(lowest),
            complete=self._matches.complete,
            most_pairs=self._most_pairs,
            points=tuple(points),
        )

    def at(self, recipe: Recipe) -> tuple[Findings | None, Point | None]:
        """Return the findings and the point of the same recipe at a threshold of at least the lowest.

        Both are None for weights if too many pairs match even there.
        """
        if self._matches.complete:
            all_matches = self._matches
            reached = reaches_threshold(recipe.measure, all_matches.counts, recipe.exact_threshold, all_matches.unit)
            matches = select_pairs(all_matches, reached)
        else:
            with self._clock.stage("join"):
                matches = self._find_pairs(recipe, all_or_none=recipe.is_weighted)
            if recipe.is_weighted and not matches.complete:
                return None, None
        pairs = self._pair_table(matches, recipe)
        found = assemble_findings(
            self._corpus, recipe, self._features.documents, matches, pairs, classifier=None, margin=None
        )
        point = Point(threshold=recipe.threshold, dropped=int(found.dropped_mask.sum()))
        if matches.complete:
            sizes = found.families.documents
            point = replace(point, pairs=len(pairs), families=len(sizes), largest_family=int(sizes.max(initial=0)))
        return found, point

    def _pair_table(self, matches: Matches, recipe: Recipe) -> Pairs:
        similarity = similarities(recipe.measure, matches.counts, matches.unit)
        return Pairs(self._features.names, matches.representative, matches.left, matches.right, similarity)


def _exact_threshold(threshold: float) -> Fraction:
    return exact_fraction(threshold, "threshold")
