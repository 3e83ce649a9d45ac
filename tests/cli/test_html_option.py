"""``--html`` and ``--content``: folders of web pages, by every command that takes a recipe."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands import names_in, neardup, refused
from pages import needs_html, page, paragraphs
from sentences import says

from neardup.text import html

RULES = ("--features", "words:4", "--threshold", "0.6")
STORY, OTHER = paragraphs(1), paragraphs(2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pages: one article on two sites, and another one on the first site."""
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "one.html").write_text(page(STORY, 0), "utf-8")
    (folder / "other.htm").write_text(page(STORY, 1), "utf-8")
    (folder / "third.xhtml").write_text(page(OTHER, 0), "utf-8")
    return folder


def lines(*arguments: str | Path) -> list[list[str]]:
    return [line.split("\t") for line in neardup(*arguments).stdout.splitlines()[1:]]


@needs_html
def test_dedup_keeps_pages_as_they_are(folder: Path, tmp_path: Path) -> None:
    result = neardup("dedup", folder, "-o", f"{tmp_path / 'out'}/", "--html", *RULES)
    assert "3 documents: 2 kept, 1 dropped" in result.stderr
    (line,) = (line for line in result.stderr.splitlines() if "content html" in line)
    assert says(line, "words:4 (words)", "jaccard >= 0.6")
    assert "HTML file" not in result.stderr
    assert names_in(tmp_path / "out") == {"one.html", "third.xhtml"}
    for name in ("one.html", "third.xhtml"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()


@needs_html
def test_pairs_neighbours_and_queries_compare_contents(folder: Path) -> None:
    match = ["one.html", "other.htm"]
    assert [row[:2] for row in lines("pairs", folder, "--print", "--html", *RULES)] == [match]
    assert [row[:3] for row in lines("neighbors", folder, "--html", "--k", "1", "--of", match[0])] == [
        ["one.html", "1", "other.htm"]
    ]
    document = folder.parent / "asked.html"
    document.write_bytes(b"\xff\xfe" + page(STORY, 2).encode("utf-16-le"))
    assert [row[0] for row in lines("query", folder, "-d", document, "--html", *RULES)] == match
    assert lines("query", folder, "-d", document, *RULES) == []


@needs_html
def test_a_page_on_stdin_may_be_in_any_encoding(folder: Path) -> None:
    written = page([paragraph + " Düne" for paragraph in STORY], 2).replace("utf-8", "iso-8859-1").encode("latin-1")
    found = neardup("query", folder, "-d", "-", "--html", *RULES, stdin=written).stdout
    assert "one.html" in found
    assert "is not UTF-8" in neardup("query", folder, "-d", "-", *RULES, code=2, stdin=written).stderr


@needs_html
def test_explain_shows_the_article(folder: Path) -> None:
    output = neardup("explain", folder, "one.html", "other.htm", "--html", *RULES).stdout
    assert "near-duplicates: jaccard" in " ".join(output.split())
    assert "content html, words:4 (words)" in " ".join(output.split())
    assert "section" not in output
    assert "<" not in output
    why = json.loads(neardup("explain", folder, "one.html", "other.htm", "--html", "--json", *RULES).stdout)
    assert why["match"]
    assert why["content"] == "html"
    start, end = why["passages"][0]["left"]
    assert why["contents"][0][start:end] == why["passages"][0]["text"]
    assert STORY[4] in why["passages"][0]["text"].replace("\n", " ")
    plain = json.loads(neardup("explain", folder, "one.html", "other.htm", "--json", *RULES).stdout)
    assert not plain["match"]
    assert not {"content", "contents"} & plain.keys()


def test_removing_tags_needs_no_library(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html._article_extractor.cache_clear()
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    rules = ("--content", "tags", "--features", "words:4", "--threshold", "0.3")
    by_options = neardup("pairs", folder, "--print", *rules)
    assert [line.split("\t")[:2] for line in by_options.stdout.splitlines()[1:]] == [["one.html", "third.xhtml"]]
    recipe = tmp_path / "mine.toml"
    recipe.write_text('content = "tags"\nfeatures = "words:4"\nthreshold = 0.3\n')
    by_file = neardup("pairs", folder, "--print", "--recipe", recipe)
    assert by_file.stdout == by_options.stdout
    assert "HTML file" not in by_file.stderr
    as_text = neardup("pairs", folder, "--print", "--recipe", recipe, "--content", "")
    assert as_text.stdout != by_options.stdout
    assert as_text.stderr.count("HTML files") == 1


@pytest.mark.parametrize("command", [["dedup", "--dry-run"], ["pairs", "--print"], ["neighbors", "--k", "1"]])
def test_pages_compared_as_texts_are_reported(command: list[str], folder: Path) -> None:
    stderr = neardup(command[0], folder, *command[1:]).stderr.splitlines()[0]
    assert says(stderr, "3 documents are HTML files", "all tags", "--html")
    (folder / "other.htm").unlink()
    (folder / "third.xhtml").rename(folder / "third.txt")
    stderr = neardup("dedup", folder, "--dry-run").stderr.splitlines()[0]
    assert says(stderr, "1 document is an HTML file", "--html")
    (folder / "one.html").rename(folder / "one.txt")
    assert "HTML" not in neardup("dedup", folder, "--dry-run").stderr


def test_contents_that_do_not_fit_are_refused(folder: Path) -> None:
    message = refused("pairs", folder, "--print", "--html", "--content", "tags")
    assert says(message, "--html", "--content", "'tags'", "one of the two")
    message = refused("pairs", folder, "--print", "--content", "page")
    assert says(message, "content", "'page'", "html, tags")
    assert refused("compare", folder, "--clusters", "x", "--content", "page") == message


@needs_html
def test_an_empty_page_cannot_be_queried(folder: Path, tmp_path: Path) -> None:
    document = tmp_path / "asked.html"
    document.write_text("<html><body><script>1</script></body></html>")
    stderr = neardup("query", folder, "-d", document, "--html", *RULES, code=2).stderr
    assert says(stderr.splitlines()[-1], "content html", str(document), "no features by words:4")
