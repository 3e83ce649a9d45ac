"""What ``neardup explore`` prints: a sparkline for each n, and short tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neardup.cli.screen import grid, size_text, speaks_unicode, visible
from neardup.exploration import messages
from neardup.exploration.views import CUTOFFS, per_million
from neardup.pages import numbers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from neardup.exploration.curve import Curve
    from neardup.exploration.exploration import Exploration

#: Characters of a sparkline: each is five hundredths.
_CELLS = 20
#: Characters of the bar of dropped documents.
_BAR = 24


def show_exploration(found: Exploration) -> None:
    """Print an exploration for people to stdout."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    blocks = speaks_unicode()
    head = f"{size_text(found.sample.bytes)} of text; {messages.compared(found.sample)}"
    console.print(Text(head, style="bold"))
    console.print()
    console.print(Text("pairs by similarity (log scale), and pairs per million at or above each cutoff"))
    console.print(_views(found, blocks=blocks))
    if found.curve is not None and found.curve.points:
        console.print()
        curve = found.curve
        console.print(Text(f"whole corpus: {visible(curve.recipe.features)}, {curve.recipe.measure}, exact"))
        console.print(_curve(curve, found.advice.threshold, blocks=blocks))
    console.print()
    for name, lines in messages.contents(found.profile).items():
        if lines:
            _lines(console, name, lines)
    if found.examples:
        console.print()
        console.print(Text("pairs to read; neardup explain INPUT ID ID shows two documents side by side"))
        console.print(_examples(found, console.width))
    console.print()
    if not found.advice.given:
        console.print(Text(messages.no_advice(found.advice)))
        return
    console.print(Text(f"begin with {messages.advised_rule(found.advice)}", style="bold"))
    console.print(Text(f"{visible(found.advice.reason)} {messages.would_drop(found)}".strip()))
    for doubt in messages.doubts(found):
        console.print(Text(f"not sure: {doubt}"))
    for pair in found.suspects:
        ids = " ".join(visible(shown.id, lines=False) for shown in (pair.left, pair.right))
        console.print(Text(f"  {pair.similarity:.3f}  {ids}"))
    # A command is copied: it must not be broken into lines.
    console.print(Text(f"  {visible(messages.advised_command(found.advice), lines=False)}"), soft_wrap=True)


def _views(found: Exploration, *, blocks: bool) -> Table:
    from rich.text import Text

    scale = f"0{'similarity':^{_CELLS - 2}}1"
    cutoffs = [f"{cutoff:g}".removeprefix("0") for cutoff in CUTOFFS]
    table = grid("compared", scale, *cutoffs, "valley", left=2)
    table.padding = (0, 0, 0, 0)
    table.columns[0].min_width = 8
    advised = messages.advised_view(found)
    for view in found.views:
        spark = numbers.sparkline(view.counts, _CELLS, blocks=blocks)
        rates = [numbers.short(per_million(pairs, view.pairs)) for _, pairs in view.above]
        cells = [visible(view.name, lines=False), spark, *rates, messages.valley_in_short(view)]
        table.add_row(*map(Text, cells), style="bold" if view is advised else "")
    return table


def _curve(curve: Curve, advised: float, *, blocks: bool) -> Table:
    from rich.text import Text

    table = grid("threshold", "pairs", "families", "largest", "dropped", "of all", "")
    table.columns[0].justify, table.columns[-1].justify = "right", "left"
    round_ones = [one for one in curve.table if one.threshold == advised or round(100 * one.threshold) % 10 == 0]
    for point in round_ones:
        part = point.dropped / curve.documents if curve.documents else 0.0
        known = ["?" if one is None else f"{one:,}" for one in (point.pairs, point.families, point.largest_family)]
        share = numbers.share(point.dropped, curve.documents)
        cells = [f"{point.threshold:g}", *known, f"{point.dropped:,}", share, numbers.bar(part, _BAR, blocks=blocks)]
        table.add_row(*map(Text, cells), style="bold" if point.threshold == advised else "")
    return table


def _examples(found: Exploration, width: int) -> Table:
    from rich.text import Text

    table = grid("near", "pairs", "similarity", "such as", "longest run of words in both")
    table.columns[0].justify, table.columns[0].no_wrap = "right", True
    # What is left of the line goes to the two texts: ids first.
    room = max(width - 29, 24)
    for column, most in zip(table.columns[3:], (room * 2 // 5, room - room * 2 // 5 - 2), strict=True):
        column.justify, column.overflow, column.max_width = "left", "ellipsis", most
    for one in found.examples:
        cells = [f"{one.cutoff:g}", f"{one.found:,}", "", "", ""]
        if one.pairs:
            pair = one.pairs[0]
            ids = " ".join(visible(shown.id, lines=False) for shown in (pair.left, pair.right))
            cells[2:] = [f"{pair.similarity:.3f}", ids, visible(" ".join(pair.passage.split()), lines=False)]
        table.add_row(*map(Text, cells))
    return table


def _lines(console: Console, name: str, lines: Sequence[str]) -> None:
    """Print a name and lines beside it, each cut where the terminal ends; a single one is wrapped."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=12, no_wrap=True, style="dim")
    table.add_column(overflow="ellipsis" if len(lines) > 1 else "fold", no_wrap=len(lines) > 1, ratio=1)
    for at, line in enumerate(lines):
        table.add_row(Text("" if at else name), Text(visible(" ".join(line.split()), lines=False)))
    console.print(table)
