"""How kernels are compiled, and where the machine code is kept between runs.

Numba keeps a function's code as long as the function's own file is unchanged; code of other files that was
compiled into it may be stale. So the folder is named after all kernel sources together, and after Numba's
version: two copies of this package with the same kernels share it, and of two processes that need a kernel at
the same time one compiles it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.event import install_recorder
from numba.core.runtime import rtsys


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


class _Place(_CacheLocator):  # type: ignore[misc]
    """Where the code of a function lies: by its name alone, for the folder stands for all sources."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, function: Any, source: str) -> _Place | None:
        folder = cache_folder()
        return None if folder is None else cls(function, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


class _KernelFiles(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar = [_Place]


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, but what only compiling needs is not loaded: 0.3 s and 50 MB less at a start.

    Between the moment that a kernel is missing and the moment that it is kept, other processes wait for it. They
    would not only compile it again: two that keep a kernel for other types at the same time would mix up the two.
    """

    _impl_class = _KernelFiles
    _lock: int | None = None

    def load_overload(self, signature: Any, context: Any) -> Any:
        rtsys.initialize(context)
        found = self._load_overload(signature, context)
        if found is None and self._lock is None:
            self._lock = _locked(f"{self._cache_file._index_path}.lock")
            found = self._load_overload(signature, context)
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, signature: Any, code: Any) -> None:
        try:
            super().save_overload(signature, code)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(path: str) -> int | None:
    """Open a file and lock it; a process that holds it longer than any kernel takes is not waited for."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.02)
        else:
            break
    return file


#: Seconds.
_PATIENCE = 60


def kernel(function: Any) -> Any:
    """Compile a function on arrays with Numba, without Python's lock, and keep the machine code.

    One whose name is private is called by kernels alone: compiling what Python would call it by is left out.
    """
    inner = function.__name__.startswith("_")
    compiled = njit(nogil=True, no_cpython_wrapper=inner, no_cfunc_wrapper=inner)(function)
    if cache_folder() is not None:
        compiled._cache = _KernelCache(function)
    return compiled


def kept_arrays(name: str, build: Callable[[], Iterable[Any]]) -> list[Any]:
    """Return the arrays that a function builds, which are kept beside the machine code under a name."""
    folder = cache_folder()
    if folder is None:
        return list(build())
    path = folder / f"{name}.npz"
    # What cannot be read is built anew.
    with suppress(OSError, EOFError, ValueError, BadZipFile), np.load(path, allow_pickle=False) as found:
        return [found[each] for each in found.files]
    arrays = list(build())
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
        np.savez(file, *arrays)
        file.close()
        os.replace(file.name, path)
    return arrays


def kernels_are_compiled(*kernels: str) -> bool:
    """Return whether there is machine code of all these kernels (``module.function``), so that a run starts at once."""
    folder = cache_folder()
    return folder is not None and all(any(folder.rglob(f"{kernel}-*.nbi")) for kernel in kernels)


@contextmanager
def compilations() -> Iterator[list]:
    """Give a list that gets an entry for each kernel that is compiled or loaded inside the block, in any thread."""
    with install_recorder("numba:compile") as recorder:
        yield recorder.buffer
