"""A session of Spark for one run: the Java that it needs, its settings, its start and its end."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import RecipeError
from neardup.kernels.compilation import cache_folder
from neardup.spark.cluster import (
    check_master,
    check_workers,
    guard_workers,
    has_executors,
    is_local,
    wait_for_workers,
)
from neardup.spark.failures import first_line, spark_errors
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds in which a session must stop.
_STOP_TIMEOUT = 15.0

#: The oldest Java that PySpark 4 runs on, and what to install.
OLDEST_JAVA = 17
_INSTALL_JAVA = "install one (Debian and Ubuntu: apt-get install openjdk-17-jre-headless), or let JAVA_HOME name one"
#: Packages that the engine needs, with their oldest versions (pyproject.toml, spark).
_PACKAGES = {"pyspark": (4, 3), "pandas": (2, 2)}
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

#: Settings of a session, unless its caller says otherwise; docs/spark.md explains them.
SETTINGS = {
    # The web page: no port is opened unless somebody asks for it.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Tables pass between driver and JVM as Arrow, not row by row.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark's batches of 10,000 rows would be 1 GB for documents of 100 kB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    # Texts and tables of counts pass through the driver's JVM; 1 GB is Spark's default, and too little for both.
    "spark.driver.memory": "2g",
    # The engine bounds what it collects.
    "spark.driver.maxResultSize": "0",
    # Rows of integers are full of zeros, half of which LZ4 leaves.
    "spark.io.compression.codec": "zstd",
    # Most of the work is not Spark's code; generating and compiling it takes a second for each step.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Some plans would shorten traces and others not, and each kind would start Python workers of its own.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # On a busy machine Java and Python may take longer than Spark's 15 seconds to answer each other.
    "spark.python.authenticate.socketTimeout": "120s",
    # Times without a zone mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
}

_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: For runs of minutes, in which optimizing Spark's own code costs more than it gains.
SHORT_RUN_SETTINGS = {"spark.driver.extraJavaOptions": _FAST_START, "spark.executor.extraJavaOptions": _FAST_START}


#: Seconds, more than Java takes to write an archive of classes.
_ARCHIVE_TIMEOUT = 300
_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"


class Java(NamedTuple):
    """A Java: the path of its command, and its version."""

    path: Path
    version: int


def find_java() -> Java:
    """Return the Java that PySpark takes: that of ``JAVA_HOME``, else the first on the ``PATH``.

    Raises
    ------
    RecipeError
        If there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java")
    java = _java_at(Path(path)) if path else None
    if java is None:
        fault = f"JAVA_HOME is {home}, but there is no Java in it" if home else "there is none"
        raise RecipeError(f"Spark needs a Java {OLDEST_JAVA} or newer, and {fault}: {_INSTALL_JAVA}")
    if java.version < OLDEST_JAVA:
        raise RecipeError(
            f"{java.path} is a Java {java.version}, and Spark needs {OLDEST_JAVA} or newer: {_INSTALL_JAVA}"
        )
    return java


@cache
def _java_at(path: Path) -> Java | None:
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(done.stderr + done.stdout)
    return Java(path, int(version[1])) if done.returncode == 0 and version else None


def check_spark() -> Java:
    """Check, before anything starts, that PySpark and Java are there.

    Raises
    ------
    RecipeError
        In one sentence that says what to install.
    """
    require_packages("the engine 'spark' needs", _PACKAGES)
    return find_java()


def require_packages(need: str, packages: Mapping[str, tuple[int, int]]) -> None:
    """Check that packages are installed; ``need`` begins the error, ``packages`` has their oldest versions.

    Raises
    ------
    RecipeError
        Naming the first one that is missing or too old.
    """
    for name, oldest in packages.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < oldest:
            fault = f"this is {version}" if version else "it is not installed"
            raise RecipeError(
                f"{need} {name} {'.'.join(map(str, oldest))} or newer, and {fault}; "
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
    """Start a session, and stop it at the end of the block.

    Parameters
    ----------
    master : str
        ``local[2]``: two threads of this machine; ``spark://host:7077``, ``yarn``, ``k8s://...``: a cluster.
    settings : mapping, optional
        Settings of Spark, which take precedence over ``SETTINGS``.
    log : str, optional
        A file for Spark's log, which is dropped by default.
    wait : float
        Seconds to wait for a cluster's first worker.

    Raises
    ------
    RecipeError
        In one sentence: no PySpark, no Java, no such cluster, no workers, or workers without this package.
    """
    check_master(master)
    java = check_spark()
    chosen = dict(settings or {})
    chosen[_DRIVER_OPTIONS] = f"{_class_archive_option(java)} {chosen.get(_DRIVER_OPTIONS, '')}".strip()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_silence_py4j())
        path = log
        if path is None:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="neardup-spark-", ignore_cleanup_errors=True)
            )
            path = os.path.join(folder, "log")
        with spark_errors():
            spark = _start(master, chosen, path)
        stack.callback(stop, spark)
        if has_executors(master):
            wait_for_workers(spark, master, wait)
            stack.enter_context(guard_workers(spark, master, wait))
        parallel = int(spark.sparkContext.defaultParallelism)
        if "spark.sql.shuffle.partitions" not in chosen:
            # Spark's default of 200 costs a second for each join on two cores.
            spark.conf.set("spark.sql.shuffle.partitions", str(max(2, 2 * parallel)))
        if not _has_own_workers(master, chosen):
            check_workers(spark)
        yield spark


