"""Settings of all tests: Hypothesis profiles, interrupts, the browser's end, Spark's session."""

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
from typing import TYPE_CHECKING

import browser
import pytest
from hypothesis import settings

from neardup.errors import RecipeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["distribution"]

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


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> None:
    """Restore SIGINT and SIGHUP, which a runner in the background ignores, and so would commands that tests end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
