"""What all tests share: how Hypothesis draws, interrupts that arrive, a browser that ends with the tests."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from hypothesis import settings

# Commands that tests start buffer what they print, and find modules compiled, as they do for users; so does pytest,
# for which parsing every file anew is a third of a minute of each process.
os.environ.pop("PYTHONUNBUFFERED", None)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Flushing to a disk is most of what tests of stores and watched folders would wait for, and they are as right without
# one: nothing here pulls a plug.
_MEMORY = Path("/dev/shm")  # noqa: S108  temporary folders are made in it, as in /tmp
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4_000_000_000:
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None

# The same examples on every run of CI, new ones elsewhere; more of them where there is time.
EXAMPLES = 400 if os.environ.get("NEARDUP_LONG") == "1" else 30
settings.register_profile("ci", max_examples=EXAMPLES, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("default", max_examples=EXAMPLES, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where processes take whole files, those of Spark go to one of them: each would start a Java of its own."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByRoom(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return "tests/spark" if file.startswith("tests/spark/") else file

    return ByRoom(config, log)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> None:
    """A runner in the background ignores SIGINT, and so would the commands that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _browser_ends() -> Iterator[None]:
    yield
    browser.end()
