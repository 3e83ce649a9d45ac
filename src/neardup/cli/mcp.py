"""``neardup mcp``: tools for agents."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import FLOW, option, with_options
from neardup.cli.options import FlowAgainst, FlowClassifierOptions, RecipeOptions, Window
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.service.indexes import NamedIndex


@with_options
def mcp(
    recipe_options: RecipeOptions,
    classifier_options: FlowClassifierOptions,
    store: Annotated[str | None, option("FILE", "SQLite file for all texts; created if missing.", FLOW)] = None,
    window: Window = "endless",
    against: FlowAgainst = "originals",
    url: Annotated[str | None, option("URL", "Use a running neardup serve instead of a store.", FLOW)] = None,
    index: Annotated[str, option("NAME", "The index of that service to use.", FLOW)] = "main",
    token_file: Annotated[str | None, option("FILE", "File with a token for that service.", FLOW)] = None,
) -> None:
    """Give agents tools over MCP: check, enter, query, explain.

    It communicates over stdin and stdout until stdin ends; name this command in the agent's settings.

    A verdict is saved before it is returned; a new run continues where the last one ended.
    """
    from neardup.service.server import check_packages

    check_packages("mcp", "mcp", "starlette", *(("httpx",) if url else ()))
    if (store is None) == (url is None):
        raise RecipeError("mcp needs --store FILE, which keeps all texts, or --url URL of a service: give one")
    from neardup.service.client import Client
    from neardup.service.guard import Tokens
    from neardup.service.tools import Tools, mcp_server

    with ExitStack() as stack:
        target: NamedIndex | Client
        if url is not None:
            tokens = Tokens() if token_file is None else Tokens.of_file(token_file)
            token = next(iter((*tokens.write, *tokens.read)), None)
            target = stack.enter_context(Client(url, index=index, token=token))
        else:
            from neardup.service.indexes import MAIN, Indexes, IndexOptions

            classifier = classifier_options.load()
            recipe = recipe_options.resolve(classifier)
            options = IndexOptions(
                recipe=None if classifier else recipe, classifier=classifier, window=window, against=against
            )
            indexes = Indexes(store or "", options)
            stack.callback(indexes.close)
            target = indexes.get(MAIN)
        mcp_server(Tools(target)).run("stdio")
