"""Two texts side by side in a page: HTML that needs no script, with what differs marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from neardup.pages.diff import Differences, Mark, ShownDocument, compare_texts, text_direction
from neardup.pages.document_view import Row, View, build_view
from neardup.pages.html import Html, clip, escape, excerpt, fold, format_rest, make_excerpt, render_macro, to_html
from neardup.pages.numbers import format_count
from neardup.text.alignment import MatchingBlock
from neardup.text.normalize import Token

_SIDES = ("left", "right")
#: A word takes the place of so many characters, and what is longer that of several words. One row is always shown, with
#: the room of so many words at least.
_A_WORD, _LEAST = 12, 40
#: Characters of a title, and of one that a screen reader says.
_TITLE, _SPOKEN = 300, 100
_KINDS: dict[int, str] = {Mark.CHANGED: "changed", Mark.BETWEEN: "between"}


def side_by_side(left: ShownDocument, right: ShownDocument, *, words: int = 400, head: str = "") -> Html:
    """Return two documents side by side, what differs marked, long equal stretches folded.

    So many ``words`` of each are in the page, fewer where they are long, and where others are left out it says how
    many; ``head`` stands above.
    """
    view = build_view(left, right)
    body = "".join(_parts(_fit_to_words(view, words)))
    title = f'<p class="said">{to_html(head)}</p>' if head else ""
    # A title beside none differs in all words, which says nothing.
    titled = bool(left.title and right.title)
    heads = "".join(_head(shown, view, at, marked=titled) for at, shown in enumerate((left, right)))
    label = escape(" beside ".join(clip(one.title or one.id, _SPOKEN) for one in (left, right)))
    return Html(
        f'<div class="pair" role="group" aria-label="{label}">{title}<div class="row heads">{heads}</div>{body}</div>'
    )


#: Characters of each part of a document that a search looks through.
_SEARCHED = 2_000


def pair_fold(summary: str, left: ShownDocument, right: ShownDocument, *, head: str = "", opened: bool = False) -> Html:
    """Return two documents side by side that are shown once a summary is pressed; a search finds their words."""
    parts = (part for shown in (left, right) for part in (shown.id, shown.title, shown.text))
    searched = " ".join(part[:_SEARCHED] for part in parts)
    return fold(summary, side_by_side(left, right, head=head), opened=opened, searched=searched)


class _Cells(NamedTuple):
    """A row as HTML, its words on each side, and how much room it takes."""

    html: str
    words: tuple[int, int]
    size: int


class _Part(NamedTuple):
    """Rows of a group, and how many words of each side do not fit after them."""

    rows: list[_Cells]
    folded: bool
    equal: bool
    hidden: list[int]


def _fit_to_words(view: View, words: int) -> list[_Part]:
    """Return the groups cut to so many words together: of what is folded first, then from the end; one row stays."""
    parts: dict[int, _Part] = {}
    room = words
    for at, group in sorted(enumerate(view.groups), key=lambda one: (one[1].folded, one[0])):
        rows: list[_Cells] = []
        for row in group.rows:
            first = not parts and not rows
            if room <= 0 and not first:
                break
            cells = _cells(view, row, room)
            if cells.size > room and not first:
                room = 0
                break
            rows.append(cells)
            room -= cells.size
        hidden = [sum(row.words[side] for row in group.rows[len(rows) :]) for side in (0, 1)]
        parts[at] = _Part(rows, group.folded, group.equal, hidden)
    return [parts[at] for at in range(len(parts))]


def _parts(parts: Sequence[_Part]) -> Iterator[str]:
    """Yield the rows of each part, and between them a line for what is left out."""
    left_out: list[_Part] = []
    for part in parts:
        if part.rows and left_out:
            yield _hidden_words_line(left_out)
            left_out = []
        rows = "".join(row.html for row in part.rows)
        if part.rows and part.folded:
            shown = [sum(row.words[side] for row in part.rows) for side in (0, 1)]
            rows = f'<details class="equal"><summary>{_word_counts(shown, part.equal, "")}</summary>{rows}</details>'
        yield rows
        if any(part.hidden):
            left_out.append(part)
    if left_out:
        yield _hidden_words_line(left_out)


def _hidden_words_line(left_out: Sequence[_Part]) -> str:
    words = [sum(part.hidden[side] for part in left_out) for side in (0, 1)]
    return f'<p class="rest dim">{_word_counts(words, all(part.equal for part in left_out), "more ")}, not shown</p>'


def _word_counts(words: Sequence[int], equal: bool, more: str) -> str:
    if equal:
        return format_count(words[0], f"{more}equal word")
    return f"{format_count(words[0], f'{more}word')} on the left, {words[1]:,} on the right"


def _head(shown: ShownDocument, view: View, at: int, *, marked: bool) -> str:
    side, title = view.sides[at], view.titles[at]
    pieces = title.pieces(0, len(title.words), plain=not (marked and title.words))
    parts = [excerpt(shown.id)] if pieces else []
    parts += [excerpt(shown.time)] if shown.time else []
    parts.append(Html(format_count(len(side.words), "word")))
    beyond = len(shown.text) - len(side.text)
    if beyond:
        parts.append(Html(f"{beyond:,} further characters were not compared"))
    said = " &middot; ".join(f'<bdi dir="auto">{part}</bdi>' for part in parts)
    if any(side.gap(word).strip() for word in side.between):
        said += '<mark class="between">another sign</mark>'
    name = _pieces(pieces, _TITLE)[0] or excerpt(shown.id)
    return f'<div class="cell {_SIDES[at]}"><strong dir="auto">{name}</strong><span class="about">{said}</span></div>'


def _cells(view: View, row: Row, room: int) -> _Cells:
    """Return a row, cut to where it has taken the room of so many words."""
    found = [_pieces(pieces, (max(room, _LEAST) + 1) * _A_WORD) for pieces in view.pieces(row)]
    size = max(*row.words, *(-(-size // _A_WORD) for _, size in found))
    cells = "".join(
        f'<div class="cell {side}" dir="{direction}">{_mark_trailing_lines(html)}</div>'
        for side, direction, (html, _) in zip(_SIDES, view.directions, found, strict=True)
    )
    return _Cells(f'<div class="row {"alike" if row.equal else "differs"}">{cells}</div>', row.words, size)


def _mark_trailing_lines(html: Html) -> str:
    """Return the HTML of a cell, with empty lines at its end marked: on a phone they would follow each side."""
    text = html.rstrip()
    end = html[len(text) :]
    return f'{text}<span class="end">{end}</span>' if end.count("\n") > 1 else html


def _pieces(pieces: Sequence[tuple[str, int]], most: int) -> tuple[Html, int]:
    """Return up to so many characters of the pieces of a text, and how many these are."""
    shown: list[str] = []
    size = 0
    for at, (text, mark) in enumerate(pieces):
        found = make_excerpt(text, most - size)
        shown.append(_mark_html(found.html, mark))
        size += found.size
        if found.rest:
            shown.append(format_rest(found.rest + sum(len(other) for other, _ in pieces[at + 1 :])))
            break
    return Html("".join(shown)), size


def _mark_html(html: Html, mark: int) -> str:
    return f'<mark class="{_KINDS[mark]}">{html}</mark>' if mark in _KINDS else html


#: Of longer texts only so many characters are compared.
_COMPARED = 16_000
#: Equal words around a change; changes with fewer equal words between them stand together.
_CONTEXT = 6
#: So many words of a change are shown, and so many changes.
_WORDS, _CHANGES = 40, 6
#: Characters that are shown of one text alone.
_BEGINNING = 320


class Change(NamedTuple):
    """How a document differs from its keeper."""

    #: ``equal``, ``del`` (words only in the keeper), ``ins`` (words only in the document) or ``gap``; the words; and
    #: how many more there are.
    pieces: list[tuple[str, str, int]]
    #: What is not shown, or that nothing differs.
    note: str
    #: How long the longest passage is that both texts have, in words.
    passage: int
    direction: str


def describe_change(keeper: ShownDocument, member: ShownDocument) -> Change:
    """Return how a document differs from its keeper, but for a title that both texts begin with."""
    whole = keeper.text, member.text
    if keeper.title == member.title and all(text.startswith(f"{member.title}\n") for text in whole):
        whole = _body(keeper), _body(member)
    texts = whole[0][:_COMPARED], whole[1][:_COMPARED]
    cut = max(map(len, whole)) > _COMPARED
    found = compare_texts(*texts)
    hunks = list(_hunks(found))
    said = []
    if not hunks:
        same = "the same text" if texts[0] == texts[1] else "the same words in another form"
        said.append(same + (f", as far as it was compared ({_COMPARED:,} characters)" if cut else ""))
    if len(hunks) > _CHANGES:
        said.append(f"{len(hunks) - _CHANGES:,} more changes are not shown")
    if hunks and cut:
        said.append(f"compared up to {_COMPARED:,} characters")
    passage = max((block.length for block in found.blocks), default=0)
    pieces = list(_changes(hunks[:_CHANGES], found, texts))
    return Change(pieces, "; ".join(said), passage, text_direction(texts[1] or texts[0]))


def beginning(document: ShownDocument) -> Html:
    """Return how a document's text begins, as a paragraph, without the title that it may begin with."""
    return render_macro("change.html", "beginning", clip(_body(document), _BEGINNING), text_direction(document.text))


