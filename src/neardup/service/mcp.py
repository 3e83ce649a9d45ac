"""Tools for agents over the Model Context Protocol, which keep them from writing a memory or document twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from neardup.errors import InputError, NeardupError, UnknownDocument, quoted
from neardup.pipeline.explanation import explain as explain_texts
from neardup.service.bodies import MAX_ID_LENGTH
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
    "you write a memory or a document; call enter when you have written it. Save a text if its kind is original and it "
    "is not known."
)
#: The most characters of a text in an answer, and the most texts.
_MAX_CHARACTERS, _MAX_TEXTS = 10_000, 100
_Title = Annotated[str, Field(description="The title of the text; only classifiers compare titles.")]
_KnownId = Annotated[str, Field(description="Instead of a text: the id of a text that is known.")]
_K = Annotated[
    int | None, Field(ge=1, le=_MAX_TEXTS, description="Return the k nearest instead, whatever their similarity.")
]


class Tools:
    """The tools of an agent, on a store of its own or on a running service."""

    def __init__(self, index: NamedIndex | Client) -> None:
        self._index, self._lock = index, threading.Lock()

    def check(
        self,
        text: Annotated[str, Field(description="The text that may repeat a known one.")] = "",
        id: _KnownId = "",
        title: _Title = "",
    ) -> dict[str, Any]:
        """Say whether a text repeats one that is known. Nothing is remembered.

        kind is original (new), near or exact; of is the id of the text that it repeats, and text_of_original that text,
        cut after 10,000 characters. flag is undecidable if there is too little text to compare. With an id, return the
        verdict that the known text with this id got.
        """
        if _is_id(text, id):
            return {"id": id, **self._answer(self._verdict_of(id)), "known": True}
        document = Document("text", text, title=title)
        index = self._index
        (verdict,) = index.check([document]) if isinstance(index, Client) else index.index.check([document])
        return self._answer(verdict)

    def enter(
        self,
        text: Annotated[str, Field(description="The text to remember.")],
        id: Annotated[
            str,
            Field(
                max_length=MAX_ID_LENGTH,
                description="Its id, which belongs to this text alone. Default: one derived from the text.",
            ),
        ] = "",
        title: _Title = "",
    ) -> dict[str, Any]:
        """Remember a text, and say whether it repeats one that was known before, as check does.

        known is true if this id with this text was entered before: then nothing new was remembered. Another text for an
        id is an error.
        """
        if not text:
            raise InputError("text is empty; give the text to remember")
        document = Document(id or f"text-{text_digest(text).hex()}", text, title=title)
        if isinstance(self._index, Client):
            verdict = self._index.add(document)
        else:
            with self._lock:
                (result,) = enter_documents(self._index, [document])
            if result.status == 409:
                raise InputError(f"This id belongs to another text: {quoted(document.id)}; take another id")
            verdict = result.verdict._replace(known=result.status == 200)
        return {"id": document.id, **self._answer(verdict), "known": verdict.known}

    def query(
        self,
        text: Annotated[str, Field(description="The text whose near-duplicates are searched.")] = "",
        id: _KnownId = "",
        k: _K = None,
    ) -> list[dict[str, Any]]:
        """Return the known texts that a text repeats, the most similar first; with k, the k nearest ones.

        At most 100 are returned, and each text is cut after 10,000 characters.
        """
        index = self._index
        asked = self._text(text, id)
        # One more, because a known text is the nearest to itself.
        count = k + 1 if k and id else k
        rows = index.query(asked, count) if isinstance(index, Client) else index.index.query(asked, count)
        others = [row for row in rows if row.id != id or not id][: k or _MAX_TEXTS]
        return [{"id": row.id, "similarity": row.similarity, "text": self._shown(row.id)} for row in others]

    def explain(
        self,
        left: Annotated[str, Field(description="One text.")] = "",
        right: Annotated[str, Field(description="The other text.")] = "",
        left_id: Annotated[str, Field(description="Instead of left: the id of a known text.")] = "",
        right_id: Annotated[str, Field(description="Instead of right: the id of a known text.")] = "",
    ) -> dict[str, Any]:
        """Say why two texts are near-duplicates or not: what they share, and what would change the verdict."""
        texts = self._text(left, left_id), self._text(right, right_id)
        if isinstance(self._index, Client):
            return self._index.explain(*texts)
        index = self._index.index
        return explain_texts(*texts, index.recipe, index.sample, classifier=index.classifier).as_dict()

    def _text(self, text: str, id: str) -> str:
        """Return a text that is given itself or by the id of a known one."""
        if not _is_id(text, id):
            return text
        self._verdict_of(id)
        found = self._index.text_of(id)
        if found is None:
            raise InputError(f"the text of {quoted(id)} is no longer kept; give the text")
        return found

    def _verdict_of(self, id: str) -> Verdict:
        index = self._index
        verdict = index.verdict_of(id) if isinstance(index, Client) else index.index.verdict_of(id)
        if verdict is None:
            raise UnknownDocument(f"no text has the id {quoted(id)}; enter gives each text one")
        return verdict

    def _answer(self, verdict: Verdict) -> dict[str, Any]:
        answer: dict[str, Any] = {"kind": verdict.kind, "of": verdict.of, "similarity": verdict.similarity}
        if verdict.flag:
            answer["flag"] = verdict.flag
        if verdict.of is not None:
            answer["text_of_original"] = self._shown(verdict.of)
        return answer

    def _shown(self, id: str) -> str | None:
        """Return the text of an id for an answer, None if it is no longer kept."""
        text = self._index.text_of(id)
        return text if text is None or len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"


def _is_id(text: str, id: str) -> bool:
    if bool(text) == bool(id):
        raise InputError("give a text or the id of a known text, one of the two")
    return bool(id)


def mcp_server(tools: Tools) -> MCPServer[Any]:
    """Return a server of the tools; its ``run`` speaks over stdin and stdout until stdin ends."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    calls = {name: getattr(tools, name) for name in ("check", "enter", "query", "explain")}

    class Server(MCPServer[Any]):
        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            known = list(signature(calls[name]).parameters) if name in calls else list(arguments)
            for part in arguments:
                if part not in known:
                    raise ToolError(f"{name} has no argument {quoted(part)}; its arguments are {', '.join(known)}")
            try:
                return await super().call_tool(name, arguments, context)
            except ToolError as error:
                if isinstance(error.__cause__, ValidationError):
                    raise ToolError(_sentence(error.__cause__)) from None
                raise

    server = Server("neardup", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    for name, call in calls.items():
        hints = ToolAnnotations(read_only_hint=name != "enter", destructive_hint=False, idempotent_hint=True)
        server.tool(name=name, description=cleandoc(call.__doc__), annotations=hints)(_with_sentences(call))
    return server


def _sentence(error: ValidationError) -> str:
    """Return the first fault of the arguments of a tool; the SDK would return all, with links to its library."""
    fault = error.errors()[0]
    name = ".".join(map(str, fault["loc"]))
    if fault["type"] == "missing":
        return f"{name} is missing; give it"
    return f"{name} is {quoted(fault['input'])}; {fault['msg'].replace('Input should', 'it should')}"


def _with_sentences(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool whose refusals reach the agent: the SDK hides the messages of other errors."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(call)
    def tool(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except NeardupError as error:
            raise ToolError(str(error)) from None

    return tool
