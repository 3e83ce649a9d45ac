"""The functions that ``import neardup`` offers."""

from neardup.api.ask import compare, neighbors, query
from neardup.api.given import load_recipe, open_files
from neardup.api.judge import audit
from neardup.api.learn import train
from neardup.api.look import explore
from neardup.api.remove import dedup, dedup_files

__all__ = [
    "audit",
    "compare",
    "dedup",
    "dedup_files",
    "explore",
    "load_recipe",
    "neighbors",
    "open_files",
    "query",
    "train",
]
