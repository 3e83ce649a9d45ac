"""What all workers need alike: sent to each machine once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = TypeVar("Value")


class Shared(Generic[Value]):
    """A value that was given to all workers; ``value`` is it, there and here."""

    def __init__(self, spark: SparkSession, value: Value) -> None:
        self._broadcast: Any = spark.sparkContext.broadcast(value)

    @property
    def value(self) -> Value:
        """The value; a worker loads it once."""
        value: Value = self._broadcast.value
        return value

    def forget(self) -> None:
        """Let the workers' memory go, once nothing will ask for the value any more."""
        self._broadcast.destroy()
