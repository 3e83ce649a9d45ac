"""``neardup mcp``: tools for agents."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import FLOW, option, with_options
from neardup.cli.options import RecipeOptions, chosen_recipe
from neardup.cli.watch import ItemClassifier
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.service.indexes import NamedIndex


@with_options
def mcp(
    recipe_options: RecipeOptions,
    decided: ItemClassifier,
    store: Annotated[str | None, option("FILE", "SQLite file for all texts; made if missing.", FLOW)] = None,
    window: Annotated[str, option("TIME|COUNT", "24h, 90m, 7d; '8000 documents'; endless for all.", FLOW)] = "endless",
    against: Annotated[
        str, option("originals|everything", "Compare with originals only, or with all documents.", FLOW)
    ] = "originals",
    url: Annotated[str | None, option("URL", "Ask a running neardup serve instead of a store.", FLOW)] = None,
    index: Annotated[str, option("NAME", "Which index of that service.", FLOW)] = "main",
    token_file: Annotated[str | None, option("FILE", "A file with a token for that service.", FLOW)] = None,
) -> None:
    """Give agents tools over MCP: check, enter, query, explain.

    It speaks over stdin and stdout until stdin ends; an agent's settings name this command.

    A verdict is saved before it is given; a new start continues where the last one ended.
    """
    from neardup.service.server import check_packages

    check_packages("mcp", "mcp", "starlette", *(("httpx",) if url else ()))
    if (store is None) == (url is None):
        raise RecipeError("mcp needs --store FILE, where all texts are kept, or --url URL of a service: give one")
    from neardup.service.client import Client
    from neardup.service.guard import Tokens
    from neardup.service.tools import Tools, server_of

    with ExitStack() as stack:
        known: NamedIndex | Client
        if url is not None:
            tokens = Tokens() if token_file is None else Tokens.of_file(token_file)
            token = next(iter((*tokens.write, *tokens.read)), None)
            known = stack.enter_context(Client(url, index=index, token=token))
        else:
            from neardup.service.indexes import MAIN, Indexes, IndexOptions

            classifier = decided.loaded()
            recipe = chosen_recipe(recipe_options, classifier)
            options = IndexOptions(
                recipe=None if classifier else recipe, classifier=classifier, window=window, against=against
            )
            indexes = Indexes(store or "", options)
            stack.callback(indexes.close)
            known = indexes.get(MAIN)
        server_of(Tools(known)).run("stdio")
