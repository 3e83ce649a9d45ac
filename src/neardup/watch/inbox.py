"""The inbox: what lies in it, which files have come to rest, and in which order they are taken."""

from __future__ import annotations

import errno
import heapq
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from neardup.errors import InputError
from neardup.watch.names import Stamp, is_passed_over, stamp_of

if TYPE_CHECKING:
    from watchfiles import Change


class Found(NamedTuple):
    """A file to take: its path below the inbox, and what it looked like when it had come to rest."""

    path: str
    stamp: Stamp


@dataclass(slots=True, eq=False)
class _File:
    """What is known of a file."""

    stamp: Stamp  #: as last seen
    since: float  #: when this stamp was first seen, by a clock that never jumps
    #: From when on it may be taken; None while it is being judged, and for one that is to be left where it is.
    due: float | None
    tries: int = 0  #: how often it was put off


@dataclass(slots=True)
class Scan:
    """What a look at the whole inbox found."""

    files: dict[str, _File] = field(default_factory=dict)  #: the files that lie there, by their paths
    new: list[tuple[str, _File]] = field(default_factory=list)  #: those that are new, or have changed
    links: int = 0  #: how many symbolic links and other things that are no files
    #: What could not be read: sub-folders, and single files that the system says nothing of.
    failed: list[tuple[str, OSError]] = field(default_factory=list)
    seconds: float = 0.0  #: how long it took


