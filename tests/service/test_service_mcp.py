"""The tools for agents, called over the protocol in a separate process."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from commands import refused, start_process
from serving import EDITED, FOX, OTHER, served

from neardup.errors import InputError, UnknownDocument
from neardup.service.client import Client
from neardup.service.indexes import Indexes, IndexOptions

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")


def test_an_agent_does_not_write_twice(tmp_path: Path) -> None:
    from neardup.service.mcp import Tools

    store = str(tmp_path / "memory.db")
    with start_process("serve", "--mcp", "--store", store, stdin=subprocess.PIPE, stderr=None) as process:
        sent, answered = process.stdin, process.stdout
        assert sent is not None
        assert answered is not None

        def ask(method: str, **parameters: Any) -> Any:
            """Send a request of the Model Context Protocol, a line of JSON, and return its result."""
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}), file=sent)
            sent.flush()
            return json.loads(answered.readline())["result"]

        def call(tool: str, **arguments: Any) -> Any:
            found = ask("tools/call", name=tool, arguments=arguments)
            if found["isError"]:
                return found["content"][0]["text"]
            structured = found.get("structuredContent") or {}
            return structured.get("result", structured) or [json.loads(one["text"]) for one in found["content"]]

        client = {"name": "agent", "version": "1"}
        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=sent)
        tools_listed = ask("tools/list")["tools"]
        assert {tool["name"] for tool in tools_listed} == {"check", "enter", "query", "explain"}
        for tool in tools_listed:
            assert all(field.get("description") for field in tool["inputSchema"]["properties"].values()), tool
        assert call("check", text=FOX)["kind"] == "original"
        first = call("enter", text=FOX, id="m1")
        assert (first["kind"], first["known"]) == ("original", False)
        assert call("enter", text=FOX, id="m1") == first | {"known": True}
        assert call("check", id="m1")["kind"] == "original"
        assert "no text has the id 'm9'" in call("check", id="m9")
        for both in ({}, {"text": FOX, "id": "m1"}):
            assert "one of the two" in call("check", **both)
        assert call("explain", left_id="m1", right=EDITED)["match"] is True
        assert call("query", id="m1") == []
        found = call("check", text=EDITED)
        assert (found["kind"], found["of"], found["text_of_original"]) == ("near", "m1", FOX)
        assert "belongs to another text" in call("enter", text=OTHER, id="m1")
        # Wrong arguments are one sentence, and none is ignored.
        for wrong, sentence in (
            ({"txt": FOX}, "enter has no argument 'txt'; its arguments are text, id, title"),
            ({}, "text is missing; give it"),
            ({"text": 5}, "text is 5; it should be a valid string"),
            ({"text": ""}, "text is empty; give the text to remember"),
            ({"text": FOX, "id": "x" * 1025}, "at most 1024 characters"),
        ):
            assert sentence in call("enter", **wrong)
        # A long text is cut for the agent, which reads all of it.
        long_text = f"{OTHER} and so on. " * 1000
        call("enter", text=long_text, id="long")
        (shown,) = call("query", text=long_text)
        assert shown["text"] == f"{long_text[:10_000]}…"
        (found,) = call("query", text=EDITED)
        assert (found["id"], found["text"]) == ("m1", FOX)
        sent.close()
        assert process.wait(300) == 0
    indexes = Indexes(store, IndexOptions(window="endless"))
    tools = Tools(indexes.get("main"))
    # What was entered is known after a restart.
    assert tools.enter(EDITED)["of"] == "m1"
    assert tools.enter(FOX, id="m1")["kind"] == "original"
    assert tools.explain(FOX, EDITED)["match"] is True
    indexes.close()


def test_tools_use_a_running_service(tmp_path: Path) -> None:
    from neardup.service.mcp import Tools

    with served(tmp_path) as service, Client(str(service.base_url)) as client:
        tools = Tools(client)
        assert tools.enter(FOX, id="m1")["kind"] == "original"
        assert tools.check(EDITED)["of"] == "m1"
        (found,) = tools.query(EDITED)
        assert found["text"] == FOX
        assert tools.explain(FOX, OTHER)["match"] is False
        assert tools.enter(FOX, id="m1")["known"] is True
        assert tools.explain(left_id="m1", right_id="m1")["match"] is True
        with pytest.raises(InputError, match="belongs to another text"):
            tools.enter(OTHER, id="m1")
        with pytest.raises(UnknownDocument, match="'m9'"):
            tools.check(id="m9")


def test_it_needs_one_of_a_store_and_a_service() -> None:
    for options in ([], ["--store", "x.db", "--url", "http://127.0.0.1:9"]):
        assert "--mcp needs --store FILE" in refused("serve", "--mcp", *options)
