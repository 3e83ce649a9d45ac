"""The end of a session: one that has lost all its workers, and one that does not stop by itself."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.metadata
import json
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
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup import errors
from neardup.errors import InputError, NeardupError, OutputError, RecipeError, option
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between looks at the workers, and seconds that a session has to stop in.
_LOOK = 1.0
_STOP = 15.0


def count_workers(spark: SparkSession) -> int:
    """Return how many workers of a cluster there are; the driver is counted by Spark, too, and not here."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


@contextlib.contextmanager
def guarded(spark: SparkSession, master: str, seconds: float) -> Iterator[None]:
    """End the work inside when the cluster has no worker for some time; Spark would wait for ever.

    Raises
    ------
    RecipeError
        If that happened.
    """
    ended, lost = threading.Event(), threading.Event()
    watching = threading.Thread(target=_watch, args=(spark, seconds, ended, lost), daemon=True)
    watching.start()
    try:
        yield
    except NeardupError:
        if lost.is_set():
            raise RecipeError(
                f"the cluster {master} has lost all its workers and gave no other within {seconds:g} s; what was "
                "done is in --checkpoint-dir DIR, if one was named: start workers, and go on from it with --resume"
            ) from None
        raise
    finally:
        ended.set()


def _watch(spark: SparkSession, seconds: float, ended: threading.Event, lost: threading.Event) -> None:
    """Cancel all jobs once they wait for workers for too long."""
    tracker = spark.sparkContext.statusTracker()
    seen = time.monotonic()
    while not ended.wait(_LOOK):
        try:
            if count_workers(spark) > 0 or not tracker.getActiveJobsIds():
                seen = time.monotonic()
            elif time.monotonic() - seen > seconds:
                lost.set()
                spark.sparkContext.cancelAllJobs()
                return
        except Exception:  # whatever ended the session is told by those who work in it
            return


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


#: How a worker's own error is found in the trace that Spark hands over.
_OWN = re.compile(r"neardup\.errors\.(\w+): (.+?)(?=\n\s*at |\n\n|\Z|\n\tat )", re.DOTALL)
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_DAMAGED = re.compile(r"(?:FAILED_READ_FILE|PATH_NOT_FOUND).*?(?:reading file|Path does not exist:) (\S+?)\.? SQLSTATE")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
#: What a line of Java's begins with that says nothing to the user, and lines that do not at all.
_CLASS = re.compile(r"^(: )?([a-z]\w*\.)+\w*(Exception|Error): ")
_NOTHING = ("WARNING", "An error occurred while calling", "Error while", "Caused by: ", "at ")
_LENGTH = 300
#: What Python says when it speaks to a Java that is not there any more.
_GONE = "Answer from Java side is empty"
_SIGNS_OF_DEATH = (
    *(_GONE, "exception str() failed"),
    *("while sending or receiving", "trying to connect to the Java server"),
)
#: The last line of a trace of Python.
_RAISED = re.compile(r"Traceback \(most recent call last\):.*?^(\w[\w.]*: [^\n]*)", re.DOTALL | re.MULTILINE)


