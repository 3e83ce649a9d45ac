"""The frame of a page: its style, the charts' machinery, and a policy that lets the browser fetch nothing.

Charts are Vega-Lite, drawn by scripts that stand in the page. The policy names the scripts by their hashes, so that no
text of a document or recipe could run as one, even if it were not escaped.
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

from neardup.errors import OutputError
from neardup.pages.html import Chart, escaped

__all__ = ["check_drawing", "escaped", "make_ready", "page"]

#: A bundle that is being made is waited for rather than made twice.
_MAKING = Lock()
#: What `section` writes; no text can look like it, for texts are escaped.
_SECTION = re.compile(r'<section id="([^"]*)"[^>]* data-contents="([^"]*)">')


def check_drawing(output: str) -> None:
    """Refuse a page where the packages that draw charts are not installed.

    Raises
    ------
    OutputError
        Saying how to get them.
    """
    if any(importlib.util.find_spec(name) is None for name in ("altair", "vl_convert")):
        raise OutputError(
            f'{output} needs packages that draw charts and are not installed; pip install "neardup[report]" brings them'
        )


def page(
    title: str,
    body: str,
    charts: Mapping[str, Any] | Sequence[Chart],
    *,
    data: Mapping[str, Any] | None = None,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML, as the functions of `neardup.pages.html` make it. Elements of the class ``chart`` hold the charts by
        their ids; buttons with ``data-highlight`` set the charts' parameter ``highlight``.
    charts : mapping of str to dict, or sequence of Chart
        Vega-Lite specifications by id, or charts that hold them.
    data : mapping, optional
        What the scripts find as ``neardup.data``, ready for JSON.
    scripts : sequence of str
        Names of files beside this one, such as ``search.js``. They run after ``frame.js``, which says what they
        can use.
    styles : sequence of str
        Names of style sheets beside this one, such as ``report.css``, that come after ``page.css``.
    """
    if not isinstance(charts, Mapping):
        charts = {one.key: one.specification for one in charts if not one.missing}
    code = [*([_vega()] if charts else []), *(_file(name) for name in ("frame.js", *scripts))]
    style, contents = "\n".join(_file(name) for name in ("page.css", *styles)), _contents(body)
    # Charts, and bars in tables, have their sizes and colours in attributes.
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hashed, code))}; style-src {_hashed(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{escaped(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#main">Skip to the content</a>',
            f'<div class="page{" listed" if contents else ""}">{contents}',
            f'<main id="main" tabindex="-1">{body}</main></div>',
            _json("charts", charts),
            *([_json("data", data)] if data else []),
            *(f"<script>{script}</script>" for script in code),
            "</body>",
            "</html>",
        ]
    )


def _contents(body: str) -> str:
    """Return a table of contents, where there is more than one section."""
    sections = _SECTION.findall(body)
    if len(sections) < 2:
        return ""
    items = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title in sections)
    return (
        '<nav class="contents" aria-label="Contents"><details open><summary>Contents</summary>'
        f"<ol>{items}</ol></details></nav>"
    )


def _json(key: str, value: Any) -> str:
    # Inside a script element only "<" could end it, and as an escape it is the same JSON.
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{key}">{text}</script>'


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    return files("neardup.pages").joinpath(name).read_text("utf-8")


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes, such as 5.20."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def make_ready() -> None:
    """Begin with what every page with charts needs, beside the work that the page will show: it takes a second."""
    Thread(target=_made_ready, name="charts").start()


def _made_ready() -> None:
    # Whatever goes wrong here goes wrong again where the page is made, and is told there.
    with suppress(Exception):
        _vega()


def _vega() -> str:
    with _MAKING:
        return _bundle()


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that fits between script tags."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version())
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
