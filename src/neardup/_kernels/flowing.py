"""Documents in the order of arrival: whom each one matches in the window, and whether it enters."""

from typing import NamedTuple

import numpy as np
from numba import float64, int64, njit, uint16, uint32, uint64

from neardup._kernels.addresses import load_u16, load_u32, place_of, store_u16, store_u32, store_u64
from neardup._kernels.bits import load_u64, popcount, prefetch
from neardup._kernels.bounds import need
from neardup._kernels.comparing import NARROW, shared, similarity
from neardup._kernels.compiling import kernel
from neardup._kernels.meeting import enter_set, keys_to_enter, meet_sets
from neardup._kernels.posting import (
    AT,
    COUPLES,
    CURSOR,
    DIGEST,
    DIGEST_END,
    END,
    FIRST,
    LEAVES,
    MOST_COUPLES,
    NEXT,
    OLDEST,
    SERIAL,
    SHAPE,
    SIZE,
    TIME,
    WANTED,
    enter_keys,
    meet_by_keys,
    raws_of,
    room_for,
    shape_of,
    wide_of,
)

#: How a call ended: all done; more memory, more records or a longer table of shelves are needed.
DONE, NEEDS_MEMORY, NEEDS_RECORDS, NEEDS_SHELVES = range(4)
#: What the window holds: sets by their rare features; sets by keys; 64-bit fingerprints by keys.
BY_PREFIX, BY_KEYS, FINGERPRINTS = range(3)


class Items(NamedTuple):
    """Documents in order of arrival.

    features, order: uint64[m], their features as they came and in the window's order; heads: int64[n + 1]; raws:
    int64[n]; keys: uint64[n, k], k = 0 for sets by their rare features; times, leaves, least, serials: int64[n], when
    each one happened, when it leaves, the least time of leaving that a partner must have, and its number; digests:
    int64[n, 2], those of the texts.
    """

    features: np.ndarray
    order: np.ndarray
    heads: np.ndarray
    raws: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    leaves: np.ndarray
    least: np.ndarray
    serials: np.ndarray
    digests: np.ndarray


class Room(NamedTuple):
    """Scratch: found int64[r]; needs int64[k, 2]; slots int64[32 k]; known uint8[ranks], zeros."""

    found: np.ndarray
    needs: np.ndarray
    slots: np.ndarray
    known: np.ndarray


@njit(inline="always")
def narrow_from(room):
    """Return the rank from which on ranks are stored in two bytes: the most frequent features have them."""
    return max(room.known.shape[0] - NARROW, 0)


@njit(inline="always")
def _share_a_key(keys, place):
    """Return whether two documents share a key: band b of one is compared with band b of the other."""
    count = keys.shape[0]
    found = False
    for k in range(count):
        found |= keys[k] == load_u64(place - uint64(8 * (count - k)))
    return found


@kernel
def _compare(i, count, items, rule, window, lists, room, kind, listing, out, at):
    """Compare document i with the found rows; write (row, o, a, b) of the best match, or of all, to out[at:].

    Returns how many were written, or -1 if they do not fit.
    """
    begin, end = items.heads[i], items.heads[i + 1]
    order, raws, size = items.order[begin:end], items.raws[i], end - begin
    best = -1.0
    written = int64(0)
    records = uint64(lists.records.ctypes.data)
    for c in range(count):
        if c + 12 < count:
            prefetch(records + uint64(64 * room.found[c + 12]))
        if c + 5 < count:
            prefetch(place_of(lists.bases, lists.records[room.found[c + 5], AT]))
        row = room.found[c]
        record = lists.records[row]
        other = record[SIZE]
        # Removed, dropped with its hour (its record stays until the ring comes round), or out of the window.
        if other == 0 or record[AT] < lists.counters[OLDEST]:
            continue
        if record[LEAVES] < items.least[i] or abs(record[TIME] - items.times[i]) > window:
            continue
        place = place_of(lists.bases, record[AT])
        if kind == FINGERPRINTS:
            o = 64 - int64(popcount(items.features[begin] ^ load_u64(place)))
            if 64 - o > rule[1]:
                continue
            own = theirs = int64(64)
            score = float64(o)
        else:
            own, theirs = size, other
            least = need(rule, size, other)
            if least > min(size, other):
                continue
            if kind == BY_KEYS and not _share_a_key(items.keys[i], place):
                continue
            o = shared(order, raws, place, record, narrow_from(room), least, room.known)
            if o < least:
                continue
            score = similarity(rule[0], o, size, other)
        if listing:
            if at + written >= out.shape[0]:
                return int64(-1)
        elif score < best or (score == best and record[SERIAL] > lists.records[out[at, 0], SERIAL]):
            continue
        slot = at + written if listing else at
        out[slot, 0] = row
        out[slot, 1] = o
        out[slot, 2] = own
        out[slot, 3] = theirs
        best = score
        written = written + 1 if listing else int64(1)
    return written


