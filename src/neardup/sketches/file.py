"""Sketches as bytes and files: a header that says how they were made, their words, and a checksum."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError

Words = npt.NDArray[np.uint64]

_MAGIC = b"\x93NDSKT\r\n"
_VERSION = 1
#: Magic, format version and bytes of the header; the header, the words and a checksum of all before it follow.
_PREAMBLE = struct.Struct("<8sHI")
_CHECKSUM = 16


def packed(header: Mapping[str, Any], words: Words) -> bytes:
    """Return a sketch as bytes: preamble, header as JSON, words little-endian, checksum."""
    said = json.dumps(header, sort_keys=True).encode()
    content = _PREAMBLE.pack(_MAGIC, _VERSION, len(said)) + said + words.astype("<u8").tobytes()
    return content + _checksum(content)


def unpacked(data: bytes, name: str, made: Mapping[str, str], numbers: Sequence[str]) -> tuple[dict[str, int], Words]:
    """Return what ``packed`` was given.

    Parameters
    ----------
    data : bytes
        The bytes.
    name : str
        What messages call them.
    made : mapping
        What the header must say of how the sketch was made.
    numbers : sequence of str
        The whole numbers that it holds besides.

    Returns
    -------
    (dict, uint64[K])
        The numbers and the words.

    Raises
    ------
    InputError
        If the bytes are anything else, down to one bit.
    """
    if len(data) < _PREAMBLE.size + _CHECKSUM or not data.startswith(_MAGIC):
        raise InputError(f"{name} is no saved sketch; give what to_bytes or save wrote")
    content = data[:-_CHECKSUM]
    if _checksum(content) != data[-_CHECKSUM:]:
        raise InputError(f"the checksum of {name} is wrong, it is torn or was changed; make the sketch again")
    _, version, length = _PREAMBLE.unpack_from(content)
    if version != _VERSION:
        raise InputError(f"{name} has format {version} and only {_VERSION} is known; read it with what wrote it")
    try:
        header = json.loads(content[_PREAMBLE.size : _PREAMBLE.size + length])
        found = {key: int(header.pop(key)) for key in numbers}
        words = np.frombuffer(content, "<u8", offset=_PREAMBLE.size + length)
    except (ValueError, KeyError, TypeError, AttributeError):
        header = None
    if header != made:
        raise InputError(f"{name} is a sketch that was not made by {_said(made)}; read it as what it is")
    return found, words.astype(np.uint64)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM).digest()


def _said(made: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in made.items())
