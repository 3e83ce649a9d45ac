"""What the command promises its callers: exit codes, where words go, nothing half-written, the same bytes again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from promised_calls import Call, call
from promised_cases import DIFFERENT_IDS, SIMILAR_IDS, command_line
from promised_corpora import rows_of
from promised_digests import rows_of_output

NEWS = "news.jsonl"
KEPT = {"output": "kept.jsonl"}


@pytest.fixture
def folder_of_files(tmp_path: Path, corpus_folder: Callable[[str], Path]) -> Path:
    """A folder with good files and bad ones."""
    folder = tmp_path / "files"
    folder.mkdir()
    shutil.copy(corpus_folder("newswire") / "newswire.jsonl", folder / NEWS)
    shutil.copy(corpus_folder("newswire") / "labels.csv", folder / "labels.csv")
    lines = (folder / NEWS).read_text("utf-8").splitlines()
    for name, content in {
        "empty.jsonl": "",
        "broken.jsonl": "\n".join([*lines[:3], '{"id": "cut", "text": ', *lines[3:6], "[1]", '{"id": "silent"}', ""]),
        "one.jsonl": '{"id": "a", "text": "one two"}\n',
        "taken.jsonl": "taken\n",
        "bad.toml": "name = [",
        "strange.toml": 'name = "strange"\nfeatures = "words:5"\nnonsense = 3\n',
        "strangers.csv": "id1,id2,label\nzz,yy,1\n",
        "new.txt": json.loads(lines[0])["text"],
    }.items():
        (folder / name).write_text(content, "utf-8")
    (folder / "nothing").mkdir()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def line_of(command: str, *inputs: str, **options: Any) -> tuple[str, ...]:
    return tuple(command_line(command, *inputs, **options))


def dedup(*inputs: str, **options: Any) -> tuple[str, ...]:
    return line_of("dedup", *inputs, **KEPT | options)


#: Refused commands, and the words that the sentence has: the value, and what helps.
REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a missing file": (dedup("missing.jsonl"), ("missing.jsonl",)),
    "a folder without documents": (dedup("nothing"), ("nothing", ".jsonl")),
    "a threshold out of range": (dedup(NEWS, threshold=1.5), ("1.5", "(0, 1]")),
    "a threshold that is no number": (dedup(NEWS, threshold="abc"), ("abc",)),
    "an unknown recipe": (dedup(NEWS, recipe="nosuch"), ("nosuch", "default")),
    "a recipe that is no TOML": (dedup(NEWS, recipe="bad.toml"), ("bad.toml",)),
    "a recipe with a strange field": (dedup(NEWS, recipe="strange.toml"), ("nonsense",)),
    "an unknown measure": (dedup(NEWS, measure="nosuch"), ("nosuch", "jaccard")),
    "unknown features": (dedup(NEWS, features="nosuch:3"), ("nosuch", "words")),
    "a measure that does not fit": (dedup(NEWS, signature="minhash:64"), ("jaccard", "overlap")),
    "an output that exists": (dedup(NEWS, output="taken.jsonl"), ("taken.jsonl", "--force")),
    "an output of no format": (dedup(NEWS, output="kept.xyz"), ("kept.xyz", ".parquet")),
    "an output in no folder": (dedup(NEWS, output="nowhere/kept.jsonl"), ("nowhere",)),
    "an output that is an input": (dedup(NEWS, output=NEWS, force=True), (NEWS,)),
    "one name for two outputs": (dedup(NEWS, duplicates="kept.jsonl"), ("kept.jsonl", "--duplicates")),
    "no output": (line_of("dedup", NEWS), ("--dry-run",)),
    "a column that is not there": (dedup(NEWS, text_column="body"), ("body", "--text-column")),
    "an id column that is not there": (dedup(NEWS, id_column="nid"), ("nid", "--id-column")),
    "no threads": (dedup(NEWS, threads=0), ("0", "--threads")),
    "a size that is none": (dedup(NEWS, memory="lots"), ("lots", "2GB")),
    "a broken line where none may be": (dedup("broken.jsonl", strict=True), ("broken.jsonl", "4", "--strict")),
    "a classifier that is none": (dedup(NEWS, classifier=NEWS), (NEWS,)),
    "pairs to no format": (line_of("pairs", NEWS, output="pairs.xyz"), ("pairs.xyz", ".csv")),
    "an unknown id": (line_of("explain", NEWS, "nw-0001", "nw-9999"), ("nw-9999", "nw-0001")),
    "no neighbours": (line_of("neighbors", NEWS, k=0, output="near.csv"), ("0", "--k")),
    "neighbours of nobody": (line_of("neighbors", NEWS, of="zz", output="near.csv"), ("zz",)),
    "a query that is not there": (line_of("query", NEWS, document="missing.txt"), ("missing.txt",)),
    "labels from nowhere": (line_of("compare", NEWS), ("--labels", "--clusters")),
    "labels of strangers": (line_of("compare", NEWS, labels="strangers.csv"), ("zz", "--ignore-unknown")),
    "labels that are not there": (line_of("audit", NEWS, labels="missing.csv"), ("missing.csv",)),
    "a training on strangers": (line_of("train", NEWS, labels="strangers.csv", output="a.neardup"), ("zz",)),
    "one document to explore": (line_of("explore", "one.jsonl"), ("1",)),
    "a replay without times": (line_of("replay", "one.jsonl"), ("--time-column",)),
    "a window that is none": (line_of("replay", NEWS, window="soon"), ("soon", "24h")),
    "an inbox that is not there": (line_of("watch", "nowhere", originals="out", store="s.db"), ("nowhere",)),
    "a store that is not there": (line_of("label", NEWS, store="l.db", export="out.csv"), ("l.db",)),
    "a recipe to show that is none": (line_of("recipe show", "nosuch"), ("nosuch", "default")),
    "a recipe to check that is none": (line_of("recipe show", "bad.toml"), ("bad.toml",)),
}
#: Commands that the parser of the command line refuses.
UNPARSED = {
    "an unknown option": (*dedup(NEWS), "--nonsense"),
    "an unknown command": ("nosuch", NEWS),
    "a missing option": line_of("train", NEWS),
    "too few ids": line_of("explain", NEWS, "nw-0001"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_one_sentence_and_write_nothing(name: str, folder_of_files: Path) -> None:
    command, words = REFUSED[name]
    before = contents(folder_of_files)
    done = call(*command, folder=folder_of_files)
    assert done.code == 2
    assert done.out == b""
    # Where no run came before, one that is refused late has printed that it compiles.
    message = re.sub(r"^neardup: compiling kernels.*\n", "", done.err)
    assert message.startswith("neardup: ")
    assert message.count("\n") == 1, message
    for word in words:
        assert word in message
    assert contents(folder_of_files) == before


@pytest.mark.parametrize("name", UNPARSED)
def test_unparsed_commands_exit_with_two_and_write_nothing(name: str, folder_of_files: Path) -> None:
    before = contents(folder_of_files)
    done = call(*UNPARSED[name], folder=folder_of_files)
    assert done.code == 2
    assert done.out == b""
    assert done.err.startswith("neardup: ")
    assert done.err.count("\n") == 1, done.err
    assert contents(folder_of_files) == before


def test_an_empty_file_gives_an_empty_output(folder_of_files: Path) -> None:
    done = call(*dedup("empty.jsonl", duplicates="duplicates.csv", summary="summary.json"), folder=folder_of_files)
    assert done.code == 0, done.err
    assert (folder_of_files / "kept.jsonl").read_bytes() == b""
    assert rows_of_output("duplicates.csv", (folder_of_files / "duplicates.csv").read_bytes()) == []
    assert json.loads((folder_of_files / "summary.json").read_text())["documents"] == 0


def test_a_query_without_an_answer_succeeds(folder_of_files: Path) -> None:
    (folder_of_files / "new.txt").write_text("Nothing of this was ever in the news at all.")
    done = call(*line_of("query", NEWS, document="new.txt", json=True), folder=folder_of_files)
    assert (done.code, done.out) == (0, b"")


def test_broken_records_are_rejected_with_file_and_line(folder_of_files: Path) -> None:
    outputs = {"summary": "summary.json", "quarantine": "aside.jsonl", "threshold": 1}
    done = call(*dedup("broken.jsonl", **outputs), folder=folder_of_files)
    assert done.code == 0, done.err
    for line in (4, 8, 9):
        assert f"broken.jsonl, line {line}" in done.err
    aside = [json.loads(line) for line in (folder_of_files / "aside.jsonl").read_text().splitlines()]
    assert [(record["file"], record["line"]) for record in aside] == [("broken.jsonl", line) for line in (4, 8, 9)]
    summary = json.loads((folder_of_files / "summary.json").read_text())
    assert summary["documents"] == 6
    assert sum(summary["rejected"].values()) == 3
    kept = (folder_of_files / "kept.jsonl").read_text("utf-8").splitlines()
    assert set(kept) <= set((folder_of_files / "broken.jsonl").read_text("utf-8").splitlines())
    assert len(kept) == summary["kept"]


def test_a_dry_run_writes_nothing(folder_of_files: Path) -> None:
    before = contents(folder_of_files)
    done = call(*line_of("dedup", NEWS, dry_run=True), folder=folder_of_files)
    assert (done.code, done.out) == (0, b"")
    assert "132 kept, 67 dropped" in done.err
    assert contents(folder_of_files) == before


def test_force_replaces_an_output(folder_of_files: Path) -> None:
    done = call(*dedup(NEWS, output="taken.jsonl", force=True), folder=folder_of_files)
    assert done.code == 0, done.err
    assert len((folder_of_files / "taken.jsonl").read_text("utf-8").splitlines()) == 132


_LABELS = {"labels": "labels.csv", "only": "labeller=anna"}
#: Commands whose standard output is one piece of JSON, and those that print a line of it for each row.
JSON = {
    "dedup": line_of("dedup", NEWS, dry_run=True, json=True),
    "explain": line_of("explain", NEWS, *SIMILAR_IDS, json=True),
    "explain no pair": line_of("explain", NEWS, *DIFFERENT_IDS, json=True),
    "compare": line_of("compare", NEWS, **_LABELS, recipes="default", thresholds=".5,.9", json=True),
    "explore": line_of("explore", NEWS, lengths="5", examples=0, json=True),
    "audit": line_of("audit", NEWS, sample=10, json=True),
    "recipe list": line_of("recipe list", json=True),
}
JSON_LINES = {
    "pairs": line_of("pairs", NEWS, json=True),
    "neighbors": line_of("neighbors", NEWS, first=5, json=True),
    "query": line_of("query", NEWS, document="new.txt", json=True),
    "replay": line_of("replay", NEWS, window="24h", json=True),
}


@pytest.mark.parametrize("name", JSON)
def test_only_json_is_on_stdout(name: str, folder_of_files: Path) -> None:
    before = contents(folder_of_files)
    done = call(*JSON[name], folder=folder_of_files)
    assert done.code == 0, done.err
    assert json.loads(done.out)
    assert contents(folder_of_files) == before


@pytest.mark.parametrize("name", JSON_LINES)
def test_only_json_lines_are_on_stdout(name: str, folder_of_files: Path) -> None:
    done = call(*JSON_LINES[name], folder=folder_of_files)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.decode().splitlines()]
    assert rows
    assert all(isinstance(row, dict) for row in rows)


def test_only_documents_are_on_stdout(folder_of_files: Path) -> None:
    done = call(*dedup(NEWS, output="-", duplicates="duplicates.csv"), folder=folder_of_files)
    assert done.code == 0, done.err
    rows = rows_of("newswire")
    dropped = {row["dropped"] for row in rows_of_output("d.csv", (folder_of_files / "duplicates.csv").read_bytes())}
    assert [json.loads(line)["id"] for line in done.out.decode().splitlines()] == [
        row["id"] for row in rows if row["id"] not in dropped
    ]
    given = set((folder_of_files / NEWS).read_bytes().splitlines())
    assert set(done.out.splitlines()) <= given  # byte for byte


OUTPUTS = ("kept.jsonl", "kept.jsonl.gz", "kept.csv", "kept.parquet", "kept.arrow", "kept.feather")


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_same_input_gives_the_same_bytes(name: str, folder_of_files: Path) -> None:
    found = []
    for threads in (1, 2):
        outputs = {"output": name, "duplicates": "duplicates.parquet", "threads": threads, "force": True}
        assert call(*dedup(NEWS, **outputs), folder=folder_of_files).code == 0
        found.append([(folder_of_files / one).read_bytes() for one in (name, "duplicates.parquet")])
    assert found[0] == found[1]


def test_the_same_training_gives_the_same_bytes(folder_of_files: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    measures = {"vector": "jaccard(words:4), containment(words:1)", "kernel": "linear"}
    for name in ("a.neardup", "b.neardup"):
        done = call(*line_of("train", NEWS, **_LABELS, **measures, output=name), folder=folder_of_files)
        assert done.code == 0, done.err
    assert (folder_of_files / "a.neardup").read_bytes() == (folder_of_files / "b.neardup").read_bytes()


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "parquet", "arrow", "feather"])
def test_a_table_has_the_same_rows_in_every_format(name: str, folder_of_files: Path) -> None:
    files = {"output": "kept.jsonl", "duplicates": "duplicates.csv"}
    assert call(*line_of("dedup", NEWS, **files), folder=folder_of_files).code == 0
    again = {"output": f"again.{name}", "duplicates": f"again-duplicates.{name}"}
    assert call(*line_of("dedup", NEWS, **again), folder=folder_of_files).code == 0
    for one, other in zip(files.values(), again.values(), strict=True):
        expected = rows_of_output(one, (folder_of_files / one).read_bytes())
        assert [_as_text(row) for row in rows_of_output(other, (folder_of_files / other).read_bytes())] == [
            _as_text(row) for row in expected
        ]


def _as_text(row: dict[str, Any]) -> dict[str, str]:
    """What of a row is the same in CSV, which does not tell numbers from texts or nothing from an empty text."""
    return {key: _number(value) for key, value in row.items()}


def _number(value: Any) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        return str(value or "")


#: Commands that write a page, all in one file.
PAGES = {
    "dedup": line_of("dedup", NEWS, dry_run=True, report="page.html"),
    "compare": line_of(
        "compare", NEWS, clusters="family", recipes="default,ddd", thresholds=".5,.9", report="page.html"
    ),
    "explore": line_of("explore", NEWS, lengths="5", output="page.html"),
    "replay": line_of("replay", NEWS, window="24h", output="verdicts.csv", report="page.html"),
    "audit": line_of("audit", NEWS, sample=30, labels="families.csv", ignore_unknown=True, report="page.html"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_file_that_loads_nothing(
    name: str, folder_of_files: Path, corpus_folder: Callable[[str], Path]
) -> None:
    pytest.importorskip("altair", reason="Altair is not installed")
    pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    shutil.copy(corpus_folder("newswire") / "families.csv", folder_of_files / "families.csv")
    before = set(contents(folder_of_files))
    done = call(*PAGES[name], folder=folder_of_files)
    assert done.code == 0, done.err
    assert set(contents(folder_of_files)) - before - {"verdicts.csv"} == {"page.html"}
    page = (folder_of_files / "page.html").read_text("utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert not re.search(r"""(?:src|action)\s*=\s*["']?(?:https?:)?//|@import|<link[^>]*stylesheet""", page)


