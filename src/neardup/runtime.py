"""Threads that keep the order of their work, scratch arrays, the memory budget, and the costs of stages."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import IO, Any, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import Interrupted, OutputError, RecipeError, option

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
    """Yield function(item) for each item of work, in order, with at most threads + 1 items in progress.

    Items are read only when they are needed, so a reader is never far ahead. When the iterator ends or is closed, no
    item is in progress. All calls share one pool; a call from a thread of the pool runs the function itself.
    """
    if threads <= 1 or _IS_WORKER.get():
        yield from map(function, work)
        return
    pool, pending, running = _pool(threads), deque[Future[Output]](), _RunningItems()
    interrupted = False
    try:
        for item in work:
            pending.append(pool.submit(running.run, function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except (KeyboardInterrupt, SystemExit):
        interrupted = True
        raise
    finally:
        while interrupted and not running.have_ended(0.1):
            for end in ON_INTERRUPT:
                end()
        # A worker that collects garbage may close it: it must not wait for itself.
        if not _IS_WORKER.get():
            running.have_ended(None)


class _RunningItems:
    """The items that threads work on.

    They are counted where they run: a signal may come while the first of the futures is waited for, or just after one
    was submitted, and what a thread reads must not be freed before it has ended.
    """

    def __init__(self) -> None:
        self._changed, self._count, self._closed = threading.Condition(), 0, False

    def run(self, function: Callable[[Work], Output], item: Work) -> Output:
        """Return function(item); raise ``CancelledError`` if the call has ended."""
        with self._changed:
            if self._closed:
                raise CancelledError
            self._count += 1
        try:
            return function(item)
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def have_ended(self, seconds: float | None) -> bool:
        """Let no more items begin; wait for so long, and return whether none is running."""
        with self._changed:
            self._closed = True
            return self._changed.wait_for(lambda: not self._count, seconds)


@contextmanager
def stop_signals(message: str, stop: Callable[[], object] = lambda: None) -> Iterator[list[int]]:
    """Give a list to which the first signal that ends the block adds itself; it also calls ``stop``.

    A second signal ends the program with the message. Signals are Ctrl-C, SIGTERM and, unless it is ignored, SIGHUP.
    """
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        # Takes no lock: the interrupted code may hold it.
        if received:
            raise Interrupted(number, message)
        received.append(number)
        stop()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


#: Called when a run is interrupted: what threads wait for ends, so that nobody has to wait for them.
ON_INTERRUPT: list[Callable[[], object]] = []
#: Whether this thread belongs to a pool: waiting for the pool there could never end.
_IS_WORKER = ContextVar("is_worker", default=False)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return the pool of this many threads, one per process, as runs submit tens of thousands of items."""
    pool, all_started = (
        ThreadPoolExecutor(threads, "neardup", partial(_IS_WORKER.set, True)),
        threading.Barrier(threads),
    )
    # Signals arrive in the main thread. One that came while that started a thread of the pool would leave a thread that
    # the pool does not know, and that the program would wait for when it ends.
    starter = threading.Thread(target=lambda: list(pool.map(lambda _: all_started.wait(), range(threads))))
    starter.start()
    starter.join()
    return pool


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


#: Larger arrays are freed after use.
_LARGEST_KEPT = 1 << 26


