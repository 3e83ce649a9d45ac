"""Similarity vectors again, slow and plain: strings, sets, tables of distances, and one pair at a time."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import naive
from naive_text import is_ignorable, is_letter, is_newer, is_single, naive_composed

STOPS = ".!?\u2026\u3002\uff01\uff1f\uff0e\uff61\u061f\u06d4\u0964\u0965\u1362\u0589\u104b"
PAUSES = ",:;\u060c\u061b\u3001"
QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
_WORD = re.compile("[lu][lumi]*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_GROUPS = r"\d{1,3}(?:[.,]\d{3})+"


class Found(NamedTuple):
    """The facts of a text: strings where the library has hashes."""

    numbers: set[str]
    names: set[str]
    places: set[tuple[str, str]]
    facts: set[tuple[str, str, tuple[str, ...]]]


def class_of(character: str) -> str:
    """One letter for what a character is: u, l, o (a word of its own), m, i, d, s, q, p, n (line feed), or a space."""
    for which, characters in (("s", STOPS), ("p", PAUSES), ("q", QUOTES), ("n", "\n")):
        if character in characters:
            return which
    if is_ignorable(character):
        return "i"
    category = unicodedata.category(character)
    if is_newer(character):
        return " " if not is_letter(character) else "o" if is_single(character) else "l"
    if category in ("Lu", "Lt"):
        return "u"
    if category[0] == "L":
        return "o" if is_single(character) else "l"
    return "m" if category[0] == "M" else "d" if category == "Nd" else " "


def value(number: str) -> str:
    """A number in ASCII digits, points and commas by its value; a date or a version as it stands, with points."""
    marks = re.sub(r"\d", "", number)
    last = max(number.rfind("."), number.rfind(","))
    whole, fraction = number, ""
    if len(set(marks)) == 2:
        if marks.count(number[last]) > 1 or not re.fullmatch(_GROUPS, number[:last]):
            return number.replace(",", ".")
        whole, fraction = number[:last], number[last + 1 :]
    elif len(marks) > 1:
        if not re.fullmatch(_GROUPS, number):
            return number.replace(",", ".")
    elif marks and not re.fullmatch(r"[1-9]\d{0,2},\d{3}", number):
        whole, fraction = number[:last], number[last + 1 :]
    whole = re.sub("[.,]", "", whole).lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def find(text: str) -> Found:
    """The facts of a text, by regular expressions over the classes of its characters."""
    text = naive_composed(text)
    kinds = "".join(map(class_of, text))
    marks = {"\u066b": ".", "\u066c": ","}
    digits = "".join(
        str(unicodedata.decimal(c)) if k == "d" else "x" if c.isdigit() else marks.get(c, c)
        for c, k in zip(text, kinds, strict=True)
    )
    numbers, names, filled = set[str](), set[str](), list[tuple[str, list[str], str]]()
    left, run = "", list[str]()
    initial, paused, before = True, False, ""
    at = 0
    while at < len(text):
        after = kinds[at + 1 : at + 2]
        begins = text[at] == "." and before not in ("word", "short", "stop") and after == "d"
        if word := _WORD.match(kinds, at):
            end = word.end()
            letters = [c for c, k in zip(text[at:end], word[0], strict=True) if k in "lu"]
            plain = "".join(lowered(c) for c, k in zip(text[at:end], word[0], strict=True) if k != "i")
            upper = kinds[at] == "u"
            before = "short" if upper and len(letters) <= 3 else "word"
            if upper and len(letters) > 1 and not initial and not shouts(kinds, at):
                names.add(plain)
                run.append(plain)
                plain = ""
        elif kinds[at] == "o":
            end, plain, before = at + 1, text[at], "word"
        elif kinds[at] == "d" or begins:
            number = _NUMBER.match(digits, at + begins)
            assert number
            end, plain, before = number.end(), "", "word"
            run.append(value("0." * begins + number[0]))
            numbers.add(run[-1])
        else:
            if kinds[at] == "s":
                inside = text[at] < "\x80" and after in ("l", "u", "d")
                initial = initial or not (inside or (text[at] == "." and before == "short"))
            elif kinds[at] == "n":
                initial = initial or text[at + 1 : at + 2] in ("", "\n", " ", "\t", "\r")
            elif kinds[at] == "q":
                initial = initial or paused
            paused = paused or kinds[at] == "p"
            before = "stop" if kinds[at] == "s" else ""
            at += 1
            continue
        if plain:
            filled.append((left, run, plain))
            left, run = plain, []
        initial, paused, at = False, False, end
    filled.append((left, run, ""))
    taken = [(one, tuple(facts), other) for one, facts, other in filled if facts]
    return Found(numbers, names, {(a, b) for a, _, b in taken}, {(a, b, facts) for a, facts, b in taken})


def lowered(character: str) -> str:
    """A letter in lower case, where that is one character."""
    return character.lower() if class_of(character) == "u" and len(character.lower()) == 1 else character


def shouts(kinds: str, at: int) -> bool:
    """Whether the line around a place has upper-case letters and no others."""
    begin, end = kinds.rfind("n", 0, at) + 1, kinds.find("n", at)
    line = kinds[begin : end if end >= 0 else len(kinds)]
    return "u" in line and not set(line) & set("lo")


def prefixes(tokens: Sequence[str], letters: int) -> set[str]:
    return {token[:letters] for token in tokens}


#: The Levenshtein distance.
distance = naive.levenshtein


def common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence, from its table."""
    row = [0] * (len(other) + 1)
    for x in one:
        before = 0
        for j, y in enumerate(other, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def ratio(part: float, whole: float, none: float) -> float:
    return part / whole if whole else none


def of_counts(name: str, o: int, a: int, b: int, unit: int = 1) -> float:
    """A measure from o, a and b; with weights these are sums of squares or of minima."""
    if name in ("shared", "apart", "swapped"):
        count = {"shared": o, "apart": a + b - 2 * o, "swapped": min(a, b) - o}[name]
        return count / (count + (64 if name == "shared" else 4))
    if not (a and b):
        return float(a == b)
    if name in ("jaccard", "extended_jaccard", "weighted_jaccard"):
        return o / (a + b - o)
    if name == "euclidean":
        return 1 / (1 + math.sqrt((a + b - 2 * o) / unit))
    return {
        "overlap": o / max(a, b),
        "containment": o / min(a, b),
        "dice": 2 * o / (a + b),
        "cosine": min(math.sqrt(o * o / (a * b)), 1.0),
    }[name]


def of_sets(name: str, one: set[Any], other: set[Any]) -> float:
    return of_counts(name, len(one & other), len(one), len(other))


def of_weights(name: str, one: Mapping[Any, int], other: Mapping[Any, int], unit: int) -> float:
    both = one.keys() & other.keys()
    if name in ("weighted_jaccard", "overlap", "containment"):
        return of_counts(name, sum(min(one[x], other[x]) for x in both), sum(one.values()), sum(other.values()))
    squares = [sum(x * x for x in side.values()) for side in (one, other)]
    return of_counts(name, sum(one[x] * other[x] for x in both), squares[0], squares[1], unit)
