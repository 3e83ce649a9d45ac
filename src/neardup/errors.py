"""The errors that users can meet, as one tree.

    NeardupError            every message has the value, the rule and the way out
    ├── InputError          a file, folder, column or format that cannot be read
    │   └── BrokenRecord    one broken document, raised only under strict
    ├── OutputError         a place that cannot be written or must not be overwritten
    ├── RecipeError         an option that is unknown, out of range or does not fit another
    ├── StoreError          a store that is damaged, in use, full or another recipe's
    │   └── ClosedStore     a store that was closed before the call, or removed
    └── UnknownDocument     an id that the corpus does not have

The command line prints only the message and exits with 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from numbers import Integral
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

#: Whether a command runs; messages of the whole process then name options of the command line.
_is_command = False


@contextmanager
def run_as_command() -> Iterator[None]:
    """Name options in messages of the block as on the command line."""
    global _is_command
    before, _is_command = _is_command, True
    try:
        yield
    finally:
        _is_command = before


def is_command() -> bool:
    """Return whether a command runs; commands print their own warnings."""
    return _is_command


def option(command: str, python: str = "") -> str:
    """Return an option as the caller writes it: ``--id-column`` or ``id_column``, or ``python`` if that differs."""
    return command if _is_command else python or command.removeprefix("--").replace("-", "_")


#: A message is cut in the middle beyond so many characters, which only values of the input take, and has one line.
_LONGEST_MESSAGE, _LONGEST_END = 2000, 500


class NeardupError(Exception):
    """Base of all errors that are caused by the input or the caller."""

    def __init__(self, message: object = "", *more: object) -> None:
        text = str(message)
        if len(text) > _LONGEST_MESSAGE:
            text = f"{text[: _LONGEST_MESSAGE - _LONGEST_END]} ... {text[-_LONGEST_END:]}"
        super().__init__(" ".join(text.splitlines()), *more)


class InputError(NeardupError):
    """A file, folder, column or format that cannot be read."""


class BrokenRecord(InputError):
    """One broken document; raised only under ``strict``, otherwise it is rejected and counted."""


class Interrupted(KeyboardInterrupt):
    """A signal other than Ctrl-C that ends the command, in the same way; the arguments say what was written."""

    def __init__(self, number: int, *outcome: str) -> None:
        super().__init__(*outcome)
        self.number = number


class TornInput(UserWarning):
    """A file that could be read only in part; a warning without ``allow_torn``."""


class ManyCandidates(UserWarning):
    """There are so many candidates that judging them takes long."""


class ForeignDocuments(UserWarning):
    """The documents of a flow are unlike those that its classifier was trained on."""


class OutputError(NeardupError):
    """A place that cannot be written or must not be overwritten."""


class RecipeError(NeardupError, ValueError):
    """An option that is unknown, out of range or does not fit another."""


class StoreError(NeardupError):
    """A store that is damaged, in use, full or another recipe's."""


class ClosedStore(StoreError):
    """A store that was closed before the call."""


class UnknownDocument(NeardupError, KeyError):
    """An id that the corpus does not have."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return the end of a message that suggests the most similar word; empty if none is similar."""
    similar = get_close_matches(word, list(words), 1, 0.7)
    return f"; do you mean {similar[0]}?" if similar else ""


def with_suggestions(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Make a public function answer an unknown option with the most similar one; ``TypeError``, as Python's own."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Returned:
        for name in options:
            if name not in known:
                similar = suggestion(name, known) or f"; its options are {', '.join(known)}"
                raise TypeError(f"{function.__name__} has no option {name!r}{similar}")
        return function(*args, **options)

    return checked


def check_count(name: str, number: object, hint: str) -> None:
    """Check that a number is a whole number of at least 1.

    Raises ``RecipeError`` if it is not; the message ends with ``hint``, which states what to give.
    """
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise RecipeError(f"{name} {quoted(number)} is no whole number; {hint}")
    if number < 1:
        raise RecipeError(f"{name} {number} is below 1; {hint}")


def quoted(value: object) -> str:
    """Return a value for a message: escaped, and not longer than a line."""
    try:
        text = ascii(value[:60] if isinstance(value, str | bytes) else value)
    except ValueError:  # Python writes no number of more than some thousand digits
        text = f"of {type(value).__name__}"
    return text if len(text) <= 70 else f"{text[:67]}..."
