"""One file of the inbox: its bytes, read so that no half of a change is in them, and its items."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace

from neardup.content.charset import page_text
from neardup.content.items import Broken, Item, Items, Note, items_in
from neardup.errors import NeardupError
from neardup.watch.inbox import Found
from neardup.watch.names import Stamp, shown, stamp_of

#: Larger files are gone through once before their items are taken, rather than listed.
_LISTED = 4_000_000
_PIECE = 1 << 22


class Changed(Exception):
    """A file is not what it was when it had come to rest; `stamp` is what it is now, None if it is gone."""

    def __init__(self, stamp: Stamp | None) -> None:
        super().__init__()
        self.stamp = stamp


@dataclass(slots=True, eq=False)
class Taken:
    """A file that was read.

    Attributes
    ----------
    found : Found
        Which one.
    content : bytes
        Its bytes; empty for one that is too large to be read.
    kind : str
        What it was read as.
    count : int
        How many items it has.
    items : iterator of Item
        They, in order, given once.
    broken : list of Broken
        What could not be read in it.
    notes : list of Note
        What was read though it is not as it ought to be.
    may_go_on : bool
        Whether it may be half-written.
    """

    found: Found
    content: bytes
    kind: str
    count: int
    items: Iterator[Item]
    broken: list[Broken]
    notes: list[Note]
    may_go_on: bool

    @property
    def is_single(self) -> bool:
        """Whether the file is one item and nothing else, so that it is placed itself."""
        return self.count == 1 and not self.broken

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing in it can be judged, but something in it is broken."""
        return not self.count and bool(self.broken)


def take(root: str, found: Found, content: str, largest: int) -> Taken:
    """Read a file and find its items.

    Parameters
    ----------
    root : str
        The inbox.
    found : Found
        The file.
    content : str
        ``auto`` takes the article of a page; anything else the page as it is.
    largest : int
        Bytes of the largest file that is read.

    Raises
    ------
    Changed
        If it is not, or no longer, what was found.
    OSError, NeardupError
        If it cannot be read now, though perhaps later.
    """
    if found.stamp.size > largest:
        too_large = Broken("the file", f"{found.stamp.size:,} bytes are more than --largest allows ({largest:,})", b"")
        return Taken(found, b"", "", 0, iter(()), [too_large], [], False)
    data = _read(os.path.join(root, found.path), found.stamp)
    read = read_items(found.path, data, content)
    if len(data) <= _LISTED:
        listed = list(read.items)
        count, items = len(listed), iter(listed)
    else:
        count = sum(1 for _ in read.items)
        items = read_items(found.path, data, content).items
    may_go_on = read.may_go_on or any(broken.ended_early for broken in read.broken)
    return Taken(found, data, read.kind, count, items, read.broken, read.notes, may_go_on)


def read_items(path: str, data: bytes, content: str) -> Items:
    """Return the items of a file, as ``items_in`` does.

    Parameters
    ----------
    path : str
        Where it is below the inbox.
    data : bytes
        What is in it.
    content : str
        As in ``take``.

    Raises
    ------
    NeardupError
        If a library is missing.
    """
    read = items_in(shown(path), data)
    items = read.items
    if read.kind == "html" and content != "auto":
        # What of a page is compared is then the recipe's to say, as in every other command.
        items = (replace(item, text=page_text(item.raw)) for item in items)
    read.items = _guarded(items, read.broken)
    return read


def _guarded(items: Iterator[Item], broken: list[Broken]) -> Iterator[Item]:
    """Set aside what a reader fails at in a way that nobody thought of: the flow goes on without it."""
    try:
        yield from items
    except (NeardupError, OSError):
        raise
    except Exception as error:
        broken.append(Broken("the file", f"it cannot be read ({type(error).__name__}: {error})", b""))


def _read(path: str, stamp: Stamp) -> bytes:
    """Return the bytes of a file that is, before and after, the one that was found."""
    # What was a file may be a link or a pipe by now: neither is followed, nor waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise Changed(None) from None
        raise
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise Changed(None)
        if stamp_of(before) != stamp:
            raise Changed(stamp_of(before))
        pieces = []
        while piece := os.read(handle, _PIECE):
            pieces.append(piece)
            if sum(map(len, pieces)) > stamp.size:
                break
        data = b"".join(pieces)
        after = stamp_of(os.fstat(handle))
    finally:
        os.close(handle)
    now = _stamp_at(path)
    if now != stamp or after != stamp or len(data) != stamp.size:
        raise Changed(now)
    return data


def _stamp_at(path: str) -> Stamp | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return stamp_of(status) if stat.S_ISREG(status.st_mode) else None
