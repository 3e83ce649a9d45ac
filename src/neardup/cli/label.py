"""``neardup label``: pairs of texts judged by people, in the browser."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.options import (
    Asking,
    Force,
    Inputs,
    Json,
    Page,
    ReadOptions,
    RunOptions,
    Tables,
    check_store,
    refuse_ignored,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
    show_json,
    visible,
)
from neardup.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.labelling.exchange import Imported
    from neardup.labelling.queue import Pool
    from neardup.labels.agreement import Agreement
    from neardup.labels.store import LabelStore

#: What has a say only where pairs are asked.
_ON_THE_PAGE = (
    *("candidate_rule", "vector", "title_column", "time_column", "pairs", "shared", "seed"),
    *("port", "no_browser", "threads", "memory", "quarantine"),
)


@with_options
def label(
    inputs: Inputs,
    store: Annotated[
        str,
        typer.Option(
            metavar="FILE", show_default=False, help="Where labels are kept: a SQLite file, made where there is none."
        ),
    ],
    read: ReadOptions,
    asking: Asking,
    page: Page,
    tables: Tables,
    running: RunOptions,
    labeller: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who judges; without it the page asks for a name.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Judge pairs of texts in the browser: same, or different.

    The page is served to this machine alone, until Ctrl-C; an answer is on the disk before the next pair appears.

    Pairs are chosen to teach most: spread over similarity at first, then where a model of the labels so far doubts.

    The labels are for train, compare and audit: --labels labels.db.
    """
    if not tables.asked:
        refuse_ignored(("force", "as_json"), "is for --export and --agreement; leave it out")
        _serve(inputs, store, labeller, read, asking, page, running)
        return
    refuse_ignored(_ON_THE_PAGE, "is for the page, and --import, --export and --agreement open none; leave it out")
    if tables.import_file is None:
        refuse_ignored(("labeller",), "is for labels that are taken in; name them with --import FILE")
    if tables.export is None:
        refuse_ignored(("force",), "is for --export FILE; leave it out")
    if not tables.agreement:
        refuse_ignored(("as_json",), "is for --agreement; leave it out")
    if tables.export is not None:
        _check_export(tables.export, inputs, store, force=force)

    _exchange(inputs, store, read, asking, tables, labeller=labeller, as_json=as_json)


def _serve(
    inputs: list[str],
    store: str,
    labeller: str | None,
    read: ReadOptions,
    asking: Asking,
    page: Page,
    running: RunOptions,
) -> None:
    from neardup.classifier.vector import statistics_for
    from neardup.labelling.index import LabelIndex
    from neardup.labelling.queue import ActiveLearningQueue, Model, pool_of
    from neardup.labelling.server import check_packages, serve
    from neardup.labelling.session import Session
    from neardup.labels.store import LabelStore, checked_name
    from neardup.runtime import default_threads

    name = None if labeller is None else checked_name(labeller)
    candidate_rule, vector, seed, goal, share, port = (
        asking.recipe,
        asking.measures,
        asking.number,
        asking.goal,
        asking.share,
        page.number,
    )
    limits = running.limits
    check_packages("sklearn")
    check_store(store, inputs)
    with ExitStack() as stack:
        corpus = stack.enter_context(read.open(inputs))
        say_notes(corpus, candidate_rule)
        say_if_compiling(candidate_rule)
        with progress_bar() as report:
            pool, material = pool_of(
                corpus,
                candidate_rule,
                seed=seed,
                title_column=asking.title_column or "",
                time_column=asking.time_column or "",
                progress=report,
                **limits,
            )
            labels = stack.enter_context(LabelStore(store))
            known = LabelIndex(labels, material)
            notes = known.check()
            statistics = statistics_for(
                vector, corpus, content=candidate_rule.content, threads=limits["threads"], report=report
            )
        say_rejected(corpus)
        for note in notes:
            say(note)
        _say_pool(pool)
        model = stack.enter_context(
            closing(Model(pool, known, vector, statistics, threads=limits["threads"] or default_threads()))
        )
        session = Session(known, ActiveLearningQueue(pool, known, model, shared=share), labeller=name, goal=goal)
        serve(session, port=port, open_browser=not page.no_browser, tell=_tell, again=_tell_again)
        _say_end(session.given, labels)


