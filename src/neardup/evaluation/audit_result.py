"""What an audit found: figures with intervals, the strata behind them, and what to keep in mind when reading them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from neardup.evaluation.estimates import Point
from neardup.evaluation.population import Scale
from neardup.evaluation.scores import Figure
from neardup.pages.diff import ShownDocument
from neardup.version import __version__


class Example(NamedTuple):
    """A drawn pair to read."""

    left: ShownDocument
    right: ShownDocument
    #: On the scale of returned or of other pairs.
    score: float
    #: Whether the working point returns it.
    returned: bool
    answer: str
    #: How many pairs of the whole it stands for: those of its stratum by the judged ones; 0 where it counts nowhere.
    stands_for: float


@dataclass(frozen=True, slots=True)
class Examples:
    """Pairs to read, by the names of KINDS."""

    #: Those that stand for most pairs, the most first.
    shown: dict[str, list[Example]]
    total: dict[str, int]


class Band(NamedTuple):
    """A stratum and its labels."""

    returned: bool
    #: The scores of its pairs: at least ``low``, and below ``high`` unless that is the highest there is.
    low: float
    high: float
    #: How many pairs it holds, and of these were drawn, were judged as same or different, as same, as unsure.
    pairs: int
    drawn: int
    judged: int
    same: int
    unsure: int
    #: Of duplicates among its pairs, with a 95% interval.
    share: Figure

    def between(self, scale: Scale) -> str:
        """Return its scores for people: 0.3 to 0.35."""
        low, high = scale.shown(self.low), scale.shown(self.high)
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def format_figure(figure: Figure) -> str:
    """Return a share for people: 0.93 (0.88 to 0.96)."""
    return "not known" if figure.value is None else f"{figure.value:.3f} ({interval_text(figure)})"


def interval_text(figure: Figure) -> str:
    """Return an interval for people, with so many digits that its ends can be told apart: 0.88 to 0.96."""
    if figure.low is None or figure.high is None:
        return "?"
    digits = 3 if figure.high > figure.low and f"{figure.low:.2f}" == f"{figure.high:.2f}" else 2
    return f"{figure.low:.{digits}f} to {figure.high:.{digits}f}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """How good a result is, by a random sample of it.

    All pairs are pairs of distinct texts; texts that are equal byte for byte are one.

    Attributes
    ----------
    point, candidate_rule : str
        The working point, and the candidate rule above which pairs were looked at, for people.
    scale, other_scale : Scale
        What the scores of returned pairs are, and of others.
    seed : int
        Of the sample.
    documents, copies, copy_pairs : int
        How many documents there are; how many repeat an earlier text byte for byte; how many pairs of such there are.
        They are taken as duplicates, are not asked, and count in no figure.
    candidates : int
        Candidates, and returned ones below it, if any.
    drawn, same, different, unsure, missing, outside : int
        Drawn pairs; what was said of them, or nothing; judged pairs that were not drawn and count nowhere.
    strata : tuple of Band
        Returned pairs first, the highest scores first.
    points : tuple of Point
        The working point and others, the strictest first.
    duplicates : Figure
        How many pairs are duplicates, with a 95% interval.
    sample : pyarrow.Table or None
        The drawn pairs for people to judge: id1, id2, label (1, 0, ? or empty), text1, text2.
    examples : Examples or None
        Judged pairs to read: the wrong ones, the missed ones, and those that nobody was sure of.
    inputs : tuple of str
        What was audited: files, or none for documents in memory.
    """

    point: str
    candidate_rule: str
    scale: Scale
    other_scale: Scale
    seed: int
    documents: int
    copies: int
    copy_pairs: int
    candidates: int
    drawn: int
    same: int
    different: int
    unsure: int
    missing: int
    outside: int
    strata: tuple[Band, ...]
    points: tuple[Point, ...]
    duplicates: Figure
    sample: pa.Table = field(default=None, compare=False)
    examples: Examples | None = field(default=None, compare=False)
    inputs: tuple[str, ...] = field(default=(), compare=False)

    @property
    def own(self) -> Point:
        """The working point."""
        return next(point for point in self.points if point.own)

    @property
    def precision(self) -> Figure:
        """The share of duplicates among the returned pairs."""
        return self.own.precision

    @property
    def recall(self) -> Figure:
        """The share of returned pairs among the duplicates among the candidates."""
        return self.own.recall

    def scale_of(self, band: Band) -> Scale:
        """Return what the scores of a stratum are."""
        return self.scale if band.returned else self.other_scale

    def notes(self) -> list[str]:
        """Return what to keep in mind when reading the figures, a sentence each."""
        return [*self._of_labels(), *self._of_reach()]

    def _of_labels(self) -> list[str]:
        found = []
        if self.missing == self.drawn:
            found.append("None of the drawn pairs is judged yet, so no figure is known.")
        elif self.missing:
            found.append(f"{self.missing:,} of the {self.drawn:,} drawn pairs {_are(self.missing)} not judged yet.")
        if self.unsure:
            found.append(f"{self.unsure:,} of the {self.drawn:,} drawn pairs {_are(self.unsure)} unsure and left out.")
        if self.outside:
            found.append(
                f"{self.outside:,} judged {'pair was' if self.outside == 1 else 'pairs were'} not drawn and count "
                "nowhere: how they were chosen is not known, so they say nothing of the rest."
            )
        empty = [band for band in self.strata if not band.judged]
        if empty and len(empty) < len(self.strata):
            places = ", ".join(band.between(self.scale_of(band)) for band in empty)
            found.append(f"Nothing is judged at {places}, so figures that need these pairs are not known.")
        return found

    def _of_reach(self) -> list[str]:
        copies = (
            f"{self.copies:,} {'document repeats' if self.copies == 1 else 'documents repeat'} another text byte for "
            f"byte: such copies are taken as duplicates, are not asked, and are in none of these figures."
        )
        candidate_rule = (
            f"Recall is that of duplicates among the candidates, {self.candidate_rule}: pairs below "
            "it were not looked at, and duplicates among them are missing from all figures."
        )
        return [candidate_rule, *([copies] if self.copies else [])]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        names = ("documents", "copies", "copy_pairs", "candidates", "drawn", "same", "different", "unsure", "missing")
        return {
            "point": self.point,
            "candidate_rule": self.candidate_rule,
            "score": self.scale.name,
            "seed": self.seed,
            **{name: getattr(self, name) for name in (*names, "outside")},
            "precision": self.precision._asdict(),
            "recall": self.recall._asdict(),
            "duplicates": self.duplicates._asdict(),
            "points": [self._point(point) for point in self.points],
            "strata": [self._band(band) for band in self.strata],
            "notes": self.notes(),
            "version": __version__,
        }

    def _point(self, point: Point) -> dict[str, Any]:
        figures = {"precision": point.precision._asdict(), "recall": point.recall._asdict()}
        return {"threshold": self.scale.shown(point.score), "own": point.own, "returned": point.returned} | figures

    def _band(self, band: Band) -> dict[str, Any]:
        scale = self.scale_of(band)
        ends = {"score": scale.name, "low": scale.shown(band.low), "high": scale.shown(band.high)}
        return band._asdict() | ends | {"share": band.share._asdict()}

    def __repr__(self) -> str:
        figures = f"precision {format_figure(self.precision)}, recall among candidates {format_figure(self.recall)}"
        return f"<audit of {self.candidates:,} pairs by {self.same + self.different:,} labels: {figures}>"
