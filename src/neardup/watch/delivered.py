"""Items read again from where they were put: the store keeps no text of what the window does not hold."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import replace

from neardup.content.charset import page_text
from neardup.content.items import Item, items_in
from neardup.errors import NeardupError
from neardup.watch.names import SIDECAR, SIDECAR_LINES, Stamp, file_of, numbered, shown, sidecar_of

#: So many files of one name are looked through.
_OF_A_NAME = 20


class Delivered:
    """Finds items by what the store says of them, in the folders that they go to.

    What somebody took away or changed is not found. A duplicate is known by its sidecar, an original by the size and
    time of its file, and of a file of several items by its id.

    Parameters
    ----------
    originals, duplicates : str
        The folders.
    content : str
        What of pages is taken, as in the watcher's settings.
    most : int
        Bytes that are read at most; what lies beyond is not found.
    """

    def __init__(self, originals: str, duplicates: str, content: str, most: int) -> None:
        self._originals, self._duplicates, self._content = originals, duplicates, content
        self._left = most
        self._files: dict[str, dict[str, Item]] = {}

    def item(self, name: str, origin: str, *, is_duplicate: bool) -> Item | None:
        """Return an item; None where it is not there, or not to be read.

        Parameters
        ----------
        name : str
            Its id.
        origin : str
            What the store has as its origin.
        is_duplicate : bool
            Which of the folders it went to.
        """
        try:
            path, stamp = file_of(origin)
        except (ValueError, TypeError):
            return None
        folder = self._duplicates if is_duplicate else self._originals
        lines = path if path.endswith((".jsonl", ".ndjson")) else f"{path}.jsonl"
        for number in range(1, _OF_A_NAME + 1):
            single, several = (os.path.join(folder, numbered(one, number)) for one in (path, lines))
            if not (os.path.lexists(single) or os.path.lexists(several)):
                return None
            with suppress(OSError, ValueError, NeardupError, RecursionError):
                is_it = self._has_sidecar(single, name) if is_duplicate else _is_same(single, stamp)
                if is_it and (found := self._first(shown(path), self._read(single))) is not None:
                    return found
            found = self._of_lines(several, is_duplicate=is_duplicate).get(name)
            if found is not None:
                return found
        return None

    def _has_sidecar(self, path: str, name: str) -> bool:
        """Return whether beside a file lies what was said of that item."""
        record = json.loads(self._read(sidecar_of(path, SIDECAR)))
        return isinstance(record, dict) and record.get("id") == name

    def _of_lines(self, path: str, *, is_duplicate: bool) -> dict[str, Item]:
        """Return the items of a file that was made of originals or of duplicates, by their ids."""
        if path not in self._files:
            self._files[path] = {}
            with suppress(OSError, ValueError, NeardupError, RecursionError):
                lines = self._read(path).split(b"\n")[:-1]
                items = [self._of_line(line) for line in lines]
                names = [item.key if item is not None else "" for item in items]
                if is_duplicate:
                    # Ids that came twice have another name there than in the line.
                    sidecar = self._read(sidecar_of(path, SIDECAR_LINES)).splitlines()
                    names = [json.loads(line)["id"] for line in sidecar]
                pairs = zip(names, items, strict=True)
                self._files[path] = {name: item for name, item in pairs if name and item is not None}
        return self._files[path]

    def _of_line(self, line: bytes) -> Item | None:
        item, record = self._first("item.json", line), json.loads(line)
        # Items of other files than JSON were written with their titles before their texts already.
        if item is not None and "raw" in record and item.text.startswith(f"{item.title}\n{item.title}\n"):
            return replace(item, text=item.text.removeprefix(f"{item.title}\n"))
        return item

    def _first(self, name: str, data: bytes) -> Item | None:
        read = items_in(name, data)
        item = next(read.items, None)
        if item is not None and read.kind == "html" and self._content != "auto":
            item = replace(item, text=page_text(item.raw))
        return item

    def _read(self, path: str) -> bytes:
        # Whatever lies there by now: links are not followed, and pipes are not waited for.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{path} is no file")
            data = file.read(self._left + 1)
        if len(data) > self._left:
            raise OSError(f"{path} is larger than what is left to read")
        self._left -= len(data)
        return data


def _is_same(path: str, stamp: Stamp) -> bool:
    """Return whether a file is one that was moved or copied: of the same size and time of change."""
    now = os.lstat(path)
    return (now.st_size, now.st_mtime_ns) == (stamp.size, stamp.mtime_ns)
