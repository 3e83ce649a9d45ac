"""``--classifier`` in every command: tables, messages, and options that contradict it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import FOX, ROSE, names_in, neardup, read_lines, refused, write_lines
from flow_classifiers import make_classifier
from sentences import says
from trained_classifiers import DATED, FACTS, texts, trained

import neardup as nd
from neardup.classifier.classifier import Classifier, parse_candidate_rule
from neardup.classifier.domain import Domain
from neardup.stream.store import Store, StoreIdentity

STORIES = texts(60, seed=51)


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Sixty documents with titles and times."""
    return write_lines(tmp_path / "news.jsonl", STORIES.rows)


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """A classifier by words and numbers."""
    trained(FACTS).save(tmp_path / "facts.neardup")
    return tmp_path / "facts.neardup"


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """A classifier by titles and times."""
    trained(DATED).save(tmp_path / "dated.neardup")
    return tmp_path / "dated.neardup"


def test_dedup_writes_evidence_and_prints_the_classifier(news: Path, facts: Path, tmp_path: Path) -> None:
    kept, dropped, summary = (tmp_path / name for name in ("kept.jsonl", "dropped.jsonl", "summary.json"))
    stderr = neardup(
        "dedup", news, "--classifier", facts, "-o", kept, "--duplicates", dropped, "--summary", summary
    ).stderr
    result = nd.dedup(STORIES.table, classifier=trained(FACTS))
    assert read_lines(dropped) == result.duplicates().to_pylist()
    assert [row["id"] for row in read_lines(kept)] == result.kept
    found = json.loads(summary.read_text())["classifier"]
    assert found == result.summary["classifier"]
    (line,) = (line for line in stderr.splitlines() if f"{found['fingerprint']}, score >= 0" in line)
    for part in (
        f"precision {found['training_precision']:.3f}",
        f"recall {found['training_recall']:.3f} out of fold on the pairs it was trained on, which chose the cut;",
        f"{found['passed']} of {found['candidates']} candidates",
    ):
        assert part in line
    assert any("words:1 (words), jaccard >= 0.2" in line and "learned(" in line for line in stderr.splitlines())


def test_pairs_as_a_table_lines_and_json(news: Path, facts: Path, tmp_path: Path) -> None:
    table = tmp_path / "pairs.parquet"
    stderr = neardup("pairs", news, "--classifier", facts, "-o", table).stderr
    result = nd.dedup(STORIES.table, classifier=trained(FACTS))
    assert pq.read_table(table).equals(result.pairs.to_arrow())
    assert f"classifier {trained(FACTS).fingerprint}, score >= 0: precision" in stderr
    head, *lines = neardup("pairs", news, "--classifier", facts, "--print").stdout.splitlines()
    assert head.split("\t") == ["left", "right", "similarity", "score", "evidence"]
    assert len(lines) == len(result.pairs)
    equal = [line.split("\t") for line in lines if line.endswith("\tequal texts")]
    assert equal
    assert all(row[2:4] == ["1.0", ""] for row in equal)
    objects = [json.loads(line) for line in neardup("pairs", news, "--classifier", facts, "--json").stdout.splitlines()]
    assert [one.pop("measures") is None for one in objects] == [one["score"] is None for one in objects]
    assert objects == result.pairs.to_arrow().to_pylist()


