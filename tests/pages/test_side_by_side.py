"""Two texts side by side as HTML: nothing is lost or added, what differs is marked, what is left out is counted."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markup import Markup

from neardup.pages.diff import Shown
from neardup.pages.diff_view import side_by_side
from neardup.pages.html import escaped
from neardup.text.normalize import tokens

words = st.text(st.sampled_from("ab. \n"), max_size=60)


class Cells(Markup):
    """The texts of the cells below the heads, and the marks in them."""

    def __init__(self, text: str) -> None:
        self.found: dict[str, list[str]] = {"left": [], "right": []}
        self.marks: list[tuple[str, str]] = []
        self._side = ""
        self._depth = 0
        self._mark = ""
        super().__init__(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        kind = dict(attrs).get("class") or ""
        if tag == "div" and kind.startswith("cell") and "dir" in dict(attrs):
            self._side = kind.removeprefix("cell ")
            self.found[self._side].append("")
        elif tag == "mark":
            self._mark = kind

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "div":
            self._side = ""
        elif tag == "mark":
            self._mark = ""

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self._side:
            self.found[self._side][-1] += data
            if self._mark:
                self.marks.append((self._side, data))


def shown(text: str, name: str = "a") -> Shown:
    return Shown(name, "", text)


@given(words, words)
def test_both_texts_are_there_from_end_to_end(left: str, right: str) -> None:
    cells = Cells(side_by_side(shown(left), shown(right, "b"), words=10_000))
    assert "".join(cells.found["left"]) == left
    assert "".join(cells.found["right"]) == right


@given(words, st.integers(0, 12))
def test_what_is_left_out_is_counted(text: str, most: int) -> None:
    other = " ".join(reversed(text.split()))
    found = side_by_side(shown(text), shown(other, "b"), words=most)
    cells = Cells(found)
    rests = re.findall(r'class="rest dim">([^<]*)<', found)
    both = [sum(int(number) for number in re.findall(r"(\d+) more equal", " ".join(rests)))] * 2
    both[0] += sum(int(number) for number in re.findall(r"(\d+) more words on the left", " ".join(rests)))
    both[1] += sum(int(number) for number in re.findall(r"left, (\d+) on the right", " ".join(rests)))
    for side, whole, missing in zip(("left", "right"), (text, other), both, strict=True):
        assert len(tokens("\n".join(cells.found[side]))) + missing == len(tokens(whole))
    assert len(cells.found["left"]) >= 1


def test_hostile_texts_stay_texts() -> None:
    text = "</div><script>alert(1)</script><img src=x> \0 \ud800 &lt;"
    found = side_by_side(Shown(text, text, text), Shown(text, "", text + " more"))
    assert not {"script", "img"} & {tag for tag, _ in Markup(found).elements}
    assert escaped("</div><script>alert(1)</script>") in found
    found.encode("utf-8")
