"""Runs recipes over one labelled corpus and scores what each returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup._kernels.watching import compilations
from neardup.documents import Corpus, corpus_of
from neardup.errors import RecipeError
from neardup.evaluation.comparison import Comparison, Lead, Row, Scored
from neardup.evaluation.labels import Labels, cluster_labels, read_labels
from neardup.evaluation.scoring import Figure, Resamples, Tally, beyond_chance, resample, scores, tally
from neardup.evaluation.thresholds import USUAL_THRESHOLDS, Ladder, ladder, thresholds_of
from neardup.pairs import PairArrays
from neardup.pipeline import run
from neardup.recipe import Recipe, load
from neardup.recipe import names as recipe_names
from neardup.result import Result
from neardup.vector.encoder import Encoder

#: A recipe runs on so many documents before its time is taken.
_WARM_DOCUMENTS = 100

Report = Callable[[str, int, int | None], None]


class _Run(NamedTuple):
    """One recipe's run."""

    name: str
    recipe: Recipe
    ladder: Ladder
    tally: Tally
    wall_s: float
    cpu_s: float


class _Read(NamedTuple):
    """What a first look at the corpus gives."""

    names: list[str]
    clusters: list[str | None]
    sample: pa.Table


def compare(
    corpus: Corpus,
    labels: Any = None,
    *,
    recipes: Sequence[Recipe | str] | None = None,
    content: str | None = None,
    thresholds: str | Sequence[float] = USUAL_THRESHOLDS,
    label_column: str | None = None,
    positive: float = 1.0,
    complete: bool = False,
    ignore_unknown: bool = False,
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
) -> Comparison:
    """Score recipes against labels, at several thresholds each.

    Each recipe runs once, at the loosest of its thresholds, and finds all pairs; the stricter ones are read off. Its
    time is that of this run, reading included, compiling not. (An approximate search finds a stated share of the pairs
    at the threshold that it runs with, and more of those above it.)

    Parameters
    ----------
    corpus : Corpus
        The documents; opened with the column of clusters as ``order_column`` where there are no labels.
    labels : path, table, or list of (id, id, label), optional
        As ``labels.read_labels`` takes them. None takes the corpus's clusters.
    recipes : sequence of Recipe or str, optional
        Recipes, names or TOML files; all that come with the package by default.
    content : str, optional
        Taken by all recipes in place of their own: see ``Recipe``.
    thresholds : str or sequence of float
        ``first:last:step``, a list parted by commas, or numbers: the thresholds of similarities. Simhash takes Hamming
        distances 0 to 10, and recipes that know one answer keep theirs. A recipe's own threshold is tried, too.
    label_column, positive, complete, ignore_unknown
        See ``labels.read_labels``.
    threads, memory, encoder, progress
        See ``pipeline.run``; progress is told of recipes.

    Raises
    ------
    NeardupError
        If the corpus or the labels cannot be read, or an option does not fit.
    """
    asked = thresholds_of(thresholds)
    chosen = [recipe if isinstance(recipe, Recipe) else load(recipe) for recipe in recipes or recipe_names()]
    if content is not None:
        chosen = [recipe.changed(content=content) for recipe in chosen]
    read = _look(corpus)
    if labels is not None and corpus.order_column is not None:
        raise RecipeError("labels come from one place: give labels, or a column of clusters, not both")
    if labels is not None:
        known = read_labels(
            labels,
            read.names,
            label_column=label_column,
            positive=positive,
            complete=complete,
            ignore_unknown=ignore_unknown,
        )
    elif corpus.order_column is None:
        raise RecipeError("there are no labels; give a file with --labels, or a column of clusters with --clusters")
    else:
        known = cluster_labels(read.clusters, read.names, f"column {corpus.order_column!r}")
    runs: list[_Run] = []
    for number, (name, recipe) in enumerate(zip(_told_apart(chosen), chosen, strict=True)):
        if progress is not None:
            progress("recipes", number, len(chosen))
        steps = ladder(recipe, asked)
        loosest = recipe.changed(keep="first", threshold=steps.thresholds[0])
        once = partial(run, recipe=loosest, threads=threads, memory=memory, encoder=encoder, pairs_per_document=None)
        once(corpus_of(read.sample))
        result, wall, cpu = _timed(partial(once, corpus))
        runs.append(_Run(name, recipe, steps, tally(_pairs_of(result, steps), known, steps.cuts), wall, cpu))
    return _compared(runs, known, len(set(read.names)))


