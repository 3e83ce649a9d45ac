"""Looking at a corpus before a recipe is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.api.given import corpus_from
from neardup.exploring.exploration import EXAMPLES, LOWEST, Exploration
from neardup.exploring.exploration import explore as explore_corpus
from neardup.exploring.looking import LENGTHS
from neardup.exploring.sample import SAMPLE
from neardup.reading import Report
from neardup.recipe import AnyRecipe


def explore(
    data: Any,
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
    text_column: str | None = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Report | None = None,
) -> Exploration:
    """Look at how similar texts are to each other, before a recipe is chosen, and say where to begin.

    All pairs of a random sample are compared for every n, and the whole corpus is joined once. ``.advice`` says which
    n, measure and threshold to begin with and why, ``.views`` are the histograms, ``.examples`` real pairs to read,
    ``.makeup`` what the corpus is made of; ``.write("explore.html")`` writes the page, and a notebook shows the gist.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or what ``open_files`` gives, which must stay open.
    sample, seed, lengths, qgrams, recipes, multiset, lowest, content, examples, curve
        See ``exploring.exploration.explore``.
    text_column, id_column, title_column, time_column, threads, memory, progress
        As in ``dedup``.

    Raises
    ------
    NeardupError
        If there are fewer than two documents, the data cannot be read, or an option does not fit.

    Examples
    --------
    >>> import neardup as nd
    >>> poem = "a rose is a rose is a rose and a daisy is a daisy is a daisy"
    >>> found = nd.explore([poem, poem + " again", "the tulip has another colour every spring"], lengths=[1, 2])
    >>> [(view.name, view.zero, view.at_least(50)) for view in found.views[:2]]
    [('words:1', 2, 1), ('words:2', 2, 1)]
    >>> found.advice.features, found.advice.threshold
    ('words:1', 0.5)
    """
    return explore_corpus(
        corpus_from(data, text_column, id_column),
        sample=sample,
        seed=seed,
        lengths=lengths,
        qgrams=qgrams,
        recipes=recipes,
        multiset=multiset,
        lowest=lowest,
        content=content,
        examples=examples,
        curve=curve,
        title_column=title_column,
        time_column=time_column,
        threads=threads,
        memory=memory,
        progress=progress,
    )
