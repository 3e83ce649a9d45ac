"""``neardup label``: label pairs of texts in the browser, and import, export and compare labels."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from neardup.cli import screen
from neardup.cli.command import option, refuse_ignored, switch
from neardup.cli.options import Content, Force, Html, Inputs, Json, Labeller, ReadOptions, RunOptions, resolve_content
from neardup.errors import RecipeError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.evaluation.agreement import Agreement
    from neardup.labelling.label_index import ImportResult
    from neardup.labelling.queue import Pool
    from neardup.recipe import Recipe

#: Options that only matter when the page is served.
_PAGE_OPTIONS = (
    *("candidate_rule", "vector", "title_column", "time_column", "pairs", "shared", "seed"),
    *("port", "no_browser", "threads", "memory", "quarantine"),
)
_QUEUE, _PAGE, _TABLES = "Which pairs to label", "The page", "Labels as tables, without the page"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """Which pairs to label, and how texts are compared."""

    candidate_rule: Annotated[
        str | None, option("MEASURE>=NUMBER", "Skip pairs below it; jaccard(words:3) >= 0.1 by default.", _QUEUE)
    ] = None
    vector: Annotated[
        str,
        option(
            "MEASURES",
            "Measures of the model that chooses pairs: default, cheap, short, or a list as for train.",
            _QUEUE,
        ),
    ] = "default"
    title_column: Annotated[str | None, option("NAME", "Column of titles; detected automatically.", _QUEUE)] = None
    time_column: Annotated[str | None, option("NAME", "Column of times, for the measure hours_apart.", _QUEUE)] = None
    html: Html = False
    content: Content = None
    pairs: Annotated[int | None, option("NUMBER", "Stop after N labels of each labeller.", _QUEUE, min=1)] = None
    shared: Annotated[
        float,
        option(
            "SHARE",
            "Share of pairs that another labeller has labelled, too, to measure agreement.",
            _QUEUE,
            min=0,
            max=1,
        ),
    ] = 0.25
    seed: Annotated[int, option("NUMBER", "Random seed.", _QUEUE, min=0)] = 0

    @property
    def recipe(self) -> Recipe:
        """The candidate rule, as a recipe."""
        from neardup.classifier.classifier import CANDIDATE_RULE, parse_candidate_rule

        return parse_candidate_rule(
            CANDIDATE_RULE if self.candidate_rule is None else self.candidate_rule,
            content=resolve_content(self.html, self.content) or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """The address of the page."""

    port: Annotated[int, option("NUMBER", "Port on this machine; 0 for any free port.", _PAGE, min=0, max=65_535)] = 0
    no_browser: Annotated[bool, switch("--no-browser", "Print the link without opening a browser.", _PAGE)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Import, export and comparison of labels, without the page."""

    import_file: Annotated[
        str | None, option("FILE", "Import labels: id1,id2,label and optionally labeller.", _TABLES, "--import")
    ] = None
    export: Annotated[str | None, option("FILE", "Write the majority labels as CSV: id1,id2,label.", _TABLES)] = None
    each: Annotated[bool, switch("--each", "With --export: write a row for each labeller.", _TABLES)] = False
    agreement: Annotated[bool, switch("--agreement", "Print how well labellers agree.", _TABLES)] = False

    @property
    def has_action(self) -> bool:
        """Whether any of them was requested.

        Raises ``RecipeError`` for an option without the one that it belongs to.
        """
        if self.each and self.export is None:
            raise RecipeError("--each belongs to --export FILE; name a file, or leave it out")
        return self.import_file is not None or self.export is not None or self.agreement


def check_store(store: str, inputs: list[str]) -> None:
    """Check that a path can hold a label store; a new one is created only once there is a label to keep.

    Raises ``NeardupError`` if it is something else, or cannot be created.
    """
    from neardup.documents.output import check_place
    from neardup.labels.store import load_labels

    if os.path.exists(store):
        load_labels(store)
    else:
        check_place(store, inputs)


