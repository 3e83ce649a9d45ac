"""Templates: what is constant, what fills the slots, and that edited copies are none."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.exploration.text_templates import Pattern, find_pattern
from neardup.text.normalize import tokens

PLACES = ("Leeds", "York", "Kings Lynn", "Hull", "Bath", "Ely", "Milton Keynes", "Wells")


def words_of(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def advert(place: str, role: str = "Care Assistants") -> str:
    return (
        f"Bright Harbour is looking for {role} in {place}. You look after people in their own homes, help them to wash "
        f"and dress, and keep them company. We pay your way to {place}, train you and give you time for each visit. "
        "Call us today or send us your letter; a driving licence is needed."
    )


def holds(pattern: Pattern, texts: Sequence[str]) -> None:
    """Hold a pattern against its texts."""
    members = [texts[at] for at in pattern.members]
    assert pattern.members[0] == 0
    assert "".join(text for text, _ in pattern.pieces) == texts[0][:20_000]
    assert [slot for _, slot in pattern.pieces if slot >= 0] == list(range(len(pattern.slots)))
    constant = [word for text, slot in pattern.pieces if slot < 0 for word in words_of(text)]
    assert len(constant) == pattern.constant
    for text in members:
        left = iter(words_of(text))
        assert all(word in left for word in constant)
    for number, slot in enumerate(pattern.slots):
        (own,) = [text for text, at in pattern.pieces if at == number]
        listed = [filler for filler, _ in slot.fillers]
        assert len(set(map(str.casefold, listed))) == len(listed) <= slot.distinct
        assert own in listed or slot.distinct > len(listed) or own.casefold() in map(str.casefold, listed)
        assert all(any(filler in text for text in members) for filler in listed)
        if slot.distinct == len(listed):
            assert sum(times for _, times in slot.fillers) == len(members)
    assert pattern.share == pytest.approx(np.mean([pattern.constant / len(words_of(text)) for text in members]))


def test_adverts_that_differ_in_the_place_are_a_template() -> None:
    texts = [advert(place) for place in PLACES]
    pattern = find_pattern(texts)
    assert pattern is not None
    holds(pattern, texts)
    assert pattern.members == tuple(range(8))
    for slot in pattern.slots:
        assert slot.distinct == 8
        assert sorted(slot.fillers) == sorted((place, 1) for place in PLACES)
    assert pattern.pieces[:2] == (("Bright Harbour is looking for Care Assistants in ", -1), ("Leeds", 0))
    assert (pattern.pieces[2][0][:17], pattern.constant) == (". You look after ", len(words_of(texts[0])) - 2)
    # One text that lacks what all others have is left out.
    texts[3] = "Bright Harbour is looking for you. " + texts[3][60:180] + " And now something else altogether follows."
    pattern = find_pattern(texts)
    assert pattern is not None
    holds(pattern, texts)
    assert pattern.members == (0, 1, 2, 4, 5, 6, 7)


def edited(text: str, drawn: random.Random, edits: int, places: range) -> str:
    words = text.split()
    for _ in range(edits):
        at, new = drawn.choice(places), f"new{drawn.randrange(1000)}"
        words[at : at + drawn.randrange(2)] = drawn.choice(([new], [f"{new} of it"], []))
    return " ".join(words)


@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(4, 10), st.integers(1, 3))
def test_edited_copies_are_no_template(seed: int, count: int, edits: int) -> None:
    drawn = random.Random(seed)
    base = " ".join(f"w{drawn.randrange(300)}" for _ in range(120))
    # Each copy is edited in a stretch of its own: four that differ in one place have a slot there.
    stretch = 120 // count
    stretches = [range(copy * stretch + 3, (copy + 1) * stretch - 3) for copy in range(count)]
    assert find_pattern([edited(base, drawn, edits, places) for places in stretches]) is None


def test_few_texts_equal_texts_and_texts_that_share_nothing_are_no_template() -> None:
    few, alike = [advert(place) for place in PLACES[:3]], [advert("Leeds", role) for role in PLACES[:2] * 3]
    for texts in ([], ["one"] * 5, [""] * 4, few, alike, [f"{place} " * 20 for place in PLACES]):
        assert find_pattern(texts) is None


@pytest.mark.parametrize(
    ("frame", "fillers"),
    [
        (
            "استقبل أمير منطقة {} في مكتبه أمس عددا من المواطنين الذين قدموا للسلام عليه، ورحب بهم في {} واستمع إليهم",
            ("الرياض", "حائل", "تبوك", "نجران", "جازان"),
        ),
        ("{}市今日天气晴，最高气温二十度，请市民注意防晒，{}气象台。", ("北京", "上海", "广州", "成都", "西安")),
        ("<script>alert('{}')</script> & \u202e all the same words are in each of these texts \u0000 {} end", PLACES),
    ],
)
def test_templates_are_found_in_all_scripts(frame: str, fillers: Sequence[str]) -> None:
    texts = [frame.format(*[filler] * frame.count("{}")) for filler in fillers]
    pattern = find_pattern(texts)
    assert pattern is not None
    holds(pattern, texts)
    assert len(pattern.slots) == frame.count("{}")


def test_accents_and_common_words_do_not_open_a_slot() -> None:
    spelled = ("café", "cafe", "çafe", "cäfe", "cafë")
    frame = "بدأت المديرية العامة للجوازات العمل في جميع المراكز بعد الإجازة {} الكريم بتمديد الفترة حتى نهاية الشهر"
    assert find_pattern([frame.format(one) for one in spelled]) is None
    # Without the words that most texts fill in, they say three things.
    assert find_pattern([frame.format(one) for one in ("x y", "x", "y", "x y z", "x w", "y w")]) is None
    assert find_pattern([frame.format(f"للأمر رقم {one}") for one in range(5)]) is not None


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=30).map(" ".join), min_size=1, max_size=7),
    st.sampled_from(["", "one two three four five six seven eight nine ten eleven twelve"]),
)
def test_a_template_fits_its_texts(ends: list[str], frame: str) -> None:
    texts = [f"{frame} {end} {frame}" for end in ends]
    pattern = find_pattern(texts)
    if pattern is not None:
        holds(pattern, texts)
