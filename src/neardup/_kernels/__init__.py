"""All Numba code: arrays in, arrays out; no options, no texts, no errors. Each kernel has a plain twin in the tests."""

from __future__ import annotations

import importlib


def kernels_are_compiled() -> bool:
    """Return whether this machine has compiled the kernels before, so that a run starts at once."""
    matching = importlib.import_module("neardup._kernels.matching")
    return bool(matching.match.stats.cache_path) and _has_index(matching.match.stats.cache_path)


def _has_index(folder: str) -> bool:
    import os

    try:
        return any(name.startswith("matching.match-") and name.endswith(".nbi") for name in os.listdir(folder))
    except OSError:
        return False
