"""Numbers, names and facts of UTF-8 texts, as hashes.

Tables give the class of each code point and the value of each digit (``neardup.classifier.feature_rows``).
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import decode_character, mix
from neardup.kernels.compilation import inner_kernel, kernel

#: Classes of code points.
OTHER, DIGIT, LETTER, UPPER, MARK, IGNORED, FEED, STOP, QUOTE, PAUSE, SINGLE = range(11)
#: Code points per table; beyond are only ignorable code points and others of class OTHER.
TABLE_SIZE = 0x40000
COMMA, DOT, ZERO = 0x2C, 0x2E, 0x30

_ARABIC_POINT, _ARABIC_COMMA = 0x066B, 0x066C
_MULTIPLIER = uint64(0xD1342543DE82EF95)
_NUMBER_SEED = uint64(0xAAAAAAAB2545F491)


@inner_kernel
def code_point_class(cp, classes):
    """Return the class of a code point."""
    if cp < TABLE_SIZE:
        return int64(classes[cp])
    return IGNORED if 0xE0000 <= cp < 0xE1000 else OTHER


@inner_kernel
def class_at(data, i, hi, classes):
    """Return the class of the character at data[i], OTHER at the end."""
    if i >= hi:
        return OTHER
    cp, _ = decode_character(data, i)
    return code_point_class(cp, classes)


@kernel
def read_number(data, i, hi, tables, digits):
    """Write the digits and separators of a number to digits; return (end, count).

    A separator belongs to a number if a digit follows it.
    """
    classes, values, _ = tables
    count = 0
    if data[i] == DOT:
        digits[0] = ZERO
        count = 1
    while i < hi:
        cp, width = decode_character(data, i)
        if code_point_class(cp, classes) == DIGIT:
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
    """Return whether digits[begin:end] is one to three digits, then groups of three after each separator ``mark``."""
    digits_in_group = 0
    is_first = True
    for i in range(begin, end):
        if digits[i] != mark:
            digits_in_group += 1
            if digits_in_group > 3:
                return False
        else:
            if not is_first and digits_in_group != 3:
                return False
            is_first = False
            digits_in_group = 0
    return is_first or digits_in_group == 3


@inner_kernel
def number_hash(digits, count):
    """Return a hash of a number's value: equal for 1,000.50 and 1.000,5 and 1000.5.

    With both separators, the last one is the decimal point if the others separate groups of three digits. With one
    separator that occurs once, a comma before three digits separates groups; anything else is decimal. With one that
    occurs several times, it separates groups of three digits. Any other sequence, such as a date or a version, is
    hashed as written.
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
    integer_end = count
    decimal = False
    regular = True
    if dots > 0 and commas > 0:
        point = digits[last]
        group = COMMA if point == DOT else DOT
        regular = (dots if point == DOT else commas) == 1 and _are_groups(digits, 0, last, group)
        decimal = True
    elif dots + commas == 1:
        grouped = commas == 1 and digits[0] != ZERO and _are_groups(digits, 0, count, COMMA)
        decimal = not grouped
    elif dots + commas > 1:
        regular = _are_groups(digits, 0, count, DOT if dots > 0 else COMMA)
    end = count
    if regular and decimal:
        integer_end = last
        while end > last + 1 and digits[end - 1] == ZERO:
            end -= 1
    begin = 0
    if regular:
        while begin < integer_end - 1 and (digits[begin] == ZERO or digits[begin] == COMMA or digits[begin] == DOT):
            begin += 1
    value = _NUMBER_SEED
    for i in range(begin, end):
        digit = digits[i]
        if digit in (DOT, COMMA):
            # Drop group separators, and the decimal point of a whole number.
            if regular and not (decimal and i == last and end > last + 1):
                continue
            digit = DOT
        value = value * _MULTIPLIER + uint64(digit)
    return mix(value)


#: A capitalized word of at most this many letters may be an abbreviation, whose full stop ends no sentence.
MAX_ABBREVIATION = 3

_SPACE = 0x20
_WORD_SEED = uint64(0x8CB92BA72F3D8DD7)
_LEFT_MULTIPLIER = uint64(0x9FB21C651E98DF25)
_EDGE_HASH = uint64(0x2127599BF4325C37)


@inner_kernel
def _is_uppercase_line(data, i, hi, tables):
    """Return whether the line that begins at data[i] has upper-case letters and no other letters."""
    classes, _, _ = tables
    found_uppercase = False
    while i < hi:
        cp, width = decode_character(data, i)
        kind = code_point_class(cp, classes)
        if kind == FEED:
            break
        if kind in (LETTER, SINGLE):
            return False
        found_uppercase |= kind == UPPER
        i += width
    return found_uppercase


@inner_kernel
def _is_blank(byte):
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@inner_kernel
def _sort_distinct(values, begin, end):
    """Sort values[begin:end] without repeats; return where they then end."""
    values[begin:end].sort()
    at = begin
    for i in range(begin, end):
        if i == begin or values[i] != values[at - 1]:
            values[at] = values[i]
            at += 1
    return at


@inner_kernel
def _read_word(data, i, hi, tables):
    """Return the end of a run of letters, the hash of it in lower case, and its number of letters."""
    classes, _, lower = tables
    value = _WORD_SEED
    letters = 0
    while i < hi:
        cp, width = decode_character(data, i)
        kind = code_point_class(cp, classes)
        if kind in (LETTER, UPPER):
            letters += 1
        elif kind != MARK and kind != IGNORED:
            break
        if kind != IGNORED:
            value = value * _MULTIPLIER + uint64(lower[cp])
        i += width
    return i, mix(value), letters


