"""The queues of pairs to label: a fixed list, or the pairs from which a model learns most."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import Records, Vector
from neardup.documents import Corpus
from neardup.errors import InputError
from neardup.evaluation.intervals import Figure
from neardup.features.reading import Progress
from neardup.features.statistics import Statistics
from neardup.kernels import Bools, Floats, Integers
from neardup.kernels.graph import connect_components
from neardup.labelling.label_index import LabelIndex, PositionPair
from neardup.labels.store import majority_label
from neardup.pages.documents import DocumentReader
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.text.normalize import normalize
from neardup.training.fit import quick_scorer
from neardup.training.folds import pair_groups
from neardup.training.training import MIN_LABELS, QuickEvaluation, quick_evaluation

#: The reasons for choosing a pair, as the page states them after the answer.
REASONS = {
    "spread": "chosen for variety",
    "doubt": "chosen because the model was in doubt",
    "audit": "chosen to check what the model was sure of",
    "agreement": "chosen because another labeller judges it, too",
    "sample": "drawn at random",
}


class Question(NamedTuple):
    """A pair to judge: the positions of its documents, the reason, and the candidate rule's similarity, if known."""

    left: int
    right: int
    reason: str
    similarity: float | None = None


class Fact(NamedTuple):
    """A figure at the top of the page: its name, its value, and its meaning in a sentence."""

    name: str
    value: str
    meaning: str


class PairNote(NamedTuple):
    """A note on a pair that the page shows after the answer."""

    words: str
    same: bool | None = None  #: whether the note speaks for near-duplicates; None for neither


class FixedQueue:
    """A fixed list of pairs that every labeller gets in order; skipped pairs come last."""

    def __init__(self, labels: LabelIndex, pairs: Sequence[Question], *, measure: str = "") -> None:
        self._labels, self._measure = labels, measure
        self._pairs = {(min(q.left, q.right), max(q.left, q.right)): q for q in pairs}

    def next_pair(self, labeller: str) -> Question | None:
        """Return the first pair that the labeller has neither judged nor skipped, else the first skipped one."""
        skipped = [pair for pair in self._labels.skipped(labeller) if pair in self._pairs]
        missing = [pair for pair in self._missing(labeller) if pair not in set(skipped)]
        pair = next(iter([*missing, *skipped]), None)
        return None if pair is None else self._pairs[pair]

    def _missing(self, labeller: str) -> list[PositionPair]:
        answers = self._labels.answers
        return [pair for pair in self._pairs if labeller not in answers.get(pair, ())]

    def contains(self, pair: PositionPair) -> bool:
        """Return whether the pair is in the list."""
        return pair in self._pairs

    def pair_notes(self, question: Question) -> list[PairNote]:
        """Return the pair's similarity."""
        return similarity_notes(question, self._measure)

    def facts(self) -> list[Fact]:
        """Return nothing: only a subclass knows how its pairs were drawn."""
        return []

    def remaining(self, labeller: str) -> int | None:
        """Return the number of pairs that the labeller has not judged."""
        return len(self._missing(labeller))


def similarity_notes(question: Question, measure: str) -> list[PairNote]:
    """Return a note with the pair's similarity by a measure; none if it is unknown."""
    if question.similarity is None or not measure:
        return []
    return [PairNote(f"similarity {question.similarity:.2f} by {measure}")]


#: The most pairs to choose from; of more candidates, equal numbers are drawn from each stratum of similarity.
MAX_PAIRS = 20_000
#: The number of equal strata of similarity, from the rule's threshold to 1.
STRATA = 10
#: Pairs of at least this similarity connect documents into clusters: copies of one text, or of one form.
_CLUSTER_SIMILARITY = 0.5


@dataclass(frozen=True, eq=False)
class Pool:
    """Pairs to choose from, in the order of the documents."""

    #: int64[k]: positions of the documents, left < right.
    left: Integers
    right: Integers
    similarity: Floats  #: float64[k]: by the candidate rule's measure
    stratum: Integers  #: int64[k]: the stratum of similarity of each pair, 0 to STRATA - 1
    cluster: Integers  #: int64[k, 2]: the clusters of its documents
    rank: Integers  #: int64[k]: a random order, from the seed
    measure: str  #: the candidate rule's measure, for people
    candidates: int  #: the number of candidates from which the pool was drawn
    complete: bool  #: whether the search found all candidates

    def __len__(self) -> int:
        return len(self.left)

    @cached_property
    def rows(self) -> dict[PositionPair, int]:
        """The row of each pair."""
        return {pair: row for row, pair in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True))}


