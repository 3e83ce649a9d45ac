"""The flow on Spark: a stream of documents in, a stream of verdicts out."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import struct
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming import StatefulProcessor

from neardup.classifier.classifier import Classifier, Given
from neardup.classifier.columns import TITLES
from neardup.classifier.evidence import Learned
from neardup.documents.records import is_text_type
from neardup.documents.tables import TIME_NAMES
from neardup.errors import InputError, RecipeError
from neardup.features.statistics import Statistics
from neardup.recipe import AnyRecipe, Recipe
from neardup.search.window import EventTime, Length, check_keys
from neardup.spark.documents import column_of, documents_of
from neardup.spark.features import labels
from neardup.stream.index import chosen_recipe, statistics_for
from neardup.stream.parts import Findings, Partners, joined
from neardup.stream.shard import Arrived, Entered, Shard
from neardup.times import FORMS, times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    statistics, classifier : Statistics, Classifier or None
        What the recipe takes from a collection; the classifier whose it is.
    mark : dict of str to str
        By what a checkpoint of this stream is known.
    """

    recipe: Recipe
    length: Length
    everything: bool
    statistics: Statistics | None
    classifier: Classifier | None
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


_WRITTEN = pa.ipc.IpcWriteOptions(compression="zstd")
_PAIRS = pa.schema(
    [
        ("place", pa.int64()),
        ("serial", pa.int64()),
        ("similarity", pa.float64()),
        ("o", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("same", pa.bool_()),
        ("score", pa.float64()),
        ("vector", pa.binary()),
    ]
)
NAMES = pa.schema([("serial", pa.int64()), ("id", pa.large_string())])
#: What comes out of a stream, for Arrow and for Spark.
VERDICTS = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("of", pa.string()),
        ("similarity", pa.float64()),
        ("time", pa.timestamp("us", "UTC")),
        ("flag", pa.string()),
        ("o", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("score", pa.float64()),
        ("evidence", pa.string()),
        ("serial", pa.int64()),
        ("origin", pa.string()),
    ]
)
VERDICT_COLUMNS = (
    "id string, kind string, of string, similarity double, time timestamp, flag string, o bigint, a bigint, b bigint, "
    "score double, evidence string, serial bigint, origin string"
)


def packed(table: pa.Table | pa.RecordBatch) -> bytes:
    """Return a table as a blob."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITTEN) as writer:
        writer.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(blobs: Sequence[bytes]) -> pa.Table:
    """Return the table of some blobs, one behind the other; there is one at least."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs])


def strings(column: pa.ChunkedArray) -> pa.LargeStringArray:
    """Return a column of texts as one array."""
    found = column.cast(pa.large_string()).combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def arrived_of(table: pa.Table) -> Arrived:
    """Return documents as a shard takes them."""
    return Arrived(*(strings(table[name]) for name in ("id", "text", "title")))


def pairs_table(places: Any, partners: Partners) -> pa.Table:
    """Return what documents match; places: which document each partner is one of."""
    o, a, b = partners.counts.T
    wide = partners.vectors.shape[1] > 0
    vectors = [row.tobytes() for row in partners.vectors] if wide else [b""] * len(places)
    columns = [places, partners.serials, partners.similarity, o, a, b, partners.same, partners.g, vectors]
    return pa.table([pa.array(c, field.type) for c, field in zip(columns, _PAIRS, strict=True)], schema=_PAIRS)


def partners_of(table: pa.Table) -> tuple[Any, Partners]:
    """Return places and partners of ``pairs_table``."""
    place, serial, similarity, o, a, b, same, g = (table[name].to_numpy() for name in _PAIRS.names[:-1])
    blobs = table["vector"].to_pylist()
    width = max(map(len, blobs), default=0) // 8
    vectors = np.full((len(place), width), np.nan)
    for i, blob in enumerate(blobs if width else ()):
        if blob:
            vectors[i] = np.frombuffer(blob)
    counts = np.column_stack([o, a, b]).astype(np.int64)
    return place, Partners(serial, similarity, counts, same.astype(np.bool_), g, vectors)


def names_table(names: Mapping[int, str], serials: Any) -> pa.Table:
    """Return the ids of documents that a shard holds."""
    wanted = serials.tolist()
    return pa.table([pa.array(wanted, pa.int64()), pa.array([names[s] for s in wanted], pa.large_string())], NAMES)


