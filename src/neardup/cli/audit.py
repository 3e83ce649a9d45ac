"""``neardup audit``: how good a result is, from a random sample that people judge."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.options import (
    LABELS_PANEL,
    ClassifierOptions,
    Force,
    IgnoreUnknown,
    Inputs,
    Json,
    LabelColumn,
    Page,
    Positive,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
    check_report,
    check_store,
    chosen_recipe,
    refuse_ignored,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    parse_number,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
    show_json,
    typed_command,
    visible,
    whole_number,
)
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from rich.table import Table

    from neardup.evaluation.audit import Audit, Sample
    from neardup.evaluation.estimates import Point
    from neardup.evaluation.population import Judged, Vote
    from neardup.evaluation.scores import Figure
    from neardup.labels.store import LabelStore


def show_audit(found: Audit) -> None:
    """Print figures, strata and what to keep in mind to stdout."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    judged = found.same + found.different
    console.print(
        Text(f"{visible(found.point, lines=False)}; candidate rule: {visible(found.candidate_rule, lines=False)}")
    )
    pairs = count_text(found.candidates, "candidate pair")
    console.print(
        f"{count_text(found.documents, 'document')}, {pairs} of distinct texts, {found.own.returned:,} returned"
    )
    unsure = f", {found.unsure:,} unsure" if found.unsure else ""
    console.print(f"{count_text(found.drawn, 'pair')} drawn, {judged:,} judged{unsure}; [dim]95 % intervals[/dim]")
    if judged:
        console.print()
        console.print(_points(found))
        number = found.duplicates
        if number.value is not None and number.low is not None and number.high is not None:
            ends = f"{number.low:,.0f} to {number.high:,.0f}"
            console.print(f"duplicates among the candidates: about {number.value:,.0f} pairs ({ends})")
    console.print()
    console.print(_strata(found))
    for note in found.notes():
        console.print(Text(visible(note, lines=False)))


def _points(found: Audit) -> Table:
    from rich.text import Text

    table = _table("returned at", "pairs", "precision", "recall among candidates")
    for point in found.points:
        cells = [_threshold(found, point), f"{point.returned:,}", _figure(point.precision), _figure(point.recall)]
        table.add_row(*map(Text, cells), style="bold" if point.own else "")
    return table


def _strata(found: Audit) -> Table:
    from rich.text import Text

    names = dict.fromkeys(visible(found.scale_of(band).name, lines=False) for band in found.strata)
    table = _table(" / ".join(names), "returned", "pairs", "drawn", "judged", "same", "duplicates")
    for band in found.strata:
        counts = [f"{count:,}" for count in (band.pairs, band.drawn, band.judged, band.same)]
        share = _figure(band.share) if band.judged else ""
        cells = [band.between(found.scale_of(band)), "yes" if band.returned else "no", *counts, share]
        table.add_row(*map(Text, cells))
    return table


def _table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column(names[0], overflow="fold")
    for name in names[1:]:
        table.add_column(name, justify="right")
    return table


def _threshold(found: Audit, point: Point) -> str:
    sign = "<=" if found.scale.distance else ">="
    return f"{sign} {found.scale.shown(point.score):.4g}{' (audited)' if point.own else ''}"


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "not known"
    spread = "" if figure.low is None or figure.high is None else f" {figure.low:.2f}-{figure.high:.2f}"
    return f"{figure.value:.3f}{spread}"


_SAMPLE = "What is judged"
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


