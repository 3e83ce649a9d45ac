"""How the command starts: help without heavy imports, version, options that are a recipe's; the demo."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest
from click.testing import CliRunner
from commands import DOCUMENTS, NEVER, neardup, refused, write_lines
from paths import ROOT
from sentences import says

import neardup as package
from neardup.cli.app import COMMANDS, app, load_command
from neardup.cli.command import Option
from neardup.recipe import Recipe
from neardup.recipe.named import Choices
from neardup.recipe.recipe import OPTIONS

HEAVY = "numba", "llvmlite", "pyarrow", "pandas", "numpy"


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import runpy, sys\n"
        "for command in ([], ['dedup'], ['recipe']):\n"
        "    sys.argv = ['neardup', *command, '-h']\n"
        "    try:\n        runpy.run_module('neardup', run_name='__main__')\n"
        "    except SystemExit as end:\n        assert not end.code\n"
        f"sys.exit([m for m in {HEAVY!r} if m in sys.modules] or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=NEVER)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("Usage: neardup") == 3


def test_the_version_is_printed() -> None:
    assert neardup("--version").stdout == f"neardup {package.__version__}\n"


def test_every_field_of_a_recipe_has_an_option_or_is_set_by_set() -> None:
    options = {parameter.name for parameter in load_command("dedup").params}
    assert {name for name, option in OPTIONS.items() if option.common} <= options
    output = neardup("dedup", "--help-all").stdout
    for name, option in OPTIONS.items():
        assert (f"--{name.replace('_', '-')} " if option.common else f"{name}=") in output


def test_the_metadata_of_fields_matches_the_recipe() -> None:
    chosen = {field.name: field.type for field in fields(Recipe) if field.name not in ("name", "description")}
    assert set(chosen) == set(OPTIONS)
    assert {name: type(option.default).__name__ for name, option in OPTIONS.items()} == chosen
    assert {name: kind.__name__ for name, kind in get_type_hints(Choices).items()} == chosen
    assert all(option.help.endswith(".") and len(option.help) <= 80 for option in OPTIONS.values())


def test_the_table_of_fields_is_what_the_script_writes() -> None:
    page = ROOT / "docs" / "recipe-fields.md"
    assert runpy.run_path(str(ROOT / "scripts" / "recipe_fields.py"))["format_page"]() == page.read_text("utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_begins_with_its_purpose(command: str) -> None:
    output = neardup(command, "--help").stdout
    assert COMMANDS[command] in " ".join(output.split())
    assert "<" not in output.partition("Options:")[0]


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"recipe", "index", "store"}))
def test_help_fits_a_screen_and_shows_what_is_required_and_every_default(command: str) -> None:
    usual = CliRunner().invoke(app, [command, "--help"], terminal_width=80, prog_name="neardup").stdout.splitlines()
    assert len(usual) <= 40
    assert max(map(len, usual)) <= 80
    everything = " ".join(neardup(command, "--help-all").stdout.split())
    for option in load_command(command).params:
        if isinstance(option, Option):
            assert option.usage in everything
            begin = everything.index(option.usage)
            if option.required:
                assert "[required]" in everything[begin:]
                assert option.usage in " ".join("\n".join(usual).split())
            elif not option.is_flag and option.initial not in (None, ""):
                assert "[default: " in everything[begin:]


@pytest.mark.parametrize("command", [["dedup", "--dry-run"], ["pairs", "--print"], ["similar"], ["explore", "--json"]])
def test_a_quiet_command_prints_only_warnings(command: list[str], tmp_path: Path) -> None:
    sound, broken = write_lines(tmp_path / "sound.jsonl", DOCUMENTS), tmp_path / "broken.jsonl"
    broken.write_text(sound.read_text() + "{broken\n")
    told, quiet = (neardup(*command, sound, *more) for more in ([], ["--quiet"]))
    assert told.stderr
    assert quiet.stderr == ""
    assert command[0] == "explore" or quiet.stdout == told.stdout
    (line,) = neardup(*command, broken, "-q").stderr.splitlines()
    assert says(line, "rejected", "broken.jsonl, line 6")
    assert says(refused(*command, "missing.jsonl", "-q"), "missing.jsonl")


def test_help_shows_the_defaults_of_the_recipe_that_a_command_takes() -> None:
    batch, flow = (" ".join(neardup(command, "--help").stdout.split()) for command in ("dedup", "serve"))
    for text in ("[default: words:5]", "[default: jaccard]", "[default: 0.85]"):
        assert text in batch
    for text in ("[default: ddd]", "[default: qgrams:4]", "[default: overlap]", "[default: 0.8]"):
        assert text in flow


def test_the_demo_runs_on_the_sample_of_the_package(tmp_path: Path) -> None:
    done = neardup("demo", tmp_path / "demo")
    assert "$ neardup dedup " in done.stdout
    assert "verdict" in done.stdout
    assert "199 documents: " in done.stderr
    assert "neardup explore" in done.stderr.splitlines()[-1]
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert summary["kept"] + summary["dropped"] == summary["documents"] == 199
    for sample in ("newswire.jsonl", "newswire-labels.csv", "train.jsonl", "test.jsonl"):
        assert (tmp_path / "demo" / sample).read_bytes() == (ROOT / "examples" / sample).read_bytes()
    assert says(refused("demo", tmp_path / "demo"), "newswire.jsonl", "another folder", "--force")


def test_the_demo_without_charts_states_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    *_, complete, extra, next_step = neardup("demo", tmp_path / "demo").stderr.splitlines()
    assert says(complete, "complete", "kept.jsonl, duplicates.csv and summary.json", str(tmp_path / "demo"))
    assert says(extra, "pip install 'neardup[report]' brings", "report.html")
    assert "neardup explore" in next_step


def completions(words: str) -> list[str]:
    """Return what a shell offers for the last word."""
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_NEARDUP_COMPLETE": "bash_complete"}
    lines = CliRunner().invoke(app, [], env=environment, prog_name="neardup").stdout.split()
    return [line.partition(",")[2] for line in lines]


def test_shells_complete_commands_and_their_options() -> None:
    assert completions("neardup de") == ["dedup", "demo"]
    assert completions("neardup dedup --thr") == ["--threshold", "--threads"]
    assert completions("neardup recipe s") == ["show"]
    script = CliRunner().invoke(app, [], env={"_NEARDUP_COMPLETE": "bash_source"}, prog_name="neardup").stdout
    assert "_NEARDUP_COMPLETE=bash_complete" in script


def test_the_manual_has_every_command() -> None:
    manual = runpy.run_path(str(ROOT / "scripts" / "manual.py"))["manual_page"]().replace("\\-", "-")
    for command in COMMANDS:
        assert f".SS neardup {command}" in manual
    for words in ("--help-all", "num_perm=", ".SH EXIT STATUS", ".SS neardup recipe show"):
        assert words in manual


def typed_options() -> Iterator[tuple[str, str]]:
    """The options of all commands whose values are numbers, sizes, times or one of a few words."""
    for name in set(COMMANDS) - {"recipe", "index", "store"}:
        command = load_command(name)
        for option in command.params:
            if isinstance(option, Option) and not option.is_flag and option.is_checked:
                yield name, option.opts[0]


def test_every_typed_option_refuses_other_values_in_one_sentence() -> None:
    options = sorted(typed_options())
    assert {("dedup", "--threads"), ("watch", "--poll"), ("similar", "--k"), ("explore", "--lengths")} <= set(options)
    for command, option in options:
        assert says(refused(command, option, "no such value"), option, "'no such value'")


def test_a_command_without_arguments_shows_how_to_call_it() -> None:
    lines = neardup("dedup", code=2).stderr.splitlines()
    assert says(lines[0], "dedup needs INPUT")
    assert len(lines) <= 10
    assert any(line.startswith("  neardup dedup news.jsonl -o ") for line in lines)
    assert "Batch:" in neardup(code=2).stderr
    assert "Print a recipe as TOML" in neardup("recipe", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "before", "delay"),
    [
        ([], None, "1000"),
        (["--memory", "500MB"], None, "0"),
        (["--memory=3GiB"], None, "100"),
        (["--memory", "500MB"], "5", "5"),
    ],
)
def test_a_memory_limit_makes_arrow_return_memory_sooner(
    arguments: list[str], before: str | None, delay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {} if before is None else {"MIMALLOC_PURGE_DELAY": before}
    monkeypatch.setattr(os, "environ", environment)
    refused("dedup", "no such file", "--dry-run", *arguments)
    assert environment["MIMALLOC_PURGE_DELAY"] == delay
