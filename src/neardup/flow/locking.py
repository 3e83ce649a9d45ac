"""One writer for a store: a lock that ends with its process, and a note on how the last one left."""

from __future__ import annotations

import contextlib
import os
import sys
from io import FileIO
from pathlib import Path

from neardup.errors import StoreError

if sys.platform != "win32":
    import fcntl

_OPEN = "pid"
_CLOSED = "closed"


class Lock:
    """Holds ``<store>.lock`` for the life of a store; the system lets go of it when the process ends, however it ends.

    The lock is beside the store, not in it, so that other programs can read the store while it is in use. The file
    stays when the lock goes (removing it would let two openers lock two files of one name). It then says which state
    of the store was the last: a store that has changed since is checked before it is used.

    Parameters
    ----------
    store : Path
        The store that is locked.

    Raises
    ------
    StoreError
        If another process, or another Store of this one, holds it, or the file cannot be made.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self.path = self.beside(store)
        try:
            self._file = FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666), "r+")
        except OSError as error:
            raise StoreError(
                f"{store} cannot be locked: {self.path.name} cannot be written beside it ({error.strerror}); a store "
                "needs a folder that may be written to"
            ) from None
        try:
            self._take()
            self._left = self._file.read(200).decode("ascii", "replace").split()
            self._write(f"{_OPEN} {os.getpid()}\n")
        except BaseException:
            self._file.close()
            raise

    @staticmethod
    def beside(store: Path) -> Path:
        """Return where the lock of a store lies."""
        return store.with_name(f"{store.name}.lock")

    def _take(self) -> None:
        if sys.platform == "win32":  # nobody is kept out there; SQLite's own locks still keep the file whole
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = self._file.read(200).decode("ascii", "replace").split()
            known = len(words) == 2 and words[0] == _OPEN
            who = f"process {words[1]}" if known else "another process"
            who += " (this one)" if known and words[1] == str(os.getpid()) else ""
            raise StoreError(
                f"{self._store} is in use by {who}; a store has one writer at a time: stop that one, or name another "
                "path"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{self._store} cannot be locked ({error.strerror}); keep the store on a file system with locks"
            ) from None

    def _write(self, line: str) -> None:
        # What is lost here costs a check at the next start, nothing else; so a full disk is no reason to stop.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.lseek(self._file.fileno(), 0, os.SEEK_SET)
            self._file.write(line.encode())

    @property
    def left_as_it_is(self) -> bool:
        """Whether the last holder closed the store in order and nobody has changed it since."""
        return self._left == self._state().split()

    def _state(self) -> str:
        found = self._store.stat()
        return f"{_CLOSED} {found.st_size} {found.st_mtime_ns}\n"

    def release(self, *, clean: bool) -> None:
        """Let go.

        Parameters
        ----------
        clean : bool
            Whether the store is closed in order, or was refused without a change to it and was left so before.
        """
        if not self._file.closed:
            self._write(self._state() if clean else "")
            self._file.close()
