"""Characters of UTF-8 texts by their classes, and the numbers that digits make.

Tables give the class of each code point and the value of each digit (``neardup.classifier.facts``).
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import decode, mix
from neardup.kernels.compilation import inner_kernel, kernel

#: Classes of code points.
OTHER, DIGIT, LETTER, UPPER, MARK, IGNORED, FEED, STOP, QUOTE, PAUSE, SINGLE = range(11)
#: Tables end here; beyond are only ignorable code points and such as are nothing to us.
BEYOND = 0x40000
COMMA, DOT, ZERO = 0x2C, 0x2E, 0x30

_ARABIC_POINT, _ARABIC_COMMA = 0x066B, 0x066C
_STEP = uint64(0xD1342543DE82EF95)
_NUMBER = uint64(0xAAAAAAAB2545F491)


@inner_kernel
def class_of(cp, classes):
    """Return the class of a code point."""
    if cp < BEYOND:
        return int64(classes[cp])
    return IGNORED if 0xE0000 <= cp < 0xE1000 else OTHER


@inner_kernel
def class_at(data, i, hi, classes):
    """Return the class of the character at data[i], OTHER behind the end."""
    if i >= hi:
        return OTHER
    cp, _ = decode(data, i)
    return class_of(cp, classes)


@kernel
def number(data, i, hi, tables, digits):
    """Write the digits of a number and the marks between them to digits; return (end, how many).

    A mark belongs to a number where a digit follows it.
    """
    classes, values, _ = tables
    count = 0
    if data[i] == DOT:
        digits[0] = ZERO
        count = 1
    while i < hi:
        cp, width = decode(data, i)
        if class_of(cp, classes) == DIGIT:
            digits[count] = ZERO + values[cp]
        else:
            dot = cp in (DOT, _ARABIC_POINT)
            if not (dot or cp in (COMMA, _ARABIC_COMMA)) or class_at(data, i + width, hi, classes) != DIGIT:
                break
            digits[count] = DOT if dot else COMMA
        count += 1
        i += width
    return i, count


@inner_kernel
def _are_groups(digits, begin, end, mark):
    """Return whether digits[begin:end] is one to three digits, and three after each mark."""
    since = 0
    first = True
    for i in range(begin, end):
        if digits[i] != mark:
            since += 1
            if since > 3:
                return False
        else:
            if not first and since != 3:
                return False
            first = False
            since = 0
    return first or since == 3


@inner_kernel
def value_of_digits(digits, count):
    """Return the hash of a number's value: 1,000.50 and 1.000,5 and 1000.5 are one.

    Both marks: the last is the decimal one, if the others part groups of three digits. One mark, once: a comma
    before three digits parts groups, all else is decimal. One mark, several times: groups of three digits. Whatever
    else has marks, a date or a version, is taken as it stands.
    """
    dots = 0
    commas = 0
    last = -1
    for i in range(count):
        if digits[i] == DOT:
            dots += 1
            last = i
        elif digits[i] == COMMA:
            commas += 1
            last = i
    whole = count
    decimal = False
    plain = True
    if dots > 0 and commas > 0:
        point = digits[last]
        group = COMMA if point == DOT else DOT
        plain = (dots if point == DOT else commas) == 1 and _are_groups(digits, 0, last, group)
        decimal = True
    elif dots + commas == 1:
        grouped = commas == 1 and digits[0] != ZERO and _are_groups(digits, 0, count, COMMA)
        decimal = not grouped
    elif dots + commas > 1:
        plain = _are_groups(digits, 0, count, DOT if dots > 0 else COMMA)
    end = count
    if plain and decimal:
        whole = last
        while end > last + 1 and digits[end - 1] == ZERO:
            end -= 1
    begin = 0
    if plain:
        while begin < whole - 1 and (digits[begin] == ZERO or digits[begin] == COMMA or digits[begin] == DOT):
            begin += 1
    value = _NUMBER
    for i in range(begin, end):
        digit = digits[i]
        if digit in (DOT, COMMA):
            # The point of a whole number goes, and so do marks that part groups.
            if plain and not (decimal and i == last and end > last + 1):
                continue
            digit = DOT
        value = value * _STEP + uint64(digit)
    return mix(value)


#: A word with an upper-case first letter and at most so many letters may end in a full stop that ends no sentence.
ABBREVIATION = 3

_SPACE = 0x20
_WORD = uint64(0x8CB92BA72F3D8DD7)
_LEFT = uint64(0x9FB21C651E98DF25)
_EDGE = uint64(0x2127599BF4325C37)


@inner_kernel
def _shouts(data, i, hi, tables):
    """Return whether the line that begins at data[i] has upper-case letters and no others."""
    classes, _, _ = tables
    loud = False
    while i < hi:
        cp, width = decode(data, i)
        kind = class_of(cp, classes)
        if kind == FEED:
            break
        if kind in (LETTER, SINGLE):
            return False
        loud |= kind == UPPER
        i += width
    return loud


@inner_kernel
def _is_blank(byte):
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@inner_kernel
def _distinct(found, begin, end):
    """Sort found[begin:end] and keep each value once; return where it then ends."""
    found[begin:end].sort()
    at = begin
    for i in range(begin, end):
        if i == begin or found[i] != found[at - 1]:
            found[at] = found[i]
            at += 1
    return at


@inner_kernel
def _word(data, i, hi, tables):
    """Return where a run of letters ends, the hash of it in lower case, and how many letters it has."""
    classes, _, lower = tables
    value = _WORD
    letters = 0
    while i < hi:
        cp, width = decode(data, i)
        kind = class_of(cp, classes)
        if kind in (LETTER, UPPER):
            letters += 1
        elif kind != MARK and kind != IGNORED:
            break
        if kind != IGNORED:
            value = value * _STEP + uint64(lower[cp])
        i += width
    return i, mix(value), letters


@kernel
def find_facts(data, offsets, tables, numbers, names, places, facts, sizes):
    """Write the distinct hashes of each text's numbers, names, places of facts, and facts at their places.

    A fact is a run of numbers and names with no other word between them; its place is the word before and the word
    after it. data: uint8, valid UTF-8; offsets: int64[d + 1] into it; tables: classes uint8[BEYOND], values
    uint8[BEYOND] of digits, lower int32[BEYOND]; numbers, names, places, facts: uint64, room for one a text and one
    for every two bytes, each text's ascending behind those of the text before; sizes: int64[d, 4], how many of each.
    """
    classes, _, _ = tables
    longest = 0
    for d in range(sizes.shape[0]):
        longest = max(longest, offsets[d + 1] - offsets[d])
    digits = np.empty(longest + 2, np.uint8)
    end_numbers = end_names = end_places = end_facts = 0
    for d in range(sizes.shape[0]):
        i = offsets[d]
        hi = offsets[d + 1]
        n_numbers, n_names, n_places = end_numbers, end_names, end_places
        shouting = _shouts(data, i, hi, tables)
        initial = True
        paused = False
        # What stands right before: a word that may be an abbreviation; a letter, digit or full stop.
        short = False
        joined = False
        left = _EDGE
        run = uint64(0)
        while i < hi:
            cp, width = decode(data, i)
            kind = class_of(cp, classes)
            fact = uint64(0)
            word = uint64(0)
            short_word = False
            if kind in (LETTER, UPPER):
                i, word, letters = _word(data, i, hi, tables)
                short_word = kind == UPPER and letters <= ABBREVIATION
                if kind == UPPER and letters > 1 and not (initial or shouting):
                    fact = word
                    names[n_names] = fact
                    n_names += 1
            elif kind == SINGLE:
                word = mix(_WORD * _STEP + uint64(cp))
                i += width
            elif kind == DIGIT or (cp == DOT and not joined and class_at(data, i + 1, hi, classes) == DIGIT):
                i, count = number(data, i, hi, tables, digits)
                fact = value_of_digits(digits, count)
                numbers[n_numbers] = fact
                n_numbers += 1
            else:
                i += width
                if kind == STOP:
                    inside = cp < 0x80 and class_at(data, i, hi, classes) in (LETTER, UPPER, DIGIT)
                    initial |= not (inside or (cp == DOT and short))
                elif kind == FEED:
                    initial |= i >= hi or _is_blank(data[i])
                    shouting = _shouts(data, i, hi, tables)
                elif kind == QUOTE:
                    initial |= paused
                elif kind == PAUSE:
                    paused = True
                short = False
                joined = kind == STOP
                continue
            if fact != uint64(0):
                run = run * _STEP + fact
            else:
                if run != uint64(0):
                    places[n_places] = mix(left * _LEFT + word)
                    facts[end_facts + n_places - end_places] = mix(places[n_places] * _STEP + run)
                    n_places += 1
                    run = uint64(0)
                left = word
            initial = False
            paused = False
            short = short_word
            joined = True
        if run != uint64(0):
            places[n_places] = mix(left * _LEFT + _EDGE)
            facts[end_facts + n_places - end_places] = mix(places[n_places] * _STEP + run)
            n_places += 1
        sizes[d, 0] = _distinct(numbers, end_numbers, n_numbers) - end_numbers
        sizes[d, 1] = _distinct(names, end_names, n_names) - end_names
        sizes[d, 3] = _distinct(facts, end_facts, end_facts + n_places - end_places) - end_facts
        sizes[d, 2] = _distinct(places, end_places, n_places) - end_places
        end_numbers += sizes[d, 0]
        end_names += sizes[d, 1]
        end_places += sizes[d, 2]
        end_facts += sizes[d, 3]


@kernel
def find_prefixes(text, spans, letters, out, sizes):
    """Write the distinct hashes of the first letters of the tokens of comparable texts, ascending, text after text.

    text: uint8, tokens parted by spaces; spans: int64[d, 2], where each text begins and ends; letters: how many
    characters of a token count; out: uint64, room for one a text and one for every two bytes; sizes: int64[d].
    """
    at = 0
    for d in range(sizes.shape[0]):
        i = spans[d, 0]
        hi = spans[d, 1]
        end = at
        while i < hi:
            if text[i] == _SPACE:
                i += 1
                continue
            value = _WORD
            taken = 0
            while i < hi and text[i] != _SPACE:
                taken += text[i] & 0xC0 != 0x80
                if taken <= letters:
                    value = value * _STEP + uint64(text[i])
                i += 1
            out[end] = mix(value)
            end += 1
        sizes[d] = _distinct(out, at, end) - at
        at += sizes[d]
