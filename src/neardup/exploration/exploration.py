"""An exploration run: a sample, its pairs by each recipe, the whole corpus, advice, and the corpus profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup import files as wholefile
from neardup.documents import Corpus
from neardup.documents.output import check_place
from neardup.errors import InputError, RecipeError
from neardup.exploration.advice import Advice, advise, choose_features
from neardup.exploration.curve import Curve, ThresholdSearch
from neardup.exploration.examples import ExamplePair, choose_examples, choose_suspects, sample_families, select_pairs
from neardup.exploration.messages import advised_view, explain_incomplete_curve, notebook_cell
from neardup.exploration.observations import Observations
from neardup.exploration.options import ExplorationOptions
from neardup.exploration.profile import profile_corpus
from neardup.exploration.sample import Sample, Survey, draw_sample
from neardup.exploration.views import (
    BINS,
    NO_CLOSE_PAIRS,
    View,
    build_view,
    check_comparable,
    count_frequencies,
    extract_vectors,
    texts_array,
)
from neardup.features.reading import Progress, ignore_progress
from neardup.features.statistics import Statistics
from neardup.keep.pairs import PairArrays, Pairs
from neardup.pages.documents import DocumentReader
from neardup.pages.page import check_drawing
from neardup.pipeline.pipeline import memory_budget, thread_count
from neardup.recipe import Recipe, resolve_recipe
from neardup.recipe.measures import similarity_at
from neardup.runtime import Clock
from neardup.search.findings import Findings
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.pages.charts import Plot

#: q-grams for short documents, and the median number of words below which documents are short.
SHORT_QGRAMS, FEW_WORDS = (4, 5, 6), 20
#: Pairs from this hundredth on, below the lowest cutoff, are kept; and at most this many of a view.
_LOWEST_HUNDREDTH, _MOST_PAIRS = 4, 5_000_000
_RECIPE_NAME = "explored"


class Exploration(Observations):
    """The result of an exploration, with its page, chart and notebook cell; see ``Observations`` for its attributes."""

    __slots__ = ()

    def to_html(self) -> str:
        """Return the page: one HTML file that needs only a browser.

        Raises
        ------
        OutputError
            If the packages that draw are not installed.
        """
        check_drawing("a page")
        from neardup.exploration.page import exploration_page

        return exploration_page(self)

    def write(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the page, or JSON where the name ends with .json; ``force`` allows to replace an existing file.

        Raises
        ------
        OutputError
            If the file exists or cannot be written, or the packages that draw are not installed.
        """
        check_place(fspath(path), self.inputs, force)
        is_json = fspath(path).endswith(".json")
        text = json.dumps(self.as_dict(), ensure_ascii=False, indent=2) + "\n" if is_json else self.to_html()
        wholefile.write_file(path, text.encode("utf-8", "replace"))

    def plot_similarity(self, views: Sequence[str] = ()) -> Plot:
        """Return the histograms of the sample as an Altair chart that loads nothing.

        Parameters
        ----------
        views : sequence of str
            The names of the views to show; all by default.

        Raises
        ------
        RecipeError
            If no view has one of these names.
        OutputError
            If the packages that draw are not installed.
        """
        check_drawing("a chart")
        from neardup.exploration.charts import similarity_chart

        names = [view.name for view in self.views]
        for name in views:
            if name not in names:
                raise RecipeError(f"view {name!r} is unknown; choose from {', '.join(names)}")
        shown = [view for view in self.views if not views or view.name in views]
        return similarity_chart(shown, advised_view(self), self.advice)

    def _repr_html_(self) -> str:
        return notebook_cell(self)


def explore(
    corpus: Corpus,
    options: ExplorationOptions,
    *,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str] = (),
    reading: Sequence[str] = (),
) -> Exploration:
    """Measure how similar a corpus is to itself, and describe its contents.

    All pairs of a random sample are compared by each recipe. The whole corpus is joined once, by the n that separates
    related from unrelated pairs best. The module ``advice`` has the rule for n and threshold.

    The corpus is read about six times, five without the curve, and must stay open as long as the exploration is in use.
    ``inputs`` are the names to show for it, ``reading`` the reading options of the advised command.
    """
    return _Run(corpus, options, thread_count(threads), memory_budget(memory), progress or ignore_progress).explore(
        tuple(inputs or corpus.inputs), reading
    )


