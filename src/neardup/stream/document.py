"""The input and the output of a flow: a document and its verdict; and between them its arrival."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from neardup.classifier.evidence import Contribution, Evidence
from neardup.errors import InputError, quoted
from neardup.search.window import EventTime
from neardup.times import TIME_FORMS, microseconds_of, stands_for_no_date, utc


@dataclass(frozen=True, slots=True)
class Document:
    """A document that arrives.

    Attributes
    ----------
    id : str
        Its id; a flow gives each id one verdict.
    text : str
        Its text.
    timestamp : float, date, str or None
        Its time: a datetime, a date, or a number or text that ``neardup.times`` reads, such as Unix seconds and
        ISO 8601; UTC unless it says otherwise. None means the time of arrival, and so do texts and datetimes that
        stand for no date, such as 0001-01-01 and 1970-01-01T00:00:00.
    origin : str
        Its source; kept in the store.
    title : str
        Its title, for classifiers that compare titles; empty without one.

    Raises
    ------
    InputError
        If a field is of another type, a text cannot be stored as UTF-8, or the timestamp is not a time.
    """

    id: str
    text: str
    timestamp: float | date | str | None = None
    origin: str = ""
    title: str = ""
    _microseconds: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_text("id", self.id)
        _check_text("text", self.text)
        _check_text("origin", self.origin)
        _check_text("title", self.title)
        object.__setattr__(self, "_microseconds", _checked_time(self.timestamp))

    @property
    def microseconds(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC); None without one."""
        return self._microseconds


# A tuple, since a flow makes one for each document, and a frozen dataclass takes three times as long.
class Verdict(NamedTuple):
    """The decision about a document when it arrived.

    Attributes
    ----------
    id : str
        The document.
    kind : str
        ``original``; or ``exact`` (the text equals another byte for byte) or ``near`` for a duplicate.
    of : str or None
        The document that it repeats: the most similar one in the window, of equally similar ones the first.
    similarity : float or None
        The similarity to that document; with a classifier, the probability that both are near-duplicates.
    time : float
        Its time in the flow, in seconds since 1970 (UTC).
    flag : str
        Empty, or a remark: ``late`` (older than the window), ``ahead`` (further ahead than the window is long),
        ``future`` (later than the system clock) or ``undecidable`` (too little text to compare).
    counts : tuple of int or None
        The three whole numbers o, a and b behind the similarity, as in ``neardup.recipe.measures``.
    score : float or None
        The score of the classifier; None without one, and for texts that are equal byte for byte.
    measures : tuple of Contribution
        The measures of the classifier, the largest contribution first; empty without one.
    version_of : str or None
        The id that the document was given, if that id belongs to another text; ``id`` then ends in ``~2``, ``~3``…
    known : bool
        Whether the flow had this id with this text already, so that this is the verdict of then.
    """

    id: str
    kind: str
    of: str | None
    similarity: float | None
    time: float
    flag: str
    counts: tuple[int, int, int] | None
    score: float | None = None
    measures: tuple[Contribution, ...] = ()
    version_of: str | None = None
    known: bool = False

    @property
    def is_duplicate(self) -> bool:
        """Whether it repeats a document in the window."""
        return self.kind != "original"

    @property
    def has_equal_features(self) -> bool:
        """Whether a duplicate has exactly the features of the document it repeats."""
        return self.kind == "exact" or (self.counts is not None and len(set(self.counts)) == 1)

    @property
    def evidence(self) -> str:
        """The measures with the largest contributions, in a few words; empty without a score."""
        return "" if self.score is None else str(Evidence(self.score, self.similarity or 0.0, self.measures))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        fields = self._asdict()
        measures = [contribution.as_dict() for contribution in fields.pop("measures")]
        counts = None if self.counts is None else list(self.counts)
        return fields | {"counts": counts, "evidence": self.evidence, "measures": measures}


#: Stands for the verdict on a document that is not judged yet.
PENDING = Verdict("", "original", None, None, 0.0, "", None)


_NO_EVENT_TIME = EventTime(0, 0)


@dataclass(slots=True)
class Arrival:
    """A document from the caller to the store, and as the store returns it: it gets its time, number and verdict."""

    id: str  #: a version of another document has ``~2``, ``~3`` at its end
    text: str | None  #: None if it is not kept
    title: str = ""
    origin: str = ""
    timestamp: int | None = None  #: as stated, in microseconds since 1970
    #: Of its text, as ``text_digest`` makes it; empty if it is unknown.
    digest: bytes = b""
    version_of: str | None = None  #: the id that it was given, if that belongs to another text
    serial: int = -1  #: its number in order of arrival; -1 if it is only looked up
    event_time: EventTime = _NO_EVENT_TIME
    size: int = 0  #: o, a and b of the document with itself; 0 if it has no features to compare
    is_held: bool = False  #: whether it is in the window
    verdict: Verdict = PENDING

    @classmethod
    def of(cls, document: Document) -> Arrival:
        """Return the arrival of a document."""
        return cls(document.id, document.text, document.title, document.origin, document.microseconds)


_EPOCH = utc(0)
#: The flags of verdicts, and the names of all counts.
FLAGS = ("late", "ahead", "future", "undecidable")
COUNTS = ("arrived", "originals", "duplicates", *FLAGS)


def count(counts: dict[str, int], verdicts: Iterable[Verdict], by: int = 1) -> None:
    """Add verdicts to counts by the names in ``COUNTS``; ``by=-1`` subtracts them."""
    for verdict in verdicts:
        counts["arrived"] += by
        counts["duplicates" if verdict.is_duplicate else "originals"] += by
        if verdict.flag:
            counts[verdict.flag] += by


def _checked_time(timestamp: object) -> int | None:
    found = microseconds_of(timestamp)
    if found is not None or timestamp is None:
        return found
    if timestamp in (0, _EPOCH) and not isinstance(timestamp, bool):
        return 0  # a clock of the caller
    if stands_for_no_date(timestamp):
        return None
    raise InputError(
        f"timestamp {quoted(timestamp)} is not a time; give a datetime, {TIME_FORMS}, or None for the time of its "
        "arrival"
    )


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name} {quoted(value)} is of type {type(value).__name__}; a document's {name} is a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} {quoted(value)} has the lone surrogate {value[error.start]!a} at character {error.start}, which "
            "UTF-8 cannot hold; decode it with errors='replace' or remove that character"
        ) from None
