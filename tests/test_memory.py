"""The memory budget: what it gives from memory, what from the file, and what happens when the disk is full."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from saying import says

from neardup.runtime import BASE, Memory

FULL = """
import resource, signal
from neardup.errors import OutputError
from neardup.runtime import Memory
import numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    Memory(0).array(np.uint64, 1 << 20)
except OutputError as error:
    print(error)
"""


def test_arrays_come_from_memory_until_the_budget_is_used_up() -> None:
    memory = Memory(BASE + 1000)
    assert memory.room == 1000
    first = memory.array(np.uint64, 100)
    assert (first.nbytes, memory.room, memory.spilled_bytes) == (800, 200, 0)
    second = memory.array(np.uint32, 10, 10)
    assert (second.shape, memory.room, memory.spilled_bytes) == ((10, 10), 200, 400)
    assert memory.array(np.uint8, 200).nbytes == 200
    assert memory.room == 0
    assert memory.array(np.uint64, 0).nbytes == 0
    memory.give_back(first)
    assert memory.room == 800
    memory.give_back(second)
    assert memory.room == 800


def test_without_a_budget_nothing_goes_to_a_file() -> None:
    memory = Memory()
    memory.array(np.uint64, 1000)
    assert memory.spilled_bytes == 0


@pytest.mark.parametrize("promised", [True, False])
def test_what_lies_in_the_file_stays_what_it_is(promised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not promised:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    memory = Memory(0)
    arrays = [memory.array(np.uint64, 300_000) for _ in range(3)]
    for number, array in enumerate(arrays):
        array[:] = np.arange(300_000, dtype=np.uint64) + np.uint64(number)
    memory.release()
    for number, array in enumerate(arrays):
        assert array[0] == number
        assert array[-1] == 299_999 + number
    memory.forget()
    assert int(arrays[1].sum()) == sum(range(1, 300_001))


def test_a_full_disk_is_one_sentence() -> None:
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("8,388,608 bytes ")
    assert says(done.stdout, "beyond memory", "not fit", "raise memory")
    assert done.stdout.count("\n") == 1
