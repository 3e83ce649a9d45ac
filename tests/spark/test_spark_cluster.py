"""With NEARDUP_CLUSTER=1, a real cluster on loopback, and a kill -9 of an executor, a worker or the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paths import ROOT

CLUSTER = [sys.executable, str(ROOT / "scripts" / "cluster")]
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
OUTPUTS = ("kept.jsonl", "duplicates.jsonl")
TIMEOUT_SECONDS = 1800


@pytest.mark.cluster
@pytest.mark.skipif(os.environ.get("NEARDUP_CLUSTER") != "1", reason="NEARDUP_CLUSTER=1 starts clusters of Spark")
@pytest.mark.parametrize("fault", ["none", "executor", "worker", "driver"])
def test_a_killed_process_changes_no_byte(tmp_path: Path, fault: str) -> None:
    expected, out, cluster = (tmp_path / name for name in ("memory", "out", "cluster"))
    expected.mkdir()
    out.mkdir()
    subprocess.run(dedup(expected), check=True, capture_output=True)
    start = [*CLUSTER, "start", "--port", "0", "--memory", "1500m", "--folder", str(cluster)]
    started = subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True)
    options = ["--engine", "spark", "--master", started.stdout.split()[-1], "--checkpoint-dir", str(out / "stages")]
    options += ["--wait", "10m", "--spark-log", str(out / "spark.log"), "--spark-conf", "spark.executor.memory=1g"]
    try:
        code = run_with_kill(dedup(out, *options), fault, out, cluster)
        assert code == (-9 if fault == "driver" else 0)
        if fault == "driver":
            subprocess.run(dedup(out, *options, "--resume"), check=True, capture_output=True)
    finally:
        subprocess.run([*CLUSTER, "stop", "--folder", str(cluster)], check=True)
    assert all((out / name).read_bytes() == (expected / name).read_bytes() for name in OUTPUTS)
    assert ("Lost executor" in (out / "spark.log").read_text("utf-8", "replace")) == (fault in ("executor", "worker"))
    stages = json.loads((out / "summary.json").read_text())["stages"]
    assert any(stage.get("resumed") for stage in stages) == (fault == "driver")


def dedup(out: Path, *options: str) -> list[str]:
    outputs = ["-o", str(out / OUTPUTS[0]), "--duplicates", str(out / OUTPUTS[1]), "--force"]
    command = [sys.executable, "-m", "neardup", "dedup", str(ROOT / "examples" / "newswire.jsonl"), *outputs]
    return [*command, "--summary", str(out / "summary.json"), *options]


def run_with_kill(command: list[str], fault: str, out: Path, cluster: Path) -> int:
    """Run a command, kill processes while a stage runs, and return the exit code.

    The first stage starts Python on the workers, which takes seconds. The next one is short with so little to read, so
    it is interrupted at once.
    """
    stage, seconds = ("features", 0.2) if fault in ("executor", "worker") else ("candidates", 0)
    folder = out / "stages" / stage
    with open(out / "log", "wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as running:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not folder.exists():
            assert running.poll() is None, (out / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(seconds)
        assert not (folder / "_SUCCESS").exists()
        pids = processes_to_kill(fault, running.pid, cluster)
        assert len(pids) == {"none": 0, "executor": 1, "worker": 2, "driver": 2}[fault]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return running.wait(TIMEOUT_SECONDS)


def processes_to_kill(fault: str, driver: int, cluster: Path) -> list[int]:
    """Return the executor of one worker; that worker and its executor; or the driver and its JVM."""
    if fault == "none":
        return []
    if fault == "driver":
        return [driver, *descendants(driver, "java")]
    worker = int(json.loads((cluster / "worker-1.json").read_text())["pid"])
    executors = descendants(worker, EXECUTOR)
    return executors[:1] if fault == "executor" else [worker, *executors]


def descendants(ancestor: int, part: str) -> list[int]:
    """Return the ids of the descendants of a process whose command line contains a text."""
    ps = ["/bin/ps", "-eww", "-o", "pid=,ppid=,args="]
    listed = subprocess.run(ps, check=True, stdout=subprocess.PIPE, text=True)
    processes = [line.split(None, 2) for line in listed.stdout.splitlines()]
    tree = {str(ancestor)}
    while more := {pid for pid, parent, *_ in processes if parent in tree} - tree:
        tree |= more
    return [int(pid) for pid, _, *args in processes if pid in tree - {str(ancestor)} and part in "".join(args)]