def build_pool(
    corpus: Corpus,
    candidate_rule: Recipe,
    *,
    seed: int = 0,
    max_pairs: int = MAX_PAIRS,
    title_column: str = "",
    time_column: str = "",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> tuple[Pool, DocumentReader]:
    """Return a pool of at most ``max_pairs`` candidate pairs, and the documents.

    Documents that the candidate rule cannot tell apart count once, by the first of them.
    """
    result = run(corpus, candidate_rule, threads=threads, memory=memory, progress=progress)
    if not result.summary["documents"]:
        raise InputError("the input holds no documents, so there is nothing to label; name other files")
    left, right, similarity = result.pairs.left, result.pairs.right, result.pairs.similarity
    reader = DocumentReader(
        corpus,
        result.pairs.names,
        content=candidate_rule.content,
        title_column=title_column,
        time_column=time_column,
        threads=result.summary["threads"],
    )
    measure = f"{candidate_rule.measure}({candidate_rule.features})"
    random = np.random.default_rng(seed)
    group = np.arange(len(reader.names))
    close = similarity >= _CLUSTER_SIMILARITY
    connect_components(left[close], right[close], group)
    stratum = strata_of(similarity, float(candidate_rule.threshold))
    chosen = np.sort(_sample_rows(stratum, max_pairs, random))
    reader.load(np.concatenate([left[chosen], right[chosen]]))
    chosen = chosen[_texts_differ(reader, left[chosen], right[chosen])]
    if not len(chosen):
        raise InputError(
            f"no pair but copies has {measure} >= {candidate_rule.threshold:g}, so there is nothing to label; lower "
            "the number in --candidate-rule"
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
    return pool, reader


def strata_of(similarity: Floats, least: float) -> Integers:
    """Return the stratum of each similarity, in equal parts from ``least`` to 1."""
    share = (similarity - least) / (1 - least) if least < 1 else np.ones_like(similarity)
    return np.clip((share * STRATA).astype(np.int64), 0, STRATA - 1)


def _sample_rows(stratum: Integers, max_pairs: int, random: np.random.Generator) -> Integers:
    """Return at most ``max_pairs`` random rows, spread over the strata as evenly as possible."""
    counts = np.bincount(stratum, minlength=STRATA)
    quota, rest = np.zeros(STRATA, np.int64), max_pairs
    # The smallest strata are taken whole; the larger ones share what they leave.
    for rank, at in enumerate(np.argsort(counts, kind="stable")):
        quota[at] = min(counts[at], rest // (STRATA - rank))
        rest -= int(quota[at])
    parts = [random.permutation(np.flatnonzero(stratum == at))[: quota[at]] for at in range(STRATA)]
    return np.concatenate(parts)


def _texts_differ(reader: DocumentReader, left: Integers, right: Integers) -> Bools:
    documents = np.unique(np.concatenate([left, right]))
    first: dict[str, int] = {}
    texts = [first.setdefault(normalize(reader.document(at).text), at) for at in documents.tolist()]
    first_with_text = np.array(texts, np.int64)
    differs: Bools = (
        first_with_text[np.searchsorted(documents, left)] != first_with_text[np.searchsorted(documents, right)]
    )
    return differs


#: The fewest labels of each class from which a model is made.
MIN_LABELS_PER_CLASS = 2
_BATCH_PAIRS = 500


class DecidedPairs(NamedTuple):
    """The pairs that a majority of labellers calls same or different."""

    pairs: list[PositionPair]  #: the positions of the documents, in the order in which the pairs were first judged
    same: Bools  #: bool[n]: whether they are near-duplicates

    @property
    def classes(self) -> tuple[int, int]:
        """The number of near-duplicates, and of the rest."""
        return int(self.same.sum()), int((~self.same).sum())


def decided_pairs(labels: LabelIndex) -> DecidedPairs:
    """Return the pairs with a majority label."""
    found = {pair: majority_label(answers) for pair, answers in labels.answers.items()}
    decided = {pair: label for pair, label in found.items() if label is not None}
    return DecidedPairs(list(decided), np.array(list(decided.values()), np.bool_))


class PairModel:
    """A linear machine on the similarity vectors of the labelled pairs, fitted again when labels change.

    Background threads compute the vectors of the pool and evaluate the machine while the labeller answers.
    """

    def __init__(
        self, pool: Pool, labels: LabelIndex, vector: Vector, statistics: Mapping[str, Statistics], *, threads: int = 1
    ) -> None:
        self._pool, self._labels, self._vector = pool, labels, vector
        self._measurer = Measurer(vector, statistics, threads=threads)
        self._extra_vectors: dict[PositionPair, Floats] = {}
        self._fitted_version = -1
        self._machine: Callable[[Floats], Floats] | None = None
        self._pool_scores: Floats | None = None
        self._lock = threading.Lock()
        self._evaluation: tuple[int, DecidedPairs | None, QuickEvaluation | None] = (-1, None, None)
        self._task: Future[None] | None = None
        self._stopped = threading.Event()
        self._executor = ThreadPoolExecutor(2, "labelling")
        documents, records = self._records(pool.left, pool.right)
        self._pool_vectors: Future[Floats] = self._executor.submit(
            self._measure, documents, records, pool.left, pool.right
        )

    def _records(self, left: Integers, right: Integers) -> tuple[Integers, Records]:
        documents = np.unique(np.concatenate([left, right]))
        return documents, self._labels.reader.records(documents, self._vector)

    def _measure(self, documents: Integers, records: Records, left: Integers, right: Integers) -> Floats:
        """Return the vectors of pairs; works in batches so that closing need not wait for all of them."""
        prepared = self._measurer.prepare(records)
        x = np.full((len(left), len(self._vector)), np.nan)
        for begin in range(0, len(left), _BATCH_PAIRS):
            if self._stopped.is_set():
                break
            part = slice(begin, begin + _BATCH_PAIRS)
            sides = np.searchsorted(documents, left[part]), np.searchsorted(documents, right[part])
            x[part] = self._measurer.measure(prepared, *sides)
        return x

    def _vectors(self, pairs: list[PositionPair]) -> Floats:
        """Return the vectors of pairs; pairs outside the pool are measured once, when first needed."""
        unmeasured = [pair for pair in pairs if pair not in self._pool.rows and pair not in self._extra_vectors]
        if unmeasured:
            left, right = np.array(unmeasured, np.int64).T
            self._extra_vectors |= zip(unmeasured, self._measure(*self._records(left, right), left, right), strict=True)
        x = self._pool_vectors.result()
        rows = [x[self._pool.rows[pair]] if pair in self._pool.rows else self._extra_vectors[pair] for pair in pairs]
        return np.array(rows, np.float64).reshape(len(pairs), len(self._vector))

    def _fit(self) -> None:
        version = self._labels.store.version
        if version == self._fitted_version:
            return
        decided = decided_pairs(self._labels)
        enough = min(decided.classes) >= MIN_LABELS_PER_CLASS
        self._machine = quick_scorer(self._vectors(decided.pairs), decided.same) if enough else None
        self._pool_scores = None if self._machine is None else self._machine(self._pool_vectors.result())
        self._fitted_version = version

    def pool_scores(self) -> Floats | None:
        """Return the scores of the pool's pairs, near-duplicates from 0 on; None while there are too few labels."""
        self._fit()
        return self._pool_scores

    def score(self, pair: PositionPair) -> float | None:
        """Return the score of one pair; None while labels are too few or vectors are still being computed."""
        if not self._pool_vectors.done():
            return None
        self._fit()
        return None if self._machine is None else float(self._machine(self._vectors([pair]))[0])

    def facts(self) -> list[Fact]:
        """Return the model's last evaluation, and start a new one in the background if labels have changed."""
        version = self._labels.store.version
        with self._lock:
            evaluated_version, decided, evaluation = self._evaluation
            if evaluated_version != version and (self._task is None or self._task.done()):
                self._task = self._executor.submit(self._evaluate, version, decided_pairs(self._labels))
        return _facts(decided, evaluation, self._vector)

    def _evaluate(self, version: int, decided: DecidedPairs) -> None:
        evaluation = None
        if min(decided.classes) >= MIN_LABELS:
            x = self._vectors(decided.pairs)
            evaluation = quick_evaluation(x, decided.same, pair_groups(*np.array(decided.pairs, np.int64).T))
        with self._lock:
            self._evaluation = version, decided, evaluation

    def close(self) -> None:
        """Stop the background threads."""
        self._stopped.set()
        self._executor.shutdown(wait=True, cancel_futures=True)


def _facts(decided: DecidedPairs | None, evaluation: QuickEvaluation | None, vector: Vector) -> list[Fact]:
    if decided is None:
        return []
    same, different = decided.classes
    if evaluation is None:
        need = f"Needs {MIN_LABELS} labels of each kind; there are {same} same and {different} different."
        return [Fact("F1", "too early to say", f"How well a model learns the labels. {need}")]
    measure = vector.names[evaluation.measure]
    bias = " Many pairs share documents, so both figures are too high." if evaluation.shares_documents else ""
    return [
        Fact(
            "model F1",
            _figure(evaluation.learned.f1),
            f"The F1 of a model trained on {same} same and {different} different pairs, on pairs left out of its "
            "training. It is 1 if no duplicate is missed and no other pair is taken for one, and 0 if no duplicate is "
            f"found; the 95% interval is in brackets.{bias}",
        ),
        Fact(
            "best threshold F1",
            _figure(evaluation.threshold.f1),
            f"The F1 of the best threshold on one measure ({measure}): the model should be better.{bias}",
        ),
    ]


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "none"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} ({figure.low:.2f}–{figure.high:.2f})"


#: The labels that are spread over similarity before the model chooses, and the fewest of each class.
SPREAD_LABELS, MIN_SPREAD_PER_CLASS = 30, 4
#: The reasons of the questions after that, in turn.
REASON_CYCLE = ("doubt", "doubt", "audit", "doubt", "doubt", "doubt", "spread", "doubt", "doubt", "audit")
#: The share of a labeller's questions that other labellers have answered too.
SHARED_SHARE = 0.25
#: One of this many most doubtful pairs is chosen, of clusters without recent questions.
_DOUBTFUL_PAIRS = 200
#: A cluster waits if one of this many last questions was about it.
_RECENT_QUESTIONS = 10
#: From this absolute score on, outside the margin, the machine is sure.
_SURE_SCORE = 1.0
#: Below this absolute score, the page says that the model cannot tell.
_UNDECIDED_SCORE = 0.1


class ActiveLearningQueue:
    """The pairs from which the model learns most.

    The choice depends on the pool, the labels and the labeller alone.

    ``shared`` is the share of each labeller's questions that other labellers have answered too, while there are such
    pairs. Raising it measures agreement more precisely, and brings fewer labels of new pairs.
    """

    def __init__(self, pool: Pool, labels: LabelIndex, model: PairModel, *, shared: float = SHARED_SHARE) -> None:
        self._pool, self._labels, self._model, self._shared = pool, labels, model, shared

    def next_pair(self, labeller: str) -> Question | None:
        """Return the next question for a labeller; None if nothing is left."""
        answers = self._labels.answers
        judged = {pair for pair, pair_answers in answers.items() if labeller in pair_answers}
        skipped = self._labels.skipped(labeller)
        shared_pairs = [
            pair for pair in answers if pair not in judged and pair in self._pool.rows and pair not in skipped
        ]
        if shared_pairs and int((len(judged) + 1) * self._shared) > int(len(judged) * self._shared):
            return self._question(min(shared_pairs, key=self._rank), "agreement")
        fresh = np.ones(len(self._pool), np.bool_)
        taken = [*answers, *skipped, *self._labels.open_pairs()]
        fresh[[self._pool.rows[pair] for pair in taken if pair in self._pool.rows]] = False
        if fresh.any():
            return self._new_question(fresh)
        if shared_pairs:
            return self._question(min(shared_pairs, key=self._rank), "agreement")
        skipped_pairs = [pair for pair in skipped if pair in self._pool.rows]
        return self._question(skipped_pairs[0], "spread") if skipped_pairs else None

    def _rank(self, pair: PositionPair) -> int:
        return int(self._pool.rank[self._pool.rows[pair]])

    def _question(self, pair: PositionPair, reason: str) -> Question:
        return Question(*pair, reason, float(self._pool.similarity[self._pool.rows[pair]]))

    def _new_question(self, fresh: Bools) -> Question:
        """Return a question that no labeller has had."""
        decided = decided_pairs(self._labels)
        turn = "spread"
        if len(decided.pairs) >= SPREAD_LABELS and min(decided.classes) >= MIN_SPREAD_PER_CLASS:
            turn = REASON_CYCLE[len(self._labels.answers) % len(REASON_CYCLE)]
        score = None if turn == "spread" else self._model.pool_scores()
        if score is None:
            at = self._spread_pair(fresh, decided)
            turn = "spread"
        elif turn == "audit":
            at = self._audit_pair(fresh, score)
        else:
            at = self._doubt_pair(fresh, score)
        return self._question((int(self._pool.left[at]), int(self._pool.right[at])), turn)

    def _spread_pair(self, fresh: Bools, decided: DecidedPairs) -> int:
        """Return a row of the stratum with the fewest labels; while one class is rare, from its end of similarity."""
        counts = np.bincount(self._pool.stratum[self._judged_rows()], minlength=STRATA)
        strata = np.unique(self._pool.stratum[fresh])
        same, different = decided.classes
        if len(decided.pairs) >= SPREAD_LABELS and len(strata) > 1:
            half = len(strata) // 2
            strata = strata[half:] if same < different else strata[:-half]
        # Of equal counts take the highest stratum: duplicates are rarer, and most are there.
        stratum = min(strata.tolist(), key=lambda at: (counts[at], -at))
        return self._least_recent(np.flatnonzero(fresh & (self._pool.stratum == stratum)), self._pool.rank)

    def _doubt_pair(self, fresh: Bools, score: Floats) -> int:
        rows = np.flatnonzero(fresh)
        doubtful = rows[np.argsort(np.abs(score[rows]), kind="stable")[:_DOUBTFUL_PAIRS]]
        return self._least_recent(doubtful, np.abs(score))

    def _audit_pair(self, fresh: Bools, score: Floats) -> int:
        """Return a row that the machine is sure of, from the side with fewer questions."""
        judged = self._judged_rows()
        sides = [fresh & (score >= _SURE_SCORE), fresh & (score <= -_SURE_SCORE)]
        counts = [int((score[judged] >= _SURE_SCORE).sum()), int((score[judged] <= -_SURE_SCORE).sum())]
        for side in sorted((0, 1), key=counts.__getitem__):
            if sides[side].any():
                return self._least_recent(np.flatnonzero(sides[side]), self._pool.rank)
        return self._doubt_pair(fresh, score)

    def _judged_rows(self) -> Integers:
        """Return the rows of the pool with labels, in the order of their first answer."""
        return np.array([self._pool.rows[pair] for pair in self._labels.answers if pair in self._pool.rows], np.int64)

    def _least_recent(self, rows: Integers, order: Floats | Integers) -> int:
        """Return the first row by ``order`` of those whose clusters had the fewest of the last questions."""
        recent_clusters = self._pool.cluster[self._judged_rows()[-_RECENT_QUESTIONS:]]
        clusters = self._pool.cluster[rows]
        weight = (clusters[:, :, np.newaxis] == recent_clusters.reshape(1, 1, -1)).sum(axis=(1, 2))
        return int(rows[np.lexsort((order[rows], weight))[0]])

    def contains(self, pair: PositionPair) -> bool:
        """Return whether the pair is in the pool."""
        return pair in self._pool.rows

    def pair_notes(self, question: Question) -> list[PairNote]:
        """Return notes with the pair's similarity and the model's opinion."""
        notes = similarity_notes(question, self._pool.measure)
        score = self._model.score((question.left, question.right))
        if score is not None:
            verdict = "the same" if score >= 0 else "different"
            if abs(score) < _UNDECIDED_SCORE:
                notes.append(PairNote("the model cannot tell"))
            else:
                certainty = "is sure" if abs(score) >= _SURE_SCORE else "would say"
                notes.append(PairNote(f"the model {certainty}: {verdict}", score >= 0))
        return notes

    def facts(self) -> list[Fact]:
        """Return the figures of the model."""
        return self._model.facts()

    def remaining(self, labeller: str) -> int | None:
        """Return None: the pool has more pairs than anybody would judge."""
        return None


#: The source of a session's questions.
LabelQueue = FixedQueue | ActiveLearningQueue
