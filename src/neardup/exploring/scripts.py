"""In which scripts, and in which languages as far as stop words tell, documents are written."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from neardup.text.comparable import comparable, text_buffers
from neardup.text.stop_words import languages, stop_words

#: Scripts by the first word of what Unicode calls their letters.
_SCRIPTS = {
    "LATIN": "Latin",
    "CYRILLIC": "Cyrillic",
    "GREEK": "Greek",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HIRAGANA": "Kana",
    "KATAKANA": "Kana",
    "KATAKANA-HIRAGANA": "Kana",
    "BOPOMOFO": "Bopomofo",
    "HANGUL": "Hangul",
    "THAI": "Thai",
    "LAO": "Lao",
    "KHMER": "Khmer",
    "MYANMAR": "Myanmar",
    "TIBETAN": "Tibetan",
    "DEVANAGARI": "Devanagari",
    "BENGALI": "Bengali",
    "GURMUKHI": "Gurmukhi",
    "GUJARATI": "Gujarati",
    "ORIYA": "Odia",
    "TAMIL": "Tamil",
    "TELUGU": "Telugu",
    "KANNADA": "Kannada",
    "MALAYALAM": "Malayalam",
    "SINHALA": "Sinhala",
    "ARMENIAN": "Armenian",
    "GEORGIAN": "Georgian",
    "ETHIOPIC": "Ethiopic",
    "SYRIAC": "Syriac",
    "THAANA": "Thaana",
    "MONGOLIAN": "Mongolian",
    "CHEROKEE": "Cherokee",
    "CANADIAN": "Canadian Aboriginal",
    "TIFINAGH": "Tifinagh",
    "YI": "Yi",
    "JAVANESE": "Javanese",
}
#: So much of the letters makes a script the main one.
_MAIN = 2 / 3
#: From so much kana on among kana and Han, a text is written in both, as Japanese is.
_KANA = 0.1
#: So many characters of a text say what language it is in.
READ = 2_000
#: A language is clear if so many of the words are stop words of it, so large a part of them, and if their weight is so
#: many times that of the next one.
_HITS, _PART, _AHEAD = 5, 0.1, 2.0
_IDS = 3
MIXED, NONE, OTHER, UNCLEAR = "mixed", "none", "other", "unclear"


@dataclass(frozen=True, slots=True)
class ScriptCount:
    """Documents that are written in one script, or of which one language is guessed.

    Attributes
    ----------
    name : str
        A script such as "Latin" or "Han", "mixed", or "none" for a text without letters; a language such as "English",
        or "unclear". "Kana" are texts of kana and Han, as Japanese is written.
    code : str
        The language's ISO 639-1 code; empty for a script and where nothing is clear.
    documents : int
        Of the sample.
    share : float
        Of the sample's documents.
    hits : float
        Of a language: how many of a hundred words are stop words of it, over what was read of these documents; 0 for a
        script and where nothing is clear.
    ids : tuple of str
        A few of the documents.
    """

    name: str
    code: str
    documents: int
    share: float
    hits: float
    ids: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Scripts:
    """How many of the sampled documents are written how, the most frequent first.

    Attributes
    ----------
    documents : int
        The sample.
    scripts, languages : tuple of ScriptCount
        Each adds up to ``documents``.
    """

    documents: int
    scripts: tuple[ScriptCount, ...]
    languages: tuple[ScriptCount, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


class Guess(NamedTuple):
    """The script of a text, and its language as its stop words tell.

    Attributes
    ----------
    script : str
        The main script (``main_script``).
    code : str
        ISO 639-1; empty where nothing is clear.
    hits : int
        How many of its words are stop words of that language.
    words : int
        How many words were read.
    """

    script: str
    code: str
    hits: int
    words: int


def main_script(text: str) -> str:
    """Return the script that two thirds of a text's letters belong to.

    "Kana" where these are kana and Han and a tenth of them kana; "mixed" where no script has so many; "none" where
    there are no letters: signs, digits and emoji are none.
    """
    found: Counter[str] = Counter()
    for letter, times in Counter(text).items():
        found[_script_of(letter)] += times
    del found[""]
    letters = found.total()
    if not letters:
        return NONE
    east = found["Han"] + found["Kana"]
    if east >= _MAIN * letters:
        return "Kana" if found["Kana"] >= _KANA * east else "Han"
    name, times = max(found.items(), key=lambda item: (item[1], item[0]))
    return name if times >= _MAIN * letters else MIXED


@cache
def _script_of(character: str) -> str:
    """Return the script of a letter, "" for what is none."""
    if unicodedata.category(character)[0] != "L":
        return ""
    # A fullwidth or a ligature counts as what it stands for.
    plain = unicodedata.normalize("NFKC", character)[0]
    return _SCRIPTS.get(unicodedata.name(plain, "").partition(" ")[0], OTHER)


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    """Return for each stop word the languages that have it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    named: set[str] = set()
    for code, name in languages().items():
        # Norwegian has two codes.
        if name in named:
            continue
        named.add(name)
        for word in stop_words(code):
            found[word].append(code)
    return {word: tuple(codes) for word, codes in found.items()}


