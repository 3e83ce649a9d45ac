"""The contents of a page as a browser reads it: elements, scripts and text; and a check that it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any


class Markup(HTMLParser):
    """The elements, scripts, style and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.style = ""
        self.text = ""
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            kind, script = self.scripts[-1]
            self.scripts[-1] = kind, script + data
        elif self._inside == "style":
            self.style += data
        else:
            self.text += data

    @property
    def charts(self) -> dict[str, Any]:
        """The Vega-Lite specifications by id."""
        found: dict[str, Any] = json.loads(next(text for kind, text in self.scripts if kind == "application/json"))
        return found

    @property
    def policy(self) -> str:
        """The Content-Security-Policy."""
        return next(a["content"] or "" for _, a in self.elements if a.get("http-equiv") == "Content-Security-Policy")


def check_loads_nothing(page: Markup) -> None:
    """Check that no element fetches, sends or runs anything but the scripts that the policy names."""
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form")
        assert not [name for name in attributes if name in ("src", "srcset", "action") or name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#") or (tag, attributes["href"]) == ("link", "data:,")
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")
    code = [text for kind, text in page.scripts if kind is None]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in [*code, page.style]]
    assert hashes == re.findall(r"'sha256-([^']+)'", page.policy)
