"""What each stage of a run costs: wall and processor seconds, and the peak of memory so far."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

#: Linux counts ru_maxrss in kibibytes, macOS in bytes.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Stage(TypedDict):
    """The cost of one stage."""

    name: str
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int


class Clock:
    """Takes the cost of stages, in the order in which they end."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Take the cost of the block as the stage of that name."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.stages.append(
                {
                    "name": name,
                    "wall_s": round(time.perf_counter() - wall, 3),
                    "cpu_s": round(time.process_time() - cpu, 3),
                    "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT,
                }
            )
