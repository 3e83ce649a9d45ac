"""The settings of a watcher: its folders and pauses, checked before any file is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from neardup.errors import InputError, OutputError, RecipeError
from neardup.watch.inbox import is_ignored
from neardup.watch.log import error_reason

#: The folder in the inbox for files whose output folder is not named.
STATE_FOLDER = ".neardup"
PLACES = ("move", "link")
#: Names in the store's state: the folders of its watcher, the counts of rejected files and items by reason, and (with
#: the origin of a file after it) the duties of a file without verdicts that was handled and left in the inbox.
FOLDERS, QUARANTINED, LEFT_IN_INBOX = "folders", "quarantined", "watch: left "
#: The duties of the output folders.
ORIGINALS, DUPLICATES, QUARANTINE, DONE = DUTIES = ("originals", "duplicates", "quarantine", "done")

_WHERE, _WHEN = "Where files go", "When files are read"


def _option(default: Any, values: str, help_text: str, panel: str) -> Any:
    """Return a field with the metadata of its command-line option: values, help, and panel of the help."""
    return field(default=default, metadata={"values": values, "help": help_text, "panel": panel})


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How a folder is watched; fields with metadata are options of the command.

    Raises ``InputError``, ``OutputError`` or ``RecipeError`` if the inbox is not a folder, an output folder is watched
    itself, or a number is out of range.
    """

    inbox: str
    originals: str = _option("", "FOLDER", "Where originals go.", _WHERE)
    duplicates: str = _option(
        "", "FOLDER", "Where duplicates go, with evidence next to each; INBOX/.neardup/duplicates by default.", _WHERE
    )
    quarantine: str = _option(
        "",
        "FOLDER",
        "Where unreadable files go, with the reason next to each; INBOX/.neardup/quarantine by default.",
        _WHERE,
    )
    done: str = _option(
        "",
        "FOLDER",
        "Where feeds and other files with several items go after judgement; INBOX/.neardup/done by default.",
        _WHERE,
    )
    place: Literal["move", "link"] = _option(
        "move",
        "move|link",
        "Move files, or leave them in the inbox and link to them (copy them to another disk).",
        _WHERE,
    )
    poll: float = _option(0.5, "SECONDS", "Look for new files every N seconds.", _WHEN)
    settle: float = _option(0.5, "SECONDS", "Read a file once it has not changed for N seconds.", _WHEN)
    patience: float = _option(
        30.0, "SECONDS", "Wait up to N seconds for the rest of an incomplete or empty file.", _WHEN
    )
    largest: int = _option(64_000_000, "SIZE", "Reject larger files without reading them.", _WHEN)
    once: bool = _option(False, "", "Process the present files, then exit.", _WHEN)
    content: str = "auto"  #: what is extracted from web pages: auto (the article) or whole
    downstream: float = 10.0  #: seconds of downstream processing per item

    def __post_init__(self) -> None:
        for name, minimum in (("poll", 0.05), ("settle", 0.0), ("patience", 0.0), ("downstream", 0.0)):
            value = getattr(self, name)
            if not minimum <= value <= 86_400:
                raise RecipeError(f"--{name} {value:g} is outside [{minimum:g}, 86400]: give seconds within it")
        if self.place not in PLACES:
            raise RecipeError(f"--place {self.place!r} is not known; choose one of {', '.join(PLACES)}")
        if not os.path.isdir(self.inbox):
            fault = "is not a folder" if os.path.lexists(self.inbox) else "does not exist"
            raise InputError(f"{self.inbox} {fault}; name the folder that files arrive in")
        for name in ("duplicates", "quarantine", "done"):
            if not getattr(self, name):
                object.__setattr__(self, name, os.path.join(self.inbox, STATE_FOLDER, name))
        options: dict[str, str] = {}
        for option in DUTIES:
            self._check(option, options)

    def _check(self, option: str, options: dict[str, str]) -> None:
        """Refuse a folder that is watched itself, or that has two uses."""
        name = getattr(self, option)
        path, inbox = os.path.realpath(name), os.path.realpath(self.inbox)
        if os.path.lexists(path) and not os.path.isdir(path):
            raise OutputError(f"{name} for --{option} is not a folder; name a folder, or a new path")
        if _is_watched(path, inbox):
            raise OutputError(
                f"{name} for --{option} lies in the inbox {self.inbox}, so its files would be judged again: "
                "name a folder outside of it, or one whose name begins with a dot"
            )
        if path in options:
            raise OutputError(f"{name} is given for --{options[path]} and for --{option}: name two folders")
        options[path] = option

    @contextmanager
    def created_folders(self) -> Iterator[None]:
        """Create the missing folders, and remove them again if the block raises.

        Raises ``OutputError`` if one cannot be made or written to.
        """
        created: list[str] = []
        try:
            for option in DUTIES:
                name, missing = getattr(self, option), list[str]()
                path = os.path.abspath(name)
                while not os.path.isdir(path):
                    missing.append(path)
                    path = os.path.dirname(path)
                try:
                    for folder in reversed(missing):
                        os.makedirs(folder, exist_ok=True)
                        created.append(folder)
                except OSError as error:
                    raise folder_error(option, name, error) from None
                if not os.access(name, os.W_OK | os.X_OK):
                    raise OutputError(f"{name} for --{option} cannot be written to; name a folder that can be")
            yield
        except BaseException:
            for folder in reversed(created):
                with suppress(OSError):
                    os.rmdir(folder)
            raise

    def check_store(self, store: str) -> None:
        """Refuse a store that the watcher would read as a file of the inbox."""
        if _is_watched(os.path.realpath(store), os.path.realpath(self.inbox)):
            raise OutputError(f"{store} for --store lies in the inbox {self.inbox}: keep the store outside of it")


def folder_error(option: str, folder: str, error: OSError) -> OutputError:
    """Return the error for a folder that cannot be made."""
    return OutputError(
        f"{folder} for --{option} cannot be made: {error_reason(error)}; name a folder that can be written to"
    )


def _is_watched(path: str, inbox: str) -> bool:
    """Return whether a watcher of the inbox would read files at or below this path."""
    if path == inbox:
        return True
    parts = os.path.relpath(path, inbox).split(os.sep)
    return parts[0] != os.pardir and not any(is_ignored(part) for part in parts)
