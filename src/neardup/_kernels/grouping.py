"""Equal sets, keepers and families: passes over documents and pairs that Python would be slow at."""

import numpy as np
from numba import int64, uint64

from neardup._kernels.bits import load_u64
from neardup._kernels.compiling import kernel


@kernel
def _in_order(address, weights, size):
    """Return a copy of a set in ascending order, and the weights that go with it."""
    features = np.empty(size, np.uint64)
    carried = np.zeros(size, np.uint64)
    for i in range(size):
        features[i] = load_u64(address + uint64(8 * i))
        if weights != uint64(0):
            carried[i] = load_u64(weights + uint64(8 * i))
    order = np.argsort(features)
    return features[order], carried[order]


@kernel
def _same_set(left, right, left_weights, right_weights, size):
    """Return whether two sets of one size, given by their addresses, hold the same; weights: addresses, or 0."""
    weighted = left_weights != uint64(0)
    i = int64(0)
    while i < size:
        at = uint64(8 * i)
        if load_u64(left + at) != load_u64(right + at):
            break
        if weighted and load_u64(left_weights + at) != load_u64(right_weights + at):
            break
        i += 1
    if i == size:
        return True
    # The same features may stand in another order, which is seldom: sets of most copies end above.
    one, own = _in_order(left, left_weights, size)
    other, theirs = _in_order(right, right_weights, size)
    return np.all(one == other) and np.all(own == theirs)


@kernel
def group_equal(marks, sizes, alone, addresses, weights, representative):
    """Set representative[d] to the first document that equals d, and to -1 where alone[d].

    Equal ones have equal marks and sizes. addresses: uint64[n], where the features of each lie, so that those with
    equal marks are compared; none where marks decide. weights: uint64[n], the same of their weights; none for sets.
    """
    count = sizes.shape[0]
    compares = addresses.shape[0] > 0
    weighted = weights.shape[0] > 0
    bits = 2
    while (1 << bits) < 2 * count:
        bits += 1
    mask = (1 << bits) - 1
    table = np.full(1 << bits, -1, np.int64)
    for d in range(count):
        if alone[d]:
            representative[d] = -1
            continue
        slot = int64((marks[d, 0] * uint64(0x9E3779B97F4A7C15)) >> uint64(64 - bits))
        while True:
            first = table[slot]
            if first < 0:
                table[slot] = d
                representative[d] = d
                break
            same = marks[first, 0] == marks[d, 0] and marks[first, 1] == marks[d, 1] and sizes[first] == sizes[d]
            if same and compares:
                own, theirs = uint64(0), uint64(0)
                if weighted:
                    own, theirs = weights[first], weights[d]
                same = _same_set(addresses[first], addresses[d], own, theirs, sizes[d])
            if same:
                representative[d] = first
                break
            slot = (slot + 1) & mask


@kernel
def greedy_keepers(order, heads, neighbours, stays):
    """Go through the nodes in order; set stays[node], False on entry, unless an earlier neighbour stays."""
    for i in range(order.shape[0]):
        node = order[i]
        alone = True
        for e in range(heads[node], heads[node + 1]):
            if stays[neighbours[e]]:
                alone = False
                break
        stays[node] = alone


@kernel
def name_keepers(representative, place, top, stays, graph, keeper, best):
    """Give each dropped document the most similar kept one before it in keep order, the first of equals.

    place: int64[n], where each document is in keep order; top: int64[n], the first document of each
    representative's equals, which stays if stays[representative]. keeper and best hold the document itself
    and 1 on entry.
    """
    heads, neighbours, similarity = graph
    for d in range(representative.shape[0]):
        node = representative[d]
        if node < 0 or (stays[node] and top[node] == d):
            continue
        found = -1
        most = -1.0
        if stays[node]:
            found = top[node]
            most = 1.0
        for e in range(heads[node], heads[node + 1]):
            other = neighbours[e]
            if not stays[other] or place[top[other]] > place[d]:
                continue
            if similarity[e] > most or (similarity[e] == most and place[top[other]] < place[found]):
                found = top[other]
                most = similarity[e]
        keeper[d] = found
        best[d] = most


@kernel
def components(left, right, root):
    """Make root, which holds 0..n-1 on entry, the smallest node of each node's connected component."""
    for e in range(left.shape[0]):
        a = left[e]
        b = right[e]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a < b:
            root[b] = a
        else:
            root[a] = b
    for d in range(root.shape[0]):
        root[d] = root[root[d]]


@kernel
def expand_pairs(begin, end, representative, members, graph, out, similarities):
    """Write all pairs (d, later document) of d in [begin, end), sorted, from those of representatives.

    members: (heads, documents) of the documents of each representative, ascending. Stops when out may be too
    short for one more document. Returns (document to go on with, pairs written); (begin, 0) asks for a longer
    out.
    """
    heads, neighbours, similarity = graph
    member_heads, documents = members
    written = 0
    for d in range(begin, end):
        node = representative[d]
        if node < 0:
            continue
        room = member_heads[node + 1] - member_heads[node]
        for e in range(heads[node], heads[node + 1]):
            room += member_heads[neighbours[e] + 1] - member_heads[neighbours[e]]
        if written + room > out.shape[0]:
            return d, written
        first = written
        for m in range(member_heads[node], member_heads[node + 1]):
            if documents[m] > d:
                out[written, 0] = d
                out[written, 1] = documents[m]
                similarities[written] = 1.0
                written += 1
        for e in range(heads[node], heads[node + 1]):
            other = neighbours[e]
            for m in range(member_heads[other], member_heads[other + 1]):
                if documents[m] > d:
                    out[written, 0] = d
                    out[written, 1] = documents[m]
                    similarities[written] = similarity[e]
                    written += 1
        order = np.argsort(out[first:written, 1])
        out[first:written, 1] = out[first:written, 1][order]
        similarities[first:written] = similarities[first:written][order]
    return end, written
