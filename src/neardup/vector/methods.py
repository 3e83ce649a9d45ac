"""The measures of pairs that take no features of a recipe: one function for each.

``numbers`` and ``names`` are not among them: they are Jaccards of rows like those of any features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from neardup._kernels.pairing import align
from neardup.measures import measure, similarities
from neardup.vector.encoder import cosine_counts
from neardup.vector.prepared import Prepared
from neardup.vector.records import NO_TIME

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Method = Callable[[Prepared, Integers, Integers], Floats]

_MICROSECONDS_AN_HOUR = 3_600_000_000
_NONE = np.empty(0, np.int64)


def alike(name: str, counts: Integers, unit: int = 1) -> Floats:
    """Return a similarity of pairs from o, a and b, where a and b may be 0: two empty sides are alike, one is not."""
    empty = counts[:, 1:] == 0
    found = similarities(name, np.column_stack([counts[:, 0], np.maximum(counts[:, 1:], 1)]), unit)
    found[empty.any(axis=1)] = 0.0
    found[empty.all(axis=1)] = 1.0
    return found


def alike_exactly(name: str, o: int, a: int, b: int, unit: int = 1) -> float:
    """Return the same of one pair whose o, a and b are too large for 64 bits."""
    if not (a and b):
        return 0.0
    known = measure(name)
    if known.distance:
        return float(known.similarity(0.0, (a + b - 2 * o) / unit, 0.0))
    return float(known.similarity(float(o), float(a), float(b)))


def _sizes(prepared: Prepared, left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return the tokens of the shorter and of the longer text of each pair."""
    sizes = prepared.rows["tokens"].sums
    return np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])


def _share(part: Integers, whole: Integers, none: Floats | float) -> Floats:
    """Return part / whole, and ``none`` where the whole is nothing."""
    return np.where(whole > 0, part / np.maximum(whole, 1), none)


def _length_ratio(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    shorter, longer = _sizes(prepared, left, right)
    return _share(shorter, longer, 1.0)


def _word_edit(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    _, longer = _sizes(prepared, left, right)
    distances = np.empty(len(left), np.int64)
    align(prepared.rows["tokens"].heads, prepared.rows["tokens"].features, left, right, distances, _NONE)
    return _share(longer - distances, longer, 1.0)


def _in_order(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    shorter, longer = _sizes(prepared, left, right)
    lengths = np.empty(len(left), np.int64)
    align(prepared.rows["tokens"].heads, prepared.rows["tokens"].features, left, right, _NONE, lengths)
    return _share(lengths, shorter, (longer == 0).astype(np.float64))


def _edit(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    ones, others = [prepared.texts[i] for i in left], [prepared.texts[i] for i in right]
    longer = np.array([max(len(one), len(other)) for one, other in zip(ones, others, strict=True)], np.int64)
    distances = np.asarray(cpdist(ones, others, scorer=Levenshtein.distance, dtype=np.int64, workers=1))
    return _share(longer - distances, longer, 1.0)


def _at_their_places(prepared: Prepared, left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return how many places of facts both texts of a pair have, and how many of them hold the same in both.

    A place may come several times in a text, with other facts; it counts once, and so it may hold more than one.
    """
    places = prepared.rows["places"].counts(left, right)[:, 0]
    facts = prepared.rows["facts"].counts(left, right)[:, 0]
    return places, np.minimum(facts, places)


def _facts(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    places, same = _at_their_places(prepared, left, right)
    return _share(same, places, 1.0)


def _facts_changed(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    places, same = _at_their_places(prepared, left, right)
    changed: Floats = np.log1p(places - same)
    return changed


def _title(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    counts = prepared.rows["titles"].counts(left, right)
    found = alike("dice", counts)
    found[(counts[:, 1:] == 0).any(axis=1)] = np.nan
    return found


def _hours_apart(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    if prepared.times is None:
        return np.full(len(left), np.nan)
    one, other = prepared.times[left], prepared.times[right]
    # As unsigned numbers: a difference may need 64 bits.
    apart = np.maximum(one, other).view(np.uint64) - np.minimum(one, other).view(np.uint64)
    return np.where((one != NO_TIME) & (other != NO_TIME), np.log1p(apart / _MICROSECONDS_AN_HOUR), np.nan)


def _semantic(prepared: Prepared, left: Integers, right: Integers) -> Floats:
    if prepared.embeddings is None:
        return np.full(len(left), np.nan)
    return similarities("semantic", cosine_counts(prepared.embeddings, left, right))


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "length_ratio": _length_ratio,
        "word_edit": _word_edit,
        "in_order": _in_order,
        "edit": _edit,
        "facts": _facts,
        "facts_changed": _facts_changed,
        "title": _title,
        "hours_apart": _hours_apart,
        "semantic": _semantic,
    }
)
