"""How long documents are: counts in logarithmic bins, and quantiles."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Corpus
from neardup.exploration.runs import RUN, Boilerplate, Growing, Grown, Passage, least_texts, shared_runs, written
from neardup.exploration.sample import Sample, Survey
from neardup.exploration.templates import LONGEST, Template, pattern_of
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress
from neardup.kernels.grams import LISTED
from neardup.pages.documents import Material
from neardup.recipe import Recipe
from neardup.search.findings import Findings
from neardup.search.second_step import equal_texts
from neardup.text.bulk import comparable, text_buffers
from neardup.text.stop_words import languages, stop_words

Integers = npt.NDArray[np.int64]

#: Of which parts, in hundredths, the quantiles are.
QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
#: Bins of a power of ten, as far as whole numbers allow.
_A_DECADE = 10


def words_of(texts: Sequence[str]) -> Integers:
    """Return how many words texts have, as the normalizer ``words`` makes them: int64[n]."""
    counting = Extractor(Recipe(features="words:1", normalize="words"), None, LISTED)
    return counting(pa.array(texts, pa.large_string())).sizes


def binned(lengths: Integers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where logarithmic bins begin, and where the last ends, and how many lengths are in each.

    The bins go from that of the shortest to that of the longest; lengths of 0 are in none. Bin i holds
    edges[i] <= length < edges[i + 1].
    """
    some = lengths[lengths > 0]
    if not len(some):
        return (), ()
    edges = [1]
    step = 0
    while edges[-1] <= some.max():
        step += 1
        edge = round(10 ** (step / _A_DECADE))
        if edge > edges[-1]:
            edges.append(edge)
    counts = np.histogram(some, np.array(edges))[0]
    first = int(counts.nonzero()[0][0])
    return tuple(edges[first:]), tuple(counts[first:].tolist())


