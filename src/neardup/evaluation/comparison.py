"""The comparison of recipes and classifiers on labelled documents: figures at each threshold, with intervals."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier, ClassifierLike
from neardup.classifier.domain import DomainCounts
from neardup.documents import Corpus, TextColumn, as_corpus, corpus_of, write_table
from neardup.documents.output import OutputFile, check_place, is_table_name
from neardup.errors import OutputError, RecipeError, option, with_suggestions
from neardup.evaluation.intervals import MIN_GROUPS, RESAMPLES, Figure, record_dict
from neardup.evaluation.scores import Resamples, Tally, accuracy_figures, f1_lead, resample, score_rows, tally_pairs
from neardup.evaluation.systems import (
    FEW_DOCUMENTS,
    USUAL_THRESHOLDS,
    WIDE_THRESHOLDS,
    System,
    classifier_systems,
    parse_thresholds,
    recipe_systems,
    scored_pairs,
    unique_names,
)
from neardup.features.extraction import Encoder
from neardup.features.reading import Progress, compared_texts
from neardup.kernels.compilation import record_compilations
from neardup.labels.labels import Labels, cluster_labels, read_labels
from neardup.pipeline.pipeline import run as run_recipe
from neardup.pipeline.result import Result
from neardup.recipe import AnyRecipe, Recipe
from neardup.runtime import default_threads
from neardup.version import __version__

FIGURES = ("precision", "recall", "f1", "accuracy")


class ThresholdScores(NamedTuple):
    """The figures of a recipe or a classifier at one threshold, with 95% intervals."""

    #: As a recipe states it; of the probability for a classifier.
    threshold: float
    own: bool
    #: The numbers of returned pairs with a label, of labelled duplicates that are returned and that are not, and of
    #: returned pairs without a label, which are not used.
    returned: int
    correct: int
    missed: int
    unlabelled: int
    precision: Figure
    recall: Figure
    f1: Figure
    #: The share of labelled pairs with the right verdict; no value if pairs without a label count as different.
    accuracy: Figure


@dataclass(frozen=True, slots=True)
class SystemScores:
    """The figures of one recipe or classifier."""

    #: The name of the recipe or of the classifier's file, made unique.
    name: str
    recipe: Recipe
    #: ``similarity``, ``distance`` (pairs match at or below a threshold), ``probability`` for a classifier, or
    #: ``fixed``.
    scale: str
    #: The loosest threshold first.
    rows: tuple[ThresholdScores, ...]
    #: The row with the highest F1, the strictest of equals.
    best: ThresholdScores
    #: The times of the run at the loosest threshold, with reading and without compilation.
    wall_s: float
    cpu_s: float
    #: The candidates of a classifier, with those that pass its own cut; None for recipes, and for classifiers without a
    #: domain.
    domain_counts: DomainCounts | None

    @property
    def fingerprint_at_best(self) -> str | None:
        """The recipe's fingerprint with the best threshold; None for a classifier whose best is not its own cut."""
        if self.best.own:
            return self.recipe.fingerprint
        return None if self.scale == "probability" else self.recipe.changed(threshold=self.best.threshold).fingerprint


