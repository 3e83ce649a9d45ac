"""HTML: tags are removed in linear time."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.text import html
from neardup.text.html import PATTERN_WINDOW, TagScanner, strip_tags

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
