"""What a report says, as data: what was read, kept and dropped, and why. Pages are functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.pages.diff import ShownDocument


class Wording(NamedTuple):
    """Words and sentences of a report that depend on what it reports."""

    documents: str = "documents"
    document: str = "document"
    #: Documents that are kept, and those that are not, as a list has them.
    kept: str = "kept"
    gone: str = "dropped"
    #: What becomes of one that is kept, and of one that is not.
    keeps: str = "kept"
    removes: str = "dropped"
    #: What a dropped document has in its place.
    keeper: str = "keeper"
    run: str = "run"
    #: Why documents are kept.
    kept_means: str = "matches no other kept document"
    #: What a tile says of how many are not kept.
    stopped: str = "dropped"
    #: The headings of the tables of reasons and of dropped documents.
    sections: tuple[str, str] = ("What was kept, and what was dropped", "Dropped documents")
    #: The titles of the charts of similarities and of thresholds, what a point of the latter is, and which pairs the
    #: chart of them counts.
    alike: str = "Similarity of dropped documents to their keepers"
    moved: str = "Dropped documents by threshold"
    points: str = "each point is what a run at that threshold drops; the line is the slider's threshold"
    pairs: str = "pairs of documents that differ in what is compared"
    #: What families are, and how their members are shown.
    families: str = (
        "Documents connected by matching pairs, the largest family first. Each dropped one is shown by how it differs "
        "from its keeper: words only in the keeper are struck out, words only in the document are underlined."
    )


#: Of a run over a corpus.
BATCH = Wording()
#: Of a flow.
FLOW = Wording(
    documents="items",
    document="item",
    kept="passed",
    gone="duplicates",
    keeps="passes",
    removes="is stopped",
    keeper="original",
    run="flow",
    kept_means="matches nothing that the window held",
    stopped="stopped",
    sections=("What passed, and what was stopped", "Duplicates"),
    alike="Similarity of duplicates to what they repeat",
    moved="Duplicates by threshold",
    points="duplicates that each threshold leaves, as the text above says; the line is the slider's threshold",
    pairs="pairs of items with a similarity below 1",
    families=(
        "Items that go back to one original, the largest family first. Each duplicate is shown by how it differs from "
        "what it repeats: words only in that one are struck out, words only in the duplicate are underlined."
    ),
)


#: Why a member of a family stayed or went. A copy has the text of a document before it, an equal one its features.
KEPT, COPY, EQUAL_FEATURES, NEAR = "kept", "exact copy", "equal features", "near-duplicate"
#: Similarities are counted in so many bins: bin i holds those from i / BINS to below (i + 1) / BINS, the last 1, too.
BINS = 100
#: What thresholds are of where pairs are told apart by the bits of their SimHashes.
BITS = "bits that differ"
#: What rounding may have put a hair below the beginning of a bin is in it.
_DIGITS = 7


def bin_similarities(similarity: npt.NDArray[np.float64]) -> list[int]:
    """Return how many similarities there are in each of the ``BINS`` bins."""
    bins = np.floor(np.round(similarity * BINS, _DIGITS)).astype(np.int64)
    found: list[int] = np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS).tolist()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A document of a family."""

    document: ShownDocument
    #: KEPT, COPY, EQUAL_FEATURES or NEAR.
    why: str
    #: What it has in its place; None for a kept document.
    keeper: ShownDocument | None = None
    #: To the keeper; 0 for a kept document.
    similarity: float = 0.0
    #: COPY, EQUAL_FEATURES or NEAR: how it is like the keeper, which need not be the document that it is a copy of.
    to_keeper: str = ""
    #: Why the two match, in a line; may be empty.
    evidence: str = ""
    #: Ids of listed members that have the same keeper and do not match this one.
    apart: Sequence[str] = ()
    #: For each threshold of the report's sweep "1" where the document is dropped, else "0"; empty without a sweep.
    goes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Documents connected by matching pairs, some of them listed."""

    #: Its name, from 1.
    number: int
    #: How many it has, and how many of them are kept.
    documents: int
    kept: int
    #: Those that are listed, kept ones first.
    members: Sequence[Member]
    #: What it is called: the title, or how the text begins, of its first member; empty for that member's title or id.
    lead: str = ""
    #: Whether all members have equal features.
    equal: bool = False
    #: How many of its pairs match, None where that is not known.
    pairs: int | None = None
    #: Over the similarities of its matching pairs.
    smallest: float | None = None
    mean: float | None = None
    #: Whether every member matches every other, None where that is not known.
    complete: bool | None = None
    #: How many pairs of listed members match the same keeper but not each other, None where that is not known.
    apart: int | None = None

    @property
    def hidden(self) -> int:
        """How many members are not listed."""
        return self.documents - len(self.members)


class Example(NamedTuple):
    """A pair to read, near the threshold."""

    #: The documents, in the order of the input.
    left: ShownDocument
    right: ShownDocument
    #: As the run compares them.
    similarity: float
    #: Whether the run takes them for near-duplicates.
    matches: bool
    #: How alike they are, in words.
    head: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What other thresholds would have done, each as a run of its own."""

    #: In rising order, the run's own among them. For a distance in falling order: always from loose to strict.
    thresholds: Sequence[float]
    #: How many documents and pairs there are at each of them.
    kept: Sequence[int]
    dropped: Sequence[int]
    pairs: Sequence[int]
    #: The place of the run's own threshold.
    own: int
    #: What the threshold is of, such as ``jaccard``, or BITS.
    what: str
    #: Whether pairs match at or below the threshold.
    distance: bool = False
    #: The similarity that a pair exactly at each threshold has, which histograms count; the thresholds themselves
    #: unless they are distances.
    similarities: Sequence[float] = ()
    #: Whether it is what separate runs would find; else what the pairs of this run let expect, as with LSH.
    exact: bool = True
    #: Why it begins where it begins, and what is not known.
    note: str = ""


