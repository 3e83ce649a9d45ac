"""``neardup audit``: how good a result is, from a random sample that people judge."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import LABELS, option, refuse_ignored, with_options
from neardup.cli.label import PageOptions, check_store
from neardup.cli.options import (
    AnswerOptions,
    ClassifierOptions,
    Force,
    Inputs,
    Json,
    Labeller,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
    check_outputs,
    chosen_recipe,
)
from neardup.cli.screen import (
    count_text,
    figure_text,
    grid,
    reading,
    say,
    show_json,
    typed_command,
    visible,
)
from neardup.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from neardup.evaluation.audit import Audit, Sample
    from neardup.evaluation.estimates import Point
    from neardup.evaluation.population import Vote
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

    table = grid("returned at", "pairs", "precision", "recall among candidates")
    for point in found.points:
        cells = [_threshold(found, point), f"{point.returned:,}", _figure(point.precision), _figure(point.recall)]
        table.add_row(*map(Text, cells), style="bold" if point.own else "")
    return table


def _strata(found: Audit) -> Table:
    from rich.text import Text

    names = dict.fromkeys(visible(found.scale_of(band).name, lines=False) for band in found.strata)
    table = grid(" / ".join(names), "returned", "pairs", "drawn", "judged", "same", "duplicates")
    for band in found.strata:
        counts = [f"{count:,}" for count in (band.pairs, band.drawn, band.judged, band.same)]
        share = _figure(band.share) if band.judged else ""
        cells = [band.between(found.scale_of(band)), "yes" if band.returned else "no", *counts, share]
        table.add_row(*map(Text, cells))
    return table


def _threshold(found: Audit, point: Point) -> str:
    sign = "<=" if found.scale.distance else ">="
    return f"{sign} {found.scale.shown(point.score):.4g}{' (audited)' if point.own else ''}"


def _figure(figure: Figure) -> str:
    return figure_text(figure, none="not known")


_SAMPLE = "What is judged"
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


@with_options
def audit(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: ClassifierOptions,
    read: ReadOptions,
    running: RunOptions,
    page: PageOptions,
    *,
    candidate_rule: Annotated[
        str | None,
        option(
            "NUMBER|MEASURE>=NUMBER",
            "Pairs below it are not looked at: a lower threshold of the recipe, by default 0.3 (12 bits for simhash), "
            "or another measure's, as 'jaccard(words:3) >= 0.1'. A classifier has its own.",
            _SAMPLE,
        ),
    ] = None,
    sample: Annotated[int, option("NUMBER", "How many pairs to draw.", _SAMPLE, min=1)] = 200,
    sample_seed: Annotated[int, option("NUMBER", "Random seed of the sample.", _SAMPLE, min=0)] = 0,
    sample_to: Annotated[
        str | None,
        option(
            "FILE",
            "Write the drawn pairs as .csv, .tsv or .jsonl, to be judged there: label 1, 0, or ? for unsure.",
            _SAMPLE,
        ),
    ] = None,
    store: Annotated[
        str | None,
        option("FILE", "Judge the drawn pairs in the browser; this store of neardup label keeps the labels.", LABELS),
    ] = None,
    labeller: Labeller = None,
    labels: Annotated[
        str | None,
        option("FILE", "Labels of the drawn pairs: id1,id2,label as .csv, .tsv or .jsonl, or a store.", LABELS),
    ] = None,
    reading_labels: AnswerOptions,
    time_column: TimeColumn = None,
    report: Annotated[
        str | None,
        option("FILE.html", "An offline page: the figures, where they come from, and the pairs that were wrong."),
    ] = None,
    report_pairs: Annotated[
        int | None,
        option("NUMBER", "Show N pairs of each kind, 20 by default: the most representative ones.", min=0),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Estimate the precision and recall of a result from a random sample of it.

    The sample is stratified by score and drawn from all candidates, returned or not. Each figure has an
    interval. Every run draws the same pairs, so labels can be added bit by bit.
    """
    classifier = decided.loaded(time_column)
    recipe = chosen_recipe(recipe_options, classifier)
    read_besides = [*inputs, *(name for name in (labels, store, decided.classifier) if name is not None)]
    refuse_ignored(("force_domain",), "is for commands that stop, and an audit goes by labels; leave it out")
    if store is None:
        refuse_ignored(("labeller", "port", "no_browser"), "is for judging on the page; name a store with --store FILE")
    if labels is None:
        refuse_ignored(("label_column", "positive", "ignore_unknown"), "is for labels; name them with --labels FILE")
    if report is None:
        refuse_ignored(("report_pairs",), "is for a report; name one with --report FILE.html")
    outputs = ("--sample-to", sample_to), ("--quarantine", read.quarantine), ("--report", report)
    check_outputs(read_besides, *outputs, force=force, checks={"--sample-to": _check_sample})

    from neardup.documents import write_table
    from neardup.evaluation.audit import MOST, draw_sample, examples_of
    from neardup.evaluation.population import votes_of, votes_of_store
    from neardup.labelling.server import PACKAGES
    from neardup.labels.store import LabelStore, checked_name
    from neardup.service.server import check_packages

    if store is not None:
        check_store(store, inputs)
        if not os.path.exists(store):
            check_packages("label", *PACKAGES)
    name = None if labeller is None else checked_name(labeller)
    with ExitStack() as stack:
        corpus = stack.enter_context(read.open(inputs))
        with reading(corpus, recipe) as progress:
            drawn = draw_sample(
                corpus,
                classifier=classifier,
                recipe=recipe if classifier is None else None,
                candidate_rule=candidate_rule,
                sample=sample,
                seed=sample_seed,
                progress=progress,
                **running.limits,
            )
        votes: list[Vote] = []
        if labels is not None:
            votes = votes_of(labels, drawn.places, **reading_labels.given)
        if store is not None:
            kept = stack.enter_context(LabelStore(store))
            _ask(drawn, kept, name, port=page.port, open_browser=not page.no_browser)
            votes += votes_of_store(kept.labels, drawn.places)
        known = drawn.judged(votes)
        if sample_to is not None:
            write_table(drawn.table(known), sample_to, force=force)
        found = drawn.audit(known)
        if report is not None:
            most = MOST if report_pairs is None else report_pairs
            replace(found, examples=examples_of(drawn, known, most)).write(report, force=force, command=typed_command())
    if as_json:
        show_json(found.to_dict())
    else:
        show_audit(found)
    _say_next(found, sample_to)
    if report is not None:
        say(f"written: {report}")


def _check_sample(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents import check_output

    if not name.endswith(_TABLES):
        raise OutputError(f"{name} is no table that can be judged; name it {', '.join(_TABLES[:-1])} or {_TABLES[-1]}")
    check_output(name, inputs, force)


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
    say(f"{count_text(session.given, 'label')} given, written to {store.path}")


def _tell(link: str) -> None:
    say(f"judge the sample at {link}")
    say("the link opens one browser; Ctrl-C ends, and nothing is lost")


def _say_next(found: Audit, sample_to: str | None) -> None:
    if sample_to is not None:
        say(f"written: {sample_to}; fill in its column label and give it with --labels {sample_to}")
    elif not found.same + found.different:
        say("judge the drawn pairs with --store audit.db, or in a table with --sample-to audit.csv")
