"""Every example in the documents is run, and must print what they show."""

from __future__ import annotations

import doctest
import glob
import gzip
import importlib
import re
import shlex
import shutil
import subprocess
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from paths import ROOT

import neardup.documents
from neardup.cli.app import app
from neardup.documents.inputs import INPUT_KIND_OF_SUFFIX, TEXT_SUFFIXES
from neardup.recipe import load_recipe, names
from neardup.spark import engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The modules that show examples in their docstrings.
MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "src").rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> str:
    return "\n".join(body for name, body in BLOCK.findall(page.read_text("utf-8")) if name == language)


def pages_with(language: str, *, on_spark: bool = False) -> pytest.MarkDecorator:
    """Run a test on each page with blocks of a language, of which some run on Spark or none."""
    shown = {page: blocks(page, language) for page in PAGES}
    pages = [page for page, code in shown.items() if code and ("--engine spark" in code) == on_spark]
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


@pages_with("python")
def test_python_examples(page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(blocks(page, "python"), {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert result.attempted > 0
    assert result.failed == 0


@pages_with("console")
def test_console_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    for session in re.split(r"^\$ ", blocks(page, "console"), flags=re.MULTILINE):
        if not session.strip():
            continue
        command, _, expected = session.partition("\n")
        words = shlex.split(command)
        code, printed = (run_in_process if words[0] == "neardup" else run_subprocess)(words)
        assert code == 0, printed
        got = re.sub(r"^neardup: compiling kernels.*\n", "", printed)
        assert doctest.OutputChecker().check_output(expected.rstrip() + "\n", got.rstrip() + "\n", FLAGS), (
            f"$ {command}\n--- shown:\n{expected}\n--- printed:\n{printed}"
        )


@pages_with("console", on_spark=True)
def test_console_examples_on_spark(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.setattr(engine, "session", lambda *_, **__: nullcontext(spark))
    test_console_examples(page, tmp_path, monkeypatch)


def run_in_process(words: list[str]) -> tuple[int, str]:
    """Run the command in this process, where everything is loaded, with both streams in one file as in one pipe."""
    with TemporaryDirectory() as folder:
        printed = Path(folder) / "printed"
        with (
            printed.open("a") as out,
            printed.open("a", buffering=1) as err,
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            app(words[1:], prog_name="neardup")
        return int(ended.value.code or 0), printed.read_text("utf-8")


def run_subprocess(words: list[str]) -> tuple[int, str]:
    """Run a command as a process of its own."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


ROWS = [{"id": f"{n}", "text": f"The board of harbour {n} voted on Monday to widen the canal."} for n in range(2)]
_TEXT = ROWS[0]["text"].encode()
_HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body><p>" + _TEXT + b"</p></body></html>"
_MAIL = b"From: a@a.org\nMessage-ID: <1@a.org>\nDate: Mon, 6 May 2024 10:00:00 +0200\n\n" + _TEXT + b"\n"
_WARC = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.org/\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
_CUE = b"1\n00:00:01,000 --> 00:00:02,000\n" + _TEXT + b"\n"
#: The files that the examples of formats read, except tables.
EXAMPLES = {
    "crawl.warc.gz": gzip.compress(_WARC % (len(_HTTP), _HTTP)),
    "list1.mbox": b"From a@a.org Mon May  6 10:00:00 2024\n" + _MAIL,
    "list2.mbox": b"From a@a.org Mon May  6 10:00:00 2024\n" + _MAIL,
    "mails/1.eml": _MAIL,
    "Maildir/cur/1700000001.M1.host:2,S": _MAIL,
    "Maildir/new/1700000002.M1.host": _MAIL,
    "pages/1.html": b"<html><body><p>" + _TEXT + b"</p></body></html>",
    "texts/1.txt": _TEXT,
    "texts/2": _TEXT,
    "film1.srt": _CUE,
    "film2.vtt": b"WEBVTT\n\n" + _CUE.replace(b",000", b".000"),
    "src/a.py": b"import os, sys\n\nprint(os.name, sys.path)\n",
}
FORMATS = re.findall(r"^\| .* \| `(neardup .*)` \|$", (ROOT / "docs" / "input.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", FORMATS)
def test_every_format_has_an_example_that_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in EXAMPLES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for suffix in (".parquet", ".jsonl", ".csv", ".arrow"):
        neardup.documents.write_table(pa.Table.from_pylist(ROWS), f"news{suffix}")
    words = [name for word in shlex.split(command) for name in (sorted(glob.glob(word)) or [word])]
    code, printed = run_in_process(words)
    assert code == 0, printed
    output = tmp_path / words[-1]
    assert list(output.iterdir()) if output.is_dir() else output.stat().st_size


def test_every_format_has_a_line_of_example() -> None:
    table = (ROOT / "docs" / "input.md").read_text("utf-8").split("\n\n")[2].splitlines()
    assert len(FORMATS) == len(table) - 2
    suffixes = {name for row in table for name in re.findall(r"`(\.\w+)`", row)}
    assert set(INPUT_KIND_OF_SUFFIX) <= suffixes <= {*INPUT_KIND_OF_SUFFIX, *TEXT_SUFFIXES}


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert result.attempted > 0
    assert result.failed == 0


def test_links_lead_to_existing_files() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_site_has_every_page() -> None:
    # MkDocs would refuse what this finds, but it is installed only where the site is built.
    named = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert named == {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.parent != ROOT}


def test_the_page_of_methods_shows_the_settings_of_named_recipes() -> None:
    text = (ROOT / "docs" / "methods" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\([\w-]+\.md\) \| (.*?) \| ", text, re.MULTILINE)
    assert dict(rows) == {name: load_recipe(name).in_words() for name in names()}


def test_the_architecture_names_existing_rooms_and_files() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rooms = [name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)/?`", row)]
    source = ROOT / "src" / "neardup"
    there = {
        path.name.removesuffix(".py") for path in source.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))
    }
    assert set(rooms) == {name for name in there if not name.startswith("_")} - {"version"}
    for name in re.findall(r"`(\w+/[\w/]+\.(?:py|js|html))`", text):
        assert (source / name).is_file() or (ROOT / name).is_file(), name
