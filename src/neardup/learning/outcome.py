"""What training gives: the decision, and what it is worth, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neardup import __version__
from neardup.decision.decision import Decision, cut_of
from neardup.errors import option
from neardup.learning.baseline import Threshold, best_threshold
from neardup.learning.figures import Draws, Figures, Gain, draw
from neardup.learning.folds import connected
from neardup.learning.judging import PRECISIONS, Learned
from neardup.learning.labelled import LabelledPairs, net_text
from neardup.learning.telling import AtPrecision, Weight, Wrong, calibration, weights_of, wrong_pairs


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A learned decision, and what is known of it from pairs that it was not trained on.

    Attributes
    ----------
    decision : Decision
        Trained on all labelled pairs that the net lets through.
    figures : Figures
        What such decisions say of pairs that they have not seen.
    best_threshold : str
        The best threshold on one measure alone, over all labelled pairs.
    baseline : Figures
        What best thresholds, each chosen on the same training folds, say of the same pairs; without a net.
    gain : Gain
        How far the decision leads the threshold in F1.
    weights : tuple of Weight
        Of the measures, the heaviest first.
    working_points : tuple of AtPrecision
        For precisions of 0.9, 0.95 and 0.99.
    wrong : tuple of Wrong
        The pairs that were judged wrongly, the surest first.
    outside : tuple of (str, str)
        Labelled duplicates that the net does not let through; they count as missed.
    warnings : tuple of str
        What to keep in mind when reading the figures.
    summary : dict
        Everything, ready for JSON.
    """

    decision: Decision
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
        return f"<{self.decision!r} trained on {self.summary['pairs']:,} labelled pairs, F1 {figure or 0.0:.3f}>"


def told(pairs: LabelledPairs, decision: Decision, learned: Learned, *, options: dict[str, Any]) -> Training:
    """Return a decision with what is known of it.

    Parameters
    ----------
    pairs : LabelledPairs
        What it was trained on.
    decision : Decision
        Without an account of its training.
    learned : Learned
        How the machine was come by.
    options : dict
        Of the training, for the summary.
    """
    judged, names = learned.judged, decision.vector.names
    groups = connected(pairs.left, pairs.right) if learned.folds.by == "groups" else pairs.family
    verdicts = [judged.verdict, judged.threshold, *judged.at.values()]
    drawn = draw(pairs.duplicate, groups, verdicts)
    threshold = best_threshold(pairs.x, pairs.duplicate)
    points = _working_points(drawn, decision)
    weights = weights_of(decision.machine, names, pairs.x[pairs.decided])
    wrong = wrong_pairs(pairs, names, judged)
    outside = tuple(pairs.ids(row) for row in np.flatnonzero(pairs.duplicate & ~pairs.inside).tolist())
    warnings = (*pairs.warnings, *_warnings(pairs, decision, learned, options["folds"]))
    figures, baseline, gain = drawn.figures(0), drawn.figures(1), drawn.gain(0, 1)
    told_threshold = _threshold_text(threshold, names)
    account: dict[str, Any] = {
        "documents": pairs.documents,
        "pairs": len(pairs),
        "duplicates": int(pairs.duplicate.sum()),
        "others": int((~pairs.duplicate).sum()),
        "groups": len(np.unique(groups)),
        "equal_texts": int((pairs.equal & pairs.inside).sum()),
        "duplicates_outside_the_net": len(outside),
        "others_outside_the_net": int((~pairs.duplicate & ~pairs.inside).sum()),
        "trained_on": int(pairs.decided.sum()),
        "folds": learned.folds._asdict() | {"splits": len(learned.folds.splits)},
        "machine": _machine(learned, len(names)),
        "figures": figures.to_dict(),
        "threshold": {"at": told_threshold} | baseline.to_dict(),
        "gain": gain.to_dict(),
        "working_points": [point.to_dict() for point in points],
        "calibration": calibration(judged, pairs),
        "weights": [weight._asdict() for weight in weights],
        "warnings": list(warnings),
        "options": options,
    }
    decision = replace(decision, training=account)
    summary = {
        "fingerprint": decision.fingerprint,
        "net": net_text(decision.net),
        "content": decision.net.content,
        "vector": list(names),
        **account,
        "wrong": [one._asdict() for one in wrong],
        "outside": [list(ids) for ids in outside],
        "version": __version__,
    }
    return Training(
        decision=decision,
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


def _working_points(drawn: Draws, decision: Decision) -> tuple[AtPrecision, ...]:
    points: list[AtPrecision] = []
    for number, asked in enumerate(PRECISIONS):
        figures = drawn.figures(2 + number)
        cut, _ = cut_of(decision.scores, decision.labels, asked)
        points.append(AtPrecision(asked, cut, figures.precision, figures.recall))
    return tuple(points)


def _machine(learned: Learned, measures: int) -> dict[str, Any]:
    point, chosen = learned.chosen.point, learned.chosen
    return {
        "kernel": point.kernel,
        "c": point.c,
        "gamma": point.gamma / measures,
        "balanced": point.balanced,
        "support_vectors": int(learned.estimator.named_steps["svm"].n_support_.sum()),
        "probability_at_0": chosen.zero,
        "a": learned.machine.a,
        "b": learned.machine.b,
        "tried": chosen.tried,
        "pairs_of_the_coarse_search": chosen.coarse,
    }


def _threshold_text(threshold: Threshold, names: tuple[str, ...]) -> str:
    return f"{names[threshold.measure]} {'<=' if threshold.below else '>='} {threshold.at:.4g}"


def _warnings(pairs: LabelledPairs, decision: Decision, learned: Learned, asked: int) -> list[str]:
    """Return what to keep in mind of folds, net and measures."""
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
            "The measures do not tell the labelled duplicates from the others, so this decision is of no use; choose "
            f"others with {option('--vector')}, or look at the labels."
        )
    missed = int((pairs.duplicate & ~pairs.inside).sum())
    if missed:
        words = option("--net 'jaccard(words:1) >= 0.1'", "net='jaccard(words:1) >= 0.1'")
        found.append(
            f"{missed:,} of {int(pairs.duplicate.sum()):,} labelled duplicates lie outside the net, "
            f"{net_text(decision.net)}, and count as missed; a lower bound or single words, as in {words}, let more "
            "through."
        )
    for name, share in zip(decision.vector.names, np.isnan(pairs.x[pairs.decided]).mean(axis=0).tolist(), strict=True):
        if share:
            found.append(f"{name} is not known of {share:.0%} of the pairs; there its median is taken.")
    return found
