"""From a corpus and labels to a learned decision (ICGICT 2014, 3.2), and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neardup.decision.decision import Decision
from neardup.decision.net import NET, net_of
from neardup.documents import Corpus
from neardup.errors import RecipeError, option
from neardup.learning.folds import folds_of
from neardup.learning.judging import Learned, Task, learn
from neardup.learning.labelled import LabelledPairs, Reading, labelled_pairs, net_text
from neardup.learning.outcome import Training, told
from neardup.learning.searching import KERNELS
from neardup.learning.standing import LEAST_LABELS
from neardup.parallel import default_threads
from neardup.recipe import Recipe
from neardup.vector.encoder import Encoder
from neardup.vector.vector import Vector

#: The folds where nothing else is asked for, and the most.
FOLDS, _MOST_FOLDS = 5, 20

Report = Callable[[str, int, int | None], None]


def train(
    corpus: Corpus,
    labels: Any,
    *,
    vector: str | Vector = "default",
    net: str = NET,
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
    progress: Report | None = None,
) -> Training:
    """Learn from labelled pairs what a near-duplicate is.

    Parameters
    ----------
    corpus : Corpus
        The documents; it is read once, and once more for each kind of feature that the vector counts.
    labels : path, table, or list of (id, id, label)
        Pairs that people judged; see ``evaluation.labels.read_labels``.
    vector : str or Vector
        The measures: a name such as ``default``, or a list as ``jaccard(words:4), numbers``.
    net : str
        A low bound on one measure of feature sets; pairs below it are never looked at.
    content : str
        What of the texts is compared, as in ``Recipe``.
    label_column, positive, only, ignore_unknown
        See ``evaluation.labels.read_labels``.
    kernels : sequence of str
        ``linear``, ``rbf`` or both; then the linear one is taken unless the other is clearly better.
    folds : int
        Raising it trains the judging machines on more of the pairs, and takes longer.
    seed : int
        Of the folds, and of the pairs that a search looks at first.
    threads : int, optional
        They change the time of reading and measuring, never the answer; machines are trained in one.
    encoder : object with ``encode(texts)``, optional
        For the measure ``semantic``.
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
    chosen = vector if isinstance(vector, Vector) else Vector.parse(vector)
    if chosen.needs_encoder and encoder is None:
        raise RecipeError(
            "vector: semantic needs an encoder, an object with encode(texts): hand one over in Python, "
            "nd.train(..., encoder=...)"
        )
    wide, report = net_of(net, content=content), progress or _silent
    reading = Reading(label_column, positive, only, ignore_unknown, title_column or "", time_column or "")
    threads = default_threads() if threads is None else threads
    pairs = labelled_pairs(corpus, labels, chosen, wide, reading, threads=threads, encoder=encoder, report=report)
    _check_enough(pairs, wide)
    parted = folds_of(pairs.left, pairs.right, pairs.duplicate, count=folds, seed=seed, decided=pairs.decided)
    if parted is None:
        raise RecipeError(
            f"the {len(pairs):,} labelled pairs leave no part to judge by; label pairs of other documents"
        )
    task = Task(pairs.x, pairs.duplicate, pairs.left, pairs.right, pairs.decided, pairs.equal & pairs.inside)
    learned = learn(task, parted, kernels=kernels, seed=seed, report=lambda done, total: report("train", done, total))
    decision = _decision(pairs, chosen, wide, reading, learned)
    return told(pairs, decision, learned, options={"folds": folds, "seed": seed, "kernels": list(kernels)})


def _silent(stage: str, done: int, total: int | None) -> None:
    return None


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


def _check_enough(pairs: LabelledPairs, net: Recipe) -> None:
    """Refuse labels that nothing can be learned from."""
    labels = pairs.duplicate[pairs.decided]
    duplicates, others = int(labels.sum()), int((~labels).sum())
    if min(duplicates, others) >= LEAST_LABELS:
        return
    outside, equal = int((~pairs.inside).sum()), int((pairs.equal & pairs.inside).sum())
    lost = [f"{outside:,} that the net {net_text(net)} does not let through"] if outside else []
    lost += [f"{equal:,} of equal texts, which need no decision"] if equal else []
    without = f" (besides {' and '.join(lost)})" if lost else ""
    net_of_words = option("--net 'jaccard(words:1) >= 0.1'", "net='jaccard(words:1) >= 0.1'")
    wider = f", or widen the net, as with {net_of_words}" if outside else ""
    raise RecipeError(
        f"labelled duplicates: {duplicates:,}, others: {others:,}{without}, which is too few to learn from; "
        f"{LEAST_LABELS} of each are the least: label more pairs{wider}"
    )


def _decision(pairs: LabelledPairs, vector: Vector, net: Recipe, reading: Reading, learned: Learned) -> Decision:
    return Decision(
        net=net,
        vector=vector,
        statistics=pairs.statistics,
        machine=learned.machine,
        scores=learned.chosen.g,
        labels=pairs.duplicate[pairs.decided],
        title_column=reading.title_column,
        time_column=reading.time_column,
        estimator=learned.estimator,
    )
