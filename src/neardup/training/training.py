"""A machine for labelled pairs, and what machines that had not seen a pair say of it.

The figures come from outer folds; kernel, C, gamma and the zero are chosen anew for each by inner folds of what it
trains on, so that nothing that is judged has had a say (Varma & Simon 2006). The final machine is trained on all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from neardup.classifier.classifier import CANDIDATE_RULE, Classifier, Machine, cut_of, rule_of, rule_text
from neardup.classifier.domain import Domain
from neardup.classifier.vector import Vector
from neardup.documents import Corpus
from neardup.errors import RecipeError, option
from neardup.evaluation.scores import Figure, record_dict
from neardup.features.embeddings import Encoder
from neardup.features.reading import Progress, ignore_progress
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.runtime import default_threads
from neardup.training.figures import Draws, Figures, Gain, draw
from neardup.training.fit import (
    KERNELS,
    Point,
    SearchResult,
    Threshold,
    best_threshold,
    fit,
    library,
    machine_of,
    out_of_fold_threshold,
    search,
    unsearched_machine,
)
from neardup.training.folds import Folds, Split, among, connected, folds_of, splits_of
from neardup.training.labelled import LabelledPairs, LabelOptions, labelled_pairs
from neardup.version import __version__

#: The precisions whose working points are judged.
PRECISIONS = (0.9, 0.95, 0.99)
#: With more pairs to train on, inner folds are fewer.
_MANY_PAIRS, _FEW_FOLDS = 1500, 3


class HeldOut(NamedTuple):
    """What was said of the n pairs by what had not seen them."""

    #: bool[n]: of the classifier.
    verdict: Bools
    #: float64[n]: NaN where nothing was decided.
    score: Floats
    probability: Floats
    #: float64[n, r]: of each measure on g; NaN where nothing was decided.
    contributions: Floats
    #: bool[n]: the verdicts of cuts that had a precision on the pairs trained on.
    at: dict[float, Bools]
    #: bool[n]: of the best threshold on one measure.
    threshold: Bools


class FittedMachine(NamedTuple):
    """A fitted machine and how it was come by."""

    machine: Machine
    #: How many training pairs it rests on.
    support_vectors: int
    #: Its options, and what the machines of the folds with these options say of the decided pairs.
    chosen: SearchResult
    #: Of all labelled pairs.
    folds: Folds
    #: By the machines of the folds, each with options of its own.
    held_out: HeldOut


def learn(
    pairs: LabelledPairs, folds: Folds, *, kernels: Sequence[str], seed: int, report: Callable[[int, int], None]
) -> FittedMachine:
    """Fit a machine, and judge the pairs by machines that have not seen them."""
    held_out = _nothing_held_out(pairs)
    for done, split in enumerate(folds.splits):
        report(done, len(folds.splits) + 1)
        _predict(pairs, split, folds.number, kernels, seed, held_out)
    held_out.threshold[:] = out_of_fold_threshold(pairs.x, pairs.duplicate, folds.splits)
    report(len(folds.splits), len(folds.splits) + 1)
    rows = np.flatnonzero(pairs.decided)
    x, labels = pairs.x[rows], pairs.duplicate[rows]
    groups = connected(pairs.left[rows], pairs.right[rows])
    chosen = search(x, labels, groups, among(folds.splits, rows, len(pairs.duplicate)), kernels=kernels, seed=seed)
    return FittedMachine(*_fitted(x, labels, chosen), chosen, folds, held_out)


def _nothing_held_out(pairs: LabelledPairs) -> HeldOut:
    count, measures = pairs.x.shape
    unknown, unasked = np.full(count, np.nan), pairs.equal & pairs.inside
    return HeldOut(
        verdict=unasked.copy(),
        score=unknown.copy(),
        probability=unknown.copy(),
        contributions=np.full((count, measures), np.nan),
        at={precision: unasked.copy() for precision in PRECISIONS},
        threshold=np.zeros(count, np.bool_),
    )


def _predict(
    pairs: LabelledPairs, split: Split, count: int, kernels: Sequence[str], seed: int, held_out: HeldOut
) -> None:
    """Train on some pairs, and write down what that says of others."""
    train, test = (rows[pairs.decided[rows]] for rows in split)
    x, labels, left, right = pairs.x[train], pairs.duplicate[train], pairs.left[train], pairs.right[train]
    inner = folds_of(left, right, labels, count=count if len(train) <= _MANY_PAIRS else _FEW_FOLDS, seed=seed)
    if inner is None:
        chosen = unsearched_machine(x, labels)
    else:
        chosen = search(x, labels, connected(left, right), inner.splits, kernels=kernels, seed=seed)
    machine, _ = _fitted(x, labels, chosen)
    g = machine.score(pairs.x[test])
    held_out.verdict[test] = g >= 0
    held_out.score[test] = g
    held_out.probability[test] = machine.probability(g)
    held_out.contributions[test] = machine.contributions(pairs.x[test])
    for precision, verdict in held_out.at.items():
        cut, _ = cut_of(chosen.g, labels, precision)
        verdict[test] = False if cut is None else g >= cut


def _fitted(x: Floats, labels: Bools, chosen: SearchResult) -> tuple[Machine, int]:
    """Return a machine, and how many support vectors it has."""
    estimator = fit(x, labels, chosen.point)
    machine = machine_of(estimator, chosen.sigmoid.a, chosen.sigmoid.b, chosen.offset)
    return machine, int(estimator.named_steps["svm"].n_support_.sum())


#: A contribution whose correlation with its measure is below this goes both ways.
_ONE_WAY = 0.5


class Weight(NamedTuple):
    """How much a measure matters."""

    measure: str
    #: The mean of what it adds to g or takes from it, without its sign, over the labelled pairs.
    contribution: float
    #: ``for`` where higher values speak for duplicates, ``against``, or ``both``.
    direction: str
    #: Of the standardised measure, with the linear kernel.
    coefficient: float | None


class AtPrecision(NamedTuple):
    """A working point."""

    asked: float
    #: From which g on the classifier has it on the pairs it was trained on, unseen; None where no cut has.
    cut: float | None
    #: What such cuts had on pairs that had no say in them.
    precision: Figure
    recall: Figure


class Wrong(NamedTuple):
    """A labelled pair whose label a machine that had not seen it does not say."""

    id1: str
    id2: str
    duplicate: bool
    #: What was said; None where equal texts are labelled as no duplicates.
    score: float | None
    probability: float | None
    #: What each measure added to g, and its value (None where it is not known), the strongest first.
    contributions: dict[str, float]
    measures: dict[str, float | None]


def weights_of(machine: Machine, names: tuple[str, ...], x: Floats) -> tuple[Weight, ...]:
    """Return the weight of each measure over labelled pairs, the heaviest first."""
    contributions = machine.contributions(x)
    values = np.where(np.isnan(x), machine.fill, x)
    weights = [
        Weight(
            name,
            float(np.abs(contributions[:, j]).mean()),
            _direction(values[:, j], contributions[:, j]),
            float(machine.support[0, j]) if machine.gamma == 0 else None,
        )
        for j, name in enumerate(names)
    ]
    return tuple(sorted(weights, key=lambda weight: -weight.contribution))


def _direction(values: Floats, contributions: Floats) -> str:
    v, p = values - values.mean(), contributions - contributions.mean()
    spread = float(np.sqrt((v * v).sum() * (p * p).sum()))
    together = float((v * p).sum()) / spread if spread > 0 else 0.0
    return "for" if together >= _ONE_WAY else "against" if together <= -_ONE_WAY else "both"


def wrong_pairs(pairs: LabelledPairs, names: tuple[str, ...], held_out: HeldOut) -> tuple[Wrong, ...]:
    """Return the pairs that the candidate rule let through and that were judged wrongly, the most confident first."""
    rows = np.flatnonzero((held_out.verdict != pairs.duplicate) & pairs.inside)
    sure = np.where(pairs.equal[rows], 1.0, np.abs(held_out.probability[rows] - (~held_out.verdict[rows])))
    found: list[Wrong] = []
    for row in rows[np.argsort(-sure, kind="stable")].tolist():
        decided = not pairs.equal[row]
        contributions = held_out.contributions[row]
        order = np.argsort(-np.abs(contributions), kind="stable").tolist() if decided else []
        values = pairs.x[row]
        found.append(
            Wrong(
                *pairs.ids(row),
                bool(pairs.duplicate[row]),
                float(held_out.score[row]) if decided else None,
                float(held_out.probability[row]) if decided else None,
                {names[j]: float(contributions[j]) for j in order},
                {names[j]: None if np.isnan(values[j]) else float(values[j]) for j in order},
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A classifier, and what is known of it from pairs that it was not trained on.

    Attributes
    ----------
    classifier : Classifier
        Trained on all labelled pairs that the candidate rule lets through.
    figures : Figures
        What such classifiers say of pairs that they have not seen.
    best_threshold : str
        The best threshold on one measure alone, over all labelled pairs.
    baseline : Figures
        What best thresholds, each chosen on the same training folds, say of the same pairs; without a candidate rule.
    gain : Gain
        How far the classifier leads the threshold in F1.
    weights : tuple of Weight
        Of the measures, the heaviest first.
    working_points : tuple of AtPrecision
        For precisions of 0.9, 0.95 and 0.99.
    wrong : tuple of Wrong
        The pairs that were judged wrongly, the most confident first.
    outside : tuple of (str, str)
        Labelled duplicates that the candidate rule does not let through; they count as missed.
    warnings : tuple of str
        What to keep in mind when reading the figures.
    summary : dict
        Everything, ready for JSON.
    """

    classifier: Classifier
    figures: Figures
    best_threshold: str
    baseline: Figures
    gain: Gain
    weights: tuple[Weight, ...]
    working_points: tuple[AtPrecision, ...]
    wrong: tuple[Wrong, ...]
    outside: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    summary: dict[str, Any]

    def __repr__(self) -> str:
        figure = self.figures.f1.value
        return f"<{self.classifier!r} trained on {self.summary['pairs']:,} labelled pairs, F1 {figure or 0.0:.3f}>"


