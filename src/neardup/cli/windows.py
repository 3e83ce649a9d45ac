"""The options that say what a document that arrives is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

_FLOW = "The flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """What a document that arrives is compared with."""

    window: Annotated[
        str,
        typer.Option(
            metavar="TIME|COUNT", rich_help_panel=_FLOW, help="24h, 90m, 7d; '8000 documents'; endless for all."
        ),
    ] = "24h"
    window_by: Annotated[
        str,
        typer.Option(
            metavar="time|hour",
            rich_help_panel=_FLOW,
            help="Compare times as they are, or by whole hours, as in the paper.",
        ),
    ] = "time"
    against: Annotated[
        str,
        typer.Option(
            metavar="originals|everything", rich_help_panel=_FLOW, help="Compare with originals only, or with all."
        ),
    ] = "originals"
    store: Annotated[
        str | None,
        typer.Option(metavar="FILE", rich_help_panel=_FLOW, help="Keep window and verdicts in this SQLite file."),
    ] = None
