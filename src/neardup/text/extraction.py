"""The main content of pages, and the process that extracts it.

The libraries that find main content parse pages in native code that may crash, hang or take all memory, and that is not
safe in threads. So `run_worker` runs them in a process of its own, which `neardup.text.contents` starts. This module
imports nothing that is slow to load.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import resource
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from typing import NamedTuple
from weakref import WeakSet

from neardup.text.html import TagScanner, strip_tags

#: The longest page, in characters, that is searched for an article.
MAX_CHARACTERS = 4_000_000
#: The most start tags of a page that is searched for an article; each costs up to 0.1 ms.
MAX_TAGS = 20_000
#: The deepest nesting of elements; beyond 255 the parser would lose their text.
MAX_DEPTH = 200
#: Longer tags lose their attributes: parsing these takes quadratic time.
MAX_TAG_LENGTH = 8_192
#: An article with fewer letters and digits counts as not found.
MIN_LETTERS = 25
#: The seconds of a processor that the search for the article of a page may take, and the seconds in all.
CPU_LIMIT_S, WALL_LIMIT_S = 20.0, 120.0
#: The bytes that a process may hold while it searches for an article; pages within the limits above take up to 0.4 GB.
MEMORY_LIMIT = 1_500_000_000
#: The process ends after this time without a page.
IDLE_S = 600.0
#: Up to this many tags, resiliparse needs no check of their depth: at worst it takes a second.
_UNCHECKED_TAGS = 5_000

_VOID_WORDS = (
    "area base basefont bgsound br col command embed frame hr image img input keygen link meta param source track wbr"
)
_VOID = frozenset(_VOID_WORDS.split())
_OPTIONAL_END_WORDS = "p li dt dd td th tr thead tbody tfoot option optgroup colgroup rt rp"
#: Elements that the next element of their kind closes, so that a sequence of them is not deep.
_OPTIONAL_END = frozenset(_OPTIONAL_END_WORDS.split())
_LONG_TAG = re.compile(rf"<[^<>]{{{MAX_TAG_LENGTH}}}")


class Article(NamedTuple):
    """The article of a page, or with a ``fallback`` all its text.

    The fallback is empty, or ``"long"`` (more than `MAX_CHARACTERS` characters), ``"tags"`` (more than `MAX_TAGS`),
    ``"deep"`` (deeper than `MAX_DEPTH`), ``"little"`` (an article of less than `MIN_LETTERS` letters and digits) or
    ``"failed"``: the library raised an error, ended its process or exceeded a limit, as ``reason`` says.
    """

    text: str
    fallback: str = ""
    reason: str = ""


class FailedPages:
    """The pages of this process that failed while this object exists: the reason of each, by its ``page_digest``."""

    def __init__(self) -> None:
        self.reasons: dict[bytes, str] = {}
        _LISTENERS.add(self)


_LISTENERS: WeakSet[FailedPages] = WeakSet()


def page_digest(page: bytes) -> bytes:
    """Return what identifies a page by its markup in UTF-8."""
    return blake2b(page, digest_size=16).digest()


def report_failed_page(page: bytes, reason: str) -> None:
    """Tell each ``FailedPages`` about a page."""
    digest = page_digest(page)
    for listener in list(_LISTENERS):
        listener.reasons.setdefault(digest, reason)


#: Finds the article of markup.
Search = Callable[[str], str]


def extract_article(markup: str, search: Search) -> Article:
    """Find the article of a page with a function of a library.

    Pages with the same article and different navigation give nearly the same text; different articles with the same
    navigation give different texts. Any broken markup is accepted. A page that is too long, has too many tags or nests
    them too deeply (see the constants of this module) gives all of its text instead, in linear time. Within these
    limits a page takes at most some seconds and some hundred megabytes; beyond them, some seconds per million tags and
    a few times its size. A typical page takes some milliseconds.
    """
    text = markup.replace("\0", "")
    limited, fallback = _limit_markup(text, shallow=_UNCHECKED_TAGS if search is _search_fast else 0)
    if fallback:
        return Article(strip_tags(text), fallback)
    try:
        with _limits():
            article = search(limited)
    except Exception as error:  # a page that crashes the library still has a text
        return Article(strip_tags(text), "failed", f"the library raised {type(error).__name__}")
    if sum(map(str.isalnum, article)) < MIN_LETTERS:
        return Article(strip_tags(text), "little")
    return Article(article)


def _limit_markup(markup: str, *, shallow: int) -> tuple[str, str]:
    """Return the markup with overlong tags shortened, and the reason why the library must not get it, or ``""``.

    Markup with at most ``shallow`` tags is not checked for its depth, and so takes a tenth of the time.
    """
    if len(markup) > MAX_CHARACTERS:
        return "", "long"
    if markup.count("<") <= shallow and _LONG_TAG.search(markup) is None:
        return markup, ""
    tags = depth = 0
    parts: list[str] = []
    at = 0
    for tag in TagScanner(markup):
        if tag.opens:
            tags += 1
            if tags > MAX_TAGS:
                return "", "tags"
        if tag.name and tag.name not in _VOID and tag.name not in _OPTIONAL_END and tag.opens != tag.closes:
            depth = max(0, depth + (1 if tag.opens else -1))
            if depth > MAX_DEPTH:
                return "", "deep"
        if tag.opens and tag.end - tag.start > MAX_TAG_LENGTH:
            parts += [markup[at : tag.start], f"<{tag.name}>" if tag.name.isalnum() else " "]
            at = tag.end
    return ("".join([*parts, markup[at:]]) if parts else markup), ""


def _search_well(markup: str) -> str:
    import trafilatura

    return trafilatura.extract(markup, fast=True, include_comments=False) or ""


def _search_fast(markup: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(markup, main_content=True, alt_texts=False, comments=False))


class Method(NamedTuple):
    """A value of a recipe's ``content``: the library that it needs, empty for none, and how it reads a page."""

    library: str
    extra: str
    read: Callable[[str], Article]


