"""Recipes and classifiers compared on labelled documents: the figures of each at each threshold, with intervals."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import pyarrow as pa

from neardup.classifier.classifier import ClassifierLike
from neardup.classifier.domain import DomainCounts
from neardup.documents import Corpus, corpus_of, write_table
from neardup.documents.output import OutputFile, check_place, is_table_name
from neardup.errors import OutputError, RecipeError, option
from neardup.evaluation.scores import (
    MIN_GROUPS,
    RESAMPLES,
    Figure,
    Resamples,
    Tally,
    accuracy_figures,
    f1_lead,
    record_dict,
    resample,
    score_rows,
    tally_pairs,
)
from neardup.evaluation.systems import (
    FEW_DOCUMENTS,
    USUAL_THRESHOLDS,
    WIDE_THRESHOLDS,
    System,
    ThresholdGrid,
    classifier_systems,
    parse_thresholds,
    recipe_systems,
    scored_pairs,
    unique_names,
)
from neardup.features.embeddings import Encoder
from neardup.features.reading import Progress
from neardup.kernels.compilation import record_compilations
from neardup.labels.labels import Labels, cluster_labels, read_labels
from neardup.pipeline.pipeline import run
from neardup.pipeline.result import Result
from neardup.recipe import AnyRecipe, Recipe
from neardup.version import __version__

#: The figures of a row, by name.
FIGURES = ("precision", "recall", "f1", "accuracy")


class Row(NamedTuple):
    """A recipe or a classifier at one threshold."""

    #: As recipes write it; of the probability for a classifier.
    threshold: float
    #: Whether it is the recipe's or the classifier's own.
    own: bool
    #: Returned pairs that carry a label, and those of them that are duplicates.
    returned: int
    correct: int
    #: Labelled duplicates that are not returned.
    missed: int
    #: Returned pairs that carry no label; they count nowhere else.
    unlabelled: int
    #: With 95% intervals. Accuracy, the share of labelled pairs that are put on the right side, has no value where
    #: pairs without a label count as none.
    precision: Figure
    recall: Figure
    f1: Figure
    accuracy: Figure


@dataclass(frozen=True, slots=True)
class SystemScores:
    """What one recipe or classifier reached."""

    #: The recipe's, or that of the classifier's file, made unique.
    name: str
    #: With its own threshold.
    recipe: Recipe
    #: ``similarity``, ``distance`` (then a pair matches at or below a threshold), ``probability`` for a classifier, or
    #: ``fixed``.
    scale: str
    #: The loosest threshold first.
    rows: tuple[Row, ...]
    #: The one with the highest F1, the strictest of equals.
    best: Row
    #: Of the whole run at the loosest threshold, reading included, compiling not.
    wall_s: float
    cpu_s: float
    #: What a classifier was asked, with what passed by its own cut; None for recipes, and for classifiers that do not
    #: know what they were trained on.
    asked: DomainCounts | None

    @property
    def fingerprint_at_best(self) -> str | None:
        """That of the recipe with the best threshold; None for a classifier whose best is not its own cut."""
        if self.best.own:
            return self.recipe.fingerprint
        return None if self.scale == "probability" else self.recipe.changed(threshold=self.best.threshold).fingerprint


class Lead(NamedTuple):
    """How far the best recipe leads another one in F1, each at its best threshold."""

    over: str
    #: In F1, over the same draws of groups.
    difference: Figure
    #: Whether the interval lies above 0, and the two differ in six groups or more.
    beyond_chance: bool
    groups: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recipes and classifiers side by side.

    Attributes
    ----------
    recipes : tuple of SystemScores
        In the order in which they were asked for.
    best : str
        The name of the one with the highest F1, the first of equals.
    leads : tuple of Lead
        Of the best recipe over each other one.
    documents, duplicates, others, groups : int
        How many documents there are, how many pairs are labelled as duplicates and as none, and in how many groups.
    complete : bool
        Whether pairs without a label count as no duplicates.
    warnings : tuple of str
        What to keep in mind when reading the figures.
    """

    recipes: tuple[SystemScores, ...]
    best: str
    leads: tuple[Lead, ...]
    documents: int
    duplicates: int
    others: int
    groups: int
    complete: bool
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        counts = {name: getattr(self, name) for name in ("documents", "duplicates", "others", "groups", "complete")}
        return {
            **counts,
            "warnings": list(self.warnings),
            "best": self.best,
            "leads": [record_dict(lead) for lead in self.leads],
            "resamples": RESAMPLES,
            "version": __version__,
            "recipes": [self._scored(scored) for scored in self.recipes],
        }

    def _scored(self, scored: SystemScores) -> dict[str, Any]:
        per_document = 1000 / max(self.documents, 1)
        recipe, step = scored.recipe, scored.recipe.parsed_second_step
        learned = step is not None and step.measure == "learned"
        return {
            "name": scored.name,
            "description": recipe.description,
            "fingerprint": recipe.fingerprint,
            "classifier": step.features if learned and step is not None else None,
            "scale": scored.scale,
            "wall_ms_per_document": scored.wall_s * per_document,
            "cpu_ms_per_document": scored.cpu_s * per_document,
            **({} if scored.asked is None else {"asked": scored.asked._asdict()}),
            "best": record_dict(scored.best) | {"fingerprint": scored.fingerprint_at_best},
            "rows": [record_dict(row) for row in scored.rows],
        }

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each recipe and threshold."""
        rows: list[dict[str, Any]] = []
        for scored in self.to_dict()["recipes"]:
            for row in scored["rows"]:
                figures = {name: row[name] for name in FIGURES}
                line = {"recipe": scored["name"]} | {name: row[name] for name in row if name not in figures}
                for name, figure in figures.items():
                    line |= {name: figure["value"], f"{name}_low": figure["low"], f"{name}_high": figure["high"]}
                line["best"] = row["threshold"] == scored["best"]["threshold"]
                rows.append(line | {name: scored[name] for name in ("wall_ms_per_document", "cpu_ms_per_document")})
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in _COLUMNS.items()})

    def to_html(self, *, command: str = "") -> str:
        """Return a page with curves and tables that needs nothing but a browser.

        Parameters
        ----------
        command : str
            As it was typed, for the page to say.

        Raises
        ------
        RecipeError
            If the packages that draw are not installed.
        """
        from neardup.evaluation.comparison_page import comparison_page

        return comparison_page(self.to_dict(), typed=command)

    def to_latex(self) -> str:
        """Return each recipe at its best threshold and at its own as a tabular of LaTeX, figures with their intervals.

        Comments behind it name the version and the fingerprints.
        """
        lines = [
            f"% Best threshold of each recipe by F1, and its own; {self.documents:,} documents, {self.duplicates:,} "
            "labelled duplicates; 95% intervals.",
            r"\begin{tabular}{lrrrr}",
            r"recipe & threshold & precision & recall & $F_1$ \\",
            r"\hline",
        ]
        marks = [f"% neardup {__version__}"]
        for one in self.recipes:
            name = one.name.replace("_", r"\_")
            for row in (one.best, *(row for row in one.rows if row.own and row is not one.best)):
                figures = (_latex_figure(figure) for figure in (row.precision, row.recall, row.f1))
                lines.append(" & ".join([name, _latex_threshold(one, row), *figures]) + r" \\")
            marks.append(f"% {name}: fingerprint {one.recipe.fingerprint}")
            if not one.best.own and one.fingerprint_at_best:
                marks[-1] += f", at {one.best.threshold:g} {one.fingerprint_at_best}"
        return "\n".join([*lines, r"\end{tabular}", *marks])

    def write(self, output: str | os.PathLike[str], *, force: bool = False, command: str = "") -> None:
        """Write a page (.html), everything (.json), a table for a paper (.tex) or all rows (.csv, .parquet, others).

        Parameters
        ----------
        output : path
            Its ending says which.
        force : bool
            Whether an existing file may be replaced.
        command : str
            As it was typed, for the page to say.

        Raises
        ------
        OutputError
            If the name says no such format, or the place cannot be written.
        """
        name = os.fspath(output)
        check_comparison_output(name, force=force)
        if not name.endswith((".html", ".json", ".tex")):
            write_table(self.to_arrow(), name, force=force)
            return
        if name.endswith(".html"):
            content = self.to_html(command=command)
        elif name.endswith(".tex"):
            content = self.to_latex()
        else:
            content = json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        with OutputFile(name) as file:
            file.write(content.encode() + b"\n")

    def _repr_html_(self) -> str | None:
        # Without what draws, a notebook shows the text that `repr` gives.
        if find_spec("altair") is None or find_spec("jinja2") is None:
            return None
        from neardup.evaluation.comparison_page import cell_of

        return cell_of(self.to_dict())

    def __repr__(self) -> str:
        best = next(scored for scored in self.recipes if scored.name == self.best)
        return f"<{len(self.recipes)} recipes compared, the best {self.best} at {best.best.threshold:g}>"


#: The columns of a table of rows.
_COLUMNS = {
    "recipe": pa.large_string(),
    "threshold": pa.float64(),
    "own": pa.bool_(),
    **dict.fromkeys(("returned", "correct", "missed", "unlabelled"), pa.int64()),
    **{f"{name}{end}": pa.float64() for name in FIGURES for end in ("", "_low", "_high")},
    "best": pa.bool_(),
    **dict.fromkeys(("wall_ms_per_document", "cpu_ms_per_document"), pa.float64()),
}


def check_comparison_output(output: str, inputs: Sequence[str] = (), *, force: bool = False) -> None:
    """Refuse, before any work is done, an output of another format or one that cannot or must not be written."""
    if output == "-" or not (output.endswith((".html", ".tex")) or is_table_name(output)):
        raise OutputError(f"{output} says no format of a comparison; name it .html, .json, .tex, .csv or .parquet")
    check_place(output, inputs, force)


def _latex_figure(figure: Figure) -> str:
    if figure.value is None:
        return "--"
    interval = "" if figure.low is None else rf" ({figure.low:.2f}--{figure.high:.2f})"
    return f"{figure.value:.3f}{interval}"


def _latex_threshold(scored: SystemScores, row: Row) -> str:
    if scored.scale == "fixed":
        return "--"
    bound = r"$\le$ " if scored.scale == "distance" else ""
    return f"{bound}{row.threshold:.4g}{' (own)' if row.own else ''}"


#: A recipe runs on so many documents before its time is taken.
_WARM_DOCUMENTS = 100
#: A recipe that finds no features in so large a share of the documents does not fit them.
_NEARLY_ALL = 0.9


class _Run(NamedTuple):
    """One recipe's or classifier's run."""

    name: str
    recipe: Recipe
    grid: ThresholdGrid
    tally: Tally
    wall_s: float
    cpu_s: float
    featureless: int
    asked: DomainCounts | None
    complaint: str


class _Read(NamedTuple):
    """What a first look at the corpus gives."""

    names: list[str]
    clusters: list[str | None]
    sample: pa.Table


def compare(
    corpus: Corpus,
    labels: Any = None,
    *,
    recipes: Sequence[AnyRecipe] | None = None,
    classifiers: Sequence[ClassifierLike] = (),
    content: str | None = None,
    thresholds: str | Sequence[float] | None = None,
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
    progress: Progress | None = None,
) -> Comparison:
    """Score recipes and classifiers against labels, at several thresholds each.

    Each recipe runs once, at the loosest of its thresholds, and finds all pairs; the stricter ones are read off. A
    classifier runs once for all candidates, and thresholds are those of the probability. The time is that of
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
    classifiers : sequence of Classifier or path
        Classifiers, or their files, after which they are called.
    content : str, optional
        Taken by all recipes in place of their own: see ``Recipe``. Classifiers keep theirs.
    thresholds : str or sequence of float, optional
        ``first:last:step``, a list separated by commas, or numbers: the thresholds of similarities and probabilities.
        None takes 0.05 to 0.95; 0.5 to 0.95 with more than 2,000 documents, of which far too many pairs reach 0.05.
        Simhash takes Hamming distances 0 to 10, and recipes that know one answer keep theirs. The threshold, or cut,
        that a recipe or classifier has by itself is tried, too.
    label_column, positive, only, complete, ignore_unknown
        See ``labels.read_labels``.
    title_column, time_column : str, optional
        Where titles and times are, for classifiers that compare them; as in training by default.
    threads, memory, encoder, progress
        See ``pipeline.run``; progress is told of recipes.

    Raises
    ------
    NeardupError
        If the corpus or the labels cannot be read, or an option does not fit.
    """

    def systems_at(thresholds: str | Sequence[float]) -> list[System]:
        asked = parse_thresholds(thresholds)
        given = classifier_systems(classifiers, title_column, time_column, asked)
        return recipe_systems(recipes, content, asked) + given

    systems = systems_at(WIDE_THRESHOLDS if thresholds is None else thresholds)
    read = _look(corpus)
    if thresholds is None and len(read.names) > FEW_DOCUMENTS:
        systems = systems_at(USUAL_THRESHOLDS)
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
    for number, (name, system) in enumerate(zip(unique_names(systems), systems, strict=True)):
        if progress is not None:
            progress("recipes", number, len(systems))
        once = partial(_run, system=system, threads=threads, memory=memory, encoder=encoder)
        if not system.needs_columns:
            once(corpus_of(read.sample))
        result, wall, cpu = _timed(partial(once, corpus))
        counted = tally_pairs(scored_pairs(result, system), known, system.grid.cuts)
        asked, complaint = _at_home(result, system)
        undecidable = len(result.undecidable)
        runs.append(_Run(name, system.recipe, system.grid, counted, wall, cpu, undecidable, asked, complaint))
    return _compared(runs, known, len(set(read.names)))


def _run(corpus: Corpus, system: System, *, threads: int | None, memory: int | None, encoder: Encoder | None) -> Result:
    recipe, classifier = system.loosest_search
    return run(
        corpus,
        recipe,
        classifier=classifier,
        threads=threads,
        memory=memory,
        encoder=encoder,
        pairs_per_document=None,
    )


def _at_home(result: Result, system: System) -> tuple[DomainCounts | None, str]:
    """Return what a classifier was asked, with what passes by its own cut, and why it is not at home, if so."""
    own = system.classifier
    if own is None or own.domain is None or result.vectors is None:
        return None, ""
    found = result.summary["classifier"]
    passed = int(own.passes(own.score(result.vectors)).sum())
    asked = DomainCounts(found["candidates"], found["outside"], passed)
    return asked, own.complaint(asked)


def _timed(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return a run's result, its wall and its CPU seconds; a run that had to compile is taken again."""
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        with record_compilations() as compiled:
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
    for batch in corpus.scan():
        names += map(str, batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist())
        if batch.order is not None:
            clusters += (None if value in (None, "") else str(value) for value in batch.order.to_pylist())
        sample += batch.texts.slice(0, _WARM_DOCUMENTS - len(sample)).to_pylist()
    return _Read(names, clusters, pa.table({"text": pa.array(sample, pa.large_string())}))


