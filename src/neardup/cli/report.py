"""``neardup report``: the page of what a store holds, while a watcher fills it or later."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli.command import option, with_options
from neardup.cli.options import ClassifierFile, ClassifierOptions, Force, Precision
from neardup.cli.screen import count_text, say, typed_command


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
        option(
            "PAGE.html",
            "The page, which needs no network. An earlier report is replaced.",
            None,
            "--output",
            "-o",
            show_default=False,
        ),
    ],
    items: Annotated[int, option("NUMBER", "How many of the latest items the report is about.", min=1)] = 100_000,
    families: Annotated[
        int, option("NUMBER", "How many of the largest families to show, and half as many drawn at random.", min=0)
    ] = 50,
    rows: Annotated[int, option("NUMBER", "How many of the latest duplicates to list and search.", min=0)] = 2000,
    classifier: ClassifierFile = None,
    precision: Precision = None,
    force: Force = False,
) -> None:
    """Write a page on what a flow stopped and why, from its store.

    The store is only read, so a watcher can go on filling it.
    """
    from neardup.pages.report import Extent
    from neardup.watch.report import StoreReport

    wanted = StoreReport(
        store=store,
        output=output,
        items=items,
        extent=Extent(families=families, rows=rows),
        command=typed_command(),
        classifier=ClassifierOptions(classifier=classifier, precision=precision).loaded(),
    )
    flow = wanted.write(force=force)
    reported, stopped = len(flow) - flow.before, len(flow.duplicates)
    say(f"{count_text(reported, 'item')}, {count_text(stopped, 'duplicate')}; written to {output}")
