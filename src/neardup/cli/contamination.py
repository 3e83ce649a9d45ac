"""``neardup contamination``: which items of a test set stand in training texts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.options import (
    Force,
    Inputs,
    Json,
    ReadOptions,
    check_outputs,
    check_report,
    with_options,
)
from neardup.cli.screen import (
    EXIT_CODE,
    count_text,
    interruptible,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
    show_json,
    size_text,
    typed_command,
)
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.containment.contamination import Contamination


#: The exit code where more is contaminated than --fail-over allows.
FAILED = 1


@with_options
def contamination(
    inputs: Inputs,
    test: Annotated[
        list[str], typer.Option("--test", metavar="FILE", help="The test set; give it again for more files of it.")
    ],
    read: ReadOptions,
    test_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Columns of the test set that are looked for apart and together, such as question,answer; its texts "
            "by default.",
        ),
    ] = None,
    test_id_column: Annotated[str | None, typer.Option(metavar="NAME", help="Column of the items' ids.")] = None,
    ngrams: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Words of an n-gram.")] = 13,
    at_least: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Share of an item's n-grams that one training text must have."),
    ] = "0.5",
    min_words: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Texts of the test set with fewer words are not looked for.")
    ] = 8,
    fail_over: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Exit with 1 where a larger share of items is found, such as 0.1%."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A table of what was found: a row for each span in both texts."
        ),
    ] = None,
    items: Annotated[
        str | None, typer.Option(metavar="FILE", help="A table of all items with their largest containment.")
    ] = None,
    clean: Annotated[
        str | None, typer.Option(metavar="FILE", help="The training texts without those that contain an item.")
    ] = None,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="A page to read, as HTML.")] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Threads; all processors by default.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find which items of a test set stand in training texts, and where."""
    share = None if fail_over is None else _share(fail_over, "--fail-over")
    least = _share(at_least, "--at-least")
    columns = [] if test_column is None else [name.strip() for name in test_column.split(",")]
    tables = {"-o": output, "--items": items, "--clean": clean, "--quarantine": read.quarantine}
    check_outputs(tables, None, [*inputs, *test], force=force)
    check_report(report, [*inputs, *test], tables.values(), force=force)

    from neardup.containment.contamination import SPANS, contamination_of
    from neardup.documents import open_corpus, open_writer

    with read.open(inputs, write=True) as train, ExitStack() as stack:
        tests = stack.enter_context(
            open_corpus(test, text_column=columns[0] if columns else None, id_column=test_id_column, strict=read.strict)
        )
        say_notes(train)
        say_if_compiling(None, "containment.find_grams")
        written: list[str] = []
        with interruptible(written), progress_bar() as progress:
            writer = None if output is None else stack.enter_context(open_writer(output, SPANS, force))
            found = contamination_of(
                train,
                tests,
                columns=columns,
                ngrams=ngrams,
                at_least=least,
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
                from neardup.containment.page import write_page

                write_page(found, report, force=force, fail_over=share, typed=typed_command())
        say_rejected(train)
    failed = share is not None and found.share > share
    if failed:
        EXIT_CODE.set(FAILED)
    if as_json:
        show_json(found.summary | {"fail_over": share, "failed": failed})
    _show(found, {"spans": output, "items": items, "clean": clean, "report": report})
    if failed:
        say(f"{found.share:.4%} of the items are contaminated, and --fail-over allows {fail_over}")


def _share(text: str, option: str) -> float:
    """Return a share that is written as 0.5 or as 50%."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise RecipeError(f"{option} {text!r} is no share: give one from 0 to 1, such as 0.5 or 50%")
    return share


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
    rows |= {name: place for name, place in places.items() if place}
    head = f"{count_text(summary['items'], 'item')}: {summary['contaminated']:,} contaminated ({summary['share']:.2%})"
    typer.echo(typer.style(head, bold=True), err=True)
    for name, value in rows.items():
        typer.echo(f"  {typer.style(f'{name:<12}', dim=True)}  {value}", err=True)
