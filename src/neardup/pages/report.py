"""What a report says, as data: what was read, kept and dropped, and why. Pages are functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.pages.diff import Shown


class Wording(NamedTuple):
    """Words and sentences of a report that depend on what it reports.

    Attributes
    ----------
    documents, document : str
        What was read.
    kept, gone : str
        Documents that are kept, and those that are not, as a list has them.
    keeps, removes : str
        What becomes of one that is kept, and of one that is not.
    keeper : str
        What a dropped document has in its place.
    run : str
        What was done.
    kept_means : str
        Why documents are kept.
    stopped : str
        What a tile says of how many are not kept.
    sections : (str, str)
        The headings of the tables of reasons and of dropped documents.
    alike, moved, points, pairs : str
        The titles of the charts of similarities and of thresholds, what a point of the latter is, and which pairs the
        chart of them counts.
    families : str
        What families are, and how their members are shown.
    """

    documents: str = "documents"
    document: str = "document"
    kept: str = "kept"
    gone: str = "dropped"
    keeps: str = "kept"
    removes: str = "dropped"
    keeper: str = "keeper"
    run: str = "run"
    kept_means: str = "matches no other kept document"
    stopped: str = "dropped"
    sections: tuple[str, str] = ("What was kept, and what was dropped", "Dropped documents")
    alike: str = "Similarity of dropped documents to their keepers"
    moved: str = "Dropped documents by threshold"
    points: str = "each point is what a run at that threshold drops; the line is the slider's threshold"
    pairs: str = "pairs of documents that differ in what is compared"
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
#: What rounding may have put a hair below the beginning of a bin is in it.
_DIGITS = 7


def binned(similarity: npt.NDArray[np.float64]) -> list[int]:
    """Return how many similarities there are in each of the ``BINS`` bins."""
    bins = np.floor(np.round(similarity * BINS, _DIGITS)).astype(np.int64)
    found: list[int] = np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS).tolist()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A document of a family.

    Attributes
    ----------
    document : Shown
        The document.
    why : str
        KEPT, COPY, EQUAL_FEATURES or NEAR.
    keeper : Shown or None
        What it has in its place; None for a kept document.
    similarity : float
        To the keeper; 0 for a kept document.
    to_keeper : str
        COPY, EQUAL_FEATURES or NEAR: how it is like the keeper, which need not be the document that it is a copy of.
    evidence : str
        Why the two match, in a line; may be empty.
    apart : sequence of str
        Ids of listed members that have the same keeper and do not match this one.
    goes : str
        For each threshold of the report's sweep "1" where the document is dropped, else "0"; empty without a sweep.
    """

    document: Shown
    why: str
    keeper: Shown | None = None
    similarity: float = 0.0
    to_keeper: str = ""
    evidence: str = ""
    apart: Sequence[str] = ()
    goes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Documents connected by matching pairs, some of them listed.

    Attributes
    ----------
    number : int
        Its name, from 1.
    documents, kept : int
        How many it has, and how many of them are kept.
    lead : str
        What it is called: the title, or how the text begins, of its first member; empty for that member's title or id.
    pairs : int or None
        How many of its pairs match, None where that is not known.
    smallest, mean : float or None
        Over the similarities of its matching pairs.
    equal : bool
        Whether all members have equal features.
    complete : bool or None
        Whether every member matches every other, None where that is not known.
    apart : int or None
        How many pairs of listed members match the same keeper but not each other, None where that is not known.
    members : sequence of Member
        Those that are listed, kept ones first.
    """

    number: int
    documents: int
    kept: int
    members: Sequence[Member]
    lead: str = ""
    equal: bool = False
    pairs: int | None = None
    smallest: float | None = None
    mean: float | None = None
    complete: bool | None = None
    apart: int | None = None

    @property
    def hidden(self) -> int:
        """How many members are not listed."""
        return self.documents - len(self.members)


class Example(NamedTuple):
    """A pair to read, near the threshold or elsewhere.

    Attributes
    ----------
    left, right : Shown
        The documents, in the order of the input.
    similarity : float
        As the run compares them.
    matches : bool
        Whether the run takes them for near-duplicates.
    head : str
        How alike they are, in words.
    matching : str
        For each threshold of the report's sweep "1" where the pair matches, else "0"; empty without a sweep.
    """

    left: Shown
    right: Shown
    similarity: float
    matches: bool
    head: str = ""
    matching: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What other thresholds would have done, each as a run of its own.

    Attributes
    ----------
    thresholds : sequence of float
        In rising order, the run's own among them. For a distance in falling order: always from loose to strict.
    kept, dropped, pairs : sequence of int
        How many documents and pairs there are at each of them.
    own : int
        The place of the run's own threshold.
    what : str
        What the threshold is of, such as ``jaccard``.
    distance : bool
        Whether pairs match at or below the threshold.
    similarities : sequence of float
        The similarity that a pair exactly at each threshold has, which histograms count; the thresholds themselves
        unless they are distances.
    exact : bool
        Whether it is what separate runs would find; else what the pairs of this run let expect, as with LSH.
    note : str
        Why it begins where it begins, and what is not known.
    """

    thresholds: Sequence[float]
    kept: Sequence[int]
    dropped: Sequence[int]
    pairs: Sequence[int]
    own: int
    what: str
    distance: bool = False
    similarities: Sequence[float] = ()
    exact: bool = True
    note: str = ""


