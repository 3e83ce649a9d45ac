"""What a run found, as arrays by position: the documents, their pairs, who stays, and the families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neardup.documents import Corpus
from neardup.documents.records import Names
from neardup.keep.keepers import Families, Floats, Integers, Keepers, find_families, find_keepers, rank_documents
from neardup.keep.pairs import Pairs
from neardup.recipe import Recipe
from neardup.search.margin import Criterion, Margin, criterion_of
from neardup.search.matches import Matches
from neardup.search.second_step import text_representatives

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier

Bools = npt.NDArray[np.bool_]
#: In the place of pairs: documents that are equal in all that is compared, and those that do not match.
EQUAL, APART = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a run, by position: those that were read whole.

    Attributes
    ----------
    names : Names
        Their ids or row numbers.
    order : int64[n]
        Positions in keep order.
    text_digests : uint64[n, 2]
        Equal for texts (of a recipe with ``content``, for contents) that are equal byte for byte.
    text_bytes : int64[n]
        The length of each text (or content).
    present : bool[n]
        False for reference documents: they are neither kept nor dropped.
    """

    names: Names
    order: Integers
    text_digests: npt.NDArray[np.uint64]
    text_bytes: Integers
    present: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What a run found.

    Attributes
    ----------
    corpus : Corpus
        It was scanned, and stays open.
    recipe : Recipe
        What was done.
    classifier : Classifier or None
        Where one decided.
    documents : Documents
        What was read.
    matches : Matches
        The pairs of representatives that match.
    similarity : float64[k]
        Of those pairs.
    kept : Kept
        The verdict on each document.
    families : Families
        Of the documents.
    margin : Margin or None
        The pairs beyond the threshold, where they were looked for.
    """

    corpus: Corpus
    recipe: Recipe
    classifier: Classifier | None
    documents: Documents
    matches: Matches
    similarity: Floats
    kept: Keepers
    families: Families
    margin: Margin | None

    @property
    def scale(self) -> Criterion:
        """What decides last, and from where on."""
        return criterion_of(self.recipe, self.classifier)

    @property
    def stays(self) -> Bools:
        """bool[n], which documents stay."""
        return ~self.kept.dropped & self.documents.present

    @property
    def goes(self) -> Bools:
        """bool[n], which documents go."""
        return self.kept.dropped & self.documents.present

    @property
    def texts(self) -> Integers:
        """int64[n], for each document the first one with the same text, byte for byte; -1 for what matches nothing."""
        known, sets = self.documents, self.matches.representative
        first = text_representatives(known.text_digests, known.text_bytes, sets < 0)
        # Where nothing depended on the texts their marks are no digests; but equal texts have equal features.
        return np.where((first < 0) | (sets[first] == sets), first, np.arange(len(first)))

    @property
    def copies(self) -> Bools:
        """bool[n], which dropped documents have the text, byte for byte, of one before them in keep order."""
        return self.goes & _follows(self.texts, self.documents.order)

    @property
    def equals(self) -> Bools:
        """bool[n], which dropped documents have the features of one before them in keep order, as copies do."""
        return self.goes & _follows(self.matches.representative, self.documents.order)

    def edges(self, left: Integers, right: Integers) -> Integers:
        """Return where in ``matches`` pairs of documents come from; EQUAL for equals, APART where they do not match."""
        known = self.matches
        one, other = known.representative[left], known.representative[right]
        keys = known.left * len(known.representative) + known.right
        asked = np.minimum(one, other) * len(known.representative) + np.maximum(one, other)
        at = np.searchsorted(keys, asked)
        found = np.zeros(len(asked), np.bool_)
        inside = at < len(keys)
        found[inside] = keys[at[inside]] == asked[inside]
        return np.where((one == other) & (one >= 0), EQUAL, np.where(found & (one >= 0) & (other >= 0), at, APART))


def _follows(representative: Integers, order: Integers) -> Bools:
    """Return which documents come, in keep order, after one of the same representative."""
    top = rank_documents(representative, order).top
    return np.asarray((representative >= 0) & (top[representative] != np.arange(len(representative))))


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
    """Return what follows from the pairs that match."""
    reference = documents.names.reference_count
    kept = find_keepers(matches.representative, pairs.graph, documents.order, reference)
    found = find_families(matches.representative, matches.left, matches.right, pairs.similarity, reference)
    return Findings(corpus, recipe, classifier, documents, matches, pairs.similarity, kept, found, margin)


def recipe_details(recipe: Recipe) -> dict[str, Any]:
    """Return what a summary says of its recipe."""
    return {"recipe": recipe.values, "fingerprint": recipe.fingerprint}


def classifier_details(classifier: Classifier, search: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a summary says of its classifier.

    Parameters
    ----------
    classifier : Classifier
        What decided.
    search : mapping
        The counts of the search: how many candidates there were, and how many passed.
    """
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
