"""The overlap that a pair needs: bounds of the set measures in whole numbers.

A threshold is a fraction p/q (of the squared distance for euclidean). A rule is (code, p, q, floor_p, floor_q): the
measure, its threshold, and a minimum Jaccard similarity that must hold as well (0/1 for none).
``neardup.recipe.measures`` makes rules and states the formulas.
"""

from __future__ import annotations

from math import sqrt

from numba import int64, uint64

from neardup.kernels.bits import is_square_at_least
from neardup.kernels.compilation import inlined, kernel

JACCARD, OVERLAP, DICE, COSINE, CONTAINMENT, EUCLIDEAN = 0, 1, 2, 3, 4, 5


@inlined
def _ceil_div(a, b):
    return (a + b - 1) // b


@kernel
def required_overlap(rule, a, b):
    """Return the least overlap, at least 1, at which sets of sizes a and b match. It grows with a and b."""
    code, p, q, floor_p, floor_q = rule
    if code == JACCARD:
        required = _ceil_div(p * (a + b), p + q)
    elif code == OVERLAP:
        required = _ceil_div(p * max(a, b), q)
    elif code == DICE:
        required = _ceil_div(p * (a + b), 2 * q)
    elif code == CONTAINMENT:
        required = _ceil_div(p * min(a, b), q)
    elif code == EUCLIDEAN:
        required = _ceil_div(max(q * (a + b) - p, 0), 2 * q)
    else:
        area = uint64(a) * uint64(b)
        required = int64(p * sqrt(float(area)) / q)
        while required > 0 and is_square_at_least(uint64(required - 1), uint64(q), uint64(p), area):
            required -= 1
        while not is_square_at_least(uint64(required), uint64(q), uint64(p), area):
            required += 1
    if floor_p > 0:
        required = max(required, _ceil_div(floor_p * (a + b), floor_p + floor_q))
    return max(required, 1)


@kernel
def smallest_partner(rule, size):
    """Return the smallest size m <= size at which a set can match one of this size."""
    low = 1
    high = size
    while low < high:
        middle = (low + high) // 2
        if required_overlap(rule, middle, size) <= middle:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def largest_partner(rule, size, shared, low):
    """Return the largest m in [low, size] with required_overlap(m, size) <= shared; low - 1 if there is none."""
    high = size
    if required_overlap(rule, high, size) <= shared:
        return high
    if required_overlap(rule, low, size) > shared:
        return low - 1
    while high - low > 1:
        middle = (low + high) // 2
        if required_overlap(rule, middle, size) <= shared:
            low = middle
        else:
            high = middle
    return low
