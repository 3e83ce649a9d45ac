"""From the inbox to a batch: files are read one after the other until there are enough items to judge at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from neardup.errors import NeardupError
from neardup.watch.hand import Hand
from neardup.watch.inbox import Found, Inbox
from neardup.watch.judging import Task
from neardup.watch.log import Log, reason
from neardup.watch.names import origin_of, shown
from neardup.watch.placing import Placer
from neardup.watch.settings import Settings
from neardup.watch.sidecar import aside_record
from neardup.watch.taking import Changed, take

if TYPE_CHECKING:
    from neardup.flow.store import Store

#: Of a batch: its items, its files, and the bytes of both.
_ITEMS, _FILES, _BYTES = 512, 512, 16_000_000
#: Seconds after which a file that could not be read is tried again, at most.
_LATEST = 60.0
#: Times its patience that a file has not changed when it is taken for complete at first sight.
_OLD = 10


class Gatherer:
    """Takes files, and gives their items in batches.

    Parameters
    ----------
    settings : Settings
        How files are read.
    inbox : Inbox
        Where from.
    store : Store
        Knows which files were judged before.
    placer : Placer
        Knows which of their verdicts wait for being carried out.
    log : Log
        Told of files that cannot be taken.
    """

    def __init__(self, settings: Settings, inbox: Inbox, store: Store, placer: Placer, log: Log) -> None:
        self._settings = settings
        self._inbox = inbox
        self._store = store
        self._placer = placer
        self._log = log
        self._open: Hand | None = None
        self._number = 0
        #: Files all of whose items are in batches that were given.
        self.complete: list[Hand] = []

    @property
    def is_open(self) -> bool:
        """Whether a file has items for the next batch."""
        return self._open is not None

    def gather(self, stopping: Callable[[], bool]) -> list[Task]:
        """Give the next items to judge; none if there is nothing to take now.

        Parameters
        ----------
        stopping : callable
            Whether to take nothing more.
        """
        tasks: list[Task] = []
        size = 0
        while len(tasks) < _ITEMS and len(self.complete) < _FILES and size < _BYTES and not stopping():
            if self._open is None:
                self._open = self._next()
                if self._open is None:
                    break
                self._number = 0
                size += len(self._open.taken.content)
            item = self._open.next_item()
            if item is None:
                self.complete.append(self._open)
                self._open = None
                continue
            self._number += 1
            tasks.append(Task(self._open, item, self._number))
        return tasks

    def flush(self) -> None:
        """Write what was judged of a file that is not yet complete.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        if self._open is not None:
            self._open.flush()

    def completed(self) -> list[Hand]:
        """Give the files whose items have all been judged, once."""
        done, self.complete = self.complete, []
        for hand in done:
            hand.finish()
        return done

    def placed(self, hand: Hand) -> None:
        """Note that a file is in its place."""
        self._placer.before.pop(hand.origin, None)
        if self._settings.place == "move":
            self._inbox.gone(hand.path)

    def close(self) -> None:
        """Let go of the file that is open; the next run takes it up again."""
        for hand in [*self.complete, *([self._open] if self._open else [])]:
            hand.drop()

    def _next(self) -> Hand | None:
        """Return the next file that is to be judged or placed."""
        while (found := self._inbox.next()) is not None:
            hand = self._hand(found)
            if hand is not None:
                return hand
        return None

    def _hand(self, found: Found) -> Hand | None:
        """Read a file; None if it is not to be taken, or not now."""
        origin, about = origin_of(found.path, found.stamp), f"file {found.path}"
        before = self._placer.before.get(origin)
        if before is None and self._is_known(origin, found):
            return None
        try:
            taken = take(self._settings.inbox, found, self._settings.content, self._settings.largest)
        except Changed as change:
            self._log.forget(about)
            if change.stamp is None:
                self._inbox.gone(found.path)
            else:
                self._inbox.changed(found.path, change.stamp)
            return None
        except (OSError, NeardupError, MemoryError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error) or "there is not enough memory for it"
            self._log.trouble(about, f"{shown(found.path)} cannot be read: {why}; it is left in the inbox for now")
            if not self._settings.once:
                self._inbox.try_again(found.path, _LATEST)
            return None
        self._log.well(about, f"{shown(found.path)} can be read again")
        if taken.may_go_on and before is None and self._may_go_on(found):
            return None
        hand = Hand(taken, before or [], self._placer.outlets)
        if taken.is_unreadable:
            first = taken.broken[0]
            hand.record = aside_record(hand.name, first.reason, where=first.where, broken=len(taken.broken))
        return hand

    def _is_known(self, origin: str, found: Found) -> bool:
        """Return whether a file is in its place already, and still (or again) in the inbox."""
        if not self._store.judged(origin):
            return self._placer.is_left(origin)
        if self._settings.place == "move":
            message = "judged before, so it is left where it is; touch it to have it judged again"
            self._log.say("known", file=shown(found.path), message=message)
        return True

    def _may_go_on(self, found: Found) -> bool:
        """Return whether a file that may be half-written is still young enough for it; then it is looked at again."""
        age, patience = self._inbox.age(found.path), self._settings.patience
        # The clock of a file server may be off by some minutes, so only an old time of change is believed.
        if age >= patience or time.time() - found.stamp.mtime_ns / 1e9 > _OLD * patience:
            return False
        self._inbox.put_off(found.path, patience - age)
        return True
