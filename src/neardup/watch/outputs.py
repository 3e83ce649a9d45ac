"""Output folders: the names of files in them, and moves that overwrite nothing and leave no file incomplete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b

from neardup.files import flush_folder
from neardup.times import utc
from neardup.watch.inbox import SIDECAR, Stamp, file_stamp, open_file, origin_of, stamp_at

#: Errors of systems without hard links, with too many of them, or without links to files of other users.
_NO_LINK = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}


class FileReplacedError(Exception):
    """The file is not the one that was judged: it was changed or replaced since."""


def rename_new(source: str, target: str) -> None:
    """Rename a file to a name that is free.

    On a system without hard links, a name that is taken between the check and the rename is overwritten.

    Raises ``FileExistsError`` if the name is taken. Raises ``OSError`` as ``os.rename`` does.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(source, target)
    else:
        os.unlink(source)


def move(source: str, stamp: Stamp, target: str, temporary_path: str) -> None:
    """Move a file to a free name; on another file system, by a copy that is complete when it appears.

    At each moment the file is complete in one place or in both.

    Raises ``FileReplacedError`` if the file is not the one that was judged, ``FileExistsError`` if the target is taken,
    and ``OSError`` as ``os.rename`` does.
    """
    try:
        link(source, stamp, target, temporary_path, copies=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        rename_new(source, target)
        if stamp_at(target) != stamp:
            # Another file took the name between the check and the rename: it goes back, to be judged.
            rename_new(target, source)
            raise FileReplacedError from None
        return
    try:
        if stamp_at(source) == stamp:
            os.unlink(source)
    except OSError:
        remove_file(target)
        raise


def link(source: str, stamp: Stamp, target: str, temporary_path: str, *, copies: bool = True) -> None:
    """Link a file to a free name, or copy it to another file system; otherwise as `move`."""
    if stamp_at(source) != stamp:
        raise FileReplacedError
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno != errno.EXDEV and not (copies and error.errno in _NO_LINK):
            raise
        copy(source, stamp, target, temporary_path)
        return
    if stamp_at(target) != stamp:
        # Another file took the name between the check and the link: it stays, to be judged.
        os.unlink(target)
        raise FileReplacedError


def copy(source: str, stamp: Stamp, target: str, temporary_path: str) -> None:
    """Copy a file with its times, flush it, and rename it once it is complete; otherwise as `move`."""
    descriptor = open_file(source)
    try:
        with _incomplete_file(temporary_path, target):
            with open(descriptor, "rb", closefd=False) as original, open(temporary_path, "wb") as copied:
                shutil.copyfileobj(original, copied, 1 << 20)
                copied.flush()
                with suppress(OSError):
                    shutil.copystat(source, temporary_path, follow_symlinks=False)
                os.fsync(copied.fileno())
            if file_stamp(os.fstat(descriptor)) != stamp:
                raise FileReplacedError
            rename_new(temporary_path, target)
    finally:
        os.close(descriptor)


@contextmanager
def _incomplete_file(temporary_path: str, target: str) -> Iterator[None]:
    """Remove the file after an error, which then names the target: that of a full disk names no file."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = target
        remove_file(temporary_path)
        raise


def write_new(content: bytes, target: str, temporary_path: str, mtime_ns: int | None = None) -> None:
    """Write a file that appears complete, under a free name, with that time; its data is on the disk before.

    Raises ``FileExistsError`` if the name is taken. Raises ``OSError`` if it cannot be written.
    """
    with _incomplete_file(temporary_path, target):
        with open(temporary_path, "wb") as file:
            file.write(content)
            file.flush()
            if mtime_ns is not None:
                with suppress(OSError):
                    os.utime(temporary_path, ns=(mtime_ns, mtime_ns))
            os.fsync(file.fileno())
        rename_new(temporary_path, target)


def remove_file(path: str) -> None:
    """Remove a file that neardup wrote, if it is there."""
    try:
        os.unlink(path)
    except OSError:
        return


#: The most bytes of a name on usual file systems.
_MAX_NAME_BYTES = 255
#: The units of time in nanoseconds to which file systems round down.
_TIME_UNITS_NS = (1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000)


def names_of(path: str, stamp: Stamp) -> tuple[str, str]:
    """Return the names under which a delivered file may be placed: its path, and one that no other delivery has.

    The second ends in the time of its last change (UTC) and in six digits of its stamp: ``a/b~20261128T081500-5f3a9c``.
    A serial would do as well until its item is released or replaced, which gives that another one.
    """
    moment = utc(stamp.mtime_ns // 1000).strftime("%Y%m%dT%H%M%S")
    digits = blake2b(origin_of(path, stamp).encode(), digest_size=3).hexdigest()
    return path, marked_path(path, f"{moment}-{digits}")


def marked_path(path: str, mark: str) -> str:
    """Return a path with a mark before its suffix: ``a/b~mark.txt``."""
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)
    return os.path.join(folder, fitted_name(stem, f"~{mark}{suffix}"))


def has_time(path: str, stamp: Stamp) -> bool:
    """Return whether the file at a path has the time of a delivered one, as everything that is made of it has."""
    found = stamp_at(path)
    time = stamp.mtime_ns
    return found is not None and found.mtime_ns in [time - time % unit for unit in _TIME_UNITS_NS]


def fitted_name(name: str, ending: str) -> str:
    """Return a name with an ending; the name is cut if both together are too long for a file system."""
    limit = _MAX_NAME_BYTES - len(os.fsencode(ending))
    raw = os.fsencode(name)
    if len(raw) > limit:
        # A character that the cut would split is dropped.
        name = os.fsdecode(raw[:limit].decode("utf-8", "ignore").encode())
    return name + ending


def sidecar_of(path: str, ending: str = SIDECAR) -> str:
    """Return the path of the sidecar of a file."""
    folder, name = os.path.split(path)
    return os.path.join(folder, fitted_name(name, ending))


def lines_path(path: str) -> str:
    """Return the path of the JSON lines made from a file of several items."""
    return path if path.endswith((".jsonl", ".ndjson")) else f"{path}.jsonl"


class OutputFolder:
    """A folder that receives files, each under its path in the inbox."""

    def __init__(self, root: str, tag: str) -> None:
        self.root = root
        self._temporary_folder = os.path.join(root, ".neardup", f"incomplete-{tag}")
        self._temporary_number = 0
        self._unflushed: set[str] = set()

    def open(self) -> None:
        """Make the folder if it is missing, and remove incomplete files of earlier runs."""
        os.makedirs(self.root, exist_ok=True)
        shutil.rmtree(self._temporary_folder, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder of incomplete files, if it is empty."""
        for folder in (self._temporary_folder, os.path.dirname(self._temporary_folder)):
            with suppress(OSError):
                os.rmdir(folder)

    def temporary_path(self) -> str:
        """Return a path for an incomplete file on the file system of the folder.

        Raises ``OSError`` if the folder itself is gone: it may be on a disk that comes back, so it is not made again.
        """
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", self.root)
        os.makedirs(self._temporary_folder, exist_ok=True)
        self._temporary_number += 1
        return os.path.join(self._temporary_folder, str(self._temporary_number))

    def paths(self, path: str, stamp: Stamp) -> list[str]:
        """Return the full paths under which a delivered file may be placed, in order of preference.

        A sub-folder whose name is that of a file ends in ``~folder``.
        """
        root = self.root
        for part in path.split(os.sep)[:-1]:
            root = os.path.join(root, part)
            while os.path.lexists(root) and not os.path.isdir(root):
                root = os.path.join(os.path.dirname(root), fitted_name(os.path.basename(root), "~folder"))
        return [os.path.join(root, os.path.basename(name)) for name in names_of(path, stamp)]

    def prepare(self, target: str) -> None:
        """Make the sub-folders of a path, and remember what has to be flushed."""
        folder = os.path.dirname(target)
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", self.root)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            # The names of the new folders must reach the disk as well.
            parent = os.path.dirname(folder)
            while len(parent) >= len(self.root):
                self._unflushed.add(parent)
                parent = os.path.dirname(parent)
        self._unflushed.add(folder)

    def flush(self) -> None:
        """Flush the folders with new names to the disk."""
        for folder in self._unflushed:
            with suppress(FileNotFoundError):
                flush_folder(folder)
        self._unflushed.clear()
