"""What a command on Spark took: processor time and memory of driver, executors and Python workers, seen from outside.

Executors are children of the cluster's workers, not of the command, and nobody waits for a JVM that a driver leaves
behind. So all processes below the command and the cluster are looked at twice a second, their memory once: what one
took is what it had taken when it was seen last. (Looking more often would take a tenth of a processor itself.)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_EVERY = 0.5
#: Of a command that Spark has no part in, which may be over in a second.
_OFTEN = 0.05
#: The memory of a cluster is looked at each so many times.
_MEMORY = 2
_TICKS = os.sysconf("SC_CLK_TCK")
#: Seconds that executors may take to go after their driver.
_PATIENCE = 60
#: What a process is, by a part of its command line; the first that fits.
_KINDS = (
    (b"CoarseGrainedExecutorBackend", "executors"),
    (b"org.apache.spark.deploy.worker.Worker", "cluster"),
    (b"org.apache.spark.deploy.master.Master", "cluster"),
    (b"pyspark.daemon", "python"),
    (b"pyspark/daemon", "python"),
    (b"org.apache.spark.deploy.SparkSubmit", "driver"),
)


class Tree:
    """The processes of a command and of the cluster that works for it.

    Parameters
    ----------
    cluster : sequence of int
        The processes of a cluster.
    """

    def __init__(self, cluster: Sequence[int]) -> None:
        self._roots = list(cluster)
        self._kinds: dict[int, str] = {}
        self._cpu: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._looks = 0
        self._peak: dict[str, int] = defaultdict(int)
        self._largest: dict[str, int] = defaultdict(int)

    def begin(self) -> None:
        """Remember what the cluster's processes took so far."""
        self._look(None)
        self._before = dict(self._cpu)
        self._peak.clear()
        self._largest.clear()

    def look(self, command: int) -> None:
        """Look at all processes once."""
        self._look(command)

    def executors(self) -> bool:
        """Return whether executors are still there."""
        return any(kind in ("executors", "python") for kind in self._look(None).values())

    def _look(self, command: int | None) -> dict[int, str]:
        found: dict[int, str] = {}
        for pid, parent in _below([*self._roots, *([command] if command else [])]):
            found[pid] = self._kind(pid, parent, found)
        self._looks += 1
        memory: dict[str, int] = defaultdict(int)
        for pid, kind in found.items():
            taken = _cpu(pid)
            if taken is None:
                continue
            self._kinds[pid] = kind
            self._cpu[pid] = max(taken, self._cpu.get(pid, 0.0))
            if not self._roots or self._looks % _MEMORY == 0:
                pss = _pss(pid)
                memory[kind] += pss
                self._largest[kind] = max(self._largest[kind], pss)
        for kind, size in memory.items():
            self._peak[kind] = max(self._peak[kind], size)
        self._peak["all"] = max(self._peak["all"], sum(size for kind, size in memory.items() if kind != "cluster"))
        return found

    def _kind(self, pid: int, parent: int, found: Mapping[int, str]) -> str:
        if self._kinds.get(pid) not in (None, "command", "cluster"):
            return self._kinds[pid]
        told = _command_line(pid)
        named = next((kind for part, kind in _KINDS if part in told), None)
        # A worker is a fork of its daemon; before a JVM has its name it is a shell of whoever starts it.
        return named or found.get(parent, "command")

    def figures(self) -> dict[str, Any]:
        """Return processor seconds and peak memory (PSS, MB) by kind."""
        cpu: dict[str, float] = defaultdict(float)
        for pid, taken in self._cpu.items():
            cpu[self._kinds[pid]] += taken - self._before.get(pid, 0.0)
        return {
            "cpu_s": round(sum(taken for kind, taken in cpu.items() if kind != "cluster"), 2),
            "cpu_by": {kind: round(taken, 2) for kind, taken in sorted(cpu.items()) if kind != "cluster"},
            "peak_mb": round(self._peak["all"] / 1e6, 1),
            "peak_by_mb": {kind: round(size / 1e6, 1) for kind, size in sorted(self._peak.items()) if kind in cpu},
            "largest_mb": {kind: round(size / 1e6, 1) for kind, size in sorted(self._largest.items()) if kind in cpu},
        }


def run(command: Sequence[object], *, cluster: Sequence[int] = (), limit: float | None = None) -> dict[str, Any]:
    """Run a command and return what it took: wall_s, figures, code, said (its last words), out (its JSON lines).

    One that takes longer than ``limit`` seconds is ended, and has the key ``limit_s``.
    """
    tree = Tree(cluster)
    tree.begin()
    limited, every = False, _EVERY if cluster else _OFTEN
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        while process.poll() is None:
            tree.look(process.pid)
            if limit is not None and time.perf_counter() - begin > limit:
                limited = True
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
            time.sleep(every)
        wall = time.perf_counter() - begin
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    until = time.monotonic() + _PATIENCE
    while cluster and tree.executors() and time.monotonic() < until:
        time.sleep(_EVERY)
    _reap()
    found = {"wall_s": round(wall, 2)} | tree.figures() | {"code": process.returncode, "out": _lines(texts[0])}
    if limited:
        found["limit_s"] = limit
    elif process.returncode:
        found["said"] = (texts[1] or texts[0])[-2000:]
    return found


def _reap() -> None:
    """Let go what has ended: JVMs that a driver left behind come to us where we asked for that."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _lines(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def _below(roots: Sequence[int]) -> list[tuple[int, int]]:
    """Return processes and all below them with the parent of each, parents first."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _stat(int(entry))
            if fields:
                children[int(fields[1])].append(int(entry))
    found, todo = [], [(root, 0) for root in roots]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += [(child, one[0]) for child in children[one[0]]]
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name: state, parent and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu(pid: int) -> float | None:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields and fields[0] not in "ZX" else None


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def _pss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as lines:
            return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    except OSError:
        return 0
