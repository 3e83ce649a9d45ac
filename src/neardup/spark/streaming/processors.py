"""The steps of a stream as Spark runs them: operators with state, which it keeps with each micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor

from neardup.spark.streaming.settling import settle
from neardup.spark.streaming.sharding import Answer, ask
from neardup.spark.streaming.work import Held

#: What shards say, and what comes out in the end: verdicts as blobs.
ANSWERS = "shard int, documents binary, pairs binary, names binary"
SETTLED = "data binary"


class StateChest:
    """A chest in the state of an operator.

    Parameters
    ----------
    handle : StatefulProcessorHandle
        Spark's way to it.
    """

    def __init__(self, handle: Any) -> None:
        self._head = handle.getValueState("head", "data binary")
        self._blobs = handle.getMapState("blobs", "number bigint", "data binary")

    def head(self) -> bytes | None:
        """Return the head; None before the first one."""
        found = self._head.get() if self._head.exists() else None
        return None if found is None else bytes(found[0])

    def set_head(self, data: bytes) -> None:
        """Put another head in its place."""
        self._head.update((data,))

    def get(self, number: int) -> bytes | None:
        """Return a blob; None where there is none."""
        found = self._blobs.getValue((number,)) if self._blobs.containsKey((number,)) else None
        return None if found is None else bytes(found[0])

    def put(self, number: int, data: bytes) -> None:
        """Keep a blob."""
        self._blobs.updateValue((number,), (data,))

    def drop(self, number: int) -> None:
        """Forget a blob."""
        self._blobs.removeKey((number,))

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all blobs."""
        return iter([int(key[0]) for key in self._blobs.keys()])  # noqa: SIM118 -- not a dictionary


class ShardOperator(StatefulProcessor):  # type: ignore[misc]
    """Asks the shard that a label stands for.

    Parameters
    ----------
    work : Held
        What is done.
    labels : list of int
        The label of each shard, by which its rows find their partition.
    """

    def __init__(self, work: Held, labels: list[int]) -> None:
        self._work = work
        self._numbers = {label: number for number, label in enumerate(labels)}

    def init(self, handle: Any) -> None:
        """Take up the state."""
        self._chest = StateChest(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Yield what the shard says of a micro-batch."""
        blobs: list[bytes] = []
        now = 0
        for frame in rows:
            blobs += map(bytes, frame["data"])
            now = int(frame["now"].iloc[0])
        number = self._numbers[int(key[0])]
        answer = ask(self._work, number, self._chest, blobs, now)
        yield pd.DataFrame({"shard": [number]} | {name: [data] for name, data in answer._asdict().items()})

    def close(self) -> None:
        """Do nothing: the window stays in the memory of this process."""


class SettlingOperator(StatefulProcessor):  # type: ignore[misc]
    """Puts the answers of all shards together.

    Parameters
    ----------
    work : Held
        What is done.
    """

    def __init__(self, work: Held) -> None:
        self._work = work

    def init(self, handle: Any) -> None:
        """Take up the state."""
        self._chest = StateChest(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Yield the verdicts on a micro-batch."""
        answers = [
            Answer(*map(bytes, columns))
            for frame in rows
            for columns in zip(*(frame[name] for name in Answer._fields), strict=True)
        ]
        yield pd.DataFrame({"data": [settle(self._work, self._chest, answers)]})

    def close(self) -> None:
        """Do nothing."""