class Row(NamedTuple):
    """A dropped document of the list that is searched: ids, similarity, the family's number (0: none), and words."""

    id: str
    keeper: str
    similarity: float
    family: int
    why: str
    words: str


class Arrivals(NamedTuple):
    """When and where the items of a flow came from.

    Attributes
    ----------
    step : str
        The length of the stretches of time.
    stretches : list of (str, str, int, int)
        Where each begins and ends (UTC), its originals and its duplicates.
    lags : list of (str, int)
        How long after what they repeat duplicates came, and how many did.
    sources : list of (str, int, int)
        Folders, the one with most items first, their items and their duplicates; empty where there are none to compare.
    """

    step: str
    stretches: list[tuple[str, str, int, int]]
    lags: list[tuple[str, int]]
    sources: list[tuple[str, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a report says. What is not known, or makes no sense where it comes from, stays at its default.

    Attributes
    ----------
    title : str
        The heading, such as "What was dropped, and why".
    command : str
        As it was typed, quoted for a shell; empty from Python.
    inputs : sequence of str
        Their names.
    recipe, in_words, rule, fingerprint : str
        The recipe as TOML, in a line, what a match is in plain words (empty where these do not say it), and its
        fingerprint.
    versions : mapping of str to str
        Of neardup and what the answer depends on besides.
    documents, kept : int
        How many were read whole, and how many are kept.
    reasons : sequence of (str, int, str)
        Why documents were dropped: name, number, and what the name means.
    quarantined : sequence of (str, int)
        Records that were rejected, by reason; they are not among ``documents``.
    similarity : sequence of int
        In BINS bins, the similarities of dropped documents to their keepers.
    similarity_of : str
        What the similarity is, such as ``jaccard of words:5``.
    pair_similarity : sequence of int
        In BINS bins, the similarities of the pairs that the sweep knows; empty where there is no sweep.
    threshold : float or None
        What a pair must reach, as a similarity; None where a classifier has no such number.
    families : sequence of Family
        The largest ones and some of the others.
    families_total, largest_family : int
        How many there are, and how many documents the largest has.
    above, below : sequence of Example
        Pairs that only just match, and that only just do not, the nearest to the threshold first.
    elsewhere : sequence of Example
        Pairs at other similarities, for whoever moves the threshold, in rising order.
    unknown : str
        What is not known of pairs, such as those below the threshold.
    sweep : Sweep or None
        What other thresholds would have done.
    stages : sequence of dict
        As ``Clock.stages`` has them.
    rows : sequence of Row
        Dropped documents to be searched: all, or some of them.
    rows_total : int
        How many there are.
    facts : mapping of str to str
        More to say of the run, as names and values.
    notes : sequence of str
        What is sampled or cut, and what is not known.
    wording : Wording
        What the page calls documents, and what becomes of them.
    arrivals : Arrivals or None
        Of a flow.
    left : str
        What is said in the place of a text that is not there any more.
    """

    title: str
    documents: int
    kept: int
    command: str = ""
    inputs: Sequence[str] = ()
    recipe: str = ""
    in_words: str = ""
    rule: str = ""
    fingerprint: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    reasons: Sequence[tuple[str, int, str]] = ()
    quarantined: Sequence[tuple[str, int]] = ()
    similarity: Sequence[int] = ()
    similarity_of: str = "similarity"
    pair_similarity: Sequence[int] = ()
    threshold: float | None = None
    families: Sequence[Family] = ()
    families_total: int = 0
    largest_family: int = 0
    above: Sequence[Example] = ()
    below: Sequence[Example] = ()
    elsewhere: Sequence[Example] = ()
    unknown: str = ""
    sweep: Sweep | None = None
    stages: Sequence[Mapping[str, Any]] = ()
    rows: Sequence[Row] = ()
    rows_total: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    wording: Wording = BATCH
    arrivals: Arrivals | None = None
    left: str = ""

    @property
    def dropped(self) -> int:
        """How many documents are not kept."""
        return self.documents - self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much a report lists.

    Attributes
    ----------
    families : int
        So many of the largest families, and half as many of the others, drawn at random. Raising it makes pages larger.
    cases : int
        So many pairs just above, and just below the threshold.
    rows : int
        So many dropped documents in the list to search: the latest ones of a flow, else a random part.
    seed : int
        Of what is drawn at random; another one draws others.

    Raises
    ------
    RecipeError
        If a number is below 0.
    """

    families: int = 50
    cases: int = 10
    rows: int = 2000
    seed: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value < 0:
                raise RecipeError(f"{one.name} {value} of a report is below 0; give 0 or more")
