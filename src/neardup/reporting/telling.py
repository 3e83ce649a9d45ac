"""What a report says in a line of why two documents match, or do not."""

from __future__ import annotations

import numpy as np

from neardup.decision.evidence import Learned
from neardup.findings import EQUAL, Findings
from neardup.measures import SET_MEASURES
from neardup.reporting.cases import Picked
from neardup.reporting.flow import shared_in_words
from neardup.search.around import Scale
from neardup.search.matches import Matches


def similarity_of(found: Findings) -> str:
    """Return what the similarities of a run are of."""
    scale, recipe = found.scale, found.recipe
    if scale.measure == "learned":
        return "probability"
    shown = "1 / (1 + distance)" if scale.measure == "euclidean" else scale.measure
    shown = "1 - distance / 64" if scale.measure == "hamming" else shown
    if scale.measure in ("edit", "semantic"):
        return f"{shown} similarity"
    step = recipe.second_step
    features = step.features if step is not None else recipe.signature or recipe.features
    weights = f" weighted by {recipe.weights}" if recipe.weights and step is None and not recipe.signature else ""
    return f"{shown} of {features}{weights}"


def value_at(scale: Scale, similarity: float) -> str:
    """Return a similarity as people compare it with the threshold: a distance as a distance."""
    return value_of(scale.measure, similarity, distance=scale.distance)


def value_of(what: str, similarity: float, *, distance: bool) -> str:
    """Return the same for a measure of that name."""
    if what == "hamming":
        return f"{round(64 * (1 - similarity))} bits"
    if distance:
        return f"distance {1 / similarity - 1:.4g}" if similarity else "no distance"
    return f"{similarity:.4f}"


def numbers_of(scale: Scale, matches: Matches, edge: int) -> str:
    """Return what is behind the similarity of a known pair, in numbers; empty where that says nothing more."""
    counts, unit = scale.counts(matches)
    o, a, b = counts[edge].tolist()
    if scale.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if scale.measure == "edit":
        return f"{a - o:,} of {a:,} characters edited"
    if scale.measure in SET_MEASURES and unit == 1:
        return shared_in_words(o, a, b)
    return ""


def head_of(found: Findings, loose: Matches, picked: Picked) -> str:
    """Return how alike two documents are, and whether they match.

    Parameters
    ----------
    found : Findings
        What the run found.
    loose : Matches
        All pairs that are known.
    picked : Picked
        One of them.
    """
    scale = found.scale
    verdict = "a match" if picked.matches else "no match"
    value = value_at(scale, picked.similarity)
    numbers = numbers_of(scale, loose, picked.edge)
    what = "probability" if scale.measure == "learned" else scale.measure
    return f"{what} {value}: {verdict}" + (f"; {numbers}" if numbers else "")


class Telling:
    """Says in a line why a dropped document matches its keeper."""

    def __init__(self, found: Findings, places: list[int]) -> None:
        """Take the dropped documents that will be asked for."""
        self._found = found
        at = np.array(places, np.int64)
        edges = found.edges(at, found.kept.keeper[at])
        self._row = {place: number for number, place in enumerate(places)}
        self._edges = edges.tolist()
        self._learned = None
        if found.decision is not None and found.matches.vectors is not None:
            self._learned = Learned(found.decision, found.matches.vectors, edges)

    def __call__(self, place: int, passage: int) -> str:
        """Return why a document matches; ``passage`` words in a row are in both."""
        number = self._row[place]
        parts = [self._numbers(number), f"{passage:,} words in a row in common" if passage > 1 else ""]
        return "; ".join(part for part in parts if part)

    def _numbers(self, number: int) -> str:
        edge = self._edges[number]
        if edge == EQUAL:
            return "equal in all that is compared"
        if self._learned is not None:
            return f"pushed by {self._learned.evidence(number)}"
        return numbers_of(self._found.scale, self._found.matches, edge)
