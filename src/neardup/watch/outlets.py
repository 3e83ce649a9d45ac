"""The folders that files go to: names in them, work in progress beside them, and what is written piece by piece."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
from collections.abc import Collection
from contextlib import suppress

from neardup.watch import moving
from neardup.watch.names import SIDECAR_LINES, first_free, numbered, sidecar_of

#: In a folder that files go to: what is not yet complete.
_WORK = ".neardup"


class Outlet:
    """A folder that files go to, each under its path in the inbox.

    Parameters
    ----------
    root : str
        The folder.
    tag : str
        Tells this watcher's work in progress from that of others.
    """

    def __init__(self, root: str, tag: str) -> None:
        self.root = root
        self._work = os.path.join(root, _WORK, f"incomplete-{tag}")
        self._number = 0
        self._touched: set[str] = set()
        self._hints: dict[str, int] = {}

    def open(self) -> None:
        """Make the folder if it is missing, and drop what an earlier run left incomplete."""
        os.makedirs(self.root, exist_ok=True)
        shutil.rmtree(self._work, ignore_errors=True)

    def close(self) -> None:
        """Remove the place of work in progress, if nothing is in it."""
        for folder in (self._work, os.path.dirname(self._work)):
            with suppress(OSError):
                os.rmdir(folder)

    def path(self, name: str) -> str:
        """Return the full path of a name."""
        return os.path.join(self.root, name)

    def beside(self) -> str:
        """Return a path for work in progress, on the file system of the folder.

        Raises
        ------
        OSError
            If the folder itself is gone: it may have been a disk that is to come back, so it is not made anew.
        """
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", self.root)
        os.makedirs(self._work, exist_ok=True)
        self._number += 1
        return os.path.join(self._work, str(self._number))

    def room_for(self, name: str) -> str:
        """Make the sub-folders that a name needs, and return its full path."""
        target = self.path(name)
        folder = os.path.dirname(target)
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", self.root)
        if not os.path.isdir(folder):
            try:
                os.makedirs(folder, exist_ok=True)
            except NotADirectoryError as error:
                # A file has the name of a sub-folder: the name is taken, and another one is chosen.
                raise FileExistsError(errno.EEXIST, "the name is taken", target) from error
            # The names of the new folders are to last as well.
            above = os.path.dirname(folder)
            while len(above) >= len(self.root):
                self._touched.add(above)
                above = os.path.dirname(above)
        self._touched.add(folder)
        return target

    def free(self, name: str, reserved: Collection[str]) -> str:
        """Return the name, or with a number if a file or a sidecar has it already."""
        name = self._in_folders(name)

        def taken(number: int) -> bool:
            candidate = numbered(name, number)
            if candidate in reserved:
                return True
            path = self.path(candidate)
            return any(os.path.lexists(p) for p in (path, sidecar_of(path), sidecar_of(path, SIDECAR_LINES)))

        if not taken(1):
            return name
        hint = self._hints.get(name, 2)
        number = hint if not taken(hint) else first_free(taken)
        if len(self._hints) > 10_000:
            self._hints.clear()
        self._hints[name] = number + 1
        return numbered(name, number)

    def _in_folders(self, name: str) -> str:
        """Return the name with numbers on those of its sub-folders whose names are files."""
        folder, base = os.path.split(name)
        if not folder or os.path.isdir(self.path(folder)):
            return name
        above, last = os.path.split(folder)
        above = self._in_folders(os.path.join(above, "")).rstrip(os.sep) if above else ""

        def taken(number: int) -> bool:
            path = self.path(os.path.join(above, numbered(last, number)))
            return os.path.lexists(path) and not os.path.isdir(path)

        return os.path.join(above, numbered(last, first_free(taken)) if taken(1) else last, base)

    def flush(self) -> None:
        """Make the disk hold the names that were given."""
        moving.flush_folders(self._touched)
        self._touched.clear()


class Spool:
    """Records that become one file when they are complete; until then they are work in progress.

    Parameters
    ----------
    outlet : Outlet
        Where the file goes.
    """

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet
        self.lines = 0
        self.placed = False
        self._beside = ""
        self._good = 0
        self._pending: list[bytes] = []

    def add(self, line: bytes) -> None:
        """Take a record, to be written by `flush`."""
        self._pending.append(line)
        self.lines += 1

    def flush(self) -> None:
        """Write the records taken so far; after an error they are still there to be written."""
        if not self._pending:
            return
        if not self._beside:
            self._beside = self.outlet.beside()
            with open(self._beside, "xb"):
                pass
        with open(self._beside, "r+b", buffering=0) as file:
            # What an earlier attempt wrote in part is written again.
            file.truncate(self._good)
            file.seek(self._good)
            content = memoryview(b"".join(self._pending))
            while content:
                content = content[file.write(content) :]
            self._good = file.tell()
        self._pending = []

    def place(self, name: str, *, resumed: bool) -> None:
        """Put the file in its place; again after a crash, it may be there already.

        Raises
        ------
        FileExistsError
            If another file has the name.
        OSError
            If it cannot be placed; `outlet` may be gone, and the work in progress with it.
        """
        if self.placed or not self.lines:
            return
        self.flush()
        handle = os.open(self._beside, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        target = self.outlet.room_for(name)
        try:
            moving.rename_new(self._beside, target)
        except FileExistsError:
            if not resumed or not filecmp.cmp(self._beside, target, shallow=False):
                raise
            moving.drop(self._beside)
        self.placed = True

    def drop(self) -> None:
        """Let go of what was written."""
        if self._beside and not self.placed:
            moving.drop(self._beside)
