r"""Text -> comparable text: tokens with one space between.

Five normalizers, by name:

``words``
    The text is folded: default-ignorable code points (soft hyphen, zero-width characters, variation
    selectors) and the points of Hebrew, Arabic and Syriac (vowel signs, accents, recitation marks, tatweel) go,
    and NFKC and full case folding are applied until nothing changes [UAX #15; UAX #31 section 5.1,
    NFKC_Casefold]. A word is then a maximal run of letters and numbers (`str.isalnum`), ``_`` and combining
    marks; a mark stays with what it follows and is dropped at the start of the text and after a separator. In
    scripts written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar, Tibetan ...) each letter or number
    with its marks is a token of its own, and so is each pictograph (So) of U+1F000-U+1FAFF; skin tones separate
    and so vanish. All else separates. For ASCII this is ``re.findall(r"\w+", text.lower())``.
``whitespace``
    `str.split`: tokens between Unicode white space, nothing changed.
``compact``
    Letters, numbers, combining marks and pictographs (So from U+1F000), unchanged and unseparated; ignorable
    code points, points, punctuation, symbols and spaces are dropped.
``strip``
    White space and ASCII punctuation go from the two ends of the text; what is left is split at each single
    space and not changed. So a token may hold punctuation and line feeds, and between two spaces lies an empty
    token, which stands as ``␠``. This is how the Cornell program (INFO 4300, 2012) splits.
``raw``
    The text as it is, one token; for features that look at the whole text.

Characters that came after Unicode 14.0 are letters to every Python, also to one that knows better
(`neardup.kernels.characters`), so that the answer does not depend on the Python that runs it.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.kernels import characters
from neardup.kernels import unicode_tables as ut

#: A kernel's output takes at most this many times the bytes of its input, and 64 more: an unmapped code point
#: of w bytes writes at most w + 1, and where mapped ones would need more the kernel gives up.
MAX_EXPANSION = 2

#: The digests of the tables, for all versions of Unicode among `unicode_tables.KNOWN_VERSIONS`.
_DIGESTS = {
    "words": "e7ba9c88ce3ba4f8",
    "whitespace": "fa4c955cf7b6df49",
    "compact": "f11b49c9ccf3a906",
}


class Token(NamedTuple):
    """A token of comparable text and where it comes from.

    Attributes
    ----------
    text : str
        As it stands in the comparable text.
    start, end : int
        Code point offsets in the original text, end excluded. Characters that are normalised together
        (a letter and its accents, a ligature) are named together, so neighbours may overlap.
    """

    text: str
    start: int
    end: int


class Normalizer(NamedTuple):
    """One way from text to comparable text: text to tokens with their places, text to comparable text.

    ``tables`` are those with which the kernel does the same; None where only Python does it.
    """

    tokens: Callable[[str], list[Token]]
    normalize: Callable[[str], str]
    tables: Callable[[], ut.Tables] | None


def tokens(text: str, normalizer: str = "words") -> list[Token]:
    """Cut a text into tokens, in its order, and tell where each comes from; ``compact`` has one for each character.

    Examples
    --------
    >>> tokens("Straße!")
    [Token(text='strasse', start=0, end=6)]
    """
    return _named(normalizer).tokens(text)


def normalize(text: str, normalizer: str = "words") -> str:
    """Turn a text into comparable text: the texts of `tokens`, with one space between, for ``compact`` with nothing.

    Examples
    --------
    >>> normalize("A rose is a flower.")
    'a rose is a flower'
    >>> normalize("A rose is a flower.", "compact")
    'Aroseisaflower'
    """
    return _named(normalizer).normalize(text)


def kernel_tables(normalizer: str) -> ut.Tables:
    """Return the tables that the kernels take for a normalizer that has one; ASCII texts do not need them."""
    tables = _named(normalizer).tables
    if tables is None:
        raise RecipeError(f"normalizer {normalizer!r} has no tables; normalize its texts in Python")
    return tables()


def tables_digest(normalizer: str) -> str:
    """Return a digest of what a normalizer knows of Unicode, sixteen hex digits; empty for one that knows nothing.

    It is computed where Python has a version of Unicode that is not among `unicode_tables.KNOWN_VERSIONS`.
    """
    # Of what strip strips, white space is all that Python tells it.
    name = "whitespace" if normalizer == "strip" else normalizer
    if not has_kernel(name):
        return ""
    return _DIGESTS[name] if unicodedata.unidata_version in ut.KNOWN_VERSIONS else ut.digest_of(kernel_tables(name))


def has_kernel(normalizer: str) -> bool:
    """Return whether kernels can do what the normalizer does; if not, only `normalize` can."""
    return _named(normalizer).tables is not None


def _named(normalizer: str) -> Normalizer:
    try:
        return NORMALIZERS[normalizer]
    except KeyError:
        known = ", ".join(NORMALIZERS)
        raise RecipeError(f"normalizer {normalizer!r} is unknown; known are {known}") from None


def _word_tokens(text: str) -> list[Token]:
    """Fold the text piece by piece, so that every folded character knows its piece."""
    if text.isascii():
        return _found(_ASCII_WORD, text.lower())
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for piece in _pieces().finditer(text):
        characters = _fold_piece(piece[0])
        folded.append(characters)
        starts += [piece.start()] * len(characters)
        ends += [piece.end()] * len(characters)
    found = _word().finditer("".join(folded))
    return [Token(token[0], starts[token.start()], ends[token.end() - 1]) for token in found]


def _words(text: str) -> str:
    if text.isascii():
        return " ".join(_ASCII_WORD.findall(text.lower()))
    return " ".join(_word().findall(characters.fold(text)))


def _compact(text: str) -> str:
    return "".join(_kept().findall(text))


def _compact_tokens(text: str) -> list[Token]:
    return [Token(kept[1], kept.start(), kept.end()) for kept in _kept().finditer(text)]


def _strip_tokens(text: str) -> list[Token]:
    bare = text.strip(_OUTER)
    if not bare:
        return []
    at = len(text) - len(text.lstrip(_OUTER))
    found = []
    for piece in bare.split(" "):
        # An empty token takes the place of the space after it.
        found.append(Token(piece or EMPTY, at, at + max(len(piece), 1)))
        at += len(piece) + 1
    return found


def _strip(text: str) -> str:
    bare = text.strip(_OUTER)
    return " ".join([piece or EMPTY for piece in bare.split(" ")]) if bare else ""


def _found(pattern: re.Pattern[str], text: str) -> list[Token]:
    return [Token(token[0], token.start(), token.end()) for token in pattern.finditer(text)]


#: What stands for an empty token of ``strip``: the symbol for a space.
EMPTY = "␠"

_SPACES = "".join(c for c in map(chr, range(0x4000)) if c.isspace())
_OUTER = string.punctuation + _SPACES
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_NOT_SPACE = re.compile(r"\S+")
_fold_piece = functools.lru_cache(maxsize=1 << 16)(characters.fold)


@functools.cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a token in folded text."""
    kinds = ut.word_tables().kinds & ut.KIND_MASK
    word, single, mark = (characters.character_class(kinds == kind) for kind in (ut.WORD, ut.SINGLE, ut.MARK))
    return re.compile(f"[{word}][{word}{mark}]*|[{single}][{mark}]*")


