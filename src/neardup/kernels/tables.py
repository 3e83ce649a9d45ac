"""The open-address hash table of the kernels. Keys are hashes (uint64), and 0 marks a free slot.

The number of slots is a power of two and at least twice the number of keys. Probing starts at the slot given by the top
bits of a key, so these must be as random as those of a hash.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import trailing_zeros
from neardup.kernels.compilation import inlined, inner_kernel, kernel

#: The number of slots of a table without keys; any other table has more.
EMPTY_TABLE_SIZE = 2


@inlined
def home_slot(key, keys):
    """Return the slot at which probing for a key starts."""
    return int64(key >> (uint64(64) - trailing_zeros(uint64(keys.shape[0]))))


@inlined
def find_slot(key, keys):
    """Return the slot of a key, or the free slot where it belongs."""
    slot = home_slot(key, keys)
    while keys[slot] != key and keys[slot] != uint64(0):
        slot = (slot + 1) & (keys.shape[0] - 1)
    return slot


@inlined
def contains_key(keys, key):
    """Return whether a table contains a key other than 0."""
    return keys[find_slot(key, keys)] == key


def table_size(count: int) -> int:
    """Return the number of slots of a table for ``count`` keys."""
    slots = 2 * EMPTY_TABLE_SIZE
    while slots < 2 * count:
        slots *= 2
    return slots


_table_size = inlined(table_size)


@inner_kernel
def table_buffer(count):
    """Return an uninitialized buffer for tables of up to ``count`` keys."""
    return np.empty(_table_size(count), np.uint64)


@inner_kernel
def table_in(buffer, count):
    """Return the front of a buffer that a table for ``count`` keys takes."""
    return buffer[: _table_size(count)]


@inner_kernel
def clear_table(buffer, count):
    """Return the front of a buffer as an empty table for ``count`` keys."""
    keys = table_in(buffer, count)
    keys[:] = uint64(0)
    return keys


@kernel
def insert_keys(new_keys, keys):
    """Insert keys, none of them 0."""
    for key in new_keys:
        keys[find_slot(key, keys)] = key


@kernel
def number_keys(features, keys, numbers):
    """Insert features, number them by first occurrence in ``numbers``, and return how many are distinct."""
    count = 0
    for i in range(features.shape[0]):
        slot = find_slot(features[i], keys)
        if keys[slot] == uint64(0):
            keys[slot] = features[i]
            numbers[slot] = count
            count += 1
    return count


@kernel
def insert_values(features, source, keys, values):
    """Insert keys with their values, or with value 1 if ``source`` is empty."""
    has_values = source.shape[0] > 0
    for i in range(features.shape[0]):
        slot = find_slot(features[i], keys)
        keys[slot] = features[i]
        values[slot] = source[i] if has_values else 1


@kernel
def lookup_value(key, keys, values, default):
    """Return the value of a key, or the default if the table does not contain it."""
    slot = find_slot(key, keys)
    return values[slot] if keys[slot] == key else default
