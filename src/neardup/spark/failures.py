"""What Spark raises, told in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from neardup import errors
from neardup.errors import InputError, NeardupError, RecipeError, option

#: How a worker's own error is found in the trace that Spark hands over.
_OWN = re.compile(r"neardup\.errors\.(\w+): (.+?)(?=\n\s*at |\n\n|\Z|\n\tat )", re.DOTALL)
#: PySpark says what to do only in a second line.
_VERSIONS = re.compile(r"different version: ([\d.]+) than that in driver: (\d+\.\d+)")
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
    versions = _VERSIONS.search(message)
    if versions is not None:
        return RecipeError(
            f"the workers of Spark run Python {versions[1]}, and this is {versions[2]}: let PYSPARK_PYTHON name one of "
            f"theirs that is {versions[2]}"
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
