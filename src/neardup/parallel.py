"""Threads for kernels, which let go of Python's lock: results come in the order of the work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")


def default_threads() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


def in_order(function: Callable[[Work], Done], work: Iterable[Work], threads: int) -> Iterator[Done]:
    """Yield function(item) for each item of work, in order, with at most threads + 1 items under way.

    The items are drawn as they are needed, so that a reader is never far ahead.
    """
    if threads <= 1:
        yield from map(function, work)
        return
    pending: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="neardup") as pool:
        try:
            for item in work:
                pending.append(pool.submit(function, item))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
