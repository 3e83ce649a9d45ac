"""Write the page of the manual, neardup(1), from the commands themselves: ``python scripts/manual.py neardup.1``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from neardup.cli.app import COMMANDS, EXAMPLES, app, command_of
from neardup.cli.command import help_record, rare_field_records
from neardup.cli.screen import EXIT_CODES
from neardup.version import __version__


def manual() -> str:
    """Return the page as troff."""
    lines = [
        f'.TH NEARDUP 1 "" "neardup {__version__}" "User Commands"',
        ".SH NAME",
        r"neardup \- find near-duplicate documents exactly, fast, and say why",
        ".SH SYNOPSIS",
        ".B neardup",
        ".I COMMAND",
        "[OPTIONS] [ARGUMENTS]",
        ".SH COMMANDS",
    ]
    group = typer.main.get_command(app)
    with group.make_context("neardup", ["--version"], resilient_parsing=True) as context:
        for name in COMMANDS:
            lines += _command(name, command_of(name), context)
    lines += [".SH FIELDS FOR \\-\\-set", *_records(rare_field_records())]
    lines += [".SH EXIT STATUS", *_records([(str(code), meaning) for code, meaning in EXIT_CODES.items()])]
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, parent: Any) -> Iterator[str]:
    """Yield the section of a command, and those of the commands below it."""
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        yield f".SS {_plain(context.command_path)}"
        for paragraph in (command.help or "").split("\n\n"):
            yield from (_plain(" ".join(paragraph.split())), ".PP")
        for example in EXAMPLES.get(name, ()):
            yield from (".EX", _plain(f"neardup {example}"), ".EE")
        if hasattr(command, "commands"):
            for below, one in command.commands.items():
                yield from _command(below, one, context)
        else:
            records = (help_record(parameter, context) for parameter in command.get_params(context))
            yield from _records([record for record in records if record is not None])


def _records(records: list[tuple[str, str]]) -> Iterator[str]:
    for name, what in records:
        yield from (".TP", rf"\fB{_plain(name)}\fR", _plain(" ".join(what.split())))


def _plain(text: str) -> str:
    """Return text as troff prints it: a leading dot or quote would be a request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text[:1] in (".", "'") else text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(manual(), "utf-8")
