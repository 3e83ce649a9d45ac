"""Threads for kernels, which let go of Python's lock: results come in the order of the work."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import resource
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, ClassVar, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import OutputError, RecipeError, option

Work = TypeVar("Work")
Output = TypeVar("Output")


def default_threads() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


def map_in_order(
    function: Callable[[Work], Output], work: Iterable[Work], threads: int
) -> Generator[Output, None, None]:
    """Yield function(item) for each item of work, in order, with at most threads + 1 items under way.

    The items are drawn as they are needed, so that a reader is never far ahead. No item is under way any more when the
    iterator ends or is closed. All calls share their threads; one of these calls functions itself.
    """
    if threads <= 1 or _IS_WORKER.get():
        yield from map(function, work)
        return
    pool, pending = _pool(threads), deque[Future[Output]]()
    try:
        for item in work:
            pending.append(pool.submit(function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        running = [future for future in pending if not future.cancel()]
        # A worker that collects garbage may close it: it must not wait for itself.
        if not _IS_WORKER.get():
            wait(running)


#: Whether this thread is one of a pool, where waiting for the pool might be for ever.
_IS_WORKER = ContextVar("is_worker", default=False)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return the pool of so many threads: one for the process, for runs start tens of thousands of pieces of work."""
    return ThreadPoolExecutor(threads, "neardup", partial(_IS_WORKER.set, True))


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


#: Arrays above this many bytes are given back after use.
_LARGEST_KEPT = 1 << 26


