"""The documents of a corpus one by one in order of time, though the corpus may hold them in another.

The first pass keeps the time of each document and forgets its text. The second hands the texts out: straight from the
reader where they come in order, or nearly so, and else from a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import REPEATED_ID, Batch, Corpus, join_ids, repeated_ids
from neardup.documents.values import as_bytes, lengths_of
from neardup.errors import InputError, OutputError
from neardup.times import FORMS, can_hold_times, times_of

Integers = npt.NDArray[np.int64]
Report = Callable[[str, int, int | None], None]

#: Why a document without a time is set aside; counted under these words.
NO_TIME = "no readable time"
#: Bytes of texts that may wait in memory until it is their turn.
WAITING = 128 << 20
_AT_ONCE = 1024


class Item(NamedTuple):
    """A document that arrives.

    Attributes
    ----------
    row : int
        Its row in the corpus.
    id, text : str
        Its own.
    time : int
        Microseconds since 1970.
    size : int
        Bytes of its text.
    title : str
        Its title, where one is asked for.
    """

    row: int
    id: str
    text: str
    time: int
    size: int
    title: str = ""


class Timeline(NamedTuple):
    """What the first pass leaves.

    Attributes
    ----------
    rows, times, sizes : int64[n]
        Of each document that was read: its row, its time in microseconds (0 where it has none), its bytes of text.
    ids : pyarrow.Array or None
        Their ids; None where rows stand for them.
    order : int64[m]
        Places of the documents to be handed out, in their order; of equal times the first in the corpus first.
    undated, repeated : int64
        Rows of those without a readable time, and of those with an id that an earlier one has.
    titles : pyarrow.Array or None
        Their titles; None where nothing asks for them.
    """

    rows: Integers
    times: Integers
    sizes: Integers
    ids: Any
    order: Integers
    undated: Integers
    repeated: Integers
    titles: Any = None

    @property
    def text_bytes(self) -> int:
        """Bytes of the texts that will be handed out."""
        return int(self.sizes[self.order].sum())

    @property
    def most_waiting(self) -> int:
        """Bytes of the texts that wait at most, if the corpus is read once from its beginning to its end."""
        sizes = self.sizes[self.order]
        # Reading as far as furthest[i] lets the first i + 1 go; whatever else was read by then waits.
        furthest = np.maximum.accumulate(self.order) if len(self.order) else self.order
        read = np.zeros(len(self.sizes), np.int64)
        read[self.order] = sizes
        gone = np.cumsum(sizes)
        # A document waits longest just before the next one that may go is read.
        return int(np.max(np.cumsum(read)[furthest] - gone + sizes, initial=0))


def survey(corpus: Corpus, *, as_listed: bool, report: Report) -> Timeline:
    """Read a corpus once and return when its documents arrive.

    Parameters
    ----------
    corpus : Corpus
        Opened with the column of times as its order column.
    as_listed : bool
        Whether they arrive in the order of the corpus, whatever their times say.
    report : callable
        Told stage, bytes read and all bytes.

    Raises
    ------
    InputError
        If no document has a readable time.
    """
    column = corpus.order_column or ""
    rows, times, sizes, known, ids = ([] for _ in range(5))  # type: list[Any], list[Any], list[Any], list[Any], list[Any]
    consumed = 0
    for batch in corpus.scan():
        if not can_hold_times(batch.order.type):
            raise InputError(
                f"column {column!r} is of type {batch.order.type}, which is no time; name another with --time-column: "
                f"dates, timestamps, or {FORMS}"
            )
        found, readable = times_of(batch.order)
        rows.append(batch.rows)
        times.append(found)
        known.append(readable)
        sizes.append(lengths_of(as_bytes(batch.texts)))
        if batch.ids is not None:
            ids.append(batch.ids)
        consumed += batch.consumed
        report("read times", consumed, corpus.total_bytes)
    joined = join_ids(ids) if ids else None
    return _timeline(column, _joined(rows), _joined(times), _joined(sizes), _joined(known) > 0, joined, as_listed)


def _joined(parts: list[Any]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _timeline(
    column: str,
    rows: Integers,
    times: Integers,
    sizes: Integers,
    readable: npt.NDArray[np.bool_],
    ids: Any,
    as_listed: bool,
) -> Timeline:
    if len(rows) and not readable.any():
        raise InputError(
            f"column {column!r} has no readable time in any document; name another with --time-column: dates, "
            f"timestamps, or {FORMS}"
        )
    first = np.ones(len(rows), np.bool_)
    if ids is not None:
        first[repeated_ids(ids)] = False
    chosen = np.flatnonzero(readable & first)
    order = chosen if as_listed else chosen[np.argsort(times[chosen], kind="stable")]
    return Timeline(rows, times, sizes, ids, order, rows[first & ~readable], rows[~first])


def set_aside(corpus: Corpus, timeline: Timeline) -> None:
    """Count and quarantine what has no time or no id of its own; after the last pass, for each pass counts anew."""
    corpus.set_aside_rows(timeline.undated, NO_TIME)
    corpus.set_aside_rows(timeline.repeated, REPEATED_ID)


def arrivals(corpus: Corpus, timeline: Timeline, *, waiting: int = WAITING) -> Iterator[Item]:
    """Yield the documents in their order.

    Parameters
    ----------
    corpus : Corpus
        The one that was surveyed.
    timeline : Timeline
        What `survey` returned.
    waiting : int
        Bytes of texts that may wait in memory; if more must, all texts go through a temporary file.

    Raises
    ------
    InputError
        If the corpus has changed since it was surveyed.
    OutputError
        If the temporary file finds no room.
    """
    if timeline.most_waiting <= waiting:
        return _from_reader(corpus, timeline)
    return _from_file(corpus, timeline)


def _from_reader(corpus: Corpus, timeline: Timeline) -> Iterator[Item]:
    """Yield documents as they are read; those that come too early wait."""
    turn = np.full(len(timeline.rows), -1, np.int64)
    turn[timeline.order] = np.arange(len(timeline.order))
    early: dict[int, Item] = {}
    due = 0
    for first, batch in _again(corpus, timeline):
        for begin in range(0, len(batch.texts), _AT_ONCE):
            places = np.arange(first + begin, first + min(begin + _AT_ONCE, len(batch.texts)))
            texts = batch.texts.slice(begin, len(places)).to_pylist()
            for item, at in zip(_items(timeline, places, texts), turn[places].tolist(), strict=True):
                if at == due:
                    yield item
                    due += 1
                    while early and due in early:
                        yield early.pop(due)
                        due += 1
                elif at >= 0:
                    early[at] = item


def _from_file(corpus: Corpus, timeline: Timeline) -> Iterator[Item]:
    """Write all texts to a file without a name, and read them from it in their order."""
    with tempfile.TemporaryFile(prefix="neardup-") as file:
        try:
            for _, batch in _again(corpus, timeline):
                _append(file, batch)
            file.flush()
        except OSError as error:
            raise OutputError(
                f"texts that are not in order of time go through a file in {tempfile.gettempdir()}, and they do not "
                f"fit ({error.strerror}); free space there, set TMPDIR to a larger place, or sort the input by time"
            ) from None
        ends = np.cumsum(timeline.sizes)
        begins = ends - timeline.sizes
        for begin in range(0, len(timeline.order), _AT_ONCE):
            places = timeline.order[begin : begin + _AT_ONCE]
            spans = zip(timeline.sizes[places].tolist(), begins[places].tolist(), strict=True)
            texts = [os.pread(file.fileno(), size, at).decode() for size, at in spans]
            yield from _items(timeline, places, texts)


def _append(file: IO[bytes], batch: Batch) -> None:
    _, offsets, content = batch.texts.buffers()
    if content is None or not len(batch.texts):
        return
    bounds = np.frombuffer(offsets, np.int64)[: len(batch.texts) + 1]
    file.write(memoryview(content)[int(bounds[0]) : int(bounds[-1])])


def _again(corpus: Corpus, timeline: Timeline) -> Iterator[tuple[int, Batch]]:
    """Read the corpus once more; yield the place of each batch's first document with it."""
    done = 0
    for batch in corpus.scan():
        places = slice(done, done + len(batch.texts))
        same = np.array_equal(batch.rows, timeline.rows[places])
        if not (same and np.array_equal(lengths_of(as_bytes(batch.texts)), timeline.sizes[places])):
            raise _changed()
        yield done, batch
        done += len(batch.texts)
    if done != len(timeline.rows):
        raise _changed()


def _changed() -> InputError:
    return InputError("an input has changed between its two readings; run again when nobody writes to it")


def _items(timeline: Timeline, places: Integers, texts: list[str]) -> Iterator[Item]:
    rows = timeline.rows[places].tolist()
    ids = rows if timeline.ids is None else timeline.ids.take(pa.array(places)).to_pylist()
    times, sizes = timeline.times[places].tolist(), timeline.sizes[places].tolist()
    titles = repeat("") if timeline.titles is None else timeline.titles.take(pa.array(places)).to_pylist()
    return map(Item, rows, map(str, ids), texts, times, sizes, titles)
