"""``--classifier`` in dedup, pairs, query and explain: tables, what is said, and what does not go with it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import neardup, read_lines, refused, write_lines
from sentences import says
from trained_classifiers import DATED, FACTS, texts, trained

import neardup as nd

KNOWN = texts(60, seed=51)


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Sixty documents with titles and times."""
    return write_lines(tmp_path / "news.jsonl", KNOWN.rows)


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
    result = nd.dedup(KNOWN.table, classifier=trained(FACTS))
    assert read_lines(dropped) == result.duplicates().to_pylist()
    assert [row["id"] for row in read_lines(kept)] == result.kept
    found = json.loads(summary.read_text())["classifier"]
    assert found == result.summary["classifier"]
    (line,) = (line for line in stderr.splitlines() if f"{found['fingerprint']}, score >= 0" in line)
    for part in (
        f"precision {found['training_precision']:.3f}",
        f"recall {found['training_recall']:.3f} on its training pairs;",
        f"{found['passed']} of {found['candidates']} candidates",
    ):
        assert part in line
    assert any("words:1 (words), jaccard >= 0.2" in line and "learned(" in line for line in stderr.splitlines())


def test_pairs_as_a_table_lines_and_json(news: Path, facts: Path, tmp_path: Path) -> None:
    table = tmp_path / "pairs.parquet"
    stderr = neardup("pairs", news, "--classifier", facts, "-o", table).stderr
    result = nd.dedup(KNOWN.table, classifier=trained(FACTS))
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
    document.write_text(KNOWN.rows[3]["text"])
    answer = nd.query(KNOWN.table, KNOWN.rows[3]["text"], classifier=trained(FACTS))
    shown = neardup("query", news, "-d", document, "--classifier", facts)
    head, first, *rest = shown.stdout.splitlines()
    assert head == "document\tsimilarity\tscore\tevidence"
    assert first == f"{answer.to_arrow()['document'][0]}\t1.0\t\tequal texts"
    assert len(rest) == len(answer) - 1
    objects = neardup("query", news, "-d", document, "--classifier", facts, "--json").stdout.splitlines()
    assert [json.loads(line) for line in objects] == answer.to_arrow(full=True).to_pylist()


def test_a_query_without_an_answer_says_why(news: Path, facts: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.txt"
    document.write_text("nothing of the kind")
    shown = neardup("query", news, "-d", document, "--classifier", facts)
    assert shown.stdout == "document\tsimilarity\tscore\tevidence\n"
    assert "no near-duplicate of" in shown.stderr
    assert "none passes the classifier" in shown.stderr
    assert "words:1 (words), jaccard >= 0.2" in shown.stderr
    document.write_text("oslo port: 1 boat came out")
    shown = neardup("query", news, "-d", document, "--classifier", facts)
    assert "no near-duplicate of" in shown.stderr
    assert "the classifier rejected" in shown.stderr


def test_query_takes_title_and_time_of_the_document(news: Path, dated: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.txt"
    row = next(row for row in KNOWN.rows if row["title"] and row["time"])
    document.write_text(row["text"] + " too")
    shown = neardup(
        "query", news, "-d", document, "--classifier", dated, "--title", row["title"], "--time", row["time"], "--json"
    )
    mine = next(json.loads(line) for line in shown.stdout.splitlines() if json.loads(line)["document"] == row["id"])
    assert mine["measures"]["title"]["value"] == 1.0
    assert mine["measures"]["hours_apart"]["value"] == 0.0
    shown = neardup("query", news, "-d", document, "--classifier", dated, "--json")
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert all(line["measures"]["title"]["value"] is None for line in lines)


def pair_of(result: nd.Result) -> tuple[str, str]:
    row = next(row for row in result.pairs.to_arrow().to_pylist() if row["score"] is not None)
    return row["left"], row["right"]


@pytest.mark.parametrize("vector", [FACTS, DATED])
def test_explain_shows_each_measure(
    news: Path, facts: Path, dated: Path, vector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier, path = trained(vector), facts if vector == FACTS else dated
    result = nd.dedup(KNOWN.table, classifier=classifier)
    left, right = pair_of(result)
    why = result.explain(left, right)
    assert why.learned is not None
    told = json.loads(neardup("explain", news, left, right, "--classifier", path, "--json").stdout)
    assert told == {"left": left, "right": right} | json.loads(json.dumps(why.as_dict()))
    assert told["second_step"]["score"] == why.learned.evidence.score
    monkeypatch.setenv("COLUMNS", "100")
    shown = neardup("explain", news, left, right, "--classifier", path).stdout
    lines = shown.splitlines()
    for push in why.learned.evidence.contributions:
        (line,) = (
            line for line in lines if line.strip().startswith(f"{push.measure} ") and f"{push.amount:+.4f}" in line
        )
        assert ("unknown" if push.value is None else f"{push.value:.4f}") in line
        assert ("together" if push.amount > 0 else "apart" if push.amount < 0 else "") in line
    assert any("all at their means" in line for line in lines)
    assert f"then score {why.learned.evidence.score:.4f} >= 0, probability" in " ".join(shown.split())
    assert "to become candidates" in shown


def test_explain_outside_the_candidate_rule_and_of_equal_texts(news: Path, facts: Path) -> None:
    outside = next(row for row in KNOWN.rows if row["text"].startswith("word") and "port" not in row["text"])
    port = next(row for row in KNOWN.rows if " port" in row["text"])
    shown = " ".join(neardup("explain", news, outside["id"], port["id"], "--classifier", facts).stdout.split())
    assert "no near-duplicates: jaccard 0.0000 < 0.2" in shown
    assert "outside the candidate rule" in shown
    assert "not asked" in shown
    assert "(score -" in shown
    shown = neardup("explain", news, port["id"], port["id"], "--classifier", facts).stdout
    assert "equal texts" in " ".join(shown.split())
    assert "no classifier" in " ".join(shown.split())
    assert "all at their means" not in shown


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


def commands(news: Path) -> list[list[str | Path]]:
    return [["dedup", news, "--dry-run"], ["pairs", news, "--print"], ["explain", news, "d1", "d2"]]


@pytest.mark.parametrize(("options", "parts"), CONTRADICTIONS, ids=[" ".join(options) for options, _ in CONTRADICTIONS])
def test_what_contradicts_a_classifier_is_refused(
    news: Path, facts: Path, options: list[str], parts: tuple[str, ...]
) -> None:
    for command in commands(news):
        assert says(refused(*command, "--classifier", facts, *options), *parts)
    assert says(refused("query", news, "-d", news, "--classifier", facts, *options), *parts)


@pytest.mark.parametrize("option", ["--precision", "--title-column"])
def test_options_of_classifiers_need_a_classifier(news: Path, option: str) -> None:
    for command in commands(news):
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
        (news, ("no classifier file", "truncated")),
        (torn, ("no classifier file", "truncated")),
        (tmp_path / "none", ("read", "No such file or directory")),
    ]:
        message = refused("dedup", news, "--dry-run", "--classifier", file)
        assert says(message, str(file), *parts, "neardup train")


def test_the_svm_of_the_paper_is_no_recipe_before_it_is_trained(news: Path) -> None:
    for name in ("terms-svm", "terms-svm-sentence"):
        message = refused("dedup", news, "--dry-run", "--recipe", name)
        train = f"neardup train INPUT --labels pairs.csv --vector {name} -o FILE"
        assert says(message, f"recipe '{name}'", "labelled pairs", train, "--classifier FILE")
