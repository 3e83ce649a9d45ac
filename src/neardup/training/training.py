"""The training of a classifier on labelled pairs, with cross-validated figures.

The figures come from outer folds. Inner folds of each fold's training pairs choose its kernel, C, gamma and cut, so a
judged pair has no influence on the machine that judges it (Varma & Simon 2006). The final machine is trained on all
pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from neardup.classifier.classifier import (
    CANDIDATE_RULE,
    Classifier,
    Machine,
    find_cut,
    format_candidate_rule,
    hash_texts,
    parse_candidate_rule,
)
from neardup.classifier.domain import Domain
from neardup.classifier.vector import Vector
from neardup.documents import TextColumn, as_corpus
from neardup.errors import RecipeError, option, with_suggestions
from neardup.evaluation.intervals import Figure, record_dict
from neardup.features.extraction import Encoder
from neardup.features.reading import Progress, ignore_progress
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.runtime import default_threads
from neardup.training.fit import (
    KERNELS,
    MachineOptions,
    MeasureThreshold,
    SearchResult,
    best_threshold,
    default_search_result,
    extract_machine,
    fit,
    load_sklearn,
    out_of_fold_threshold,
    search,
)
from neardup.training.folds import (
    Draws,
    Figures,
    Folds,
    Gain,
    Split,
    draw_groups,
    make_folds,
    make_group_splits,
    pair_groups,
    select_rows,
)
from neardup.training.pairs import LabelledPairs, LabelOptions, labelled_pairs
from neardup.version import __version__

#: The precisions of the reported working points.
PRECISIONS = (0.9, 0.95, 0.99)
#: With more training pairs than this, there are fewer inner folds.
_MANY_PAIRS, _FEW_FOLDS = 1500, 3


class HeldOutPredictions(NamedTuple):
    """Predictions for n pairs by machines and thresholds that were not trained on them."""

    verdicts: Bools  #: bool[n]: the verdicts of classifiers
    #: float64[n]: NaN for pairs that no machine decides.
    scores: Floats
    probabilities: Floats
    #: float64[n, r]: the contribution of each measure to the score; NaN for pairs that no machine decides.
    contributions: Floats
    #: bool[n] for each precision: the verdicts at the cut that reached it on the training pairs.
    precision_verdicts: dict[float, Bools]
    threshold_verdicts: Bools  #: bool[n]: the verdicts of the best threshold on one measure


class FittedMachine(NamedTuple):
    """A machine trained on all decided pairs, and the predictions of machines from the outer folds."""

    machine: Machine
    support_vectors: int  #: the number of support vectors
    search: SearchResult  #: the chosen options, with the out-of-fold scores of the decided pairs
    folds: Folds  #: the outer folds of all labelled pairs
    held_out: HeldOutPredictions  #: predictions from the outer folds, whose machines have their own options


def fit_and_judge(
    pairs: LabelledPairs, folds: Folds, *, kernels: Sequence[str], seed: int, progress: Callable[[int, int], None]
) -> FittedMachine:
    """Fit a machine to all decided pairs, and predict every pair by a machine that was not trained on it."""
    held_out = _initial_predictions(pairs)
    for done, split in enumerate(folds.splits):
        progress(done, len(folds.splits) + 1)
        _predict(pairs, split, folds.fold_count, kernels, seed, held_out)
    held_out.threshold_verdicts[:] = out_of_fold_threshold(pairs.x, pairs.is_duplicate, folds.splits)
    progress(len(folds.splits), len(folds.splits) + 1)
    rows = np.flatnonzero(pairs.is_decided)
    x, labels = pairs.x[rows], pairs.is_duplicate[rows]
    groups = pair_groups(pairs.left[rows], pairs.right[rows])
    chosen = search(x, labels, groups, select_rows(folds.splits, rows, len(pairs)), kernels=kernels, seed=seed)
    return FittedMachine(*_fit_machine(x, labels, chosen), chosen, folds, held_out)


def _initial_predictions(pairs: LabelledPairs) -> HeldOutPredictions:
    """Return the predictions without any machine: equal texts are duplicates, everything else is unknown."""
    unknown, equal = np.full(len(pairs), np.nan), pairs.has_equal_texts & pairs.is_candidate
    return HeldOutPredictions(
        verdicts=equal.copy(),
        scores=unknown.copy(),
        probabilities=unknown.copy(),
        contributions=np.full(pairs.x.shape, np.nan),
        precision_verdicts={precision: equal.copy() for precision in PRECISIONS},
        threshold_verdicts=np.zeros(len(pairs), np.bool_),
    )


def _predict(
    pairs: LabelledPairs, split: Split, folds: int, kernels: Sequence[str], seed: int, held_out: HeldOutPredictions
) -> None:
    """Train a machine on one side of a split, and write its predictions for the other side into ``held_out``."""
    train, test = (rows[pairs.is_decided[rows]] for rows in split)
    x, labels, left, right = pairs.x[train], pairs.is_duplicate[train], pairs.left[train], pairs.right[train]
    inner = make_folds(left, right, labels, count=folds if len(train) <= _MANY_PAIRS else _FEW_FOLDS, seed=seed)
    if inner is None:
        chosen = default_search_result(x, labels)
    else:
        chosen = search(x, labels, pair_groups(left, right), inner.splits, kernels=kernels, seed=seed)
    machine, _ = _fit_machine(x, labels, chosen)
    scores = machine.score(pairs.x[test])
    held_out.verdicts[test] = scores >= 0
    held_out.scores[test] = scores
    held_out.probabilities[test] = machine.probability(scores)
    held_out.contributions[test] = machine.contributions(pairs.x[test])
    for precision, verdicts in held_out.precision_verdicts.items():
        cut, _ = find_cut(chosen.scores, labels, precision)
        verdicts[test] = False if cut is None else scores >= cut


def _fit_machine(x: Floats, labels: Bools, chosen: SearchResult) -> tuple[Machine, int]:
    estimator = fit(x, labels, chosen.options)
    machine = extract_machine(estimator, chosen.sigmoid.a, chosen.sigmoid.b, chosen.offset)
    return machine, int(estimator.named_steps["svm"].n_support_.sum())


#: With a weaker correlation between its values and its contributions, a measure counts as ``both``.
_MIN_CORRELATION = 0.5


class MeasureWeight(NamedTuple):
    """The importance of a measure."""

    measure: str
    contribution: float  #: the mean absolute contribution to the score over the labelled pairs
    direction: str  #: ``for`` if higher values speak for duplicates, ``against``, or ``both``
    coefficient: float | None  #: the coefficient of the standardized measure; None unless the kernel is linear


class PrecisionPoint(NamedTuple):
    """The working point for a target precision."""

    target: float
    cut: float | None  #: the lowest score with this precision out of fold; None if no cut reaches it
    #: The figures of cuts chosen without the pairs that they judge.
    precision: Figure
    recall: Figure


class MisjudgedPair(NamedTuple):
    """A labelled candidate whose held-out verdict contradicts its label."""

    id1: str
    id2: str
    duplicate: bool
    #: None for equal texts that are labelled as different.
    score: float | None
    probability: float | None
    contributions: dict[str, float]  #: the contributions by measure, the strongest first
    measures: dict[str, float | None]  #: the values in the same order; None if unknown


def measure_weights(machine: Machine, names: tuple[str, ...], x: Floats) -> tuple[MeasureWeight, ...]:
    """Return the weight of each measure over labelled pairs, the heaviest first."""
    contributions = machine.contributions(x)
    values = np.where(np.isnan(x), machine.fill, x)
    weights = [
        MeasureWeight(
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
    norm = float(np.sqrt((v * v).sum() * (p * p).sum()))
    correlation = float((v * p).sum()) / norm if norm > 0 else 0.0
    return "for" if correlation >= _MIN_CORRELATION else "against" if correlation <= -_MIN_CORRELATION else "both"


def misjudged_pairs(
    pairs: LabelledPairs, names: tuple[str, ...], held_out: HeldOutPredictions
) -> tuple[MisjudgedPair, ...]:
    """Return the candidates whose held-out verdict contradicts the label, the most confident first."""
    rows = np.flatnonzero((held_out.verdicts != pairs.is_duplicate) & pairs.is_candidate)
    confidence = np.abs(held_out.probabilities[rows] - ~held_out.verdicts[rows])
    confidence = np.where(pairs.has_equal_texts[rows], 1.0, confidence)
    misjudged: list[MisjudgedPair] = []
    for row in rows[np.argsort(-confidence, kind="stable")].tolist():
        is_decided = not pairs.has_equal_texts[row]
        contributions = held_out.contributions[row]
        order = np.argsort(-np.abs(contributions), kind="stable").tolist() if is_decided else []
        values = pairs.x[row]
        misjudged.append(
            MisjudgedPair(
                *pairs.ids(row),
                bool(pairs.is_duplicate[row]),
                float(held_out.scores[row]) if is_decided else None,
                float(held_out.probabilities[row]) if is_decided else None,
                {names[j]: float(contributions[j]) for j in order},
                {names[j]: None if np.isnan(values[j]) else float(values[j]) for j in order},
            )
        )
    return tuple(misjudged)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A classifier with cross-validated figures.

    Attributes
    ----------
    classifier : Classifier
        Trained on all labelled candidates.
    figures : Figures
        Of classifiers trained the same way, on pairs held out of their training.
    best_threshold : str
        The best threshold on one measure, over all labelled pairs.
    baseline : Figures
        Of thresholds chosen on the same training folds, on the same pairs; without a candidate rule.
    gain : Gain
        The lead of the classifier over the threshold in F1.
    weights : tuple of MeasureWeight
        The heaviest first.
    working_points : tuple of PrecisionPoint
        For precisions of 0.9, 0.95 and 0.99.
    wrong : tuple of MisjudgedPair
        The most confident first.
    outside : tuple of (str, str)
        Labelled duplicates outside the candidate rule, which count as missed.
    warnings : tuple of str
        Caveats for reading the figures.
    summary : dict
        Everything, ready for JSON.
    """

    classifier: Classifier
    figures: Figures
    best_threshold: str
    baseline: Figures
    gain: Gain
    weights: tuple[MeasureWeight, ...]
    working_points: tuple[PrecisionPoint, ...]
    wrong: tuple[MisjudgedPair, ...]
    outside: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    summary: dict[str, Any]

    def __repr__(self) -> str:
        figure = self.figures.f1.value
        return f"<{self.classifier!r} trained on {self.summary['pairs']:,} labelled pairs, F1 {figure or 0.0:.3f}>"


