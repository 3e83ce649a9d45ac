"""Files and folders that appear complete or not at all, what killed processes leave behind, and sizes as text."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import select
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Self

from neardup.errors import InputError, OutputError, RecipeError, StoreError, quoted

#: The end of the name of an unfinished output: 16 digits, which no other file has by chance.
_MARK = re.compile(r"[0-9a-f]{16}")
#: Maximum bytes of the target's name in it: file names have at most 255 bytes.
_LONGEST = 200
#: What is said, after its name, of whatever no longer fits onto its disk.
NO_SPACE = "cannot be written: the disk is full or a limit is reached; free some space"


class PartialOutput:
    """An unfinished file or folder, under a temporary name.

    The process holds a lock on it, which ends with the process, however it ends. The next process that writes the same
    output recognizes leftovers of killed processes by that and removes them, but keeps files that are locked or belong
    to another user. ``handle`` is the open file or folder; its permissions are ``mode`` without those that the user's
    mask removes.
    """

    def __init__(self, start: str, *, folder: bool = False, mode: int = 0o777) -> None:
        _sweep(start)
        while True:
            self.path = start + secrets.token_hex(8)
            self._folder = folder
            # A signal may end the process before anything refers to this object: Python then removes it at exit.
            self._removal = weakref.finalize(self, _remove_quietly, self.path, folder=folder)
            if folder:
                os.mkdir(self.path, mode)
            try:
                self.handle = os.open(self.path, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                if not folder:
                    raise
                self._removal.detach()
                continue
            # Before it is locked, another process may mistake it for a leftover.
            if _lock(self.handle) is not False and _is_at(self.handle, self.path):
                return
            os.close(self.handle)
            self._removal.detach()

    @classmethod
    def for_target(cls, target: str, *, folder: bool = False) -> Self:
        """Start an output for a target."""
        directory, base = os.path.split(target)
        base = os.fsencode(base)[:_LONGEST].decode("utf-8", "ignore")
        return cls(os.path.join(directory, f".{base}.partial-"), folder=folder)

    @classmethod
    def temporary_folder(cls) -> Self:
        """Make a folder for temporary files that only this user can open."""
        return cls(os.path.join(tempfile.gettempdir(), "neardup-spool-"), folder=True, mode=0o700)

    def place(self, target: str) -> None:
        """Flush it to the disk and rename it to the target."""
        self.flush()
        os.replace(self.path, target)
        self._removal.detach()
        flush_folder(os.path.dirname(target))
        self._close()

    def flush(self) -> None:
        """Flush its data to the disk: that of a file, or of all files and folders in a folder."""
        if self._folder:
            flush_tree(self.path)
        else:
            os.fsync(self.handle)

    def discard(self) -> None:
        """Remove it."""
        self._removal()
        self._close()

    def _close(self) -> None:
        # If it were closed twice, the number could belong to another file by now.
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)


@contextmanager
def placed_output(target: str, *, folder: bool = False) -> Iterator[PartialOutput]:
    """Give an unfinished output that becomes the target when the block ends, and is removed if the block fails."""
    output = PartialOutput.for_target(target, folder=folder)
    try:
        yield output
        output.place(target)
    except BaseException:
        output.discard()
        raise


def _lock(handle: int) -> bool | None:
    """Lock an open file or folder; return False if another process holds the lock, None if locks are not supported."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(handle: int, path: str) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    return False


def _sweep(start: str) -> None:
    """Remove leftovers of dead processes of this user whose names start like this."""
    directory, base = os.path.split(start)
    with suppress(OSError), os.scandir(directory or ".") as entries:
        for entry in entries:
            if entry.name.startswith(base) and _MARK.fullmatch(entry.name, len(base)):
                with suppress(OSError):
                    _remove_if_left(entry)


def _remove_if_left(entry: os.DirEntry[str]) -> None:
    folder = entry.is_dir(follow_symlinks=False)
    if not folder and not entry.is_file(follow_symlinks=False):
        return
    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _lock(handle):
            _remove(entry.path, folder=folder)
    finally:
        os.close(handle)


def _remove(path: str, *, folder: bool) -> None:
    if folder:
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)


def _remove_quietly(path: str, *, folder: bool) -> None:
    with suppress(OSError):
        _remove(path, folder=folder)


#: More files than this are flushed together with all else on their file system: each by itself takes half a
#: millisecond, however small it is.
_MANY_FILES = 200


