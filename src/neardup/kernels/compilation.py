"""How kernels are compiled, and where the machine code is kept between runs.

Numba keeps a function's code as long as the function's own file is unchanged; code of other files that was
compiled into it may be stale. So the folder is named after all kernel sources together, and after Numba's
version: two copies of this package with the same kernels share it, and of two processes that need a kernel at
the same time one compiles it.
"""

from __future__ import annotations

import fcntl
import gc
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
import llvmlite.binding as llvm
import numba
import numpy as np
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.event import install_recorder
from numba.core.runtime._nrt_python import c_helpers


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


@cache
def _give_runtime() -> None:
    """Tell machine code where the functions of Numba's runtime are; ``rtsys.initialize`` would compile some as well."""
    for name, address in c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


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
    """Numba's cache, but what only compiling needs is not loaded: 0.3 s and 90 MB less at a start.

    Between the moment that a kernel is missing and the moment that it is kept, other processes wait for it. They
    would not only compile it again: two that keep a kernel for other types at the same time would mix up the two.
    """

    _impl_class = _KernelFiles
    _lock: int | None = None

    def load_overload(self, signature: Any, context: Any) -> Any:
        _give_runtime()
        found = self._load_overload(signature, context)
        if found is None and self._lock is None:
            self._lock = _locked(f"{self._cache_file._index_path}.lock")
            found = self._load_overload(signature, context)
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, signature: Any, code: Any) -> None:
        # A full disk costs the next process its time, and no run its answer.
        try:
            with suppress(OSError):
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


class _NoMachineCode:
    """In place of what makes machine code: an inner kernel has none to be told where its environment is."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that becomes part of its callers', which are made fast as a whole; by itself it never is machine code."""

    codegen = _NoMachineCode()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is none."""
        return 0


class _InnerCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *others: Any) -> None:
        super().__init__(typingctx, targetctx, _InnerLibrary(targetctx.codegen(), "inner"), *others)


class _KernelCompiler(Compiler):  # type: ignore[misc]
    def compile_extra(self, func: Any) -> Any:
        """Compile, and tell the code where the environments of the inner kernels in it are."""
        # Looking for garbage among all that a compiler holds would take a tenth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            compiled = super().compile_extra(func)
        finally:
            if collects:
                gc.enable()
        for each in compiled._find_referenced_environments():
            compiled.library.codegen.set_env(each.env_name, each)
        return compiled


def inner_kernel(function: Any) -> Any:
    """Compile a function that kernels alone call: a third of the time that it takes as a kernel."""
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_InnerCompiler)(function)


def leaf_kernel(function: Any) -> Any:
    """Compile an inner kernel that makes no array and returns none; nor does what it calls.

    Its arrays are those of its callers, so how often they are used is not counted: in a loop over a few entries each
    that would cost more than the work.
    """
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_InnerCompiler, _nrt=False)(
        function
    )


def kernel(function: Any) -> Any:
    """Compile a function on arrays with Numba, without Python's lock, and keep the machine code."""
    compiled = njit(nogil=True, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler)(function)
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


def compiling_sentence(*kernels: str) -> str:
    """Return what to tell a user before these kernels (``module.function``) are compiled; empty where they are."""
    said = "compiling kernels that this command needs, once on this machine (about 10 s)"
    return "" if kernels_are_compiled(*kernels) else said


@contextmanager
def compilations() -> Iterator[list]:
    """Give a list that gets an entry for each kernel that is compiled or loaded inside the block, in any thread."""
    with install_recorder("numba:compile") as recorder:
        yield recorder.buffer
