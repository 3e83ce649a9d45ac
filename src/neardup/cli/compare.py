"""``neardup compare``: which recipe or classifier, at which threshold, finds what people call duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.options import (
    LABELS_PANEL,
    PANEL,
    Content,
    Force,
    Html,
    IgnoreUnknown,
    Inputs,
    Json,
    LabelColumn,
    Only,
    Positive,
    ReadOptions,
    RunOptions,
    TimeColumn,
    chosen_content,
    refuse_ignored,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    parse_number,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
    show_json,
    typed_command,
    visible,
)
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from neardup.evaluation.comparison import Comparison, Row, Scored
    from neardup.evaluation.scores import Figure
    from neardup.recipe import Recipe

#: On narrower terminals intervals stand below their figures; the second where accuracy is told, too.
_WIDE, _WIDEST = 120, 140


@with_options
def compare(
    inputs: Inputs,
    read: ReadOptions,
    running: RunOptions,
    html: Html = False,
    content: Content = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=LABELS_PANEL,
            help="Labelled pairs (id1,id2,label) or clusters (id,cluster), as .csv, .tsv or .jsonl.",
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=LABELS_PANEL,
            help="In place of --labels: a column of the inputs; documents are duplicates where it is equal.",
        ),
    ] = None,
    label_column: LabelColumn = None,
    positive: Positive = "1",
    only: Only = None,
    complete: Annotated[
        bool,
        typer.Option("--complete", rich_help_panel=LABELS_PANEL, help="Pairs that are not listed are no duplicates."),
    ] = False,
    ignore_unknown: IgnoreUnknown = False,
    recipes: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME", help="Recipes or TOML files, separated by commas; by default all named ones."
        ),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:LAST:STEP",
            help="Similarities, and probabilities of classifiers, to try as thresholds; or a list: .5,.7,.9. By "
            "default .05:.95:.05, and .5:.95:.05 with more than 2,000 documents.",
        ),
    ] = None,
    classifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--classifier",
            metavar="FILE",
            rich_help_panel=PANEL,
            help="What neardup train learned, compared beside the recipes; may be given several times.",
        ),
    ] = None,
    title_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=PANEL, help="Column of titles, for classifiers that compare them."
        ),
    ] = None,
    time_column: TimeColumn = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A page with curves (.html), everything (.json), or the rows as a table (.csv, .parquet); may be "
            "given several times.",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE.html", help="The page with curves, to be read without a network; as -o FILE.html."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print every threshold, not only each recipe's best.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare recipes on labelled documents: precision, recall and F1 with intervals, and time.

    Each recipe is tried at several thresholds and at its own; simhash takes Hamming distances 0 to 10 instead, and
    recipes that know one answer only, such as checksum, keep theirs. Classifiers are tried at probabilities, and
    at the cut that they were saved with.
    """
    if labels is None and clusters is None:
        raise RecipeError("there are no labels: give --labels FILE or --clusters COLUMN")
    if labels is not None and clusters is not None:
        raise RecipeError(f"--labels {labels} and --clusters {clusters} both say what is a duplicate: leave out one")
    if clusters is not None:
        rows_of_labels = "label_column", "positive", "only", "complete", "ignore_unknown"
        refuse_ignored(rows_of_labels, "is for --labels, not for --clusters; leave it out")
    _check_columns(classifiers, {"--title-column": title_column, "--time-column": time_column})
    level = parse_number(positive, "--positive")
    limits = running.limits
    if report is not None and not report.endswith(".html"):
        raise OutputError(f"{report} does not end in .html, but a report is a page: name it so")
    outputs = [*(output or []), *([report] if report is not None else [])]
    _check_outputs(outputs, [*inputs, *([labels] if labels is not None else []), *(classifiers or [])], force=force)
    chosen = _recipes(recipes, chosen_content(html, content))

    from neardup.evaluation.comparison import compare as compare_recipes

    with read.open(inputs, order_column=clusters) as corpus:
        say_notes(corpus, *chosen)
        say_if_compiling(
            None, "prefixes.match", "prefixes.band_pairs", "hamming.near_in_runs", "weighted.fill_postings"
        )
        with progress_bar() as progress:
            found = compare_recipes(
                corpus,
                labels,
                recipes=chosen,
                classifiers=classifiers or (),
                thresholds=thresholds,
                label_column=label_column,
                positive=level,
                only=only,
                complete=complete,
                ignore_unknown=ignore_unknown,
                title_column=title_column,
                time_column=time_column,
                progress=progress,
                **limits,
            )
        say_rejected(corpus)
    for warning in found.warnings:
        say(warning)
    written: list[str] = []
    with interruptible(written):
        for name in outputs:
            found.write(name, force=force, command=typed_command())
            written.append(name)
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, every=every)
    for name in written:
        say(f"written: {name}")


