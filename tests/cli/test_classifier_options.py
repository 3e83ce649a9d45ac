"""``--classifier`` in every command: tables, messages, and options that contradict it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from classifiers import DATED, FACTS, make_classifier, texts
from commands import FOX, ROSE, names_in, neardup, read_lines, refused, write_lines
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Classifier, parse_candidate_rule
from neardup.classifier.domain import Domain
from neardup.stream.store import StoreReader

STORIES = texts(60, seed=51)


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Sixty documents with titles and times."""
    return write_lines(tmp_path / "sixty.jsonl", STORIES.rows)


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """A classifier by words and numbers."""
    make_classifier(FACTS).save(tmp_path / "facts.neardup")
    return tmp_path / "facts.neardup"


def test_outputs_are_those_of_python_and_the_classifier_is_printed(news: Path, facts: Path, tmp_path: Path) -> None:
    kept, dropped, summary, pairs = (tmp_path / name for name in ("kept.jsonl", "gone.jsonl", "s.json", "p.parquet"))
    outputs = "-o", kept, "--duplicates", dropped, "--summary", summary
    stderr = neardup("dedup", news, "--classifier", facts, *outputs).stderr
    result = nd.dedup(STORIES.table, classifier=make_classifier(FACTS))
    assert read_lines(dropped) == result.duplicates().to_pylist()
    assert [row["id"] for row in read_lines(kept)] == result.kept
    found = json.loads(summary.read_text())["classifier"]
    assert found == result.summary["classifier"]
    line = (
        f"{found['fingerprint']}, score >= 0: precision {found['training_precision']:.3f} and recall "
        f"{found['training_recall']:.3f} out of fold on the pairs it was trained on, which chose the cut; "
        f"{found['passed']} of {found['candidates']} candidates"
    )
    assert line in stderr
    assert line in neardup("pairs", news, "--classifier", facts, "-o", pairs).stderr
    assert pq.read_table(pairs).equals(result.pairs.to_arrow())
    head, *lines = neardup("pairs", news, "--classifier", facts, "--print").stdout.splitlines()
    assert head.split("\t") == ["left", "right", "similarity", "score", "evidence"]
    equal = [line.split("\t") for line in lines if line.endswith("\tequal texts")]
    assert equal
    assert all(row[2:4] == ["1.0", ""] for row in equal)