def training_report(
    pairs: LabelledPairs, classifier: Classifier, learned: FittedMachine, *, options: dict[str, Any]
) -> Training:
    """Return a classifier with what is known of it."""
    held_out, names = learned.held_out, classifier.vector.names
    groups = connected(pairs.left, pairs.right) if learned.folds.by == "groups" else pairs.family
    verdicts = [held_out.verdict, held_out.threshold, *held_out.at.values()]
    drawn = draw(pairs.duplicate, groups, verdicts)
    threshold = best_threshold(pairs.x, pairs.duplicate)
    points = _working_points(drawn, classifier)
    weights = weights_of(classifier.machine, names, pairs.x[pairs.decided])
    wrong = wrong_pairs(pairs, names, held_out)
    outside = tuple(pairs.ids(row) for row in np.flatnonzero(pairs.duplicate & ~pairs.inside).tolist())
    warnings = (*pairs.warnings, *_warnings(pairs, classifier, learned, options["folds"]))
    figures, baseline, gain = drawn.figures(0), drawn.figures(1), drawn.gain(0, 1)
    told_threshold = _threshold_text(threshold, names)
    account: dict[str, Any] = {
        "documents": pairs.documents,
        "pairs": len(pairs),
        "duplicates": int(pairs.duplicate.sum()),
        "others": int((~pairs.duplicate).sum()),
        "groups": len(np.unique(groups)),
        "equal_texts": int((pairs.equal & pairs.inside).sum()),
        "duplicates_outside_the_rule": len(outside),
        "others_outside_the_rule": int((~pairs.duplicate & ~pairs.inside).sum()),
        "trained_on": int(pairs.decided.sum()),
        "folds": learned.folds._asdict() | {"splits": len(learned.folds.splits)},
        "machine": _machine(learned, len(names)),
        "figures": record_dict(figures),
        "threshold": {"at": told_threshold} | record_dict(baseline),
        "gain": record_dict(gain),
        "working_points": [record_dict(point) for point in points],
        "weights": [weight._asdict() for weight in weights],
        "warnings": list(warnings),
        "options": options,
    }
    versions = {"numpy": np.__version__, "scikit-learn": library().__version__}
    classifier = replace(classifier, training=account | {"versions": versions})
    summary = {
        "fingerprint": classifier.fingerprint,
        "candidate_rule": rule_text(classifier.candidate_rule),
        "content": classifier.candidate_rule.content,
        "vector": list(names),
        **account,
        "wrong": [one._asdict() for one in wrong],
        "outside": [list(ids) for ids in outside],
        "version": __version__,
    }
    return Training(
        classifier=classifier,
        figures=figures,
        best_threshold=told_threshold,
        baseline=baseline,
        gain=gain,
        weights=weights,
        working_points=points,
        wrong=wrong,
        outside=outside,
        warnings=warnings,
        summary=summary,
    )


