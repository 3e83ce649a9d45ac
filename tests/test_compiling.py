"""Where machine code is kept: one folder for one state of all kernels, and none where none can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import neardup

SOURCE = Path(neardup.__file__).parent
ASK = "from neardup.kernels.compilation import cache_folder; print(cache_folder())"
USE = "from neardup.kernels.bounds import need; print(need((0, 7, 10, 0, 1), 10, 10))"


def run(code: str, package: Path, cache: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_change_in_any_kernel_source_makes_another_folder(tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(SOURCE, package / "neardup", ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    first = run(ASK, package, cache)
    assert first == run(ASK, package, cache)
    assert Path(first).parent == cache
    assert Path(first).stat().st_mode & 0o077 == 0, "others must not write where code is run from"
    for name in ("kernels/bits.py", "kernels/unicode_tables.py"):
        with open(package / "neardup" / name, "a") as file:
            file.write("\n#\n")
        assert run(ASK, package, cache) != first
        first = run(ASK, package, cache)


def test_code_is_kept_between_runs(tmp_path: Path) -> None:
    assert run(USE, SOURCE.parent, tmp_path) == "9"
    kept = sorted(path.name for path in tmp_path.rglob("*.nbc"))
    assert any(name.startswith("bounds.need-") for name in kept)
    assert run(USE, SOURCE.parent, tmp_path) == "9"
    assert sorted(path.name for path in tmp_path.rglob("*.nbc")) == kept


def test_kernels_work_where_no_folder_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(ASK, SOURCE.parent, tmp_path / "file") == "None"
    assert run(USE, SOURCE.parent, tmp_path / "file") == "9"
