"""``neardup serve``: verdicts over HTTP; ``neardup mcp``: tools for agents."""

from __future__ import annotations

import gc
import resource
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.command import FLOW, option, refuse_ignored, with_options
from neardup.cli.options import FlowAgainst, FlowClassifierOptions, RecipeOptions, Window
from neardup.cli.screen import parse_size, print_message
from neardup.cli.watch import StatisticsSample, StoredWindowOptions, read_statistics, warm_up
from neardup.errors import OutputError, RecipeError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from neardup.service.indexes import NamedIndex

_ACCESS, _LIMITS = "Address and access", "Limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceWindowOptions(StoredWindowOptions):
    """The window of a service, which is asked about everything that it knows."""

    window: Window = "endless"


@with_options
def serve(
    window_options: ServiceWindowOptions,
    recipe_options: RecipeOptions,
    classifier_options: FlowClassifierOptions,
    host: Annotated[
        str, option("ADDRESS", "Address to listen on; other machines can call only with --token-file.", _ACCESS)
    ] = "127.0.0.1",
    port: Annotated[int, option("NUMBER", "Port to listen on; 0 for any free port.", _ACCESS, min=0, max=65535)] = 8321,
    token_file: Annotated[
        str | None, option("FILE", "Tokens of callers: lines like read TOKEN and write TOKEN.", _ACCESS)
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        option("NAME", "Another host name that callers use, such as that of a proxy; repeatable.", _ACCESS),
    ] = None,
    classifiers: Annotated[
        str | None, option("FOLDER", "Folder of classifiers that new indexes may use.", _ACCESS)
    ] = None,
    max_body: Annotated[
        int, option("SIZE", "Largest request.", _LIMITS, parser=parse_size, show_default="10MB")
    ] = 10_000_000,
    max_batch: Annotated[int, option("NUMBER", "Maximum number of documents in a request.", _LIMITS, min=1)] = 1000,
    max_waiting: Annotated[
        int, option("NUMBER", "Maximum number of simultaneous requests; more are rejected.", _LIMITS, min=1)
    ] = 200,
    max_answer: Annotated[
        int, option("SIZE", "Largest answer.", _LIMITS, parser=parse_size, show_default="64MB")
    ] = 64_000_000,
    max_indexes: Annotated[int, option("NUMBER", "Maximum number of indexes, with main.", _LIMITS, min=1)] = 100,
    sample: StatisticsSample = None,
) -> None:
    """Answer over HTTP whether a document repeats an earlier one.

    A verdict is saved before it is returned; a new run continues where the last one ended.

    The page is at the printed address; /docs describes the calls.

    Ctrl-C or SIGTERM ends it; accepted requests are still answered.
    """
    from neardup.runtime import stop_signals
    from neardup.service.server import check_packages

    check_packages("serve", "fastapi", "uvicorn", "prometheus_client", "jinja2")
    if not window_options.store:
        raise RecipeError("serve needs --store FILE, which keeps the window and all verdicts")
    from neardup.service.app import Service
    from neardup.service.guard import Limits, Tokens
    from neardup.service.indexes import IndexOptions

    classifier = classifier_options.load()
    recipe = recipe_options.resolve(classifier, flow=True)
    options = IndexOptions(
        recipe=None if classifier else recipe,
        classifier=classifier,
        window=window_options.window,
        window_by=window_options.window_by,
        against=window_options.against,
        sample=read_statistics(recipe, sample),
    )
    # Each connection takes a file descriptor; the usual limit of 1,024 can be raised up to the hard one.
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    tokens = Tokens() if token_file is None else Tokens.of_file(token_file)
    service = Service(
        window_options.store,
        options,
        host=host,
        port=port,
        hosts=allow_host or (),
        tokens=tokens,
        limits=Limits(max_body, max_batch, max_waiting, max_answer, max_indexes),
        classifiers=classifiers,
    )
    with stop_signals("every returned verdict is on the disk") as stop_requests, service:
        for entry in service.indexes:
            warm_up(entry.index)
        gc.freeze()
        Thread(target=_prepare_page, args=[bool(tokens)], name="page").start()
        typer.echo(service.address)
        documents = format_count(sum(len(entry.index) for entry in service.indexes), "document")
        print_message(f"serving {window_options.store} with {documents} at {service.address}; Ctrl-C ends it")
        while not stop_requests and service.running:
            time.sleep(0.2)
    if not stop_requests:
        raise OutputError("the server stopped by itself; see its log")
    print_message("stopped; every returned verdict is on the disk")


def _prepare_page(tokens: bool) -> None:
    """Render the page during the first requests, and exempt all objects that exist by then from garbage collection.

    Kernels and charts are some 200,000 objects: each full collection would stop the service for half a second.
    """
    from neardup.service.page import frame

    # An error occurs again when the page is requested, and is reported there.
    with suppress(Exception):
        frame(tokens)
    gc.freeze()


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
    if url is None:
        refuse_ignored(("index", "token_file"), "is for a running service: name it with --url URL, or leave it out")
    else:
        kinds = (RecipeOptions, FlowClassifierOptions)
        names = (field.name for kind in kinds for field in fields(kind))
        refuse_ignored((*names, "window", "against"), "is for a store, and a service has its own: leave it out")
    from neardup.service.client import Client
    from neardup.service.guard import Tokens
    from neardup.service.mcp import Tools, mcp_server

    with ExitStack() as stack:
        target: NamedIndex | Client
        if url is not None:
            tokens = Tokens() if token_file is None else Tokens.of_file(token_file)
            token = next(iter((*tokens.write, *tokens.read)), None)
            target = stack.enter_context(Client(url, index=index, token=token))
        else:
            from neardup.service.indexes import MAIN, Indexes, IndexOptions

            classifier = classifier_options.load()
            recipe = recipe_options.resolve(classifier, flow=True)
            options = IndexOptions(
                recipe=None if classifier else recipe, classifier=classifier, window=window, against=against
            )
            indexes = Indexes(store or "", options)
            stack.callback(indexes.close)
            target = indexes.get(MAIN)
        mcp_server(Tools(target)).run("stdio")