def build_training(
    pairs: LabelledPairs,
    classifier: Classifier,
    fitted: FittedMachine,
    *,
    options: dict[str, Any],
    columns: dict[str, str | None] | None = None,
) -> Training:
    """Return a classifier with the figures of its training."""
    held_out, names = fitted.held_out, classifier.vector.names
    groups = pair_groups(pairs.left, pairs.right) if fitted.folds.unit == "groups" else pairs.family
    verdicts = [held_out.verdicts, held_out.threshold_verdicts, *held_out.precision_verdicts.values()]
    drawn = draw_groups(pairs.is_duplicate, groups, verdicts)
    threshold_text = _format_threshold(best_threshold(pairs.x, pairs.is_duplicate), names)
    points = tuple(_working_points(drawn, classifier))
    weights = measure_weights(classifier.machine, names, pairs.x[pairs.is_decided])
    wrong = misjudged_pairs(pairs, names, held_out)
    outside = tuple(pairs.ids(row) for row in np.flatnonzero(pairs.is_duplicate & ~pairs.is_candidate).tolist())
    warnings = (*pairs.warnings, *_warnings(pairs, classifier, fitted, options["folds"]))
    figures, baseline, gain = drawn.figures(0), drawn.figures(1), drawn.gain(0, 1)
    record: dict[str, Any] = {
        "documents": pairs.documents,
        "pairs": len(pairs),
        "duplicates": int(pairs.is_duplicate.sum()),
        "others": int((~pairs.is_duplicate).sum()),
        "groups": len(np.unique(groups)),
        "equal_texts": int((pairs.has_equal_texts & pairs.is_candidate).sum()),
        "duplicates_outside_the_rule": len(outside),
        "others_outside_the_rule": int((~pairs.is_duplicate & ~pairs.is_candidate).sum()),
        "trained_on": int(pairs.is_decided.sum()),
        "folds": {
            "splits": len(fitted.folds.splits),
            "number": fitted.folds.fold_count,
            "by": fitted.folds.unit,
            "largest": fitted.folds.largest_share,
            "left_out": fitted.folds.left_out_share,
        },
        "machine": _machine_options(fitted, len(names)),
        "figures": record_dict(figures),
        "threshold": {"at": threshold_text} | record_dict(baseline),
        "gain": record_dict(gain),
        "working_points": [record_dict(point) for point in points],
        "weights": [weight._asdict() for weight in weights],
        "warnings": list(warnings),
        "options": options,
    }
    versions = {"numpy": np.__version__, "scikit-learn": load_sklearn().__version__}
    classifier = replace(classifier, training=record | {"versions": versions})
    summary = {
        "fingerprint": classifier.fingerprint,
        "candidate_rule": format_candidate_rule(classifier.candidate_rule),
        "content": classifier.candidate_rule.content,
        "vector": list(names),
        **record,
        "columns": columns or {},
        "wrong": [pair._asdict() for pair in wrong],
        "outside": [list(ids) for ids in outside],
        "version": __version__,
    }
    return Training(
        classifier=classifier,
        figures=figures,
        best_threshold=threshold_text,
        baseline=baseline,
        gain=gain,
        weights=weights,
        working_points=points,
        wrong=wrong,
        outside=outside,
        warnings=warnings,
        summary=summary,
    )