class Row(NamedTuple):
    """A dropped document of the list that is searched: ids, similarity, the family's number (0: none), and words."""

    id: str
    keeper: str
    similarity: float
    family: int
    why: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a report says. What is not known, or makes no sense where it comes from, stays at its default."""

    #: The heading, such as "What was dropped, and why".
    title: str
    #: How many were read whole, and how many are kept.
    documents: int
    kept: int
    #: As it was typed, quoted for a shell; empty from Python.
    command: str = ""
    inputs: Sequence[str] = ()
    #: The recipe as TOML, in a line, what a match is in plain words (empty where these do not say it), and its
    #: fingerprint.
    recipe: str = ""
    in_words: str = ""
    rule: str = ""
    fingerprint: str = ""
    #: Of neardup and what the answer depends on besides.
    versions: Mapping[str, str] = field(default_factory=dict)
    #: Why documents were dropped: name, number, and what the name means.
    reasons: Sequence[tuple[str, int, str]] = ()
    #: How many of the kept ones somebody released after they had been dropped.
    released: int = 0
    #: Records that were rejected, by reason; they are not among ``documents``.
    quarantined: Sequence[tuple[str, int]] = ()
    #: In BINS bins, the similarities of dropped documents to their keepers.
    similarity: Sequence[int] = ()
    #: What the similarity is, such as ``jaccard of words:5``.
    similarity_of: str = "similarity"
    #: In BINS bins, the similarities of the pairs that the sweep knows; empty where there is no sweep.
    pair_similarity: Sequence[int] = ()
    #: What a pair must reach, as a similarity; None where a classifier has no such number.
    threshold: float | None = None
    #: The largest ones and some of the others.
    families: Sequence[Family] = ()
    #: How many there are, and how many documents the largest has.
    families_total: int = 0
    largest_family: int = 0
    #: Pairs that only just match, and that only just do not, the nearest to the threshold first.
    above: Sequence[Example] = ()
    below: Sequence[Example] = ()
    #: What is not known of pairs, such as those below the threshold.
    unknown: str = ""
    #: What other thresholds would have done.
    sweep: Sweep | None = None
    #: As ``Clock.stages`` has them.
    stages: Sequence[Mapping[str, Any]] = ()
    #: Dropped documents to be searched: all, or some of them.
    rows: Sequence[Row] = ()
    rows_total: int = 0
    #: More to say of the run, as names and values.
    facts: Mapping[str, str] = field(default_factory=dict)
    #: What is sampled or cut, and what is not known.
    notes: Sequence[str] = ()
    #: What the page calls documents, and what becomes of them.
    wording: Wording = BATCH
    #: How long after what they repeat the duplicates of a flow came, and how many did.
    lags: Sequence[tuple[str, int]] = ()
    #: What is said in the place of a text that is not there any more.
    left: str = ""

    @property
    def dropped(self) -> int:
        """How many documents are not kept."""
        return self.documents - self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much a report lists."""

    #: So many of the largest families, and half as many of the others, drawn at random. Raising it makes pages larger.
    families: int = 50
    #: So many pairs just above, and just below the threshold.
    cases: int = 10
    #: So many dropped documents in the list to search: the latest ones of a flow, else a random part.
    rows: int = 2000
    #: Of what is drawn at random; another one draws others.
    seed: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value < 0:
                raise RecipeError(f"{one.name} {value} of a report is below 0; give 0 or more")
