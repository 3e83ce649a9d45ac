"""Which pairs may be asked, and which of them come next."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelling_room import PAIRS, Room
from paths import SAMPLE

from neardup.classifier.classifier import parse_candidate_rule
from neardup.classifier.vector import Vector
from neardup.documents import corpus_of
from neardup.errors import InputError, RecipeError
from neardup.labelling.index import LabelIndex
from neardup.labelling.queue import (
    REASON_CYCLE,
    SPREAD_LABELS,
    STRATA,
    ActiveLearningQueue,
    Fact,
    PairModel,
    Pool,
    Question,
    _sample_rows,
    build_pool,
    decided_pairs,
    strata_of,
)
from neardup.labels.store import Judgement, LabelStore
from neardup.text.normalize import normalize

ITEMS = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
FAMILY = {item["id"]: item["family"] for item in ITEMS}
RULE = parse_candidate_rule("jaccard(words:3) >= 0.02")


def sample() -> Any:
    return corpus_of({name: [item[name] for item in ITEMS] for name in ("id", "title", "text")})


class Asking:
    """The sample, with a chooser and labellers who know the families."""

    def __init__(self, path: Path, *, seed: int = 0, shared: float = 0.0, vector: str = "cheap") -> None:
        self.pool, material = build_pool(sample(), RULE, seed=seed)
        self.store = LabelStore(path)
        self.known = LabelIndex(self.store, material)
        self.model = PairModel(self.pool, self.known, Vector.parse(vector), {})
        self.chooser = ActiveLearningQueue(self.pool, self.known, self.model, shared=shared)

    def close(self) -> None:
        self.model.close()
        self.store.close()

    def judge(self, labeller: str = "anna", answer: str = "") -> Question:
        """Ask, and answer by the families; return what was asked."""
        asked = self.chooser.next_pair(labeller)
        assert asked is not None
        pair = self.known.id_pair_at(asked.left, asked.right)
        truth = FAMILY[pair[0]] == FAMILY[pair[1]] != ""
        given = answer or ("same" if truth else "different")
        self.store.record([Judgement(pair, labeller, given, asked.reason, asked.similarity)])
        return asked


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    with closing(Asking(tmp_path / "labels.db")) as made:
        yield made


def places(asked: list[Question]) -> list[tuple[int, int]]:
    return [(one.left, one.right) for one in asked]


def test_copies_are_not_asked(asking: Asking) -> None:
    pool, shown = asking.pool, asking.known.material.document
    assert pool.complete
    assert len(pool) <= pool.candidates
    assert (pool.left < pool.right).all()
    assert (pool.similarity >= 0.02).all()
    for left, right in zip(pool.left.tolist(), pool.right.tolist(), strict=True):
        assert normalize(shown(left).text) != normalize(shown(right).text)


def test_many_pairs_are_drawn_evenly() -> None:
    rare = np.repeat(np.arange(STRATA), [1000, 500, 3, 0, 200, 90, 7, 7, 7, 2])
    drawn = _sample_rows(rare, 400, np.random.default_rng(1))
    counts = np.bincount(rare[drawn], minlength=STRATA)
    assert counts.sum() == 400
    assert counts[[2, 3, 6, 7, 8, 9]].tolist() == [3, 0, 7, 7, 7, 2]
    assert counts[[0, 1, 4]].tolist() == [95, 95, 94]
    assert counts[5] == 90
    assert len(set(drawn.tolist())) == 400


def test_strata_are_stretches_of_equal_length() -> None:
    found = strata_of(np.array([0.1, 0.189, 0.2, 0.56, 0.99, 1.0]), 0.1)
    assert found.tolist() == [0, 0, 1, 5, 9, 9]


def test_a_candidate_rule_without_pairs_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to ask; lower"):
        build_pool(corpus_of({"id": ["a", "b"], "text": ["one two three four", "One, two: three FOUR"]}), RULE)


def test_first_come_pairs_spread_over_similarity(asking: Asking) -> None:
    asked = [asking.judge() for _ in range(SPREAD_LABELS)]
    assert {one.reason for one in asked} == {"spread"}
    strata = Counter(strata_of(np.array([one.similarity for one in asked]), 0.02).tolist())
    there = Counter(asking.pool.stratum.tolist())
    assert strata.keys() == there.keys()
    least = min(strata.values())
    assert all(count <= least + 1 or there[stratum] < least for stratum, count in strata.items())
    assert len(set(places(asked))) == SPREAD_LABELS


def test_then_come_doubts_checks_and_others_in_turn(asking: Asking) -> None:
    for _ in range(SPREAD_LABELS):
        asking.judge()
    for number in range(SPREAD_LABELS, SPREAD_LABELS + 2 * len(REASON_CYCLE)):
        g = asking.model.pool_scores()
        assert g is not None
        asked = asking.judge()
        assert asked.reason == REASON_CYCLE[number % len(REASON_CYCLE)]
        at = [(left, right) for left, right in zip(asking.pool.left, asking.pool.right, strict=True)].index(asked[:2])
        if asked.reason == "audit" and (np.abs(g) >= 1).any():
            assert abs(g[at]) >= 1
    lately = [asking.known.id_pair_at(left, right) for left, right in places([asking.judge() for _ in range(10)])]
    assert len(set(lately)) == 10


def test_doubt_is_a_small_g(asking: Asking) -> None:
    for _ in range(SPREAD_LABELS):
        asking.judge()
    g = asking.model.pool_scores()
    assert g is not None
    open_pairs = [at for at in range(len(asking.pool)) if pair_of(asking.pool, at) not in asking.known.answers]
    doubtful = sorted(open_pairs, key=lambda at: abs(g[at]))[:200]
    asked = asking.chooser.next_pair("anna")
    assert asked is not None
    assert asked.reason == "doubt"
    assert asked[:2] in {pair_of(asking.pool, at) for at in doubtful}


def pair_of(pool: Pool, at: int) -> tuple[int, int]:
    return int(pool.left[at]), int(pool.right[at])


def test_one_cluster_is_not_asked_again_and_again(asking: Asking) -> None:
    asked = [asking.judge() for _ in range(SPREAD_LABELS + 10)]
    cluster = {pair_of(asking.pool, at): set(asking.pool.cluster[at].tolist()) for at in range(len(asking.pool))}
    repeats = sum(
        bool(cluster[one.left, one.right] & cluster[other.left, other.right]) for one, other in pairwise(asked)
    )
    assert repeats <= len(asked) // 10


def test_the_same_answers_bring_the_same_questions(tmp_path: Path) -> None:
    with closing(Asking(tmp_path / "one.db")) as one, closing(Asking(tmp_path / "two.db")) as two:
        assert [one.judge() for _ in range(45)] == [two.judge() for _ in range(45)]
    with closing(Asking(tmp_path / "three.db", seed=7)) as three:
        others = [three.judge() for _ in range(10)]
    with closing(Asking(tmp_path / "four.db")) as four:
        assert places([four.judge() for _ in range(10)]) != places(others)


def test_a_class_that_is_missing_is_looked_for(asking: Asking) -> None:
    asked = [asking.judge(answer="different") for _ in range(SPREAD_LABELS + 10)]
    assert {one.reason for one in asked} == {"spread"}
    assert min(one.similarity or 0 for one in asked[SPREAD_LABELS:]) > np.median(asking.pool.similarity)
    assert asking.model.pool_scores() is None


def test_a_share_is_asked_of_everybody(tmp_path: Path) -> None:
    with closing(Asking(tmp_path / "labels.db", shared=0.25)) as asking:
        first = [asking.judge("anna") for _ in range(20)]
        second = [asking.judge("bob") for _ in range(20)]
        assert {one.reason for one in first} == {"spread"}
        assert [one.reason == "agreement" for one in second] == [at % 4 == 3 for at in range(20)]
        both = {one[:2] for one in first} & {one[:2] for one in second}
        assert both == {one[:2] for one in second if one.reason == "agreement"}
        # Then the first is asked what the second was.
        assert "agreement" in {asking.judge("anna").reason for _ in range(4)}


def test_what_others_are_asked_now_is_not_asked(asking: Asking) -> None:
    from neardup.labelling.session import Session

    session = Session(asking.known, asking.chooser)
    shown = [session.state(name)["pair"]["ids"] for name in ("anna", "bob", "eve")]
    assert len({tuple(pair) for pair in shown}) == 3
    assert session.state("anna")["pair"]["ids"] == shown[0]


def test_what_was_put_aside_is_not_asked_while_there_is_more(asking: Asking) -> None:
    asked = [asking.judge(answer="skip") for _ in range(5)]
    assert len(set(places(asked))) == 5
    assert asking.known.skipped("anna") == places(asked)


def test_labels_beyond_the_pool_teach_too(asking: Asking) -> None:
    strange = [(f"nw-{at:04}", f"nw-{at + 1:04}") for at in range(150, 160)]
    pairs = [pair for pair in strange if asking.known.position_pair(pair) not in asking.chooser._index]
    assert len(pairs) > 3
    asking.store.record([Judgement(pair, "anna", "different") for pair in pairs])
    for _ in range(12):
        asking.judge()
    lessons = decided_pairs(asking.known)
    assert len(lessons.places) >= 12
    g = asking.model.pool_scores()
    assert g is not None
    assert len(g) == len(asking.pool)


def test_what_the_labels_say_is_worked_out_beside(asking: Asking) -> None:
    assert asking.model.facts() == []
    assert facts_on(asking, 0, 0)[0][:2] == ("F1", "too early to say")
    for _ in range(45):
        asking.judge()
    told = facts_on(asking, *decided_pairs(asking.known).classes)
    assert [fact.name for fact in told] == ["model F1", "best threshold F1"]
    assert 0 < float(told[0].value[:4]) <= 1
    assert "jaccard" in told[1].meaning or "containment" in told[1].meaning


def facts_on(asking: Asking, same: int, different: int) -> list[Fact]:
    """What is said of so many labels, once that is worked out."""
    said = f"{same} same and {different} different"
    while not any(said in fact.meaning for fact in asking.model.facts()):
        time.sleep(0.02)
    return asking.model.facts()


def test_a_judged_pair_is_told_what_the_model_says(asking: Asking) -> None:
    asked = asking.chooser.next_pair("anna")
    assert asked is not None
    asking.model.pool_scores()
    assert [one.words.partition(" by ")[2] for one in asking.chooser.pair_notes(asked)] == ["jaccard(words:3)"]
    for _ in range(20):
        asking.judge()
    asking.model.pool_scores()
    said = asking.chooser.pair_notes(asked)
    assert said[1].words.startswith("the model ")
    assert said[1].same is (None if "cannot tell" in said[1].words else "same" in said[1].words)


def test_a_vector_that_needs_what_is_not_there_is_refused_at_the_beginning(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"time.column"):
        Asking(tmp_path / "labels.db", vector="jaccard(words:1), hours_apart")


def test_fixed_pairs_are_asked_in_their_order(tmp_path: Path) -> None:
    with Room(tmp_path / "labels.db") as room:
        position = room.known.material.position
        expected = [(position(one), position(other)) for one, other in PAIRS]
        for number, place in enumerate(expected):
            assert room.chooser.remaining("anna") == len(expected) - number
            asked = room.chooser.next_pair("anna")
            assert asked is not None
            assert asked[:2] == place
            assert room.chooser.contains((min(place), max(place)))
            room.store.record([Judgement(room.known.id_pair_at(*place), "anna", "same")])
        assert room.chooser.next_pair("anna") is None
        assert room.chooser.remaining("bob") == len(expected)
        assert not room.chooser.contains((0, 5))
        assert room.chooser.facts() == []
