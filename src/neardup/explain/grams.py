"""Texts to grams in plain Python, by their definitions, and where each gram stands in its text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from neardup.recipe import Recipe
from neardup.recipe.kinds import Features
from neardup.recipe.word_lists import word_lists
from neardup.text.characters import fold
from neardup.text.normalize import Token, normalize, tokens

#: Token texts, behind them a number where the kind has one: the place, or the rank, or how many too few they are.
Gram = tuple[str | int, ...]
#: The units that a gram is made of.
Place = range | tuple[int, ...]

_PIECES = re.compile(r"\s+|\S+")


class Side(NamedTuple):
    """A text and its grams.

    Attributes
    ----------
    text : str
        The original.
    units : sequence of Token
        What grams are made of: tokens without stop words that are left out, or characters of the normal form.
    grams : sequence of Gram
        In the order of the text, repeats repeated.
    places : sequence of Place
        The units of each gram, ascending.
    """

    text: str
    units: Sequence[Token]
    grams: Sequence[Gram]
    places: Sequence[Place]

    def counted(self, recipe: Recipe) -> Mapping[Gram, int]:
        """Return how often each gram counts: once in a set, as often as it stands there in a multiset."""
        return Counter(self.grams) if recipe.parsed_features.multiset else dict.fromkeys(self.grams, 1)


class _Words(NamedTuple):
    """Which tokens are left out, which break no chain of a spot signature, and which begin one."""

    dropped: frozenset[str]
    stops: frozenset[str]
    begins: frozenset[str]


def side_of(text: str, recipe: Recipe) -> Side:
    """Return the grams of a text, before repeats are numbered, features clipped, windows sampled and terms chosen.

    Parameters
    ----------
    text : str
        Any text.
    recipe : Recipe
        Its ``normalize``, ``features``, ``stop_words`` and ``antecedents``.

    Examples
    --------
    >>> side_of("Stop. Go on and on", Recipe(features="sentence_words:2")).grams
    [('stop',), ('go', 'on'), ('on', 'and'), ('and', 'on')]
    """
    wanted = recipe.parsed_features
    if wanted.kind == "checksum":
        return _checksum(text, recipe.normalize)
    words = _words(recipe, wanted.kind)
    units: list[Token] = []
    places: list[Place] = []
    for start, end in spans_of(text, wanted.unit):
        first = len(units)
        units += _units(text, start, end, recipe, words.dropped)
        if len(units) > first:
            places += _PLACES[wanted.kind](units, first, wanted, words)
    texts = [unit.text for unit in units]
    return Side(text, units, _grams(texts, places, wanted), places)


def spans_of(text: str, unit: Literal["sentence", "clause"] | None) -> list[tuple[int, int]]:
    """Return where the sentences or clauses of a text begin and end, or the text's own ends where there is no unit."""
    if unit is None:
        return [(0, len(text))]
    # The kernels behind it take longer to load than most texts to explain.
    from neardup.text.breaks import cut

    return cut(text, unit)


def set_counts(left: Mapping[Gram, int], right: Mapping[Gram, int]) -> tuple[int, int, int]:
    """Return o, a and b of two sets or multisets of grams."""
    shared = sum(min(count, right.get(gram, 0)) for gram, count in left.items())
    return shared, sum(left.values()), sum(right.values())


def _words(recipe: Recipe, kind: str) -> _Words:
    stops, begins = word_lists(recipe)
    if kind != "spots":
        return _Words(stops, frozenset(), frozenset())
    return _Words(frozenset(), stops | begins, begins)


def _units(text: str, start: int, end: int, recipe: Recipe, dropped: frozenset[str]) -> list[Token]:
    found = tokens(text[start:end], recipe.normalize)
    if start:
        found = [Token(token.text, token.start + start, token.end + start) for token in found]
    if recipe.parsed_features.traits.by_character:
        return _characters(text, found, parted=recipe.normalize != "compact")
    return [token for token in found if token.text not in dropped] if dropped else found


def _characters(text: str, found: list[Token], *, parted: bool) -> list[Token]:
    characters: list[Token] = []
    for token in found:
        if parted and characters:
            characters.append(Token(" ", characters[-1].end, max(token.start, characters[-1].end)))
        written = text[token.start : token.end]
        # As many characters as before are not always the same ones: a ligature is two, and points go.
        each = len(token.text) == len(written) and all(
            one == other or one == fold(other) for one, other in zip(token.text, written, strict=True)
        )
        for i, character in enumerate(token.text):
            place = (token.start + i, token.start + i + 1) if each else (token.start, token.end)
            characters.append(Token(character, *place))
    return characters


def _contiguous(units: Sequence[Token], first: int, wanted: Features, words: _Words) -> list[Place]:
    """Fewer units than n make one gram of them all."""
    width = min(wanted.n, len(units) - first)
    return [range(i, i + width) for i in range(first, len(units) - width + 1)]


def _skipping(units: Sequence[Token], first: int, wanted: Features, words: _Words) -> list[Place]:
    span, step = _span(wanted), wanted.numbers[1] + 1
    if len(units) - first < span:
        return [range(first, len(units))]
    return [range(i, i + span, step) for i in range(first, len(units) - span + 1)]


def _whole(units: Sequence[Token], first: int, wanted: Features, words: _Words) -> list[Place]:
    return [range(first, len(units))]


def _spots(units: Sequence[Token], first: int, wanted: Features, words: _Words) -> list[Place]:
    distance, chain = wanted.numbers
    links = [i for i in range(first, len(units)) if units[i].text not in words.stops]
    places: list[Place] = []
    for i in range(first, len(units)):
        if units[i].text in words.begins:
            after = bisect_right(links, i)
            chosen = links[after + distance - 1 : after + distance * chain : distance]
            if len(chosen) == chain:
                places.append((i, *chosen))
    return places


_PLACES: dict[str, Callable[[Sequence[Token], int, Features, _Words], list[Place]]] = {
    "words": _contiguous,
    "qgrams": _contiguous,
    "skips": _skipping,
    "clauses": _whole,
    "sentence_words": _contiguous,
    "spots": _spots,
    "terms": _contiguous,
    "windows": _contiguous,
}


def _grams(texts: list[str], places: list[Place], wanted: Features) -> list[Gram]:
    if wanted.kind == "windows":
        whole = "".join(texts)
        return [(whole[place[0] : place[-1] + 1],) for place in places]
    grams: list[Gram] = [
        tuple(texts[place.start : place.stop : place.step])
        if isinstance(place, range)
        else tuple([texts[i] for i in place])
        for place in places
    ]
    if wanted.kind == "qgrams" and wanted.positional:
        return [(*gram, i) for i, gram in enumerate(grams)]
    if wanted.kind == "skips" and len(grams) == 1 and len(texts) < _span(wanted):
        # Too few tokens may still be as many as a gram has, and are not that gram.
        return [(*grams[0], len(texts))]
    return grams


def _span(wanted: Features) -> int:
    k, gap = wanted.numbers
    return (k - 1) * (gap + 1) + 1


def _checksum(text: str, normalizer: str) -> Side:
    """Return the one gram of a text: all of its normal form."""
    normal = normalize(text, normalizer)
    if normalizer == "raw":
        units = [Token(piece[0], piece.start(), piece.end()) for piece in _PIECES.finditer(text)]
    else:
        units = tokens(text, normalizer)
    return Side(text, units, [(normal,)], [range(len(units))]) if units else Side(text, [], [], [])
