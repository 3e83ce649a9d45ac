"""The second step of a flow: which held documents that match one do so by another measure or a classifier, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import Domain, DomainCounts
from neardup.classifier.evidence import Contribution, EvidenceTable
from neardup.classifier.facts import FeatureRows
from neardup.classifier.measurer import Measurer, PreparedDocuments
from neardup.classifier.records import Records
from neardup.errors import RecipeError
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.search.matches import Matches
from neardup.search.second_step import apply_second_step, check_classifier, probability_counts
from neardup.stream.parts import Record
from neardup.text.html import content_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
RecordOf = Callable[[int], Record]

#: What is remembered at most: documents, and characters of their texts; some 40 MB. Then it begins anew.
DOCUMENTS, CHARACTERS = 4096, 1 << 22


class _Prepared(NamedTuple):
    """A document that was prepared for a classifier."""

    rows: dict[str, FeatureRows]
    text: str
    time: int
    foreign: bool  #: whether no text of its length or script was met in training


class _PreparedCache:
    """Prepared documents by number, so that hardly one is prepared twice."""

    def __init__(self, measurer: Measurer, domain: Domain | None) -> None:
        self._measurer, self._domain = measurer, domain
        self._known: dict[int, _Prepared] = {}
        self._characters = 0

    def missing(self, serials: Sequence[int]) -> list[int]:
        """Return the documents that are not here; all is forgotten before there would be too many."""
        if len(self._known) + len(serials) > DOCUMENTS or self._characters > CHARACTERS:
            self._known, self._characters = {}, 0
        return [serial for serial in serials if serial not in self._known]

    def add(self, serials: Sequence[int], records: Records) -> None:
        """Prepare documents and remember them."""
        prepared = self._measurer.prepare(records)
        foreign = (
            np.zeros(len(records), np.bool_) if self._domain is None else self._domain.outside_texts(records.texts)
        )
        times = np.zeros(len(records), np.int64) if records.times is None else records.times
        for i, serial in enumerate(serials):
            rows = {name: _row(every, i) for name, every in prepared.rows.items()}
            self._known[serial] = _Prepared(rows, records.texts[i], int(times[i]), bool(foreign[i]))
            self._characters += len(records.texts[i])

    def of(self, serials: Sequence[int]) -> tuple[PreparedDocuments, npt.NDArray[np.bool_]]:
        """Return documents as the measurer takes them, and which of them are foreign."""
        some = [self._known[serial] for serial in serials]
        rows = {name: FeatureRows.concatenate([one.rows[name] for one in some]) for name in some[0].rows}
        times = np.array([one.time for one in some], np.int64)
        prepared = PreparedDocuments(len(some), rows, [one.text for one in some], times, None)
        return prepared, np.array([one.foreign for one in some], np.bool_)

    def forget_from(self, serial: int) -> None:
        """Forget documents from a number on: others will have these numbers."""
        self._known = {number: one for number, one in self._known.items() if 0 <= number < serial}


def _row(rows: FeatureRows, i: int) -> FeatureRows:
    """Return one of some rows."""
    begin, end = rows.offsets[i : i + 2].tolist()
    offsets = np.array([0, end - begin], np.int64)
    return FeatureRows(
        offsets, rows.features[begin:end], rows.weights[begin:end], rows.sums[i : i + 1], rows.squares[i : i + 1]
    )


class PassedPairs(NamedTuple):
    """Which of some documents pass a second step beside one."""

    places: Integers  #: int64[k]: those that do, ascending
    #: float64[k], int64[k, 3]: how similar they are, and o, a and b.
    similarity: Floats
    counts: Integers
    #: float64[k], float64[k, r]: what a classifier makes of them, and from what; nan where none decides.
    g: Floats
    vectors: Floats


class MeasureStep:
    """A second step by a measure."""

    def __init__(self, recipe: Recipe, record_of: RecordOf) -> None:
        self._recipe, self._record_of = recipe, record_of
        #: Stays 0: only a classifier knows where it is at home.
        self.counts = DomainCounts()

    def find_passing(self, one: Record, serial: int, others: Integers) -> PassedPairs:
        """Return which documents pass beside one: its record and its number, -1 for none, and their numbers."""
        del serial
        records = [one, *map(self._record_of, others.tolist())]
        texts = [content_of(each.text, self._recipe.content) for each in records]
        right = np.arange(1, len(texts))
        every = Matches(np.arange(len(texts)), np.zeros_like(right), right, np.ones((len(right), 3), np.int64))
        # No text counts as equal to another, so that every pair is measured.
        each = np.arange(len(texts))
        passed = apply_second_step(
            every, self._recipe, each, lambda places: Records([texts[i] for i in places]), threads=1
        )
        counts = np.empty((0, 3), np.int64) if passed.second is None else passed.second
        step = self._recipe.parsed_second_step
        found = similarities(step.measure, counts) if step is not None else np.empty(0)
        return PassedPairs(passed.right - 1, found, counts, np.full(len(found), np.nan), np.empty((len(found), 0)))

    def contributions(self, vector: Floats) -> tuple[Contribution, ...]:
        """Return nothing: such a step says all by its counts."""
        del vector
        return ()

    def forget_from(self, serial: int) -> None:
        """Do nothing: nothing is remembered of documents."""


class ClassifierStep:
    """A second step by a classifier.

    Raises ``RecipeError`` if the recipe names another one.
    """

    def __init__(self, recipe: Recipe, record_of: RecordOf, classifier: Classifier) -> None:
        self._recipe, self._record_of = recipe, record_of
        self._classifier = check_classifier(classifier, recipe, None)
        self._measurer = Measurer(classifier.vector, classifier.statistics)
        self._home = classifier.domain
        self._cache = _PreparedCache(self._measurer, self._home)
        #: What it was asked about documents that arrived; questions about others do not count.
        self.counts = DomainCounts()

    def find_passing(self, one: Record, serial: int, others: Integers) -> PassedPairs:
        """Return which documents pass beside one: its record and its number, -1 for none, and their numbers."""
        # As in a run in memory, the one that comes later is the right one.
        wanted = [*others.tolist(), serial]
        missing = [number for number in self._cache.missing(wanted) if number != serial]
        self._cache.add([*missing, serial], self._records([*map(self._record_of, missing), one]))
        prepared, foreign = self._cache.of(wanted)
        vectors = self._measurer.measure(prepared, np.arange(len(others)), np.full(len(others), len(others)))
        g = self._classifier.score(vectors)
        passes = self._classifier.passes(g)
        if self._home is not None and serial >= 0:
            outside = self._home.outside_pairs(vectors) | foreign[:-1] | foreign[-1]
            self.counts = self.counts.add(outside, passes)
        passed = np.flatnonzero(passes)
        counts = probability_counts(self._classifier, g[passed])
        return PassedPairs(passed, similarities("learned", counts), counts, g[passed], vectors[passed])

    def _records(self, records: Sequence[Record]) -> Records:
        return Records(
            [content_of(each.text, self._recipe.content) for each in records],
            [each.title or None for each in records],
            np.array([each.time for each in records], np.int64),
        )

    def contributions(self, vector: Floats) -> tuple[Contribution, ...]:
        """Return what the measures of a pair have to do with its g, the one that pushed it furthest first."""
        return EvidenceTable(self._classifier, vector[np.newaxis], np.zeros(1, np.int64)).evidence(0).contributions

    def forget_from(self, serial: int) -> None:
        """Forget documents from a number on: others will have these numbers."""
        self._cache.forget_from(serial)


def second_step_of(
    recipe: Recipe, record_of: RecordOf, classifier: Classifier | None
) -> MeasureStep | ClassifierStep | None:
    """Return the second step of a recipe, None where it has none.

    Raises ``RecipeError`` if it is a learned one and the classifier is not there.
    """
    step = recipe.parsed_second_step
    if step is None:
        return None
    if step.measure != "learned":
        return MeasureStep(recipe, record_of)
    if classifier is None:
        raise RecipeError(f"then {str(step)!r} is a classifier; give it as classifier=, in place of the recipe")
    return ClassifierStep(recipe, record_of, classifier)
