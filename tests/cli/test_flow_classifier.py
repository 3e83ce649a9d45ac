"""``neardup watch`` and ``neardup replay`` with ``--classifier``: what they write, and what they refuse."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import FOX, ROSE, neardup, read_lines, refused, write_lines
from flow_classifiers import make_classifier
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Classifier, parse_candidate_rule
from neardup.classifier.domain import Domain
from neardup.stream.store import Store, StoreIdentity

ROWS: list[dict[str, Any]] = [
    {"id": "fox", "time": "2024-01-01T09:00Z", "headline": "Fox", "text": FOX},
    {"id": "rose", "time": "2024-01-01T10:00Z", "headline": None, "text": ROSE},
    {"id": "fox-copy", "time": "2024-01-01T11:00Z", "headline": "Fox again", "text": FOX},
    {"id": "fox-edited", "time": "2024-01-01T12:00Z", "headline": "Fox edited", "text": FOX + " today"},
    {"id": "rose-edited", "time": "2024-01-01T08:00Z", "headline": "Rose", "text": ROSE + " once"},
    {"id": "fox-later", "time": "2024-01-03T12:00Z", "headline": "", "text": FOX + " later"},
]


@pytest.fixture
def classifier() -> Classifier:
    return make_classifier("jaccard(words:1), length_ratio, title, hours_apart")


@pytest.fixture
def file(classifier: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A classifier on disk, and a corpus, in the current folder."""
    monkeypatch.chdir(tmp_path)
    classifier.save("classifier.neardup")
    write_lines(tmp_path / "news.jsonl", ROWS)
    return "classifier.neardup"


def test_a_replay_away_from_home_stops_before_anything_is_written(file: str, classifier: Classifier) -> None:
    vector = len(classifier.vector)
    home = Domain.of(np.ones((2, vector)), [FOX * 9, FOX * 9], np.ones(2), np.array([True, False]))
    away = replace(classifier, domain=home)
    away.save("away.neardup")
    rows = [{"id": i, "time": f"2024-01-01T09:{i:02d}Z", "headline": None, "text": f"{FOX} {i}"} for i in range(30)]
    write_lines(Path("many.jsonl"), rows)
    command = ("replay", "many.jsonl", "--classifier", "away.neardup", "-o", "verdicts.csv", "--report", "page.html")
    assert says(neardup(*command, code=2).stderr.splitlines()[-1], away.fingerprint, "does not fit", "--force-domain")
    assert not Path("verdicts.csv").exists()
    assert not Path("page.html").exists()
    done = neardup(*command, "--force-domain", "--json")
    totals = json.loads(done.stdout.splitlines()[-1])["totals"]
    asked = totals["classifier"]
    assert asked["outside"] == asked["candidates"] >= 20
    said = f"{asked['passed']} of {asked['candidates']} candidates passed, 100% lie outside"
    assert said in done.stderr
    assert said in Path("page.html").read_text("utf-8")


def test_a_forced_run_away_from_home_says_so_again(file: str, classifier: Classifier) -> None:
    home = Domain.of(np.ones((2, len(classifier.vector))), [FOX * 9, FOX * 9], np.ones(2), np.array([True, False]))
    replace(classifier, domain=home).save("away.neardup")
    rows = [{"id": i, "time": f"2024-01-01T09:{i:02d}Z", "headline": None, "text": f"{FOX} {i}"} for i in range(30)]
    write_lines(Path("many.jsonl"), rows)
    for command in (("dedup", "many.jsonl", "--dry-run"), ("pairs", "many.jsonl", "--print")):
        assert says(refused(*command, "--classifier", "away.neardup"), "at most 25% may", "--force-domain")
        forced = neardup(*command, "--classifier", "away.neardup", "--force-domain").stderr.splitlines()[-1]
        assert says(forced, "does not fit", "100% of ", "at most 25% may", "do not hold here")
    assert "does not fit" not in neardup("dedup", "many.jsonl", "--dry-run", "--classifier", file).stderr


def judged(classifier: Classifier) -> list[nd.Verdict]:
    """What the index says of the rows."""
    rows = sorted(ROWS, key=lambda row: str(row["time"]))
    index = nd.Index(classifier=classifier, window="24h")
    return index.add_many(nd.Document(r["id"], r["text"], r["time"], title=r["headline"] or "") for r in rows)


