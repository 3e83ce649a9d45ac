"""``neardup similar``: the documents most similar to each one, or the near-duplicates of a new one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import CLASSIFIER, option, output_option, refuse_ignored, switch
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
    import pyarrow as pa

    from neardup.classifier.classifier import Classifier
    from neardup.index.index import DiskIndex
    from neardup.pipeline.query import Answer


def similar(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    classifier_options: CorpusClassifierOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    document: Annotated[
        str | None,
        option(
            "FILE",
            "Find the near-duplicates of this new document: a text in UTF-8 or an HTML page; - for stdin.",
            None,
            "-d",
            "--document",
        ),
    ] = None,
    k: Annotated[
        int | None,
        option("NUMBER", "How many of each document, 3 by default; with --document the N nearest.", None, "--k", min=1),
    ] = None,
    of: Annotated[
        list[str] | None, option("ID", "Only those similar to this document; repeatable.", None, "--of")
    ] = None,
    first: Annotated[
        int | None, option("NUMBER", "Only those similar to the first N documents; not with --of.", min=1)
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "Write a table of documents and similarities, in the format of the name. With a classifier also score and "
            "evidence."
        ),
    ] = None,
    print_table: Annotated[bool, switch("--print", "Print the table on stdout even with -o.")] = False,
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
    """Find the documents most similar to each one, or all near-duplicates of a new one.

    Without --document, each document gets its most similar other ones, whatever the threshold. Documents without a
    shared feature are not similar, so a document may have fewer than N. Equally similar ones are listed in reading
    order.

    With --document, the near-duplicates of the new document are listed, the most similar first.
    """
    file = None if output == "-" else output
    is_printed = file is None or print_table or as_json
    table_output = _TableOutput(file=file, is_printed=is_printed, as_json=as_json, force=force)
    index = find_index(inputs)
    if index is not None:
        refuse_read_options()
    if document is None:
        refuse_ignored(("title", "time"), "is for a new document: name it with --document FILE, or leave it out")
        refuse_ignored(
            [*(field.name for field in fields(CorpusClassifierOptions)), "time_column"],
            "decides on a new document: name it with --document FILE, or leave it out",
        )
        _print_neighbors(inputs, recipe_options, read_options, run_options, index, k or 3, of, first, table_output)
        return
    refuse_ignored(("of", "first"), "selects documents of the input, and --document is another one: leave out one")
    classifier = classifier_options.load_for_corpus(time_column)
    recipe = recipe_options.resolve(classifier, index)
    check_outputs([*inputs, document], {"-o": file, "--quarantine": read_options.quarantine}, force=force)
    name = "the document on stdin" if document == "-" else document
    if document == "-" and "-" in inputs:
        raise InputError("stdin is both an input and the document: name a file for one of them")
    text = _read_document(document, name, content=recipe.content)

    from neardup.pipeline.query import check_query_options, query_corpus

    if classifier is None:
        check_query_options(recipe_options.settings, nearest=k is not None)
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
            table_output.write(answer.to_arrow())
        table_output.print(answer.to_arrow(full=as_json))
    kind = "nearest document" if k is not None else "near-duplicate"
    number = format_count(len(answer), kind) if len(answer) else f"no {kind}"
    documents = f"of {name} among {format_count(answer.documents, 'document')}"
    end = _advice(answer, classifier, k) or table_output.place
    print_message(f"{number} {documents}{end}{_describe_outside(answer)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableOutput:
    """Where a table goes: a file, if there is one, and stdout."""

    file: str | None
    is_printed: bool
    as_json: bool
    force: bool

    def write(self, table: pa.Table) -> None:
        """Write the table to the file."""
        from neardup.documents import write_table

        if self.file is not None:
            write_table(table, self.file, force=self.force)

    def print(self, table: pa.Table) -> None:
        """Print the table."""
        if self.is_printed:
            with written_files(self.file):
                print_rows([table], table.column_names, as_json=self.as_json)

    @property
    def place(self) -> str:
        """Where the table was written, for a message."""
        return f", written to {self.file}" if self.file is not None else ""


def _print_neighbors(
    inputs: list[str],
    recipe_options: RecipeOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    index: DiskIndex | None,
    k: int,
    of: list[str] | None,
    first: int | None,
    table_output: _TableOutput,
) -> None:
    recipe = recipe_options.resolve(index=index)
    outputs = {"-o": table_output.file, "--quarantine": read_options.quarantine}
    check_outputs(inputs, outputs, force=table_output.force)

    from neardup.pipeline.neighbors import find_neighbors
    from neardup.pipeline.query import check_query_options

    check_query_options(recipe_options.settings, nearest=True)
    with read_options.open(inputs) if index is None else index.neighbor_corpus(k, of, first) as corpus:
        with reading_progress(corpus, recipe) as progress:
            result = find_neighbors(corpus, recipe, k, of=of, first=first, progress=progress, **run_options.limits)
            table = result.to_arrow()
            table_output.write(table)
        table_output.print(table)
    documents = f"{format_count(result.query_count, 'document')} among {result.documents:,}"
    print_message(f"{format_count(len(result), 'neighbour')} of {documents}{table_output.place}")
    shortfall = result.query_count * k - len(result)
    if shortfall:
        print_message(f"{shortfall:,} fewer than requested: no other document shares a feature")


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