def quantiles_of(lengths: Integers) -> tuple[tuple[float, int], ...]:
    """Return the lengths that so large a part of all is at most: with the part, the smallest such length."""
    ordered = np.sort(lengths)
    if not len(ordered):
        return ()
    places = [max(-(-part * len(ordered) // 100), 1) - 1 for part in QUANTILES]
    return tuple((part / 100, int(ordered[place])) for part, place in zip(QUANTILES, places, strict=True))


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


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long documents are.

    Attributes
    ----------
    unit : str
        "words" or "bytes".
    documents : int
        How many were measured: the sample for words, the corpus for bytes.
    edges : tuple of int
        Where the bins begin, ten to a power of ten as far as whole numbers allow, and where the last ends: bin i holds
        edges[i] <= length < edges[i + 1]. They begin at 1: documents of length 0 are in ``empty``.
    counts : tuple of int
        Documents of each bin, one fewer than edges; those outside the first and last filled bin are left out.
    quantiles : tuple of (float, int)
        The length that so large a part of the documents is at most: of 0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.
    mean : float
    total : int
    empty : int
        Documents without a word, or a byte.
    one : int
        Documents of one word, or byte.
    """

    unit: str
    documents: int
    edges: tuple[int, ...]
    counts: tuple[int, ...]
    quantiles: tuple[tuple[float, int], ...]
    mean: float
    total: int
    empty: int
    one: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a folder of text files, and what comes from it."""

    name: str
    documents: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CopyGroup:
    """Documents with the same text, byte for byte.

    Attributes
    ----------
    documents : int
    bytes : int
        Of each text.
    ids : tuple of str
        The first of them.
    begins : str
        How the text begins.
    """

    documents: int
    bytes: int
    ids: tuple[str, ...]
    begins: str


@dataclass(frozen=True, slots=True)
class Copies:
    """The exact copies of a corpus, of texts that can be compared: empty ones match nothing.

    Attributes
    ----------
    copies : int
        Documents whose text another one before them has.
    groups : int
        Texts that several documents have.
    bytes : int
        Of the copies.
    largest : tuple of CopyGroup
        The largest first.
    """

    copies: int
    groups: int
    bytes: int
    largest: tuple[CopyGroup, ...]


@dataclass(frozen=True, slots=True)
class LargeFamily:
    """One of the largest families at a threshold.

    Attributes
    ----------
    number : int
        In the result.
    documents, pairs : int
        How many documents and matching pairs it has.
    smallest, mean : float
        Over the similarities of its pairs.
    complete : bool
        Whether every member matches every other.
    ids : tuple of str
        Its first documents.
    begins : str
        How the first one's text begins.
    """

    number: int
    documents: int
    pairs: int
    smallest: float
    mean: float
    complete: bool
    ids: tuple[str, ...]
    begins: str


@dataclass(frozen=True, slots=True)
class Makeup:
    """What a corpus is made of.

    Attributes
    ----------
    documents, bytes : int
        Of the corpus.
    words : Lengths
        Of the sample, in words.
    sizes : Lengths
        Of the corpus, in bytes.
    sources : tuple of Source
        The largest files first; empty where the input is one file.
    sources_found : int
        How many there are, those that are not listed too.
    scripts : Scripts
        Of the sample.
    copies : Copies
    boilerplate : Boilerplate
    templates : tuple of Template
        Among the largest families.
    families : tuple of LargeFamily
        The largest first; empty without a result.
    families_found : int
    templates_found, families_examined : int
        How many templates there are, those that are not listed too, among so many of the largest families.
    """

    documents: int
    bytes: int
    words: Lengths
    sizes: Lengths
    sources: tuple[Source, ...]
    sources_found: int
    scripts: Scripts
    copies: Copies
    boilerplate: Boilerplate
    templates: tuple[Template, ...]
    families: tuple[LargeFamily, ...]
    families_found: int
    templates_found: int = 0
    families_examined: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


#: What is listed, at most.
FAMILIES, TEMPLATES = 20, 10
#: So many of the largest families are looked at, so many texts of each, until they have so many characters together.
_EXAMINED, _COMPARED, _CHARACTERS = 40, 12, 5_000_000
_IDS_OF_FAMILY = 5
#: Characters that say how a text begins.
_BEGINS = 120


def core_of(family: Integers, representative: Integers, left: Integers, right: Integers, texts: Integers) -> Integers:
    """Return the distinct texts of a family that match the one which matches most of them, that one first.

    Parameters
    ----------
    family : int64[m]
        Its documents, ascending.
    representative : int64[n]
        For each document the first one with equal features.
    left, right : int64[k]
        The pairs of representatives.
    texts : int64[n]
        For each document the first one with the same text.
    """
    own = representative[family]
    nodes, copies = np.unique(own, return_counts=True)
    inside = np.isin(left, nodes)
    ends = np.searchsorted(nodes, np.concatenate([left[inside], right[inside]]))
    matched = copies.astype(np.float64)
    matched += np.bincount(ends, copies[np.roll(ends, len(ends) // 2)], len(nodes))
    centre = int(nodes[matched.argmax()])
    near = np.unique(np.concatenate([[centre], right[inside & (left == centre)], left[inside & (right == centre)]]))
    distinct = family[np.isin(own, near) & (texts[family] == family)]
    first = distinct[representative[distinct] == centre][:1]
    return np.concatenate([first, distinct[~np.isin(distinct, first)]])


def beginning(text: str) -> str:
    """Return how a text begins, in a line."""
    line = " ".join(text[: 2 * _BEGINS].split())
    return line if len(line) <= _BEGINS and len(text) <= 2 * _BEGINS else line[:_BEGINS].rstrip() + " …"


class LargestFamilies:
    """The largest families of a run.

    Parameters
    ----------
    findings : Findings or None
        The run; without one there are none.
    texts : int64[n]
        For each document the first one with the same text.

    Attributes
    ----------
    found : int
        How many families there are.
    wanted : int64[k]
        The documents that have to be read.
    examined : int
        How many families were looked at as templates.
    """

    def __init__(self, findings: Findings | None, texts: Integers) -> None:
        self._findings = findings
        self.found = 0 if findings is None else len(findings.families.documents)
        self.examined = 0
        #: Of each family its number, its documents, and those that are compared.
        self._largest: list[tuple[int, Integers, Integers]] = []
        if findings is not None:
            sizes, family = findings.families.documents, findings.families.family
            for place in np.argsort(-sizes, kind="stable")[:_EXAMINED].tolist():
                members = np.flatnonzero(family == place + 1)
                self._largest.append((place + 1, members, _spread(_core(findings, members, texts))))
        self.wanted = np.concatenate([np.zeros(0, np.int64), *(compared for _, _, compared in self._largest)])

    def listed(self, material: Material) -> tuple[LargeFamily, ...]:
        """Return the largest ones for people."""
        if self._findings is None:
            return ()
        known = self._findings.families
        return tuple(
            LargeFamily(
                number=number,
                documents=len(members),
                pairs=int(known.pairs[number - 1]),
                smallest=float(known.smallest[number - 1]),
                mean=float(known.mean[number - 1]),
                complete=int(known.pairs[number - 1]) == len(members) * (len(members) - 1) // 2,
                ids=tuple(material.id(place) for place in members[:_IDS_OF_FAMILY].tolist()),
                begins=beginning(material.shown(int(compared[0])).text),
            )
            for number, members, compared in self._largest[:FAMILIES]
        )

    def templates(self, material: Material) -> list[Template]:
        """Return those that are templates, the largest first."""
        found = []
        left = _CHARACTERS
        self.examined = 0
        for number, members, compared in self._largest:
            if left <= 0:
                break
            self.examined += 1
            texts = [material.shown(place).text for place in compared.tolist()]
            left -= sum(min(len(text), LONGEST) for text in texts)
            pattern = pattern_of(texts)
            if pattern is not None:
                ids = tuple(material.id(int(compared[at])) for at in pattern.members[:_IDS_OF_FAMILY])
                found.append(
                    Template(
                        family=number,
                        documents=len(members),
                        compared=len(pattern.members),
                        ids=ids,
                        constant=pattern.constant,
                        share=pattern.share,
                        pieces=pattern.pieces,
                        slots=pattern.slots,
                        left_out=len(texts) - len(pattern.members),
                    )
                )
        return found


def _core(findings: Findings, members: Integers, texts: Integers) -> Integers:
    matches = findings.matches
    return core_of(members, matches.representative, matches.left, matches.right, texts)


def _spread(documents: Integers) -> Integers:
    """Return the first document and, of the others, some from everywhere among them."""
    if len(documents) <= _COMPARED:
        return documents
    return documents[np.linspace(0, len(documents) - 1, _COMPARED).astype(np.int64)]


Bools = npt.NDArray[np.bool_]

#: What is listed of each kind, at most; what there is more is counted.
PASSAGES, COPIES, SOURCES = 20, 10, 20


def makeup_of(
    survey: Survey,
    sample: Sample,
    corpus: Corpus,
    material: Material,
    *,
    findings: Findings | None = None,
    content: str = "",
    threads: int = 1,
    memory: int | None = None,
    report: Progress | None = None,
) -> Makeup:
    """Look at what a corpus is made of.

    Parameters
    ----------
    survey : Survey
        Of all documents.
    sample : Sample
        For words, scripts and languages.
    corpus : Corpus
        It was scanned, and is read three times more: twice for boilerplate, and for the documents that are shown.
    material : Material
        Its documents.
    findings : Findings, optional
        Of a run over the corpus, at the threshold that the families are for.
    content : str
        As in ``Recipe``: what of the texts is looked at. That of survey, sample and material.
    threads : int
        They change the time, never the answer.
    memory : int, optional
        A budget in bytes (``shared_runs``).
    report : callable, optional
        Told ("boilerplate", bytes done, bytes in all or None).
    """
    texts = equal_texts(survey.text_marks, survey.text_bytes, ~survey.present)
    copies = np.bincount(texts[texts >= 0], minlength=len(texts))
    counting = copies > 0
    if findings is not None:
        counting = np.zeros(len(texts), np.bool_)
        counting[texts[findings.stays]] = True
    found = shared_runs(
        corpus,
        copies > 0,
        counting,
        run=RUN,
        least=least_texts(int(counting.sum())),
        content=content,
        text_bytes=int(survey.text_bytes.sum()),
        threads=threads,
        memory=memory,
        report=report,
    )
    grown, complete = Growing(found, counting).passages()
    firsts = [_holders(one, counting) for one in grown[:PASSAGES]]
    # What matches nothing has no copies that a run would drop.
    comparable = survey.text_bytes > 0 if findings is None else findings.matches.representative >= 0
    repeated = np.where(comparable, copies, 0)
    # The texts with the most copies, of equals the first.
    often = np.argsort(-repeated, kind="stable")[:COPIES]
    often = often[repeated[often] > 1]
    families = LargestFamilies(findings, texts)
    material.load(np.concatenate([[holders[0] for holders in firsts], often, families.wanted]).astype(np.int64))
    documents = int(survey.present.sum())
    passages = [
        Passage(
            text=written(material.shown(holders[0]).text, int(one.places[one.texts == holders[0]][0]), one.words),
            words=one.words,
            documents=int(copies[one.texts].sum()),
            texts=len(one.texts),
            unlike=None if findings is None else one.often,
            share=int(copies[one.texts].sum()) / documents,
            ids=tuple(map(material.id, holders)),
        )
        for one, holders in zip(grown, firsts, strict=False)
    ]
    templates = families.templates(material)
    sources = _sources(survey)
    return Makeup(
        documents=documents,
        bytes=int(survey.text_bytes[survey.present].sum()),
        words=_lengths("words", words_of(sample.texts)),
        sizes=_lengths("bytes", survey.text_bytes[survey.present]),
        sources=sources[:SOURCES] if len(sources) > 1 else (),
        sources_found=len(sources),
        scripts=scripts_of(sample.texts, [str(sample.names.one(place)) for place in sample.positions.tolist()]),
        copies=_copies(survey, texts, repeated, often, material),
        boilerplate=Boilerplate(
            passages=tuple(passages),
            found=len(grown),
            least=found.least,
            run=found.run,
            documents=int(copies[np.unique(found.texts)].sum()),
            share_of_words=found.covered / found.words if found.words else 0.0,
            complete=complete,
        ),
        templates=tuple(templates[:TEMPLATES]),
        families=families.listed(material),
        families_found=families.found,
        templates_found=len(templates),
        families_examined=families.examined,
    )


def _holders(one: Grown, counting: Bools) -> list[int]:
    """Return the first documents that hold a passage, of those that count."""
    return [int(first) for first in one.texts[counting[one.texts]][:_IDS_OF_FAMILY]]


def _lengths(unit: str, lengths: Integers) -> Lengths:
    edges, counts = binned(lengths)
    return Lengths(
        unit=unit,
        documents=len(lengths),
        edges=edges,
        counts=counts,
        quantiles=quantiles_of(lengths),
        mean=float(lengths.mean()) if len(lengths) else 0.0,
        total=int(lengths.sum()),
        empty=int((lengths == 0).sum()),
        one=int((lengths == 1).sum()),
    )


def _sources(survey: Survey) -> tuple[Source, ...]:
    """Return the files that documents come from, those with the most first, of equals by name."""
    of, sizes = survey.source[survey.present], survey.text_bytes[survey.present]
    documents = np.bincount(of, minlength=len(survey.sources))
    size = np.zeros(len(survey.sources), np.int64)
    np.add.at(size, of, sizes)
    found = [Source(name, int(documents[at]), int(size[at])) for at, name in enumerate(survey.sources) if documents[at]]
    return tuple(sorted(found, key=lambda one: (-one.documents, one.name)))


def _copies(survey: Survey, texts: Integers, copies: Integers, often: Integers, material: Material) -> Copies:
    surplus = np.maximum(copies - 1, 0)
    largest = []
    for first in often.tolist():
        members = np.flatnonzero(texts == first)
        ids = tuple(material.id(place) for place in members[:_IDS_OF_FAMILY].tolist())
        size = int(survey.text_bytes[first])
        largest.append(CopyGroup(len(members), size, ids, beginning(material.shown(first).text)))
    return Copies(
        copies=int(surplus.sum()),
        groups=int((copies > 1).sum()),
        bytes=int((surplus * survey.text_bytes).sum()),
        largest=tuple(largest),
    )
