"""``neardup dedup``: remove the near-duplicates of a corpus; ``neardup pairs``: list every pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from neardup.cli import screen
from neardup.cli.command import MORE, option, output_option, refuse_ignored, switch
from neardup.cli.options import (
    Against,
    CorpusClassifierOptions,
    DropBy,
    DropShare,
    EngineOptions,
    Force,
    Inputs,
    Json,
    Keep,
    ReadOptions,
    RecipeOptions,
    ReportOptions,
    RunOptions,
    TimeColumn,
    find_index,
)
from neardup.errors import OutputError, RecipeError
from neardup.pages.numbers import format_count, format_size

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.documents import Corpus
    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex
    from neardup.index.writer import IndexWriter
    from neardup.pipeline.result import Result
    from neardup.recipe import Recipe
    from neardup.spark.engine import Engine


@dataclass(frozen=True, kw_only=True)
class SearchOptions(EngineOptions, RunOptions, ReadOptions, CorpusClassifierOptions, RecipeOptions):
    """What documents are compared by, how they are read, and where the search runs."""

    @contextmanager
    def run(
        self,
        corpus: Corpus,
        recipe: Recipe,
        index: DiskIndex | None,
        engine: Engine | None,
        *,
        write: bool,
        columns: bool = False,
        pairs_per_document: float | None = None,
        margin: float | None = None,
        without_known: bool = False,
        strict_ids: bool = False,
        **memory_options: Any,
    ) -> Iterator[tuple[Result, Progress | None]]:
        """Give the result of a recipe on a corpus, from Spark if there is such an engine, and the progress bar.

        ``index`` is the reference, if it is one; ``write`` says whether documents are written inside the block, and
        ``columns`` whether to print which columns are used; the
        other parameters are those of ``pipeline.run``.
        """
        if engine is not None:
            from neardup.spark.engine import run_on_spark

            if without_known and index is not None:
                index.check_none_known(corpus)
            with (
                screen.reading_progress(corpus, recipe, columns=columns) as progress,
                run_on_spark(
                    corpus,
                    recipe,
                    engine,
                    progress=progress,
                    records=corpus.quarantine is not None,
                    pairs_per_document=pairs_per_document,
                    index=index,
                ) as result,
            ):
                yield result, progress
            return
        from neardup.pipeline.pipeline import run

        stages = screen.stage_names(recipe, margin=margin is not None, write=write)
        with screen.reading_progress(corpus, recipe, stages=stages, columns=columns) as progress:
            if index is not None:
                # Pairs beyond the threshold may be of any document.
                everything = margin is not None
                index.set_as_reference(
                    corpus,
                    all_documents=everything,
                    without_known=without_known,
                    strict_ids=strict_ids,
                    threads=self.threads,
                    progress=progress,
                )
            result = run(
                corpus,
                recipe,
                progress=progress,
                pairs_per_document=pairs_per_document,
                margin=margin,
                **self.limits,
                **memory_options,
            )
            yield result, progress


def _parse_pairs_per_document(text: str | float) -> float:
    """Return the number of pairs that a document may have; infinity for ``all``."""
    try:
        return math.inf if text == "all" else float(text)
    except ValueError:
        raise RecipeError(f"{text!r} is not a number; write it like 20, or all") from None


def dedup(
    inputs: Inputs,
    options: SearchOptions,
    report_options: ReportOptions,
    output: Annotated[
        str | None,
        output_option(
            "Write the kept documents. The name decides the format; a folder gets a file for each input; - is stdout.",
            "FILE|FOLDER/",
        ),
    ] = None,
    duplicates: Annotated[
        str | None,
        option("FILE", "Write a table of the dropped documents. Its columns: dropped, keeper, similarity, family."),
    ] = None,
    summary: Annotated[
        str | None, option("FILE", "Write counts, times and memory as JSON. Also the recipe, with its fingerprint.")
    ] = None,
    against: Against = None,
    add: Annotated[
        bool, switch("--add", "Add the kept documents to the index of --against, in one step.", MORE)
    ] = False,
    strict_ids: Annotated[
        bool,
        switch("--strict-ids", "Refuse documents that --add has added before; by default they are kept again.", MORE),
    ] = False,
    annotate: Annotated[
        bool, switch("--annotate", "Write all documents to -o, with columns that give the verdict.", MORE)
    ] = False,
    annotate_prefix: Annotated[str, option("PREFIX", "Prefix of the columns that --annotate adds.", MORE)] = "neardup_",
    within: Annotated[
        str | None,
        option(
            "COLUMN",
            "Compare only documents with the same value in this column, such as language; those without a value form "
            "one group.",
            MORE,
        ),
    ] = None,
    prefer: Annotated[
        str | None,
        option(
            "COLUMN=a,b,c",
            "Of matching documents, keep the one whose value comes first in this list; --keep decides ties.",
            MORE,
        ),
    ] = None,
    drop_by: DropBy = None,
    drop_share: DropShare = "1",
    keep: Keep = None,
    time_column: Annotated[
        str | None, option("NAME", "Column of times, for newest and oldest and for classifiers.", MORE)
    ] = None,
    pairs_per_document: Annotated[
        float,
        option(
            "NUMBER|all",
            "Find all pairs up to N per document (and a million); beyond that, only pairs of a dropped and a kept "
            "document, which decide what is kept.",
            MORE,
            parser=_parse_pairs_per_document,
        ),
    ] = 20.0,
    dry_run: Annotated[bool, switch("--dry-run", "Only count; write nothing but the report.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Remove the near-duplicates of a corpus.

    Each dropped document matches a kept one, and no two kept ones match.
    """
    _check_outputs(output, dry_run=dry_run, as_json=as_json)
    _refuse_ignored(add=add, annotate=annotate, drop_by=drop_by, within=within)
    has_report = report_options.report is not None
    times_used = keep in ("newest", "oldest") or options.classifier is None or has_report
    classifier = options.load_for_corpus(time_column, times_used=times_used, titles_used=has_report)
    index = find_index(against)
    recipe = options.resolve(classifier, index, keep=keep)
    if add:
        _check_addition(index, dry_run=dry_run)
    if time_column is not None and classifier is None and recipe.keep not in ("newest", "oldest") and not has_report:
        raise RecipeError(f"--time-column is for --keep newest and oldest, but keep is {recipe.keep!r}: leave it out")
    margin = report_options.margin(recipe)

    from neardup.documents.output import placed_together
    from neardup.keep.groups import parse_share
    from neardup.keep.order import order_column, parse_preference

    parse_share(drop_share)
    preferred = parse_preference(prefer)
    engine = options.spark_engine(recipe, options.threads)
    tables = {"-o": output, "--duplicates": duplicates, "--quarantine": options.quarantine, "--summary": summary}
    outputs = ({} if dry_run else tables) | {"--report": report_options.report}
    screen.check_outputs([*inputs, *(against or ())], outputs, force=force)

    with ExitStack() as writing, screen.written_files() as written:
        writer: IndexWriter | None = None
        if add and index is not None:
            from neardup.index.writer import open_writer

            writer = writing.enter_context(open_writer(index.path))
            # Another writer may have changed the index in the meantime.
            index = find_index(against)
        # The quarantine file of the corpus is one of the outputs.
        with placed_together(written), ExitStack() as stack:
            corpus = stack.enter_context(
                options.open(
                    inputs,
                    order_column=order_column(recipe, time_column),
                    write=not dry_run,
                    against=against if index is None else None,
                )
            )
            if output is not None and not dry_run:
                corpus.check_folder(output)
            result, progress = stack.enter_context(
                options.run(
                    corpus,
                    recipe,
                    index,
                    engine,
                    write=not dry_run,
                    classifier=classifier,
                    pairs_per_document=None if math.isinf(pairs_per_document) else pairs_per_document,
                    margin=margin,
                    within=within,
                    prefer=preferred,
                    drop_by=drop_by,
                    drop_share=drop_share,
                    without_known=add,
                    strict_ids=strict_ids,
                )
            )
            if writer is not None:
                writer.add(
                    corpus, keep=result.kept_rows, strict_ids=strict_ids, threads=options.threads, progress=progress
                )
            if not dry_run:
                prefix = annotate_prefix if annotate else None
                _write(result, output or "", prefix, duplicates, summary, force=force, progress=progress)
            if report_options.report is not None:
                page_options = report_options.page_options(title_column=options.title_column, time_column=time_column)
                result.report(report_options.report, force=force, **page_options)
        # Last of all, so that a killed run can be repeated.
        _commit(writer, index)
    if as_json:
        screen.print_json(result.summary)
    names = {option.removeprefix("--"): name for option, name in outputs.items() if option != "-o"}
    places = ({} if dry_run else {"kept": output}) | names
    _print_summary(result.summary, corpus, recipe, places, options.memory)
    _warn_if_outside_domain(classifier, result.summary)