@contextmanager
def told_by_spark() -> Iterator[None]:
    """Turn what Spark raises inside into an error of one sentence, a worker's own into what it was there.

    Raises
    ------
    NeardupError
        For what Spark raised; other errors pass.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _told(_text(error)) from None
    except ConnectionError:
        raise _told(_GONE) from None


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # the text is asked from the Java that is gone
        return _GONE


def _told(message: str) -> NeardupError:
    if any(sign in message for sign in _SIGNS_OF_DEATH):
        return RecipeError(
            "Spark's Java on this machine is gone, killed or out of memory: give it more with "
            f"{option('--spark-conf ', 'the setting ')}spark.driver.memory=8g"
            + option(
                ", and go on with --resume where --checkpoint-dir DIR was named; --spark-log FILE keeps what it says",
                ", and go on with the same key where stages were kept in a folder",
            )
        )
    own = _OWN.search(message)
    if own is not None:
        kind = getattr(errors, own[1], InputError)
        return kind(" ".join(own[2].split())) if issubclass(kind, NeardupError) else InputError(own[2])
    missing = _MISSING.search(message)
    if missing is not None:
        return RecipeError(
            f"a worker of Spark has no module {missing[1]!r}: install neardup and what it stands on for all workers "
            "(docs/spark.md, shipping)"
        )
    python = _NO_PYTHON.search(message)
    if python is not None:
        return RecipeError(
            f"a worker of Spark has no Python at {python[1]!r} that can be started: let PYSPARK_PYTHON name theirs"
        )
    damaged = _DAMAGED.search(message)
    if damaged is not None:
        return InputError(
            f"a file that Spark reads is damaged or gone ({damaged[1]}): where it is of a stage, remove that stage's "
            f"folder and go on with {option('--resume', 'the same key')}"
        )
    if "PYTHON_VERSION_MISMATCH" in message:
        return RecipeError(
            f"the workers of Spark run another Python than this one ({first_line(message)}): let PYSPARK_PYTHON name "
            "theirs, of the same version as here"
        )
    if "No space left on device" in message:
        return OutputError(
            "a machine of Spark has no space left on its disk: free some, or name another with spark.local.dir"
        )
    if "OutOfMemoryError" in message:
        return RecipeError(
            "a machine of Spark has no memory left: give it more with "
            f"{option('--spark-conf ', 'the setting ')}spark.executor.memory=8g (or spark.driver.memory), or cut the "
            "work smaller with spark.sql.shuffle.partitions"
        )
    raised = _RAISED.search(message)
    line = first_line(message if raised is None else raised[1])
    return RecipeError(f"Spark gave up: {line}; {option('--spark-log FILE', 'its log')} keeps all that it says")


def first_line(message: str) -> str:
    """Return what a message of many lines begins with, shortened."""
    lines = [_CLASS.sub("", " ".join(line.split())) for line in message.splitlines()]
    line = next((line for line in lines if line and not line.startswith(_NOTHING)), "")
    return line if len(line) <= _LENGTH else line[: _LENGTH - 3] + "..."


_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|spark://\S+:\d+|yarn|k8s://\S+")
_LOOPBACK = re.compile(r"local\b.*|spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
#: Seconds that a master has to answer in.
_PATIENCE = 10


def check_address(master: str) -> None:
    """Refuse what is no address of a cluster.

    Raises
    ------
    RecipeError
        In one sentence.
    """
    if not _MASTER.fullmatch(master):
        raise RecipeError(
            f"master {master!r} is no address of a cluster: give local[N], spark://HOST:PORT, yarn or k8s://..."
        )


def is_here(master: str) -> bool:
    """Return whether all workers of a master are on this machine."""
    return _LOOPBACK.fullmatch(master) is not None


def check_master(master: str) -> None:
    """Refuse a standalone cluster whose master cannot be reached; Spark itself tries for a minute.

    Raises
    ------
    RecipeError
        In one sentence.
    """
    if not master.startswith("spark://"):
        return
    error: Exception | None = None
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            asyncio.run(asyncio.wait_for(_connected(host.strip("[]"), int(port)), _PATIENCE))
        except (OSError, ValueError) as caught:
            error = caught
        else:
            return
    raise silent(master, first_line(str(error)) or f"nothing within {_PATIENCE} s")


async def _connected(host: str, port: int) -> None:
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


def silent(master: str, why: str) -> RecipeError:
    """Return what is said of a master that does not answer."""
    return RecipeError(
        f"no master of Spark answers at {master} ({why}): check the address, and that it runs (scripts/cluster start "
        "runs one here)"
    )


_SHIP = "give all workers the same wheel, or send this one along with --ship (docs/spark.md, shipping)"


@cache
def sources_digest() -> str:
    """Return a digest of this package's code: two copies of one version may differ while in work."""
    own = Path(__file__).parent.parent
    found = hashlib.sha256()
    for source in sorted(own.rglob("*.py")):
        found.update(f"{source.relative_to(own)} ".encode() + source.read_bytes())
    return found.hexdigest()[:16]


def wait_for_workers(spark: SparkSession, master: str, seconds: float) -> None:
    """Wait until a cluster has given a worker.

    Raises
    ------
    RecipeError
        If none came in time.
    """
    until = time.monotonic() + seconds
    while True:
        with told_by_spark():
            if count_workers(spark):
                return
        if time.monotonic() > until:
            raise RecipeError(
                f"the cluster {master} gave no worker within {seconds:g} s: start workers, or ask less of each with "
                "--spark-conf spark.executor.memory=1g and spark.executor.cores=1; --wait waits longer"
            )
        time.sleep(0.2)


