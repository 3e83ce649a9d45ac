"""A dated corpus run through the window, as if its documents arrived one after the other."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress, repeat
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import EQUAL_TEXTS
from neardup.classifier.records import TITLE_NAMES, find_measure_column
from neardup.documents import Batch, Corpus, Names, Writer, join_ids
from neardup.documents.records import as_bytes, lengths_of, value_texts
from neardup.errors import InputError, OutputError, RecipeError
from neardup.features.reading import Progress, gather_statistics
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.search.window import WindowLength
from neardup.stream.document import Document, Verdict
from neardup.stream.index import Index, latest_time
from neardup.stream.register import IndexStatistics
from neardup.times import FORMS, can_hold_times, times_of, utc

Integers = npt.NDArray[np.int64]

#: Why a document without a time is rejected; counted under these words.
NO_TIME = "no readable time"
#: Bytes of texts that may wait in memory until it is their turn.
WAITING_BYTES = 128 << 20
_AT_ONCE = 1024


class Item(NamedTuple):
    """A document that arrives."""

    row: int  #: its row in the corpus
    #: Its own.
    id: str
    text: str
    time: int  #: microseconds since 1970
    size: int  #: bytes of its text
    title: str = ""  #: its title, where one is asked for


class Timeline(NamedTuple):
    """What the first pass leaves."""

    #: int64[n]: of each document that was read: its row, its time in microseconds (0 where it has none), its bytes of
    #: text.
    rows: Integers
    times: Integers
    sizes: Integers
    ids: Any  #: their ids; None where rows stand for them
    #: int64[m]: places of the documents to be handed out, in their order; of equal times the first in the corpus
    #: first.
    order: Integers
    #: Rows of those without a readable time, and of those with an id that an earlier one has.
    undated: Integers
    titles: Any = None  #: their titles; None where nothing asks for them

    @property
    def text_bytes(self) -> int:
        """Bytes of the texts that will be handed out."""
        return int(self.sizes[self.order].sum())


def read_timeline(corpus: Corpus, *, as_listed: bool, report: Progress) -> Timeline:
    """Read a corpus once and return when its documents arrive.

    ``as_listed``: Whether they arrive in the order of the corpus, whatever their times say. Raises ``InputError`` if
    no document has a readable time.
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
        consumed += batch.bytes_read
        report("read times", consumed, corpus.total_bytes)
    names = Names(_concatenate(rows), join_ids(ids) if ids else None)
    corpus.check_unique_ids(names)
    return _timeline(column, names, _concatenate(times), _concatenate(sizes), _concatenate(known) > 0, as_listed)


