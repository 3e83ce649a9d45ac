"""Stop words: tokens by language, and errors for unknown languages."""

from __future__ import annotations

import pytest
from naive_text import naive_tokens

from neardup.errors import RecipeError
from neardup.text.stop_words import ANTECEDENTS, antecedents, languages, stop_words


def test_many_languages_are_supported_by_code_and_name() -> None:
    known = languages()
    assert len(known) >= 30
    assert list(known) == sorted(known)
    assert all(len(code) == 2 and name.istitle() for code, name in known.items())
    assert (known["en"], known["no"], known["nb"]) == ("English", "Norwegian", "Norwegian")


def test_every_language_has_words_that_are_tokens() -> None:
    for code in languages():
        words = stop_words(code)
        assert len(words) > 30
        assert all(naive_tokens(word) == [word] for word in words)


def test_common_stop_words_are_included() -> None:
    common = {"en": "the of don t", "de": "und für", "fr": "le à", "es": "el qué", "ru": "и не", "ar": "في من"}
    for code, words in (common | {"hi": "है का", "zh": "的 和", "tr": "ve bir"}).items():
        assert set(words.split()) <= stop_words(code)


def test_languages_combine_in_any_order() -> None:
    assert stop_words("en,de") == stop_words(" de , en ") == stop_words("en") | stop_words("de")
    assert stop_words("no") == stop_words("nb")
    assert stop_words("") == stop_words(" ") == antecedents("") == frozenset()


def test_antecedents_are_few_english_words_and_all_stop_words_of_other_languages() -> None:
    assert antecedents("en") == frozenset(ANTECEDENTS) < stop_words("en")
    assert antecedents("fr,en") == frozenset(ANTECEDENTS) | stop_words("fr")


@pytest.mark.parametrize(("given", "wrong"), [("xx", "'xx'"), ("en,,de", "''"), ("EN", "'EN'")])
def test_an_unknown_language_error_lists_the_supported_ones(given: str, wrong: str) -> None:
    for function in (stop_words, antecedents):
        with pytest.raises(RecipeError, match=f"language {wrong};.*ar, bg, .*zh$"):
            function(given)
