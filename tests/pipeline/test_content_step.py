"""Pages as documents: their content is compared everywhere, and is what a run on extracted texts would compare."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says
from web_pages import needs_fast_html, needs_html, newspaper, page, paragraphs

import neardup as nd
from neardup.errors import NeardupError
from neardup.pipeline.explanation import explain
from neardup.recipe import Recipe
from neardup.text.contents import content_of, contents_of, extract_contents
from neardup.text.encoding import decode_page

METHODS = [pytest.param("html", marks=needs_html), pytest.param("html-fast", marks=needs_fast_html), "tags"]
RULES: dict[str, Any] = {"features": "words:4", "threshold": 0.6}
#: A recipe for each way in which texts are read: once, to count, again for a second step or for embeddings.
RECIPES: dict[str, dict[str, Any]] = {
    "sets": {},
    "terms": {"features": "terms:16", "threshold": 0.5},
    "weights": {"features": "words:1", "weights": "tfidf", "measure": "cosine", "threshold": 0.9},
    "edit": {"second_step": "edit >= 0.8"},
    "semantic": {"measure": "semantic", "threshold": 0.9},
}


class Letters:
    """An encoder that counts letters."""

    def encode(self, texts: list[str]) -> Any:
        return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz<>/"] for text in texts])


def facts_of(result: nd.Result) -> list[Any]:
    names = ("documents", "kept", "exact_copies", "families", "pairs", "text_bytes", "bytes_saved", "undecidable")
    return [result.kept, list(result.dropped), list(result.pairs), *map(result.summary.get, names)]


@cache
def extracted(content: str) -> list[str]:
    return contents_of(newspaper(), content)


CASES: list[Any] = [(name, "tags") for name in RECIPES]
CASES += [pytest.param("edit", "html", marks=needs_html)]


@pytest.mark.parametrize(("name", "content"), CASES)
def test_a_run_on_pages_equals_a_run_on_their_extracted_texts(name: str, content: str) -> None:
    choices = RULES | RECIPES[name] | {"encoder": Letters()}
    expected = nd.dedup(extracted(content), **choices)
    result = nd.dedup(newspaper(), content=content, threads=3, **choices)
    assert facts_of(result) == facts_of(expected)
    assert result.pairs
    plain = expected.explain(0, 2)
    contents = {"fingerprint": "", "content": content, "contents": [plain.left, plain.right]}
    assert result.explain(0, 2).as_dict() | {"fingerprint": ""} == plain.as_dict() | contents
    for pair in list(result.pairs)[:3]:
        explanation = result.explain(pair.left, pair.right)
        assert explanation.match
        assert explanation.similarity == pytest.approx(pair.similarity, abs=1e-9)


def test_neighbours_and_queries_of_pages_are_those_of_their_texts() -> None:
    pages, texts, content = newspaper()[:20], extracted("tags")[:20], "tags"
    choices: dict[str, Any] = {"features": "words:2", "weights": "idf", "measure": "cosine"}
    assert list(nd.neighbors(pages, 2, content=content, **choices)) == list(nd.neighbors(texts, 2, **choices))
    for then in ("", "edit >= 0.5"):
        options = choices | {"threshold": 0.5, "second_step": then}
        answer = list(nd.query(pages[2:], pages[1], content=content, **options))
        assert answer
        assert answer == list(nd.query(texts[2:], texts[1], **options))


@needs_html
def test_articles_match_whatever_their_navigation() -> None:
    pages = [page(paragraphs(1), 0), page(paragraphs(1), 1), page(paragraphs(2), 0)]
    assert [(p.left, p.right) for p in nd.dedup(pages, **RULES).pairs] == [(0, 2)]
    result = nd.dedup(pages, content="html", **RULES)
    assert [(p.left, p.right) for p in result.pairs] == [(0, 1)]
    why = result.explain(0, 1)
    assert paragraphs(1)[3] in " ".join(passage.text for passage in why.passages)
    assert "section" not in why.left
    assert "<" not in why.left + why.right
    assert "".join(why.left[s.start : s.end] for s in why.left_segments) == why.left
    assert result.table()["text"].to_pylist() == [pages[0], pages[2]]


@pytest.mark.parametrize("content", METHODS)
@given(st.lists(st.text() | st.text(alphabet="<>/pbh1 &;#xD80a"), max_size=4))
def test_any_text_has_a_content_that_utf8_can_write(content: str, texts: list[str]) -> None:
    written, failed = extract_contents(pa.array(texts, pa.large_string()), content)
    assert not failed
    written.validate(full=True)
    assert written.to_pylist() == [content_of(text, content) for text in texts]
    assert len(written) == len(texts)


def test_a_missing_library_is_one_sentence_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    for ask in (
        lambda: nd.dedup(["<p>rose"], content="html"),
        lambda: nd.query(["<p>rose"], "<p>rose", content="html"),
        lambda: explain("<p>rose", "<p>rose", Recipe(content="html")),
    ):
        with pytest.raises(NeardupError) as refused:
            ask()
        assert says(refused.value, "pip install 'neardup[html]' brings it")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"\xef\xbb\xbf<p>r\xc3\xb6se", "<p>röse"),
        (b"\xff\xfe" + "<p>röse".encode("utf-16-le"), "<p>röse"),
        (b"\xfe\xff" + "<p>röse".encode("utf-16-be"), "<p>röse"),
        (b"\xff\xfe\0\0" + "<p>röse".encode("utf-32-le"), "<p>röse"),
        ("<p>röse".encode("utf-16-le"), "<p>röse"),
        ("<p>röse".encode("utf-16-be"), "<p>röse"),
        (b"<p>r\xf6se \x93so\x94", "<p>röse “so”"),
        (b'<meta charset="iso-8859-1"><p>\x93r\xf6se\x94', '<meta charset="iso-8859-1"><p>“röse”'),
        # What is valid UTF-8 is no other encoding, whatever a page says that was saved in UTF-8 by a crawler.
        (b"<meta charset=latin1><p>r\xc3\xb6se", "<meta charset=latin1><p>röse"),
        (b"<META CONTENT='x; charset=koi8-r'>\xd2\xcf\xda\xc1", "<META CONTENT='x; charset=koi8-r'>роза"),
        (b"<?xml encoding='windows-1251'?>\xf0\xee\xe7\xe0", "<?xml encoding='windows-1251'?>роза"),
        (b"<meta charset=gb2312>\xc3\xb5\xb9\xe5", "<meta charset=gb2312>玫瑰"),
        (b"<meta charset=x-sjis>\x83o\x83\x89", "<meta charset=x-sjis>バラ"),
        (b"<meta charset=iso-2022-jp>\x1b$B%P%i\x1b(B", "<meta charset=iso-2022-jp>バラ"),
        (b"<!-- <meta charset=koi8-r> -->\xe9t\xe9", "<!-- <meta charset=koi8-r> -->été"),
        (b"<meta charset=utf-16>\xe9t\xc3\xa9", "<meta charset=utf-16>\ufffdté"),
        (b"<meta charset=utf-7>+AOk-", "<meta charset=utf-7>+AOk-"),
        (b"<meta charset=unicode_escape>\\u00e9\xe9", "<meta charset=unicode_escape>\\u00e9é"),
        (b"<meta charset=base64>\xe9", "<meta charset=base64>é"),
        (b"<meta charset=utf-8>\xe9", "<meta charset=utf-8>\ufffd"),
        (b"", ""),
    ],
)
def test_bytes_of_pages_become_text(written: bytes, text: str) -> None:
    assert decode_page(written) == text


def test_files_that_are_pages_are_read_in_their_encoding_and_written_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    one, other = page(["Röschen stand allein auf der Heide, so morgenschön." * 9], 0), page(paragraphs(4), 1)
    (folder / "a.html").write_bytes(one.replace("utf-8", "iso-8859-1").encode("latin-1"))
    (folder / "b.HTM").write_bytes(b"\xff\xfe" + one.encode("utf-16-le"))
    (folder / "c.xhtml").write_bytes(other.encode())
    (folder / "d.txt").write_bytes("Röschen".encode("latin-1"))
    result = nd.dedup_files(folder, content="tags", features="words:3", threshold=0.9)
    assert (result.kept, [drop.id for drop in result.dropped]) == (["a.html", "c.xhtml", "d.txt"], ["b.HTM"])
    assert result.summary["encodings"] == {str(folder / "d.txt"): "windows-1252"}
    assert "Röschen" in result.table()["text"].to_pylist()[0]
    result.write(str(tmp_path / "out") + "/")
    assert (tmp_path / "out" / "a.html").read_bytes() == (folder / "a.html").read_bytes()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.html", "c.xhtml", "d.txt"]