def _working_points(drawn: Draws, classifier: Classifier) -> Iterator[PrecisionPoint]:
    for number, precision in enumerate(PRECISIONS, 2):
        figures, (cut, _) = drawn.figures(number), find_cut(classifier.scores, classifier.labels, precision)
        yield PrecisionPoint(precision, cut, figures.precision, figures.recall)


def _machine_options(fitted: FittedMachine, measures: int) -> dict[str, Any]:
    chosen = fitted.search
    options = chosen.options._replace(gamma=chosen.options.gamma / measures)
    return options._asdict() | {
        "support_vectors": fitted.support_vectors,
        "probability_at_0": chosen.zero_probability,
        "a": fitted.machine.a,
        "b": fitted.machine.b,
        "tried": chosen.options_tried,
        "pairs_of_the_coarse_search": chosen.coarse_pairs,
    }


def _format_threshold(threshold: MeasureThreshold, names: tuple[str, ...]) -> str:
    return f"{names[threshold.measure]} {'<=' if threshold.is_maximum else '>='} {threshold.value:.4g}"


def _warnings(pairs: LabelledPairs, classifier: Classifier, fitted: FittedMachine, requested_folds: int) -> list[str]:
    folds, warnings = fitted.folds, []
    largest = f"One group of connected pairs holds {folds.largest_share:.0%} of the labelled pairs"
    if folds.unit == "documents":
        warnings.append(
            f"{largest}, so documents are assigned to folds instead: each machine is trained without the pairs that "
            f"straddle its folds, {folds.left_out_share:.0%} of all, and the figures are too low rather than too high."
        )
    elif folds.unit == "pairs":
        warnings.append(
            f"{largest}, and folds without shared documents leave too little to train on: pairs that share a document "
            "judge each other, and the figures may be too high; label pairs of other documents."
        )
    if folds.fold_count < requested_folds:
        warnings.append(
            f"The labels give {folds.fold_count} folds instead of {requested_folds}: the pairs lie in too few groups."
        )
    if not fitted.search.sigmoid.is_informative:
        warnings.append(
            "The measures do not separate the labelled duplicates from the other pairs, so this classifier is useless; "
            f"choose other measures with {option('--vector')}, or check the labels."
        )
    missed = int((pairs.is_duplicate & ~pairs.is_candidate).sum())
    if missed:
        warnings.append(
            f"{missed:,} of {int(pairs.is_duplicate.sum()):,} labelled duplicates lie outside the candidate rule, "
            f"{format_candidate_rule(classifier.candidate_rule)}, and count as missed; a lower bound, "
            f"as in {_wider_rule(classifier.candidate_rule)}, finds more."
        )
    unknown_shares = np.isnan(pairs.x[pairs.is_decided]).mean(axis=0).tolist()
    for name, share in zip(classifier.vector.names, unknown_shares, strict=True):
        if share:
            warnings.append(f"{name} is unknown for {share:.0%} of the pairs, which get its median instead.")
    return warnings


