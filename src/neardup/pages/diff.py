"""What two texts have in common and what differs; and the two as rows side by side, with long equal passages folded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from neardup.text.alignment import MatchingBlock, matching_blocks
from neardup.text.normalize import Token, tokens
from neardup.text.sentences import ASCII_TERMINATORS, TERMINATORS


class ShownDocument(NamedTuple):
    """A document as pages show it; title and time are empty if it has none.

    ``is_missing``: its text is no longer available.
    """

    id: str
    title: str
    text: str
    time: str = ""
    is_missing: bool = False

    def as_dict(self) -> dict[str, str]:
        """Return id, title, text and time for JSON."""
        return {"id": self.id, "title": self.title, "text": self.text, "time": self.time}


#: Signs between words that are style, and make no difference.
_STYLE_SIGNS = str.maketrans("", "", ".,;:'\"`-()[]“”‘’„«»–—…。、，；：「」（）")
_MINUS = re.compile(r"[^-−–][-−–]$")
_DIRECTION_LENGTH = 4_000


def text_direction(text: str) -> str:
    """Return the direction of most letters of a text: rtl or ltr; auto if it has none."""
    kinds = [unicodedata.bidirectional(one) for one in text[:_DIRECTION_LENGTH]]
    right, left = sum(kind in ("R", "AL") for kind in kinds), kinds.count("L")
    return "rtl" if right > left else "ltr" if left else "auto"


def separator_sign(gap: str, before: str, after: str) -> str:
    """Return what between two characters has a meaning: not style, but a minus, a currency or a decimal point."""
    if before.isdigit() and after.isdigit() and not any(map(str.isspace, gap)):
        return gap
    minus = after.isdigit() and _MINUS.search(gap) is not None
    return ("-" if minus else "") + "".join(gap.split()).translate(_STYLE_SIGNS)


#: This many consecutive equal words are never chance.
_FEWEST_CERTAIN = 5
#: A run of equal words that is this many times shorter than the changes on both sides is chance.
_CHANCE_RATIO = 3
_LONGEST_SLIDE = 200
SENTENCE_END = re.compile(f"[{re.escape(ASCII_TERMINATORS + TERMINATORS)}]")


class Mark(IntEnum):
    """The mark of a word, or of the different signs between two equal words."""

    EQUAL = 0
    CHANGED = 1
    BETWEEN = 2


class Differences(NamedTuple):
    """How two texts differ."""

    left: list[Token]
    right: list[Token]
    #: The runs of equal words, in the order of both texts; an empty one at the ends comes last.
    blocks: list[MatchingBlock]
    left_marks: bytearray
    right_marks: bytearray


def compare_texts(left: str, right: str) -> Differences:
    """Compare two texts by the words of the normalizer ``words``.

    A few equal words between long differences are chance and count as different (``text.alignment.matching_blocks``).
    """
    sides = tokens(left), tokens(right)
    words = [[token.text for token in side] for side in sides]
    blocks = _drop_chance_blocks(matching_blocks(words[0], words[1]), len(words[0]), len(words[1]))
    blocks = _slide_insertions(blocks, words, (left, right), sides)
    marks = bytearray([Mark.CHANGED]) * len(words[0]), bytearray([Mark.CHANGED]) * len(words[1])
    for block in blocks:
        for side, begin in zip(marks, block[:2], strict=True):
            side[begin : begin + block.length] = bytes(block.length)
    return Differences(*sides, blocks, *marks)


def _drop_chance_blocks(blocks: list[MatchingBlock], left: int, right: int) -> list[MatchingBlock]:
    """Return the blocks that are long compared with the changes around them, and an empty one at the ends."""
    kept = [MatchingBlock(0, 0, 0)]
    end = MatchingBlock(left, right, 0)
    for block, after in pairwise([*blocks, end]):
        changes = _gap_length(kept[-1], block), _gap_length(block, after)
        if block.length >= _FEWEST_CERTAIN or block.length * _CHANCE_RATIO > min(changes):
            kept.append(block)
    return [*kept[1:], end]


def _slide_insertions(
    blocks: list[MatchingBlock], words: list[list[str]], texts: tuple[str, str], sides: tuple[list[Token], list[Token]]
) -> list[MatchingBlock]:
    """Return the blocks with insertions moved to the beginning of a line or sentence, if repeated words allow it.

    "a c." becomes "a b. a c." by inserting "a b." or "b. a"; the first is what a writer does.
    """
    found = list(blocks)
    for at in range(len(found) - 1):
        before, after = found[at], found[at + 1]
        ends = before.left + before.length, before.right + before.length
        inserted = [side for side, end in enumerate(ends) if end < after[side]]
        if len(inserted) != 1:
            continue
        side = inserted[0]
        begin, end, inserted_words = ends[side], after[side], words[side]
        most_back, most_ahead = min(before.length, _LONGEST_SLIDE), min(after.length, _LONGEST_SLIDE)
        back = next(
            (i for i in range(most_back) if inserted_words[begin - 1 - i] != inserted_words[end - 1 - i]), most_back
        )
        ahead = next((i for i in range(most_ahead) if inserted_words[begin + i] != inserted_words[end + i]), most_ahead)
        steps = sorted(range(-back, ahead + 1), key=abs)
        best = max(steps, key=lambda step: _boundary_rank(texts[side], sides[side], begin + step))
        found[at] = before._replace(length=before.length + best)
        found[at + 1] = MatchingBlock(after.left + best, after.right + best, after.length - best)
    return [*(block for block in found if block.length), blocks[-1]]


def _boundary_rank(text: str, words: list[Token], word: int) -> int:
    """Return the rank of the boundary before a word: 3 for a line, 2 for a sentence, 1 for a sign, 0 for none."""
    gap = text[words[word - 1].end : words[word].start] if 0 < word < len(words) else "\n"
    if "\n" in gap:
        return 3
    return 2 if SENTENCE_END.search(gap) else int(bool(gap.strip()))


def _gap_length(one: MatchingBlock, other: MatchingBlock) -> int:
    """Return the number of words between two blocks, on the side with more of them."""
    return max(other.left - one.left - one.length, other.right - one.right - one.length)


#: Characters of each text that are compared and shown; the page says if there are more.
COMPARED_LENGTH = 200_000
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
    for mark, same in groupby((piece for piece in pieces if piece[0]), key=lambda piece: piece[1]):
        yield "".join(text for text, _ in same), mark