def _working_points(drawn: Draws, classifier: Classifier) -> tuple[AtPrecision, ...]:
    points: list[AtPrecision] = []
    for number, asked in enumerate(PRECISIONS):
        figures = drawn.figures(2 + number)
        cut, _ = cut_of(classifier.scores, classifier.labels, asked)
        points.append(AtPrecision(asked, cut, figures.precision, figures.recall))
    return tuple(points)


def _machine(learned: FittedMachine, measures: int) -> dict[str, Any]:
    point, chosen = learned.chosen.point, learned.chosen
    return {
        "kernel": point.kernel,
        "c": point.c,
        "gamma": point.gamma / measures,
        "balanced": point.balanced,
        "support_vectors": learned.support_vectors,
        "probability_at_0": chosen.zero,
        "a": learned.machine.a,
        "b": learned.machine.b,
        "tried": chosen.tried,
        "pairs_of_the_coarse_search": chosen.coarse,
    }


def _threshold_text(threshold: Threshold, names: tuple[str, ...]) -> str:
    return f"{names[threshold.measure]} {'<=' if threshold.below else '>='} {threshold.at:.4g}"


def _warnings(pairs: LabelledPairs, classifier: Classifier, learned: FittedMachine, asked: int) -> list[str]:
    """Return what to keep in mind of folds, candidate rule and measures."""
    folds, found = learned.folds, []
    largest = f"One group of connected pairs holds {folds.largest:.0%} of the labelled ones"
    if folds.by == "documents":
        found.append(
            f"{largest}, so documents are dealt into folds instead: each machine is trained without the pairs that "
            f"straddle its folds, {folds.left_out:.0%} of all, and the figures are rather too low than too high."
        )
    elif folds.by == "pairs":
        found.append(
            f"{largest}, and no folds without shared documents leave enough to train on: pairs that share a document "
            "judge each other, and the figures may flatter; label pairs of other documents."
        )
    if folds.number < asked:
        found.append(f"The labels give {folds.number} folds in place of {asked}: the pairs lie in too few groups.")
    if not learned.chosen.sigmoid.informed:
        found.append(
            "The measures do not tell the labelled duplicates from the others, so this classifier is of no use; choose "
            f"others with {option('--vector')}, or look at the labels."
        )
    missed = int((pairs.duplicate & ~pairs.inside).sum())
    if missed:
        words = option("--candidate-rule 'jaccard(words:1) >= 0.1'", "candidate_rule='jaccard(words:1) >= 0.1'")
        found.append(
            f"{missed:,} of {int(pairs.duplicate.sum()):,} labelled duplicates lie outside the candidate rule, "
            f"{rule_text(classifier.candidate_rule)}, and count as missed; a lower bound or single words, as in "
            f"{words}, let more through."
        )
    for name, share in zip(
        classifier.vector.names, np.isnan(pairs.x[pairs.decided]).mean(axis=0).tolist(), strict=True
    ):
        if share:
            found.append(f"{name} is not known of {share:.0%} of the pairs; there its median is taken.")
    return found


