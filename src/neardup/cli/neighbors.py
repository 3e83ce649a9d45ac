"""``neardup neighbors``: the documents most similar to each one."""

from __future__ import annotations

from typing import Annotated

from neardup.cli.command import option, output_option, switch, with_options
from neardup.cli.options import Force, Inputs, ReadOptions, RecipeOptions, RunOptions, find_index, refuse_read_options
from neardup.cli.screen import check_outputs, print_message, print_rows, reading_progress, written_files
from neardup.pages.numbers import format_count


@with_options
def neighbors(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    k: Annotated[int, option("NUMBER", "How many neighbours of each document.", None, "--k", min=1)] = 3,
    of: Annotated[
        list[str] | None, option("ID", "Only the neighbours of this document; repeatable.", None, "--of")
    ] = None,
    first: Annotated[
        int | None, option("NUMBER", "Only the neighbours of the first N documents; not with --of.", min=1)
    ] = None,
    output: Annotated[
        str | None,
        output_option("Write a table of document, rank, neighbor and similarity, in the format of the name."),
    ] = None,
    print_table: Annotated[bool, switch("--print", "Print the table on stdout even with -o.")] = False,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print the table on stdout as JSON lines.")] = False,
) -> None:
    """Find the most similar other documents of each document, whatever the threshold.

    Documents without a shared feature are no neighbours, so a document may have fewer than N. Equally similar
    documents are listed in reading order.
    """
    file = None if output == "-" else output
    index = find_index(inputs)
    recipe = recipe_options.resolve(index=index)
    check_outputs(inputs, {"-o": file, "--quarantine": read_options.quarantine}, force=force)

    from neardup.documents import write_table
    from neardup.pipeline.neighbors import find_neighbors
    from neardup.pipeline.query import check_query_options

    check_query_options(recipe_options.settings, nearest=True)
    if index is not None:
        refuse_read_options()
    with read_options.open(inputs) if index is None else index.neighbor_corpus(k, of, first) as corpus:
        with reading_progress(corpus, recipe, kernels=["postings.find_nearest"]) as progress:
            result = find_neighbors(corpus, recipe, k, of=of, first=first, progress=progress, **run_options.limits)
            table = result.to_arrow()
            if file is not None:
                write_table(table, file, force=force)
        if file is None or print_table or as_json:
            with written_files(file):
                print_rows([table], table.column_names, as_json=as_json)
    place = f", written to {file}" if file is not None else ""
    documents = f"{format_count(result.query_count, 'document')} among {result.documents:,}"
    print_message(f"{format_count(len(result), 'neighbour')} of {documents}{place}")
    shortfall = result.query_count * k - len(result)
    if shortfall:
        print_message(f"{shortfall:,} fewer than requested: no other document shares a feature")
