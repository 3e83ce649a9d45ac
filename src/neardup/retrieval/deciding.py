"""The retrieval phase of a learned decision: which candidates beside a new document are its near-duplicates.

Source: ICGICT 2014, 3.3: given an input document, all its near-duplicates in a collection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from neardup.content.step import content_of
from neardup.decision.decision import Decision
from neardup.decision.evidence import Learned
from neardup.documents import Corpus
from neardup.errors import RecipeError, shown
from neardup.measures import similarities
from neardup.pairs import Names
from neardup.pipeline import records_of
from neardup.recipe import Recipe
from neardup.search.learned import check_decision, decide
from neardup.search.one_to_all import Matching
from neardup.times import FORMS, microseconds_of
from neardup.vector.encoder import Encoder
from neardup.vector.records import NO_TIME, Records


class Asked(NamedTuple):
    """A new document: its text, and where it is known its title and time, as the columns of a collection hold them."""

    text: str
    title: str | None = None
    time: Any = None


def check_asked(
    recipe: Recipe, asked: Asked, k: int | None, encoder: Encoder | None, decision: Decision | None
) -> None:
    """Refuse what does not go with a decision, or without one.

    Raises
    ------
    RecipeError
        If the decision is not the recipe's or needs an encoder that is not there, a title or a time is given that none
        compares, or the k nearest are asked for.
    """
    step, compares = recipe.second_step, {"title": False, "time": False}
    if decision is not None or (step is not None and step.measure == "learned"):
        vector = check_decision(decision, recipe, encoder).vector
        compares = {"title": vector.needs_titles, "time": vector.needs_times}
        if k is not None:
            raise RecipeError(
                f"k {k} asks for the nearest, whatever their similarity, and a decision looks at candidates of its net "
                "alone; leave one of the two out"
            )
    for name, value in (("title", asked.title), ("time", asked.time)):
        if value is not None and not compares[name]:
            raise RecipeError(f"{name} {value!r} is for a decision that compares {name}s; leave it out")
    if asked.time is not None and microseconds_of(asked.time) is None:
        raise RecipeError(f"time {shown(asked.time)} is not a time between the years 1 and 9999; give {FORMS}")


def decided(
    corpus: Corpus,
    decision: Decision,
    asked: Asked,
    found: Matching,
    names: Names,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> tuple[Matching, Learned]:
    """Return those of the candidates found that a decision lets pass, the most probable first, and what it went by.

    Documents with the very text that is asked about pass unasked, as in a run.
    """
    if not len(found.document):
        return found, Learned(decision, np.empty((0, len(decision.vector))), np.zeros(0, np.int64))
    documents = np.sort(found.document)
    others = records_of(corpus, decision.net, names.rows[documents], threads, decision)
    text = content_of(asked.text, decision.net.content)
    time = microseconds_of(asked.time)
    records = Records(
        [text, *others.texts],
        None if others.titles is None else [asked.title, *others.titles],
        None if others.times is None else np.append(NO_TIME if time is None else time, others.times),
    )
    equal = np.array([other == text for other in others.texts], np.bool_)
    same, other = np.flatnonzero(equal), np.flatnonzero(~equal)
    every = decide(
        decision, records, np.zeros_like(other), other + 1, threads=threads, encoder=encoder, progress=progress
    )
    place = np.append(same, other[every.passed])
    similarity = np.append(np.ones(len(same)), similarities("learned", every.counts))
    counts = np.concatenate([np.ones((len(same), 3), np.int64), every.counts])
    edges = np.append(np.full(len(same), -1), np.arange(len(every.vectors)))
    order = np.lexsort((place, -similarity))
    matching = Matching(documents[place[order]], counts[order], similarity[order])
    return matching, Learned(decision, every.vectors, edges[order])
