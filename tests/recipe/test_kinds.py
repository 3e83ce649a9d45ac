"""The short texts of recipes: what they say, that they are formatted as they are read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.errors import RecipeError
from neardup.recipe.kinds import FEATURE_KINDS, SIGNATURE_KINDS, Clip, Features, Number, Signature
from neardup.recipe.second_step import SecondStep


def numbers_of(kinds: tuple[Number, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*(st.integers(number.low, number.high) for number in kinds))


@st.composite
def feature_texts(draw: st.DrawFn) -> tuple[str, tuple[int, ...], set[str], str]:
    """Features: the kind, its numbers, its flags, and the text of them with the flags in any order."""
    kind = draw(st.sampled_from(sorted(FEATURE_KINDS)))
    numbers = draw(numbers_of(FEATURE_KINDS[kind].numbers))
    flags = draw(st.lists(st.sampled_from(FEATURE_KINDS[kind].flags), unique=True))
    if kind == "checksum":
        flags = flags[:1] or ["sha1"]
    return kind, numbers, set(flags), ":".join([kind, *map(str, numbers), *flags])


@given(feature_texts())
def test_features_are_parsed_and_formatted(drawn: tuple[str, tuple[int, ...], set[str], str]) -> None:
    kind, numbers, flags, text = drawn
    features = Features.parse(f" {text} ")
    assert (features.kind, features.numbers, set(features.flags)) == (kind, numbers, flags)
    assert Features.parse(str(features)) == features
    assert sorted(str(features).split(":")) == sorted(text.split(":"))
    assert features.multiset == ("multiset" in flags)
    assert features.positional == ("positional" in flags)


@given(data=st.data())
def test_signatures_are_parsed_and_formatted(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(SIGNATURE_KINDS)))
    numbers = data.draw(numbers_of(SIGNATURE_KINDS[kind].numbers))
    text = ":".join([kind, *map(str, numbers)])
    signature = Signature.parse(text)
    assert signature == (kind, numbers)
    assert str(signature) == text


def test_bounds_of_clips_are_counts_or_shares() -> None:
    assert Clip.parse("df:2:0.5") == ("df", Fraction(2), Fraction(1, 2), (False, True))
    assert Clip.parse("df:0.01:1000") == ("df", Fraction(1, 100), Fraction(1000), (True, False))
    assert Clip.parse("df:1:1") == ("df", Fraction(1), Fraction(1), (False, False))
    assert Clip.parse("df:1.0:1.0") == ("df", Fraction(1), Fraction(1), (True, True))
    assert Clip.parse("idf:0.2:0.8") == ("idf", Fraction(1, 5), Fraction(4, 5), (True, True))
    assert Clip.parse("idf:0:1") == ("idf", Fraction(0), Fraction(1), (True, True))


@pytest.mark.parametrize(
    ("text", "step", "again"),
    [
        ("edit >= 0.9", ("edit", "", 0.9), "edit >= 0.9"),
        (" edit>=.95 ", ("edit", "", 0.95), "edit >= 0.95"),
        ("edit >= 1", ("edit", "", 1.0), "edit >= 1"),
        ("semantic >= 0.8", ("semantic", "", 0.8), "semantic >= 0.8"),
        ("jaccard(words:2) >= 0.6", ("jaccard", "words:2", 0.6), "jaccard(words:2) >= 0.6"),
        ("overlap (qgrams) >= 0.7", ("overlap", "qgrams:4", 0.7), "overlap(qgrams:4) >= 0.7"),
        ("dice(words) >= 0.123456789", ("dice", "words:4", 0.123456789), "dice(words:4) >= 0.123456789"),
        ("edit >= 0.3333333333333333", ("edit", "", 1 / 3), "edit >= 0.3333333333333333"),
        ("edit >= 0.00001", ("edit", "", 0.00001), "edit >= 0.00001"),
    ],
)
def test_second_steps_are_parsed_and_formatted(text: str, step: tuple[str, str, float], again: str) -> None:
    parsed = SecondStep.parse(text)
    assert parsed[:3] == step
    assert str(parsed) == again
    assert SecondStep.parse(again) == parsed


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (Features.parse, "letters:3", ("features 'letters:3'", "not known", "words:4, qgrams:4, skips:3:1")),
        (Features.parse, "words:multiset:3", ("features 'words:multiset:3'", "not known")),
        (Features.parse, "words:0", ("features 'words:0'", "n is 0,", "1..100")),
        (Features.parse, "skips:3:101", ("gap is 101,", "1..100")),
        (Features.parse, "terms:100001", ("k is 100001,", "1..100000")),
        (Features.parse, "windows:50:0", ("m is 0,", "1..1048576")),
        (Features.parse, "words:3:4", ("features 'words:3:4'", "2 numbers", "at most 1")),
        (Features.parse, "qgrams:5:sentence", ("'sentence'", "qgrams", "take multiset, positional")),
        (Features.parse, "checksum:crc32", ("'crc32'", "checksum", "take md5, sha1, sha256")),
        (Features.parse, "checksum:md5:sha1", ("features 'checksum:md5:sha1'", "2 algorithms", "name one")),
        (Signature.parse, "bloom", ("signature 'bloom'", "not known", "minhash:128, sketch:25, supershingle:6:14, ")),
        (Signature.parse, "minhash:8:multiset", ("signature 'minhash:8:multiset'", "not known")),
        (Signature.parse, "supershingle:257", ("S is 257,", "1..256")),
        (Signature.parse, "simhash:64", ("signature 'simhash:64'", "1 number", "at most 0")),
        (Clip.parse, "tf:1:2", ("clip 'tf:1:2'", "not known", "df:2:0.5 or idf:0.2:0.8", "leave it out")),
        (Clip.parse, "df:.5:1.0", ("clip 'df:.5:1.0'", "not known")),
        (Clip.parse, "df:1:1.5", ("'df:1:1.5'", "decimal point", "share", "at most 1.0")),
        (Clip.parse, "idf:0.2:2", ("'idf:0.2:2'", "share", "at most 1.0")),
        (Clip.parse, "df:5:2", ("clip 'df:5:2'", "leaves nothing", "lower bound", "higher one")),
        (Clip.parse, "df:0:0", ("clip 'df:0:0'", "leaves nothing")),
        (SecondStep.parse, "edit >= -1", ("second_step 'edit >= -1'", "edit >= 0.9", "jaccard(words:2) >= 0.6")),
        (SecondStep.parse, "edit >= 0", ("second_step", "threshold 0 is outside", "(0, 1]")),
        (SecondStep.parse, "jacard(words:2) >= 0.5", ("measure 'jacard'", "not known")),
        (SecondStep.parse, "hamming >= 0.5", ("hamming", "no second step")),
        (SecondStep.parse, "euclidean(words:1) >= 0.5", ("euclidean", "no second step")),
        (SecondStep.parse, "weighted_jaccard(words:1) >= 0.5", ("weighted_jaccard", "no second step")),
        (SecondStep.parse, "jaccard >= 0.5", ("jaccard takes features", "jaccard(words:2)")),
        (SecondStep.parse, "edit(words:2) >= 0.5", ("edit takes no features", "compares texts")),
        (SecondStep.parse, "jaccard(terms:5) >= 0.5", ("terms:5", "no features", "words or qgrams")),
        (SecondStep.parse, "jaccard(checksum) >= 0.5", ("checksum:sha1", "no features", "second step")),
    ],
)
def test_other_texts_are_refused_in_one_sentence(
    parse: Callable[[str], object], text: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(RecipeError) as error:
        parse(text)
    assert says(error.value, *words)


@given(st.text("words:12skip.>=()edf ", max_size=20))
def test_any_text_is_parsed_or_refused_in_one_line(text: str) -> None:
    for parse in (Features.parse, Signature.parse, Clip.parse, SecondStep.parse):
        message = ""
        try:
            parse(text)
        except RecipeError as error:
            message = str(error)
        assert "\n" not in message
