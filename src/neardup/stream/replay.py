"""Replay of a dated corpus through the window, as if its documents arrived one after the other."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import EQUAL_TEXTS
from neardup.classifier.vector import TITLE_NAMES, find_measure_column
from neardup.documents import Batch, Corpus, Names, Writer, join_ids
from neardup.documents.arrays import as_bytes
from neardup.documents.records import lengths_of, value_texts
from neardup.errors import InputError, OutputError, RecipeError
from neardup.features.reading import Progress, gather_statistics
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.search.window import WindowLength
from neardup.stream.document import Document, Verdict
from neardup.stream.index import Index, IndexStatistics, latest_time
from neardup.text.bulk import text_buffers
from neardup.times import TIME_FORMS, can_hold_times, times_of, utc

Integers = npt.NDArray[np.int64]

#: The reason for the rejection of a document without a time.
NO_TIME = "no readable time"
#: Bytes of texts kept in memory until their turn; the rest waits in a file.
WAITING_BYTES = 128 << 20
_AT_ONCE = 1024


class Item(NamedTuple):
    """An arriving document."""

    id: str  #: its id, or row number
    text: str
    time: int  #: microseconds since 1970
    size: int  #: bytes of its text
    title: str = ""  #: its title, if a classifier compares titles


class Timeline(NamedTuple):
    """The result of the first pass: times and order of arrival."""

    #: int64[n]: row, time in microseconds (0 without one) and text bytes of each document that was read.
    rows: Integers
    times: Integers
    sizes: Integers
    ids: Any  #: their ids; None if rows serve as ids
    #: int64[m]: places of the documents in order of arrival; of equal times, the first in the corpus first.
    order: Integers
    undated: Integers  #: rows of the documents without a readable time
    titles: Any = None  #: their titles; None if not needed

    @property
    def text_bytes(self) -> int:
        """Bytes of the texts of all arriving documents."""
        return int(self.sizes[self.order].sum())


def read_timeline(corpus: Corpus, *, as_listed: bool, report: Progress) -> Timeline:
    """Read a corpus once and return when its documents arrive.

    ``as_listed``: whether they arrive in corpus order, whatever their times. Raises ``InputError`` if no document has a
    readable time.
    """
    column = corpus.order_column or ""
    ids: list[Any] = []
    empty = np.zeros(0, np.int64)
    parts: list[tuple[Any, ...]] = [(empty, empty, empty, np.zeros(0, np.bool_))]
    consumed = 0
    for batch in corpus.scan():
        if not can_hold_times(batch.order.type):
            raise InputError(
                f"column {column!r} is of type {batch.order.type}, which is not a time; name another with "
                f"--time-column: dates, timestamps, or {TIME_FORMS}"
            )
        found, has_time = times_of(batch.order)
        parts.append((batch.rows, found, lengths_of(as_bytes(batch.texts)), has_time))
        if batch.ids is not None:
            ids.append(batch.ids)
        consumed += batch.bytes_read
        report("read times", consumed, corpus.total_bytes)
    rows, times, sizes, readable = map(np.concatenate, zip(*parts, strict=True))
    names = Names(rows, join_ids(ids) if ids else None)
    corpus.check_unique_ids(names)
    if len(rows) and not readable.any():
        raise InputError(
            f"column {column!r} has no readable time in any document; name another with --time-column: dates, "
            f"timestamps, or {TIME_FORMS}"
        )
    order = np.flatnonzero(readable)
    if not as_listed:
        order = order[np.argsort(times[order], kind="stable")]
    return Timeline(rows, times, sizes, names.ids, order, rows[~readable])


def reject_undated(corpus: Corpus, timeline: Timeline) -> None:
    """Count and quarantine documents without a time, after the last pass, since each pass restarts the counts."""
    corpus.reject(timeline.undated, NO_TIME)


def read_items(corpus: Corpus, timeline: Timeline, *, max_memory: int = WAITING_BYTES) -> Iterator[Item]:
    """Yield the documents in order of arrival.

    If the corpus is in another order, texts wait in memory, beyond ``max_memory`` bytes in a temporary file. Raises
    ``InputError`` if the corpus has changed since the first pass, and ``OutputError`` if the file does not fit.
    """
    return (
        _in_file_order(corpus, timeline)
        if (np.diff(timeline.order) > 0).all()
        else _in_time_order(corpus, timeline, max_memory)
    )


def _in_file_order(corpus: Corpus, timeline: Timeline) -> Iterator[Item]:
    arrives = np.zeros(len(timeline.rows), np.bool_)
    arrives[timeline.order] = True
    for first, batch in _reread(corpus, timeline):
        for begin in range(0, len(batch.texts), _AT_ONCE):
            places = np.arange(first + begin, first + min(begin + _AT_ONCE, len(batch.texts)))
            items = _items(timeline, places, batch.texts.slice(begin, len(places)).to_pylist())
            yield from compress(items, arrives[places].tolist())


def _in_time_order(corpus: Corpus, timeline: Timeline, max_memory: int) -> Iterator[Item]:
    # A size of 0 would mean no limit.
    with tempfile.SpooledTemporaryFile(max(max_memory, 1), prefix="neardup-") as file:
        try:
            for _, batch in _reread(corpus, timeline):
                content, offsets = text_buffers(batch.texts)
                file.write(content[offsets[0] : offsets[-1]].data)
            file.flush()
        except OSError as error:
            raise OutputError(
                f"texts that are not in order of time go through a file in {tempfile.gettempdir()}, and they do not "
                f"fit ({error.strerror}); free some space there, set TMPDIR to a larger place, or sort the input by "
                "time"
            ) from None
        offsets = np.cumsum(timeline.sizes) - timeline.sizes
        for begin in range(0, len(timeline.order), _AT_ONCE):
            places = timeline.order[begin : begin + _AT_ONCE]
            texts = []
            for size, at in zip(timeline.sizes[places].tolist(), offsets[places].tolist(), strict=True):
                file.seek(at)
                texts.append(file.read(size).decode())
            yield from _items(timeline, places, texts)


def _reread(corpus: Corpus, timeline: Timeline) -> Iterator[tuple[int, Batch]]:
    """Read the corpus again; yield each batch with the place of its first document."""
    error = InputError("an input has changed between its two readings; run again while nobody writes to it")
    row_count = 0
    for batch in corpus.scan():
        places = slice(row_count, row_count + len(batch.texts))
        has_same_rows = np.array_equal(batch.rows, timeline.rows[places])
        if not (has_same_rows and np.array_equal(lengths_of(as_bytes(batch.texts)), timeline.sizes[places])):
            raise error
        yield row_count, batch
        row_count += len(batch.texts)
    if row_count != len(timeline.rows):
        raise error


def _items(timeline: Timeline, places: Integers, texts: list[str]) -> Iterator[Item]:
    ids = timeline.rows[places].tolist() if timeline.ids is None else timeline.ids.take(pa.array(places)).to_pylist()
    times, sizes = timeline.times[places].tolist(), timeline.sizes[places].tolist()
    titles = repeat("") if timeline.titles is None else timeline.titles.take(pa.array(places)).to_pylist()
    return map(Item, map(str, ids), texts, times, sizes, titles)


_SECOND = 1_000_000
#: Microseconds.
HOUR = 3600 * _SECOND


@dataclass(frozen=True, slots=True)
class Hour:
    """Figures of an hour of the flow in which documents arrived."""

    hour: int  #: hours since 1970 (UTC)
    #: Arrived documents, originals and duplicates among them.
    items: int
    originals: int
    duplicates: int
    #: Documents in the window at its end, and memory of the window in bytes.
    held: int
    bytes: int
    #: Processor time per item in microseconds.
    median: float
    p99: float

    @property
    def start(self) -> str:
        """Its beginning, as ISO 8601."""
        return format_hour(self.hour)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        fields = asdict(self)
        times = {"cpu_us_median": fields.pop("median"), "cpu_us_p99": fields.pop("p99")}
        return fields | {"hour": self.start} | times


@dataclass(slots=True)
class ReplayTotals:
    """Totals of a replay."""

    #: Arrived documents; exact and near duplicates among them.
    items: int = 0
    exact: int = 0
    near: int = 0
    known: int = 0  #: documents whose verdicts the store had already
    flags: Counter[str] = field(default_factory=Counter)  #: verdicts with each flag
    text_bytes: int = 0  #: bytes of the texts
    #: Times of the earliest and the latest document, in microseconds.
    earliest: int | None = None
    latest: int | None = None
    #: Nanoseconds spent on judging.
    cpu: int = 0
    wall: int = 0
    #: The fullest window at the end of an hour, and the most memory.
    max_window_documents: int = 0
    max_window_bytes: int = 0
    #: As in ``IndexStatistics``, including what a store had counted before.
    domain_counts: DomainCounts = field(default_factory=DomainCounts)

    @property
    def duplicates(self) -> int:
        """Number of duplicates."""
        return self.exact + self.near

    @property
    def share(self) -> float:
        """The share of duplicates: the paper's P."""
        return self.duplicates / max(self.items, 1)

    @property
    def check(self) -> float:
        """Seconds of elapsed time to judge an item: the paper's t_check."""
        return self.wall / 1e9 / max(self.items, 1)

    def balance(self, downstream: float) -> float:
        """Return saved time by time spent: P times the seconds downstream, divided by t_check."""
        return self.share * downstream / self.check if self.check else math.inf

    def as_dict(self, downstream: float) -> dict[str, Any]:
        """Return all figures for JSON."""
        return {
            "items": self.items,
            "originals": self.items - self.duplicates,
            "duplicates": self.duplicates,
            "exact": self.exact,
            "near": self.near,
            "flags": dict(sorted(self.flags.items())),
            "text_bytes": self.text_bytes,
            "first": None if self.earliest is None else format_time(self.earliest),
            "last": None if self.latest is None else format_time(self.latest),
            "most_held": self.max_window_documents,
            "most_bytes": self.max_window_bytes,
            "cpu_us_mean": self.cpu / 1e3 / max(self.items, 1),
            "wall_us_mean": self.wall / 1e3 / max(self.items, 1),
            "share": self.share,
            "downstream_s": downstream,
            "saved_by_spent": self.balance(downstream) if self.items else None,
            **({"known": self.known} if self.known else {}),
        } | ({"classifier": self.domain_counts._asdict()} if self.domain_counts.candidates else {})


