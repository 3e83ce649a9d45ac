"""The window against its twin, verdict for verdict: random streams, batches, removals, queries, restarts."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from flow_classifiers import NaiveClassifierIndex
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_window import NaiveIndex
from streaming import (
    NOON,
    RECIPES,
    TEXTS,
    TIMED,
    SetClock,
    assert_same_verdicts,
    examples,
    id_similarities,
    index_and_twin,
    make_index,
    window_ids,
)

import neardup as nd
from neardup.stream import second_step


class Step(NamedTuple):
    """The next action: an addition, or a removal or a query after it; times are in hundredths of a window."""

    text: str
    forward: int
    offset: int | None
    now: int
    action: str


STEPS = st.builds(
    Step,
    TEXTS,
    st.sampled_from([0, 0, 1, 7, 30, 50, 100, 101, 230]),
    st.sampled_from([0, 0, 0, 0, None, -1, -50, -99, -100, -101, -250, 60, 100, 101, 700, 10**6]),
    st.sampled_from([0, 0, 0, 0, 0, -90, 10**7]),
    st.sampled_from(["add", "add", "add", "add", "remove", "query", "nearest"]),
)
STREAMS = st.lists(STEPS, max_size=25)
#: A window, its unit, and the seconds of a hundredth of it.
WINDOWS: list[tuple[Any, str, int]] = [
    ("100s", "time", 1),
    ("3h", "time", 108),
    ("2h", "hour", 72),
    ("1h", "hour", 36),
    ("7d", "time", 6048),
    (4, "time", 1),
    (1, "time", 1),
    (None, "time", 36),
]


Timed = tuple[Step, nd.Document, float]


def timed_documents(stream: Sequence[Step], unit: int, *, always: bool = False) -> list[Timed]:
    """Return the steps with their documents, each with a time if ``always``, and the system time."""
    if always:
        stream = [step._replace(offset=step.offset or 0, now=10**9) for step in stream]
    titles = ["", "Fox runs", "Fox runs again", "東京"]
    base = float(NOON)
    found: list[Timed] = []
    for i, step in enumerate(stream):
        base += step.forward * unit
        stamp: Any = None if step.offset is None else base + step.offset * unit
        if stamp is not None and i % 3 == 0:
            # A microsecond off the full second.
            stamp = datetime.fromtimestamp(stamp, UTC) + timedelta(microseconds=step.forward % 3 - 1)
        document = nd.Document(f"d{i}", step.text, stamp, title=titles[i % 4])
        found.append((step, document, base + 900 * unit + step.now * unit))
    return found


def follow_steps(
    index: nd.Index, twin: NaiveIndex, clock: SetClock, steps: Sequence[tuple[Step, nd.Document, float]]
) -> None:
    """Do the same with both, and check that every answer is equal."""
    learned = isinstance(twin, NaiveClassifierIndex)
    counts = not (twin.recipe.second_step or learned)
    for step, document, now in steps:
        clock.time = now
        assert_same_verdicts([index.add(document)], [twin.add(document)], counts=counts)
        alive = list(twin)
        if step.action == "remove" and alive:
            removed_id = alive[step.forward % len(alive)]
            index.remove(removed_id)
            twin.remove(removed_id)
        elif step.action == "query":
            assert id_similarities(index.query(document.text)) == twin.query(document.text)
        elif step.action == "nearest" and not (learned or twin.recipe.second_step or twin.recipe.search == "lsh"):
            assert id_similarities(index.query(document.text, k=3)) == twin.query(document.text, k=3)
        assert window_ids(index, twin) == list(twin)


@pytest.mark.parametrize("recipe", [*RECIPES, "sets", "facts, bent", "everything"])
@settings(max_examples=examples(15))
@given(STREAMS, st.sampled_from(WINDOWS), st.sampled_from(["originals", "everything"]))
def test_verdicts_on_streams_equal_those_of_the_twin(
    recipe: str, stream: list[Step], window: tuple[Any, str, int], against: str
) -> None:
    clock = SetClock()
    index, twin = index_and_twin(recipe, window=window[0], window_by=window[1], against=against, now=clock)
    follow_steps(index, twin, clock, timed_documents(stream, window[2]))


BATCHED = ["default", "words", "bits", "edit", "sets", "facts, bent", TIMED]


@pytest.mark.parametrize("recipe", BATCHED)
@settings(max_examples=examples(25))
@given(STREAMS, st.sampled_from(WINDOWS), st.sampled_from(["originals", "everything"]), st.data())
def test_batches_get_the_verdicts_of_single_additions(
    recipe: str, stream: list[Step], window: tuple[Any, str, int], against: str, data: st.DataObject
) -> None:
    clock = SetClock()
    index, twin = index_and_twin(recipe, window=window[0], window_by=window[1], against=against, now=clock)
    rest = timed_documents(stream, window[2], always=recipe == TIMED)
    with patch.object(second_step, "MAX_DOCUMENTS", data.draw(st.sampled_from([0, 3, 4096]), "remembered")):
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            batch, rest = rest[:size], rest[size:]
            clock.time = batch[-1][2]
            items = [document for _, document, _ in batch]
            assert_same_verdicts(index.add_many(items), twin.add_many(items), counts=recipe in BATCHED[:3])
            alive = list(twin)
            if batch[0][0].action == "remove" and alive:
                index.remove(alive[size % len(alive)])
                twin.remove(alive[size % len(alive)])
            assert window_ids(index, twin) == list(twin)


@settings(max_examples=examples(40))
@given(
    STREAMS,
    st.sampled_from(WINDOWS),
    st.sampled_from(["default", "words", "bits", "bigrams", "lsh", "minhash", TIMED]),
    st.sampled_from(["originals", "everything"]),
    st.data(),
)
def test_a_restart_changes_nothing(
    stream: list[Step], window: tuple[Any, str, int], recipe: str, against: str, data: st.DataObject
) -> None:
    clock = SetClock()
    choices: dict[str, Any] = {"window": window[0], "window_by": window[1], "against": against, "now": clock}
    rest, verdicts_by_id = timed_documents(stream, window[2], always=recipe == TIMED), dict[str, nd.Verdict]()
    # The store must be closed even if Hypothesis ends an example early.
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        choices["path"] = Path(folder) / "news.db"
        index, twin = index_and_twin(recipe, **choices)
        opened.callback(lambda: index.close())
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            batch, rest = rest[:size], rest[size:]
            clock.time = batch[-1][2]
            found = index.add_many(document for _, document, _ in batch)
            counts = recipe not in ("bigrams", TIMED)
            assert_same_verdicts(found, twin.add_many(document for _, document, _ in batch), counts=counts)
            verdicts_by_id |= {verdict.id: verdict for verdict in found}
            alive = list(twin)
            if batch[0][0].action == "remove" and alive:
                index.remove(alive[size % len(alive)])
                twin.remove(alive[size % len(alive)])
            before = index.statistics
            index.close()
            index = make_index(recipe, **choices)
            after = index.statistics
            for name in ("documents", "originals", "duplicates", "clock", "late", "ahead", "future", "undecidable"):
                assert getattr(after, name) == getattr(before, name), name
            assert window_ids(index, twin) == list(twin)
            assert {id: index.verdict_of(id) for id in verdicts_by_id} == verdicts_by_id
            assert all(index.text_of(item.id) == item.text for item in twin.window if item.id in twin)
            assert recipe == TIMED or id_similarities(index.query(batch[0][1].text)) == twin.query(batch[0][1].text)
