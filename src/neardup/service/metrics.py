"""What the service counts: for Prometheus since its start, and by minute for its page."""

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
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from neardup.service.indexes import Indexes
from neardup.stream.document import Verdict

#: Seconds; the boxes of the histogram of latencies.
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
#: Minutes that are kept for the page.
_MINUTES = 24 * 60


@dataclass(slots=True)
class Minute:
    """What a minute had.

    Attributes
    ----------
    begin : int
        Seconds since 1970.
    originals, duplicates : int
        Documents that were entered.
    latencies : list of int
        Of the requests that entered documents, how many were in each box of ``_BUCKETS``, and beyond.
    """

    begin: int
    originals: int = 0
    duplicates: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))

    def quantile_ms(self, share: float) -> float | None:
        """Return the upper end of the box in which a share of the requests is, in ms; None without requests."""
        total, seen = sum(self.latencies), 0
        for bound, count in zip((*_BUCKETS, _BUCKETS[-1]), self.latencies, strict=True):
            seen += count
            if total and seen >= share * total:
                return 1000 * bound
        return None


class Metrics:
    """Counts of a service.

    Parameters
    ----------
    indexes : Indexes
        Its indexes.
    waiting : callable
        How many requests are being answered.
    """

    def __init__(self, indexes: Indexes, waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        verdicts = Counter(
            "neardup_verdicts", "Documents entered, by verdict.", ["index", "kind"], registry=self._registry
        )
        requests = Histogram(
            "neardup_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["call", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        # Each is asked for thousands of times a second.
        self._verdicts, self._requests = cache(verdicts.labels), cache(requests.labels)
        self._registry.register(_Gauges(indexes, waiting))
        self._lock = threading.Lock()
        self._minutes: deque[Minute] = deque(maxlen=_MINUTES)

    def entered(self, index: str, verdicts: Iterable[Verdict]) -> None:
        """Count documents that were entered."""
        kinds = Counts(verdict.kind for verdict in verdicts)
        for kind, count in kinds.items():
            self._verdicts(index, kind).inc(count)
        with self._lock:
            minute = self._minute()
            minute.originals += kinds["original"]
            minute.duplicates += kinds.total() - kinds["original"]

    def answered(self, call: str, status: int, seconds: float) -> None:
        """Count a request; call: its method, and its path without names."""
        self._requests(call, str(status)).observe(seconds)
        if call == "POST /v1/indexes/{name}/documents" and status < 400:
            with self._lock:
                self._minute().latencies[bisect_left(_BUCKETS, seconds)] += 1

    def _minute(self) -> Minute:
        begin = int(time.time()) // 60 * 60
        if not self._minutes or self._minutes[-1].begin != begin:
            self._minutes.append(Minute(begin))
        return self._minutes[-1]

    @property
    def minutes(self) -> list[Minute]:
        """The minutes of the last day that had anything."""
        with self._lock:
            since = time.time() - 60 * _MINUTES
            return [minute for minute in self._minutes if minute.begin >= since]

    def text(self) -> bytes:
        """Return everything as Prometheus takes it."""
        return generate_latest(self._registry)


class _Gauges(Collector):
    """What is looked up when it is asked for."""

    def __init__(self, indexes: Indexes, waiting: Callable[[], int]) -> None:
        self._indexes, self._waiting = indexes, waiting

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        yield GaugeMetricFamily("neardup_waiting", "Requests that are being answered.", value=self._waiting())
        held = GaugeMetricFamily("neardup_held", "Documents that new ones are compared with.", labels=["index"])
        size = GaugeMetricFamily("neardup_store_bytes", "Size of the store, its log with it.", labels=["index"])
        memory = GaugeMetricFamily("neardup_window_bytes", "Memory of the window's tables.", labels=["index"])
        for named in self._indexes:
            held.add_metric([named.name], len(named.index))
            size.add_metric([named.name], named.bytes())
            memory.add_metric([named.name], named.index.statistics.bytes)
        yield from (held, size, memory)