class ScratchArrays:
    """Uninitialised arrays by name, each thread its own."""

    def __init__(self) -> None:
        self._arrays = threading.local()

    def array(self, name: str, dtype: type[np.generic], size: int) -> npt.NDArray[Any]:
        """Return an array of at least that size; what it held under the same name before is lost."""
        array: npt.NDArray[Any] | None = getattr(self._arrays, name, None)
        if array is None or len(array) < size:
            array = np.empty(size + size // 4, dtype)
            if array.nbytes <= _LARGEST_KEPT:
                setattr(self._arrays, name, array)
        return array

    def clear(self) -> None:
        """Let go of the arrays of all threads; those in use stay as long as they are."""
        self._arrays = threading.local()


SCRATCH = ScratchArrays()


#: What the interpreter, its libraries and the compiled kernels take before the first document is read.
PROGRAM_BYTES = 250_000_000
_PIECE = 1 << 20


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the space of a file on the disk, where the system cannot simply promise it by writing zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for begin in range(0, size, _PIECE):
        file.write(bytes(min(_PIECE, size - begin)))
    file.flush()


def check_budget(budget: int | None, needed: float, user: str, *, final_need: float | None = None) -> None:
    """Refuse a budget (bytes for the whole process) that is less than the program and what something needs besides.

    A budget below twice the program's own memory counts as that. ``final_need`` is what the end will need, where
    that is known.
    """
    if budget is not None and PROGRAM_BYTES + needed > max(budget, 2 * PROGRAM_BYTES):
        least = -(-(PROGRAM_BYTES + max(needed, final_need or 0)) // 100_000_000) * 100
        raise RecipeError(
            f"{option('--memory')} {budget:,} bytes is too little for {user}; give {int(least):,}MB or more"
        )


class Memory:
    """Gives large arrays, from memory up to a budget for the whole process and from a temporary file beyond it.

    The file has no name: it is gone when the process is, however it ends. The system keeps in memory what it has room
    for.
    """

    least_budget: ClassVar[float] = math.inf

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self._left = math.inf if budget is None else max(budget - PROGRAM_BYTES, 0)
        if budget is not None:
            Memory.least_budget = min(budget, Memory.least_budget)
            _give_back_at_once()
        self._maps: list[mmap.mmap] = []
        self.spilled_bytes, self._lock = 0, threading.Lock()

    @property
    def free_bytes(self) -> float:
        """How many bytes of the budget are left, infinity without one."""
        return self._left

    def array(self, dtype: type[np.generic], *shape: int) -> npt.NDArray[Any]:
        """Return an uninitialised array; refuse one that must go to the file where the disk has no room for it."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size <= self._left or size == 0:
            self._left -= size
            return np.empty(shape, dtype)
        self.spilled_bytes += size
        with tempfile.TemporaryFile(prefix="neardup-") as file:
            try:
                # Space is taken now: a page without a place on the disk would end the process when written.
                _reserve(file, size)
            except OSError as error:
                raise OutputError(
                    f"{size:,} bytes beyond {option('--memory')} do not fit into {tempfile.gettempdir()} "
                    f"({error.strerror}); free space there, set TMPDIR to a larger place or raise {option('--memory')}"
                ) from None
            mapped = mmap.mmap(file.fileno(), size)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def release_array(self, array: npt.NDArray[Any]) -> None:
        """Take back an array that nobody reads any more."""
        before = len(self._maps)
        self._maps = [mapped for mapped in self._maps if not np.shares_memory(np.frombuffer(mapped, np.uint8), array)]
        if len(self._maps) == before:
            self._left += array.nbytes

    def release_bytes(self, size: int) -> None:
        """Take back so many bytes of arrays that nobody reads any more."""
        self._left += size

    def count_spilled(self, size: int) -> None:
        """Count so many bytes more that went to files; from any thread."""
        with self._lock:
            self.spilled_bytes += size

    def evict(self) -> None:
        """Let the system have the memory of what lies in the file; it comes back when it is read."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def forget(self) -> None:
        """Forget the arrays given so far: their memory and space go when nobody holds them any more."""
        self._maps.clear()


#: Options of mallopt, as malloc.h of GNU numbers them, and the bytes of an array that is large.
_MMAP_THRESHOLD, _ARENA_MAX, _LARGE = -3, -8, 1 << 22
#: Limit, use and counts of a control group, in its second and its first version.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)


def free_memory() -> float:
    """Return how many bytes of memory this process may still take without others giving up theirs.

    It is the least of what the system has available and of what is left of the limit of the control group; infinity
    where neither is known.
    """
    amounts = [math.inf]
    with suppress(OSError, ValueError, IndexError):
        with open("/proc/meminfo", encoding="ascii") as lines:
            available = next((line for line in lines if line.startswith("MemAvailable:")), "")
        amounts.append(float(available.split()[1]) * 1024)
    for limit, used, statistics in _CGROUPS:
        with suppress(OSError, ValueError):
            maximum, use = (float(Path(path).read_text("ascii")) for path in (limit, used))
            counts = dict(line.split() for line in Path(statistics).read_text("ascii").splitlines())
            # Files that were read are counted as used, and given up when memory is wanted.
            cached = float(counts.get("total_inactive_file", counts.get("inactive_file", "0")))
            amounts.append(max(maximum - use + cached, 0.0))
    return min(amounts)


def resident_memory() -> int:
    """Return how many bytes of memory this process takes, its libraries among them; the most so far where unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * mmap.PAGESIZE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


def file_limit(maximum: int) -> int:
    """Return how many files of a kind may be open: so many at most, a power of two, an eighth of the system's limit."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return maximum if allowed < 0 else min(maximum, 1 << (max(allowed // 8, 1).bit_length() - 1))


def spare_memory() -> float:
    """Return how much the process may still take of the least budget that a run of it has, or had; infinity without."""
    return math.inf if math.isinf(Memory.least_budget) else Memory.least_budget - resident_memory()


def _give_back_at_once() -> None:
    """Have the C library return arrays of a few megabytes to the system when they go, and share what it keeps."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_ARENA_MAX, 2)


def trim_memory() -> None:
    """Give back to the system what threads, Arrow and the C library keep of memory that is free."""
    SCRATCH.clear()
    pa.default_memory_pool().release_unused()
    # Only the library of GNU has this one; others give back by themselves.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


#: Linux counts ru_maxrss in kibibytes, macOS in bytes.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Stage(TypedDict):
    """The cost of one stage.

    ``serial_cpu_s`` is the part of ``cpu_s`` that more threads do not shorten: what the thread that hands out the work
    takes, the one that reads and the one that encodes, though these three may work at the same time. What Arrow divides
    among threads of its own is not in it.
    """

    name: str
    wall_s: float
    cpu_s: float
    serial_cpu_s: float
    peak_memory_bytes: int


_serial_seconds = 0.0
_SERIAL_LOCK = threading.Lock()


def run_serial(function: Callable[[Work], Output], work: Work) -> Output:
    """Call a function in a thread that no second one may help, and count what it takes as serial."""
    global _serial_seconds
    start = time.thread_time()
    try:
        return function(work)
    finally:
        with _SERIAL_LOCK:
            _serial_seconds += time.thread_time() - start


class Clock:
    """Takes the cost of stages, in the order in which they end."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Take the cost of the block as the stage of that name."""
        wall, cpu, serial = time.perf_counter(), time.process_time(), time.thread_time() + _serial_seconds
        try:
            yield
        finally:
            self.stages.append(
                {
                    "name": name,
                    "wall_s": round(time.perf_counter() - wall, 3),
                    "cpu_s": round(time.process_time() - cpu, 3),
                    "serial_cpu_s": round(time.thread_time() + _serial_seconds - serial, 3),
                    "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT,
                }
            )