def _compared(runs: Sequence[_Run], labels: Labels, documents: int) -> Comparison:
    draws = resample([one.tally for one in runs], labels)
    right = accuracy_figures([one.tally for one in runs], labels)
    scored: list[SystemScores] = []
    places: list[int] = []
    begin = 0
    for one in runs:
        end = begin + len(one.grid.thresholds)
        rows = _rows(one, labels, draws.select_rows(begin, end), right[begin:end])
        best = max(range(len(rows)), key=lambda at: (_value(rows[at].f1), at))
        costs = one.wall_s, one.cpu_s
        scored.append(SystemScores(one.name, one.recipe, one.grid.scale, tuple(rows), rows[best], *costs, one.asked))
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
        others=labels.different_pairs,
        groups=labels.groups,
        complete=labels.complete,
        warnings=(*labels.warnings, *_of_edges(scored), *_of_features(runs, documents), *_of_homes(runs)),
    )


def _rows(one: _Run, labels: Labels, draws: Resamples, right: Sequence[Figure]) -> list[Row]:
    correct, wrong = (one.tally.totals(cells) for cells in (one.tally.correct, one.tally.wrong))
    duplicates = labels.duplicates
    return [
        Row(
            threshold=one.grid.thresholds[at],
            own=one.grid.thresholds[at] == one.grid.own,
            returned=int(correct[at] + wrong[at]),
            correct=int(correct[at]),
            missed=int(duplicates - correct[at]),
            unlabelled=int(one.tally.unlabelled[at]),
            precision=score.precision,
            recall=score.recall,
            f1=score.f1,
            accuracy=right[at],
        )
        for at, score in enumerate(score_rows(correct, wrong, duplicates, draws))
    ]