def _body(document: ShownDocument) -> str:
    """Return a text without the title that it may begin with, for the page has it above."""
    return document.text.removeprefix(f"{document.title}\n").lstrip() or document.text


class _Hunk(NamedTuple):
    """Words left[i:j] in the place of right[k:m]."""

    i: int
    j: int
    k: int
    m: int


def _hunks(found: Differences) -> Iterator[_Hunk]:
    blocks = [MatchingBlock(0, 0, 0), *found.blocks]
    for one, other in pairwise(blocks):
        i, k = one.left + one.length, one.right + one.length
        if i < other.left or k < other.right:
            yield _Hunk(i, other.left, k, other.right)


def _changes(hunks: Sequence[_Hunk], found: Differences, texts: tuple[str, str]) -> Iterator[tuple[str, str, int]]:
    """Yield the changes and the equal words around them, of which a gap is left where they are many."""
    right = found.right
    at = 0
    for hunk in hunks:
        if hunk.k - at <= 2 * _CONTEXT:
            yield "equal", _words(right, at, hunk.k, texts[1]), 0
        else:
            if at:
                yield "equal", _words(right, at, at + _CONTEXT, texts[1]), 0
            yield "gap", "", 0
            yield "equal", _words(right, hunk.k - _CONTEXT, hunk.k, texts[1]), 0
        if hunk.j > hunk.i:
            yield "del", _words(found.left, hunk.i, hunk.j, texts[0]), max(hunk.j - hunk.i - _WORDS, 0)
        if hunk.m > hunk.k:
            yield "ins", _words(right, hunk.k, hunk.m, texts[1]), max(hunk.m - hunk.k - _WORDS, 0)
        at = hunk.m
    if hunks and at < len(right):
        yield "equal", _words(right, at, min(at + _CONTEXT, len(right)), texts[1]), 0
        if at + _CONTEXT < len(right):
            yield "gap", "", 0


def _words(words: list[Token], begin: int, end: int, text: str) -> str:
    if begin >= end:
        return ""
    last = min(end, begin + _WORDS)
    return " ".join(text[words[begin].start : words[last - 1].end].split())
