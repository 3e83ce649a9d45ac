"""Messages name an option as the caller writes it, and a missing package before anything is written."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classifiers import DATED, SETS, labelled, make_classifier, write_labels
from commands import names_in, neardup, write_lines
from sentences import says

import neardup as nd
from neardup.errors import NeardupError, RecipeError
from neardup.labels.labels import read_labels
from neardup.service.server import check_packages

SOURCE = Path(nd.__file__).parent


#: What nobody but the command line reaches, and the module that writes a command.
COMMANDS: tuple[str, ...] = (
    *("__main__", "cli/", "watch/", "labelling/", "spark/engine", "spark/cluster", "spark/session"),
    *("stream/replay", "exploration/advice", "recipe/recipe"),
)
FLAG = re.compile(r"(?<![\w-])--[a-z]")
TEXTS = ["a rose is a rose is a rose", "a rose is a rose is a tulip", "a daisy"]
TABLE = {"name": ["x", "y", "z"], "one": TEXTS, "two": TEXTS}
DOCUMENTS = {"id": ["a", "b", "c"], "text": TEXTS}
RULES: dict[str, Any] = {"features": "words:1", "threshold": 0.5}


def read_strictly(tmp_path: Path) -> Any:
    lines = tmp_path / "broken.jsonl"
    lines.write_text('{"text": "a"}\n{broken\n')
    nd.dedup_files(lines, strict=True)


def replace_report(tmp_path: Path) -> Any:
    taken = tmp_path / "taken.html"
    taken.write_text("mine")
    nd.dedup(TEXTS, **RULES).report(taken)


CALLS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "text column": (lambda _: nd.dedup(TABLE), "text_column"),
    "no such column to keep by": (lambda _: nd.dedup(DOCUMENTS, keep="newst"), "'newst' for keep (which takes first, "),
    "no such clusters": (lambda _: nd.compare(DOCUMENTS, clusters="famly"), "'famly' for clusters;"),
    "time column": (lambda _: nd.dedup(DOCUMENTS, keep="newest"), "time_column"),
    "strict": (read_strictly, "strict"),
    "force": (replace_report, "force=True"),
    "one text": (lambda _: nd.dedup("a rose"), "nd.open_files"),
    "measure learned": (lambda _: nd.Recipe(measure="learned"), "classifier"),
    "titles": (lambda _: nd.dedup(DOCUMENTS, classifier=make_classifier(DATED)), "title_column"),
    "a cut": (lambda _: nd.dedup(DOCUMENTS, classifier=make_classifier(SETS)).at(0.9), "at_precision"),
    "row numbers": (lambda _: nd.neighbors(TEXTS, 1, of=["a"], features="words:1"), "id_column"),
    "unknown ids": (lambda _: nd.compare(DOCUMENTS, [("a", "zz", 1)]), "ignore_unknown=True"),
    "only": (lambda _: nd.compare(DOCUMENTS, [("a", "b", 1)], only="label"), "only"),
    "only duplicates": (lambda _: nd.compare(DOCUMENTS, [("a", "b", 1)]), "complete=True"),
    "two labels": (lambda _: nd.compare(DOCUMENTS, [("a", "b", 0), ("b", "a", 1)]), "only="),
    "audited column": (
        lambda _: nd.audit(DOCUMENTS, {"id1": ["a"], "id2": ["b"]}, candidate_rule=0.1, **RULES),
        "label_column",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_in_python_name_keywords(name: str, tmp_path: Path) -> None:
    call, word = CALLS[name]
    with pytest.raises(NeardupError) as refused:
        call(tmp_path)
    assert word in str(refused.value)
    assert not FLAG.search(str(refused.value))


def test_pages_made_in_python_name_keywords(tmp_path: Path) -> None:
    texts = [" ".join(f"w{i // 2}x{j}" for j in range(9)) + f" {i}" for i in range(200)]
    page = tmp_path / "r.html"
    with nd.dedup(texts, **RULES) as result:
        result.report(page, families=3, rows=3)
    content = page.read_text("utf-8")
    assert "(families)" in content
    assert "(rows)" in content
    assert "margin=0.2" in content
    assert "--report" not in content.partition("<script")[0]


def test_errors_on_the_command_line_name_options(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "t.jsonl", [{"name": "x", "one": "a", "two": "b"}])
    named = write_lines(tmp_path / "n.jsonl", [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}])
    labels = tmp_path / "labels.csv"
    labels.write_text("id1,id2,label\na,zz,1\n")
    for words, command in {
        "--text-column": ("dedup", table, "--dry-run"),
        "--time-column": ("dedup", named, "--dry-run", "--keep", "newest"),
        "--force": ("dedup", named, "-o", table),
        "--ignore-unknown": ("compare", named, "--labels", labels),
        "--classifier": ("dedup", named, "--dry-run", "--recipe", "terms-svm"),
    }.items():
        assert words in neardup(*command, code=2).stderr
    # What a command left behind it does not change how Python speaks.
    with pytest.raises(NeardupError, match="ignore_unknown=True"):
        read_labels(labels, ["a", "b"])


KEYWORDS: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "a report's": (lambda path: nd.dedup(TEXTS).report(path / "r.html", famlies=3), ("'famlies'", "families")),  # type: ignore[call-arg]
    "recall": (lambda _: nd.dedup(TEXTS, recall=0.9), ("recall 0.9", "'lsh'")),
    "seed": (lambda _: nd.Index(seed=4), ("seed 4", "'lsh'")),
    "memory": (lambda _: nd.dedup(TEXTS, memory=1), ("memory 1 ", "memory='500MB'")),
    "sample": (lambda _: nd.Index(sample=TEXTS), ("sample", "leave it out")),
    "keep": (lambda _: nd.query(TEXTS, "a rose", keep="longest"), ("keep longest", "leave it out")),
    "of and first": (lambda _: nd.neighbors(DOCUMENTS, 1, of=["a"], first=1), ("of ", "first 1", "one of the two")),
    "an audit's": (lambda _: nd.audit(DOCUMENTS, ignore_unknown=True), ("ignore_unknown", "give labels")),
    "a recipe": (lambda _: nd.dedup(TEXTS, recipe=3), ("recipe 3", "TOML file")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_that_would_be_ignored_are_refused(name: str, tmp_path: Path) -> None:
    call, parts = KEYWORDS[name]
    with pytest.raises(RecipeError) as caught:
        call(tmp_path)
    assert says(caught.value, *parts)
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_can_be_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('features = "words:1"\nthreshold = 0.5\n')
    assert nd.dedup(TEXTS, recipe=path).summary["dropped"] == 1
    assert nd.Index(recipe=path).recipe.threshold == 0.5
    assert nd.dedup(TEXTS, recipe=path, threshold=0.99).summary["dropped"] == 0


def _docstrings(tree: ast.AST) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(id(body[0].value))
    return found


def test_messages_name_options_through_one_function() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        if str(path.relative_to(SOURCE)).startswith(COMMANDS) or not FLAG.search(text):
            continue
        tree = ast.parse(text)
        allowed = _docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "option":
                allowed |= {id(part) for argument in node.args for part in ast.walk(argument)}
        written = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in allowed]
        assert [word for word in written if isinstance(word, str) and FLAG.search(word)] == [], path


WITH_STORE = "{corpus}", "--store", "{out}/labels.db", "--no-browser"
WITH_TABLES = "--duplicates", "{out}/dups.csv", "--quarantine", "{out}/q.jsonl"


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("sklearn", "label", ("label", *WITH_STORE)),
        ("uvicorn", "label", ("audit", "--candidate-rule", "0.2", *WITH_STORE)),
        ("altair", "report", ("dedup", "{corpus}", "-o", "{out}/o.jsonl", *WITH_TABLES, "--report", "{out}/r.html")),
        ("vl_convert", "report", ("audit", "{corpus}", "--report", "{out}/r.html")),
        ("altair", "report", ("explore", "{corpus}", "-o", "{out}/r.html")),
        ("altair", "report", ("replay", "{corpus}", "--report", "{out}/r.html", "--store", "{out}/s.db")),
        ("altair", "report", ("compare", "{corpus}", "--labels", "{labels}", "-o", "{out}/r.html")),
        ("trafilatura", "html", ("dedup", "{corpus}", "--html", "-o", "{out}/o.jsonl", *WITH_TABLES)),
        ("sklearn", "learn", ("train", "{corpus}", "--labels", "{labels}", "--quarantine", "{out}/q.jsonl")),
    ],
)
def test_a_missing_package_is_reported_before_anything_is_written(
    package: str, extra: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, pairs = labelled(mistakes=9)
    corpus = write_lines(tmp_path / "corpus.jsonl", [*texts.rows, {"id": "no text"}])
    out = tmp_path / "out"
    out.mkdir()
    places = {"corpus": corpus, "labels": write_labels(tmp_path / "labels.csv", pairs), "out": out}
    monkeypatch.setitem(sys.modules, package, None)
    stderr = neardup(*(part.format_map(places) for part in command), code=2).stderr
    *_, last = stderr.splitlines()
    if command[0] == "train":
        # What takes ten seconds is not begun in vain.
        assert stderr == f"{last}\n"
    assert f"neardup[{extra}]" in last
    # What the command would refuse is no way out.
    assert "or write" not in last
    assert names_in(out) == set()


@pytest.mark.parametrize(
    "command",
    [
        ("label", "{missing}", "--store", "{out}/labels.db"),
        ("label", "{corpus}", "--store", "{out}/labels.db", "--import", "{corpus}", "--labeller", "anna"),
        ("label", "{corpus}", "--store", "{out}/labels.db", "--import", "{labels}"),
        ("audit", "{corpus}", "--store", "{out}/labels.db", "--candidate-rule", "nonsense"),
    ],
)
def test_a_store_is_created_only_when_there_is_a_label_to_keep(command: tuple[str, ...], tmp_path: Path) -> None:
    texts, _ = labelled(mistakes=9)
    corpus = write_lines(tmp_path / "corpus.jsonl", texts.rows)
    labels = tmp_path / "labels.csv"
    labels.write_text("id1,id2,label\nd0,d1,1\n")
    out = tmp_path / "out"
    out.mkdir()
    places = {"corpus": corpus, "labels": labels, "out": out, "missing": tmp_path / "missing.csv"}
    neardup(*(part.format_map(places) for part in command), code=2)
    assert names_in(out) == set()


def test_extras_are_named_in_one_form() -> None:
    sources = [path.read_text("utf-8") for path in Path(nd.__file__).parent.rglob("*.py")]
    named = [found for source in sources for found in re.findall(r"pip install.*", source)]
    assert len(named) > 8
    assert [one for one in named if not re.match(r"pip install 'neardup\[[a-z{}]+\]'(``)? brings", one)] == []
    with pytest.raises(NeardupError, match=r"^the tools need nothing_of_that_name, which is not installed;"):
        check_packages("mcp", "nothing_of_that_name")
