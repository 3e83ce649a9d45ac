"""``neardup pairs``: every pair at or above the threshold."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import option, switch, with_options
from neardup.cli.index import IndexBehind
from neardup.cli.options import (
    Against,
    ClassifierOptions,
    EngineOptions,
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
    check_outputs,
    classifier_text,
    on_spark,
    opened_index,
    recipe_beside_index,
    say_if_foreign,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    lsh_text,
    print_rows,
    reading,
    say,
    stages_of,
)
from neardup.errors import OutputError

if TYPE_CHECKING:
    from neardup.pipeline.result import Result


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
        option(
            "FILE",
            "A table of left, right and similarity, in the format of the name; with a classifier also score and "
            "evidence; - prints.",
            None,
            "--output",
            "-o",
        ),
    ] = None,
    printing: Annotated[bool, switch("--print", "Print the pairs on stdout, separated by tabs.")] = False,
    against: Against = None,
    time_column: TimeColumn = None,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print the pairs on stdout as JSON lines.")] = False,
) -> None:
    """List every pair at or above the threshold.

    With --against, pairs with the reference are listed, too; right_from says on which side right is.
    """
    to_file = None if output == "-" else output
    to_screen = output == "-" or printing or as_json
    if to_file is None and not to_screen:
        raise OutputError("no output is named: give one with -o FILE, or print the pairs with --print")
    classifier = decided.loaded(time_column)
    index = opened_index(against)
    recipe = recipe_beside_index(recipe_options, classifier, index).changed(keep="first")
    limits = running.limits
    engine = where.chosen(
        recipe,
        **{"--threads": limits["threads"], "--memory": limits["memory"]},
        **{"--classifier": classifier},
    )
    check_outputs([*inputs, *(against or ())], ("-o", to_file), ("--quarantine", read.quarantine), force=force)

    from neardup.pipeline.pipeline import run

    behind = IndexBehind(index)
    kernels = behind.kernels if engine is None else None
    with read.open(inputs, against=against, index=index) as corpus:
        stages = stages_of(recipe, margin=False, write=False)
        with reading(corpus, recipe, kernels=kernels, stages=stages) as report, ExitStack() as stack:
            if engine is not None:
                records = read.quarantine is not None
                result = stack.enter_context(on_spark(corpus, recipe, engine, report, records=records, index=index))
            else:
                behind.look_up(corpus, limits["threads"], report)
                result = run(corpus, recipe, classifier=classifier, progress=report, pairs_per_document=None, **limits)
            if to_file is not None:
                _write(result, to_file, force=force)
        if to_screen:
            with interruptible([to_file] if to_file is not None else []):
                tables = result.pairs.chunks(full=as_json)
                print_rows(tables, result.pairs.schema().names, as_json=as_json)
    place = f", written to {to_file}" if to_file is not None else ""
    documents = count_text(result.summary["documents"], "document")
    if against:
        documents += f", and with {result.summary['reference']['documents']:,} of the reference"
    say(f"{count_text(len(result.pairs), 'pair')} among {documents}{place}")
    promised, learned = lsh_text(result.summary["search"]), classifier_text(result.summary)
    if promised:
        say(promised)
    if learned:
        say(f"classifier {learned}")
    say_if_foreign(classifier, result.summary)


def _write(result: Result, output: str, *, force: bool) -> None:
    from neardup.documents import open_writer

    with open_writer(output, result.pairs.schema(), force) as writer:
        for table in result.pairs.chunks():
            writer.write(table)
