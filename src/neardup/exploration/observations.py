"""The result of an exploration as data; tables, messages, charts and pages are functions of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from neardup.exploration.advice import Advice
from neardup.exploration.curve import Curve
from neardup.exploration.examples import ExamplePair, Examples
from neardup.exploration.profile import CorpusProfile
from neardup.exploration.sample import Sample
from neardup.exploration.views import View
from neardup.keep.pairs import PairArrays
from neardup.runtime import Stage


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Observations:
    """The result of an exploration.

    Attributes
    ----------
    sample : Sample
        The documents that were compared pairwise.
    views : tuple of View
        The similarities of the sample by each n and each recipe, and by the advised features with idf weights if these
        apply.
    pairs : PairArrays
        The pairs of the sample at 0.04 and above by the advised features and measure, by positions in the corpus.
    advice : Advice
        The recipe to begin with.
    curve : Curve or None
        Pairs and dropped documents of the whole corpus by threshold; None without a join of the whole corpus.
    profile : CorpusProfile
        The contents of the corpus.
    examples : tuple of Examples
        Real pairs to read at each cutoff.
    suspects : tuple of ExamplePair
        Pairs that match at the advised threshold and may be different documents, because names or numbers of one text
        replace those of the other.
    notes : tuple of str
        What was left out or done differently, and why.
    inputs : tuple of str
        The names of the inputs.
    columns : dict
        The columns of the texts and ids.
    stages : tuple of Stage
        Time and memory of each stage.
    version : str
        The version of neardup.
    """

    sample: Sample
    views: tuple[View, ...]
    pairs: PairArrays
    advice: Advice
    curve: Curve | None
    profile: CorpusProfile
    examples: tuple[Examples, ...]
    suspects: tuple[ExamplePair, ...]
    notes: tuple[str, ...]
    inputs: tuple[str, ...]
    columns: dict[str, str | None]
    stages: tuple[Stage, ...]
    version: str

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the texts and the pairs of the sample, ready for JSON."""
        return {
            "version": self.version,
            "inputs": list(self.inputs),
            "columns": self.columns,
            "sample": self.sample.as_dict(),
            "advice": self.advice.as_dict(),
            "views": [view.as_dict() for view in self.views],
            "curve": None if self.curve is None else self.curve.as_dict(),
            "profile": asdict(self.profile),
            "examples": [examples.as_dict() for examples in self.examples],
            "suspects": [pair.as_dict() for pair in self.suspects],
            "notes": list(self.notes),
            "stages": [dict(stage) for stage in self.stages],
        }

    def __repr__(self) -> str:
        advice = f"{self.advice.features}, {self.advice.measure} >= {self.advice.threshold:g}"
        advised = f"advised {advice}" if self.advice.given else "no advice"
        return f"<neardup exploration: {len(self.sample):,} of {self.sample.documents:,} documents, {advised}>"