def test_a_replay_says_what_the_index_says(file: str, classifier: Classifier) -> None:
    result = neardup("replay", "news.jsonl", "--classifier", file, "-o", "verdicts.csv", "--originals", "kept.jsonl")
    assert "6 items: 3 originals, 3 duplicates (50.0%)" in result.stderr
    with open("verdicts.csv", newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert list(rows[0]) == ["id", "kind", "of", "similarity", "time", "flag", "score", "evidence"]
    expected = judged(classifier)
    assert [(r["id"], r["kind"], r["of"] or None, r["evidence"]) for r in rows] == [
        (v.id, v.kind, v.of, "equal texts" if v.kind == "exact" else v.evidence) for v in expected
    ]
    assert [float(r["score"]) for r in rows if r["score"]] == [v.score for v in expected if v.score is not None]
    assert [row["id"] for row in read_lines(Path("kept.jsonl"))] == [
        row["id"] for row in ROWS if row["id"] in {v.id for v in expected if not v.is_duplicate}
    ]
    titles = {v.id: {push.measure: push.value for push in v.measures}.get("title") for v in expected if v.measures}
    assert titles == {"rose": None, "fox-edited": pytest.approx(2 / 3)}


def test_a_replay_keeps_a_store_that_the_index_opens(file: str, classifier: Classifier) -> None:
    neardup("replay", "news.jsonl", "--classifier", file, "--store", "news.db", "-o", "verdicts.parquet")
    expected = {verdict.id: verdict for verdict in judged(classifier)}
    table = pq.read_table("verdicts.parquet").to_pylist()
    assert [(row["id"], row["score"]) for row in table] == [(name, expected[name].score) for name in expected]
    with nd.Index(classifier=file, path="news.db", window="24h") as index:
        assert {name: index.verdict_of(name) for name in expected} == expected


def test_the_working_point_goes_by_precision(file: str, classifier: Classifier) -> None:
    point = replace(classifier, scores=np.array([-3.0, -2.0, 40.0]), labels=np.array([False, False, True]))
    point.save("point.neardup")
    counts = {}
    for precision in ("0.5", "1"):
        message = neardup(
            "replay", "news.jsonl", "--classifier", "point.neardup", "--precision", precision, "--json"
        ).stdout
        counts[precision] = json.loads(message.splitlines()[-1])["totals"]["near"]
    assert counts == {"0.5": 2, "1": 0}
    message = refused("replay", "news.jsonl", "--classifier", file, "--precision", "2")
    assert says(message, "precision", "2.0", "(0, 1]", "0.99")


@pytest.fixture
def inbox(file: str) -> str:
    Path("in").mkdir()
    for name, text in {"a.txt": FOX, "b.txt": f"{FOX} today", "c.txt": ROSE}.items():
        Path("in", name).write_text(text)
    return file


WATCH = ("watch", "in", "--store", "news.db", "--originals", "out", "--settle", "0", "--patience", "0", "--once")


def test_a_folder_is_watched_with_a_classifier(inbox: str, classifier: Classifier) -> None:
    said = [json.loads(line) for line in neardup(*WATCH, "--classifier", inbox).stderr.splitlines()]
    said = [line for line in said if line["event"] != "compiling"]
    assert [line["event"] for line in said] == ["started", "duplicate", "stopped"]
    assert (said[0]["recipe"], said[0]["fingerprint"]) == ("learned", classifier.recipe.fingerprint)
    assert said[0]["matches"].endswith(f"then learned({classifier.fingerprint})")
    assert (said[1]["id"], said[1]["of"], said[1]["kind"]) == ("b.txt", "a.txt", "near")
    record = json.loads(Path("in/.neardup/duplicates/b.txt.neardup.json").read_text())
    assert said[1]["score"] == record["score"]
    with Store("news.db", StoreIdentity(classifier.recipe.fingerprint, SETTINGS)) as store:
        verdict = store.verdict_of("b.txt")
    assert verdict is not None
    assert (verdict.score, len(verdict.measures)) == (record["score"], 4)


SETTINGS = {"window": "24h", "window_by": "time", "against": "originals"}


def test_pages_are_read_as_in_the_training_of_the_classifier(inbox: str, classifier: Classifier) -> None:
    replace(classifier, candidate_rule=parse_candidate_rule("jaccard(words:1) >= 0.3", content="tags")).save(
        "tags.neardup"
    )
    Path("in/d.html").write_text(f"<html><body><p>{ROSE}</p><p>again</p></body></html>")
    neardup(*WATCH, "--classifier", "tags.neardup", "--content", "tags")
    message = refused(*WATCH, "--classifier", "tags.neardup", "--content", "html")
    assert says(message, "--content html", "classifier")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--recipe", "ddd"), ("--recipe ddd", "classifier", "its own recipe")),
        (("--threshold", "0.9"), ("--threshold 0.9", "classifier", "cut")),
        (("--html",), ("--html", "classifier", "texts as they are")),
    ],
)
def test_what_contradicts_a_classifier_is_refused(
    inbox: str, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    assert says(refused(*WATCH, "--classifier", inbox, *arguments), *parts)
    assert says(refused("replay", "news.jsonl", "--classifier", inbox, *arguments), *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((*WATCH, "--precision", "0.9"), ("--precision 0.9", "classifier", "--classifier FILE")),
        (("replay", "news.jsonl", "--precision", "0.9"), ("--precision 0.9", "classifier", "--classifier FILE")),
        (("replay", "news.jsonl", "--title-column", "headline"), ("--title-column headline", "--classifier FILE")),
        ((*WATCH, "--classifier", "news.jsonl"), ("news.jsonl", "no classifier file", "neardup train")),
        (("replay", "news.jsonl", "--classifier", "none.neardup"), ("none.neardup", "read", "neardup train")),
        (
            (*WATCH, "--classifier", "classifier.neardup", "--content", "plain", "--html"),
            ("--html", "--content", "'plain'", "one of the two"),
        ),
    ],
)
def test_bad_classifier_options_are_refused(inbox: str, arguments: tuple[str, ...], parts: tuple[str, ...]) -> None:
    del inbox
    assert says(refused(*arguments), *parts)
    assert not Path("news.db").exists()


def test_titles_are_not_read_from_stdin(file: str) -> None:
    text = Path("news.jsonl").read_text("utf-8")
    result = neardup("replay", "-", "--classifier", file, code=2, stdin=text)
    assert says(result.stderr, "stdin", "name a file")


def test_a_store_of_another_classifier_is_refused(inbox: str, classifier: Classifier) -> None:
    neardup(*WATCH, "--classifier", inbox)
    replace(classifier, cut=0.25).save("other.neardup")
    assert says(refused(*WATCH, "--classifier", "other.neardup"), "news.db", "another recipe")
    assert says(refused(*WATCH, "--recipe", "ddd"), "news.db", "another recipe")
