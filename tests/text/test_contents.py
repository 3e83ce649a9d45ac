"""The content of pages: articles without their surroundings, by processes that a page may crash, hang or fill."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from commands import NEVER, start_process, wait_for_end
from hypothesis import given
from hypothesis import strategies as st
from paths import SHARED
from web_pages import needs_fast_html, needs_html, page, paragraphs

import neardup as nd
from neardup.runtime import default_threads
from neardup.text.contents import article_of, content_of, contents_of, end_workers
from neardup.text.encoding import decode_page
from neardup.text.html import strip_tags

HTML = SHARED / "html"
BOTH = [pytest.param("html", marks=needs_html), pytest.param("html-fast", marks=needs_fast_html)]


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def alike(left: str, right: str) -> float:
    a, b = words(left), words(right)
    return (a & b).total() / max(1, (a | b).total())


@pytest.mark.parametrize("name", BOTH)
def test_different_articles_under_the_same_navigation_give_different_texts(name: str) -> None:
    pages = [page(paragraphs(seed), 1) for seed in range(4)]
    texts = contents_of(pages, name)
    # The generated articles share their few words; anything else that they share is navigation.
    own = [alike("\n".join(paragraphs(a)), "\n".join(paragraphs(b))) for a, b in combinations(range(4), 2)]
    found = [alike(a, b) for a, b in combinations(texts, 2)]
    assert all(abs(a - b) < 0.03 for a, b in zip(own, found, strict=True))
    assert min(alike(strip_tags(a), strip_tags(b)) for a, b in combinations(pages, 2)) > max(found)
    assert not any("section" in text for text in texts)


DEEP = "<div>" * 6_000 + "words " * 30
LONG_TAG = f"<p {' '.join(f'a{i}' for i in range(99_999))}>"


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    ("markup", "text", "fallback"),
    [
        ("\0" * 100, "", "little"),
        ("<p>Short.</p>", "Short.", "little"),
        (DEEP, ("words " * 30).strip(), "deep"),
        ("<p>x</p>" * 20_001, "\n".join("x" * 20_001), "tags"),
        ("word " * 800_001, ("word " * 800_001).strip(), "long"),
    ],
    ids=["nul", "short", "deep", "tags", "long"],
)
def test_pages_without_an_article_give_all_their_text(name: str, markup: str, text: str, fallback: str) -> None:
    assert article_of(markup, name) == (text, fallback, "")


@pytest.mark.parametrize("name", BOTH)
def test_long_tags_take_no_quadratic_time(name: str) -> None:
    text = " ".join(paragraphs(1))
    found = article_of(f"<html><body>{LONG_TAG}{text}</p></body></html>", name)
    assert (" ".join(found.text.split()), found.fallback) == (text, "")


_MARKUP = ["<div", "<table>", "<html><body>", "<![CDATA[", "words and words ", "é新📰", "\x08", "\ud800", "&#0;"]
_MARKUP += [
    "&amp",
    "<title>",
    "<a href='",
    "</body>",
    "<",
    ">",
    "<!--",
    "-->",
    '"',
    "=",
    "</p>",
    "<script>",
    "</script>",
]


@pytest.mark.parametrize("name", BOTH)
@given(st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(_MARKUP), max_size=50).map("".join)))
def test_no_markup_fails(name: str, markup: str | bytes) -> None:
    text = markup if isinstance(markup, str) else decode_page(markup)
    found = article_of(text, name)
    assert found.fallback in ("", "little")
    assert found.text or not strip_tags(text)


@pytest.mark.parametrize(("name", "least"), [pytest.param("html", 0.96, marks=needs_html), ("html-fast", 0.90)])
@pytest.mark.shared
@pytest.mark.skipif(not HTML.is_dir(), reason="the pages are not in ../shared/data beside the project")
def test_the_articles_of_real_pages_are_found(name: str, least: float) -> None:
    rows = [json.loads(line) for line in (HTML / "gold.jsonl").read_text("utf-8").splitlines()]
    pages = [decode_page((HTML / "pages" / f"{row['id']}.html").read_bytes()) for row in rows]
    articles = [article_of(content, name) for content in pages]
    assert {article.fallback for article in articles} == {""}

    def mean_f1(texts: list[str]) -> float:
        pairs = [(words(row["text"]), words(text)) for row, text in zip(rows, texts, strict=True)]
        return mean(2 * (a & b).total() / (a.total() + b.total()) for a, b in pairs)

    assert mean_f1([article.text for article in articles]) > least
    assert mean_f1([strip_tags(content) for content in pages]) < 0.75


#: A library in place of the real one: it does what a page says, and notes the process of each call.
LIBRARY = """
import ctypes, os, pathlib, re, time
from neardup.text import extraction

