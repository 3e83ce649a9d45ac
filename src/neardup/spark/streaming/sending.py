"""The work of a stream on its way to the workers, once to each machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from neardup.spark.streaming.work import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sent:
    """Work that was given to all workers.

    Spark asks operators with state for their layout in a process that is given no broadcasts, so that what they refer
    to is looked for when it is needed, and not when they arrive.

    Parameters
    ----------
    spark : SparkSession
        Whose workers.
    work : Work
        What they are given.
    """

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._broadcast: Any = spark.sparkContext.broadcast(work)

    @property
    def value(self) -> Work:
        """The work."""
        found: Work = self._broadcast.value
        return found

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        find, number = self._broadcast.__reduce__()
        return Received, (find, number)


class Received:
    """Such work in a worker.

    Parameters
    ----------
    find : callable
        Gives what was sent, from its number.
    number : tuple
        What it takes.
    """

    def __init__(self, find: Callable[..., Any], number: tuple[Any, ...]) -> None:
        self._find, self._number = find, number

    @property
    def value(self) -> Work:
        """The work; a process loads it once."""
        found: Work = self._find(*self._number).value
        return found
