"""Families that are one text with slots that each document fills differently.

The documents of a family are compared with one of them, word by word. Words that all have in the same order are
constant; a place between them where the documents differ is a slot. A family is a **template** if

- at least four of its distinct texts have the constant words, and these are at least half of a text, in the mean;
- at least one slot in ten is *open*: three quarters of the texts fill it, with at most twelve words in the median; they
  fill in at least four different things, and none of these is in more than a third of the texts. Words that most
  texts fill in, and accents, make no difference.

Edited copies and versions of one text over time are no templates: most of them agree at each place, because each change
concerns one document.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from neardup.kernels import Integers
from neardup.kernels.unicode_tables import normalize_unicode
from neardup.text.alignment import matching_blocks
from neardup.text.normalize import Token, normalize, tokens

_FEWEST_TEXTS, _CONSTANT_SHARE, _OPEN_SHARE = 4, 0.5, 0.1
_FILLED_SHARE, _MOST_FILLER_WORDS, _FEWEST_DISTINCT, _SAME_SHARE, _COMMON_WORD_SHARE = 0.75, 12, 4, 1 / 3, 0.5
#: A text that lacks more than this share of all others' words is left out, as long as three in four remain.
_MISSING_SHARE, _MEMBER_SHARE = 0.02, 0.75
#: A run of fewer constant words than these, this many times shorter than what differs on both sides of it, is chance.
_FEWEST_CERTAIN, _CHANCE_RATIO = 5, 3
#: Longer texts are compared by this many characters.
LONGEST = 20_000
_MOST_FILLERS = 8


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of a template where its documents differ."""

    #: What fills it and in how many of the compared documents, the most frequent first, eight at most; "" where nothing
    #: does.
    fillers: tuple[tuple[str, int], ...]
    #: How many different fillers there are, those that are not listed too. Words tell them apart, not what is between.
    distinct: int


@dataclass(frozen=True, slots=True)
class Template:
    """A family whose documents are one text with slots."""

    family: int
    documents: int
    #: How many distinct texts were compared word by word and are the template.
    compared: int
    #: Some of its documents; the first one's text is that of ``pieces``.
    ids: tuple[str, ...]
    #: Words that all compared documents have, in the same order; and their share of a document's words, in the mean.
    constant: int
    share: float
    #: One document's text with its slots: a text and -1, or what it fills in and the slot's place in ``slots``. Put
    #: together, they are its text.
    pieces: tuple[tuple[str, int], ...]
    slots: tuple[Slot, ...]
    #: How many distinct texts were compared and lack parts that all others have.
    left_out: int = 0


class Pattern(NamedTuple):
    """The constant words and slots of some texts, as in ``Template``."""

    #: Indices of the texts that fit the pattern; the first text always does.
    members: tuple[int, ...]
    constant: int
    share: float
    pieces: tuple[tuple[str, int], ...]
    slots: tuple[Slot, ...]


def find_pattern(texts: Sequence[str]) -> Pattern | None:
    """Return the pattern of texts if they are a template, otherwise None.

    The first 20,000 characters of each text are compared with the first text.
    """
    texts = [text[:LONGEST] for text in texts]
    words = [normalize(text).split() for text in texts]
    if len(texts) < _FEWEST_TEXTS or not all(words):
        return None
    matches = _match_words(words)
    members = _select_members(matches)
    # The places of the constant words in each text, framed by the places before its first and after its last word.
    ends = np.array([len(words[m]) for m in members])[:, None]
    places = np.hstack([np.full_like(ends, -1), matches[members][:, (matches[members] >= 0).all(axis=0)], ends])
    places = _drop_chance_runs(places)
    constant = places.shape[1] - 2
    share = sum(constant / len(words[m]) for m in members) / len(members)
    if len(members) < _FEWEST_TEXTS or share < _CONSTANT_SHARE:
        return None
    filled = np.flatnonzero((np.diff(places) > 1).any(axis=0)).tolist()
    fillers = [
        [tuple(words[m][places[at, slot] + 1 : places[at, slot + 1]]) for at, m in enumerate(members)]
        for slot in filled
    ]
    if sum(map(_is_open, fillers)) < max(_OPEN_SHARE * len(fillers), 1):
        return None
    text_tokens = [tokens(texts[m]) for m in members]
    slots = [
        _build_slot(
            inside,
            [_text_between(texts[m], text_tokens[at], *places[at, slot : slot + 2]) for at, m in enumerate(members)],
        )
        for slot, inside in zip(filled, fillers, strict=True)
    ]
    return Pattern(
        tuple(members), constant, share, _split_pieces(texts[0], text_tokens[0], places[0], filled), tuple(slots)
    )


