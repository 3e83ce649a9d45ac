"""Stop words by language, and the antecedents of spot signatures.

The lists are those of the package ``stop-words``, normalised as documents are by ``words``: an entry that falls
into several tokens, such as *don't*, makes each of them a stop word.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from neardup.errors import RecipeError
from neardup.text.normalize import tokens

#: The English words at which spot signatures begin [after Theobald, Siddharth & Paepcke, SIGIR 2008].
ANTECEDENTS = ("is", "the", "a", "an", "there", "was", "said")
#: Codes that name a list known by another code.
_ALSO = {"no": "nb"}


@cache
def languages() -> Mapping[str, str]:
    """Return the known languages by ISO 639-1 code, with their English names, in order of the code."""
    from stop_words import LANGUAGE_MAPPING

    names = LANGUAGE_MAPPING | {code: LANGUAGE_MAPPING[other] for code, other in _ALSO.items()}
    return MappingProxyType({code: names[code].capitalize() for code in sorted(names)})


@cache
def stop_words(languages: str) -> frozenset[str]:
    """Return the stop words of languages (``en`` or ``en,de``) as tokens of the normalizer ``words``.

    Each further language adds its words, also where they carry meaning in another: *die* is a stop word of ``en,de``.
    Those of languages written without spaces are mostly single characters. A code that is not among ``languages()`` is
    refused.
    """
    return frozenset().union(*map(_of_language, _codes(languages)))


@cache
def antecedents(languages: str) -> frozenset[str]:
    """Return the tokens at which spot signatures begin, by languages as for ``stop_words``.

    They are ``ANTECEDENTS`` for English; for other languages all of their stop words.
    """
    return frozenset().union(*(ANTECEDENTS if c == "en" else _of_language(c) for c in _codes(languages)))


def _codes(text: str) -> list[str]:
    codes = [code.strip() for code in text.split(",")] if text.strip() else []
    for code in codes:
        if code not in languages():
            raise RecipeError(f"no stop words for language {code!r}; known are {', '.join(languages())}")
    return codes


@cache
def _of_language(code: str) -> frozenset[str]:
    from stop_words import get_stop_words

    words = get_stop_words(_ALSO.get(code, code))
    return frozenset(token.text for word in words for token in tokens(word))
