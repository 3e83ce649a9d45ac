"""``neardup serve``: verdicts over HTTP."""

from __future__ import annotations

import gc
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Annotated

from neardup.cli.command import option, with_options
from neardup.cli.options import RecipeOptions
from neardup.cli.screen import count_text, parse_size, say, show
from neardup.cli.watch import DurableWindow, ItemClassifier, read_statistics, warm_up
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.service.app import Limits

_WHERE, _LIMITS = "Where and for whom", "Limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where the service is, and who may ask it."""

    host: Annotated[
        str, option("ADDRESS", "Where to listen; other than this machine only with --token-file.", _WHERE)
    ] = "127.0.0.1"
    port: Annotated[int, option("NUMBER", "Where to listen; 0 for any free port.", _WHERE, min=0, max=65535)] = 8321
    token_file: Annotated[str | None, option("FILE", "Who may ask: lines like read TOKEN and write TOKEN.", _WHERE)] = (
        None
    )
    allow_host: Annotated[
        list[str] | None, option("NAME", "Another name that callers use, such as that of a proxy.", _WHERE)
    ] = None
    classifiers: Annotated[
        str | None, option("FOLDER", "Classifiers that further indexes may be made with.", _WHERE)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """How much the service takes at a time."""

    max_body: Annotated[int, option("SIZE", "Largest request.", _LIMITS, parser=parse_size, show_default="10MB")] = (
        10_000_000
    )
    max_batch: Annotated[int, option("NUMBER", "Most documents in a request.", _LIMITS, min=1)] = 1000
    max_waiting: Annotated[int, option("NUMBER", "Most requests at a time; more are sent away.", _LIMITS, min=1)] = 200

    @property
    def limits(self) -> Limits:
        """The limits."""
        from neardup.service.app import Limits

        return Limits(self.max_body, self.max_batch, self.max_waiting)


@with_options
def serve(
    windows: DurableWindow,
    recipe_options: RecipeOptions,
    decided: ItemClassifier,
    serving: ServeOptions,
    limited: LimitOptions,
    sample: Annotated[
        str | None,
        option(
            "INPUT", "A corpus to take frequencies from, for recipes that need them; use the same one at each start."
        ),
    ] = None,
) -> None:
    """Answer over HTTP whether a document repeats one that came before.

    A verdict is saved before it is answered; a new start continues where the last one ended.

    Its page is at the address that it prints, its calls at /docs.

    Ctrl-C or SIGTERM ends it; what it took is answered.
    """
    from neardup.service.server import check_packages, stop_signals

    check_packages("serve", "fastapi", "uvicorn", "prometheus_client", "jinja2")
    if not windows.store:
        raise RecipeError("serve needs --store FILE: where the window and all verdicts are kept")
    from neardup.cli.options import chosen_recipe
    from neardup.service.app import Service
    from neardup.service.guard import Tokens
    from neardup.service.indexes import IndexOptions

    classifier = decided.loaded()
    recipe = chosen_recipe(recipe_options, classifier)
    options = IndexOptions(
        recipe=None if classifier else recipe,
        classifier=classifier,
        window=windows.window,
        window_by=windows.window_by,
        against=windows.against,
        sample=read_statistics(recipe, sample),
    )
    # Each caller takes a file of the process; systems begin with few, often 1,024, and let it ask for more.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    tokens = Tokens() if serving.token_file is None else Tokens.of_file(serving.token_file)
    service = Service(
        windows.store,
        options,
        host=serving.host,
        port=serving.port,
        hosts=serving.allow_host or (),
        tokens=tokens,
        limits=limited.limits,
        classifiers=serving.classifiers,
    )
    with stop_signals("every verdict that was answered is on the disk") as asked, service:
        for named in service.indexes:
            warm_up(named.index)
        gc.freeze()
        Thread(target=_prepare, args=[bool(tokens)], name="page").start()
        show(service.address)
        held = sum(len(named.index) for named in service.indexes)
        say(f"serving {windows.store} at {service.address}, {count_text(held, 'document')} held; Ctrl-C ends it")
        while not asked and service.running:
            time.sleep(0.2)
    if not asked:
        raise OutputError("the server has ended by itself; its log says why")
    say("stopped; every verdict that was answered is on the disk")


def _prepare(tokens: bool) -> None:
    """Make the page beside the first requests, and spare the garbage collector all that is there by then.

    Kernels and charts are some 200,000 objects: to go through them again and again would stop the service for half a
    second each time.
    """
    from neardup.service.page import frame

    # Whatever goes wrong here goes wrong again where the page is asked for, and is told there.
    with suppress(Exception):
        frame(tokens)
    gc.freeze()
