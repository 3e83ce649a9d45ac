"""Errors of Spark as one sentence, and refused options of the command line."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from sentences import says

from neardup import errors
from neardup.spark.failures import spark_errors

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")

TRACE = """An error occurred while calling o54.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
{}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("message", "kind", "parts"),
    [
        (
            TRACE.format("neardup.errors.InputError: a.jsonl is gone: give another"),
            errors.InputError,
            ("a.jsonl is gone: give another",),
        ),
        (TRACE.format("neardup.errors.StoreError: the index is gone"), errors.StoreError, ("the index is gone",)),
        ("java.lang.OutOfMemoryError: Java heap space", errors.RecipeError, ("spark.executor.memory",)),
        (
            "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot",
            errors.RecipeError,
            ("Python 3.12", "this is 3.11", "PYSPARK_PYTHON"),
        ),
        (
            "An error occurred while calling None.a.B.\n: java.lang.IllegalStateException: the thing is shut",
            errors.RecipeError,
            ("the thing is shut;", "its log"),
        ),
        ("something\nelse", errors.RecipeError, ("up: something;", "its log")),
        (
            TRACE.format("ValueError: seven is not eight"),
            errors.RecipeError,
            ("ValueError: seven is not eight;", "its log"),
        ),
        ("Answer from Java side is empty", errors.RecipeError, ("Java", "this machine", "gone", "memory")),
    ],
)
def test_errors_of_spark_become_one_sentence(message: str, kind: type[Exception], parts: tuple[str, ...]) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(kind) as caught, spark_errors():
        raise PySparkException(message)
    assert type(caught.value) is kind
    assert says(caught.value, *parts)


def test_a_refused_connection_means_that_java_has_ended() -> None:
    with pytest.raises(errors.RecipeError) as caught, spark_errors():
        raise ConnectionRefusedError(111, "Connection refused")
    assert says(caught.value, "Java", "the same key")


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), spark_errors():
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--engine", "ray"], ("--engine", "ray", "memory or spark")),
        (["--master", "local[1]"], ("--master", "--engine spark")),
        (["--checkpoint-dir", "x"], ("--checkpoint-dir", "--engine spark")),
        (["--engine", "spark", "--memory", "1GB"], ("--memory", "engine in memory")),
        (["--engine", "spark", "--threads", "2", "--master", "local[1]"], ("--threads", "--master", "both")),
        (["--engine", "spark", "--spark-conf", "x=1"], ("x=1", "setting of Spark")),
        (["--engine", "spark", "--resume"], ("--resume", "--checkpoint-dir DIR")),
        (["--engine", "spark", "--wait", "soon"], ("--wait", "'soon'", "time")),
        (["--engine", "spark", "--recipe", "simhash"], ("hamming", "searched on Spark")),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, options: list[str], parts: tuple[str, ...]
) -> None:
    from neardup.cli.app import app

    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    for command in ("dedup", "pairs"):
        arguments = [command, str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), *options]
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == 2, found.output
        assert says(found.output, *parts)