def _has_own_workers(master: str, settings: Mapping[str, str]) -> bool:
    """Return whether the workers are children of this process with the same Python, so that they need no check."""
    python = settings.get("spark.pyspark.python", os.environ.get("PYSPARK_PYTHON"))
    return master.startswith("local") and python == sys.executable


def _class_archive_option(java: Java) -> str:
    """Return Java's option to load Spark's classes from an archive, or to write it when Java ends; empty for neither.

    Loading and checking classes takes half of Java's time in a short run. Java itself refuses an archive that does not
    fit its version or its classes. It writes the header last, so an archive without one is incomplete.
    """
    folder, spec = cache_folder(), importlib.util.find_spec("pyspark")
    if folder is None or spec is None or spec.origin is None:
        return ""
    sources = [java.path.resolve(), Path(spec.origin).parent / "jars"]
    identity = " ".join(f"{source} {source.stat().st_mtime_ns}" for source in sources if source.exists())
    archive = folder.parent / f"spark-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
    with contextlib.suppress(FileNotFoundError), archive.open("rb") as file:
        if any(file.read(4)):
            return f'"-XX:SharedArchiveFile={archive}"'
        if time.time() - archive.stat().st_mtime < _ARCHIVE_TIMEOUT:
            return ""
    return f'"-XX:ArchiveClassesAtExit={archive}"'


def _start(master: str, settings: dict[str, str], log: str) -> SparkSession:
    # PySpark warns of a pandas newer than itself whenever Arrow is used; no pandas data frame is used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    # Spark's launcher is a Java itself, which lives for less than a second.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _FAST_START)
    if is_local(master):
        # The machine's name may resolve to an address at which it cannot reach itself; workers need this Python; and
        # Spark's scripts would start a Python to find their own folder.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_HOME", _find_spark_home())
    builder = SparkSession.builder.master(master).appName(f"neardup {__version__}")
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    with _redirect_output(log):
        try:
            spark: SparkSession = builder.getOrCreate()
        except Exception as error:
            if "Gateway" in type(error).__name__ or "JAVA_GATEWAY" in str(error):
                output = Path(log).read_text("utf-8", "replace") if os.path.exists(log) else ""
                message = first_line(output) or first_line(str(error))
                raise RecipeError(f"Spark does not start: {message}") from None
            raise
    if in_main_thread and handler is not None:
        # PySpark's handler would call Java from within the interrupted call of Java.
        signal.signal(signal.SIGINT, handler)
    spark.sparkContext.setLogLevel("ERROR")
    # When Java dies, the server of its counters would print a trace; the run itself reports the end.
    counters: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if counters is not None:
        counters.handle_error = lambda request, address: None
    return spark


@contextlib.contextmanager
def _silence_py4j() -> Iterator[None]:
    """Keep Py4J from printing traces of interrupted calls; log handlers that the user has set up still get them."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


@contextlib.contextmanager
def _redirect_output(log: str) -> Iterator[None]:
    """Send stdout and stderr of what starts in the block to a file: Java prints, and stdout may be the user's data."""
    sys.stdout.flush()
    sys.stderr.flush()
    with open(log, "ab") as file:
        copies = os.dup(1), os.dup(2)
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
        finally:
            for number, copy in zip((1, 2), copies, strict=True):
                os.dup2(copy, number)
                os.close(copy)


def stop(spark: SparkSession) -> None:
    """Stop a session, and end its Java after some seconds: the master that it waits for may be gone."""
    gateway: Any = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)

    def stop_spark() -> None:
        with contextlib.suppress(Exception):
            spark.stop()

    stopping = threading.Thread(target=stop_spark, daemon=True)
    stopping.start()
    stopping.join(_STOP_TIMEOUT)
    if stopping.is_alive() and process is not None:
        process.kill()
        stopping.join(_STOP_TIMEOUT)