def _match_words(words: Sequence[Sequence[str]]) -> Integers:
    """Return the place in each text that matches each word of the first text, -1 for none: int64[texts, words]."""
    matches = np.full((len(words), len(words[0])), -1)
    matches[0] = np.arange(len(words[0]))
    for number, other in enumerate(words[1:], 1):
        for block in matching_blocks(words[0], other):
            ahead = np.arange(block.length)
            matches[number, block.left + ahead] = block.right + ahead
    return matches


def _drop_chance_runs(places: Integers) -> Integers:
    """Return the places of constant words without short runs between long differences, which match by chance."""
    gaps = np.diff(places).max(axis=0) - 1
    begins = [0, *(np.flatnonzero(gaps[:-1]) + 1).tolist()]
    ends = [*begins[1:], places.shape[1] - 1]
    kept = [0]
    for begin, end in zip(begins, ends, strict=True):
        run = [column for column in range(begin, end) if column]
        if not run:
            continue
        before = int((places[:, run[0]] - places[:, kept[-1]]).max()) - 1
        if len(run) >= _FEWEST_CERTAIN or len(run) * _CHANCE_RATIO > min(before, int(gaps[end - 1])):
            kept += run
    return places[:, [*kept, places.shape[1] - 1]]


def _select_members(matches: Integers) -> list[int]:
    """Return the texts without those that alone lack many words of all others."""
    members = list(range(len(matches)))
    most = len(matches) - int(_MEMBER_SHARE * len(matches))
    for _ in range(most):
        lacking = matches[members] < 0
        alone = lacking[:, lacking.sum(axis=0) == 1].sum(axis=1)
        worst = int(alone.argmax())
        if alone[worst] <= max(_MISSING_SHARE * matches.shape[1], 1):
            break
        del members[worst]
    return members


def _text_between(text: str, words: Sequence[Token], before: int, after: int) -> str:
    return text[words[before + 1].start : words[after - 1].end] if after > before + 1 else ""


def _build_slot(fillers: Sequence[tuple[str, ...]], written: Sequence[str]) -> Slot:
    counts = Counter(fillers)
    # Fillers are written as in the first text that has them.
    first = dict(zip(reversed(fillers), reversed(written), strict=True))
    ranked = sorted(counts, key=lambda words: (-counts[words], words))
    return Slot(tuple((first[words], counts[words]) for words in ranked[:_MOST_FILLERS]), len(counts))


def _is_open(fillers: Sequence[tuple[str, ...]]) -> bool:
    if sum(map(bool, fillers)) < _FILLED_SHARE * len(fillers) or median(map(len, fillers)) > _MOST_FILLER_WORDS:
        return False
    bare_fillers = [frozenset(map(_strip_accents, words)) for words in fillers]
    counts = Counter(word for words in bare_fillers for word in words)
    common_words = {word for word, times in counts.items() if times > _COMMON_WORD_SHARE * len(fillers)}
    groups = Counter(words - common_words for words in bare_fillers)
    return len(groups) >= _FEWEST_DISTINCT and max(groups.values()) <= max(_SAME_SHARE * len(fillers), 1)


@cache
def _strip_accents(word: str) -> str:
    return "".join(one for one in normalize_unicode("NFD", word) if unicodedata.category(one) != "Mn")


def _split_pieces(
    text: str, words: Sequence[Token], places: Integers, filled: Sequence[int]
) -> tuple[tuple[str, int], ...]:
    number = {slot: at for at, slot in enumerate(filled)}
    cuts: list[tuple[int, int, int]] = []
    for slot, (before, after) in enumerate(pairwise(places.tolist())):
        if slot not in number:
            continue
        if after > before + 1:
            cuts.append((words[before + 1].start, words[after - 1].end, number[slot]))
        else:
            place = words[after].start if after < len(words) else words[before].end if words else 0
            cuts.append((place, place, number[slot]))
    pieces, done = [], 0
    for begin, end, at in cuts:
        pieces += [(text[done:begin], -1), (text[max(begin, done) : end], at)]
        done = max(end, done)
    pieces.append((text[done:], -1))
    return tuple(piece for piece in pieces if piece[0] or piece[1] >= 0)
