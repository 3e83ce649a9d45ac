"""Two texts as the page shows them: rows side by side, with what differs marked and what is long and alike folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from neardup.pages.diff import ENDS, Differences, Mark, ShownDocument, compare_texts, sign_between, text_direction
from neardup.text.normalize import Token

#: Of longer texts only so many characters are compared and shown; the page says so.
LARGEST = 2_000_000
#: A row ends at a line's end; else, once it has so many words, at a sentence's; else, once it has so many, anywhere.
_ROW, _LONG_ROW = 40, 90
#: Changes longer than this are cut into rows of which only the first two and the last are shown.
_LONG_CHANGE = 10 * _ROW
#: Equal words shown around a change, at least, and at the beginning of the texts.
_CONTEXT, _BEGINNING = 25, 40
#: Fewer words are not folded away; of those that only one text has, or the other has otherwise, fewer than the second.
_WORTH_FOLDING, _WORTH_FOLDING_CHANGED = 60, 600
#: Words that are shown before all the rest is folded away.
_AT_ONCE = 6_000

#: Texts up to so many words are shown whole.
_SHORT = 300


class Row(NamedTuple):
    """Words left[i:j] beside words right[k:m]."""

    i: int
    j: int
    k: int
    m: int
    equal: bool
    #: Whether it is the inside of a long change.
    inner: bool

    @property
    def words(self) -> tuple[int, int]:
        """How many words each side has."""
        return self.j - self.i, self.m - self.k


class Side(NamedTuple):
    """A text with its words and their marks.

    ``between`` holds the words with something else before them than in the other text.
    """

    text: str
    words: list[Token]
    marks: bytearray
    between: set[int]

    def gap(self, word: int) -> str:
        """Return what stands between a word and the one before."""
        return self.text[self.words[word - 1].end : self.words[word].start]

    def line_end(self, word: int) -> int:
        """Return where the line before a word ends, -1 if the word before it is on the same line."""
        begin, end = self.words[word - 1].end, self.words[word].start
        return self.text.rfind("\n", begin, max(begin, end))

    def cut(self, word: int) -> int:
        """Return where a row that begins with this word begins: behind the line's end, or the space, before it."""
        if word == 0:
            return 0
        if word == len(self.words):
            return len(self.text)
        end = self.line_end(word)
        if end >= 0:
            return end + 1
        gap = self.gap(word)
        spaces = [place for place, one in enumerate(gap, 1) if one.isspace()]
        return self.words[word].start - len(gap) + (spaces[-1] if spaces else len(gap))

    def pieces(self, begin: int, end: int, *, plain: bool) -> list[tuple[str, int]]:
        """Return words and what lies between them, each text with its mark; ``plain`` leaves marks out."""
        first, last = self.cut(begin), self.cut(end)
        if plain:
            return _plain(self.text[first:last])
        return list(_joined(self._marked(begin, end, first, last)))

    def _marked(self, begin: int, end: int, at: int, last: int) -> Iterator[tuple[str, int]]:
        before = -1
        for word in range(begin, end):
            token, mark = self.words[word], self.marks[word]
            gap = self.text[at : token.start]
            if word in self.between:
                for said, part in groupby(gap, key=lambda one: not one.isspace()):
                    yield "".join(part), Mark.BETWEEN if said else Mark.EQUAL
            else:
                yield gap, mark if mark == before else Mark.EQUAL
            yield self.text[max(at, token.start) : token.end], mark
            at, before = max(at, token.end), mark
        yield self.text[at:last], Mark.EQUAL


def _plain(text: str) -> list[tuple[str, int]]:
    """Return a text without a mark."""
    return [(text, Mark.EQUAL)] if text else []


class Group(NamedTuple):
    """Rows one after the other; of folded ones only the number of words is shown at first."""

    rows: list[Row]
    folded: bool

    @property
    def equal(self) -> bool:
        """Whether all rows say the same on both sides."""
        return all(row.equal for row in self.rows)


class View(NamedTuple):
    """Two documents beside each other."""

    sides: tuple[Side, Side]
    titles: tuple[Side, Side]
    #: In which direction the two are written.
    directions: tuple[str, str]
    groups: list[Group]

    def pieces(self, row: Row) -> list[list[tuple[str, int]]]:
        """Return what stands in a row on each side, each text with its mark."""
        ends = (row.i, row.j), (row.k, row.m)
        found = [side.pieces(*own, plain=row.equal) for side, own in zip(self.sides, ends, strict=True)]
        if row.i or row.k:
            return found
        # A text without a word stands in the first row.
        return [own if side.words else _plain(side.text) for side, own in zip(self.sides, found, strict=True)]


