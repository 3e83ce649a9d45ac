"""A document as people are shown it."""

from __future__ import annotations

from typing import NamedTuple


class Shown(NamedTuple):
    """A document as it is shown; title and time are empty where there is none."""

    id: str
    title: str
    text: str
    time: str = ""
