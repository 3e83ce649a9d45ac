"""``neardup neighbors``: the documents most similar to each one."""

from __future__ import annotations

from typing import Annotated

from neardup.cli.command import option, switch, with_options
from neardup.cli.options import (
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    check_outputs,
    opened_index,
    recipe_beside_index,
    refuse_read_options,
)
from neardup.cli.screen import count_text, interruptible, print_rows, reading, say, write_rows


@with_options
def neighbors(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    read: ReadOptions,
    running: RunOptions,
    k: Annotated[int, option("NUMBER", "How many neighbours of each document.", None, "--k", min=1)] = 3,
    of: Annotated[
        list[str] | None,
        option("ID", "Only the neighbours of this document; repeatable.", None, "--of"),
    ] = None,
    first: Annotated[
        int | None, option("NUMBER", "Only the neighbours of the first N documents; not with --of.", min=1)
    ] = None,
    output: Annotated[
        str | None,
        option(
            "FILE",
            "Write a table of document, rank, neighbor and similarity, in the format of the name.",
            None,
            "--output",
            "-o",
        ),
    ] = None,
    printing: Annotated[bool, switch("--print", "Print the table on stdout even with -o.")] = False,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print the table on stdout as JSON lines.")] = False,
) -> None:
    """Find the most similar other documents of each document, whatever the threshold.

    Documents that share no feature are not neighbours, so there may be fewer than N. Equally similar documents come
    in reading order.
    """
    to_file = None if output == "-" else output
    to_screen = to_file is None or printing or as_json
    index = opened_index(inputs)
    recipe = recipe_beside_index(recipe_options, None, index)
    check_outputs(inputs, ("-o", to_file), ("--quarantine", read.quarantine), force=force)

    from neardup.pipeline.neighbors import neighbors_of as find
    from neardup.pipeline.query import refuse_unasked

    refuse_unasked(recipe_options.given, nearest=True)
    if index is not None:
        refuse_read_options()
    with read.open(inputs) if index is None else index.corpus_around(k, of, first) as corpus:
        with reading(corpus, recipe, kernels=["postings.nearest_of"]) as report:
            found = find(corpus, recipe, k, of=of, first=first, progress=report, **running.limits)
            if to_file is not None:
                write_rows(found, to_file, force=force)
        if to_screen:
            with interruptible([to_file] if to_file is not None else []):
                print_rows([found.to_arrow()], found.to_arrow().column_names, as_json=as_json)
    place = f", written to {to_file}" if to_file is not None else ""
    whose = f"{count_text(found.asked, 'document')} among {found.documents:,}"
    say(f"{count_text(len(found), 'neighbour')} of {whose}{place}")
    missing = found.asked * k - len(found)
    if missing:
        say(f"{missing:,} fewer than asked for: no other document shares a feature")
