"""One session of Spark for all tests: starting one takes seconds."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from neardup.errors import RecipeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: PySpark warns of a pandas newer than itself, and leaves sockets to the garbage collector.
_IGNORED_WARNINGS = ("ignore:PySpark does not yet fully support pandas", "ignore:unclosed:ResourceWarning")


def pytest_itemcollected(item: pytest.Item) -> None:
    for warning in _IGNORED_WARNINGS:
        item.add_marker(pytest.mark.filterwarnings(warning))


#: Jobs of a few hundred rows.
SETTINGS = {
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")
    from neardup.spark.session import find_java, session

    try:
        find_java()
    except RecipeError as error:
        pytest.skip(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with session("local[2]", settings=SETTINGS) as started:
            yield started
