"""Who stays: keepers in keep order, and families for reading.

Go through the documents in keep order and keep one unless a kept one matches it. So each dropped document has
a direct pair with a kept one, no two kept ones match, nothing chains, and the answer is unique: the
lexicographically first maximal independent set of the graph of pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.graph import assign_keepers, connect_components, select_kept

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Graph(NamedTuple):
    """Pairs of representatives as rows: the neighbours of node d are neighbours[heads[d]:heads[d + 1]]."""

    heads: Integers
    neighbours: Integers
    similarity: Floats


class Keepers(NamedTuple):
    """The verdict on each document.

    Attributes
    ----------
    keeper : int64[n]
        The document itself where it stays, else its most similar kept document before it in keep order, the
        first of equals.
    similarity : float64[n]
        To the keeper; 1 for a kept document.
    """

    keeper: Integers
    similarity: Floats

    @property
    def dropped(self) -> Bools:
        """bool[n], whether each document goes."""
        return np.not_equal(self.keeper, np.arange(len(self.keeper)))


class Families(NamedTuple):
    """Connected components of the graph of pairs that have more than one document.

    Attributes
    ----------
    family : int64[n]
        The family of each document, numbered from 1 in the order of their first documents; 0 for none.
    documents, pairs : int64[f]
        How many documents and matching pairs each family has.
    smallest, mean : float64[f]
        Over the similarities of its matching pairs.
    """

    family: Integers
    documents: Integers
    pairs: Integers
    smallest: Floats
    mean: Floats


def build_graph(count: int, left: Integers, right: Integers, similarity: Floats) -> Graph:
    """Return the graph of count documents and the given pairs."""
    ends = np.concatenate([left, right])
    order = np.argsort(ends, kind="stable")
    heads = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=count))]).astype(np.int64)
    neighbours = np.concatenate([right, left])[order]
    return Graph(heads, neighbours, np.concatenate([similarity, similarity])[order])


class KeepRanking(NamedTuple):
    """Representatives in keep order, before it is known who stays.

    Attributes
    ----------
    place : int64[n]
        Where each document is in keep order.
    top : int64[n]
        The first document in keep order of those that each representative stands for, -1 for others.
    nodes : int64[r]
        The representatives, in keep order of these.
    given : int
        How many of these, the first ones, stay whatever they match: they stand for reference documents.
    """

    place: Integers
    top: Integers
    nodes: Integers
    given: int

    def kept_nodes(self, pairs: Graph) -> Bools:
        """Return which representatives stay, each as its first document; the others' documents all go: bool[n]."""
        stays = np.zeros(len(self.place), np.bool_)
        stays[self.nodes[: self.given]] = True
        select_kept(self.nodes[self.given :], pairs.heads, pairs.neighbours, stays)
        return stays


def rank_documents(representative: Integers, order: Integers, reference: int = 0) -> KeepRanking:
    """Return who comes before whom; the parameters are those of ``find_keepers``."""
    count = len(representative)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    in_order = order[representative[order] >= 0]
    nodes = representative[in_order]
    top = np.full(count, -1, np.int64)
    # Of several values for one place the last one stays: here the first in keep order.
    top[nodes[::-1]] = in_order[::-1]
    given = int((top >= count - reference).sum())
    return KeepRanking(place, top, nodes[top[nodes] == in_order], given)


def find_keepers(representative: Integers, pairs: Graph, order: Integers, reference: int = 0) -> Keepers:
    """Return who stays.

    Parameters
    ----------
    representative : int64[n]
        The first document with the same features; -1 for one that matches nothing, which stays.
    pairs : Graph
        The matching pairs of representatives.
    order : int64[n]
        The documents in keep order: of two that match, the one that comes first is preferred.
    reference : int
        How many of the documents, the last ones, are of a reference: they stand first in keep order, and all stay.
    """
    count = len(representative)
    ranked = rank_documents(representative, order, reference)
    kept = Keepers(np.arange(count), np.ones(count))
    assign_keepers(
        representative,
        ranked.place,
        ranked.top,
        ranked.kept_nodes(pairs),
        (pairs.heads, pairs.neighbours, pairs.similarity),
        kept.keeper,
        kept.similarity,
    )
    own = count - reference
    kept.keeper[own:], kept.similarity[own:] = np.arange(own, count), 1.0
    return kept


def find_families(
    representative: Integers, left: Integers, right: Integers, similarity: Floats, reference: int = 0
) -> Families:
    """Return the families of documents that the pairs of representatives, and equal sets, connect.

    Pairs inside a reference, which is the last so many documents, connect nothing and are not counted.
    """
    count = len(representative)
    own = count - reference
    root = np.arange(count)
    connect_components(left, right, root)
    able = representative >= 0
    rooted = np.where(able, root[representative], np.arange(count))
    # A representative is the first of its equals, so the smallest node of a component is its first document.
    members = np.bincount(rooted, minlength=count)
    roots = np.flatnonzero(members[:own] > 1)
    number = np.zeros(count, np.int64)
    number[roots] = np.arange(1, len(roots) + 1)
    weight, equal = document_pair_counts(representative, left, right, reference)
    of_pair, of_node = number[rooted[left]], number[rooted]
    pairs = _sums(of_pair, weight, len(roots)) + _sums(of_node, equal, len(roots))
    total = _sums(of_pair, weight * similarity, len(roots)) + _sums(of_node, equal, len(roots))
    smallest = np.ones(len(roots) + 1)
    np.minimum.at(smallest, of_pair, similarity)
    return Families(of_node, members[roots], pairs.astype(np.int64), smallest[1:], total / np.maximum(pairs, 1))


def document_pair_counts(
    representative: Integers, left: Integers, right: Integers, reference: int = 0
) -> tuple[Integers, Integers]:
    """Return how many pairs of documents each pair of representatives is, and each representative with its equals.

    Those inside a reference, which is the last so many documents, are no pairs: int64[k] and int64[n].
    """
    count = len(representative)
    pairs, equal = np.zeros(len(left), np.int64), np.zeros(count, np.int64)
    for sign, first in ((1, 0), (-1, count - reference)):
        known = representative[first:]
        copies = np.bincount(known[known >= 0], minlength=count).astype(np.int64)
        pairs += sign * copies[left] * copies[right]
        equal += sign * copies * (copies - 1) // 2
    return pairs, equal


def _sums(family: Integers, weight: npt.NDArray[np.number], count: int) -> Floats:
    return np.bincount(family, weights=weight, minlength=count + 1)[1:].astype(np.float64)
