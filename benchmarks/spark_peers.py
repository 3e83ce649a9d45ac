"""The same corpus by what Spark users have besides: MLlib's MinHashLSH, and MinHash bands in some lines of PySpark.

    spark_peers.py minhash|bands CORPUS.parquet FOLDER --master URL [--threshold 0.85] [--recall 0.95]
                   [--conf NAME=VALUE ...]

minhash  RegexTokenizer, NGram(5), HashingTF (binary, 2**28 places, so that few features fall together), MinHashLSH and
         approxSimilarityJoin at 1 - threshold, with as many hash tables as the recall asks for: MLlib joins by one
         minimum a table, so two tables find 1 - 0.15**2 = 97.75 % of the pairs at 0.85.
bands    the same 5-grams as 64-bit hashes; 128 minima in NumPy by mapInPandas; bands of r minima, exploded; a join of
         the bands with themselves; distinct; the Jaccard of what is left by array_intersect. The longest rows that
         reach the recall are taken, as neardup does.

Both write pairs.parquet (a, b, similarity) and kept.parquet into the folder, and print a line of JSON for each phase,
and one every ten seconds that says how far it is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil, log, log1p
from typing import Any

N = 5
PLACES = 1 << 28
MINIMA = 128
PRIME = (1 << 31) - 1
_TELL = 10


def tables_for(threshold: float, recall: float) -> int:
    """Return how many single minima find a pair at the threshold with a probability of ``recall``."""
    return ceil(log(1 - recall) / log1p(-threshold))


def bands_for(threshold: float, recall: float, most: int = MINIMA) -> tuple[int, int]:
    """Return bands and rows: the longest rows that reach the recall with so many minima."""
    best = (most, 1)
    for rows in range(1, most + 1):
        bands = ceil(log1p(-recall) / log1p(-(threshold**rows)))
        if bands * rows > most:
            break
        best = (bands, rows)
    return best


class Told:
    """Says on stdout what is done and how far."""

    def __init__(self, spark: Any) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._phase, self._ended = "", threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @contextmanager
    def phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Time what is done inside; what is put into the dict is told."""
        self._phase, begin = name, time.perf_counter()
        more: dict[str, Any] = {}
        yield more
        tell(phase=name, wall_s=round(time.perf_counter() - begin, 2), **more)

    def _look(self) -> None:
        while not self._ended.wait(_TELL):
            try:
                found = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
            except Exception:  # the session is at its end
                return
            tasks = [(info.numCompletedTasks, info.numTasks) for info in found if info is not None]
            tell(at=self._phase, tasks_done=sum(done for done, _ in tasks), tasks=sum(count for _, count in tasks))

    def close(self) -> None:
        """Say no more."""
        self._ended.set()


def tell(**found: Any) -> None:
    print(json.dumps(found), flush=True)


def five_grams(frame: Any) -> Any:
    """Return id and the word 5-grams of each document that has any."""
    from pyspark.ml.feature import NGram, RegexTokenizer
    from pyspark.sql import functions as F

    words = RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+").transform(frame.select("id", "text"))
    grams = NGram(n=N, inputCol="words", outputCol="grams").transform(words)
    return grams.select("id", "grams").where(F.size("grams") > 0)


def minhash(spark: Any, frame: Any, given: argparse.Namespace, told: Told) -> Any:
    """Return the pairs that MLlib finds."""
    from pyspark.ml.feature import HashingTF, MinHashLSH
    from pyspark.sql import functions as F

    tables = tables_for(given.threshold, given.recall)
    tell(hash_tables=tables, recall_at_threshold=1 - (1 - given.threshold) ** tables)
    counted = HashingTF(inputCol="grams", outputCol="features", numFeatures=PLACES, binary=True)
    with told.phase("features") as more:
        vectors = counted.transform(five_grams(frame)).select("id", "features").cache()
        more["rows"] = vectors.count()
    model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=tables, seed=1).fit(vectors)
    near = model.approxSimilarityJoin(vectors, vectors, 1 - given.threshold + 1e-9, "distance")
    near = near.select(F.col("datasetA.id").alias("a"), F.col("datasetB.id").alias("b"), "distance")
    return near.where("a < b").selectExpr("a", "b", "1 - distance as similarity")


