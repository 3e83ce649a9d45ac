"""A folder of stages on whatever file system the cluster has, through Spark's own access to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

#: Spark writes the first when all parts of a stage are in place; the second is ours, and is put there after it.
_COMPLETE, _SCHEMA = "_SUCCESS", "_neardup_schema.json"


class Folder:
    """A folder, made where it is not there.

    Parameters
    ----------
    spark : SparkSession
        Knows how to reach it.
    path : str
        A path or URI.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self._path = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())
        self._files.mkdirs(self._path)

    def _at(self, *names: str) -> Any:
        found = self._path
        for name in names:
            found = self._jvm.org.apache.hadoop.fs.Path(found, name)
        return found

    def _listed(self, *names: str) -> list[Any]:
        path = self._at(*names)
        return list(self._files.listStatus(path)) if self._files.exists(path) else []

    def names(self) -> list[str]:
        """Return the names of the stages that there are, complete or not."""
        return sorted(entry.getPath().getName() for entry in self._listed() if entry.isDirectory())

    def is_empty(self) -> bool:
        """Return whether nothing is in it."""
        return not self._listed()

    def read(self, *names: str) -> bytes | None:
        """Return the bytes of a small file, or None where it is not there."""
        path = self._at(*names)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, data: bytes, *inside: str) -> None:
        """Write a small file whole: it appears when it is complete."""
        draft, path = self._at(*inside, f".{name}.draft"), self._at(*inside, name)
        stream = self._files.create(draft, True)
        stream.write(bytearray(data))
        stream.close()
        self._files.delete(path, False)
        self._files.rename(draft, path)

    def schema(self, stage: str) -> StructType | None:
        """Return the schema of a complete stage; None where it is not there or not complete."""
        from pyspark.sql.types import StructType

        if not self._files.exists(self._at(stage, _COMPLETE)):
            return None
        told = self.read(stage, _SCHEMA)
        if told is None:
            return None
        return StructType.fromJson(json.loads(told))

    def put_schema(self, stage: str, schema: StructType) -> None:
        """Say that a stage is complete, and what its columns are."""
        self.write(_SCHEMA, schema.json().encode(), stage)

    def sizes(self, stage: str) -> dict[str, Any]:
        """Return bytes and partitions of a stage, and its skew: the largest over the mean."""
        sizes = [int(entry.getLen()) for entry in self._listed(stage) if entry.getPath().getName().startswith("part-")]
        total = sum(sizes)
        mean = total / len(sizes) if sizes else 0.0
        return {
            "bytes": total,
            "partitions": len(sizes),
            "skew": round(max(sizes) / mean, 2) if total else 1.0,
        }
