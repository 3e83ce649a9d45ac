"""The inbox: its files with their stamps, which of them have settled, their order, and their unchanged bytes."""

from __future__ import annotations

import errno
import fcntl
import heapq
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from neardup.errors import InputError

#: Suffix of the sidecar of a file, with its verdict and evidence, or the reason of its rejection.
SIDECAR = ".neardup.json"
#: The same for a file of several items, a line for each.
SIDECAR_LINES = ".neardup.jsonl"
_READ_BYTES = 1 << 22
_IGNORED = (".tmp", ".part", ".partial", ".crdownload", "~", SIDECAR, SIDECAR_LINES)


class Stamp(NamedTuple):
    """What distinguishes a file from its other versions, and from another file of its name."""

    size: int
    mtime_ns: int
    inode: int


def file_stamp(status: os.stat_result) -> Stamp:
    """Return the stamp in the status of a file."""
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


def stamp_at(path: str) -> Stamp | None:
    """Return the stamp of the file at a path without following links, None if there is no file.

    Raises ``OSError`` if the system cannot tell.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return file_stamp(status) if stat.S_ISREG(status.st_mode) else None


def origin_of(path: str, stamp: Stamp) -> str:
    """Return the key of a file in the store: its path below the inbox, and its stamp, in ASCII."""
    return json.dumps([path, *stamp])


def file_of(origin: str) -> tuple[str, Stamp]:
    """Return the path and the stamp in a key."""
    path, *stamp = json.loads(origin)
    return path, Stamp(*stamp)


def printable_path(path: str) -> str:
    """Return a path as valid UTF-8, with other bytes as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_ignored(name: str) -> bool:
    """Return whether files and folders of this name are ignored: hidden, unfinished, or a sidecar."""
    return name.startswith(".") or name.lower().endswith(_IGNORED)


