"""Workers in other processes: a small cluster, and with NEARDUP_CLUSTER=1 a real one and what dies in it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from commands import neardup

ROOT = Path(__file__).resolve().parents[2]
#: One worker of one core; few parts, for what there is to do is little.
CLUSTER = ["--master", "local-cluster[1,1,1024]", "--spark-conf", "spark.sql.shuffle.partitions=2"]


def test_workers_in_other_processes_write_the_same_bytes(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark is not installed")
    newswire = str(ROOT / "examples" / "newswire.jsonl")
    outputs = {
        engine: ["-o", f"{tmp_path / engine}.jsonl", "--duplicates", f"{tmp_path / engine}.csv"]
        for engine in ("memory", "spark")
    }
    neardup("dedup", newswire, *outputs["memory"])
    command = [sys.executable, "-m", "neardup", "dedup", newswire, *outputs["spark"], "--engine", "spark", *CLUSTER]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    for ending in ("jsonl", "csv"):
        assert (tmp_path / f"spark.{ending}").read_bytes() == (tmp_path / f"memory.{ending}").read_bytes()


def faults() -> ModuleType:
    """benchmarks/spark_faults.py."""
    name = "spark_faults"
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    if spec is None or spec.loader is None:
        pytest.fail("benchmarks/spark_faults.py is not there")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.cluster
@pytest.mark.skipif(os.environ.get("NEARDUP_CLUSTER") != "1", reason="NEARDUP_CLUSTER=1 starts clusters of Spark")
@pytest.mark.parametrize("fault", ["none", "executor", "worker", "driver"])
def test_a_killed_process_changes_no_byte(tmp_path: Path, fault: str) -> None:
    spark_faults = faults()
    # The first stage starts Python on the workers, which takes seconds. The next one is short with so little to read,
    # so it is interrupted at once.
    stage, seconds = ("features", 0.2) if fault in ("executor", "worker") else ("candidates", 0)
    when = spark_faults.KillTime(stage, seconds)
    [found] = spark_faults.fault_rows(str(ROOT / "examples" / "newswire.jsonl"), [fault], tmp_path, when)
    assert found["same_bytes"]
    assert found["killed"] == {"none": 0, "executor": 1, "worker": 2, "driver": 2}[fault]
    assert found["exit_code"] == (-9 if fault == "driver" else 0)
    assert found["stage_was_at_work"]
    assert (found["lost_executors"] > 0) == (fault in ("executor", "worker"))
    assert (found["resumed_stages"] > 0) == (fault == "driver")
