"""Numbers and sizes as they are written on the command line."""

from __future__ import annotations

import re

from neardup.errors import RecipeError

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[KMGT]?)(?P<binary>I?)B?", re.IGNORECASE)
_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[smhd]?)", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_number(text: str, option: str) -> float:
    """Return a number from the command line.

    Raises
    ------
    RecipeError
        If it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise RecipeError(f"{option} {text!r} is not a number; write it like 0.8") from None


def whole_number(text: str, option: str, least: int = 1) -> int:
    """Return a whole number from the command line.

    Raises
    ------
    RecipeError
        If it is none, or below the least one.
    """
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise RecipeError(f"{option} {text!r} is not a whole number from {least} on")
    return int(text)


def parse_seconds(text: str, option: str) -> float:
    """Return the seconds that a text like ``30s``, ``10m``, ``1.5h``, ``2d`` or ``90`` means.

    Raises
    ------
    RecipeError
        If it is no time.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise RecipeError(f"{option} {text!r} is not a time; write it like 30s, 10m or 1h")
    return float(match["number"]) * _SECONDS[match["unit"].lower()]


def parse_size(text: str | None, option: str) -> int | None:
    """Return the bytes that a text like ``512MB`` (10**6), ``1.5GiB`` (2**30) or ``9`` means; None for None.

    Raises
    ------
    RecipeError
        If it is no size, or none of at least one byte.
    """
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    bare = match is not None and match["binary"] and not match["prefix"]
    size = 0
    if match is not None and not bare:
        base = 1024 if match["binary"] else 1000
        size = int(float(match["number"]) * base ** _POWER[match["prefix"].upper()])
    if size < 1:
        raise RecipeError(f"{option} {text!r} is not a size; write it like 512MB, 2GB or 1.5GiB")
    return size
