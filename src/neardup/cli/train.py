"""What ``neardup train`` prints: figures beside those of a threshold, weights, working points, what goes wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.options import (
    LABELS_PANEL,
    Content,
    Force,
    Html,
    IgnoreUnknown,
    Inputs,
    Json,
    LabelColumn,
    Only,
    Positive,
    ReadOptions,
    check_outputs,
    chosen_content,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    parse_number,
    progress_bar,
    say,
    say_if_compiling,
    say_notes,
    say_rejected,
    show_json,
    visible,
    whole_number,
)
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from neardup.evaluation.scores import Figure
    from neardup.training.figures import Figures
    from neardup.training.training import Training, Wrong

#: So many pairs that are judged wrongly, and duplicates outside the candidate rule, are printed; --summary has all.
_SHOWN, _SHOWN_OUTSIDE = 10, 5
#: So many measures say why.
_REASONS = 3
_SPEAKS = {"for": "for duplicates", "against": "against them", "both": "for or against"}


def show_training(training: Training) -> None:
    """Print a training for people to stdout."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    counts = training.summary
    console.print(
        f"{count_text(counts['pairs'], 'labelled pair')} of {count_text(counts['documents'], 'document')}: "
        f"{count_text(counts['duplicates'], 'duplicate')}, {count_text(counts['others'], 'other')}; "
        "[dim]95 % intervals[/dim]"
    )
    console.print(_figures(training))
    console.print(Text(_verdict(training)))
    console.print(Text(_machine(training)))
    console.print()
    console.print(_weights(training))
    console.print()
    console.print(_working_points(training))
    _show_outside(console, training)
    _show_wrong(console, training)


def _table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 1), show_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left", overflow="fold" if not number else "ellipsis")
    return table


def _figures(training: Training) -> Table:
    table = _table("unseen pairs", "F1", "precision", "recall", "accuracy")
    for name, figures in (("learned", training.figures), ("best threshold", training.baseline)):
        table.add_row(name, *map(_figure, _four(figures)))
    low, high = training.gain.difference.low, training.gain.difference.high
    spread = "" if low is None or high is None else f"\n{low:+.3f} to {high:+.3f}"
    table.add_row("gain", f"{training.gain.difference.value or 0.0:+.3f}{spread}")
    return table


def _four(figures: Figures) -> tuple[Figure, ...]:
    return figures.f1, figures.precision, figures.recall, figures.accuracy


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "none"
    spread = "" if figure.low is None or figure.high is None else f"\n{figure.low:.2f}-{figure.high:.2f}"
    return f"{figure.value:.3f}{spread}"


def _verdict(training: Training) -> str:
    """Return what the difference is worth, and which threshold it is."""
    gain = training.gain
    if not gain.beyond_chance:
        says = "These labels cannot tell the two apart"
    elif (gain.difference.value or 0.0) > 0:
        says = "The classifier leads beyond chance"
    else:
        says = "The threshold leads beyond chance: use it, or label more pairs"
    return f"{says}. Over all labels the best threshold is {training.best_threshold}."


def _machine(training: Training) -> str:
    """Return how the machine was chosen."""
    machine, folds = training.summary["machine"], training.summary["folds"]
    gamma = f", gamma {machine['gamma']:.3g}" if machine["gamma"] else ""
    weights = ", classes balanced" if machine["balanced"] else ""
    by = {"groups": "groups of connected pairs", "documents": "documents", "pairs": "pairs"}[folds["by"]]
    return (
        f"Kernel {machine['kernel']}, C {machine['c']:.3g}{gamma}{weights}, the best of {machine['tried']} in "
        f"{folds['number']} folds of {by}; g(x) = 0 where the probability is {machine['probability_at_0']:.2f}."
    )


def _weights(training: Training) -> Table:
    linear = training.summary["machine"]["kernel"] == "linear"
    table = _table("measure", "mean contribution", "higher speaks", *(["coefficient"] if linear else []))
    for weight in training.weights:
        cells = [weight.measure, f"{weight.contribution:.3f}", _SPEAKS[weight.direction]]
        table.add_row(*cells, *([f"{weight.coefficient:+.3f}"] if weight.coefficient is not None else []))
    return table