#: With fewer labels of a class there is nothing to say, and nothing is trained.
LEAST_LABELS = 5
_FOLDS, _DRAWS = 5, 500
_MACHINE = Point("linear", 0.1)


class QuickEvaluation(NamedTuple):
    """How well the labelled pairs can be told apart, each judged by what was learned from others."""

    #: Of a linear machine without search, and of the best threshold on one measure.
    learned: Figures
    threshold: Figures
    #: The place in the vector of the measure with the best threshold.
    measure: int
    #: Whether one group holds more than half of the pairs: then its documents are on both sides, and the figures may
    #: flatter.
    shared: bool


def quick_evaluation(x: Floats, labels: Bools, groups: Integers) -> QuickEvaluation | None:
    """Return what can be said of labels; None while there are too few.

    Groups hang together over shared documents (``folds.connected``).
    """
    labels = np.asarray(labels, np.bool_)
    if min(labels.sum(), (~labels).sum()) < LEAST_LABELS:
        return None
    shared = np.unique(groups, return_counts=True)[1].max() > len(labels) / 2
    units = np.arange(len(labels)) if shared else groups
    splits = _splits(units, labels)
    if splits is None:
        shared, units = True, np.arange(len(labels))
        splits = _splits(units, labels)
    if splits is None:
        return None
    drawn = draw(labels, units, [_learned(x, labels, splits), out_of_fold_threshold(x, labels, splits)], count=_DRAWS)
    return QuickEvaluation(
        learned=drawn.figures(0),
        threshold=drawn.figures(1),
        measure=best_threshold(x, labels).measure,
        shared=bool(shared),
    )


