"""A session of Spark of our own: the Java that it runs on, its settings, its start and its end."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import RecipeError
from neardup.spark.cluster import (
    check_master,
    check_workers,
    guarded,
    has_executors,
    is_here,
    wait_for_workers,
)
from neardup.spark.failures import first_line, told_by_spark
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds that a session has to stop in.
_STOP = 15.0

#: The oldest Java that PySpark 4 runs on, and what to install.
OLDEST_JAVA = 17
_INSTALL_JAVA = "install one (Debian and Ubuntu: apt-get install openjdk-17-jre-headless), or let JAVA_HOME name one"
#: What the engine stands on, in the oldest versions that do (pyproject.toml, spark).
_NEEDED = {"pyspark": (4, 3), "pandas": (2, 2)}
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

#: What a session is given unless its caller says otherwise; the page docs/spark.md gives the reasons at length.
SETTINGS = {
    # A page for people on a port: none is opened that nobody asked for.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Tables pass between driver and JVM as Arrow, not row by row.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # 10,000 documents of 100 kB would be a batch of 1 GB; a Python worker gets 16 MB at a time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    # Texts and tables of counts pass through the driver's JVM; 1 GB is Spark's default, and too little for both.
    "spark.driver.memory": "2g",
    # What is collected is bounded by the engine's own limits (driver_pairs, count_bits).
    "spark.driver.maxResultSize": "0",
    # Rows of whole numbers are full of zeros, which LZ4 leaves half of.
    "spark.io.compression.codec": "zstd",
    # What most of the work is done by is no code of Spark; to write and compile some for each step takes a second.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Times without a zone mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
}

_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: For work of minutes: to compile Spark's own code well would take longer than running it as it is.
BRIEF = {"spark.driver.extraJavaOptions": _BRIEF, "spark.executor.extraJavaOptions": _BRIEF}


class Java(NamedTuple):
    """A Java that was found: its command, and its version."""

    path: Path
    version: int


def find_java() -> Java:
    """Return the Java to use: that of ``JAVA_HOME``, else the first of the ``PATH``, as PySpark itself takes it.

    Raises
    ------
    RecipeError
        If there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java")
    found = _java_at(Path(path)) if path else None
    if found is None:
        what = f"JAVA_HOME is {home}, but there is no Java in it" if home else "there is none"
        raise RecipeError(f"Spark needs a Java {OLDEST_JAVA} or newer, and {what}: {_INSTALL_JAVA}")
    if found.version < OLDEST_JAVA:
        raise RecipeError(
            f"{found.path} is a Java {found.version}, and Spark needs {OLDEST_JAVA} or newer: {_INSTALL_JAVA}"
        )
    return found


def _java_at(path: Path) -> Java | None:
    try:
        told = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(told.stderr + told.stdout)
    return Java(path, int(version[1])) if told.returncode == 0 and version else None


def check_spark() -> Java:
    """Refuse, before anything starts, to run without PySpark or Java.

    Raises
    ------
    RecipeError
        In one sentence that says what to install.
    """
    require_packages("the engine 'spark' needs", _NEEDED)
    return find_java()


def require_packages(who: str, needed: Mapping[str, tuple[int, int]]) -> None:
    """Refuse to go on without packages in the oldest versions that do.

    Raises
    ------
    RecipeError
        Naming the first one that is not there or too old.
    """
    for name, oldest in needed.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = ""
        if tuple(map(int, re.findall(r"\d+", found)[:2])) < oldest:
            what = f"this is {found}" if found else "it is not installed"
            raise RecipeError(
                f"{who} {name} {'.'.join(map(str, oldest))} or newer, and {what}; "
                "pip install 'neardup[spark]' brings it"
            )