def _wider_rule(rule: Recipe) -> str:
    """Return an example of a candidate rule that more pairs meet than the one in force."""
    threshold = 0.1
    if (rule.measure, rule.features) == ("jaccard", "words:1") and rule.threshold <= threshold:
        threshold = rule.threshold / 2
    text = f"'jaccard(words:1) >= {threshold:g}'"
    return option(f"--candidate-rule {text}", f"candidate_rule={text}")


#: The number of labels of each class below which nothing is trained or evaluated.
MIN_LABELS = 5
_FOLDS, _DRAWS = 5, 500
_QUICK_OPTIONS = MachineOptions("linear", 0.1)


class QuickEvaluation(NamedTuple):
    """Cross-validated figures of a few labels."""

    learned: Figures  #: the figures of a linear machine without a search
    threshold: Figures  #: the figures of the best threshold on one measure
    measure: int  #: the position in the vector of the measure with the best threshold
    #: Whether folds share documents, because one group holds more than half of the pairs; the figures may be too high.
    shares_documents: bool


def quick_evaluation(x: Floats, labels: Bools, groups: Integers) -> QuickEvaluation | None:
    """Return quick figures of n labelled pairs, None while there are too few.

    ``x`` is float64[n, r]; ``groups`` (int64[n]) are connected by shared documents (``folds.pair_groups``).
    """
    labels = np.asarray(labels, np.bool_)
    if min(labels.sum(), (~labels).sum()) < MIN_LABELS:
        return None
    units, splits = groups, None
    if np.unique(groups, return_counts=True)[1].max() <= len(labels) / 2:
        splits = _splits(groups, labels)
    shares_documents = splits is None
    if splits is None:
        units = np.arange(len(labels))
        splits = _splits(units, labels)
    if splits is None:
        return None
    verdicts = [_out_of_fold_verdicts(x, labels, splits), out_of_fold_threshold(x, labels, splits)]
    drawn = draw_groups(labels, units, verdicts, count=_DRAWS)
    return QuickEvaluation(
        learned=drawn.figures(0),
        threshold=drawn.figures(1),
        measure=best_threshold(x, labels).measure,
        shares_documents=shares_documents,
    )