def check_workers(spark: SparkSession) -> None:
    """Refuse workers that lack this package, or have another version of it, before the work starts.

    Raises
    ------
    RecipeError
        In one sentence that says what they have.
    """
    count = max(int(spark.sparkContext.defaultParallelism), 1)
    with told_by_spark():
        rows = spark.range(0, count, 1, count).mapInArrow(_probe(), "told string").collect()
    here = {"version": __version__, "kernels": sources_digest()}
    for row in rows:
        told = json.loads(row["told"])
        if "version" not in told:
            raise RecipeError(f"the worker {told['host']} of Spark has no neardup ({told['missing']}): {_SHIP}")
        if told["version"] != here["version"]:
            raise RecipeError(
                f"the worker {told['host']} of Spark has neardup {told['version']}, and this is {__version__}: {_SHIP}"
            )
        if "missing" in told:
            raise RecipeError(f"the worker {told['host']} of Spark cannot load neardup ({told['missing']}): {_SHIP}")
        if told["kernels"] != here["kernels"]:
            raise RecipeError(
                f"the worker {told['host']} of Spark has a neardup {__version__} with other code than this one: {_SHIP}"
            )


def _probe() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what asks a worker for its package; it travels as a whole, for the worker may have none."""

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import platform

        import pyarrow as pa

        for _ in batches:
            pass
        told: dict[str, Any] = {"host": platform.node()}
        try:
            from neardup.spark import session as own
            from neardup.version import __version__

            told["version"] = __version__
            told["kernels"] = own.sources_digest()
        except Exception as error:  # an incomplete package may raise anything
            told["missing"] = f"{type(error).__name__}: {error}"
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(told)])], ["told"])

    return ask


#: The folder that an archive is unpacked in, below a worker's own.
_FOLDER = "neardup_shipped"
#: Python runs a module of this name when it starts. Numba knows compiled kernels by the path and the time of their
#: source, so the package moves to a place that is the same for each run: else each would compile them anew, and what
#: it compiled would stay behind. A module of the same name that the worker's Python has runs, too.
_MOVES = """
import os, shutil, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
place = os.path.join(cache, "neardup", "shipped-{digest}")
found = here
try:
    if not os.path.isdir(place):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        draft = tempfile.mkdtemp(prefix=".shipped-", dir=os.path.dirname(place))
        shutil.copytree(os.path.join(here, "neardup"), os.path.join(draft, "neardup"))
        for folder, _, names in os.walk(draft):
            for name in names:
                os.utime(os.path.join(folder, name), (0, 0))
        try:
            os.rename(draft, place)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
    if os.stat(place).st_uid == os.getuid():
        found = place
except OSError:
    pass
