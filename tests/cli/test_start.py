"""How the command starts: help without heavy imports, version, options that are a recipe's; the demo."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from calling import NEVER, neardup

import neardup as package
from neardup.cli.dedup import dedup
from neardup.cli.options import RecipeOptions
from neardup.recipe import Recipe
from neardup.recipe.kinds import NORMALIZER_NAMES
from neardup.recipe.measures import MEASURES

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "numba", "llvmlite", "pyarrow", "pandas", "numpy"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["dedup", "--help"], ["explain", "-h"], ["recipe", "--help"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import runpy, sys\n"
        f"sys.argv = ['neardup', *{arguments!r}]\n"
        "try:\n    runpy.run_module('neardup', run_name='__main__')\n"
        "except SystemExit as end:\n"
        f"    sys.exit(end.code or [m for m in {HEAVY!r} if m in sys.modules] or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=NEVER)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "neardup" in ended.stdout


def test_version() -> None:
    assert neardup("--version").stdout == f"neardup {package.__version__}\n"


def test_every_choice_of_a_recipe_has_its_option() -> None:
    options = set(inspect.signature(dedup).parameters)
    described = {"name", "description"}
    assert {field.name for field in fields(Recipe)} - described <= options
    for name in [*MEASURES, *NORMALIZER_NAMES]:
        assert name in neardup("dedup", "--help").stdout


def test_options_left_out_leave_the_recipe_as_it_is() -> None:
    from neardup.recipe import load_recipe

    assert RecipeOptions().chosen() == load_recipe("default")
    assert RecipeOptions(recipe="jaccard", threshold="0.6").chosen().threshold == 0.6


def test_help_names_every_command() -> None:
    shown = neardup("--help").stdout
    assert all(command in shown for command in ("dedup", "pairs", "explain", "recipe"))


def test_demo_runs() -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")], capture_output=True, text=True, timeout=NEVER
    )
    assert ended.returncode == 0, ended.stderr
    assert "$ neardup dedup examples/newswire.jsonl" in ended.stdout
    assert "verdict" in ended.stdout
    assert "199 documents: " in ended.stderr
    summary = json.loads((ROOT / "demo-output" / "summary.json").read_text())
    assert summary["kept"] + summary["dropped"] == summary["documents"] == 199
