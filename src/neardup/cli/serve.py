"""``neardup serve``: verdicts over HTTP, or tools for agents over MCP."""

from __future__ import annotations

import gc
import resource
import time
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Annotated

import click

from neardup.cli.command import option, refuse_ignored, switch
from neardup.cli.options import FlowClassifierOptions, FlowRecipeOptions, Window
from neardup.cli.screen import SIZE, print_message
from neardup.cli.watch import StatisticsSample, StoredWindowOptions, read_statistics, warm_up
from neardup.errors import OutputError, RecipeError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from neardup.service.indexes import NamedIndex

_ACCESS, _LIMITS, _AGENTS = "Address and access", "Limits", "Agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceWindowOptions(StoredWindowOptions):
    """The window of a service, which is asked about everything that it knows."""

    window: Window = "endless"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOptions:
    """Where a service listens, and who may call it."""

    host: Annotated[
        str, option("ADDRESS", "Address to listen on; other machines can call only with --token-file.", _ACCESS)
    ] = "127.0.0.1"
    port: Annotated[int, option("NUMBER", "Port to listen on; 0 for any free port.", _ACCESS, min=0, max=65535)] = 8321
    allow_host: Annotated[
        list[str] | None,
        option("NAME", "Another host name that callers use, such as that of a proxy; repeatable.", _ACCESS),
    ] = None
    classifiers: Annotated[str | None, option("FOLDER", "Folder of classifiers that new indexes may use.", _ACCESS)] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The limits of requests and answers."""

    max_body: Annotated[int, option("SIZE", "Largest request.", _LIMITS, **SIZE)] = 10_000_000
    max_batch: Annotated[int, option("NUMBER", "Maximum number of documents in a request.", _LIMITS, min=1)] = 1000
    max_waiting: Annotated[
        int, option("NUMBER", "Maximum number of simultaneous requests; more are rejected.", _LIMITS, min=1)
    ] = 200
    max_answer: Annotated[int, option("SIZE", "Largest answer.", _LIMITS, **SIZE)] = 64_000_000
    max_indexes: Annotated[int, option("NUMBER", "Maximum number of indexes, with main.", _LIMITS, min=1)] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The tools of agents, in place of HTTP."""

    mcp: Annotated[
        bool,
        switch("--mcp", "Give an agent tools over MCP instead, by stdin and stdout: check, enter, query, explain."),
    ] = False
    url: Annotated[
        str | None, option("URL", "With --mcp: use a running service instead of a store; see --token-file.", _AGENTS)
    ] = None
    index: Annotated[str, option("NAME", "With --url: the index of that service.", _AGENTS)] = "main"


def serve(
    window_options: ServiceWindowOptions,
    agent_options: AgentOptions,
    recipe_options: FlowRecipeOptions,
    classifier_options: FlowClassifierOptions,
    address_options: AddressOptions,
    limit_options: LimitOptions,
    token_file: Annotated[
        str | None,
        option("FILE", "Tokens of callers: lines like read TOKEN and write TOKEN; with --url, its token.", _ACCESS),
    ] = None,
    sample: StatisticsSample = None,
) -> None:
    """Answer over HTTP whether a document repeats an earlier one.

    A verdict is saved before it is returned; a new run continues where the last one ended.

    The page is at the printed address; /docs describes the calls.

    Ctrl-C or SIGTERM ends it; accepted requests are still answered.

    With --mcp it gives an agent tools over stdin and stdout until stdin ends; name this command in the agent's
    settings.
    """
    if agent_options.mcp:
        _refuse_for_agents(agent_options)
        _serve_agent(window_options, agent_options, recipe_options, classifier_options, token_file)
        return
    refuse_ignored(("url", "index"), "is for agents: give --mcp as well, or leave it out")
    from neardup.runtime import stop_signals
    from neardup.service.server import check_packages

    check_packages("serve", "msgspec", "uvicorn", "prometheus_client", "jinja2")
    if not window_options.store:
        raise RecipeError("serve needs --store FILE, which keeps the window and all verdicts")
    from neardup.service.app import Service
    from neardup.service.guard import Limits, Tokens
    from neardup.service.indexes import IndexOptions

    classifier = classifier_options.load()
    recipe = recipe_options.resolve_for_flow(classifier)
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
        host=address_options.host,
        port=address_options.port,
        hosts=address_options.allow_host or (),
        tokens=tokens,
        limits=Limits(*astuple(limit_options)),
        classifiers=address_options.classifiers,
    )
    with stop_signals("every returned verdict is on the disk") as stop_requests, service:
        for entry in service.indexes:
            warm_up(entry.index)
        # Kernels are some hundred thousand objects: each full garbage collection would stop the service.
        gc.freeze()
        click.echo(service.address)
        documents = format_count(sum(len(entry.index) for entry in service.indexes), "document")
        print_message(f"serving {window_options.store} with {documents} at {service.address}; Ctrl-C ends it")
        while not stop_requests and service.running:
            time.sleep(0.2)
    if not stop_requests:
        raise OutputError("the server stopped by itself; see its log")
    print_message("stopped; every returned verdict is on the disk")


def _refuse_for_agents(agent_options: AgentOptions) -> None:
    """Refuse the options that an agent's tools do not use."""
    names = [field.name for kind in (AddressOptions, LimitOptions) for field in fields(kind)]
    refuse_ignored([*names, "sample"], "is for HTTP, and --mcp uses stdin and stdout: leave out one of the two")
    if agent_options.url is None:
        refuse_ignored(("index", "token_file"), "is for a running service: name it with --url URL, or leave it out")
    else:
        kinds = (FlowRecipeOptions, FlowClassifierOptions, ServiceWindowOptions)
        names = [field.name for kind in kinds for field in fields(kind) if field.name != "store"]
        refuse_ignored(names, "is for a store, and a service has its own: leave it out")


def _serve_agent(
    window_options: ServiceWindowOptions,
    agent_options: AgentOptions,
    recipe_options: FlowRecipeOptions,
    classifier_options: FlowClassifierOptions,
    token_file: str | None,
) -> None:
    from neardup.service.server import check_packages

    url, store = agent_options.url, window_options.store
    check_packages("mcp", "mcp", "msgspec", *(("httpx",) if url else ()))
    if (not store) == (url is None):
        raise RecipeError("--mcp needs --store FILE, which keeps all texts, or --url URL of a service: give one")
    from neardup.service.client import Client
    from neardup.service.guard import Tokens
    from neardup.service.mcp import Tools, mcp_server

    with ExitStack() as stack:
        target: NamedIndex | Client
        if url is not None:
            tokens = Tokens() if token_file is None else Tokens.of_file(token_file)
            token = next(iter((*tokens.write, *tokens.read)), None)
            target = stack.enter_context(Client(url, index=agent_options.index, token=token))
        else:
            from neardup.service.indexes import MAIN, Indexes, IndexOptions

            classifier = classifier_options.load()
            recipe = recipe_options.resolve_for_flow(classifier)
            options = IndexOptions(
                recipe=None if classifier else recipe,
                classifier=classifier,
                window=window_options.window,
                window_by=window_options.window_by,
                against=window_options.against,
            )
            indexes = Indexes(store, options)
            stack.callback(indexes.close)
            target = indexes.get(MAIN)
        mcp_server(Tools(target)).run("stdio")
