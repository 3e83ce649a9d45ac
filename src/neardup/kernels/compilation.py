"""Compilation of kernels, and the cache of machine code between runs.

Numba invalidates the cache of a function if the file of that function changes, but not if inlined code of another file
changes. So the cache folder is named after a digest of all kernel sources and Numba's version. Copies of this package
with equal kernels share it, and if several processes need a kernel at the same time, only one compiles it.

No other module uses private parts of Numba, and ``tests/kernels/test_numba.py`` tests that each does what is expected
of it. What each one saves, so what happens if it is taken out:

- ``_CacheLocator``, ``CompileResultCacheImpl``, ``FunctionCache`` with ``_index_path``, ``_load_overload`` and the
  dispatcher's ``_cache``: the cache of a kernel holds until any kernel source changes, and one process compiles.
  Without them (``cache=True``), a change of an inlined kernel would go unnoticed.
- ``c_helpers``: loading a kernel from the cache does not compile Numba's runtime, which takes 0.3 s and 90 MB.
- ``JITCodeLibrary``, ``Compiler``, ``_find_referenced_environments``, ``set_env``: inner kernels have no machine code
  of their own, which saves two thirds of the time to compile.
- ``_nrt``: no references to arrays are counted in loops over a few entries, where it takes more time than the work.
- ``_insert``, ``_compile_for_args``: calling an inner kernel from Python raises an error, not a signal.
- ``config.DISABLE_JIT``: kernels are compiled even if NUMBA_DISABLE_JIT=1, since they read memory at addresses.
- ``install_recorder``: tests count compilations.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import stat
import sys
import tempfile
import time
import warnings
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
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.event import install_recorder
from numba.core.runtime._nrt_python import c_helpers


@cache
def cache_folder() -> Path | None:
    """Return the folder for machine code, or None if none is writable: then each run compiles again.

    It is inside ``$NUMBA_CACHE_DIR`` or the user's cache folder, never in a folder that others can write to: code in it
    is executed. A folder that others can write to is refused with a warning.
    """
    sources = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {sys.version}".encode())
    for source in sorted(sources.glob("*.py")):
        digest.update(source.read_bytes())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(chosen or os.path.join(home, "neardup")) / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return None
        if reason := _distrust(folder):
            warnings.warn(
                f"{reason}, so kernels are compiled again in each run: remove it, or name another folder by "
                "NUMBA_CACHE_DIR",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
    except OSError:
        return None
    return folder


def _distrust(folder: Path) -> str:
    """Return why code in a folder must not be executed: somebody else may have written it; empty if nobody may."""
    above, own = folder.parent.stat().st_mode, folder.lstat()
    if above & stat.S_IWOTH and not above & stat.S_ISVTX:
        return f"others can replace what is in {folder.parent}"
    if not stat.S_ISDIR(own.st_mode) or own.st_mode & 0o022:
        return f"others can write to {folder}"
    # Where the user's mask lets a group write, only the folder keeps it from the files.
    forbidden = 0o022 if own.st_mode & 0o011 else 0o002
    for place in (folder, *folder.iterdir()):
        found = place.lstat()
        if found.st_uid != os.geteuid():
            return f"{place} belongs to another user"
        if found.st_mode & forbidden:
            return f"others can write to {place}"
    return ""


@cache
def _register_runtime_symbols() -> None:
    """Tell LLVM the addresses of Numba's runtime functions; ``rtsys.initialize`` would also compile some."""
    for name, address in c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _CacheLocation(_CacheLocator):  # type: ignore[misc]
    """The cache location of a function: its name alone, because the folder stands for all sources."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, function: Any, source: str) -> _CacheLocation | None:
        folder = cache_folder()
        return None if folder is None else cls(function, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


class _KernelCacheFiles(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar = [_CacheLocation]


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, without loading what only compilation needs: saves 0.3 s and 90 MB at startup.

    From the moment a kernel is missing until it is saved, other processes wait. Otherwise they would compile it as
    well, and two processes that save one kernel for different types at the same time would mix them up.
    """

    _impl_class = _KernelCacheFiles
    _lock: int | None = None

    def load_overload(self, signature: Any, context: Any) -> Any:
        _register_runtime_symbols()
        found = self._load_overload(signature, context)
        if found is None:
            # This process compiles it, or waits for another that does.
            _announce()
        if found is None and self._lock is None:
            self._lock = _open_with_lock(f"{self._cache_file._index_path}.lock")
            found = self._load_overload(signature, context)
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, signature: Any, code: Any) -> None:
        # A full disk makes the next process compile again; no run fails.
        try:
            with suppress(OSError):
                super().save_overload(signature, code)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _open_with_lock(path: str) -> int | None:
    """Open a file and lock it; wait at most as long as a kernel takes to compile."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.02)
        else:
            break
    return file


#: Seconds, more than any kernel takes to compile.
_LOCK_TIMEOUT = 60


class _NullCodegen:
    """Stands in for the code generator of an inner kernel, which has no machine code of its own."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is inlined into its callers and optimized there; it never becomes machine code by itself."""

    codegen = _NullCodegen()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        return 0