def _refuse_ignored(*, add: bool, annotate: bool, drop_by: str | None, within: str | None) -> None:
    """Refuse options that mean nothing without another one, or beside it."""
    if not annotate:
        refuse_ignored(("annotate_prefix",), "names columns of --annotate: give that, too, or leave it out")
    if not add:
        refuse_ignored(("strict_ids",), "is for --add: give that, too, or leave it out")
    if drop_by is None:
        refuse_ignored(("drop_share",), "is for --drop-by: give that, too, or leave it out")
    else:
        refuse_ignored(("pairs_per_document",), "limits the pairs, and --drop-by finds all: leave out one of the two")
    if within is not None:
        refuse_ignored(("pairs_per_document",), "limits the pairs, and --within finds all: leave out one of the two")


def _check_outputs(output: str | None, *, dry_run: bool, as_json: bool) -> None:
    if output is None and not dry_run:
        raise OutputError("no output is named: give one with -o FILE, or only count with --dry-run")
    if as_json and output == "-" and not dry_run:
        raise OutputError("-o - and --json both want stdout: write one of them to a file (--summary FILE)")


def _check_addition(index: DiskIndex | None, *, dry_run: bool) -> None:
    if index is None:
        raise RecipeError("--add needs an index as reference: name one with --against INDEX, or leave --add out")
    if dry_run:
        raise OutputError("--add writes to the index, and --dry-run writes nothing: leave out one of the two")


