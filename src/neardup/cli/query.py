"""``neardup query``: the near-duplicates of a document that is not in the collection."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import CLASSIFIER, option, switch, with_options
from neardup.cli.options import (
    ClassifierOptions,
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
    check_outputs,
    opened_index,
    recipe_beside_index,
    refuse_read_options,
)
from neardup.cli.screen import (
    count_text,
    print_rows,
    reading,
    say,
    write_rows,
)
from neardup.errors import InputError

if TYPE_CHECKING:
    from neardup.recipe import Recipe

_BOM = b"\xef\xbb\xbf"


@with_options
def query(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: ClassifierOptions,
    read: ReadOptions,
    running: RunOptions,
    document: Annotated[
        str,
        option("FILE", "The new document, a text in UTF-8 or an HTML page; - for stdin.", None, "--document", "-d"),
    ],
    k: Annotated[
        int | None,
        option("NUMBER", "Show the N nearest instead, whatever their similarity.", None, "--k", min=1),
    ] = None,
    output: Annotated[
        str | None,
        option(
            "FILE",
            "Table of documents and similarities, in the format of the name; with a classifier also score, evidence.",
            None,
            "--output",
            "-o",
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
    as_json: Annotated[bool, switch("--json", "Print JSON lines.")] = False,
) -> None:
    """Find all near-duplicates of one new document, the most similar first."""
    to_file = None if output == "-" else output
    classifier = decided.loaded(time_column)
    index = opened_index(inputs)
    recipe = recipe_beside_index(recipe_options, classifier, index)
    check_outputs([*inputs, document], ("-o", to_file), ("--quarantine", read.quarantine), force=force)
    what = "the document on stdin" if document == "-" else document
    if document == "-" and "-" in inputs:
        raise InputError("stdin is both an input and the document: name a file for one of them")
    text = _read(document, what, content=recipe.content)

    from neardup.pipeline.query import answer_of as find
    from neardup.pipeline.query import refuse_unasked

    if classifier is None:
        refuse_unasked(recipe_options.given, nearest=k is not None)
    if index is not None:
        refuse_read_options()
    with read.open(inputs) if index is None else index.corpus_for(text, k) as corpus:
        with reading(corpus, recipe, kernels=["postings.fill_lists"]) as report:
            found = find(
                corpus,
                recipe,
                text,
                k=k,
                classifier=classifier,
                title=title,
                time=time,
                what=what,
                progress=report,
                **running.limits,
            )
            if to_file is not None:
                write_rows(found, to_file, force=force)
        if to_file is None or as_json:
            table = found.to_arrow(full=as_json)
            print_rows([table], table.column_names, as_json=as_json)
    kind = "nearest document" if k is not None else "near-duplicate"
    said = count_text(len(found), kind) if len(found) else f"no {kind}"
    outside = ""
    if found.counts is not None and found.counts.outside:
        of = f"{found.counts.outside:,} of {count_text(found.counts.candidates, 'candidate')}"
        outside = f"; {of} lie outside of what the classifier was trained on"
    rest = f", written to {to_file}" if to_file is not None else ""
    if not len(found) and found.documents:
        if classifier is not None:
            rest = f"; {_candidates(found.candidates, classifier.candidate_rule)}"
        else:
            rest = "; no document shares a feature" if k is not None else "; --k 3 shows the three nearest"
    say(f"{said} of {what} among {count_text(found.documents, 'document')}{rest}{outside}")


def _candidates(count: int, candidate_rule: Recipe) -> str:
    """Return what became of the candidates, where none is a near-duplicate."""
    if not count:
        return f"none passes the classifier's candidate rule, {candidate_rule.in_words()}"
    return f"the classifier turned down {count_text(count, 'candidate')}"


def _read(name: str, what: str, *, content: str) -> str:
    """Return the text of the new document; that of a web page may be in any encoding."""
    from neardup.documents.inputs import is_page_name
    from neardup.text.encoding import decode_page

    try:
        if name == "-":
            read = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                read = file.read()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{what} cannot be read ({reason}): give a text file, or - for stdin") from None
    if content or is_page_name(name):
        return decode_page(read)
    try:
        return read.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not UTF-8 at byte {error.start}: convert it first, as with iconv") from None
