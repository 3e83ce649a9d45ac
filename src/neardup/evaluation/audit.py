"""The audit of a result: a random sample of its pairs, which people label, and estimates from their labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.documents import Corpus
from neardup.documents.output import OutputFile, check_place
from neardup.errors import InputError, OutputError, RecipeError
from neardup.evaluation.intervals import Figure, StratumCounts, duplicate_figure, estimate_duplicates, precision_figure
from neardup.evaluation.population import (
    ID_COLUMNS,
    LABEL_COLUMN,
    Population,
    SampleLabels,
    Scale,
    Vote,
    classifier_population,
    draw_pairs,
    recipe_population,
    resolve_votes,
)
from neardup.evaluation.strata import ThresholdPoint, allocate, stratify, threshold_points
from neardup.features.extraction import Encoder
from neardup.features.reading import Progress
from neardup.labels.store import DIFFERENT, SAME, UNSURE
from neardup.labels.table import positions_by_id
from neardup.pages.diff import ShownDocument
from neardup.pages.documents import DocumentReader
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.version import __version__


class Example(NamedTuple):
    """A drawn pair to show."""

    left: ShownDocument
    right: ShownDocument
    #: On the scale of returned or of unreturned pairs.
    score: float
    returned: bool
    answer: str
    #: The number of pairs of its stratum that it represents: all pairs / judged pairs; 0 if it is not used.
    weight: float


@dataclass(frozen=True, slots=True)
class Examples:
    """Drawn pairs to show, by kind: ``wrong``, ``missed`` and ``unsure``."""

    #: The pairs with the largest weights, largest first.
    pairs: dict[str, list[Example]]
    totals: dict[str, int]


class StratumResult(NamedTuple):
    """A stratum and its labels."""

    returned: bool
    #: Scores are at least ``low`` and below ``high``; the highest stratum includes ``high``.
    low: float
    high: float
    pairs: int
    drawn: int
    judged: int
    same: int
    unsure: int
    share: Figure

    def score_range(self, scale: Scale) -> str:
        """Return the range of its scores as people read it, such as 0.3 to 0.35."""
        low, high = scale.threshold(self.low), scale.threshold(self.high)
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def format_figure(figure: Figure) -> str:
    """Return a share as people read it, such as 0.93 (0.88 to 0.96)."""
    return "not known" if figure.value is None else f"{figure.value:.3f} ({interval_text(figure)})"


def interval_text(figure: Figure) -> str:
    """Return an interval as people read it, such as 0.88 to 0.96, with enough digits to tell its ends apart."""
    if figure.low is None or figure.high is None:
        return "?"
    digits = 3 if figure.high > figure.low and f"{figure.low:.2f}" == f"{figure.high:.2f}" else 2
    return f"{figure.low:.{digits}f} to {figure.high:.{digits}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The quality of a result, estimated from a random sample of its pairs.

    All pairs are pairs of distinct texts; texts that are equal byte for byte count once.

    Attributes
    ----------
    point, candidate_rule : str
        The working point, and the rule that defines the candidates, as people read them.
    returned_scale, unreturned_scale : Scale
        The scales of the scores of returned and of unreturned pairs.
    seed : int
        The random seed of the sample.
    documents, copies, copy_pairs : int
        The number of documents, of documents that repeat an earlier text byte for byte, and of pairs of equal texts.
        Such pairs count as duplicates, are never drawn, and are in no figure.
    candidates : int
        The number of candidates, including returned pairs below the candidate rule.
    drawn, same, different, unsure, missing, outside : int
        The number of drawn pairs; of these by label, ``missing`` for none; and of judged pairs that were not drawn,
        which are not used.
    strata : tuple of StratumResult
        Returned pairs first, each side from the highest scores down.
    points : tuple of ThresholdPoint
        The working point and other thresholds, the strictest first.
    duplicates : Figure
        The number of duplicates among the candidates, with a 95% interval.
    sample : pyarrow.Table or None
        The drawn pairs for people to judge: id1, id2, label (1, 0, ? or empty), text1, text2.
    examples : Examples or None
        Judged pairs to read: wrong, missed and unsure ones.
    inputs : tuple of str
        The audited files; empty for documents in memory.
    """

    point: str
    candidate_rule: str
    returned_scale: Scale
    unreturned_scale: Scale
    seed: int
    documents: int
    copies: int
    copy_pairs: int
    candidates: int
    drawn: int
    same: int
    different: int
    unsure: int
    missing: int
    outside: int
    strata: tuple[StratumResult, ...]
    points: tuple[ThresholdPoint, ...]
    duplicates: Figure
    sample: pa.Table = field(default=None, compare=False)
    examples: Examples | None = field(default=None, compare=False)
    inputs: tuple[str, ...] = field(default=(), compare=False)

    @property
    def working_point(self) -> ThresholdPoint:
        """The figures of the audited threshold."""
        return next(point for point in self.points if point.is_working_point)

    @property
    def precision(self) -> Figure:
        """The share of duplicates among the returned pairs."""
        return self.working_point.precision

    @property
    def recall(self) -> Figure:
        """The share of returned pairs among the duplicates of all candidates."""
        return self.working_point.recall

    def stratum_scale(self, stratum: StratumResult) -> Scale:
        """Return the scale of a stratum's scores."""
        return self.returned_scale if stratum.returned else self.unreturned_scale

    def notes(self) -> list[str]:
        """Return what a reader of the figures must know, a sentence each."""
        return [*self._label_notes(), *self._coverage_notes()]

    def _label_notes(self) -> list[str]:
        notes = []
        if self.missing == self.drawn:
            notes.append("None of the drawn pairs is judged yet, so no figure is known.")
        elif self.missing:
            verb = "is" if self.missing == 1 else "are"
            notes.append(f"{self.missing:,} of the {self.drawn:,} drawn pairs {verb} not judged yet.")
        if self.unsure:
            verb = "is" if self.unsure == 1 else "are"
            notes.append(f"{self.unsure:,} of the {self.drawn:,} drawn pairs {verb} unsure and left out.")
        if self.outside:
            notes.append(
                f"{self.outside:,} judged {'pair was' if self.outside == 1 else 'pairs were'} not drawn and count "
                "nowhere: it is not known how they were chosen, so they do not represent other pairs."
            )
        unjudged = [stratum for stratum in self.strata if not stratum.judged]
        if unjudged and len(unjudged) < len(self.strata):
            ranges = ", ".join(stratum.score_range(self.stratum_scale(stratum)) for stratum in unjudged)
            notes.append(f"No pair is judged at {ranges}, so figures that need these pairs are not known.")
        return notes

    def _coverage_notes(self) -> list[str]:
        recall = (
            f"Recall counts duplicates among the candidates only ({self.candidate_rule}): pairs below this rule were "
            "not examined, and duplicates among them are missing from all figures."
        )
        copies = (
            f"{self.copies:,} {'document repeats' if self.copies == 1 else 'documents repeat'} another text byte for "
            "byte: such copies count as duplicates, are not drawn, and are in none of these figures."
        )
        return [recall, *([copies] if self.copies else [])]

    def to_dict(self) -> dict[str, Any]:
        """Return the audit, ready for JSON."""
        names = ("documents", "copies", "copy_pairs", "candidates", "drawn", "same", "different", "unsure", "missing")
        return {
            "point": self.point,
            "candidate_rule": self.candidate_rule,
            "score": self.returned_scale.name,
            "seed": self.seed,
            **{name: getattr(self, name) for name in (*names, "outside")},
            "precision": self.precision._asdict(),
            "recall": self.recall._asdict(),
            "duplicates": self.duplicates._asdict(),
            "points": [self._point_dict(point) for point in self.points],
            "strata": [self._stratum_dict(stratum) for stratum in self.strata],
            "notes": self.notes(),
            "version": __version__,
        }

    def _point_dict(self, point: ThresholdPoint) -> dict[str, Any]:
        return {
            "threshold": self.returned_scale.threshold(point.score),
            "own": point.is_working_point,
            "returned": point.returned,
            "precision": point.precision._asdict(),
            "recall": point.recall._asdict(),
        }

    def _stratum_dict(self, stratum: StratumResult) -> dict[str, Any]:
        scale = self.stratum_scale(stratum)
        ends = {"score": scale.name, "low": scale.threshold(stratum.low), "high": scale.threshold(stratum.high)}
        return stratum._asdict() | ends | {"share": stratum.share._asdict()}

    def to_html(self, *, command: str = "") -> str:
        """Return the audit as a page for a browser, with tables and pairs to read.

        Parameters
        ----------
        command : str
            The command line to state on the page.

        Raises
        ------
        OutputError
            If the packages for pages are not installed.
        """
        from neardup.evaluation.audit_page import audit_page

        return audit_page(self, command=command)

    def write(self, output: str | os.PathLike[str], *, force: bool = False, command: str = "") -> None:
        """Write the audit as a page (.html) or as JSON (.json); the page states ``command``.

        Raises
        ------
        OutputError
            If the suffix is none of these, or the file cannot be written.
        """
        name = os.fspath(output)
        if not name.endswith((".html", ".json")):
            raise OutputError(f"{name} has no format of an audit; name it .html or .json")
        check_place(name, force=force)
        content = self.to_html(command=command) if name.endswith(".html") else json.dumps(self.to_dict(), indent=2)
        with OutputFile(name) as file:
            file.write(content.encode() + b"\n")

    def __repr__(self) -> str:
        figures = f"precision {format_figure(self.precision)}, recall among candidates {format_figure(self.recall)}"
        return f"<audit of {self.candidates:,} pairs by {self.same + self.different:,} labels: {figures}>"