class Lead(NamedTuple):
    """The lead of the best recipe over another one in F1, each at its best threshold."""

    over: str
    #: The difference in F1, over the same draws of groups.
    difference: Figure
    #: Whether the interval lies above 0 and the two differ in six groups or more.
    beyond_chance: bool
    groups: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recipes and classifiers side by side.

    Attributes
    ----------
    recipes : tuple of SystemScores
        The systems in the given order, recipes first.
    best : str
        The name of the system with the highest F1, the first of equals.
    leads : tuple of Lead
        The leads of the best system over each other one.
    documents, duplicates, others, groups : int
        The numbers of documents, of pairs labelled as duplicates, of pairs labelled as different, and of groups.
    complete : bool
        Whether pairs without a label count as different.
    warnings : tuple of str
        What a reader of the figures must know.
    columns : dict
        The columns of the texts, ids and clusters.
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
    columns: dict[str, str | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison, ready for JSON."""
        counts = {name: getattr(self, name) for name in ("documents", "duplicates", "others", "groups", "complete")}
        return {
            **counts,
            "warnings": list(self.warnings),
            "best": self.best,
            "leads": [record_dict(lead) for lead in self.leads],
            "columns": self.columns,
            "resamples": RESAMPLES,
            "version": __version__,
            "recipes": [self._system_dict(system) for system in self.recipes],
        }

    def _system_dict(self, system: SystemScores) -> dict[str, Any]:
        ms_per_document = 1000 / max(self.documents, 1)
        recipe, step = system.recipe, system.recipe.parsed_second_step
        return {
            "name": system.name,
            "description": recipe.description,
            "fingerprint": recipe.fingerprint,
            "classifier": step.features if step is not None and step.measure == "learned" else None,
            "scale": system.scale,
            "wall_ms_per_document": system.wall_s * ms_per_document,
            "cpu_ms_per_document": system.cpu_s * ms_per_document,
            **({} if system.domain_counts is None else {"domain_counts": system.domain_counts._asdict()}),
            "best": record_dict(system.best) | {"fingerprint": system.fingerprint_at_best},
            "rows": [record_dict(row) for row in system.rows],
        }

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each recipe and threshold."""
        rows: list[dict[str, Any]] = []
        for system in self.to_dict()["recipes"]:
            for row in system["rows"]:
                figures = {name: row[name] for name in FIGURES}
                line = {"recipe": system["name"]} | {name: row[name] for name in row if name not in figures}
                for name, figure in figures.items():
                    line |= {name: figure["value"], f"{name}_low": figure["low"], f"{name}_high": figure["high"]}
                line["best"] = row["threshold"] == system["best"]["threshold"]
                rows.append(line | {name: system[name] for name in ("wall_ms_per_document", "cpu_ms_per_document")})
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in _COLUMNS.items()})

    def to_html(self, *, command: str = "") -> str:
        """Return the comparison as a page for a browser, with curves and tables.

        Parameters
        ----------
        command : str
            The command line to state on the page.

        Raises
        ------
        RecipeError
            If the packages for charts are not installed.
        """
        from neardup.evaluation.comparison_page import comparison_page

        return comparison_page(self.to_dict(), command_line=command)

    def to_latex(self) -> str:
        """Return a LaTeX tabular with each recipe at its best threshold and at its own, with intervals.

        Comments below it state the version and the fingerprints.
        """
        lines = [
            f"% Best threshold of each recipe by F1, and its own; {self.documents:,} documents, {self.duplicates:,} "
            "labelled duplicates; 95% intervals.",
            r"\begin{tabular}{lrrrr}",
            r"recipe & threshold & precision & recall & $F_1$ \\",
            r"\hline",
        ]
        comments = [f"% neardup {__version__}"]
        for system in self.recipes:
            name = system.name.replace("_", r"\_")
            for row in (system.best, *(row for row in system.rows if row.own and row is not system.best)):
                figures = (_latex_figure(figure) for figure in (row.precision, row.recall, row.f1))
                lines.append(" & ".join([name, _latex_threshold(system, row), *figures]) + r" \\")
            comments.append(f"% {name}: fingerprint {system.recipe.fingerprint}")
            if not system.best.own and system.fingerprint_at_best:
                comments[-1] += f", at {system.best.threshold:g} {system.fingerprint_at_best}"
        return "\n".join([*lines, r"\end{tabular}", *comments])

    def write(self, output: str | os.PathLike[str], *, force: bool = False, command: str = "") -> None:
        """Write a page (.html), JSON (.json), a LaTeX table (.tex), or all rows as a table (.csv, .parquet, others).

        Parameters
        ----------
        output : path
            Its suffix determines the format.
        force : bool
            Whether an existing file may be replaced.
        command : str
            The command line to state on the page.

        Raises
        ------
        OutputError
            If the suffix is none of these, or the file cannot be written.
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
        # Without Jinja2, a notebook shows `repr`.
        if find_spec("jinja2") is None:
            return None
        from neardup.evaluation.comparison_page import notebook_html

        return notebook_html(self.to_dict())

    def __repr__(self) -> str:
        best = next(system for system in self.recipes if system.name == self.best)
        return f"<{len(self.recipes)} recipes compared, the best {self.best} at {best.best.threshold:g}>"


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
    """Check, before any work, that an output has a known format and can be written."""
    if output == "-" or not (output.endswith((".html", ".tex")) or is_table_name(output)):
        raise OutputError(f"{output} has no format of a comparison; name it .html, .json, .tex, .csv or .parquet")
    check_place(output, inputs, force)


def _latex_figure(figure: Figure) -> str:
    if figure.value is None:
        return "--"
    interval = "" if figure.low is None else rf" ({figure.low:.2f}--{figure.high:.2f})"
    return f"{figure.value:.3f}{interval}"


def _latex_threshold(system: SystemScores, row: ThresholdScores) -> str:
    if system.scale == "fixed":
        return "--"
    bound = r"$\le$ " if system.scale == "distance" else ""
    return f"{bound}{row.threshold:.4g}{' (own)' if row.own else ''}"


#: The number of documents of the untimed run that warms up a recipe.
_WARM_UP_DOCUMENTS = 100
#: A recipe that finds no features in this share of the documents does not fit them.
_MIN_FEATURELESS_SHARE = 0.9
#: Up to this share, labelled documents that a classifier was trained on may be common texts, such as empty ones.
_MIN_TRAINING_SHARE = 0.01


class _SystemRun(NamedTuple):
    """A system with its name among the others, the times of its run, and what was counted."""

    name: str
    system: System
    tally: Tally
    wall_s: float
    cpu_s: float
    featureless: int
    domain_counts: DomainCounts | None
    domain_error: str
    training_documents: int  #: labelled documents that a classifier was trained on


@with_suggestions
def compare(
    data: Any,
    labels: Any = None,
    *,
    recipes: Sequence[AnyRecipe] | None = None,
    classifiers: Sequence[ClassifierLike] = (),
    content: str | None = None,
    thresholds: str | Sequence[float] | None = None,
    clusters: str | None = None,
    label_column: str | None = None,
    positive: float = 1.0,
    only: str | None = None,
    complete: bool = False,
    ignore_unknown: bool = False,
    text_column: TextColumn = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Score recipes and classifiers on labelled documents, at several thresholds each, with intervals on every figure.

    Each recipe runs once, at its loosest threshold, and finds all pairs; the figures of stricter thresholds follow from
    these. A classifier runs once for all candidates; its thresholds are probabilities. Times are those of this run,
    with reading and without compilation. (An approximate search finds the stated share of the pairs at the threshold of
    the run, and more of the pairs above it.)

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or the result of ``open_files``.
    labels : path, table, or list of (id, id, label), optional
        Labelled pairs or clusters: a CSV, TSV or JSON lines file, a store of labels, or the same in memory.
    clusters : str, optional
        Instead of labels: the column whose equal values mean duplicates.
    recipes : sequence of Recipe, str or path, optional
        Recipes, names or TOML files; all named recipes by default.
    classifiers : sequence of Classifier or path
        Classifiers, or their files, whose names they get.
    content : str, optional
        Replaces the content of all recipes (see ``Recipe``). Classifiers keep theirs.
    thresholds : str or sequence of float, optional
        The thresholds of similarities and probabilities: ``first:last:step``, a list separated by commas, or numbers.
        The default is 0.05 to 0.95, or 0.5 to 0.95 for more than 2,000 documents, where too many pairs reach 0.05.
        Simhash is tried with Hamming distances 0 to 10; recipes without a choice of thresholds are tried with theirs.
        The own threshold or cut of each system is always tried.
    label_column : str, optional
        Column of the labels; by default ``label`` or ``level``.
    positive : float
        Labels at or above this value mean duplicate.
    only : str, optional
        ``COLUMN=VALUE``: only labels with this value in this column, such as ``split=train``.
    complete : bool
        Treat pairs without a label as different.
    ignore_unknown : bool
        Ignore labels of documents that the data does not have, instead of refusing them.
    title_column, time_column : str, optional
        Columns of titles and times, for classifiers that compare them.
    text_column, id_column, threads, memory, encoder, progress
        As in ``dedup``.

    Raises
    ------
    NeardupError
        If the data or the labels cannot be read, or an option does not fit.
    """
    corpus = as_corpus(data, text_column, id_column, clusters)

    def make_systems(thresholds: str | Sequence[float]) -> list[System]:
        values = parse_thresholds(thresholds)
        learned = classifier_systems(classifiers, title_column, time_column, values)
        return recipe_systems(recipes, content, values) + learned

    systems = make_systems(WIDE_THRESHOLDS if thresholds is None else thresholds)
    names, clusters_of, first_texts = _scan_corpus(corpus)
    if thresholds is None and len(names) > FEW_DOCUMENTS:
        systems = make_systems(USUAL_THRESHOLDS)
    if labels is not None and corpus.order_column is not None:
        raise RecipeError("labels and a column of clusters are both given; give one of them")
    if labels is not None:
        parsed_labels = read_labels(
            labels,
            names,
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
            "only, label_column, positive, complete and ignore_unknown apply to rows of labels, and clusters have "
            "none; leave them out"
        )
    else:
        parsed_labels = cluster_labels(clusters_of, names, f"column {corpus.order_column!r}")
    runs: list[_SystemRun] = []
    for number, (name, system) in enumerate(zip(unique_names(systems), systems, strict=True)):
        if progress is not None:
            progress("recipes", number, len(systems))
        run_system = partial(_run, system=system, threads=threads, memory=memory, encoder=encoder)
        if not system.needs_columns:
            run_system(corpus_of(first_texts))
        result, wall, cpu = _time_run(partial(run_system, corpus))
        tally = tally_pairs(scored_pairs(result, system), parsed_labels, system.grid.cuts)
        domain_counts, domain_error = _check_domain(result, system)
        trained = _count_training_documents(corpus, parsed_labels, system.classifier, threads)
        featureless = len(result.undecidable)
        runs.append(_SystemRun(name, system, tally, wall, cpu, featureless, domain_counts, domain_error, trained))
    return replace(_build_comparison(runs, parsed_labels, len(set(names))), columns=corpus.columns_used)


