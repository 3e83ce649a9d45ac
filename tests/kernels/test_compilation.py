"""The cache of machine code: one folder per version of all kernels, and none if none is writable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup.kernels import compilation

SOURCE = Path(neardup.__file__).parent
RUN = "from neardup.kernels.bounds import required_overlap; print(required_overlap((0, 7, 10, 0, 1), 10, 10))"


def test_a_change_in_any_kernel_source_changes_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = shutil.copytree(SOURCE / "kernels", tmp_path / "kernels")
    monkeypatch.setattr(compilation, "__file__", str(kernels / "compilation.py"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    cache_folder = compilation.cache_folder.__wrapped__
    folders = [cache_folder()]
    assert folders[0] is not None
    assert folders[0] == cache_folder()
    assert folders[0].parent == tmp_path / "cache"
    assert folders[0].stat().st_mode & 0o077 == 0, "others must not write where code is run from"
    for name in ("bits.py", "unicode_tables.py"):
        with open(kernels / name, "a") as file:
            file.write("\n#\n")
        folders.append(cache_folder())
    assert len(set(folders)) == 3


@pytest.mark.parametrize("how", ["folder", "file", "link", "above"])
def test_code_that_others_could_have_written_is_refused(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    cache_folder = compilation.cache_folder.__wrapped__
    folder = cache_folder()
    assert folder is not None
    (folder / "kernel.nbi").write_text("")
    assert cache_folder() == folder
    if how == "folder":
        folder.chmod(0o777)
    elif how == "file":
        (folder / "kernel.nbi").chmod(0o666)
    elif how == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can .*compiled again in each run: remove it, or name another"):
        assert cache_folder() is None


def test_cached_arrays_are_built_once_and_again_if_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "cache_folder", lambda: tmp_path)
    built: list[int] = []

    def build() -> list[np.ndarray]:
        built.append(1)
        return [np.arange(3), np.zeros((2, 2), np.uint8)]

    for _ in range(3):
        first, second = compilation.cached_arrays("some", build)
        assert first.tolist() == [0, 1, 2]
        assert (second.dtype, second.shape) == (np.uint8, (2, 2))
    assert len(built) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["some.npz"]
    for data in (b"", b"PK broken", b"\x93NUMPY"):
        (tmp_path / "some.npz").write_bytes(data)
        assert compilation.cached_arrays("some", build)[0].tolist() == [0, 1, 2]
    assert len(built) == 4


def test_processes_with_equal_kernels_compile_once_wherever_installed(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "copy" / "neardup")
    command = [sys.executable, "-c", f"{RUN}; print(sum(required_overlap.stats.cache_misses.values()))"]

    def started(place: Path) -> subprocess.Popen[str]:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(place)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    processes = [started(place) for place in (SOURCE.parent, tmp_path / "copy")]
    assert sorted(process.communicate()[0].split() for process in processes) == [["9", "0"], ["9", "1"]]
    assert len([*(tmp_path / "cache").rglob("bounds.required_overlap-*.nbc")]) == 1


def test_kernels_work_without_a_writable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(compilation, "cache_folder", compilation.cache_folder.__wrapped__)
    assert compilation.cache_folder() is None
    assert compilation.kernel(lambda number: number + 1)(8) == 9
    assert compilation.cached_arrays("some", lambda: [np.arange(3)])[0].tolist() == [0, 1, 2]


@pytest.mark.usefixtures("no_bytecode")
def test_kernels_work_on_a_full_disk(tmp_path: Path) -> None:
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {RUN}"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "9\n"
    assert not [*tmp_path.rglob("*.nb[ci]")]
