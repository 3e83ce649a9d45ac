"""``neardup train``: a classifier from labelled pairs, and figures beside those of a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from neardup.cli.command import LABELS, option, with_options
from neardup.cli.options import (
    Content,
    Force,
    Html,
    Inputs,
    Json,
    LabelOptions,
    ReadOptions,
    Threads,
    check_outputs,
    chosen_content,
)
from neardup.cli.screen import (
    count_text,
    figure_text,
    grid,
    interruptible,
    reading,
    say,
    show_json,
    visible,
    write_json,
)
from neardup.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from neardup.evaluation.scores import Figure
    from neardup.training.figures import Figures
    from neardup.training.training import MisjudgedPair, Training

#: So many pairs that are judged wrongly, and duplicates outside the candidate rule, are printed; --summary has all.
_SHOWN, _SHOWN_OUTSIDE = 10, 5
#: So many measures say why.
_REASONS = 3
_PADDING = (0, 1, 0, 1)
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
        "[dim]95% intervals[/dim]"
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


def _figures(training: Training) -> Table:
    table = grid("unseen pairs", "F1", "precision", "recall", "accuracy", padding=_PADDING)
    for name, figures in (("learned", training.figures), ("best threshold", training.baseline)):
        table.add_row(name, *map(_figure, _four(figures)))
    low, high = training.gain.difference.low, training.gain.difference.high
    spread = "" if low is None or high is None else f"\n{low:+.3f} to {high:+.3f}"
    table.add_row("gain", f"{training.gain.difference.value or 0.0:+.3f}{spread}")
    return table


def _four(figures: Figures) -> tuple[Figure, ...]:
    return figures.f1, figures.precision, figures.recall, figures.accuracy


def _figure(figure: Figure) -> str:
    return figure_text(figure, "\n")


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
        f"{folds['number']} folds of {by}; a score of 0 is a probability of {machine['probability_at_0']:.2f}."
    )


def _weights(training: Training) -> Table:
    linear = training.summary["machine"]["kernel"] == "linear"
    table = grid(
        "measure", "mean contribution", "a high value speaks", *(["coefficient"] if linear else []), padding=_PADDING
    )
    for weight in training.weights:
        cells = [weight.measure, f"{weight.contribution:.3f}", _SPEAKS[weight.direction]]
        table.add_row(*cells, *([f"{weight.coefficient:+.3f}"] if weight.coefficient is not None else []))
    return table


def _working_points(training: Training) -> Table:
    table = grid("wanted precision", "score from", "precision", "recall", padding=_PADDING)
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
    some = f"the {_SHOWN} most confident here, all with --summary FILE"
    which = "the most confident first" if len(training.wrong) <= _SHOWN else some
    console.print(Text(f"{many} judged wrongly, {which}; each measure with its value (contribution):"))
    for one in training.wrong[:_SHOWN]:
        said, reasons = _wrong(one)
        console.print(Padding(Text(said), (0, 0, 0, 1)))
        if reasons:
            console.print(Padding(Text(reasons), (0, 0, 0, 5)))


def _wrong(one: MisjudgedPair) -> tuple[str, str]:
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
        option(
            "FILE",
            "Labelled pairs (id1,id2,label) as .csv, .tsv or .jsonl, or what neardup label stores.",
            LABELS,
            show_default=False,
        ),
    ],
    read: ReadOptions,
    reading_labels: LabelOptions,
    output: Annotated[
        str | None,
        option("FILE", "Save the classifier to this file, such as classifier.neardup.", None, "--output", "-o"),
    ] = None,
    vector: Annotated[
        str,
        option(
            "MEASURES",
            "The measures: default, cheap, short (for sentences and headlines), terms-svm, terms-svm-sentence, or a "
            "list of these and of measures: 'short, jaccard(words:4), cosine(terms:64:tfidf), title'.",
            _LEARNED,
        ),
    ] = "default",
    candidate_rule: Annotated[
        str | None,
        option(
            "MEASURE>=NUMBER",
            "Ignore pairs below it; by default jaccard(words:3) >= 0.1, or that of the least similar labelled pair.",
            _LEARNED,
        ),
    ] = None,
    html: Html = False,
    content: Content = None,
    title_column: Annotated[str | None, option("NAME", "Column of titles; detected automatically.", _LEARNED)] = None,
    time_column: Annotated[
        str | None, option("NAME", "Column of times, for the measure hours_apart.", _LEARNED)
    ] = None,
    kernel: Annotated[
        Literal["linear", "rbf", "both"],
        option("NAME", "linear, rbf, or both: then linear, unless rbf is clearly better.", _TRAINING),
    ] = "both",
    folds: Annotated[int, option("NUMBER", "Number of cross-validation folds.", _TRAINING, min=2)] = 5,
    seed: Annotated[int, option("NUMBER", "Random seed of the folds.", _TRAINING, min=0)] = 0,
    threads: Threads = None,
    summary: Annotated[str | None, option("FILE", "Write all figures and all misjudged pairs as JSON.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a classifier on labelled pairs: a support vector machine on several measures.

    All figures are cross-validated: the machine that judges a pair has seen none of its documents.

    Without -o only the figures are printed; nothing is saved.
    """
    check_outputs(
        [*inputs, labels],
        ("-o", output),
        ("--summary", summary),
        ("--quarantine", read.quarantine),
        force=force,
        checks={"-o": _check_classifier},
    )

    from neardup.classifier.classifier import CANDIDATE_RULE, parse_candidate_rule
    from neardup.training.fit import KERNELS, load_sklearn
    from neardup.training.training import train as train_corpus

    # What is missing is said before kernels are compiled for nothing.
    load_sklearn()
    wide, chosen = CANDIDATE_RULE if candidate_rule is None else candidate_rule, chosen_content(html, content) or ""
    with read.open(inputs) as corpus:
        kernels = ["pairs.overlaps", "pairs.discriminant"]
        with reading(corpus, parse_candidate_rule(wide, content=chosen), kernels=kernels) as report:
            training = train_corpus(
                corpus,
                labels,
                vector=vector,
                candidate_rule=candidate_rule,
                content=chosen,
                **reading_labels.given,
                kernels=KERNELS if kernel == "both" else (kernel,),
                folds=folds,
                seed=seed,
                threads=threads,
                title_column=title_column,
                time_column=time_column,
                progress=report,
            )
    for warning in training.warnings:
        say(warning)
    written: list[str] = []
    with interruptible(written):
        if output is not None:
            training.classifier.save(output, force=force)
            written.append(output)
        if summary is not None:
            write_json(training.summary, summary)
            written.append(summary)
    if as_json:
        show_json(training.summary)
    else:
        show_training(training)
    for name in written:
        say(f"written: {name}")
    if output is None:
        say("no classifier was written: give -o FILE, such as -o classifier.neardup")


def _check_classifier(name: str, inputs: Sequence[str], force: bool) -> None:
    """Refuse a place where no classifier can be."""
    from neardup.documents.output import check_place

    if name == "-":
        raise OutputError("-o - is no file, and a classifier is one: name it, such as classifier.neardup")
    check_place(name, inputs, force)
