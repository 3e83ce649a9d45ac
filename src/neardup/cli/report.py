"""``neardup report``: the page of what a store holds, while a watcher fills it or later."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli.options import ClassifierFile, ClassifierOptions, Force, Precision, with_options
from neardup.cli.screen import count_text, say, typed_command, whole_number


@with_options
def report(
    store: Annotated[
        str,
        typer.Argument(
            metavar="STORE", show_default=False, help="The store of neardup watch or nd.Index; it may be in use."
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="PAGE.html",
            show_default=False,
            help="The page, to be read without a network. An earlier report is replaced.",
        ),
    ],
    items: Annotated[
        str, typer.Option(metavar="NUMBER", help="How many of the latest items the report is about.")
    ] = "100000",
    families: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="How many of the largest families to show, and half as many others drawn at random."
        ),
    ] = "50",
    rows: Annotated[
        str, typer.Option(metavar="NUMBER", help="How many of the latest duplicates to list and search.")
    ] = "2000",
    classifier: ClassifierFile = None,
    precision: Precision = None,
    force: Force = False,
) -> None:
    """Write one page on what a flow stopped and why, from the store that holds its verdicts.

    The store is only read: a watcher that fills it goes on.
    """
    from neardup.pages.report import Extent
    from neardup.watch.report import StoreReport

    wanted = StoreReport(
        store=store,
        output=output,
        items=whole_number(items, "--items"),
        extent=Extent(families=whole_number(families, "--families", 0), rows=whole_number(rows, "--rows", 0)),
        command=typed_command(),
        classifier=ClassifierOptions(classifier=classifier, precision=precision).loaded(),
    )
    flow = wanted.write(force=force)
    reported, stopped = len(flow) - flow.before, len(flow.duplicates)
    say(f"{count_text(reported, 'item')}, {count_text(stopped, 'duplicate')}; written to {output}")
