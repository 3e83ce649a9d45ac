"""``neardup compare``: which recipe or classifier, at which threshold, agrees best with labels."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import click

from neardup.cli import screen
from neardup.cli.command import CLASSIFIER, LABELS, option, output_option, refuse_ignored, switch
from neardup.cli.options import (
    FOR_CLASSIFIERS,
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
    resolve_content,
)
from neardup.errors import RecipeError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from neardup.evaluation.comparison import Comparison, SystemScores, ThresholdScores
    from neardup.recipe import Recipe

#: On narrower terminals intervals are below their figures; the larger width is for tables with accuracy.
_WIDTH, _WIDTH_WITH_ACCURACY = 120, 140


def compare(
    inputs: Inputs,
    read_options: ReadOptions,
    run_options: RunOptions,
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
            "COLUMN", "A column of the inputs instead of --labels: documents with equal values are duplicates.", LABELS
        ),
    ] = None,
    label_options: LabelOptions,
    complete: Annotated[bool, switch("--complete", "Treat pairs without a label as different.", LABELS)] = False,
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
        output_option(
            "A page with curves (.html), everything (.json), a table for a paper (.tex), or all rows as a table "
            "(.csv, .parquet); repeatable."
        ),
    ] = None,
    report: Annotated[str | None, option("FILE.html", "An offline page with curves; the same as -o FILE.html.")] = None,
    all_thresholds: Annotated[bool, switch("--all", "Print every threshold, not only each recipe's best.")] = False,
    latex: Annotated[bool, switch("--latex", "Print the table for a paper, in LaTeX, on stdout.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare recipes on labelled documents: precision, recall, F1 and time.

    Each recipe is tried at several thresholds and at its own. For simhash the thresholds are Hamming distances from 0
    to 10; recipes without a threshold, such as checksum, run once. Classifiers are tried at several probabilities and
    at their saved cut.
    """
    if labels is None and clusters is None:
        raise RecipeError("there are no labels: give --labels FILE or --clusters COLUMN")
    if labels is not None and clusters is not None:
        raise RecipeError(f"--labels {labels} and --clusters {clusters} both say what is a duplicate: leave out one")
    if clusters is not None:
        names = "label_column", "positive", "only", "complete", "ignore_unknown"
        refuse_ignored(names, "is for --labels, not for --clusters; leave it out")
    if latex and (as_json or all_thresholds):
        raise RecipeError(f"--latex and {'--json' if as_json else '--all'} print different things: leave out one")
    if not classifiers:
        refuse_ignored(("title_column", "time_column"), FOR_CLASSIFIERS)
    screen.check_outputs(
        [*inputs, *([labels] if labels is not None else []), *(classifiers or [])],
        {"-o": output, "--report": report},
        force=force,
        checks={"-o": _check_output},
    )
    loaded_recipes = _load_recipes(recipes, resolve_content(html, content))

    from neardup.documents import OrderColumn
    from neardup.documents.output import placed_together
    from neardup.evaluation.comparison import compare as compare_recipes

    column = None if clusters is None else OrderColumn(clusters, "--clusters")
    with (
        read_options.open(inputs, order_column=column) as corpus,
        screen.reading_progress(corpus, *loaded_recipes) as progress,
    ):
        comparison = compare_recipes(
            corpus,
            labels,
            recipes=loaded_recipes,
            classifiers=classifiers or (),
            thresholds=thresholds,
            complete=complete,
            **asdict(label_options),
            title_column=title_column,
            time_column=time_column,
            progress=progress,
            **run_options.limits,
        )
    for warning in comparison.warnings:
        screen.print_warning(warning)
    with screen.written_files() as written, placed_together(written):
        for name in [*(output or ()), *([report] if report is not None else ())]:
            comparison.write(name, force=force, command=screen.typed_command())
    if as_json:
        screen.print_json(comparison.to_dict())
    elif latex:
        click.echo(comparison.to_latex())
    else:
        _print_comparison(comparison, all_thresholds=all_thresholds)
    for name in written:
        screen.print_message(f"written: {name}")


def _load_recipes(listed: str | None, content: str | None) -> list[Recipe]:
    from neardup.recipe import load_recipe, names

    recipes = [load_recipe(name.strip()) for name in (names() if listed is None else listed.split(","))]
    return recipes if content is None else [recipe.changed(content=content) for recipe in recipes]


def _check_output(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.evaluation.comparison import check_comparison_output
    from neardup.pages.page import check_drawing

    check_comparison_output(name, inputs, force=force)
    if name.endswith(".html"):
        check_drawing(name)


def _print_comparison(comparison: Comparison, *, all_thresholds: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from neardup.evaluation.comparison_page import lead_sentences

    console = Console(highlight=False)
    wide = console.width >= (_WIDTH if comparison.complete else _WIDTH_WITH_ACCURACY)
    table = _table(comparison, wide=wide)
    per_document = 1000 / max(comparison.documents, 1)
    for scored in comparison.recipes:
        for row in scored.rows if all_thresholds else _usual_rows(scored):
            best = row is scored.best
            cells = [screen.printable_line(scored.name), _threshold(scored, row, wide=wide)]
            figures = [row.f1, row.precision, row.recall, *([] if comparison.complete else [row.accuracy])]
            cells += [screen.format_figure(figure, " " if wide else "\n") for figure in figures]
            cells += _counts(row, comparison, wide=wide)
            cells.append(f"{scored.cpu_s * per_document:.2g}" if best else "")
            screen.add_row(table, cells, bold=best and scored.name == comparison.best)
    duplicates = format_count(comparison.duplicates, "labelled duplicate")
    different = (
        "all other pairs are different" if comparison.complete else f"{comparison.others:,} labelled as different"
    )
    console.print(
        f"{format_count(comparison.documents, 'document')}, {duplicates}, {different}; [dim]95% intervals[/dim]"
    )
    console.print(table)
    for sentence in lead_sentences(comparison.to_dict()):
        console.print(Text(screen.printable_line(sentence)))


def _usual_rows(scored: SystemScores) -> list[ThresholdScores]:
    """Return the best threshold, and for a classifier its own."""
    return [row for row in scored.rows if row is scored.best or (row.own and scored.scale == "probability")]


def _table(comparison: Comparison, *, wide: bool) -> Table:
    names = ["at", "F1", "precision", "recall", *([] if comparison.complete else ["accuracy"])]
    if comparison.complete or wide:
        names += ["returned", "correct", *([] if comparison.complete else ["unlabelled"])]
    else:
        names += ["correct/\nreturned"]
    # With accuracy, 80 columns have room for only one space between figures.
    padding = {} if comparison.complete or wide else {"padding": 0}
    table = screen.make_table("recipe", *names, "CPU ms/doc" if wide else "CPU\nms/doc", **padding)
    table.columns[0].min_width = 9
    return table


def _counts(row: ThresholdScores, comparison: Comparison, *, wide: bool) -> list[str]:
    if not wide and not comparison.complete:
        return [f"{row.correct:,}/{row.returned:,}"]
    counts = [row.returned, row.correct, *([] if comparison.complete else [row.unlabelled])]
    return [f"{count:,}" for count in counts]


def _threshold(scored: SystemScores, row: ThresholdScores, *, wide: bool) -> str:
    if scored.scale == "fixed":
        return "-"
    if scored.scale == "probability":
        return f"{row.threshold:.4g}{(' own' if wide else chr(10) + 'own') if row.own else ''}"
    return f"{'<= ' if scored.scale == 'distance' else ''}{row.threshold:g}"