def flush_tree(folder: str) -> None:
    """Flush all files in a folder to the disk, and then the folders, the innermost first."""
    if sum(len(names) for _, _, names in os.walk(folder)) > _MANY_FILES and _flush_file_system(folder):
        return
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            flush_file(os.path.join(parent, name))
        flush_folder(parent)


def _flush_file_system(folder: str) -> bool:
    """Flush all files of the file system of a folder by one call; return whether the system has one."""
    flush = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if flush is None:
        return False
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if flush(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), folder)
    finally:
        os.close(handle)
    return True


def flush_file(path: str) -> None:
    """Flush the data of a closed file to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: str | os.PathLike[str]) -> None:
    """Flush the entries of a folder to the disk, if its file system supports that."""
    handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file, or a pipe that somebody writes to; raises ``OSError`` for what has no end, or never begins."""
    # Opening a pipe to which nobody writes would wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind) and not _has_writer(handle, kind):
            raise OSError(errno.EINVAL, "It is neither a file nor a pipe that somebody writes to")
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _has_writer(handle: int, kind: int) -> bool:
    """Return whether somebody writes to a pipe, or has written to it."""
    if not stat.S_ISFIFO(kind):
        return False
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    # A pipe without a writer has ended from the start; one with a writer has data, or none yet.
    if [events for _, events in waiting.poll(0) if events & select.POLLIN]:
        return True
    try:
        return bool(os.read(handle, 1))
    except BlockingIOError:
        return True


def read_file(path: str | os.PathLike[str], hint: str, *, largest: int | None = None) -> bytes:
    """Return the bytes of a file; ``InputError`` ends with ``hint``, which states what to give.

    A file of more than ``largest`` bytes is refused before it is read.
    """
    try:
        with open_file(path) as file:
            data = file.read(-1 if largest is None else largest + 1)
    except OSError as error:
        raise InputError(f"{os.fspath(path)} cannot be read ({cause_of(error)}); {hint}") from None
    if largest is not None and len(data) > largest:
        raise InputError(f"{os.fspath(path)} has more than the {largest:,} bytes allowed; {hint}")
    return data


def cause_of(error: OSError) -> str:
    """Return why a file cannot be used: the words of the system, or those of the library that raised the error."""
    return error.strerror or " ".join(str(error).split()) or type(error).__name__


def is_full(error: OSError) -> bool:
    """Return whether a file cannot grow: the disk is full, or a quota or a limit is reached."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_error(name: str | os.PathLike[str], error: OSError) -> OutputError:
    """Return the error of this package for an output that a filesystem does not take."""
    shown = os.fspath(name)
    if is_full(error):
        return OutputError(f"{shown} {NO_SPACE}")
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return OutputError(f"{shown} may not be written by this user: choose another folder")
    # Without the name of the temporary file, which stands in the error's own message.
    return OutputError(f"{shown} cannot be written: {cause_of(error).lower()}; choose another folder")


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file under a temporary name beside the target, and rename it."""
    try:
        with placed_output(os.path.realpath(path)) as output, open(output.handle, "wb", closefd=False) as file:
            file.write(data)
    except OSError as error:
        raise write_error(path, error) from None


def sqlite_error(path: str | os.PathLike[str], error: Exception, *, way_out: str = "name another path") -> StoreError:
    """Return the error of this package for an error of SQLite; ``way_out`` is the alternative to a damaged file."""
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0)
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL or code in (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE):
        return StoreError(f"{path} {NO_SPACE} and try again: nothing was stored ({error})")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(error):
        return StoreError(f"{path} is damaged ({error}); restore it from a copy, or {way_out}")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"{path} is being written to by another program ({error}); stop that program and try again")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(f"{path} cannot be written ({error}); get write access to the store and its folder")
    return StoreError(f"{path} cannot be used ({error}); check its disk, or name another path")


_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[KMGT]?)(?P<binary>I?)B?", re.IGNORECASE)
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(size: str | int) -> int:
    """Return the bytes that a text like ``512MB`` (10**6), ``1.5GiB`` (2**30) or ``9`` means, at least one.

    Raises ``RecipeError`` if it is not a size.
    """
    match = None if isinstance(size, bool) else _SIZE.fullmatch(str(size).strip()[:40])
    found = 0
    if match is not None and (match["prefix"] or not match["binary"]):
        base = 1024 if match["binary"] else 1000
        found = int(float(match["number"]) * base ** _POWER[match["prefix"].upper()])
    if found < 1:
        raise RecipeError(f"{quoted(size)} is not a size; write it like 512MB, 2GB or 1.5GiB")
    return found
