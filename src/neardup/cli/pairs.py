"""``neardup pairs``: every pair at or above the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import output_option, switch, with_options
from neardup.cli.options import (
    Against,
    CorpusClassifierOptions,
    EngineOptions,
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
)
from neardup.cli.outputs import check_outputs, written_files
from neardup.cli.running import IndexReference, describe_classifier, find_index, run_recipe, warn_if_outside_domain
from neardup.cli.screen import describe_lsh, print_message, print_rows
from neardup.errors import OutputError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from neardup.pipeline.result import Result


@with_options
def pairs(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    classifier_options: CorpusClassifierOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    engine_options: EngineOptions,
    output: Annotated[
        str | None,
        output_option(
            "A table of left, right and similarity, in the format of the name; with a classifier also score and "
            "evidence; - for stdout."
        ),
    ] = None,
    print_pairs: Annotated[bool, switch("--print", "Print the pairs on stdout, separated by tabs.")] = False,
    against: Against = None,
    time_column: TimeColumn = None,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print the pairs on stdout as JSON lines.")] = False,
) -> None:
    """List every pair at or above the threshold.

    With --against, pairs with reference documents are listed, too; the column right_from says where right is from.
    """
    file = None if output == "-" else output
    to_stdout = output == "-" or print_pairs or as_json
    if file is None and not to_stdout:
        raise OutputError("no output is named: give one with -o FILE, or print the pairs with --print")
    classifier = classifier_options.load_for_corpus(time_column)
    index = find_index(against)
    recipe = recipe_options.resolve(classifier, index).changed(keep="first")
    engine = engine_options.spark_engine(recipe, run_options.threads)
    outputs = {"-o": file, "--quarantine": read_options.quarantine}
    check_outputs([*inputs, *(against or ())], outputs, force=force)

    reference = IndexReference(index)
    with read_options.open(inputs, against=against if index is None else None) as corpus:
        with run_recipe(
            corpus,
            recipe,
            reference,
            engine,
            run_options,
            keep_rejected=read_options.quarantine is not None,
            write=False,
            classifier=classifier,
        ) as (result, _):
            if file is not None:
                _write(result, file, force=force)
        if to_stdout:
            with written_files(file):
                print_rows(result.pairs.chunks(full=as_json), result.pairs.schema().names, as_json=as_json)
    place = f", written to {file}" if file is not None else ""
    documents = format_count(result.summary["documents"], "document")
    if against:
        documents += f", and with {result.summary['reference']['documents']:,} of the reference"
    print_message(f"{format_count(len(result.pairs), 'pair')} among {documents}{place}")
    if lsh := describe_lsh(result.summary["search"]):
        print_message(lsh)
    if classifier is not None:
        print_message(f"classifier {describe_classifier(result.summary)}")
    warn_if_outside_domain(classifier, result.summary)


def _write(result: Result, output: str, *, force: bool) -> None:
    from neardup.documents import open_writer

    with open_writer(output, result.pairs.schema(), force) as writer:
        for table in result.pairs.chunks():
            writer.write(table)
