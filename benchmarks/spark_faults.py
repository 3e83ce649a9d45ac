"""Kills an executor, a worker and the driver of a real cluster while it works, and compares what comes out.

    .venv/bin/python benchmarks/spark_faults.py [INPUT] [--fault executor --fault worker --fault driver] [--at features]
        [--after 1.5] [--write]

A master and two workers are started on loopback (scripts/cluster). Each fault is a kill -9 some seconds after a stage
began, which has to be so long that its tasks still run; kept documents and duplicates have to be, byte for byte, those
of the engine in memory.
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
PATIENCE = 1800
#: What Spark's log says of an executor that died.
LOST = "Lost executor"


def main() -> None:
    """Run the faults that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("input", nargs="?", default=str(ROOT / "examples" / "newswire.jsonl"))
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="all by default")
    parser.add_argument("--at", help="the stage in which something is killed: features, of the driver candidates")
    parser.add_argument("--after", type=float, default=1.5, help="seconds after its folder appeared")
    parser.add_argument("--write", action="store_true", help="write what was found to results/spark-faults.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="neardup-faults-") as folder:
        found = []
        for fault in args.fault or ["none", "executor", "worker", "driver"]:
            own = Path(folder, f"of-{fault}")
            own.mkdir()
            # Where the driver dies, a stage is complete that --resume takes as it is.
            stage = args.at or ("candidates" if fault == "driver" else "features")
            found += injected(args.input, [fault], own, When(stage, args.after))
    if args.write:
        write(found)
    if not all(fault["same_bytes"] for fault in found):
        sys.exit(1)


#: What is killed, in words.
KILLED = {
    "none": "nothing",
    "executor": "an executor",
    "worker": "a worker and its executor",
    "driver": "the driver and its JVM",
}


def write(found: list[dict[str, Any]]) -> None:
    """Write what was found where ``tables.py`` finds it, with its table."""
    from measuring import RESULTS, save, table

    rows = []
    for one in found:
        command = "it goes on"
        if one["exit_code"] != 0:
            command = f"it ends; `--resume` takes up what is complete, here stages: {one['resumed_stages']}"
        rows.append([KILLED[one["fault"]], command, "yes" if one["same_bytes"] else "**no**"])
    # Where the input lies on this machine tells nobody anything.
    sys.argv = [Path(word).name for word in sys.argv]
    name = "spark-faults"
    shown = table(["killed with `kill -9`", "the command", "the bytes of memory"], rows)
    save(RESULTS / f"{name}.json", {"rows": found}, {name: shown})


class When(NamedTuple):
    """When something is killed: so many seconds after the folder of a stage appeared."""

    stage: str
    after: float


class Run(NamedTuple):
    """One run: its input, its outputs' folder, the folder of its cluster, the cluster's address, and when."""

    name: str
    out: Path
    cluster: Path
    master: str
    when: When


def injected(name: str, faults: list[str], folder: Path, when: When) -> list[dict[str, Any]]:
    """Return what came of faults, each on a cluster of its own."""
    expected = folder / "memory"
    expected.mkdir()
    subprocess.run(command(name, expected), check=True, capture_output=True)
    found = []
    for fault in faults:
        own, cluster = folder / fault, folder / f"cluster-{fault}"
        own.mkdir()
        given = ["--folder", str(cluster)]
        start = [*CLUSTER, "start", "--port", "0", "--memory", "1500m", *given]
        begun = subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True)
        began = time.perf_counter()
        try:
            told = FAULTS[fault](Run(name, own, cluster, begun.stdout.split()[-1], when))
        finally:
            subprocess.run([*CLUSTER, "stop", *given], check=True)
        same = all((own / file).read_bytes() == (expected / file).read_bytes() for file in OUTPUTS)
        found.append({"fault": fault, "same_bytes": same, "wall_s": round(time.perf_counter() - began, 1)} | told)
        print(json.dumps(found[-1]), flush=True)
    return found


OUTPUTS = ("kept.jsonl", "duplicates.jsonl")


def command(name: str, out: Path, *more: str) -> list[str]:
    """Return the command that finds the near-duplicates of a file."""
    outputs = ["-o", str(out / OUTPUTS[0]), "--duplicates", str(out / OUTPUTS[1]), "--force"]
    return [sys.executable, "-m", "neardup", "dedup", name, *outputs, "--summary", str(out / "summary.json"), *more]


