"""The sample has the similarities that its labels claim, measured with only the standard library."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections import defaultdict
from typing import NamedTuple

import pytest
from paths import SAMPLE

BASE_KINDS = {"original", "template"}

MIN_SIMILAR = 0.75  # documents of one family reach this
MAX_DIFFERENT = 0.6  # documents of different families stay below this

Features = frozenset[tuple[str, ...]]


class Document(NamedTuple):
    """One line of the sample and its word 5-grams."""

    id: str
    timestamp: str
    source: str
    language: str
    title: str
    text: str
    family: str
    kind: str
    features: Features


def is_single_token(character: str) -> bool:
    """Thai, kana and ideographs have no spaces between words: each character is a token."""
    return any(
        low <= character <= high
        for low, high in [("\u0e00", "\u0e7f"), ("\u3040", "\u30ff"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff")]
    )


def tokens_of(text: str) -> list[str]:
    spaced = []
    for character in unicodedata.normalize("NFKC", text).casefold():
        if unicodedata.category(character)[0] not in "LMN":
            spaced.append(" ")
        else:
            spaced.append(f" {character} " if is_single_token(character) else character)
    return "".join(spaced).split()


def features_of(text: str, width: int = 5) -> Features:
    """Word 5-grams; a text of one to four words is one feature, a text without words has none."""
    tokens = tokens_of(text)
    if 0 < len(tokens) < width:
        return frozenset({tuple(tokens)})
    return frozenset(tuple(tokens[i : i + width]) for i in range(len(tokens) - width + 1))


def jaccard(a: Document, b: Document) -> float:
    either = len(a.features | b.features)
    return len(a.features & b.features) / either if either else 0.0


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    return [Document(**(fields := json.loads(line)), features=features_of(fields["text"])) for line in lines]


@pytest.fixture(scope="module")
def families(documents: list[Document]) -> dict[str, list[Document]]:
    grouped = defaultdict(list)
    for document in documents:
        if document.family:
            grouped[document.family].append(document)
    return dict(grouped)


def test_the_ids_are_consecutive(documents: list[Document]) -> None:
    assert 150 <= len(documents) <= 200
    assert [document.id for document in documents] == [f"nw-{n:04d}" for n in range(1, len(documents) + 1)]


def test_families_have_two_members_and_one_base(families: dict[str, list[Document]]) -> None:
    for name, members in families.items():
        assert len(members) >= 2, name
        assert sum(member.kind in BASE_KINDS for member in members) == 1, name
        assert len({member.language for member in members}) == 1, name


def test_members_of_a_family_are_as_similar_as_their_kinds_claim(families: dict[str, list[Document]]) -> None:
    for members in families.values():
        for a, b in itertools.combinations(members, 2):
            kinds = {a.kind, b.kind}
            if kinds & {"chain", "contained"}:
                continue  # measured below
            if "borderline" in kinds:
                assert MAX_DIFFERENT <= jaccard(a, b) < MIN_SIMILAR, (a.id, b.id)
            else:
                assert jaccard(a, b) >= MIN_SIMILAR, (a.id, b.id)


def test_chains_match_link_by_link_but_not_end_to_end(families: dict[str, list[Document]]) -> None:
    chains = [members for members in families.values() if any(m.kind == "chain" for m in members)]
    assert sorted(len(members) for members in chains) == [3, 4]
    for members in chains:
        assert all(jaccard(a, b) >= MIN_SIMILAR for a, b in itertools.pairwise(members))
        assert jaccard(members[0], members[-1]) < MAX_DIFFERENT


def test_documents_of_different_families_are_dissimilar(documents: list[Document]) -> None:
    for a, b in itertools.combinations(documents, 2):
        if not a.family or a.family != b.family:
            assert jaccard(a, b) < MAX_DIFFERENT, (a.id, b.id)
