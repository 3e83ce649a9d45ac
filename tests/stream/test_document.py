"""Documents and verdicts: accepted times, refused fields, and their messages."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest
from sentences import says

from neardup.classifier.evidence import Contribution
from neardup.errors import InputError
from neardup.stream.document import Document, Verdict


@pytest.mark.parametrize(
    ("timestamp", "value"),
    [
        (True, "True"),
        (math.nan, "nan"),
        pytest.param(10**5000, "of int", id="too long to write"),
        ("", "''"),
        ("yesterday", "'yesterday'"),
        ("9" * 5000, "'99999"),
        ("\ud800", r"'\ud800'"),
        ([1], "[1]"),
        (pd.NaT, "NaT"),
    ],
)
def test_an_invalid_timestamp_is_refused_in_one_sentence(timestamp: Any, value: str) -> None:
    with pytest.raises(InputError, match="ISO 8601") as caught:
        Document("a", "text", timestamp)
    sentence = str(caught.value)
    assert f"timestamp {value}" in sentence
    assert all(hint in sentence for hint in ("datetime", "Unix", "None"))
    assert "\n" not in sentence
    assert len(sentence) < 320
    assert sentence.isascii()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((1, "text"), ("id 1", "type int", "id is a str")),
        (("a", None), ("text None", "type NoneType", "text is a str")),
        (("a", b"text"), ("text b'text'", "type bytes")),
        (("a", "text", None, 3), ("origin 3", "type int")),
        (("a\ud800", "text"), (r"id 'a\ud800'", r"lone surrogate '\ud800'", "at character 1,", "UTF-8")),
        (("a", "b" * 1000 + "\udc80"), (f"text '{'b' * 60}'", r"lone surrogate '\udc80'", "at character 1000")),
        (("a", "text", None, "\udfff"), ("origin", "lone surrogate")),
        (("a", "text", None, "", None), ("title None", "type NoneType", "title is a str")),
        (("a", "text", None, "", "\udfff"), ("title", "lone surrogate")),
    ],
)
def test_fields_must_be_texts_that_utf8_can_hold(fields: tuple[Any, ...], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        Document(*fields)
    assert says(caught.value, *words)
    assert str(caught.value).isascii()


def test_verdicts_convert_to_json() -> None:
    near = Verdict("b", "near", "a", 0.75, 1.5, "", (3, 4, 3))
    assert near.is_duplicate
    assert Verdict("b", "exact", "a", 1.0, 1.5, "", (3, 3, 3)).is_duplicate
    original = Verdict("a", "original", None, None, 0.0, "late", None)
    assert not original.is_duplicate
    pushes = Contribution("jaccard(words:4)", 0.5, 1.25), Contribution("title", None, -0.25)
    learned = Verdict("b", "near", "a", 0.9, 1.5, "", (9, 10, 10), 0.75, pushes)
    assert (near.evidence, learned.evidence) == ("", "jaccard(words:4) +1.25, title -0.25")
    for verdict in (near, original, learned):
        fields = verdict.as_dict()
        assert json.loads(json.dumps(fields)) == fields
        assert fields.pop("evidence") == verdict.evidence
        counts = fields.pop("counts")
        measures = tuple(
            Contribution(one["measure"], one["value"], one["contribution"]) for one in fields.pop("measures")
        )
        assert Verdict(**fields, counts=None if counts is None else tuple(counts), measures=measures) == verdict
