"""Hooks of the site: links to files outside docs/ become paths, and pages that load from a network are refused."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<to>[^)#\s]+)(?P<anchor>#[^)]*)?\)")
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Return a page without links to the rest of the project, which the site does not include."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(found: re.Match[str]) -> str:
        if "://" in found["to"] or not posixpath.normpath(posixpath.join(folder, found["to"])).startswith(".."):
            return found[0]
        path = posixpath.normpath(posixpath.join("docs", folder, found["to"]))
        return f"{found['text']} (`{path}`)" if path not in found["text"] else f"`{path}`"

    return _LINK.sub(replace, markdown)


def on_post_build(config: Any, **_: object) -> None:
    """Refuse a site whose pages load anything from a network."""
    for path in sorted(Path(config["site_dir"]).rglob("*.html")):
        if found := _LOADED.search(path.read_text("utf-8")):
            raise SystemExit(f"{path.name} loads {found[0]} from a network; add it to the site, or remove it")