def _commit(writer: IndexWriter | None, index: DiskIndex | None) -> None:
    """Make the documents that were added to an index count, if there is one to add to."""
    if writer is None or index is None:
        return
    writer.commit()
    total = writer.manifest.documents
    added = format_count(total - len(index), "document")
    screen.print_message(f"{added} added to {index.path}, which now has {format_count(total, 'document')}")


def _write(
    result: Result,
    output: str,
    prefix: str | None,
    duplicates: str | None,
    summary: str | None,
    *,
    force: bool,
    progress: Progress | None,
) -> None:
    """Write all tables, the documents first.

    With a prefix all documents are written, with columns that give their verdicts.
    """
    from neardup.documents import open_writer

    write, count_name, done = result.write, "kept", 0
    if prefix is not None:
        write, count_name = partial(result.write_annotated, prefix=prefix), "documents"
    total = result.summary[count_name] if progress is not None else None

    def add_progress(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress("write", done, total)

    write(output, force=force, progress=add_progress)
    if duplicates is not None:
        table = result.duplicates()
        with open_writer(duplicates, table.schema, force) as writer:
            writer.write(table)
    if summary is not None:
        screen.write_json(result.summary, summary)


def _describe_reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {number:,}" for reason, number in sorted(counts.items()))


def _describe_undecidable(count: int, recipe: dict[str, Any]) -> str:
    if not count:
        return ""
    minimum = recipe["signature"].partition(":")[2]
    reason = f"fewer than {minimum} terms of the lexicon" if recipe["signature"].startswith("imatch") else "no features"
    return f"{format_count(count, 'document')} with {reason}: too little text to compare; kept"


def _describe_excess(peak: int, memory: int | None) -> str:
    if memory is None or peak <= memory:
        return ""
    from neardup.runtime import PROGRAM_BYTES

    return f", more than --memory {format_size(memory)}; the program alone takes up to {format_size(PROGRAM_BYTES)}"


def _describe_reference(reference: dict[str, Any] | None) -> str:
    if reference is None:
        return ""
    if not reference["documents"]:
        return "it has no documents, so nothing was compared with it"
    known = f"; {reference['known']:,} more were known and are kept again" if reference.get("known") else ""
    return f"{format_count(reference['documents'], 'document')}; {reference['dropped']:,} dropped as matches{known}"


def _describe_groups(groups: dict[str, Any] | None) -> str:
    if groups is None:
        return ""
    named = [
        f"{one['group']} ({one['matched']:,} of {one['documents']:,} match {one['of']})"
        for one in groups["largest_dropped"]
    ]
    shown = "; ".join(screen.printable_line(name) for name in named[:3])
    more = f": {shown}{'; ...' if groups['dropped'] > 3 else ''}" if named else ""
    return f"{groups['dropped']:,} of {groups['groups']:,} values of {groups['column']} dropped whole{more}"


def _print_summary(
    summary: dict[str, Any], corpus: Corpus, recipe: Recipe, places: dict[str, str | None], memory: int | None
) -> None:
    values, stages = summary["recipe"], summary["stages"]
    texts = "contents" if values["content"] else "texts"
    times = ", ".join(f"{stage['name']} {stage['wall_s']:.1f} s" for stage in stages)
    peak = max((stage.get("peak_memory_bytes", 0) for stage in stages), default=0)
    families = f"{summary['families']:,}, the largest of {summary['largest_family']:,} documents"
    partial_pairs = ", only those of a dropped and a kept document: all would exceed --pairs-per-document"
    rows = {
        "reference": _describe_reference(summary.get("reference")),
        "exact copies": f"{summary['exact_copies']:,}, {texts} that are equal byte for byte",
        "families": families if summary["families"] else "none",
        "pairs": f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else partial_pairs),
        "saved": f"{format_size(summary['bytes_saved'])} of {format_size(summary['text_bytes'])} of text",
        "rejected": _describe_reasons(summary["rejected"]),
        "failed pages": _describe_reasons(summary.get("failed_pages", {})),
        "little text": _describe_undecidable(summary["undecidable"], values),
        "search": screen.describe_lsh(summary["search"]),
        "classifier": _describe_classifier(summary),
        "columns": screen.describe_columns(corpus),
        "recipe": f"{values['name']}: {recipe.in_words()}, keep {values['keep']}; fingerprint {summary['fingerprint']}",
        "time": f"{sum(stage['wall_s'] for stage in stages):.1f} s ({times})"
        + (f"; peak memory {format_size(peak)}{_describe_excess(peak, memory)}" if peak else ""),
    }
    rows |= {name: str(summary[name]) for name in ("within", "prefer") if name in summary}
    rows["groups"] = _describe_groups(summary.get("drop_by"))
    if summary.get("without_keep_value"):
        rows["keep"] = (
            f"{format_count(summary['without_keep_value'], 'document')} without a value to compare, placed last"
        )
    rows |= {name: "stdout" if place == "-" else place or "" for name, place in places.items()}
    heading = (
        f"{format_count(summary['documents'], 'document')}: {summary['kept']:,} kept, {summary['dropped']:,} dropped"
    )
    screen.print_summary(heading, rows)


