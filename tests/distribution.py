"""How tests are spread over processes, and how a run ends when one of these dies or hangs.

pytest itself ends a process whose test exceeds ``faulthandler_timeout`` (pyproject.toml), after printing where each
thread is: its watchdog is a thread of C, which waits for no lock of Python. A process that died is not replaced
(``--max-worker-restart=0``): the run ends with a failure that names the test. pytest-xdist alone would give the fatal
test to the next process, and wait for ever for a new process whose last unit has one test.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: The slowest tests come first, so that none runs alone at the end. Each test may run in any process, unless the
#: fixtures of its file cost more than the tests.
_ON_SPARK = (
    "tests/spark/",
    "tests/promises/test_engines_on_spark.py",
    "tests/test_docs.py::test_console_examples_on_spark",
)
_IN_A_BROWSER = (
    "tests/pages/test_pages_in_a_browser.py",
    "tests/exploration/test_explore_page.py",
    "tests/labelling/test_page.py",
    "tests/service/test_service_page.py",
    "tests/evaluation/test_audit.py",
    "tests/evaluation/test_comparison.py",
)
_FIRST = (
    *_ON_SPARK,
    *_IN_A_BROWSER,
    "tests/test_docs.py",
    "tests/promises/",
    "tests/pipeline/test_corpora.py",
    "tests/search/test_bounded_join.py",
)
_APART = ("tests/test_docs.py", "tests/search/test_bounded_join.py")

#: Linux gives orphans to a process with this mark (prctl(2)).
_PR_SET_CHILD_SUBREAPER = 36


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slowest files; otherwise any order will do."""
    places = {item: [item.nodeid.startswith(start) for start in _FIRST] for item in items}
    items.sort(key=lambda item: places[item].index(True) if any(places[item]) else len(_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use one process more than processors, as tests wait now and then; each takes up to 1.5 GB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)) + 1, memory // 2_000_000_000))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep files whole, and together those for which each process would start its own Java or browser."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByRoom(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(_ON_SPARK):
                return "tests/spark"
            if nodeid.startswith(_IN_A_BROWSER):
                return "tests/browser.py"
            return nodeid if nodeid.startswith(_APART) else str(super()._split_scope(nodeid))

        def remove_node(self, node: Any) -> str | None:
            """Return the test at which a process died, and give its tests to no other: that one might die, too."""
            units = self.assigned_work.pop(node)
            return next((test for unit in units.values() for test, done in unit.items() if not done), None)

    config.option.loadscopereorder = False
    return ByRoom(config, log)


def _is_controller(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput") and bool(getattr(config.option, "numprocesses", None))


def _wait_no_longer(config: pytest.Config) -> None:
    """End this process unless it hears of a test within twice the limit of one."""
    limit = float(str(config.getini("faulthandler_timeout") or 0))
    if limit > 0:
        faulthandler.dump_traceback_later(2 * limit, exit=True, file=sys.__stderr__ or 2)


@pytest.hookimpl(wrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Iterator[None]:
    """Let the process that distributes the tests inherit what processes of tests leave behind."""
    if _is_controller(session.config):
        _wait_no_longer(session.config)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Wait anew for the next report."""
    if config := getattr(getattr(report, "node", None), "config", None):
        _wait_no_longer(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """End what is left of processes that died: a reader of this run's output would wait for them."""
    yield
    if not _is_controller(session.config):
        return
    faulthandler.cancel_dump_traceback_later()
    while left := _children():
        for process in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def _children() -> list[int]:
    """Return the processes whose parent is this one, as Linux lists them."""
    found = []
    for listed in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in brackets, may contain anything; state and parent follow.
            if int(listed.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(listed.parent.name))
    return found
