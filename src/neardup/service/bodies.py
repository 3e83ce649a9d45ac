"""What calls take and give, as models: they check, and the description of the service is made from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from neardup.times import FORMS

#: Characters of an id, and of a title, at most.
LONGEST_ID, LONGEST_TITLE = 1024, 10_000

Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, description="Its name; each name gets one verdict.")]
Text = Annotated[str, Field(description="What it says.")]
Title = Annotated[str, Field(max_length=LONGEST_TITLE, description="Its title, for classifiers that compare titles.")]
Timestamp = Annotated[
    float | str | None,
    Field(description=f"When it is from: {FORMS}; UTC unless it says otherwise. Left out: the time of its arrival."),
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
    """Who takes a stop back; with the text where the index does not keep it any more."""

    by: Annotated[str, Field(max_length=LONGEST_ID)] = ""
    text: str | None = None
    title: Title = ""


class QueryBody(DocumentText):
    """A text whose near-duplicates are wanted."""

    k: Annotated[
        int | None, Field(ge=1, le=1000, description="Return the k nearest instead, whatever their similarity.")
    ] = None


class Side(_Body):
    """A text, with a title and a time for classifiers that go by them, or the id of a document in the index."""

    text: str | None = None
    title: Title = ""
    timestamp: Timestamp = None
    id: Id | None = None


class ExplainBody(_Body):
    """Two texts, and the index whose recipe decides."""

    left: Side
    right: Side
    index: str = "main"


class PairsBody(_Body):
    """Documents that are compared with each other alone, and the index whose recipe decides."""

    documents: list[DocumentBody]
    index: str = "main"


class IndexBody(_Body):
    """How an index is made."""

    recipe: Annotated[str | None, Field(description="A named recipe.")] = None
    choices: Annotated[
        dict[str, str | float | int],
        Field(default_factory=dict, description="Fields of the recipe that take another value, such as threshold."),
    ]
    classifier: Annotated[
        str | None, Field(description="In place of a recipe: a file in the service's folder of classifiers.")
    ] = None
    window: Annotated[str, Field(description="24h, 7d, '8000 documents'; endless for all.")] = "24h"
    window_by: Literal["time", "hour"] = "time"
    against: Literal["originals", "everything"] = "originals"


class ContributionAnswer(BaseModel):
    """A measure of a classifier: its value, and what it adds to the score."""

    measure: str
    value: float | None
    contribution: float


class VerdictAnswer(BaseModel):
    """What was decided about a document."""

    kind: Literal["original", "near", "exact"]
    of: Annotated[str | None, Field(description="The document that it repeats.")]
    similarity: float | None
    time: Annotated[float, Field(description="Seconds since 1970 by which it was judged.")]
    flag: Annotated[str, Field(description="Empty, or late, ahead, future or undecidable.")]
    counts: Annotated[list[int] | None, Field(description="With evidence: o, a and b behind the similarity.")] = None
    score: Annotated[float | None, Field(description="With evidence: what a classifier makes of the two.")] = None
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
    """What became of a document."""

    id: str
    status: Annotated[
        int,
        Field(
            description="201 entered, 200 known with this text already (or checked), 409 known with another text, 422 "
            "refused."
        ),
    ]
    verdict: Annotated[VerdictAnswer | None, Field(description="Of what is stored of the id; null where refused.")]
    detail: Annotated[str, Field(description="Why, where it was refused.")] = ""


class DocumentsAnswer(BaseModel):
    """What became of each document, in their order."""

    documents: list[ItemAnswer]


class DocumentAnswer(BaseModel):
    """A document and its verdict."""

    id: str
    verdict: VerdictAnswer
    held: Annotated[bool, Field(description="Whether new documents are compared with it.")]
    text: Annotated[str | None, Field(description="Null where it is not kept any more.")]


class SimilarAnswer(BaseModel):
    """A held document, and how similar it is."""

    id: str
    similarity: float


class QueryAnswer(BaseModel):
    """The near-duplicates of a text, the most similar first."""

    similar: list[SimilarAnswer]


class PairAnswer(BaseModel):
    """Two documents that match."""

    left: str
    right: str
    similarity: float


class PairsAnswer(BaseModel):
    """All pairs that match."""

    pairs: list[PairAnswer]


class StoppedItem(VerdictAnswer):
    """A duplicate and why it is one."""

    id: str


class StoppedAnswer(BaseModel):
    """Duplicates in the order in which they came."""

    stopped: list[StoppedItem]
    cursor: Annotated[str | None, Field(description="Give it to the next call; null where these are the last.")]


class IndexAnswer(BaseModel):
    """An index: how it was made, and how much it holds."""

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
    held: int


class InfoAnswer(BaseModel):
    """The service and its indexes."""

    name: Literal["neardup"]
    version: str
    indexes: list[IndexAnswer]
    limits: dict[str, int]
