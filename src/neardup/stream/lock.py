"""The lock of a store: one process writes, and the last one says how it left the store."""

from __future__ import annotations

import contextlib
import fcntl
import os
from io import FileIO
from pathlib import Path

from neardup.errors import StoreError
from neardup.files import NO_SPACE, is_full

_OPEN, _CLOSED = "pid", "closed"


class Lock:
    """Locks ``<store>.lock`` for the life of a store; the system releases it when the process ends, however it ends.

    The lock is a separate file, so that other programs can read the store while it is in use. The file stays after
    the release (otherwise two openers could lock two files of one name) and then records the last state of the
    store: a store that has changed since is checked before use.

    Raises ``StoreError`` if another process, or another Store of this one, holds it, or the file cannot be made.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self.path = self.path_for(store)
        try:
            self._file = FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+")
        except OSError as error:
            if is_full(error):
                raise StoreError(f"{store} {NO_SPACE}") from None
            raise StoreError(
                f"{store} cannot be locked: {self.path.name} cannot be written beside it ({error.strerror}); a store "
                "needs a folder that may be written to"
            ) from None
        try:
            self._acquire()
            self._last_state = self._words()
            self._write(f"{_OPEN} {os.getpid()}\n")
        except BaseException:
            self._file.close()
            raise

    @staticmethod
    def path_for(store: Path) -> Path:
        """Return the path of the lock file of a store."""
        return store.with_name(f"{store.name}.lock")

    @staticmethod
    def is_held(store: Path) -> bool:
        """Return whether a process has the store open for writing."""
        try:
            handle = os.open(Lock.path_for(store), os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    @staticmethod
    def service_address(store: Path) -> str:
        """Return the address of the service that has a store open; empty if there is none."""
        with contextlib.suppress(OSError):
            words = Lock.path_for(store).read_text("utf-8", "replace").split()
            if len(words) == 3 and words[0] == _OPEN:
                return words[2]
        return ""

    def record_address(self, address: str) -> None:
        """Record the address of the service that has the store open."""
        self._write(f"{_OPEN} {os.getpid()} {address}\n")

    def _acquire(self) -> None:
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = self._words()
            has_process = len(words) > 1 and words[0] == _OPEN
            holder = f"process {words[1]}" if has_process else "another process"
            holder += " (this one)" if has_process and words[1] == str(os.getpid()) else ""
            raise StoreError(
                f"{self._store} is in use by {holder}; a store has one writer at a time: stop that one, or "
                "name another path"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{self._store} cannot be locked ({error.strerror}); keep the store on a file system with locks"
            ) from None

    def _words(self) -> list[str]:
        return self._file.read(1000).decode("utf-8", "replace").split()

    def _write(self, line: str) -> None:
        # A lost write only costs a check at the next start, so a full disk is no reason to stop.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.pwrite(self._file.fileno(), line.encode(), 0)

    @property
    def is_unchanged(self) -> bool:
        """Whether the last holder closed the store cleanly and nobody has changed it since."""
        return self._last_state == self._state().split()

    def _state(self) -> str:
        found = self._store.stat()
        return f"{_CLOSED} {found.st_size} {found.st_mtime_ns}\n"

    def release(self, *, clean: bool) -> None:
        """Release the lock.

        ``clean``: whether the store is closed cleanly, or was clean before and refused without a change.
        """
        if not self._file.closed:
            state = ""
            # The store may have been removed meanwhile.
            with contextlib.suppress(OSError):
                state = self._state() if clean else ""
            self._write(state)
            self._file.close()