@kernel
def find_facts(data, offsets, tables, numbers, names, contexts, facts, sizes):
    """Write the distinct hashes of each text's numbers, names, contexts of facts, and facts with their contexts.

    A fact is a run of numbers and names without another word between them; its context is the word before and the word
    after it. data: uint8, valid UTF-8; offsets: int64[d + 1]; tables: classes uint8[TABLE_SIZE], values
    uint8[TABLE_SIZE] of digits, lower int32[TABLE_SIZE]; numbers, names, contexts, facts: uint64, long enough for one
    per text and one per two bytes; they get the ascending hashes of the texts, concatenated; sizes: int64[d, 4], how
    many of each.
    """
    classes, _, _ = tables
    longest = 0
    for d in range(sizes.shape[0]):
        longest = max(longest, offsets[d + 1] - offsets[d])
    digits = np.empty(longest + 2, np.uint8)
    end_numbers = end_names = end_contexts = end_facts = 0
    for d in range(sizes.shape[0]):
        i = offsets[d]
        hi = offsets[d + 1]
        n_numbers, n_names, n_contexts = end_numbers, end_names, end_contexts
        in_uppercase_line = _is_uppercase_line(data, i, hi, tables)
        at_sentence_start = True
        after_pause = False
        # The state before the character: after a word that may be an abbreviation; after a letter, digit or full stop.
        after_short_word = False
        after_word = False
        left = _EDGE_HASH
        run = uint64(0)
        while i < hi:
            cp, width = decode_character(data, i)
            kind = code_point_class(cp, classes)
            fact = uint64(0)
            word = uint64(0)
            is_short_word = False
            if kind in (LETTER, UPPER):
                i, word, letters = _read_word(data, i, hi, tables)
                is_short_word = kind == UPPER and letters <= MAX_ABBREVIATION
                if kind == UPPER and letters > 1 and not (at_sentence_start or in_uppercase_line):
                    fact = word
                    names[n_names] = fact
                    n_names += 1
            elif kind == SINGLE:
                word = mix(_WORD_SEED * _MULTIPLIER + uint64(cp))
                i += width
            elif kind == DIGIT or (cp == DOT and not after_word and class_at(data, i + 1, hi, classes) == DIGIT):
                i, count = read_number(data, i, hi, tables, digits)
                fact = number_hash(digits, count)
                numbers[n_numbers] = fact
                n_numbers += 1
            else:
                i += width
                if kind == STOP:
                    inside = cp < 0x80 and class_at(data, i, hi, classes) in (LETTER, UPPER, DIGIT)
                    at_sentence_start |= not (inside or (cp == DOT and after_short_word))
                elif kind == FEED:
                    at_sentence_start |= i >= hi or _is_blank(data[i])
                    in_uppercase_line = _is_uppercase_line(data, i, hi, tables)
                elif kind == QUOTE:
                    at_sentence_start |= after_pause
                elif kind == PAUSE:
                    after_pause = True
                after_short_word = False
                after_word = kind == STOP
                continue
            if fact != uint64(0):
                run = run * _MULTIPLIER + fact
            else:
                if run != uint64(0):
                    contexts[n_contexts] = mix(left * _LEFT_MULTIPLIER + word)
                    facts[end_facts + n_contexts - end_contexts] = mix(contexts[n_contexts] * _MULTIPLIER + run)
                    n_contexts += 1
                    run = uint64(0)
                left = word
            at_sentence_start = False
            after_pause = False
            after_short_word = is_short_word
            after_word = True
        if run != uint64(0):
            contexts[n_contexts] = mix(left * _LEFT_MULTIPLIER + _EDGE_HASH)
            facts[end_facts + n_contexts - end_contexts] = mix(contexts[n_contexts] * _MULTIPLIER + run)
            n_contexts += 1
        sizes[d, 0] = _sort_distinct(numbers, end_numbers, n_numbers) - end_numbers
        sizes[d, 1] = _sort_distinct(names, end_names, n_names) - end_names
        sizes[d, 3] = _sort_distinct(facts, end_facts, end_facts + n_contexts - end_contexts) - end_facts
        sizes[d, 2] = _sort_distinct(contexts, end_contexts, n_contexts) - end_contexts
        end_numbers += sizes[d, 0]
        end_names += sizes[d, 1]
        end_contexts += sizes[d, 2]
        end_facts += sizes[d, 3]


@kernel
def token_prefixes(text, spans, letters, out, sizes):
    """Write the distinct hashes of the first letters of the tokens of comparable texts, ascending within each text.

    text: uint8, tokens separated by spaces; spans: int64[d, 2], the begin and end of each text; letters: how many
    characters of a token count; out: uint64, long enough for one per text and one per two bytes; sizes: int64[d].
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
            value = _WORD_SEED
            characters = 0
            while i < hi and text[i] != _SPACE:
                characters += text[i] & 0xC0 != 0x80
                if characters <= letters:
                    value = value * _MULTIPLIER + uint64(text[i])
                i += 1
            out[end] = mix(value)
            end += 1
        sizes[d] = _sort_distinct(out, at, end) - at
        at += sizes[d]
