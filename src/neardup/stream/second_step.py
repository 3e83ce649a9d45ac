"""Documents that were prepared for a classifier, one behind the other, so that hardly one is prepared twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import Domain, DomainCounts
from neardup.classifier.evidence import Contribution, Learned
from neardup.classifier.facts import Rows
from neardup.classifier.values import Measurer, Prepared, Records
from neardup.errors import RecipeError
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.search.matches import Matches
from neardup.search.second_step import check_classifier, counts_of, second_step
from neardup.stream.parts import Record
from neardup.text.html import content_of

Integers = npt.NDArray[np.int64]

#: What is remembered at most: documents, and characters of their texts; some 40 MB. Then it begins anew.
DOCUMENTS, CHARACTERS = 4096, 1 << 22
_FEWEST = 64


class _Growing:
    """An array to which values are added at the end."""

    def __init__(self, kind: Any) -> None:
        self._room = np.empty(_FEWEST, kind)
        self._used = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        needed = self._used + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, 2 * len(self._room)), self._room.dtype)
            room[: self._used] = self._room[: self._used]
            self._room = room
        self._room[self._used : needed] = values
        self._used = needed

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._room[: self._used]


class _GrowingRows:
    """Rows of features to which documents are added at the end."""

    def __init__(self) -> None:
        self._heads, self._features, self._weights = _Growing(np.int64), _Growing(np.uint64), _Growing(np.int64)
        self._sums, self._squares = _Growing(np.int64), _Growing(np.int64)
        self._heads.add(np.zeros(1, np.int64))

    def add(self, rows: Rows) -> None:
        self._heads.add(rows.heads[1:] + self._heads.values[-1])
        self._features.add(rows.features)
        self._weights.add(rows.weights)
        self._sums.add(rows.sums)
        self._squares.add(rows.squares)

    @property
    def values(self) -> Rows:
        grown = self._heads, self._features, self._weights, self._sums, self._squares
        return Rows(*(each.values for each in grown))


class Pool:
    """Prepared documents by number."""

    def __init__(self, measurer: Measurer, domain: Domain | None = None) -> None:
        self._measurer, self._domain = measurer, domain
        self._clear()

    def _clear(self) -> None:
        self._places: dict[int, int] = {}
        self._rows: dict[str, _GrowingRows] = {}
        self._texts: list[str] = []
        self._times = _Growing(np.int64)
        self._foreign = _Growing(np.bool_)
        self._characters = 0

    def __contains__(self, serial: object) -> bool:
        return serial in self._places

    def __len__(self) -> int:
        return len(self._texts)

    def make_room(self, serials: Sequence[int]) -> None:
        """Forget all, if there is no room for more; documents that are asked for now come in all together."""
        if len(self._texts) + len(serials) > DOCUMENTS or self._characters > CHARACTERS:
            self._clear()

    def add(self, serials: Sequence[int], records: Records) -> None:
        """Prepare documents and remember them; one without a number, -1, for as long as nothing else is added."""
        first = len(self._texts)
        prepared = self._measurer.prepare(records)
        for name, rows in prepared.rows.items():
            self._rows.setdefault(name, _GrowingRows()).add(rows)
        if records.times is not None:
            self._times.add(records.times)
        if self._domain is not None:
            self._foreign.add(self._domain.foreign(records.texts))
        self._texts += records.texts
        self._characters += sum(map(len, records.texts))
        self._places |= {serial: first + i for i, serial in enumerate(serials)}

    def prepared(self) -> Prepared:
        """Return all documents as the measurer takes them."""
        rows = {name: rows.values for name, rows in self._rows.items()}
        return Prepared(len(self._texts), rows, self._texts, self._times.values, None)

    @property
    def foreign(self) -> npt.NDArray[np.bool_]:
        """Which texts are of a length or a script that was not met in training, where there is a domain."""
        return self._foreign.values

    def places(self, serials: Sequence[int]) -> Integers:
        """Return where documents lie."""
        return np.array([self._places[serial] for serial in serials], np.int64)

    def forget_from(self, serial: int) -> None:
        """Forget documents from a number on: others will have these numbers."""
        self._places = {known: place for known, place in self._places.items() if known < serial}


Floats = npt.NDArray[np.float64]
RecordOf = Callable[[int], Record]


class Looked(NamedTuple):
    """Which of some documents pass a second step beside one."""

    places: Integers  #: int64[k]: those that do, ascending
    #: float64[k], int64[k, 3]: how similar they are, and o, a and b.
    similarity: Floats
    counts: Integers
    #: float64[k], float64[k, r]: what a classifier makes of them, and from what; nan where none decides.
    g: Floats
    vectors: Floats


class MeasuredStep:
    """A second step by a measure."""

    def __init__(self, recipe: Recipe, record_of: RecordOf) -> None:
        self._recipe, self._record_of = recipe, record_of
        #: Stays 0: only a classifier knows where it is at home.
        self.counts = DomainCounts()

    def look(self, one: Record, serial: int, others: Integers) -> Looked:
        """Return which documents pass beside one: its record and its number, -1 for none, and their numbers."""
        del serial
        records = [one, *map(self._record_of, others.tolist())]
        texts = [content_of(each.text, self._recipe.content) for each in records]
        right = np.arange(1, len(texts))
        every = Matches(np.arange(len(texts)), np.zeros_like(right), right, np.ones((len(right), 3), np.int64))
        # No text counts as equal to another, so that every pair is measured.
        each = np.arange(len(texts))
        passed = second_step(every, self._recipe, each, lambda places: Records([texts[i] for i in places]), threads=1)
        counts = np.empty((0, 3), np.int64) if passed.second is None else passed.second
        step = self._recipe.parsed_second_step
        found = similarities(step.measure, counts) if step is not None else np.empty(0)
        return Looked(passed.right - 1, found, counts, np.full(len(found), np.nan), np.empty((len(found), 0)))

    def contributions(self, vector: Floats) -> tuple[Contribution, ...]:
        """Return nothing: such a step says all by its counts."""
        del vector
        return ()

    def forget_from(self, serial: int) -> None:
        """Do nothing: nothing is remembered of documents."""


class LearnedStep:
    """A second step by a classifier.

    Raises ``RecipeError`` if the recipe names another one.
    """

    def __init__(self, recipe: Recipe, record_of: RecordOf, classifier: Classifier) -> None:
        self._recipe, self._record_of = recipe, record_of
        self._classifier = check_classifier(classifier, recipe, None)
        self._measurer = Measurer(classifier.vector, classifier.statistics)
        self._home = classifier.domain
        self._pool = Pool(self._measurer, self._home)
        #: What it was asked about documents that arrived; questions about others do not count.
        self.counts = DomainCounts()

    def look(self, one: Record, serial: int, others: Integers) -> Looked:
        """Return which documents pass beside one: its record and its number, -1 for none, and their numbers."""
        # As in a run in memory, the one that comes later is the right one.
        wanted = [*others.tolist(), serial]
        self._pool.make_room(wanted)
        missing = [number for number in wanted if number == serial or number not in self._pool]
        records = [*map(self._record_of, missing[:-1]), one]
        self._pool.add(missing, self._records(records))
        places = self._pool.places(wanted)
        vectors = self._measurer.measure(self._pool.prepared(), places[:-1], np.full(len(others), places[-1]))
        g = self._classifier.score(vectors)
        passes = self._classifier.passes(g)
        if self._home is not None and serial >= 0:
            foreign = self._pool.foreign
            outside = self._home.outside(vectors) | foreign[places[:-1]] | foreign[places[-1]]
            self.counts = self.counts.plus(outside, passes)
        passed = np.flatnonzero(passes)
        counts = counts_of(self._classifier, g[passed])
        return Looked(passed, similarities("learned", counts), counts, g[passed], vectors[passed])

    def _records(self, records: Sequence[Record]) -> Records:
        return Records(
            [content_of(each.text, self._recipe.content) for each in records],
            [each.title or None for each in records],
            np.array([each.time for each in records], np.int64),
        )

    def contributions(self, vector: Floats) -> tuple[Contribution, ...]:
        """Return what the measures of a pair have to do with its g, the one that pushed it furthest first."""
        return Learned(self._classifier, vector[np.newaxis], np.zeros(1, np.int64)).evidence(0).contributions

    def forget_from(self, serial: int) -> None:
        """Forget documents from a number on: others will have these numbers."""
        self._pool.forget_from(serial)


def second_of(recipe: Recipe, record_of: RecordOf, classifier: Classifier | None) -> MeasuredStep | LearnedStep | None:
    """Return the second step of a recipe, None where it has none.

    Raises ``RecipeError`` if it is a learned one and the classifier is not there.
    """
    step = recipe.parsed_second_step
    if step is None:
        return None
    if step.measure != "learned":
        return MeasuredStep(recipe, record_of)
    if classifier is None:
        raise RecipeError(f"then {str(step)!r} is a classifier; give it as classifier=, in place of the recipe")
    return LearnedStep(recipe, record_of, classifier)