def _learned(x: Floats, labels: Bools, splits: Sequence[Split]) -> Bools:
    """Return what linear machines say of the pairs they were not trained on.

    Each cuts where its F1 on the pairs it was trained on is highest, for whether one class is rarer is not known.
    """
    passed = np.zeros(len(labels), np.bool_)
    for train, test in splits:
        machine = fit(x[train], labels[train], _MACHINE)
        cut = best_threshold(machine.decision_function(x[train])[:, np.newaxis], labels[train])
        passed[test] = cut.passes(machine.decision_function(x[test])[:, np.newaxis])
    return passed


def _splits(units: Integers, labels: Bools) -> tuple[Split, ...] | None:
    """Return folds of units, as many as leave both classes to train on, five at most."""
    found = splits_of(units, labels, min(_FOLDS, len(np.unique(units))), 0, np.ones(len(labels), np.bool_))
    return found[0] if found else None


#: The folds where nothing else is asked for, and the most.
FOLDS, _MOST_FOLDS = 5, 20


def train(
    corpus: Corpus,
    labels: Any,
    *,
    vector: str | Vector = "default",
    candidate_rule: str | None = None,
    content: str = "",
    label_column: str | None = None,
    positive: float = 1.0,
    only: str | None = None,
    ignore_unknown: bool = False,
    kernels: Sequence[str] = KERNELS,
    folds: int = FOLDS,
    seed: int = 0,
    threads: int | None = None,
    encoder: Encoder | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    progress: Progress | None = None,
) -> Training:
    """Learn from labelled pairs what a near-duplicate is.

    Parameters
    ----------
    corpus : Corpus
        The documents; it is read once, and once more for each kind of feature that the vector counts.
    labels : path, table, or list of (id, id, label)
        Pairs that people judged; see ``labels.labels.read_labels``.
    vector : str or Vector
        The measures: a name such as ``default``, or a list as ``jaccard(words:4), numbers``.
    candidate_rule : str, optional
        A low bound on one measure of feature sets; pairs below it are never looked at. Without one it is
        ``jaccard(words:3)``, from 0.1 on, or from the least similar labelled pair on if that is higher: a machine
        knows nothing of pairs that are less alike than all that it was shown.
    content : str
        What of the texts is compared, as in ``Recipe``.
    label_column, positive, only, ignore_unknown
        See ``labels.labels.read_labels``.
    kernels : sequence of str
        ``linear``, ``rbf`` or both; then the linear one is taken unless the other is clearly better.
    folds : int
        Raising it trains the judging machines on more of the pairs, and takes longer.
    seed : int
        Of the folds, and of the pairs that a search looks at first.
    threads : int, optional
        They change the time of reading and measuring, never the answer; machines are trained in one.
    encoder : Encoder, optional
        An object whose ``encode(texts)`` makes the embeddings for the measure ``semantic``.
    title_column, time_column : str, optional
        For measures that compare titles or times; found by their names.
    progress : callable, optional
        Told (stage, done, total or None) from time to time.

    Raises
    ------
    NeardupError
        If something cannot be read, an option does not fit, or the labels are too few.
    """
    _check(kernels, folds, seed, threads)
    # Before the corpus is read, which may take long.
    library()
    chosen = vector if isinstance(vector, Vector) else Vector.parse(vector)
    if chosen.needs_encoder and encoder is None:
        raise RecipeError(
            "vector: semantic needs an encoder, an object with encode(texts): hand one over in Python, "
            "nd.train(..., encoder=...)"
        )
    rule, report = rule_of(candidate_rule or CANDIDATE_RULE, content=content), progress or ignore_progress
    reading = LabelOptions(label_column, positive, only, ignore_unknown, title_column or "", time_column or "")
    threads = default_threads() if threads is None else threads
    pairs = labelled_pairs(corpus, labels, chosen, rule, reading, threads=threads, encoder=encoder, report=report)
    _check_enough(pairs, rule)
    if candidate_rule is None:
        rule = _from_labels_on(rule, pairs)
    parted = folds_of(pairs.left, pairs.right, pairs.duplicate, count=folds, seed=seed, decided=pairs.decided)
    if parted is None:
        raise RecipeError(
            f"the {len(pairs):,} labelled pairs leave no part to judge by; label pairs of other documents"
        )
    learned = learn(pairs, parted, kernels=kernels, seed=seed, report=lambda done, total: report("train", done, total))
    classifier = _classifier(pairs, chosen, rule, reading, learned)
    return training_report(pairs, classifier, learned, options={"folds": folds, "seed": seed, "kernels": list(kernels)})