MAX_EXAMPLES = 20
#: The kinds of pairs to show: whether they are returned (None for either), and their label.
_KINDS: dict[str, tuple[bool | None, str]] = {
    "wrong": (True, DIFFERENT),
    "missed": (False, SAME),
    "unsure": (None, UNSURE),
}


def select_examples(sample: Sample, labels: SampleLabels, max_examples: int = MAX_EXAMPLES) -> Examples:
    """Return at most ``max_examples`` pairs of each kind, those that represent the most pairs."""
    if max_examples < 0:
        raise RecipeError(
            f"{max_examples} pairs of each kind are below 0; give the number to show, such as {MAX_EXAMPLES}"
        )
    population, reader = sample.population, sample.reader
    score, returned = population.score[sample.pairs], population.returned[sample.pairs]
    weights = _weights(sample, labels)
    chosen: dict[str, list[int]] = {}
    totals = {}
    for kind, (side, answer) in _KINDS.items():
        rows = [
            row
            for row, label in enumerate(labels.answers)
            if label == answer and (side is None or bool(returned[row]) == side)
        ]
        # Of equal weights, the scores furthest on the wrong side first: these are the largest errors.
        rows.sort(key=lambda row: (-weights[row], -score[row] if returned[row] else score[row], row))
        chosen[kind], totals[kind] = rows[:max_examples], len(rows)
    all_rows = [row for rows in chosen.values() for row in rows]
    reader.load(np.concatenate([sample.left[all_rows], sample.right[all_rows]]))
    examples = {
        kind: [
            Example(
                reader.document(int(sample.left[row])),
                reader.document(int(sample.right[row])),
                float(score[row]),
                bool(returned[row]),
                labels.answers[row],
                weights[row],
            )
            for row in rows
        ]
        for kind, rows in chosen.items()
    }
    return Examples(examples, totals)


