"""What a summary says of what was done, ready for JSON: its recipe, and its decision where one decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any

from neardup.decision.decision import Decision
from neardup.recipe import Recipe


def recipe_details(recipe: Recipe) -> dict[str, Any]:
    """Return what a summary says of its recipe."""
    return {"recipe": asdict(recipe), "fingerprint": recipe.fingerprint}


def decision_details(decision: Decision, search: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a summary says of its decision.

    Parameters
    ----------
    decision : Decision
        What decided.
    search : mapping
        The counts of the search: how many candidates there were, and how many passed.
    """
    point = decision.working_point
    return {
        "decision": {
            "fingerprint": decision.fingerprint,
            "net": decision.net.in_words(),
            "vector": str(decision.vector),
            # Without a cut everything passes, and JSON has no infinity.
            "cut": point.cut if isfinite(point.cut) else None,
            "training_precision": point.precision,
            "training_recall": point.recall,
            "candidates": search["first_step_pairs"],
            "passed": search["pairs"],
        }
    }