def _working_points(training: Training) -> Table:
    table = _table("asked precision", "from score", "precision", "recall")
    for point in training.working_points:
        cut = "not reached" if point.cut is None else f"{point.cut:.3f}"
        table.add_row(f"{point.asked:g}", cut, _figure(point.precision), _figure(point.recall))
    return table


def _show_outside(console: Console, training: Training) -> None:
    from rich.text import Text

    if training.outside:
        pairs = [f"{visible(one, lines=False)} - {visible(other, lines=False)}" for one, other in training.outside]
        more = f" and {len(pairs) - _SHOWN_OUTSIDE:,} more" if len(pairs) > _SHOWN_OUTSIDE else ""
        console.print()
        console.print(Text(f"Duplicates outside the candidate rule, missed: {', '.join(pairs[:_SHOWN_OUTSIDE])}{more}"))


def _show_wrong(console: Console, training: Training) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    if not training.wrong:
        console.print("No labelled pair that the candidate rule lets through is judged wrongly.")
        return
    many = count_text(len(training.wrong), "pair is", "pairs are")
    which = (
        "the surest first" if len(training.wrong) <= _SHOWN else f"the surest {_SHOWN} here, all with --summary FILE"
    )
    console.print(Text(f"{many} judged wrongly, {which}; measure, value (contribution):"))
    for one in training.wrong[:_SHOWN]:
        said, reasons = _wrong(one)
        console.print(Padding(Text(said), (0, 0, 0, 1)))
        if reasons:
            console.print(Padding(Text(reasons), (0, 0, 0, 5)))


def _wrong(one: Wrong) -> tuple[str, str]:
    """Return a pair and what was said of it, and which measures said so."""
    ids = f"{visible(one.id1, lines=False)} - {visible(one.id2, lines=False)}"
    label = "a duplicate" if one.duplicate else "no duplicate"
    if one.score is None or one.probability is None:
        return f"{ids}: labelled {label}, but the texts are equal", ""
    misled = [name for name, push in one.contributions.items() if push and (push > 0) == (one.score >= 0)]
    reasons = (f"{name} {_value(one.measures[name])} ({one.contributions[name]:+.2f})" for name in misled[:_REASONS])
    said = f"probability {_probability(one.probability)}, score {one.score:+.2f}"
    return f"{ids}: labelled {label}, {said}", ", ".join(reasons)


def _probability(value: float) -> str:
    return "below 0.001" if value < 0.001 else "above 0.999" if value > 0.999 else f"{value:.3f}"


def _value(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


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
        typer.Option("--output", "-o", metavar="FILE", help="Where the classifier goes, such as classifier.neardup."),
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
    candidate_rule: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE>=NUMBER",
            rich_help_panel=_LEARNED,
            help="Pairs below it are never looked at, by default those with jaccard(words:3) below 0.1, or below "
            "that of all labelled pairs.",
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

    from neardup.classifier.classifier import CANDIDATE_RULE, rule_of
    from neardup.training.fit import KERNELS
    from neardup.training.training import train as train_corpus

    wide, chosen = CANDIDATE_RULE if candidate_rule is None else candidate_rule, chosen_content(html, content) or ""
    with read.open(inputs) as corpus:
        say_notes(corpus, rule_of(wide, content=chosen))
        say_if_compiling(None, "pairs.overlaps", "pairs.discriminant")
        with progress_bar() as report:
            training = train_corpus(
                corpus,
                labels,
                vector=vector,
                candidate_rule=candidate_rule,
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
        say_rejected(corpus)
    for warning in training.warnings:
        say(warning)
    written: list[str] = []
    with interruptible(written):
        if output is not None:
            training.classifier.save(output, force=force)
            written.append(output)
        if summary is not None:
            _write_json(training.summary, summary)
            written.append(summary)
    if as_json:
        show_json(training.summary)
    else:
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
        raise OutputError("-o - is no file, and a classifier is one: name it, such as classifier.neardup")
    check_place(output, inputs, force)
    for option, name in (("--summary", summary), ("--quarantine", quarantine)):
        if name is not None and os.path.realpath(name) == os.path.realpath(output):
            raise OutputError(f"{output} is given for -o and for {option}: name two files")


def _write_json(content: dict[str, object], name: str) -> None:
    from neardup.documents.output import OutputFile

    with OutputFile(name) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n")
