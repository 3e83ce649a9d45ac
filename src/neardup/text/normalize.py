r"""Text to comparable text: tokens separated by one space.

Five normalizers, by name:

``words``
    The text is folded: default-ignorable code points (soft hyphen, zero-width characters, variation
    selectors) and the points of Hebrew, Arabic and Syriac (vowel signs, accents, recitation marks, tatweel) are
    dropped, and NFKC and full case folding are applied until nothing changes [UAX #15; UAX #31 section 5.1,
    NFKC_Casefold]. A word is then a maximal run of letters and numbers (`str.isalnum`), ``_`` and combining
    marks; a mark belongs to the character before it and is dropped at the start of the text and after a separator.
    In scripts written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar, Tibetan ...) each letter or number
    with its marks is a token of its own, and so is each pictograph (So) of U+1F000-U+1FAFF. All else separates,
    skin tones included. For ASCII this is ``re.findall(r"\w+", text.lower())``.
``whitespace``
    `str.split`: tokens between Unicode white space, otherwise unchanged.
``compact``
    The letters, numbers, combining marks and pictographs of ``words``, folded in the same way and not separated: its
    result without spaces and ``_``.
``strip``
    White space and ASCII punctuation are stripped from both ends of the text; the rest is split at each single
    space. So a token may contain punctuation and line feeds, and two adjacent spaces enclose an empty token,
    written as ``␠``. This is how the Cornell program (INFO 4300, 2012) splits.
``raw``
    The text unchanged, as one token, for features of the whole text.

A character newer than Unicode 14.0 is a letter in every version of Python, even one that knows its category
(`neardup.kernels.unicode_tables`), so that the result does not depend on the version of Python.
"""

from __future__ import annotations

import functools
import itertools
import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.kernels import Bools, Integers
from neardup.kernels import unicode_tables as ut

#: The output of a kernel takes at most this many times the bytes of its input, and 64 more: an unmapped code point
#: of w bytes writes at most w + 1, and the kernel gives up where mapped ones would need more.
MAX_EXPANSION = 2

#: The digests of the tables, equal for all `unicode_tables.KNOWN_VERSIONS` of Unicode.
_DIGESTS = {
    "words": "e7ba9c88ce3ba4f8",
    "whitespace": "fa4c955cf7b6df49",
}


class Token(NamedTuple):
    """A token of comparable text, and its code point offsets in the original text, end excluded.

    Characters that are normalized together (a letter and its accents, a ligature) share their offsets, so neighbours
    may overlap.
    """

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Tokens:
    """The tokens of a text as columns: a million of them take a tenth of the time of as many ``Token``."""

    texts: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]

    def __len__(self) -> int:
        return len(self.texts)


class Normalizer(NamedTuple):
    """A way to make text comparable: functions from text to tokens with offsets, and to comparable text.

    ``tables`` returns the tables with which the kernel does the same; None if only Python can.
    """

    tokens: Callable[[str], Tokens]
    normalize: Callable[[str], str]
    tables: Callable[[], ut.UnicodeTables] | None


def tokens(text: str, normalizer: str = "words") -> list[Token]:
    """Cut a text into tokens with their offsets in the original; ``compact`` gives one token per character.

    Examples
    --------
    >>> tokens("Straße!")
    [Token(text='strasse', start=0, end=6)]
    """
    columns = token_columns(text, normalizer)
    return list(map(Token, columns.texts, columns.starts, columns.ends))


def token_columns(text: str, normalizer: str = "words") -> Tokens:
    """Return the `tokens` of a text as columns."""
    return _normalizer(normalizer).tokens(text)


def normalize(text: str, normalizer: str = "words") -> str:
    """Return the comparable text: the `tokens` joined by one space, or by nothing for ``compact``.

    Examples
    --------
    >>> normalize("A rose is a flower.")
    'a rose is a flower'
    >>> normalize("A rose is a flower.", "compact")
    'aroseisaflower'
    """
    return _normalizer(normalizer).normalize(text)


def kernel_tables(normalizer: str) -> ut.UnicodeTables:
    """Return the tables that the kernels need for a normalizer that has some; ASCII texts do not need them."""
    tables = _normalizer(normalizer).tables
    if tables is None:
        raise RecipeError(f"normalizer {normalizer!r} has no tables; normalize its texts in Python")
    return tables()


