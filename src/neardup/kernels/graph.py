"""The graph of pairs: which documents stay and who keeps each other one, connected components, and all pairs of equals.

Nodes are documents that stand for all that equal them; their edges lie in rows, ``neighbours[heads[n]:heads[n + 1]]``.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from neardup.kernels.compilation import inner_kernel, kernel


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


@inner_kernel
def root_of(node, root):
    """Return the root of a node's tree, and shorten the way there."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@kernel
def components(left, right, root):
    """Make root, which holds 0..n-1 on entry, the smallest node of each node's connected component."""
    for e in range(left.shape[0]):
        a = root_of(left[e], root)
        b = root_of(right[e], root)
        root[max(a, b)] = min(a, b)
    for d in range(root.shape[0]):
        root[d] = root[root[d]]


@kernel
def group_pairs(order, left, right, root, sizes, total, room, last, groups):
    """Write the group of each pair, so that the items of a group have no more than room, or are those of one pair.

    order: the pairs, those of one component behind each other; root: of each item; total: int64, what all items of the
    component of a root have. A component that fits is in one group; of others an item may be in several. last: int64
    for each item, -1 on entry.
    """
    group = int64(0)
    used = int64(0)
    family = int64(-1)
    for i in range(order.shape[0]):
        p = order[i]
        one, other = left[p], right[p]
        if root[one] != family:
            family = root[one]
            if used > 0 and used + total[family] > room:
                group += 1
                used = 0
        more = int64(last[one] != group) * sizes[one] + int64(last[other] != group) * sizes[other]
        if used > 0 and used + more > room:
            group += 1
            used = 0
            more = sizes[one] + sizes[other]
        last[one] = group
        last[other] = group
        used += more
        groups[p] = group


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