def test_queries_answer_as_python_does_and_say_why_nothing_is_found(news: Path, facts: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.txt"
    command = "similar", news, "-d", document, "--classifier", facts
    document.write_text(STORIES.rows[3]["text"])
    answer = nd.query(STORIES.table, STORIES.rows[3]["text"], classifier=make_classifier(FACTS))
    found = neardup(*command, "--json").stdout.splitlines()
    assert [json.loads(line) for line in found] == answer.to_arrow(full=True).to_pylist()
    for text, reason in {
        "nothing of the kind": "none passes the classifier's candidate rule, words:1 (words), jaccard >= 0.2",
        "oslo port: 1 boat came out": "the classifier rejected",
    }.items():
        document.write_text(text)
        output = neardup(*command)
        assert output.stdout == "document\tsimilarity\tscore\tevidence\n"
        assert says(output.stderr.splitlines()[-1], "no near-duplicate of", reason)


def test_query_takes_title_and_time_of_the_document(news: Path, tmp_path: Path) -> None:
    make_classifier(DATED).save(tmp_path / "dated.neardup")
    document = tmp_path / "new.txt"
    row = next(row for row in STORIES.rows if row["title"] and row["time"])
    document.write_text(row["text"] + " too")
    command = "similar", news, "-d", document, "--classifier", tmp_path / "dated.neardup", "--json"
    known = map(json.loads, neardup(*command, "--title", row["title"], "--time", row["time"]).stdout.splitlines())
    match = next(found for found in known if found["document"] == row["id"])
    assert (match["measures"]["title"]["value"], match["measures"]["hours_apart"]["value"]) == (1.0, 0.0)
    unknown = [json.loads(line) for line in neardup(*command).stdout.splitlines()]
    assert all(found["measures"]["title"]["value"] is None for found in unknown)


#: Commands on the sixty documents, and those that take one more argument.
RUNS: list[tuple[str, ...]] = [
    ("dedup", "sixty.jsonl", "--dry-run"),
    ("pairs", "sixty.jsonl", "--print"),
    ("explain", "sixty.jsonl", "d1", "d2"),
    ("similar", "sixty.jsonl", "-d", "sixty.jsonl"),
    ("replay", "news.jsonl"),
    ("watch", "in", "--store", "news.db", "--originals", "out", "--settle", "0", "--patience", "0", "--once"),
]
WATCH = RUNS[-1]
CONTRADICTIONS = [
    (["--recipe", "default"], ("--recipe default", "classifier", "its own recipe")),
    (["--threshold", "0.8"], ("--threshold 0.8", "classifier", "cut", "--precision 0.99")),
    (["--measure", "dice"], ("--measure dice", "classifier", "its own recipe")),
    (["--set", "jaccard_floor=0.2"], ("--set jaccard_floor=0.2", "classifier")),
    (["--html"], ("--html", "classifier", "texts as they are", "leave it out")),
    (["--content", "tags"], ("--content tags", "classifier", "texts as they are", "leave it out")),
    (["--precision", "1.5"], ("precision", "1.5", "(0, 1]", "0.99")),
    (["--title-column", "title"], ("title column", "'title'", "no measure", "leave it out")),
    (["--time-column", "time"], ("time column", "'time'", "not compared", "leave it out")),
]


@pytest.mark.parametrize(("options", "parts"), CONTRADICTIONS, ids=[" ".join(options) for options, _ in CONTRADICTIONS])
@pytest.mark.usefixtures("news", "inbox")
def test_options_that_contradict_a_classifier_are_refused(
    facts: Path, options: list[str], parts: tuple[str, ...]
) -> None:
    for command in RUNS if options[0] in ("--recipe", "--threshold") else RUNS[1:2]:
        assert says(refused(*command, "--classifier", facts, *options), *parts)


@pytest.mark.usefixtures("news", "inbox")
def test_options_of_classifiers_need_a_classifier() -> None:
    for command in RUNS:
        assert says(refused(*command, "--precision", "0.9"), "--precision 0.9", "classifier", "--classifier FILE")
    for option in ("--title-column", "--time-column"):
        assert says(refused(*RUNS[1], option, "x"), f"{option} x", "classifier", "--classifier FILE")
    stderr = neardup(*RUNS[3], "--title", "A", code=2).stderr
    assert says(stderr.splitlines()[-1], "title 'A'", "compares titles", "leave it out")


@pytest.mark.usefixtures("news", "inbox")
def test_a_file_that_is_no_classifier_is_refused(facts: Path) -> None:
    Path("torn.neardup").write_bytes(facts.read_bytes()[:-9])
    for command in (RUNS[0], WATCH):
        for file, rule in {"torn.neardup": "truncated", "sixty.jsonl": "not a classifier file", "none": "read"}.items():
            assert says(refused(*command, "--classifier", file), file, rule, "neardup train")
    assert not Path("news.db").exists()


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


@pytest.fixture
def foreign(file: str, classifier: Classifier) -> Classifier:
    """A classifier trained on other texts than those of ``many.jsonl``."""
    domain = Domain.from_training(
        np.ones((2, len(classifier.vector))), [FOX * 9, FOX * 9], np.ones(2), np.array([True, False])
    )
    foreign = replace(classifier, domain=domain)
    foreign.save("foreign.neardup")
    rows = [{"id": i, "time": f"2024-01-01T09:{i:02d}Z", "headline": None, "text": f"{FOX} {i}"} for i in range(30)]
    write_lines(Path("many.jsonl"), rows)
    return foreign


def test_a_replay_of_foreign_documents_stops_before_anything_is_written(foreign: Classifier) -> None:
    command = ("replay", "many.jsonl", "--classifier", "foreign.neardup", "-o", "verdicts.csv")
    message = neardup(*command, code=2).stderr.splitlines()[-1]
    assert says(message, foreign.fingerprint, "does not fit", "--force-domain")
    assert "verdicts.csv" not in names_in(Path())
    done = neardup(*command, "--force-domain", "--json")
    counts = json.loads(done.stdout.splitlines()[-1])["totals"]["classifier"]
    assert counts["outside"] == counts["candidates"] >= 20
    assert f"{counts['passed']} of {counts['candidates']} candidates passed, 100% lie outside" in done.stderr


@pytest.mark.usefixtures("foreign")
def test_a_forced_run_on_foreign_documents_ends_with_a_warning(file: str) -> None:
    for command in (("dedup", "many.jsonl", "--dry-run"), ("pairs", "many.jsonl", "--print")):
        assert says(refused(*command, "--classifier", "foreign.neardup"), "more than the 25% allowed", "--force-domain")
        forced = neardup(*command, "--classifier", "foreign.neardup", "--force-domain").stderr.splitlines()[-1]
        assert says(forced, "does not fit", "100% of ", "more than the 25% allowed", "do not hold here")
    assert "does not fit" not in neardup("dedup", "many.jsonl", "--dry-run", "--classifier", file).stderr


def expected_verdicts(classifier: Classifier) -> dict[str, nd.Verdict]:
    """What the index says of the rows."""
    rows = sorted(ROWS, key=lambda row: str(row["time"]))
    index = nd.Index(classifier=classifier, window="24h")
    documents = (nd.Document(r["id"], r["text"], r["time"], title=r["headline"] or "") for r in rows)
    return {verdict.id: verdict for verdict in index.add_many(documents)}


def test_a_replay_gives_the_verdicts_of_the_index_and_keeps_its_store(file: str, classifier: Classifier) -> None:
    outputs = "-o", "verdicts.parquet", "--originals", "kept.jsonl", "--store", "news.db"
    result = neardup("replay", "news.jsonl", "--classifier", file, *outputs)
    assert "6 items: 3 originals, 3 duplicates (50.0%)" in result.stderr
    rows, expected = pq.read_table("verdicts.parquet").to_pylist(), expected_verdicts(classifier)
    assert list(rows[0]) == ["id", "kind", "of", "similarity", "time", "flag", "score", "evidence"]
    assert [(r["id"], r["kind"], r["of"], r["score"], r["evidence"]) for r in rows] == [
        (v.id, v.kind, v.of, v.score, "equal texts" if v.kind == "exact" else v.evidence) for v in expected.values()
    ]
    assert [row["id"] for row in read_lines(Path("kept.jsonl"))] == [
        row["id"] for row in ROWS if not expected[row["id"]].is_duplicate
    ]
    titles = {v.id: {push.measure: push.value for push in v.measures}["title"] for v in expected.values() if v.measures}
    assert titles == {"rose": None, "fox-edited": pytest.approx(2 / 3)}
    with nd.Index(classifier=file, path="news.db", window="24h") as index:
        assert {name: index.verdict_of(name) for name in expected} == expected


def test_precision_chooses_the_working_point(file: str, classifier: Classifier) -> None:
    point = replace(classifier, scores=np.array([-3.0, -2.0, 40.0]), labels=np.array([False, False, True]))
    point.save("point.neardup")
    command = ("replay", "news.jsonl", "--classifier", "point.neardup", "--json", "--precision")
    for precision, count in (("0.5", 2), ("1", 0)):
        totals = json.loads(neardup(*command, precision).stdout.splitlines()[-1])["totals"]
        assert totals["near"] == count


@pytest.fixture
def inbox(file: str) -> str:
    Path("in").mkdir()
    for name, text in {"a.txt": FOX, "b.txt": f"{FOX} today", "c.txt": ROSE}.items():
        Path("in", name).write_text(text)
    return file


def test_a_folder_is_watched_with_a_classifier_and_no_other(inbox: str, classifier: Classifier) -> None:
    events = [json.loads(line) for line in neardup(*WATCH, "--classifier", inbox).stderr.splitlines()]
    started, duplicate, _ = (line for line in events if line["event"] != "compiling")
    assert (started["recipe"], started["fingerprint"]) == ("learned", classifier.recipe.fingerprint)
    assert started["matches"].endswith(f"then learned({classifier.fingerprint})")
    assert (duplicate["id"], duplicate["of"], duplicate["kind"]) == ("b.txt", "a.txt", "near")
    record = json.loads(Path("in/.neardup/duplicates/b.txt.neardup.json").read_text())
    with StoreReader("news.db") as store:
        verdict = store.stopped_document("b.txt").verdict
    assert duplicate["score"] == record["score"] == verdict.score
    assert len(verdict.measures) == 4
    replace(classifier, cut=0.25).save("other.neardup")
    assert says(refused(*WATCH, "--classifier", "other.neardup"), "news.db", "another recipe")
    assert says(refused(*WATCH, "--recipe", "ddd"), "news.db", "another recipe")


def test_pages_are_read_as_the_classifier_was_trained(inbox: str, classifier: Classifier) -> None:
    rule = parse_candidate_rule("jaccard(words:1) >= 0.3", content="tags")
    replace(classifier, candidate_rule=rule).save("tags.neardup")
    Path("in/d.html").write_text(f"<html><body><p>{ROSE}</p><p>again</p></body></html>")
    neardup(*WATCH, "--classifier", "tags.neardup", "--content", "tags")
    message = refused(*WATCH, "--classifier", "tags.neardup", "--content", "html")
    assert says(message, "--content html", "classifier")


def test_titles_are_not_read_from_stdin(file: str) -> None:
    text = Path("news.jsonl").read_text("utf-8")
    result = neardup("replay", "-", "--classifier", file, code=2, stdin=text)
    assert says(result.stderr, "stdin", "name a file")