@with_options
def audit(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: ClassifierOptions,
    read: ReadOptions,
    running: RunOptions,
    page: Page,
    candidate_rule: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|MEASURE>=NUMBER",
            rich_help_panel=_SAMPLE,
            help="Pairs below it are not looked at: a looser threshold of the recipe, by default 0.3 (12 bits for "
            "simhash), or another measure's, as 'jaccard(words:3) >= 0.1'. A classifier has its own.",
        ),
    ] = None,
    sample: Annotated[
        str, typer.Option(metavar="NUMBER", rich_help_panel=_SAMPLE, help="How many pairs to draw.")
    ] = "200",
    sample_seed: Annotated[
        str, typer.Option(metavar="NUMBER", rich_help_panel=_SAMPLE, help="Another one draws other pairs.")
    ] = "0",
    sample_to: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SAMPLE,
            help="Write the drawn pairs as .csv, .tsv or .jsonl, to be judged there: label 1, 0, or ? for unsure.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=LABELS_PANEL,
            help="Judge the drawn pairs in the browser; labels are kept there, a SQLite file as of neardup label.",
        ),
    ] = None,
    labeller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=LABELS_PANEL, help="Who judges; without it the page asks for a name."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=LABELS_PANEL,
            help="Labels of the drawn pairs: id1,id2,label as .csv, .tsv or .jsonl, or a store.",
        ),
    ] = None,
    label_column: LabelColumn = None,
    positive: Positive = "1",
    ignore_unknown: IgnoreUnknown = False,
    time_column: TimeColumn = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.html",
            help="One page, to be read without a network: the figures, where they come from, and the pairs that were "
            "wrong.",
        ),
    ] = None,
    report_pairs: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Show so many pairs of each kind, 20 by default: those that stand for most others.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Estimate how good a result is from a random sample of it: precision, recall, number of duplicates.

    The sample is drawn from all candidates, returned or not, by strata of their score; each figure has an
    interval. The same pairs are drawn each time, so labels can be added bit by bit.
    """
    classifier = decided.loaded(time_column)
    recipe = chosen_recipe(recipe_options, classifier)
    size, seed = whole_number(sample, "--sample"), whole_number(sample_seed, "--sample-seed", 0)
    level, port, limits = parse_number(positive, "--positive"), page.number, running.limits
    read_besides = [*inputs, *(name for name in (labels, store, decided.classifier) if name is not None)]
    if store is None:
        refuse_ignored(("labeller", "port", "no_browser"), "is for judging on the page; name a store with --store FILE")
    if labels is None:
        refuse_ignored(("label_column", "positive", "ignore_unknown"), "is for labels; name them with --labels FILE")
    _check_sample(sample_to, read_besides, force=force)
    check_report(report, read_besides, [sample_to, read.quarantine], force=force)
    most = _pairs(report_pairs, report)

    from neardup.evaluation.audit import draw_sample, examples_of
    from neardup.evaluation.population import votes_of, votes_of_store
    from neardup.labelling.server import check_packages
    from neardup.labels.store import checked_name

    if store is not None:
        check_store(store, inputs)
        if not os.path.exists(store):
            check_packages()
    name = None if labeller is None else checked_name(labeller)
    with ExitStack() as stack:
        corpus = stack.enter_context(read.open(inputs))
        say_notes(corpus, recipe)
        say_if_compiling(recipe)
        with progress_bar() as progress:
            drawn = draw_sample(
                corpus,
                classifier=classifier,
                recipe=recipe if classifier is None else None,
                candidate_rule=candidate_rule,
                sample=size,
                seed=seed,
                progress=progress,
                **limits,
            )
        say_rejected(corpus)
        votes: list[Vote] = []
        if labels is not None:
            votes = votes_of(
                labels, drawn.places, label_column=label_column, positive=level, ignore_unknown=ignore_unknown
            )
        if store is not None:
            kept = stack.enter_context(_opened(store))
            _ask(drawn, kept, name, port=port, open_browser=not page.no_browser)
            votes += votes_of_store(kept.labels, drawn.places)
        known = drawn.judged(votes)
        if sample_to is not None:
            _write(drawn, known, sample_to, force=force)
        found = drawn.audit(known)
        if report is not None:
            replace(found, examples=examples_of(drawn, known, most)).write(report, force=force, command=typed_command())
    if as_json:
        show_json(found.to_dict())
    else:
        show_audit(found)
    _say_next(found, sample_to)
    if report is not None:
        say(f"written: {report}")


def _pairs(given: str | None, report: str | None) -> int:
    """Return how many pairs of each kind the page shows."""
    from neardup.evaluation.audit import MOST

    if given is None:
        return MOST
    if report is None:
        raise RecipeError(f"--report-pairs {given} is for a report; name one with --report FILE.html")
    return whole_number(given, "--report-pairs", 0)


def _check_sample(output: str | None, inputs: list[str], *, force: bool) -> None:
    """Refuse an output before the work starts."""
    if output is None:
        return
    from neardup.documents import check_output

    if not output.endswith(_TABLES):
        raise OutputError(
            f"{output} is no table that can be judged; name it {', '.join(_TABLES[:-1])} or {_TABLES[-1]}"
        )
    check_output(output, inputs, force)


def _opened(store: str) -> LabelStore:
    from neardup.labels.store import LabelStore

    return LabelStore(store)


def _ask(drawn: Sample, store: LabelStore, labeller: str | None, *, port: int, open_browser: bool) -> None:
    """Serve the page until all drawn pairs are judged or the user ends it."""
    from neardup.labelling.index import LabelIndex
    from neardup.labelling.server import serve
    from neardup.labelling.session import SampleQueue, Session

    known = LabelIndex(store, drawn.material)
    for note in known.check():
        say(note)
    chooser = SampleQueue(drawn, known)
    if not chooser.open_pairs:
        say(f"{store.path} holds an answer to each of the {len(drawn.pairs):,} drawn pairs: nothing is left to ask")
        return
    session = Session(known, chooser, labeller=labeller)
    serve(session, port=port, open_browser=open_browser, tell=_tell, again=_tell)
    say(f"{count_text(session.given, 'label')} given; they are in {store.path}")


def _tell(link: str) -> None:
    say(f"judge the sample at {link}")
    say("the link opens one browser; Ctrl-C ends, and nothing is lost")


def _write(drawn: Sample, known: Judged, output: str, *, force: bool) -> None:
    from neardup.documents import write_table

    write_table(drawn.table(known), output, force=force)


def _say_next(found: Audit, sample_to: str | None) -> None:
    if sample_to is not None:
        say(f"written: {sample_to}; fill in its column label and give it with --labels {sample_to}")
    elif not found.same + found.different:
        say("judge the drawn pairs with --store audit.db, or in a table with --sample-to audit.csv")
