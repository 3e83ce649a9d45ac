"""The graph of matching pairs: kept documents and keepers, connected components, and all pairs of documents.

A node is a document that represents all documents equal to it. Its edges are ``neighbours[heads[n]:heads[n + 1]]``.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.compilation import inner_kernel, kernel


@kernel
def select_kept(order, heads, neighbours, kept):
    """Go through the nodes in keep order; keep each one (kept is False at first) that has no kept neighbour."""
    for i in range(order.shape[0]):
        node = order[i]
        is_kept = True
        for e in range(heads[node], heads[node + 1]):
            if kept[neighbours[e]]:
                is_kept = False
                break
        kept[node] = is_kept


@kernel
def assign_keepers(representative, position, speaker, kept, graph, keeper, best):
    """Assign to each dropped document the most similar kept one before it in keep order, the first among equals.

    position: int64[n], the position of each document in keep order; speaker: int64[n], the first in keep order among
    the documents that a representative stands for, which is kept if kept[representative]. keeper and best contain the
    document itself and 1 at first.
    """
    heads, neighbours, similarity = graph
    for d in range(representative.shape[0]):
        node = representative[d]
        if node < 0 or (kept[node] and speaker[node] == d):
            continue
        candidate = -1
        highest = -1.0
        if kept[node]:
            candidate = speaker[node]
            highest = 1.0
        for e in range(heads[node], heads[node + 1]):
            neighbour = neighbours[e]
            if not kept[neighbour] or position[speaker[neighbour]] > position[d]:
                continue
            if similarity[e] > highest or (
                similarity[e] == highest and position[speaker[neighbour]] < position[candidate]
            ):
                candidate = speaker[neighbour]
                highest = similarity[e]
        keeper[d] = candidate
        best[d] = highest


@inner_kernel
def find_root(node, root):
    """Return the root of a node's tree, and compress the path to it."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@kernel
def connect_components(left, right, root):
    """Set root, which contains 0..n-1 at first, to the smallest node of each node's connected component."""
    for e in range(left.shape[0]):
        a = find_root(left[e], root)
        b = find_root(right[e], root)
        root[max(a, b)] = min(a, b)
    for d in range(root.shape[0]):
        root[d] = root[root[d]]


@kernel
def group_pairs(order, left, right, root, sizes, component_sizes, capacity, last_group, groups):
    """Write the group of each pair, so that the items of a group fit into ``capacity``, or are those of one pair.

    order: the pairs, those of a component together; root: the root of each item; sizes: the size of each item;
    component_sizes: int64, by root. A component that fits is in one group; the items of others may be in several
    groups. last_group: int64 per item, -1 at first.
    """
    group = int64(0)
    used = int64(0)
    component = int64(-1)
    for i in range(order.shape[0]):
        p = order[i]
        first_item, second_item = left[p], right[p]
        if root[first_item] != component:
            component = root[first_item]
            if used > 0 and used + component_sizes[component] > capacity:
                group += 1
                used = 0
        added = (
            int64(last_group[first_item] != group) * sizes[first_item]
            + int64(last_group[second_item] != group) * sizes[second_item]
        )
        if used > 0 and used + added > capacity:
            group += 1
            used = 0
            added = sizes[first_item] + sizes[second_item]
        last_group[first_item] = group
        last_group[second_item] = group
        used += added
        groups[p] = group