#: By the names of ``neardup.recipe.recipe.CONTENTS``.
METHODS = {
    "html": Method("trafilatura", "html", lambda markup: extract_article(markup, _search_well)),
    "html-fast": Method("resiliparse", "html-fast", lambda markup: extract_article(markup, _search_fast)),
    "tags": Method("", "", lambda markup: Article(strip_tags(markup))),
}


@contextmanager
def _limits() -> Iterator[None]:
    """Limit the processor time, time and memory of the block: the system ends a process that exceeds a time.

    The timers are those of the system, because native code may hold the interpreter's lock for as long as it runs.
    """
    # Beyond the limit memory cannot be allocated, which libraries report as an error.
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MEMORY_LIMIT if before[1] == resource.RLIM_INFINITY else min(MEMORY_LIMIT, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT_S)
    signal.setitimer(signal.ITIMER_REAL, WALL_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_DATA, before)


#: Signals of the timers of `_limits`, whose default is to end the process.
TIMER_SIGNALS = (signal.SIGPROF, signal.SIGALRM)


@cache
def _missing(library: str) -> str:
    """Import a library; return the name of what is not installed, empty if all is."""
    # The library logs pages without an article to standard error; the reason is in the result.
    logging.disable()
    try:
        if library:
            __import__(library)
    except ImportError as error:
        return error.name or str(error)
    return ""


def _watch_parent(requests: int) -> None:
    """End this process when the one that started it closes its end of the pipe, or ends."""
    poll = select.poll()
    poll.register(requests, 0)
    poll.poll()
    os._exit(0)


def run_worker() -> None:
    """Extract the content of pages until the other end of stdin is closed.

    A request is a line of JSON, ``{"method", "sizes"}``, and the pages in UTF-8. The answer is a line
    ``{"missing"}`` with the name of a library that is not installed, and for each page a line
    ``{"size", "fallback", "reason", "cpu_s", "memory"}`` and its content in UTF-8. The first line of all is
    ``{"ready"}``.
    """
    for number in TIMER_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # If memory runs out, the system ends this process rather than the one that waits for it.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("800")
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    # What a library prints must not reach the pipe or the terminal.
    for stream in range(3):
        os.dup2(null, stream)
    threading.Thread(target=_watch_parent, args=(requests.fileno(),), daemon=True).start()
    _write(answers, {"ready": True})
    while select.select([requests], [], [], IDLE_S)[0] and (line := requests.readline()):
        request = json.loads(line)
        pages = [requests.read(size) for size in request["sizes"]]
        method = METHODS[request["method"]]
        _write(answers, {"missing": _missing(method.library)})
        for page in pages:
            begin = time.process_time()
            found = method.read(page.decode())
            # References such as ``&#xD800;`` are lone surrogates, which UTF-8 cannot encode.
            content = found.text.encode("utf-8", "replace")
            cost = {"cpu_s": time.process_time() - begin, "memory": _resident_memory()}
            _write(answers, {"size": len(content), "fallback": found.fallback, "reason": found.reason} | cost, content)
    os._exit(0)


def _write(answers: io.BufferedWriter, header: dict[str, object], content: bytes = b"") -> None:
    answers.write(json.dumps(header).encode() + b"\n" + content)
    answers.flush()


def _resident_memory() -> int:
    """Return the memory of this process in bytes; 0 if it is unknown."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as fields:
        return int(fields.read().split()[1]) * resource.getpagesize()
    return 0
