"""What a watcher is told: folders and pauses, checked before anything is touched."""

from __future__ import annotations

import os
from dataclasses import dataclass

from neardup.errors import InputError, OutputError, RecipeError
from neardup.watch.names import is_passed_over

#: In the inbox: where files go for which no folder is named.
OWN = ".neardup"
PLACES = ("move", "link")
#: Under these names the store knows the folders of its watcher, and how many files and items were rejected and why.
FOLDERS, QUARANTINED = "folders", "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How a folder is watched.

    Raises ``InputError``, ``OutputError``, ``RecipeError`` if the inbox is no folder, folders lie where files would
    go in circles, or a number is out of range.
    """

    #: Where files come from, and where originals go.
    inbox: str
    originals: str
    #: Where duplicates go, what cannot be read, and files whose items went their own ways; empty for sub-folders of
    #: ``.neardup`` in the inbox.
    duplicates: str = ""
    quarantine: str = ""
    done: str = ""
    place: str = "move"  #: ``move``, or ``link``: files stay in the inbox, and get a second name
    poll: float = 2.0  #: seconds between two looks at the whole inbox
    settle: float = 0.5  #: for how many seconds a file must not have changed
    #: For how many seconds a file that ends in the middle is taken for one that is still being written.
    patience: float = 30.0
    largest: int = 64_000_000  #: bytes of the largest file that is read
    content: str = "auto"  #: what of pages is taken: auto, html, tags or plain
    once: bool = False  #: whether to end when all is taken that is there
    downstream: float = 10.0  #: seconds that everything behind the watcher spends on an item

    def __post_init__(self) -> None:
        for name, least in (("poll", 0.05), ("settle", 0.0), ("patience", 0.0), ("downstream", 0.0)):
            value = getattr(self, name)
            if not least <= value <= 86_400:
                raise RecipeError(f"--{name} {value:g} is outside [{least:g}, 86400]: give seconds within it")
        if self.place not in PLACES:
            raise RecipeError(f"--place {self.place!r} is not known; choose one of {', '.join(PLACES)}")
        if not os.path.isdir(self.inbox):
            there = os.path.lexists(self.inbox)
            raise InputError(
                f"{self.inbox} {'is no folder' if there else 'does not exist'}: name the folder that files arrive in"
            )
        for name in ("duplicates", "quarantine", "done"):
            if not getattr(self, name):
                object.__setattr__(self, name, os.path.join(self.inbox, OWN, name))
        seen: dict[str, str] = {}
        for option in ("originals", "duplicates", "quarantine", "done"):
            self._check(option, seen)

    def _check(self, option: str, seen: dict[str, str]) -> None:
        """Refuse a folder from which files would be taken again, or that has two duties."""
        name = getattr(self, option)
        place, inbox = os.path.realpath(name), os.path.realpath(self.inbox)
        if os.path.lexists(place) and not os.path.isdir(place):
            raise OutputError(f"{name} for --{option} is no folder: name one, or a new one")
        if _is_taken_from(place, inbox):
            raise OutputError(
                f"{name} for --{option} lies in the inbox {self.inbox}, so what is put there would be taken again: "
                "name a folder outside of it, or one whose name begins with a dot"
            )
        if place in seen:
            raise OutputError(f"{name} is given for --{seen[place]} and for --{option}: name two folders")
        seen[place] = option

    def check_store(self, store: str) -> None:
        """Refuse a store that would be taken for an item of the inbox.

        Raises ``OutputError`` if it would.
        """
        if _is_taken_from(os.path.realpath(store), os.path.realpath(self.inbox)):
            raise OutputError(f"{store} for --store lies in the inbox {self.inbox}: keep the store outside of it")


def _is_taken_from(place: str, inbox: str) -> bool:
    """Return whether a file at this place, or in it, would be taken."""
    if place == inbox:
        return True
    below = os.path.relpath(place, inbox).split(os.sep)
    return below[0] != os.pardir and not any(is_passed_over(part) for part in below)