def _from_labels_on(rule: Recipe, pairs: LabelledPairs) -> Recipe:
    """Return a candidate rule that begins where the labelled pairs do, in hundredths."""
    least = math.floor(float(pairs.similarity[pairs.decided].min()) * 100) / 100
    return rule.changed(threshold=least) if least > rule.threshold else rule


def _check(kernels: Sequence[str], folds: int, seed: int, threads: int | None) -> None:
    unknown = [kernel for kernel in kernels if kernel not in KERNELS]
    if unknown or not kernels:
        raise RecipeError(f"kernels {list(kernels)!r}: choose from {', '.join(KERNELS)}")
    if not 2 <= folds <= _MOST_FOLDS:
        raise RecipeError(f"folds {folds} is outside 2 to {_MOST_FOLDS}")
    if seed < 0:
        raise RecipeError(f"seed {seed} is below 0")
    if threads is not None and threads < 1:
        raise RecipeError(f"threads {threads} is below 1")


def _check_enough(pairs: LabelledPairs, rule: Recipe) -> None:
    """Refuse labels that nothing can be learned from."""
    labels = pairs.duplicate[pairs.decided]
    duplicates, others = int(labels.sum()), int((~labels).sum())
    if min(duplicates, others) >= LEAST_LABELS:
        return
    outside, equal = int((~pairs.inside).sum()), int((pairs.equal & pairs.inside).sum())
    lost = [f"{outside:,} that the candidate rule {rule_text(rule)} does not let through"] if outside else []
    lost += [f"{equal:,} of equal texts, which need no classifier"] if equal else []
    without = f" (besides {' and '.join(lost)})" if lost else ""
    rule_of_words = option("--candidate-rule 'jaccard(words:1) >= 0.1'", "candidate_rule='jaccard(words:1) >= 0.1'")
    wider = f", or widen the candidate rule, as with {rule_of_words}" if outside else ""
    raise RecipeError(
        f"labelled duplicates: {duplicates:,}, others: {others:,}{without}, which is too few to learn from; "
        f"{LEAST_LABELS} of each are the least: label more pairs{wider}"
    )


def _classifier(
    pairs: LabelledPairs, vector: Vector, rule: Recipe, reading: LabelOptions, learned: FittedMachine
) -> Classifier:
    return Classifier(
        candidate_rule=rule,
        vector=vector,
        statistics=pairs.statistics,
        machine=learned.machine,
        scores=learned.chosen.g,
        labels=pairs.duplicate[pairs.decided],
        title_column=reading.title_column,
        time_column=reading.time_column,
        domain=_domain(pairs, learned),
    )


def _domain(pairs: LabelledPairs, learned: FittedMachine) -> Domain:
    used = pairs.decided
    documents = np.unique(np.concatenate([pairs.left[used], pairs.right[used]])).tolist()
    passed = learned.machine.score(pairs.x[used]) >= 0
    return Domain.of(pairs.x[used], [pairs.texts[at] for at in documents], pairs.similarity[used], passed)
