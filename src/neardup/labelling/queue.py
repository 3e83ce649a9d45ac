"""The queues of pairs to label: given ones in their order, or those from which a model learns most."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from neardup.classifier.measurer import Measurer
from neardup.classifier.records import Records
from neardup.classifier.vector import Vector
from neardup.documents import Corpus
from neardup.errors import InputError
from neardup.evaluation.scores import Figure
from neardup.features.reading import Progress
from neardup.features.statistics import Statistics
from neardup.kernels import Bools, Floats, Integers
from neardup.kernels.graph import connect_components
from neardup.labelling.index import LabelIndex, Place
from neardup.labels.store import majority
from neardup.pages.documents import Material
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.text.normalize import normalize
from neardup.training.fit import quick_scorer
from neardup.training.folds import pair_groups
from neardup.training.training import LEAST_LABELS, QuickEvaluation, quick_evaluation

#: Why a pair is asked, and how the page says so once it is judged.
REASONS = {
    "spread": "chosen for variety",
    "doubt": "chosen because the model was in doubt",
    "audit": "chosen to check what the model was sure of",
    "agreement": "chosen because another labeller judges it too",
    "sample": "drawn at random",
}


class Asked(NamedTuple):
    """A pair to ask: positions of its documents, the reason, and the similarity by the rule's measure, if known."""

    left: int
    right: int
    reason: str
    similarity: float | None = None


class Fact(NamedTuple):
    """Something that the page tells beside the texts: a name, a value, and what it means in a sentence."""

    name: str
    value: str
    meaning: str


class Says(NamedTuple):
    """What is known of a pair besides the labels, for after it was judged."""

    words: str
    #: Whether it says near-duplicates; None where it says neither.
    same: bool | None = None


class LabelQueue(Protocol):
    """What a session asks for pairs."""

    def next_pair(self, labeller: str) -> Asked | None:
        """Return what to ask a labeller, None if there is nothing left."""

    def asks(self, place: Place) -> bool:
        """Return whether the pair is one that this chooser may ask."""

    def says(self, asked: Asked) -> list[Says]:
        """Return what there is to say of a pair, shown once it was judged."""

    def facts(self) -> list[Fact]:
        """Return what the labels say so far."""

    def left(self, labeller: str) -> int | None:
        """Return how many pairs are still to be asked; None where there is no end."""


class FixedQueue:
    """Asks given pairs in the given order, each of every labeller; what was put aside comes last."""

    def __init__(self, known: LabelIndex, pairs: Sequence[Asked], *, measure: str = "") -> None:
        self._known, self._measure = known, measure
        self._pairs = {(min(one.left, one.right), max(one.left, one.right)): one for one in pairs}

    def next_pair(self, labeller: str) -> Asked | None:
        """Return the first pair that the labeller has neither judged nor put aside, else the first put aside."""
        aside = [place for place in self._known.skipped(labeller) if place in self._pairs]
        missing = [place for place in self._missing(labeller) if place not in set(aside)]
        place = next(iter([*missing, *aside]), None)
        return None if place is None else self._pairs[place]

    def _missing(self, labeller: str) -> list[Place]:
        answers = self._known.answers
        return [place for place in self._pairs if labeller not in answers.get(place, ())]

    def asks(self, place: Place) -> bool:
        """Return whether the pair is one of those given."""
        return place in self._pairs

    def says(self, asked: Asked) -> list[Says]:
        """Return the pair's similarity."""
        return similarity_says(asked, self._measure)

    def facts(self) -> list[Fact]:
        """Return nothing: what the answers come to is for those who drew the pairs."""
        return []

    def left(self, labeller: str) -> int | None:
        """Return how many of the pairs the labeller has not judged."""
        return len(self._missing(labeller))


def similarity_says(asked: Asked, measure: str) -> list[Says]:
    """Return a pair's similarity by a measure, for people."""
    if asked.similarity is None or not measure:
        return []
    return [Says(f"similarity {asked.similarity:.2f} by {measure}")]


