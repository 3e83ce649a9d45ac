"""Models of the requests and answers: they validate, and the OpenAPI description is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from neardup.times import TIME_FORMS

#: The most characters of an id and of a title.
MAX_ID_LENGTH, MAX_TITLE_LENGTH = 1024, 10_000

Id = Annotated[
    str, Field(min_length=1, max_length=MAX_ID_LENGTH, description="The id of the document; each id has one verdict.")
]
Text = Annotated[str, Field(description="The text of the document.")]
Title = Annotated[
    str,
    Field(max_length=MAX_TITLE_LENGTH, description="The title of the document, for classifiers that compare titles."),
]
#: Numbers; true and false are none.
Number = Annotated[float, Field(strict=True)]
WholeNumber = Annotated[int, Field(strict=True)]


def _whole(value: Any) -> Any:
    """Return a number without its empty fraction: JSON and its schemas know one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: The most characters of the names of an index, a recipe and a classifier.
_MAX_NAME_LENGTH = 255
Name = Annotated[str, Field(max_length=_MAX_NAME_LENGTH)]
Timestamp = Annotated[
    Number | str | None,
    Field(
        description=f"The time of the document: {TIME_FORMS}; UTC unless it has an offset. "
        "Default: the time of arrival."
    ),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class DocumentText(_Body):
    """A document without its id."""

    text: Text
    timestamp: Timestamp = None
    title: Title = ""


class DocumentBody(DocumentText):
    """A document."""

    id: Id


class DocumentsBody(_Body):
    """Documents, in the order in which they are judged."""

    documents: list[DocumentBody]


class ReleaseBody(_Body):
    """The person who releases a document, and its text if the index no longer keeps it."""

    by: Annotated[str, Field(max_length=MAX_ID_LENGTH)] = ""
    text: str | None = None
    title: Title = ""


class QueryBody(DocumentText):
    """A text whose near-duplicates are searched."""

    k: Annotated[
        Annotated[WholeNumber, BeforeValidator(_whole)] | None,
        Field(ge=1, le=1000, description="Return the k nearest instead, whatever their similarity."),
    ] = None


class Side(_Body):
    """A text, with a title and a time for classifiers that use them, or the id of a document in the index."""

    text: str | None = None
    title: Title = ""
    timestamp: Timestamp = None
    id: Id | None = None


class ExplainBody(_Body):
    """Two texts, and the index whose recipe decides."""

    left: Side
    right: Side
    index: Name = "main"


class PairsBody(_Body):
    """Documents that are compared only with each other, and the index whose recipe decides."""

    documents: list[DocumentBody]
    index: Name = "main"


class IndexBody(_Body):
    """The options of an index."""

    recipe: Annotated[Name | None, Field(description="A named recipe.")] = None
    choices: Annotated[
        dict[Name, Annotated[str, Field(max_length=MAX_TITLE_LENGTH)] | Number | WholeNumber],
        Field(default_factory=dict, max_length=100, description="Changed fields of the recipe, such as threshold."),
    ]
    classifier: Annotated[
        Name | None,
        Field(description="Instead of a recipe: the name of a file in the service's folder of classifiers."),
    ] = None
    window: Annotated[Name, Field(description="24h, 7d, '8000 documents', or endless.")] = "endless"
    window_by: Literal["time", "hour"] = "time"
    against: Literal["originals", "everything"] = "originals"


class ContributionAnswer(BaseModel):
    """A measure of a classifier: its value and its contribution to the score."""

    measure: str
    value: float | None
    contribution: float


class VerdictAnswer(BaseModel):
    """The verdict on a document."""

    kind: Literal["original", "near", "exact"]
    of: Annotated[str | None, Field(description="The document that it repeats.")]
    similarity: float | None
    time: Annotated[float, Field(description="The time by which it was judged, in seconds since 1970.")]
    flag: Annotated[str, Field(description="Empty, or late, ahead, future or undecidable.")]
    counts: Annotated[
        list[int] | None, Field(description="With evidence: the counts o, a and b that give the similarity.")
    ] = None
    version_of: Annotated[
        str | None, Field(description="The id that it was given, if that id belongs to another text.")
    ] = None
    score: Annotated[float | None, Field(description="With evidence: the score of a classifier.")] = None
    evidence: Annotated[str, Field(description="With evidence: the measures that decided, in words.")] = ""
    measures: list[ContributionAnswer] = []


class ProblemAnswer(BaseModel):
    """A refusal, as in RFC 9457."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: Annotated[str, Field(description="A sentence: the value, the rule, the way out.")]


class ItemAnswer(BaseModel):
    """The result for one document."""

    id: str
    status: Annotated[
        int,
        Field(
            description="201 entered, 200 entered before with this text (or only checked), 409 entered before with "
            "another text, 422 refused."
        ),
    ]
    verdict: Annotated[
        VerdictAnswer | None, Field(description="The stored verdict of the id; null if the document was refused.")
    ]
    detail: Annotated[str, Field(description="The reason, if the document was refused.")] = ""


class DocumentsAnswer(BaseModel):
    """The result for each document, in the order of the request."""

    documents: list[ItemAnswer]


class DocumentAnswer(BaseModel):
    """A document and its verdict."""

    id: str
    verdict: VerdictAnswer
    held: Annotated[bool, Field(description="Whether new documents are compared with it.")]
    text: Annotated[str | None, Field(description="Null if it is no longer kept.")]


class SimilarAnswer(BaseModel):
    """A document in the window, and its similarity."""

    id: str
    similarity: float


class QueryAnswer(BaseModel):
    """The near-duplicates of a text, the most similar first."""

    similar: list[SimilarAnswer]
    truncated: Annotated[
        bool, Field(description="Whether less similar documents are left out: the answer would be too large.")
    ]


class PairAnswer(BaseModel):
    """Two documents that match."""

    left: str
    right: str
    similarity: float


class PairsAnswer(BaseModel):
    """All pairs that match."""

    pairs: list[PairAnswer]


class StoppedItem(VerdictAnswer):
    """A duplicate with its verdict."""

    id: str


class StoppedAnswer(BaseModel):
    """Duplicates in the order of their arrival."""

    stopped: list[StoppedItem]
    cursor: Annotated[str | None, Field(description="The cursor for the next call; null after the last.")]


class IndexAnswer(BaseModel):
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


class InfoAnswer(BaseModel):
    """The service and its indexes."""

    name: Literal["neardup"]
    version: str
    indexes: list[IndexAnswer]
    limits: dict[str, int]
