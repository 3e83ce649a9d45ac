"""Output folders: files are moved without overwriting anything, and a crash leaves none of them incomplete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count

from neardup.files import flush_folder
from neardup.watch.inbox import SIDECAR, SIDECAR_LINES, Stamp, file_stamp, open_file, stamp_at

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


def write_new(content: bytes, target: str, temporary_path: str) -> None:
    """Write a file that appears complete, under a free name; its data is on the disk before.

    Raises ``FileExistsError`` if the name is taken. Raises ``OSError`` if it cannot be written.
    """
    with _incomplete_file(temporary_path, target):
        with open(temporary_path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        rename_new(temporary_path, target)


def write_once(content: bytes, target: str, temporary_path: str, *, is_resumed: bool) -> None:
    """Write a file as ``write_new`` does; accept one that an earlier attempt has written."""
    try:
        write_new(content, target, temporary_path)
    except FileExistsError:
        if not is_resumed:
            raise
        with open(target, "rb") as file:
            if file.read() != content:
                raise


def remove_file(path: str) -> None:
    """Remove a file that neardup wrote, if it is there."""
    try:
        os.unlink(path)
    except OSError:
        return


#: The most bytes of a name on usual file systems.
_MAX_NAME_BYTES = 255


class FreeNumbers:
    """Numbers for repeated names. The last number of each name is stored, so that the next one is found fast."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def next_free(self, name: str, is_taken: Callable[[int], bool]) -> int:
        """Return the next number from 2 on that is not taken."""
        number = next(number for number in count(self._next.get(name, 2)) if not is_taken(number))
        if len(self._next) > 10_000:
            self._next.clear()
        self._next[name] = number + 1
        return number


def numbered_path(path: str, number: int) -> str:
    """Return the path of a second (third, ...) file of a name: ``a/b~2.txt``; 1 changes nothing."""
    if number < 2:
        return path
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)
    return os.path.join(folder, fitted_name(stem, f"~{number}{suffix}"))


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
        self._numbers = FreeNumbers()

    def open(self) -> None:
        """Make the folder if it is missing, and remove incomplete files of earlier runs."""
        os.makedirs(self.root, exist_ok=True)
        shutil.rmtree(self._temporary_folder, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder of incomplete files, if it is empty."""
        for folder in (self._temporary_folder, os.path.dirname(self._temporary_folder)):
            with suppress(OSError):
                os.rmdir(folder)

    def path(self, name: str) -> str:
        """Return the full path of a name."""
        return os.path.join(self.root, name)

    def temporary_path(self) -> str:
        """Return a path for an incomplete file on the file system of the folder.

        Raises ``OSError`` if the folder itself is gone: it may be on a disk that comes back, so it is not made again.
        """
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", self.root)
        os.makedirs(self._temporary_folder, exist_ok=True)
        self._temporary_number += 1
        return os.path.join(self._temporary_folder, str(self._temporary_number))

    def prepare_path(self, name: str) -> str:
        """Make the sub-folders that a name needs, and return its full path."""
        target = self.path(name)
        folder = os.path.dirname(target)
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", self.root)
        if not os.path.isdir(folder):
            try:
                os.makedirs(folder, exist_ok=True)
            except NotADirectoryError as error:
                # A file has the name of a sub-folder, so another name is needed.
                raise FileExistsError(errno.EEXIST, "the name is taken", target) from error
            # The names of the new folders must reach the disk as well.
            parent = os.path.dirname(folder)
            while len(parent) >= len(self.root):
                self._unflushed.add(parent)
                parent = os.path.dirname(parent)
        self._unflushed.add(folder)
        return target

    def free_name(self, name: str, reserved: Collection[str]) -> str:
        """Return the name, with a number if a file or a sidecar has it already."""
        name = self._with_free_folders(name)

        def is_taken(number: int) -> bool:
            candidate = numbered_path(name, number)
            if candidate in reserved:
                return True
            path = self.path(candidate)
            return any(os.path.lexists(path) for path in (path, sidecar_of(path), sidecar_of(path, SIDECAR_LINES)))

        return numbered_path(name, self._numbers.next_free(name, is_taken)) if is_taken(1) else name

    def _with_free_folders(self, name: str) -> str:
        """Return the name with numbers on those of its sub-folders whose names belong to files."""
        folder, base = os.path.split(name)
        if not folder or os.path.isdir(self.path(folder)):
            return name
        parent, last = os.path.split(folder)
        parent = self._with_free_folders(os.path.join(parent, "")).rstrip(os.sep) if parent else ""

        def is_taken(number: int) -> bool:
            path = self.path(os.path.join(parent, numbered_path(last, number)))
            return os.path.lexists(path) and not os.path.isdir(path)

        free_name = numbered_path(last, FreeNumbers().next_free(last, is_taken)) if is_taken(1) else last
        return os.path.join(parent, free_name, base)

    def flush(self) -> None:
        """Flush the folders with new names to the disk."""
        for folder in self._unflushed:
            with suppress(FileNotFoundError):
                flush_folder(folder)
        self._unflushed.clear()
