"""``neardup pairs``: every pair at or above the threshold."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.options import (
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    check_outputs,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    lsh_text,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_set_aside,
    speaks_unicode,
    visible,
)
from neardup.errors import OutputError

if TYPE_CHECKING:
    from neardup.result import Result


@with_options
def pairs(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    read: ReadOptions,
    running: RunOptions,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A table of left, right and similarity, in the format of the name; - prints.",
        ),
    ] = None,
    printing: Annotated[bool, typer.Option("--print", help="Print the pairs on stdout, parted by tabs.")] = False,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the pairs on stdout as JSON lines.")] = False,
) -> None:
    """Find every pair at or above the threshold: left, right, similarity."""
    to_file = None if output == "-" else output
    to_screen = output == "-" or printing or as_json
    if to_file is None and not to_screen:
        raise OutputError("no output is named: give one with -o FILE, or print the pairs with --print")
    recipe = recipe_options.chosen().changed(keep="first")
    limits = running.limits
    check_outputs({"-o": to_file, "--quarantine": read.quarantine}, None, inputs, force=force)

    from neardup.pipeline import run

    with read.open(inputs) as corpus:
        say_notes(corpus)
        say_if_compiling()
        with progress_bar() as report:
            result = run(corpus, recipe, progress=report, pairs_per_document=None, **limits)
            if to_file is not None:
                _write(result, to_file, force=force)
        if to_screen:
            with interruptible([to_file] if to_file is not None else []):
                _print(result, as_json=as_json)
        say_set_aside(corpus)
    place = f"; they are in {to_file}" if to_file is not None else ""
    documents = count_text(result.summary["documents"], "document")
    say(f"{count_text(len(result.pairs), 'pair')} among {documents}{place}")
    promised = lsh_text(result.summary["search"])
    if promised:
        say(promised)


def _write(result: Result, output: str, *, force: bool) -> None:
    from neardup.documents import open_writer

    with open_writer(output, result.pairs.schema(), force) as writer:
        for table in result.pairs.chunks():
            writer.write(table)


def _print(result: Result, *, as_json: bool) -> None:
    ascii_only = not speaks_unicode()
    if not as_json:
        sys.stdout.write("left\tright\tsimilarity\n")
    for table in result.pairs.chunks():
        rows = table.to_pylist()
        lines = (json.dumps(row, ensure_ascii=ascii_only) for row in rows) if as_json else map(_line, rows)
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def _line(row: dict[str, Any]) -> str:
    return "\t".join(_field(value) for value in row.values())


def _field(value: Any) -> str:
    """Return a value as a field of a line; an id with a tab or a line break has it written out."""
    text = visible(str(value)) if sys.stdout.isatty() else str(value)
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")