def _out_of_fold_verdicts(x: Floats, labels: Bools, splits: Sequence[Split]) -> Bools:
    """Return verdicts of linear machines on pairs held out, each with the cut of highest F1 on its training pairs."""
    passed = np.zeros(len(labels), np.bool_)
    for train, test in splits:
        machine = fit(x[train], labels[train], _QUICK_OPTIONS)
        cut = best_threshold(machine.decision_function(x[train])[:, np.newaxis], labels[train])
        passed[test] = cut.passes(machine.decision_function(x[test])[:, np.newaxis])
    return passed


def _splits(units: Integers, labels: Bools) -> tuple[Split, ...] | None:
    """Return up to five folds of units, None if no two leave both classes to train on."""
    found = make_group_splits(units, labels, min(_FOLDS, len(np.unique(units))), 0, np.ones(len(labels), np.bool_))
    return found[0] if found else None


#: The default and the maximum number of folds.
FOLDS, MAX_FOLDS = 5, 20


@with_suggestions
def train(
    data: Any,
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
    text_column: TextColumn = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
) -> Training:
    """Train a classifier on labelled pairs; ``dedup`` and others take the ``.classifier`` of the result.

    The data is read once, and once more for each kind of feature whose document frequencies the vector needs.
    Threads read and measure; machines are trained in one.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or the result of ``open_files``.
    labels : path, table, or list of (id, id, label)
        Labelled pairs: a CSV, TSV or JSON lines file, a store of labels, or the same in memory.
    vector : str or Vector
        The measures: a name such as ``default``, or a list such as ``jaccard(words:4), numbers``.
    candidate_rule : str, optional
        A low bound on one measure of feature sets; pairs below it are never measured. The default is
        ``jaccard(words:3)`` from 0.1 on, or from the least similar labelled pair on if that is higher: a machine knows
        nothing about pairs less similar than all of its training pairs.
    content : str
        The part of the texts that is compared, as in ``Recipe``.
    label_column, positive, only, ignore_unknown
        As in ``compare``.
    kernels : sequence of str
        ``linear``, ``rbf`` or both; of both, the linear one wins unless the other is clearly better.
    folds : int
        Number of cross-validation folds, 2 to 20. Raising it trains the judging machines on more of the pairs, and
        takes longer.
    seed : int
        Random seed of the folds, and of the pairs in the coarse search.
    text_column, id_column, title_column, time_column, threads, encoder, progress
        As in ``dedup``.

    Raises
    ------
    NeardupError
        If something cannot be read, an option does not fit, or the labels are too few.
    """
    _check(kernels, folds, seed, threads)
    # Before the corpus is read, which may take long.
    load_sklearn()
    parsed = vector if isinstance(vector, Vector) else Vector.parse(vector)
    if parsed.needs_encoder and encoder is None:
        raise RecipeError(
            "vector: semantic needs an encoder, an object with encode(texts); pass it in Python, "
            "nd.train(..., encoder=...)"
        )
    rule = parse_candidate_rule(candidate_rule or CANDIDATE_RULE, content=content)
    progress = progress or ignore_progress
    label_options = LabelOptions(label_column, positive, only, ignore_unknown, title_column or "", time_column or "")
    threads = default_threads() if threads is None else threads
    corpus = as_corpus(data, text_column, id_column)
    pairs = labelled_pairs(
        corpus, labels, parsed, rule, label_options, threads=threads, encoder=encoder, progress=progress
    )
    _check_enough(pairs, rule)
    if candidate_rule is None:
        rule = _raise_to_labels(rule, pairs)
    labelled_folds = make_folds(
        pairs.left, pairs.right, pairs.is_duplicate, count=folds, seed=seed, decided=pairs.is_decided
    )
    if labelled_folds is None:
        raise RecipeError(
            f"the {len(pairs):,} labelled pairs cannot be divided into folds; label pairs of other documents"
        )
    fitted = fit_and_judge(
        pairs, labelled_folds, kernels=kernels, seed=seed, progress=lambda done, total: progress("train", done, total)
    )
    classifier = Classifier(
        candidate_rule=rule,
        vector=parsed,
        statistics=pairs.statistics,
        machine=fitted.machine,
        scores=fitted.search.scores,
        labels=pairs.is_duplicate[pairs.is_decided],
        title_column=label_options.title_column,
        time_column=label_options.time_column,
        domain=_domain(pairs, fitted.machine),
        training_documents=np.unique(hash_texts(pairs.texts)),
    )
    return build_training(
        pairs,
        classifier,
        fitted,
        options={"folds": folds, "seed": seed, "kernels": list(kernels)},
        columns=corpus.columns_used,
    )


