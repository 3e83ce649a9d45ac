"""Two texts side by side in a page, with the differences marked: HTML that needs no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from neardup.pages.diff import (
    Differences,
    Mark,
    Row,
    ShownDocument,
    View,
    build_view,
    compare_texts,
    text_direction,
)
from neardup.pages.html import Html, clip, escape, excerpt, fill, fold, format_rest, join_html, make_excerpt, to_html
from neardup.pages.numbers import format_count
from neardup.text.alignment import MatchingBlock
from neardup.text.normalize import Token

_SIDES = ("left", "right")
#: Longer words count as several words. The first row is always shown, with room for at least this many words.
_CHARACTERS_PER_WORD, _LEAST_ROOM = 12, 40
_TITLE_LENGTH, _SPOKEN_TITLE_LENGTH = 300, 100
_MARK_CLASSES: dict[int, str] = {Mark.CHANGED: "changed", Mark.BETWEEN: "between"}


def side_by_side(left: ShownDocument, right: ShownDocument, *, words: int = 400, head: str = "") -> Html:
    """Return two documents side by side, with differences marked and long equal passages folded.

    The page has up to ``words`` words of each, fewer if they are long, and counts what it leaves out; ``head`` stands
    above.
    """
    view = build_view(left, right)
    body = "".join(_render_parts(_fit_to_words(view, words)))
    title = f'<p class="said">{to_html(head)}</p>' if head else ""
    # If only one document has a title, all its words would be marked.
    both_titled = bool(left.title and right.title)
    heads = "".join(_document_head(shown, view, at, marked=both_titled) for at, shown in enumerate((left, right)))
    label = escape(" beside ".join(clip(one.title or one.id, _SPOKEN_TITLE_LENGTH) for one in (left, right)))
    return Html(
        f'<div class="pair" role="group" aria-label="{label}">{title}<div class="row heads">{heads}</div>{body}</div>'
    )


_SEARCHED_LENGTH = 2_000


def pair_fold(
    summary: str, left: ShownDocument, right: ShownDocument, *, head: str = "", is_open: bool = False
) -> Html:
    """Return a fold with two documents side by side; the search field finds their words."""
    parts = (part for shown in (left, right) for part in (shown.id, shown.title, shown.text))
    search_text = " ".join(part[:_SEARCHED_LENGTH] for part in parts)
    return fold(summary, side_by_side(left, right, head=head), is_open=is_open, search_text=search_text)


class _Cells(NamedTuple):
    """A row as HTML, its words on each side, and the room that it takes, in words."""

    html: str
    words: tuple[int, int]
    size: int


class _Part(NamedTuple):
    """The rows of a group that fit, and the number of words of each side that do not."""

    rows: list[_Cells]
    folded: bool
    equal: bool
    hidden: list[int]


def _fit_to_words(view: View, words: int) -> list[_Part]:
    """Return the groups cut to this many words in all: folded ones first, then from the end; one row stays."""
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


def _render_parts(parts: Sequence[_Part]) -> Iterator[str]:
    """Yield the rows of each part, and between them lines that count the words left out."""
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


def _document_head(shown: ShownDocument, view: View, at: int, *, marked: bool) -> str:
    side, title = view.sides[at], view.titles[at]
    pieces = title.pieces(0, len(title.words), plain=not (marked and title.words))
    parts = [excerpt(shown.id)] if pieces else []
    parts += [excerpt(shown.time)] if shown.time else []
    parts.append(Html(format_count(len(side.words), "word")))
    beyond = len(shown.text) - len(side.text)
    if beyond:
        parts.append(Html(f"{beyond:,} further characters were not compared"))
    about = " &middot; ".join(f'<bdi dir="auto">{part}</bdi>' for part in parts)
    if any(side.gap(word).strip() for word in side.between):
        about += '<mark class="between">another sign</mark>'
    name = _render_pieces(pieces, _TITLE_LENGTH)[0] or excerpt(shown.id)
    return f'<div class="cell {_SIDES[at]}"><strong dir="auto">{name}</strong><span class="about">{about}</span></div>'


def _cells(view: View, row: Row, room: int) -> _Cells:
    """Return a row, cut to the room of this many words."""
    found = [_render_pieces(pieces, (max(room, _LEAST_ROOM) + 1) * _CHARACTERS_PER_WORD) for pieces in view.pieces(row)]
    size = max(*row.words, *(-(-size // _CHARACTERS_PER_WORD) for _, size in found))
    cells = "".join(
        f'<div class="cell {side}" dir="{direction}">{_mark_trailing_lines(html)}</div>'
        for side, direction, (html, _) in zip(_SIDES, view.directions, found, strict=True)
    )
    return _Cells(f'<div class="row {"alike" if row.equal else "differs"}">{cells}</div>', row.words, size)


def _mark_trailing_lines(html: Html) -> str:
    """Return the HTML of a cell with marked empty lines at its end, which are hidden on a phone."""
    text = html.rstrip()
    end = html[len(text) :]
    return f'{text}<span class="end">{end}</span>' if end.count("\n") > 1 else html


def _render_pieces(pieces: Sequence[tuple[str, int]], most: int) -> tuple[Html, int]:
    """Return up to ``most`` characters of the pieces of a text, and their number."""
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
    return f'<mark class="{_MARK_CLASSES[mark]}">{html}</mark>' if mark in _MARK_CLASSES else html


_COMPARED_LENGTH = 16_000
#: Equal words shown around a change; a gap stands between changes that are further apart.
_CONTEXT_WORDS = 6
#: The most words of a change, and the most changes, to show.
_MOST_WORDS, _MOST_CHANGES = 40, 6
_BEGINNING_LENGTH, _EQUAL_LENGTH = 320, 240


class Change(NamedTuple):
    """How a document differs from its keeper."""

    #: ``equal``, ``del`` (words only in the keeper), ``ins`` (words only in the document) or ``gap``; the words; and
    #: the number of words left out.
    pieces: list[tuple[str, str, int]]
    #: What is left out, or that nothing differs.
    note: str
    passage: int
    direction: str


def describe_change(keeper: ShownDocument, member: ShownDocument) -> Change:
    """Return how a document differs from its keeper, without a title that both texts begin with."""
    full_texts = keeper.text, member.text
    if keeper.title == member.title and all(text.startswith(f"{member.title}\n") for text in full_texts):
        full_texts = _untitled_text(keeper), _untitled_text(member)
    texts = full_texts[0][:_COMPARED_LENGTH], full_texts[1][:_COMPARED_LENGTH]
    cut = max(map(len, full_texts)) > _COMPARED_LENGTH
    found = compare_texts(*texts)
    hunks = list(_find_hunks(found))
    notes = []
    if not hunks:
        same = "the same text" if texts[0] == texts[1] else "the same words in another form"
        notes.append(same + (f" in the first {_COMPARED_LENGTH:,} characters" if cut else ""))
    if len(hunks) > _MOST_CHANGES:
        notes.append(f"{len(hunks) - _MOST_CHANGES:,} more changes are not shown")
    if hunks and cut:
        notes.append(f"only the first {_COMPARED_LENGTH:,} characters are compared")
    passage = max((block.length for block in found.blocks), default=0)
    pieces = list(_change_pieces(hunks[:_MOST_CHANGES], found, texts))
    return Change(pieces, "; ".join(notes), passage, text_direction(texts[1] or texts[0]))


def beginning(document: ShownDocument) -> Html:
    """Return the beginning of a document's text as a paragraph, without its title."""
    shown = clip(_untitled_text(document), _BEGINNING_LENGTH) or Html('<span class="dim">an empty text</span>')
    return fill('<p class="changes" dir="{}">{}</p>', text_direction(document.text), shown)


