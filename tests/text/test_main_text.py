"""The article of a page: found without its surroundings, at a cost that no page can raise."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import needs_html, page, paragraphs
from paths import SHARED

from neardup.text import html
from neardup.text.encoding import decode_page
from neardup.text.html import extract_article, main_text, strip_tags

HTML = SHARED / "html"

pytestmark = needs_html


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def alike(left: str, right: str) -> float:
    a, b = words(left), words(right)
    return (a & b).total() / max(1, (a | b).total())


def test_an_article_gives_the_same_text_under_any_navigation() -> None:
    for seed in range(5):
        texts = [main_text(page(paragraphs(seed), site)) for site in range(3)]
        assert all(alike(a, b) > 0.98 for a, b in combinations(texts, 2))
        assert all(paragraph in text for text in texts for paragraph in paragraphs(seed))


def test_different_articles_under_the_same_navigation_give_different_texts() -> None:
    for site in range(3):
        texts = [main_text(page(paragraphs(seed), site)) for seed in range(4)]
        stripped = [strip_tags(page(paragraphs(seed), site)) for seed in range(4)]
        # The generated articles share their few words; anything else that they share is navigation.
        own = [alike("\n".join(paragraphs(a)), "\n".join(paragraphs(b))) for a, b in combinations(range(4), 2)]
        found = [alike(a, b) for a, b in combinations(texts, 2)]
        assert all(abs(a - b) < 0.03 for a, b in zip(own, found, strict=True))
        assert min(alike(a, b) for a, b in combinations(stripped, 2)) > max(found)
        assert not any("section" in text for text in texts)


@pytest.mark.parametrize(
    ("markup", "text", "fallback"),
    [
        ("", "", "little"),
        ("<p>Short.</p>", "Short.", "little"),
        ("no tags at all", "no tags at all", "little"),
        ("\0" * 1000, "", "little"),
        ("<div>" * 100_000 + "words " * 30, ("words " * 30).strip(), "deep"),
        ("<b>x</b>" * 20_001, "x" * 20_001, "tags"),
        ("<p>x</p>" * 20_001, "\n".join("x" * 20_001), "tags"),
    ],
)
def test_pages_without_an_article_give_all_their_text(markup: str, text: str, fallback: str) -> None:
    assert extract_article(markup) == (text, fallback)


def test_all_text_is_returned_if_the_library_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(markup: str) -> str:
        raise RecursionError(markup[:1])

    monkeypatch.setattr(html, "_article_extractor", lambda: fail)
    assert extract_article("<p>some words</p>") == ("some words", "failed")


@pytest.mark.parametrize(
    ("encoding", "sentence"),
    [
        ("windows-1256", "ارتفعت أسعار النفط يوم الخميس في الأسواق العالمية بعد إعلان المنظمة خفض الإنتاج. "),
        ("gb18030", "中国股市周四收高，投资者对经济前景表示乐观，成交量明显放大。"),
        ("shift_jis", "東京株式市場は木曜日に上昇し、投資家は景気の先行きを楽観した。"),
        ("koi8-r", "Цены на нефть выросли в четверг после заявления организации о сокращении добычи. "),
        ("utf-16", "Grüße aus Köln, 新闻 📰, und noch einige Wörter mehr, damit es ein Artikel wird. "),
    ],
)
def test_bytes_are_decoded_by_their_encoding(encoding: str, sentence: str) -> None:
    body = "".join(f"<p>{number} {sentence * 4}</p>" for number in range(6))
    markup = f'<html><head><meta charset="{encoding}"></head><body><article>{body}</article></body></html>'
    found = extract_article(markup.encode(encoding))
    assert found.fallback == ""
    assert found.text.count(sentence.strip()) == 24


_PIECES = [
    "<",
    ">",
    "<div",
    "<p>",
    "</p>",
    "<table>",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<html><body>",
    "<![CDATA[",
]
_PIECES += [
    "words and words ",
    "é新📰",
    "\0",
    "\x08",
    "\ud800",
    "&#0;",
    "&amp",
    "<title>",
    "<a href='",
    "'",
    '"',
    "</body>",
    "\n",
]


@given(st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(_PIECES), max_size=50).map("".join)))
def test_no_markup_raises(markup: str | bytes) -> None:
    found = extract_article(markup)
    assert found.fallback in ("", "long", "tags", "deep", "little", "failed")
    assert found.text or not strip_tags(markup if isinstance(markup, str) else decode_page(markup))


@pytest.mark.shared
@pytest.mark.skipif(not HTML.is_dir(), reason="the pages are not in ../shared/data beside the project")
def test_the_articles_of_real_pages_are_found() -> None:
    gold = [json.loads(line) for line in (HTML / "gold.jsonl").read_text("utf-8").splitlines()]
    pages = [(HTML / "pages" / f"{row['id']}.html").read_bytes() for row in gold]

    def f1(read: Callable[[bytes], str]) -> tuple[float, float]:
        common = given_words = 0
        each = []
        for row, content in zip(gold, pages, strict=True):
            a, b = words(row["text"]), words(read(content))
            shared = (a & b).total()
            each.append(2 * shared / (a.total() + b.total()))
            common, given_words = common + shared, given_words + a.total() + b.total()
        return 2 * common / given_words, sum(each) / len(each)

    micro, macro = f1(main_text)
    plain_micro, plain_macro = f1(lambda content: strip_tags(decode_page(content)))
    assert micro > 0.975
    assert macro > 0.96
    assert plain_micro < 0.8
    assert plain_macro < 0.75
    assert {extract_article(content).fallback for content in pages} == {""}
