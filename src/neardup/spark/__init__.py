"""The same recipes on Spark, inside any session: ``neardup.spark.dedup(frame)``.

PySpark is imported when it is used. What workers run are functions of these modules, sent to them by name: they have
the package, and import no more of it than they need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.spark.frames import dedup, pairs, run
    from neardup.spark.streams import stream

__all__ = ["dedup", "pairs", "run", "stream"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'neardup.spark' has no attribute {name!r}")
    module = "streams" if name == "stream" else "frames"
    return getattr(importlib.import_module(f"neardup.spark.{module}"), name)
