"""Settings of all tests: Hypothesis profiles, interrupts, the order of tests, the browser's end, Spark's session."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import browser
import pytest
from hypothesis import settings

from neardup.errors import RecipeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Commands that tests start buffer their output and use compiled modules, as for users. So does pytest: parsing every
# file again would take 20 s of each process.
os.environ.pop("PYTHONUNBUFFERED", None)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Tests of stores and watched folders would wait mostly for the disk, and need none: no test cuts the power.
_MEMORY = Path("/dev/shm")  # noqa: S108  temporary folders are made in it, as in /tmp
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4_000_000_000:
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None

# The same examples on every run of CI, and new ones elsewhere; more of them if NEARDUP_LONG is set.
EXAMPLES = 400 if os.environ.get("NEARDUP_LONG") == "1" else 30
settings.register_profile("ci", max_examples=EXAMPLES, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("default", max_examples=EXAMPLES, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


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

    class ByRoom(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(_ON_SPARK):
                return "tests/spark"
            if nodeid.startswith(_IN_A_BROWSER):
                return "tests/browser.py"
            return nodeid if nodeid.startswith(_APART) else str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return ByRoom(config, log)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> None:
    """Restore SIGINT, which a background runner ignores, and so would the commands that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no bytecode in tests of full disks: Python 3.11 would use a truncated file in every later run.

    There is bytecode to write only after packages were newly installed.
    """
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture
def full_disk(no_bytecode: None) -> Iterator[Callable[[int | None], None]]:
    """Return what lets no file of this process grow beyond some bytes, or any again at None: like a full disk."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before if size is None else size, hard))

    yield limit
    limit(None)


@pytest.fixture(scope="session", autouse=True)
def _browser_ends() -> Iterator[None]:
    yield
    browser.end()


#: PySpark warns of a pandas newer than itself, and leaves sockets to the garbage collector.
_WARNINGS_OF_SPARK = ("ignore:PySpark does not yet fully support pandas", "ignore:unclosed:ResourceWarning")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Ignore the warnings of PySpark in the tests that use it."""
    if "spark" in getattr(item, "fixturenames", ()):
        for warning in _WARNINGS_OF_SPARK:
            item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests, because starting one takes seconds; its jobs have a few hundred rows."""
    from neardup.spark import session as sessions

    try:
        java = sessions.check_spark()
    except RecipeError as error:
        pytest.skip(str(error))
    small = {"spark.default.parallelism": "1", "spark.sql.shuffle.partitions": "1"}
    # Verifying Spark's classes would take a fifth of Java's time.
    unverified = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    small |= {name: f"{options} {unverified}" for name, options in sessions.SHORT_RUN_SETTINGS.items()}
    small |= {"spark.sql.adaptive.enabled": "false"}
    # Through these sockets the workers of tests/spark/python can connect early.
    small |= {"spark.python.unix.domain.socket.enabled": "true"}
    # Java may read an archive of its classes, but not write one when it ends: that takes half a minute of a processor.
    archive = sessions._class_archive_option(java)
    paths = [str(Path(__file__).parent / "spark" / "python"), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sessions, "_class_archive_option", lambda _: archive if "SharedArchiveFile" in archive else "")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        warnings.simplefilter("ignore")
        with sessions.session("local[2]", settings=small) as started:
            patch.undo()
            yield started
