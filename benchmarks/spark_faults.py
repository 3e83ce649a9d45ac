"""Kills an executor, a worker or the driver of a running cluster, and compares the outputs with those of memory.

    .venv/bin/python benchmarks/spark_faults.py [INPUT] [--fault executor --fault worker --fault driver] [--at features]
        [--after 1.5] [--write]

scripts/cluster starts a master and two workers on loopback. Each fault is a kill -9 some seconds after a stage began,
while its tasks still run. Kept documents and duplicates must have the same bytes as those of the engine in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = [sys.executable, str(ROOT / "scripts" / "cluster")]
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
TIMEOUT_SECONDS = 1800
#: Message in Spark's log for each executor that died.
LOST_EXECUTOR_MESSAGE = "Lost executor"


def main() -> None:
    """Run the chosen faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("input", nargs="?", default=str(ROOT / "examples" / "newswire.jsonl"))
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="all by default")
    parser.add_argument("--at", help="stage in which the process is killed; features, for the driver candidates")
    parser.add_argument("--after", type=float, default=1.5, help="seconds after the folder of the stage appeared")
    parser.add_argument("--write", action="store_true", help="write the results to results/spark-faults.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="neardup-faults-") as folder:
        results = []
        for fault in args.fault or ["none", "executor", "worker", "driver"]:
            fault_folder = Path(folder, f"of-{fault}")
            fault_folder.mkdir()
            # When the driver dies, an earlier stage must be complete for --resume to reuse.
            stage = args.at or ("candidates" if fault == "driver" else "features")
            results += fault_rows(args.input, [fault], fault_folder, KillTime(stage, args.after))
    if args.write:
        write(results)
    if not all(result["same_bytes"] for result in results):
        sys.exit(1)


#: The killed processes as the table names them.
KILLED_PROCESSES = {
    "none": "nothing",
    "executor": "an executor",
    "worker": "a worker and its executor",
    "driver": "the driver and its JVM",
}


def write(results: list[dict[str, Any]]) -> None:
    """Write the results with their table."""
    from measuring import RESULTS, markdown_table, save_results

    rows = []
    for result in results:
        outcome = "it goes on"
        if result["exit_code"] != 0:
            outcome = f"it ends; `--resume` takes up what is complete, here stages: {result['resumed_stages']}"
        rows.append([KILLED_PROCESSES[result["fault"]], outcome, "yes" if result["same_bytes"] else "**no**"])
    # The recorded command shows no folders of this machine.
    sys.argv = [Path(word).name for word in sys.argv]
    name = "spark-faults"
    table = markdown_table(["killed with `kill -9`", "the command", "the bytes of memory"], rows)
    save_results(RESULTS / f"{name}.json", {"rows": results}, {name: table})


class KillTime(NamedTuple):
    """When a process is killed: `after` seconds after the folder of `stage` appeared."""

    stage: str
    after: float


class Run(NamedTuple):
    """One run: input, folder of outputs, folder and address of the cluster, time of the kill."""

    source: str
    out: Path
    cluster: Path
    master: str
    kill_time: KillTime


def fault_rows(source: str, faults: list[str], folder: Path, kill_time: KillTime) -> list[dict[str, Any]]:
    """Return the outcome of each fault on a new cluster."""
    expected = folder / "memory"
    expected.mkdir()
    subprocess.run(command(source, expected), check=True, capture_output=True)
    results = []
    for fault in faults:
        out, cluster = folder / fault, folder / f"cluster-{fault}"
        out.mkdir()
        folder_option = ["--folder", str(cluster)]
        start = [*CLUSTER, "start", "--port", "0", "--memory", "1500m", *folder_option]
        cluster_start = subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True)
        began = time.perf_counter()
        try:
            outcome = FAULTS[fault](Run(source, out, cluster, cluster_start.stdout.split()[-1], kill_time))
        finally:
            subprocess.run([*CLUSTER, "stop", *folder_option], check=True)
        same = all((out / file).read_bytes() == (expected / file).read_bytes() for file in OUTPUTS)
        results.append({"fault": fault, "same_bytes": same, "wall_s": round(time.perf_counter() - began, 1)} | outcome)
        print(json.dumps(results[-1]), flush=True)
    return results


OUTPUTS = ("kept.jsonl", "duplicates.jsonl")


