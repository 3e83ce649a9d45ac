"""The summary that ``neardup explore`` prints: a sparkline for each n, and short tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neardup.cli.screen import add_row, make_table, printable, printable_line, stdout_is_unicode
from neardup.exploration import messages
from neardup.exploration.views import CUTOFFS, per_million
from neardup.pages import numbers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from neardup.exploration.curve import Curve
    from neardup.exploration.exploration import Exploration

#: Characters of a sparkline: each stands for 0.05 of similarity.
_CELLS = 20
#: Characters of the bar of dropped documents.
_BAR = 24


def print_exploration(exploration: Exploration) -> None:
    """Print an exploration for people to stdout."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    blocks = stdout_is_unicode()
    head = f"{numbers.format_size(exploration.sample.bytes)} of text; {messages.describe_sample(exploration.sample)}"
    console.print(Text(head, style="bold"))
    console.print()
    console.print(Text("pairs by similarity (log scale), and pairs per million at or above each cutoff"))
    console.print(_views_table(exploration, blocks=blocks))
    if exploration.curve is not None and exploration.curve.points:
        console.print()
        curve = exploration.curve
        console.print(Text(f"whole corpus: {printable(curve.recipe.features)}, {curve.recipe.measure}, exact"))
        console.print(_curve_table(curve, exploration.advice.threshold, blocks=blocks))
    console.print()
    for name, lines in messages.describe_profile(exploration.profile).items():
        if lines:
            _print_lines(console, name, lines)
    if exploration.examples:
        console.print()
        console.print(Text("pairs to read; neardup explain INPUT ID ID shows two documents side by side"))
        console.print(_examples_table(exploration, console.width))
    console.print()
    if not exploration.advice.given:
        console.print(Text(messages.explain_missing_advice(exploration.advice)))
        return
    console.print(Text(f"begin with {messages.format_advised_rule(exploration.advice)}", style="bold"))
    console.print(Text(f"{printable(exploration.advice.reason)} {messages.describe_drop(exploration)}".strip()))
    for doubt in messages.doubts(exploration):
        console.print(Text(f"not sure: {doubt}"))
    for pair in exploration.suspects:
        ids = " ".join(printable_line(document.id) for document in (pair.left, pair.right))
        console.print(Text(f"  {pair.similarity:.3f}  {ids}"))
    # A command is copied: it must not be broken into lines.
    console.print(Text(f"  {printable_line(messages.advised_command(exploration.advice))}"), soft_wrap=True)


def _views_table(exploration: Exploration, *, blocks: bool) -> Table:
    scale = f"0{'similarity':^{_CELLS - 2}}1"
    cutoffs = [f"{cutoff:g}".removeprefix("0") for cutoff in CUTOFFS]
    table = make_table("compared", scale, *cutoffs, "valley", left=2)
    table.padding = (0, 0, 0, 0)
    table.columns[0].min_width = 8
    advised = messages.advised_view(exploration)
    for view in exploration.views:
        spark = numbers.sparkline(view.counts, _CELLS, blocks=blocks)
        rates = [numbers.format_short(per_million(pairs, view.pairs)) for _, pairs in view.above]
        cells = [printable_line(view.name), spark, *rates, messages.format_valley(view)]
        add_row(table, cells, bold=view is advised)
    return table


def _curve_table(curve: Curve, advised: float, *, blocks: bool) -> Table:
    table = make_table("threshold", "pairs", "families", "largest", "dropped", "of all", "")
    table.columns[0].justify, table.columns[-1].justify = "right", "left"
    points = [point for point in curve.table if point.threshold == advised or round(100 * point.threshold) % 10 == 0]
    for point in points:
        part = point.dropped / curve.documents if curve.documents else 0.0
        counts = (point.pairs, point.families, point.largest_family)
        share = numbers.format_share(point.dropped, curve.documents)
        cells = [f"{point.threshold:g}", *("?" if count is None else f"{count:,}" for count in counts)]
        cells += [f"{point.dropped:,}", share, numbers.bar(part, _BAR, blocks=blocks)]
        add_row(table, cells, bold=point.threshold == advised)
    return table


def _examples_table(exploration: Exploration, width: int) -> Table:
    table = make_table("near", "pairs", "similarity", "such as", "longest run of words in both")
    table.columns[0].justify, table.columns[0].no_wrap = "right", True
    # The rest of the line is for the ids and the shared run of words.
    room = max(width - 29, 24)
    for column, width in zip(table.columns[3:], (room * 2 // 5, room - room * 2 // 5 - 2), strict=True):
        column.justify, column.overflow, column.max_width = "left", "ellipsis", width
    for example in exploration.examples:
        cells = [f"{example.cutoff:g}", f"{example.found:,}", "", "", ""]
        if example.pairs:
            pair = example.pairs[0]
            ids = " ".join(printable_line(document.id) for document in (pair.left, pair.right))
            cells[2:] = [f"{pair.similarity:.3f}", ids, printable_line(" ".join(pair.passage.split()))]
        add_row(table, cells)
    return table


def _print_lines(console: Console, name: str, lines: Sequence[str]) -> None:
    """Print a name and lines next to it, each cut at the width of the terminal; a single line is wrapped."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=12, no_wrap=True, style="dim")
    table.add_column(overflow="ellipsis" if len(lines) > 1 else "fold", no_wrap=len(lines) > 1, ratio=1)
    for position, line in enumerate(lines):
        table.add_row(Text("" if position else name), Text(printable_line(" ".join(line.split()))))
    console.print(table)
