"""What people are told of an exploration in words and characters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from explored import curve, examples, explored, lengths
from hypothesis import given
from hypothesis import strategies as st
from saying import says

from neardup.exploration import messages
from neardup.pages import numbers
from neardup.recipe import Recipe


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (0.01, "<.1"),
        (0.06, "0.1"),
        (6.04, "6"),
        (6.26, "6.3"),
        (12.4, "12"),
        (999.4, "999"),
        (999.6, "1k"),
        (1_250, "1.2k"),
        (34_210, "34k"),
        (999_499, "999k"),
        (999_999, "1M"),
        (2.5e9, "2.5G"),
    ],
)
def test_short_numbers(value: float, written: str) -> None:
    assert numbers.short(value) == written


@given(st.floats(0, 9e14))
def test_short_numbers_are_short_and_near(value: float) -> None:
    written = numbers.short(value)
    assert len(written) <= 4
    if written == "<.1":
        assert 0 < value < 0.05
        return
    number = float(written.rstrip("kMGT")) * 1000 ** "kMGT".find(written[-1]) * (1000 if written[-1] in "kMGT" else 1)
    number = float(written) if written[-1].isdigit() else number
    assert number == pytest.approx(value, rel=0.06, abs=0.051)


@pytest.mark.parametrize(
    ("part", "of", "written"),
    [
        (0, 0, "0 %"),
        (0, 9, "0 %"),
        (9, 9, "100 %"),
        (1, 3, "33 %"),
        (1, 40, "2.5 %"),
        (1, 2_000, "0.05 %"),
        (1_999, 2_000, "99.95 %"),
        (999_999, 1_000_000, "99.99 %"),
        (996, 1_000, "99.6 %"),
        (0.0975, 1, "9.8 %"),
        (0.09951, 1, "10 %"),
    ],
)
def test_shares(part: float, of: float, written: str) -> None:
    assert numbers.share(part, of) == written


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_only_nothing_is_0_and_only_all_is_100(part: int, of: int) -> None:
    written = numbers.share(min(part, of), of)
    assert (written == "0 %") == (part == 0)
    assert (written == "100 %") == (part >= of)


def test_sizes() -> None:
    sizes = [numbers.sized(size) for size in (0, 999, 1_000, 12_345, 999_600, 3.4e12)]
    assert sizes == ["0 bytes", "999 bytes", "1.0 kB", "12.3 kB", "1.0 MB", "3.4 TB"]


@given(st.lists(st.integers(0, 10**12), min_size=100, max_size=100), st.sampled_from([10, 20, 50]))
def test_sparklines(counts: list[int], cells: int) -> None:
    line = numbers.sparkline(counts, cells)
    sums = np.array(counts, object).reshape(cells, -1).sum(axis=1)
    assert len(line) == cells
    assert [one == " " for one in line] == [not total for total in sums]
    levels = [" ▁▂▃▄▅▆▇█".index(one) for one in line]
    # More pairs are never lower.
    assert [level for _, level in sorted(zip(sums.tolist(), levels, strict=True))] == sorted(levels)
    plain = numbers.sparkline(counts, cells, blocks=False)
    assert [" .:-=+*#@".index(one) for one in plain] == levels
    if max(sums) > 1:
        assert max(levels) == 8


def test_bars() -> None:
    assert [numbers.bar(part, 8) for part in (0, 0.001, 0.5, 1)] == ["", "█", "████", "████████"]
    assert numbers.bar(0.5, 8, blocks=False) == "####"


def test_what_was_compared() -> None:
    found = explored()
    assert says(messages.compared(found.sample), "38 of 40 documents", "703 pairs")
    every = replace(found.sample, documents=38)
    assert says(messages.compared(every), "all 38 documents", "703 pairs")


def test_the_advised_view_is_found_by_what_it_compares() -> None:
    found = explored()
    assert messages.advised_view(found) is found.views[2]
    assert messages.advised_view(explored(views=found.views[:2])) is None
    assert messages.advised_view(explored(views=found.views[4:])) is None


def test_what_would_be_dropped() -> None:
    assert says(messages.would_drop(explored()), "drop", "15 of 40 documents", "(38 %)")
    assert messages.would_drop(explored(curve=None)) == ""
    recipe = Recipe(name="explored", features="words:3", threshold=0.35)
    assert messages.would_drop(explored(curve=replace(curve(recipe), points=()))) == ""
    assert says(messages.would_drop(explored(curve=curve(recipe, complete=False))), "15 of 40 documents")


def test_an_incomplete_curve_says_why_and_the_way_out() -> None:
    told = messages.incomplete_curve(curve(Recipe(features="words:3"), complete=False))
    assert says(told, "1,000,000 pairs", "at 0.2", "raise lowest")


def test_valleys_in_short() -> None:
    views = explored().views
    assert [messages.valley_in_short(one) for one in views[:4]] == [".20-.50"] * 3 + [".20-.50?"]
    assert messages.valley_in_short(replace(views[0], valley=None)) == "none"


def test_bands_and_lengths() -> None:
    said = [messages.band_in_words(one) for one in examples()]
    assert says(said[0], "34 pairs", "0.03 to 0.07", "in the sample")
    assert says(said[-1], "0 pairs", "0.88 to 1 ", "in the sample")
    from_all = replace(examples()[0], origin="corpus", found=1)
    assert says(messages.band_in_words(from_all), "1 pair ", "0.03 to 0.07", "whole corpus", "sample has none")
    told = messages.lengths_in_words(lengths("words"))
    assert says(told, "median has 140 words", "90 % have 12 to 390", "longest has 812")


def test_commands_can_be_typed() -> None:
    assert messages.advised_command(explored().advice).startswith("neardup dedup 'it'\"'\"'s here.jsonl' --features")
    assert messages.advised_rule(explored().advice) == "words:3, jaccard >= 0.35"
