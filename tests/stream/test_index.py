"""The index by examples: refused documents, verdicts, the rules of time, queries, removal, threads."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classifiers import FACTS, make_classifier
from naive_window import NaiveIndex
from sentences import says
from streaming import DAY, FOX, HOUR, NOON, ROSE, SetClock, documents, id_similarities, plain_verdict, small_epochs
from two_sides import SIDES, WAYS

import neardup as nd
from neardup.classifier.evidence import Contribution, EvidenceTable
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import Records
from neardup.errors import InputError, UnknownDocument
from neardup.recipe import Recipe

SHIP = "Two ships met in the strait at night and neither of their masters knew which of them was to give way"


def flow(index: nd.Index, *items: tuple[str, Any]) -> list[nd.Verdict]:
    """Add texts with their times in seconds after noon, named by their numbers."""
    first = index.statistics.documents
    return [
        index.add(nd.Document(f"d{i}", text, None if after is None else NOON + after))
        for i, (text, after) in enumerate(items, first)
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((1, "text"), ("id 1", "type int", "id is a str")),
        (("a", None), ("text None", "type NoneType", "text is a str")),
        (("a", "text", None, 3), ("origin 3", "type int")),
        (("a", "text", None, "", None), ("title None", "type NoneType")),
        (("a", "b" * 1000 + "\udc80"), (f"text '{'b' * 60}'", r"lone surrogate '\udc80'", "character 1000", "UTF-8")),
        (("a", "text", None, "\udfff"), ("origin", "lone surrogate")),
        (("a", "text", True), ("timestamp True", "datetime", "Unix", "ISO 8601", "None")),
        (("a", "text", "9" * 5000), ("timestamp '99999",)),
        (("a", "text", "\ud800"), (r"timestamp '\ud800'",)),
        pytest.param(("a", "text", 10**5000), ("timestamp of int",), id="too long to write"),
    ],
)
def test_an_invalid_document_is_refused_in_one_sentence(fields: tuple[Any, ...], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        nd.Document(*fields)
    assert says(caught.value, *words)
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 320


@pytest.mark.parametrize(
    ("verdict", "evidence"),
    [
        (nd.Verdict("a", "original", None, None, 0.0, "late", None), ""),
        (nd.Verdict("b", "near", "a", 0.75, 1.5, "", (3, 4, 3)), ""),
        (
            nd.Verdict("b", "near", "a", 0.9, 1.5, "", (9, 10, 10), 0.75, (Contribution("title", None, -0.25),)),
            "title -0.25",
        ),
    ],
)
def test_verdicts_convert_to_json(verdict: nd.Verdict, evidence: str) -> None:
    fields = json.loads(json.dumps(verdict.as_dict()))
    assert (fields.pop("evidence"), verdict.evidence) == (evidence, evidence)
    assert fields.pop("measures") == [
        {"measure": one.measure, "value": one.value, "contribution": one.amount} for one in verdict.measures
    ]
    assert fields.pop("counts") == (verdict.counts and list(verdict.counts))
    assert fields == {name: getattr(verdict, name) for name in fields}
    assert len(fields) == len(verdict) - 2


def test_the_arrival_time_never_decreases() -> None:
    clock = SetClock()
    index, times = nd.Index(now=clock), []
    for now in (NOON, NOON + 60, NOON - DAY, NOON + 59, NOON + 61):
        clock.time = now
        times.append(index.add(nd.Document(str(now), f"{ROSE} {now}")).time)
    assert times == [NOON, NOON + 60, NOON + 60, NOON + 60, NOON + 61]


def test_a_future_time_is_flagged_and_replaced_by_the_clock() -> None:
    clock = SetClock()
    index = nd.Index(now=clock)
    (first,) = flow(index, (FOX, HOUR + 1))
    assert (first.flag, first.time) == ("future", NOON)
    clock.time = NOON + DAY
    verdicts = flow(index, (ROSE, HOUR), (SHIP, DAY + HOUR), (FOX, DAY + HOUR + 0.000001), (ROSE, 10 * DAY))
    assert [v.flag for v in verdicts] == ["", "", "future", "future"]
    assert [v.time for v in verdicts] == [NOON + HOUR, *[NOON + DAY + HOUR] * 3]
    # They are judged at that time: the fox of yesterday noon has expired, the rose is exactly a day old.
    assert [v.of for v in verdicts[2:]] == [None, "d1"]


#: The year 2099, in seconds after that noon.
FAR = 3_500_000_000
#: Items with their times, the expected flags and originals, and the expected clock and window.
CASES: dict[str, tuple[list[tuple[str, float]], list[str], list[str | None], float, list[str]]] = {
    "2099 where the clock on the wall is wrong as well": (
        [(FOX, 0), (SHIP, FAR), (FOX, 60), (ROSE, 120), (SHIP, 180), (FOX, 240)],
        ["", "ahead", "", "", "", ""],
        [None, None, "d0", None, None, "d0"],
        240,
        ["d0", "d1", "d3", "d4"],
    ),
    "late items are judged and not held": (
        [(FOX, 0), (ROSE, 10 * HOUR), (SHIP, 30 * HOUR), *[(t, 5 * HOUR) for t in (ROSE, FOX, FOX)], (FOX, 6 * HOUR)],
        ["", "", "", "late", "late", "late", ""],
        [None, None, None, "d1", None, "d4", None],
        30 * HOUR,
        ["d1", "d2", "d6"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rules_of_time(name: str) -> None:
    items, flags, of, clock, window = CASES[name]
    index = nd.Index(now=SetClock(NOON + 2 * FAR))
    verdicts = flow(index, *items)
    assert ([v.flag for v in verdicts], [v.of for v in verdicts]) == (flags, of)
    assert [v.time for v in verdicts] == [NOON + after for _, after in items]
    assert (index.statistics.clock, list(index)) == (NOON + clock, window)


def test_a_length_of_time_is_written_in_several_ways() -> None:
    lengths = {nd.Index("default", window=window).length for window in ("120m", "7200s", "2h", timedelta(hours=2))}
    assert len(lengths) == 1
    assert lengths != {nd.Index("default", window="2h", window_by="hour").length}


WORDS: dict[str, Any] = {"features": "words:1", "threshold": 0.5, "window": None}


def test_a_removed_document_matches_nothing_and_keeps_its_verdict() -> None:
    index = nd.Index(versions="refuse")
    index.add_many(documents([FOX, ROSE, FOX]))
    index.remove("d0")
    assert (list(index), "d0" in index, "d1" in index, len(index)) == (["d1"], False, True, 1)
    assert index.add(nd.Document("x", FOX)).kind == "original"
    assert id_similarities(index.query(nd.Document("x", FOX))) == id_similarities(index.query(FOX)) == [("x", 1.0)]
    for name in ("d0", "d2", "nobody", ""):
        with pytest.raises(UnknownDocument, match=f"'{name}'"):
            index.remove(name)
    # Nothing of a batch is entered if an id in it belongs to another text, and that is refused.
    for batch in (["d0"], ["d2"], ["b", "c", "b"], ["b", "d1"]):
        with pytest.raises(InputError, match=f"id '{batch[-1]}' already has a verdict on another text; "):
            index.add_many(nd.Document(id, f"{SHIP} {i}") for i, id in enumerate(batch))
        assert (index.statistics.documents, list(index)) == (4, ["d1", "x"])


def test_verdicts_without_a_store_expire_with_the_window() -> None:
    index = nd.Index("default", window="1h", now=lambda: NOON + 9e6)
    for i in range(60):
        index.add(nd.Document(f"d{i}", f"{FOX} {i} {i}", NOON + 600 * i))
    assert index.verdict_of("d59") is not None
    assert [index.verdict_of(f"d{i}") for i in range(40)] == [None] * 40
    assert index.add(nd.Document("d0", ROSE, NOON + 36000)).kind == "original"
    # The second verdict of an id outlives the time of a first one that was forgotten.
    index.forget("d0")
    again = index.add(nd.Document("d0", f"{FOX} 59 59", NOON + 38000))
    index.add(nd.Document("last", "", NOON + 40000))
    assert (index.verdict_of("d0"), again.of) == (again, "d59")


@pytest.mark.parametrize(
    ("batches", "flags"),
    [
        ([[(FOX, 0)], [(ROSE, 1000)], [("x", 1001)], [(ROSE, 1002)]], ["", "ahead", "", ""]),
        # Neither the confirming document nor the next one is in the window.
        ([[(FOX, 0)], [(ROSE, 1090), (ROSE, 1000)], [("x", 150)], [(ROSE, 1091)]], ["", "ahead", "", "late", ""]),
    ],
)
def test_a_confirmed_gap_stays_confirmed_after_a_restart(tmp_path: Path, batches: list[Any], flags: list[str]) -> None:
    found: list[nd.Verdict] = []
    for batch in batches:
        with nd.Index("default", window="100s", path=tmp_path / "news.db", now=lambda: 9e9) as index:
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
def test_document_frequencies_come_from_a_sample(choices: dict[str, Any]) -> None:
    texts = ["the fox ran", "fox ran the", "the", "an owl sat still", "the owl sat still", "the owl sat", "new words"]
    index = nd.Index(sample=SAMPLE, window=None, **choices)
    twin = NaiveIndex(Recipe(**choices), sample=SAMPLE, window=None)
    found = [plain_verdict(v) for v in index.add_many(documents(texts))]
    assert found == twin.add_many(documents(texts))
    assert {v.kind for v in found} == {"original", "near"}


def test_verdicts_of_threads_equal_those_of_one_order() -> None:
    texts = [" ".join(f"w{(x * x + i) % 17}" for x in range(4 + i % 5)) for i in range(320)]
    items = documents(texts, [NOON + i for i in range(320)])
    index, start = nd.Index(**WORDS, against="everything"), threading.Barrier(8)

    def work(worker: int) -> list[nd.Verdict]:
        start.wait()
        own, found = items[worker::8], list[nd.Verdict]()
        for i in range(0, len(own), 4):
            found += [index.add(own[i]), *index.add_many(own[i + 1 : i + 4])]
            index.query(own[i].text, k=2)
            assert len(index) > 0
        return found

    with ThreadPoolExecutor(8) as threads:
        verdicts = {verdict.id: verdict for found in threads.map(work, range(8)) for verdict in found}
    assert sorted(verdicts) == sorted(item.id for item in items)
    # All are in the window in the order of judgement, in which the twin gets them.
    by_id = {item.id: item for item in items}
    twin = NaiveIndex(Recipe(features="words:1", threshold=0.5), window=None, against="everything")
    order = list(index)
    assert len(order) == 320
    assert [plain_verdict(verdicts[id]) for id in order] == twin.add_many(by_id[id] for id in order)


def test_a_verdict_contains_the_evidence_of_the_classifier() -> None:
    classifier = make_classifier(FACTS, bias=0.5)
    texts = ["Acme paid 5 crowns to Borealis today", "Acme paid 6 crowns to Borealis today"]
    _, near, exact, last = nd.Index(classifier=classifier, window=None).add_many(
        documents([*texts, texts[0], "nothing"])
    )
    measurer = Measurer(classifier.vector, classifier.statistics)
    x = measurer.measure(measurer.prepare(Records(texts)), np.array([0]), np.array([1]))
    expected = EvidenceTable(classifier, x, np.array([0])).evidence(0)
    assert (near.kind, near.score, near.measures, near.evidence) == (
        "near",
        expected.score,
        expected.contributions,
        str(expected),
    )
    assert near.similarity == pytest.approx(expected.probability, abs=1e-9)
    assert near.counts == (round((near.similarity or 0) * 10**9), 10**9, 10**9)
    assert (exact.kind, exact.similarity, exact.score, exact.measures, exact.evidence) == ("exact", 1.0, None, (), "")
    assert (last.kind, last.score, last.measures) == ("original", None, ())


@pytest.mark.parametrize("least", [0, 1, 6])
@pytest.mark.parametrize("window", [None, "350 documents", "100 documents"])
@pytest.mark.parametrize("engine", ["memory", "lsh", "hamming", "second step"])
def test_a_window_lists_a_document_once(engine: str, window: str | None, least: int) -> None:
    way = WAYS[engine]
    rows = [*SIDES.old, *SIDES.new]
    size = len(rows) if window is None else int(window.split()[0])
    features = [way.features(text) for text in rows]
    with pytest.MonkeyPatch.context() as patch:
        small_epochs(patch, least)
        with nd.Index(window=window, against="everything", **way.options) as index:
            index.add_many(nd.Document(str(number), text) for number, text in enumerate(rows))
            for number in range(len(rows) - 20, len(rows)):
                found = [similar.id for similar in index.query(rows[number])]
                inside = [
                    at for at in range(len(rows) - size, len(rows)) if way.matches(features[number], features[at])
                ]
                assert sorted(found) == sorted(map(str, inside))
