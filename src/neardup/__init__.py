"""neardup finds near-duplicate documents exactly, fast, and says why.

>>> import neardup as nd
>>> result = nd.dedup(["a rose is a rose is a rose", "a rose is a rose is a rose!", "a daisy"])
>>> result.kept
[0, 2]
>>> result.dropped[0]
Drop(id=1, keeper=0, similarity=1.0, family=1)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from neardup.errors import (
    BrokenRecord,
    InputError,
    NeardupError,
    OutputError,
    RecipeError,
    StoreError,
    UnknownDocument,
)

__version__ = "0.1.0"

__all__ = [
    "BrokenRecord",
    "Decision",
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
    "UnknownDocument",
    "Verdict",
    "audit",
    "compare",
    "dedup",
    "dedup_files",
    "explore",
    "load_decision",
    "load_recipe",
    "neighbors",
    "open_files",
    "query",
    "train",
]

if TYPE_CHECKING:
    from neardup.api import (
        audit,
        compare,
        dedup,
        dedup_files,
        explore,
        load_recipe,
        neighbors,
        open_files,
        query,
        train,
    )
    from neardup.decision.decision import Decision
    from neardup.decision.file import load_decision
    from neardup.flow.document import Document, Verdict
    from neardup.flow.index import Index
    from neardup.recipe import Recipe
    from neardup.result import Result
    from neardup.sketches import MinHash, SimHash

#: Where the names live whose modules are imported when they are used: the kernels and Arrow take a while.
_LAZY = {
    "Decision": "decision.decision",
    "Document": "flow.document",
    "Index": "flow.index",
    "MinHash": "sketches",
    "Recipe": "recipe",
    "Result": "result",
    "SimHash": "sketches",
    "Verdict": "flow.document",
    "audit": "api",
    "compare": "api",
    "dedup": "api",
    "dedup_files": "api",
    "explore": "api",
    "load_decision": "decision.file",
    "load_recipe": "api",
    "neighbors": "api",
    "open_files": "api",
    "query": "api",
    "train": "api",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"neardup.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'neardup' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
