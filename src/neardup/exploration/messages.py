"""Messages of an exploration: the same sentences on a page, on a terminal and in a notebook."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from neardup.errors import option
from neardup.pages.numbers import counted, share
from neardup.recipe.measures import measure

if TYPE_CHECKING:
    from neardup.exploration.advice import Advice
    from neardup.exploration.curve import Curve, Point
    from neardup.exploration.examples import Examples
    from neardup.exploration.observations import Observations
    from neardup.exploration.profile import Lengths
    from neardup.exploration.sample import Sample
    from neardup.exploration.views import View


def compared(sample: Sample) -> str:
    """Return which pairs were compared."""
    pairs = counted(sample.pairs, "pair")
    if len(sample) == sample.documents:
        return f"all {counted(sample.documents, 'document')} compared pairwise: {pairs}"
    return f"{len(sample):,} of {counted(sample.documents, 'document')} sampled and compared pairwise: {pairs}"


def advised_rule(advice: Advice) -> str:
    """Return the advised features, weights, measure and threshold: words:4, jaccard >= 0.45."""
    weights = f", {advice.recipe.weights}" if advice.recipe.weights not in ("", "none") else ""
    sign = "<=" if measure(advice.measure).distance else ">="
    return f"{advice.features}{weights}, {advice.measure} {sign} {advice.threshold:g}"


def advised_command(advice: Advice) -> str:
    """Return the advised command as it is typed."""
    return shlex.join(("neardup", *advice.command))


def at_advised(exploration: Observations) -> Point | None:
    """Return what the advised threshold would give on the whole corpus; None where that is not known."""
    curve = exploration.curve
    return None if curve is None else curve.at(exploration.advice.threshold)


def would_drop(exploration: Observations) -> str:
    """Return what the advised threshold would do to the whole corpus; nothing where that is not known."""
    point, sample = at_advised(exploration), exploration.sample
    if point is None:
        return ""
    dropped = f"{point.dropped:,} of {counted(sample.documents, 'document')}"
    return f"It would drop {dropped} ({share(point.dropped, sample.documents)})."


def advised_view(exploration: Observations) -> View | None:
    """Return the view of the advised features and measure; None if it is not among those that were compared."""
    advice = exploration.advice
    fitting = (
        view
        for view in exploration.views
        if (view.features, view.measure, view.recipe.weights)
        == (advice.features, advice.measure, advice.recipe.weights)
    )
    return next(fitting, None)


def incomplete_curve(curve: Curve) -> str:
    """Return why a curve has no points but the advised one."""
    way_out = option("--lowest", "lowest")
    return (
        f"More than {curve.most_pairs:,} pairs of distinct documents match at {curve.asked:g}, too many to find all of "
        f"them, so there is no curve of the whole corpus; raise {way_out} for one."
    )


def valley_in_short(view: View) -> str:
    """Return where the valley is: .12-.45, with a question mark where it is not clear; none."""
    valley = view.valley
    if valley is None:
        return "none"
    return f"{_point(valley.low)}-{_point(valley.high)}{'' if valley.clear else '?'}"


def _point(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def lengths_in_words(lengths: Lengths) -> str:
    """Return how long documents are: the median, and the range of nearly all."""
    at = {f"{part:g}": value for part, value in lengths.quantiles}
    return (
        f"the median has {at['0.5']:,} {lengths.unit}, 90 % have {at['0.05']:,} to {at['0.95']:,}, "
        f"the longest has {at['1']:,}"
    )


def band_in_words(examples: Examples) -> str:
    """Return which pairs are examples of a cutoff, and how many there are."""
    upper = "to 1" if examples.high > 1 else f"to {examples.high:g}"
    where = "the sample" if examples.origin == "sample" else "the whole corpus; the sample has none there"
    return f"{counted(examples.found, 'pair')} from {examples.low:g} {upper} in {where}"
