"""Which documents are kept, which keeper a dropped one names, and which documents belong together as families.

Documents are visited in keep order; one is kept unless it matches a kept one. So each dropped document is in a
matching pair with a kept one, no two kept ones match, nothing chains, and the result is unique: the
lexicographically first maximal independent set of the graph of pairs. Of several kept documents that a dropped one
matches, it names the most similar; ties go to the first in keep order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import Bools, Floats, Integers
from neardup.kernels.graph import assign_keepers, connect_components, select_kept


class Graph(NamedTuple):
    """Pairs of representatives as rows: the neighbours of node d are neighbours[heads[d]:heads[d + 1]]."""

    heads: Integers
    neighbours: Integers
    similarity: Floats


class Keepers(NamedTuple):
    """The keeper of each document.

    Attributes
    ----------
    keeper : int64[n]
        The document itself if it is kept; else the most similar kept document before it in keep order, the first
        one of several.
    similarity : float64[n]
        The similarity to the keeper; 1 for a kept document.
    """

    keeper: Integers
    similarity: Floats

    @property
    def dropped(self) -> Bools:
        """bool[n], which documents are dropped."""
        return np.not_equal(self.keeper, np.arange(len(self.keeper)))


class Families(NamedTuple):
    """Connected components of the graph of pairs that have more than one document.

    Attributes
    ----------
    family : int64[n]
        The family of each document, numbered from 1 in the order of their first documents; 0 for none.
    documents, pairs : int64[f]
        The number of documents and of matching pairs of each family.
    smallest, mean : float64[f]
        The smallest and the mean similarity of its matching pairs.
    """

    family: Integers
    documents: Integers
    pairs: Integers
    smallest: Floats
    mean: Floats


def build_graph(count: int, left: Integers, right: Integers, similarity: Floats) -> Graph:
    """Return the graph of ``count`` documents with these pairs as edges."""
    ends = np.concatenate([left, right])
    order = np.argsort(ends, kind="stable")
    heads = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=count))]).astype(np.int64)
    neighbours = np.concatenate([right, left])[order]
    return Graph(heads, neighbours, np.concatenate([similarity, similarity])[order])


class KeepRanking(NamedTuple):
    """Documents and their representatives in keep order.

    Attributes
    ----------
    places : int64[n]
        The place of each document in keep order.
    firsts : int64[n]
        For each representative, the first of its documents in keep order; -1 for a document that is none.
    nodes : int64[r]
        The representatives, in the keep order of their first documents.
    reference_nodes : int
        How many of the nodes, the first ones, stand for reference documents: they are kept whatever they match.
    """

    places: Integers
    firsts: Integers
    nodes: Integers
    reference_nodes: int

    def kept_nodes(self, pairs: Graph) -> Bools:
        """Return bool[n], the representatives whose first document is kept; of all others, every one is dropped."""
        kept = np.zeros(len(self.places), np.bool_)
        kept[self.nodes[: self.reference_nodes]] = True
        select_kept(self.nodes[self.reference_nodes :], pairs.heads, pairs.neighbours, kept)
        return kept


def rank_documents(representative: Integers, order: Integers, reference_count: int = 0) -> KeepRanking:
    """Return the documents and representatives in keep order; the parameters are those of ``find_keepers``."""
    count = len(representative)
    places = np.empty(count, np.int64)
    places[order] = np.arange(count)
    in_order = order[representative[order] >= 0]
    nodes = representative[in_order]
    firsts = np.full(count, -1, np.int64)
    # Of several assignments to one place the last one counts: here, the first document in keep order.
    firsts[nodes[::-1]] = in_order[::-1]
    reference_nodes = int((firsts >= count - reference_count).sum())
    return KeepRanking(places, firsts, nodes[firsts[nodes] == in_order], reference_nodes)


def find_keepers(representative: Integers, pairs: Graph, order: Integers, reference_count: int = 0) -> Keepers:
    """Return the keeper of each document.

    Parameters
    ----------
    representative : int64[n]
        The first document with the same features; -1 for one that can match nothing, which is kept.
    pairs : Graph
        The matching pairs of representatives.
    order : int64[n]
        The documents in keep order: of two that match, the earlier one is preferred.
    reference_count : int
        How many of the documents, the last ones, are of a reference: they come first in keep order and are all kept.
    """
    count = len(representative)
    ranked = rank_documents(representative, order, reference_count)
    keepers = Keepers(np.arange(count), np.ones(count))
    assign_keepers(
        representative,
        ranked.places,
        ranked.firsts,
        ranked.kept_nodes(pairs),
        (pairs.heads, pairs.neighbours, pairs.similarity),
        keepers.keeper,
        keepers.similarity,
    )
    input_count = count - reference_count
    keepers.keeper[input_count:], keepers.similarity[input_count:] = np.arange(input_count, count), 1.0
    return keepers


def find_families(
    representative: Integers, left: Integers, right: Integers, similarity: Floats, reference_count: int = 0
) -> Families:
    """Return the families: documents connected by pairs of representatives and by equal features.

    The last ``reference_count`` documents are of a reference: pairs among them connect nothing and are not counted.
    """
    count = len(representative)
    root = np.arange(count)
    connect_components(left, right, root)
    rooted = np.where(representative >= 0, root[representative], np.arange(count))
    # A representative is the first of equal documents, so the smallest node of a component is its first document.
    members = np.bincount(rooted, minlength=count)
    roots = np.flatnonzero(members[: count - reference_count] > 1)
    number = np.zeros(count, np.int64)
    number[roots] = np.arange(1, len(roots) + 1)
    weight, equal = document_pair_counts(representative, left, right, reference_count)
    of_pair, of_node = number[rooted[left]], number[rooted]
    pairs = _sums(of_pair, weight, len(roots)) + _sums(of_node, equal, len(roots))
    total = _sums(of_pair, weight * similarity, len(roots)) + _sums(of_node, equal, len(roots))
    smallest = np.ones(len(roots) + 1)
    np.minimum.at(smallest, of_pair, similarity)
    return Families(of_node, members[roots], pairs.astype(np.int64), smallest[1:], total / np.maximum(pairs, 1))


def document_pair_counts(
    representative: Integers, left: Integers, right: Integers, reference_count: int = 0
) -> tuple[Integers, Integers]:
    """Return int64[k], the pairs of documents behind each pair of representatives, and int64[n], those of equal ones.

    The last ``reference_count`` documents are of a reference: pairs among them do not count.
    """
    count = len(representative)
    pairs, equal = np.zeros(len(left), np.int64), np.zeros(count, np.int64)
    for sign, first in ((1, 0), (-1, count - reference_count)):
        present = representative[first:]
        copies = np.bincount(present[present >= 0], minlength=count).astype(np.int64)
        pairs += sign * copies[left] * copies[right]
        equal += sign * copies * (copies - 1) // 2
    return pairs, equal


def _sums(family: Integers, weight: npt.NDArray[np.number], count: int) -> Floats:
    return np.bincount(family, weights=weight, minlength=count + 1)[1:].astype(np.float64)
