"""Changed files and requests of every kind are read, or refused in one sentence: nothing crashes, hangs or vanishes."""

from __future__ import annotations

import os

import pytest
from fuzzing import SUBJECTS, WRONG, fuzz

LONG = os.environ.get("NEARDUP_LONG") == "1"
#: 100,000 inputs; those of some kinds take a second, and the others about a hundredth.
COUNTS = dict.fromkeys(SUBJECTS, 6_600) | {"index": 2_000, "labels": 2_000, "flow": 2_000, "bodies": 2_000}


@pytest.mark.parametrize("kinds", [[kind] for kind in SUBJECTS] if LONG else [list(SUBJECTS)], ids=",".join)
def test_changed_inputs_are_read_or_refused(kinds: list[str]) -> None:
    assert fuzz(kinds, COUNTS[kinds[0]] if LONG else 15) == []


def test_the_long_run_tries_a_hundred_thousand() -> None:
    assert sum(COUNTS.values()) >= 100_000


def test_what_is_wrong_on_purpose_is_found_and_named() -> None:
    """Also by a process that dies, after which the next input is tried."""
    found = fuzz(list(WRONG), 1, limit=3)
    assert [fault.kind for fault in found] == list(WRONG)
    signs = ["IndexError: pop from empty list", "ended by -6", "it hangs", "bytes of memory", "1 of 2 records"]
    for fault, sign in zip(found, signs, strict=True):
        assert sign in fault.what
