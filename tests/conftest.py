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


#: What takes longest comes first, so that no process is left alone with it at the end; each test goes where there is
#: time, unless what its file builds for all its tests costs more than the tests.
_ON_SPARK = ("tests/spark/", "tests/promises/test_engines_on_spark.py")
_FIRST = (
    *_ON_SPARK,
    "tests/test_docs.py",
    "tests/promises/",
    "tests/pipeline/test_corpora.py",
    "tests/search/test_recomputed.py",
)
_APART = ("tests/test_docs.py", "tests/search/test_recomputed.py", "tests/spark/test_spark_cluster.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; among them and after them, any order will do."""
    places = {item: [item.nodeid.startswith(start) for start in _FIRST] for item in items}
    items.sort(key=lambda item: places[item].index(True) if any(places[item]) else len(_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes a processor, for tests wait as long as they compute; each takes up to 1.5 GB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(2 * len(os.sched_getaffinity(0)), memory // 2_000_000_000))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files stay whole, and those of Spark together, for each process would start a Java of its own."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByRoom(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(_APART):
                return nodeid
            return "tests/spark" if nodeid.startswith(_ON_SPARK) else str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return ByRoom(config, log)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> None:
    """A runner in the background ignores SIGINT, and so would the commands that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of full disks: Python 3.11 takes what fitted of a module's bytecode for all of it, in every run after.

    Only where packages were installed just now is there any to be written.
    """
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture(scope="session", autouse=True)
def _browser_ends() -> Iterator[None]:
    yield
    browser.end()
