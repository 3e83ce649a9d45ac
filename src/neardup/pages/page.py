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
from neardup.pages.html import Chart, Html, render

#: A bundle that is being made is waited for rather than made twice.
_MAKING = Lock()
#: What `section` writes; no text can look like it, for texts are escaped.
_SECTION = re.compile(r'<section id="([^"]*)"[^>]* data-contents="([^"]*)">')


def check_drawing(output: str) -> None:
    """Refuse a page where the packages that draw charts are not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
        raise OutputError(
            f"{output} needs packages that draw charts and are not installed; pip install 'neardup[report]' brings them"
        )


def page(
    title: str,
    body: str,
    charts: Mapping[str, Any] | Sequence[Chart],
    *,
    data: Mapping[str, Any] | None = None,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    asks: bool = False,
) -> str:
    """Return a whole page.

    Elements of the class ``chart`` hold the charts by their ids; buttons with ``data-highlight`` set the charts'
    parameter ``highlight``. Scripts find ``data`` as ``neardup.data``; ``scripts`` and ``styles`` are names of files
    beside this one, which come after ``frame.js`` and ``page.css``. With ``asks`` the scripts may ask the server that
    the page came from.
    """
    if not isinstance(charts, Mapping):
        charts = {one.key: one.specification for one in charts if not one.missing}
    code = [*([_vega()] if charts else []), *(_read_asset(name) for name in ("frame.js", *scripts))]
    style, contents = "\n".join(_read_asset(name) for name in ("marks.css", "page.css", *styles)), _contents(body)
    # Charts, and bars in tables, have their sizes and colours in attributes.
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash_source, code))}; style-src {_hash_source(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
        + ("; connect-src 'self'" if asks else "")
    )
    return render(
        "page.html",
        title=title,
        policy=Html(policy),
        style=Html(style),
        contents=contents,
        body=Html(body),
        data={key: _json(value) for key, value in {"charts": charts, **({"data": data} if data else {})}.items()},
        code=[Html(script) for script in code],
    )


def _contents(body: str) -> list[tuple[str, Html]]:
    """Return the ids and titles of the sections, for a table of contents; none where there is one alone."""
    sections = [(key, Html(title)) for key, title in _SECTION.findall(body)]
    return sections if len(sections) > 1 else []


def _json(value: Any) -> Html:
    # Inside a script element only "<" could end it, and as an escape it is the same JSON.
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
    """Begin with what every page with charts needs, beside the work that the page will show: it takes a second."""
    Thread(target=_load_charts, name="charts").start()


def _load_charts() -> None:
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
