"""What a notebook shows of a result and of an exploration, in a real browser: drawn charts, and nothing fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import opened

import neardup as nd

TEXT = "The harbour board voted on Tuesday to widen the eastern channel at a cost of forty million crowns"
TEXTS = [TEXT, TEXT + ".", TEXT + ", it said", "A rose is a rose"]


def result() -> Any:
    return nd.dedup(TEXTS, threshold=0.8)


def explored() -> Any:
    return nd.explore(TEXTS, lengths=[1, 2])


def cell_of(shown: Any) -> str:
    """Return what a notebook makes of a value, as HTML: the richest of what it offers."""
    bundle: dict[str, Any] = {}
    if hasattr(shown, "_repr_mimebundle_"):
        found = shown._repr_mimebundle_()
        bundle = found[0] if isinstance(found, tuple) else found
    elif hasattr(shown, "_repr_html_"):
        bundle = {"text/html": shown._repr_html_()}
    for kind in ("text/html", "image/svg+xml"):
        if kind in bundle:
            return str(bundle[kind])
    raise AssertionError(f"a notebook shows none of {sorted(bundle)}")


SHOWN: dict[str, tuple[Callable[[], Any], str]] = {
    "result": (result, ""),
    "exploration": (explored, ""),
    "plot of a result": (lambda: result().plot_similarity(), "svg .mark-rect path"),
    "plot of nothing": (lambda: nd.dedup(["a rose", "a tulip"]).plot_similarity(), "svg text"),
    "plot of an exploration": (lambda: explored().plot_similarity(), "svg .mark-line path"),
    "changed plot": (lambda: result().plot_similarity().properties(title="mine", width=300), "svg .mark-rect path"),
}


def asked_by(path: Path, drawn: str = "") -> list[str]:
    """Open a page; return what is wrong with it, and what it asks for."""
    found: list[str] = []
    with opened(path, wrong=found) as page:
        page.wait_for_timeout(300)
        if drawn and not found:
            page.wait_for_selector(drawn)
    return found


@pytest.mark.parametrize("name", SHOWN)
def test_a_cell_asks_for_nothing(name: str, tmp_path: Path) -> None:
    make, drawn = SHOWN[name]
    path = tmp_path / "cell.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>cell</title><body>{cell_of(make())}", "utf-8")
    assert asked_by(path, drawn) == []


def test_a_plot_that_is_saved_as_a_page_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "plot.html"
    result().plot_similarity().save(str(path))
    assert asked_by(path, ".marks") == []
    result().plot_similarity().save(str(tmp_path / "plot.svg"))
    assert (tmp_path / "plot.svg").read_text("utf-8").startswith("<svg")


def test_a_renderer_that_was_chosen_is_kept() -> None:
    alt = pytest.importorskip("altair")
    with alt.renderers.enable("json"):
        assert "application/json" in result().plot_similarity()._repr_mimebundle_()[0]