@functools.cache
def _pieces() -> re.Pattern[str]:
    """Return the pattern of a character with all that may melt into it or change places after it, and its points.

    A piece ends where the next character's decomposition begins with a starter that is not the second
    half of a composite: normalisation never crosses such a boundary [UAX #15, section 9.1]. Ignorable code
    points between a character and its marks belong to the piece, those after it do not.
    """
    kinds, _, slots, blob, _, _ = ut.word_tables()
    clings = kinds & (ut.MOVES | ut.JOINS) != 0
    clings |= kinds == ut.UNSURE
    # A compatibility jamo stands for a conjoining one.
    first = blob[np.minimum(slots.astype(np.int64) + 2, blob.size - 1)]
    mapped = kinds[: slots.size] == ut.MAPPED
    clings[: slots.size] |= mapped & (kinds[first] & ut.JOINS != 0)
    points = characters.in_ranges(characters.POINT_RANGES, len(kinds))
    clings |= points
    ignorable = characters.character_class((kinds == ut.IGNORABLE) & ~points)
    return re.compile(f"(?s:.)(?:[{ignorable}]*[{characters.character_class(clings)}])*")


@functools.cache
def _kept() -> re.Pattern[str]:
    """Return the pattern of one character that ``compact`` keeps, as a group, with its points."""
    points = characters.character_class(characters.in_ranges(characters.POINT_RANGES, characters.N_CHARACTERS))
    return re.compile(f"([{characters.character_class(_compact_tables().kinds == ut.WORD)}])[{points}]*")


@functools.cache
def _whitespace_tables() -> ut.Tables:
    kinds = np.full(characters.N_CODE_POINTS, ut.WORD, dtype=np.uint8)
    kinds[[ord(space) for space in _SPACES]] = ut.SEPARATOR
    return ut.unmapped_tables(kinds)


@functools.cache
def _compact_tables() -> ut.Tables:
    """To the kernel the text is one word, and what is dropped counts as ignorable."""
    known = characters.properties()
    kinds = np.full(characters.N_CODE_POINTS, ut.IGNORABLE, dtype=np.uint8)
    kept = known.alnum | known.mark
    kept[characters.PICTOGRAPHS[0] :] |= known.symbol[characters.PICTOGRAPHS[0] :]
    kinds[: characters.N_CHARACTERS][kept & ~known.ignorable] = ut.WORD
    return ut.unmapped_tables(kinds)


#: The normalizers by name.
NORMALIZERS: Mapping[str, Normalizer] = MappingProxyType(
    {
        "words": Normalizer(_word_tokens, _words, ut.word_tables),
        "whitespace": Normalizer(
            lambda text: _found(_NOT_SPACE, text), lambda text: " ".join(text.split()), _whitespace_tables
        ),
        "compact": Normalizer(_compact_tokens, _compact, _compact_tables),
        "strip": Normalizer(_strip_tokens, _strip, None),
        "raw": Normalizer(lambda text: [Token(text, 0, len(text))] if text else [], str, None),
    }
)