def changed(change: Change) -> Html:
    """Return a change as a paragraph."""
    aside = ' <bdi class="dim" dir="ltr">{}</bdi>'
    parts = []
    for kind, words, more in change.pieces:
        if kind == "gap":
            parts.append(Html('<span class="dim">…</span> '))
        elif kind == "equal":
            parts.append(Html(f"{excerpt(words, _EQUAL_LENGTH)} "))
        else:
            left_out = fill(aside, f"… {format_count(more, 'more word')}") if more else ""
            parts.append(Html(f"<{kind}>{excerpt(words, 2 * _EQUAL_LENGTH)}{left_out}</{kind}> "))
    note = fill(aside, f"({change.note})") if change.note else ""
    return fill('<p class="changes" dir="{}">{}{}</p>', change.direction, join_html(parts), note)


def _untitled_text(document: ShownDocument) -> str:
    """Return a text without a title at its beginning, because the page shows the title above."""
    return document.text.removeprefix(f"{document.title}\n").lstrip() or document.text


class _Hunk(NamedTuple):
    i: int
    j: int
    k: int
    m: int


def _find_hunks(found: Differences) -> Iterator[_Hunk]:
    blocks = [MatchingBlock(0, 0, 0), *found.blocks]
    for one, other in pairwise(blocks):
        i, k = one.left + one.length, one.right + one.length
        if i < other.left or k < other.right:
            yield _Hunk(i, other.left, k, other.right)


def _change_pieces(
    hunks: Sequence[_Hunk], found: Differences, texts: tuple[str, str]
) -> Iterator[tuple[str, str, int]]:
    """Yield the changes with equal words around them, and gaps between those that are far apart."""
    right = found.right
    at = 0
    for hunk in hunks:
        if hunk.k - at <= 2 * _CONTEXT_WORDS:
            yield "equal", _joined_words(right, at, hunk.k, texts[1]), 0
        else:
            if at:
                yield "equal", _joined_words(right, at, at + _CONTEXT_WORDS, texts[1]), 0
            yield "gap", "", 0
            yield "equal", _joined_words(right, hunk.k - _CONTEXT_WORDS, hunk.k, texts[1]), 0
        if hunk.j > hunk.i:
            yield "del", _joined_words(found.left, hunk.i, hunk.j, texts[0]), max(hunk.j - hunk.i - _MOST_WORDS, 0)
        if hunk.m > hunk.k:
            yield "ins", _joined_words(right, hunk.k, hunk.m, texts[1]), max(hunk.m - hunk.k - _MOST_WORDS, 0)
        at = hunk.m
    if hunks and at < len(right):
        yield "equal", _joined_words(right, at, min(at + _CONTEXT_WORDS, len(right)), texts[1]), 0
        if at + _CONTEXT_WORDS < len(right):
            yield "gap", "", 0


def _joined_words(words: list[Token], begin: int, end: int, text: str) -> str:
    if begin >= end:
        return ""
    last = min(end, begin + _MOST_WORDS)
    return " ".join(text[words[begin].start : words[last - 1].end].split())
