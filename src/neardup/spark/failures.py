"""Errors of Spark, as errors of one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from neardup import errors
from neardup.errors import InputError, NeardupError, RecipeError, option

#: An error of this package in the trace of a worker.
_WORKER_ERROR = re.compile(r"neardup\.errors\.(\w+): (.+?)(?=\n\s*at |\n\n|\Z|\n\tat )", re.DOTALL)
#: PySpark names the two versions only in the second line.
_VERSIONS = re.compile(r"different version: ([\d.]+) than that in driver: (\d+\.\d+)")
#: The class of an exception at the start of Java's line, and starts of lines that tell the user nothing.
_CLASS = re.compile(r"^(: )?([a-z]\w*\.)+\w*(Exception|Error): ")
_NOISE = ("WARNING", "An error occurred while calling", "Error while", "Caused by: ", "at ")
_LENGTH = 300
#: The error of Py4J when the Java process has ended.
_GONE = "Answer from Java side is empty"
_SIGNS_OF_END = (
    *(_GONE, "exception str() failed"),
    *("while sending or receiving", "trying to connect to the Java server"),
)
#: The last line of a Python trace.
_PYTHON_ERROR = re.compile(r"Traceback \(most recent call last\):.*?^(\w[\w.]*: [^\n]*)", re.DOTALL | re.MULTILINE)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn what Spark raises in the block into an error of one sentence, and a worker's error back into itself.

    Raises
    ------
    NeardupError
        In place of an error of Spark; other errors pass.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _error_of(_message_of(error)) from None
    except ConnectionError:
        raise _error_of(_GONE) from None


def _message_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # the text comes from the Java process, which may have ended
        return _GONE


def _error_of(message: str) -> NeardupError:
    if any(sign in message for sign in _SIGNS_OF_END):
        return RecipeError(
            "Spark's Java on this machine is gone, killed or out of memory: give it more with "
            f"{option('--spark-conf ', 'the setting ')}spark.driver.memory=8g"
            + option(
                ", and go on with --resume where --checkpoint-dir DIR was named; --spark-log FILE keeps its log",
                ", and go on with the same key where stages were kept in a folder",
            )
        )
    worker_error = _WORKER_ERROR.search(message)
    if worker_error is not None:
        kind = getattr(errors, worker_error[1], InputError)
        return (
            kind(" ".join(worker_error[2].split())) if issubclass(kind, NeardupError) else InputError(worker_error[2])
        )
    versions = _VERSIONS.search(message)
    if versions is not None:
        return RecipeError(
            f"the workers of Spark run Python {versions[1]}, and this is {versions[2]}: let PYSPARK_PYTHON name a "
            f"Python {versions[2]} on the workers"
        )
    if "OutOfMemoryError" in message:
        return RecipeError(
            "a machine of Spark is out of memory: give it more with "
            f"{option('--spark-conf ', 'the setting ')}spark.executor.memory=8g (or spark.driver.memory), or divide "
            "the work further with spark.sql.shuffle.partitions"
        )
    python_error = _PYTHON_ERROR.search(message)
    line = first_line(message if python_error is None else python_error[1])
    return RecipeError(f"Spark gave up: {line}; {option('--spark-log FILE', 'its log')} has the rest")


def first_line(message: str) -> str:
    """Return the first line of a message that tells something, shortened."""
    lines = [_CLASS.sub("", " ".join(line.split())) for line in message.splitlines()]
    line = next((line for line in lines if line and not line.startswith(_NOISE)), "")
    return line if len(line) <= _LENGTH else line[: _LENGTH - 3] + "..."