def _describe_classifier(summary: Mapping[str, Any]) -> str:
    if "classifier" not in summary:
        return ""
    details = summary["classifier"]
    cut = screen.describe_cut(
        *(details[name] for name in ("fingerprint", "cut", "training_precision", "training_recall"))
    )
    outside = ""
    if details["outside"] is not None and details["candidates"]:
        outside = f", {details['outside'] / details['candidates']:.0%} are unlike its training"
    return f"{cut}; {details['passed']:,} of {format_count(details['candidates'], 'candidate')} pass{outside}"


def _warn_if_outside_domain(classifier: Classifier | None, summary: Mapping[str, Any]) -> None:
    """Print that the documents of a run are unlike a classifier's training, if the run went on nevertheless."""
    details = summary.get("classifier")
    if classifier is None or details is None or details["outside"] is None:
        return
    from neardup.classifier.domain import DomainCounts

    if complaint := classifier.domain_error(DomainCounts(details["candidates"], details["outside"], details["passed"])):
        screen.print_warning(f"{complaint}; its training figures do not hold here")


def pairs(
    inputs: Inputs,
    options: SearchOptions,
    output: Annotated[
        str | None,
        output_option(
            "A table of left, right and similarity, in the format of the name; with a classifier also score and "
            "evidence; - for stdout."
        ),
    ] = None,
    print_pairs: Annotated[bool, switch("--print", "Print the pairs on stdout, separated by tabs.")] = False,
    against: Against = None,
    time_column: TimeColumn = None,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print the pairs on stdout as JSON lines.")] = False,
) -> None:
    """List every pair at or above the threshold.

    With --against, pairs with reference documents are listed, too; the column right_from says where right is from.
    """
    file = None if output == "-" else output
    to_stdout = output == "-" or print_pairs or as_json
    if file is None and not to_stdout:
        raise OutputError("no output is named: give one with -o FILE, or print the pairs with --print")
    classifier = options.load_for_corpus(time_column)
    index = find_index(against)
    recipe = options.resolve(classifier, index).changed(keep="first")
    engine = options.spark_engine(recipe, options.threads)
    screen.check_outputs([*inputs, *(against or ())], {"-o": file, "--quarantine": options.quarantine}, force=force)

    from neardup.documents import open_writer
    from neardup.documents.output import placed_together

    with (
        screen.written_files() as written,
        placed_together(written),
        options.open(inputs, against=against if index is None else None) as corpus,
    ):
        run = options.run(corpus, recipe, index, engine, write=False, columns=True, classifier=classifier)
        with run as (result, _):
            if file is not None:
                with open_writer(file, result.pairs.schema(), force) as writer:
                    for table in result.pairs.chunks():
                        writer.write(table)
        if to_stdout:
            screen.print_rows(result.pairs.chunks(full=as_json), result.pairs.schema().names, as_json=as_json)
    place = f", written to {file}" if file is not None else ""
    documents = format_count(result.summary["documents"], "document")
    if against:
        documents += f", and with {result.summary['reference']['documents']:,} of the reference"
    screen.print_message(f"{format_count(len(result.pairs), 'pair')} among {documents}{place}")
    if lsh := screen.describe_lsh(result.summary["search"]):
        screen.print_message(lsh)
    if classifier is not None:
        screen.print_message(f"classifier {_describe_classifier(result.summary)}")
    _warn_if_outside_domain(classifier, result.summary)
