"""Learning from labelled pairs what a near-duplicate is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.api.given import corpus_from
from neardup.decision.net import NET
from neardup.learning.outcome import Training
from neardup.learning.searching import KERNELS
from neardup.learning.training import FOLDS
from neardup.learning.training import train as train_corpus
from neardup.reading import Report
from neardup.vector.encoder import Encoder
from neardup.vector.vector import Vector


def train(
    data: Any,
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
    text_column: str | None = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
) -> Training:
    """Train a decision on labelled pairs; ``.decision`` of the result is for ``dedup`` and others, or ``.save(path)``.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or what ``open_files`` gives.
    labels : path, table, or list of (id, id, label)
        Pairs that people judged; see ``evaluation.labels.read_labels``.
    vector, net, content, label_column, positive, only, ignore_unknown, kernels, folds, seed
        See ``learning.training.train``.
    text_column, id_column, title_column, time_column, threads, encoder, progress
        As in ``dedup``.

    Raises
    ------
    NeardupError
        If something cannot be read, an option does not fit, or the labels are too few.
    """
    return train_corpus(
        corpus_from(data, text_column, id_column),
        labels,
        vector=vector,
        net=net,
        content=content,
        label_column=label_column,
        positive=positive,
        only=only,
        ignore_unknown=ignore_unknown,
        kernels=kernels,
        folds=folds,
        seed=seed,
        threads=threads,
        encoder=encoder,
        title_column=title_column,
        time_column=time_column,
        progress=progress,
    )