def _weights(sample: Sample, labels: SampleLabels) -> Sequence[float]:
    """Return the number of pairs of its stratum that each judged pair represents; 0 for drawn pairs without a label."""
    strata = sample.pair_strata
    sure = np.array([answer in (SAME, DIFFERENT) for answer in labels.answers], np.bool_)
    judged = np.bincount(strata[sure], minlength=len(sample.strata))
    pairs = np.array([stratum.pairs for stratum in sample.strata])
    weights = pairs[strata] / np.maximum(judged[strata], 1)
    return [float(weight) for weight in np.where(sure, weights, 0.0)]


AUDIT_SAMPLE = 200
_LABEL_CELLS = {SAME: "1", DIFFERENT: "0", UNSURE: "?", "": ""}


class Sample:
    """A stratified random sample of the candidates of a result.

    ``counts`` holds the number of pairs drawn from each of the ``strata``. ``pairs`` (int64[k]) are the rows of the
    drawn pairs in the population, in an order that reveals nothing. ``reader`` reads the documents.
    """

    def __init__(self, corpus: Corpus, population: Population, *, content: str, sample: int, seed: int) -> None:
        if not len(population.left):
            raise InputError(
                f"there is no pair of distinct texts with {population.candidate_rule}, so there is nothing to judge; "
                "give a looser candidate rule"
            )
        self.population, self.seed, self.inputs = population, seed, tuple(corpus.inputs)
        self.reader = DocumentReader(corpus, population.names, content=content)
        edges = population.returned_scale.edges, population.unreturned_scale.edges
        self.strata, strata = stratify(population.score, population.returned, population.deviations, *edges)
        self.counts = allocate(self.strata, sample)
        if 0 in self.counts:
            least = 2 * max(sum(stratum.returned == side for stratum in self.strata) for side in (True, False))
            raise RecipeError(
                f"sample {sample} is too small for {len(self.strata)} strata, each of which needs a pair; draw "
                f"{least}, or better a hundred"
            )
        self.pairs = draw_pairs(population.names, population.left, population.right, strata, self.counts, seed)
        #: int64[k] each: the documents of the drawn pairs by position, and their strata.
        self.left, self.right = population.left[self.pairs], population.right[self.pairs]
        self.pair_strata = strata[self.pairs]

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of the document with each id."""
        names = self.population.names
        return positions_by_id(names.of_input(np.arange(len(names))).to_pylist())

    def resolve_votes(self, votes: Iterable[Vote]) -> SampleLabels:
        """Return the labels that votes give the drawn pairs."""
        return resolve_votes(self.left, self.right, self.population.texts, votes)

    def table(self, labels: SampleLabels) -> pa.Table:
        """Return the drawn pairs for people to judge: id1, id2, label (1, 0, ? or empty), text1, text2."""
        self.reader.load(np.concatenate([self.left, self.right]))
        sides = [[self.reader.document(at) for at in side.tolist()] for side in (self.left, self.right)]
        ids = {name: [document.id for document in side] for name, side in zip(ID_COLUMNS, sides, strict=True)}
        texts = {f"text{number}": [document.text for document in side] for number, side in enumerate(sides, 1)}
        columns = ids | {LABEL_COLUMN: [_LABEL_CELLS[answer] for answer in labels.answers]} | texts
        return pa.table({name: pa.array(column, pa.large_string()) for name, column in columns.items()})

    def audit(self, labels: SampleLabels) -> Audit:
        """Return the figures of the result, as estimated from the labels."""
        population, strata = self.population, self.strata
        answers = [labels.counts(np.flatnonzero(self.pair_strata == at)) for at in range(len(strata))]
        cells = [
            StratumCounts(stratum.pairs, count[SAME] + count[DIFFERENT], count[SAME])
            for stratum, count in zip(strata, answers, strict=True)
        ]
        total = labels.counts()
        results = [
            StratumResult(
                returned=stratum.returned,
                low=stratum.low,
                high=stratum.high,
                pairs=stratum.pairs,
                drawn=self.counts[at],
                judged=cell.judged,
                same=cell.duplicates,
                unsure=answers[at][UNSURE],
                share=precision_figure(estimate_duplicates([cell]), stratum.pairs),
            )
            for at, (stratum, cell) in enumerate(zip(strata, cells, strict=True))
        ]
        copies, copy_pairs = population.copy_counts
        return Audit(
            point=population.point,
            candidate_rule=population.candidate_rule,
            returned_scale=population.returned_scale,
            unreturned_scale=population.unreturned_scale,
            seed=self.seed,
            documents=population.documents,
            copies=copies,
            copy_pairs=copy_pairs,
            candidates=len(population.left),
            drawn=len(self.pairs),
            same=total[SAME],
            different=total[DIFFERENT],
            unsure=total[UNSURE],
            missing=total[""],
            outside=labels.outside,
            strata=tuple(results),
            points=tuple(threshold_points(strata, cells, population.working_score, population.directions)),
            duplicates=duplicate_figure(estimate_duplicates(cells)),
            inputs=self.inputs,
        )


def draw_sample(
    corpus: Corpus,
    *,
    classifier: Classifier | None = None,
    recipe: Recipe | None = None,
    candidate_rule: str | None = None,
    sample: int = AUDIT_SAMPLE,
    seed: int = 0,
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
) -> Sample:
    """Find all candidates of a classifier or a recipe, and draw a stratified random sample of them.

    ``candidate_rule`` is for a recipe only (see ``population.recipe_population``). A larger sample contains the pairs
    of a smaller one. Raises ``NeardupError`` if there is nothing to judge.
    """
    if sample < 1:
        raise RecipeError(f"sample {sample} is below 1; give the number of pairs to judge, such as {AUDIT_SAMPLE}")
    runner = partial(
        run, corpus, threads=threads, memory=memory, pairs_per_document=None, encoder=encoder, progress=progress
    )
    if recipe is not None and classifier is None:
        population, content = recipe_population(recipe, candidate_rule, runner), recipe.content
        return Sample(corpus, population, content=content, sample=sample, seed=seed)
    if classifier is None or recipe is not None:
        raise RecipeError("an audit takes one system; give either a classifier or a recipe")
    if candidate_rule is not None:
        raise RecipeError(
            f"candidate rule {candidate_rule!r}: a classifier has its own ({classifier.candidate_rule.in_words()}); "
            "leave it out"
        )
    population, content = classifier_population(classifier, runner), classifier.candidate_rule.content
    return Sample(corpus, population, content=content, sample=sample, seed=seed)
