"""With NEARDUP_CLUSTER=1, a real cluster and what dies in it."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.cluster
@pytest.mark.skipif(os.environ.get("NEARDUP_CLUSTER") != "1", reason="NEARDUP_CLUSTER=1 starts clusters of Spark")
@pytest.mark.parametrize("fault", ["none", "executor", "worker", "driver"])
def test_a_killed_process_changes_no_byte(tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spark_faults = importlib.import_module("spark_faults")
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
