"""A run of tests ends with a failure, whatever a test does to its process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
GOOD = "def test_good() -> None: pass\n"
#: What ends or stops a process, and what the run prints of it.
FATAL = {
    "signal": (
        "import ctypes\ndef test_fatal() -> None: ctypes.string_at(0)\n",
        ["Segmentation fault", "in test_fatal", "crashed while running", "::test_fatal"],
    ),
    # No other thread of Python can run, and no signal handler.
    "hang": (
        "import ctypes, threading\ndef test_fatal() -> None:\n    libc = ctypes.PyDLL(None)\n    libc.pause()\n",
        ["Timeout (0:00:0", "in test_fatal", "crashed while running", "::test_fatal"],
    ),
    # A process that the test started keeps the output of the run open.
    "child": (
        "import os, subprocess, sys\n"
        "def test_fatal() -> None:\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3000)'])\n"
        "    os._exit(3)\n",
        ["crashed while running", "::test_fatal"],
    ),
}


def run_tests(folder: Path, *options: str, limit: str = "60") -> tuple[int, str]:
    """Run the tests of a folder in two processes, with the settings of this project."""
    settings = ["-c", PROJECT / "pyproject.toml", "--rootdir", folder, "-p", "distribution", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *map(str, settings), "-n2", "--dist=loadfile", *options]
    ended = subprocess.run(
        [*command, "-o", f"faulthandler_timeout={limit}", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env={"PYTHONPATH": str(PROJECT / "tests"), "PATH": "/usr/bin:/bin"},
    )
    return ended.returncode, ended.stdout


@pytest.mark.parametrize("fatal", FATAL)
def test_a_run_whose_process_dies_or_hangs_ends_with_a_failure_that_names_the_test(fatal: str, tmp_path: Path) -> None:
    code, signs = FATAL[fatal]
    # The fatal test is the last of its file: pytest-xdist alone waits for ever for the process that replaces its own.
    (tmp_path / "test_a.py").write_text(GOOD + code)
    (tmp_path / "test_b.py").write_text(GOOD)
    (tmp_path / "test_c.py").write_text(GOOD)
    returned, output = run_tests(tmp_path, limit="3" if fatal == "hang" else "60")
    assert returned != 0
    for sign in signs:
        assert sign in output, output
    assert "1 failed" in output, output


def test_the_process_that_distributes_tests_waits_no_longer_than_twice_the_limit(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(GOOD)
    (tmp_path / "conftest.py").write_text(
        "import time\n"
        "def pytest_sessionfinish(session):\n"
        "    if hasattr(session.config, 'workerinput'):\n"
        "        time.sleep(3000)\n"
    )
    started = time.monotonic()
    returned, output = run_tests(tmp_path, limit="2")
    assert returned != 0
    assert "Timeout (0:00:04)!" in output
    assert time.monotonic() - started < 120
