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
    folder = tmp_path / "folder_of_files"
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
        "torn.parquet": "PAR1 no more of it",
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


#: What is refused, and the words that the sentence has: the value, and what helps.
REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a missing file": (dedup("missing.jsonl"), ("missing.jsonl",)),
    "a folder without documents": (dedup("nothing"), ("nothing", ".jsonl")),
    "a torn file": (dedup("torn.parquet"), ("torn.parquet",)),
    "a recipe that is no TOML": (dedup(NEWS, recipe="bad.toml"), ("bad.toml",)),
    "a recipe with a strange field": (dedup(NEWS, recipe="strange.toml"), ("nonsense",)),
    "a broken line where none may be": (dedup("broken.jsonl", strict=True), ("broken.jsonl", "4", "--strict")),
    "pairs to no format": (line_of("pairs", NEWS, output="pairs.xyz"), ("pairs.xyz", ".csv")),
    "no neighbours": (line_of("neighbors", NEWS, k=0, output="near.csv"), ("0", "--k")),
    "labels of strangers": (line_of("compare", NEWS, labels="strangers.csv"), ("zz", "--ignore-unknown")),
    "labels that are not there": (line_of("audit", NEWS, labels="missing.csv"), ("missing.csv",)),
    "a training on strangers": (line_of("train", NEWS, labels="strangers.csv", output="a.neardup"), ("zz",)),
    "one document to explore": (line_of("explore", "one.jsonl"), ("1",)),
    "a store that is not there": (line_of("label", NEWS, store="l.db", export="out.csv"), ("l.db",)),
    "a recipe to show that is none": (line_of("recipe show", "nosuch"), ("nosuch", "default")),
    "a recipe to check that is none": (line_of("recipe check", "bad.toml"), ("bad.toml",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_one_sentence_and_write_nothing(name: str, folder_of_files: Path) -> None:
    command, words = REFUSED[name]
    before = contents(folder_of_files)
    done = call(*command, folder=folder_of_files)
    assert done.code == 2
    assert done.out == b""
    # Where no run came before, one that is refused late has said that it compiles.
    message = re.sub(r"^neardup: compiling kernels.*\n", "", done.err)
    assert message.startswith("neardup: ")
    assert message.count("\n") == 1, message
    for word in words:
        assert word in message
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
    for folder, more in (("plain", {}), ("told", {"report": "told/page.html"})):
        (folder_of_files / folder).mkdir()
        files = {"output": f"{folder}/kept.jsonl", "duplicates": f"{folder}/duplicates.csv"}
        assert call(*line_of("dedup", NEWS, **files, **more), folder=folder_of_files).code == 0
    for name in ("kept.jsonl", "duplicates.csv"):
        assert (folder_of_files / "told" / name).read_bytes() == (folder_of_files / "plain" / name).read_bytes()


def test_labels_survive_a_store(folder_of_files: Path) -> None:
    store = {"store": "labels.db"}
    assert call(*line_of("label", NEWS, **store, import_="labels.csv"), folder=folder_of_files).code == 0
    assert call(*line_of("label", NEWS, **store, export="each.csv", each=True), folder=folder_of_files).code == 0
    assert call(*line_of("label", NEWS, store="again.db", import_="each.csv"), folder=folder_of_files).code == 0
    for name in ("labels.db", "again.db"):
        assert call(*line_of("label", NEWS, store=name, export=f"{name}.csv"), folder=folder_of_files).code == 0
    assert (folder_of_files / "labels.db.csv").read_bytes() == (folder_of_files / "again.db.csv").read_bytes()


def _process(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "neardup", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_process_gives_the_outputs_of_a_call(folder_of_files: Path) -> None:
    command = line_of("pairs", NEWS, json=True)
    with _process(*command, folder=folder_of_files) as started:
        out, err = started.communicate(timeout=120)
    assert Call(started.returncode, out, err.decode()) == call(*command, folder=folder_of_files)
