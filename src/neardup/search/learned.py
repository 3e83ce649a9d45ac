"""A learned decision as the second step: the vectors of candidate pairs, and which of them pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.decision.decision import Decision
from neardup.errors import RecipeError, option
from neardup.recipe import Recipe
from neardup.vector.encoder import Encoder
from neardup.vector.measuring import Measurer
from neardup.vector.records import Records

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Probabilities become whole numbers of this.
PROBABILITY_UNIT = 10**9
_PAIRS_AT_A_TIME = 1 << 14


class Decided(NamedTuple):
    """What a decision says of n candidate pairs.

    Attributes
    ----------
    passed : bool[n]
        Whether each is a near-duplicate.
    vectors : float64[k, r]
        The similarities of those that are.
    counts : int64[k, 3]
        o, a and b of the measure ``learned`` for them.
    """

    passed: npt.NDArray[np.bool_]
    vectors: Floats
    counts: Integers


def check_decision(decision: Decision | None, recipe: Recipe, encoder: Encoder | None) -> Decision:
    """Return the decision that a recipe names.

    Raises
    ------
    RecipeError
        If there is none, it is another one, or it needs an encoder that is not there.
    """
    step = recipe.second_step
    if step is None or step.measure != "learned":
        raise RecipeError("a decision brings its own recipe; give decision.recipe, or leave one of them out")
    if decision is None or decision.fingerprint != step.features:
        has = "there is none" if decision is None else f"this is {decision.fingerprint}"
        raise RecipeError(
            f"then {str(step)!r} needs the decision of that fingerprint, and {has}; give it with "
            f"{option('--decision FILE', 'decision=')}"
        )
    if decision.vector.needs_encoder and encoder is None:
        raise RecipeError(
            "the decision goes by 'semantic' too and needs an encoder, an object with encode(texts): hand one over in "
            "Python, nd.dedup(..., encoder=...)"
        )
    return decision


def decide(
    decision: Decision,
    records: Records,
    left: Integers,
    right: Integers,
    *,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> Decided:
    """Return what ``check_decision`` let pass says of pairs of records, by their places."""
    measurer = Measurer(decision.vector, decision.statistics, encoder=encoder, threads=threads)
    prepared = measurer.prepare(records)
    passed = np.zeros(len(left), np.bool_)
    vectors = [np.empty((0, len(decision.vector)))]
    scores = [np.empty(0)]
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        part = slice(begin, begin + _PAIRS_AT_A_TIME)
        x = measurer.measure(prepared, left[part], right[part])
        g = decision.g(x)
        passed[part] = decision.passes(g)
        vectors.append(x[passed[part]])
        scores.append(g[passed[part]])
        progress(min(begin + _PAIRS_AT_A_TIME, len(left)), len(left))
    return Decided(passed, np.concatenate(vectors), counts_of(decision, np.concatenate(scores)))


def counts_of(decision: Decision, g: Floats) -> Integers:
    """Return o, a and b of pairs with such a g: the probability in units of 10**-9, and what makes 1.

    Equal texts alone have 1: however sure a decision is, it stays a unit below.
    """
    o = np.minimum(np.rint(decision.probability(g) * PROBABILITY_UNIT), PROBABILITY_UNIT - 1).astype(np.int64)
    return np.column_stack([o, np.full((len(o), 2), PROBABILITY_UNIT, np.int64)])