def _run(
    corpus: Corpus, system: System, *, threads: int | None, memory: int | str | None, encoder: Encoder | None
) -> Result:
    recipe, classifier = system.loosest_search
    return run_recipe(
        corpus,
        recipe,
        classifier=classifier,
        threads=threads,
        memory=memory,
        encoder=encoder,
        pairs_per_document=None,
    )


def _check_domain(result: Result, system: System) -> tuple[DomainCounts | None, str]:
    """Return the counts of a classifier's candidates, and the error if it does not fit the documents."""
    classifier = system.classifier
    if classifier is None or classifier.domain is None or result.vectors is None:
        return None, ""
    summary = result.summary["classifier"]
    passed = int(classifier.passes(classifier.score(result.vectors)).sum())
    counts = DomainCounts(summary["candidates"], summary["outside"], passed)
    return counts, classifier.domain_error(counts)


def _count_training_documents(
    corpus: Corpus, labels: Labels, classifier: Classifier | None, threads: int | None
) -> int:
    """Return how many of the labelled documents a classifier was trained on."""
    if classifier is None:
        return 0
    labelled, count, begin = labels.documents, 0, 0
    for batch in corpus.scan():
        end = begin + len(batch.texts)
        first, last = np.searchsorted(labelled, [begin, end])
        texts = batch.texts.take(pa.array(labelled[first:last] - begin)).to_pylist()
        compared = compared_texts(texts, classifier.candidate_rule, threads or default_threads())
        count += int(classifier.was_trained_on(compared).sum())
        begin = end
    return count


