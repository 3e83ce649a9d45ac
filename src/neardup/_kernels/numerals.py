"""Characters of UTF-8 texts by their classes, and the numbers that digits make.

Tables give the class of each code point and the value of each digit (``neardup.vector.facts``).
"""

from numba import int64, uint64

from neardup._kernels.bits import mix
from neardup._kernels.compiling import kernel

#: Classes of code points.
OTHER, DIGIT, LETTER, UPPER, MARK, IGNORED, FEED, STOP, QUOTE, PAUSE, SINGLE = range(11)
#: Tables end here; beyond are only ignorable code points and such as are nothing to us.
BEYOND = 0x40000
COMMA, DOT, ZERO = 0x2C, 0x2E, 0x30

_ARABIC_POINT, _ARABIC_COMMA = 0x066B, 0x066C
_STEP = uint64(0xD1342543DE82EF95)
_NUMBER = uint64(0xAAAAAAAB2545F491)


@kernel
def decode(data, i):
    """Return the code point that begins at data[i], and how many bytes it has."""
    b = int64(data[i])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return (b & 0x1F) << 6 | (int64(data[i + 1]) & 0x3F), 2
    if b < 0xF0:
        return (b & 0x0F) << 12 | (int64(data[i + 1]) & 0x3F) << 6 | (int64(data[i + 2]) & 0x3F), 3
    high = (b & 0x07) << 18 | (int64(data[i + 1]) & 0x3F) << 12
    return high | (int64(data[i + 2]) & 0x3F) << 6 | (int64(data[i + 3]) & 0x3F), 4


@kernel
def class_of(cp, classes):
    """Return the class of a code point."""
    if cp < BEYOND:
        return int64(classes[cp])
    return IGNORED if 0xE0000 <= cp < 0xE1000 else OTHER


@kernel
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


@kernel
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


@kernel
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
