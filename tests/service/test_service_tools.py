"""The tools for agents, called over the protocol in a separate process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from commands import refused
from serving import EDITED, FOX, OTHER, served

from neardup.service.client import Client
from neardup.service.indexes import Indexes, IndexOptions

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")

Ask = Callable[..., Coroutine[Any, Any, Any]]


def with_tools(options: list[str], use: Callable[[Ask, Any], Coroutine[Any, Any, None]]) -> None:
    """Start the command, and let an agent use it."""

    mcp = pytest.importorskip("mcp")

    async def session() -> None:
        command = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "neardup", "mcp", *options], env=dict(os.environ)
        )
        async with mcp.stdio_client(command) as (reading, writing), mcp.ClientSession(reading, writing) as agent:
            await agent.initialize()

            async def ask(tool: str, **arguments: Any) -> Any:
                found = await agent.call_tool(tool, arguments)
                assert not found.is_error, found
                structured = found.structured_content or {}
                return structured.get("result", structured) or [json.loads(one.text) for one in found.content]

            await use(ask, agent)

    # In another thread, because the browser of other tests has a loop in this one.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, session()).result()


def test_an_agent_does_not_write_twice(tmp_path: Path) -> None:
    from neardup.service.tools import Tools

    store = str(tmp_path / "memory.db")

    async def use(ask: Ask, agent: Any) -> None:
        assert {tool.name for tool in (await agent.list_tools()).tools} == {"check", "enter", "query", "explain"}
        assert (await ask("check", text=FOX))["kind"] == "original"
        assert (await ask("enter", text=FOX, id="m1"))["kind"] == "original"
        found = await ask("check", text=EDITED)
        assert (found["kind"], found["of"], found["text_of_original"]) == ("near", "m1", FOX)
        assert "belongs to another text" in (await ask("enter", text=OTHER, id="m1"))["error"]
        (found,) = await ask("query", text=EDITED)
        assert (found["id"], found["text"]) == ("m1", FOX)

    with_tools(["--store", store], use)
    indexes = Indexes(store, IndexOptions(window="endless"))
    tools = Tools(indexes.get("main"))
    # What was entered is known after a restart.
    assert tools.enter(EDITED)["of"] == "m1"
    assert tools.enter(FOX, id="m1")["kind"] == "original"
    assert tools.explain(FOX, EDITED)["match"] is True
    indexes.close()


def test_tools_use_a_running_service(tmp_path: Path) -> None:
    from neardup.service.tools import Tools

    with served(tmp_path) as service, Client(str(service.base_url)) as client:
        tools = Tools(client)
        assert tools.enter(FOX, id="m1")["kind"] == "original"
        assert tools.check(EDITED)["of"] == "m1"
        (found,) = tools.query(EDITED)
        assert found["text"] == FOX
        assert tools.explain(FOX, OTHER)["match"] is False


def test_it_needs_one_of_a_store_and_a_service() -> None:
    for options in ([], ["--store", "x.db", "--url", "http://127.0.0.1:9"]):
        assert "mcp needs --store FILE" in refused("mcp", *options)