def _recipes(given: str | None, content: str | None) -> list[Recipe]:
    """Return the recipes to compare, all with the content where one is given."""
    from neardup.recipe import load_recipe, names

    chosen = (
        [load_recipe(name.strip()) for name in given.split(",")]
        if given is not None
        else [load_recipe(n) for n in names()]
    )
    return chosen if content is None else [recipe.changed(content=content) for recipe in chosen]


def _check_columns(classifiers: Sequence[str] | None, columns: dict[str, str | None]) -> None:
    """Refuse columns that nothing asks for."""
    for option, name in columns.items():
        if name is not None and not classifiers:
            raise RecipeError(f"{option} {name} is for a classifier; give one with --classifier FILE")


def _check_outputs(outputs: Sequence[str], inputs: list[str], *, force: bool) -> None:
    """Refuse outputs before the work starts."""
    import os

    from neardup.evaluation.comparison import check_comparison_output
    from neardup.pages.page import check_drawing

    places: set[str] = set()
    for name in outputs:
        check_comparison_output(name, inputs, force=force)
        if name.endswith(".html"):
            check_drawing(name)
        place = os.path.realpath(name)
        if place in places:
            raise OutputError(f"{name} is given twice: name two files")
        places.add(place)


def _show(found: Comparison, *, every: bool) -> None:
    """Print the table for people to stdout."""
    from rich.console import Console
    from rich.text import Text

    from neardup.evaluation.comparison_page import lead_sentences

    console = Console(highlight=False)
    wide = console.width >= (_WIDE if found.complete else _WIDEST)
    table = _table(found, wide=wide)
    per_document = 1000 / max(found.documents, 1)
    for scored in found.recipes:
        for row in scored.rows if every else _told(scored):
            best = row is scored.best
            cells = [visible(scored.name, lines=False), _threshold(scored, row, wide=wide)]
            figures = [row.f1, row.precision, row.recall, *([] if found.complete else [row.accuracy])]
            cells += [_figure(figure, " " if wide else "\n") for figure in figures]
            cells += _counts(row, found, wide=wide)
            cells.append(f"{scored.cpu_s * per_document:.2g}" if best else "")
            table.add_row(*map(Text, cells), style="bold" if best and scored.name == found.best else "")
    duplicates = count_text(found.duplicates, "labelled duplicate")
    others = "all other pairs are none" if found.complete else f"{found.others:,} labelled as none"
    console.print(f"{count_text(found.documents, 'document')}, {duplicates}, {others}; [dim]95 % intervals[/dim]")
    console.print(table)
    for sentence in lead_sentences(found.to_dict()):
        console.print(Text(visible(sentence, lines=False)))


def _told(scored: Scored) -> list[Row]:
    """Return what is printed by default: the best threshold, and of a classifier its own, too."""
    return [row for row in scored.rows if row is scored.best or (row.own and scored.scale == "probability")]


def _table(found: Comparison, *, wide: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column("recipe", overflow="fold", min_width=9)
    names = ["at", "F1", "precision", "recall", *([] if found.complete else ["accuracy"])]
    if found.complete or wide:
        names += ["returned", "correct", *([] if found.complete else ["unlabelled"])]
    else:
        names += ["correct/\nreturned"]
    for name in [*names, "CPU ms/doc" if wide else "CPU\nms/doc"]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _counts(row: Row, found: Comparison, *, wide: bool) -> list[str]:
    if not wide and not found.complete:
        return [f"{row.correct:,}/\n{row.returned:,}"]
    counts = [row.returned, row.correct, *([] if found.complete else [row.unlabelled])]
    return [f"{count:,}" for count in counts]


def _threshold(scored: Scored, row: Row, *, wide: bool) -> str:
    if scored.scale == "fixed":
        return "-"
    if scored.scale == "probability":
        return f"{row.threshold:.4g}{(' own' if wide else chr(10) + 'own') if row.own else ''}"
    return f"{'<= ' if scored.scale == 'distance' else ''}{row.threshold:g}"


def _figure(figure: Figure, gap: str) -> str:
    if figure.value is None:
        return "none"
    spread = "" if figure.low is None or figure.high is None else f"{gap}{figure.low:.2f}-{figure.high:.2f}"
    return f"{figure.value:.3f}{spread}"
