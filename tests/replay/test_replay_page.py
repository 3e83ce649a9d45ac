"""The page of a replay, and the runs by size and length behind two of its curves."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from neardup.errors import OutputError
from neardup.recipe import load
from neardup.replay.order import Item
from neardup.replay.page import page_content, replay_page
from neardup.replay.run import Hour, Totals
from neardup.replay.settings import Settings
from neardup.replay.sizes import Length, Measured, Sample, SizeRun, measured, sizes_of

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


class Page(HTMLParser):
    """What a browser would find: elements with attributes, the scripts, the text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.text = ""
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            kind, held = self.scripts[-1]
            self.scripts[-1] = kind, held + data
        elif self._inside != "style":
            self.text += data

    @property
    def charts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(next(text for kind, text in self.scripts if kind == "application/json"))
        return found


def content(hours: int = 3, *, window: str = "2h", **changes: Any) -> dict[str, Any]:
    settings = Settings(load("ddd").changed(name=HOSTILE), window).as_dict() | {"inputs": [HOSTILE], "batch": 1}
    told = [Hour(400_000 + 5 * at, 10, 8, 2, 30, 4000 * at, 120.0 * at, 900.0) for at in range(hours)]
    totals = Totals(30, 1, 5, first=0, last=10**15, cpu=10**6, wall=2 * 10**6)
    runs = (SizeRun(500, 90.0, 80.0, 300.0), SizeRun(1000, 95.0, 85.0, 400.0))
    lengths = (Length(512, 724, 600.0, 40, 70.0, 200.0),)
    made = page_content(settings | changes, told, totals.as_dict(10), Measured(runs, lengths))
    return made if hours else made | {"totals": Totals().as_dict(10), "sizes": [], "lengths": []}


def test_a_page_asks_the_network_for_nothing() -> None:
    page = Page(replay_page(content()))
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form")
        assert not attributes.keys() & {"src", "srcset", "action", "onclick", "onerror", "onload"}
        assert (attributes.get("href") or "data:,") == "data:,"
    policy = next(a["content"] or "" for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    code = [text for kind, text in page.scripts if kind is None]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in code]
    assert hashes == re.findall(r"'sha256-([^']+)'", policy)
    assert len(page.scripts) == 3
    assert page.text.count(HOSTILE) == 2


def values_of(chart: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [layer["data"]["values"] for layer in chart["layer"] if "data" in layer] + [
        data for data in [chart.get("data", {}).get("values")] if data
    ]


def test_every_curve_and_the_papers_figures() -> None:
    page = Page(replay_page(content()))
    charts = page.charts
    assert set(charts) == {"size", "length", "hour", "held", "items", "memory"}
    assert {a.get("id") for _, a in page.elements if a.get("class") == "chart"} == set(charts)
    size, length = json.dumps(charts["size"]), json.dumps(charts["length"])
    assert '{"documents": 8000, "mean": 1200000, "says": "paper: 1.2 s"}' in size
    assert '{"size": 5000, "mean": 200000, "says": "paper: below 0.2 s"}' in length
    hours = [row for values in values_of(charts["memory"]) for row in values if "mb" in row]
    assert [row["mb"] for row in hours[:3]] == [0.0, 0.004, 0.008]
    bars = values_of(charts["items"])[0]
    assert [(bar["kind"], bar["low"], bar["high"]) for bar in bars[:2]] == [("originals", 0, 8), ("duplicates", 8, 10)]
    assert "P · t_p is 30,000 times t_check" in page.text


@pytest.mark.parametrize(
    ("window", "full"),
    [
        ("2h", "2015-08-19T18:00Z"),
        ("90m", "2015-08-19T17:30Z"),
        ("7d", None),
        ("8000 documents", None),
        ("endless", None),
    ],
)
def test_where_the_window_is_full(window: str, full: str | None) -> None:
    page = Page(replay_page(content(window=window)))
    rules = [values for values in values_of(page.charts["memory"]) if "mb" not in values[0]]
    assert rules == ([[{"hour": full}]] if full else [])
    assert ("dashed: the window is full" in page.text) == (full is not None)


def test_a_page_of_nothing() -> None:
    page = Page(replay_page(content(0)))
    assert page.charts == {}
    assert "No document arrived." in page.text


def test_a_page_needs_packages_that_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    made = content()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OutputError, match=r'pip install "neardup\[report\]"'):
        replay_page(made)


def test_sizes_double_up_to_what_there_is() -> None:
    assert sizes_of(0) == []
    assert sizes_of(7) == [7]
    assert sizes_of(500) == sizes_of(999) == [500]
    assert sizes_of(8000) == [500, 1000, 2000, 4000, 8000]
    assert sizes_of(10**9)[-2:] == [16_000, 32_000]


def test_runs_start_from_nothing_and_keep_everything() -> None:
    words = random.Random(3)
    texts = [" ".join(words.choices("abcdefghij", k=3 + at % 90)) for at in range(1000)]
    items = [Item(at, str(at), text, at * 10**9, len(text)) for at, text in enumerate(texts)]
    sample = Sample()
    sample.see(items[:600], [])
    sample.see(items[600:], [])
    made = []

    def fresh() -> Any:
        made.append(Settings(load("ddd")).endless())
        return made[-1]

    found = measured(sample.items, fresh, lambda stage, done, total: None)
    assert [run.documents for run in found.sizes] == [500, 1000]
    assert [index.statistics.arrived for index in made] == [500, 1000]
    assert [index.statistics.held for index in made] == [500, 1000]
    assert sum(length.documents for length in found.lengths) <= 1000
    for length in found.lengths:
        inside = [size for size in map(len, texts) if length.low <= size < length.high]
        assert length.documents == len(inside) >= 5
        assert length.size == pytest.approx(sum(inside) / len(inside))
