"""Types of the requests and answers: they validate, and the OpenAPI description is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from neardup.stream.document import Verdict
from neardup.times import TIME_FORMS

#: The most characters of an id, of a title, and of the names of an index, a recipe and a classifier.
MAX_ID_LENGTH, MAX_TITLE_LENGTH, _MAX_NAME_LENGTH = 1024, 10_000, 255

Id = Annotated[
    str, Meta(min_length=1, max_length=MAX_ID_LENGTH, description="The id of the document; each id has one verdict.")
]
Text = Annotated[str, Meta(description="The text of the document.")]
Title = Annotated[
    str,
    Meta(max_length=MAX_TITLE_LENGTH, description="The title of the document, for classifiers that compare titles."),
]
Name = Annotated[str, Meta(max_length=_MAX_NAME_LENGTH)]
Timestamp = Annotated[
    float | str | None,
    Meta(
        description=f"The time of the document: {TIME_FORMS}; UTC unless it has an offset. "
        "Default: the time of arrival."
    ),
]
# JSON and its schemas know one kind of number, so 3.0 is whole.
Count = Annotated[float, Meta(ge=1, le=1000, multiple_of=1)]
Shown = TypeVar("Shown", bound="VerdictAnswer")


# Requests of a million tiny documents would keep the garbage collector busy; none of these has a cycle.
class _Body(Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    pass


class DocumentText(_Body, kw_only=True):
    """A document without its id."""

    text: Text
    timestamp: Timestamp = None
    title: Title = ""


class DocumentBody(DocumentText, kw_only=True):
    """A document."""

    id: Id


class DocumentsBody(_Body, kw_only=True):
    """Documents, in the order in which they are judged."""

    documents: list[DocumentBody]


class ReleaseBody(_Body, kw_only=True):
    """The person who releases a document, and its text if the index no longer keeps it."""

    by: Annotated[str, Meta(max_length=MAX_ID_LENGTH)] = ""
    text: str | None = None
    title: Title = ""


class QueryBody(DocumentText):
    """A text whose near-duplicates are searched."""

    k: Annotated[Count | None, Meta(description="Return the k nearest instead, whatever their similarity.")] = None


class Side(_Body, kw_only=True):
    """A text, with a title and a time for classifiers that use them, or the id of a document in the index."""

    text: str | None = None
    title: Title = ""
    timestamp: Timestamp = None
    id: Id | None = None


class ExplainBody(_Body, kw_only=True):
    """Two texts, and the index whose recipe decides."""

    left: Side
    right: Side
    index: Name = "main"


class PairsBody(_Body, kw_only=True):
    """Documents that are compared only with each other, and the index whose recipe decides."""

    documents: list[DocumentBody]
    index: Name = "main"


class IndexBody(_Body, kw_only=True):
    """The options of an index."""

    recipe: Annotated[Name | None, Meta(description="A named recipe.")] = None
    choices: Annotated[
        dict[Name, Annotated[str, Meta(max_length=MAX_TITLE_LENGTH)] | float | int],
        Meta(max_length=100, description="Changed fields of the recipe, such as threshold."),
    ] = {}
    classifier: Annotated[
        Name | None,
        Meta(description="Instead of a recipe: the name of a file in the service's folder of classifiers."),
    ] = None
    window: Annotated[Name, Meta(description="24h, 7d, '8000 documents', or endless.")] = "endless"
    window_by: Literal["time", "hour"] = "time"
    against: Literal["originals", "everything"] = "originals"


class PageQuestion(_Body, kw_only=True):
    """A request of the page: its text and the index."""

    index: Name = "main"
    asked: str = ""


class PageRelease(_Body, kw_only=True):
    """A release by a person at the page."""

    id: Id
    by: Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
    index: Name = "main"


class EvidenceQuery(_Body, kw_only=True):
    """What an answer with a verdict includes."""

    evidence: Annotated[bool, Meta(description="Whether verdicts include the numbers that decided.")] = False


class EnterQuery(EvidenceQuery):
    """What happens to documents."""

    mode: Annotated[
        Literal["enter", "check"], Meta(description="check: return the verdicts without entering anything.")
    ] = "enter"


class ReplaceQuery(EvidenceQuery):
    """What happens to a document whose id belongs to another text."""

    versions: Annotated[
        Literal["replace", "keep", "refuse"],
        Meta(
            description="If the id belongs to another text: replace forgets the old document; keep judges the new one "
            "as a version, with ~2, ~3... at the end of its id; refuse answers 409."
        ),
    ] = "replace"


class StoppedQuery(EvidenceQuery):
    """Which stopped documents are returned."""

    since: Annotated[str | None, Meta(description=f"Only documents judged at or after this time: {TIME_FORMS}.")] = None
    cursor: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9]{1,18}$")] | None, Meta(description="The cursor of the previous answer.")
    ] = None
    limit: Annotated[Count, Meta(description="The most documents to return.")] = 100


class ContributionAnswer(Struct):
    """A measure of a classifier: its value and its contribution to the score."""

    measure: str
    value: float | None
    contribution: float


class VerdictAnswer(Struct):
    """The verdict on a document."""

    kind: Literal["original", "near", "exact"]
    of: Annotated[str | None, Meta(description="The document that it repeats.")]
    similarity: float | None
    time: Annotated[float, Meta(description="The time by which it was judged, in seconds since 1970.")]
    flag: Annotated[str, Meta(description="Empty, or late, ahead, future or undecidable.")]
    version_of: Annotated[str | None, Meta(description="The id that it was given, if that id belongs to another text.")]
    counts: Annotated[
        list[int] | UnsetType | None,
        Meta(description="With evidence: the counts o, a and b that give the similarity."),
    ] = UNSET
    score: Annotated[float | UnsetType | None, Meta(description="With evidence: the score of a classifier.")] = UNSET
    evidence: Annotated[str | UnsetType, Meta(description="With evidence: the measures that decided, in words.")] = (
        UNSET
    )
    measures: Annotated[
        list[ContributionAnswer] | UnsetType, Meta(description="With evidence: the measures of a classifier.")
    ] = UNSET


class StoppedItem(VerdictAnswer, kw_only=True):
    """A duplicate with its verdict."""

    id: str


def verdict_answer(verdict: Verdict, *, evidence: bool) -> VerdictAnswer:
    """Return a verdict as answers contain it."""
    return _with_evidence(VerdictAnswer(*_fields_of(verdict)), verdict, evidence=evidence)


def stopped_item(verdict: Verdict, *, evidence: bool) -> StoppedItem:
    """Return a duplicate as a list contains it."""
    return _with_evidence(StoppedItem(*_fields_of(verdict), id=verdict.id), verdict, evidence=evidence)


def _fields_of(verdict: Verdict) -> Any:
    return verdict.kind, verdict.of, verdict.similarity, verdict.time, verdict.flag, verdict.version_of


def _with_evidence(shown: Shown, verdict: Verdict, *, evidence: bool) -> Shown:
    if evidence:
        shown.counts = None if verdict.counts is None else list(verdict.counts)
        shown.score, shown.evidence = verdict.score, verdict.evidence
        shown.measures = [ContributionAnswer(**contribution.as_dict()) for contribution in verdict.measures]
    return shown


class ProblemAnswer(Struct):
    """A refusal, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: Annotated[str, Meta(description="A sentence: the value, the rule, the way out.")]