def command(source: str, out: Path, *options: str) -> list[str]:
    """Return the command that finds the near-duplicates of a file."""
    outputs = ["-o", str(out / OUTPUTS[0]), "--duplicates", str(out / OUTPUTS[1]), "--force"]
    return [
        sys.executable,
        "-m",
        "neardup",
        "dedup",
        source,
        *outputs,
        "--summary",
        str(out / "summary.json"),
        *options,
    ]


def cluster_command(run: Run, *options: str) -> list[str]:
    """Return the same command on a cluster."""
    engine = ["--engine", "spark", "--master", run.master, "--checkpoint-dir", str(run.out / "stages"), "--wait", "10m"]
    engine += ["--spark-log", str(run.out / "spark.log"), "--spark-conf", "spark.executor.memory=1g"]
    return command(run.source, run.out, *engine, *options)


def run_with_kill(run: Run, kill: Callable[[subprocess.Popen[bytes]], list[int]]) -> dict[str, Any]:
    """Run, kill during the stage, and return the number killed, whether the stage still ran, and the exit code."""
    stage = run.out / "stages" / run.kill_time.stage
    with open(run.out / "log", "wb") as log:
        running = subprocess.Popen(cluster_command(run), stderr=log, stdout=log)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not stage.exists():
            if running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the run ended before its stage {stage.name}: {(run.out / 'log').read_text()}")
            time.sleep(0.02)
        time.sleep(run.kill_time.after)
        was_running = not (stage / "_SUCCESS").exists()
        killed = kill(running)
        code = running.wait(TIMEOUT_SECONDS)
    lost = (run.out / "spark.log").read_text("utf-8", "replace").count(LOST_EXECUTOR_MESSAGE)
    return {"killed": len(killed), "stage_was_at_work": was_running, "lost_executors": lost, "exit_code": code}


def stage_counts(run: Run) -> dict[str, Any]:
    """Return the failed tasks and the resumed stages that the summary counts."""
    stages = json.loads((run.out / "summary.json").read_text())["stages"]
    return {
        "failed_tasks": sum(stage.get("failed_tasks", 0) for stage in stages),
        "resumed_stages": sum(bool(stage.get("resumed")) for stage in stages),
    }


def nothing(run: Run) -> dict[str, Any]:
    """Kill nothing."""
    return run_with_kill(run, lambda running: []) | stage_counts(run)


def executor(run: Run) -> dict[str, Any]:
    """Kill the executor of one worker."""

    def kill(running: subprocess.Popen[bytes]) -> list[int]:
        del running
        return kill_processes(descendants(pid_of(run.cluster, "worker-1"), EXECUTOR)[:1])

    return run_with_kill(run, kill) | stage_counts(run)


def worker(run: Run) -> dict[str, Any]:
    """Kill one worker and its executor."""

    def kill(running: subprocess.Popen[bytes]) -> list[int]:
        del running
        pid = pid_of(run.cluster, "worker-1")
        return kill_processes([pid, *descendants(pid, EXECUTOR)])

    return run_with_kill(run, kill) | stage_counts(run)


def driver(run: Run) -> dict[str, Any]:
    """Kill the command and its JVM, then resume from the complete stages."""

    def kill(running: subprocess.Popen[bytes]) -> list[int]:
        return kill_processes([running.pid, *descendants(running.pid, "java")])

    outcome = run_with_kill(run, kill)
    resumed = subprocess.run(cluster_command(run, "--resume"), capture_output=True, text=True)
    if resumed.returncode:
        raise RuntimeError(resumed.stderr)
    return outcome | stage_counts(run)


FAULTS: dict[str, Callable[[Run], dict[str, Any]]] = {
    "none": nothing,
    "executor": executor,
    "worker": worker,
    "driver": driver,
}


def pid_of(cluster: Path, name: str) -> int:
    """Return the id of a process that scripts/cluster started."""
    return int(json.loads((cluster / f"{name}.json").read_text())["pid"])


def descendants(ancestor: int, part: str) -> list[int]:
    """Return the ids of the descendants of a process whose command line contains `part`."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int(re.sub(r"^.*\) \S ", "", (folder / "stat").read_text()).split()[0])
            except (OSError, ValueError):
                continue
    tree, found = {ancestor}, []
    for _ in range(8):
        tree |= {pid for pid, parent in parents.items() if parent in tree}
    for pid in tree - {ancestor}:
        try:
            if part.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def kill_processes(pids: list[int]) -> list[int]:
    """Kill processes with SIGKILL, and return their ids."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


if __name__ == "__main__":
    main()
