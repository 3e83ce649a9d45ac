"""Audits: a sample is drawn from a result, people judge it, and the labels say how good the whole is."""

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
from neardup.evaluation.audit_result import AuditResult, Band, Example, Examples
from neardup.evaluation.estimates import (
    StratumCounts,
    allocate,
    duplicates,
    estimate_duplicates,
    points,
    precision,
    stratify,
)
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
from neardup.features.embeddings import Encoder
from neardup.features.reading import Progress
from neardup.kernels import Integers
from neardup.labels.store import DIFFERENT, SAME, UNSURE
from neardup.labels.table import positions_by_id
from neardup.pages.documents import DocumentReader
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe

#: How many pairs of each kind are read out where nothing else is asked for.
MOST = 20
#: Why a pair is worth reading: whether it is returned, and what people say of it; None is either.
KINDS: dict[str, tuple[bool | None, str]] = {
    "wrong": (True, DIFFERENT),
    "missed": (False, SAME),
    "unsure": (None, UNSURE),
}


def examples_of(drawn: Sample, known: SampleLabels, most: int = MOST) -> Examples:
    """Return the pairs of each kind that stand for most others."""
    if most < 0:
        raise RecipeError(f"{most} pairs of each kind are below 0; give how many to show, such as {MOST}")
    population = drawn.population
    score, returned = population.score[drawn.pairs], population.returned[drawn.pairs]
    weights = _weights(drawn, known)
    chosen: dict[str, list[int]] = {}
    total = {}
    for kind, (side, answer) in KINDS.items():
        members = [
            at
            for at, said in enumerate(known.answers)
            if said == answer and (side is None or bool(returned[at]) == side)
        ]
        # Of equals those furthest on the wrong side first: they surprise most.
        members.sort(key=lambda at: (-weights[at], -score[at] if returned[at] else score[at], at))
        chosen[kind], total[kind] = members[:most], len(members)
    left, right = drawn.left, drawn.right
    places = [at for members in chosen.values() for at in members]
    material = drawn.material
    material.load(np.concatenate([left[places], right[places]]))
    shown = {
        kind: [
            Example(
                material.document(int(left[at])),
                material.document(int(right[at])),
                float(score[at]),
                bool(returned[at]),
                known.answers[at],
                weights[at],
            )
            for at in members
        ]
        for kind, members in chosen.items()
    }
    return Examples(shown, total)


def _weights(drawn: Sample, known: SampleLabels) -> Sequence[float]:
    """Return for each drawn pair how many pairs of its stratum a judged one stands for; 0 for the others."""
    place = drawn.pair_strata
    sure = np.array([answer in (SAME, DIFFERENT) for answer in known.answers], np.bool_)
    judged = np.bincount(place[sure], minlength=len(drawn.strata))
    pairs = np.array([stratum.pairs for stratum in drawn.strata])
    each = pairs[place] / np.maximum(judged[place], 1)
    return [float(weight) for weight in np.where(sure, each, 0.0)]


class Audit(AuditResult):
    """How good a result is, by a random sample of it, with its page; see ``AuditResult``."""

    __slots__ = ()

    def to_html(self, *, command: str = "") -> str:
        """Return a page with tables and pairs to read that needs nothing but a browser.

        Parameters
        ----------
        command : str
            As it was typed, for the page to say.

        Raises
        ------
        OutputError
            If the packages that draw are not installed.
        """
        from neardup.evaluation.audit_page import audit_page

        return audit_page(self, command=command)

    def write(self, output: str | os.PathLike[str], *, force: bool = False, command: str = "") -> None:
        """Write the page (.html) or everything else (.json); ``command`` is for the page to say.

        Raises
        ------
        OutputError
            If the name says no such format, or the place cannot be written.
        """
        name = os.fspath(output)
        if not name.endswith((".html", ".json")):
            raise OutputError(f"{name} says no format of an audit; name it .html or .json")
        check_place(name, force=force)
        content = self.to_html(command=command) if name.endswith(".html") else json.dumps(self.to_dict(), indent=2)
        with OutputFile(name) as file:
            file.write(content.encode() + b"\n")


#: How many pairs are drawn where nothing else is asked for.
AUDIT_SAMPLE = 200
_WRITTEN = {SAME: "1", DIFFERENT: "0", UNSURE: "?", "": ""}