def tables_digest(normalizer: str) -> str:
    """Return a digest of the Unicode data that a normalizer uses, sixteen hex digits; empty if it uses none.

    It is computed only if Python's version of Unicode is not among `unicode_tables.KNOWN_VERSIONS`.
    """
    # `strip` takes only the white space from Python's Unicode data, and `compact` the tables of `words`.
    name = {"strip": "whitespace", "compact": "words"}.get(normalizer, normalizer)
    if not has_kernel(name):
        return ""
    return _DIGESTS[name] if unicodedata.unidata_version in ut.KNOWN_VERSIONS else ut.arrays_digest(kernel_tables(name))


def has_kernel(normalizer: str) -> bool:
    """Return whether the kernels support a normalizer; otherwise only `normalize` does."""
    return _normalizer(normalizer).tables is not None


def _normalizer(normalizer: str) -> Normalizer:
    try:
        return NORMALIZERS[normalizer]
    except KeyError:
        names = ", ".join(NORMALIZERS)
        raise RecipeError(f"unknown normalizer {normalizer!r}; choose one of {names}") from None


def _fold_with_offsets(text: str) -> tuple[str, Integers, Integers]:
    """Fold a text piece by piece; return it with where the source of every folded character begins and ends."""
    if text.isascii():
        return text.lower(), np.arange(len(text)), np.arange(1, len(text) + 1)
    pieces = _piece_pattern().findall(text)
    folded = [_fold_piece(piece) if len(piece) <= _LONGEST_CACHED else ut.fold(piece) for piece in pieces]
    lengths = np.fromiter(map(len, folded), np.int64, len(folded))
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    starts = np.concatenate([[0], ends[:-1]])
    return "".join(folded), np.repeat(starts, lengths), np.repeat(ends, lengths)


class _FoldedWords(NamedTuple):
    """The words of a folded text: where each begins in it, and its length; and the source of each folded character."""

    texts: list[str]
    first: Integers
    lengths: Integers
    starts: Integers
    ends: Integers


def _folded_words(text: str) -> _FoldedWords:
    folded, starts, ends = _fold_with_offsets(text)
    pattern = _ASCII_WORD if text.isascii() else _word_pattern()
    texts = pattern.findall(folded)
    first = np.fromiter((token.start() for token in pattern.finditer(folded)), np.int64, len(texts))
    return _FoldedWords(texts, first, np.fromiter(map(len, texts), np.int64, len(texts)), starts, ends)


def _word_tokens(text: str) -> Tokens:
    texts, first, lengths, starts, ends = _folded_words(text)
    return Tokens(texts, starts[first].tolist(), ends[first + lengths - 1].tolist())


def _normalize_words(text: str) -> str:
    if text.isascii():
        return " ".join(_ASCII_WORD.findall(text.lower()))
    if len(text) <= _CHUNK:
        return " ".join(_word_pattern().findall(ut.fold(text)))
    return " ".join([word[0] for word in _word_pattern().finditer("".join(map(ut.fold, _chunks(text))))])


#: Characters of a text that are folded at once: no other thread can run meanwhile.
_CHUNK = 1 << 16


def _chunks(text: str) -> Iterator[str]:
    """Yield a text in parts, cut where normalization does not cross: before a character that attaches to none."""
    begin, pattern = 0, _boundary_pattern()
    while cut := pattern.search(text, begin + _CHUNK):
        yield text[begin : cut.start()]
        begin = cut.start()
    yield text[begin:]


def _normalize_compact(text: str) -> str:
    return _normalize_words(text).translate(_SEPARATORS)


def _compact_tokens(text: str) -> Tokens:
    texts, first, lengths, starts, ends = _folded_words(text)
    characters = list("".join(texts))
    places = np.arange(len(characters)) + np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
    kept = np.array([character != "_" for character in characters], np.bool_)
    return Tokens(
        list(itertools.compress(characters, kept.tolist())), starts[places[kept]].tolist(), ends[places[kept]].tolist()
    )


