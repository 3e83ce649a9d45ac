"""Metrics of the service: totals since its start for Prometheus, and counts per minute for its page."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter as Counts
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from neardup.service.indexes import Indexes
from neardup.stream.document import Verdict

#: Upper bounds of the latency histogram, in seconds.
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
#: The number of minutes kept for the page.
_KEPT_MINUTES = 24 * 60


@dataclass(slots=True)
class Minute:
    """Counts of one minute."""

    begin: int  #: its start, in seconds since 1970
    #: The number of documents entered, by verdict.
    originals: int = 0
    duplicates: int = 0
    #: The number of requests that entered documents, by bucket; the last is for those above all bounds.
    latencies: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))

    def quantile_ms(self, share: float) -> float | None:
        """Return the upper bound of the bucket that holds a quantile of the latencies, in ms; None without requests."""
        total, cumulative = sum(self.latencies), 0
        for bound, count in zip((*_BUCKETS, _BUCKETS[-1]), self.latencies, strict=True):
            cumulative += count
            if total and cumulative >= share * total:
                return 1000 * bound
        return None


class Metrics:
    """The metrics of a service; ``waiting_count`` returns the number of requests that are being answered."""

    def __init__(self, indexes: Indexes, waiting_count: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        verdicts = Counter(
            "neardup_verdicts", "Documents entered, by verdict.", ["index", "kind"], registry=self._registry
        )
        flags = Counter(
            "neardup_flags", "Documents entered with a flag, such as late.", ["index", "flag"], registry=self._registry
        )
        requests = Histogram(
            "neardup_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["call", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        # Finding a labelled metric is slow, and each is needed thousands of times a second.
        self._verdicts, self._flags, self._requests = (
            cache(verdicts.labels),
            cache(flags.labels),
            cache(requests.labels),
        )
        self._registry.register(_Gauges(indexes, waiting_count))
        self._lock = threading.Lock()
        self._minutes: deque[Minute] = deque(maxlen=_KEPT_MINUTES)

    def count_verdicts(self, index: str, verdicts: Iterable[Verdict]) -> None:
        """Count the verdicts on documents that were entered."""
        entered = list(verdicts)
        kinds = Counts(verdict.kind for verdict in entered)
        for kind, count in kinds.items():
            self._verdicts(index, kind).inc(count)
        for flag, count in Counts(verdict.flag for verdict in entered if verdict.flag).items():
            self._flags(index, flag).inc(count)
        with self._lock:
            minute = self._current_minute()
            minute.originals += kinds["original"]
            minute.duplicates += kinds.total() - kinds["original"]

    def count_request(self, call: str, status: int, seconds: float) -> None:
        """Count a request; ``call`` is its method and the path template."""
        self._requests(call, str(status)).observe(seconds)
        if call == "POST /v1/indexes/{name}/documents" and status < 400:
            with self._lock:
                self._current_minute().latencies[bisect_left(_BUCKETS, seconds)] += 1

    def _current_minute(self) -> Minute:
        begin = int(time.time()) // 60 * 60
        if not self._minutes or self._minutes[-1].begin != begin:
            self._minutes.append(Minute(begin))
        return self._minutes[-1]

    @property
    def minutes(self) -> list[Minute]:
        """The minutes of the last day that have counts."""
        with self._lock:
            since = time.time() - 60 * _KEPT_MINUTES
            return [minute for minute in self._minutes if minute.begin >= since]

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Gauges(Collector):
    """Values that are read when Prometheus asks for them."""

    def __init__(self, indexes: Indexes, waiting_count: Callable[[], int]) -> None:
        self._indexes, self._waiting_count = indexes, waiting_count

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the gauges and the counter."""
        yield GaugeMetricFamily("neardup_waiting", "Requests that are being answered.", value=self._waiting_count())
        held = GaugeMetricFamily("neardup_held", "Documents that new ones are compared with.", labels=["index"])
        size = GaugeMetricFamily("neardup_store_bytes", "Size of the store, its log with it.", labels=["index"])
        memory = GaugeMetricFamily("neardup_window_bytes", "Memory of the window's tables.", labels=["index"])
        failed = CounterMetricFamily(
            "neardup_failed_pages", "Pages without their main content: all of their text is compared.", labels=["index"]
        )
        for named in self._indexes:
            failed.add_metric([named.name], named.index.failed_pages)
            held.add_metric([named.name], len(named.index))
            size.add_metric([named.name], named.store_bytes())
            memory.add_metric([named.name], named.index.statistics.bytes)
        yield from (held, size, memory, failed)