def open_file(path: str) -> int:
    """Open a file for reading without following links or waiting for pipes, whatever is at the path by now."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


class FileChanged(Exception):
    """A file has changed since it settled; ``stamp`` is its current stamp, None if it is gone."""

    def __init__(self, stamp: Stamp | None) -> None:
        super().__init__()
        self.stamp = stamp


def read_unchanged(path: str, stamp: Stamp) -> bytes:
    """Return the bytes of a file; its stamp is the same before and after reading.

    Raises ``FileChanged`` if the file is not the one of that stamp, ``OSError`` if it cannot be read.
    """
    try:
        handle = open_file(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise FileChanged(None) from None
        raise
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise FileChanged(None)
        if file_stamp(status) != stamp:
            raise FileChanged(file_stamp(status))
        data = bytearray()
        while len(data) <= stamp.size and (piece := os.read(handle, _READ_BYTES)):
            data += piece
        after = file_stamp(os.fstat(handle))
    finally:
        os.close(handle)
    now = stamp_at(path)
    if now != stamp or after != stamp or len(data) != stamp.size:
        raise FileChanged(now)
    return bytes(data)


class SettledFile(NamedTuple):
    """A file to take."""

    path: str  #: below the inbox
    stamp: Stamp  #: when it had settled


@dataclass(slots=True, eq=False)
class _File:
    stamp: Stamp  #: as last seen
    first_seen: float  #: when this stamp was first seen, by a clock that never jumps
    #: When it may be taken; None while it is being judged, or if it stays in the inbox.
    due: float | None
    failures: int = 0  #: the number of failed reads


@dataclass(slots=True)
class Scan:
    """The result of a scan of the whole inbox."""

    files: dict[str, _File] = field(default_factory=dict)  #: the files in it, by path
    new: list[tuple[str, _File]] = field(default_factory=list)  #: those that are new, or have changed
    links: int = 0  #: the number of symbolic links and other entries that are no files
    #: The folders and files that could not be read.
    failed: list[tuple[str, OSError]] = field(default_factory=list)
    seconds: float = 0.0  #: how long it took


class Inbox:
    """The files below a folder; each is returned once for each of its states.

    Symbolic links are ignored, since their targets are not in the inbox. So are hidden names, and suffixes of
    unfinished files.
    """

    def __init__(self, root: str, settle: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._settle = settle
        self._clock = clock
        self._files: dict[str, _File] = {}
        self._unsettled: list[tuple[float, int, str, _File]] = []
        self._ready: list[tuple[int, str, int, _File]] = []
        self._count = 0

    def scan(self) -> Scan:
        """Scan every file; new and changed ones have to settle first.

        Raises ``OSError`` if the inbox itself cannot be read; its known state is kept.
        """
        begin = self._clock()
        found = Scan()
        folders: list[str] = []
        with os.scandir(self.root) as entries:
            self._scan_entries(entries, "", found, folders)
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(os.path.join(self.root, folder)) as entries:
                    self._scan_entries(entries, folder, found, folders)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.failed.append((folder, error))
        unread = tuple(os.path.join(path, "") for path, _ in found.failed)
        for path, file in self._files.items():
            if file.due is None and path not in found.files and f"{path}{os.sep}".startswith(unread):
                found.files[path] = file
        self._files = found.files
        # All files of one scan get the same age, so that they settle together and are taken in their order.
        now = self._clock()
        for path, file in found.new:
            file.first_seen = now
            self._schedule(path, file, now + self._settle)
        found.seconds = now - begin
        return found

    def _scan_entries(self, entries: Iterable[os.DirEntry[str]], folder: str, found: Scan, folders: list[str]) -> None:
        for entry in entries:
            if is_ignored(entry.name):
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
                folders.append(path)
            elif not stat.S_ISREG(status.st_mode):
                found.links += 1
            else:
                file, stamp = self._files.get(path), file_stamp(status)
                if file is None or file.stamp != stamp:
                    file = _File(stamp, 0.0, None)
                    found.new.append((path, file))
                found.files[path] = file

    def _schedule(self, path: str, file: _File, due: float) -> None:
        file.due = due
        self._count += 1
        heapq.heappush(self._unsettled, (due, self._count, path, file))

    def next_settled(self) -> SettledFile | None:
        """Return the first settled file, by (time of change, path); None if there is none."""
        now = self._clock()
        while self._unsettled and self._unsettled[0][0] <= now:
            _, number, path, file = heapq.heappop(self._unsettled)
            if self._files.get(path) is file:
                heapq.heappush(self._ready, (file.stamp.mtime_ns, path, number, file))
        while self._ready:
            _, path, _, file = heapq.heappop(self._ready)
            if self._files.get(path) is file and file.due is not None:
                file.due = None
                return SettledFile(path, file.stamp)
        return None

    @property
    def waiting_count(self) -> int:
        """The number of files that wait to be taken, settled or not."""
        return len(self._unsettled) + len(self._ready)

    @property
    def settle_delay(self) -> float | None:
        """Seconds until the next file has settled; None if none waits."""
        if self._ready:
            return 0.0
        return max(0.0, self._unsettled[0][0] - self._clock()) if self._unsettled else None

    def restart_settling(self, path: str, stamp: Stamp) -> None:
        """Let a file settle again, because it has changed since it was returned."""
        now = self._clock()
        self._files[path] = _File(stamp, now, None)
        self._schedule(path, self._files[path], now + self._settle)

    def retry_after(self, path: str, seconds: float) -> None:
        """Return a file again after some seconds, or when it has changed."""
        file = self._files.get(path)
        if file is not None:
            self._schedule(path, file, self._clock() + seconds)

    def retry_with_backoff(self, path: str, max_seconds: float) -> None:
        """Return a file again after a second, then after twice as long each time, at most ``max_seconds`` seconds."""
        file = self._files.get(path)
        if file is not None:
            self._schedule(path, file, self._clock() + min(2.0 ** min(file.failures, 20), max_seconds))
            file.failures += 1

    def age(self, path: str) -> float:
        """Return the seconds since a file was first seen unchanged."""
        file = self._files.get(path)
        return self._clock() - file.first_seen if file is not None else 0.0

    def forget_file(self, path: str) -> None:
        """Forget a file that is no longer there."""
        self._files.pop(path, None)


@contextmanager
def inbox_lock(inbox: str, *, shared: bool) -> Iterator[None]:
    """Lock an inbox against other watchers while the block runs; shared locks exclude only exclusive ones.

    The system releases the lock when the process ends. Where folders cannot be locked, as on some network drives, no
    watcher is excluded.
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
