"""A learned decision: near-duplicate where g(x) >= 0 for the vector x of a pair's similarities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.decision.columns import columns_for, records_of_table
from neardup.decision.machine import Machine
from neardup.errors import RecipeError
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.recipe.dependencies import dependencies_of
from neardup.recipe.second import learned_step
from neardup.vector.facts import facts_digest
from neardup.vector.records import Records
from neardup.vector.vector import Vector

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class WorkingPoint(NamedTuple):
    """A cut of g, and how well it did on the training pairs, each scored by a machine that had not seen it.

    Attributes
    ----------
    cut : float
        A candidate is a near-duplicate if g(x) >= cut.
    precision : float
        The share of near-duplicates among the pairs at or above it; 1 where there are none.
    recall : float
        The share of near-duplicates that are at or above it; 1 where there are none.
    """

    cut: float
    precision: float
    recall: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Decision:
    """What was learned from labelled pairs (ICGICT 2014, 3.2.2 to 3.3), and all that is needed to decide on others.

    Attributes
    ----------
    net : Recipe
        Its pairs are the candidates: whatever lies below its threshold is no near-duplicate, unseen.
    vector : Vector
        The measures that make up x.
    statistics : mapping of str to Statistics
        Document frequencies of the training collection, by features, for measures that need them. They are frozen,
        so that a pair's x depends on its two documents alone.
    machine : Machine
        Gives g(x) and the probability.
    cut : float
        A candidate is a near-duplicate if g(x) >= cut; 0 unless a working point was chosen. Raising it finds fewer.
    scores, labels : float64[m], bool[m]
        g and the truth of the training pairs, each scored by a machine that had not seen it: what working points
        are chosen by.
    training : dict
        Figures, counts, options and versions, ready for JSON.
    title_column, time_column : str
        Where titles and times are, for measures that compare them; empty to find them by their names.
    estimator : object
        The scikit-learn pipeline that the machine was read from.
    """

    net: Recipe
    vector: Vector
    statistics: Mapping[str, Statistics]
    machine: Machine
    scores: Floats
    labels: Bools
    cut: float = 0.0
    title_column: str = ""
    time_column: str = ""
    training: Mapping[str, Any] = field(default_factory=dict)
    estimator: Any = None

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits of all that the answer depends on."""
        said = [str(self.vector), repr(self.cut), self.dependencies]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
        for part in self.machine:
            digest.update(np.ascontiguousarray(part, "<f8").tobytes())
        for name, known in sorted(self.statistics.items()):
            digest.update(json.dumps([name, known.documents, known.distinct, known.heaviest]).encode())
            digest.update(known.features.astype("<u8").tobytes())
            digest.update(known.df.astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    @property
    def dependencies(self) -> dict[str, str]:
        """What the net and the vector depend on, as short texts by name."""
        made = [part.recipe for part in self.vector.parts if part.of_recipe]
        # Titles, prefixes and tokens are words.
        return dependencies_of(self.net, Recipe(features="words:1"), *made, tables={"facts": facts_digest()})

    @property
    def recipe(self) -> Recipe:
        """The net, with the decision as its second step."""
        return self.net.changed(name="learned", then=learned_step(self.fingerprint))

    def g(self, x: Floats) -> Floats:
        """Return g of vectors of similarities: float64[n] of float64[n, r]."""
        return self.machine.g(x)

    def probability(self, g: Floats) -> Floats:
        """Return how probable near-duplicates are among pairs with such a g."""
        return self.machine.probability(g)

    def pushes(self, x: Floats) -> Floats:
        """Return by how much each measure moves g away from where its mean would leave it."""
        return self.machine.pushes(x)

    def passes(self, g: Floats) -> Bools:
        """Return which pairs are near-duplicates."""
        return np.asarray(g >= self.cut, np.bool_)

    @property
    def working_point(self) -> WorkingPoint:
        """The cut, with its precision and recall on the training pairs."""
        found = self.labels[self.passes(self.scores)]
        precision = float(found.mean()) if len(found) else 1.0
        recall = float(found.sum() / self.labels.sum()) if self.labels.any() else 1.0
        return WorkingPoint(self.cut, precision, recall)

    def records(self, table: pa.Table, texts: Sequence[str]) -> Records:
        """Return what is compared of the rows of a table, whose texts (or contents) are given.

        Raises
        ------
        RecipeError
            If titles or times are needed and there is no column of them.
        """
        columns = {"title_column": self.title_column, "time_column": self.time_column}
        return records_of_table(table, texts, self.vector, **columns)

    @property
    def needs_columns(self) -> bool:
        """Whether titles or times are compared besides texts."""
        return self.vector.needs_titles or self.vector.needs_times

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse inputs without a column of titles or times that is needed.

        Raises
        ------
        RecipeError
            If there is none among the columns of these names.
        """
        columns_for(self.vector, names, title_column=self.title_column, time_column=self.time_column)

    def everything(self) -> Decision:
        """Return the decision that passes every candidate of the net, for those who look at probabilities."""
        return replace(self, cut=float("-inf"))

    def at_precision(self, wanted: float) -> Decision:
        """Return the decision at the lowest cut that had such a precision on the training pairs, unseen.

        Raises
        ------
        RecipeError
            If no cut had.
        """
        if not 0 < wanted <= 1:
            raise RecipeError(f"precision {wanted} is outside (0, 1]; give a share such as 0.99")
        cut, best = cut_of(self.scores, self.labels, wanted)
        if cut is None:
            raise RecipeError(
                f"precision {wanted:g} was reached at no cut on the training pairs, {best:.3f} was the most; ask for "
                "less, or label more pairs and train again"
            )
        return replace(self, cut=cut)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the decision to a file, whole or not at all; ``load_decision`` reads it.

        Raises
        ------
        OutputError
            If there is one already and ``force`` is not given, or it cannot be written.
        """
        from neardup.decision.file import save

        save(self, path, force=force)

    def __repr__(self) -> str:
        return f"<decision {self.fingerprint}: {self.vector} on pairs with {self.net.in_words()}>"


def cut_of(scores: Floats, labels: Bools, precision: float) -> tuple[float | None, float]:
    """Return the lowest cut at or above which a share of the pairs are duplicates, and the highest share at any cut.

    Parameters
    ----------
    scores, labels : float64[m], bool[m]
        g of pairs, by machines that had not seen them, and the truth.
    precision : float
        The share. Raising it raises the cut, or leaves none (None).
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(labels[order])
    # Pairs of one score pass together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], len(ranked) > 0))
    shares = right[ends] / (ends + 1)
    reached = ends[shares >= precision]
    return (float(ranked[reached[-1]]) if len(reached) else None), float(shares.max(initial=0.0))
