"""The number of kills of the drills: three hundred over watch, serve and Index in long runs."""

from __future__ import annotations

import os


def kill_count(few: int) -> int:
    """Return how often a drill kills: ``NEARDUP_KILLS`` times, a hundred times with NEARDUP_LONG=1, or a few times."""
    return int(os.environ.get("NEARDUP_KILLS", "100" if os.environ.get("NEARDUP_LONG") == "1" else str(few)))
