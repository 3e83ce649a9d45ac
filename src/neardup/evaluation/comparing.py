"""Runs recipes and decisions over one labelled corpus and scores what each returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup._kernels.watching import compilations
from neardup.decision.choosing import Given
from neardup.documents import Corpus, corpus_of
from neardup.errors import RecipeError, option
from neardup.evaluation.comparison import Comparison, Lead, Row, Scored
from neardup.evaluation.entrants import Entrant, decision_entrants, pairs_of, recipe_entrants, told_apart
from neardup.evaluation.labels import Labels, cluster_labels, read_labels
from neardup.evaluation.scoring import Figure, Resamples, Tally, accuracies, beyond_chance, resample, scores, tally
from neardup.evaluation.thresholds import USUAL_THRESHOLDS, Ladder, thresholds_of
from neardup.pairs import PairArrays
from neardup.pipeline import run
from neardup.recipe import AnyRecipe, Recipe
from neardup.result import Result
from neardup.vector.encoder import Encoder

#: A recipe runs on so many documents before its time is taken.
_WARM_DOCUMENTS = 100

Report = Callable[[str, int, int | None], None]


#: Finds the pairs of a recipe that has this name, elsewhere: by raw rows, with wall and CPU seconds.
Engine = Callable[[str, Recipe], tuple[Iterable[PairArrays], float, float]]


class _Run(NamedTuple):
    """One recipe's or decision's run."""

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
    rows: np.ndarray[Any, np.dtype[np.int64]]


def compare(
    corpus: Corpus,
    labels: Any = None,
    *,
    recipes: Sequence[AnyRecipe] | None = None,
    decisions: Sequence[Given] = (),
    content: str | None = None,
    thresholds: str | Sequence[float] = USUAL_THRESHOLDS,
    label_column: str | None = None,
    positive: float = 1.0,
    only: str | None = None,
    complete: bool = False,
    ignore_unknown: bool = False,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
    engine: Engine | None = None,
) -> Comparison:
    """Score recipes and learned decisions against labels, at several thresholds each.

    Each recipe runs once, at the loosest of its thresholds, and finds all pairs; the stricter ones are read off. A
    decision runs once for all candidates of its net, and thresholds are those of the probability. The time is that of
    this run, reading included, compiling not. (An approximate search finds a stated share of the pairs at the threshold
    that it runs with, and more of those above it.)

    Parameters
    ----------
    corpus : Corpus
        The documents; opened with the column of clusters as ``order_column`` where there are no labels.
    labels : path, table, or list of (id, id, label), optional
        As ``labels.read_labels`` takes them. None takes the corpus's clusters.
    recipes : sequence of Recipe, str or path, optional
        Recipes, names or TOML files; all that come with the package by default.
    decisions : sequence of Decision or path
        Learned decisions, or their files, after which they are called.
    content : str, optional
        Taken by all recipes in place of their own: see ``Recipe``. Decisions keep theirs.
    thresholds : str or sequence of float
        ``first:last:step``, a list parted by commas, or numbers: the thresholds of similarities and probabilities.
        Simhash takes Hamming distances 0 to 10, and recipes that know one answer keep theirs. The threshold, or cut,
        that a recipe or decision has by itself is tried, too.
    label_column, positive, only, complete, ignore_unknown
        See ``labels.read_labels``.
    title_column, time_column : str, optional
        Where titles and times are, for decisions that compare them; as in training by default.
    threads, memory, encoder, progress
        See ``pipeline.run``; progress is told of recipes.
    engine : callable, optional
        Finds the pairs of recipes in place of this process, as it would (``check_for_engine`` says of which).

    Raises
    ------
    NeardupError
        If the corpus or the labels cannot be read, or an option does not fit.
    """
    asked = thresholds_of(thresholds)
    entrants = recipe_entrants(recipes, content, asked) + decision_entrants(decisions, title_column, time_column, asked)
    read = _look(corpus)
    if labels is not None and corpus.order_column is not None:
        raise RecipeError("labels come from one place: give labels, or a column of clusters, not both")
    if labels is not None:
        known = read_labels(
            labels,
            read.names,
            label_column=label_column,
            positive=positive,
            only=only,
            complete=complete,
            ignore_unknown=ignore_unknown,
        )
    elif corpus.order_column is None:
        raise RecipeError(
            f"there are no labels; give {option('--labels')}, or a column of clusters with {option('--clusters')}"
        )
    elif only is not None or label_column is not None or positive != 1.0 or complete or ignore_unknown:
        raise RecipeError(
            "only, label_column, positive, complete and ignore_unknown are for rows of labels, and clusters have none; "
            "leave them out"
        )
    else:
        known = cluster_labels(read.clusters, read.names, f"column {corpus.order_column!r}")
    runs: list[_Run] = []
    for number, (name, entrant) in enumerate(zip(told_apart(entrants), entrants, strict=True)):
        if progress is not None:
            progress("recipes", number, len(entrants))
        if engine is not None:
            pairs, wall, cpu = engine(name, entrant.loosest[0])
            counted = tally(_by_position(pairs, read.rows), known, entrant.ladder.cuts)
            runs.append(_Run(name, entrant.recipe, entrant.ladder, counted, wall, cpu))
            continue
        once = partial(_run, entrant=entrant, threads=threads, memory=memory, encoder=encoder)
        if not entrant.needs_columns:
            once(corpus_of(read.sample))
        result, wall, cpu = _timed(partial(once, corpus))
        counted = tally(pairs_of(result, entrant), known, entrant.ladder.cuts)
        runs.append(_Run(name, entrant.recipe, entrant.ladder, counted, wall, cpu))
    return _compared(runs, known, len(set(read.names)))


def check_for_engine(recipes: Sequence[Recipe], thresholds: str, check: Callable[[Recipe], None]) -> None:
    """Refuse recipes that another engine cannot run at the loosest of their thresholds, before the work starts.

    Raises
    ------
    RecipeError
        One sentence that names all of them.
    """
    able, unable = [], []
    for entrant in recipe_entrants(recipes, None, thresholds_of(thresholds)):
        try:
            if entrant.recipe.then:
                raise RecipeError(f"then {entrant.recipe.then!r} is compared in this process only")
            check(entrant.loosest[0])
            able.append(entrant.recipe.name)
        except RecipeError as error:
            unable.append(f"{entrant.recipe.name} ({str(error).partition(';')[0]})")
    if unable:
        named = option("--recipes")
        way_out = f"name others, such as {named} {','.join(able)}" if able else f"name others with {named}"
        raise RecipeError(f"the engine cannot run {', '.join(unable)}: {way_out}, or leave out {option('--engine')}")


def _by_position(parts: Iterable[PairArrays], rows: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[PairArrays]:
    """Yield pairs of raw rows as pairs of positions among the documents."""
    for part in parts:
        yield PairArrays(np.searchsorted(rows, part.left), np.searchsorted(rows, part.right), part.similarity)


def _run(
    corpus: Corpus, entrant: Entrant, *, threads: int | None, memory: int | None, encoder: Encoder | None
) -> Result:
    recipe, decision = entrant.loosest
    return run(
        corpus,
        recipe,
        decision=decision,
        threads=threads,
        memory=memory,
        encoder=encoder,
        pairs_per_document=None,
    )


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


def _look(corpus: Corpus) -> _Read:
    """Read ids, clusters and a few texts."""
    names: list[str] = []
    clusters: list[str | None] = []
    sample: list[str] = []
    rows = [np.zeros(0, np.int64)]
    for batch in corpus.scan():
        names += map(str, batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist())
        if batch.order is not None:
            clusters += (None if value in (None, "") else str(value) for value in batch.order.to_pylist())
        rows.append(batch.rows)
        sample += batch.texts.slice(0, _WARM_DOCUMENTS - len(sample)).to_pylist()
    return _Read(names, clusters, pa.table({"text": pa.array(sample, pa.large_string())}), np.concatenate(rows))


def _compared(runs: Sequence[_Run], labels: Labels, documents: int) -> Comparison:
    draws = resample([one.tally for one in runs], labels)
    right = accuracies([one.tally for one in runs], labels)
    scored: list[Scored] = []
    places: list[int] = []
    begin = 0
    for one in runs:
        end = begin + len(one.ladder.thresholds)
        rows = _rows(one, labels, draws.of(begin, end), right[begin:end])
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


def _rows(one: _Run, labels: Labels, draws: Resamples, right: Sequence[Figure]) -> list[Row]:
    correct, wrong = (one.tally.totals(cells) for cells in (one.tally.correct, one.tally.wrong))
    duplicates = labels.duplicates
    return [
        Row(
            threshold=one.ladder.thresholds[at],
            own=one.ladder.thresholds[at] == one.ladder.own,
            returned=int(correct[at] + wrong[at]),
            correct=int(correct[at]),
            missed=int(duplicates - correct[at]),
            unlabelled=int(one.tally.unlabelled[at]),
            precision=score.precision,
            recall=score.recall,
            f1=score.f1,
            accuracy=right[at],
        )
        for at, score in enumerate(scores(correct, wrong, duplicates, draws))
    ]


def _lead(best: Scored, other: Scored, draws: Resamples, place: int, other_place: int) -> Lead:
    low, high, sure = beyond_chance(draws, place, other_place)
    return Lead(other.name, Figure(_value(best.best.f1) - _value(other.best.f1), low, high), sure)


def _value(figure: Figure) -> float:
    return 0.0 if figure.value is None else figure.value
