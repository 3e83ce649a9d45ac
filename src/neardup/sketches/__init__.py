"""Sketches as small values of their own."""

from neardup.sketches.values import MinHash, SimHash

__all__ = ["MinHash", "SimHash"]