class ItemAnswer(Struct, omit_defaults=True):
    """The result for one document."""

    id: str
    status: Annotated[
        int,
        Meta(
            description="201 entered, 200 entered before with this text (or only checked), 409 entered before with "
            "another text, 422 refused."
        ),
    ]
    verdict: Annotated[
        VerdictAnswer | None, Meta(description="The stored verdict of the id; null if the document was refused.")
    ]
    detail: Annotated[str, Meta(description="The reason, if the document was refused.")] = ""


class DocumentsAnswer(Struct):
    """The result for each document, in the order of the request."""

    documents: list[ItemAnswer]


class DocumentAnswer(Struct):
    """A document and its verdict."""

    id: str
    verdict: VerdictAnswer
    held: Annotated[bool, Meta(description="Whether new documents are compared with it.")]
    text: Annotated[str | None, Meta(description="Null if it is no longer kept.")]


class SimilarAnswer(Struct):
    """A document in the window, and its similarity."""

    id: str
    similarity: float


class QueryAnswer(Struct):
    """The near-duplicates of a text, the most similar first."""

    similar: list[SimilarAnswer]
    truncated: Annotated[
        bool, Meta(description="Whether less similar documents are left out: the answer would be too large.")
    ]


class PairAnswer(Struct):
    """Two documents that match."""

    left: str
    right: str
    similarity: float


class PairsAnswer(Struct):
    """All pairs that match."""

    pairs: list[PairAnswer]


class StoppedAnswer(Struct):
    """Duplicates in the order of their arrival."""

    stopped: list[StoppedItem]
    cursor: Annotated[str | None, Meta(description="The cursor for the next call; null after the last.")]


class IndexAnswer(Struct):
    """An index: its options and its counts."""

    name: str
    recipe: str
    in_words: str
    fingerprint: str
    classifier: str | None
    window: str
    window_by: str
    against: str
    documents: int
    originals: int
    duplicates: int
    late: int
    ahead: int
    future: int
    undecidable: int
    held: int


class InfoAnswer(Struct):
    """The service and its indexes."""

    name: Literal["neardup"]
    version: str
    indexes: list[IndexAnswer]
    limits: dict[str, int]
