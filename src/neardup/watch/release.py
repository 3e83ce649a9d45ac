"""Release of a stopped item: its file moves to the originals, and the item enters the window."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING
from zlib import crc32

from neardup.errors import InputError, OutputError
from neardup.stream.document import Document
from neardup.watch import outputs
from neardup.watch.log import error_reason
from neardup.watch.names import SIDECAR, file_of, file_stamp, sidecar_of
from neardup.watch.outputs import OutputFolder
from neardup.watch.report import PlacedItems
from neardup.watch.settings import FOLDERS

if TYPE_CHECKING:
    from neardup.stream.index import Index
    from neardup.stream.store import Store
    from neardup.watch.items import Item

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
    output = OutputFolder(folders["originals"], format(crc32(os.fsencode(store.path)), "08x") + "-released")
    try:
        target = _place_original(output, item, source, file_of(row.origin)[0])
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
        outputs.remove_file(sidecar_of(source, SIDECAR))
    return target


def _place_original(output: OutputFolder, item: Item, source: str, path: str) -> str:
    """Link the file of an item among the originals, or write the item there; return the path."""
    output.open()
    if source:
        target = output.prepare_path(output.free_name(path, ()))
        outputs.link(source, file_stamp(os.lstat(source)), target, output.temporary_path())
    else:
        lines = path if path.endswith((".jsonl", ".ndjson")) else f"{path}.jsonl"
        target = output.prepare_path(output.free_name(lines, ()))
        outputs.write_new(item.raw.strip() + b"\n", target, output.temporary_path(), flush=True)
    output.flush()
    return target
