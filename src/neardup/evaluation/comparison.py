"""What a comparison found: the figures of each recipe and decision at each threshold, and how to write them down."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from neardup import __version__
from neardup.documents import write_table
from neardup.documents.output import OutputFile, check_place, names_table
from neardup.errors import OutputError
from neardup.evaluation.scoring import RESAMPLES, Figure
from neardup.recipe import Recipe


class Row(NamedTuple):
    """A recipe or a decision at one threshold.

    Attributes
    ----------
    threshold : float
        As recipes write it; of the probability for a decision.
    own : bool
        Whether it is the recipe's or the decision's own.
    returned, correct : int
        Returned pairs that carry a label, and those of them that are duplicates.
    missed : int
        Labelled duplicates that are not returned.
    unlabelled : int
        Returned pairs that carry no label; they count nowhere else.
    precision, recall, f1, accuracy : Figure
        With 95 % intervals. Accuracy, the share of labelled pairs that are put on the right side, has no value where
        pairs without a label count as none.
    """

    threshold: float
    own: bool
    returned: int
    correct: int
    missed: int
    unlabelled: int
    precision: Figure
    recall: Figure
    f1: Figure
    accuracy: Figure


@dataclass(frozen=True, slots=True)
class Scored:
    """What one recipe or decision reached.

    Attributes
    ----------
    name : str
        The recipe's, or that of the decision's file, made unique.
    recipe : Recipe
        With its own threshold.
    scale : str
        ``similarity``, ``distance`` (then a pair matches at or below a threshold), ``probability`` for a decision, or
        ``fixed``.
    rows : tuple of Row
        The loosest threshold first.
    best : Row
        The one with the highest F1, the strictest of equals.
    wall_s, cpu_s : float
        Of the whole run at the loosest threshold, reading included, compiling not.
    """

    name: str
    recipe: Recipe
    scale: str
    rows: tuple[Row, ...]
    best: Row
    wall_s: float
    cpu_s: float


class Lead(NamedTuple):
    """How far the best recipe leads another one in F1, each at its best threshold.

    Attributes
    ----------
    over : str
        The other recipe.
    difference : Figure
        In F1, over the same draws of groups.
    beyond_chance : bool
        Whether the interval lies above 0, and the two differ in six groups or more.
    """

    over: str
    difference: Figure
    beyond_chance: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recipes and decisions side by side.

    Attributes
    ----------
    recipes : tuple of Scored
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

    recipes: tuple[Scored, ...]
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
            "leads": [lead._asdict() | {"difference": lead.difference._asdict()} for lead in self.leads],
            "resamples": RESAMPLES,
            "version": __version__,
            "recipes": [self._scored(scored) for scored in self.recipes],
        }

    def _scored(self, scored: Scored) -> dict[str, Any]:
        per_document = 1000 / max(self.documents, 1)
        recipe, step = scored.recipe, scored.recipe.second_step
        learned = step is not None and step.measure == "learned"
        return {
            "name": scored.name,
            "description": recipe.description,
            "fingerprint": (recipe if learned else recipe.changed(threshold=scored.best.threshold)).fingerprint,
            "decision": step.features if learned and step is not None else None,
            "scale": scored.scale,
            "wall_ms_per_document": scored.wall_s * per_document,
            "cpu_ms_per_document": scored.cpu_s * per_document,
            "best": _row(scored.best),
            "rows": [_row(row) for row in scored.rows],
        }

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each recipe and threshold."""
        rows: list[dict[str, Any]] = []
        for scored in self.to_dict()["recipes"]:
            for row in scored["rows"]:
                figures = {name: row[name] for name in ("precision", "recall", "f1", "accuracy")}
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
        from neardup.evaluation.page import comparison_page

        return comparison_page(self.to_dict(), typed=command)

    def write(self, output: str | os.PathLike[str], *, force: bool = False, command: str = "") -> None:
        """Write a page (.html), everything (.json) or the table of rows (.csv, .parquet and others).

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
        if not name.endswith((".html", ".json")):
            write_table(self.to_arrow(), name, force=force)
            return
        page = name.endswith(".html")
        content = self.to_html(command=command) if page else json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        with OutputFile(name) as file:
            file.write(content.encode() + b"\n")

    def __repr__(self) -> str:
        best = next(scored for scored in self.recipes if scored.name == self.best)
        return f"<{len(self.recipes)} recipes compared, the best {self.best} at {best.best.threshold:g}>"


_COLUMNS = {
    "recipe": pa.large_string(),
    "threshold": pa.float64(),
    "own": pa.bool_(),
    "returned": pa.int64(),
    "correct": pa.int64(),
    "missed": pa.int64(),
    "unlabelled": pa.int64(),
    "precision": pa.float64(),
    "precision_low": pa.float64(),
    "precision_high": pa.float64(),
    "recall": pa.float64(),
    "recall_low": pa.float64(),
    "recall_high": pa.float64(),
    "f1": pa.float64(),
    "f1_low": pa.float64(),
    "f1_high": pa.float64(),
    "accuracy": pa.float64(),
    "accuracy_low": pa.float64(),
    "accuracy_high": pa.float64(),
    "best": pa.bool_(),
    "wall_ms_per_document": pa.float64(),
    "cpu_ms_per_document": pa.float64(),
}


def check_comparison_output(output: str, inputs: Sequence[str] = (), *, force: bool = False) -> None:
    """Refuse, before any work is done, an output of another format or one that cannot or must not be written.

    Raises
    ------
    OutputError
        With the reason and the way out.
    """
    if output == "-" or not (output.endswith(".html") or names_table(output)):
        raise OutputError(f"{output} says no format of a comparison; name it .html, .json, .csv or .parquet")
    check_place(output, inputs, force)


def _row(row: Row) -> dict[str, Any]:
    return {name: value._asdict() if isinstance(value, Figure) else value for name, value in row._asdict().items()}
