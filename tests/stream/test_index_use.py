"""The index in use: queries, removal, what it refuses, scripts, threads, and what it remembers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flow_classifiers import make_classifier
from naive_window import NaiveIndex
from streaming import NOON, asked, documents, said

import neardup as nd
from neardup.classifier.measurer import Measurer
from neardup.classifier.records import Records
from neardup.errors import InputError, UnknownDocument
from neardup.recipe import Recipe

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
ROSE = "A rose by any other name would smell as sweet, said the poet to his friend in the garden at dawn"
WORDS: dict[str, Any] = {"features": "words:1", "threshold": 0.5, "window": None}


def test_a_query_enters_nothing() -> None:
    index = nd.Index(**WORDS, against="everything")
    index.add_many(documents(["a b c d", "a b c", "x y z", "a b", "b a c d"]))
    before = index.statistics
    assert asked(index.query("a b c d")) == [("d0", 1.0), ("d4", 1.0), ("d1", 0.75), ("d3", 0.5)]
    assert asked(index.query(nd.Document("d0", "a b c d"))) == asked(index.query("a b c d"))
    assert asked(index.query("q")) == []
    assert asked(index.query("a b c d", k=1)) == [("d0", 1.0)]
    assert asked(index.query("z a", k=9)) == [("d3", 1 / 3), ("d1", 0.25), ("d2", 0.25), ("d0", 0.2), ("d4", 0.2)]
    assert index.statistics == before
    assert index.verdict_of("nobody") is None


def test_what_is_removed_is_no_partner() -> None:
    index = nd.Index()
    index.add_many(documents([FOX, ROSE, FOX]))
    index.remove("d0")
    assert (list(index), "d0" in index, len(index)) == (["d1"], False, 1)
    assert asked(index.query(FOX)) == []
    assert index.add(nd.Document("x", FOX)).kind == "original"
    assert index.add(nd.Document("y", FOX)).of == "x"
    # The verdict stays, and so does the name.
    assert index.verdict_of("d0") is not None
    with pytest.raises(InputError, match="id 'd0' already has a verdict"):
        index.add(nd.Document("d0", "something else"))

    for name in ("d0", "d2", "nobody", ""):
        with pytest.raises(UnknownDocument, match=f"'{name}'"):
            index.remove(name)


def test_an_id_has_one_verdict() -> None:
    index = nd.Index()
    index.add(nd.Document("a", FOX))
    for text in (FOX, ROSE, ""):
        with pytest.raises(InputError, match="id 'a' already has a verdict; "):
            index.add(nd.Document("a", text))
    assert index.statistics.documents == 1
    # In a batch as well, and nothing of the batch is there.
    for batch in (["b", "c", "b"], ["b", "a"]):
        with pytest.raises(InputError, match=f"id '{batch[-1]}' "):
            index.add_many(nd.Document(id, f"{ROSE} {i}") for i, id in enumerate(batch))
        assert (index.statistics.documents, list(index)) == (1, ["a"])
    assert index.add(nd.Document("b", ROSE)).kind == "original"


def test_what_left_the_window_is_forgotten() -> None:
    index = nd.Index(window="1h", now=lambda: NOON + 9e6)
    for i in range(60):
        index.add(nd.Document(f"d{i}", f"{FOX} {i} {i}", NOON + 600 * i))
    assert index.verdict_of("d59") is not None
    assert [index.verdict_of(f"d{i}") for i in range(40)] == [None] * 40
    assert index.add(nd.Document("d0", ROSE, NOON + 36000)).kind == "original"


def test_a_store_forgets_no_verdict(tmp_path: Path) -> None:
    choices: dict[str, Any] = {"window": "1h", "path": tmp_path / "news.db", "now": lambda: NOON + 9e6}
    with nd.Index(**choices) as index:
        first = index.add_many(nd.Document(f"d{i}", f"{FOX} {i} {i}", NOON + 600 * i) for i in range(60))
    with nd.Index(**choices) as index:
        assert [index.verdict_of(v.id) for v in first] == first
        assert [index.text_of("d0"), index.text_of("d59")] == [None, f"{FOX} 59 59"]
        with pytest.raises(InputError, match="id 'd0' already has a verdict"):
            index.add(nd.Document("d0", ROSE, NOON + 36000))


@pytest.mark.parametrize(
    ("batches", "flags"),
    [
        ([[(FOX, 0)], [(ROSE, 1000)], [("x", 1001)], [(ROSE, 1002)]], ["", "ahead", "", ""]),
        # The one that confirms is not held itself, and the next one neither.
        ([[(FOX, 0)], [(ROSE, 1090), (ROSE, 1000)], [("x", 150)], [(ROSE, 1091)]], ["", "ahead", "", "late", ""]),
    ],
)
def test_a_gap_that_was_confirmed_stays_so(tmp_path: Path, batches: list[Any], flags: list[str]) -> None:
    found: list[nd.Verdict] = []
    for batch in batches:
        with nd.Index(window="100s", path=tmp_path / "news.db", now=lambda: 9e9) as index:
            found += index.add_many(nd.Document(f"{text[0]}{time}", text, NOON + time) for text, time in batch)
    assert [v.flag for v in found] == flags
    assert (found[-1].of, found[1].of) == (found[1].id, None)


SAMPLE = ["the fox ran home", "the dog ran off", "the owl sat still", "a rose is a rose", "the ship met the storm"] * 2


@pytest.mark.parametrize(
    "choices",
    [
        {"features": "words:1", "clip": "df:1:0.5", "threshold": 0.5},
        {"features": "words:1", "clip": "idf:0.2:0.8", "signature": "imatch:2", "threshold": 1.0},
        {"features": "words:1", "signature": "sketch:9", "measure": "overlap", "threshold": 0.5},
    ],
)
def test_frequencies_come_from_a_sample(choices: dict[str, Any]) -> None:
    texts = ["the fox ran", "fox ran the", "the", "an owl sat still", "the owl sat still", "the owl sat", "new words"]
    index = nd.Index(sample=SAMPLE, window=None, **choices)
    twin = NaiveIndex(Recipe(**choices), sample=SAMPLE, window=None)
    found = [said(v) for v in index.add_many(documents(texts))]
    assert found == twin.add_many(documents(texts))
    assert {v.kind for v in found} == {"original", "near"}


def test_threads_get_what_some_order_gives() -> None:
    texts = [" ".join(f"w{(x * x + i) % 17}" for x in range(4 + i % 5)) for i in range(320)]
    items = documents(texts, [NOON + i for i in range(320)])
    index, start = nd.Index(**WORDS, against="everything"), threading.Barrier(8)
    found: list[list[nd.Verdict]] = [[] for _ in range(8)]
    failed: list[BaseException] = []

    def work(own: int) -> None:
        try:
            start.wait()
            mine = items[own::8]
            for i in range(0, len(mine), 4):
                found[own] += [index.add(mine[i]), *index.add_many(mine[i + 1 : i + 4])]
                index.query(mine[i].text, k=2)
                assert len(index) > 0
        except BaseException as error:  # the test's own thread raises it
            failed.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    verdicts = {v.id: v for part in found for v in part}
    assert sorted(verdicts) == sorted(item.id for item in items)
    # All are held, in the order in which they were judged: the twin sees them in that order.
    by_id = {item.id: item for item in items}
    twin = NaiveIndex(Recipe(features="words:1", threshold=0.5), window=None, against="everything")
    order = list(index)
    assert len(order) == 320
    assert [said(verdicts[id]) for id in order] == twin.add_many(by_id[id] for id in order)


def test_a_verdict_carries_what_it_went_by() -> None:
    classifier = make_classifier("facts", bias=0.5)
    texts = ["Acme paid 5 crowns to Borealis today", "Acme paid 6 crowns to Borealis today"]
    _, near, exact, last = nd.Index(classifier=classifier, window=None).add_many(
        documents([*texts, texts[0], "nothing"])
    )
    measurer = Measurer(classifier.vector, classifier.statistics)
    x = measurer.measure(measurer.prepare(Records(texts)), np.array([0]), np.array([1]))
    (g,) = classifier.score(x).tolist()
    assert (near.kind, near.score) == ("near", g)
    assert near.similarity == pytest.approx(float(classifier.probability(np.array([g]))[0]), abs=1e-9)
    assert near.counts == (round((near.similarity or 0) * 10**9), 10**9, 10**9)
    contributions = dict(zip(classifier.vector.names, classifier.contributions(x)[0].tolist(), strict=True))
    assert {push.measure: push.amount for push in near.measures} == contributions
    assert {push.measure: push.value for push in near.measures} == dict(zip(classifier.vector.names, x[0], strict=True))
    assert sorted(near.measures, key=lambda push: -abs(push.amount)) == list(near.measures)
    assert near.evidence.startswith(f"{near.measures[0].measure} {near.measures[0].amount:+.2f}, ")
    assert (exact.kind, exact.similarity, exact.score, exact.measures, exact.evidence) == ("exact", 1.0, None, (), "")
    assert (last.kind, last.score, last.measures) == ("original", None, ())
