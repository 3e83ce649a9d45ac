"""The second step on the matches of a document in the window: which of them also pass a measure or a classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import Domain, DomainCounts
from neardup.classifier.evidence import Contribution, EvidenceTable
from neardup.classifier.feature_rows import FeatureRows
from neardup.classifier.measurer import Measurer, PreparedDocuments
from neardup.classifier.vector import NO_TIME, Records
from neardup.errors import RecipeError
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.recipe.second_step import SecondStep
from neardup.search.second_step import check_classifier, judge_by_measure, probability_counts
from neardup.text.contents import content_of


class Record(NamedTuple):
    """The input of a second step: text, title, and time in microseconds since 1970."""

    text: str
    title: str
    time: int


UNKNOWN_RECORD = Record("", "", NO_TIME)
RecordOf = Callable[[int], Record]

#: Capacity of the cache in documents and in characters of their texts, some 40 MB; a full cache is emptied.
MAX_DOCUMENTS, MAX_CHARACTERS = 4096, 1 << 22


class _Prepared(NamedTuple):
    rows: dict[str, FeatureRows]
    text: str
    time: int
    foreign: bool  #: whether training had no text of its length or script


class _PreparedCache:
    """Prepared documents by serial, so that few are prepared twice."""

    def __init__(self, measurer: Measurer, domain: Domain | None) -> None:
        self._measurer, self._domain = measurer, domain
        self._prepared: dict[int, _Prepared] = {}
        self._characters = 0

    def missing(self, serials: Sequence[int]) -> list[int]:
        """Return the serials that are not cached; empties a cache that would become too large."""
        if len(self._prepared) + len(serials) > MAX_DOCUMENTS or self._characters > MAX_CHARACTERS:
            self._prepared, self._characters = {}, 0
        return [serial for serial in serials if serial not in self._prepared]

    def add(self, serials: Sequence[int], records: Records) -> None:
        """Prepare documents and cache them."""
        prepared = self._measurer.prepare(records)
        foreign = (
            np.zeros(len(records), np.bool_) if self._domain is None else self._domain.outside_texts(records.texts)
        )
        for i, serial in enumerate(serials):
            rows = {name: _row(all_rows, i) for name, all_rows in prepared.rows.items()}
            self._prepared[serial] = _Prepared(rows, records.texts[i], int(prepared.times[i]), bool(foreign[i]))
            self._characters += len(records.texts[i])

    def take(self, serials: Sequence[int]) -> tuple[PreparedDocuments, Bools]:
        """Return documents in the form that the measurer takes, and which of them are foreign."""
        documents = [self._prepared[serial] for serial in serials]
        rows = {name: FeatureRows.concatenate([one.rows[name] for one in documents]) for name in documents[0].rows}
        times = np.array([one.time for one in documents], np.int64)
        prepared = PreparedDocuments(len(documents), rows, [one.text for one in documents], times, np.empty((0, 0)))
        return prepared, np.array([one.foreign for one in documents], np.bool_)

    def forget_from(self, serial: int) -> None:
        """Forget documents from a serial on, since their serials will be used again."""
        self._prepared = {number: one for number, one in self._prepared.items() if number < serial}


def _row(rows: FeatureRows, i: int) -> FeatureRows:
    begin, end = rows.offsets[i : i + 2].tolist()
    offsets = np.array([0, end - begin], np.int64)
    return FeatureRows(
        offsets, rows.features[begin:end], rows.weights[begin:end], rows.sums[i : i + 1], rows.squares[i : i + 1]
    )


class PassedPairs(NamedTuple):
    """The candidates of a document that pass the second step."""

    places: Integers  #: int64[k]: places of the passing candidates, ascending
    #: float64[k], int64[k, 3]: similarities, and o, a and b.
    similarity: Floats
    counts: Integers
    #: float64[k], float64[k, r]: scores of a classifier, and its measures; nan without one.
    scores: Floats
    vectors: Floats


class MeasureStep:
    """A second step by a measure."""

    def __init__(self, step: SecondStep, content: str, record_of: RecordOf) -> None:
        self._step, self._content, self._record_of = step, content, record_of

    def find_passing(self, record: Record, _serial: int, candidates: Integers) -> PassedPairs:
        """Return which candidates of a record pass, by their serials."""
        records = [record, *map(self._record_of, candidates.tolist())]
        texts = [content_of(item.text, self._content) for item in records]
        right = np.arange(1, len(texts))
        passed, counts = judge_by_measure(self._step, texts, np.zeros_like(right), right)
        found = similarities(self._step.measure, counts)
        places = np.flatnonzero(passed)
        return PassedPairs(places, found, counts, np.full(len(found), np.nan), np.empty((len(found), 0)))


class ClassifierStep:
    """A second step by a classifier.

    Raises ``RecipeError`` if the recipe names another classifier.
    """

    def __init__(self, recipe: Recipe, record_of: RecordOf, classifier: Classifier) -> None:
        self._recipe, self._record_of = recipe, record_of
        self._classifier = check_classifier(classifier, recipe, None)
        self._measurer = Measurer(classifier.vector, classifier.statistics)
        self._domain = classifier.domain
        self._cache = _PreparedCache(self._measurer, self._domain)
        #: Counts of judged pairs of arriving documents; queries do not count.
        self.counts = DomainCounts()

    def find_passing(self, record: Record, serial: int, candidates: Integers) -> PassedPairs:
        """Return which candidates of a record pass, by their serials; ``serial`` is the one of the record or -1."""
        # As in a run in memory, the later document is the right one.
        serials = [*candidates.tolist(), serial]
        missing = [number for number in self._cache.missing(serials) if number != serial]
        self._cache.add([*missing, serial], self._records([*map(self._record_of, missing), record]))
        prepared, foreign = self._cache.take(serials)
        vectors = self._measurer.measure(
            prepared, np.arange(len(candidates)), np.full(len(candidates), len(candidates))
        )
        scores = self._classifier.score(vectors)
        passes = self._classifier.passes(scores)
        if self._domain is not None and serial >= 0:
            outside = self._domain.outside_pairs(vectors) | foreign[:-1] | foreign[-1]
            self.counts = self.counts.add(outside, passes)
        passed = np.flatnonzero(passes)
        counts = probability_counts(self._classifier, scores[passed])
        return PassedPairs(passed, similarities("learned", counts), counts, scores[passed], vectors[passed])

    def _records(self, records: Sequence[Record]) -> Records:
        return Records(
            [content_of(item.text, self._recipe.content) for item in records],
            [item.title or None for item in records],
            np.array([item.time for item in records], np.int64),
        )

    def contributions(self, vector: Floats) -> tuple[Contribution, ...]:
        """Return the contributions of the measures to the score of a pair, the largest first."""
        return EvidenceTable(self._classifier, vector[np.newaxis], np.zeros(1, np.int64)).evidence(0).contributions

    def forget_from(self, serial: int) -> None:
        """Forget documents from a serial on, since their serials will be used again."""
        self._cache.forget_from(serial)


def second_step_of(
    recipe: Recipe, record_of: RecordOf, classifier: Classifier | None
) -> MeasureStep | ClassifierStep | None:
    """Return the second step of a recipe, None without one.

    Raises ``RecipeError`` if it is a classifier and none is passed.
    """
    step = recipe.parsed_second_step
    if step is None:
        return None
    if step.measure != "learned":
        return MeasureStep(step, recipe.content, record_of)
    if classifier is None:
        raise RecipeError(f"then {str(step)!r} is a classifier; give it as classifier=, in place of the recipe")
    return ClassifierStep(recipe, record_of, classifier)
