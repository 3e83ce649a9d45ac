"""``neardup label``: a session as a process, tables, agreement, refused options."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from labelling_room import TEXTS, Browser
from sentences import says

from neardup.cli.app import app
from neardup.labels.store import Judgement, LabelStore, majority_labels

ANSWERS = {("a1", "a2"): "same", ("b1", "b2"): "same", ("c1", "c2"): "different"}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six documents in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "news.jsonl"
    lines = [json.dumps({"id": name, "title": f"Title of {name}", "text": text}) for name, text in TEXTS.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with labels of two labellers."""
    path = tmp_path / "labels.db"
    with LabelStore(path) as made:
        made.record([Judgement(pair, "anna", answer) for pair, answer in ANSWERS.items()])
        made.record([Judgement(("a1", "a2"), "bob", "same"), Judgement(("c1", "c2"), "bob", "same")])
    return path


def neardup(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["label", *map(str, arguments)], prog_name="neardup")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments: str | Path) -> str:
    result = neardup(*arguments, code=2)
    assert result.stdout == ""
    *_, last = result.stderr.splitlines()
    return last.removeprefix("neardup: ")


def test_refused_commands_leave_no_store(corpus: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    message = refused(empty, "--store", tmp_path / "labels.db")
    assert says(message, "no documents", "nothing to label", "name other files")
    assert "nowhere" in refused(corpus, "--store", tmp_path / "nowhere" / "labels.db")
    refused(corpus, "--store", "new.db", "--port", "70000")
    assert "is missing or empty" in refused(corpus, "--store", "missing.db", "--agreement")
    assert {path.name for path in tmp_path.iterdir()} == {empty.name, corpus.name}


class Running:
    """The command as a process that serves the page; killed at the end of the block."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "neardup", "label", *map(str, arguments), "--no-browser"]
        environment = os.environ | {"PYTHONUTF8": "1"}
        self.process = subprocess.Popen(
            command,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.messages, link = "", None
        assert self.process.stderr is not None
        while not link:
            line = self.process.stderr.readline()
            assert line, self.messages
            self.messages += line
            link = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=\S+", line)
        self.browser = Browser(int(link[1]))
        assert self.browser.enter(link[0]).status == 200

    def ask(self, path: str, **sent: object) -> Any:
        reply = self.browser.post(path, {"labeller": "anna"} | sent)
        assert reply.status == 200, reply.body
        return reply.json

    def end(self, number: int | None = None) -> str:
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=300)
        assert out == ""
        assert self.process.returncode == 0, err
        return self.messages + err

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


_LONG = pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="another process; make test-long runs it")


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=_LONG), pytest.param(None, marks=_LONG)]
)
def test_a_session_stores_each_answer_and_ends_by_a_signal_or_from_the_page(corpus: Path, ending: int | None) -> None:
    with Running(corpus, "--store", "labels.db", "--pairs", "2", "--vector", "cheap", "--labeller", "anna") as running:
        state = running.browser.post("/api/state", {}).json
        assert state["labeller"] == "anna"
        assert "Title of " in state["pair"]["html"]
        running.ask("/api/answer", pair=state["pair"]["ids"], answer="same")
        assert majority_labels("labels.db") == [(*state["pair"]["ids"], 1)]
        if ending is None:
            assert running.ask("/api/finish") == {"ended": True}
        messages = running.end(ending)
    assert "label at http://127.0.0.1:" in messages
    (summary,) = (line for line in messages.splitlines() if "given" in line)
    assert says(summary, "1 label given", "labels.db now has 1:", "1 same, 0 different", "0 unsure")


@_LONG
def test_a_killed_session_loses_no_answer_and_the_next_one_continues(corpus: Path) -> None:
    arguments = (corpus, "--store", "labels.db", "--candidate-rule", "jaccard(words:2) >= 0.05", "--vector", "cheap")
    with Running(*arguments, "--labeller", "anna") as running:
        pair = running.ask("/api/state")["pair"]
        shown = running.ask("/api/answer", pair=pair["ids"], answer="same")["pair"]
    assert majority_labels("labels.db") == [(*pair["ids"], 1)]
    with Running(*arguments, "--labeller", "anna") as running:
        state = running.ask("/api/state")
        assert (state["progress"]["mine"]["same"], state["pair"]) == (1, shown)


def test_labels_are_exported_and_imported(corpus: Path, store: Path, tmp_path: Path) -> None:
    result = neardup(corpus, "--store", store, "--export", "labels.csv")
    assert result.stderr == "neardup: 2 rows written to labels.csv; left out: 0 unsure, 1 tied\n"
    assert Path("labels.csv").read_text() == "id1,id2,label,same,different,unsure\na1,a2,1,2,0,0\nb1,b2,1,1,0,0\n"
    neardup(corpus, "--store", store, "--export", "each.csv", "--each")
    result = neardup(corpus, "--store", "other.db", "--import", "each.csv", "--export", "labels.csv", "--force")
    assert "5 labels imported from each.csv\n" in result.stderr
    assert majority_labels("other.db") == majority_labels(store)
    result = neardup(corpus, "--store", "third.db", "--import", "labels.csv", "--labeller", "eve")
    assert "2 labels imported" in result.stderr


def test_agreement_is_printed(corpus: Path, store: Path) -> None:
    shown = neardup(corpus, "--store", store, "--agreement").stdout
    assert "anna, bob" in shown
    assert " 50% " in shown
    (found,) = json.loads(neardup(corpus, "--store", store, "--agreement", "--json").stdout)
    assert (found["pairs"], found["observed"], found["labellers"]) == (2, 0.5, ["anna", "bob"])
    with LabelStore("new.db"):
        pass
    assert "No two labellers" in neardup(corpus, "--store", "new.db", "--agreement").stdout


def test_unusable_options_are_refused(corpus: Path, store: Path, tmp_path: Path) -> None:
    base = (corpus, "--store", store)
    wrong = {
        ("--port", "70000"): "--port '70000' is not a whole number from 0 to 65,535",
        ("--port", "x"): "--port 'x' is not a whole number",
        ("--pairs", "0"): "--pairs '0' is not a whole number from 1 on",
        ("--shared", "2"): "--shared '2' is not a number from 0 to 1",
        ("--seed", "-1"): "--seed '-1' is not",
        ("--candidate-rule", "edit >= 0.5"): "candidate rule 'edit >= 0.5': edit is not a measure of feature sets",
        ("--vector", "nonsense"): "vector: 'nonsense' is not known",
        ("--labeller", " "): "labeller ' ' is not a valid name",
        ("--each",): "--each belongs to --export FILE",
        ("--export", "labels.txt"): "does not end in .csv",
        ("--export", str(store)): "does not end in .csv",
        ("--import", "missing.csv", "--labeller", "x"): "missing.csv cannot be read",
        ("--title-column", "nothing"): "no column 'nothing' for --title-column",
        ("--vector", "hours_apart, numbers"): "--time-column",
        ("--candidate-rule", "jaccard(words:3) >= 0.99"): "lower the number in --candidate-rule",
        ("--html", "--content", "tags"): "--html is short for",
    }
    for options, message in wrong.items():
        assert message in refused(*base, *options), options
    neardup(*base, "--export", "labels.csv")
    assert "exists" in refused(*base, "--export", "labels.csv")


def test_another_corpus_is_refused(corpus: Path, store: Path) -> None:
    other = Path("other.jsonl")
    other.write_text(corpus.read_text().replace('"id": "', '"id": "x'))
    for options in ((), ("--agreement",), ("--export", "labels.csv")):
        assert "none is of this corpus" in refused(other, "--store", store, *options)
    assert not Path("labels.csv").exists()
