"""The notebook cell of an exploration, which needs no packages that draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.exploration import messages
from neardup.exploration.views import CUTOFFS, per_million
from neardup.pages import html
from neardup.pages.html import Html, escape
from neardup.pages.numbers import format_short, sparkline

if TYPE_CHECKING:
    from neardup.exploration.observations import Observations

#: Characters of a sparkline, each five hundredths of similarity.
_SPARKLINE_LENGTH = 20


def notebook_cell(exploration: Observations) -> str:
    """Return an exploration as HTML for a notebook cell."""
    advice, advised = exploration.advice, messages.advised_view(exploration)
    rows = [
        (
            f"{view.name}{' (advised)' if view is advised and advice.given else ''}",
            Html(f'<span style="white-space:pre">{sparkline(view.counts, _SPARKLINE_LENGTH)}</span>'),
            *(format_short(per_million(pairs, view.pairs)) for _, pairs in view.above),
            messages.format_valley(view),
        )
        for view in exploration.views
    ]
    head = ("compared", "similarity 0 to 1", *(f">= {cutoff:g}" for cutoff in CUTOFFS), "valley")
    rule, drop = escape(messages.format_advised_rule(advice)), escape(messages.describe_drop(exploration))
    advised_html = f"<strong>{rule}</strong>. {drop} {escape(advice.reason)}"
    advice_html = advised_html if advice.given else escape(messages.explain_missing_advice(advice))
    command_line = f"<p><code>{escape(messages.advised_command(advice))}</code></p>" if advice.given else ""
    return (
        # A notebook does not have the style of the page.
        f'<div class="neardup" style="overflow-x:auto"><p>{escape(messages.describe_sample(exploration.sample))}</p>'
        f"<p>{advice_html}</p>"
        "<p>Pairs by similarity (logarithmic heights), and pairs per million at or above each cutoff</p>"
        f"{html.table(head, rows, text_columns=2)}{command_line}</div>"
    )