class Replay:
    """One run of documents through an index; ``hours`` yields each hour when it ends.

    ``speed``: seconds of the flow per second; None does not wait. ``by_clock``: whether an item counts in the hour of
    the flow's clock instead of its own hour, for items in any order. ``on_verdicts`` receives items and their verdicts.
    """

    def __init__(
        self,
        index: Index,
        *,
        batch: int = 1,
        speed: float | None = None,
        by_clock: bool = False,
        on_verdicts: Callable[[Sequence[Item], Sequence[Verdict]], None] | None = None,
    ) -> None:
        self._index, self._batch, self._by_clock = index, batch, by_clock
        self._pace = None if speed is None else Pace(speed)
        self._on_verdicts = on_verdicts
        self.totals = ReplayTotals()  #: totals so far
        self._latest = 0

    def hours(self, items: Iterable[Item]) -> Iterator[Hour]:
        """Judge the documents and yield each hour when it has ended."""
        current: int | None = None
        tally = list[tuple[float, bool]]()
        for group in self._groups(items):
            hour = group[0].time // HOUR
            if not self._by_clock and current not in (None, hour):
                yield self._finish_hour(current, tally, self._index.statistics)
                tally = []
            if self._pace is not None:
                self._pace.wait_for(group[-1].time)
            before = self._index.statistics if self._by_clock else None
            verdicts, microseconds = self._judge(group)
            if before is not None:
                hour = self._hour_by_clock(group)
                if current not in (None, hour):
                    yield self._finish_hour(current, tally, before)
                    tally = []
            current = hour
            tally += [(microseconds, verdict.is_duplicate) for verdict in verdicts]
            if self._on_verdicts is not None:
                self._on_verdicts(group, verdicts)
        if current is not None:
            yield self._finish_hour(current, tally, self._index.statistics)

    def _groups(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        """Cut the flow into groups that are judged at once: of one hour and, with a speed, already due."""
        group: list[Item] = []
        for item in items:
            # Evaluated for every item, since the first one starts the clock.
            is_early = self._pace is not None and not self._pace.is_due(item.time)
            full = len(group) >= self._batch
            if group and (full or is_early or item.time // HOUR != group[0].time // HOUR):
                yield group
                group = []
            group.append(item)
        if group:
            yield group

    def _judge(self, group: list[Item]) -> tuple[list[Verdict], float]:
        documents = [Document(item.id, item.text, utc(item.time), title=item.title) for item in group]
        # Processor time of this thread only, since another thread reads ahead.
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        verdicts = self._index.add_many(documents)
        cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
        totals = self.totals
        totals.items += len(group)
        totals.known += sum(verdict.known for verdict in verdicts)
        totals.cpu += cpu
        totals.wall += wall
        totals.text_bytes += sum(item.size for item in group)
        times = [item.time for item in group]
        totals.earliest = min(times) if totals.earliest is None else min(totals.earliest, *times)
        totals.latest = max(times) if totals.latest is None else max(totals.latest, *times)
        for verdict in verdicts:
            if verdict.flag:
                totals.flags[verdict.flag] += 1
            if verdict.kind == "exact":
                totals.exact += 1
            elif verdict.is_duplicate:
                totals.near += 1
        return verdicts, cpu / 1e3 / len(group)

    def _hour_by_clock(self, group: list[Item]) -> int:
        """Return the hour of the flow's clock; without a clock, of the latest time so far."""
        clock = self._index.statistics.clock
        if clock is not None:
            return int(clock // 3600)
        self._latest = max([self._latest, *(item.time for item in group)])
        return self._latest // HOUR

    def _finish_hour(self, hour: int, tally: Sequence[tuple[float, bool]], now: IndexStatistics) -> Hour:
        """Return the figures of an hour, from the microseconds of each document and whether it repeats one."""
        self.totals.max_window_documents = max(self.totals.max_window_documents, now.window_documents)
        self.totals.max_window_bytes = max(self.totals.max_window_bytes, now.bytes)
        self.totals.domain_counts = now.domain_counts
        times, duplicates = zip(*tally, strict=True)
        median, p99 = np.percentile(times, [50, 99], method="inverted_cdf").tolist()
        items, duplicate_count = len(times), sum(duplicates)
        return Hour(hour, items, items - duplicate_count, duplicate_count, now.window_documents, now.bytes, median, p99)


class Pace:
    """Paces a replay: the time of the flow passes ``speed`` times as fast as real time.

    Raises ``RecipeError`` if the speed is not above 0, or not finite.
    """

    def __init__(self, speed: float) -> None:
        if not (math.isfinite(speed) and speed > 0):
            raise RecipeError(f"speed {speed:g} is not above 0; 1 is real time, 60 is one hour per minute")
        self._speed = speed
        self._start: tuple[float, int] | None = None

    def _seconds_until(self, moment: int) -> float:
        now = time.monotonic()
        if self._start is None:
            self._start = now, moment
        began, first = self._start
        return (moment - first) / _SECOND / self._speed - (now - began)

    def is_due(self, moment: int) -> bool:
        """Return whether a moment of the flow, in microseconds, has come."""
        return self._seconds_until(moment) <= 0

    def wait_for(self, moment: int) -> None:
        """Sleep until a moment of the flow has come; the first one comes at once."""
        while (remaining := self._seconds_until(moment)) > 0:
            time.sleep(min(remaining, 3600))


def format_time(moment: int) -> str:
    """Return a time in microseconds as ISO 8601, to the second."""
    return utc(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def format_hour(hour: int) -> str:
    """Return an hour since 1970 as ISO 8601."""
    return utc(hour * HOUR).isoformat(timespec="minutes").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Settings of the index of a replay."""

    recipe: Recipe  #: the recipe
    #: As ``Index`` takes them.
    window: str = "24h"
    window_by: str = "time"
    against: str = "originals"
    store: str | None = None  #: the file that verdicts go to
    classifier: Classifier | None = None  #: the classifier, if the recipe is the recipe of one

    def statistics(self, corpus: Corpus, report: Progress) -> Statistics | None:
        """Read the corpus for the statistics that the recipe needs; None if it needs none."""
        return gather_statistics(corpus, self.recipe, progress=report) if self.recipe.needs_statistics else None

    def index(self, statistics: Statistics | None = None) -> Index:
        """Return the index of the replay."""
        index = Index(
            None if self.classifier else self.recipe,
            classifier=self.classifier,
            window=self.window,
            window_by=self.window_by,
            against=self.against,
            # A replay that was killed, or is repeated, finds its documents in the store; another text is a mistake.
            versions="refuse",
            path=self.store,
            sample=statistics,
            now=latest_time,
            # The domain is checked at the end, before anything is written.
            force_domain=self.classifier is not None,
        )
        # The totals count them.
        index.reports_late = False
        return index

    def check_domain(self, totals: ReplayTotals) -> None:
        """Check that the judged pairs resemble the training pairs of the classifier.

        Raises ``RecipeError`` if too large a share of them is outside, or passed, and the classifier is not forced.
        """
        if self.classifier is not None:
            self.classifier.check_domain(totals.domain_counts)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings for the page and JSON."""
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
        """Length of the window in hours; None for windows of documents and endless ones."""
        length = WindowLength.parse(self.window, self.window_by)
        if length.value is None or length.unit == "documents":
            return None
        return float(length.value) if length.unit == "hour" else length.value / HOUR


#: Rows that are read to find columns.
_SAMPLED_ROWS = 1000


def title_column(corpus: Corpus, rows: Integers, classifier: Classifier) -> str:
    """Return the name of the title column of a corpus, found by some of its rows.

    Raises ``RecipeError`` if there is none.
    """
    names = corpus.take(rows[:_SAMPLED_ROWS]).column_names
    return find_measure_column(names, classifier.title_column, TITLE_NAMES, "title", "--title-column")


def titles_of(corpus: Corpus, rows: Integers, report: Progress) -> Any:
    """Return the titles of rows as an Arrow array of strings, empty without one.

    ``corpus``: the inputs, opened with the title column as order column.
    """
    consumed = 0
    # The empty title comes first.
    found, titles = [np.empty(0, np.int64)], [pa.array([""], pa.large_string())]
    for batch in corpus.scan():
        found.append(batch.rows)
        titles.append(pa.array(value_texts(batch.order), pa.large_string()))
        consumed += batch.bytes_read
        report("read titles", consumed, corpus.total_bytes)
    titled_rows = np.concatenate(found)
    places = np.searchsorted(titled_rows, rows)
    has_title = np.isin(rows, titled_rows)
    return pa.chunked_array(titles).take(pa.array(np.where(has_title, places + 1, 0)))


_COLUMNS = {
    "id": pa.large_string(),
    "kind": pa.large_string(),
    "of": pa.large_string(),
    "similarity": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
    "flag": pa.large_string(),
}
#: One row per document, in order of arrival. The similarity follows from ``shared``, ``size`` and ``size_of``,
#: the size of the document that it repeats, in features.
SCHEMA = pa.schema(_COLUMNS | {"shared": pa.int64(), "size": pa.int64(), "size_of": pa.int64()})
#: The same for a classifier: its score, and the measures with the largest contributions.
CLASSIFIER_SCHEMA = pa.schema(_COLUMNS | {"score": pa.float64(), "evidence": pa.large_string()})
_VERDICTS_AT_ONCE = 4096


class VerdictLog:
    """Writes each verdict to a table, if there is one, and records which documents are originals."""

    def __init__(self, writer: Writer | None, schema: pa.Schema = SCHEMA) -> None:
        self._writer, self._schema = writer, schema
        self._rows: list[tuple[Any, ...]] = []
        self._are_originals = bytearray()

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """Add the verdicts on the next documents."""
        self._are_originals += bytes(not verdict.is_duplicate for verdict in verdicts)
        if self._writer is not None:
            self._rows += [_row(verdict, learned=self._schema is CLASSIFIER_SCHEMA) for verdict in verdicts]
            if len(self._rows) >= _VERDICTS_AT_ONCE:
                self.flush()

    def flush(self) -> None:
        """Write the pending rows."""
        if self._writer is not None and self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            self._writer.write(pa.table(arrays, schema=self._schema))
            self._rows = []

    def originals(self, timeline: Timeline, raw_rows: int) -> npt.NDArray[np.bool_]:
        """Return whether each row of the corpus was judged an original: bool[rows]."""
        found = np.zeros(raw_rows, np.bool_)
        found[timeline.rows[timeline.order]] = np.frombuffer(self._are_originals, np.bool_)
        return found


def _row(verdict: Verdict, *, learned: bool) -> tuple[Any, ...]:
    details: tuple[Any, ...] = verdict.counts or (None, None, None)
    if learned:
        details = verdict.score, EQUAL_TEXTS if verdict.kind == "exact" else verdict.evidence
    moment = round(verdict.time * 1e6)
    return verdict.id, verdict.kind, verdict.of, verdict.similarity, moment, verdict.flag, *details
