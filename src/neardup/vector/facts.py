"""The facts of texts: numbers by their value, names, and the places where they stand, as sets of 64-bit hashes.

What tells another story in the same form from the same story told twice is not the wording but what fills it: amounts,
dates, people, places. So these are compared for themselves, on the texts as they are written:

number
    A run of digits of any script, with points and commas between them, by its value: 1,000 is 1000, 2.50 is 2.5, and
    .5 is 0.5. Of both marks the last is the decimal one; a comma alone before three digits parts thousands; a mark that
    stands several times parts thousands or, where it does not, makes a date or a version, taken as it stands. Signs do
    not count, nor do numbers in words.
name
    A run of at least two letters that begins with an upper-case one, in lower case, unless it begins a sentence, a
    paragraph or (after a comma or colon) a quotation, or stands in a line of upper-case letters alone. A full stop
    behind one to three letters with an upper-case one first, as in "Mr." and "U.S.", ends no sentence. Scripts without
    case have no names, and in German every noun is one.
fact
    A run of numbers and names with no other word between them; its place is the word before it and the word after it.

Texts are taken in their compatibility composition (NFKC) and without points, so that an accent is the same however it
is written, and a word whether its vowels are written or not.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup._kernels.facts import find_facts, find_prefixes
from neardup._kernels.numerals import (
    BEYOND,
    DIGIT,
    FEED,
    IGNORED,
    LETTER,
    MARK,
    OTHER,
    PAUSE,
    QUOTE,
    SINGLE,
    STOP,
    UPPER,
)
from neardup.text.breaks import ASCII_TERMINATORS, TERMINATORS
from neardup.text.characters import IGNORABLE_RANGES, UNSPACED_RANGES, composed, in_ranges, properties
from neardup.text.comparable import comparable, text_buffers
from neardup.text.unicode_tables import KNOWN_VERSIONS, digest_of
from neardup.vector.rows import Rows

Bytes = npt.NDArray[np.uint8]

#: After a pause, the first word of a quotation begins a sentence.
PAUSES = ",:;\u060c\u061b\u3001"
QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
_CLASSES = {"Nd": DIGIT, "Lu": UPPER, "Lt": UPPER, "Ll": LETTER, "Lm": LETTER, "Lo": LETTER}
_CLASSES |= dict.fromkeys(("Mn", "Mc", "Me"), MARK)


#: The digest of the tables, for all versions of Unicode among `KNOWN_VERSIONS`.
_DIGEST = "cfcd6e832af9c80c"


class Facts(NamedTuple):
    """The facts of texts: one row for each text, ascending, none twice.

    Attributes
    ----------
    numbers, names : Rows
        Hashes of values, and of names in lower case.
    places, facts : Rows
        Hashes of the words before and after each fact, and of those with the fact between them.
    """

    numbers: Rows
    names: Rows
    places: Rows
    facts: Rows


@cache
def fact_tables() -> tuple[Bytes, Bytes, npt.NDArray[np.int32]]:
    """Return the class, the digit and the lower-case letter of each code point, as the kernel takes them."""
    classes = np.full(BEYOND, OTHER, np.uint8)
    values = np.zeros(BEYOND, np.uint8)
    lower = np.arange(BEYOND, dtype=np.int32)
    known = properties()
    classes[known.later & known.alnum] = LETTER
    for cp in np.flatnonzero(~(known.later | known.ignorable)).tolist():
        character = chr(cp)
        kind = _CLASSES.get(unicodedata.category(character), OTHER)
        classes[cp] = kind
        if kind == DIGIT:
            values[cp] = unicodedata.decimal(character)
        elif kind == UPPER and len(character.lower()) == 1:
            lower[cp] = ord(character.lower())
    classes[in_ranges(UNSPACED_RANGES, BEYOND) & (classes == LETTER)] = SINGLE
    classes[in_ranges(IGNORABLE_RANGES, BEYOND)] = IGNORED
    for characters, kind in ((ASCII_TERMINATORS + TERMINATORS, STOP), (PAUSES, PAUSE), (QUOTES, QUOTE), ("\n", FEED)):
        classes[[ord(character) for character in characters]] = kind
    return classes, values, lower


def facts_digest() -> str:
    """Return a digest of `fact_tables`, sixteen hex digits; computed for an unknown version of Unicode alone."""
    return _DIGEST if unicodedata.unidata_version in KNOWN_VERSIONS else digest_of(fact_tables())


def facts_of(texts: pa.LargeStringArray) -> Facts:
    """Return the facts of texts.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray
        Valid UTF-8, no nulls.
    """
    data, offsets = text_buffers(_composed(texts))
    room = (int(offsets[-1] - offsets[0]) + len(texts)) // 2 + len(texts)
    found = [np.empty(room, np.uint64) for _ in range(4)]
    sizes = np.empty((len(texts), 4), np.int64)
    find_facts(data, offsets, fact_tables(), *found, sizes)
    return Facts(*(Rows.of(size, some[: size.sum()].copy()) for size, some in zip(sizes.T, found, strict=True)))


def prefixes_of(texts: pa.LargeStringArray, letters: int) -> Rows:
    """Return the first letters of the words of texts, as hashes: a stem for languages that inflect at the end.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray
        Valid UTF-8, no nulls.
    letters : int
        How many. Raising it tells more words apart.
    """
    data, offsets = text_buffers(texts)
    text, spans = comparable(data, offsets, "words")
    found = np.empty(int((spans[:, 1] - spans[:, 0] + 1).sum()) // 2 + len(texts), np.uint64)
    sizes = np.empty(len(texts), np.int64)
    find_prefixes(text, spans, letters, found, sizes)
    return Rows.of(sizes, found[: sizes.sum()].copy())


def _composed(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    return pa.array([composed(text) for text in texts.to_pylist()], pa.large_string())
