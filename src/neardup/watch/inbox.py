"""The inbox: what lies in it, which files have come to rest, and in which order they are taken."""

from __future__ import annotations

import errno
import fcntl
import heapq
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from neardup.errors import InputError
from neardup.watch.names import Stamp, is_passed_over, stamp_of


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


@contextmanager
def inbox_lock(inbox: str, *, shared: bool) -> Iterator[None]:
    """Let no other watcher take files out of an inbox while the block lasts, but those that share it as well.

    The system lets go of it when the process ends, however it ends. Where folders cannot be locked, as on some network
    folders, nobody is kept out.
    """
    handle = -1
    try:
        try:
            handle = os.open(inbox, os.O_RDONLY)
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise InputError(
                    f"{inbox} is watched by another process, and two would take files from each other; "
                    "stop that one, or run both with --place link"
                ) from None
        yield
    finally:
        if handle >= 0:
            os.close(handle)
