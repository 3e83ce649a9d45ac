"""The pool of pairs, and the order in which queues ask them."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelling_room import PAIRS, Room
from paths import SAMPLE

from neardup.classifier.classifier import parse_candidate_rule
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import Vector
from neardup.documents import corpus_of
from neardup.errors import InputError, RecipeError
from neardup.labelling import queue as queue_module
from neardup.labelling.label_index import LabelIndex
from neardup.labelling.queue import (
    REASON_CYCLE,
    SPREAD_LABELS,
    STRATA,
    ActiveLearningQueue,
    Fact,
    PairModel,
    Pool,
    Question,
    build_pool,
    decided_pairs,
    strata_of,
)
from neardup.labelling.session import Session
from neardup.labels.store import Judgement, LabelStore
from neardup.pages.documents import DocumentReader
from neardup.text.normalize import normalize

ITEMS = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
FAMILY = {item["id"]: item["family"] for item in ITEMS}
RULE = parse_candidate_rule("jaccard(words:3) >= 0.02")


def sample() -> Any:
    return corpus_of({name: [item[name] for item in ITEMS] for name in ("id", "title", "text")})


@functools.cache
def pool_of(seed: int) -> tuple[Pool, DocumentReader]:
    return build_pool(sample(), RULE, seed=seed)


class Labelling:
    """The sample, with a queue and labellers who know the families."""

    def __init__(self, path: Path, *, seed: int = 0, shared: float = 0.0, vector: str = "cheap") -> None:
        self.pool, reader = pool_of(seed)
        self.store = LabelStore(path)
        self.index = LabelIndex(self.store, reader)
        self.model = PairModel(self.pool, self.index, Vector.parse(vector), {})
        self.queue = ActiveLearningQueue(self.pool, self.index, self.model, shared=shared)

    def close(self) -> None:
        self.model.close()
        self.store.close()

    def judge(self, labeller: str = "anna", answer: str = "") -> Question:
        """Answer the next question, by default by the families, and return it."""
        question = self.queue.next_pair(labeller)
        assert question is not None
        pair = self.index.id_pair_at(question.left, question.right)
        truth = "same" if FAMILY[pair[0]] == FAMILY[pair[1]] != "" else "different"
        self.store.record([Judgement(pair, labeller, answer or truth, question.reason, question.similarity)])
        return question


@pytest.fixture
def labelling(tmp_path: Path) -> Iterator[Labelling]:
    with closing(Labelling(tmp_path / "labels.db")) as made:
        yield made


def pairs_of(questions: list[Question]) -> list[tuple[int, int]]:
    return [question[:2] for question in questions]


@pytest.mark.parametrize("max_pairs", [20_000, 60])
def test_a_pool_has_all_candidates_but_copies_or_as_many_of_each_stratum(max_pairs: int) -> None:
    every = pool_of(0)[0]
    pool, reader = build_pool(sample(), RULE, max_pairs=max_pairs)
    assert pool.complete
    assert len(pool) <= min(pool.candidates, max_pairs)
    assert (pool.left < pool.right).all()
    assert (pool.similarity >= 0.02).all()
    for left, right in zip(pool.left.tolist(), pool.right.tolist(), strict=True):
        assert normalize(reader.document(left).text) != normalize(reader.document(right).text)
    counts, available = (np.bincount(of.stratum, minlength=STRATA) for of in (pool, every))
    # Copies lie in the highest stratum and leave the pool after the draw.
    cut = counts[:-1][counts[:-1] < available[:-1]]
    assert len(cut) == 0 if max_pairs > 60 else cut.max() - cut.min() <= 1
    assert max_pairs > 60 or counts[:-1].max() == cut.max()


def test_strata_have_equal_width() -> None:
    found = strata_of(np.array([0.1, 0.189, 0.2, 0.56, 0.99, 1.0]), 0.1)
    assert found.tolist() == [0, 0, 1, 5, 9, 9]


def test_a_pool_without_pairs_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to label; lower"):
        build_pool(corpus_of({"id": ["a", "b"], "text": ["one two three four", "One, two: three FOUR"]}), RULE)


def test_the_first_questions_spread_over_similarity(labelling: Labelling) -> None:
    questions = [labelling.judge() for _ in range(SPREAD_LABELS)]
    assert {question.reason for question in questions} == {"spread"}
    strata = Counter(strata_of(np.array([question.similarity for question in questions]), 0.02).tolist())
    there = Counter(labelling.pool.stratum.tolist())
    assert strata.keys() == there.keys()
    least = min(strata.values())
    assert all(count <= least + 1 or there[stratum] < least for stratum, count in strata.items())
    assert len(set(pairs_of(questions))) == SPREAD_LABELS


def test_later_reasons_follow_their_cycle(labelling: Labelling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "_DOUBTFUL_PAIRS", 15)
    for _ in range(SPREAD_LABELS):
        labelling.judge()
    for number in range(SPREAD_LABELS, SPREAD_LABELS + len(REASON_CYCLE)):
        g = labelling.model.pool_scores()
        assert g is not None
        unjudged = [row for pair, row in labelling.pool.rows.items() if pair not in labelling.index.answers]
        question = labelling.judge()
        assert question.reason == REASON_CYCLE[number % len(REASON_CYCLE)]
        row = labelling.pool.rows[question[:2]]
        sides = [[row for row in unjudged if sign * g[row] >= 1] for sign in (1, -1)]
        if question.reason == "audit" and any(sides):
            # The side with fewer questions so far, if it has a pair left.
            asked = [int((sign * np.delete(g, unjudged) >= 1).sum()) for sign in (1, -1)]
            assert row in next(sides[side] for side in sorted((0, 1), key=asked.__getitem__) if sides[side])
        if question.reason == "doubt":
            assert row in sorted(unjudged, key=lambda row: abs(g[row]))[:15]
    assert len(set(pairs_of([labelling.judge() for _ in range(10)]))) == 10


def test_successive_questions_come_from_different_clusters(labelling: Labelling) -> None:
    questions, pool = [labelling.judge() for _ in range(SPREAD_LABELS + 10)], labelling.pool
    clusters = [set(pool.cluster[pool.rows[question[:2]]].tolist()) for question in questions]
    assert sum(bool(one & other) for one, other in pairwise(clusters)) <= len(questions) // 10


def test_the_same_answers_and_seed_give_the_same_questions(tmp_path: Path) -> None:
    asked = []
    for name, seed in (("one", 0), ("two", 0), ("three", 7)):
        with closing(Labelling(tmp_path / f"{name}.db", seed=seed)) as labelling:
            asked.append([labelling.judge() for _ in range(35 if seed == 0 else 10)])
    assert asked[0] == asked[1]
    assert pairs_of(asked[0][:10]) != pairs_of(asked[2])


def test_a_missing_class_is_searched_at_its_end_of_similarity(labelling: Labelling) -> None:
    questions = [labelling.judge(answer="different") for _ in range(SPREAD_LABELS + 10)]
    assert {question.reason for question in questions} == {"spread"}
    assert min(question.similarity or 0 for question in questions[SPREAD_LABELS:]) > np.median(
        labelling.pool.similarity
    )
    assert labelling.model.pool_scores() is None
    # Two of a class are enough for a model, but not for its questions.
    assert [labelling.judge(answer="same").reason for _ in range(3)] == ["spread"] * 3
    assert labelling.model.pool_scores() is not None


def test_a_share_of_the_questions_is_common_to_all_labellers(tmp_path: Path) -> None:
    with closing(Labelling(tmp_path / "labels.db", shared=0.25)) as labelling:
        first = [labelling.judge("anna") for _ in range(20)]
        second = [labelling.judge("bob") for _ in range(20)]
        assert {question.reason for question in first} == {"spread"}
        assert [question.reason == "agreement" for question in second] == [at % 4 == 3 for at in range(20)]
        common = set(pairs_of(first)) & set(pairs_of(second))
        assert common == {question[:2] for question in second if question.reason == "agreement"}
        # Then the first labeller gets pairs of the second.
        assert "agreement" in {labelling.judge("anna").reason for _ in range(4)}


def test_open_pairs_of_others_are_not_asked(labelling: Labelling) -> None:
    session = Session(labelling.index, labelling.queue)
    shown = [session.state(name)["pair"]["ids"] for name in ("anna", "bob", "eve")]
    assert len({tuple(pair) for pair in shown}) == 3
    assert session.state("anna")["pair"]["ids"] == shown[0]


def test_skipped_pairs_are_not_asked_while_others_are_left(labelling: Labelling) -> None:
    questions = [labelling.judge(answer="skip") for _ in range(5)]
    assert len(set(pairs_of(questions))) == 5
    assert labelling.index.skipped("anna") == pairs_of(questions)


def test_labels_outside_the_pool_train_the_model_too(labelling: Labelling) -> None:
    neighbours = [(f"nw-{at:04}", f"nw-{at + 1:04}") for at in range(150, 160)]
    pairs = [pair for pair in neighbours if labelling.index.position_pair(pair) not in labelling.pool.rows]
    assert len(pairs) > 3
    labelling.store.record([Judgement(pair, "anna", "different") for pair in pairs])
    for _ in range(12):
        labelling.judge()
    g = labelling.model.pool_scores()
    assert g is not None
    assert len(g) == len(labelling.pool)


def test_figures_are_evaluated_in_the_background(labelling: Labelling) -> None:
    assert labelling.model.facts() == []
    assert facts_on(labelling, 0, 0)[0][:2] == ("F1", "too early to say")
    for _ in range(45):
        labelling.judge()
    facts = facts_on(labelling, *decided_pairs(labelling.index).classes)
    assert [fact.name for fact in facts] == ["model F1", "best threshold F1"]
    assert 0 < float(facts[0].value[:4]) <= 1
    assert "jaccard" in facts[1].meaning or "containment" in facts[1].meaning


def test_closing_does_not_wait_for_the_vectors_of_all_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closing_began, measured = threading.Event(), []

    class Executor(ThreadPoolExecutor):
        def shutdown(self, *args: Any, **options: Any) -> None:
            closing_began.set()
            super().shutdown(*args, **options)

    def measure(self: Measurer, prepared: Any, left: Any, right: Any) -> Any:
        measured.append(len(left))
        closing_began.wait()
        return np.zeros((len(left), 1))

    monkeypatch.setattr(queue_module, "ThreadPoolExecutor", Executor)
    monkeypatch.setattr(queue_module, "_BATCH_PAIRS", 5)
    monkeypatch.setattr(Measurer, "measure", measure)
    Labelling(tmp_path / "labels.db", vector="jaccard(words:1)").close()
    assert measured in ([], [5])


def facts_on(labelling: Labelling, same: int, different: int) -> list[Fact]:
    """The figures of so many labels, once they are evaluated."""
    counts = f"{same} same and {different} different"
    while not any(counts in fact.meaning for fact in labelling.model.facts()):
        wait([task for task in [labelling.model._task] if task])
    return labelling.model.facts()


def test_notes_on_a_judged_pair_state_the_models_opinion(labelling: Labelling) -> None:
    question = labelling.queue.next_pair("anna")
    assert question is not None
    labelling.model.pool_scores()
    assert [one.words.partition(" by ")[2] for one in labelling.queue.pair_notes(question)] == ["jaccard(words:3)"]
    for _ in range(20):
        labelling.judge()
    labelling.model.pool_scores()
    note = labelling.queue.pair_notes(question)[1]
    assert note.words.startswith("the model ")
    assert note.same is (None if "cannot tell" in note.words else "same" in note.words)


def test_a_vector_without_its_column_is_refused_at_the_start(tmp_path: Path) -> None:
    pool, reader = pool_of(0)
    with LabelStore(tmp_path / "labels.db") as store, pytest.raises(RecipeError, match=r"time.column"):
        PairModel(pool, LabelIndex(store, reader), Vector.parse("jaccard(words:1), hours_apart"), {})


def test_a_fixed_queue_asks_its_pairs_in_order(tmp_path: Path) -> None:
    with Room(tmp_path / "labels.db") as room:
        position = room.index.reader.position
        expected = [(position(one), position(other)) for one, other in PAIRS]
        for number, pair in enumerate(expected):
            assert room.queue.remaining("anna") == len(expected) - number
            question = room.queue.next_pair("anna")
            assert question is not None
            assert question[:2] == pair
            assert room.queue.contains((min(pair), max(pair)))
            room.store.record([Judgement(room.index.id_pair_at(*pair), "anna", "same")])
        assert room.queue.next_pair("anna") is None
        assert room.queue.remaining("bob") == len(expected)
        assert not room.queue.contains((0, 5))
        assert room.queue.facts() == []
