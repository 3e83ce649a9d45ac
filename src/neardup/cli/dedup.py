"""``neardup dedup``: remove the near-duplicates of a corpus."""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.command import MORE, option, refuse_ignored, switch, with_options
from neardup.cli.index import IndexBehind
from neardup.cli.options import (
    Against,
    ClassifierOptions,
    EngineOptions,
    Force,
    Inputs,
    Json,
    Keep,
    ReadOptions,
    RecipeOptions,
    ReportOptions,
    RunOptions,
    check_outputs,
    classifier_text,
    on_spark,
    opened_index,
    recipe_beside_index,
    say_if_foreign,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    lsh_text,
    reading,
    show_json,
    show_rows,
    size_text,
    stages_of,
    write_json,
)
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.features.reading import Progress
    from neardup.pipeline.result import Result
    from neardup.recipe import Recipe

_ONLY_WITH_KEPT = (
    ", only those of dropped documents with kept ones: there are more than --pairs-per-document allows to find all"
)


def _parse_most(text: str | float) -> float:
    """Return how many pairs a document may have; any number of them is infinity."""
    try:
        return math.inf if text == "all" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number; write it like 20, or all") from None


@with_options
def dedup(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: ClassifierOptions,
    read: ReadOptions,
    running: RunOptions,
    where: EngineOptions,
    reported: ReportOptions,
    output: Annotated[
        str | None,
        option(
            "FILE|FOLDER/",
            "Write the kept documents, in the format of the name; a folder gets a file for each input; - for stdout.",
            None,
            "--output",
            "-o",
        ),
    ] = None,
    duplicates: Annotated[
        str | None,
        option("FILE", "Write a table of the dropped documents: dropped, keeper, similarity, family."),
    ] = None,
    summary: Annotated[str | None, option("FILE", "Write counts, times, memory and the recipe as JSON.")] = None,
    against: Against = None,
    add: Annotated[
        bool, switch("--add", "Add the kept documents to the index of --against, in one step.", MORE)
    ] = False,
    annotate: Annotated[
        bool, switch("--annotate", "Write dropped documents to -o, too, with columns that give the verdict.", MORE)
    ] = False,
    annotate_prefix: Annotated[str, option("PREFIX", "Prefix of the columns that --annotate adds.", MORE)] = "neardup_",
    within: Annotated[
        str | None,
        option(
            "COLUMN",
            "Compare only documents with the same value there, such as language; those without a value are a group.",
            MORE,
        ),
    ] = None,
    prefer: Annotated[
        str | None,
        option(
            "COLUMN=a,b,c", "Of matches keep one with an earlier of these values; --keep decides between equals.", MORE
        ),
    ] = None,
    keep: Keep = None,
    time_column: Annotated[
        str | None,
        option("NAME", "Column of times, for newest and oldest and for classifiers.", MORE),
    ] = None,
    pairs_per_document: Annotated[
        float,
        option(
            "NUMBER|all",
            "Find all pairs up to N per document (and a million); beyond that, only pairs of dropped with kept "
            "documents, which decide what is kept.",
            MORE,
            parser=_parse_most,
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
    by_time = keep in ("newest", "oldest") or decided.classifier is None or reported.report is not None
    classifier = decided.loaded(time_column, also_for=by_time, titles=reported.report is not None)
    index = opened_index(against)
    recipe = recipe_beside_index(recipe_options, classifier, index, keep=keep)
    behind = IndexBehind(index, add=add, dry_run=dry_run)
    by_time = recipe.keep in ("newest", "oldest") or reported.report is not None
    if time_column is not None and classifier is None and not by_time:
        raise RecipeError(f"--time-column is for --keep newest and oldest, but keep is {recipe.keep!r}: drop one")
    margin = reported.margin(recipe)

    from neardup.keep.order import preference

    trusted = preference(prefer)
    wanted = reported.wanted(title_column=decided.title_column, time_column=time_column)
    limits = running.limits
    engine = where.chosen(
        recipe,
        **{"--threads": limits["threads"], "--memory": limits["memory"]},
        **{"--classifier": classifier, "--report": reported.report},
        **{"--within": within, "--prefer": prefer},
    )
    most = None if math.isinf(pairs_per_document) else pairs_per_document
    written_too = (
        ("-o", output),
        ("--duplicates", duplicates),
        ("--quarantine", read.quarantine),
        ("--summary", summary),
    )
    sources = [*inputs, *(against or ())]
    check_outputs(sources, *(() if dry_run else written_too), ("--report", reported.report), force=force)

    from neardup.keep.order import order_column
    from neardup.pipeline.pipeline import run

    column, kernels = order_column(recipe, time_column), behind.kernels if engine is None else None
    with ExitStack() as held:
        held.enter_context(behind)
        corpus = held.enter_context(
            read.open(inputs, order_column=column, write=not dry_run, against=against, index=index)
        )
        if output is not None and not dry_run:
            corpus.check_folder(output)
        stages = stages_of(recipe, margin=margin is not None, write=not dry_run) if engine is None else ()
        with reading(corpus, recipe, kernels=kernels, stages=stages) as report, ExitStack() as stack:
            if engine is not None:
                records = read.quarantine is not None and not dry_run
                more = {"pairs_per_document": most, "index": behind.index}
                result = stack.enter_context(on_spark(corpus, recipe, engine, report, records=records, **more))
            else:
                behind.look_up(corpus, limits["threads"], report, margin=margin)
                result = run(
                    corpus,
                    recipe,
                    classifier=classifier,
                    progress=report,
                    pairs_per_document=most,
                    margin=margin,
                    within=within,
                    prefer=trusted,
                    **limits,
                )
            written: list[str] = []
            behind.add_kept(corpus, result, limits["threads"], report)
            with interruptible(written):
                if not dry_run:
                    prefix = annotate_prefix if annotate else None
                    _write(result, output or "", prefix, duplicates, summary, written, force=force, report=report)
                if reported.report is not None:
                    result.report(reported.report, force=force, **wanted)
                behind.commit()
    found = result.summary
    if as_json:
        show_json(found)
    places = {} if dry_run else {"kept": output, "duplicates": duplicates, "summary": summary}
    places |= {} if dry_run else {"quarantine": read.quarantine}
    _show(found, recipe, places | {"report": reported.report}, limits["memory"])
    say_if_foreign(classifier, found)


def _write(
    result: Result,
    output: str,
    prefix: str | None,
    duplicates: str | None,
    summary: str | None,
    written: list[str],
    *,
    force: bool,
    report: Progress | None,
) -> None:
    """Write all tables, the documents first; ``written`` gets the names of what is there already.

    With a prefix they are all documents, with columns that say what became of each.
    """
    from neardup.documents import open_writer

    write, which, done = result.write, "kept", 0
    if prefix is not None:
        write, which = partial(result.write_annotated, prefix=prefix), "documents"
    total = result.summary[which] if report is not None else None

    def progress(rows: int) -> None:
        nonlocal done
        done += rows
        if report is not None:
            report("write", done, total)

    if duplicates is None:
        write(output, force=force, progress=progress)
        written.append(output)
    else:
        table = result.duplicates()
        # Filled before and put in its place after the kept documents: a full disk then leaves neither.
        with open_writer(duplicates, table.schema, force) as writer:
            writer.write(table)
            write(output, force=force, progress=progress)
            written.append(output)
        written.append(duplicates)
    if summary is not None:
        write_json(result.summary, summary)
        written.append(summary)


def _undecidable(number: int, recipe: dict[str, Any]) -> str:
    """Return what to say of documents without features."""
    if not number:
        return ""
    least = recipe["signature"].partition(":")[2]
    what = f"fewer than {least} terms of the lexicon" if recipe["signature"].startswith("imatch") else "no features"
    return f"{count_text(number, 'document')} with {what}: too little text to compare; kept"


def _beyond(peak: int, budget: int | None) -> str:
    """Return that a run took more memory than it was given, of which the program's own part cannot be less."""
    if budget is None or peak <= budget:
        return ""
    from neardup.runtime import BASE

    return f", more than --memory {size_text(budget)}; the program alone takes up to {size_text(BASE)}"


def _reference_text(reference: dict[str, Any] | None) -> str:
    if reference is None:
        return ""
    if not reference["documents"]:
        return "it holds no document, so nothing was compared with it"
    return f"{count_text(reference['documents'], 'document')}; {reference['dropped']:,} dropped for one of them"


def _show(found: dict[str, Any], chosen: Recipe, places: dict[str, str | None], budget: int | None) -> None:
    """Print the summary for people to stderr."""
    recipe, stages = found["recipe"], found["stages"]
    texts = "contents" if recipe["content"] else "texts"
    times = ", ".join(f"{stage['name']} {stage['wall_s']:.1f} s" for stage in stages)
    peak = max((stage.get("peak_memory_bytes", 0) for stage in stages), default=0)
    families = f"{found['families']:,}, the largest of {found['largest_family']:,} documents"
    rows = {
        "reference": _reference_text(found.get("reference")),
        "exact copies": f"{found['exact_copies']:,}, {texts} that are equal byte for byte",
        "families": families if found["families"] else "none",
        "pairs": f"{found['pairs']:,}" + ("" if found["all_pairs"] else _ONLY_WITH_KEPT),
        "saved": f"{size_text(found['bytes_saved'])} of {size_text(found['text_bytes'])} of text",
        "rejected": ", ".join(f"{reason}: {number:,}" for reason, number in sorted(found["rejected"].items())),
        "undecidable": _undecidable(found["undecidable"], recipe),
        "search": lsh_text(found["search"]),
        "classifier": classifier_text(found),
        "recipe": f"{recipe['name']}: {chosen.in_words()}, keep {recipe['keep']}; fingerprint {found['fingerprint']}",
        "time": f"{sum(stage['wall_s'] for stage in stages):.1f} s ({times})"
        + (f"; peak memory {size_text(peak)}{_beyond(peak, budget)}" if peak else ""),
    }
    rows |= {name: str(found[name]) for name in ("within", "prefer") if name in found}
    if found.get("without_keep_value"):
        rows["keep"] = f"{count_text(found['without_keep_value'], 'document')} without a value to go by, put last"
    rows |= {name: "stdout" if place == "-" else place or "" for name, place in places.items()}
    head = f"{count_text(found['documents'], 'document')}: {found['kept']:,} kept, {found['dropped']:,} dropped"
    show_rows(head, rows)