class Inbox:
    """The files below a folder, each given out once for each of its states.

    Symbolic links, to files and to folders, are passed over: what they point to is not in the inbox. So are hidden
    names, and endings that mean unfinished.
    """

    def __init__(self, root: str, settle: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._settle = settle
        self._clock = clock
        self._files: dict[str, _File] = {}
        self._resting: list[tuple[float, int, str, _File]] = []
        self._ready: list[tuple[int, str, int, _File]] = []
        self._count = 0

    def scan(self) -> Scan:
        """Look at every file; those that are new or changed have to come to rest first.

        Raises ``OSError`` if the inbox itself cannot be read; what is known of it stays.
        """
        begin = self._clock()
        found = Scan()
        waiting: list[str] = []
        with os.scandir(self.root) as entries:
            self._look(entries, "", found, waiting)
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self.root, folder)) as entries:
                    self._look(entries, folder, found, waiting)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.failed.append((folder, error))
        for path, file in self._files.items():
            if file.due is None and path not in found.files and any(_below(path, folder) for folder, _ in found.failed):
                found.files[path] = file
        self._files = found.files
        # All that one look found are of one age, so that they come to rest together and are taken in their order.
        now = self._clock()
        for path, file in found.new:
            file.since = now
            self._put(path, file, now + self._settle)
        found.seconds = now - begin
        return found

    def _look(self, entries: Iterable[os.DirEntry[str]], folder: str, found: Scan, waiting: list[str]) -> None:
        for entry in entries:
            if is_passed_over(entry.name):
                continue
            path = os.path.join(folder, entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.failed.append((path, error))
                continue
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
            elif not stat.S_ISREG(status.st_mode):
                found.links += 1
            else:
                self._note(path, stamp_of(status), found)

    def _note(self, path: str, stamp: Stamp, found: Scan) -> None:
        known = self._files.get(path)
        if known is None or known.stamp != stamp:
            known = _File(stamp, 0.0, None)
            found.new.append((path, known))
        found.files[path] = known

    def _put(self, path: str, file: _File, due: float) -> None:
        file.due = due
        self._count += 1
        heapq.heappush(self._resting, (due, self._count, path, file))

    def next(self) -> Found | None:
        """Give the first file, by (time of change, path), of those that have come to rest; None if there is none."""
        now = self._clock()
        while self._resting and self._resting[0][0] <= now:
            _, number, path, file = heapq.heappop(self._resting)
            if self._files.get(path) is file:
                heapq.heappush(self._ready, (file.stamp.mtime_ns, path, number, file))
        while self._ready:
            _, path, _, file = heapq.heappop(self._ready)
            if self._files.get(path) is file and file.due is not None:
                file.due = None
                return Found(path, file.stamp)
        return None

    @property
    def waiting(self) -> int:
        """How many files wait to be taken, those that have not come to rest too."""
        return len(self._resting) + len(self._ready)

    @property
    def pause(self) -> float | None:
        """Seconds until the next file has come to rest; None if none waits."""
        if self._ready:
            return 0.0
        return max(0.0, self._resting[0][0] - self._clock()) if self._resting else None

    def changed(self, path: str, stamp: Stamp) -> None:
        """Note that a file has changed since it was given out: it has to come to rest again."""
        now = self._clock()
        self._files[path] = _File(stamp, now, None)
        self._put(path, self._files[path], now + self._settle)

    def put_off(self, path: str, seconds: float) -> None:
        """Give a file again after some seconds, or when it has changed."""
        file = self._files.get(path)
        if file is not None:
            self._put(path, file, self._clock() + seconds)

    def try_again(self, path: str, most: float) -> None:
        """Give a file again after a second, then after twice as long each time, at most so many seconds."""
        file = self._files.get(path)
        if file is not None:
            self._put(path, file, self._clock() + min(2.0 ** min(file.tries, 20), most))
            file.tries += 1

    def age(self, path: str) -> float:
        """Return for how many seconds a file has not changed, as far as anyone has looked."""
        file = self._files.get(path)
        return self._clock() - file.since if file is not None else 0.0

    def gone(self, path: str) -> None:
        """Forget a file that is no longer there."""
        self._files.pop(path, None)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


#: How long events are gathered before they wake, in milliseconds.
_GATHER = 200


class FileEvents:
    """Native file events as a hint that a look is worth while, and the wish to stop.

    The truth is always a look at the folder: an event may be lost, or never come, as on network folders.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        # Its put may be called from a signal handler at any moment, which locks of a threading.Event do not bear.
        self._calls: SimpleQueue[str] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self.stopping = False

    def stop(self) -> None:
        """Ask for an end; safe in a signal handler."""
        self.stopping = True
        self._calls.put("stop")

    def pause(self, seconds: float) -> bool:
        """Wait, at most so long; return whether a file event came."""
        if self.stopping:
            return False
        try:
            heard = self._calls.get(timeout=max(seconds, 0.0)) == "file"
        except Empty:
            return False
        while not self._calls.empty():
            heard |= self._calls.get() == "file"
        return heard

    def listen(self, failed: Callable[[str], None]) -> bool:
        """Start to take native events, unless that is done already.

        Returns
        -------
        bool
            Whether a listener was started.
        """
        if self._thread is not None and self._thread.is_alive():
            return False
        try:
            import watchfiles  # noqa: F401
        except ImportError:
            failed("the library watchfiles is not installed; pip install 'neardup[watch]' brings it")
            return False
        self._end.clear()
        self._thread = threading.Thread(target=self._listen, args=(failed,), name="neardup-events", daemon=True)
        self._thread.start()
        return True

    def _listen(self, failed: Callable[[str], None]) -> None:
        from watchfiles import watch

        try:
            for _ in watch(
                self._root,
                watch_filter=self._may_mean_a_file,
                debounce=_GATHER,
                rust_timeout=1000,
                stop_event=self._end,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._calls.put("file")
        except Exception as error:  # the library has its own errors for a system that gives no events
            failed(" ".join(str(error).split()) or type(error).__name__)

    def _may_mean_a_file(self, change: Change, path: str) -> bool:
        """Return whether an event may mean a file to take: not what goes away, such as what is placed."""
        if change.name == "deleted":
            return False
        return not any(is_passed_over(part) for part in os.path.relpath(path, self._root).split(os.sep))

    def close(self) -> None:
        """End the listener."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            self._thread = None


if sys.platform != "win32":
    import fcntl


class InboxLock:
    """An inbox that no other watcher takes files out of, for as long as the block lasts.

    The system lets go of it when the process ends, however it ends. Where folders cannot be locked, as on some network
    folders, nobody is kept out.
    """

    def __init__(self, inbox: str, *, shared: bool) -> None:
        self._inbox = inbox
        self._shared = shared
        self._handle = -1

    def __enter__(self) -> Self:
        if sys.platform == "win32":
            return self
        try:
            self._handle = os.open(self._inbox, os.O_RDONLY)
            fcntl.flock(self._handle, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            self._close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise InputError(
                    f"{self._inbox} is watched by another process, and two would take files from each other; "
                    "stop that one, or run both with --place link"
                ) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