extraction.CPU_LIMIT_S, extraction.WALL_LIMIT_S, extraction.MEMORY_LIMIT = 0.5, 4.0, 400_000_000
HERE = pathlib.Path(__file__).parent

def extract(markup, **options):
    with open(HERE / "calls", "a") as calls:
        calls.write(f"{os.getpid()}\\n")
    if "do-raise" in markup:
        raise RecursionError
    if "do-crash" in markup:
        ctypes.string_at(0)
    if "do-exit" in markup:
        os._exit(7)
    if "do-fill" in markup:
        bytearray(10**9)
    if "do-spin" in markup:
        # Holds the lock of the interpreter.
        re.match("(a|a)*$", "a" * 40 + "b")
    if "do-print" in markup:
        print("a message", flush=True)
    if "do-sleep" in markup:
        time.sleep(600)
    if "do-wait" in markup and not (HERE / "waited").exists():
        (HERE / "waited").touch()
        time.sleep(600)
    return f"The article of a page without its navigation: {re.sub('<[^>]*>', '', markup)}"
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a library in place of the real one, for this process and those that it starts."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "trafilatura.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    end_workers()
    yield folder
    end_workers()


def processes(library: Path) -> list[int]:
    """The process of each call of the library."""
    with suppress(FileNotFoundError):
        return [int(line) for line in (library / "calls").read_text().split()]
    return []


