"""``neardup train``: a decision learned from labelled pairs, and what it is worth."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from neardup.cli.choices import Content, Html, chosen_content
from neardup.cli.numbers import parse_number, whole_number
from neardup.cli.options import (
    LABELS_PANEL,
    Force,
    IgnoreUnknown,
    Inputs,
    Json,
    LabelColumn,
    Only,
    Positive,
    ReadOptions,
    check_outputs,
    with_options,
)
from neardup.cli.screen import (
    interruptible,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_set_aside,
    show_json,
)
from neardup.errors import RecipeError

_LEARNED, _TRAINING = "What is learned", "Training"


@with_options
def train(
    inputs: Inputs,
    labels: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=LABELS_PANEL,
            help="Labelled pairs (id1,id2,label) as .csv, .tsv or .jsonl, or what neardup label stores.",
        ),
    ],
    read: ReadOptions,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where the decision goes, such as decision.neardup."),
    ] = None,
    label_column: LabelColumn = None,
    positive: Positive = "1",
    only: Only = None,
    ignore_unknown: IgnoreUnknown = False,
    vector: Annotated[
        str,
        typer.Option(
            metavar="MEASURES",
            rich_help_panel=_LEARNED,
            help="The measures: default, cheap, short (for sentences and headlines), terms-svm, terms-svm-sentence, or "
            "a list of these and of measures: 'short, jaccard(words:4), cosine(terms:64:tfidf), title'.",
        ),
    ] = "default",
    net: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE>=NUMBER",
            rich_help_panel=_LEARNED,
            help="Pairs below it are never looked at, by default jaccard(words:3) >= 0.1.",
        ),
    ] = None,
    html: Html = False,
    content: Content = None,
    title_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_LEARNED, help="Column of titles; found by itself when obvious."),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_LEARNED, help="Column of times, for the measure hours_apart."),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_TRAINING,
            help="linear, rbf, or both: then linear unless rbf is clearly better.",
        ),
    ] = "both",
    folds: Annotated[
        str,
        typer.Option(metavar="NUMBER", rich_help_panel=_TRAINING, help="Parts of the labels; each is judged once."),
    ] = "5",
    seed: Annotated[str, typer.Option(metavar="NUMBER", rich_help_panel=_TRAINING, help="Of what is shuffled.")] = "0",
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_TRAINING,
            help="Threads that read and measure; all processors by default. Machines are trained in one.",
        ),
    ] = None,
    summary: Annotated[
        str | None, typer.Option(metavar="FILE", help="All figures and all pairs judged wrongly, as JSON.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn from labelled pairs what a near-duplicate is: a support vector machine on several measures.

    The figures are of pairs that the machine judging them had not seen, nor any document of them.

    Without -o nothing is saved: the figures alone are printed.
    """
    level = parse_number(positive, "--positive")
    parts, shuffled = whole_number(folds, "--folds", 2), whole_number(seed, "--seed", 0)
    if kernel not in ("linear", "rbf", "both"):
        raise RecipeError(f"--kernel {kernel!r} is not known; choose linear, rbf or both")
    workers = None if threads is None else whole_number(threads, "--threads")
    _check_outputs(output, summary, [*inputs, labels], quarantine=read.quarantine, force=force)

    from neardup.decision.net import NET, net_of
    from neardup.decision.skopsfile import skops_io
    from neardup.learning.searching import KERNELS
    from neardup.learning.training import train as train_corpus

    if output is not None:
        # It is needed at the end, when the work is done.
        skops_io()
    wide, chosen = NET if net is None else net, chosen_content(html, content) or ""
    with read.open(inputs) as corpus:
        say_notes(corpus, net_of(wide, content=chosen))
        say_if_compiling(None, "overlaps", "deciding")
        with progress_bar() as report:
            training = train_corpus(
                corpus,
                labels,
                vector=vector,
                net=wide,
                content=chosen,
                label_column=label_column,
                positive=level,
                only=only,
                ignore_unknown=ignore_unknown,
                kernels=KERNELS if kernel == "both" else (kernel,),
                folds=parts,
                seed=shuffled,
                threads=workers,
                title_column=title_column,
                time_column=time_column,
                progress=report,
            )
        say_set_aside(corpus)
    for warning in training.warnings:
        say(warning)
    written: list[str] = []
    with interruptible(written):
        if output is not None:
            training.decision.save(output, force=force)
            written.append(output)
        if summary is not None:
            _write_json(training.summary, summary)
            written.append(summary)
    if as_json:
        show_json(training.summary)
    else:
        from neardup.cli.train_table import show_training

        show_training(training)
    for name in written:
        say(f"written: {name}")


def _check_outputs(
    output: str | None, summary: str | None, inputs: list[str], *, quarantine: str | None, force: bool
) -> None:
    """Refuse outputs before the work starts."""
    import os

    from neardup.documents.output import check_place
    from neardup.errors import OutputError

    check_outputs({"--quarantine": quarantine}, summary, inputs, force=force)
    if output is None:
        return
    if output == "-":
        raise OutputError("-o - is no file, and a decision is one: name it, such as decision.neardup")
    check_place(output, inputs, force)
    for option, name in (("--summary", summary), ("--quarantine", quarantine)):
        if name is not None and os.path.realpath(name) == os.path.realpath(output):
            raise OutputError(f"{output} is given for -o and for {option}: name two files")


def _write_json(content: dict[str, object], name: str) -> None:
    from neardup.documents.output import OutputFile

    with OutputFile(name) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n")
