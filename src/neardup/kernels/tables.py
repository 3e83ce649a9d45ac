"""The one open-address table of the kernels: keys are hashes, uint64, and 0 is a free slot.

A table has a power of two of slots, at least twice as many as keys. A key is looked for from the slot that its top bits
name, so these must differ as those of hashes do.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from neardup.kernels.bits import trailing_zeros
from neardup.kernels.compilation import inner_kernel, kernel

#: The slots of a table that holds nothing; any other has more.
EMPTY_TABLE = 2


@njit(inline="always")
def first_slot(key, keys):
    """Return the slot from which a key is looked for."""
    return int64(key >> (uint64(64) - trailing_zeros(uint64(keys.shape[0]))))


@njit(inline="always")
def find(key, keys):
    """Return the slot of a key, or the free one where it would be."""
    slot = first_slot(key, keys)
    while keys[slot] != key and keys[slot] != uint64(0):
        slot = (slot + 1) & (keys.shape[0] - 1)
    return slot


@njit(inline="always")
def holds(keys, key):
    """Return whether a table holds a key, which is not 0."""
    return keys[find(key, keys)] == key


def slots_for(count: int) -> int:
    """Return how many slots a table for so many keys has."""
    slots = 2 * EMPTY_TABLE
    while slots < 2 * count:
        slots *= 2
    return slots


_slots_for = njit(inline="always")(slots_for)


@inner_kernel
def room_for(count):
    """Return room for a table of so many keys."""
    return np.empty(_slots_for(count), np.uint64)


@inner_kernel
def cleared(room, count):
    """Return the front of room as a free table for so many keys."""
    keys = room[: _slots_for(count)]
    keys[:] = uint64(0)
    return keys


@kernel
def enter(values, keys):
    """Enter values, none of them 0, into a table."""
    for value in values:
        keys[find(value, keys)] = value


@kernel
def enter_places(features, keys, places):
    """Enter features, repeats among them, and the number of each by first occurrence; return how many are distinct."""
    count = 0
    for i in range(features.shape[0]):
        slot = find(features[i], keys)
        if keys[slot] == uint64(0):
            keys[slot] = features[i]
            places[slot] = count
            count += 1
    return count


@kernel
def enter_values(features, given, keys, values):
    """Enter features with the value given for each, or with 1 where none are given."""
    some = given.shape[0] > 0
    for i in range(features.shape[0]):
        slot = find(features[i], keys)
        keys[slot] = features[i]
        values[slot] = given[i] if some else 1


@kernel
def value_of(key, keys, values, otherwise):
    """Return the value of a key, and another one where the table does not hold it."""
    slot = find(key, keys)
    return values[slot] if keys[slot] == key else otherwise
