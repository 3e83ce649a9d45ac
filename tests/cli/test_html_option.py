"""``--html`` and ``--content``: folders of web pages, by every command that takes a recipe."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import names_in, neardup
from sentences import says
from web_pages import needs_html, page, paragraphs

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
    stderr = neardup("dedup", folder, "-o", f"{tmp_path / 'out'}/", "--html", *RULES).stderr
    assert "3 documents: 2 kept, 1 dropped" in stderr
    assert "content html, words:4 (words), jaccard >= 0.6" in stderr
    assert "HTML file" not in stderr
    assert names_in(tmp_path / "out") == {"one.html", "third.xhtml"}
    assert (tmp_path / "out" / "one.html").read_bytes() == (folder / "one.html").read_bytes()


@needs_html
def test_queries_compare_contents_in_any_encoding(folder: Path) -> None:
    document = folder.parent / "asked.html"
    document.write_bytes(b"\xff\xfe" + page(STORY, 2).encode("utf-16-le"))
    assert [row[0] for row in lines("similar", folder, "-d", document, "--html", *RULES)] == ["one.html", "other.htm"]
    assert lines("similar", folder, "-d", document, *RULES) == []
    written = page([paragraph + " Düne" for paragraph in STORY], 2).replace("utf-8", "iso-8859-1").encode("latin-1")
    assert "one.html" in neardup("similar", folder, "-d", "-", "--html", *RULES, stdin=written).stdout
    assert "is not UTF-8" in neardup("similar", folder, "-d", "-", *RULES, code=2, stdin=written).stderr
    document.write_text("<html><body><script>1</script></body></html>")
    stderr = neardup("similar", folder, "-d", document, "--html", *RULES, code=2).stderr
    assert says(stderr.splitlines()[-1], "content html", str(document), "no features by words:4")


def test_removing_tags_needs_no_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    rules = ("--features", "words:4", "--threshold", "0.3")
    found = lines("pairs", folder, "--print", "--content", "tags", *rules)
    assert [row[:2] for row in found] == [["one.html", "third.xhtml"]]
    assert lines("pairs", folder, "--print", "--content", "", *rules) != found


def test_pages_compared_as_texts_are_reported(folder: Path) -> None:
    def first_message() -> str:
        return neardup("dedup", folder, "--dry-run").stderr.splitlines()[0]

    assert says(first_message(), "3 documents are HTML files", "all tags", "--html")
    (folder / "other.htm").unlink()
    (folder / "third.xhtml").rename(folder / "third.txt")
    assert says(first_message(), "1 document is an HTML file", "--html")
    (folder / "one.html").rename(folder / "one.txt")
    assert "HTML" not in first_message()
