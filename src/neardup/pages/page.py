"""The frame of a page: its style, its scripts, and a policy that lets the browser fetch nothing.

Charts are Vega-Lite, drawn by scripts inside the page. The policy names the scripts by their hashes, so that no text of
a document or recipe can run as one, even if it were not escaped.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from threading import Lock, Thread
from typing import Any

from neardup.documents.output import check_place
from neardup.errors import OutputError
from neardup.pages.html import Chart, Html, render

#: Threads wait for the bundle rather than build it twice.
_BUNDLE_LOCK = Lock()
#: A section; no text can look like it, because texts are escaped.
_SECTION = re.compile(r'<section id="([^"]*)"[^>]* data-contents="([^"]*)">')


def check_drawing(output: str) -> None:
    """Raise ``OutputError`` if the packages that draw charts are not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
        raise OutputError(
            f"{output} needs packages that draw charts and are not installed; pip install 'neardup[report]' brings them"
        )


def check_page(name: str, inputs: Sequence[str], *, force: bool) -> None:
    """Raise ``OutputError`` if the page cannot be written there, or the packages for charts are not installed."""
    if not name.endswith(".html"):
        raise OutputError(f"{name} does not end in .html, but a page is HTML: name it so")
    check_drawing(name)
    check_place(name, list(inputs), force, remote=True)


def page(
    title: str,
    body: str,
    charts: Sequence[Chart] = (),
    *,
    data: Mapping[str, Any] | None = None,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    connects: bool = False,
) -> str:
    """Return a whole page, whose elements of the class ``chart`` show the ``charts`` by their ids.

    Buttons with ``data-highlight`` set the parameter ``highlight`` of the charts. Scripts find ``data`` as
    ``neardup.data``. ``scripts`` and ``styles`` are files beside this one, after ``frame.js`` and ``page.css``. With
    ``connects`` the scripts may send requests to the server of the page.
    """
    drawn = {one.key: one.specification for one in charts if not one.missing}
    code = [*([_vega()] if drawn else []), *(_read_asset(name) for name in ("frame.js", *scripts))]
    style = "\n".join(_read_asset(name) for name in ("marks.css", "page.css", *styles))
    sections = [(key, Html(heading)) for key, heading in _SECTION.findall(body)]
    # Charts, and bars in tables, have sizes and colours in their attributes.
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash_source, code))}; style-src {_hash_source(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
        + ("; connect-src 'self'" if connects else "")
    )
    return render(
        "page.html",
        title=title,
        policy=Html(policy),
        style=Html(style),
        contents=sections if len(sections) > 1 else [],
        body=Html(body),
        data={key: _json(value) for key, value in {"charts": drawn, **({"data": data} if data else {})}.items()},
        code=[Html(script) for script in code],
    )


def _json(value: Any) -> Html:
    # Only "<" could end the script element, and its escape is the same JSON.
    return Html(json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c"))


def _hash_source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read_asset(name: str) -> str:
    return files("neardup.pages").joinpath(name).read_text("utf-8")


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes, such as 5.20."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def preload_charts() -> None:
    """Start a thread that loads what every page with charts needs, which takes a second."""

    def load() -> None:
        # An error here occurs again when the page is built, which reports it.
        with suppress(Exception):
            _vega()

    Thread(target=load, name="charts").start()


def _vega() -> str:
    with _BUNDLE_LOCK:
        return _bundle()


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that fits between script tags."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version())
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
