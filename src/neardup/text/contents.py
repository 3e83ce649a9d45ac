"""The content of pages, extracted in processes of their own.

A page may crash the library that finds its main content, keep it busy for ever or take all memory. That ends only the
process that extracts the page, and the page is tried once more in a fresh one; if that ends as well, all text of the
page stands for its content. Nothing else of the run is lost.

The processes are plain ones that run `neardup.text.extraction`, not those of ``multiprocessing``: they do not import
the user's main module, may be started from any thread or forked process, and do not break together. Each has its own
process group, so that Ctrl-C reaches only the program, which ends them; if the program is killed, they end by
themselves.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa

from neardup import runtime
from neardup.errors import InputError
from neardup.text.extraction import CPU_LIMIT_S, METHODS, TIMER_SIGNALS, Article, report_failed_page
from neardup.text.html import strip_tags

#: Pages that are sent to a process at once.
BATCH_PAGES = 20
#: Bytes of contents that are kept, so that equal pages are extracted once.
_CACHE_BYTES = 32_000_000
#: The memory of a process that extracts pages of up to a few megabytes (measured), with its part of the kept contents.
WORKER_BYTES = 100_000_000
#: A process that holds more than this is replaced: it has extracted a very large page.
_WORKER_LIMIT = 400_000_000
#: What a kept content takes beside its text.
_CONTENT_BYTES = 400
#: How long a process that has closed its pipe may take to end.
_END_SECONDS = 5.0


class Content(NamedTuple):
    """The content of a page in UTF-8; fallback and reason are those of ``Article``."""

    text: bytes
    fallback: str = ""
    reason: str = ""


def require_content(name: str) -> None:
    """Raise ``InputError`` with an install hint if the library of a recipe's ``content`` is not installed."""
    library = METHODS[name].library if name else ""
    if library and importlib.util.find_spec(library) is None:
        raise _not_installed(name, library)


def _not_installed(name: str, missing: str) -> InputError:
    library, extra, _ = METHODS[name]
    return InputError(
        f"extracting the article of a page needs {library}, and {missing} is not installed; "
        f"pip install 'neardup[{extra}]' brings it"
    )


def content_of(text: str, name: str) -> str:
    """Return the content of one text, by a recipe's ``content``; the text itself if that is empty."""
    return contents_of([text], name)[0] if name else text


def contents_of(texts: Sequence[str], name: str) -> list[str]:
    """Return the content of each text, by a recipe's ``content``, which is not empty."""
    require_content(name)
    pages = [text.encode("utf-8", "replace") for text in texts]
    return [content.text.decode() for content in _workers().extract(pages, name)]


def article_of(markup: str, name: str = "html") -> Article:
    """Return the article of a page, or all of its text with the reason."""
    require_content(name)
    (found,) = _workers().extract([markup.encode("utf-8", "replace")], name)
    return Article(found.text.decode(), found.fallback, found.reason)


def extract_contents(texts: pa.LargeStringArray, name: str) -> tuple[pa.LargeStringArray, dict[int, str]]:
    """Return the content of each text, by a recipe's ``content``, and for each one that failed its place and reason."""
    found = _workers().extract(texts.cast(pa.large_binary()).to_pylist(), name)
    failed = {at: content.reason for at, content in enumerate(found) if content.fallback == "failed"}
    return pa.array([content.text for content in found], pa.large_string()), failed


def workers_memory(threads: int) -> int:
    """Return the bytes that the processes of a run take, for a memory budget."""
    return WORKER_BYTES * min(threads, runtime.default_threads())


