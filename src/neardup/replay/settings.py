"""What a replay runs with: the recipe or the decision, and the window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from neardup.decision.decision import Decision
from neardup.documents import Corpus
from neardup.features.gathering import gather
from neardup.features.statistics import Statistics
from neardup.flow.document import Document
from neardup.flow.index import Index
from neardup.recipe import Recipe
from neardup.replay.order import Report
from neardup.replay.run import END_OF_TIME
from neardup.times import utc
from neardup.window.times import Length

_HOUR = 3_600_000_000
_WARMING = 300
_WORDS = ("a document to warm up with, before the first one comes", "ένα κείμενο για να ζεσταθεί η μηχανή πρώτα")
_MANY = 1500


@dataclass(frozen=True, slots=True)
class Settings:
    """What an index is made with.

    Attributes
    ----------
    recipe : Recipe
        What makes a match.
    window, window_by, against : str
        As ``Index`` takes them.
    store : str or None
        The file that verdicts go to.
    decision : Decision or None
        Where the recipe is that of a learned decision.
    """

    recipe: Recipe
    window: str = "24h"
    window_by: str = "time"
    against: str = "originals"
    store: str | None = None
    decision: Decision | None = None

    def statistics(self, corpus: Corpus, report: Report) -> Statistics | None:
        """Return what the recipe takes of the collection, None where it needs nothing; the corpus is read for it."""
        return gather(corpus, self.recipe, report=report) if self.recipe.needs_statistics else None

    def index(self, statistics: Statistics | None = None) -> Index:
        """Return the index of the replay.

        Parameters
        ----------
        statistics : Statistics or None
            Of the collection, for recipes that need them.
        """
        return Index(
            None if self.decision else self.recipe,
            decision=self.decision,
            window=self.window,
            window_by=self.window_by,
            against=self.against,
            path=self.store,
            sample=statistics,
            now=_end_of_time,
        )

    def endless(self, statistics: Statistics | None = None) -> Index:
        """Return an index in memory that keeps everything and compares with everything."""
        recipe = None if self.decision else self.recipe
        choices: dict[str, Any] = {"window": None, "against": "everything", "sample": statistics, "now": _end_of_time}
        return Index(recipe, decision=self.decision, **choices)

    def warm_up(self, statistics: Statistics | None = None) -> None:
        """Run some documents through a window of their own, so that no later one is charged for loading the kernels."""
        for index in (replace(self, store=None).index(statistics), self.endless(statistics)):
            for at in range(_WARMING):
                # Other scripts have kernels of their own, used once there are many bytes of them; so has what leaves.
                words = [f"{word}{at * place % 17}" for place, word in enumerate(_WORDS[at % len(_WORDS)].split())]
                text = " ".join(words) if at else _WORDS[1] * _MANY
                index.add(Document(str(at), text, utc(at * _HOUR // 2)))

    def as_dict(self) -> dict[str, Any]:
        """Return what the page says of it."""
        return {
            "recipe": self.recipe.name,
            "fingerprint": self.recipe.fingerprint,
            "window": self.window,
            "window_by": self.window_by,
            "against": self.against,
            "store": self.store,
            "hours_full": self.hours,
        }

    @property
    def hours(self) -> float | None:
        """How many hours the window is long; None where it is not one of time."""
        length = Length.parse(self.window, self.window_by)
        if length.value is None or length.unit == "documents":
            return None
        return float(length.value) if length.unit == "hour" else length.value / _HOUR


def _end_of_time() -> float:
    return END_OF_TIME
