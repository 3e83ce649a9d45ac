"""The options that put a learned decision in the place of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.numbers import parse_number
from neardup.cli.screen import count_text
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.cli.choices import RecipeOptions
    from neardup.decision.decision import Decision
    from neardup.recipe import Recipe

#: Where help lists these options.
PANEL = "A learned decision"
TimeColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=PANEL, help="Column of times, for decisions that compare them."),
]


DecisionFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=PANEL, help="What neardup train learned; it takes the place of a recipe."
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=PANEL,
        help="The lowest cut that had this precision on the training pairs, such as 0.99; g(x) >= 0 by default.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOptions:
    """A decision that was learned, its working point, and where titles are."""

    decision: DecisionFile = None
    precision: Precision = None
    title_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=PANEL, help="Column of titles, for decisions that compare them."),
    ] = None

    def loaded(
        self, time_column: str | None = None, *, also_for: bool = False, titles: bool = False
    ) -> Decision | None:
        """Return the decision at its working point; None where none is asked for.

        Parameters
        ----------
        time_column : str, optional
            Where times are.
        also_for : bool
            Whether the command takes that column for something else, too.
        titles : bool
            The same of the column of titles.

        Raises
        ------
        NeardupError
            If it cannot be read, does not reach the precision, or an option says nothing without it.
        """
        options = {"--precision": self.precision, "--title-column": None if titles else self.title_column}
        if self.decision is None:
            for option, value in (options | {"--time-column": None if also_for else time_column}).items():
                if value is not None:
                    raise RecipeError(f"{option} {value} is for a learned decision; give one with --decision FILE")
            return None
        from neardup.decision.choosing import decision_of

        decision = decision_of(self.decision, title_column=self.title_column, time_column=time_column)
        if time_column is not None and not (also_for or decision.vector.needs_times):
            raise RecipeError(f"time column {time_column!r} is asked for by no measure of this decision; leave it out")
        if self.precision is None:
            return decision
        return decision.at_precision(parse_number(self.precision, "--precision"))


def chosen_recipe(options: RecipeOptions, decision: Decision | None, *, keep: str | None = None) -> Recipe:
    """Return the recipe that options choose, or that of a decision.

    Raises
    ------
    RecipeError
        If one contradicts the other, or a value is refused.
    """
    if decision is None:
        return options.chosen(keep=keep)
    from neardup.decision.choosing import recipe_beside

    def say(name: str, value: Any) -> str:
        option = "--" + name.replace("_", "-")
        return "--html" if name == "content" and options.html else f"{option} {value}"

    return recipe_beside(decision, options.given | {"keep": keep}, say=say, precision="--precision 0.99")


def decision_text(summary: Mapping[str, Any]) -> str:
    """Return what a summary says of its decision, for people; empty where none decided."""
    if "decision" not in summary:
        return ""
    found = summary["decision"]
    cut = cut_text(*(found[name] for name in ("fingerprint", "cut", "training_precision", "training_recall")))
    return f"{cut}; {found['passed']:,} of {count_text(found['candidates'], 'candidate')} of its net pass"


def cut_text(fingerprint: str, cut: float | None, precision: float, recall: float) -> str:
    """Return a decision's name, its cut, and how well it did on the pairs it was trained with."""
    least = "no cut" if cut is None or cut == float("-inf") else f"g >= {cut:.4g}"
    return f"{fingerprint}, {least}: precision {precision:.3f} and recall {recall:.3f} on its training pairs, unseen"