def _time_run(run_system: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return a run's result, its wall and its CPU seconds; a run that compiled kernels is repeated."""
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        with record_compilations() as compiled:
            result = run_system()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if not compiled:
            break
    return result, wall, cpu


def _scan_corpus(corpus: Corpus) -> tuple[list[str], list[str | None], pa.Table]:
    """Return ids, clusters, and a table of the first texts."""
    names: list[str] = []
    clusters: list[str | None] = []
    first_texts: list[str] = []
    for batch in corpus.scan():
        names += map(str, batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist())
        if batch.order is not None:
            clusters += (None if value in (None, "") else str(value) for value in batch.order.to_pylist())
        first_texts += batch.texts.slice(0, _WARM_UP_DOCUMENTS - len(first_texts)).to_pylist()
    return names, clusters, pa.table({"text": pa.array(first_texts, pa.large_string())})


def _build_comparison(runs: Sequence[_SystemRun], labels: Labels, documents: int) -> Comparison:
    draws = resample([run.tally for run in runs], labels)
    accuracies = accuracy_figures([run.tally for run in runs], labels)
    systems: list[SystemScores] = []
    best_draws: list[int] = []
    begin = 0
    for run in runs:
        end = begin + len(run.system.grid.thresholds)
        rows = _rows(run, labels, draws.select_rows(begin, end), accuracies[begin:end])
        best = max(range(len(rows)), key=lambda at: (_value_or_zero(rows[at].f1), at))
        figures = run.system.grid.scale, tuple(rows), rows[best]
        systems.append(SystemScores(run.name, run.system.recipe, *figures, run.wall_s, run.cpu_s, run.domain_counts))
        best_draws.append(begin + best)
        begin = end
    first = max(range(len(systems)), key=lambda at: (_value_or_zero(systems[at].best.f1), -at))
    leads = [
        _lead(systems[first], systems[at], draws, best_draws[first], best_draws[at])
        for at in range(len(systems))
        if at != first
    ]
    return Comparison(
        recipes=tuple(systems),
        best=systems[first].name,
        leads=tuple(leads),
        documents=documents,
        duplicates=labels.duplicates,
        others=labels.different_pairs,
        groups=labels.groups,
        complete=labels.complete,
        warnings=(
            *labels.warnings,
            *_edge_warnings(systems),
            *_feature_warnings(runs, documents),
            *_domain_warnings(runs),
            *_training_warnings(runs, labels),
        ),
    )


def _rows(run: _SystemRun, labels: Labels, draws: Resamples, accuracies: Sequence[Figure]) -> list[ThresholdScores]:
    grid = run.system.grid
    correct, wrong = (run.tally.totals(cells) for cells in (run.tally.correct, run.tally.wrong))
    duplicates = labels.duplicates
    return [
        ThresholdScores(
            threshold=grid.thresholds[at],
            own=grid.thresholds[at] == grid.own_threshold,
            returned=int(correct[at] + wrong[at]),
            correct=int(correct[at]),
            missed=int(duplicates - correct[at]),
            unlabelled=int(run.tally.unlabelled[at]),
            **score._asdict(),
            accuracy=accuracies[at],
        )
        for at, score in enumerate(score_rows(correct, wrong, duplicates, draws))
    ]


def _lead(best: SystemScores, other: SystemScores, draws: Resamples, best_draw: int, other_draw: int) -> Lead:
    low, high, groups = f1_lead(draws, best_draw, other_draw)
    difference = Figure(_value_or_zero(best.best.f1) - _value_or_zero(other.best.f1), low, high)
    return Lead(other.name, difference, low is not None and low > 0 and groups >= MIN_GROUPS, groups)


def _edge_warnings(systems: Sequence[SystemScores]) -> list[str]:
    """Return a warning if the best threshold is the loosest or strictest of a grid, with the way to extend it."""
    widen = f"widen the range with {option('--thresholds')}"
    copy = option(
        "neardup recipe show prints a recipe; give a copy with a larger threshold to --recipes",
        "give recipe.changed(threshold=...) with a larger one in recipes",
    )
    edges: dict[tuple[str, str, str], list[str]] = {}
    for system in systems:
        values = [_value_or_zero(row.f1) for row in system.rows]
        at = system.rows.index(system.best)
        if len(values) < 2 or not values[at]:
            continue
        way = copy if system.scale == "distance" else widen
        label = f"{system.name} ({system.best.threshold:.4g})"
        if at == 0:
            edges.setdefault(("loosest", "looser", way), []).append(label)
        elif at == len(values) - 1 and values[at] > values[at - 1] and system.best.threshold not in (0, 1):
            edges.setdefault(("strictest", "stricter", way), []).append(label)
    return [
        f"Best at the {edge} threshold that was tried, so a {beyond} one may be better: {', '.join(names)}; {way}."
        for (edge, beyond, way), names in edges.items()
    ]


def _feature_warnings(runs: Sequence[_SystemRun], documents: int) -> list[str]:
    return [
        f"{run.name} finds no features in {run.featureless:,} of the {documents:,} documents, so these match nothing; "
        f"name recipes that fit these texts with {option('--recipes')}."
        for run in runs
        if documents and run.featureless >= _MIN_FEATURELESS_SHARE * documents
    ]


def _domain_warnings(runs: Sequence[_SystemRun]) -> list[str]:
    return [f"{run.name}: {run.domain_error}; only its figures here apply." for run in runs if run.domain_error]


def _training_warnings(runs: Sequence[_SystemRun], labels: Labels) -> list[str]:
    documents = len(labels.documents)
    return [
        f"{run.name} was trained on {run.training_documents:,} of the {documents:,} labelled documents, so its figures "
        "here are too high; train prints those for unseen pairs."
        for run in runs
        if run.training_documents > _MIN_TRAINING_SHARE * documents
    ]


def _value_or_zero(figure: Figure) -> float:
    return 0.0 if figure.value is None else figure.value