def test_query_finds_near_duplicates_of_one_document(news: Path, facts: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.txt"
    document.write_text(STORIES.rows[3]["text"])
    answer = nd.query(STORIES.table, STORIES.rows[3]["text"], classifier=trained(FACTS))
    output = neardup("query", news, "-d", document, "--classifier", facts)
    head, first, *rest = output.stdout.splitlines()
    assert head == "document\tsimilarity\tscore\tevidence"
    assert first == f"{answer.to_arrow()['document'][0]}\t1.0\t\tequal texts"
    assert len(rest) == len(answer) - 1
    objects = neardup("query", news, "-d", document, "--classifier", facts, "--json").stdout.splitlines()
    assert [json.loads(line) for line in objects] == answer.to_arrow(full=True).to_pylist()


def test_a_query_without_an_answer_gives_the_reason(news: Path, facts: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.txt"
    document.write_text("nothing of the kind")
    output = neardup("query", news, "-d", document, "--classifier", facts)
    assert output.stdout == "document\tsimilarity\tscore\tevidence\n"
    assert "no near-duplicate of" in output.stderr
    assert "none passes the classifier" in output.stderr
    assert "words:1 (words), jaccard >= 0.2" in output.stderr
    document.write_text("oslo port: 1 boat came out")
    output = neardup("query", news, "-d", document, "--classifier", facts)
    assert "no near-duplicate of" in output.stderr
    assert "the classifier rejected" in output.stderr


def test_query_takes_title_and_time_of_the_document(news: Path, dated: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.txt"
    row = next(row for row in STORIES.rows if row["title"] and row["time"])
    document.write_text(row["text"] + " too")
    output = neardup(
        "query", news, "-d", document, "--classifier", dated, "--title", row["title"], "--time", row["time"], "--json"
    )
    match = next(json.loads(line) for line in output.stdout.splitlines() if json.loads(line)["document"] == row["id"])
    assert match["measures"]["title"]["value"] == 1.0
    assert match["measures"]["hours_apart"]["value"] == 0.0
    output = neardup("query", news, "-d", document, "--classifier", dated, "--json")
    lines = [json.loads(line) for line in output.stdout.splitlines()]
    assert all(line["measures"]["title"]["value"] is None for line in lines)


def pair_of(result: nd.Result) -> tuple[str, str]:
    row = next(row for row in result.pairs.to_arrow().to_pylist() if row["score"] is not None)
    return row["left"], row["right"]


@pytest.mark.parametrize("vector", [FACTS, DATED])
def test_explain_shows_each_measure(
    news: Path, facts: Path, dated: Path, vector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier, path = trained(vector), facts if vector == FACTS else dated
    result = nd.dedup(STORIES.table, classifier=classifier)
    left, right = pair_of(result)
    why = result.explain(left, right)
    assert why.learned is not None
    explanation = json.loads(neardup("explain", news, left, right, "--classifier", path, "--json").stdout)
    assert explanation == {"left": left, "right": right} | json.loads(json.dumps(why.as_dict()))
    assert explanation["second_step"]["score"] == why.learned.evidence.score
    monkeypatch.setenv("COLUMNS", "100")
    output = neardup("explain", news, left, right, "--classifier", path).stdout
    lines = output.splitlines()
    for push in why.learned.evidence.contributions:
        (line,) = (
            line for line in lines if line.strip().startswith(f"{push.measure} ") and f"{push.amount:+.4f}" in line
        )
        assert ("unknown" if push.value is None else f"{push.value:.4f}") in line
        assert ("together" if push.amount > 0 else "apart" if push.amount < 0 else "") in line
    assert any("all at their means" in line for line in lines)
    assert f"then score {why.learned.evidence.score:.4f} >= 0, probability" in " ".join(output.split())
    assert "to become candidates" in output


CONTRADICTIONS = [
    (["--recipe", "jaccard"], ("--recipe jaccard", "classifier", "its own recipe")),
    (["--recipe", "default"], ("--recipe default", "classifier", "its own recipe")),
    (["--threshold", "0.8"], ("--threshold 0.8", "classifier", "cut", "--precision 0.99")),
    (["--features", "words:2"], ("--features words:2", "classifier", "its own recipe")),
    (["--measure", "dice"], ("--measure dice", "classifier", "its own recipe")),
    (["--second-step", "edit >= 0.9"], ("--second-step edit >= 0.9", "classifier")),
    (["--set", "jaccard_floor=0.2"], ("--set jaccard_floor=0.2", "classifier")),
    (["--html"], ("--html", "classifier", "texts as they are", "leave it out")),
    (["--content", "tags"], ("--content tags", "classifier", "texts as they are", "leave it out")),
    (["--precision", "1.5"], ("precision", "1.5", "(0, 1]", "0.99")),
    (["--title-column", "title"], ("title column", "'title'", "no measure", "leave it out")),
    (["--time-column", "time"], ("time column", "'time'", "not compared", "leave it out")),
]


def commands_on(news: Path) -> list[tuple[str | Path, ...]]:
    return [("dedup", news, "--dry-run"), ("pairs", news, "--print"), ("explain", news, "d1", "d2")]


@pytest.mark.parametrize(("options", "parts"), CONTRADICTIONS, ids=[" ".join(options) for options, _ in CONTRADICTIONS])
def test_options_that_contradict_a_classifier_are_refused(
    news: Path, facts: Path, inbox: str, options: list[str], parts: tuple[str, ...]
) -> None:
    commands: list[tuple[str | Path, ...]] = [*commands_on(news), ("query", news, "-d", news)]
    commands += [WATCH, ("replay", "news.jsonl")] if options[0] in ("--recipe", "--threshold", "--html") else []
    for command in commands:
        assert says(refused(*command, "--classifier", facts, *options), *parts)


@pytest.mark.parametrize("option", ["--precision", "--title-column"])
def test_options_of_classifiers_need_a_classifier(news: Path, option: str) -> None:
    for command in commands_on(news):
        assert says(refused(*command, option, "0.9"), f"{option} 0.9", "classifier", "--classifier FILE")
    message = refused("pairs", news, "--print", "--time-column", "time")
    assert says(message, "--time-column time", "classifier", "--classifier FILE")
    stderr = neardup("query", news, "-d", news, "--title", "A", code=2).stderr
    assert says(stderr.splitlines()[-1], "title 'A'", "compares titles", "leave it out")
    message = refused("dedup", news, "--dry-run", "--time-column", "time")
    assert says(message, "--time-column", "--keep", "newest")


def test_a_file_that_is_no_classifier_is_refused(news: Path, facts: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.neardup"
    torn.write_bytes(facts.read_bytes()[:-9])
    for file, parts in [
        (news, ("not a classifier file", "truncated")),
        (torn, ("not a classifier file", "truncated")),
        (tmp_path / "none", ("read", "No such file or directory")),
    ]:
        message = refused("dedup", news, "--dry-run", "--classifier", file)
        assert says(message, str(file), *parts, "neardup train")


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
    command = ("replay", "many.jsonl", "--classifier", "foreign.neardup", "-o", "verdicts.csv", "--report", "page.html")
    message = neardup(*command, code=2).stderr.splitlines()[-1]
    assert says(message, foreign.fingerprint, "does not fit", "--force-domain")
    assert not {"verdicts.csv", "page.html"} & names_in(Path())
    done = neardup(*command, "--force-domain", "--json")
    counts = json.loads(done.stdout.splitlines()[-1])["totals"]["classifier"]
    assert counts["outside"] == counts["candidates"] >= 20
    sentence = f"{counts['passed']} of {counts['candidates']} candidates passed, 100% lie outside"
    assert sentence in done.stderr
    assert sentence in Path("page.html").read_text("utf-8")


@pytest.mark.usefixtures("foreign")
def test_a_forced_run_on_foreign_documents_ends_with_a_warning(file: str) -> None:
    for command in (("dedup", "many.jsonl", "--dry-run"), ("pairs", "many.jsonl", "--print")):
        assert says(refused(*command, "--classifier", "foreign.neardup"), "more than the 25% allowed", "--force-domain")
        forced = neardup(*command, "--classifier", "foreign.neardup", "--force-domain").stderr.splitlines()[-1]
        assert says(forced, "does not fit", "100% of ", "more than the 25% allowed", "do not hold here")
    assert "does not fit" not in neardup("dedup", "many.jsonl", "--dry-run", "--classifier", file).stderr


def expected_verdicts(classifier: Classifier) -> list[nd.Verdict]:
    """What the index says of the rows."""
    rows = sorted(ROWS, key=lambda row: str(row["time"]))
    index = nd.Index(classifier=classifier, window="24h")
    return index.add_many(nd.Document(r["id"], r["text"], r["time"], title=r["headline"] or "") for r in rows)


def test_a_replay_gives_the_verdicts_of_the_index(file: str, classifier: Classifier) -> None:
    result = neardup("replay", "news.jsonl", "--classifier", file, "-o", "verdicts.csv", "--originals", "kept.jsonl")
    assert "6 items: 3 originals, 3 duplicates (50.0%)" in result.stderr
    with open("verdicts.csv", newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert list(rows[0]) == ["id", "kind", "of", "similarity", "time", "flag", "score", "evidence"]
    expected = expected_verdicts(classifier)
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
    expected = {verdict.id: verdict for verdict in expected_verdicts(classifier)}
    table = pq.read_table("verdicts.parquet").to_pylist()
    assert [(row["id"], row["score"]) for row in table] == [(name, expected[name].score) for name in expected]
    with nd.Index(classifier=file, path="news.db", window="24h") as index:
        assert {name: index.verdict_of(name) for name in expected} == expected


def test_precision_chooses_the_working_point(file: str, classifier: Classifier) -> None:
    point = replace(classifier, scores=np.array([-3.0, -2.0, 40.0]), labels=np.array([False, False, True]))
    point.save("point.neardup")
    command = ("replay", "news.jsonl", "--classifier", "point.neardup", "--json", "--precision")
    for precision, count in (("0.5", 2), ("1", 0)):
        totals = json.loads(neardup(*command, precision).stdout.splitlines()[-1])["totals"]
        assert totals["near"] == count
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
    events = [json.loads(line) for line in neardup(*WATCH, "--classifier", inbox).stderr.splitlines()]
    events = [line for line in events if line["event"] != "compiling"]
    assert [line["event"] for line in events] == ["started", "duplicate", "stopped"]
    assert (events[0]["recipe"], events[0]["fingerprint"]) == ("learned", classifier.recipe.fingerprint)
    assert events[0]["matches"].endswith(f"then learned({classifier.fingerprint})")
    assert (events[1]["id"], events[1]["of"], events[1]["kind"]) == ("b.txt", "a.txt", "near")
    record = json.loads(Path("in/.neardup/duplicates/b.txt.neardup.json").read_text())
    assert events[1]["score"] == record["score"]
    with Store("news.db", StoreIdentity(classifier.recipe.fingerprint, SETTINGS)) as store:
        verdict = store.verdict_of("b.txt")
    assert verdict is not None
    assert (verdict.score, len(verdict.measures)) == (record["score"], 4)


SETTINGS = {"window": "24h", "window_by": "time", "against": "originals"}


def test_pages_are_read_as_the_classifier_was_trained(inbox: str, classifier: Classifier) -> None:
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
        ((*WATCH, "--precision", "0.9"), ("--precision 0.9", "classifier", "--classifier FILE")),
        (("replay", "news.jsonl", "--precision", "0.9"), ("--precision 0.9", "classifier", "--classifier FILE")),
        (("replay", "news.jsonl", "--title-column", "headline"), ("--title-column headline", "--classifier FILE")),
        ((*WATCH, "--classifier", "news.jsonl"), ("news.jsonl", "not a classifier file", "neardup train")),
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
