"""How an exploration shows itself in a notebook: some tables, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neardup.exploring import telling
from neardup.exploring.histogram import CUTOFFS, per_million
from neardup.pages.escaping import escaped

if TYPE_CHECKING:
    from neardup.exploring.exploration import Exploration

#: Characters of a sparkline: each is five hundredths.
_SPARK = 20
_CELL = 'style="text-align:left;padding:2px 12px 2px 0;white-space:pre"'


def cell_of(exploration: Exploration) -> str:
    """Return an exploration as HTML for a notebook's cell, its texts escaped."""
    advice, advised = exploration.advice, telling.advised_view(exploration)
    rows = [
        (
            f"{view.name}{' (advised)' if view is advised else ''}",
            telling.sparkline(view.counts, _SPARK),
            *(telling.short(per_million(pairs, view.pairs)) for _, pairs in view.above),
            telling.valley_in_short(view),
        )
        for view in exploration.views
    ]
    head = ("compared", "similarity 0 to 1", *(f">= {cutoff:g}" for cutoff in CUTOFFS), "valley")
    return (
        '<div class="neardup">'
        f"<p>{escaped(telling.compared(exploration.sample))}</p>"
        f"<p><strong>{escaped(telling.advised_rule(advice))}</strong>. {escaped(telling.would_drop(exploration))} "
        f"{escaped(advice.reason)}</p>"
        f"<p>Pairs by similarity (heights are logarithms), and per million from each cutoff on</p>{_table(head, rows)}"
        f"<p><code>{escaped(telling.advised_command(advice))}</code></p></div>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = "".join(f'<th scope="col" {_CELL}>{escaped(name)}</th>' for name in head)
    lines = "".join("<tr>" + "".join(f"<td {_CELL}>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