def _lead(best: SystemScores, other: SystemScores, draws: Resamples, place: int, other_place: int) -> Lead:
    low, high, groups = f1_lead(draws, place, other_place)
    sure = low is not None and low > 0 and groups >= MIN_GROUPS
    return Lead(other.name, Figure(_value(best.best.f1) - _value(other.best.f1), low, high), sure, groups)


def _of_edges(scored: Sequence[SystemScores]) -> list[str]:
    """Return where a threshold beyond those that were tried may be better, with the way to try it."""
    widen = f"widen the range with {option('--thresholds')}"
    copy = option(
        "neardup recipe show prints a recipe; give a copy with a larger threshold to --recipes",
        "give recipe.changed(threshold=...) with a larger one in recipes",
    )
    edges: dict[tuple[str, str, str], list[str]] = {}
    for one in scored:
        values = [_value(row.f1) for row in one.rows]
        at = one.rows.index(one.best)
        if len(values) < 2 or not values[at]:
            continue
        way = copy if one.scale == "distance" else widen
        named = f"{one.name} ({one.best.threshold:.4g})"
        if at == 0:
            edges.setdefault(("loosest", "looser", way), []).append(named)
        elif at == len(values) - 1 and values[at] > values[at - 1] and one.best.threshold not in (0, 1):
            edges.setdefault(("strictest", "stricter", way), []).append(named)
    return [
        f"Best at the {last} threshold that was tried, so a {beyond} one may be better: {', '.join(names)}; {way}."
        for (last, beyond, way), names in edges.items()
    ]


def _of_features(runs: Sequence[_Run], documents: int) -> list[str]:
    return [
        f"{one.name} finds no features in {one.featureless:,} of the {documents:,} documents, so these match nothing; "
        f"name recipes that fit these texts with {option('--recipes')}."
        for one in runs
        if documents and one.featureless >= _NEARLY_ALL * documents
    ]


def _of_homes(runs: Sequence[_Run]) -> list[str]:
    return [f"{one.name}: {one.complaint}; the labels here say how it does." for one in runs if one.complaint]


def _value(figure: Figure) -> float:
    return 0.0 if figure.value is None else figure.value
