"""Items in the output folders: found by their entries in the store, for reports, and released."""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.errors import InputError, NeardupError, OutputError
from neardup.stream.document import Document
from neardup.watch import outputs
from neardup.watch.delivery import read_items
from neardup.watch.inbox import SIDECAR_LINES, Stamp, file_of, file_stamp, open_file, printable_path, stamp_at
from neardup.watch.log import error_reason
from neardup.watch.outputs import OutputFolder, has_time, lines_path, marked_path, sidecar_of
from neardup.watch.placement import tag_of
from neardup.watch.settings import FOLDERS

if TYPE_CHECKING:
    from neardup.items.item import Item
    from neardup.stream.document import Arrival
    from neardup.stream.index import Index
    from neardup.stream.store import Store


class PlacedItems:
    """Finds placed items in the output folders by their entries in the store.

    Removed and changed items are not found. A duplicate is identified by its sidecar, an original by the size and the
    time of its file, and an item of a file with several items by its id.

    ``max_bytes``: the most bytes that are read; items beyond are not found.
    """

    def __init__(self, originals: str, duplicates: str, content: str, max_bytes: int) -> None:
        self._originals, self._duplicates, self._content = originals, duplicates, content
        self._remaining_bytes = max_bytes
        self._files: dict[str, dict[str, Item]] = {}

    def find(self, name: str, origin: str, *, is_duplicate: bool) -> tuple[Item, str] | None:
        """Return an item and the path of its file, empty for an item of several; None if it is not found."""
        try:
            path, stamp = file_of(origin)
        except (ValueError, TypeError):
            return None
        folder = OutputFolder(self._duplicates if is_duplicate else self._originals, "")
        pairs = zip(folder.paths(path, stamp), folder.paths(lines_path(path), stamp), strict=True)
        for single, several in pairs:
            with suppress(OSError, ValueError, NeardupError, RecursionError):
                is_it = self._has_sidecar(single, name) if is_duplicate else _has_stamp(single, stamp)
                if is_it and (found := self._first_item(printable_path(path), self._read(single))) is not None:
                    return found, single
            found = self._items_by_id(several, is_duplicate=is_duplicate).get(name)
            if found is not None:
                return found, ""
        return None

    def _has_sidecar(self, path: str, name: str) -> bool:
        record = json.loads(self._read(sidecar_of(path)))
        return isinstance(record, dict) and record.get("id") == name

    def _items_by_id(self, path: str, *, is_duplicate: bool) -> dict[str, Item]:
        """Return the items of a file of originals or of duplicates by their ids."""
        if path not in self._files:
            self._files[path] = {}
            with suppress(OSError, ValueError, NeardupError, RecursionError):
                lines = self._read(path).split(b"\n")[:-1]
                items = [self._item_of_line(line) for line in lines]
                names = [item.key if item is not None else "" for item in items]
                if is_duplicate:
                    # A repeated id has another name in the sidecar than in the line.
                    sidecar = self._read(sidecar_of(path, SIDECAR_LINES)).splitlines()
                    names = [json.loads(line)["id"] for line in sidecar]
                pairs = zip(names, items, strict=True)
                self._files[path] = {name: item for name, item in pairs if name and item is not None}
        return self._files[path]

    def _item_of_line(self, line: bytes) -> Item | None:
        item, record = self._first_item("item.json", line), json.loads(line)
        # The texts of items that were not JSON already begin with their titles, or are their titles.
        if item is not None and "raw" in record and f"{item.text}\n".startswith(f"{item.title}\n{item.title}\n"):
            return replace(item, text=item.text.removeprefix(f"{item.title}\n"))
        return item

    def _first_item(self, name: str, data: bytes) -> Item | None:
        return next(read_items(name, data, self._content).items, None)

    def _read(self, path: str) -> bytes:
        with open(open_file(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{path} is no file")
            data = file.read(self._remaining_bytes + 1)
        if len(data) > self._remaining_bytes:
            raise OSError(f"{path} is larger than what is left to read")
        self._remaining_bytes -= len(data)
        return data


def _has_stamp(path: str, stamp: Stamp) -> bool:
    """Return whether a file has the size and the time of a delivered one."""
    found = stamp_at(path)
    return found is not None and found.size == stamp.size and has_time(path, stamp)


#: The most bytes that are read in the search for an item.
_MAX_READ_BYTES = 1 << 30


def release(index: Index, store: Store, name: str, by: str) -> str:
    """Release a stopped item, and return the path of its file among the originals.

    Its file is moved there; an item of a file with several items is written to its own file. The path is empty if the
    store has no output folders, because no watcher has filled it.

    Raises ``NeardupError`` if no such item was stopped, its text is no longer available, or its file cannot be moved;
    then nothing has changed.
    """
    row = store.stopped_document(name)
    folders = json.loads(store.state(FOLDERS) or "{}")
    if not folders:
        index.release(name, by)
        return ""
    placed_items = PlacedItems(folders["originals"], folders["duplicates"], folders["content"], _MAX_READ_BYTES)
    found = placed_items.find(name, row.origin, is_duplicate=True)
    if found is None:
        raise InputError(
            f"{name!r} is not in {folders['duplicates']} any more; put its file and the sidecar back, or deliver it "
            "again under another id"
        )
    item, source = found
    # A separate tag: the watcher's unfinished files stay untouched.
    output = OutputFolder(folders["originals"], f"{tag_of(store)}-released")
    try:
        target = _place_original(output, item, source, row)
    except (OSError, outputs.FileReplacedError) as error:
        cause = error_reason(error) if isinstance(error, OSError) else "it has changed meanwhile"
        raise OutputError(f"{name!r} cannot go to {output.root}: {cause}; nothing has changed") from None
    try:
        index.release(Document(name, item.text, title=item.title), by)
    except BaseException:
        outputs.remove_file(target)
        raise
    finally:
        output.close()
    if source:
        # The index has accepted the release, so the duplicate is no longer needed.
        outputs.remove_file(source)
        outputs.remove_file(sidecar_of(source))
    return target


def _place_original(output: OutputFolder, item: Item, source: str, row: Arrival) -> str:
    """Link the file of an item among the originals, or write the item there; return the path."""
    output.open()
    path, stamp = file_of(row.origin)
    targets = output.paths(path, stamp)
    if not source:
        # Other items of the same file may be released as well.
        lines = lines_path(path)
        targets = [output.paths(name, stamp)[0] for name in (lines, marked_path(lines, str(row.serial)))]
    for target in targets:
        output.prepare(target)
        with suppress(FileExistsError):
            if source:
                outputs.link(source, file_stamp(os.lstat(source)), target, output.temporary_path())
            else:
                outputs.write_new(item.raw.strip() + b"\n", target, output.temporary_path(), stamp.mtime_ns)
            output.flush()
            return target
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), targets[-1])