#: As many pairs are enough to choose from; of more, as many are drawn from each stretch of similarity.
MOST_PAIRS = 20_000
#: The stretches that similarity is cut into, from the rule's threshold to 1.
STRATA = 10
#: Documents that pairs at least so similar connect are a cluster: copies of one text, or of one form.
_CLUSTER = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Pairs to choose from, in the order of the documents."""

    #: int64[k]: positions of the documents, left < right.
    left: Integers
    right: Integers
    #: float64[k]: by the candidate rule's measure.
    similarity: Floats
    #: int64[k]: the stretch of similarity that each pair is in, 0 to STRATA - 1.
    stratum: Integers
    #: int64[k, 2]: the clusters of its documents.
    cluster: Integers
    #: int64[k]: a random order, by the seed.
    rank: Integers
    #: The candidate rule's measure, for people.
    measure: str
    #: How many candidates there are, of which these are some or all.
    found: int
    complete: bool

    def __len__(self) -> int:
        return len(self.left)


def pool_of(
    corpus: Corpus,
    candidate_rule: Recipe,
    *,
    seed: int = 0,
    most: int = MOST_PAIRS,
    title_column: str = "",
    time_column: str = "",
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> tuple[Pool, Material]:
    """Return the pairs to choose from, and the documents.

    Documents that are equal in all that the candidate rule compares count once, by the first of them.

    Of more candidates than ``most``, so many are taken.
    """
    result = run(corpus, candidate_rule, threads=threads, memory=memory, progress=progress)
    if not result.summary["documents"]:
        raise InputError("the input holds no documents, so there is nothing to ask; name the files to label")
    left, right, similarity = result.pairs.left, result.pairs.right, result.pairs.similarity
    material = Material(
        corpus,
        result.pairs.names,
        content=candidate_rule.content,
        title_column=title_column,
        time_column=time_column,
        threads=result.summary["threads"],
    )
    measure = f"{candidate_rule.measure}({candidate_rule.features})"
    random = np.random.default_rng(seed)
    group = np.arange(len(material.names))
    close = similarity >= _CLUSTER
    connect_components(left[close], right[close], group)
    stratum = strata_of(similarity, float(candidate_rule.threshold))
    chosen = np.sort(_drawn(stratum, most, random))
    material.load(np.concatenate([left[chosen], right[chosen]]))
    chosen = chosen[_differ(material, left[chosen], right[chosen])]
    if not len(chosen):
        raise InputError(
            f"there is no pair with {measure} >= {candidate_rule.threshold:g} but copies, so there is nothing to ask; "
            "lower the number in --candidate-rule"
        )
    left, right = left[chosen], right[chosen]
    pool = Pool(
        left,
        right,
        similarity[chosen],
        stratum[chosen],
        np.column_stack([group[left], group[right]]),
        random.permutation(len(chosen)),
        measure,
        len(similarity),
        bool(result.summary["all_pairs"]),
    )
    return pool, material


def strata_of(similarity: Floats, least: float) -> Integers:
    """Return which of the equal stretches from ``least`` to 1 each similarity is in."""
    share = (similarity - least) / (1 - least) if least < 1 else np.ones_like(similarity)
    return np.clip((share * STRATA).astype(np.int64), 0, STRATA - 1)


def _drawn(stratum: Integers, most: int, random: np.random.Generator) -> Integers:
    """Return at most so many pairs, of each stratum as many as possible before others get more."""
    counts = np.bincount(stratum, minlength=STRATA)
    quota, left = np.zeros(STRATA, np.int64), most
    # The smallest strata are taken whole, and what they leave goes to the others.
    for place, at in enumerate(np.argsort(counts, kind="stable")):
        quota[at] = min(counts[at], left // (STRATA - place))
        left -= int(quota[at])
    parts = [random.permutation(np.flatnonzero(stratum == at))[: quota[at]] for at in range(STRATA)]
    return np.concatenate(parts)


def _differ(material: Material, left: Integers, right: Integers) -> npt.NDArray[np.bool_]:
    """Return which pairs are not the same words in the same order."""
    places = np.unique(np.concatenate([left, right]))
    words: dict[str, int] = {}
    same = np.array([words.setdefault(normalize(material.shown(at).text), at) for at in places.tolist()], np.int64)
    differs: npt.NDArray[np.bool_] = same[np.searchsorted(places, left)] != same[np.searchsorted(places, right)]
    return differs


#: Labels of each class that a model is made from, at least.
LEAST_OF_A_CLASS = 2
_PAIRS_AT_A_TIME = 500


class Lessons(NamedTuple):
    """The pairs of which most labellers say same, or different."""

    #: The positions of the documents, in the order in which the pairs were first judged.
    places: list[Place]
    #: bool[n]: whether they are near-duplicates.
    same: npt.NDArray[np.bool_]

    @property
    def classes(self) -> tuple[int, int]:
        """How many are near-duplicates, and how many are not."""
        return int(self.same.sum()), int((~self.same).sum())


def lessons_of(known: LabelIndex) -> Lessons:
    """Return what the labels say together."""
    found = {place: majority(answers) for place, answers in known.answers.items()}
    decided = {place: label for place, label in found.items() if label is not None}
    return Lessons(list(decided), np.array(list(decided.values()), np.bool_))


class Model:
    """A linear machine on the similarity vectors of the labelled pairs, made anew when there are new labels.

    The vectors of all pairs of the pool, and how good the machine is, are worked out beside the questions.
    """

    def __init__(
        self, pool: Pool, known: LabelIndex, vector: Vector, statistics: Mapping[str, Statistics], *, threads: int = 1
    ) -> None:
        self._pool, self._known, self._vector = pool, known, vector
        self._measurer = Measurer(vector, statistics, threads=threads)
        self._index = {place: at for at, place in enumerate(zip(pool.left.tolist(), pool.right.tolist(), strict=True))}
        self._others: dict[Place, Floats] = {}
        self._fitted = -1
        self._g: Callable[[Floats], Floats] | None = None
        self._pool_g: Floats | None = None
        self._lock = threading.Lock()
        self._judged: tuple[int, Lessons | None, QuickEvaluation | None] = (-1, None, None)
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
        self._g = quick_scorer(self._x(lessons.places), lessons.same) if enough else None
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

    def facts(self) -> list[Fact]:
        """Return how good the model was when it was last judged; it is judged anew beside the questions."""
        version = self._known.version
        with self._lock:
            judged, lessons, found = self._judged
            if judged != version and (self._judging is None or self._judging.done()):
                self._judging = self._work.submit(self._judge, version, lessons_of(self._known))
        return _facts(lessons, found, self._vector)

    def _judge(self, version: int, lessons: Lessons) -> None:
        found = None
        if min(lessons.classes) >= LEAST_LABELS:
            x = self._x(lessons.places)
            found = quick_evaluation(x, lessons.same, pair_groups(*np.array(lessons.places, np.int64).T))
        with self._lock:
            self._judged = version, lessons, found

    def close(self) -> None:
        """End what is being worked out."""
        self._ended.set()
        self._work.shutdown(wait=True, cancel_futures=True)


def _facts(lessons: Lessons | None, found: QuickEvaluation | None, vector: Vector) -> list[Fact]:
    if lessons is None:
        return []
    same, different = lessons.classes
    if found is None:
        need = f"It takes {LEAST_LABELS} of each: there are {same} same and {different} different."
        return [Fact("F1", "too early to say", f"How well the labels can be learned. {need}")]
    measure = vector.names[found.measure]
    flattered = " Many pairs share documents, which flatters both." if found.shares_documents else ""
    return [
        Fact(
            "model F1",
            _figure(found.learned.f1),
            f"What is learned from {same} same and {different} different, judged on pairs that it was not learned "
            "from. F1 is 1 where nothing is missed and nothing wrongly taken for the same, and 0 where nothing is "
            f"right; in brackets where it lies with 95% confidence.{flattered}",
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


#: Labels that are spread over similarity before the model is asked, and of each class at least so many.
SPREAD, FEWEST_OF_A_CLASS = 30, 4
#: What the questions after that are, in turn.
TURNS = ("doubt", "doubt", "audit", "doubt", "doubt", "doubt", "spread", "doubt", "doubt", "audit")
#: The share of a labeller's questions that others have answered too.
SHARED = 0.25
#: The most doubtful pairs, of which one from a cluster that was not asked lately is taken.
_DOUBTFUL = 200
#: A cluster asked so few questions ago is left in peace.
_LATELY = 10
#: Beyond the margin of the machine it is sure.
_SURE = 1.0
#: So near the boundary it says nothing.
_EVEN = 0.1


class ActiveLearningQueue:
    """Asks what teaches most.

    The choice depends on the pool, the labels and the labeller alone.

    Others have answered a ``shared`` part of each labeller's questions, too, as long as there are such. Raising it
    makes agreement known more precisely, and brings fewer labels of new pairs.
    """

    def __init__(self, pool: Pool, known: LabelIndex, model: Model, *, shared: float = SHARED) -> None:
        self._pool, self._known, self._model, self._shared = pool, known, model, shared
        self._index = {place: at for at, place in enumerate(zip(pool.left.tolist(), pool.right.tolist(), strict=True))}

    def next_pair(self, labeller: str) -> Asked | None:
        """Return what to ask a labeller, None if there is nothing left."""
        answers = self._known.answers
        mine = {place for place, given in answers.items() if labeller in given}
        aside = self._known.skipped(labeller)
        theirs = [place for place in answers if place not in mine and place in self._index and place not in aside]
        if theirs and int((len(mine) + 1) * self._shared) > int(len(mine) * self._shared):
            return self._asked(min(theirs, key=self._rank), "agreement")
        fresh = np.ones(len(self._pool), np.bool_)
        gone = [*answers, *aside, *self._known.open_of_others(labeller)]
        fresh[[self._index[place] for place in gone if place in self._index]] = False
        if fresh.any():
            return self._fresh(fresh)
        if theirs:
            return self._asked(min(theirs, key=self._rank), "agreement")
        left = [place for place in aside if place in self._index]
        return self._asked(left[0], "spread") if left else None

    def _rank(self, place: Place) -> int:
        return int(self._pool.rank[self._index[place]])

    def _asked(self, place: Place, reason: str) -> Asked:
        return Asked(*place, reason, float(self._pool.similarity[self._index[place]]))

    def _fresh(self, fresh: Bools) -> Asked:
        """Return a pair that nobody was asked."""
        lessons = lessons_of(self._known)
        turn = "spread"
        if len(lessons.places) >= SPREAD and min(lessons.classes) >= FEWEST_OF_A_CLASS:
            turn = TURNS[len(self._known.answers) % len(TURNS)]
        g = None if turn == "spread" else self._model.pool_g()
        if g is None:
            at = self._spread(fresh, lessons)
            turn = "spread"
        elif turn == "audit":
            at = self._audit(fresh, g)
        else:
            at = self._doubt(fresh, g)
        return self._asked((int(self._pool.left[at]), int(self._pool.right[at])), turn)

    def _spread(self, fresh: Bools, lessons: Lessons) -> int:
        """Return a pair of the stratum that was asked least; while a class is missing, from its end of similarity."""
        asked = np.bincount(self._pool.stratum[self._judged()], minlength=STRATA)
        strata = np.unique(self._pool.stratum[fresh])
        same, different = lessons.classes
        if len(lessons.places) >= SPREAD and len(strata) > 1:
            half = len(strata) // 2
            strata = strata[half:] if same < different else strata[:-half]
        # Of strata asked as often, the highest: that is where duplicates are, which are rarer.
        stratum = min(strata.tolist(), key=lambda one: (asked[one], -one))
        return self._peaceful(np.flatnonzero(fresh & (self._pool.stratum == stratum)), self._pool.rank)

    def _doubt(self, fresh: Bools, g: Floats) -> int:
        """Return a pair near the machine's boundary."""
        able = np.flatnonzero(fresh)
        doubtful = able[np.argsort(np.abs(g[able]), kind="stable")[:_DOUBTFUL]]
        return self._peaceful(doubtful, np.abs(g))

    def _audit(self, fresh: Bools, g: Floats) -> int:
        """Return a pair that the machine is sure of, of the side of which fewer were asked."""
        judged = self._judged()
        sides = [fresh & (g >= _SURE), fresh & (g <= -_SURE)]
        asked = [int((g[judged] >= _SURE).sum()), int((g[judged] <= -_SURE).sum())]
        for side in sorted((0, 1), key=asked.__getitem__):
            if sides[side].any():
                return self._peaceful(np.flatnonzero(sides[side]), self._pool.rank)
        return self._doubt(fresh, g)

    def _judged(self) -> Integers:
        """Return which pairs of the pool have labels, in order."""
        return np.array([self._index[place] for place in self._known.answers if place in self._index], np.int64)

    def _peaceful(self, able: Integers, order: Floats | Integers) -> int:
        """Return the first by ``order`` of those whose clusters were asked least among the last questions."""
        lately = self._pool.cluster[self._judged()[-_LATELY:]]
        clusters = self._pool.cluster[able]
        weight = (clusters[:, :, np.newaxis] == lately.reshape(1, 1, -1)).sum(axis=(1, 2))
        return int(able[np.lexsort((order[able], weight))[0]])

    def asks(self, place: Place) -> bool:
        """Return whether the pair is in the pool."""
        return place in self._index

    def says(self, asked: Asked) -> list[Says]:
        """Return the pair's similarity, and what the model thinks of it."""
        said = similarity_says(asked, self._pool.measure)
        g = self._model.g((asked.left, asked.right))
        if g is not None:
            which = "the same" if g >= 0 else "different"
            if abs(g) < _EVEN:
                said.append(Says("the model cannot tell"))
            else:
                sure = "is sure" if abs(g) >= _SURE else "would say"
                said.append(Says(f"the model {sure}: {which}", g >= 0))
        return said

    def facts(self) -> list[Fact]:
        """Return how well the labels can be learned."""
        return self._model.facts()

    def left(self, labeller: str) -> int | None:
        """Return None: there are more pairs than anybody would judge."""
        return None
