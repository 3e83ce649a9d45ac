"""The sample has the similarities that its labels claim, measured by the plain twin of the features."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations, pairwise
from typing import Any

import naive_features
import pytest
from paths import SAMPLE

MIN_SIMILAR = 0.75  # documents of one family reach this
MAX_DIFFERENT = 0.6  # documents of different families stay below this

Document = dict[str, Any]


def jaccard(a: Document, b: Document) -> float:
    either = len(a["features"] | b["features"])
    return len(a["features"] & b["features"]) / either if either else 0.0


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    rows = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    return [row | {"features": set(naive_features.features(row["text"], "words:5", "words"))} for row in rows]


@pytest.fixture(scope="module")
def families(documents: list[Document]) -> list[list[Document]]:
    grouped = defaultdict(list)
    for document in documents:
        grouped[document["family"]].append(document)
    return [members for name, members in grouped.items() if name]


def test_the_ids_are_consecutive(documents: list[Document]) -> None:
    assert [document["id"] for document in documents] == [f"nw-{n:04d}" for n in range(1, 200)]


def test_families_have_two_members_and_one_base(families: list[list[Document]]) -> None:
    for members in families:
        assert len(members) >= 2
        assert sum(member["kind"] in ("original", "template") for member in members) == 1
        assert len({member["language"] for member in members}) == 1


def test_members_of_a_family_are_as_similar_as_their_kinds_claim(families: list[list[Document]]) -> None:
    for a, b in (pair for members in families for pair in combinations(members, 2)):
        kinds = {a["kind"], b["kind"]}
        if "borderline" in kinds:
            assert MAX_DIFFERENT <= jaccard(a, b) < MIN_SIMILAR, (a["id"], b["id"])
        elif not kinds & {"chain", "contained"}:
            assert jaccard(a, b) >= MIN_SIMILAR, (a["id"], b["id"])


def test_chains_match_link_by_link_but_not_end_to_end(families: list[list[Document]]) -> None:
    chains = [members for members in families if any(member["kind"] == "chain" for member in members)]
    assert sorted(map(len, chains)) == [3, 4]
    for members in chains:
        assert all(jaccard(a, b) >= MIN_SIMILAR for a, b in pairwise(members))
        assert jaccard(members[0], members[-1]) < MAX_DIFFERENT


def test_documents_of_different_families_are_dissimilar(documents: list[Document]) -> None:
    for a, b in combinations(documents, 2):
        if not a["family"] or a["family"] != b["family"]:
            assert jaccard(a, b) < MAX_DIFFERENT, (a["id"], b["id"])
