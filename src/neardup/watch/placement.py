"""Putting files in their places: names first, on the disk, then moves that a crash at any moment leaves repeatable.

In this order: the names are chosen and kept in the store; sidecars are written; files are moved, of one with several
items what was made from it first and itself last; the folders are flushed; the store notes that they are in place. So
whatever is still in the inbox is moved again, by the names that the store has, and what is no longer there is moved.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from zlib import crc32

from neardup.errors import NeardupError, OutputError
from neardup.watch import outputs as moving
from neardup.watch.inbox import Found, Inbox
from neardup.watch.judge import Log, Task, reason
from neardup.watch.names import SIDECAR, file_of, origin_of, shown, sidecar_of
from neardup.watch.outputs import Outlet, aside_record
from neardup.watch.pending import DONE, DUPLICATES, ORIGINALS, QUARANTINE, Before, Changed, Hand, take
from neardup.watch.settings import Settings

if TYPE_CHECKING:
    from neardup.stream.store import Store

_PLACING, _LEFT = "watch: placing", "watch: left "


class Lost(Exception):
    """Work in progress has gone with the folder it was in; the file is to be taken again."""


class Placer:
    """Puts files in their places.

    Parameters
    ----------
    settings : Settings
        Where that is.
    store : Store
        Knows what is in place.
    log : Log
        Told of what a file did meanwhile.
    """

    def __init__(self, settings: Settings, store: Store, log: Log) -> None:
        # The same in every run, so that what one left incomplete is found by the next.
        tag = format(crc32(os.fsencode(store.path)), "08x")
        self.outlets = {
            duty: Outlet(getattr(settings, duty), tag) for duty in (ORIGINALS, DUPLICATES, QUARANTINE, DONE)
        }
        self.before: dict[str, list[Before]] = {}
        self.waiting: deque[Hand] = deque()
        #: Files that may not be moved, and why; taken again later.
        self.stuck: list[tuple[Hand, OSError]] = []
        self._settings = settings
        self._store = store
        self._log = log
        self._journal: dict[str, dict[str, str]] = {}
        self._half_done: dict[str, dict[str, str]] = {}
        self._moved: list[Hand] = []
        self._placed: list[Hand] = []

    def open(self) -> None:
        """Make the folders, and find out what an earlier run did not get done."""
        for duty, outlet in self.outlets.items():
            try:
                outlet.open()
            except OSError as error:
                raise OutputError(
                    f"{outlet.root} for --{duty} cannot be made: {reason(error)}; name a folder that can be written to"
                ) from None
        with suppress(ValueError):
            self._journal = json.loads(self._store.state(_PLACING) or "{}")
        for stored in self._store.unplaced():
            self.before.setdefault(stored.origin, []).append(Before(stored.serial, stored.verdict))
        done = [origin for origin in self.before if self._is_placed(origin)]
        self._store.placed([row.serial for origin in done for row in self.before.pop(origin)])
        # What may be half done keeps its names, whichever batch takes it up again.
        self._half_done = {origin: names for origin, names in self._journal.items() if self._is_there(origin)}

    def _is_placed(self, origin: str) -> bool:
        """Return whether a file was moved before the store could note it."""
        names = self._journal.get(origin, {})
        duty = next((duty for duty in (DONE, ORIGINALS, DUPLICATES) if duty in names), None)
        if duty is None:
            return False
        return not self._is_there(origin) and os.path.lexists(self.outlets[duty].path(names[duty]))

    def _is_there(self, origin: str) -> bool:
        try:
            path, stamp = file_of(origin)
            return moving.is_still(os.path.join(self._settings.inbox, path), stamp)
        except (ValueError, TypeError):
            # The store has served others too, who name origins as they like.
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Let go of work in progress."""
        for hand in self.waiting:
            hand.drop()
        for outlet in self.outlets.values():
            outlet.close()

    def is_left(self, origin: str) -> bool:
        """Return whether a file without verdicts was dealt with before, and left where it is."""
        return self._settings.place == "link" and self._store.state(_LEFT + origin) is not None

    def add(self, hand: Hand) -> None:
        """Take a file all of whose items have verdicts."""
        self.waiting.append(hand)

    @property
    def is_busy(self) -> bool:
        """Whether there are files that are not in their places, or not known to be."""
        return bool(self.waiting or self._moved)

    def place(self) -> None:
        """Put all files that were added in their places.

        Raises
        ------
        Lost
            If work in progress on the first of those that wait is gone.
        OSError, StoreError
            If something cannot be written. Nothing is lost: a second call goes on.
        """
        self._choose()
        try:
            while self.waiting:
                hand = self.waiting[0]
                try:
                    self._place(hand)
                except FileExistsError:
                    hand.names, hand.resumed = {}, False
                    for names in (self._journal, self._half_done):
                        names.pop(hand.origin, None)
                    self._choose()
                    continue
                except PermissionError as error:
                    hand.resumed = True
                    if not self._may_write(hand):
                        raise
                    # It is this one file that may not be touched: the others go on.
                    self._half_done[hand.origin] = hand.names
                    self.give_up(hand)
                    self.stuck.append((hand, error))
                    continue
                except BaseException:
                    hand.resumed = True
                    raise
                self._moved.append(self.waiting.popleft())
        finally:
            self._note()

    def _may_write(self, hand: Hand) -> bool:
        """Return whether the folders that a file is to go to may be written to."""
        folders = {os.path.dirname(self.outlets[duty].path(name)) for duty, name in hand.names.items()}
        return all(os.access(folder, os.W_OK | os.X_OK) for folder in folders)

    def placed(self) -> list[Hand]:
        """Return the files that are in their places since this was last asked."""
        done, self._placed = self._placed, []
        return done

    def _choose(self) -> None:
        """Choose the names of all that have none yet, and keep them where a crash does not reach them."""
        if not self.waiting or all(hand.names for hand in self.waiting):
            return
        reserved: dict[str, set[str]] = {duty: set() for duty in self.outlets}
        for hand in self.waiting:
            before = self._journal.get(hand.origin, {})
            if not hand.names and before and before.keys() == hand.wanted().keys():
                # An earlier run chose them, and may have done a part.
                hand.names, hand.resumed = before, True
            for duty, name in hand.names.items():
                reserved[duty].add(name)
        for hand in self.waiting:
            if not hand.names:
                for duty, name in hand.wanted().items():
                    hand.names[duty] = self.outlets[duty].free(name, reserved[duty])
                    reserved[duty].add(hand.names[duty])
        self._journal = self._half_done | {hand.origin: hand.names for hand in self.waiting}
        self._store.set_state(_PLACING, json.dumps(self._journal))

    def _note(self) -> None:
        """Make the disk hold what was moved, and the store say so."""
        if not self._moved:
            return
        for outlet in self.outlets.values():
            outlet.flush()
        self._store.placed([serial for hand in self._moved for serial in hand.serials])
        for hand in self._moved:
            self._half_done.pop(hand.origin, None)
        self._placed += self._moved
        self._moved = []

    def _place(self, hand: Hand) -> None:
        if hand.taken.is_unreadable or hand.verdict is not None:
            (duty,) = hand.names
            self._place_file(hand, duty)
        else:
            self._place_items(hand)
        if self._settings.place == "link" and not hand.serials:
            self._store.set_state(_LEFT + hand.origin, ", ".join(hand.names))

    def _place_file(self, hand: Hand, duty: str) -> None:
        """Move or link a file as it is, its sidecar before it."""
        outlet = self.outlets[duty]
        target = outlet.room_for(hand.names[duty])
        if hand.record is not None:
            self._write_sidecar(hand, hand.record, outlet, sidecar_of(target, SIDECAR))
        self._move(hand, outlet, target, link=self._settings.place == "link")

    def _write_sidecar(self, hand: Hand, record: dict[str, Any], outlet: Outlet, path: str) -> None:
        if hand.resumed:
            # Written when more was known: the original's text may have left the window since.
            with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                known = json.load(file)
                if all(known.get(name) == record.get(name) for name in ("file", "id")):
                    return
            moving.drop(path)
        beside = outlet.beside()
        moving.write_new(json.dumps(record, ensure_ascii=False, indent=2).encode("utf-8", "replace"), path, beside)

    def _move(self, hand: Hand, outlet: Outlet, target: str, *, link: bool) -> None:
        source = os.path.join(self._settings.inbox, hand.path)
        try:
            (moving.link if link else moving.move)(source, hand.stamp, target, outlet.beside())
        except moving.Replaced:
            self._write_instead(hand, outlet, target)
            return
        except FileExistsError:
            if not hand.resumed or not filecmp.cmp(source, target, shallow=False):
                raise
            if not link:
                os.unlink(source)

    def _write_instead(self, hand: Hand, outlet: Outlet, target: str) -> None:
        """Put what was judged in its place from memory: the file was changed, replaced or removed since."""
        if not os.path.isdir(self._settings.inbox):
            raise FileNotFoundError(errno.ENOENT, "the inbox is gone", self._settings.inbox)
        if not hand.taken.content:
            moving.drop(sidecar_of(target, SIDECAR))
            return
        try:
            moving.write_new(hand.taken.content, target, outlet.beside(), flush=True)
        except FileExistsError:
            with open(target, "rb") as file:
                if not hand.resumed or file.read() != hand.taken.content:
                    raise
        self._log.say("replaced", file=hand.name, message="changed after it was read: what was read is placed")

    def _place_items(self, hand: Hand) -> None:
        """Put the items of a file in their places, and the file itself aside."""
        try:
            if hand.details is not None:
                name = sidecar_of(hand.names[DUPLICATES], hand.sidecar_ending)
                hand.details.place(name, resumed=hand.resumed)
            for duty, spool in hand.spools.items():
                spool.place(hand.names[duty], resumed=hand.resumed)
        except FileNotFoundError as error:
            if all(os.path.isdir(outlet.root) for outlet in self.outlets.values()):
                raise Lost from error
            raise
        if self._settings.place == "move":
            outlet = self.outlets[DONE]
            self._move(hand, outlet, outlet.room_for(hand.names[DONE]), link=False)

    def give_up(self, hand: Hand) -> None:
        """Drop the attempt at a file; its verdicts stay for the next one."""
        hand.drop()
        self.waiting.remove(hand)
        self.before[hand.origin] = hand.verdicts


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
