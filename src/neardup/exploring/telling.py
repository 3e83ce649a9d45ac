"""What people are told of an exploration in words: the same sentences on a page, on a terminal and in a notebook."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from neardup.measures import measure

if TYPE_CHECKING:
    from neardup.exploring.advice import Advice
    from neardup.exploring.curve import Point
    from neardup.exploring.examples import Examples
    from neardup.exploring.exploration import Exploration
    from neardup.exploring.histogram import View
    from neardup.exploring.makeup import Lengths
    from neardup.exploring.sample import Sample

_UNITS = ("", "k", "M", "G", "T")
_SIZES = ("bytes", "kB", "MB", "GB", "TB")
#: A character for each level of a sparkline, the lowest for nothing; and where only ASCII can be written.
_BLOCKS, _ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#@"


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 pair, 2,000 pairs."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def short(value: float) -> str:
    """Return a number in four characters at most, as far as it is below 10**13: 0.5, 12, 345, 1.2k, 34k, 5M."""
    if 0 < value < 0.95:
        return f"{value:.1f}" if value >= 0.05 else "<.1"
    unit = 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    written = f"{value:.1f}" if value < 9.95 and value != round(value) else f"{value:.0f}"
    return f"{written.removesuffix('.0')}{_UNITS[unit]}"


def rate(value: float) -> str:
    """Return pairs per million with the digits that count: 12,345, 6.5, 0.021."""
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:,.2g}"


def sized(size: float) -> str:
    """Return a number of bytes for people: 12.3 MB."""
    unit = 0
    while size >= 999.5 and unit < len(_SIZES) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.0f} bytes" if unit == 0 else f"{size:.{1 if size < 100 else 0}f} {_SIZES[unit]}"


def share(part: float, of: float) -> str:
    """Return a part of a whole in per cent: 49 %, 3.2 %, 0.04 %; 0 % of nothing."""
    value = 100 * part / of if of else 0.0
    if value in (0, 100) or 9.95 <= value < 99.5:
        return f"{value:.0f} %"
    # A share that is not all must not look like it.
    digits = f"{min(value, 99.99):.2f}" if value >= 99.95 else f"{value:.1f}" if value >= 0.095 else f"{value:.2g}"
    return f"{digits} %"


def compared(sample: Sample) -> str:
    """Return which pairs were compared."""
    pairs = counted(sample.pairs, "pair")
    if len(sample) == sample.documents:
        return f"all {counted(sample.documents, 'document')} compared, each with each: {pairs}"
    return f"{len(sample):,} of {counted(sample.documents, 'document')} drawn and compared, each with each: {pairs}"


def advised_rule(advice: Advice) -> str:
    """Return the advised features, weights, measure and threshold: words:4, jaccard >= 0.45."""
    weights = f", {advice.recipe.weights}" if advice.recipe.weights not in ("", "none") else ""
    sign = "<=" if measure(advice.measure).distance else ">="
    return f"{advice.features}{weights}, {advice.measure} {sign} {advice.threshold:g}"


def advised_command(advice: Advice) -> str:
    """Return the advised command as it is typed."""
    return shlex.join(("neardup", *advice.command))


def at_advised(exploration: Exploration) -> Point | None:
    """Return what the advised threshold would give on the whole corpus; None where nobody looked."""
    curve = exploration.curve
    return None if curve is None else curve.at(exploration.advice.threshold)


def would_drop(exploration: Exploration) -> str:
    """Return what the advised threshold would do, in a sentence; of the sample where the corpus was not looked at."""
    point, sample = at_advised(exploration), exploration.sample
    if point is None:
        return ""
    dropped = f"{point.dropped:,} of {counted(sample.documents, 'document')}"
    return f"It would drop {dropped} ({share(point.dropped, sample.documents)})."


def advised_view(exploration: Exploration) -> View | None:
    """Return the view of the advised features and measure; None if it is not among those that were looked at."""
    advice = exploration.advice
    fitting = (
        view
        for view in exploration.views
        if (view.features, view.measure, view.recipe.weights)
        == (advice.features, advice.measure, advice.recipe.weights)
    )
    return next(fitting, None)


def valley_in_short(view: View) -> str:
    """Return where the valley is: .12-.45, with a question mark where it is not clear; none."""
    valley = view.valley
    if valley is None:
        return "none"
    return f"{_point(valley.low)}-{_point(valley.high)}{'' if valley.clear else '?'}"


def _point(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def sparkline(counts: Sequence[int], cells: int, *, blocks: bool = True) -> str:
    """Return a histogram as characters whose heights are logarithms of the counts.

    Parameters
    ----------
    counts : sequence of int
        As many bins as ``cells`` divide.
    cells : int
        How many characters.
    blocks : bool
        Whether characters of eight heights may be used; else ASCII.
    """
    levels = _BLOCKS if blocks else _ASCII
    each = len(counts) // cells
    sums = [sum(counts[at * each : (at + 1) * each]) for at in range(cells)]
    # 1 is the lowest level, the largest count the highest: as many doublings, as high.
    most = max(max(sums).bit_length() - 1, 1)
    return "".join(levels[0] if not one else levels[1 + round(7 * (one.bit_length() - 1) / most)] for one in sums)


def bar(part: float, cells: int, *, blocks: bool = True) -> str:
    """Return a part between 0 and 1 as a bar; anything above 0 is seen."""
    full = "█" if blocks else "#"
    return full * max(round(part * cells), int(part > 0))


def lengths_in_words(lengths: Lengths) -> str:
    """Return how long documents are: the middle, and where nearly all are."""
    at = {f"{part:g}": value for part, value in lengths.quantiles}
    return (
        f"half have {at['0.5']:,} {lengths.unit} or fewer, nine in ten {at['0.05']:,} to {at['0.95']:,}, "
        f"the longest {at['1']:,}"
    )


def band_in_words(examples: Examples) -> str:
    """Return which pairs are examples of a cutoff, and how many there are."""
    upper = "to 1" if examples.high > 1 else f"to {examples.high:g}"
    where = "the sample" if examples.origin == "sample" else "the whole corpus, for the sample has none there"
    return f"{counted(examples.found, 'pair')} from {examples.low:g} {upper} in {where}"
