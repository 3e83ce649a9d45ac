"""One shard of a stream: the documents of a micro-batch in, what they match there out, and what is remembered.

Everything that must outlast a micro-batch lies in a chest. The window itself lives in the memory of a worker process,
and is made from the chest where another process, or one that missed some micro-batches, takes over.
"""

from __future__ import annotations

import struct
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.flow.parts import joined
from neardup.flow.shard import Shard
from neardup.flow.sharing import Found
from neardup.spark.streaming.arriving import in_order
from neardup.spark.streaming.tables import (
    NAMES,
    arrived_of,
    entered_of,
    entered_table,
    names_table,
    packed,
    pairs_table,
    unpacked,
)
from neardup.spark.streaming.work import Chest, Held, head_of, put_head
from neardup.window.times import Moment

#: Documents that are judged at once: what has left the window goes after each such step.
_AT_ONCE = 1024
#: Windows that a worker process keeps. More than a machine has shards would never be used.
WINDOWS = 8
#: Micro-batches whose names are remembered: a window that missed more of them is made anew.
_REMEMBERED = 64
#: Before a blob: the last sub-index of what is in it.
_PART = struct.Struct("<q")


class _Live(NamedTuple):
    """A window in memory, and the micro-batch that it is of."""

    version: int
    token: str
    shard: Shard


_LIVE: OrderedDict[tuple[str, int], _Live] = OrderedDict()


class Answer(NamedTuple):
    """What a shard says of a micro-batch, as blobs; empty where it has nothing to say.

    Attributes
    ----------
    documents : bytes
        What all shards know alike, from the first of them alone.
    pairs, names : bytes
        Which documents match what is held here, and the ids of that.
    """

    documents: bytes
    pairs: bytes
    names: bytes


