"""``neardup query``: the near-duplicates of a new document; ``neardup neighbors``: the nearest of each document."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import CLASSIFIER, option, output_option, switch, with_options
from neardup.cli.options import (
    CorpusClassifierOptions,
    Force,
    Inputs,
    JsonLines,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
    decode_text,
    find_index,
    refuse_read_options,
)
from neardup.cli.screen import check_outputs, print_message, print_rows, reading_progress, written_files
from neardup.errors import InputError
from neardup.files import open_file
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.pipeline.query import Answer


@with_options
def query(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    classifier_options: CorpusClassifierOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    document: Annotated[
        str, option("FILE", "The new document, a text in UTF-8 or an HTML page; - for stdin.", None, "--document", "-d")
    ],
    k: Annotated[
        int | None, option("NUMBER", "Show the N nearest instead, whatever their similarity.", None, "--k", min=1)
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "A table of documents and similarities, in the format of the name; with a classifier also score and "
            "evidence."
        ),
    ] = None,
    title: Annotated[
        str | None,
        option("TEXT", "Title of the new document, for classifiers that compare them; unknown by default.", CLASSIFIER),
    ] = None,
    time: Annotated[
        str | None,
        option(
            "TIME",
            "Time of the new document, such as 2024-01-31T12:30:00Z, for classifiers that compare them; unknown by "
            "default.",
            CLASSIFIER,
        ),
    ] = None,
    time_column: TimeColumn = None,
    force: Force = False,
    as_json: JsonLines = False,
) -> None:
    """Find all near-duplicates of one new document, the most similar first."""
    file = None if output == "-" else output
    classifier = classifier_options.load_for_corpus(time_column)
    index = find_index(inputs)
    recipe = recipe_options.resolve(classifier, index)
    check_outputs([*inputs, document], {"-o": file, "--quarantine": read_options.quarantine}, force=force)
    name = "the document on stdin" if document == "-" else document
    if document == "-" and "-" in inputs:
        raise InputError("stdin is both an input and the document: name a file for one of them")
    text = _read_document(document, name, content=recipe.content)

    from neardup.documents import write_table
    from neardup.pipeline.query import check_query_options, query_corpus

    if classifier is None:
        check_query_options(recipe_options.settings, nearest=k is not None)
    if index is not None:
        refuse_read_options()
    with read_options.open(inputs) if index is None else index.candidate_corpus(text, k) as corpus:
        with reading_progress(corpus, recipe) as progress:
            answer = query_corpus(
                corpus,
                recipe,
                text,
                k=k,
                classifier=classifier,
                title=title,
                time=time,
                name=name,
                progress=progress,
                **run_options.limits,
            )
            if file is not None:
                write_table(answer.to_arrow(), file, force=force)
        if file is None or as_json:
            table = answer.to_arrow(full=as_json)
            print_rows([table], table.column_names, as_json=as_json)
    place = f", written to {file}" if file is not None else ""
    kind = "nearest document" if k is not None else "near-duplicate"
    number = format_count(len(answer), kind) if len(answer) else f"no {kind}"
    documents = f"of {name} among {format_count(answer.documents, 'document')}"
    print_message(f"{number} {documents}{_advice(answer, classifier, k) or place}{_describe_outside(answer)}")


def _advice(answer: Answer, classifier: Classifier | None, k: int | None) -> str:
    """Return why nothing was found, and what to try; empty if something was."""
    if len(answer) or not answer.documents:
        return ""
    if classifier is None:
        return "; no document shares a feature" if k is not None else "; --k 3 shows the three nearest"
    if not answer.candidates:
        return f"; none passes the classifier's candidate rule, {classifier.candidate_rule.in_words()}"
    return f"; the classifier rejected {format_count(answer.candidates, 'candidate')}"


def _describe_outside(answer: Answer) -> str:
    if answer.counts is None or not answer.counts.outside:
        return ""
    candidates = format_count(answer.counts.candidates, "candidate")
    return f"; {answer.counts.outside:,} of {candidates} are unlike the classifier's training"


def _read_document(path: str, name: str, *, content: str) -> str:
    """Return the text of the new document; that of a web page may be in any encoding."""
    from neardup.documents.inputs import is_page_name
    from neardup.text.encoding import decode_page

    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open_file(path) as file:
                data = file.read()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{name} cannot be read ({reason}): give a text file, or - for stdin") from None
    return decode_page(data) if content or is_page_name(path) else decode_text(data, name)


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
        with reading_progress(corpus, recipe) as progress:
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
