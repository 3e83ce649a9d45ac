"""The content of a report as data: what was read, kept and dropped, and why. The page is a function of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.pages.diff import ShownDocument


class Wording(NamedTuple):
    """The words and sentences that differ between the report of a run and that of a flow."""

    documents: str = "documents"
    document: str = "document"
    #: What the kept and the dropped documents are called in lists and tables.
    kept: str = "kept"
    dropped: str = "dropped"
    #: What happens to a kept and to a dropped document at another threshold: it is "kept at 0.8".
    kept_verb: str = "kept"
    dropped_verb: str = "dropped"
    #: What the document is called that a dropped one matches.
    keeper: str = "keeper"
    run: str = "run"
    #: Why a document is kept.
    kept_means: str = "matches no other kept document"
    #: The label of the number of dropped documents.
    dropped_label: str = "dropped"
    #: The headings of the tables of reasons and of dropped documents.
    sections: tuple[str, str] = ("What was kept, and what was dropped", "Dropped documents")
    #: The titles of the charts of similarities and of thresholds, the caption of the latter, and the pairs that the
    #: chart of pairs counts.
    similarity_title: str = "Similarity of dropped documents to their keepers"
    sweep_title: str = "Dropped documents by threshold"
    sweep_caption: str = "each point is what a run at that threshold drops; the line is the slider's threshold"
    pairs: str = "pairs of documents with different features"
    #: What a family is, and how its members are shown.
    families: str = (
        "Documents connected by matching pairs, the largest family first. Each dropped one is shown by how it differs "
        "from its keeper: words only in the keeper are struck out, words only in the document are underlined."
    )


#: For a run over a corpus.
BATCH = Wording()
#: For a flow.
FLOW = Wording(
    documents="items",
    document="item",
    kept="passed",
    dropped="duplicates",
    kept_verb="passes",
    dropped_verb="is stopped",
    keeper="original",
    run="flow",
    kept_means="matches nothing in the window",
    dropped_label="stopped",
    sections=("What passed, and what was stopped", "Duplicates"),
    similarity_title="Similarity of duplicates to their originals",
    sweep_title="Duplicates by threshold",
    sweep_caption="each point is the number of duplicates at that threshold; the line is the slider's threshold",
    pairs="pairs of items with a similarity below 1",
    families=(
        "Items that go back to one original, the largest family first. Each duplicate is shown by how it differs from "
        "the item it repeats: words only in that item are struck out, words only in the duplicate are underlined."
    ),
)


#: Why a document is kept or dropped. A copy has the text of a document before it; one with equal features may not.
KEPT, COPY, EQUAL_FEATURES, NEAR = "kept", "exact copy", "equal features", "near-duplicate"
#: The number of bins of similarities: bin i holds i / BINS <= similarity < (i + 1) / BINS, the last one also 1.
BINS = 100
#: The name of the threshold for SimHashes.
BITS = "bits that differ"
#: Digits to round to first: a similarity that rounding has put just below a bin belongs to it.
_DIGITS = 7


def bin_similarities(similarity: npt.NDArray[np.float64]) -> list[int]:
    """Return the number of similarities in each of the ``BINS`` bins."""
    bins = np.floor(np.round(similarity * BINS, _DIGITS)).astype(np.int64)
    found: list[int] = np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS).tolist()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A document of a family, as it is listed."""

    document: ShownDocument
    #: KEPT, COPY, EQUAL_FEATURES or NEAR.
    reason: str
    #: None for a kept document.
    keeper: ShownDocument | None = None
    #: The similarity to the keeper; 0 for a kept document.
    similarity: float = 0.0
    #: COPY, EQUAL_FEATURES or NEAR: how it matches its keeper, which need not be the document that it copies.
    keeper_reason: str = ""
    #: Why the two match, in one line; may be empty.
    evidence: str = ""
    #: The ids of listed members with the same keeper that do not match this one.
    unmatched_ids: Sequence[str] = ()
    #: For each threshold of the sweep "1" if it drops the document, otherwise "0"; empty without a sweep.
    dropped_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family, with some of its members listed."""

    #: From 1.
    number: int
    #: The number of its documents, and of the kept ones.
    documents: int
    kept: int
    #: The listed members, kept ones first.
    members: Sequence[Member]
    #: The title or the beginning of the text of its first member; empty if that member has neither.
    lead: str = ""
    #: Whether all members have equal features.
    equal: bool = False
    #: The number of its matching pairs; None if unknown.
    pairs: int | None = None
    #: The smallest and the mean similarity of its matching pairs.
    smallest: float | None = None
    mean: float | None = None
    #: Whether every member matches every other; None if unknown.
    complete: bool | None = None
    #: The number of pairs of listed members that match the same keeper but not each other; None if unknown.
    unmatched_pairs: int | None = None

    @property
    def hidden(self) -> int:
        """The number of members that are not listed."""
        return self.documents - len(self.members)


class Example(NamedTuple):
    """A pair to read, near the threshold."""

    #: The documents, in the order of the input.
    left: ShownDocument
    right: ShownDocument
    #: By the measure of the run.
    similarity: float
    #: Whether the run counts them as near-duplicates.
    matches: bool
    #: How similar they are, in words.
    head: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The results that a run would have at other thresholds."""

    #: From loose to strict, the run's own among them: ascending for a similarity, descending for a distance.
    thresholds: Sequence[float]
    #: The number of documents and pairs at each threshold.
    kept: Sequence[int]
    dropped: Sequence[int]
    pairs: Sequence[int]
    #: The index of the run's own threshold.
    own_index: int
    #: The measure, such as ``jaccard``, or BITS.
    threshold_name: str
    #: Whether pairs match at or below the threshold.
    is_distance: bool = False
    #: The similarity of a pair exactly at each threshold, as histograms count it; the thresholds themselves unless they
    #: are distances.
    similarities: Sequence[float] = ()
    #: Whether separate runs would find the same; otherwise the pairs of this run are an estimate, as with LSH.
    is_exact: bool = True
    #: Why the sweep begins where it does, and what is unknown.
    note: str = ""


