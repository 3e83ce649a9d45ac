"""Write the manual page neardup(1) from the commands: ``python scripts/manual.py neardup.1``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neardup.cli.app import COMMANDS, EXAMPLES, app, load_command
from neardup.cli.command import rare_field_records
from neardup.cli.screen import EXIT_CODES
from neardup.version import __version__


def manual_page() -> str:
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
    with app.make_context("neardup", ["--version"], resilient_parsing=True) as context:
        for name in COMMANDS:
            lines += _section(name, load_command(name), context)
    lines += [".SH FIELDS FOR \\-\\-set", *_records(rare_field_records())]
    lines += [".SH EXIT STATUS", *_records([(str(code), meaning) for code, meaning in EXIT_CODES.items()])]
    return "\n".join(lines) + "\n"


def _section(name: str, command: Any, parent: Any) -> Iterator[str]:
    """Yield the section of a command, and those of its subcommands."""
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        yield f".SS {_escape(context.command_path)}"
        for paragraph in (command.help or "").split("\n\n"):
            yield from (_escape(" ".join(paragraph.split())), ".PP")
        for example in EXAMPLES.get(name, ()):
            yield from (".EX", _escape(f"neardup {example}"), ".EE")
        if hasattr(command, "commands"):
            for subname, subcommand in command.commands.items():
                yield from _section(subname, subcommand, context)
        else:
            records = (parameter.get_help_record(context) for parameter in command.get_params(context))
            yield from _records([record for record in records if record is not None])


def _records(records: list[tuple[str, str]]) -> Iterator[str]:
    for name, help in records:
        yield from (".TP", rf"\fB{_escape(name)}\fR", _escape(" ".join(help.split())))


def _escape(text: str) -> str:
    """Return text that troff prints as it is: a leading dot or quote would be a request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text[:1] in (".", "'") else text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(manual_page(), "utf-8")
