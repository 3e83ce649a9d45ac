"""The model that the labels make so far: what it thinks of the pairs, and how good it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.evaluation.scoring import Figure
from neardup.features.statistics import Statistics
from neardup.labelling.candidates import Pool
from neardup.labelling.choosing import Fact
from neardup.labelling.known import Known, Place
from neardup.labelling.store import majority
from neardup.learning.fitting import quick
from neardup.learning.folds import connected
from neardup.learning.standing import LEAST_LABELS, Standing, standing
from neardup.vector.measuring import Measurer
from neardup.vector.records import Records
from neardup.vector.vector import Vector

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: Labels of each class that a model is made from, at least.
LEAST_OF_A_CLASS = 2
_PAIRS_AT_A_TIME = 500


class Lessons(NamedTuple):
    """The pairs of which most labellers say same, or different.

    Attributes
    ----------
    places : list of (int, int)
        The positions of the documents, in the order in which the pairs were first judged.
    same : bool[n]
        Whether they are near-duplicates.
    """

    places: list[Place]
    same: npt.NDArray[np.bool_]

    @property
    def classes(self) -> tuple[int, int]:
        """How many are near-duplicates, and how many are not."""
        return int(self.same.sum()), int((~self.same).sum())


def lessons_of(known: Known) -> Lessons:
    """Return what the labels say together."""
    found = {place: majority(answers) for place, answers in known.answers.items()}
    decided = {place: label for place, label in found.items() if label is not None}
    return Lessons(list(decided), np.array(list(decided.values()), np.bool_))


class Model:
    """A linear machine on the similarity vectors of the labelled pairs, made anew when there are new labels.

    The vectors of all pairs of the pool, and how good the machine is, are worked out beside the questions.

    Parameters
    ----------
    pool : Pool
        The pairs that may be asked.
    known : Known
        The labels.
    vector : Vector
        What pairs are measured by.
    statistics : mapping
        Of the collection, from ``statistics_for``.
    threads : int
        They change the time, never the answer.
    """

    def __init__(
        self, pool: Pool, known: Known, vector: Vector, statistics: Mapping[str, Statistics], *, threads: int = 1
    ) -> None:
        self._pool, self._known, self._vector = pool, known, vector
        self._measurer = Measurer(vector, statistics, threads=threads)
        self._index = {place: at for at, place in enumerate(zip(pool.left.tolist(), pool.right.tolist(), strict=True))}
        self._others: dict[Place, Floats] = {}
        self._fitted = -1
        self._g: Callable[[Floats], Floats] | None = None
        self._pool_g: Floats | None = None
        self._lock = threading.Lock()
        self._judged: tuple[int, Lessons | None, Standing | None] = (-1, None, None)
        self._judging: Future[None] | None = None
        self._ended = threading.Event()
        self._work = ThreadPoolExecutor(2, "labelling")
        documents, records = self._records(pool.left, pool.right)
        self._pool_x: Future[Floats] = self._work.submit(self._measured, documents, records, pool.left, pool.right)

    def _records(self, left: Integers, right: Integers) -> tuple[Integers, Records]:
        documents = np.unique(np.concatenate([left, right]))
        return documents, self._known.material.records(documents, self._vector)

    def _measured(self, documents: Integers, records: Records, left: Integers, right: Integers) -> Floats:
        """Return the vectors of pairs, a few at a time, so that an end need not wait for all of them."""
        prepared = self._measurer.prepare(records)
        x = np.full((len(left), len(self._vector)), np.nan)
        for begin in range(0, len(left), _PAIRS_AT_A_TIME):
            if self._ended.is_set():
                break
            part = slice(begin, begin + _PAIRS_AT_A_TIME)
            sides = np.searchsorted(documents, left[part]), np.searchsorted(documents, right[part])
            x[part] = self._measurer.measure(prepared, *sides)
        return x

    def _x(self, places: list[Place]) -> Floats:
        """Return the vectors of pairs, those of pairs beyond the pool measured when they are first asked for."""
        strange = [place for place in places if place not in self._index and place not in self._others]
        if strange:
            left, right = np.array(strange, np.int64).T
            self._others |= zip(strange, self._measured(*self._records(left, right), left, right), strict=True)
        x = self._pool_x.result()
        rows = [x[self._index[place]] if place in self._index else self._others[place] for place in places]
        return np.array(rows, np.float64).reshape(len(places), len(self._vector))

    def _fit(self) -> None:
        version = self._known.version
        if version == self._fitted:
            return
        lessons = lessons_of(self._known)
        enough = min(lessons.classes) >= LEAST_OF_A_CLASS
        self._g = quick(self._x(lessons.places), lessons.same) if enough else None
        self._pool_g = None if self._g is None else self._g(self._pool_x.result())
        self._fitted = version

    def pool_g(self) -> Floats | None:
        """Return g of the pool's pairs, near-duplicates where it is 0 or more; None while there are too few labels."""
        self._fit()
        return self._pool_g

    def g(self, place: Place) -> float | None:
        """Return g of one pair; None while there are too few labels, or the pairs are still being measured."""
        if not self._pool_x.done():
            return None
        self._fit()
        return None if self._g is None else float(self._g(self._x([place]))[0])

    def facts(self) -> tuple[list[Fact], bool]:
        """Return how good the model was when it was last judged, and whether it is being judged anew."""
        version = self._known.version
        with self._lock:
            judged, lessons, found = self._judged
            if judged != version and (self._judging is None or self._judging.done()):
                self._judging = self._work.submit(self._judge, version, lessons_of(self._known))
        return _facts(lessons, found, self._vector), judged != version

    def _judge(self, version: int, lessons: Lessons) -> None:
        found = None
        if min(lessons.classes) >= LEAST_LABELS:
            x = self._x(lessons.places)
            found = standing(x, lessons.same, connected(*np.array(lessons.places, np.int64).T))
        with self._lock:
            self._judged = version, lessons, found

    def close(self) -> None:
        """End what is being worked out."""
        self._ended.set()
        self._work.shutdown(wait=True, cancel_futures=True)


def _facts(lessons: Lessons | None, found: Standing | None, vector: Vector) -> list[Fact]:
    if lessons is None:
        return []
    same, different = lessons.classes
    if found is None:
        need = f"It takes {LEAST_LABELS} of each: there are {same} same and {different} different."
        return [Fact("F1", "too early to say", f"How well the labels can be learned. {need}")]
    measure = vector.names[found.measure]
    flattered = " Many pairs share documents, which flatters both." if found.shared else ""
    return [
        Fact(
            "model F1",
            _figure(found.learned.f1),
            f"What is learned from {same} same and {different} different, judged on pairs that it was not learned "
            f"from; in brackets where it lies with 95 % confidence.{flattered}",
        ),
        Fact(
            "best threshold F1",
            _figure(found.threshold.f1),
            f"The best threshold on a single measure ({measure}), judged alike: what the model has to beat.{flattered}",
        ),
    ]


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "none"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} ({figure.low:.2f}–{figure.high:.2f})"