class _WorkerEndedError(Exception):
    """A process ended before it had extracted the next page."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.reason, self.timed_out = f"its process ended with exit code {code}", False
        if code < 0:
            self.timed_out = -code in TIMER_SIGNALS
            with suppress(ValueError):
                self.reason = f"its process ended by {signal.Signals(-code).name}"
        if self.timed_out:
            self.reason = f"it took more than {CPU_LIMIT_S:.0f} s"


class _Worker:
    """A process that extracts pages, one request at a time."""

    def __init__(self) -> None:
        # The modules of this process, wherever they were found, and none of the working directory.
        code = f"import sys; sys.path[:] = {sys.path!r}; from neardup.text.extraction import run_worker; run_worker()"
        pipe = subprocess.PIPE
        try:
            # Without a buffer, a forked process can close its copies of the pipes and write nothing to them.
            self._process = subprocess.Popen(  # noqa: S603  this interpreter
                [sys.executable, "-P", "-W", "ignore", "-c", code],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                process_group=0,
            )
        except OSError as error:
            raise InputError(
                f"the process that extracts pages cannot be started with {sys.executable!r}: {error}"
            ) from None
        self._buffer, self.memory = bytearray(), 0
        try:
            self._read_header()
        except _WorkerEndedError as ended:
            said = self._process.stderr.read() if self._process.stderr else b""
            last = (said.decode(errors="replace").strip().splitlines() or [ended.reason])[-1]
            self.end()
            raise InputError(f"the process that extracts pages does not start: {last}") from None
        if self._process.stderr:
            self._process.stderr.close()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def extract(self, pages: Sequence[bytes], name: str) -> Iterator[Content]:
        """Yield the content of each page; raise ``_WorkerEndedError`` if the process ends."""
        header = {"method": name, "sizes": [len(page) for page in pages]}
        # A process that has ended early is noticed when its answer is read.
        with suppress(BrokenPipeError):
            self._write(json.dumps(header).encode() + b"\n")
            for page in pages:
                self._write(page)
        if missing := self._read_header()["missing"]:
            raise _not_installed(name, missing)
        for _ in pages:
            answer = self._read_header()
            content = self._read(answer["size"])
            runtime.count_cpu_seconds(answer["cpu_s"])
            self.memory = answer["memory"]
            yield Content(content, answer["fallback"], answer["reason"])

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._process.stdin:
            view = view[self._process.stdin.write(view) :]

    def _read_header(self) -> dict[str, Any]:
        scanned = 0
        while (end := self._buffer.find(b"\n", scanned)) < 0:
            scanned = len(self._buffer)
            self._fill()
        header: dict[str, Any] = json.loads(self._take(end + 1))
        return header

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def _fill(self) -> None:
        data = self._process.stdout.read(1 << 16) if self._process.stdout else b""
        if not data:
            raise self._ended()
        self._buffer += data

    def _ended(self) -> _WorkerEndedError:
        try:
            return _WorkerEndedError(self._process.wait(_END_SECONDS))
        except subprocess.TimeoutExpired:
            self._process.kill()
            return _WorkerEndedError(self._process.wait())

    def kill(self) -> None:
        """End the process; who waits for its answer learns that it ended."""
        self._process.kill()

    def end(self) -> None:
        """End the process and wait until it has ended."""
        self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Close the pipes."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def forget(self) -> None:
        """Close the copies of the pipes that a forked process has; the process belongs to its parent."""
        self.close()
        self._process.returncode = 0


class InterruptedRun(Exception):
    """The run was interrupted while a page was extracted."""


class _Workers:
    """The processes of this one that extract pages: started when needed, at most one for each processor.

    A call uses one process at a time; calls in several threads use several. Equal pages are extracted once, as long as
    their contents are kept. Results do not depend on the number of processes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._starting, self._interrupted = limit, 0, threading.Event()
        self._all: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._changed = threading.Condition()
        self._kept: OrderedDict[bytes, Content] = OrderedDict()
        self._kept_bytes = 0
        self._running: dict[bytes, Future[Content]] = {}

    def extract(self, pages: Sequence[bytes], name: str) -> list[Content]:
        """Return the content of each page."""
        keys = [blake2b(page, digest_size=16, key=name.encode()).digest() for page in pages]
        found: dict[bytes, Content] = {}
        new: dict[bytes, bytes] = {}
        others: dict[bytes, Future[Content]] = {}
        with self._changed:
            for key, page in dict(zip(keys, pages, strict=True)).items():
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key]
                elif key in self._running:
                    others[key] = self._running[key]
                else:
                    new[key], self._running[key] = page, Future()
        try:
            for key, content in zip(new, self._contents(list(new.values()), name), strict=True):
                found[key] = content
                self._keep(key, content)
        finally:
            with self._changed:
                left = [self._running.pop(key) for key in new if key in self._running]
            for future in left:
                future.cancel()
        # Each thread has extracted its own pages before it waits for those of others, so that none waits for itself.
        for key, future in others.items():
            try:
                found[key] = future.result()
            except CancelledError:
                (found[key],) = self.extract([pages[keys.index(key)]], name)
        for key, page in zip(keys, pages, strict=True):
            # Kept contents as well: another run asks for them.
            if found[key].fallback == "failed":
                report_failed_page(page, found[key].reason)
        return [found[key] for key in keys]

    def _keep(self, key: bytes, content: Content) -> None:
        with self._changed:
            future = self._running.pop(key)
            if len(content.text) < _CACHE_BYTES // 8:
                self._kept[key] = content
                self._kept_bytes += len(content.text) + _CONTENT_BYTES
            while self._kept_bytes > _CACHE_BYTES:
                _, dropped = self._kept.popitem(last=False)
                self._kept_bytes -= len(dropped.text) + _CONTENT_BYTES
        future.set_result(content)

    def _contents(self, pages: Sequence[bytes], name: str) -> Iterator[Content]:
        """Yield the content of each page; a page that ends two processes, or takes too long, has failed."""
        done, suspect = 0, -1
        while done < len(pages):
            try:
                with self._worker() as worker:
                    for content in worker.extract(pages[done : done + BATCH_PAGES], name):
                        yield content
                        done += 1
            except _WorkerEndedError as ended:
                if not ended.timed_out and suspect != done:
                    # Somebody else may have ended the process.
                    suspect = done
                    continue
                text = strip_tags(pages[done].decode())
                yield Content(text.encode("utf-8", "replace"), "failed", ended.reason)
                done += 1

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        """Give a process that no other thread uses; an error of the block ends it."""
        worker = self._take()
        try:
            yield worker
        except BaseException:
            self._end(worker)
            if self._interrupted.is_set():
                raise InterruptedRun from None
            raise
        with self._changed:
            is_used_again = worker.memory <= _WORKER_LIMIT and not self._interrupted.is_set()
            if is_used_again:
                self._idle.append(worker)
                self._changed.notify()
        if not is_used_again:
            self._end(worker)

    def _take(self) -> _Worker:
        with self._changed:
            while True:
                if self._interrupted.is_set():
                    raise InterruptedRun
                while self._idle:
                    worker = self._idle.pop()
                    if worker.lives:
                        return worker
                    self._end(worker)
                if len(self._all) + self._starting < self._limit:
                    self._starting += 1
                    break
                self._changed.wait()
        try:
            worker = _Worker()
            with self._changed:
                self._all.add(worker)
                runtime.CHILD_PROCESSES.add(worker.pid)
                interrupted = self._interrupted.is_set()
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify()
        if interrupted:
            self._end(worker)
            raise InterruptedRun
        return worker

    def _end(self, worker: _Worker) -> None:
        worker.end()
        with self._changed:
            self._all.discard(worker)
            runtime.CHILD_PROCESSES.discard(worker.pid)
            self._changed.notify()

    def interrupt(self) -> None:
        """End all processes; calls that wait for one, and later ones, raise ``InterruptedRun``."""
        with self._changed:
            self._interrupted.set()
            idle, self._idle = self._idle, []
            for worker in self._all:
                worker.kill()
            self._changed.notify_all()
        for worker in idle:
            self._end(worker)

    def forget(self) -> None:
        """Leave the processes to the process that this one was forked from."""
        for worker in self._all:
            worker.forget()


_CURRENT: list[_Workers] = []
_CURRENT_LOCK = threading.Lock()
#: Those of a parent process, whose locks other threads may have held when this one was forked.
_FORGOTTEN: list[_Workers] = []


def _workers() -> _Workers:
    with _CURRENT_LOCK:
        if not _CURRENT:
            _CURRENT.append(_Workers(runtime.default_threads()))
        return _CURRENT[0]


def end_workers() -> None:
    """End the processes and forget kept contents; a later call starts others."""
    while _CURRENT:
        _CURRENT.pop().interrupt()


def _forget_workers() -> None:
    global _CURRENT_LOCK
    _CURRENT_LOCK = threading.Lock()
    while _CURRENT:
        workers = _CURRENT.pop()
        workers.forget()
        _FORGOTTEN.append(workers)
    runtime.CHILD_PROCESSES.clear()


atexit.register(end_workers)
runtime.ON_INTERRUPT.append(end_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