def wait_until_called(library: Path) -> None:
    deadline = time.monotonic() + NEVER
    while not processes(library):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def wait_until_ended(pids: list[int]) -> None:
    deadline = time.monotonic() + NEVER
    while not all(map(has_ended, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def article(number: int) -> str:
    return f"<p>{' '.join(f'word{number}x{i}' for i in range(40))}</p>"


FAULTS = {
    "raise": "the library raised RecursionError",
    "crash": "its process ended by SIGSEGV",
    "exit": "its process ended with exit code 7",
    "fill": "the library raised MemoryError",
    "spin": "it took more than 20 s",
    "sleep": "it took more than 20 s",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_that_fails_costs_only_that_page(library: Path, fault: str) -> None:
    pages = [article(number) for number in range(50)]
    pages[7] = pages[7].replace("word7x20", f"do-{fault}")
    results = [nd.dedup(pages, content="html", threads=threads) for threads in (1, 3)]
    for result in results:
        assert result.kept == list(range(50))
        assert result.summary["failed_pages"] == {FAULTS[fault]: 1}
        assert result.explain(0, 7).right == strip_tags(pages[7])
        assert result.explain(7, 8).right.startswith("The article of a page")


def test_failed_pages_are_named(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in range(9):
        order = " do-crash" if number in (2, 5) else " do-print"
        (folder / f"{number}.html").write_text(article(number) + order)
    found = start_process("dedup", folder, "--html", "-o", f"{tmp_path}/out/", "--summary", tmp_path / "s.json")
    code, stdout, stderr = wait_for_end(found)
    assert (code, stdout) == (0, "")
    for number in (2, 5):
        assert f"{number}.html: its process ended by SIGSEGV; all of its text is compared" in stderr
    assert "9 documents: 9 kept" in stderr
    assert "its process ended by SIGSEGV: 2" in stderr
    assert "a message" not in stderr
    assert json.loads((tmp_path / "s.json").read_text())["failed_pages"] == {"its process ended by SIGSEGV": 2}
    wait_until_ended(processes(library))


@pytest.mark.parametrize("command", ["explore", "compare", "index build"])
def test_every_command_names_failed_pages(library: Path, tmp_path: Path, command: str) -> None:
    rows = [{"id": str(i), "topic": str(i // 2), "text": article(i // 2)} for i in range(20)]
    rows[7]["text"] += " do-crash"
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options: dict[str, list[str]] = {
        "explore": ["--no-curve"],
        "compare": ["--clusters", "topic", "--recipes", "default"],
        "index build": ["-o", str(tmp_path / "index")],
    }
    found = start_process(*command.split(), tmp_path / "pages.jsonl", "--html", "--json", *options[command])
    code, stdout, stderr = wait_for_end(found)
    assert code == 0, stderr
    assert f"{tmp_path}/pages.jsonl, record 8: its process ended by SIGSEGV; all of its text is compared" in stderr
    assert stderr.count("SIGSEGV") == 1
    assert json.loads(stdout)["failed_pages"] == {"its process ended by SIGSEGV": 1}


@pytest.mark.parametrize("content", ["html-fast", "tags"])
def test_a_watcher_takes_the_contents_of_recipes(library: Path, tmp_path: Path, content: str) -> None:
    # trafilatura would crash; the chosen content alone is extracted.
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in range(2):
        (inbox / f"{number}.html").write_text(f"<p>do-crash {article(1)}<!-- {number} -->")
    found = start_process(
        "watch", inbox, "--content", content, "--store", tmp_path / "n.db", "--originals", tmp_path / "out", "--once"
    )
    code, _, stderr = wait_for_end(found)
    assert (code, "do-crash" in stderr, processes(library)) == (0, False, [])
    assert len(list((tmp_path / "out").iterdir())) == 1, stderr


def test_a_flow_counts_and_names_failed_pages(library: Path, caplog: pytest.LogCaptureFixture) -> None:
    with nd.Index(content="html") as index:
        index.add_many([nd.Document(str(i), article(i) + ("do-crash" if i == 2 else "")) for i in range(4)])
        assert index.failed_pages == 1
    assert [record.getMessage() for record in caplog.records] == [
        "page without its main content: 2: its process ended by SIGSEGV; all of its text is compared"
    ]


def test_a_reference_and_repeated_pages_are_named(library: Path) -> None:
    pages = [article(1), article(2) + "do-exit", article(2) + "do-exit"]
    for _ in range(2):
        result = nd.dedup(pages, against=[article(5), pages[1]], content="html")
        assert result.summary["failed_pages"] == {"its process ended with exit code 7": 3}


def test_a_process_that_somebody_ends_costs_nothing(library: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(content_of, article(1) + "do-wait", "html")
        wait_until_called(library)
        os.kill(processes(library)[0], signal.SIGKILL)
        assert found.result().startswith("The article of a page")
    for number in signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV:
        os.kill(processes(library)[-1], number)
        wait_until_ended(processes(library)[-1:])
        assert content_of(article(number), "html").startswith("The article of a page")
    assert len(set(processes(library))) == 5


@pytest.mark.parametrize("threads", [1, 4])
def test_equal_pages_are_extracted_once(library: Path, threads: int) -> None:
    pages = [article(number % 30) for number in range(600)]
    result = nd.dedup(pages, content="html", threads=threads, second_step="edit >= 0.9")
    assert result.kept == list(range(30))
    assert len(processes(library)) == 30
    assert len(set(processes(library))) <= min(threads, default_threads())


def test_threads_of_a_service_get_their_own_contents(library: Path) -> None:
    pages = [article(number % 7 if number % 3 else number) for number in range(300)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: content_of(text, "html"), pages, timeout=NEVER))
    assert [strip_tags(text) in content for text, content in zip(pages, found, strict=True)] == [True] * 300
    assert len(set(processes(library))) <= default_threads()
    assert len(processes(library)) == len(set(pages))


def _extract_in_child(answers: Any) -> None:
    answers.put(content_of(article(2), "html"))


def test_a_forked_process_starts_its_own(library: Path) -> None:
    before = content_of(article(1), "html")
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_extract_in_child, args=(answers,), daemon=True)
    child.start()
    assert "word2x3" in answers.get(timeout=NEVER)
    child.join(NEVER)
    assert child.exitcode == 0
    first, second = processes(library)
    wait_until_ended([second])
    assert content_of(article(1), "html") == before
    assert "word3x3" in content_of(article(3), "html")
    assert processes(library)[2] == first != second


SCRIPT = """
import neardup as nd
print("once")
result = nd.dedup(["<p>one page", "<p>one page", "<p>another page"], content="html", threads=2)
print(len(result.kept))
"""


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_script_without_a_guard_runs_once(library: Path, tmp_path: Path, how: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # A module of the working directory is not one of the library's.
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    if how == "file":
        command, stdin = [sys.executable, "-P", str(script)], None
    else:
        command, stdin = [sys.executable, "-P", "-"], SCRIPT
    ended = subprocess.run(
        command, input=stdin, cwd=tmp_path, capture_output=True, text=True, timeout=NEVER, check=True
    )
    assert (ended.stdout, ended.stderr) == ("once\n2\n", "")
    wait_until_ended(processes(library))


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_processes_end_with_the_program(library: Path, tmp_path: Path, number: str, threads: str) -> None:
    (library / "trafilatura.py").write_text(LIBRARY.replace("0.5, 4.0", "600.0, 600.0"))
    lines = [json.dumps({"text": article(i) + ("do-sleep" if i == 1 else "")}) for i in range(90)]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines))
    started = start_process(
        "dedup", tmp_path / "pages.jsonl", "--html", "-o", tmp_path / "out.jsonl", "--threads", threads
    )
    wait_until_called(library)
    begin = time.monotonic()
    started.send_signal(getattr(signal, number))
    code, stdout, stderr = wait_for_end(started)
    assert time.monotonic() - begin < 60
    assert code == {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}[number]
    assert stdout == ""
    assert "Traceback" not in stderr
    wait_until_ended(processes(library))
    assert not (tmp_path / "out.jsonl").exists()


def test_after_an_interruption_the_next_run_extracts_pages(library: Path) -> None:
    result = nd.dedup([article(1), article(1)], content="html")
    end_workers()
    wait_until_ended(processes(library))
    assert nd.dedup([article(2), article(2)], content="html").kept == result.kept


def test_an_interpreter_that_cannot_start_a_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    end_workers()
    for program, said in (("/nowhere/python", "cannot be started"), ("/bin/false", "does not start")):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(nd.InputError, match=f"process that extracts pages {said}"):
            content_of("<p>rose", "tags")
    monkeypatch.undo()
    assert content_of("<p>rose", "tags") == "rose"


@needs_html
@pytest.mark.shared
@pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="NEARDUP_LONG=1 runs 500 commands")
@pytest.mark.skipif(not HTML.is_dir(), reason="the pages are not in ../shared/data beside the project")
def test_no_run_of_five_hundred_crashes(tmp_path: Path) -> None:
    outputs = set()
    for run in range(500):
        started = start_process("dedup", HTML / "pages", "--html", "--threads", "2", "-o", f"{tmp_path}/out{run}/")
        code, _, stderr = wait_for_end(started)
        assert code == 0, stderr
        lines = (line for line in stderr.splitlines() if not line.startswith(("  time", "  kept")))
        outputs.add("\n".join(lines))
    assert len(outputs) == 1