def ask(work: Held, number: int, chest: Chest, blobs: Sequence[bytes], now: int) -> Answer:
    """Return what a shard says of a micro-batch, and remember what of it is to be held here.

    Parameters
    ----------
    work : Held
        What is done.
    number : int
        Which of ``work.value.mark["shards"]`` shards this is.
    chest : Chest
        What this shard remembers.
    blobs : sequence of bytes
        All documents of the micro-batch, of ``arriving.blobs_of``.
    now : int
        Its time, in microseconds since 1970; the same when it is tried again.
    """
    given = work.value
    head = head_of(chest, given) or _first_head(given.mark)
    table, aside = in_order(blobs, now)
    # Should this fail, the window is not what its name says, and nobody finds it.
    shard = _taken(work, number, chest, head)
    documents, moments = arrived_of(table), []
    times = table["time"].to_pylist()
    first, shards = int(head["next"]), int(given.mark["shards"])
    found, entered = [], []
    names: dict[int, str] = {}
    for begin in range(0, len(times), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        some = shard.moments(times[part], now / 1e6)
        numbers = np.arange(first + begin, first + begin + len(some))
        answer, own = shard.find(documents.between(part), some, first + begin, numbers % shards == number)
        found.append(answer._replace(places=answer.places + begin))
        names |= {serial: shard.names[serial] for serial in np.unique(answer.partners.serials).tolist()}
        entered += [] if own is None else [own]
        moments += some
        shard.expire()
    head["next"] = first + len(times)
    _remember(chest, head, shard, [entered_table(each) for each in entered], moments)
    _keep(number, head, shard)
    return _answer(found, names, (table, aside, moments) if number == 0 else None)


def _first_head(mark: dict[str, str]) -> dict[str, Any]:
    name = uuid.uuid4().hex
    return {"mark": mark, "stream": name, "version": 0, "tokens": [[0, name]], "oldest": None, "next": 0, "state": None}


def _taken(work: Held, number: int, chest: Chest, head: dict[str, Any]) -> Shard:
    """Return the window of a shard as it was after the last micro-batch, out of this process's memory if it can be."""
    live = _LIVE.pop((head["stream"], number), None)
    if live is not None and live.token == head["tokens"][-1][1]:
        return live.shard
    if live is not None and [live.version, live.token] in head["tokens"]:
        missed: Iterator[int] | range = range(live.version + 1, head["version"] + 1)
        shard = live.shard
    else:
        missed = chest.numbers()
        given = work.value
        options: dict[str, Any] = {"statistics": given.statistics, "decision": given.decision}
        shard = Shard(given.recipe, given.length, best_only=given.everything, **options)
    if head["state"] is None:
        return shard
    for version in sorted(missed):
        data = chest.get(version)
        if data is not None:
            shard.enter_again(entered_of(unpacked([data[_PART.size :]])), head["state"]["ahead"])
    shard.take_up(head["state"])
    return shard


def _remember(
    chest: Chest, head: dict[str, Any], shard: Shard, entered: Sequence[pa.Table], moments: Sequence[Moment]
) -> None:
    """Put what entered into the chest, take out what has left the window, and note where the clock stands."""
    head["version"] += 1
    version = head["version"]
    if entered:
        whole = pa.concat_tables(entered)
        part = int(whole["parts"][-1].as_py())
        chest.put(version, _PART.pack(part) + packed(whole))
        head["oldest"] = head["oldest"] or [version, part]
    least = moments[-1].oldest if moments else None
    while least is not None and head["oldest"] is not None and head["oldest"][1] < least:
        gone = head["oldest"][0]
        chest.drop(gone)
        head["oldest"] = next(_after(chest, gone, version), None)
    head["tokens"] = [*head["tokens"][1 - _REMEMBERED :], [version, uuid.uuid4().hex[:16]]]
    head["state"] = shard.shard_state()
    put_head(chest, head)


def _after(chest: Chest, gone: int, last: int) -> Iterator[list[int]]:
    """Yield the blobs after one: their numbers, and the last sub-index of what is in each."""
    for number in range(gone + 1, last + 1):
        data = chest.get(number)
        if data is not None:
            yield [number, _PART.unpack_from(data)[0]]


def _keep(number: int, head: dict[str, Any], shard: Shard) -> None:
    """Leave the window in this process's memory for the next micro-batch, and drop those not used for longest."""
    _LIVE[head["stream"], number] = _Live(head["version"], head["tokens"][-1][1], shard)
    while len(_LIVE) > WINDOWS:
        _LIVE.popitem(last=False)


def _answer(
    found: Sequence[Found], names: dict[int, str], all_alike: tuple[pa.Table, pa.Table, Sequence[Moment]] | None
) -> Answer:
    partners = joined([each.partners for each in found])
    places = np.concatenate([np.empty(0, np.int64), *(each.places for each in found)])
    pairs = packed(pairs_table(places, partners)) if len(places) else b""
    called = packed(names_table(names, np.array(list(names), np.int64))) if names else packed(NAMES.empty_table())
    if all_alike is None:
        return Answer(b"", pairs, called if len(places) else b"")
    table, aside, moments = all_alike
    some = np.concatenate([np.empty(0, np.bool_), *(each.has_features for each in found)])
    more = {name: [getattr(moment, name) for moment in moments] for name in ("real", "part", "confirms", "oldest")}
    types = {"real": pa.int64(), "part": pa.int64(), "confirms": pa.bool_(), "oldest": pa.int64()}
    columns = {"id": table["id"], "origin": table["origin"], "aside": table["aside"]}
    columns |= {name: pa.array(column, types[name]) for name, column in more.items()}
    columns |= {"flag": pa.array([moment.flag for moment in moments], pa.string()), "some": pa.array(some)}
    rows = pa.table(columns)
    broken = aside.select(["id", "origin", "aside"])
    nulls = {f.name: pa.nulls(len(broken), f.type) for f in rows.schema if f.name not in broken.column_names}
    for name, column in nulls.items():
        broken = broken.append_column(name, column)
    whole = pa.concat_tables([rows, broken.select(rows.column_names).cast(rows.schema)])
    return Answer(packed(whole), pairs, called if len(places) else b"")