@kernel
def expand_pairs(begin, end, representative, members, graph, out, similarities):
    """Write all pairs (d, later document) for d in [begin, end), sorted, from the pairs of representatives.

    members: (heads, documents), the documents of each representative, ascending. Stops if ``out`` may be too short for
    the next document. Returns (document to continue from, pairs written); (begin, 0) means that ``out`` must be longer.
    """
    heads, neighbours, similarity = graph
    member_heads, documents = members
    written = 0
    for d in range(begin, end):
        node = representative[d]
        if node < 0:
            continue
        needed = member_heads[node + 1] - member_heads[node]
        for e in range(heads[node], heads[node + 1]):
            needed += member_heads[neighbours[e] + 1] - member_heads[neighbours[e]]
        if written + needed > out.shape[0]:
            return d, written
        first = written
        for m in range(member_heads[node], member_heads[node + 1]):
            if documents[m] > d:
                out[written, 0] = d
                out[written, 1] = documents[m]
                similarities[written] = 1.0
                written += 1
        for e in range(heads[node], heads[node + 1]):
            neighbour = neighbours[e]
            for m in range(member_heads[neighbour], member_heads[neighbour + 1]):
                if documents[m] > d:
                    out[written, 0] = d
                    out[written, 1] = documents[m]
                    similarities[written] = similarity[e]
                    written += 1
        order = np.argsort(out[first:written, 1])
        out[first:written, 1] = out[first:written, 1][order]
        similarities[first:written] = similarities[first:written][order]
    return end, written


_ONE = uint64(1)
#: Thresholds per machine word.
THRESHOLDS_PER_WORD = 64


@kernel
def earlier_neighbours(left, right, level, heads, earlier, levels):
    """Write for each node its neighbours with smaller numbers, and the levels of those pairs.

    left, right: int64[e], the nodes of each pair; level: int16[e]; heads: int64[k + 1], zeros at first, gets where each
    row begins; earlier: int32[e] and levels: int16[e], written.
    """
    for e in range(left.shape[0]):
        heads[max(left[e], right[e]) + 1] += 1
    for node in range(heads.shape[0] - 1):
        heads[node + 1] += heads[node]
    at = heads[:-1].copy()
    for e in range(left.shape[0]):
        later = max(left[e], right[e])
        earlier[at[later]] = min(left[e], right[e])
        levels[at[later]] = level[e]
        at[later] += 1


@kernel
def count_kept_at_levels(heads, earlier, levels, begin, kept, kept_counts):
    """Select the kept nodes at 64 thresholds: in keep order, keep each one unless an earlier kept one matches it.

    Bit k of a word stands for threshold begin + k. heads, earlier, levels: from ``earlier_neighbours``, with nodes
    numbered in keep order; kept: uint64[k], written; kept_counts: int64[64], zeros at first, gets how many are kept at
    each.
    """
    for node in range(kept.shape[0]):
        matched = uint64(0)
        for e in range(heads[node], heads[node + 1]):
            upto = levels[e] - begin
            if upto >= THRESHOLDS_PER_WORD - 1:
                matched |= kept[earlier[e]]
            elif upto >= 0:
                matched |= kept[earlier[e]] & ((_ONE << uint64(upto + 1)) - _ONE)
        kept[node] = ~matched
        for k in range(THRESHOLDS_PER_WORD):
            kept_counts[k] += int64((kept[node] >> uint64(k)) & _ONE)


@kernel
def count_families_at_levels(left, right, order, heads, documents, families, largest):
    """Count, at each threshold, the components of more than one document, and the documents of the largest one.

    left, right: int64[e], the nodes of each pair; order: int64[e], the pairs by level; heads: int64[l + 1], where each
    level begins in order; documents: int64[k], how many documents each node stands for, overwritten; families, largest:
    int64[l], written.
    """
    root = np.arange(documents.shape[0])
    multiple = 0
    largest_so_far = 0
    for node in range(documents.shape[0]):
        if documents[node] > 1:
            multiple += 1
            largest_so_far = max(largest_so_far, documents[node])
    for level in range(families.shape[0] - 1, -1, -1):
        for i in range(heads[level], heads[level + 1]):
            a = find_root(left[order[i]], root)
            b = find_root(right[order[i]], root)
            if a == b:
                continue
            multiple += 1 - int64(documents[a] > 1) - int64(documents[b] > 1)
            if documents[a] < documents[b]:
                a, b = b, a
            root[b] = a
            documents[a] += documents[b]
            largest_so_far = max(largest_so_far, documents[a])
        families[level] = multiple
        largest[level] = largest_so_far
