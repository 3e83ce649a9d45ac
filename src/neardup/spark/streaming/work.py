"""What the workers of a stream go by, and what a stream remembers between two micro-batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from neardup.decision.decision import Decision
from neardup.errors import RecipeError
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.window.times import Length

#: What of a stream must stay as it was when it goes on from a checkpoint, and what it is called.
_SAID = {
    "recipe": "the recipe",
    "window": "window",
    "window_by": "window_by",
    "against": "against",
    "shards": "shards",
    "sample": "the sample",
}


class Work(NamedTuple):
    """What is done with documents.

    Attributes
    ----------
    recipe : Recipe
        What matches.
    length : Length
        Of the window.
    everything : bool
        Whether duplicates are partners, too.
    statistics, decision : Statistics, Decision or None
        What the recipe takes from a collection; the learned decision whose it is.
    mark : dict of str to str
        By what a checkpoint of this stream is known.
    """

    recipe: Recipe
    length: Length
    everything: bool
    statistics: Statistics | None
    decision: Decision | None
    mark: dict[str, str]

    def check(self, mark: dict[str, str]) -> None:
        """Refuse to go on from the checkpoint of another stream.

        Raises
        ------
        RecipeError
            If it is another one's.
        """
        for name, called in _SAID.items():
            if mark.get(name) != self.mark.get(name):
                raise RecipeError(
                    f"this checkpoint was begun with {called} {mark.get(name)}, and this stream has "
                    f"{self.mark.get(name)}: give what it was begun with, or name another checkpoint"
                )


class Held(Protocol):
    """Where ``Work`` is: sent to all workers once, or here."""

    @property
    def value(self) -> Work:
        """It."""
        ...


class Chest(Protocol):
    """What an operator remembers: one head, and blobs by number. Spark keeps it with its micro-batch, or not at all."""

    def head(self) -> bytes | None:
        """Return the head; None before the first one."""
        ...

    def set_head(self, data: bytes) -> None:
        """Put another head in its place."""
        ...

    def get(self, number: int) -> bytes | None:
        """Return a blob; None where there is none."""
        ...

    def put(self, number: int, data: bytes) -> None:
        """Keep a blob."""
        ...

    def drop(self, number: int) -> None:
        """Forget a blob."""
        ...

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all blobs, in any order."""
        ...


def head_of(chest: Chest, work: Work) -> dict[str, Any] | None:
    """Return the head of a chest, None where it is new.

    Raises
    ------
    RecipeError
        If it is that of another stream.
    """
    data = chest.head()
    if data is None:
        return None
    found: dict[str, Any] = json.loads(data)
    work.check(found["mark"])
    return found


def put_head(chest: Chest, head: dict[str, Any]) -> None:
    """Keep a head."""
    chest.set_head(json.dumps(head, separators=(",", ":")).encode())
