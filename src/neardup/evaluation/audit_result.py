"""The result of an audit: figures with intervals, the strata behind them, and notes on how to read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from neardup.evaluation.intervals import Figure
from neardup.evaluation.population import Scale
from neardup.evaluation.strata import ThresholdPoint
from neardup.pages.diff import ShownDocument
from neardup.version import __version__


class Example(NamedTuple):
    """A drawn pair to show."""

    left: ShownDocument
    right: ShownDocument
    #: On the scale of returned or of unreturned pairs.
    score: float
    returned: bool
    answer: str
    #: The number of pairs of its stratum that it represents: all pairs / judged pairs; 0 if it is not used.
    weight: float


@dataclass(frozen=True, slots=True)
class Examples:
    """Drawn pairs to show, by kind: ``wrong``, ``missed`` and ``unsure``."""

    #: The pairs with the largest weights, largest first.
    pairs: dict[str, list[Example]]
    totals: dict[str, int]


class StratumResult(NamedTuple):
    """A stratum and its labels."""

    returned: bool
    #: Scores are at least ``low`` and below ``high``; the highest stratum includes ``high``.
    low: float
    high: float
    pairs: int
    drawn: int
    judged: int
    same: int
    unsure: int
    share: Figure

    def score_range(self, scale: Scale) -> str:
        """Return the range of its scores as people read it, such as 0.3 to 0.35."""
        low, high = scale.threshold(self.low), scale.threshold(self.high)
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def format_figure(figure: Figure) -> str:
    """Return a share as people read it, such as 0.93 (0.88 to 0.96)."""
    return "not known" if figure.value is None else f"{figure.value:.3f} ({interval_text(figure)})"


def interval_text(figure: Figure) -> str:
    """Return an interval as people read it, such as 0.88 to 0.96, with enough digits to tell its ends apart."""
    if figure.low is None or figure.high is None:
        return "?"
    digits = 3 if figure.high > figure.low and f"{figure.low:.2f}" == f"{figure.high:.2f}" else 2
    return f"{figure.low:.{digits}f} to {figure.high:.{digits}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The quality of a result, estimated from a random sample of its pairs.

    All pairs are pairs of distinct texts; texts that are equal byte for byte count once.

    Attributes
    ----------
    point, candidate_rule : str
        The working point, and the rule that defines the candidates, as people read them.
    returned_scale, unreturned_scale : Scale
        The scales of the scores of returned and of unreturned pairs.
    seed : int
        The random seed of the sample.
    documents, copies, copy_pairs : int
        The number of documents, of documents that repeat an earlier text byte for byte, and of pairs of equal texts.
        Such pairs count as duplicates, are never drawn, and are in no figure.
    candidates : int
        The number of candidates, including returned pairs below the candidate rule.
    drawn, same, different, unsure, missing, outside : int
        The number of drawn pairs; of these by label, ``missing`` for none; and of judged pairs that were not drawn,
        which are not used.
    strata : tuple of StratumResult
        Returned pairs first, each side from the highest scores down.
    points : tuple of ThresholdPoint
        The working point and other thresholds, the strictest first.
    duplicates : Figure
        The number of duplicates among the candidates, with a 95% interval.
    sample : pyarrow.Table or None
        The drawn pairs for people to judge: id1, id2, label (1, 0, ? or empty), text1, text2.
    examples : Examples or None
        Judged pairs to read: wrong, missed and unsure ones.
    inputs : tuple of str
        The audited files; empty for documents in memory.
    columns : dict
        The columns of the texts and ids.
    """

    point: str
    candidate_rule: str
    returned_scale: Scale
    unreturned_scale: Scale
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
    strata: tuple[StratumResult, ...]
    points: tuple[ThresholdPoint, ...]
    duplicates: Figure
    sample: pa.Table = field(default=None, compare=False)
    examples: Examples | None = field(default=None, compare=False)
    inputs: tuple[str, ...] = field(default=(), compare=False)
    columns: dict[str, str | None] = field(default_factory=dict, compare=False)

    @property
    def working_point(self) -> ThresholdPoint:
        """The figures of the audited threshold."""
        return next(point for point in self.points if point.is_working_point)

    @property
    def precision(self) -> Figure:
        """The share of duplicates among the returned pairs."""
        return self.working_point.precision

    @property
    def recall(self) -> Figure:
        """The share of returned pairs among the duplicates of all candidates."""
        return self.working_point.recall

    def stratum_scale(self, stratum: StratumResult) -> Scale:
        """Return the scale of a stratum's scores."""
        return self.returned_scale if stratum.returned else self.unreturned_scale

    def notes(self) -> list[str]:
        """Return what a reader of the figures must know, a sentence each."""
        return [*self._label_notes(), *self._coverage_notes()]

    def _label_notes(self) -> list[str]:
        notes = []
        if self.missing == self.drawn:
            notes.append("None of the drawn pairs is judged yet, so no figure is known.")
        elif self.missing:
            verb = "is" if self.missing == 1 else "are"
            notes.append(f"{self.missing:,} of the {self.drawn:,} drawn pairs {verb} not judged yet.")
        if self.unsure:
            verb = "is" if self.unsure == 1 else "are"
            notes.append(f"{self.unsure:,} of the {self.drawn:,} drawn pairs {verb} unsure and left out.")
        if self.outside:
            notes.append(
                f"{self.outside:,} judged {'pair was' if self.outside == 1 else 'pairs were'} not drawn and count "
                "nowhere: it is not known how they were chosen, so they do not represent other pairs."
            )
        unjudged = [stratum for stratum in self.strata if not stratum.judged]
        if unjudged and len(unjudged) < len(self.strata):
            ranges = ", ".join(stratum.score_range(self.stratum_scale(stratum)) for stratum in unjudged)
            notes.append(f"No pair is judged at {ranges}, so figures that need these pairs are not known.")
        return notes

    def _coverage_notes(self) -> list[str]:
        recall = (
            f"Recall counts duplicates among the candidates only ({self.candidate_rule}): pairs below this rule were "
            "not examined, and duplicates among them are missing from all figures."
        )
        copies = (
            f"{self.copies:,} {'document repeats' if self.copies == 1 else 'documents repeat'} another text byte for "
            "byte: such copies count as duplicates, are not drawn, and are in none of these figures."
        )
        return [recall, *([copies] if self.copies else [])]

    def to_dict(self) -> dict[str, Any]:
        """Return the audit, ready for JSON."""
        names = ("documents", "copies", "copy_pairs", "candidates", "drawn", "same", "different", "unsure", "missing")
        return {
            "point": self.point,
            "candidate_rule": self.candidate_rule,
            "score": self.returned_scale.name,
            "seed": self.seed,
            **{name: getattr(self, name) for name in (*names, "outside")},
            "precision": self.precision._asdict(),
            "recall": self.recall._asdict(),
            "duplicates": self.duplicates._asdict(),
            "points": [self._point_dict(point) for point in self.points],
            "strata": [self._stratum_dict(stratum) for stratum in self.strata],
            "notes": self.notes(),
            "columns": self.columns,
            "version": __version__,
        }

    def _point_dict(self, point: ThresholdPoint) -> dict[str, Any]:
        return {
            "threshold": self.returned_scale.threshold(point.score),
            "own": point.is_working_point,
            "returned": point.returned,
            "precision": point.precision._asdict(),
            "recall": point.recall._asdict(),
        }

    def _stratum_dict(self, stratum: StratumResult) -> dict[str, Any]:
        scale = self.stratum_scale(stratum)
        ends = {"score": scale.name, "low": scale.threshold(stratum.low), "high": scale.threshold(stratum.high)}
        return stratum._asdict() | ends | {"share": stratum.share._asdict()}

    def __repr__(self) -> str:
        figures = f"precision {format_figure(self.precision)}, recall among candidates {format_figure(self.recall)}"
        return f"<audit of {self.candidates:,} pairs by {self.same + self.different:,} labels: {figures}>"