@kernel
def _mark(items, i, known, value):
    for k in range(items.heads[i] + items.raws[i], items.heads[i + 1]):
        known[items.order[k]] = value


@kernel
def _own_keys(i, items, rule, enters, lists, kind):
    if kind != BY_PREFIX:
        return np.empty(0, np.uint64)
    begin, end = items.heads[i], items.heads[i + 1]
    return keys_to_enter(items.order[begin:end], end - begin, rule, enters, lists)


@kernel
def _find(i, items, own, rule, window, lists, room, kind, listing, out, at):
    begin, end = items.heads[i], items.heads[i + 1]
    if kind == BY_PREFIX:
        order = items.order[begin:end]
        count = meet_sets(order, end - begin, rule, own, lists, room.found, room.needs, room.slots)
    else:
        count = meet_by_keys(items.keys[i], lists, room.found)
    if count == 0:
        return int64(0)
    if kind != FINGERPRINTS:
        _mark(items, i, room.known, 1)
    written = _compare(i, count, items, rule, window, lists, room, kind, listing, out, at)
    if kind != FINGERPRINTS:
        _mark(items, i, room.known, 0)
    return written


@kernel
def _enter(i, items, own, rule, lists, room, kind):
    """Write document i behind the cursor, and enter it into the lists."""
    counters = lists.counters
    begin, end = items.heads[i], items.heads[i + 1]
    size, raws = end - begin, items.raws[i]
    document = counters[NEXT]
    counters[NEXT] += 1
    row = document & (lists.records.shape[0] - 1)
    address = counters[CURSOR]
    place = place_of(lists.bases, address)
    wide = int64(0)
    if kind == BY_KEYS:
        # The keys stand before the features: lists are found by hashes, and only equal keys make partners.
        keys = items.keys.shape[1]
        for k in range(keys):
            store_u64(place + uint64(8 * k), items.keys[i, k])
        counters[CURSOR] += 8 * keys
        address += 8 * keys
        place += uint64(8 * keys)
    if kind == FINGERPRINTS:
        store_u64(place, items.features[begin])
        counters[CURSOR] += 8
    else:
        for k in range(raws):
            store_u64(place + uint64(8 * k), items.order[begin + k])
        place += uint64(8 * raws)
        narrow = narrow_from(room)
        while wide < size - raws and items.order[begin + raws + wide] < narrow:
            store_u32(place + uint64(4 * wide), uint32(items.order[begin + raws + wide]))
            wide += 1
        place += uint64(4 * wide)
        for k in range(size - raws - wide):
            store_u16(place + uint64(2 * k), uint16(int64(items.order[begin + raws + wide + k]) - narrow))
        counters[CURSOR] += 8 * raws + (4 * wide + 2 * (size - raws - wide) + 7) // 8 * 8
    record = lists.records[row]
    record[TIME] = items.times[i]
    record[LEAVES] = items.leaves[i]
    record[AT] = address
    record[SIZE] = size
    record[SHAPE] = shape_of(raws, wide)
    record[SERIAL] = items.serials[i]
    record[DIGEST] = items.digests[i, 0]
    record[DIGEST_END] = items.digests[i, 1]
    if kind == BY_PREFIX:
        enter_set(items.order[begin:end], size, rule, own, document, lists)
    else:
        enter_keys(items.keys[i], document, lists)


