"""One watcher that moves files for each inbox, or several that only link them."""

from __future__ import annotations

import errno
import os
import sys
from types import TracebackType
from typing import Self

from neardup.errors import InputError

if sys.platform != "win32":
    import fcntl


class Held:
    """An inbox that no other watcher takes files out of, for as long as the block lasts.

    The system lets go of it when the process ends, however it ends. Where folders cannot be locked, as on some network
    folders, nobody is kept out.

    Parameters
    ----------
    inbox : str
        The folder.
    shared : bool
        Whether others may have it at the same time that share it as well.
    """

    def __init__(self, inbox: str, *, shared: bool) -> None:
        self._inbox = inbox
        self._shared = shared
        self._handle = -1

    def __enter__(self) -> Self:
        if sys.platform == "win32":
            return self
        try:
            self._handle = os.open(self._inbox, os.O_RDONLY)
            fcntl.flock(self._handle, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            self._close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise InputError(
                    f"{self._inbox} is watched by another process, and two would take files from each other; "
                    "end that one, or let both leave the files there with --place link"
                ) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