class Row(NamedTuple):
    """A dropped document in the list to search: ``family`` is 0 for none, ``lead`` a title or beginning."""

    id: str
    keeper: str
    similarity: float
    family: int
    reason: str
    lead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of a report. Fields that are unknown or do not apply have their defaults."""

    #: The heading, such as "What was dropped, and why".
    title: str
    #: The number of valid documents read, and of kept ones.
    documents: int
    kept: int
    #: The command line, quoted for a shell; empty from Python.
    command: str = ""
    inputs: Sequence[str] = ()
    #: The recipe as TOML, in one line, and as a sentence on what matches (empty if no simple one is right), and its
    #: fingerprint.
    recipe: str = ""
    in_words: str = ""
    rule: str = ""
    fingerprint: str = ""
    #: The versions of neardup and of all that the answer depends on.
    versions: Mapping[str, str] = field(default_factory=dict)
    #: Why documents were dropped: name, number, and meaning of the name.
    reasons: Sequence[tuple[str, int, str]] = ()
    #: The number of kept documents that were dropped first and released later.
    released: int = 0
    #: Rejected records by reason; ``documents`` does not count them.
    rejected: Sequence[tuple[str, int]] = ()
    #: The similarities of dropped documents to their keepers, in BINS bins.
    similarity: Sequence[int] = ()
    #: The name of the similarity, such as ``jaccard of words:5``.
    similarity_name: str = "similarity"
    #: The similarities of the pairs that the sweep knows, in BINS bins; empty without a sweep.
    pair_similarity: Sequence[int] = ()
    #: The least similarity of a match; None if a classifier has no such number.
    threshold: float | None = None
    #: The largest families and some of the others.
    families: Sequence[Family] = ()
    #: The number of all families, and of the documents of the largest.
    families_total: int = 0
    largest_family: int = 0
    #: Pairs just at or above the threshold, and just below it, the nearest first.
    matching_examples: Sequence[Example] = ()
    unmatched_examples: Sequence[Example] = ()
    #: Which pairs are unknown, such as those below the threshold, and why.
    missing_pairs_note: str = ""
    #: The results at other thresholds.
    sweep: Sweep | None = None
    #: As ``Clock.stages`` has them.
    stages: Sequence[Mapping[str, Any]] = ()
    #: The dropped documents to search: all, or some of them.
    rows: Sequence[Row] = ()
    rows_total: int = 0
    #: Other facts on the run, by name.
    facts: Mapping[str, str] = field(default_factory=dict)
    #: What is sampled, cut or unknown.
    notes: Sequence[str] = ()
    #: The words for a run or for a flow.
    wording: Wording = BATCH
    #: How many duplicates of a flow came how long after their originals.
    lags: Sequence[tuple[str, int]] = ()
    #: Shown instead of a text that is no longer available.
    missing_text: str = ""

    @property
    def dropped(self) -> int:
        """The number of documents that are not kept."""
        return self.documents - self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLimits:
    """Limits on what a report lists."""

    #: Shows this many of the largest families, and half as many others at random. Raising it makes the page larger.
    families: int = 50
    #: Shows this many pairs just above and just below the threshold.
    cases: int = 10
    #: Lists this many dropped documents to search: the latest ones of a flow, a random part of a run's.
    rows: int = 2000
    #: Random seed of all that is drawn.
    seed: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value < 0:
                raise RecipeError(f"{one.name} {value} of a report is below 0; give 0 or more")