@contextlib.contextmanager
def session(
    master: str = "local[*]",
    *,
    settings: Mapping[str, str] | None = None,
    log: str | None = None,
    wait: float = 60.0,
) -> Iterator[SparkSession]:
    """Give a session of its own, and stop it at the end.

    Parameters
    ----------
    master : str
        ``local[2]``: two threads of this machine; ``spark://host:7077``, ``yarn``, ``k8s://...``: a cluster.
    settings : mapping, optional
        Settings of Spark, above ``SETTINGS``.
    log : str, optional
        A file for what Spark has to say; without one it is dropped, and only errors are told.
    wait : float
        Seconds to wait for a cluster's first worker.

    Raises
    ------
    RecipeError
        In one sentence: no PySpark, no Java, no such cluster, no workers, or workers without this package.
    """
    check_master(master)
    check_spark()
    given = dict(settings or {})
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        path = log
        if path is None:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="neardup-spark-", ignore_cleanup_errors=True)
            )
            path = os.path.join(folder, "log")
        with told_by_spark():
            spark = _started(master, given, path)
        stack.callback(stop, spark)
        if has_executors(master):
            wait_for_workers(spark, master, wait)
            stack.enter_context(guarded(spark, master, wait))
        parallel = int(spark.sparkContext.defaultParallelism)
        if "spark.sql.shuffle.partitions" not in (settings or {}):
            # 200 is Spark's default, for any cluster: a second of overhead for each join on two cores.
            spark.conf.set("spark.sql.shuffle.partitions", str(max(2, 2 * parallel)))
        if not _is_this_process(master, given):
            check_workers(spark)
        yield spark


def _is_this_process(master: str, settings: Mapping[str, str]) -> bool:
    """Return whether workers are children of this process with its own Python, which has all that this one has."""
    python = settings.get("spark.pyspark.python", os.environ.get("PYSPARK_PYTHON"))
    return master.startswith("local") and python == sys.executable


def _started(master: str, settings: dict[str, str], log: str) -> SparkSession:
    # PySpark warns, whenever Arrow is used, of a pandas newer than itself; none of its data frames is used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    # What finds out how to start the Java is a Java itself, which lives for less than a second.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _BRIEF)
    if is_here(master):
        # A machine's name may lead to an address that it cannot reach itself by, and its workers have this Python.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(f"neardup {__version__}")
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    with _aside(log):
        try:
            spark: SparkSession = builder.getOrCreate()
        except Exception as error:
            _refuse_if_silent(error, log)
            raise
    if here and before is not None:
        # PySpark's own handler calls Java from inside whatever call of Java is interrupted.
        signal.signal(signal.SIGINT, before)
    spark.sparkContext.setLogLevel("ERROR")
    # Where the Java dies, the thread that it sends counts to would write a trace on the screen; its end is told anyway.
    counting: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if counting is not None:
        counting.handle_error = lambda request, address: None
    return spark


def _refuse_if_silent(error: Exception, log: str) -> None:
    """Say why the Java of a session did not start."""
    said = Path(log).read_text("utf-8", "replace") if os.path.exists(log) else ""
    if "Gateway" in type(error).__name__ or "JAVA_GATEWAY" in str(error):
        raise RecipeError(f"Spark does not start: {first_line(said) or first_line(str(error))}") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Py4J from writing traces of calls that were interrupted: whoever has set up logging still gets them."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


@contextlib.contextmanager
def _aside(log: str) -> Iterator[None]:
    """Give what is started inside another stdout and stderr: the JVM talks, and stdout may be the user's data."""
    sys.stdout.flush()
    sys.stderr.flush()
    with open(log, "ab") as file:
        kept = os.dup(1), os.dup(2)
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)


def stop(spark: SparkSession) -> None:
    """Stop a session, its Java at the latest after some seconds: the master that it signs off at may be gone."""
    gateway: Any = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    stopping = threading.Thread(target=_stopped, args=(spark,), daemon=True)
    stopping.start()
    stopping.join(_STOP)
    if stopping.is_alive() and process is not None:
        process.kill()
        stopping.join(_STOP)


def _stopped(spark: SparkSession) -> None:
    with contextlib.suppress(Exception):
        spark.stop()