def _strip_tokens(text: str) -> Tokens:
    bare = text.strip(_STRIPPED_CHARACTERS)
    pieces = bare.split(" ") if bare else []
    before = len(text) - len(text.lstrip(_STRIPPED_CHARACTERS))
    starts = list(itertools.accumulate((len(piece) + 1 for piece in pieces[:-1]), initial=before))[: len(pieces)]
    # An empty token has the offsets of the space after it.
    ends = [start + max(len(piece), 1) for start, piece in zip(starts, pieces, strict=True)]
    return Tokens([piece or EMPTY_PLACEHOLDER for piece in pieces], starts, ends)


def _normalize_strip(text: str) -> str:
    return " ".join(_strip_tokens(text).texts)


def _whitespace_tokens(text: str) -> Tokens:
    spans = [token.span() for token in _NOT_SPACE.finditer(text)]
    return Tokens(text.split(), [start for start, _ in spans], [end for _, end in spans])


#: Stands for an empty token of ``strip``: the symbol for a space.
EMPTY_PLACEHOLDER = "␠"

#: What ``compact`` drops from the result of ``words``.
_SEPARATORS = {ord(" "): None, ord("_"): None}
_SPACES = "".join(c for c in map(chr, range(0x4000)) if c.isspace())
_STRIPPED_CHARACTERS = string.punctuation + _SPACES
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_NOT_SPACE = re.compile(r"\S+")
#: Characters of the longest piece whose folding is kept.
_LONGEST_CACHED = 64
_fold_piece = functools.lru_cache(maxsize=1 << 16)(ut.fold)


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of a token in folded text."""
    kinds = ut.word_tables().kinds & ut.KIND_MASK
    word, single, mark = (ut.character_class(kinds == kind) for kind in (ut.WORD, ut.SINGLE, ut.MARK))
    return re.compile(f"[{word}][{word}{mark}]*|[{single}][{mark}]*")


@functools.cache
def _piece_pattern() -> re.Pattern[str]:
    """Return the pattern of a character with all that may compose with it or be reordered after it, and its points.

    A piece ends where the next character's decomposition begins with a starter that is not the second half of a
    composite: normalization never crosses such a boundary [UAX #15, section 9.1]. Ignorable code points between a
    character and its marks belong to the piece, those after it do not.
    """
    attaches, ignorable = map(ut.character_class, _attaching())
    # Ignorable code points in a row are one piece: no row is scanned from each of its places.
    return re.compile(f"[{ignorable}]++(?![{attaches}])|(?s:.)(?:[{ignorable}]*+[{attaches}])*+")


@functools.cache
def _boundary_pattern() -> re.Pattern[str]:
    """Return the pattern of a character that begins a piece."""
    attaches, ignorable = _attaching()
    return re.compile(f"[^{ut.character_class(attaches | ignorable)}]")


def _attaching() -> tuple[Bools, Bools]:
    """Return which code points attach to the one before, and which others are ignorable."""
    kinds, _, slots, blob, _, _ = ut.word_tables()
    attaches = kinds & (ut.REORDERS | ut.COMPOSES) != 0
    attaches |= kinds == ut.UNSUPPORTED
    # A compatibility jamo is mapped to a conjoining one.
    first = blob[np.minimum(slots.astype(np.int64) + 2, blob.size - 1)]
    mapped = kinds[: slots.size] == ut.MAPPED
    attaches[: slots.size] |= mapped & (kinds[first] & ut.COMPOSES != 0)
    points = ut.in_ranges(ut.POINT_RANGES, len(kinds))
    attaches |= points
    return attaches, (kinds == ut.IGNORABLE) & ~points


@functools.cache
def _whitespace_tables() -> ut.UnicodeTables:
    kinds = np.full(ut.N_CODE_POINTS, ut.WORD, dtype=np.uint8)
    kinds[[ord(space) for space in _SPACES]] = ut.SEPARATOR
    return ut.plain_tables(kinds)


#: The normalizers by name.
NORMALIZERS: Mapping[str, Normalizer] = MappingProxyType(
    {
        "words": Normalizer(_word_tokens, _normalize_words, ut.word_tables),
        "whitespace": Normalizer(_whitespace_tokens, lambda text: " ".join(text.split()), _whitespace_tables),
        "compact": Normalizer(_compact_tokens, _normalize_compact, ut.word_tables),
        "strip": Normalizer(_strip_tokens, _normalize_strip, None),
        "raw": Normalizer(lambda text: Tokens(*([text], [0], [len(text)]) if text else ((), (), ())), str, None),
    }
)
