"""``neardup train``: train a classifier on labelled pairs, and compare it with the best threshold."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

from neardup.cli import screen
from neardup.cli.command import LABELS, option, output_option
from neardup.cli.options import Content, Force, Html, Inputs, Json, LabelOptions, ReadOptions, Threads, resolve_content
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from neardup.evaluation.intervals import Figure
    from neardup.training.training import MisjudgedPair, Training

#: How many misjudged pairs and how many duplicates outside the candidate rule are printed; --summary has all.
_MISJUDGED_PRINTED, _OUTSIDE_PRINTED = 10, 5
#: How many measures are printed as the reasons of a misjudged pair.
_REASONS_PRINTED = 3
_PADDING = (0, 1, 0, 1)
_DIRECTIONS = {"for": "for duplicates", "against": "against them", "both": "for or against"}


def _print_training(training: Training) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    counts = training.summary
    console.print(
        f"{format_count(counts['pairs'], 'labelled pair')} of {format_count(counts['documents'], 'document')}: "
        f"{format_count(counts['duplicates'], 'duplicate')}, {counts['others']:,} different; "
        "[dim]95% intervals[/dim]"
    )
    console.print(_figures_table(training))
    console.print(Text(_describe_figures(training)))
    console.print(Text(_describe_gain(training)))
    console.print(Text(_describe_machine(training)))
    console.print()
    console.print(_weights_table(training))
    console.print()
    console.print(_working_points_table(training))
    _print_outside(console, training)
    _print_misjudged(console, training)


def _figures_table(training: Training) -> Table:
    table = screen.make_table("unseen pairs", "F1", "precision", "recall", "accuracy", padding=_PADDING)
    for name, figures in (("classifier", training.figures), ("best threshold", training.baseline)):
        values = (figures.f1, figures.precision, figures.recall, figures.accuracy)
        table.add_row(name, *map(_figure, values))
    low, high = training.gain.difference.low, training.gain.difference.high
    spread = "" if low is None or high is None else f"\n{low:+.3f} to {high:+.3f}"
    table.add_row("gain", f"{training.gain.difference.value or 0.0:+.3f}{spread}")
    return table


def _figure(figure: Figure) -> str:
    return screen.format_figure(figure, "\n")


def _describe_figures(training: Training) -> str:
    """Return which pairs the figures were measured on, and those that commands with the classifier print instead."""
    point, counts = training.classifier.working_point, training.summary
    return (
        f"Measured on all {counts['pairs']:,} labelled pairs, each judged by a classifier trained without it. Commands "
        f"with --classifier print precision {point.precision:.3f} and recall {point.recall:.3f}: "
        f"{screen.FIGURES_OF_A_CUT} ({counts['trained_on']:,}, without equal texts and pairs outside the candidate "
        "rule)."
    )


def _describe_gain(training: Training) -> str:
    gain = training.gain
    if not gain.beyond_chance:
        verdict = "These labels cannot tell the two apart"
    elif (gain.difference.value or 0.0) > 0:
        verdict = "The classifier is better, beyond chance"
    else:
        verdict = "The threshold is better, beyond chance: use it, or label more pairs"
    from neardup.classifier.vector import VectorComponent
    from neardup.recipe.measures import MEASURES

    component = VectorComponent.parse(training.best_threshold.rpartition(" ")[0].rpartition(" ")[0])
    unusable = "" if component.has_recipe and component.name in MEASURES else ", on a measure that no recipe has"
    return f"{verdict}. Over all labels the best threshold is {training.best_threshold}{unusable}."


def _describe_machine(training: Training) -> str:
    machine, folds = training.summary["machine"], training.summary["folds"]
    gamma = f", gamma {machine['gamma']:.3g}" if machine["gamma"] else ""
    weights = ", classes balanced" if machine["balanced"] else ""
    unit = {"groups": "groups of connected pairs", "documents": "documents", "pairs": "pairs"}[folds["by"]]
    return (
        f"Kernel {machine['kernel']}, C {machine['c']:.3g}{gamma}{weights}, the best of {machine['tried']} in "
        f"{folds['number']} folds of {unit}; a score of 0 is a probability of {machine['probability_at_0']:.2f}."
    )


def _weights_table(training: Training) -> Table:
    linear = training.summary["machine"]["kernel"] == "linear"
    table = screen.make_table(
        "measure", "mean contribution", "a high value counts", *(["coefficient"] if linear else []), padding=_PADDING
    )
    for weight in training.weights:
        cells = [weight.measure, f"{weight.contribution:.3f}", _DIRECTIONS[weight.direction]]
        screen.add_row(table, [*cells, *([f"{weight.coefficient:+.3f}"] if weight.coefficient is not None else [])])
    return table


def _working_points_table(training: Training) -> Table:
    table = screen.make_table("precision goal", "score from", "precision", "recall", padding=_PADDING)
    for point in training.working_points:
        cut = "not reached" if point.cut is None else f"{point.cut:.3f}"
        table.add_row(f"{point.target:g}", cut, _figure(point.precision), _figure(point.recall))
    return table


def _print_outside(console: Console, training: Training) -> None:
    from rich.text import Text

    if training.outside:
        pairs = [f"{screen.printable_line(left)} - {screen.printable_line(right)}" for left, right in training.outside]
        suffix = f" and {len(pairs) - _OUTSIDE_PRINTED:,} more" if len(pairs) > _OUTSIDE_PRINTED else ""
        listed = ", ".join(pairs[:_OUTSIDE_PRINTED])
        console.print()
        console.print(Text(f"Duplicates that the candidate rule misses: {listed}{suffix}"))


def _print_misjudged(console: Console, training: Training) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    if not training.wrong:
        console.print("No labelled pair that passes the candidate rule is misjudged.")
        return
    number = format_count(len(training.wrong), "pair is", "pairs are")
    extent = "the most confident first"
    if len(training.wrong) > _MISJUDGED_PRINTED:
        extent = f"the {_MISJUDGED_PRINTED} most confident here, all with --summary FILE"
    console.print(Text(f"{number} misjudged, {extent}; each measure with its value (contribution):"))
    for pair in training.wrong[:_MISJUDGED_PRINTED]:
        label, reasons = _describe_misjudged(pair)
        console.print(Padding(Text(label), (0, 0, 0, 1)))
        if reasons:
            console.print(Padding(Text(reasons), (0, 0, 0, 5)))


def _describe_misjudged(pair: MisjudgedPair) -> tuple[str, str]:
    ids = f"{screen.printable_line(pair.id1)} - {screen.printable_line(pair.id2)}"
    label = f"{ids}: labelled {'a duplicate' if pair.duplicate else 'different'}"
    if pair.score is None or pair.probability is None:
        return f"{label}, but the texts are equal", ""
    misleading = [
        f"{name} {_value(pair.measures[name])} ({amount:+.2f})"
        for name, amount in pair.contributions.items()
        if amount and (amount > 0) == (pair.score >= 0)
    ]
    probability = f"probability {_probability(pair.probability)}, score {pair.score:+.2f}"
    return f"{label}, {probability}", ", ".join(misleading[:_REASONS_PRINTED])


def _probability(value: float) -> str:
    return "below 0.001" if value < 0.001 else "above 0.999" if value > 0.999 else f"{value:.3f}"


def _value(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


_MODEL, _TRAINING = "The classifier", "Training"


def train(
    inputs: Inputs,
    labels: Annotated[
        str,
        option(
            "FILE",
            "Labelled pairs (id1,id2,label) as .csv, .tsv or .jsonl, or a store of neardup label.",
            LABELS,
        ),
    ],
    read_options: ReadOptions,
    label_options: LabelOptions,
    output: Annotated[
        str | None, output_option("Save the classifier to this file, such as classifier.neardup.")
    ] = None,
    vector: Annotated[
        str,
        option(
            "MEASURES",
            "The measures: default, cheap, short (for sentences and headlines), terms-svm, terms-svm-sentence, or a "
            "list of these and of measures: 'short, jaccard(words:4), cosine(terms:64:tfidf), title'.",
            _MODEL,
        ),
    ] = "default",
    candidate_rule: Annotated[
        str | None,
        option(
            "MEASURE>=NUMBER",
            "Ignore pairs below it; by default jaccard(words:3) >= 0.1, or that of the least similar labelled pair.",
            _MODEL,
        ),
    ] = None,
    html: Html = False,
    content: Content = None,
    title_column: Annotated[str | None, option("NAME", "Column of titles; detected automatically.", _MODEL)] = None,
    time_column: Annotated[str | None, option("NAME", "Column of times, for the measure hours_apart.", _MODEL)] = None,
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

    All figures are cross-validated: a pair is judged by a classifier that was trained on neither of its documents.

    Without -o only the figures are printed; nothing is saved.
    """
    outputs = {"-o": output, "--summary": summary, "--quarantine": read_options.quarantine}
    screen.check_outputs([*inputs, labels], outputs, force=force, checks={"-o": screen.check_local_file})

    from neardup.classifier.classifier import CANDIDATE_RULE, parse_candidate_rule
    from neardup.documents.output import placed_together
    from neardup.training.fit import KERNELS, load_sklearn
    from neardup.training.training import train as train_corpus

    # Fails if scikit-learn is missing, before kernels are compiled for nothing.
    load_sklearn()
    main_content = resolve_content(html, content) or ""
    rule = parse_candidate_rule(CANDIDATE_RULE if candidate_rule is None else candidate_rule, content=main_content)
    with read_options.open(inputs) as corpus, screen.reading_progress(corpus, rule) as progress:
        training = train_corpus(
            corpus,
            labels,
            vector=vector,
            candidate_rule=candidate_rule,
            content=main_content,
            **asdict(label_options),
            kernels=KERNELS if kernel == "both" else (kernel,),
            folds=folds,
            seed=seed,
            threads=threads,
            title_column=title_column,
            time_column=time_column,
            progress=progress,
        )
    for warning in training.warnings:
        screen.print_warning(warning)
    with screen.written_files() as written, placed_together(written):
        # The summary waits until the classifier is in its place, so neither appears if the other one cannot be written.
        if summary is not None:
            screen.write_json(training.summary, summary)
        if output is not None:
            training.classifier.save(output, force=force)
            written.append(output)
    if as_json:
        screen.print_json(training.summary)
    else:
        _print_training(training)
    for name in written:
        screen.print_message(f"written: {name}")
    if output is None:
        screen.print_message("no classifier was written: give -o FILE, such as -o classifier.neardup")