class _InnerCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        super().__init__(typingctx, targetctx, _InnerLibrary(targetctx.codegen(), "inner"), *arguments)


class _KernelCompiler(Compiler):  # type: ignore[misc]
    def compile_extra(self, func: Any) -> Any:
        """Compile, and set the environments of the inner kernels that were inlined."""
        _announce()
        # Garbage collection among the compiler's objects would take a tenth of the time.
        gc_was_enabled = gc.isenabled()
        gc.disable()
        try:
            with _jit_enabled():
                compiled = super().compile_extra(func)
        finally:
            if gc_was_enabled:
                gc.enable()
        for environment in compiled._find_referenced_environments():
            compiled.library.codegen.set_env(environment.env_name, environment)
        return compiled


@contextmanager
def _jit_enabled() -> Iterator[None]:
    before, config.DISABLE_JIT = config.DISABLE_JIT, 0
    try:
        yield
    finally:
        config.DISABLE_JIT = before


_INNER_OPTIONS = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InnerCompiler}


def _jit(function: Any, **options: Any) -> Any:
    """Compile a function, also with NUMBA_DISABLE_JIT=1: Python cannot read memory at addresses."""
    with _jit_enabled():
        return numba.njit(**options)(function)


def inlined(function: Any) -> Any:
    """Compile a function by copying it to where it is called; it can be called from Python, too."""
    return _jit(function, inline="always")


def inner_kernel(function: Any) -> Any:
    """Compile a function that only kernels call, in a third of the time that a kernel takes."""
    return _uncallable(_jit(function, **_INNER_OPTIONS))


def leaf_kernel(function: Any) -> Any:
    """Compile an inner kernel that neither creates nor returns arrays; nor does anything that it calls.

    References to its arrays are not counted. In a loop over a few entries, counting would cost more than the work.
    """
    return _uncallable(_jit(function, **_INNER_OPTIONS, _nrt=False))


def _uncallable(compiled: Any) -> Any:
    """Return an inner kernel whose call from Python raises ``TypeError``, since it has no machine code to run."""

    def refuse(*arguments: Any, **more: Any) -> None:
        raise TypeError(f"{compiled.py_func.__name__} is a part of kernels and cannot be called from Python")

    compiled._insert = lambda *overload: None
    compiled._compile_for_args = refuse
    return compiled


def kernel(function: Any) -> Any:
    """Compile a function on arrays with Numba, without the GIL, and cache the machine code."""
    compiled = _jit(function, nogil=True, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler)
    if cache_folder() is not None:
        compiled._cache = _KernelCache(function)
    return compiled


def cached_arrays(name: str, build: Callable[[], Iterable[Any]]) -> list[Any]:
    """Return the arrays that a function builds, cached beside the machine code under a name."""
    folder = cache_folder()
    if folder is None:
        return list(build())
    path = folder / f"{name}.npz"
    # An unreadable file is built again.
    with suppress(OSError, EOFError, ValueError, BadZipFile), np.load(path, allow_pickle=False) as stored:
        return [stored[key] for key in stored.files]
    arrays = list(build())
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
        np.savez(file, *arrays)
        file.close()
        os.replace(file.name, path)
    return arrays


def kernels_are_compiled(*kernels: str) -> bool:
    """Return whether the machine code of all these kernels (``module.function``) is cached."""
    folder = cache_folder()
    return folder is not None and all(any(folder.rglob(f"{kernel}-*.nbi")) for kernel in kernels)


_NOTICE = "compiling kernels that this command needs, once on this machine (10 to 30 s)"
#: Called with the notice when the first kernel is compiled; at most one.
_waiting: list[Callable[[str], object]] = []


def announce_compilation(write: Callable[[str], object]) -> None:
    """Call a function with a notice as soon as a kernel is compiled; never if all that run are cached."""
    _waiting[:] = [write]


def _announce() -> None:
    with suppress(IndexError):
        _waiting.pop()(_NOTICE)


@contextmanager
def record_compilations() -> Iterator[list]:
    """Yield a list that gets an entry for each kernel compiled or loaded in the block, by any thread."""
    with install_recorder("numba:compile") as recorder:
        yield recorder.buffer