def test_a_report_changes_no_other_output(folder_of_files: Path) -> None:
    pytest.importorskip("altair", reason="Altair is not installed")
    pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    for folder, more in (("plain", {}), ("with_report", {"report": "with_report/page.html"})):
        (folder_of_files / folder).mkdir()
        files = {"output": f"{folder}/kept.jsonl", "duplicates": f"{folder}/duplicates.csv"}
        assert call(*line_of("dedup", NEWS, **files, **more), folder=folder_of_files).code == 0
    for name in ("kept.jsonl", "duplicates.csv"):
        assert (folder_of_files / "with_report" / name).read_bytes() == (folder_of_files / "plain" / name).read_bytes()


def test_labels_survive_a_store(folder_of_files: Path) -> None:
    store = {"store": "labels.db"}
    assert call(*line_of("label", NEWS, **store, import_="labels.csv"), folder=folder_of_files).code == 0
    assert call(*line_of("label", NEWS, **store, export="each.csv", each=True), folder=folder_of_files).code == 0
    assert call(*line_of("label", NEWS, store="again.db", import_="each.csv"), folder=folder_of_files).code == 0
    for name in ("labels.db", "again.db"):
        assert call(*line_of("label", NEWS, store=name, export=f"{name}.csv"), folder=folder_of_files).code == 0
    assert (folder_of_files / "labels.db.csv").read_bytes() == (folder_of_files / "again.db.csv").read_bytes()


