"""What runs share: the memory budget, beyond it a file and a full disk; threads, scratch arrays."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from neardup.errors import OutputError
from neardup.runtime import PROGRAM_BYTES, SCRATCH, Clock, Memory, map_in_order, run_serial, trim_memory


def test_arrays_come_from_memory_until_the_budget_is_used_up() -> None:
    unlimited = Memory()
    assert (unlimited.array(np.uint64, 1000).size, unlimited.spilled_bytes) == (1000, 0)
    memory = Memory(PROGRAM_BYTES + 1000)
    assert memory.free_bytes == 1000
    first = memory.array(np.uint64, 100)
    assert (first.nbytes, memory.free_bytes, memory.spilled_bytes) == (800, 200, 0)
    second = memory.array(np.uint32, 10, 10)
    assert (second.shape, memory.free_bytes, memory.spilled_bytes) == ((10, 10), 200, 400)
    assert memory.array(np.uint8, 200).nbytes == 200
    assert memory.free_bytes == 0
    assert memory.array(np.uint64, 0).nbytes == 0
    memory.release_array(first)
    assert memory.free_bytes == 800
    memory.release_array(second)
    assert memory.free_bytes == 800


@pytest.mark.parametrize("has_fallocate", [True, False])
def test_arrays_in_a_file_keep_their_values(has_fallocate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_fallocate:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    memory = Memory(0)
    arrays = [memory.array(np.uint64, 30_000) for _ in range(3)]
    for number, array in enumerate(arrays):
        array[:] = np.arange(30_000, dtype=np.uint64) + np.uint64(number)
    memory.evict()
    for number, array in enumerate(arrays):
        assert array[0] == number
        assert array[-1] == 29_999 + number
    memory.forget()
    assert int(arrays[1].sum()) == sum(range(1, 30_001))


def test_a_full_disk_is_one_sentence(full_disk: Callable[[int], None]) -> None:
    full_disk(200_000)
    with pytest.raises(OutputError, match=r"^8,388,608 bytes beyond memory do not fit .* raise memory$"):
        Memory(0).array(np.uint64, 1 << 20)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_until_the_first_error(threads: int) -> None:
    def delayed(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        if number == 7:
            raise ValueError("seven")
        return number

    found: list[int] = []
    with pytest.raises(ValueError, match="seven"):
        found.extend(map_in_order(delayed, range(20), threads))
    assert found == list(range(7))
    assert list(map_in_order(delayed, range(7), threads)) == list(range(7))


def test_calls_share_their_threads_and_may_call_each_other() -> None:
    def inner(number: int) -> tuple[int, list[int]]:
        return threading.get_ident(), list(map_in_order(lambda other: number * other, range(3), 2))

    found = [done for _ in range(20) for done in map_in_order(inner, range(5), 2)]
    assert [products for _, products in found] == [[0, number, 2 * number] for _ in range(20) for number in range(5)]
    assert len({ident for ident, _ in found}) <= 2
    assert threading.get_ident() not in {ident for ident, _ in found}


def test_no_call_is_running_once_the_results_are_closed() -> None:
    read, started, ended = list[int](), list[int](), list[int]()

    def work() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    def slow(number: int) -> None:
        started.append(number)
        time.sleep(0.02)
        ended.append(number)

    results = map_in_order(slow, work(), 2)
    next(results)
    results.close()
    assert len(read) <= 4
    assert sorted(started) == sorted(ended)


def test_no_call_is_running_once_a_signal_has_ended_the_results() -> None:
    started, ended = list[int](), list[int]()

    def slow(number: int) -> None:
        started.append(number)
        _thread.interrupt_main()
        time.sleep(0.2)
        ended.append(number)

    # The signal comes while the result is waited for, or while the item is submitted.
    with pytest.raises(KeyboardInterrupt):
        list(map_in_order(slow, range(1), 2))
    # What the items read may be freed now.
    assert started == ended == [0]


def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import os\nfrom neardup.runtime import map_in_order\nlist(map_in_order(abs, range(9), 2))\nchild = os.fork()\n"
        "print(list(map_in_order(abs, [-1, 2], 2)), flush=True)\nif child: os.waitpid(child, 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "[1, 2]\n" * 2


def test_scratch_belongs_to_one_thread_and_is_freed_when_memory_is_trimmed() -> None:
    first = SCRATCH.array("numbers", np.int64, 10)
    assert SCRATCH.array("numbers", np.int64, 5) is first
    (other,) = map_in_order(lambda _: SCRATCH.array("numbers", np.int64, 5), [0], 2)
    assert other is not first
    trim_memory()
    assert SCRATCH.array("numbers", np.int64, 5) is not first


def test_exclusive_work_is_serial_across_all_threads() -> None:
    def busy(seconds: float) -> float:
        begin = time.thread_time()
        while time.thread_time() < begin + seconds:
            pass
        return seconds

    clock = Clock()
    with clock.stage("divided"):
        assert list(map_in_order(busy, [0.02] * 4, 2)) == [0.02] * 4
    with ThreadPoolExecutor(1) as pool, clock.stage("alone"):
        assert pool.submit(run_serial, busy, 0.04).result() == 0.04
    divided, serial = clock.stages
    assert divided["serial_cpu_s"] <= divided["cpu_s"] - 0.04
    assert 0.04 <= serial["serial_cpu_s"] <= serial["cpu_s"] + 0.001
