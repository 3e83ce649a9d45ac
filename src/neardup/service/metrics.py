"""Metrics of the service for Prometheus: totals since its start, and what its indexes hold now."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from neardup.errors import ClosedStore
from neardup.service.indexes import Indexes
from neardup.stream.document import FLAGS

#: Upper bounds of the latency histogram, in seconds.
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics(Collector):
    """The metrics of a service."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes, self._registry = indexes, CollectorRegistry()
        #: The requests that are being answered.
        self.waiting = 0
        requests = Histogram(
            "neardup_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["call", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        # Finding a labelled metric is slow, and each is needed thousands of times a second.
        self._requests = cache(requests.labels)
        self._registry.register(self)

    def count_request(self, call: str, status: int, seconds: float) -> None:
        """Count a request; ``call`` is its method and the path template."""
        self._requests(call, status).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield what is read when Prometheus asks; the counts of an index end with it."""
        verdicts = CounterMetricFamily("neardup_verdicts", "Documents entered, by verdict.", labels=["index", "kind"])
        flags = CounterMetricFamily(
            "neardup_flags", "Documents entered with a flag, such as late.", labels=["index", "flag"]
        )
        held = GaugeMetricFamily("neardup_held", "Documents that new ones are compared with.", labels=["index"])
        size = GaugeMetricFamily("neardup_store_bytes", "Size of the store, its log with it.", labels=["index"])
        memory = GaugeMetricFamily("neardup_window_bytes", "Memory of the window's tables.", labels=["index"])
        failed = CounterMetricFamily(
            "neardup_failed_pages", "Pages without their main content: all of their text is compared.", labels=["index"]
        )
        for named in self._indexes:
            try:
                window_bytes = named.index.statistics.bytes
            except ClosedStore:
                # Another request deletes it at the same time.
                continue
            for name, count in named.entered.items():
                (flags if name in FLAGS else verdicts).add_metric([named.name, name], count)
            held.add_metric([named.name], len(named.index))
            size.add_metric([named.name], named.store_bytes())
            memory.add_metric([named.name], window_bytes)
            failed.add_metric([named.name], named.index.failed_pages)
        yield GaugeMetricFamily("neardup_waiting", "Requests that are being answered.", value=self.waiting)
        yield from (verdicts, flags, held, size, memory, failed)