@pytest.mark.parametrize("name", ["default", "simhash", "terms"])
def test_a_shown_recipe_is_that_recipe(name: str, folder_of_files: Path) -> None:
    output = call(*line_of("recipe show", name), folder=folder_of_files)
    assert output.code == 0, output.err
    (folder_of_files / "mine.toml").write_bytes(output.out)
    for summary, recipe in (("named.json", name), ("mine.json", "mine.toml")):
        assert (
            call(*line_of("dedup", NEWS, recipe=recipe, output="-", summary=summary), folder=folder_of_files).code == 0
        )
    named, mine = (json.loads((folder_of_files / one).read_text()) for one in ("named.json", "mine.json"))
    assert named["fingerprint"] == mine["fingerprint"]
    assert call(*line_of("recipe show", "mine.toml"), folder=folder_of_files).code == 0


def _process(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "neardup", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_process_gives_the_outputs_of_a_call(folder_of_files: Path) -> None:
    command = line_of("pairs", NEWS, json=True)
    with _process(*command, folder=folder_of_files) as started:
        out, err = started.communicate(timeout=300)
    assert Call(started.returncode, out, err.decode()) == call(*command, folder=folder_of_files)


def test_a_closed_pipe_ends_the_command_quietly(folder_of_files: Path) -> None:
    with _process(*line_of("pairs", NEWS, threshold=0.01, json=True), folder=folder_of_files) as started:
        assert started.stdout is not None
        started.stdout.close()
        assert started.stderr is not None
        message = started.stderr.read()
        started.wait(timeout=300)
    assert (started.returncode, b"Traceback" in message) == (1, False)
