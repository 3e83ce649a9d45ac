"""Tools for agents, over the Model Context Protocol: so that none writes the same memory or document twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer

from neardup.pipeline.explanation import explain as explain_texts
from neardup.service.client import Client
from neardup.service.indexes import NamedIndex
from neardup.service.worker import enter_documents
from neardup.stream.document import Document, Verdict
from neardup.stream.store import text_digest
from neardup.version import __version__

_INSTRUCTIONS = (
    "neardup remembers texts and says of a new one whether it repeats one of them, word for word or nearly. Call check "
    "before you write a memory or a document; call enter when you have written it."
)


class Tools:
    """What an agent may ask, of a store of its own or of a running service.

    Parameters
    ----------
    known : NamedIndex or Client
        What knows the texts.
    """

    def __init__(self, known: NamedIndex | Client) -> None:
        self._known, self._lock = known, threading.Lock()

    def check(self, text: str, title: str = "") -> dict[str, Any]:
        """Say whether a text repeats one that is known: exact, near or original. Nothing is remembered."""
        document = Document("text", text, title=title)
        known = self._known
        (verdict,) = known.check([document]) if isinstance(known, Client) else known.index.check([document])
        return self._said(verdict)

    def enter(self, text: str, id: str = "", title: str = "") -> dict[str, Any]:
        """Remember a text, and say whether it repeats one that was known before.

        The id names it; without one, it gets one made of its text. Each id belongs to one text.
        """
        document = Document(id or f"text-{text_digest(text).hex()}", text, title=title)
        if isinstance(self._known, Client):
            return {"id": document.id, **self._said(self._known.add(document))}
        with self._lock:
            (found,) = enter_documents(self._known, [document])
        if found.status == 409:
            return {"id": document.id, "error": "This id belongs to another text; take another id."}
        return {"id": document.id, **self._said(found.verdict)}

    def query(self, text: str, k: int | None = None) -> list[dict[str, Any]]:
        """Return the known texts that a text repeats, the most similar first; with k the k nearest, however far."""
        known = self._known
        found = known.query(text, k) if isinstance(known, Client) else known.index.query(text, k)
        return [{"id": one.id, "similarity": one.similarity, "text": known.text_of(one.id)} for one in found]

    def explain(self, left: str, right: str) -> dict[str, Any]:
        """Say why two texts are near-duplicates or not: what they share, and what would change the verdict."""
        if isinstance(self._known, Client):
            return self._known.explain(left, right)
        index = self._known.index
        return explain_texts(left, right, index.recipe, index.sample, classifier=index.classifier).as_dict()

    def _said(self, verdict: Verdict) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": verdict.kind, "of": verdict.of, "similarity": verdict.similarity}
        if verdict.of is not None:
            found["text_of_original"] = self._known.text_of(verdict.of)
        return found


def server_of(tools: Tools) -> MCPServer[Any]:
    """Return a server of the tools; its ``run`` speaks over stdin and stdout until stdin ends."""
    server: MCPServer[Any] = MCPServer("neardup", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    calls: tuple[Callable[..., Any], ...] = (tools.check, tools.enter, tools.query, tools.explain)
    for call in calls:
        server.tool(name=call.__name__)(call)
    return server
