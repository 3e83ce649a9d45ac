"""The tools for agents, as an agent calls them: over the protocol, from a process of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving import EDITED, FOX, OTHER, served

mcp = pytest.importorskip("mcp", reason="the SDK of MCP is not installed")

Ask = Callable[..., Coroutine[Any, Any, Any]]


def with_tools(options: list[str], use: Callable[[Ask, Any], Coroutine[Any, Any, None]]) -> None:
    """Start the command, and let an agent use it."""

    async def session() -> None:
        command = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "neardup", "mcp", *options], env=dict(os.environ)
        )
        async with mcp.stdio_client(command) as (reading, writing), mcp.ClientSession(reading, writing) as agent:
            await agent.initialize()

            async def ask(tool: str, **given: Any) -> Any:
                found = await agent.call_tool(tool, given)
                assert not found.is_error, found
                structured = found.structured_content or {}
                return structured.get("result", structured) or [json.loads(one.text) for one in found.content]

            await use(ask, agent)

    # In a thread of its own: a browser that other tests drive has a loop in this one.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, session()).result()


def test_an_agent_does_not_write_twice(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")

    async def first(ask: Ask, agent: Any) -> None:
        assert {tool.name for tool in (await agent.list_tools()).tools} == {"check", "enter", "query", "explain"}
        assert (await ask("check", text=FOX))["kind"] == "original"
        assert (await ask("enter", text=FOX, id="m1"))["kind"] == "original"
        found = await ask("check", text=EDITED)
        assert (found["kind"], found["of"], found["text_of_original"]) == ("near", "m1", FOX)
        assert "belongs to another text" in (await ask("enter", text=OTHER, id="m1"))["error"]

    async def second(ask: Ask, agent: Any) -> None:
        # What was entered is known after a restart.
        assert (await ask("enter", text=EDITED))["of"] == "m1"
        assert (await ask("enter", text=FOX, id="m1"))["kind"] == "original"
        (found,) = await ask("query", text=EDITED)
        assert (found["id"], found["text"]) == ("m1", FOX)
        assert (await ask("explain", left=FOX, right=EDITED))["match"] is True

    with_tools(["--store", store], first)
    with_tools(["--store", store], second)


def test_an_agent_asks_a_service(tmp_path: Path) -> None:
    with served(tmp_path) as service:

        async def use(ask: Ask, agent: Any) -> None:
            assert (await ask("enter", text=FOX, id="m1"))["kind"] == "original"
            assert (await ask("check", text=EDITED))["of"] == "m1"
            (found,) = await ask("query", text=EDITED)
            assert found["text"] == FOX
            assert (await ask("explain", left=FOX, right=OTHER))["match"] is False

        with_tools(["--url", str(service.base_url)], use)


@pytest.mark.parametrize("options", [[], ["--store", "x.db", "--url", "http://127.0.0.1:9"]])
def test_it_needs_one_of_a_store_and_a_service(options: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "neardup", "mcp", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "mcp needs --store FILE" in done.stderr
    assert done.stdout == ""
