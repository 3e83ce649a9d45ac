"""Single moves of files, such that nothing is overwritten, and nothing is half there after a crash."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from neardup.watch.names import Stamp, stamp_of

_HERE, _NO_REPLACE = -100, 1
_MANY = 8
#: What a file system says that has no hard links, or no more for this file.
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}


class Replaced(Exception):
    """The file is not the one that was judged: it was changed or replaced since."""


def _native(name: str, *types: Any) -> Any:
    """Return a function of the system that Python does not offer, None where there is none."""
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError, TypeError):
        return None
    call.argtypes = types
    return call


#: The rename that refuses to replace, and the flush of a whole file system.
_RENAME = _native("renameat2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_SYNC = _native("syncfs", ctypes.c_int)


def rename_new(source: str, target: str) -> None:
    """Rename a file to a name that is free.

    Where the system has no such rename, a name that is taken between the look and the rename is overwritten.

    Raises
    ------
    FileExistsError
        If the name is taken.
    OSError
        As os.rename.
    """
    if _RENAME is not None:
        if not _RENAME(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NO_REPLACE):
            return
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(number, os.strerror(number), source, None, target)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target)


def is_still(path: str, stamp: Stamp) -> bool:
    """Return whether a file is there and as it was.

    Raises
    ------
    OSError
        If the system cannot say.
    """
    try:
        return stamp_of(os.lstat(path)) == stamp
    except (FileNotFoundError, NotADirectoryError):
        return False


def move(source: str, stamp: Stamp, target: str, beside: str) -> None:
    """Move a file to a free name, by one rename; to another file system by a copy that is complete when it appears.

    Parameters
    ----------
    source : str
        The file.
    stamp : Stamp
        As it was judged.
    target : str
        Its new place.
    beside : str
        Where a copy is made, on the file system of the target.

    Raises
    ------
    Replaced
        If the file is not the one that was judged.
    FileExistsError
        If the target is taken.
    OSError
        As os.rename.
    """
    if not is_still(source, stamp):
        raise Replaced
    try:
        rename_new(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(source, stamp, target, beside)
        # Until here the source was complete as well; now it is only the target.
        if is_still(source, stamp):
            os.unlink(source)
        return
    if is_still(target, stamp):
        return
    # In the moment between the look and the rename, another file took the name: it goes back, to be judged.
    rename_new(target, source)
    raise Replaced


def link(source: str, stamp: Stamp, target: str, beside: str) -> None:
    """Give a file a second name, a free one; copy it where that cannot be. The rest is that of `move`."""
    if not is_still(source, stamp):
        raise Replaced
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        copy(source, stamp, target, beside)


def copy(source: str, stamp: Stamp, target: str, beside: str) -> None:
    """Copy a file with its times, flush it, and give it its name when it is complete. The rest is that of `move`."""
    reading = os.open(source, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        with open(reading, "rb", closefd=False) as original, open(beside, "wb") as made:
            shutil.copyfileobj(original, made, 1 << 20)
            made.flush()
            with suppress(OSError):
                shutil.copystat(source, beside, follow_symlinks=False)
            os.fsync(made.fileno())
        if stamp_of(os.fstat(reading)) != stamp:
            raise Replaced
        rename_new(beside, target)
    except BaseException:
        drop(beside)
        raise
    finally:
        os.close(reading)


def write_new(content: bytes, target: str, beside: str, *, flush: bool = False) -> None:
    """Write a file that appears complete, under a free name.

    Raises
    ------
    FileExistsError
        If the name is taken.
    OSError
        If it cannot be written.
    """
    try:
        with open(beside, "wb") as made:
            made.write(content)
            made.flush()
            if flush:
                os.fsync(made.fileno())
        rename_new(beside, target)
    except BaseException:
        drop(beside)
        raise


def drop(path: str) -> None:
    """Remove a file of ours, if it is there."""
    try:
        os.unlink(path)
    except OSError:
        return


def flush_folders(folders: Collection[str]) -> None:
    """Make the disk hold the names in folders of one file system, as far as the system can.

    Each of a few folders is flushed; for many it is the file system as a whole, which then takes less time.
    """
    if len(folders) > _MANY and _SYNC is not None:
        flush: Callable[[int], None] = _flush_all
        folders = [next(iter(folders))]
    else:
        flush = os.fsync
    for folder in folders:
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            flush(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
                raise
        finally:
            os.close(handle)


def _flush_all(handle: int) -> None:
    if _SYNC(handle):
        raise OSError(ctypes.get_errno(), "the file system cannot be flushed")