def build_view(left: ShownDocument, right: ShownDocument) -> View:
    """Return two documents beside each other; of longer ones so many characters as are compared."""
    texts = left.text[:LARGEST], right.text[:LARGEST]
    found = compare_texts(*texts)
    sides = _sides(found, *texts)
    rows = list(_rows(found, *sides))
    _compare_gaps(found, *sides)
    rows = [row._replace(equal=row.equal and not _has(row, *sides)) for row in rows]
    folds = groupby(zip(rows, _folded(rows), strict=True), key=lambda one: one[1])
    return View(
        sides,
        _sides(compare_texts(left.title, right.title), left.title, right.title),
        (text_direction(texts[0]), text_direction(texts[1])),
        [Group([row for row, _ in members], folded) for folded, members in folds],
    )


def _sides(found: Differences, left: str, right: str) -> tuple[Side, Side]:
    return Side(left, found.left, found.left_marks, set()), Side(right, found.right, found.right_marks, set())


def _rows(found: Differences, left: Side, right: Side) -> Iterator[Row]:
    """Yield rows; between two of them lie words that are equal, or where a change begins or ends."""
    i, k = 0, 0
    equal = True
    place = other = 0
    for block in found.blocks:
        if place < block.left or other < block.right:
            length = max(block.left - place, block.right - other)
            if length > _LONG_CHANGE:
                if i < place or k < other:
                    yield Row(i, place, k, other, equal, False)
                yield from _long_change(place, block.left, other, block.right)
                i, k, equal = block.left, block.right, True
            else:
                equal = False
        for step in range(block.length):
            p, q = block.left + step, block.right + step
            if (p > i or q > k) and _ends(left, right, p, q, max(p - i, q - k)):
                yield Row(i, p, k, q, equal, False)
                i, k, equal = p, q, True
        place, other = block.left + block.length, block.right + block.length
    if i < place or k < other or not place + other:
        yield Row(i, place, k, other, equal, False)


def _long_change(i: int, j: int, k: int, m: int) -> Iterator[Row]:
    steps = range(0, max(j - i, m - k), 2 * _ROW)
    for step in steps:
        place, other = min(i + step, j), min(k + step, m)
        inner = 2 * _ROW <= step < steps[-1]
        yield Row(place, min(place + 2 * _ROW, j), other, min(other + 2 * _ROW, m), False, inner)


def _ends(left: Side, right: Side, word: int, other: int, words: int) -> bool:
    """Return whether a row of so many words ends before these."""
    if not word or not other:
        return True
    if left.line_end(word) >= 0 and right.line_end(other) >= 0:
        return True
    gaps = left.gap(word), right.gap(other)
    return words >= _LONG_ROW or (words >= _ROW and all(ENDS.search(gap) for gap in gaps))


def _compare_gaps(found: Differences, left: Side, right: Side) -> None:
    """Note before which equal words something else stands, be it a minus or a currency."""
    for block in found.blocks:
        for step in range(1, block.length):
            p, q = block.left + step, block.right + step
            gaps = left.gap(p), right.gap(q)
            if gaps[0] == gaps[1]:
                continue
            around = (left.words[p - 1].text[-1:], left.words[p].text[:1])
            if sign_between(gaps[0], *around) != sign_between(gaps[1], *around):
                left.between.add(p)
                right.between.add(q)


def _has(row: Row, left: Side, right: Side) -> bool:
    """Return whether something between its words differs."""
    return not (left.between.isdisjoint(range(row.i, row.j)) and right.between.isdisjoint(range(row.k, row.m)))


def _folded(rows: Sequence[Row]) -> list[bool]:
    """Return which rows are folded away: alike, and far from a change; inside a long change; beyond what is shown."""
    if sum(max(row.words) for row in rows) <= _SHORT:
        return [False] * len(rows)
    hidden = [row.equal or row.inner for row in rows]
    _show(hidden, rows, range(len(rows)), _BEGINNING)
    for at, row in enumerate(rows):
        if not row.equal:
            _show(hidden, rows, range(at + 1, len(rows)), _CONTEXT)
            _show(hidden, rows, range(at - 1, -1, -1), _CONTEXT)
    for fold, members in groupby(range(len(rows)), key=hidden.__getitem__):
        inside = list(members)
        least = _WORTH_FOLDING if all(rows[at].equal for at in inside) else _WORTH_FOLDING_CHANGED
        if fold and sum(max(rows[at].words) for at in inside) < least:
            for at in inside:
                hidden[at] = False
    shown = 0
    for at, row in enumerate(rows):
        hidden[at] = hidden[at] or shown > _AT_ONCE
        shown += 0 if hidden[at] else max(row.words)
    return hidden


def _show(hidden: list[bool], rows: Sequence[Row], places: range, words: int) -> None:
    """Show the equal rows in these places until there are so many words of them."""
    seen = 0
    for at in places:
        if seen >= words or not rows[at].equal:
            return
        hidden[at] = False
        seen += max(rows[at].words)


def _joined(pieces: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield pieces, those of one mark in a row as one."""
    for mark, same in groupby((piece for piece in pieces if piece[0]), key=lambda piece: piece[1]):
        yield "".join(text for text, _ in same), mark
