"""The index against its twin, verdict for verdict: batches, failed writes, removals, queries, restarts."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_window import Expected, NaiveClassifierIndex
from streaming import (
    NOON,
    RECIPES,
    TEXTS,
    TIMED,
    SetClock,
    assert_same_verdicts,
    examples,
    failing,
    id_similarities,
    index_and_twin,
    make_index,
    plain_verdict,
    small_epochs,
    window_ids,
)

import neardup as nd
from neardup.errors import StoreError
from neardup.stream import window_step
from neardup.stream.document import FLAGS


class Step(NamedTuple):
    """A document, and the action after its batch; times are in hundredths of a window."""

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
    st.sampled_from(["", "", "remove", "query", "nearest", "repeat", "restart"]),
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


def add(index: nd.Index, documents: Sequence[nd.Document], fails: str) -> list[nd.Verdict]:
    """Add documents, after a failed write if requested."""
    if fails:
        with failing(index.store, fails), pytest.raises((StoreError, KeyboardInterrupt)):
            index.add_many(documents if fails == "after" else documents[::-1])
        if fails == "after":
            # They were stored before the failure, so they have verdicts.
            return [verdict for verdict in (index.verdict_of(document.id) for document in documents) if verdict]
    return index.add_many(documents) if len(documents) > 1 else [index.add(documents[0])]


@pytest.mark.parametrize("recipe", [*RECIPES, "sets", "facts, bent", "everything", TIMED])
@settings(max_examples=examples(40))
@given(STREAMS, st.sampled_from(WINDOWS), st.sampled_from(["originals", "everything"]), st.data())
def test_an_index_gives_the_verdicts_of_its_twin(
    recipe: str, stream: list[Step], window: tuple[Any, str, int], against: str, data: st.DataObject
) -> None:
    clock, durable = SetClock(), data.draw(st.booleans(), "durable")
    choices: dict[str, Any] = {"window": window[0], "window_by": window[1], "against": against, "now": clock}
    rest = timed_documents(stream, window[2], always=recipe == TIMED)
    expected: list[Expected] = []
    verdicts: dict[str, nd.Verdict] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        contextlib.ExitStack() as opened,
    ):
        choices |= {"path": Path(folder, "news.db")} if durable else {}
        patch.setattr(window_step, "MAX_DOCUMENTS", data.draw(st.sampled_from([0, 3, 4096]), "remembered"))
        small_epochs(patch, data.draw(st.sampled_from([0, 1, 8]), "least size of a set with signatures"))
        index, twin = index_and_twin(recipe, **choices)
        opened.callback(lambda: index.close())
        one_step = not (twin.recipe.second_step or isinstance(twin, NaiveClassifierIndex))
        while rest:
            size = data.draw(st.sampled_from([1, 1, 2, 5, 25]), "size")
            batch, rest = rest[:size], rest[size:]
            action, clock.time, items = batch[-1][0].action, batch[-1][2], [document for _, document, _ in batch]
            checked = index.check([document for _, document, _ in batch + rest[:4]])[0]
            found = add(
                index, items, data.draw(st.sampled_from(["", "", "write", "commit", "after"])) if durable else ""
            )
            batch_expected = twin.add_many(items)
            if not durable:
                # An index without a store forgets, and what it forgets when is its own affair.
                batch_expected = [
                    actual if actual.flag == expected.flag == "late" else expected
                    for actual, expected in zip(map(plain_verdict, found), batch_expected, strict=True)
                ]
            else:
                assert plain_verdict(checked) == plain_verdict(found[0])
            assert_same_verdicts(found, batch_expected, counts=one_step)
            expected += batch_expected
            verdicts |= {verdict.id: verdict for verdict in found}
            inside = list(twin)
            if action == "remove" and inside:
                index.remove(inside[size % len(inside)])
                twin.remove(inside[size % len(inside)])
            elif action == "repeat" and inside:
                text = next(item.text for item in twin.window if item.id == inside[0])
                known = index.add(nd.Document(inside[0], text, items[0].timestamp))
                assert known == verdicts[inside[0]]._replace(known=True)
            elif action == "query" and recipe != TIMED:
                assert id_similarities(index.query(items[0].text)) == twin.query(items[0].text)
            elif action == "nearest" and one_step and recipe != "lsh":
                assert id_similarities(index.query(items[0].text, k=3)) == twin.query(items[0].text, k=3)
            if durable and action == "restart":
                before = index.statistics
                index.close()
                index = make_index(recipe, **choices)
                assert index.statistics.clock == before.clock
                assert all(index.text_of(item.id) == item.text for item in twin.window if item.id in twin)
            assert window_ids(index, twin) == list(twin)
            assert all(index.verdict_of(name) == verdicts[name] for name in (verdicts if durable else index))
        statistics, flags = index.statistics, Counter(verdict.flag for verdict in expected)
        assert {flag: getattr(statistics, flag) for flag in FLAGS} == {flag: flags[flag] for flag in FLAGS}
        duplicates = sum(verdict.kind != "original" for verdict in expected)
        assert (statistics.documents, statistics.duplicates) == (len(expected), duplicates)


FACTS = st.sampled_from(
    [
        "Profit of Acme rose to 1,000 crowns",
        "Profit of Acme rose to 1000 crowns",
        "Profit of Acme rose to ١٠٠٠ crowns",
        "profit rose to CROWNS",
        "اسعار النفط ارتفعت 17",
        "اسعار النفط ارتفعت",
        "naïve café",
        "naive cafe\u0301",
        "\x00",
    ]
)


@pytest.mark.parametrize("recipe", ["default", "edit", "sets, bent", "weights"])
@settings(max_examples=examples(40))
@given(st.lists(st.one_of(TEXTS, FACTS), max_size=30))
def test_an_endless_window_equals_dedup(recipe: str, texts: list[str]) -> None:
    index = make_index(recipe, window=None)
    decision: Any = {"classifier": index.classifier} if index.classifier else {"recipe": index.recipe}
    found = nd.dedup(texts, **decision, keep="first", threads=1)
    verdicts = index.add_many(nd.Document(str(i), text) for i, text in enumerate(texts))
    dropped = {(verdict.id, verdict.of, verdict.similarity) for verdict in verdicts if verdict.is_duplicate}
    assert dropped == {(str(drop.id), str(drop.keeper), drop.similarity) for drop in found.dropped}
