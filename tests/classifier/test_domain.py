"""Where a classifier is at home: what lies outside of its training pairs is counted, and stops a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from saying import says
from trained import SETS, texts, trained

import neardup as nd
from neardup.classifier.domain import Domain, script_of
from neardup.errors import RecipeError

KNOWN = texts(60, seed=7)
WORDS = [row["text"] for row in KNOWN.rows]


def domain(**changes: Any) -> Domain:
    """What the training of ``trained(SETS)`` would note."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (100, len(trained(SETS).vector)))
    return Domain.of(x, WORDS, x[:, 0], np.arange(100) % 2 == 0)._replace(**changes)


@given(arrays(np.float64, (12, 3), elements=st.floats(0, 5) | st.just(float("nan"))))
def test_training_pairs_are_never_outside(x: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    known = Domain.of(x, ["some words"] * 12, np.ones(12), np.ones(12, np.bool_))
    assert not known.outside(x).any()
    assert not known.foreign(["some words"]).any()
    highest = np.nanmax(x, axis=0, initial=0)
    far = np.where(np.isnan(x).all(axis=0), 0, highest * 2 + 1)[np.newaxis]
    assert known.outside(far).all() == (~np.isnan(x).all(axis=0)).any()


def test_other_lengths_and_scripts_are_foreign() -> None:
    home = domain()
    text = WORDS[0]
    assert home.foreign([text, text * 50, text[:3], "نص عربي طويل بما يكفي ليقرأ في هذا"]).tolist() == [
        False,
        True,
        True,
        True,
    ]
    assert (script_of("ab ж"), script_of("12 ab"), script_of("2026!")) == ("LATIN", "LATIN", "")


def test_a_run_away_from_home_stops_unless_it_is_forced() -> None:
    away = replace(trained(SETS), domain=domain(lengths=np.array([1e6, 1e6, 2e6, 2e6])))
    with pytest.raises(RecipeError) as refused:
        nd.dedup(KNOWN.table, classifier=away)
    assert says(refused.value, away.fingerprint, "not at home", "100%", "50%", "force_domain=True")
    forced = nd.dedup(KNOWN.table, classifier=away, force_domain=True)
    plain = nd.dedup(KNOWN.table, classifier=trained(SETS))
    found = forced.summary["classifier"]
    assert found["outside"] == found["candidates"] > 0
    assert plain.summary["classifier"]["outside"] is None
    assert forced.pairs.to_arrow().equals(plain.pairs.to_arrow())
    with pytest.raises(RecipeError, match="force_domain"):
        nd.dedup(KNOWN.table, force_domain=True)
