"""Naive twins of the kernels: texts, sets, fractions and loops. The tests compare both."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import naive_features

Gram = tuple[object, ...]


def grams(text: str, normalizer: str, kind: str, n: int, multiset: bool) -> frozenset[Gram]:
    """The feature set of a text: n-grams of tokens, or of characters of the comparable text."""
    return frozenset(naive_features.features(text, f"{kind}:{n}{':multiset' * multiset}", normalizer))


def reaches(measure: str, o: int, a: int, b: int, t: Fraction) -> bool:
    """Whether o, a and b reach the threshold t, in fractions; for sets, o is the overlap, a and b are the sizes."""
    if o == 0:
        return False
    if measure == "jaccard":
        return Fraction(o, a + b - o) >= t
    if measure == "overlap":
        return Fraction(o, max(a, b)) >= t
    if measure == "dice":
        return Fraction(2 * o, a + b) >= t
    if measure == "cosine":
        return Fraction(o * o, a * b) >= t * t
    if measure == "containment":
        return Fraction(o, min(a, b)) >= t
    if measure == "euclidean":
        return a + b - 2 * o <= t * t
    if measure in ("extended_jaccard", "weighted_jaccard"):
        return Fraction(o, a + b - o) >= t
    if measure == "hamming":
        return 64 - o <= t
    raise ValueError(measure)


def similarity(measure: str, o: int, a: int, b: int) -> float:
    """The measure as a floating-point number."""
    return {
        "jaccard": lambda: o / (a + b - o),
        "overlap": lambda: o / max(a, b),
        "dice": lambda: 2 * o / (a + b),
        "cosine": lambda: math.sqrt(o * o / (a * b)),
        "containment": lambda: o / min(a, b),
        "euclidean": lambda: 1 / (1 + math.sqrt(a + b - 2 * o)),
        "extended_jaccard": lambda: o / (a + b - o),
        "weighted_jaccard": lambda: o / (a + b - o),
        "hamming": lambda: o / 64,
    }[measure]()


def vector_measure(measure: str, f: Mapping[Any, float], g: Mapping[Any, float]) -> float:
    """A measure of weighted vectors by its formula; euclidean as a distance."""
    keys = f.keys() | g.keys()
    if measure == "weighted_jaccard":
        smaller, larger = (sum(pick(f.get(x, 0), g.get(x, 0)) for x in keys) for pick in (min, max))
        return smaller / larger
    if measure == "euclidean":
        return math.sqrt(sum((f.get(x, 0) - g.get(x, 0)) ** 2 for x in keys))
    inner, ff, gg = (sum(u.get(x, 0) * v.get(x, 0) for x in keys) for u, v in ((f, g), (f, f), (g, g)))
    return {
        "cosine": lambda: inner / math.sqrt(ff * gg),
        "dice": lambda: 2 * inner / (ff + gg),
        "extended_jaccard": lambda: inner / (ff + gg - inner),
    }[measure]()


def vector_counts(measure: str, f: Mapping[Any, int], g: Mapping[Any, int]) -> tuple[int, int, int]:
    """o, a and b of weighted vectors of whole numbers."""
    if measure == "weighted_jaccard":
        return sum(min(f[x], g[x]) for x in f.keys() & g.keys()), sum(f.values()), sum(g.values())
    return sum(f[x] * g[x] for x in f.keys() & g.keys()), sum(w * w for w in f.values()), sum(w * w for w in g.values())


def hamming(left: int, right: int) -> int:
    """The number of bits in which two 64-bit words differ."""
    return sum(x != y for x, y in zip(f"{left:064b}", f"{right:064b}", strict=True))


def levenshtein(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The fewest characters to insert, delete or replace, by the table of all prefixes."""
    row = list(range(len(right) + 1))
    for i, x in enumerate(left, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def required_overlap(measure: str, a: int, b: int, t: Fraction, floor: Fraction) -> int:
    """The least overlap that reaches threshold and floor, by trying."""
    o = 1
    while not (reaches(measure, o, a, b, t) and (floor == 0 or reaches("jaccard", o, a, b, floor))):
        o += 1
    return o


def all_pairs(
    sets: Sequence[frozenset[Gram]], measure: str, t: Fraction, floor: Fraction = Fraction(0)
) -> dict[tuple[int, int], float]:
    """Every pair at or above the threshold, by comparing all."""
    pairs = {}
    for i in range(len(sets)):
        for j in range(i + 1, len(sets)):
            o, a, b = len(sets[i] & sets[j]), len(sets[i]), len(sets[j])
            if reaches(measure, o, a, b, t) and (floor == 0 or reaches("jaccard", o, a, b, floor)):
                pairs[i, j] = similarity(measure, o, a, b)
    return pairs


def keepers(count: int, pairs: dict[tuple[int, int], float], order: Sequence[int]) -> dict[int, tuple[int, float]]:
    """Each dropped document with its keeper and their similarity, in keep order."""
    kept: list[int] = []
    dropped: dict[int, tuple[int, float]] = {}
    for d in order:
        best: tuple[int, float] | None = None
        for k in kept:
            s = pairs.get((min(d, k), max(d, k)))
            if s is not None and (best is None or s > best[1]):
                best = k, s
        if best is None:
            kept.append(d)
        else:
            dropped[d] = best
    return dropped


def group_keepers(
    groups: Sequence[Any], pairs: dict[tuple[int, int], float], order: Sequence[int], share: Fraction, inputs: int
) -> dict[Any, tuple[Any, int]]:
    """Each dropped group with the one it is dropped for, and how many of its documents match there.

    The documents from ``inputs`` on are of a reference, whose groups are all kept.
    """
    members: dict[Any, list[int]] = {}
    for d in order:
        members.setdefault(groups[d], []).append(d)
    kept: list[Any] = []
    dropped: dict[Any, tuple[Any, int]] = {}
    for group, documents in members.items():
        best: tuple[Any, int] | None = None
        for other in kept if documents[0] < inputs else ():
            matched = sum(any((min(d, e), max(d, e)) in pairs for e in members[other]) for d in documents)
            if matched and Fraction(matched, len(documents)) >= share and (best is None or matched > best[1]):
                best = other, matched
        if best is None:
            kept.append(group)
        else:
            dropped[group] = best
    return dropped


def families(count: int, pairs: dict[tuple[int, int], float]) -> list[list[int]]:
    """Connected components of more than one document, by spreading labels until nothing changes."""
    label = list(range(count))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            low = min(label[i], label[j])
            if (label[i], label[j]) != (low, low):
                label[i] = label[j] = low
                changed = True
    groups: dict[int, list[int]] = {}
    for d in range(count):
        groups.setdefault(label[d], []).append(d)
    return [members for _, members in sorted(groups.items()) if len(members) > 1]
