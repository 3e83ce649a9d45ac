"""``neardup audit``: the quality of a result, estimated from a random sample that people judge."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from neardup.cli import screen
from neardup.cli.command import LABELS, option, refuse_ignored
from neardup.cli.label import PageOptions, check_store, link_printer
from neardup.cli.options import (
    CorpusClassifierOptions,
    Force,
    Inputs,
    Json,
    LabelColumnOptions,
    Labeller,
    ReadOptions,
    RecipeOptions,
    RunOptions,
    TimeColumn,
)
from neardup.errors import InputError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from rich.table import Table

    from neardup.evaluation.audit import Audit, Sample
    from neardup.evaluation.intervals import Figure
    from neardup.evaluation.population import Vote
    from neardup.evaluation.strata import ThresholdPoint
    from neardup.labels.store import LabelStore


def _print_audit(result: Audit) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    judged = result.same + result.different
    console.print(
        Text(f"{screen.printable_line(result.point)}; candidate rule: {screen.printable_line(result.candidate_rule)}")
    )
    pairs = format_count(result.candidates, "candidate pair")
    console.print(
        f"{format_count(result.documents, 'document')}, {pairs} of distinct texts, "
        f"{result.working_point.returned:,} returned"
    )
    unsure = f", {result.unsure:,} unsure" if result.unsure else ""
    console.print(f"{format_count(result.drawn, 'pair')} drawn, {judged:,} judged{unsure}; [dim]95% intervals[/dim]")
    if judged:
        console.print()
        console.print(_points_table(result))
        number = result.duplicates
        if number.value is not None and number.low is not None and number.high is not None:
            ends = f"{number.low:,.0f} to {number.high:,.0f}"
            console.print(f"duplicates among the candidates: about {number.value:,.0f} pairs ({ends})")
    console.print()
    console.print(_strata_table(result))
    for note in result.notes():
        console.print(Text(screen.printable_line(note)))


def _points_table(result: Audit) -> Table:
    table = screen.make_table("returned at", "pairs", "precision", "recall among candidates")
    for point in result.points:
        cells = [_threshold(result, point), f"{point.returned:,}", _figure(point.precision), _figure(point.recall)]
        screen.add_row(table, cells, bold=point.is_working_point)
    return table


def _strata_table(result: Audit) -> Table:
    names = dict.fromkeys(screen.printable_line(result.stratum_scale(stratum).name) for stratum in result.strata)
    table = screen.make_table(" / ".join(names), "returned", "pairs", "drawn", "judged", "same", "duplicates")
    for stratum in result.strata:
        counts = [f"{count:,}" for count in (stratum.pairs, stratum.drawn, stratum.judged, stratum.same)]
        share = _figure(stratum.share) if stratum.judged else ""
        cells = [
            stratum.score_range(result.stratum_scale(stratum)),
            "yes" if stratum.returned else "no",
            *counts,
            share,
        ]
        screen.add_row(table, cells)
    return table


def _threshold(result: Audit, point: ThresholdPoint) -> str:
    sign = "<=" if result.returned_scale.is_distance else ">="
    return f"{sign} {result.returned_scale.threshold(point.score):.4g}{' (audited)' if point.is_working_point else ''}"


def _figure(figure: Figure) -> str:
    return screen.format_figure(figure, none="unknown")


_SAMPLE = "The sample"


def _check_labels(labels: str | None, store: str | None, inputs: list[str]) -> None:
    """Check, before the corpus is read, that the labels exist and that the store can be used."""
    from neardup.labelling.server import PACKAGES
    from neardup.service.server import check_packages

    if store is not None:
        check_store(store, inputs)
        if not os.path.exists(store):
            check_packages("label", *PACKAGES)
    if labels is not None and not os.path.exists(labels):
        raise InputError(f"{labels} does not exist; check the name")


def audit(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    classifier_options: CorpusClassifierOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    page_options: PageOptions,
    *,
    candidate_rule: Annotated[
        str | None,
        option(
            "NUMBER|MEASURE>=NUMBER",
            "Ignore pairs below it: a lower threshold of the recipe, by default 0.3 (12 bits for simhash), or a "
            "threshold of another measure, such as 'jaccard(words:3) >= 0.1'. A classifier has its own.",
            _SAMPLE,
        ),
    ] = None,
    sample: Annotated[int, option("NUMBER", "How many pairs to draw.", _SAMPLE, min=1)] = 200,
    sample_seed: Annotated[int, option("NUMBER", "Random seed of the sample.", _SAMPLE, min=0)] = 0,
    sample_to: Annotated[
        str | None,
        option(
            "FILE",
            "Write the drawn pairs as .csv, .tsv or .jsonl, to be labelled there: 1, 0, or ? for unsure.",
            _SAMPLE,
        ),
    ] = None,
    store: Annotated[
        str | None, option("FILE", "Label the drawn pairs in the browser, and keep the labels in this store.", LABELS)
    ] = None,
    labeller: Labeller = None,
    labels: Annotated[
        str | None,
        option("FILE", "Labels of the drawn pairs: id1,id2,label as .csv, .tsv or .jsonl, or a store.", LABELS),
    ] = None,
    label_options: LabelColumnOptions,
    time_column: TimeColumn = None,
    report: Annotated[
        str | None, option("FILE.html", "An offline page: the figures, what they are based on, and the wrong pairs.")
    ] = None,
    report_pairs: Annotated[
        int | None, option("NUMBER", "Show the N most representative pairs of each kind, 20 by default.", min=0)
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Estimate the precision and recall of a result from a random sample of it.

    The sample is stratified by score and drawn from all candidates, returned or not. Each figure has an
    interval. Every run draws the same pairs, so labels can be added gradually.
    """
    classifier = classifier_options.load_for_corpus(time_column)
    recipe = recipe_options.resolve(classifier)
    refuse_ignored(("force_domain",), "is for commands that stop, and an audit goes by labels; leave it out")
    if store is None:
        refuse_ignored(("labeller", "port", "no_browser"), "is for judging on the page; name a store with --store FILE")
    if labels is None:
        refuse_ignored(("label_column", "positive", "ignore_unknown"), "is for labels; name them with --labels FILE")
    if report is None:
        refuse_ignored(("report_pairs",), "is for a report; name one with --report FILE.html")
    screen.check_outputs(
        [*inputs, *(name for name in (labels, store, classifier_options.classifier) if name is not None)],
        {"--sample-to": sample_to, "--quarantine": read_options.quarantine, "--report": report},
        force=force,
        checks={
            "--sample-to": screen.ending_check("a sample is labelled as a table", ".csv", ".tsv", ".jsonl", ".ndjson")
        },
    )

    from neardup.documents import write_table
    from neardup.evaluation.audit import MAX_EXAMPLES, draw_sample, select_examples
    from neardup.evaluation.population import read_votes, store_votes
    from neardup.labels.store import LabelStore, labeller_name

    _check_labels(labels, store, inputs)
    name = None if labeller is None else labeller_name(labeller)
    with ExitStack() as stack:
        corpus = stack.enter_context(read_options.open(inputs))
        with screen.reading_progress(corpus, recipe) as progress:
            drawn_sample = draw_sample(
                corpus,
                classifier=classifier,
                recipe=recipe if classifier is None else None,
                candidate_rule=candidate_rule,
                sample=sample,
                seed=sample_seed,
                progress=progress,
                **run_options.limits,
            )
        votes: list[Vote] = []
        if labels is not None:
            votes = read_votes(labels, drawn_sample.positions, **asdict(label_options))
        if store is not None:
            label_store = stack.enter_context(LabelStore(store))
            _serve(drawn_sample, label_store, name, port=page_options.port, open_browser=not page_options.no_browser)
            votes += store_votes(label_store.labels, drawn_sample.positions)
        judgements = drawn_sample.resolve_votes(votes)
        if sample_to is not None:
            write_table(drawn_sample.table(judgements), sample_to, force=force)
        result = drawn_sample.audit(judgements)
        if report is not None:
            examples = select_examples(drawn_sample, judgements, MAX_EXAMPLES if report_pairs is None else report_pairs)
            replace(result, examples=examples).write(report, force=force, command=screen.typed_command())
    if as_json:
        screen.print_json(result.to_dict())
    else:
        _print_audit(result)
    _print_next_step(result, sample_to)
    if report is not None:
        screen.print_message(f"written: {report}")


