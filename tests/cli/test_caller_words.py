"""Messages name an option as the caller writes it: as a keyword in Python, as --option on the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calling import neardup, write_lines
from trained import DATED, SETS, trained

import neardup as nd
from neardup.errors import NeardupError
from neardup.evaluation.labels import read_labels

SOURCE = Path(nd.__file__).parent
#: What nobody but the command line reaches, and the module that writes a command.
COMMANDS: tuple[str, ...] = (
    "cli/",
    "watch/",
    "replay/",
    "labelling/",
    "spark/running",
    "spark/ending",
    "spark/workers",
)
COMMANDS += ("spark/streaming/watching", "spark/streaming/files", "exploring/reasons")
FLAG = re.compile(r"(?<![\w-])--[a-z]")

TEXTS = ["a rose is a rose is a rose", "a rose is a rose is a tulip", "a daisy"]
TABLE = {"name": ["x", "y", "z"], "one": TEXTS, "two": TEXTS}
NAMED = {"id": ["a", "b", "c"], "text": TEXTS}
RULES: dict[str, Any] = {"features": "words:1", "threshold": 0.5}


def saved(tmp_path: Path) -> Any:
    decision = trained()
    decision.save(tmp_path / "d.neardup")
    decision.save(tmp_path / "d.neardup")


def strict(tmp_path: Path) -> Any:
    lines = tmp_path / "broken.jsonl"
    lines.write_text('{"text": "a"}\n{broken\n')
    nd.dedup_files(lines, strict=True)


def quarantined(tmp_path: Path) -> Any:
    taken = tmp_path / "taken.html"
    taken.write_text("mine")
    nd.dedup(TEXTS, **RULES).report(taken)


CALLS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "text column": (lambda _: nd.dedup(TABLE), "text_column"),
    "no such text column": (lambda _: nd.dedup(TABLE, text_column="three"), "text_column"),
    "no such id column": (lambda _: nd.dedup(NAMED, id_column="key"), "id_column"),
    "time column": (lambda _: nd.dedup(NAMED, keep="newest"), "time_column"),
    "strict": (strict, "strict"),
    "force": (quarantined, "force=True"),
    "one text": (lambda _: nd.dedup("a rose"), "nd.open_files"),
    "an existing decision": (saved, "force=True"),
    "a learned recipe": (lambda _: nd.dedup(TEXTS, recipe="terms-svm"), "decision"),
    "measure learned": (lambda _: nd.Recipe(measure="learned"), "decision"),
    "then learned": (lambda _: nd.dedup(TEXTS, then="learned(0123456789abcdef)"), "decision"),
    "titles": (lambda _: nd.dedup(NAMED, decision=trained(DATED)), "title_column"),
    "a cut": (lambda _: nd.dedup(NAMED, decision=trained(SETS)).at(0.9), "at_precision"),
    "row numbers": (lambda _: nd.neighbors(TEXTS, 1, of=["a"], features="words:1"), "id_column"),
    "no labels": (lambda _: nd.compare(NAMED), "labels"),
    "unknown ids": (lambda _: nd.compare(NAMED, [("a", "zz", 1)]), "ignore_unknown=True"),
    "no label column": (lambda _: nd.compare(NAMED, {"id1": ["a"], "id2": ["b"], "said": [1]}), "label_column"),
    "only": (lambda _: nd.compare(NAMED, [("a", "b", 1)], only="label"), "only"),
    "only duplicates": (lambda _: nd.compare(NAMED, [("a", "b", 1)]), "complete=True"),
    "no duplicates": (lambda _: nd.compare(NAMED, [("a", "b", 0)]), "positive"),
    "two labels": (lambda _: nd.compare(NAMED, [("a", "b", 0), ("b", "a", 1)]), "only="),
    "audited column": (lambda _: nd.audit(NAMED, {"id1": ["a"], "id2": ["b"]}, net=0.1, **RULES), "label_column"),
    "no net": (lambda _: nd.audit(NAMED, features="words:1", threshold=0.3), "net"),
    "too few labels": (lambda _: nd.train(NAMED, [("a", "b", 1), ("a", "c", 0)]), "net="),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_in_python_name_keywords(name: str, tmp_path: Path) -> None:
    call, word = CALLS[name]
    with pytest.raises(NeardupError) as refused:
        call(tmp_path)
    assert word in str(refused.value)
    assert not FLAG.search(str(refused.value))


def test_notes_in_python_name_keywords(tmp_path: Path) -> None:
    texts = [" ".join(f"w{i // 2}x{j}" for j in range(9)) + f" {i}" for i in range(200)]
    page = tmp_path / "r.html"
    with nd.dedup(texts, **RULES) as result:
        result.report(page, families=3, rows=3)
    content = page.read_text("utf-8")
    assert "(families)" in content
    assert "(rows)" in content
    assert "around=0.2" in content
    assert "--report" not in content.partition("<script")[0]


def test_the_same_errors_on_the_command_line_name_options(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "t.jsonl", [{"name": "x", "one": "a", "two": "b"}])
    named = write_lines(tmp_path / "n.jsonl", [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}])
    labels = tmp_path / "labels.csv"
    labels.write_text("id1,id2,label\na,zz,1\n")
    for words, command in {
        "--text-column": ("dedup", table, "--dry-run"),
        "--time-column": ("dedup", named, "--dry-run", "--keep", "newest"),
        "--force": ("dedup", named, "-o", table),
        "--ignore-unknown": ("compare", named, "--labels", labels),
        "--decision": ("dedup", named, "--dry-run", "--recipe", "terms-svm"),
    }.items():
        assert words in neardup(*command, code=2).stderr
    # What a command left behind it does not change how Python speaks.
    with pytest.raises(NeardupError, match="ignore_unknown=True"):
        read_labels(labels, ["a", "b"])


def _docstrings(tree: ast.AST) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(id(body[0].value))
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_options_are_named_through_one_function(path: Path) -> None:
    if str(path.relative_to(SOURCE)).startswith(COMMANDS):
        return
    tree = ast.parse(path.read_text("utf-8"))
    allowed = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "option":
            allowed |= {id(part) for argument in node.args for part in ast.walk(argument)}
    written = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in allowed]
    assert [text for text in written if isinstance(text, str) and FLAG.search(text)] == []