def _say_pool(pool: Pool) -> None:
    drawn = "" if len(pool) == pool.found else f", {len(pool):,} of them drawn evenly over similarity to choose from"
    some = "" if pool.complete else "; they are too many to be all found, so these are pairs with documents that stay"
    say(f"{count_text(pool.found, 'pair')} among the candidates{drawn}{some}")


def _tell(link: str) -> None:
    say(f"label at {link}")
    say("the link opens one browser; Ctrl-C ends, and nothing is lost")


def _tell_again(link: str) -> None:
    say(f"opened; for another browser: {link}")


def _say_end(given: int, labels: LabelStore) -> None:
    counts = labels.counts()
    parts = ", ".join(f"{count:,} {answer}" for answer, count in counts.items())
    say(f"{count_text(given, 'label')} given; {labels.path} holds {sum(counts.values()):,}: {parts}")


def _check_export(output: str, inputs: list[str], store: str, *, force: bool) -> None:
    """Refuse an output before the work starts."""
    from neardup.documents import check_output

    if not output.endswith(".csv"):
        raise OutputError(f"{output} does not end in .csv, but labels are exported as CSV: name it so")
    if os.path.realpath(output) == os.path.realpath(store):
        raise OutputError(f"{output} is the store itself; name another file")
    check_output(output, inputs, force)


def _exchange(
    inputs: list[str],
    store: str,
    read: ReadOptions,
    asking: Asking,
    tables: Tables,
    *,
    labeller: str | None,
    as_json: bool,
) -> None:
    """Take labels in, write them out, say how far labellers agree; in this order."""
    from neardup.labelling.exchange import answers_of, export, take_in
    from neardup.labelling.index import LabelIndex
    from neardup.labels.agreement import agreements
    from neardup.labels.store import LabelStore, labels_of
    from neardup.pages.documents import Material

    given = None if tables.import_file is None else answers_of(tables.import_file, labeller=labeller)
    if given is None:
        # Refuses a name with nothing there, for which a new store would be made.
        labels_of(store)
    else:
        check_store(store, inputs)
    with ExitStack() as stack:
        corpus = stack.enter_context(read.open(inputs, write=False))
        say_notes(corpus)
        with progress_bar() as report:
            material = Material.of(corpus, content=asking.recipe.content, report=report)
        labels = stack.enter_context(LabelStore(store))
        known = LabelIndex(labels, material)
        for note in known.check():
            say(note)
        if given is not None:
            say(_taken(take_in(known, given), given.name))
        if tables.export is not None:
            written = export(labels, tables.export, each=tables.each)
            left_out = "" if tables.each else f"; left out: {written.unsure:,} unsure, {written.ties:,} tied"
            say(f"{count_text(written.rows, 'row')} written to {tables.export}{left_out}")
        if tables.agreement:
            found = agreements(labels.labels)
            if as_json:
                show_json([one.as_dict() for one in found])
            else:
                _show(found)


def _taken(taken: Imported, source: str) -> str:
    """Return what became of a table's rows, in a line."""
    others = (
        (taken.known, "there already"),
        (taken.kept, "judged otherwise in the store and left so"),
        (taken.unknown, "of documents that this corpus does not hold"),
        (taken.empty, "without an answer"),
    )
    rest = "".join(f"; {count:,} {what}" for count, what in others if count)
    return f"{count_text(taken.added, 'label')} taken in from {source}{rest}"


def _show(found: Sequence[Agreement]) -> None:
    """Print how far labellers agree to stdout."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not any(one.pairs for one in found):
        console.print("No two labellers have judged the same pair.")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column("labellers", overflow="fold", min_width=12)
    for name in ("pairs", "agree", "kappa", "95 %", "same", "different", "apart", "unsure"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        both, first, second, none = one.table
        interval = one.interval
        cells = [
            visible(", ".join(one.labellers), lines=False),
            f"{one.pairs:,}",
            f"{one.observed:.0%}" if one.pairs else "none",
            "none" if one.kappa is None else f"{one.kappa:.2f}",
            "" if interval is None else f"{interval[0]:.2f}-{interval[1]:.2f}",
            f"{both:,}",
            f"{none:,}",
            f"{first + second:,}",
            f"{one.unsure:,}",
        ]
        table.add_row(*map(Text, cells))
    console.print(table)