def _print_next_step(result: Audit, sample_to: str | None) -> None:
    if sample_to is not None:
        screen.print_message(f"written: {sample_to}; fill in its column label and give it with --labels {sample_to}")
    elif not result.same + result.different:
        screen.print_message("judge the drawn pairs with --store audit.db, or in a table with --sample-to audit.csv")


def _serve(drawn_sample: Sample, store: LabelStore, labeller: str | None, *, port: int, open_browser: bool) -> None:
    """Serve the page until all drawn pairs are judged or the user ends it."""
    from neardup.labelling.label_index import LabelIndex
    from neardup.labelling.server import serve
    from neardup.labelling.session import SampleQueue, Session

    index = LabelIndex(store, drawn_sample.reader)
    for note in index.check():
        screen.print_message(note)
    queue = SampleQueue(drawn_sample, index)
    if not queue.open_pairs:
        screen.print_message(
            f"{store.path} has a label for each of the {len(drawn_sample.pairs):,} drawn pairs: none is left to judge"
        )
        return
    session = Session(index, queue, labeller=labeller)
    print_link = link_printer("judge the sample")
    serve(session, port=port, open_browser=open_browser, announce_first_link=print_link, announce_link=print_link)
    screen.print_message(f"{format_count(session.label_count, 'label')} given, written to {store.path}")