class ScratchArrays:
    """Uninitialised arrays by name, separate for each thread."""

    def __init__(self) -> None:
        self._arrays = threading.local()

    def array(self, name: str, dtype: type[np.generic], size: int) -> npt.NDArray[Any]:
        """Return an array of at least this size; an earlier array of the same name loses its values."""
        array: npt.NDArray[Any] | None = getattr(self._arrays, name, None)
        if array is None or len(array) < size:
            array = np.empty(size + size // 4, dtype)
            if array.nbytes <= _LARGEST_KEPT:
                setattr(self._arrays, name, array)
        return array

    def clear(self) -> None:
        """Release the arrays of all threads; arrays in use remain until they are no longer used."""
        self._arrays = threading.local()


SCRATCH = ScratchArrays()


#: Memory that the interpreter, its libraries and the compiled kernels take before the first document is read.
PROGRAM_BYTES = 250_000_000
_PIECE = 1 << 20


def _reserve(file: IO[bytes], size: int) -> None:
    """Reserve the space of a file on the disk; write zeros if the system has no call for it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for begin in range(0, size, _PIECE):
        file.write(bytes(min(_PIECE, size - begin)))
    file.flush()


def check_budget(budget: int | None, needed: float, user: str, *, final_need: float | None = None) -> None:
    """Refuse a budget, in bytes for the whole process, that is less than the program and its data need.

    A budget below twice the program's own memory counts as that. ``final_need`` is the need at the end of the run, if
    it is known; the message then asks for it.
    """
    if budget is not None and PROGRAM_BYTES + needed > max(budget, 2 * PROGRAM_BYTES):
        least = -(-(PROGRAM_BYTES + max(needed, final_need or 0)) // 100_000_000) * 100
        raise RecipeError(
            f"{option('--memory')} {budget:,} bytes is too little for {user}; give {int(least):,}MB or more"
        )


class Memory:
    """Allocates large arrays: in memory up to a budget for the whole process, and in temporary files beyond it.

    The files have no name, so they disappear with the process, however it ends. The system caches them in memory as
    far as there is room.
    """

    def __init__(self, budget: int | None = None, reserved: int = 0) -> None:
        #: ``reserved`` are the bytes of the budget that other processes of the run take.
        self.budget, self.reserved = budget, reserved
        self._left = math.inf if budget is None else max(budget - PROGRAM_BYTES - reserved, 0)
        if budget is not None:
            _return_memory_early()
        self._maps: list[mmap.mmap] = []
        self.spilled_bytes, self._lock = 0, threading.Lock()

    @property
    def free_bytes(self) -> float:
        """The number of bytes left of the budget; infinity without a budget."""
        return self._left

    def array(self, dtype: type[np.generic], *shape: int) -> npt.NDArray[Any]:
        """Return an uninitialised array; raise ``OutputError`` if it needs a file and the disk has no room for it."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size <= self._left or size == 0:
            self._left -= size
            return np.empty(shape, dtype)
        self.spilled_bytes += size
        try:
            with tempfile.TemporaryFile(prefix="neardup-") as file:
                # Without reserved space, writing a page on a full disk would kill the process.
                _reserve(file, size)
                mapped = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise OutputError(
                f"{size:,} bytes beyond {option('--memory')} do not fit into {tempfile.gettempdir()} "
                f"({error.strerror}); free some space there, set TMPDIR to a larger place or raise {option('--memory')}"
            ) from None
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def release_array(self, array: npt.NDArray[Any]) -> None:
        """Return the memory of an array that is no longer used to the budget."""
        before = len(self._maps)
        self._maps = [mapped for mapped in self._maps if not np.shares_memory(np.frombuffer(mapped, np.uint8), array)]
        if len(self._maps) == before:
            self._left += array.nbytes

    def release_bytes(self, size: int) -> None:
        """Return this many bytes of arrays that are no longer used to the budget."""
        self._left += size

    def count_spilled(self, size: int) -> None:
        """Count more bytes that were written to files; from any thread."""
        with self._lock:
            self.spilled_bytes += size

    def evict(self) -> None:
        """Give the memory of arrays in files back to the system; reading them loads them again."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def forget(self) -> None:
        """Forget all arrays: their memory and space are freed once nothing refers to them."""
        self._maps.clear()


#: Options of mallopt, as numbered in GNU's malloc.h, and the size of a large array.
_MMAP_THRESHOLD, _ARENA_MAX, _LARGE = -3, -8, 1 << 22
#: Limit, use and statistics of a control group, in versions 2 and 1.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)


def free_memory() -> float:
    """Return how many bytes this process can still allocate without taking memory from others.

    This is the minimum of the memory available on the system and of the rest of the control group's limit; infinity if
    neither is known.
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
            # Cached files count as used, but the system frees them when memory is needed.
            cached = float(counts.get("total_inactive_file", counts.get("inactive_file", "0")))
            amounts.append(max(maximum - use + cached, 0.0))
    return min(amounts)


#: The processes that work for this one: their memory counts as its own.
CHILD_PROCESSES: set[int] = set()


def resident_memory() -> int:
    """Return the memory of this process and of those that work for it in bytes, including libraries.

    If the present use is unknown, it is the peak of this process.
    """
    with suppress(OSError, ValueError, IndexError):
        return sum([_memory_of(process) for process in ("self", *map(str, CHILD_PROCESSES.copy()))])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


def _memory_of(pid: str) -> int:
    """Return the memory of a process in bytes; 0 for one that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        if pid == "self":
            raise
        return 0


def file_limit(maximum: int) -> int:
    """Return how many files of a kind may be open: a power of two, at most ``maximum`` and an eighth of the limit."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return maximum if allowed < 0 else min(maximum, 1 << (max(allowed // 8, 1).bit_length() - 1))


#: The budget of the run that writes its result in this context.
_BUDGET: ContextVar[int | None] = ContextVar("_BUDGET", default=None)


@contextmanager
def within_budget(budget: int | None) -> Iterator[None]:
    """Let ``spare_memory`` keep to a budget in the block; None is no budget."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spare_memory() -> float:
    """Return what is left of the budget of ``within_budget``; infinity without one."""
    budget = _BUDGET.get()
    return math.inf if budget is None else budget - resident_memory()


def _return_memory_early() -> None:
    """Make the C library return freed arrays of a few megabytes at once, and use few arenas."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_ARENA_MAX, 2)


def trim_memory() -> None:
    """Return free memory that threads, Arrow and the C library keep to the system."""
    SCRATCH.clear()
    pa.default_memory_pool().release_unused()
    # Only GNU's library has this call; others return memory by themselves.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


#: Linux counts ru_maxrss in kibibytes, macOS in bytes.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Stage(TypedDict):
    """The cost of one stage; ``cpu_s`` includes the processes that work for this one, ``peak_memory_bytes`` does not.

    ``serial_cpu_s`` is the part of ``cpu_s`` that more threads do not shorten: the time of the threads that distribute
    the work, read and encode, although these three may run at the same time. Work that Arrow divides among its own
    threads is not included.
    """

    name: str
    wall_s: float
    cpu_s: float
    serial_cpu_s: float
    peak_memory_bytes: int


_serial_seconds = 0.0
_SERIAL_LOCK = threading.Lock()


def run_serial(function: Callable[[Work], Output], work: Work) -> Output:
    """Call a function whose work cannot be divided, and count its time as serial."""
    global _serial_seconds
    start = time.thread_time()
    try:
        return function(work)
    finally:
        with _SERIAL_LOCK:
            _serial_seconds += time.thread_time() - start


_child_seconds = 0.0


def count_cpu_seconds(seconds: float) -> None:
    """Count processor time that another process has spent for this one; from any thread."""
    global _child_seconds
    with _SERIAL_LOCK:
        _child_seconds += seconds


class Clock:
    """Records the cost of stages, in the order in which they end."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record the cost of the block as a stage of this name."""
        wall, cpu = time.perf_counter(), time.process_time() + _child_seconds
        serial = time.thread_time() + _serial_seconds
        try:
            yield
        finally:
            self.stages.append(
                {
                    "name": name,
                    "wall_s": round(time.perf_counter() - wall, 3),
                    "cpu_s": round(time.process_time() + _child_seconds - cpu, 3),
                    "serial_cpu_s": round(time.thread_time() + _serial_seconds - serial, 3),
                    "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT,
                }
            )