def _concatenate(parts: list[Any]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _timeline(
    column: str,
    names: Names,
    times: Integers,
    sizes: Integers,
    readable: npt.NDArray[np.bool_],
    as_listed: bool,
) -> Timeline:
    if len(names) and not readable.any():
        raise InputError(
            f"column {column!r} has no readable time in any document; name another with --time-column: dates, "
            f"timestamps, or {FORMS}"
        )
    chosen = np.flatnonzero(readable)
    order = chosen if as_listed else chosen[np.argsort(times[chosen], kind="stable")]
    return Timeline(names.rows, times, sizes, names.ids, order, names.rows[~readable])


def reject_undated(corpus: Corpus, timeline: Timeline) -> None:
    """Count and quarantine what has no time; after the last pass, for each pass counts anew."""
    corpus.reject(timeline.undated, NO_TIME)


def read_items(corpus: Corpus, timeline: Timeline, *, waiting: int = WAITING_BYTES) -> Iterator[Item]:
    """Yield the documents in their order.

    Texts that do not lie in it wait in memory, beyond ``waiting`` bytes in a file without a name. Raises
    ``InputError`` if the corpus has changed since it was surveyed, and ``OutputError`` if the file finds no room.
    """
    return (
        _in_file_order(corpus, timeline)
        if (np.diff(timeline.order) > 0).all()
        else _in_time_order(corpus, timeline, waiting)
    )


def _in_file_order(corpus: Corpus, timeline: Timeline) -> Iterator[Item]:
    wanted = np.zeros(len(timeline.rows), np.bool_)
    wanted[timeline.order] = True
    for first, batch in _reread(corpus, timeline):
        for begin in range(0, len(batch.texts), _AT_ONCE):
            places = np.arange(first + begin, first + min(begin + _AT_ONCE, len(batch.texts)))
            items = _items(timeline, places, batch.texts.slice(begin, len(places)).to_pylist())
            yield from compress(items, wanted[places].tolist())


def _in_time_order(corpus: Corpus, timeline: Timeline, waiting: int) -> Iterator[Item]:
    # Where nothing may wait in memory: a size of 0 would mean that everything may.
    with tempfile.SpooledTemporaryFile(max(waiting, 1), prefix="neardup-") as file:
        try:
            for _, batch in _reread(corpus, timeline):
                _append(file, batch)
            file.flush()
        except OSError as error:
            raise OutputError(
                f"texts that are not in order of time go through a file in {tempfile.gettempdir()}, and they do not "
                f"fit ({error.strerror}); free space there, set TMPDIR to a larger place, or sort the input by time"
            ) from None
        begins = np.cumsum(timeline.sizes) - timeline.sizes
        for begin in range(0, len(timeline.order), _AT_ONCE):
            places = timeline.order[begin : begin + _AT_ONCE]
            texts = []
            for size, at in zip(timeline.sizes[places].tolist(), begins[places].tolist(), strict=True):
                file.seek(at)
                texts.append(file.read(size).decode())
            yield from _items(timeline, places, texts)


def _append(file: IO[bytes], batch: Batch) -> None:
    _, offsets, content = batch.texts.buffers()
    if content is None or not len(batch.texts):
        return
    bounds = np.frombuffer(offsets, np.int64)[: len(batch.texts) + 1]
    file.write(memoryview(content)[int(bounds[0]) : int(bounds[-1])])


def _reread(corpus: Corpus, timeline: Timeline) -> Iterator[tuple[int, Batch]]:
    """Read the corpus once more; yield the place of each batch's first document with it."""
    done = 0
    for batch in corpus.scan():
        places = slice(done, done + len(batch.texts))
        same = np.array_equal(batch.rows, timeline.rows[places])
        if not (same and np.array_equal(lengths_of(as_bytes(batch.texts)), timeline.sizes[places])):
            raise _changed_error()
        yield done, batch
        done += len(batch.texts)
    if done != len(timeline.rows):
        raise _changed_error()


def _changed_error() -> InputError:
    return InputError("an input has changed between its two readings; run again when nobody writes to it")


def _items(timeline: Timeline, places: Integers, texts: list[str]) -> Iterator[Item]:
    rows = timeline.rows[places].tolist()
    ids = rows if timeline.ids is None else timeline.ids.take(pa.array(places)).to_pylist()
    times, sizes = timeline.times[places].tolist(), timeline.sizes[places].tolist()
    titles = repeat("") if timeline.titles is None else timeline.titles.take(pa.array(places)).to_pylist()
    return map(Item, rows, map(str, ids), texts, times, sizes, titles)


_SECOND = 1_000_000
_HOUR = 3600 * _SECOND


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of the flow in which documents arrived."""

    hour: int  #: hours since 1970 (UTC)
    #: How many arrived, and what they were.
    items: int
    originals: int
    duplicates: int
    #: Documents in the window at its end, and the memory of the window.
    held: int
    bytes: int
    #: Microseconds of processor time an item.
    median: float
    p99: float

    @property
    def begins(self) -> str:
        """When it begins, as ISO 8601."""
        return format_hour(self.hour)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        fields = asdict(self)
        times = {"cpu_us_median": fields.pop("median"), "cpu_us_p99": fields.pop("p99")}
        return fields | {"hour": self.begins} | times


@dataclass(slots=True)
class ReplayTotals:
    """What a whole replay came to."""

    #: How many arrived; how many of them repeated another one byte for byte, or nearly.
    items: int = 0
    exact: int = 0
    near: int = 0
    flags: Counter[str] = field(default_factory=Counter)  #: how many verdicts carry each flag
    text_bytes: int = 0  #: of the texts
    #: Times of the earliest and the latest, in microseconds.
    first: int | None = None
    last: int | None = None
    #: Nanoseconds spent on judging.
    cpu: int = 0
    wall: int = 0
    #: The fullest window at the end of an hour, and the most memory.
    most_held: int = 0
    most_bytes: int = 0
    #: As in ``IndexStatistics``, with what a store had seen before.
    asked: DomainCounts = field(default_factory=DomainCounts)

    @property
    def duplicates(self) -> int:
        """How many were no originals."""
        return self.exact + self.near

    @property
    def share(self) -> float:
        """The share of duplicates: the paper's P."""
        return self.duplicates / max(self.items, 1)

    @property
    def check(self) -> float:
        """Seconds on the wall that judging an item took: the paper's t_check."""
        return self.wall / 1e9 / max(self.items, 1)

    def balance(self, downstream: float) -> float:
        """Return how many times what is saved outweighs the check: P times the seconds downstream, by t_check."""
        return self.share * downstream / self.check if self.check else math.inf

    def as_dict(self, downstream: float) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return {
            "items": self.items,
            "originals": self.items - self.duplicates,
            "duplicates": self.duplicates,
            "exact": self.exact,
            "near": self.near,
            "flags": dict(sorted(self.flags.items())),
            "text_bytes": self.text_bytes,
            "first": None if self.first is None else format_time(self.first),
            "last": None if self.last is None else format_time(self.last),
            "most_held": self.most_held,
            "most_bytes": self.most_bytes,
            "cpu_us_mean": self.cpu / 1e3 / max(self.items, 1),
            "wall_us_mean": self.wall / 1e3 / max(self.items, 1),
            "share": self.share,
            "downstream_s": downstream,
            "saved_by_spent": self.balance(downstream) if self.items else None,
        } | ({"classifier": self.asked._asdict()} if self.asked.candidates else {})


class Replay:
    """One run of documents through an index; iterate over it for the hours as they end.

    ``speed``: How many seconds of the flow pass in one; None waits for nothing. ``by_clock``: Whether an item belongs
    to the hour that the flow's clock shows when it is judged, and not to its own: where items may come in any order.
    """

    def __init__(
        self,
        index: Index,
        *,
        batch: int = 1,
        speed: float | None = None,
        by_clock: bool = False,
        see: Callable[[Sequence[Item], Sequence[Verdict]], None] | None = None,
    ) -> None:
        self._index, self._batch, self._by_clock = index, batch, by_clock
        self._pace = None if speed is None else Pace(speed)
        self._see = see
        self.totals = ReplayTotals()  #: of all that was judged so far
        self._latest = 0

    def hours(self, items: Iterable[Item]) -> Iterator[Hour]:
        """Judge the documents and yield each hour when it has ended."""
        current: int | None = None
        tally = _HourTally()
        for group in self._groups(items):
            hour = group[0].time // _HOUR
            if not self._by_clock and current not in (None, hour):
                yield self._finish_hour(current, tally, self._index.statistics)
                tally = _HourTally()
            if self._pace is not None:
                self._pace.wait_for(group[-1].time)
            before = self._index.statistics if self._by_clock else None
            verdicts, each = self._judge(group)
            if before is not None:
                hour = self._hour_by_clock(group)
                if current not in (None, hour):
                    yield self._finish_hour(current, tally, before)
                    tally = _HourTally()
            current = hour
            tally.take(verdicts, each)
            if self._see is not None:
                self._see(group, verdicts)
        if current is not None:
            yield self._finish_hour(current, tally, self._index.statistics)

    def _groups(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        """Cut the flow into what is judged at once: of one hour, and only what is due where time is kept."""
        group: list[Item] = []
        for item in items:
            # Asked of every item, for the first one starts the clock.
            later = self._pace is not None and not self._pace.is_due(item.time)
            full = len(group) >= self._batch
            if group and (full or later or item.time // _HOUR != group[0].time // _HOUR):
                yield group
                group = []
            group.append(item)
        if group:
            yield group

    def _judge(self, group: list[Item]) -> tuple[list[Verdict], float]:
        """Return the verdicts, and the microseconds of processor time that each took."""
        documents = [Document(item.id, item.text, utc(item.time), title=item.title) for item in group]
        # Of this thread alone: the thread that reads ahead works meanwhile.
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        verdicts = [self._index.add(documents[0])] if len(group) == 1 else self._index.add_many(documents)
        cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
        totals = self.totals
        totals.items += len(group)
        totals.cpu += cpu
        totals.wall += wall
        totals.text_bytes += sum(item.size for item in group)
        times = [item.time for item in group]
        totals.first = min(times) if totals.first is None else min(totals.first, *times)
        totals.last = max(times) if totals.last is None else max(totals.last, *times)
        for verdict in verdicts:
            if verdict.flag:
                totals.flags[verdict.flag] += 1
            if verdict.kind == "exact":
                totals.exact += 1
            elif verdict.is_duplicate:
                totals.near += 1
        return verdicts, cpu / 1e3 / len(group)

    def _hour_by_clock(self, group: list[Item]) -> int:
        """Return the hour of the flow's clock; windows that have none go by the latest time so far."""
        clock = self._index.statistics.clock
        if clock is not None:
            return int(clock // 3600)
        self._latest = max([self._latest, *(item.time for item in group)])
        return self._latest // _HOUR

    def _finish_hour(self, hour: int, tally: _HourTally, now: IndexStatistics) -> Hour:
        self.totals.most_held = max(self.totals.most_held, now.held)
        self.totals.most_bytes = max(self.totals.most_bytes, now.bytes)
        self.totals.asked = now.asked
        median, p99 = np.percentile(tally.times, [50, 99], method="inverted_cdf").tolist()
        duplicates = sum(tally.duplicates)
        items = len(tally.times)
        return Hour(hour, items, items - duplicates, duplicates, now.held, now.bytes, median, p99)


class _HourTally:
    """What an hour has seen so far."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.duplicates: list[bool] = []

    def take(self, verdicts: Sequence[Verdict], each: float) -> None:
        self.times += [each] * len(verdicts)
        self.duplicates += [verdict.is_duplicate for verdict in verdicts]


class Pace:
    """Lets the time of the flow pass so many times as fast as that on the wall.

    Raises ``RecipeError`` if it is not above 0, or not finite.
    """

    def __init__(self, speed: float) -> None:
        if not (math.isfinite(speed) and speed > 0):
            raise RecipeError(f"speed {speed:g} is not above 0; 1 is as fast as it was, 60 an hour a minute")
        self._speed = speed
        self._begin: tuple[float, int] | None = None

    def _seconds_until(self, moment: int) -> float:
        now = time.monotonic()
        if self._begin is None:
            self._begin = now, moment
        began, first = self._begin
        return (moment - first) / _SECOND / self._speed - (now - began)

    def is_due(self, moment: int) -> bool:
        """Return whether a moment of the flow, in microseconds, has come."""
        return self._seconds_until(moment) <= 0

    def wait_for(self, moment: int) -> None:
        """Sleep until a moment of the flow has come; the first one comes at once."""
        while (rest := self._seconds_until(moment)) > 0:
            time.sleep(min(rest, 3600))


def format_time(moment: int) -> str:
    """Return a time in microseconds as ISO 8601, to the second."""
    return utc(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def format_hour(hour: int) -> str:
    """Return an hour since 1970 as ISO 8601."""
    return utc(hour * _HOUR).isoformat(timespec="minutes").replace("+00:00", "Z")


_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What an index is made with."""

    recipe: Recipe  #: what makes a match
    #: As ``Index`` takes them.
    window: str = "24h"
    window_by: str = "time"
    against: str = "originals"
    store: str | None = None  #: the file that verdicts go to
    classifier: Classifier | None = None  #: where the recipe is that of a classifier

    def statistics(self, corpus: Corpus, report: Progress) -> Statistics | None:
        """Return what the recipe takes of the collection, None where it needs nothing; the corpus is read for it."""
        return gather_statistics(corpus, self.recipe, progress=report) if self.recipe.needs_statistics else None

    def index(self, statistics: Statistics | None = None) -> Index:
        """Return the index of the replay."""
        return Index(
            None if self.classifier else self.recipe,
            classifier=self.classifier,
            window=self.window,
            window_by=self.window_by,
            against=self.against,
            path=self.store,
            sample=statistics,
            now=latest_time,
            # It stops at its end, before anything is written.
            force_domain=self.classifier is not None,
        )

    def check_domain(self, totals: ReplayTotals) -> None:
        """Refuse what a classifier judged that is not at home.

        Raises ``RecipeError`` if too large a share of the pairs that it judged is outside, or passed, and it is not
        forced.
        """
        if self.classifier is not None:
            self.classifier.check_domain(totals.asked)

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
        length = WindowLength.parse(self.window, self.window_by)
        if length.value is None or length.unit == "documents":
            return None
        return float(length.value) if length.unit == "hour" else length.value / _HOUR


#: Rows in which columns are looked for.
_SAMPLED_ROWS = 1000


def title_column(corpus: Corpus, rows: Integers, classifier: Classifier) -> str:
    """Return the column of a corpus that holds titles, by some of its rows.

    Raises ``RecipeError`` if there is none.
    """
    names = corpus.take(rows[:_SAMPLED_ROWS]).column_names
    return find_measure_column(names, classifier.title_column, TITLE_NAMES, "title", "--title-column")


def titles_of(corpus: Corpus, rows: Integers, report: Progress) -> Any:
    """Return the titles of rows as an Arrow array of strings, empty where there is none.

    ``corpus``: The inputs, opened with the column of titles as order column.
    """
    consumed = 0
    # The empty title lies in front.
    found, titles = [np.empty(0, np.int64)], [pa.array([""], pa.large_string())]
    for batch in corpus.scan():
        found.append(batch.rows)
        titles.append(pa.array(value_texts(batch.order), pa.large_string()))
        consumed += batch.bytes_read
        report("read titles", consumed, corpus.total_bytes)
    known = np.concatenate(found)
    places = np.searchsorted(known, rows)
    there = np.isin(rows, known)
    return pa.chunked_array(titles).take(pa.array(np.where(there, places + 1, 0)))


_COLUMNS = {
    "id": pa.large_string(),
    "kind": pa.large_string(),
    "of": pa.large_string(),
    "similarity": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
    "flag": pa.large_string(),
}
#: A row for each document, in the order of arrival. ``shared`` features of ``size`` and of ``size_of``, the size of the
#: document that it repeats, make the similarity.
SCHEMA = pa.schema(_COLUMNS | {"shared": pa.int64(), "size": pa.int64(), "size_of": pa.int64()})
#: The same for a classifier: what it makes of the two, and the measures that pushed it most.
CLASSIFIER_SCHEMA = pa.schema(_COLUMNS | {"score": pa.float64(), "evidence": pa.large_string()})
_VERDICTS_AT_ONCE = 4096


class VerdictLog:
    """Writes down each verdict, and remembers which rows of the corpus are originals."""

    def __init__(self, writer: Writer | None, schema: pa.Schema = SCHEMA) -> None:
        self._writer, self._schema = writer, schema
        self._rows: list[tuple[Any, ...]] = []
        self._originals: list[npt.NDArray[np.int64]] = []
        self._recent: list[int] = []

    def see(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> None:
        """Take the verdicts of some documents."""
        for item, verdict in zip(items, verdicts, strict=True):
            if not verdict.is_duplicate:
                self._recent.append(item.row)
            if self._writer is not None:
                self._rows.append(_row(verdict, learned=self._schema is CLASSIFIER_SCHEMA))
        if len(self._rows) >= _VERDICTS_AT_ONCE or len(self._recent) >= _VERDICTS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written yet."""
        if self._writer is not None and self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            self._writer.write(pa.table(arrays, schema=self._schema))
        self._originals.append(np.array(self._recent, np.int64))
        self._rows, self._recent = [], []

    def originals(self, raw_rows: int) -> npt.NDArray[np.bool_]:
        """Return for each row of the corpus whether it was judged an original."""
        self.flush()
        found = np.zeros(raw_rows, np.bool_)
        found[np.concatenate(self._originals)] = True
        return found


def _row(verdict: Verdict, *, learned: bool) -> tuple[Any, ...]:
    behind: tuple[Any, ...] = verdict.counts or (None, None, None)
    if learned:
        behind = verdict.score, EQUAL_TEXTS if verdict.kind == "exact" else verdict.evidence
    moment = round(verdict.time * 1e6)
    return verdict.id, verdict.kind, verdict.of, verdict.similarity, moment, verdict.flag, *behind
