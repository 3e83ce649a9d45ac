"""The sample says what its labels say; measured here with nothing but the standard library."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from places import SAMPLE

FIELDS = ["id", "timestamp", "source", "language", "title", "text", "family", "kind"]
LANGUAGES = {"ar", "de", "en", "es", "hi", "ja", "ko", "ru", "th", "tr", "vi", "zh"}
SINGLE_KINDS = {"boilerplate", "empty", "emoji", "punctuation", "short"}
RESENT_KINDS = {"added", "copy", "correction", "cut", "dateline", "format", "normal form", "width"}
FAMILY_KINDS = RESENT_KINDS | {"borderline", "chain", "contained"}
BASE_KINDS = {"original", "template"}

SAME = 0.75  # documents of one family reach this
OTHER = 0.6  # documents of no common family stay below this

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


def is_word_alone(character: str) -> bool:
    """Thai, kana and ideographs have no spaces between words: each character is a token."""
    return any(
        low <= character <= high
        for low, high in [
            ("\u0e00", "\u0e7f"),
            ("\u3040", "\u30ff"),
            ("\u3400", "\u4dbf"),
            ("\u4e00", "\u9fff"),
        ]
    )


def tokens_of(text: str) -> list[str]:
    spaced = []
    for character in unicodedata.normalize("NFKC", text).casefold():
        if unicodedata.category(character)[0] not in "LMN":
            spaced.append(" ")
        else:
            spaced.append(f" {character} " if is_word_alone(character) else character)
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


def read() -> list[Document]:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    return [Document(**(fields := json.loads(line)), features=features_of(fields["text"])) for line in lines]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return read()


@pytest.fixture(scope="module")
def families(documents: list[Document]) -> dict[str, list[Document]]:
    grouped = defaultdict(list)
    for document in documents:
        if document.family:
            grouped[document.family].append(document)
    return dict(grouped)


def test_every_line_is_one_object_with_the_same_fields() -> None:
    raw = SAMPLE.read_bytes()
    assert raw.endswith(b"}\n")
    assert b"\r" not in raw
    for line in raw.decode("utf-8").removesuffix("\n").split("\n"):
        fields = json.loads(line)
        assert list(fields) == FIELDS
        assert all(isinstance(value, str) for value in fields.values())


def test_size_and_ids(documents: list[Document]) -> None:
    assert 150 <= len(documents) <= 200
    assert [document.id for document in documents] == [f"nw-{n:04d}" for n in range(1, len(documents) + 1)]


def test_timestamps_rise_over_three_days(documents: list[Document]) -> None:
    times = [datetime.fromisoformat(document.timestamp) for document in documents]
    assert all(time.tzinfo is not None for time in times)
    assert times == sorted(times)
    assert len({time.utcoffset() for time in times}) >= 5
    assert len({time.astimezone(UTC).date() for time in times}) == 3


def test_languages(documents: list[Document]) -> None:
    assert {document.language for document in documents} == LANGUAGES | {"und"}
    most, _ = Counter(document.language for document in documents).most_common(1)[0]
    assert most == "en"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_has_a_near_duplicate_pair_and_a_single(documents: list[Document], language: str) -> None:
    own = [document for document in documents if document.language == language]
    assert any(
        a.family == b.family != "" and a.text != b.text and jaccard(a, b) >= SAME
        for a, b in itertools.combinations(own, 2)
    )
    assert any(not document.family and document.kind == "original" for document in own)


def test_kinds(documents: list[Document]) -> None:
    assert {document.kind for document in documents} == SINGLE_KINDS | FAMILY_KINDS | BASE_KINDS
    assert all(not document.family for document in documents if document.kind in SINGLE_KINDS)
    assert all(document.family for document in documents if document.kind in FAMILY_KINDS)


def test_families_have_two_members_and_one_base(families: dict[str, list[Document]]) -> None:
    for name, members in families.items():
        assert len(members) >= 2, name
        assert sum(member.kind in BASE_KINDS for member in members) == 1, name
        assert len({member.language for member in members}) == 1, name


def test_members_score_as_their_kinds_say(families: dict[str, list[Document]]) -> None:
    for members in families.values():
        for a, b in itertools.combinations(members, 2):
            kinds = {a.kind, b.kind}
            if kinds & {"chain", "contained"}:
                continue  # measured below
            if "borderline" in kinds:
                assert OTHER <= jaccard(a, b) < SAME, (a.id, b.id)
            else:
                assert jaccard(a, b) >= SAME, (a.id, b.id)


def test_chains_hold_link_by_link_but_not_end_to_end(families: dict[str, list[Document]]) -> None:
    chains = [members for members in families.values() if any(m.kind == "chain" for m in members)]
    assert sorted(len(members) for members in chains) == [3, 4]
    for members in chains:
        assert all(jaccard(a, b) >= SAME for a, b in itertools.pairwise(members))
        assert jaccard(members[0], members[-1]) < OTHER


def test_contained_items_lie_whole_in_a_longer_one(families: dict[str, list[Document]]) -> None:
    seen = 0
    for members in families.values():
        parts = [member for member in members if member.kind == "contained"]
        for part in parts:
            (whole,) = (member for member in members if member.kind == "original")
            assert part.text in whole.text
            assert part.features < whole.features
            assert jaccard(part, whole) < OTHER
            seen += 1
        assert all(jaccard(a, b) == 0 for a, b in itertools.combinations(parts, 2))
    assert seen == 4


def test_documents_of_no_common_family_stay_apart(documents: list[Document]) -> None:
    for a, b in itertools.combinations(documents, 2):
        if not a.family or a.family != b.family:
            assert jaccard(a, b) < OTHER, (a.id, b.id)


def test_few_pairs_are_doubtful(documents: list[Document]) -> None:
    scores = [jaccard(a, b) for a, b in itertools.combinations(documents, 2)]
    assert 2 <= sum(OTHER <= score < SAME for score in scores) <= 5


@pytest.mark.parametrize(("kind", "at_least"), [("boilerplate", 0.3), ("template", 0.45)])
def test_some_pairs_that_are_no_duplicates_come_close(documents: list[Document], kind: str, at_least: float) -> None:
    own = [document for document in documents if document.kind == kind]
    assert max(jaccard(a, b) for a, b in itertools.combinations(own, 2)) >= at_least


def test_templates_of_one_form_differ_in_their_facts(documents: list[Document]) -> None:
    templates = [document for document in documents if document.kind == "template"]
    for document in templates:
        others = [other for other in templates if other is not document]
        assert max(jaccard(document, other) for other in others) > 0, document.id
        assert document.text not in {other.text for other in others}


def test_copies_repeat_an_earlier_text(families: dict[str, list[Document]]) -> None:
    for members in families.values():
        for place, member in enumerate(members):
            if member.kind == "copy":
                assert member.text in {earlier.text for earlier in members[:place]}, member.id


@pytest.mark.parametrize(
    ("kind", "at_least"), [("format", 0.85), ("normal form", 1.0), ("width", 1.0), ("correction", SAME)]
)
def test_changed_copies_differ_in_text_but_little_in_features(
    families: dict[str, list[Document]], kind: str, at_least: float
) -> None:
    for members in families.values():
        for place, member in enumerate(members):
            if member.kind == kind:
                earlier = members[:place]
                assert member.text not in {other.text for other in earlier}, member.id
                assert max(jaccard(member, other) for other in earlier) >= at_least, member.id


def test_normal_forms_and_widths_are_what_they_claim(documents: list[Document]) -> None:
    for document in documents:
        composed = unicodedata.is_normalized("NFC", document.text)
        assert composed == (document.kind != "normal form"), document.id
        if document.kind == "normal form":
            assert unicodedata.is_normalized("NFD", document.text)
        if document.kind == "width":
            assert any(unicodedata.east_asian_width(character) in "FH" for character in document.text)


def test_texts_without_words(documents: list[Document]) -> None:
    wordless = [document for document in documents if not document.features]
    assert Counter(document.kind for document in wordless) == {"empty": 2, "emoji": 1, "punctuation": 1}
    assert all((document.text == "") == (document.kind == "empty") for document in wordless)


def test_lengths(documents: list[Document]) -> None:
    lengths = [len(tokens_of(document.text)) for document in documents]
    assert lengths.count(1) == 1
    assert sum(40 <= length <= 250 for length in lengths) >= 0.85 * len(lengths)