def _matching_pairs(pairs: PairArrays, advice: Advice, findings: Findings | None) -> PairArrays:
    """Return the matches at the advised threshold: dropped documents with their keepers, or pairs of the sample."""
    if findings is not None:
        dropped = np.flatnonzero(findings.dropped_mask)
        return PairArrays(findings.keepers.keeper[dropped], dropped, findings.keepers.similarity[dropped])
    return select_pairs(pairs, pairs.similarity >= similarity_at(advice.measure, advice.threshold))


def idf_recipe(recipe: Recipe) -> Recipe | None:
    """Return a recipe for the same features by weighted Jaccard with idf weights; tf-idf for multisets.

    None if its features or measure take no weights.
    """
    if recipe.measure != "jaccard" or recipe.signature or recipe.weights:
        return None
    features = recipe.features.removesuffix(":multiset")
    weights = "tfidf" if recipe.parsed_features.multiset else "idf"
    try:
        return recipe.changed(name=_RECIPE_NAME, features=features, weights=weights, measure="weighted_jaccard")
    except RecipeError:
        return None


class _Run:
    def __init__(
        self, corpus: Corpus, options: ExplorationOptions, threads: int, memory: int | None, report: Progress
    ) -> None:
        self._clock, self._notes = Clock(), list[str]()
        self._corpus, self._options, self._report = corpus, options, report
        self._threads, self._memory = threads, memory
        self._texts: pa.LargeStringArray = texts_array([])
        self._statistics: dict[Recipe, Statistics] = {}
        self._close_by_recipe: dict[Recipe, PairArrays] = {}

    def explore(self, inputs: Sequence[str], reading: Sequence[str]) -> Exploration:
        options = self._options
        recipes = self._recipes()
        sample, survey = self._draw_sample()
        views = self._compare(recipes)
        choice = choose_features(views, sample.corpus_pairs)
        close = self._close_pairs(choice.view)
        weighted = idf_recipe(choice.view.recipe)
        if weighted is not None:
            with self._clock.stage("weights"):
                views.append(self._compare_by(weighted))
        advise_from = partial(
            advise, choice, lowest=options.lowest, documents=sample.documents, inputs=inputs, reading=reading
        )
        advice, curve, findings, corpus_pairs = self._advise(choice.view.recipe, advise_from)
        reader = DocumentReader(
            self._corpus,
            sample.names,
            content=options.content,
            title_column=options.title_column or "",
            time_column=options.time_column or "",
            threads=self._threads,
        )
        with self._clock.stage("profile"):
            profile = profile_corpus(
                survey,
                sample,
                self._corpus,
                reader,
                findings=findings,
                content=options.content,
                threads=self._threads,
                memory=self._memory,
                report=self._report,
            )
        pairs = PairArrays(sample.positions[close.left], sample.positions[close.right], close.similarity)
        family = sample_families(pairs, len(survey)) if findings is None else findings.families.family
        with self._clock.stage("examples"):
            examples = choose_examples(
                pairs,
                survey,
                reader,
                family=family,
                corpus_pairs=corpus_pairs,
                count=options.examples,
                seed=options.seed,
            )
            suspects: tuple[ExamplePair, ...] = ()
            if advice.given and options.examples:
                suspects = choose_suspects(_matching_pairs(pairs, advice, findings), survey, reader, family=family)
        return Exploration(
            sample=sample,
            views=tuple(views),
            pairs=pairs,
            advice=advice,
            curve=curve,
            profile=profile,
            examples=examples,
            suspects=suspects,
            notes=tuple(self._notes),
            inputs=tuple(inputs),
            columns=self._corpus.columns_used,
            stages=tuple(self._clock.stages),
            version=__version__,
        )

    def _gram_recipes(self, kind: str, lengths: Sequence[int]) -> list[Recipe]:
        """Return a recipe for each length of word n-grams (``words``) or character q-grams (``qgrams``)."""
        flag, content = ":multiset" if self._options.multiset else "", self._options.content
        return [Recipe(name=_RECIPE_NAME, content=content, features=f"{kind}:{n}{flag}") for n in sorted(set(lengths))]

    def _recipes(self) -> list[Recipe]:
        options = self._options
        recipes = [*self._gram_recipes("words", options.lengths), *self._gram_recipes("qgrams", options.qgrams)]
        for named_recipe in options.recipes:
            recipe = resolve_recipe(named_recipe)
            check_comparable(recipe, options.content)
            recipes.append(recipe.changed(content=recipe.content or options.content))
        return recipes

    def _draw_sample(self) -> tuple[Sample, Survey]:
        options = self._options
        with self._clock.stage("sample"):
            sample, survey = draw_sample(
                self._corpus,
                sample=options.sample,
                seed=options.seed,
                content=options.content,
                threads=self._threads,
                report=self._report,
            )
        if len(sample) < 2:
            documents = "1 document" if len(sample) else "no document"
            raise InputError(f"the input has {documents}, and explore compares pairs: give two documents or more")
        self._texts = texts_array(sample.texts)
        return sample, survey

    def _compare(self, recipes: Sequence[Recipe]) -> list[View]:
        """Compare all pairs of the sample by each recipe, and by q-grams if documents are short."""
        with self._clock.stage("compare"):
            found = [self._compare_by(recipes[0])]
            words = found[0].typical + (found[0].n or 1) - 1
            if self._options.lengths and not self._options.qgrams and found[0].typical > 0 and words < FEW_WORDS:
                shorter = self._gram_recipes("qgrams", SHORT_QGRAMS)
                names = ", ".join(recipe.features for recipe in shorter)
                self._notes.append(f"Documents are short (median {words} words), so {names} were compared as well.")
                recipes = [*recipes, *shorter]
            return found + [self._compare_by(recipe) for recipe in recipes[1:]]

    def _compare_by(self, recipe: Recipe) -> View:
        if recipe.second_step:
            self._notes.append(f"Recipe {recipe.name!r} was compared without its second step, {recipe.second_step}.")
        if recipe.needs_statistics:
            self._statistics[recipe] = count_frequencies(
                self._corpus, recipe, self._texts, threads=self._threads, report=self._report
            )
        # A large sample may have too many close pairs to keep them for every view.
        is_small = len(self._texts) * (len(self._texts) - 1) // 2 <= _MOST_PAIRS
        view, close = self._build_view(recipe, _LOWEST_HUNDREDTH if is_small else NO_CLOSE_PAIRS)
        if is_small:
            self._close_by_recipe[recipe] = close
        return view

    def _build_view(self, recipe: Recipe, least: int) -> tuple[View, PairArrays]:
        statistics = self._statistics.get(recipe)
        vectors = extract_vectors(self._texts, recipe, statistics, threads=self._threads)
        name = "" if recipe.name == _RECIPE_NAME else recipe.name
        return build_view(vectors, recipe, statistics, name=name, least=least, threads=self._threads)

    def _close_pairs(self, view: View) -> PairArrays:
        """Return the close pairs of the sample by a view, as positions in the sample."""
        if view.recipe in self._close_by_recipe:
            found = self._close_by_recipe[view.recipe]
            self._close_by_recipe.clear()
            return found
        least = next(at for at in range(_LOWEST_HUNDREDTH, BINS + 1) if view.at_least(at) <= _MOST_PAIRS or at == BINS)
        if least > _LOWEST_HUNDREDTH:
            self._notes.append(
                f"More than {_MOST_PAIRS:,} pairs of the sample have a similarity of {_LOWEST_HUNDREDTH / BINS:g} or "
                f"more by {view.name}: those below {least / BINS:g} are not shown as examples; "
                "a smaller sample has fewer."
            )
        with self._clock.stage("compare"):
            return self._build_view(view.recipe, least)[1]

    def _advise(
        self, recipe: Recipe, advise_from: Callable[[Curve | None], Advice]
    ) -> tuple[Advice, Curve | None, Findings | None, Pairs | None]:
        """Advise from one join of the whole corpus at the lowest threshold, or from the sample without one.

        Return also the curve, the findings at the advised threshold, and all pairs at the lowest one.
        """
        if not self._options.curve:
            return advise_from(None), None, None, None
        try:
            search = ThresholdSearch(
                self._corpus,
                recipe,
                self._options.lowest,
                threads=self._threads,
                memory=self._memory,
                clock=self._clock,
                progress=self._report,
            )
        except RecipeError as error:
            self._notes.append(f"There is no curve of the whole corpus: {error}.")
            return advise_from(None), None, None, None
        with search:
            curve = search.curve()
            advice = advise_from(curve)
            findings, point = search.at(advice.recipe)
            if not curve.complete:
                self._notes.append(explain_incomplete_curve(curve))
                curve = replace(curve, points=() if point is None else (point,))
            return advice, replace(curve, recipe=advice.recipe), findings, search.pairs
