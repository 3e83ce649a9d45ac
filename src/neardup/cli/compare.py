"""``neardup compare``: which recipe or classifier, at which threshold, finds what people call duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import CLASSIFIER, LABELS, option, refuse_ignored, switch, with_options
from neardup.cli.options import (
    Content,
    Force,
    Html,
    Inputs,
    Json,
    LabelOptions,
    ReadOptions,
    RunOptions,
    TimeColumn,
    TitleColumn,
    check_outputs,
    chosen_content,
)
from neardup.cli.screen import (
    count_text,
    figure_text,
    grid,
    interruptible,
    reading,
    say,
    show_json,
    typed_command,
    visible,
)
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from neardup.evaluation.comparison import Comparison, Row, Scored
    from neardup.recipe import Recipe

#: On narrower terminals intervals stand below their figures; the second where accuracy is told, too.
_WIDE, _WIDEST = 120, 140
#: What recipes of all kinds use.
_KERNELS = ("prefixes.match", "prefixes.band_pairs", "hamming.pairs_within_distance", "weighted.fill_postings")


@with_options
def compare(
    inputs: Inputs,
    read: ReadOptions,
    running: RunOptions,
    *,
    html: Html = False,
    content: Content = None,
    labels: Annotated[
        str | None,
        option("FILE", "Labelled pairs (id1,id2,label) or clusters (id,cluster), as .csv, .tsv or .jsonl.", LABELS),
    ] = None,
    clusters: Annotated[
        str | None,
        option(
            "COLUMN",
            "Instead of --labels: a column of the inputs; documents with equal values are duplicates.",
            LABELS,
        ),
    ] = None,
    reading_labels: LabelOptions,
    complete: Annotated[bool, switch("--complete", "Pairs that are not listed are not duplicates.", LABELS)] = False,
    recipes: Annotated[
        str | None, option("NAME,NAME", "Recipes or TOML files, separated by commas; by default all named ones.")
    ] = None,
    thresholds: Annotated[
        str | None,
        option(
            "FIRST:LAST:STEP",
            "Similarities, and probabilities of classifiers, to try as thresholds; or a list: .5,.7,.9. By default "
            ".05:.95:.05, and .5:.95:.05 with more than 2,000 documents.",
        ),
    ] = None,
    classifiers: Annotated[
        list[str] | None,
        option(
            "FILE",
            "A classifier from neardup train, compared with the recipes; repeatable.",
            CLASSIFIER,
            "--classifier",
        ),
    ] = None,
    title_column: TitleColumn = None,
    time_column: TimeColumn = None,
    output: Annotated[
        list[str] | None,
        option(
            "FILE",
            "A page with curves (.html), everything (.json), a table for a paper (.tex), or all rows as a table "
            "(.csv, .parquet); repeatable.",
            None,
            "--output",
            "-o",
        ),
    ] = None,
    report: Annotated[str | None, option("FILE.html", "An offline page with curves; the same as -o FILE.html.")] = None,
    every: Annotated[bool, switch("--all", "Print every threshold, not only each recipe's best.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare recipes on labelled documents: precision, recall, F1 and time.

    Each recipe is tried at several thresholds and at its own. For simhash these are Hamming distances from 0 to 10;
    recipes without a threshold, such as checksum, run once. Classifiers are tried at probabilities, and
    at the cut that they were saved with.
    """
    if labels is None and clusters is None:
        raise RecipeError("there are no labels: give --labels FILE or --clusters COLUMN")
    if labels is not None and clusters is not None:
        raise RecipeError(f"--labels {labels} and --clusters {clusters} both say what is a duplicate: leave out one")
    if clusters is not None:
        rows_of_labels = "label_column", "positive", "only", "complete", "ignore_unknown"
        refuse_ignored(rows_of_labels, "is for --labels, not for --clusters; leave it out")
    if not classifiers:
        refuse_ignored(("title_column", "time_column"), "is for a classifier; give one with --classifier FILE")
    outputs = [*(output or []), *([report] if report is not None else [])]
    check_outputs(
        [*inputs, *([labels] if labels is not None else []), *(classifiers or [])],
        *(("-o", name) for name in output or ()),
        ("--report", report),
        force=force,
        checks={"-o": _check_output},
    )
    chosen = _recipes(recipes, chosen_content(html, content))

    from neardup.documents import OrderColumn
    from neardup.evaluation.comparison import compare as compare_recipes

    column = None if clusters is None else OrderColumn(clusters, "--clusters")
    with read.open(inputs, order_column=column) as corpus, reading(corpus, *chosen, kernels=_KERNELS) as progress:
        found = compare_recipes(
            corpus,
            labels,
            recipes=chosen,
            classifiers=classifiers or (),
            thresholds=thresholds,
            complete=complete,
            **reading_labels.given,
            title_column=title_column,
            time_column=time_column,
            progress=progress,
            **running.limits,
        )
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


def _check_output(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.evaluation.comparison import check_comparison_output
    from neardup.pages.page import check_drawing

    check_comparison_output(name, inputs, force=force)
    if name.endswith(".html"):
        check_drawing(name)


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
            cells += [figure_text(figure, " " if wide else "\n") for figure in figures]
            cells += _counts(row, found, wide=wide)
            cells.append(f"{scored.cpu_s * per_document:.2g}" if best else "")
            table.add_row(*map(Text, cells), style="bold" if best and scored.name == found.best else "")
    duplicates = count_text(found.duplicates, "labelled duplicate")
    others = "all other pairs are different" if found.complete else f"{found.others:,} labelled as different"
    console.print(f"{count_text(found.documents, 'document')}, {duplicates}, {others}; [dim]95% intervals[/dim]")
    console.print(table)
    for sentence in lead_sentences(found.to_dict()):
        console.print(Text(visible(sentence, lines=False)))


def _told(scored: Scored) -> list[Row]:
    """Return what is printed by default: the best threshold, and of a classifier its own, too."""
    return [row for row in scored.rows if row is scored.best or (row.own and scored.scale == "probability")]


def _table(found: Comparison, *, wide: bool) -> Table:
    names = ["at", "F1", "precision", "recall", *([] if found.complete else ["accuracy"])]
    if found.complete or wide:
        names += ["returned", "correct", *([] if found.complete else ["unlabelled"])]
    else:
        names += ["correct/\nreturned"]
    # With accuracy, 80 columns have no room for more than one space between figures.
    close = {} if found.complete or wide else {"padding": 0}
    table = grid("recipe", *names, "CPU ms/doc" if wide else "CPU\nms/doc", **close)
    table.columns[0].min_width = 9
    return table


def _counts(row: Row, found: Comparison, *, wide: bool) -> list[str]:
    if not wide and not found.complete:
        return [f"{row.correct:,}/{row.returned:,}"]
    counts = [row.returned, row.correct, *([] if found.complete else [row.unlabelled])]
    return [f"{count:,}" for count in counts]


def _threshold(scored: Scored, row: Row, *, wide: bool) -> str:
    if scored.scale == "fixed":
        return "-"
    if scored.scale == "probability":
        return f"{row.threshold:.4g}{(' own' if wide else chr(10) + 'own') if row.own else ''}"
    return f"{'<= ' if scored.scale == 'distance' else ''}{row.threshold:g}"