def on_cluster(run: Run, *more: str) -> list[str]:
    """Return the same command on a cluster."""
    engine = ["--engine", "spark", "--master", run.master, "--checkpoint-dir", str(run.out / "stages"), "--wait", "10m"]
    engine += ["--spark-log", str(run.out / "spark.log"), "--spark-conf", "spark.executor.memory=1g"]
    return command(run.name, run.out, *engine, *more)


def run_with(run: Run, kill: Callable[[subprocess.Popen[bytes]], list[int]]) -> dict[str, Any]:
    """Run, kill while the stage is worked on, and return what was killed, whether it was in time, and how it ended."""
    stage = run.out / "stages" / run.when.stage
    with open(run.out / "log", "wb") as log:
        running = subprocess.Popen(on_cluster(run), stderr=log, stdout=log)
        until = time.monotonic() + PATIENCE
        while not stage.exists():
            if running.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the run ended before its stage {stage.name}: {(run.out / 'log').read_text()}")
            time.sleep(0.02)
        time.sleep(run.when.after)
        at_work = not (stage / "_SUCCESS").exists()
        killed = kill(running)
        code = running.wait(PATIENCE)
    lost = (run.out / "spark.log").read_text("utf-8", "replace").count(LOST)
    return {"killed": len(killed), "stage_was_at_work": at_work, "lost_executors": lost, "exit_code": code}


def stages_of(run: Run) -> dict[str, Any]:
    """Return what the summary says of tasks that failed, and of stages that were there already."""
    stages = json.loads((run.out / "summary.json").read_text())["stages"]
    return {
        "failed_tasks": sum(stage.get("failed_tasks", 0) for stage in stages),
        "resumed_stages": sum(bool(stage.get("resumed")) for stage in stages),
    }


def nothing(run: Run) -> dict[str, Any]:
    """Kill nothing."""
    return run_with(run, lambda running: []) | stages_of(run)


def executor(run: Run) -> dict[str, Any]:
    """Kill what does the work of one worker."""

    def kill(running: subprocess.Popen[bytes]) -> list[int]:
        del running
        return ended(children(pid_of(run.cluster, "worker-1"), EXECUTOR)[:1])

    return run_with(run, kill) | stages_of(run)


def worker(run: Run) -> dict[str, Any]:
    """Kill one worker and what does its work."""

    def kill(running: subprocess.Popen[bytes]) -> list[int]:
        del running
        own = pid_of(run.cluster, "worker-1")
        return ended([own, *children(own, EXECUTOR)])

    return run_with(run, kill) | stages_of(run)


def driver(run: Run) -> dict[str, Any]:
    """Kill the command and its JVM, then go on from the stages."""

    def kill(running: subprocess.Popen[bytes]) -> list[int]:
        return ended([running.pid, *children(running.pid, "java")])

    told = run_with(run, kill)
    again = subprocess.run(on_cluster(run, "--resume"), capture_output=True, text=True)
    if again.returncode:
        raise RuntimeError(again.stderr)
    return told | stages_of(run)


FAULTS: dict[str, Callable[[Run], dict[str, Any]]] = {
    "none": nothing,
    "executor": executor,
    "worker": worker,
    "driver": driver,
}


def pid_of(cluster: Path, name: str) -> int:
    """Return the number of a process that scripts/cluster started."""
    return int(json.loads((cluster / f"{name}.json").read_text())["pid"])


def children(parent: int, part: str) -> list[int]:
    """Return the processes below one whose command holds a text."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int(re.sub(r"^.*\) \S ", "", (folder / "stat").read_text()).split()[0])
            except (OSError, ValueError):
                continue
    below, found = {parent}, []
    for _ in range(8):
        below |= {own for own, above in parents.items() if above in below}
    for own in below - {parent}:
        try:
            if part.encode() in Path(f"/proc/{own}/cmdline").read_bytes():
                found.append(own)
        except OSError:
            continue
    return found


def ended(processes: list[int]) -> list[int]:
    """Kill processes as a loss of power would."""
    for number in processes:
        os.kill(number, signal.SIGKILL)
    return processes


if __name__ == "__main__":
    main()
