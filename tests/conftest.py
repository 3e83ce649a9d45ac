"""Hypothesis draws the same examples on every run of CI, and new ones elsewhere; the browser ends with the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import browser
import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session", autouse=True)
def _browser_ends() -> Iterator[None]:
    yield
    browser.end()
