"""``neardup neighbors``: the documents most similar to each one."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli.options import Force, Inputs, ReadOptions, RecipeOptions, RunOptions, check_outputs, with_options
from neardup.cli.screen import (
    count_text,
    interruptible,
    print_rows,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
    whole_number,
    write_rows,
)


@with_options
def neighbors(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    read: ReadOptions,
    running: RunOptions,
    k: Annotated[str, typer.Option("--k", metavar="NUMBER", help="How many neighbours of each document.")] = "3",
    of: Annotated[
        list[str] | None,
        typer.Option("--of", metavar="ID", help="A document whose neighbours are wanted; may be given several times."),
    ] = None,
    first: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="In place of --of: only of the first so many documents.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A table of document, rank, neighbor and similarity, in the format of the name, not on stdout.",
        ),
    ] = None,
    printing: Annotated[bool, typer.Option("--print", help="Print the table on stdout, also with -o.")] = False,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table on stdout as JSON lines.")] = False,
) -> None:
    """Find the most similar others of each document, exactly, whatever the threshold.

    Documents that share no feature are no neighbours, so there may be fewer than asked for; of equally similar ones
    those come first that were read first.
    """
    to_file = None if output == "-" else output
    to_screen = to_file is None or printing or as_json
    recipe = recipe_options.chosen()
    wanted, most = whole_number(k, "--k"), None if first is None else whole_number(first, "--first")
    limits = running.limits
    check_outputs({"-o": to_file, "--quarantine": read.quarantine}, None, inputs, force=force)

    from neardup.pipeline.neighbors import neighbors_of as find
    from neardup.pipeline.query import refuse_unasked

    refuse_unasked(recipe_options.given, nearest=True)
    with read.open(inputs) as corpus:
        say_notes(corpus, recipe)
        say_if_compiling(None, "postings.nearest_of")
        with progress_bar() as report:
            found = find(corpus, recipe, wanted, of=of, first=most, progress=report, **limits)
            if to_file is not None:
                write_rows(found, to_file, force=force)
        if to_screen:
            with interruptible([to_file] if to_file is not None else []):
                print_rows([found.to_arrow()], found.to_arrow().column_names, as_json=as_json)
        say_rejected(corpus)
    place = f"; they are in {to_file}" if to_file is not None else ""
    whose = f"{count_text(found.asked, 'document')} among {found.documents:,}"
    say(f"{count_text(len(found), 'neighbour')} of {whose}{place}")
    missing = found.asked * wanted - len(found)
    if missing:
        say(f"{missing:,} fewer than asked for: no other document shares a feature")
