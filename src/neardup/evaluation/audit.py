"""The audit of a result: a random sample of its pairs, which people label, and estimates from their labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.documents import Corpus
from neardup.documents.output import OutputFile, check_place
from neardup.errors import InputError, OutputError, RecipeError
from neardup.evaluation.audit_result import AuditResult, Example, Examples, StratumResult
from neardup.evaluation.intervals import StratumCounts, duplicate_figure, estimate_duplicates, precision_figure
from neardup.evaluation.population import (
    ID_COLUMNS,
    LABEL_COLUMN,
    Population,
    SampleLabels,
    Vote,
    classifier_population,
    draw_pairs,
    recipe_population,
    resolve_votes,
)
from neardup.evaluation.strata import allocate, stratify, threshold_points
from neardup.features.extraction import Encoder
from neardup.features.reading import Progress
from neardup.labels.store import DIFFERENT, SAME, UNSURE
from neardup.labels.table import positions_by_id
from neardup.pages.documents import DocumentReader
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe

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


class Audit(AuditResult):
    """The quality of a result, estimated from a random sample of its pairs; see ``AuditResult`` for its fields."""

    __slots__ = ()

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
        self.columns = corpus.columns_used
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
            columns=self.columns,
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
    memory: int | str | None = None,
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
