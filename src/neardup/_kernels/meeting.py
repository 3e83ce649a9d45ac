"""Sets that may match one that arrives: small ones are met by single features, large ones by couples of them."""

import numpy as np
from numba import int64, uint64

from neardup._kernels.bounds import need, smallest_partner
from neardup._kernels.compiling import kernel
from neardup._kernels.coupling import BITS, ENTERED, EQUAL, LEAST, couples_of, credit_to_enter, row_of
from neardup._kernels.posting import COUPLES, LARGEST, enter_prefix, meet_by_prefix, met_often
from neardup._kernels.shelving import meet_shelved, shelve


@kernel
def keys_to_enter(order, size, rule, enters, lists):
    """Return the couples (uint64) by which a document is entered; none where it is entered by single features.

    None either where it is not entered and nobody ever was by such keys.
    """
    row = row_of(lists.plan, size)
    if row < 0 or not (enters or lists.plan[row, ENTERED]):
        return np.empty(0, np.uint64)
    plan = lists.plan[row]
    return couples_of(order, credit_to_enter(rule, size, plan[EQUAL]), plan[BITS], lists.salt + uint64(2 * row))


@kernel
def meet_sets(order, size, rule, own, lists, found, needs, slots):
    """Write to found the rows of all documents that may match one with the given features; return how many.

    order: uint64[size], features in the window's order; own: its ``keys_to_enter``; needs, slots: room, see
    ``meet_by_prefix``.
    """
    plan = lists.plan
    often = meet_by_prefix(order, size, rule, lists, needs, slots)
    smallest = smallest_partner(rule, size)
    asks = often > 0
    for row in range(plan.shape[0]):
        low = max(plan[row, LEAST], smallest)
        if low > lists.counters[LARGEST] or need(rule, size, low) > size:
            break
        if plan[row, ENTERED] == 0 or (row + 1 < plan.shape[0] and plan[row + 1, LEAST] <= smallest):
            continue
        equal = plan[row, EQUAL]
        if row == row_of(plan, size):
            meet_shelved(own, lists)
        else:
            credit = size - need(rule, size, low) + equal
            meet_shelved(couples_of(order, credit, plan[row, BITS], lists.salt + uint64(2 * row)), lists)
        often = min(often, equal) if asks else equal
        asks = True
    return met_often(often, lists, found) if asks else int64(0)


@kernel
def enter_set(order, size, rule, own, document, lists):
    """Enter a document into the lists of the features, or under the couples, by which any partner must meet it."""
    row = row_of(lists.plan, size)
    if row < 0:
        enter_prefix(order, size, rule, document, lists)
        return
    shelve(own, document, lists)
    lists.plan[row, ENTERED] += 1
    lists.counters[COUPLES] += own.shape[0]
    lists.counters[LARGEST] = max(lists.counters[LARGEST], size)
