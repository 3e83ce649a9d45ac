"""``neardup pairs``: every pair at or above the threshold."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.options import (
    ClassifierOptions,
    EngineOptions,
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
    check_outputs,
    chosen_recipe,
    classifier_text,
    on_spark,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    lsh_text,
    print_rows,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
)
from neardup.errors import OutputError

if TYPE_CHECKING:
    from neardup.pipeline.result import Result
    from neardup.spark.command import Answer


@with_options
def pairs(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: ClassifierOptions,
    read: ReadOptions,
    running: RunOptions,
    where: EngineOptions,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A table of left, right and similarity, in the format of the name; with a classifier also score and "
            "evidence; - prints.",
        ),
    ] = None,
    printing: Annotated[bool, typer.Option("--print", help="Print the pairs on stdout, parted by tabs.")] = False,
    time_column: TimeColumn = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the pairs on stdout as JSON lines.")] = False,
) -> None:
    """Find every pair at or above the threshold: left, right, similarity."""
    to_file = None if output == "-" else output
    to_screen = output == "-" or printing or as_json
    if to_file is None and not to_screen:
        raise OutputError("no output is named: give one with -o FILE, or print the pairs with --print")
    classifier = decided.loaded(time_column)
    recipe = chosen_recipe(recipe_options, classifier).changed(keep="first")
    limits = running.limits
    engine = where.chosen(
        recipe,
        **{"--threads": limits["threads"], "--memory": limits["memory"], "--classifier": classifier},
    )
    check_outputs({"-o": to_file, "--quarantine": read.quarantine}, None, inputs, force=force)

    from neardup.pipeline.pipeline import run

    with read.open(inputs) as corpus:
        say_notes(corpus, recipe)
        if engine is None:
            say_if_compiling(recipe)
        with progress_bar() as report, ExitStack() as stack:
            result: Result | Answer
            if engine is not None:
                records = read.quarantine is not None
                result = stack.enter_context(on_spark(corpus, recipe, engine, report, records=records))
            else:
                result = run(corpus, recipe, classifier=classifier, progress=report, pairs_per_document=None, **limits)
            if to_file is not None:
                _write(result, to_file, force=force)
        if to_screen:
            with interruptible([to_file] if to_file is not None else []):
                tables = result.pairs.chunks(full=as_json)
                print_rows(tables, result.pairs.schema().names, as_json=as_json)
        say_rejected(corpus)
    place = f"; they are in {to_file}" if to_file is not None else ""
    documents = count_text(result.summary["documents"], "document")
    say(f"{count_text(len(result.pairs), 'pair')} among {documents}{place}")
    promised, learned = lsh_text(result.summary["search"]), classifier_text(result.summary)
    if promised:
        say(promised)
    if learned:
        say(f"classifier {learned}")


def _write(result: Result | Answer, output: str, *, force: bool) -> None:
    from neardup.documents import open_writer

    with open_writer(output, result.pairs.schema(), force) as writer:
        for table in result.pairs.chunks():
            writer.write(table)
