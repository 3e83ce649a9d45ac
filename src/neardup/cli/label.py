"""``neardup label``: pairs of texts judged by people, in the browser."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import option, refuse_ignored, switch, with_options
from neardup.cli.options import (
    Content,
    Force,
    Html,
    Inputs,
    Json,
    Labeller,
    ReadOptions,
    RunOptions,
    check_nothing,
    check_outputs,
    chosen_content,
)
from neardup.cli.screen import count_text, grid, progress_bar, reading, say, say_notes, show_json, visible
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.evaluation.agreement import Agreement
    from neardup.labelling.exchange import Imported
    from neardup.labelling.queue import Pool
    from neardup.labels.store import LabelStore
    from neardup.recipe import Recipe

#: What has a say only where pairs are asked.
_ON_THE_PAGE = (
    *("candidate_rule", "vector", "title_column", "time_column", "pairs", "shared", "seed"),
    *("port", "no_browser", "threads", "memory", "quarantine"),
)


_QUEUE, _PAGE, _TABLES = "Which pairs are asked", "The page", "Labels as tables, without the page"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """Which pairs are asked, and how they are shown."""

    candidate_rule: Annotated[
        str | None,
        option("MEASURE>=NUMBER", "Pairs below it are not asked; jaccard(words:3) >= 0.1 by default.", _QUEUE),
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
    pairs: Annotated[int | None, option("NUMBER", "Stop after N answers of each labeller.", _QUEUE, min=1)] = None
    shared: Annotated[
        float,
        option(
            "SHARE",
            "Share of a labeller's pairs that others have judged too; for agreement.",
            _QUEUE,
            min=0,
            max=1,
        ),
    ] = 0.25
    seed: Annotated[int, option("NUMBER", "Random seed.", _QUEUE, min=0)] = 0

    @property
    def recipe(self) -> Recipe:
        """The candidate rule."""
        from neardup.classifier.classifier import CANDIDATE_RULE, parse_candidate_rule

        return parse_candidate_rule(
            CANDIDATE_RULE if self.candidate_rule is None else self.candidate_rule,
            content=chosen_content(self.html, self.content) or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """Where the page is."""

    port: Annotated[
        int, option("NUMBER", "Port on this machine; 0 for any that is free.", _PAGE, min=0, max=65_535)
    ] = 0
    no_browser: Annotated[bool, switch("--no-browser", "Print the link without opening a browser.", _PAGE)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What is done with labels in place of the page."""

    import_file: Annotated[
        str | None, option("FILE", "Import labels: id1,id2,label, perhaps labeller.", _TABLES, "--import")
    ] = None
    export: Annotated[str | None, option("FILE", "Write labels as CSV: id1,id2,label, by majority.", _TABLES)] = None
    each: Annotated[bool, switch("--each", "With --export: a row for each labeller.", _TABLES)] = False
    agreement: Annotated[bool, switch("--agreement", "Print how far labellers agree.", _TABLES)] = False

    @property
    def asked(self) -> bool:
        """Whether anything is to be done.

        Raises ``RecipeError`` if an option is missing the one that it belongs to.
        """
        if self.each and self.export is None:
            raise RecipeError("--each belongs to --export FILE; name a file, or leave it out")
        return self.import_file is not None or self.export is not None or self.agreement


def check_store(store: str, inputs: list[str]) -> None:
    """Refuse what cannot be a store of labels before the work; a new one is only made once there is something to keep.

    Raises ``NeardupError`` if it is something else, or cannot be made.
    """
    from neardup.documents.output import check_place
    from neardup.labels.store import labels_of

    if os.path.exists(store):
        labels_of(store)
    else:
        check_place(store, inputs)


@with_options
def label(
    inputs: Inputs,
    store: Annotated[
        str,
        option("FILE", "Where labels are kept: a SQLite file, created if missing.", show_default=False),
    ],
    read: ReadOptions,
    asking: QueueOptions,
    page: PageOptions,
    tables: TableOptions,
    running: RunOptions,
    labeller: Labeller = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Label pairs of texts in the browser: same or different.

    The page is served to this machine only, until Ctrl-C. Each answer is saved before the next pair appears.

    Pairs are chosen to teach the most: first spread over similarity, then where a model of the labels is unsure.

    train, compare and audit read the labels: --labels labels.db.
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
    stores = ("--store", store), ("--export", tables.export)
    check_outputs(inputs, *stores, force=force, checks={"--store": check_nothing, "--export": _check_export})

    _exchange(inputs, store, read, asking, tables, labeller=labeller, as_json=as_json)


def _serve(
    inputs: list[str],
    store: str,
    labeller: str | None,
    read: ReadOptions,
    asking: QueueOptions,
    page: PageOptions,
    running: RunOptions,
) -> None:
    from neardup.classifier.vector import Vector, vector_statistics
    from neardup.labelling.index import LabelIndex
    from neardup.labelling.queue import ActiveLearningQueue, Model, pool_of
    from neardup.labelling.server import PACKAGES, serve
    from neardup.labelling.session import Session
    from neardup.labels.store import LabelStore, checked_name
    from neardup.runtime import default_threads
    from neardup.service.server import check_packages

    name = None if labeller is None else checked_name(labeller)
    candidate_rule, vector = asking.recipe, Vector.parse(asking.vector)
    limits = running.limits
    check_packages("label", *PACKAGES, "sklearn")
    check_store(store, inputs)
    with ExitStack() as stack:
        corpus = stack.enter_context(read.open(inputs))
        with reading(corpus, candidate_rule) as report:
            pool, material = pool_of(
                corpus,
                candidate_rule,
                seed=asking.seed,
                title_column=asking.title_column or "",
                time_column=asking.time_column or "",
                progress=report,
                **limits,
            )
            labels = stack.enter_context(LabelStore(store))
            known = LabelIndex(labels, material)
            notes = known.check()
            statistics = vector_statistics(
                vector, corpus, content=candidate_rule.content, threads=limits["threads"], report=report
            )
        for note in notes:
            say(note)
        _say_pool(pool)
        model = stack.enter_context(
            closing(Model(pool, known, vector, statistics, threads=limits["threads"] or default_threads()))
        )
        session = Session(
            known, ActiveLearningQueue(pool, known, model, shared=asking.shared), labeller=name, goal=asking.pairs
        )
        serve(session, port=page.port, open_browser=not page.no_browser, tell=_tell, again=_tell_again)
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


def _check_export(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents import check_output

    if not name.endswith(".csv"):
        raise OutputError(f"{name} does not end in .csv, but labels are exported as CSV: name it so")
    check_output(name, inputs, force)


def _exchange(
    inputs: list[str],
    store: str,
    read: ReadOptions,
    asking: QueueOptions,
    tables: TableOptions,
    *,
    labeller: str | None,
    as_json: bool,
) -> None:
    """Take labels in, write them out, say how far labellers agree; in this order."""
    from neardup.evaluation.agreement import agreements
    from neardup.labelling.exchange import answers_of, export, take_in
    from neardup.labelling.index import LabelIndex
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
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not any(one.pairs for one in found):
        console.print("No two labellers have judged the same pair.")
        return
    table = grid("labellers", "pairs", "agree", "kappa", "95%", "same", "different", "apart", "unsure")
    table.columns[0].min_width = 12
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
