"""Small files that are there in full or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

from neardup.errors import InputError, OutputError


def read(path: str | os.PathLike[str], way: str) -> bytes:
    """Return the bytes of a file; ``way`` says in messages what to give.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{os.fspath(path)} cannot be read ({error.strerror}); {way}") from None


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file beside its place and rename it into it.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    target = os.path.realpath(path)
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:150]}.partial-{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise OutputError(f"{os.fspath(path)} cannot be written ({error.strerror}); choose another place") from None
