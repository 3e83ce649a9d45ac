"""The private parts of Numba that ``kernels/compilation.py`` uses do what it expects of them."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import caching, codegen, compiler, config, dispatcher, event
from numba.core.runtime import _nrt_python

import neardup
from neardup.kernels import compilation
from neardup.kernels.bounds import required_overlap
from neardup.kernels.prefixes import set_table

PROJECT = Path(__file__).parents[2]


def parameters(function: object) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]  # type: ignore[arg-type]


def test_the_installed_numba_is_one_that_was_tried() -> None:
    (low, high) = re.search(r'"numba>=([\d.]+),<([\d.]+)"', (PROJECT / "pyproject.toml").read_text()).groups()  # type: ignore[union-attr]
    version, least, below = (tuple(map(int, text.split(".")[:2])) for text in (numba.__version__, low, high))
    assert least <= version < below


def test_private_parts_have_the_names_and_arguments_that_are_used() -> None:
    assert parameters(caching.FunctionCache.load_overload) == ["sig", "target_context"]
    assert parameters(caching.FunctionCache._load_overload) == ["sig", "target_context"]
    assert parameters(caching.FunctionCache.save_overload) == ["sig", "data"]
    assert caching.FunctionCache._impl_class is caching.CompileResultCacheImpl
    assert isinstance(caching.CompileResultCacheImpl._locator_classes, list)
    assert {"from_function", "get_cache_path", "get_source_stamp", "get_disambiguator"} <= set(
        dir(caching._CacheLocator)
    )
    assert "_index_path" in inspect.getsource(caching.IndexDataCacheFile)
    assert {"_optimize_final_module", "_finalize_final_module", "get_pointer_to_function"} <= set(
        dir(codegen.JITCodeLibrary)
    )
    assert parameters(compiler.CompilerBase.__init__)[:3] == ["typingctx", "targetctx", "library"]
    assert parameters(compiler.CompilerBase.compile_extra) == ["func"]
    assert parameters(compiler.CompileResult._find_referenced_environments) == []
    assert "self._insert(" in inspect.getsource(dispatcher._DispatcherBase.add_overload)
    assert hasattr(dispatcher._DispatcherBase, "_compile_for_args")
    assert hasattr(config, "DISABLE_JIT")
    assert callable(event.install_recorder)
    assert all(isinstance(address, int) for address in _nrt_python.c_helpers.values())
    assert hasattr(llvm, "add_symbol")


def test_a_kernel_uses_the_cache_of_its_own_and_counts_no_references_in_leaves() -> None:
    required_overlap((0, 7, 10, 0, 1), 10, 10)
    assert type(required_overlap._cache) is compilation._KernelCache
    assert compilation.leaf_kernel(lambda array: array[0]).targetoptions["_nrt"] is False
    assert [name for name in _nrt_python.c_helpers if name.startswith("MemInfo")]


def test_an_inner_kernel_called_from_python_raises_an_error() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^set_table is a part of kernels and cannot be called from Python$"):
            set_table(np.uint64(1), 3, np.zeros(3, np.uint64))
    # Not even after a kernel has compiled it.
    inner = compilation.inner_kernel(lambda number: number + 1)
    assert compilation.kernel(lambda number: inner(number) + 1)(5) == 7
    with pytest.raises(TypeError):
        inner(5)


def test_kernels_run_even_if_numba_is_told_not_to_compile() -> None:
    code = "import neardup as nd; print(nd.dedup(['a b c d e f', 'a b c d e f', 'x y z q r s']).kept)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(neardup.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[0, 2]\n"), done.stderr


def test_a_notice_is_given_once_and_only_when_a_kernel_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_one(value: int) -> int:
        return value + 1

    for folder in (tmp_path, None):
        monkeypatch.setattr(compilation, "cache_folder", lambda folder=folder: folder)
        counts = []
        for _ in range(2):
            notices: list[str] = []
            compilation.announce_compilation(notices.append)
            assert notices == []
            one, other = compilation.kernel(add_one), compilation.kernel(add_one)
            assert [one(1), one(1.5), other(1)] == [2, 2.5, 2]
            counts.append(len(notices))
        assert counts == ([1, 0] if folder else [1, 1])
