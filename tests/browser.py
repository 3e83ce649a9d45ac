"""A real browser for tests of pages: an installed Chromium, started once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_RUNNING = ExitStack()


@cache
def chromium() -> Any:
    """Return the browser; skip the test with a reason if there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    with ExitStack() as starting:
        playwright = starting.enter_context(sync_api.sync_playwright())
        # Without its own sandbox, for tests may run as root; the pages are ours.
        try:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"no Chromium can be started: {str(error).splitlines()[0]}")
        starting.callback(browser.close)
        # A bound for what never comes: a busy machine may need longer than the five seconds of Playwright.
        sync_api.expect.set_options(timeout=120_000)
        _RUNNING.push(starting.pop_all())
    return browser


def expect(found: Any) -> Any:
    """Return Playwright's expectations of a locator or page, which wait until they are met."""
    from playwright import sync_api

    return sync_api.expect(found)


def end() -> None:
    """End the browser; tests/conftest.py calls this after the last test."""
    _RUNNING.close()
    chromium.cache_clear()


@contextmanager
def opened(
    place: Path | str,
    *,
    width: int = 1280,
    dark: bool = False,
    script: bool = True,
    wrong: list[str] | None = None,
    **options: Any,
) -> Iterator[Any]:
    """Open a page from a file or an address, and fail if it has errors or loads anything from outside.

    Tests that expect what is wrong find it in ``wrong``; the options are those of Playwright's ``new_context``.
    """
    found: list[str] = [] if wrong is None else wrong
    home = place if isinstance(place, str) else place.resolve().as_uri()
    options |= {"color_scheme": "dark" if dark else "light", "java_script_enabled": script}
    context = chromium().new_context(viewport={"width": width, "height": 900}, **options)
    context.set_default_timeout(120_000)
    try:
        page = context.new_page()
        page.on("pageerror", lambda error: found.append(f"error: {error}"))
        page.on("console", lambda message: found.append(f"console: {message.text}"))
        page.on("request", lambda asked: found.append(f"request: {asked.url}") if _outside(asked.url, home) else None)
        page.goto(home)
        yield page
    finally:
        context.close()
    assert wrong is not None or not found, "\n".join(found)


def _outside(url: str, home: str) -> bool:
    if home.startswith("http"):
        return not url.startswith((home, "data:"))
    return not url.startswith(("data:", "blob:")) and url.split("#")[0] != home


def draw(page: Any) -> None:
    """Scroll to every chart of a page, and wait until all are drawn."""
    for chart in page.locator(".chart").all():
        # Charts above it that are drawn meanwhile may move it out of sight again.
        page.wait_for_function(
            "chart => { chart.scrollIntoView({ block: 'center' }); return chart.querySelector('svg.marks'); }",
            arg=chart.element_handle(),
        )
