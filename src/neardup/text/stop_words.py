"""Stop words by language, and the antecedents of spot signatures.

The lists come from the package ``stop-words`` and are normalized by ``words``, as documents are: an entry of several
tokens, such as *don't*, makes each of them a stop word.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from neardup.errors import RecipeError
from neardup.text.normalize import tokens

#: The English words at which spot signatures begin [after Theobald, Siddharth & Paepcke, SIGIR 2008].
ANTECEDENTS = ("is", "the", "a", "an", "there", "was", "said")
#: Language codes that share the list of another code.
_ALIASES = {"no": "nb"}


@cache
def languages() -> Mapping[str, str]:
    """Return the supported languages: ISO 639-1 codes, in order, with English names."""
    from stop_words import LANGUAGE_MAPPING

    names = LANGUAGE_MAPPING | {code: LANGUAGE_MAPPING[target] for code, target in _ALIASES.items()}
    return MappingProxyType({code: names[code].capitalize() for code in sorted(names)})


@cache
def stop_words(languages: str) -> frozenset[str]:
    """Return the stop words of languages (``en`` or ``en,de``) as tokens of the normalizer ``words``.

    Each language adds its words, even where they carry meaning in another: *die* is a stop word of ``en,de``. Stop
    words of languages written without spaces are mostly single characters. Raises ``RecipeError`` for a code that is
    not in ``languages()``.
    """
    return frozenset().union(*(_language_stop_words(code) for code in _parse_codes(languages)))


@cache
def antecedents(languages: str) -> frozenset[str]:
    """Return the tokens at which spot signatures begin, for languages as in ``stop_words``.

    These are ``ANTECEDENTS`` for English and all stop words for other languages.
    """
    return frozenset().union(
        *(ANTECEDENTS if code == "en" else _language_stop_words(code) for code in _parse_codes(languages))
    )


def _parse_codes(text: str) -> list[str]:
    codes = [code.strip() for code in text.split(",")] if text.strip() else []
    for code in codes:
        if code not in languages():
            raise RecipeError(f"no stop words for language {code!r}; choose one of {', '.join(languages())}")
    return codes


@cache
def _language_stop_words(code: str) -> frozenset[str]:
    from stop_words import get_stop_words

    words = get_stop_words(_ALIASES.get(code, code))
    return frozenset(token.text for word in words for token in tokens(word))
