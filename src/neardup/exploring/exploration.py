"""How similar a corpus is to itself: everything that is looked at before a recipe is chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from neardup import __version__, wholefile
from neardup.clock import Stage
from neardup.documents import Corpus
from neardup.documents.output import check_place
from neardup.errors import RecipeError
from neardup.exploring.advice import Advice, advise
from neardup.exploring.choosing import choose
from neardup.exploring.curve import Curve
from neardup.exploring.examples import Examples
from neardup.exploring.growth import Growth
from neardup.exploring.histogram import View
from neardup.exploring.looking import LENGTHS, SHORT_QGRAMS, Look, grams, named
from neardup.exploring.makeup import Makeup
from neardup.exploring.overlaps import SamplePairs
from neardup.exploring.sample import SAMPLE, Sample
from neardup.exploring.weighting import Weighting
from neardup.measures import exact_fraction
from neardup.pipeline import checked_threads
from neardup.reading import Report
from neardup.recipe import AnyRecipe

if TYPE_CHECKING:
    from neardup.pages.plot import Plot

#: Where the curve begins, and how many pairs are shown for each cutoff.
LOWEST, EXAMPLES = 0.2, 3


def _silent(stage: str, done: int, total: int | None) -> None:
    return None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exploration:
    """What was seen of a corpus.

    Attributes
    ----------
    sample : Sample
        The documents whose pairs were all compared.
    views : tuple of View
        Their similarities, one for each n and each recipe that was asked for.
    pairs : SamplePairs
        The pairs of the sample at 0.04 and above by the advised features and measure, by positions in the corpus.
    weighting : Weighting or None
        What idf weights do; None where the advised features take no weights.
    advice : Advice
        What to begin with.
    curve : Curve or None
        Pairs and dropped documents of the whole corpus by threshold; None where it was not asked for.
    growth : Growth or None
        How they grow with the corpus.
    makeup : Makeup
        What the corpus is made of.
    examples : tuple of Examples
        Real pairs to read at each cutoff.
    notes : tuple of str
        What was not looked at, or not as asked, and why.
    inputs : tuple of str
        What was read, for people.
    stages : tuple of Stage
        Time and memory of each stage.
    version : str
        Of neardup.
    """

    sample: Sample
    views: tuple[View, ...]
    pairs: SamplePairs
    weighting: Weighting | None
    advice: Advice
    curve: Curve | None
    growth: Growth | None
    makeup: Makeup
    examples: tuple[Examples, ...]
    notes: tuple[str, ...]
    inputs: tuple[str, ...]
    stages: tuple[Stage, ...]
    version: str

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, but the texts of the sample and the list of its pairs, ready for JSON."""
        return {
            "version": self.version,
            "inputs": list(self.inputs),
            "sample": self.sample.as_dict(),
            "advice": self.advice.as_dict(),
            "views": [view.as_dict() for view in self.views],
            "weighting": None if self.weighting is None else self.weighting.as_dict(),
            "curve": None if self.curve is None else self.curve.as_dict(),
            "growth": None if self.growth is None else self.growth.as_dict(),
            "makeup": self.makeup.as_dict(),
            "examples": [examples.as_dict() for examples in self.examples],
            "notes": list(self.notes),
            "stages": [dict(stage) for stage in self.stages],
        }

    def to_html(self) -> str:
        """Return the page: one HTML file that needs nothing but a browser.

        Raises
        ------
        OutputError
            If the packages that draw are not installed.
        """
        from neardup.exploring.showing.page import exploration_page

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
        from neardup.exploring.showing.charts import similarity_chart
        from neardup.exploring.telling import advised_view
        from neardup.pages.frame import check_drawing

        check_drawing("a chart")
        shown = [view for view in self.views if not views or view.name in views]
        return similarity_chart(shown, advised=advised_view(self), threshold=self.advice.threshold)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the advice, and the pairs per million above each cutoff."""
        from neardup.exploring.showing.cell import cell_of

        return cell_of(self)

    def __repr__(self) -> str:
        advice = f"{self.advice.features}, {self.advice.measure} >= {self.advice.threshold:g}"
        return f"<neardup exploration: {len(self.sample):,} of {self.sample.documents:,} documents, advised {advice}>"


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
    progress: Report | None = None,
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
