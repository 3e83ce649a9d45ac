"""The findings of a run, as arrays by position: documents, pairs, keepers and families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.documents import Corpus
from neardup.documents.records import Names
from neardup.keep.groups import GroupRule, GroupVerdicts, decide_groups
from neardup.keep.keepers import Families, Keepers, find_families, find_keepers, rank_documents
from neardup.keep.pairs import Pairs
from neardup.kernels import Bools, Integers, Words
from neardup.recipe import Recipe
from neardup.search.margin import Criterion, Margin, criterion_of
from neardup.search.matches import Matches
from neardup.search.second_step import text_representatives

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a run, by position; rejected records are not among them.

    Attributes
    ----------
    order : int64[n]
        Positions in keep order.
    text_digests, text_bytes : uint64[n, 2], int64[n]
        As in ``features.store.Block``.
    present : bool[n]
        False for reference documents: they are neither kept nor dropped.
    drop_by : GroupRule or None
        The groups that are dropped or kept whole, if it is decided by group.
    """

    names: Names
    order: Integers
    text_digests: Words
    text_bytes: Integers
    present: Bools
    drop_by: GroupRule | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The findings of a run.

    Attributes
    ----------
    corpus : Corpus
        The input, read once and still open.
    classifier : Classifier or None
        The classifier of the second step, if there is one.
    matches, pairs : Matches, Pairs
        The matching pairs of representatives, and all pairs of documents that they stand for.
    margin : Margin or None
        The pairs beyond the threshold, if they were searched for.
    groups : GroupVerdicts or None
        The verdict on each group, if it is decided by group.
    """

    corpus: Corpus
    recipe: Recipe
    classifier: Classifier | None
    documents: Documents
    matches: Matches
    pairs: Pairs
    keepers: Keepers
    families: Families
    margin: Margin | None
    groups: GroupVerdicts | None = None

    @property
    def criterion(self) -> Criterion:
        """The last measure that decides whether a pair matches, with its threshold."""
        return criterion_of(self.recipe, self.classifier)

    @property
    def kept_mask(self) -> Bools:
        """bool[n], which documents are kept."""
        return ~self.keepers.dropped & self.documents.present

    @property
    def dropped_mask(self) -> Bools:
        """bool[n], which documents are dropped."""
        return self.keepers.dropped & self.documents.present

    @property
    def texts(self) -> Integers:
        """int64[n], for each document the first one with the same text, byte for byte; -1 if it can match nothing."""
        documents, sets = self.documents, self.matches.representative
        first = text_representatives(documents.text_digests, documents.text_bytes, sets < 0)
        # Where no result depends on the texts, text_digests are weak hashes; but equal texts have equal features.
        return np.where((first < 0) | (sets[first] == sets), first, np.arange(len(first)))

    @property
    def text_copies(self) -> Bools:
        """bool[n], which dropped documents have the same text, byte for byte, as an earlier one in keep order."""
        return self.dropped_mask & _repeats(self.texts, self.documents.order)

    @property
    def feature_copies(self) -> Bools:
        """bool[n], which dropped documents have the same features as an earlier one in keep order, as copies do."""
        return self.dropped_mask & _repeats(self.matches.representative, self.documents.order)


def _repeats(representative: Integers, order: Integers) -> Bools:
    """Return which documents come after another one with the same representative in keep order."""
    firsts = rank_documents(representative, order).firsts
    return np.asarray((representative >= 0) & (firsts[representative] != np.arange(len(representative))))


def assemble_findings(
    corpus: Corpus,
    recipe: Recipe,
    documents: Documents,
    matches: Matches,
    pairs: Pairs,
    *,
    classifier: Classifier | None,
    margin: Margin | None,
) -> Findings:
    """Return the findings that follow from the matching pairs."""
    reference_count = documents.names.reference_count
    groups, sets = None, matches.representative
    if documents.drop_by is None:
        keepers = find_keepers(sets, pairs.graph, documents.order, reference_count)
    else:
        groups, keepers = decide_groups(sets, pairs.graph, documents.order, documents.drop_by, reference_count)
    families = find_families(matches.representative, matches.left, matches.right, pairs.similarity, reference_count)
    return Findings(corpus, recipe, classifier, documents, matches, pairs, keepers, families, margin, groups)


def classifier_details(classifier: Classifier, search: Mapping[str, Any]) -> dict[str, Any]:
    """Return a classifier and its counts, for a summary, given the statistics of the search."""
    point = classifier.working_point
    return {
        "classifier": {
            "fingerprint": classifier.fingerprint,
            "candidate_rule": classifier.candidate_rule.in_words(),
            "vector": str(classifier.vector),
            # Without a cut everything passes, and JSON has no infinity.
            "cut": point.cut if isfinite(point.cut) else None,
            "training_precision": point.precision,
            "training_recall": point.recall,
            "candidates": search["first_step_pairs"],
            "passed": search["pairs"],
            "outside": search.get("outside"),
        }
    }
