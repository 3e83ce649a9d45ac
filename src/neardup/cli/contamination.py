"""``neardup contamination``: which items of a test set stand in training texts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.command import option, with_options
from neardup.cli.options import Force, Inputs, Json, ReadOptions, Threads, check_outputs
from neardup.cli.screen import (
    EXIT_CODE,
    count_text,
    interruptible,
    reading,
    say,
    say_rejected,
    show_json,
    show_rows,
    size_text,
    typed_command,
)
from neardup.errors import InputError

if TYPE_CHECKING:
    from neardup.contamination.contamination import Contamination


#: The exit code where more is contaminated than --fail-over allows.
FAILED = 1


def parse_share(text: str | float) -> float:
    """Return a share that is written as 0.5 or as 50%."""
    text = str(text)
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise typer.BadParameter(f"{text!r} is no share: give one from 0 to 1, such as 0.5 or 50%")
    return share


@with_options
def contamination(
    inputs: Inputs,
    test: Annotated[list[str], option("FILE", "A file of the test set; repeatable.", None, "--test")],
    read: ReadOptions,
    test_column: Annotated[
        str | None,
        option(
            "NAME,...",
            "Columns of the test set to look for, apart and together, such as question,answer; its texts by default.",
        ),
    ] = None,
    test_id_column: Annotated[str | None, option("NAME", "Column of the items' ids.")] = None,
    ngrams: Annotated[int, option("NUMBER", "Words of an n-gram.", min=1)] = 13,
    at_least: Annotated[
        float,
        option(
            "SHARE",
            "Share of an item's n-grams that one training text must have.",
            parser=parse_share,
            show_default="0.5",
        ),
    ] = 0.5,
    min_words: Annotated[int, option("NUMBER", "Skip texts of the test set with fewer words.", min=1)] = 8,
    fail_over: Annotated[
        float | None,
        option("SHARE", "Exit with 1 if a larger share of items is found, such as 0.1%.", parser=parse_share),
    ] = None,
    output: Annotated[
        str | None,
        option("FILE", "A table of what was found: a row for each span in both texts.", None, "--output", "-o"),
    ] = None,
    items: Annotated[str | None, option("FILE", "A table of all items with their largest containment.")] = None,
    clean: Annotated[str | None, option("FILE", "The training texts without those that contain an item.")] = None,
    report: Annotated[str | None, option("FILE.html", "An offline page to read.")] = None,
    threads: Threads = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find which items of a test set occur in training texts, and where.

    The answer is exact, and the training texts are read once.
    """
    columns = [] if test_column is None else [name.strip() for name in test_column.split(",")]
    tables = ("-o", output), ("--items", items), ("--clean", clean), ("--quarantine", read.quarantine)
    check_outputs([*inputs, *test], *tables, ("--report", report), force=force)

    from neardup.contamination.contamination import SPANS, contamination_of
    from neardup.documents import open_corpus, open_writer

    with read.open(inputs, write=True) as train, ExitStack() as stack:
        first = columns[0] if columns else None
        try:
            tests = stack.enter_context(
                open_corpus(test, text_column=first, id_column=test_id_column, strict=read.strict)
            )
        except InputError as error:
            # The test set's columns have options of their own.
            said = str(error).replace("--text-column", "--test-column").replace("--id-column", "--test-id-column")
            raise InputError(said) from None
        written: list[str] = []
        with interruptible(written), reading(train, kernels=["contamination.find_grams"]) as progress:
            writer = None if output is None else stack.enter_context(open_writer(output, SPANS, force))
            found = contamination_of(
                train,
                tests,
                columns=columns,
                ngrams=ngrams,
                at_least=at_least,
                min_words=min_words,
                threads=threads,
                progress=progress,
                see=None if writer is None else writer.write,
            )
            if items is not None:
                _write(found, items, force=force)
            if clean is not None:
                train.copy(found.clean_rows(train.raw_rows), clean, force=force)
            if report is not None:
                from neardup.contamination.page import write_page

                write_page(found, report, force=force, fail_over=fail_over, typed=typed_command())
        say_rejected(tests)
    failed = fail_over is not None and found.share > fail_over
    if failed:
        EXIT_CODE.set(FAILED)
    if as_json:
        show_json(found.summary | {"fail_over": fail_over, "failed": failed})
    _show(found, {"spans": output, "items": items, "clean": clean, "report": report})
    if failed:
        say(f"{found.share:.2%} of the items are contaminated, and --fail-over allows {100 * (fail_over or 0):g}%")


def _write(found: Contamination, output: str, *, force: bool) -> None:
    from neardup.documents.output import write_table

    write_table(found.table(), output, force=force)


def _show(found: Contamination, places: dict[str, str | None]) -> None:
    """Print the summary for people to stderr."""
    summary = found.summary
    rows = {}
    for name, column in summary["columns"].items():
        short = f"; {column['too_short']:,} too short to tell" if column["too_short"] else ""
        share = f" ({column['share']:.2%})" if column["looked_for"] else ""
        rows[name] = f"{column['contaminated']:,} of {column['looked_for']:,}{share}{short}"
    rows["training"] = (
        f"{count_text(summary['contaminated_documents'], 'document')} of {summary['documents']:,} contain an item "
        f"({size_text(summary['text_bytes'])} of text)"
    )
    rows["rule"] = f"{summary['at_least']:.4g} of an item's {summary['ngrams']}-grams of words in one training text"
    rows["time"] = ", ".join(f"{stage['name']} {stage['wall_s']:.1f} s" for stage in summary["stages"])
    rows |= {name: place or "" for name, place in places.items()}
    head = f"{count_text(summary['items'], 'item')}: {summary['contaminated']:,} contaminated ({summary['share']:.2%})"
    show_rows(head, rows)