def bands(spark: Any, frame: Any, given: argparse.Namespace, told: Told) -> Any:
    """Return the pairs that share a band of minima and are similar enough."""
    import numpy as np
    import pandas as pd
    from pyspark.sql import functions as F

    count, rows = bands_for(given.threshold, given.recall)
    tell(bands=count, rows=rows, recall_at_threshold=1 - (1 - given.threshold**rows) ** count)
    rng = np.random.default_rng(1)
    multiply, add = rng.integers(1, PRIME, count * rows), rng.integers(0, PRIME, count * rows)

    def sketched(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            keys = []
            for grams in batch["grams"]:
                small = np.asarray(grams, np.int64) & PRIME
                minima = ((small[:, None] * multiply + add) % PRIME).min(axis=0)
                keys.append([minima[rows * band : rows * (band + 1)].tobytes() for band in range(count)])
            yield pd.DataFrame({"id": batch["id"], "keys": keys})

    with told.phase("features") as more:
        hashed = F.array_distinct(F.transform("grams", lambda gram: F.xxhash64(gram)))
        sets = five_grams(frame).select("id", hashed.alias("grams")).cache()
        more["rows"] = sets.count()
    kind = dict(frame.dtypes)["id"]
    with told.phase("bands") as more:
        keys = sets.mapInPandas(sketched, f"id {kind}, keys array<binary>")
        exploded = keys.select("id", F.posexplode("keys").alias("band", "key")).cache()
        more["rows"] = exploded.count()
    with told.phase("candidates") as more:
        one, other = (exploded.select(F.col("id").alias(name), "band", "key") for name in "ab")
        listed = one.join(other, ["band", "key"]).where("a < b").select("a", "b").distinct().cache()
        more["rows"] = listed.count()
    left, right = (sets.select(F.col("id").alias(name), F.col("grams").alias(f"of_{name}")) for name in "ab")
    met = listed.join(left, "a").join(right, "b")
    shared = F.size(F.array_intersect("of_a", "of_b"))
    similarity = shared / (F.size("of_a") + F.size("of_b") - shared)
    return met.select("a", "b", similarity.alias("similarity")).where(F.col("similarity") >= given.threshold)


PEERS: dict[str, Callable[..., Any]] = {"minhash": minhash, "bands": bands}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("corpus")
    parser.add_argument("folder")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--threshold", type=float, default=0.85)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--conf", action="append", default=[])
    given = parser.parse_args()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    begin = time.perf_counter()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(given.master).appName(given.peer)
    for setting in given.conf:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tell(phase="start", wall_s=round(time.perf_counter() - begin, 2))
    told = Told(spark)
    corpus = spark.read.parquet(given.corpus)
    # One file of Parquet with few row groups is few tasks; all workers take part from here on.
    frame = corpus.select("id", "text").repartition(8)
    pairs = PEERS[given.peer](spark, frame, given, told)
    with told.phase("pairs") as more:
        pairs.write.mode("overwrite").parquet(f"{given.folder}/pairs.parquet")
        pairs = spark.read.parquet(f"{given.folder}/pairs.parquet")
        more["rows"] = pairs.count()
    with told.phase("write") as more:
        gone = pairs.select(pairs["b"].alias("id")).distinct()
        kept = corpus.join(gone, "id", "left_anti")
        kept.write.mode("overwrite").option("compression", "zstd").parquet(f"{given.folder}/kept.parquet")
        more["dropped"] = gone.count()
    told.close()
    spark.stop()


if __name__ == "__main__":
    main()
