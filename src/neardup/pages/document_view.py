"""Two texts as rows side by side, with differences marked and long equal passages folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from neardup.pages.diff import (
    SENTENCE_END,
    Differences,
    Mark,
    ShownDocument,
    compare_texts,
    separator_sign,
    text_direction,
)
from neardup.text.normalize import Token

#: Characters of each text that are compared and shown; the page says if there are more.
COMPARED_LENGTH = 2_000_000
#: A row ends with a line; from the first number of words on with a sentence; from the second on anywhere.
_ROW_WORDS, _LONGEST_ROW = 40, 90
#: Longer changes are cut into rows, and only the first and the last of these are not folded.
_LONG_CHANGE = 10 * _ROW_WORDS
#: The least number of equal words to show around a change, and at the beginning of the texts.
_CONTEXT_WORDS, _BEGINNING_WORDS = 25, 40
#: Fewer equal words are not folded, nor fewer different ones than the second number.
_LEAST_FOLD, _LEAST_CHANGED_FOLD = 60, 600
#: After this many shown words all others are folded.
_MOST_SHOWN = 6_000
#: Texts of up to this many words are not folded.
_NEVER_FOLDED = 300


class Row(NamedTuple):
    """Words left[i:j] beside words right[k:m]."""

    i: int
    j: int
    k: int
    m: int
    equal: bool
    #: Whether it is in the middle of a long change.
    inner: bool

    @property
    def words(self) -> tuple[int, int]:
        """The number of words of each side."""
        return self.j - self.i, self.m - self.k


class Side(NamedTuple):
    """A text with its words and their marks.

    ``between`` has the words before which other signs stand than in the other text.
    """

    text: str
    words: list[Token]
    marks: bytearray
    between: set[int]

    def gap(self, word: int) -> str:
        """Return the signs between a word and the one before it."""
        return self.text[self.words[word - 1].end : self.words[word].start]

    def line_end(self, word: int) -> int:
        """Return the end of the line before a word, -1 if the word before it is on the same line."""
        begin, end = self.words[word - 1].end, self.words[word].start
        return self.text.rfind("\n", begin, max(begin, end))

    def cut(self, word: int) -> int:
        """Return the offset of a row that begins with this word: after the end of line, or the space, before it."""
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
        """Return words and the signs between them, each piece with its mark; ``plain`` leaves the marks out."""
        first, last = self.cut(begin), self.cut(end)
        if plain:
            return _unmarked(self.text[first:last])
        return list(_merge_pieces(self._marked(begin, end, first, last)))

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


def _unmarked(text: str) -> list[tuple[str, int]]:
    """Return a text as pieces without a mark."""
    return [(text, Mark.EQUAL)] if text else []


class Group(NamedTuple):
    """Consecutive rows; a folded group shows only its number of words at first."""

    rows: list[Row]
    folded: bool

    @property
    def equal(self) -> bool:
        """Whether both sides are equal in all rows."""
        return all(row.equal for row in self.rows)


class View(NamedTuple):
    """Two documents side by side."""

    sides: tuple[Side, Side]
    titles: tuple[Side, Side]
    #: The directions of the two texts.
    directions: tuple[str, str]
    groups: list[Group]

    def pieces(self, row: Row) -> list[list[tuple[str, int]]]:
        """Return the pieces of a row on each side, each with its mark."""
        ends = (row.i, row.j), (row.k, row.m)
        found = [side.pieces(*words, plain=row.equal) for side, words in zip(self.sides, ends, strict=True)]
        if row.i or row.k:
            return found
        # A text without a word stands in the first row.
        return [pieces if side.words else _unmarked(side.text) for side, pieces in zip(self.sides, found, strict=True)]


def build_view(left: ShownDocument, right: ShownDocument) -> View:
    """Return two documents side by side, each up to ``COMPARED_LENGTH`` characters."""
    texts = left.text[:COMPARED_LENGTH], right.text[:COMPARED_LENGTH]
    found = compare_texts(*texts)
    sides = _sides(found, *texts)
    rows = list(_rows(found, *sides))
    _compare_gaps(found, *sides)
    rows = [row._replace(equal=row.equal and not _has_gap_difference(row, *sides)) for row in rows]
    folds = groupby(zip(rows, _find_folded(rows), strict=True), key=lambda one: one[1])
    return View(
        sides,
        _sides(compare_texts(left.title, right.title), left.title, right.title),
        (text_direction(texts[0]), text_direction(texts[1])),
        [Group([row for row, _ in members], folded) for folded, members in folds],
    )


def _sides(found: Differences, left: str, right: str) -> tuple[Side, Side]:
    return Side(left, found.left, found.left_marks, set()), Side(right, found.right, found.right_marks, set())


def _rows(found: Differences, left: Side, right: Side) -> Iterator[Row]:
    """Yield rows; two rows meet between equal words, or where a long change begins or ends."""
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
            if (p > i or q > k) and _ends_row(left, right, p, q, max(p - i, q - k)):
                yield Row(i, p, k, q, equal, False)
                i, k, equal = p, q, True
        place, other = block.left + block.length, block.right + block.length
    if i < place or k < other or not place + other:
        yield Row(i, place, k, other, equal, False)


def _long_change(i: int, j: int, k: int, m: int) -> Iterator[Row]:
    steps = range(0, max(j - i, m - k), 2 * _ROW_WORDS)
    for step in steps:
        place, other = min(i + step, j), min(k + step, m)
        inner = 2 * _ROW_WORDS <= step < steps[-1]
        yield Row(place, min(place + 2 * _ROW_WORDS, j), other, min(other + 2 * _ROW_WORDS, m), False, inner)


def _ends_row(left: Side, right: Side, word: int, other: int, words: int) -> bool:
    """Return whether a row of this many words ends before these two words."""
    if not word or not other:
        return True
    if left.line_end(word) >= 0 and right.line_end(other) >= 0:
        return True
    gaps = left.gap(word), right.gap(other)
    return words >= _LONGEST_ROW or (words >= _ROW_WORDS and all(SENTENCE_END.search(gap) for gap in gaps))


def _compare_gaps(found: Differences, left: Side, right: Side) -> None:
    """Add to ``between`` the equal words that have other signs before them, such as a minus or a currency."""
    for block in found.blocks:
        for step in range(1, block.length):
            p, q = block.left + step, block.right + step
            gaps = left.gap(p), right.gap(q)
            if gaps[0] == gaps[1]:
                continue
            neighbours = (left.words[p - 1].text[-1:], left.words[p].text[:1])
            if separator_sign(gaps[0], *neighbours) != separator_sign(gaps[1], *neighbours):
                left.between.add(p)
                right.between.add(q)


def _has_gap_difference(row: Row, left: Side, right: Side) -> bool:
    """Return whether the signs between its words differ."""
    return not (left.between.isdisjoint(range(row.i, row.j)) and right.between.isdisjoint(range(row.k, row.m)))


def _find_folded(rows: Sequence[Row]) -> list[bool]:
    """Return which rows are folded: equal and far from a change, inside a long change, or after enough shown words."""
    if sum(max(row.words) for row in rows) <= _NEVER_FOLDED:
        return [False] * len(rows)
    hidden = [row.equal or row.inner for row in rows]
    _unfold(hidden, rows, range(len(rows)), _BEGINNING_WORDS)
    for at, row in enumerate(rows):
        if not row.equal:
            _unfold(hidden, rows, range(at + 1, len(rows)), _CONTEXT_WORDS)
            _unfold(hidden, rows, range(at - 1, -1, -1), _CONTEXT_WORDS)
    for fold, members in groupby(range(len(rows)), key=hidden.__getitem__):
        inside = list(members)
        least = _LEAST_FOLD if all(rows[at].equal for at in inside) else _LEAST_CHANGED_FOLD
        if fold and sum(max(rows[at].words) for at in inside) < least:
            for at in inside:
                hidden[at] = False
    shown = 0
    for at, row in enumerate(rows):
        hidden[at] = hidden[at] or shown > _MOST_SHOWN
        shown += 0 if hidden[at] else max(row.words)
    return hidden


def _unfold(hidden: list[bool], rows: Sequence[Row], places: range, words: int) -> None:
    """Show the equal rows in this range until they have this many words."""
    shown = 0
    for at in places:
        if shown >= words or not rows[at].equal:
            return
        hidden[at] = False
        shown += max(rows[at].words)


def _merge_pieces(pieces: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield pieces, with consecutive ones of the same mark as one."""
    for mark, same in groupby((piece for piece in pieces if piece[0]), key=lambda piece: piece[1]):
        yield "".join(text for text, _ in same), mark