sys.path[:] = [path for path in sys.path if path != here]
this = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = this
sys.path.insert(0, found)
"""


@contextmanager
def shipped() -> Iterator[dict[str, str]]:
    """Give the settings with which a session's workers unpack this package and find it.

    Kernels and word lists are read as files, so workers need a folder: an archive does, --py-files does not.
    """
    own = Path(__file__).parent.parent
    files = [file for file in sorted(own.rglob("*")) if file.is_file() and "__pycache__" not in file.parts]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(own)} {file.stat().st_size} ".encode() + file.read_bytes())
    with tempfile.TemporaryDirectory(prefix="neardup-ship-") as folder:
        path = Path(folder) / "neardup.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, Path(own.name) / file.relative_to(own))
            archive.writestr("sitecustomize.py", _MOVES.replace("{digest}", digest.hexdigest()[:16]))
        yield {"spark.archives": f"{path.as_uri()}#{_FOLDER}", "spark.executorEnv.PYTHONPATH": _FOLDER}


#: The oldest Java that PySpark 4 runs on, and what to install.
OLDEST_JAVA = 17
_INSTALL_JAVA = "install one (Debian and Ubuntu: apt-get install openjdk-17-jre-headless), or let JAVA_HOME name one"
#: What the engine stands on, in the oldest versions that do (pyproject.toml, spark).
_NEEDED = {"pyspark": ("PySpark", (4, 3)), "pandas": ("pandas", (2, 2))}
#: Where systems keep their Javas.
_JAVAS = (
    "/usr/lib/jvm/*/bin/java",
    "/usr/java/*/bin/java",
    "/opt/java/*/bin/java",
    "/opt/homebrew/opt/openjdk*/bin/java",
)
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
    # Times without a zone mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
}

_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: For work of less than a minute: to compile Spark's own code well would take longer than running it as it is.
BRIEF = {"spark.driver.extraJavaOptions": _BRIEF, "spark.executor.extraJavaOptions": _BRIEF}


class Java(NamedTuple):
    """A Java that was found: its command, and its version."""

    path: Path
    version: int


def find_java() -> Java:
    """Return the Java to use: that of JAVA_HOME, of PATH, or where systems put them, the first that is new enough.

    Raises
    ------
    RecipeError
        If there is none, or none that is new enough.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        named = _java_at(Path(home) / "bin" / "java")
        if named is None:
            raise RecipeError(f"JAVA_HOME is {home}, but there is no Java in it: {_INSTALL_JAVA}")
        if named.version < OLDEST_JAVA:
            raise RecipeError(
                f"JAVA_HOME is {home}, a Java {named.version}, and Spark needs {OLDEST_JAVA} or newer: {_INSTALL_JAVA}"
            )
        return named
    newest: Java | None = None
    on_path = shutil.which("java")
    for path in [*([Path(on_path)] if on_path else []), *_installed()]:
        found = _java_at(path)
        if found is not None and found.version >= OLDEST_JAVA:
            return found
        if found is not None and (newest is None or found.version > newest.version):
            newest = found
    if newest is not None:
        raise RecipeError(
            f"{newest.path} is a Java {newest.version}, and Spark needs {OLDEST_JAVA} or newer: {_INSTALL_JAVA}"
        )
    raise RecipeError(f"Spark needs a Java {OLDEST_JAVA} or newer, and there is none: {_INSTALL_JAVA}")


def _installed() -> list[Path]:
    return [path for pattern in _JAVAS for path in sorted(Path("/").glob(pattern[1:]), reverse=True)]


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
    for package, (name, oldest) in _NEEDED.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = ""
        if tuple(map(int, re.findall(r"\d+", found)[:2])) < oldest:
            what = f"this is {found}" if found else "it is not installed"
            raise RecipeError(
                f"the engine 'spark' needs {name} {'.'.join(map(str, oldest))} or newer, and {what}: "
                "pip install 'neardup[spark]'"
            )
    return find_java()


@contextlib.contextmanager
def session(
    master: str = "local[*]",
    *,
    settings: Mapping[str, str] | None = None,
    log: str | None = None,
    wait: float = 60.0,
    ship: bool = False,
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
    ship : bool
        Whether a cluster's workers are sent this package; what it stands on (docs/spark.md) they must have.

    Raises
    ------
    RecipeError
        In one sentence: no PySpark, no Java, no such cluster, no workers, or workers without this package.
    """
    check_address(master)
    java = check_spark()
    given = dict(settings or {})
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        path = log
        if path is None:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="neardup-spark-", ignore_cleanup_errors=True)
            )
            path = os.path.join(folder, "log")
        if ship and not master.startswith("local"):
            given = stack.enter_context(shipped()) | given
        with told_by_spark():
            spark = _started(master, java, given, path)
        stack.callback(stop, spark)
        if not master.startswith("local"):
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


def _started(master: str, java: Java, settings: dict[str, str], log: str) -> SparkSession:
    # PySpark warns, whenever Arrow is used, of a pandas newer than itself; none of its data frames is used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    if not os.environ.get("JAVA_HOME") and Path(shutil.which("java") or "") != java.path:
        os.environ["JAVA_HOME"] = str(java.path.parent.parent)
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
            _refuse_if_silent(master, error, log)
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


def _refuse_if_silent(master: str, error: Exception, log: str) -> None:
    """Say what is wrong with a cluster that a session could not be started on."""
    if master.startswith("spark://"):
        raise silent(master, first_line(str(error))) from None
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
