"""``neardup dedup``: remove the near-duplicates of a corpus."""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.command import MORE, option, output_option, refuse_ignored, switch, with_options
from neardup.cli.options import (
    Against,
    CorpusClassifierOptions,
    EngineOptions,
    Force,
    Inputs,
    Json,
    Keep,
    ReadOptions,
    RecipeOptions,
    ReportOptions,
    RunOptions,
)
from neardup.cli.outputs import check_outputs, write_json, written_files
from neardup.cli.running import IndexReference, describe_classifier, find_index, run_recipe, warn_if_outside_domain
from neardup.cli.screen import describe_lsh, print_json, print_summary
from neardup.errors import OutputError, RecipeError
from neardup.pages.numbers import format_count, format_size

if TYPE_CHECKING:
    from neardup.features.reading import Progress
    from neardup.pipeline.result import Result
    from neardup.recipe import Recipe


def _parse_pairs_per_document(text: str | float) -> float:
    """Return the number of pairs that a document may have; infinity for ``all``."""
    try:
        return math.inf if text == "all" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number; write it like 20, or all") from None


@with_options
def dedup(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    classifier_options: CorpusClassifierOptions,
    read_options: ReadOptions,
    run_options: RunOptions,
    engine_options: EngineOptions,
    report_options: ReportOptions,
    output: Annotated[
        str | None,
        output_option(
            "Write the kept documents, in the format of the name; a folder gets a file for each input; - for stdout.",
            "FILE|FOLDER/",
        ),
    ] = None,
    duplicates: Annotated[
        str | None, option("FILE", "Write a table of the dropped documents: dropped, keeper, similarity, family.")
    ] = None,
    summary: Annotated[str | None, option("FILE", "Write counts, times, memory and the recipe as JSON.")] = None,
    against: Against = None,
    add: Annotated[
        bool, switch("--add", "Add the kept documents to the index of --against, in one step.", MORE)
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
            show_default="20",
        ),
    ] = 20.0,
    dry_run: Annotated[bool, switch("--dry-run", "Only count; write nothing but the report.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Remove the near-duplicates of a corpus.

    Each dropped document matches a kept one, and no two kept ones match.
    """
    if output is None and not dry_run:
        raise OutputError("no output is named: give one with -o FILE, or only count with --dry-run")
    if not annotate:
        refuse_ignored(("annotate_prefix",), "names columns of --annotate: give that, too, or leave it out")
    if as_json and output == "-" and not dry_run:
        raise OutputError("-o - and --json both want stdout: write one of them to a file (--summary FILE)")
    has_report = report_options.report is not None
    times_used = keep in ("newest", "oldest") or classifier_options.classifier is None or has_report
    classifier = classifier_options.load_for_corpus(time_column, times_used=times_used, titles_used=has_report)
    index = find_index(against)
    recipe = recipe_options.resolve(classifier, index, keep=keep)
    reference = IndexReference(index, add=add, dry_run=dry_run)
    if time_column is not None and classifier is None and recipe.keep not in ("newest", "oldest") and not has_report:
        raise RecipeError(f"--time-column is for --keep newest and oldest, but keep is {recipe.keep!r}: leave it out")
    margin = report_options.margin(recipe)

    from neardup.keep.order import order_column, parse_preference

    preferred = parse_preference(prefer)
    engine = engine_options.spark_engine(recipe, run_options.threads)
    tables = {
        "-o": output,
        "--duplicates": duplicates,
        "--quarantine": read_options.quarantine,
        "--summary": summary,
    }
    outputs = ({} if dry_run else tables) | {"--report": report_options.report}
    check_outputs([*inputs, *(against or ())], outputs, force=force)

    with ExitStack() as stack:
        stack.enter_context(reference)
        corpus = stack.enter_context(
            read_options.open(
                inputs,
                order_column=order_column(recipe, time_column),
                write=not dry_run,
                against=against if index is None else None,
            )
        )
        if output is not None and not dry_run:
            corpus.check_folder(output)
        result, progress = stack.enter_context(
            run_recipe(
                corpus,
                recipe,
                reference,
                engine,
                run_options,
                keep_rejected=read_options.quarantine is not None and not dry_run,
                write=not dry_run,
                classifier=classifier,
                pairs_per_document=None if math.isinf(pairs_per_document) else pairs_per_document,
                margin=margin,
                within=within,
                prefer=preferred,
            )
        )
        reference.add_kept(corpus, result, run_options.threads, progress)
        with written_files() as written:
            if not dry_run:
                prefix = annotate_prefix if annotate else None
                _write(result, output or "", prefix, duplicates, summary, written, force=force, progress=progress)
            if report_options.report is not None:
                page_options = report_options.page_options(
                    title_column=classifier_options.title_column, time_column=time_column
                )
                result.report(report_options.report, force=force, **page_options)
            reference.commit()
    if as_json:
        print_json(result.summary)
    names = {option.removeprefix("--"): name for option, name in outputs.items() if option != "-o"}
    places = ({} if dry_run else {"kept": output}) | names
    _print_summary(result.summary, recipe, places, run_options.memory)
    warn_if_outside_domain(classifier, result.summary)


def _write(
    result: Result,
    output: str,
    prefix: str | None,
    duplicates: str | None,
    summary: str | None,
    written: list[str],
    *,
    force: bool,
    progress: Progress | None,
) -> None:
    """Write all tables, the documents first, and append their names to ``written``.

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

    if duplicates is None:
        write(output, force=force, progress=add_progress)
        written.append(output)
    else:
        table = result.duplicates()
        # Filled before the kept documents and put in place after them: a full disk then leaves neither.
        with open_writer(duplicates, table.schema, force) as writer:
            writer.write(table)
            write(output, force=force, progress=add_progress)
            written.append(output)
        written.append(duplicates)
    if summary is not None:
        write_json(result.summary, summary)
        written.append(summary)


def _describe_undecidable(count: int, recipe: dict[str, Any]) -> str:
    """Return why documents without features are kept; empty if there are none."""
    if not count:
        return ""
    minimum = recipe["signature"].partition(":")[2]
    reason = f"fewer than {minimum} terms of the lexicon" if recipe["signature"].startswith("imatch") else "no features"
    return f"{format_count(count, 'document')} with {reason}: too little text to compare; kept"


def _describe_excess(peak: int, memory: int | None) -> str:
    """Return that a run exceeded its memory limit, and what the program itself needs; empty if it did not."""
    if memory is None or peak <= memory:
        return ""
    from neardup.runtime import PROGRAM_BYTES

    return f", more than --memory {format_size(memory)}; the program alone takes up to {format_size(PROGRAM_BYTES)}"


def _describe_reference(reference: dict[str, Any] | None) -> str:
    if reference is None:
        return ""
    if not reference["documents"]:
        return "it has no documents, so nothing was compared with it"
    return f"{format_count(reference['documents'], 'document')}; {reference['dropped']:,} dropped as matches"


def _print_summary(summary: dict[str, Any], recipe: Recipe, places: dict[str, str | None], memory: int | None) -> None:
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
        "rejected": ", ".join(f"{reason}: {number:,}" for reason, number in sorted(summary["rejected"].items())),
        "little text": _describe_undecidable(summary["undecidable"], values),
        "search": describe_lsh(summary["search"]),
        "classifier": describe_classifier(summary),
        "recipe": f"{values['name']}: {recipe.in_words()}, keep {values['keep']}; fingerprint {summary['fingerprint']}",
        "time": f"{sum(stage['wall_s'] for stage in stages):.1f} s ({times})"
        + (f"; peak memory {format_size(peak)}{_describe_excess(peak, memory)}" if peak else ""),
    }
    rows |= {name: str(summary[name]) for name in ("within", "prefer") if name in summary}
    if summary.get("without_keep_value"):
        rows["keep"] = (
            f"{format_count(summary['without_keep_value'], 'document')} without a value to compare, placed last"
        )
    rows |= {name: "stdout" if place == "-" else place or "" for name, place in places.items()}
    heading = (
        f"{format_count(summary['documents'], 'document')}: {summary['kept']:,} kept, {summary['dropped']:,} dropped"
    )
    print_summary(heading, rows)
