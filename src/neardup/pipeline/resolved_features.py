"""The features of a text with their tokens and places, in plain Python straight from the definitions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.kernels import Integers, Words
from neardup.kernels.unicode_tables import fold
from neardup.recipe import Recipe
from neardup.recipe.kinds import Features
from neardup.recipe.recipe import word_lists
from neardup.text.normalize import Tokens, normalize, token_columns

if TYPE_CHECKING:
    from neardup.features.statistics import Statistics


#: Token texts; for some kinds followed by a number: the place, the rank, or the number of tokens of a short text.
Gram = tuple[str | int, ...]
#: The units that a gram is made of.
Place = range | tuple[int, ...]

_PIECES = re.compile(r"\s+|\S+")


class TextGrams(NamedTuple):
    """A text as it is, and its grams.

    Attributes
    ----------
    units : Tokens
        The units of grams: tokens without removed stop words, or characters of the normal form.
    grams : sequence of Gram
        In text order, with repetitions.
    places : sequence of Place
        The units of each gram, ascending.
    """

    text: str
    units: Tokens
    grams: Sequence[Gram]
    places: Sequence[Place]

    def gram_counts(self, recipe: Recipe) -> Mapping[Gram, int]:
        """Return the count of each gram: 1 in a set, its number of occurrences in a multiset."""
        return Counter(self.grams) if recipe.parsed_features.multiset else dict.fromkeys(self.grams, 1)


class _WordLists(NamedTuple):
    """Tokens to remove, tokens that a chain of a spot signature skips, and antecedents, which start one."""

    dropped: frozenset[str]
    stops: frozenset[str]
    antecedents: frozenset[str]


def text_grams(text: str, recipe: Recipe) -> TextGrams:
    """Return the grams of a text, before repeats are numbered, features clipped, windows sampled and terms chosen.

    Examples
    --------
    >>> text_grams("Stop. Go on and on", Recipe(features="sentence_words:2")).grams
    [('stop',), ('go', 'on'), ('on', 'and'), ('and', 'on')]
    """
    parsed = recipe.parsed_features
    if parsed.kind == "checksum":
        return _checksum(text, recipe.normalize)
    words = _words(recipe, parsed.kind)
    texts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    places: list[Place] = []
    for segment in _segment_tokens(text, recipe):
        first = len(texts)
        units = _units(text, segment, parsed, recipe.normalize, words.dropped)
        texts += units.texts
        starts += units.starts
        ends += units.ends
        if len(texts) > first:
            places += _PLACE_RULES[parsed.kind](texts, first, parsed, words)
    grams = _grams(texts, places, parsed)
    if recipe.ignore:
        ignored = _ignored(recipe)
        kept = [i for i, gram in enumerate(grams) if gram not in ignored]
        grams, places = [grams[i] for i in kept], [places[i] for i in kept]
    return TextGrams(text, Tokens(texts, starts, ends), grams, places)


@lru_cache(maxsize=4)
def _ignored(recipe: Recipe) -> frozenset[Gram]:
    return frozenset(text_grams(recipe.ignore, recipe.changed(ignore="")).grams)


def segment_spans(text: str, unit: Literal["sentence", "clause"] | None) -> list[tuple[int, int]]:
    """Return the offsets of the sentences or clauses of a text; without a unit, one span of the whole text."""
    if unit is None:
        return [(0, len(text))]
    # Its kernels take longer to load than most texts take to explain.
    from neardup.text.sentences import cut_text

    return cut_text(text, unit)


def set_overlap(left: Mapping[Gram, int], right: Mapping[Gram, int]) -> tuple[int, int, int]:
    """Return o, a and b of two sets or multisets of grams."""
    both = left.keys() & right.keys()
    shared = sum(map(min, map(left.__getitem__, both), map(right.__getitem__, both)))
    return shared, sum(left.values()), sum(right.values())


def _words(recipe: Recipe, kind: str) -> _WordLists:
    stops, antecedents = word_lists(recipe)
    if kind != "spots":
        return _WordLists(stops, frozenset(), frozenset())
    return _WordLists(frozenset(), stops | antecedents, antecedents)


def _segment_tokens(text: str, recipe: Recipe) -> Iterator[Tokens]:
    """Yield the tokens of each segment of a text that has any, with offsets in the text."""
    spans = segment_spans(text, recipe.parsed_features.unit)
    words = token_columns(text, recipe.normalize)
    if len(spans) == 1:
        yield words
        return
    edges = np.array([end for _, end in spans])
    owner = np.searchsorted(edges, words.starts, "right")
    if recipe.normalize == "strip" or (np.array(words.ends, np.int64) > edges[owner]).any():
        # The tokens of a segment are not those of the text.
        for start, end in spans:
            words = token_columns(text[start:end], recipe.normalize)
            yield Tokens(words.texts, [start + at for at in words.starts], [start + at for at in words.ends])
        return
    cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(words)]
    for first, last in pairwise(cuts):
        yield Tokens(words.texts[first:last], words.starts[first:last], words.ends[first:last])


def _units(text: str, words: Tokens, parsed: Features, normalizer: str, dropped: frozenset[str]) -> Tokens:
    if parsed.traits.by_character:
        return words if normalizer == "compact" else _characters(text, words)
    if not dropped:
        return words
    kept = [word not in dropped for word in words.texts]
    starts, ends = (list(compress(column, kept)) for column in (words.starts, words.ends))
    return Tokens(list(compress(words.texts, kept)), starts, ends)


def _characters(text: str, words: Tokens) -> Tokens:
    """Return the characters of the words, with a space between two words."""
    starts: list[int] = []
    ends: list[int] = []
    for word, start, end in zip(words.texts, words.starts, words.ends, strict=True):
        if ends:
            starts.append(ends[-1])
            ends.append(max(start, ends[-1]))
        # Equal length does not mean equal characters: a ligature becomes two, and points are removed.
        original = text[start:end]
        if len(word) == end - start and (word in (original, original.lower()) or all(map(_is_folded, word, original))):
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            starts += [start] * len(word)
            ends += [end] * len(word)
    return Tokens(list(" ".join(words.texts)), starts, ends)


@lru_cache(maxsize=1 << 16)
def _is_folded(folded: str, character: str) -> bool:
    return folded == character or folded == fold(character)


def _contiguous(units: Sequence[str], first: int, parsed: Features, words: _WordLists) -> list[Place]:
    """Return runs of n units; a text with fewer units is one gram of them all."""
    width = min(parsed.n, len(units) - first)
    return [range(i, i + width) for i in range(first, len(units) - width + 1)]


def _skipping(units: Sequence[str], first: int, parsed: Features, words: _WordLists) -> list[Place]:
    span, step = _span(parsed), parsed.numbers[1] + 1
    if len(units) - first < span:
        return [range(first, len(units))]
    return [range(i, i + span, step) for i in range(first, len(units) - span + 1)]


def _all_units(units: Sequence[str], first: int, parsed: Features, words: _WordLists) -> list[Place]:
    return [range(first, len(units))]


def _spots(units: Sequence[str], first: int, parsed: Features, words: _WordLists) -> list[Place]:
    distance, chain = parsed.numbers
    links = [i for i in range(first, len(units)) if units[i] not in words.stops]
    places: list[Place] = []
    for i in range(first, len(units)):
        if units[i] in words.antecedents:
            after = bisect_right(links, i)
            chosen = links[after + distance - 1 : after + distance * chain : distance]
            if len(chosen) == chain:
                places.append((i, *chosen))
    return places


_PLACE_RULES: dict[str, Callable[[Sequence[str], int, Features, _WordLists], list[Place]]] = {
    "words": _contiguous,
    "qgrams": _contiguous,
    "skips": _skipping,
    "clauses": _all_units,
    "sentence_words": _contiguous,
    "spots": _spots,
    "terms": _contiguous,
    "windows": _contiguous,
}


def _grams(texts: list[str], places: list[Place], parsed: Features) -> list[Gram]:
    if parsed.kind == "windows":
        joined = "".join(texts)
        return [(joined[place[0] : place[-1] + 1],) for place in places]
    grams: list[Gram]
    if _PLACE_RULES[parsed.kind] is _contiguous and parsed.unit is None and len(texts) >= parsed.n:
        grams = list(zip(*(texts[i:] for i in range(parsed.n)), strict=False))
    else:
        grams = [
            tuple(texts[place.start : place.stop : place.step])
            if isinstance(place, range)
            else tuple([texts[i] for i in place])
            for place in places
        ]
    if parsed.kind == "qgrams" and parsed.positional:
        return [(*gram, i) for i, gram in enumerate(grams)]
    if parsed.kind == "skips" and len(grams) == 1 and len(texts) < _span(parsed):
        # A short text may have as many tokens as a gram, but is a different feature.
        return [(*grams[0], len(texts))]
    return grams


def _span(parsed: Features) -> int:
    k, gap = parsed.numbers
    return (k - 1) * (gap + 1) + 1


def _checksum(text: str, normalizer: str) -> TextGrams:
    """Return the one gram of a text: its whole normal form."""
    normal = normalize(text, normalizer)
    if normalizer == "raw":
        spans = [piece.span() for piece in _PIECES.finditer(text)]
        units = Tokens(_PIECES.findall(text), [start for start, _ in spans], [end for _, end in spans])
    else:
        units = token_columns(text, normalizer)
    return TextGrams(text, units, *([(normal,)], [range(len(units))]) if len(units) else ([], []))


class Counts(NamedTuple):
    """o, a and b of a pair, as ``neardup.recipe.measures`` takes them, and their unit: the value that stands for 1."""

    o: int
    a: int
    b: int
    unit: int = 1


class PairCounts(NamedTuple):
    """Counts of two documents compared by weighted vectors or signatures; the words of each signature, if any."""

    counts: Counts
    words: tuple[list[int], list[int]] = ([], [])


def needs_kernels(recipe: Recipe) -> bool:
    """Return whether only kernels can compute the features: the recipe clips, weights, selects or signs them."""
    return bool(recipe.clip or recipe.weights or recipe.signature) or _selects_grams(recipe)


def _selects_grams(recipe: Recipe) -> bool:
    return recipe.parsed_features.kind in ("terms", "windows")


def resolved_grams(text: str, recipe: Recipe, statistics: Statistics | None) -> TextGrams:
    """Return the grams of a text that become features, after clipping, sampling and selection.

    Raises ``RecipeError`` if the recipe needs statistics and there are none.
    """
    if recipe.needs_statistics and statistics is None:
        raise RecipeError(
            f"the features of recipe {recipe.name!r} depend on the collection, and there are no statistics of one; "
            "gather them first, or use the result of a run"
        )
    side, parsed = text_grams(text, recipe), recipe.parsed_features
    if not side.grams or not (recipe.clip or _selects_grams(recipe)):
        return side
    if parsed.kind == "terms" and parsed.positional:
        return _ranked(side, recipe, statistics)
    hashes = _hashes(text, recipe)
    positions = np.arange(len(hashes))
    if parsed.kind == "windows":
        positions = _sampled(hashes, parsed.numbers[1])
    bare = recipe.without_statistics()
    # Repetitions are numbered, and places added, in gram order.
    features = _features([text], bare)[0] if parsed.multiset or parsed.positional else hashes[positions]
    return _select(
        side, positions[np.isin(features, _features([text], bare.changed(clip=recipe.clip), statistics)[0])].tolist()
    )


def _select(side: TextGrams, positions: list[int]) -> TextGrams:
    return side._replace(grams=[side.grams[i] for i in positions], places=[side.places[i] for i in positions])


def _sampled(hashes: Words, modulus: int) -> Integers:
    chosen = np.flatnonzero(hashes % np.uint64(modulus) == 0)
    return chosen if len(chosen) else np.array([np.argmin(hashes)])


def _ranked(side: TextGrams, recipe: Recipe, statistics: Statistics | None) -> TextGrams:
    """Return the selected terms at all their places, each with its rank in its segment."""
    parsed, bare = recipe.parsed_features, recipe.without_statistics()
    segments = segment_spans(side.text, parsed.unit)
    document = bare.changed(features=f"terms:{parsed.numbers[0]}", clip=recipe.clip)
    chosen = _features([side.text[start:end] for start, end in segments], document, statistics)
    ranks = [{term: rank for rank, term in enumerate(terms.tolist())} for terms in chosen]
    ends = [end for _, end in segments]
    kept: list[int] = []
    grams: list[Gram] = []
    for i, term in enumerate(_hashes(side.text, bare).tolist()):
        rank = ranks[bisect_right(ends, side.units.starts[i])].get(term)
        if rank is not None:
            kept.append(i)
            grams.append((*side.grams[i], rank))
    return _select(side, kept)._replace(grams=grams)


def _hashes(text: str, recipe: Recipe) -> Words:
    from neardup.features.extraction import gram_hashes

    return gram_hashes(text, recipe)


def _features(texts: list[str], recipe: Recipe, statistics: Statistics | None = None) -> list[Words]:
    block = _extract(texts, recipe, statistics)
    return np.split(block.features, np.cumsum(block.sizes)[:-1])


def _extract(texts: list[str], recipe: Recipe, statistics: Statistics | None) -> Any:
    import pyarrow as pa

    from neardup.features.extraction import extract_features

    return extract_features(pa.array(texts, pa.large_string()), recipe, statistics)


def pair_counts(left: str, right: str, recipe: Recipe, statistics: Statistics | None) -> PairCounts | None:
    """Return the counts of two texts compared by weighted vectors or signatures; None for plain sets."""
    if not (recipe.weights or recipe.signature):
        return None
    block = _extract([left, right], recipe, statistics)
    end = int(block.sizes[0])
    features = block.features[:end].tolist(), block.features[end:].tolist()
    if recipe.is_weighted:
        weights = block.weights[:end].tolist(), block.weights[end:].tolist()
        f, g = (dict(zip(*pair, strict=True)) for pair in zip(features, weights, strict=True))
        unit = 1 if statistics is None else statistics.unit(recipe)
        return PairCounts(_vector_counts(f, g, recipe.measure, unit))
    if recipe.signature == "simhash":
        a, b = 64 * len(features[0]), 64 * len(features[1])
        differ = (features[0][0] ^ features[1][0]).bit_count() if a and b else 64
        return PairCounts(Counts(64 - differ, a, b), features)
    shared = len(set(features[0]) & set(features[1]))
    return PairCounts(Counts(shared, len(features[0]), len(features[1])), features)


def _vector_counts(f: dict[int, int], g: dict[int, int], measure: str, unit: int) -> Counts:
    if measure == "weighted_jaccard":
        return Counts(sum(min(w, g.get(x, 0)) for x, w in f.items()), sum(f.values()), sum(g.values()), unit)
    a, b = (sum(w * w for w in vector.values()) for vector in (f, g))
    return Counts(sum(w * g.get(x, 0) for x, w in f.items()), a, b, unit)
