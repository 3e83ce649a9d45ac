"""How kernels are compiled, and where the machine code is kept between runs.

Numba keeps a function's code as long as the function's own file is unchanged; code of other files that was
compiled into it may be stale. So the folder is named after all kernel sources together, and after Numba's
version.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import config, njit
from numba.core.event import install_recorder


@cache
def cache_folder() -> Path | None:
    """Return the folder for the machine code, or None where none can be written: then each run compiles anew.

    It is ``$NUMBA_CACHE_DIR``, else the user's cache folder. Never a folder that others may write to: code is
    run from it.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {sys.version}".encode())
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(chosen or os.path.join(home, "neardup")) / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def kernel(function: Any) -> Any:
    """Compile a function on arrays with Numba, without Python's lock, and keep the machine code."""
    folder = cache_folder()
    before = config.CACHE_DIR
    try:
        config.CACHE_DIR = "" if folder is None else str(folder)
        return njit(nogil=True, cache=folder is not None)(function)
    finally:
        config.CACHE_DIR = before


def kernels_are_compiled(*kernels: str) -> bool:
    """Return whether there is machine code of all these kernels (``module.function``), so that a run starts at once."""
    folder = cache_folder()
    return folder is not None and all(any(folder.rglob(f"{kernel}-*.nbi")) for kernel in kernels)


@contextmanager
def compilations() -> Iterator[list]:
    """Give a list that gets an entry for each kernel that is compiled or loaded inside the block, in any thread."""
    with install_recorder("numba:compile") as recorder:
        yield recorder.buffer