@cache
def _script_of_list(code: str) -> str:
    return main_script(" ".join(stop_words(code)))


def guess(text: str, words: Iterable[str]) -> Guess:
    """Guess the language of a text by its words, tokens of the normalizer ``words``.

    Each stop word speaks for the languages whose lists have it, with a weight of one, divided by how many these are.
    The language with the most weight is clear if at least five words and a tenth of them are stop words of it, the
    next language has at most half its weight, and the text is in the script of the list. A language without a list,
    such as Urdu or Afrikaans, may be taken for a near relative.
    """
    script = main_script(text)
    weights: defaultdict[str, float] = defaultdict(float)
    hits: Counter[str] = Counter()
    lists, counted = _lists(), Counter(words)
    # Sums of fractions are the same in any order of the text.
    for word, times in sorted(counted.items()):
        codes = lists.get(word, ())
        for code in codes:
            weights[code] += times / len(codes)
            hits[code] += times
    total = counted.total()
    ranked = sorted(weights, key=lambda code: (-weights[code], code))
    if not ranked:
        return Guess(script, "", 0, total)
    best = ranked[0]
    clear = hits[best] >= max(_HITS, _PART * total) and _script_of_list(best) == script
    clear = clear and (len(ranked) == 1 or weights[best] >= _AHEAD * weights[ranked[1]])
    return Guess(script, best, hits[best], total) if clear else Guess(script, "", 0, total)


def guesses(texts: Sequence[str]) -> list[Guess]:
    """Guess scripts and languages of texts by their first 2,000 characters."""
    begin = [text[:READ] for text in texts]
    data, ends = text_buffers(pa.array(begin, pa.large_string()))
    normal = comparable(data, ends, "words")
    # What is comparable is the thread's scratch: nothing here makes other texts so.
    spans = normal.spans.tolist()
    return [
        guess(text, normal.text[first:last].tobytes().decode().split())
        for text, (first, last) in zip(begin, spans, strict=True)
    ]


def scripts_of(texts: Sequence[str], ids: Sequence[str]) -> Scripts:
    """Return how texts are written.

    Parameters
    ----------
    texts : sequence of str
        Valid Unicode; what is beyond the first 2,000 characters of each says nothing.
    ids : sequence of str
        What they are called.
    """
    by_script: defaultdict[str, list[int]] = defaultdict(list)
    by_language: defaultdict[str, list[int]] = defaultdict(list)
    guessed = guesses(texts)
    for number, one in enumerate(guessed):
        by_script[one.script].append(number)
        by_language[one.code].append(number)

    def counts(name: str, code: str, members: list[int]) -> ScriptCount:
        words = sum(guessed[number].words for number in members) if code else 0
        hits = 100 * sum(guessed[number].hits for number in members) / words if words else 0.0
        share = len(members) / len(texts)
        return ScriptCount(name, code, len(members), share, hits, tuple(ids[number] for number in members[:_IDS]))

    names = languages()
    scripts = [counts(name, "", members) for name, members in by_script.items()]
    spoken = [counts(names[code] if code else UNCLEAR, code, members) for code, members in by_language.items()]
    return Scripts(len(texts), _ranked(scripts), _ranked(spoken))


def _ranked(counts: Iterable[ScriptCount]) -> tuple[ScriptCount, ...]:
    return tuple(sorted(counts, key=lambda one: (-one.documents, one.name)))