def entered_table(entered: Entered) -> pa.Table:
    """Return what entered a shard as a table."""
    columns: dict[str, Any] = dict(zip(Entered._fields[1:], entered[1:], strict=True))
    return pa.table({name: pa.array(column) for name, column in columns.items()} | entered.documents._asdict())


def entered_of(table: pa.Table) -> Entered:
    """Return what entered a shard from ``entered_table``."""
    documents = Arrived(*(strings(table[name]) for name in Arrived._fields))
    serials, times, leaves, parts, reals, again = (table[name].to_numpy() for name in Entered._fields[1:])
    return Entered(documents, serials, times, leaves, parts, reals, again.astype(np.bool_))


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


#: now: the time of the micro-batch in microseconds since 1970; data: documents as a blob.
BLOB_COLUMNS = "now bigint, data binary"
NO_ID, NO_TEXT, NO_TIME, NOT_UTF8 = "no id", "no text", "no readable time", "not valid UTF-8"
_COLUMNS = ("id", "text", "title", "origin")
_ORDER = "order_"


def blobs_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of rows as blobs; in a worker.

    The columns are now, id and text, and where there are some time, title, origin, aside (why a row is none), and
    order_0, order_1 ...: what says which document is earlier.
    """
    for batch in batches:
        if batch.num_rows:
            now, data = batch.column("now")[0].as_py(), packed(arrived_documents(batch))
            yield pa.RecordBatch.from_arrays(
                [pa.array([now], pa.int64()), pa.array([data], pa.binary())], ["now", "data"]
            )


def arrived_documents(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the documents of some rows: id, text, title, origin, time (microseconds or null), aside, and the order."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    count = batch.num_rows
    nothing = pa.nulls(count, pa.large_string())
    columns: dict[str, pa.Array] = {}
    aside = strings_of(given["aside"])[0].to_pylist() if "aside" in given else [None] * count
    for name in _COLUMNS:
        column, broken = strings_of(given[name]) if name in given else (nothing, _none(count))
        missing = _mask(column.is_null()) & ~broken
        if name in ("id", "text"):
            _note(aside, missing, NO_ID if name == "id" else NO_TEXT)
            _note(aside, broken, NOT_UTF8)
        columns[name] = column if name == "id" else column.fill_null("")
    columns["time"] = pa.nulls(count, pa.int64())
    if "time" in given:
        times, readable = times_of(given["time"])
        # Where items may come without a time, they are of the time of the micro-batch.
        if "aside" not in given:
            _note(aside, ~readable, NO_TIME)
        columns["time"] = pa.array(times, mask=~readable)
    columns["aside"] = pa.array(aside, pa.large_string())
    columns |= {name: column for name, column in given.items() if name.startswith(_ORDER)}
    return pa.RecordBatch.from_pydict(columns)


def strings_of(values: Any) -> tuple[pa.LargeStringArray, npt.NDArray[np.bool_]]:
    """Return a column as texts, and which of them are not valid UTF-8: those are null."""
    if not is_text_type(values.type):
        return values.cast(pa.large_string()), _none(len(values))
    raw = values.cast(pa.large_binary())
    try:
        return raw.cast(pa.large_string()), _none(len(values))
    except pa.ArrowInvalid:
        found = [_decoded(value) for value in raw.to_pylist()]
        text = pa.array(found, pa.large_string())
        return text, _mask(text.is_null()) & ~_mask(raw.is_null())


def in_order(blobs: Sequence[bytes], now: int) -> tuple[pa.Table, pa.Table]:
    """Return the documents of a micro-batch, the earliest first, and what was rejected.

    Parameters
    ----------
    blobs : sequence of bytes
        Of ``blobs_of``, in any order.
    now : int
        The time of documents without one, in microseconds since 1970.
    """
    table = unpacked(blobs)
    table = table.append_column("moment", table["time"].fill_null(now))
    given = [name for name in table.column_names if name.startswith(_ORDER)]
    # At last by all there is, so that only documents that are equal in everything could change places.
    by = dict.fromkeys([*(given or ["moment"]), "id", "text", "title", "origin", "moment"])
    keys = [(name, "ascending") for name in by]
    table = table.take(pc.sort_indices(table, sort_keys=keys))
    aside = pc.is_valid(table["aside"])
    return table.filter(pc.invert(aside)), table.filter(aside)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _note(aside: list[str | None], mask: npt.NDArray[np.bool_], reason: str) -> None:
    for i in np.flatnonzero(mask).tolist():
        aside[i] = aside[i] or reason


def _mask(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _none(count: int) -> npt.NDArray[np.bool_]:
    return np.zeros(count, np.bool_)


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
    _remember_entered(chest, head, shard, [entered_table(each) for each in entered], moments)
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
        options: dict[str, Any] = {"statistics": given.statistics, "classifier": given.classifier}
        shard = Shard(given.recipe, given.length, best_only=given.everything, **options)
    if head["state"] is None:
        return shard
    for version in sorted(missed):
        data = chest.get(version)
        if data is not None:
            shard.enter_again(entered_of(unpacked([data[_PART.size :]])), head["state"]["ahead"])
    shard.take_up(head["state"])
    return shard


def _remember_entered(
    chest: Chest, head: dict[str, Any], shard: Shard, entered: Sequence[pa.Table], moments: Sequence[EventTime]
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
    found: Sequence[Findings], names: dict[int, str], all_alike: tuple[pa.Table, pa.Table, Sequence[EventTime]] | None
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


Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
#: The kind of a row that is no document.
SET_ASIDE = "set-aside"


class _Rows(NamedTuple):
    """The documents of a micro-batch, as all shards know them.

    Attributes
    ----------
    ids, origins, flags : list of str
        Of each one.
    reals, parts, oldest : int64[n]
        Microseconds since 1970; sub-indexes, and the least ones that are still in the window.
    confirms, some : bool[n]
        As in an ``EventTime``; whether it has features.
    """

    ids: list[str]
    origins: list[str]
    flags: list[str]
    reals: Integers
    parts: Integers
    oldest: Integers
    confirms: Booleans
    some: Booleans


#: By stream: the name of its last micro-batch here, and the numbers of duplicates by sub-index.
_LIVE_RESULTS: OrderedDict[str, tuple[str, dict[int, Integers]]] = OrderedDict()


def settle(work: Held, chest: Chest, answers: Sequence[Answer]) -> bytes:
    """Return the verdicts on a micro-batch as a blob, from what all shards say of it.

    Where documents are compared with originals only, shards hold duplicates as well; which ones are duplicates is known
    here, and remembered for as long as the window lasts.

    Parameters
    ----------
    work : Held
        What is done.
    chest : Chest
        What this step remembers.
    answers : sequence of Answer
        One of each shard, in any order.
    """
    given = work.value
    rows, aside = _rows_of(unpacked([each.documents for each in answers if each.documents]))
    head = head_of(chest, given) or {"mark": given.mark, "stream": uuid.uuid4().hex, "token": "", "next": 0}
    head = {"ahead": None, "parts": []} | head
    first = int(head["next"])
    told = [partners_of(unpacked([each.pairs])) for each in answers if each.pairs]
    places = np.concatenate([np.empty(0, np.int64), *(place for place, _ in told)])
    partners = joined([each for _, each in told])
    if given.everything:
        chosen = _best(places, partners)
    else:
        dropped = _dropped(chest, head)
        late = np.array([flag == "late" for flag in rows.flags], np.bool_)
        standing = _standing(places, partners.serials, first, rows.some & ~late, dropped)
        kept = np.flatnonzero(standing)
        chosen = kept[_best(places[kept], partners.among(kept))]
        repeats = np.zeros(len(rows.ids), np.bool_)
        repeats[places[chosen]] = True
        _remember_repeats(chest, head, rows, repeats & rows.some & ~late, first, dropped)
    head["next"] = first + len(rows.ids)
    put_head(chest, head)
    names: dict[int, str] = {}
    for table in (unpacked([each.names]) for each in answers if each.names):
        names |= dict(zip(table["serial"].to_pylist(), table["id"].to_pylist(), strict=True))
    return packed(_verdicts(rows, places[chosen], partners.among(chosen), names, first, aside, given.classifier))


def _rows_of(table: pa.Table) -> tuple[_Rows, pa.Table]:
    is_broken = table["aside"].is_valid()
    rows, aside = table.filter(pa.compute.invert(is_broken)), table.filter(is_broken)
    texts = (rows[name].to_pylist() for name in ("id", "origin", "flag"))
    numbers = (rows[name].to_numpy().astype(np.int64) for name in ("real", "part", "oldest"))
    bits = (rows[name].to_numpy().astype(np.bool_) for name in ("confirms", "some"))
    return _Rows(*texts, *numbers, *bits), aside


def _best(places: Integers, partners: Partners) -> Integers:
    """Return where the best partner of each document is: the most similar, then the first to arrive."""
    order = np.lexsort((partners.serials, -partners.similarity, places))
    begins = np.flatnonzero(np.diff(places[order], prepend=-1))
    found: Integers = order[begins]
    return found


def _standing(places: Integers, serials: Integers, first: int, may: Booleans, dropped: dict[int, Integers]) -> Booleans:
    """Return which pairs are with an original that the window holds.

    Parameters
    ----------
    places, serials : int64[k]
        Pairs: the document's place in the micro-batch, and the number of what it matches.
    first : int
        The number of the first document of the micro-batch.
    may : bool[n]
        Which documents are held if they are originals.
    dropped : dict of int to int64 array
        The numbers of duplicates that shards hold, from before.
    """
    before = serials < first
    standing = np.zeros(len(places), np.bool_)
    known = np.concatenate([np.empty(0, np.int64), *dropped.values()])
    standing[before] = ~np.isin(serials[before], known)
    matched = np.zeros(len(may), np.bool_)
    matched[places[standing]] = True
    held = may & ~matched
    inside = np.flatnonzero(~before)
    inside = inside[np.argsort(places[inside], kind="stable")]
    asking, begins = np.unique(places[inside], return_index=True)
    ends = np.searchsorted(places[inside], asking, side="right").tolist()
    # One after the other, for whether one is an original depends on those before it; others of this micro-batch are not
    # looked at.
    for place, begin, end in zip(asking.tolist(), begins.tolist(), ends, strict=True):
        if held[serials[inside[begin:end]] - first].any():
            held[place] = False
    standing[inside] = held[serials[inside] - first]
    return standing


def _dropped(chest: Chest, head: dict[str, Any]) -> dict[int, Integers]:
    """Return the numbers of duplicates that shards hold, by sub-index."""
    token, known = _LIVE_RESULTS.pop(head["stream"], ("", {}))
    if token and token == head["token"]:
        return known
    return {part: np.frombuffer(chest.get(part) or b"", np.int64) for part in head["parts"]}


def _remember_repeats(
    chest: Chest, head: dict[str, Any], rows: _Rows, repeats: Booleans, first: int, dropped: dict[int, Integers]
) -> None:
    """Note the duplicates of a micro-batch, and forget those that have left the window."""
    if not len(rows.ids):
        return
    serials = first + np.flatnonzero(repeats)
    fresh = {int(part): [serials[rows.parts[repeats] == part]] for part in np.unique(rows.parts[repeats])}
    # A duplicate that was ahead and is confirmed leaves later than it would have.
    for place in np.flatnonzero(rows.confirms | np.array([flag == "ahead" for flag in rows.flags], np.bool_)).tolist():
        if rows.confirms[place]:
            ahead = head["ahead"]
            if ahead is not None and any(ahead in each for each in (serials, *dropped.values())):
                fresh.setdefault(int(rows.parts[place]), []).append(np.array([ahead]))
            head["ahead"] = None
        else:
            head["ahead"] = first + place
    for part, more in fresh.items():
        dropped[part] = np.concatenate([dropped.get(part, np.empty(0, np.int64)), *more])
        chest.put(part, dropped[part].tobytes())
    for part in [part for part in dropped if part < rows.oldest[-1]]:
        chest.drop(part)
        del dropped[part]
    head["parts"], head["token"] = list(dropped), uuid.uuid4().hex
    _LIVE_RESULTS[head["stream"]] = head["token"], dropped
    while len(_LIVE_RESULTS) > WINDOWS:
        _LIVE_RESULTS.popitem(last=False)


def _verdicts(
    rows: _Rows,
    places: Integers,
    best: Partners,
    names: dict[int, str],
    first: int,
    aside: pa.Table,
    classifier: Classifier | None,
) -> pa.Table:
    """Return the verdicts as a table."""
    count, more = len(rows.ids), len(aside)
    kinds = np.full(count, "original", object)
    kinds[places] = np.where(best.same, "exact", "near")
    flags = [flag if some else "undecidable" for flag, some in zip(rows.flags, rows.some.tolist(), strict=True)]
    learned = np.flatnonzero(~np.isnan(best.g))
    evidence: npt.NDArray[Any] = np.full(len(places), "", object)
    if classifier is not None and len(learned):
        said = Learned(classifier, best.vectors[learned], np.arange(len(learned))).columns()["evidence"]
        evidence[learned] = said.to_pylist()
    g = [None if value != value else value for value in best.g.tolist()]
    o, a, b = best.counts.T
    columns = {
        "id": rows.ids + aside["id"].to_pylist(),
        "kind": [*kinds.tolist(), *[SET_ASIDE] * more],
        "of": _spread([names[serial] for serial in best.serials.tolist()], places, count + more),
        "similarity": _spread(best.similarity.tolist(), places, count + more),
        "time": pa.array([*rows.reals.tolist(), *[None] * more], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "flag": flags + aside["aside"].to_pylist(),
        "o": _spread(o.tolist(), places, count + more),
        "a": _spread(a.tolist(), places, count + more),
        "b": _spread(b.tolist(), places, count + more),
        "score": _spread(g, places, count + more),
        "evidence": _spread(evidence.tolist(), places, count + more, ""),
        "serial": [*range(first, first + count), *[None] * more],
        "origin": rows.origins + aside["origin"].to_pylist(),
    }
    return pa.table(columns, VERDICTS)


def _spread(values: Sequence[Any], places: Integers, count: int, filling: Any = None) -> list[Any]:
    """Return values at their places among so many, something else elsewhere."""
    whole = [filling] * count
    for place, value in zip(places.tolist(), values, strict=True):
        whole[place] = value
    return whole


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


_AGAINST = ("originals", "everything")
_PROTOBUF = (6, 33)
_STORE = "spark.sql.streaming.stateStore."
#: What a stream needs of its session, and with what reason: docs/spark-stream.md.
SETTINGS = {
    f"{_STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true",
}
_PARTITIONS = "spark.sql.shuffle.partitions"
#: What Spark takes for as many parts as it would cut any work into.
_THEIRS = "200"
_TIMES = (
    "timestamp",
    "date",
    "string",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "varchar",
)


def check_packages() -> None:
    """Refuse, before anything starts, to run without what operators with state need.

    Raises
    ------
    RecipeError
        In one sentence that says what to install.
    """
    for name, oldest in (("protobuf", _PROTOBUF), ("pandas", (2, 2))):
        wanted = ".".join(map(str, oldest))
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < oldest:
            found = f"there is {version}" if version else "it is not installed"
            raise RecipeError(
                f"streams on Spark need the package {name} {wanted} or newer, here and on all workers, and {found}: "
                f"pip install '{name}>={wanted}'"
            )


def work_for(
    recipe: AnyRecipe | None,
    classifier: Given | None,
    window: str | int | timedelta | None,
    window_by: str,
    against: str,
    sample: Sequence[str] | Statistics | None,
    shards: int,
    choices: dict[str, Any],
) -> Work:
    """Return what a stream does; the parameters are those of ``neardup.spark.stream``.

    Raises
    ------
    NeardupError
        If an option does not fit.
    """
    if classifier is not None and recipe == "default":
        recipe = None
    wanted, learned = chosen_recipe(recipe, classifier, choices)
    check_keys(wanted)
    length = Length.parse(window, window_by)
    if against not in _AGAINST:
        raise RecipeError(f"against {against!r} is not known; choose originals or everything")
    if shards < 1:
        raise RecipeError(f"shards {shards} is below 1; leave it out, or give one at least")
    statistics = statistics_for(wanted, sample)
    mark = {
        "recipe": wanted.fingerprint,
        "window": str(length),
        "window_by": window_by,
        "against": against,
        "shards": str(shards),
        "sample": _digest(statistics),
    }
    return Work(wanted, length, against == "everything", statistics, learned, mark)


def _digest(statistics: Statistics | None) -> str:
    if statistics is None:
        return ""
    told = f"{statistics.documents} {statistics.distinct} {statistics.heaviest}".encode()
    return hashlib.sha256(told + statistics.features.tobytes() + statistics.df.tobytes()).hexdigest()[:16]


def verdicts_of(
    frame: DataFrame,
    recipe: AnyRecipe | None = "default",
    *,
    classifier: Given | None = None,
    window: str | int | timedelta | None = "24h",
    window_by: str = "time",
    against: str = "originals",
    text_column: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    order: str | Sequence[str] | None = None,
    sample: Sequence[str] | Statistics | None = None,
    shards: int | None = None,
    choices: dict[str, Any] | None = None,
) -> DataFrame:
    """Return the verdicts on a stream of documents; see ``neardup.spark.stream``."""
    check_packages()
    check_stream(frame)
    spark = frame.sparkSession
    count = int(spark.sparkContext.defaultParallelism) if shards is None else shards
    work = work_for(recipe, classifier, window, window_by, against, sample, count, choices or {})
    first = work.recipe.changed(keep="first")
    found = documents_of(frame, first, text_column=text_column, id_column=id_column, order=order)
    time = _time_column(frame, time_column, work.length)
    title = _title_column(frame, title_column, work.classifier)
    columns = {"id": found.id, "text": found.text} | ({"time": time} if time else {})
    columns |= {"title": title} if title else {}
    by = [order] if isinstance(order, str) else list(order or [])
    columns |= {f"order_{number}": name for number, name in enumerate(by)}
    return judged(frame.select(*(column_of(frame, name).alias(new) for new, name in columns.items())), work)


def judged(rows: DataFrame, work: Work) -> DataFrame:
    """Return the verdicts on rows of ``arriving.blobs_of``, but for the column now."""
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    shards = int(work.mark["shards"])
    prepare(spark, shards)
    held = Sent(spark, work)
    numbers = [int(label) for label in labels(shards)]
    dated = rows.withColumn("now", F.unix_micros(F.current_timestamp()))
    blobs = dated.mapInArrow(blobs_of, BLOB_COLUMNS)
    asked = blobs.withColumn("shard", F.explode(F.array(*map(F.lit, numbers))))
    answers = asked.groupBy("shard").transformWithStateInPandas(ShardOperator(held, numbers), ANSWERS, "Append", "None")
    together = answers.withColumn("all", F.lit(0)).groupBy("all")
    settled = together.transformWithStateInPandas(SettlingOperator(held), SETTLED, "Append", "None")
    return settled.mapInArrow(_rows, VERDICT_COLUMNS)


def prepare(spark: SparkSession, shards: int) -> None:
    """Give a session what a stream needs, where its user has not chosen otherwise."""
    for name, value in SETTINGS.items():
        given = spark.conf.get(name, None)
        # Operators with state run on no other store than RocksDB, whoever provides it.
        if not given or (name.endswith("providerClass") and "RocksDB" not in given):
            spark.conf.set(name, value)
    if spark.conf.get(_PARTITIONS) == _THEIRS:
        spark.conf.set(_PARTITIONS, str(shards))


def check_stream(frame: DataFrame) -> None:
    """Refuse a data frame that is no stream.

    Raises
    ------
    InputError
        If it is none.
    """
    if not frame.isStreaming:
        raise InputError(
            "the data frame is no stream: read it with spark.readStream, or give it to neardup.spark.dedup"
        )


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("data").to_pylist():
            yield from unpacked([data]).to_batches(max_chunksize=1 << 14)


def _time_column(frame: DataFrame, named: str | None, length: Length) -> str:
    """Return the column of times; empty where documents are of the time of their micro-batch."""
    if named == "":
        return ""
    lowered = {name.lower(): name for name in reversed(frame.columns)}
    found = named or next((lowered[name] for name in TIME_NAMES if name in lowered), "")
    if not found:
        if length.unit in ("documents", "endless"):
            return ""
        raise InputError(
            f"the data frame has no column that is obviously the time, which the window {length} goes by; name it with "
            f"time_column, or give time_column='' for the time of arrival: {', '.join(frame.columns)}"
        )
    kinds = dict(frame.dtypes)
    if found not in kinds:
        raise InputError(
            f"the data frame has no column {found!r} for time_column; choose one of {', '.join(frame.columns)}"
        )
    if not kinds[found].startswith(_TIMES):
        raise InputError(
            f"column {found!r} is of type {kinds[found]}, which is no time; name another with time_column: dates, "
            f"timestamps, or {FORMS}"
        )
    return found


def _title_column(frame: DataFrame, named: str | None, classifier: Classifier | None) -> str:
    if classifier is None or not classifier.vector.needs_titles:
        if named:
            raise RecipeError(f"title_column {named!r} is for classifiers that compare titles; leave it out")
        return ""
    lowered = {name.lower(): name for name in reversed(frame.columns)}
    found = named or classifier.title_column or next((lowered[name] for name in TITLES if name in lowered), "")
    if found not in frame.columns:
        raise InputError(
            "title is one of the classifier's measures, and the data frame has no such column; name it with "
            f"title_column: {', '.join(frame.columns)}"
        )
    return str(found)
