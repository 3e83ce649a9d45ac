"""``neardup contamination``: which items of a test set occur in training texts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from neardup.cli import screen
from neardup.cli.command import option, output_option
from neardup.cli.options import Force, Inputs, Json, ReadOptions, Threads, read_boilerplate
from neardup.errors import InputError, RecipeError
from neardup.pages.numbers import format_count, format_size

if TYPE_CHECKING:
    from neardup.contamination.contamination import Contamination


_EXIT_CONTAMINATED = 1


def _parse_share(text: str | float) -> float:
    """Return a share that is written as 0.5 or as 50%."""
    text = str(text)
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise RecipeError(f"{text!r} is not a share: give one from 0 to 1, such as 0.5 or 50%")
    return share


def contamination(
    inputs: Inputs,
    test: Annotated[list[str], option("FILE", "Test set, as a file; repeatable.", None, "--test")],
    read_options: ReadOptions,
    test_column: Annotated[
        str | None,
        option(
            "NAME,...",
            "Columns of the test set to look for, separately and together: question,answer; by default its texts.",
        ),
    ] = None,
    test_id_column: Annotated[str | None, option("NAME", "Column of the items' ids.")] = None,
    ngrams: Annotated[int, option("NUMBER", "Words per n-gram.", min=1)] = 13,
    at_least: Annotated[
        float,
        option(
            "SHARE",
            "Share of an item's n-grams that one training text must contain.",
            parser=_parse_share,
        ),
    ] = 0.5,
    min_words: Annotated[int, option("NUMBER", "Skip texts of the test set with fewer words.", min=1)] = 8,
    ignore: Annotated[
        str | None,
        option("FILE", "Text whose n-grams do not count, such as instructions that all items share."),
    ] = None,
    fail_over: Annotated[
        float | None,
        option("SHARE", "Exit with 1 if a larger share of items is contaminated, such as 0.1%.", parser=_parse_share),
    ] = None,
    output: Annotated[
        str | None, output_option("A table of the matches: a row for each span that both texts share.")
    ] = None,
    items: Annotated[str | None, option("FILE", "A table of all items with their largest containment.")] = None,
    clean: Annotated[str | None, option("FILE", "The training texts without those that contain an item.")] = None,
    report: Annotated[str | None, option("FILE.html", "An offline page with the contaminated items.")] = None,
    threads: Threads = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find which items of a test set occur in training texts, and where.

    The answer is exact, and the training texts are read once.
    """
    boilerplate = "" if ignore is None else read_boilerplate(ignore)
    columns = [] if test_column is None else [name.strip() for name in test_column.split(",")]
    outputs = {"-o": output, "--items": items, "--clean": clean, "--quarantine": read_options.quarantine}
    screen.check_outputs([*inputs, *test], outputs | {"--report": report}, force=force)

    from neardup.contamination.contamination import SPANS, check_contamination
    from neardup.documents import open_corpus, open_writer, write_table
    from neardup.documents.output import placed_together

    with (
        screen.written_files() as written,
        placed_together(written),
        read_options.open(inputs) as train,
        ExitStack() as stack,
    ):
        first = columns[0] if columns else None
        try:
            tests = stack.enter_context(
                open_corpus(test, text_column=first, id_column=test_id_column, strict=read_options.strict)
            )
        except InputError as error:
            # The columns of the test set have options of their own.
            message = str(error).replace("--text-column", "--test-column").replace("--id-column", "--test-id-column")
            raise InputError(message) from None
        with screen.reading_progress(train, columns=False) as progress:
            files = stack.enter_context(ExitStack())
            writer = None if output is None else files.enter_context(open_writer(output, SPANS, force))
            result = check_contamination(
                train,
                tests,
                columns=columns,
                ngrams=ngrams,
                at_least=at_least,
                min_words=min_words,
                ignore=boilerplate,
                threads=threads,
                progress=progress,
                write_spans=None if writer is None else writer.write,
            )
            files.close()
            if items is not None:
                write_table(result.table(), items, force=force)
            if clean is not None:
                train.copy(result.clean_rows(train.raw_rows), clean, force=force)
            if report is not None:
                from neardup.contamination.page import write_page

                write_page(result, report, force=force, fail_over=fail_over, typed=screen.typed_command())
        screen.print_rejected_records(tests)
    failed = fail_over is not None and result.share > fail_over
    if failed:
        screen.EXIT_CODE.set(_EXIT_CONTAMINATED)
    if as_json:
        screen.print_json(result.summary | {"fail_over": fail_over, "failed": failed})
    used: dict[str, str | None] = {
        "test columns": screen.describe_columns(tests),
        "train columns": screen.describe_columns(train),
    }
    _print_contamination(result, used | {"spans": output, "items": items, "clean": clean, "report": report})
    if failed:
        limit = f"{100 * (fail_over or 0):g}%"
        screen.print_warning(f"{result.share:.2%} of the items are contaminated, and --fail-over allows {limit}")


def _print_contamination(result: Contamination, places: dict[str, str | None]) -> None:
    summary = result.summary
    rows = {}
    for name, column in summary["columns"].items():
        short = f"; {column['too_short']:,} too short to judge" if column["too_short"] else ""
        share = f" ({column['share']:.2%})" if column["searched"] else ""
        rows[name] = f"{column['contaminated']:,} of {column['searched']:,}{share}{short}"
    rows["training"] = (
        f"{format_count(summary['contaminated_documents'], 'document')} of {summary['documents']:,} contain an item "
        f"({format_size(summary['text_bytes'])} of text)"
    )
    rows["rule"] = f"{summary['at_least']:.4g} of an item's {summary['ngrams']}-grams of words in one training text"
    rows["time"] = ", ".join(f"{stage['name']} {stage['wall_s']:.1f} s" for stage in summary["stages"])
    rows |= {name: place or "" for name, place in places.items()}
    searched = summary["items"] - summary["too_short"]
    of_searched = f" of the {searched:,} searched" if summary["too_short"] else ""
    heading = (
        f"{format_count(summary['items'], 'item')}: {summary['contaminated']:,} contaminated "
        f"({summary['share']:.2%}{of_searched})"
    )
    screen.print_summary(heading, rows)
