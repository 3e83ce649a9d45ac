"""HTML: tags are removed in linear time, and the article of a page is found without its surroundings."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations, product
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import SHARED
from web_pages import needs_html, page, paragraphs

from neardup.text import html
from neardup.text.encoding import decode_page
from neardup.text.html import PATTERN_WINDOW, TagScanner, extract_article, main_text, strip_tags

HTML = SHARED / "html"
_PIECES = ["<", ">", "</", "<a", "<b ", "<p>", "</p>", "<!--", "-->", "<!", "<?", "=", '"', "'", '="', "='", "/>", " "]
_PIECES += ["<script>", "</script", "</script>", "<style ", "</style>", "x", "&amp;", "&#", "9999", ";", "\0", "\n"]
hostile = st.lists(st.sampled_from(_PIECES), max_size=60).map("".join)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("plain", "plain"),
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<p>H<b>e</b>llo,\n  <a href='x'>you</a></p>", "Hello, you"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("&lt;b&gt; &eacute; &#x4e2d; &#128240; &amp;amp;", "<b> é 中 📰 &amp;"),
        ("<script>if (a < b) document.write('<p>no</p>')</script>yes", "yes"),
        ("<script>never closed", ""),
        ("<scripty>text</scripty>", "text"),
        ("x<!-- <p>no</p> -->y<!-->z", "xyz"),
        ("x<!-- never closed", "x"),
        ("<a title=\"a > b\" rel='>'>x</a>", "x"),
        ('<a title = "a > b">x</a>', "x"),
        ('<a title=">x</a>', "x"),
        ("<p don't>x</p>", "x"),
        ("a\0b<scr\0ipt>no</script>", "ab"),
        ("&#" + "9" * 10_000 + ";x", "\ufffdx"),
        (f"<p title='{'x > ' * 1000}'>y</p>", "y"),
    ],
)
def test_stripped_text_is_what_a_reader_sees(markup: str, text: str) -> None:
    assert strip_tags(markup) == text


@given(st.text("ab \t\x1f\u2003", max_size=60), st.integers(1, 9))
def test_long_lines_are_collapsed_like_short_ones(line: str, long: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "_LONG_LINE", long)
        assert html.collapse_lines(line) == " ".join(line.split())


@given(st.one_of(st.text(max_size=200), hostile))
def test_tags_are_in_order_and_the_pattern_and_the_scan_find_the_same(markup: str) -> None:
    found, at = list(TagScanner(markup)), 0
    assert found == list(TagScanner(markup, window=0))
    for tag in found:
        assert at <= tag.start <= tag.end <= len(markup)
        assert not tag.name or markup[tag.start] == "<"
        at = tag.end
    assert isinstance(strip_tags(markup), str)


@given(st.lists(st.tuples(st.sampled_from(["p", "b", "div", "td", "h1"]), st.text("abc <>=/'&;-!?", max_size=12))))
def test_the_inside_of_tags_is_never_shown(attributes: list[tuple[str, str]]) -> None:
    markup = "".join(
        f'<{name} title="SECRET {value}" data-x=SECRET>{i}</{name}><!-- SECRET --><script>"SECRET {value}"</script>'
        for i, (name, value) in enumerate(attributes)
    )
    text = strip_tags(markup)
    assert "SECRET" not in text
    assert "".join(text.split()) == "".join(map(str, range(len(attributes))))


REPEATED = [*_PIECES, "<a ", "<a b=", '<a b=">', "<a b='>", "<a b=\"'> <a b='\">", "<!-- ", '= "', "=   '", "</scrip "]


@pytest.mark.parametrize("begin", ["", "<a ", "<script>", "<!--", '<a b="'])
def test_no_markup_is_scanned_repeatedly(begin: str) -> None:
    for piece, end in product(REPEATED, ["", ">", '"', "-->"]):
        markup = begin + piece * (4_000 // len(piece)) + end
        seen = TagScanner(markup)
        for _ in seen:
            pass
        assert seen.scanned <= 8 * len(markup) + 4 * PATTERN_WINDOW, piece


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def alike(left: str, right: str) -> float:
    a, b = words(left), words(right)
    return (a & b).total() / max(1, (a | b).total())


@needs_html
def test_different_articles_under_the_same_navigation_give_different_texts() -> None:
    pages = [page(paragraphs(seed), 1) for seed in range(4)]
    texts = [main_text(content) for content in pages]
    # The generated articles share their few words; anything else that they share is navigation.
    own = [alike("\n".join(paragraphs(a)), "\n".join(paragraphs(b))) for a, b in combinations(range(4), 2)]
    found = [alike(a, b) for a, b in combinations(texts, 2)]
    assert all(abs(a - b) < 0.03 for a, b in zip(own, found, strict=True))
    assert min(alike(strip_tags(a), strip_tags(b)) for a, b in combinations(pages, 2)) > max(found)
    assert not any("section" in text for text in texts)


@needs_html
@pytest.mark.parametrize(
    ("markup", "text", "fallback"),
    [
        ("\0" * 100, "", "little"),
        ("<p>Short.</p>", "Short.", "little"),
        ("<div>" * 201 + "words " * 30, ("words " * 30).strip(), "deep"),
        ("<p>x</p>" * 301, "\n".join("x" * 301), "tags"),
        ("word " * 1000, ("word " * 1000).strip(), "long"),
    ],
)
def test_pages_without_an_article_give_all_their_text(
    markup: str, text: str, fallback: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MAX_TAGS", 300)
    monkeypatch.setattr(html, "MAX_CHARACTERS", 4000)
    assert extract_article(markup) == (text, fallback)


@needs_html
def test_all_text_is_returned_if_the_library_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(markup: str) -> str:
        raise RecursionError(markup[:1])

    monkeypatch.setattr(html, "_article_extractor", lambda: fail)
    assert extract_article("<p>some words</p>") == ("some words", "failed")


_MARKUP = ["<div", "<table>", "<html><body>", "<![CDATA[", "words and words ", "é新📰", "\x08", "\ud800", "&#0;"]
_MARKUP += ["&amp", "<title>", "<a href='", "</body>", *_PIECES]


@needs_html
@given(st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(_MARKUP), max_size=50).map("".join)))
def test_no_markup_raises(markup: str | bytes) -> None:
    found = extract_article(markup)
    assert found.fallback in ("", "long", "tags", "deep", "little", "failed")
    assert found.text or not strip_tags(markup if isinstance(markup, str) else decode_page(markup))


@needs_html
@pytest.mark.shared
@pytest.mark.skipif(not HTML.is_dir(), reason="the pages are not in ../shared/data beside the project")
def test_the_articles_of_real_pages_are_found() -> None:
    rows = [json.loads(line) for line in (HTML / "gold.jsonl").read_text("utf-8").splitlines()[1::3]]
    pages = [(HTML / "pages" / f"{row['id']}.html").read_bytes() for row in rows]
    articles = [extract_article(content) for content in pages]
    assert {article.fallback for article in articles} == {""}

    def mean_f1(texts: list[str]) -> float:
        pairs = [(words(row["text"]), words(text)) for row, text in zip(rows, texts, strict=True)]
        return mean(2 * (a & b).total() / (a.total() + b.total()) for a, b in pairs)

    assert mean_f1([article.text for article in articles]) > 0.96
    assert mean_f1([strip_tags(decode_page(content)) for content in pages]) < 0.75
