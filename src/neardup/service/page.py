"""The page of the service: a frame without data, and the parts that its script asks for with a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neardup.pages.html import Html, closing, facts, joined, opening, section, table
from neardup.pages.page import page
from neardup.service.indexes import Indexes
from neardup.service.metrics import Metrics
from neardup.version import __version__

#: What answers other than pages allow a browser.
POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def calls_page(openapi: Mapping[str, Any]) -> str:
    """Return a page of all calls, from the description of the service."""
    calls = []
    for path, methods in openapi["paths"].items():
        for method, call in methods.items():
            calls.append([Html(f"<code>{method.upper()}</code>"), path, call["description"].partition("\n")[0]])
    body = [
        opening("Calls of the service", f"neardup {__version__}"),
        section("calls", "Calls", table(["method", "path", "what it does"], calls, left=3)),
        closing("/openapi.json describes all of them for programs."),
    ]
    return page("Calls - neardup", joined(body), {})


class PageAnswers:
    """What the page asks for."""

    def __init__(self, indexes: Indexes, metrics: Metrics, *, tokens: bool) -> None:
        self._indexes, self._metrics, self._tokens = indexes, metrics, tokens
        self.parts: dict[str, Any] = {}

    def page(self) -> str:
        """Return the frame."""
        return page("neardup", joined([opening("neardup"), facts({})]), {})
