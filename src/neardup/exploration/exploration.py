"""The stages of an exploration: the sample, its pairs by each recipe, weights, and the whole corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from neardup import files as wholefile
from neardup.documents import Corpus
from neardup.documents.output import check_place
from neardup.errors import InputError, RecipeError
from neardup.exploration.advice import advise
from neardup.exploration.curve import Curve, Growth, Whole, check_curve, curve_of, growth_of
from neardup.exploration.examples import Examples, examples_of
from neardup.exploration.histogram import BINS, Choice, View, check_comparable, choose, texts_array, vectors_of, view_of
from neardup.exploration.observations import Observations
from neardup.exploration.profile import Makeup, makeup_of
from neardup.exploration.sample import NONE_CLOSE, SAMPLE, Sample, SamplePairs, Survey, draw_sample, frequencies_of
from neardup.exploration.weights import Weighting, weighted_recipe, weighting_of
from neardup.features.reading import Progress
from neardup.features.statistics import Statistics
from neardup.pages.documents import Material
from neardup.pipeline.pipeline import checked_threads
from neardup.recipe import AnyRecipe, Recipe, recipe_of
from neardup.recipe.measures import exact_fraction
from neardup.runtime import Clock
from neardup.search.findings import Findings
from neardup.search.thresholds import levels_of
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.pages.plot import Plot

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
        self, corpus: Corpus, threads: int, memory: int | None, seed: int, content: str, report: Progress
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
        if recipe.second_step:
            self.notes.append(f"Recipe {name!r} was compared without its second step, {recipe.second_step}.")
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


#: Where the curve begins, and how many pairs are shown for each cutoff.
LOWEST, EXAMPLES = 0.2, 3


def _silent(stage: str, done: int, total: int | None) -> None:
    return None


class Exploration(Observations):
    """What was seen of a corpus, with its page, its chart and its cell in a notebook; see ``Observations``."""

    __slots__ = ()

    def to_html(self) -> str:
        """Return the page: one HTML file that needs nothing but a browser.

        Raises
        ------
        OutputError
            If the packages that draw are not installed.
        """
        from neardup.exploration.page import exploration_page

        return exploration_page(self)

    def write(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the page, or JSON where the name ends with .json.

        Parameters
        ----------
        path : path
            Where to.
        force : bool
            Whether an existing file may be replaced.

        Raises
        ------
        OutputError
            If it exists, cannot be written, or the packages that draw are not installed.
        """
        check_place(fspath(path), self.inputs, force)
        if fspath(path).endswith(".json"):
            text = json.dumps(self.as_dict(), ensure_ascii=False, indent=2) + "\n"
        else:
            text = self.to_html()
        wholefile.write(path, text.encode("utf-8", "replace"))

    def plot_similarity(self, views: Sequence[str] = ()) -> Plot:
        """Return the histograms of the sample as an Altair chart, which loads nothing.

        Parameters
        ----------
        views : sequence of str
            The names of some; all by default.

        Raises
        ------
        OutputError
            If the packages that draw are not installed.
        """
        from neardup.exploration.charts import similarity_chart
        from neardup.exploration.messages import advised_view
        from neardup.pages.page import check_drawing

        check_drawing("a chart")
        shown = [view for view in self.views if not views or view.name in views]
        return similarity_chart(shown, advised=advised_view(self), threshold=self.advice.threshold)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the advice, and the pairs per million above each cutoff."""
        from neardup.exploration.page import cell_of

        return cell_of(self)


def explore(
    corpus: Corpus,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    lengths: Sequence[int] = LENGTHS,
    qgrams: Sequence[int] = (),
    recipes: Sequence[AnyRecipe] = (),
    multiset: bool = False,
    lowest: float = LOWEST,
    content: str = "",
    examples: int = EXAMPLES,
    curve: bool = True,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Exploration:
    """Look at how similar a corpus is to itself, and at what it is made of.

    A random sample is compared, each document with each, for every n; the whole corpus is joined once, by the n that
    parts related from unrelated pairs best. See ``advice`` for how n and threshold are chosen.

    Parameters
    ----------
    corpus : Corpus
        It is read some six times, five without the curve; it must stay open as long as the exploration is shown.
    sample : int
        How many documents are compared with each other; at least 2. Raising it shows rarer pairs; time and memory grow
        with its square.
    seed : int
        Which documents are drawn, and which pairs are shown; 0 to 2**32 - 1.
    lengths, qgrams : sequence of int
        Word n-grams and character q-grams to compare. Where documents are short (fewer than 20 words, in the median)
        and no q-grams are asked for, those of 4 to 6 characters are looked at, too.
    recipes : sequence of Recipe, str or path
        Recipes, their names or files, to compare besides; without thresholds, second steps and searches.
    multiset : bool
        Whether repeats of n-grams and q-grams count.
    lowest : float
        Where the curve begins, in (0, 1]; no lower threshold is advised. Lowering it finds more pairs, slower.
    content : str
        What of the texts is compared, as in ``Recipe``.
    examples : int
        How many pairs to show for each cutoff.
    curve : bool
        Whether to join the whole corpus; else all that is said comes from the sample.
    title_column, time_column : str, optional
        Of the documents that are shown; found by their names.
    threads : int, optional
        They change the time, never what is found.
    memory : int, optional
        A budget in bytes for the join, as in ``pipeline.run``.
    progress : callable, optional
        Told (stage, done, total or None) from time to time.
    inputs, options : sequence of str
        What is read, for people and for the advised command (the inputs of the corpus, if not given), and options of
        reading for that command.

    Raises
    ------
    InputError
        If there are fewer than two documents, or something cannot be read.
    RecipeError
        If a value is out of range, or a recipe cannot be compared by features.
    """
    if examples < 0:
        raise RecipeError(f"examples {examples} is below 0; give 0 for none")
    low = float(exact_fraction(lowest, "lowest"))
    asked = [
        *grams("words", lengths, multiset=multiset, content=content),
        *grams("qgrams", qgrams, multiset=multiset, content=content),
        *named(recipes, content),
    ]
    if not asked:
        raise RecipeError("there is nothing to compare by: give lengths, such as 1 to 7, qgrams, or a recipe")
    shorter = grams("qgrams", SHORT_QGRAMS, multiset=multiset, content=content) if lengths and not qgrams else ()
    read = tuple(inputs or corpus.inputs)
    look = Look(corpus, checked_threads(threads), memory, seed, content, progress or _silent)
    drawn, survey = look.draw(sample)
    views = look.views(asked, shorter)
    choice = choose(views, drawn.corpus_pairs)
    close = look.close(choice.view)
    weighting = look.weighting(choice.view, close, drawn)
    whole = look.whole(choice, low) if curve else None
    joined = None if whole is None else whole.curve
    advice = advise(choice, drawn, joined, lowest=low, inputs=read, options=options)
    found = None if whole is None else look.settle(whole, advice.recipe)
    findings = None if found is None else found.findings
    pairs = SamplePairs(drawn.positions[close.left], drawn.positions[close.right], close.similarity)
    material = look.material(drawn, title_column or "", time_column or "")
    makeup = look.makeup(drawn, survey, material, findings)
    shown = look.examples(pairs, survey, material, whole, findings, examples)
    return Exploration(
        sample=drawn,
        views=tuple(views),
        pairs=pairs,
        weighting=weighting,
        advice=advice,
        curve=None if found is None else found.curve,
        growth=None if found is None else found.growth,
        makeup=makeup,
        examples=shown,
        notes=tuple(look.notes),
        inputs=read,
        stages=tuple(look.clock.stages),
        version=__version__,
    )
