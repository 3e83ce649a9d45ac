"""Decisions by group: a repository, a thread or a site is dropped whole, or stays whole.

Groups are visited in the keep order of their first documents. A group is dropped if at least a share of its documents
match documents of one other group that is kept; otherwise all of it is kept, duplicates included. Groups of a
reference come first and are kept. Of several groups that suffice, a dropped one names the one that most of its
documents match; ties go to the first in keep order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import RecipeError, option, quoted
from neardup.keep.keepers import Graph, Keepers
from neardup.kernels import Integers


class GroupRule(NamedTuple):
    """Which groups documents belong to, and when a group is dropped.

    Attributes
    ----------
    column : str
        The column whose values are the groups.
    share : Fraction
        The share of a group's documents that must match one other group.
    groups : int64[n]
        The group of each document, from 0. A document without a value is a group of its own, and groups of a reference
        differ from those of the input even if they have the same value.
    names : list
        The value of each group; None for a document without one.
    """

    column: str
    share: Fraction
    groups: Integers
    names: Sequence[Any]


class GroupVerdicts(NamedTuple):
    """The verdict on each group.

    Attributes
    ----------
    rule : GroupRule
        The groups.
    keeper : int64[g]
        The group itself if it is kept; else the group for which it is dropped.
    documents, matched : int64[g]
        The number of its documents, and of those that match documents of the keeper; 0 for a kept group.
    """

    rule: GroupRule
    keeper: Integers
    documents: Integers
    matched: Integers

    @property
    def dropped(self) -> Integers:
        """The dropped groups, ascending."""
        return np.flatnonzero(self.keeper != np.arange(len(self.keeper)))

    def describe(self, group: int) -> str:
        """Return the verdict on a group as a clause."""
        name, keeper = self.rule.names[group], int(self.keeper[group])
        of_column = f"{self.rule.column} {quoted(name)}"
        if keeper == group:
            return f"{of_column} stays whole"
        return (
            f"{of_column} is dropped whole for {quoted(self.rule.names[keeper])}: {int(self.matched[group]):,} of its "
            f"{int(self.documents[group]):,} documents match there"
        )


def parse_share(share: object) -> Fraction:
    """Return a share of documents as a fraction; ``RecipeError`` if it is not in (0, 1]."""
    try:
        found = Fraction(str(share))
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if not 0 < found <= 1:
        raise RecipeError(
            f"{option('--drop-share')} {quoted(share)} is not a share above 0 and up to 1; give 1 for all documents of "
            "a group, or 0.9 for nine in ten"
        )
    return found


def group_rule(values: pa.Array, column: str, share: Fraction, input_count: int) -> GroupRule:
    """Return the rule for the values of a column; the documents from ``input_count`` on are of a reference."""
    codes = np.asarray(pc.fill_null(pc.dictionary_encode(values).indices, -1), np.int64)
    is_alone = codes < 0
    keys = np.stack([np.arange(len(codes)) >= input_count, codes, np.where(is_alone, np.arange(len(codes)), -1)])
    _, firsts, groups = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return GroupRule(column, share, groups.reshape(-1), values.take(pa.array(firsts)).to_pylist())


class _Places(NamedTuple):
    """Where kept groups have documents: for each representative the groups, each with its first document there."""

    graph: Graph
    kept: dict[int, dict[int, int]]

    def near(self, node: int) -> list[tuple[float, Mapping[int, int]]]:
        """Return the kept groups at a representative and at those that it matches, with the similarities."""
        begin, end = int(self.graph.heads[node]), int(self.graph.heads[node + 1])
        neighbours = zip(
            self.graph.similarity[begin:end].tolist(), self.graph.neighbours[begin:end].tolist(), strict=True
        )
        found = [(1.0, self.kept.get(node)), *((similarity, self.kept.get(other)) for similarity, other in neighbours)]
        return [(similarity, groups) for similarity, groups in found if groups]


def decide_groups(
    representative: Integers, pairs: Graph, order: Integers, rule: GroupRule, reference_count: int = 0
) -> tuple[GroupVerdicts, Keepers]:
    """Return the verdict on each group, and the keeper of each document.

    A document of a dropped group names the most similar document that it matches in the group for which its own is
    dropped; if it matches none, the first one there, with similarity 0. The other parameters are those of
    ``find_keepers``.
    """
    count, groups = len(representative), rule.groups
    places = np.empty(count, np.int64)
    places[order] = np.arange(count)
    group_count = len(rule.names)
    documents = np.bincount(groups, minlength=group_count).astype(np.int64)
    _, first = np.unique(groups[order], return_index=True)
    firsts = order[first]
    of_reference = np.zeros(group_count, np.bool_)
    of_reference[groups[count - reference_count :]] = True
    keeper, matched = np.arange(group_count), np.zeros(group_count, np.int64)
    keepers = Keepers(np.arange(count), np.ones(count))
    # Documents that match nothing decide nothing: most of a corpus.
    copies = np.bincount(representative[representative >= 0], minlength=count)
    can_match = (representative >= 0) & ((np.diff(pairs.heads) > 0) | (copies > 1))[representative]
    matchable = order[can_match[order]]
    matchable = matchable[np.argsort(first.argsort().argsort()[groups[matchable]], kind="stable")]
    cuts = np.flatnonzero(np.diff(groups[matchable])) + 1
    known = _Places(pairs, {})
    for part in np.split(matchable, cuts) if len(matchable) else ():
        group, nodes = int(groups[part[0]]), representative[part].tolist()
        if not of_reference[group]:
            found = _best_group(nodes, int(documents[group]), rule.share, known, places[firsts])
            if found is not None:
                keeper[group], matched[group] = found
                _name_keepers(part, nodes, int(keeper[group]), known, places, keepers)
                continue
        for document, node in zip(part.tolist(), nodes, strict=True):
            known.kept.setdefault(node, {}).setdefault(group, document)
    lost = (keeper != np.arange(group_count))[groups] & ~keepers.dropped
    keepers.keeper[lost], keepers.similarity[lost] = firsts[keeper[groups[lost]]], 0.0
    return GroupVerdicts(rule, keeper, documents, matched), keepers


def _best_group(
    nodes: Sequence[int], documents: int, share: Fraction, known: _Places, group_places: Integers
) -> tuple[int, int] | None:
    """Return the kept group that most documents of a group match, and how many; None if they are too few.

    nodes: the representatives of the documents that can match at all.
    """
    needed = max(ceil(share * documents), 1)
    near = {node: [groups for _, groups in known.near(node)] for node in set(nodes)}
    by_choice = sorted(nodes, key=lambda node: (sum(map(len, near[node])), node))
    # All but ``spare`` documents must match the group, so one of the first ``spare + 1`` with the fewest choices does.
    spare = len(nodes) - needed
    if spare < 0:
        return None
    candidates = {group for node in set(by_choice[: spare + 1]) for groups in near[node] for group in groups}
    best = None
    for group in candidates:
        found = sum(any(group in groups for groups in near[node]) for node in nodes)
        if found >= needed:
            key = (-found, int(group_places[group]), group)
            best = key if best is None or key < best else best
    return None if best is None else (best[2], -best[0])


def _name_keepers(
    documents: Integers, nodes: Sequence[int], group: int, known: _Places, places: Integers, keepers: Keepers
) -> None:
    """Record the most similar document of a group for each document that matches one, the first of equal ones."""
    for document, node in zip(documents.tolist(), nodes, strict=True):
        found = [
            (-similarity, int(places[groups[group]]), groups[group])
            for similarity, groups in known.near(node)
            if group in groups
        ]
        if found:
            similarity, _, keepers.keeper[document] = min(found)
            keepers.similarity[document] = -similarity
