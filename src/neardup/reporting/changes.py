"""What one text has otherwise than another, in a few lines: each change with some words around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from neardup.pages.excerpts import clipped, excerpt
from neardup.pages.parts import Html, escaped
from neardup.sidebyside.differences import Block, Differences, differences
from neardup.sidebyside.lines import direction_of
from neardup.sidebyside.shown import Shown
from neardup.text.normalize import Token

#: Of longer texts only so many characters are compared.
_COMPARED = 16_000
#: Equal words around a change; changes with fewer equal words between them stand together.
_CONTEXT = 6
#: So many words of a change are shown, and so many changes.
_WORDS, _CHANGES = 40, 6
#: Characters of what is shown of one text alone, of a change, and of the equal words between two.
_BEGINNING, _CHANGE, _EQUAL = 320, 480, 240
#: Characters of a title, or of how a text begins, in a list.
_NAME = 90
_GAP = '<span class="dim">…</span> '


class Changed(NamedTuple):
    """What differs, and how long the longest passage is that both texts have, in words."""

    look: Html
    passage: int


def changed(keeper: Shown, member: Shown) -> Changed:
    """Return what a document has otherwise than its keeper, as HTML that needs no script.

    What only the keeper has is marked as deleted, what only the member has as inserted.
    """
    texts = keeper.text[:_COMPARED], member.text[:_COMPARED]
    cut = max(len(keeper.text), len(member.text)) > _COMPARED
    found = differences(*texts)
    hunks = list(_hunks(found))
    shown = hunks[:_CHANGES]
    body = "".join(_pieces(shown, found, texts))
    said = []
    if not hunks:
        same = "the same text" if texts[0] == texts[1] else "the same words, written or parted otherwise"
        said.append(same + (f", as far as it was compared ({_COMPARED:,} characters)" if cut else ""))
    if len(hunks) > _CHANGES:
        said.append(f"{len(hunks) - _CHANGES:,} more changes are not shown")
    if hunks and cut:
        said.append(f"compared up to {_COMPARED:,} characters")
    note = f'<bdi class="dim" dir="ltr">({escaped("; ".join(said))})</bdi>' if said else ""
    passage = max((block.length for block in found.blocks), default=0)
    return Changed(Html(f'<p class="changes" dir="{direction_of(texts[1] or texts[0])}">{body} {note}</p>'), passage)


def beginning(document: Shown) -> Html:
    """Return how a document's text begins."""
    shown = escaped(clipped(document.text, _BEGINNING)) or '<span class="dim">an empty text</span>'
    return Html(f'<p class="changes" dir="{direction_of(document.text)}">{shown}</p>')


def named(document: Shown) -> str:
    """Return a document's title, or how its text begins, for a line of a list."""
    return clipped(document.title or document.text, _NAME)


class _Hunk(NamedTuple):
    """Words left[i:j] in the place of right[k:m]."""

    i: int
    j: int
    k: int
    m: int


def _hunks(found: Differences) -> Iterator[_Hunk]:
    blocks = [Block(0, 0, 0), *found.blocks]
    for one, other in pairwise(blocks):
        i, k = one.left + one.length, one.right + one.length
        if i < other.left or k < other.right:
            yield _Hunk(i, other.left, k, other.right)


def _pieces(hunks: Sequence[_Hunk], found: Differences, texts: tuple[str, str]) -> Iterator[str]:
    """Yield the changes and the equal words around them, of which a gap is left where they are many."""
    left, right = found.left, found.right
    at = 0
    for hunk in hunks:
        if hunk.k - at <= 2 * _CONTEXT:
            yield excerpt(_words(right, at, hunk.k, texts[1]), _EQUAL) + " "
        else:
            if at:
                yield excerpt(_words(right, at, at + _CONTEXT, texts[1]), _EQUAL) + " "
            yield _GAP + excerpt(_words(right, hunk.k - _CONTEXT, hunk.k, texts[1]), _EQUAL) + " "
        gone, come = _words(left, hunk.i, hunk.j, texts[0]), _words(right, hunk.k, hunk.m, texts[1])
        yield f"<del>{_cut(gone, hunk.j - hunk.i)}</del> " if gone else ""
        yield f"<ins>{_cut(come, hunk.m - hunk.k)}</ins> " if come else ""
        at = hunk.m
    end = len(right)
    if hunks and at < end:
        yield excerpt(_words(right, at, min(at + _CONTEXT, end), texts[1]), _EQUAL) + (
            f" {_GAP}" if at + _CONTEXT < end else ""
        )


def _words(words: list[Token], begin: int, end: int, text: str) -> str:
    if begin >= end:
        return ""
    last = min(end, begin + _WORDS)
    return " ".join(text[words[begin].start : words[last - 1].end].split())


def _cut(text: str, words: int) -> str:
    more = max(words - _WORDS, 0)
    rest = f' <bdi class="dim" dir="ltr">… {more:,} more words</bdi>' if more else ""
    return excerpt(text, _CHANGE) + rest