class Sample:
    """A sample that was drawn from a result and can be judged.

    ``counts`` pairs were drawn of each of the ``strata``; ``pairs`` (int64[k]) are the drawn ones, by their places in
    the population, in an order that tells nothing. ``material`` has the documents, for people who judge; ``inputs``
    are the files that they came from.
    """

    def __init__(self, corpus: Corpus, population: Population, *, content: str, sample: int, seed: int) -> None:
        if not len(population.left):
            raise InputError(
                f"there is no pair of distinct texts with {population.candidate_rule}, so there is nothing to judge; "
                "give a looser candidate rule"
            )
        self.population, self.seed, self.inputs = population, seed, tuple(corpus.inputs)
        self.material = DocumentReader(corpus, population.names, content=content)
        scales = population.scale.edges, population.other_scale.edges
        self.strata, self._place = stratify(population.score, population.returned, population.deviations, *scales)
        self.counts = allocate(self.strata, sample)
        if 0 in self.counts:
            least = 2 * max(sum(stratum.returned == side for stratum in self.strata) for side in (True, False))
            raise RecipeError(
                f"sample {sample} is too small for {len(self.strata)} strata, each of which needs a pair; draw "
                f"{least}, or better a hundred"
            )
        self.pairs = draw_pairs(population.names, population.left, population.right, self._place, self.counts, seed)

    @property
    def left(self) -> Integers:
        """The left documents of the drawn pairs, by position."""
        return self.population.left[self.pairs]

    @property
    def right(self) -> Integers:
        """The right documents of the drawn pairs, by position."""
        return self.population.right[self.pairs]

    @property
    def pair_strata(self) -> Integers:
        """The stratum of each drawn pair."""
        return self._place[self.pairs]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the document of each id is."""
        names = self.population.names
        return positions_by_id(names.of_input(np.arange(len(names))).to_pylist())

    def resolve_votes(self, votes: Iterable[Vote]) -> SampleLabels:
        """Return what votes say of the drawn pairs."""
        return resolve_votes(self.left, self.right, self.population.texts, votes)

    def table(self, known: SampleLabels) -> pa.Table:
        """Return the drawn pairs for people to judge: id1, id2, label (1, 0, ? or empty), text1, text2."""
        self.material.load(np.concatenate([self.left, self.right]))
        sides = [[self.material.document(at) for at in side.tolist()] for side in (self.left, self.right)]
        ids = {name: [one.id for one in side] for name, side in zip(ID_COLUMNS, sides, strict=True)}
        texts = {f"text{number}": [one.text for one in side] for number, side in enumerate(sides, 1)}
        columns = ids | {LABEL_COLUMN: [_WRITTEN[answer] for answer in known.answers]} | texts
        return pa.table({name: pa.array(column, pa.large_string()) for name, column in columns.items()})

    def audit(self, known: SampleLabels) -> Audit:
        """Return what the labels say of the whole."""
        population, strata = self.population, self.strata
        members = [np.flatnonzero(self.pair_strata == at) for at in range(len(strata))]
        given = [known.counts(mine) for mine in members]
        cells = [
            StratumCounts(stratum.pairs, count[SAME] + count[DIFFERENT], count[SAME])
            for stratum, count in zip(strata, given, strict=True)
        ]
        total = known.counts()
        bands = []
        for at, (stratum, cell) in enumerate(zip(strata, cells, strict=True)):
            bands.append(
                Band(
                    returned=stratum.returned,
                    low=stratum.low,
                    high=stratum.high,
                    pairs=stratum.pairs,
                    drawn=self.counts[at],
                    judged=cell.judged,
                    same=cell.same,
                    unsure=given[at][UNSURE],
                    share=precision(estimate_duplicates([cell]), stratum.pairs),
                )
            )
        copies, copy_pairs = population.copies
        return Audit(
            point=population.point,
            candidate_rule=population.candidate_rule,
            scale=population.scale,
            other_scale=population.other_scale,
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
            outside=known.outside,
            strata=tuple(bands),
            points=tuple(points(strata, cells, population.own, population.directions)),
            duplicates=duplicates(cells),
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
    """Find all candidates and draw a stratified random sample of them.

    It is a sample of a classifier's result or of a recipe's; ``candidate_rule`` is for a recipe
    (``population.recipe_population``). A larger sample holds the pairs of a smaller one. Raises ``NeardupError``
    if there is nothing to judge.
    """
    if sample < 1:
        raise RecipeError(f"sample {sample} is below 1; give the number of pairs to judge, such as {AUDIT_SAMPLE}")
    once = partial(
        run, corpus, threads=threads, memory=memory, pairs_per_document=None, encoder=encoder, progress=progress
    )
    if recipe is not None and classifier is None:
        return Sample(
            corpus, recipe_population(recipe, candidate_rule, once), content=recipe.content, sample=sample, seed=seed
        )
    if classifier is None or recipe is not None:
        raise RecipeError("an audit is of one thing: give a classifier or a recipe")
    if candidate_rule is not None:
        raise RecipeError(
            f"candidate rule {candidate_rule!r}: a classifier has its own ({classifier.candidate_rule.in_words()}); "
            "leave it out"
        )
    return Sample(
        corpus,
        classifier_population(classifier, once),
        content=classifier.candidate_rule.content,
        sample=sample,
        seed=seed,
    )
