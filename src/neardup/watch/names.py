"""Names of files in a watched folder: stamps, keys in the store, free names, shortened names."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

#: Suffix of the sidecar of a file, with its verdict and evidence, or the reason of its rejection.
SIDECAR = ".neardup.json"
#: The same for a file of several items, a line for each.
SIDECAR_LINES = ".neardup.jsonl"

#: The most bytes of a name on usual file systems.
_MAX_NAME_BYTES = 255
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", "~")


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
    """Return the key of a file in the store: its path below the inbox, and its stamp.

    It is ASCII, whatever bytes the path contains.
    """
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
    return name.startswith(".") or name.lower().endswith((*_UNFINISHED, SIDECAR, SIDECAR_LINES))


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
