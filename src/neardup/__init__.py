"""neardup finds near-duplicate documents exactly, fast, and says why.

>>> import neardup as nd
>>> result = nd.dedup(["a rose is a rose is a rose", "a rose is a rose is a rose!", "a daisy"])
>>> result.kept
[0, 2]
>>> result.dropped[0]
Drop(id=1, keeper=0, similarity=1.0, family=1)
"""

from __future__ import annotations

import os
import signal
import sys


def leave_at_once(number: int, frame: object) -> None:
    """End the command: an interrupt while its modules are imported, before it has begun."""
    os.write(2, b"neardup: interrupted; nothing was written\n")
    os._exit(130)


# Imports take most of the time until a command begins; an interrupt that is ignored stays so. Nobody else's program is
# a command of this name, or starts this module.
if (
    (os.path.basename("".join(getattr(sys, "argv", [])[:1])) == "neardup" or sys.orig_argv[1:3] == ["-m", "neardup"])
    and signal.getsignal(signal.SIGINT) == signal.default_int_handler
):
    signal.signal(signal.SIGINT, leave_at_once)

import importlib  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from neardup.errors import (  # noqa: E402
    BrokenRecord,
    InputError,
    NeardupError,
    OutputError,
    RecipeError,
    StoreError,
    TornInput,
    UnknownDocument,
)
from neardup.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from neardup.api import audit, build_index, dedup, dedup_files, explore, neighbors, open_files, open_index, query
    from neardup.classifier.classifier import Classifier, load_classifier
    from neardup.contamination.contamination import check_contamination
    from neardup.evaluation.comparison import compare
    from neardup.features.sketches import MinHash, SimHash
    from neardup.pipeline.result import Result
    from neardup.recipe import Recipe, load_recipe
    from neardup.service.client import Client
    from neardup.stream.document import Document, Verdict
    from neardup.stream.index import Index
    from neardup.training.training import train


__all__ = [
    "BrokenRecord",
    "Classifier",
    "Client",
    "Document",
    "Index",
    "InputError",
    "MinHash",
    "NeardupError",
    "OutputError",
    "Recipe",
    "RecipeError",
    "Result",
    "SimHash",
    "StoreError",
    "TornInput",
    "UnknownDocument",
    "Verdict",
    "__version__",
    "audit",
    "build_index",
    "check_contamination",
    "compare",
    "dedup",
    "dedup_files",
    "explore",
    "load_classifier",
    "load_recipe",
    "neighbors",
    "open_files",
    "open_index",
    "query",
    "train",
]


#: Names that are imported on first use, by their modules: the kernels and Arrow take a while.
_LAZY_NAMES = {
    "api": (
        *("audit", "build_index", "dedup", "dedup_files", "explore", "neighbors", "open_files", "open_index"),
        "query",
    ),
    "classifier.classifier": ("Classifier", "load_classifier"),
    "contamination.contamination": ("check_contamination",),
    "evaluation.comparison": ("compare",),
    "features.sketches": ("MinHash", "SimHash"),
    "pipeline.result": ("Result",),
    "recipe": ("Recipe", "load_recipe"),
    "service.client": ("Client",),
    "stream.document": ("Document", "Verdict"),
    "stream.index": ("Index",),
    "training.training": ("train",),
}
_MODULES = {name: module for module, names in _LAZY_NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"neardup.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'neardup' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