def _timed(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return a run's result, its wall and its CPU seconds; a run that had to compile is taken again."""
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        with compilations() as compiled:
            result = work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if not compiled:
            break
    return result, wall, cpu


def _pairs_of(result: Result, steps: Ladder) -> Iterator[PairArrays]:
    """Yield the pairs with the similarity that the thresholds are about.

    After a second step a result tells the second measure's; then the thresholds that still return a pair are counted.
    """
    if not result.recipe.then:
        yield from result.pairs.arrays()
        return
    ends = [np.zeros((0, 2), np.int64)]
    for threshold in steps.thresholds:
        ends += [np.stack([part.left, part.right], axis=1) for part in result.at(threshold).pairs.arrays()]
    pairs, times = np.unique(np.concatenate(ends), axis=0, return_counts=True)
    yield PairArrays(pairs[:, 0], pairs[:, 1], np.asarray(steps.cuts)[times - 1])


def _look(corpus: Corpus) -> _Read:
    """Read ids, clusters and a few texts."""
    names: list[str] = []
    clusters: list[str | None] = []
    sample: list[str] = []
    for batch in corpus.scan():
        names += map(str, batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist())
        if batch.order is not None:
            clusters += (None if value in (None, "") else str(value) for value in batch.order.to_pylist())
        sample += batch.texts.slice(0, _WARM_DOCUMENTS - len(sample)).to_pylist()
    return _Read(names, clusters, pa.table({"text": pa.array(sample, pa.large_string())}))


def _told_apart(recipes: Sequence[Recipe]) -> list[str]:
    """Return the recipes' names, with a number behind those that others have, too."""
    names: list[str] = []
    for recipe in recipes:
        number, name = 1, recipe.name
        while name in names:
            number += 1
            name = f"{recipe.name} ({number})"
        names.append(name)
    return names


def _compared(runs: Sequence[_Run], labels: Labels, documents: int) -> Comparison:
    draws = resample([one.tally for one in runs], labels)
    scored: list[Scored] = []
    places: list[int] = []
    begin = 0
    for one in runs:
        end = begin + len(one.ladder.thresholds)
        rows = _rows(one, labels, draws.of(begin, end))
        best = max(range(len(rows)), key=lambda at: (_value(rows[at].f1), at))
        scored.append(Scored(one.name, one.recipe, one.ladder.scale, tuple(rows), rows[best], one.wall_s, one.cpu_s))
        places.append(begin + best)
        begin = end
    first = max(range(len(scored)), key=lambda at: (_value(scored[at].best.f1), -at))
    leads = [
        _lead(scored[first], scored[at], draws, places[first], places[at]) for at in range(len(scored)) if at != first
    ]
    return Comparison(
        recipes=tuple(scored),
        best=scored[first].name,
        leads=tuple(leads),
        documents=documents,
        duplicates=labels.duplicates,
        others=labels.others,
        groups=labels.groups,
        complete=labels.complete,
        warnings=labels.warnings,
    )


def _rows(one: _Run, labels: Labels, draws: Resamples) -> list[Row]:
    correct, wrong = (one.tally.totals(cells) for cells in (one.tally.correct, one.tally.wrong))
    duplicates = labels.duplicates
    return [
        Row(
            threshold=one.ladder.thresholds[at],
            own=one.ladder.thresholds[at] == float(one.recipe.exact_threshold),
            returned=int(correct[at] + wrong[at]),
            correct=int(correct[at]),
            missed=int(duplicates - correct[at]),
            unlabelled=int(one.tally.unlabelled[at]),
            precision=score.precision,
            recall=score.recall,
            f1=score.f1,
        )
        for at, score in enumerate(scores(correct, wrong, duplicates, draws))
    ]


def _lead(best: Scored, other: Scored, draws: Resamples, place: int, other_place: int) -> Lead:
    low, high, sure = beyond_chance(draws, place, other_place)
    return Lead(other.name, Figure(_value(best.best.f1) - _value(other.best.f1), low, high), sure)


def _value(figure: Figure) -> float:
    return 0.0 if figure.value is None else figure.value
