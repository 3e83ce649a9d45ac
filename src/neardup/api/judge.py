"""How good a result is, by a random sample of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from neardup.api.given import Choices, Given, corpus_from, recipe_and_decision
from neardup.auditing.audit import SAMPLE, draw_sample
from neardup.auditing.examples import examples_of
from neardup.auditing.finding import Audit
from neardup.auditing.judging import Vote, votes_of
from neardup.errors import RecipeError
from neardup.reading import Report
from neardup.recipe import AnyRecipe
from neardup.vector.encoder import Encoder


def audit(
    data: Any,
    labels: Any = None,
    *,
    recipe: AnyRecipe = "default",
    decision: Given | None = None,
    net: str | float | None = None,
    sample: int = SAMPLE,
    sample_seed: int = 0,
    label_column: str | None = None,
    positive: float = 1.0,
    ignore_unknown: bool = False,
    text_column: str | None = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
    **choices: Unpack[Choices],
) -> Audit:
    """Estimate precision, recall and the number of duplicates of a result from a random sample that people judged.

    Call it without labels for the sample (``.sample``, a table), and with the labels for the figures: the same pairs
    are drawn again.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or what ``open_files`` gives.
    labels : path, table, or list of (id, id, label), optional
        What people said of drawn pairs: numbers, ``same``, ``different``, or ``?`` for unsure; or a store of labels.
    recipe, decision, **choices
        What is audited, as in ``dedup``.
    net : str or float, optional
        A looser threshold of the recipe, or ``MEASURE(FEATURES) >= NUMBER``: pairs below it are not looked at. A
        decision has its own. See ``auditing.population.of_recipe``.
    sample : int
        How many pairs to draw. Raising it narrows all intervals; a larger sample holds the smaller one.
    sample_seed : int
        Another one draws other pairs.
    label_column, positive, ignore_unknown
        See ``auditing.judging.votes_of``.
    text_column, id_column, title_column, time_column, threads, memory, encoder, progress
        As in ``dedup``.

    Examples
    --------
    >>> import neardup as nd
    >>> texts = ["a rose is a rose", "a rose is a tulip", "a rose is a daisy", "a tulip is a daisy"]
    >>> labels = [(0, 1, 1), (0, 2, 0), (0, 3, 0), (1, 2, 0), (1, 3, 0), (2, 3, 0)]
    >>> found = nd.audit(texts, labels, features="words:1", threshold=0.7, net=0.3)
    >>> found.own.returned, found.precision.value, found.recall.value
    (2, 0.5, 1.0)
    """
    if labels is None and (label_column is not None or positive != 1.0 or ignore_unknown):
        raise RecipeError("label_column, positive and ignore_unknown are for labels; give labels, or leave them out")
    columns = {"title_column": title_column, "time_column": time_column}
    wanted, learned = recipe_and_decision(recipe, choices, decision, **columns)
    drawing = draw_sample(
        corpus_from(data, text_column, id_column),
        decision=learned,
        recipe=wanted if learned is None else None,
        net=None if net is None else str(net),
        sample=sample,
        seed=sample_seed,
        threads=threads,
        memory=memory,
        encoder=encoder,
        progress=progress,
    )
    votes: list[Vote] = []
    if labels is not None:
        votes = votes_of(
            labels, drawing.places, label_column=label_column, positive=positive, ignore_unknown=ignore_unknown
        )
    known = drawing.judged(votes)
    return replace(drawing.audit(known), sample=drawing.table(known), examples=examples_of(drawing, known))