@kernel
def flow(begin, items, rule, window, lists, room, kind, asks, enters, best, scores):
    """Take documents from begin on, one after the other: find the best match of each, and enter it if it may.

    Parameters
    ----------
    window : int
        The most that two partners' times may differ.
    asks : bool
        Whether partners are looked for.
    enters : int8[n]
        0: never; 1: if nothing matches it; 2: always.
    best : int64[n, 6]
        For each document, what is known already and then what is found: arrival of the best match (-1 for none),
        o, a, b, and the digest of its text.
    scores : float64[n]
        The similarities that go with it.

    Returns
    -------
    tuple
        The first document that is not done, and how the call ended.
    """
    counters = lists.counters
    out = np.empty((1, 4), np.int64)
    for i in range(begin, items.heads.shape[0] - 1):
        size = items.heads[i + 1] - items.heads[i]
        if size == 0:
            continue
        own = _own_keys(i, items, rule, enters[i] > 0, lists, kind)
        if enters[i]:
            if counters[NEXT] - counters[FIRST] >= lists.records.shape[0]:
                return i, NEEDS_RECORDS
            counters[WANTED] = room_for(rule, size, max(items.keys.shape[1], own.shape[0]), lists.classes)
            if counters[END] - counters[CURSOR] < counters[WANTED]:
                return i, NEEDS_MEMORY
            if own.shape[0] > 0 and counters[COUPLES] + own.shape[0] > counters[MOST_COUPLES]:
                return i, NEEDS_SHELVES
        if asks and _find(i, items, own, rule, window, lists, room, kind, False, out, 0):
            record = lists.records[out[0, 0]]
            score = float64(out[0, 1]) / 64.0
            if kind != FINGERPRINTS:
                score = similarity(rule[0], out[0, 1], out[0, 2], out[0, 3])
            if score > scores[i] or (score == scores[i] and record[SERIAL] < best[i, 0]):
                scores[i] = score
                best[i, 0] = record[SERIAL]
                best[i, 1:4] = out[0, 1:]
                best[i, 4] = record[DIGEST]
                best[i, 5] = record[DIGEST_END]
        if enters[i] == 2 or (enters[i] == 1 and best[i, 0] < 0):
            _enter(i, items, own, rule, lists, room, kind)
    return items.heads.shape[0] - 1, DONE


@kernel
def list_matches(items, rule, window, lists, room, kind, out):
    """Write all matches of the first document to out (int64[r, 4]) as (row, o, a, b); return how many, -1: too many."""
    own = _own_keys(0, items, rule, False, lists, kind)
    return _find(0, items, own, rule, window, lists, room, kind, True, out, 0)


@kernel
def read_back(first, last, lists, words, heads, features):
    """Write the features of the documents [first, last) to features, and where each one's begin to heads.

    words: uint64[ranks], the feature of each rank. Features may be too short (0): then only heads is filled.
    """
    at = int64(0)
    mask = lists.records.shape[0] - 1
    for d in range(first, last):
        record = lists.records[d & mask]
        heads[d - first] = at
        size, raws = record[SIZE], raws_of(record[SHAPE])
        if features.shape[0] > 0 and size > 0:
            place = place_of(lists.bases, record[AT])
            for k in range(raws):
                features[at + k] = load_u64(place + uint64(8 * k))
            place += uint64(8 * raws)
            wide = wide_of(record[SHAPE])
            for k in range(wide):
                features[at + raws + k] = words[load_u32(place + uint64(4 * k))]
            place += uint64(4 * wide)
            narrow = max(words.shape[0] - NARROW, 0)
            for k in range(size - raws - wide):
                features[at + raws + wide + k] = words[narrow + int64(load_u16(place + uint64(2 * k)))]
        at += size
    heads[last - first] = at
