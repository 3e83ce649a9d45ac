"""``neardup label`` as a process, from its link to its end, and what it does with tables."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from labelling_room import TEXTS, Browser
from sentences import says
from typer.testing import CliRunner, Result

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
    """A store with labels of two."""
    path = tmp_path / "labels.db"
    with LabelStore(path) as made:
        said = [Judgement(pair, "anna", answer) for pair, answer in ANSWERS.items()]
        said += [Judgement(("a1", "a2"), "bob", "same"), Judgement(("c1", "c2"), "bob", "same")]
        made.record(said)
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


def test_a_corpus_without_documents_is_refused_and_leaves_no_store(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    told = refused(empty, "--store", tmp_path / "labels.db")
    assert says(told, "no documents", "nothing to ask", "name the files")
    assert list(tmp_path.iterdir()) == [empty]


def test_a_store_in_a_folder_that_is_not_there_is_refused(corpus: Path, tmp_path: Path) -> None:
    assert "nowhere" in refused(corpus, "--store", tmp_path / "nowhere" / "labels.db")


class Running:
    """The command, serving."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "neardup", "label", *map(str, arguments), "--no-browser"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUTF8": "1"},
        )
        self.said = ""
        found = None
        assert self.process.stderr is not None
        while not found:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said += line
            found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=\S+", line)
        self.browser = Browser(int(found[1]))
        assert self.browser.enter(found[0]).status == 200

    def ask(self, path: str, **sent: object) -> dict[str, object]:
        reply = self.browser.post(path, {"labeller": "anna"} | sent)
        assert reply.status == 200, reply.body
        found: dict[str, object] = reply.json
        return found

    def end(self, number: int | None = None) -> str:
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=300)
        assert out == ""
        assert self.process.returncode == 0, err
        return self.said + err

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def test_a_session_from_link_to_end(corpus: Path) -> None:
    """A kill -9 behind an answer loses nothing, and the next session goes on and ends by Ctrl-C."""
    arguments = (corpus, "--store", "labels.db", "--candidate-rule", "jaccard(words:2) >= 0.05", "--vector", "cheap")
    with Running(*arguments) as running:
        pair = running.ask("/api/state")["pair"]
        assert isinstance(pair, dict)
        assert "Title of " in pair["html"]
        shown = running.ask("/api/answer", pair=pair["ids"], answer="same")["pair"]
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.communicate()
    assert majority_labels("labels.db") == [(*pair["ids"], 1)]
    with Running(*arguments, "--labeller", "anna") as running:
        again = running.browser.post("/api/state", {}).json
        assert again["labeller"] == "anna"
        assert again["progress"]["mine"]["same"] == 1
        assert again["pair"] == shown
        running.ask("/api/answer", pair=again["pair"]["ids"], answer="different")
        said = running.end(signal.SIGINT)
    assert "label at http://127.0.0.1:" in said
    (given,) = (line for line in said.splitlines() if "given" in line)
    assert says(given, "1 label given", "labels.db now has 2:", "1 same, 1 different", "0 unsure")


@pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="two more processes; make test-long runs them")
@pytest.mark.parametrize("ending", ["browser", "SIGTERM"])
def test_a_session_may_end_in_other_ways(corpus: Path, ending: str) -> None:
    with Running(corpus, "--store", "labels.db", "--pairs", "1", "--vector", "cheap") as running:
        pair = running.ask("/api/state")["pair"]
        assert isinstance(pair, dict)
        assert running.ask("/api/answer", pair=pair["ids"], answer="different")["pair"] is None
        if ending == "browser":
            assert running.ask("/api/finish") == {"ended": True}
        assert "1 label given" in running.end(signal.SIGTERM if ending == "SIGTERM" else None)


def test_tables_out_and_in(corpus: Path, store: Path, tmp_path: Path) -> None:
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
    assert "does not exist" in refused(corpus, "--store", "missing.db", "--agreement")
    assert not Path("missing.db").exists()


def test_options_that_do_not_fit_are_refused_in_a_sentence(corpus: Path, store: Path, tmp_path: Path) -> None:
    base = (corpus, "--store", store)
    wrong = {
        ("--port", "70000"): "--port '70000' is not a whole number from 0 to 65,535",
        ("--port", "x"): "--port 'x' is not a whole number",
        ("--pairs", "0"): "--pairs '0' is not a whole number from 1 on",
        ("--shared", "2"): "--shared '2' is not a number from 0 to 1",
        ("--seed", "-1"): "--seed '-1' is not",
        ("--candidate-rule", "edit >= 0.5"): "candidate rule 'edit >= 0.5': edit is no measure of feature sets",
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


def test_what_is_refused_leaves_no_store_behind(corpus: Path) -> None:
    refused(corpus, "--store", "new.db", "--port", "70000")
    assert not Path("new.db").exists()


def test_another_corpus_is_refused(corpus: Path, store: Path) -> None:
    other = Path("other.jsonl")
    other.write_text(corpus.read_text().replace('"id": "', '"id": "x'))
    for options in ((), ("--agreement",), ("--export", "labels.csv")):
        assert "none is of this corpus" in refused(other, "--store", store, *options)
    assert not Path("labels.csv").exists()
