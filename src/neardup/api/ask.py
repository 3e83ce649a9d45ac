"""Asking documents: neighbours, the near-duplicates of a new text, recipes compared on labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from neardup.api.given import Choices, Given, chosen_recipe, corpus_from, recipe_and_decision
from neardup.evaluation.comparing import compare as compare_corpus
from neardup.evaluation.comparison import Comparison
from neardup.evaluation.thresholds import USUAL_THRESHOLDS
from neardup.reading import Report
from neardup.recipe import AnyRecipe
from neardup.retrieval.asking import refuse_unasked
from neardup.retrieval.neighbors import Neighbors, neighbors_of
from neardup.retrieval.queries import Answer, answer_of
from neardup.vector.encoder import Encoder


def neighbors(
    data: Any,
    k: int = 3,
    *,
    recipe: AnyRecipe = "default",
    of: Sequence[Any] | None = None,
    first: int | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Report | None = None,
    **choices: Unpack[Choices],
) -> Neighbors:
    """Find the k documents most similar to each one, exactly, whatever the threshold.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or what ``open_files`` gives.
    k : int
        How many neighbours of each document. Raising it takes longer.
    of : sequence of id, optional
        The documents whose neighbours are wanted; all by default.
    first : int, optional
        In place of ``of``: the first so many documents.
    recipe, text_column, id_column, threads, memory, progress, **choices
        As in ``dedup``.

    Examples
    --------
    >>> import neardup as nd
    >>> found = nd.neighbors(["a rose is a rose", "a rose is a tulip", "a daisy"], 1, features="words:1", of=[0])
    >>> list(found)
    [Neighbor(document=0, rank=1, neighbor=1, similarity=0.75)]
    """
    wanted = chosen_recipe(recipe, choices)
    refuse_unasked(choices, nearest=True)
    corpus = corpus_from(data, text_column, id_column)
    return neighbors_of(corpus, wanted, k, of=of, first=first, threads=threads, memory=memory, progress=progress)


def query(
    data: Any,
    text: str,
    *,
    recipe: AnyRecipe = "default",
    decision: Given | None = None,
    k: int | None = None,
    title: str | None = None,
    time: Any = None,
    text_column: str | None = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
    **choices: Unpack[Choices],
) -> Answer:
    """Find all near-duplicates of a new text among documents, the most similar first.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or what ``open_files`` gives.
    text : str
        The new text; it is none of the documents.
    k : int, optional
        Find the k nearest instead, whatever their similarity; not with a decision.
    title, time : optional
        Those of the new text, for decisions that compare them; not known by default. A time is whatever a column of
        times may hold (``neardup.times``).
    recipe, decision, text_column, id_column, title_column, time_column, threads, memory, encoder, progress, **choices
        As in ``dedup``.
    """
    columns = {"title_column": title_column, "time_column": time_column}
    wanted, learned = recipe_and_decision(recipe, choices, decision, **columns)
    if learned is None:
        refuse_unasked(choices, nearest=k is not None)
    corpus = corpus_from(data, text_column, id_column)
    return answer_of(
        corpus,
        wanted,
        text,
        k=k,
        decision=learned,
        title=title,
        time=time,
        threads=threads,
        memory=memory,
        encoder=encoder,
        progress=progress,
    )


def compare(
    data: Any,
    labels: Any = None,
    *,
    recipes: Sequence[AnyRecipe] | None = None,
    decisions: Sequence[Given] = (),
    content: str | None = None,
    thresholds: str | Sequence[float] = USUAL_THRESHOLDS,
    clusters: str | None = None,
    label_column: str | None = None,
    positive: float = 1.0,
    only: str | None = None,
    complete: bool = False,
    ignore_unknown: bool = False,
    text_column: str | None = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
) -> Comparison:
    """Score recipes and decisions on labelled documents, at several thresholds each, with intervals on every figure.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or what ``open_files`` gives.
    labels : path, table, or list of (id, id, label), optional
        Pairs that people judged; see ``evaluation.labels.read_labels``.
    clusters : str, optional
        In place of labels: the column whose equal values mean duplicates.
    recipes, decisions, content, thresholds, label_column, positive, only, complete, ignore_unknown
        See ``evaluation.comparing.compare``.
    title_column, time_column : str, optional
        Where titles and times are, for decisions that compare them.
    text_column, id_column, threads, memory, encoder, progress
        As in ``dedup``.
    """
    return compare_corpus(
        corpus_from(data, text_column, id_column, clusters),
        labels,
        recipes=recipes,
        decisions=decisions,
        content=content,
        thresholds=thresholds,
        label_column=label_column,
        positive=positive,
        only=only,
        complete=complete,
        ignore_unknown=ignore_unknown,
        title_column=title_column,
        time_column=time_column,
        threads=threads,
        memory=memory,
        encoder=encoder,
        progress=progress,
    )