def label(
    inputs: Inputs,
    store: Annotated[
        str,
        option(
            "FILE",
            "Label store: a SQLite file, created if missing.",
        ),
    ],
    read_options: ReadOptions,
    queue_options: QueueOptions,
    page_options: PageOptions,
    table_options: TableOptions,
    run_options: RunOptions,
    labeller: Labeller = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Label pairs of texts in the browser: same or different.

    The page is served to this machine only, until Ctrl-C. Each answer is saved before the next pair appears.

    The next pair is the one that a model learns most from: first spread over similarity, then where it is unsure.

    train, compare and audit read the labels: --labels labels.db.
    """
    if not table_options.has_action:
        refuse_ignored(("force", "as_json"), "is for --export and --agreement; leave it out")
        _serve(inputs, store, labeller, read_options, queue_options, page_options, run_options)
        return
    refuse_ignored(_PAGE_OPTIONS, "is for the page, and --import, --export and --agreement open none; leave it out")
    if table_options.import_file is None:
        refuse_ignored(("labeller",), "is for imported labels; name them with --import FILE")
    if table_options.export is None:
        refuse_ignored(("force",), "is for --export FILE; leave it out")
    if not table_options.agreement:
        refuse_ignored(("as_json",), "is for --agreement; leave it out")
    checks = {"--store": screen.check_nothing, "--export": screen.ending_check("labels are exported as CSV", ".csv")}
    screen.check_outputs(inputs, {"--store": store, "--export": table_options.export}, force=force, checks=checks)
    _exchange(inputs, store, read_options, queue_options, table_options, labeller=labeller, as_json=as_json)


def _serve(
    inputs: list[str],
    store: str,
    labeller: str | None,
    read_options: ReadOptions,
    queue_options: QueueOptions,
    page_options: PageOptions,
    run_options: RunOptions,
) -> None:
    from neardup.classifier.vector import Vector, vector_statistics
    from neardup.labelling.label_index import LabelIndex
    from neardup.labelling.queue import ActiveLearningQueue, PairModel, build_pool
    from neardup.labelling.server import PACKAGES, serve
    from neardup.labelling.session import Session
    from neardup.labels.store import LabelStore, labeller_name
    from neardup.runtime import default_threads
    from neardup.service.server import check_packages

    name = None if labeller is None else labeller_name(labeller)
    candidate_rule, vector = queue_options.recipe, Vector.parse(queue_options.vector)
    check_packages("label", *PACKAGES, "sklearn")
    check_store(store, inputs)
    with ExitStack() as stack:
        corpus = stack.enter_context(read_options.open(inputs))
        with screen.reading_progress(corpus, candidate_rule) as progress:
            pool, reader = build_pool(
                corpus,
                candidate_rule,
                seed=queue_options.seed,
                title_column=queue_options.title_column or "",
                time_column=queue_options.time_column or "",
                progress=progress,
                **run_options.limits,
            )
            labels = stack.enter_context(LabelStore(store))
            index = LabelIndex(labels, reader)
            notes = index.check()
            statistics = vector_statistics(
                vector, corpus, content=candidate_rule.content, threads=run_options.threads, progress=progress
            )
        for note in notes:
            screen.print_message(note)
        screen.print_message(_describe_pool(pool))
        model = stack.enter_context(
            closing(PairModel(pool, index, vector, statistics, threads=run_options.threads or default_threads()))
        )
        queue = ActiveLearningQueue(pool, index, model, shared=queue_options.shared)
        session = Session(index, queue, labeller=name, goal=queue_options.pairs)
        serve(
            session,
            port=page_options.port,
            open_browser=not page_options.no_browser,
            announce_first_link=link_printer("label"),
            announce_link=lambda link: screen.print_message(f"opened; for another browser: {link}"),
        )
        counts = labels.counts()
        parts = ", ".join(f"{count:,} {answer}" for answer, count in counts.items())
        screen.print_message(
            f"{format_count(session.label_count, 'label')} given; "
            f"{labels.path} now has {sum(counts.values()):,}: {parts}"
        )


def _describe_pool(pool: Pool) -> str:
    drawn = (
        "" if len(pool) == pool.candidates else f", {len(pool):,} of them drawn evenly over similarity to choose from"
    )
    limit = "" if pool.complete else "; they are too many to find all, so these are pairs with kept documents"
    return f"{format_count(pool.candidates, 'pair')} among the candidates{drawn}{limit}"


def link_printer(purpose: str) -> Callable[[str], None]:
    """Return a function that prints the link of a page, and what it is for."""

    def print_link(link: str) -> None:
        screen.print_warning(f"{purpose} at {link}")
        screen.print_message("the link opens one browser; Ctrl-C ends, and nothing is lost")

    return print_link


def _exchange(
    inputs: list[str],
    store: str,
    read_options: ReadOptions,
    queue_options: QueueOptions,
    table_options: TableOptions,
    *,
    labeller: str | None,
    as_json: bool,
) -> None:
    """Import labels, export them, and print how well labellers agree, in this order."""
    from neardup.evaluation.agreement import pairwise_agreements
    from neardup.labelling.label_index import LabelIndex, export, import_answers, read_answers
    from neardup.labels.store import LabelStore, load_labels
    from neardup.pages.documents import DocumentReader

    imported = None
    if table_options.import_file is not None:
        imported = read_answers(table_options.import_file, labeller=labeller)
    if imported is None:
        # Refuses a path without a store, for which a new one would be created.
        load_labels(store)
    else:
        check_store(store, inputs)
    with ExitStack() as stack:
        corpus = stack.enter_context(read_options.open(inputs, write=False))
        screen.print_corpus_notes(corpus)
        with screen.progress_bar() as progress:
            reader = DocumentReader.from_corpus(corpus, content=queue_options.recipe.content, report=progress)
        labels = stack.enter_context(LabelStore(store))
        index = LabelIndex(labels, reader)
        for note in index.check():
            screen.print_message(note)
        if imported is not None:
            screen.print_message(_describe_import(import_answers(index, imported), imported.name))
        if table_options.export is not None:
            exported = export(labels, table_options.export, each=table_options.each)
            suffix = "" if table_options.each else f"; left out: {exported.unsure:,} unsure, {exported.ties:,} tied"
            screen.print_message(f"{format_count(exported.rows, 'row')} written to {table_options.export}{suffix}")
        if table_options.agreement:
            found = pairwise_agreements(labels.labels)
            if as_json:
                screen.print_json([agreement.as_dict() for agreement in found])
            else:
                _print_agreements(found)


def _describe_import(imported: ImportResult, source: str) -> str:
    counts = (
        (imported.already_stored, "there already"),
        (imported.kept, "different in the store and left unchanged there"),
        (imported.unknown, "of documents that this corpus does not contain"),
        (imported.empty, "without a label"),
    )
    suffix = "".join(f"; {count:,} {fate}" for count, fate in counts if count)
    return f"{format_count(imported.added, 'label')} imported from {source}{suffix}"


def _print_agreements(found: Sequence[Agreement]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not any(agreement.pairs for agreement in found):
        console.print("No two labellers have judged the same pair.")
        return
    table = screen.make_table("labellers", "pairs", "agree", "kappa", "95%", "same", "different", "apart", "unsure")
    table.columns[0].min_width = 12
    for agreement in found:
        both_same, first_same, second_same, both_different = agreement.table
        interval = agreement.interval
        cells = [
            screen.printable_line(", ".join(agreement.labellers)),
            f"{agreement.pairs:,}",
            f"{agreement.observed:.0%}" if agreement.pairs else "none",
            "none" if agreement.kappa is None else f"{agreement.kappa:.2f}",
            "" if interval is None else f"{interval[0]:.2f}-{interval[1]:.2f}",
            f"{both_same:,}",
            f"{both_different:,}",
            f"{first_same + second_same:,}",
            f"{agreement.unsure:,}",
        ]
        screen.add_row(table, cells)
    console.print(table)