def _raise_to_labels(rule: Recipe, pairs: LabelledPairs) -> Recipe:
    """Return a candidate rule that begins at the least similar decided pair, rounded down to hundredths."""
    least = math.floor(float(pairs.similarity[pairs.is_decided].min()) * 100) / 100
    return rule.changed(threshold=least) if least > rule.threshold else rule


def _check(kernels: Sequence[str], folds: int, seed: int, threads: int | None) -> None:
    unknown = [kernel for kernel in kernels if kernel not in KERNELS]
    if unknown or not kernels:
        raise RecipeError(f"kernels {list(kernels)!r}: choose from {', '.join(KERNELS)}")
    if not 2 <= folds <= MAX_FOLDS:
        raise RecipeError(f"folds {folds} is outside 2 to {MAX_FOLDS}")
    if seed < 0:
        raise RecipeError(f"seed {seed} is below 0")
    if threads is not None and threads < 1:
        raise RecipeError(f"threads {threads} is below 1")


def _check_enough(pairs: LabelledPairs, rule: Recipe) -> None:
    labels = pairs.is_duplicate[pairs.is_decided]
    duplicates, others = int(labels.sum()), int((~labels).sum())
    if min(duplicates, others) >= MIN_LABELS:
        return
    outside = int((~pairs.is_candidate).sum())
    equal = int((pairs.has_equal_texts & pairs.is_candidate).sum())
    unused = [f"{outside:,} outside the candidate rule {format_candidate_rule(rule)}"] if outside else []
    unused += [f"{equal:,} with equal texts, which need no classifier"] if equal else []
    remark = f" (not counting {' and '.join(unused)})" if unused else ""
    wider = f", or widen the candidate rule, as with {_wider_rule(rule)}" if outside else ""
    raise RecipeError(
        f"labelled duplicates: {duplicates:,}, others: {others:,}{remark}; training needs at least {MIN_LABELS} of "
        f"each: label more pairs{wider}"
    )


def _domain(pairs: LabelledPairs, machine: Machine) -> Domain:
    decided = pairs.is_decided
    documents = np.unique(np.concatenate([pairs.left[decided], pairs.right[decided]])).tolist()
    passed = machine.score(pairs.x[decided]) >= 0
    texts = [pairs.texts[document] for document in documents]
    return Domain.from_training(pairs.x[decided], texts, pairs.similarity[decided], passed)
