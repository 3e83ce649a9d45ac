"""Tools for agents over the Model Context Protocol, which keep them from writing a memory or document twice."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from neardup.pipeline.explanation import explain as explain_texts
from neardup.service.client import Client
from neardup.service.indexes import NamedIndex
from neardup.service.worker import enter_documents
from neardup.stream.document import Document, Verdict
from neardup.stream.store import text_digest
from neardup.version import __version__

if TYPE_CHECKING:
    from mcp.server import MCPServer

_INSTRUCTIONS = (
    "neardup remembers texts and tells you whether a new one repeats one of them, exactly or nearly. Call check before "
    "you write a memory or a document; call enter when you have written it."
)


class Tools:
    """The tools of an agent, on a store of its own or on a running service."""

    def __init__(self, index: NamedIndex | Client) -> None:
        self._index, self._lock = index, threading.Lock()

    def check(self, text: str, title: str = "") -> dict[str, Any]:
        """Say whether a text repeats one that is known: exact, near or original. Nothing is remembered."""
        document = Document("text", text, title=title)
        index = self._index
        (verdict,) = index.check([document]) if isinstance(index, Client) else index.index.check([document])
        return self._answer(verdict)

    def enter(self, text: str, id: str = "", title: str = "") -> dict[str, Any]:
        """Remember a text, and say whether it repeats one that was known before.

        Without an id, the text gets one that is derived from it. Each id belongs to one text.
        """
        document = Document(id or f"text-{text_digest(text).hex()}", text, title=title)
        if isinstance(self._index, Client):
            return {"id": document.id, **self._answer(self._index.add(document))}
        with self._lock:
            (result,) = enter_documents(self._index, [document])
        if result.status == 409:
            return {"id": document.id, "error": "This id belongs to another text; take another id."}
        return {"id": document.id, **self._answer(result.verdict)}

    def query(self, text: str, k: int | None = None) -> list[dict[str, Any]]:
        """Return the known texts that a text repeats, the most similar first; with k, the k nearest ones."""
        index = self._index
        rows = index.query(text, k) if isinstance(index, Client) else index.index.query(text, k)
        return [{"id": row.id, "similarity": row.similarity, "text": index.text_of(row.id)} for row in rows]

    def explain(self, left: str, right: str) -> dict[str, Any]:
        """Say why two texts are near-duplicates or not: what they share, and what would change the verdict."""
        if isinstance(self._index, Client):
            return self._index.explain(left, right)
        index = self._index.index
        return explain_texts(left, right, index.recipe, index.sample, classifier=index.classifier).as_dict()

    def _answer(self, verdict: Verdict) -> dict[str, Any]:
        answer: dict[str, Any] = {"kind": verdict.kind, "of": verdict.of, "similarity": verdict.similarity}
        if verdict.of is not None:
            answer["text_of_original"] = self._index.text_of(verdict.of)
        return answer


def mcp_server(tools: Tools) -> MCPServer[Any]:
    """Return a server of the tools; its ``run`` speaks over stdin and stdout until stdin ends."""
    from mcp.server import MCPServer

    server: MCPServer[Any] = MCPServer("neardup", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    for name in ("check", "enter", "query", "explain"):
        server.tool(name=name)(getattr(tools, name))
    return server
