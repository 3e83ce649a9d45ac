"""Which of two documents is closer to a third, decided without rounding, and a heap of the closest.

How close a document is to a query is (o, b): o is what they have in common and b the document's own total, in the
integers of ``neardup.measures``; the query's total is a. Documents that are equally close come in their own order.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from neardup._kernels.bounds import CONTAINMENT, COSINE, EUCLIDEAN, OVERLAP
from neardup._kernels.compiling import kernel
from neardup._kernels.products import first_is_greater


class Heap(NamedTuple):
    """Up to k documents: common (o), totals (b), documents, int64[k] each; in a full one, the least close is first."""

    common: np.ndarray
    totals: np.ndarray
    documents: np.ndarray


@njit(inline="always")
def _divisor(code, a, b):
    """Return what o is divided by, as far as it matters to the order."""
    if code == OVERLAP:
        return max(a, b)
    if code == CONTAINMENT:
        return min(a, b)
    return b if code == COSINE else a + b


@kernel
def closer(code, a, o, b, d, other_o, other_b, other_d):
    """Return whether document d, with (o, b), comes before another one; without rounding.

    o / (a + b - o) and 2 o / (a + b) order as o / (a + b), o / sqrt(a b) as o o / b, and a distance as b - 2 o.
    """
    if code == EUCLIDEAN:
        apart = (b - 2 * o) - (other_b - 2 * other_o)
        return apart < 0 or (apart == 0 and d < other_d)
    x = _divisor(code, a, b)
    other_x = _divisor(code, a, other_b)
    y = o if code == COSINE else 1
    other_y = other_o if code == COSINE else 1
    if first_is_greater(o, y, other_x, other_o, other_y, x):
        return True
    return d < other_d and not first_is_greater(other_o, other_y, x, o, y, other_x)


@kernel
def _sink(code, a, heap, place, size):
    """Move the document at a place down until the least close of those below is above them."""
    common, totals, documents = heap
    o, b, d = common[place], totals[place], documents[place]
    while 2 * place + 1 < size:
        i = 2 * place + 1
        if i + 1 < size and closer(
            code, a, common[i], totals[i], documents[i], common[i + 1], totals[i + 1], documents[i + 1]
        ):
            i += 1
        if not closer(code, a, o, b, d, common[i], totals[i], documents[i]):
            break
        common[place], totals[place], documents[place] = common[i], totals[i], documents[i]
        place = i
    common[place], totals[place], documents[place] = o, b, d


@kernel
def arrange(code, a, heap, size):
    """Make the first size documents a heap."""
    for place in range(size // 2 - 1, -1, -1):
        _sink(code, a, heap, place, size)


@kernel
def enter(code, a, heap, size, o, b, d):
    """Put a document into a heap of size documents if there is room or it is closer than the last; return the size."""
    common, totals, documents = heap
    if size < common.shape[0]:
        common[size], totals[size], documents[size] = o, b, d
        if size + 1 == common.shape[0]:
            arrange(code, a, heap, size + 1)
        return size + 1
    if closer(code, a, o, b, d, common[0], totals[0], documents[0]):
        common[0], totals[0], documents[0] = o, b, d
        _sink(code, a, heap, 0, size)
    return size


@kernel
def sort(code, a, heap, size):
    """Order the first size documents from the closest on."""
    common, totals, documents = heap
    arrange(code, a, heap, size)
    for end in range(size - 1, 0, -1):
        common[0], common[end] = common[end], common[0]
        totals[0], totals[end] = totals[end], totals[0]
        documents[0], documents[end] = documents[end], documents[0]
        _sink(code, a, heap, 0, end)
