"""The stages of an exploration: the sample, its pairs by each recipe, weights, and the whole corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from neardup.clock import Clock
from neardup.documents import Corpus
from neardup.errors import InputError, RecipeError
from neardup.exploring.choosing import Choice
from neardup.exploring.comparing import check_comparable, texts_array, vectors_of, view_of
from neardup.exploring.composition import makeup_of
from neardup.exploring.curve import Curve, Whole, check_curve, curve_of
from neardup.exploring.examples import Examples, examples_of
from neardup.exploring.frequencies import frequencies_of
from neardup.exploring.growth import Growth, growth_of
from neardup.exploring.histogram import BINS, View
from neardup.exploring.makeup import Makeup
from neardup.exploring.overlaps import NONE_CLOSE, SamplePairs
from neardup.exploring.sample import Sample, Survey, draw_sample
from neardup.exploring.weighting import Weighting, weighted_recipe, weighting_of
from neardup.features.statistics import Statistics
from neardup.findings import Findings
from neardup.material import Material
from neardup.reading import Report
from neardup.recipe import AnyRecipe, Recipe, recipe_of
from neardup.search.levels import levels_of

#: Word n-grams that are looked at by default; q-grams of short documents, and how few words make these.
LENGTHS = tuple(range(1, 8))
SHORT_QGRAMS, FEW_WORDS = (4, 5, 6), 20
#: Pairs from so many hundredths on are held, below the lowest cutoff; and no more than these.
_HELD, _MOST_HELD = 4, 5_000_000
#: What recipes of n-grams are called.
_NAME = "explored"


class Asked(NamedTuple):
    """A recipe to compare by, and what its view is called; the features where that is empty."""

    recipe: Recipe
    name: str


class Settled(NamedTuple):
    """What is known of the whole corpus at the advised threshold."""

    curve: Curve
    findings: Findings
    growth: Growth | None


def grams(kind: str, lengths: Sequence[int], *, multiset: bool, content: str) -> list[Asked]:
    """Return a recipe for each length of word n-grams (``words``) or character q-grams (``qgrams``).

    Raises
    ------
    RecipeError
        If a length is out of range.
    """
    flag = ":multiset" if multiset else ""
    recipes = [Recipe(name=_NAME, content=content, features=f"{kind}:{n}{flag}") for n in sorted(set(lengths))]
    return [Asked(recipe, "") for recipe in recipes]


def named(recipes: Sequence[AnyRecipe], content: str) -> list[Asked]:
    """Return recipes, by name or file where they are texts.

    Raises
    ------
    RecipeError
        If there is none of that name, or one cannot be compared by features.
    """
    found = []
    for given in recipes:
        recipe = recipe_of(given)
        check_comparable(recipe, content)
        found.append(Asked(recipe.changed(content=recipe.content or content), recipe.name))
    return found


class Look:
    """An exploration under way.

    Parameters
    ----------
    corpus : Corpus
        What is looked at.
    threads, memory, seed, content, report
        As in ``explore``.

    Attributes
    ----------
    clock : Clock
        What each stage cost.
    notes : list of str
        What was not looked at, or not as asked.
    """

    def __init__(
        self, corpus: Corpus, threads: int, memory: int | None, seed: int, content: str, report: Report
    ) -> None:
        self.clock, self.notes = Clock(), list[str]()
        self._corpus, self._seed, self._content, self._report = corpus, seed, content, report
        self._threads, self._memory = threads, memory
        self._texts: pa.LargeStringArray = texts_array([])
        self._statistics: dict[Recipe, Statistics] = {}

    def draw(self, sample: int) -> tuple[Sample, Survey]:
        """Draw the sample.

        Raises
        ------
        InputError
            If the corpus has fewer than two documents.
        """
        with self.clock.stage("sample"):
            drawn, survey = draw_sample(
                self._corpus,
                sample=sample,
                seed=self._seed,
                content=self._content,
                threads=self._threads,
                report=self._report,
            )
        if len(drawn) < 2:
            documents = "1 document" if len(drawn) else "no document"
            raise InputError(f"the input has {documents}, and explore compares pairs: give two documents or more")
        self._texts = texts_array(drawn.texts)
        return drawn, survey

    def views(self, asked: Sequence[Asked], shorter: Sequence[Asked]) -> list[View]:
        """Compare all pairs of the sample by each recipe.

        Parameters
        ----------
        asked : sequence of Asked
            The recipes; the shortest word n-grams first, where there are some.
        shorter : sequence of Asked
            What is looked at, too, where these say that documents are short.
        """
        with self.clock.stage("compare"):
            found = [self._view(*asked[0])]
            words = found[0].typical + (found[0].n or 1) - 1
            if shorter and found[0].typical > 0 and words < FEW_WORDS:
                names = ", ".join(one.recipe.features for one in shorter)
                self.notes.append(f"Documents are short, {words} words in the median, so {names} were looked at, too.")
                asked = [*asked, *shorter]
            found += [self._view(*one) for one in asked[1:]]
        return found

    def _view(self, recipe: Recipe, name: str) -> View:
        if recipe.then:
            self.notes.append(f"Recipe {name!r} was compared without its second step, {recipe.then}.")
        if recipe.needs_statistics:
            self._statistics[recipe] = frequencies_of(
                self._corpus, recipe, self._texts, threads=self._threads, report=self._report
            )
        return self._compared(recipe, name, NONE_CLOSE)[0]

    def _compared(self, recipe: Recipe, name: str, least: int) -> tuple[View, SamplePairs]:
        statistics = self._statistics.get(recipe)
        vectors = vectors_of(self._texts, recipe, statistics, threads=self._threads)
        return view_of(vectors, recipe, statistics, name=name, least=least, threads=self._threads)

    def close(self, view: View) -> SamplePairs:
        """Return the pairs of the sample that a view says are close, by their places in the sample."""
        least = next(at for at in range(_HELD, BINS + 1) if view.at_least(at) <= _MOST_HELD or at == BINS)
        if least > _HELD:
            self.notes.append(
                f"More than {_MOST_HELD:,} pairs of the sample have a similarity of {_HELD / BINS:g} or more by "
                f"{view.name}: those below {least / BINS:g} are not shown as examples. A smaller sample has fewer."
            )
        with self.clock.stage("compare"):
            return self._compared(view.recipe, view.name, least)[1]

    def weighting(self, view: View, close: SamplePairs, drawn: Sample) -> Weighting | None:
        """Return what idf weights make of a view; None where its features take none."""
        if view.measure != "jaccard" or view.recipe.signature or view.recipe.weights:
            return None
        try:
            weighted_recipe(view.recipe)
        except RecipeError:
            return None
        with self.clock.stage("weights"):
            return weighting_of(
                self._corpus,
                self._texts,
                view,
                close,
                drawn.corpus_pairs,
                threads=self._threads,
                report=self._report,
            )

    def whole(self, choice: Choice, lowest: float) -> Whole | None:
        """Join the whole corpus by the chosen features at the lowest threshold; None where that cannot be done."""
        recipe = choice.view.recipe
        try:
            check_curve(recipe)
            return self._joined(recipe.changed(threshold=lowest), lowest)
        except RecipeError as error:
            self.notes.append(f"There is no curve of the whole corpus: {error}.")
            return None

    def settle(self, whole: Whole, recipe: Recipe) -> Settled:
        """Return what is known of the whole corpus at the threshold that is advised.

        Where the join at the lowest threshold has all pairs, they tell; else there is another join.
        """
        if not whole.curve.complete:
            self.notes.append(whole.curve.note)
            again = self._joined(recipe, whole.curve.asked)
            return Settled(again.curve, again.result.findings, again.growth)
        with self.clock.stage("thresholds"):
            loose, at = whole.result.findings, recipe.exact_threshold
            levels = sorted({loose.recipe.exact_threshold, at})
            growth = growth_of(
                levels_of(loose.matches, recipe.measure, loose.documents.order, levels),
                levels.index(at),
                float(at),
                present=loose.documents.present,
                rows=loose.documents.names.rows,
                seed=self._seed,
            )
            findings = whole.result.at(recipe.threshold).findings
        return Settled(replace(whole.curve, recipe=recipe), findings, growth)

    def _joined(self, recipe: Recipe, lowest: float) -> Whole:
        return curve_of(
            self._corpus,
            recipe,
            lowest=lowest,
            seed=self._seed,
            threads=self._threads,
            memory=self._memory,
            clock=self.clock,
            progress=self._report,
        )

    def material(self, drawn: Sample, title_column: str, time_column: str) -> Material:
        """Return the documents that are shown."""
        return Material(
            self._corpus,
            drawn.names,
            content=self._content,
            title_column=title_column,
            time_column=time_column,
            threads=self._threads,
        )

    def makeup(self, drawn: Sample, survey: Survey, material: Material, findings: Findings | None) -> Makeup:
        """Return what the corpus is made of."""
        with self.clock.stage("make-up"):
            return makeup_of(
                survey,
                drawn,
                self._corpus,
                material,
                findings=findings,
                content=self._content,
                threads=self._threads,
                memory=self._memory,
                report=self._report,
            )

    def examples(
        self,
        pairs: SamplePairs,
        survey: Survey,
        material: Material,
        whole: Whole | None,
        findings: Findings | None,
        count: int,
    ) -> tuple[Examples, ...]:
        """Return pairs to read at each cutoff, of the whole corpus where it is known and the sample has none."""
        known = whole is not None and whole.curve.complete
        with self.clock.stage("examples"):
            return examples_of(
                pairs,
                survey,
                material,
                whole=whole.result.pairs if whole is not None and known else None,
                family=None if findings is None else findings.families.family,
                count=count,
                seed=self._seed,
            )
