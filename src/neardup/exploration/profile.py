"""The profile of a corpus: lengths, scripts, exact copies, shared passages, templates and families."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from neardup.documents import Corpus
from neardup.exploration.boilerplate import (
    RUN,
    Boilerplate,
    ExtendedPassage,
    Passage,
    PassageGrower,
    fewest_texts,
    shared_runs,
    written,
)
from neardup.exploration.sample import Sample, Survey
from neardup.exploration.text_templates import LONGEST, Template, find_pattern
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress
from neardup.kernels import Bools, Integers
from neardup.kernels.grams import LISTED
from neardup.pages.documents import DocumentReader
from neardup.recipe import Recipe
from neardup.search.findings import Findings
from neardup.search.second_step import text_representatives

#: The quantiles, in per cent.
QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
#: Bins per power of ten; the smallest have fewer, because their edges are whole numbers.
_BINS_PER_DECADE = 10


def word_counts(texts: Sequence[str]) -> Integers:
    """Return the number of words of each text after the normalizer ``words``: int64[n]."""
    counting = Extractor(Recipe(features="words:1", normalize="words"), None, LISTED)
    return counting(pa.array(texts, pa.large_string())).sizes


def length_bins(lengths: Integers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the edges of logarithmic bins and the number of lengths in each bin.

    The bins span the shortest to the longest length; a length of 0 is in no bin. Bin i holds
    edges[i] <= length < edges[i + 1].
    """
    positive = lengths[lengths > 0]
    if not len(positive):
        return (), ()
    edges = [1]
    step = 0
    while edges[-1] <= positive.max():
        step += 1
        edge = round(10 ** (step / _BINS_PER_DECADE))
        if edge > edges[-1]:
            edges.append(edge)
    counts = np.histogram(positive, np.array(edges))[0]
    first = int(counts.nonzero()[0][0])
    return tuple(edges[first:]), tuple(counts[first:].tolist())


def length_quantiles(lengths: Integers) -> tuple[tuple[float, int], ...]:
    """Return quantiles: each a share, and the smallest length that this share of the lengths does not exceed."""
    ordered = np.sort(lengths)
    if not len(ordered):
        return ()
    places = [max(-(-part * len(ordered) // 100), 1) - 1 for part in QUANTILES]
    return tuple((part / 100, int(ordered[place])) for part, place in zip(QUANTILES, places, strict=True))


#: Scripts by the first word of the Unicode names of their letters.
_TITLE_CASE_SCRIPTS = (
    "LATIN CYRILLIC GREEK ARABIC HEBREW BOPOMOFO HANGUL THAI LAO KHMER MYANMAR TIBETAN DEVANAGARI BENGALI GURMUKHI "
    "GUJARATI TAMIL TELUGU KANNADA MALAYALAM SINHALA ARMENIAN GEORGIAN ETHIOPIC SYRIAC THAANA MONGOLIAN CHEROKEE "
    "TIFINAGH YI JAVANESE"
)
_SCRIPT_NAMES = {name: name.title() for name in _TITLE_CASE_SCRIPTS.split()} | {
    **dict.fromkeys(("CJK", "IDEOGRAPHIC"), "Han"),
    **dict.fromkeys(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"), "Kana"),
    "ORIYA": "Odia",
    "CANADIAN": "Canadian Aboriginal",
}
#: A script with at least this share of the letters is the main script.
_MAIN_SHARE = 2 / 3
#: A text of kana and Han counts as Japanese from this share of kana on.
_KANA_SHARE = 0.1
#: The script of a text is detected in its first characters, up to this many.
_CHARACTERS_READ = 2_000
_IDS_OF_SCRIPT = 3
_MIXED, _NONE, _OTHER = "mixed", "none", "other"


@dataclass(frozen=True, slots=True)
class ScriptCount:
    """The documents of one script."""

    #: A script such as "Latin" or "Han", "mixed", or "none" for a text without letters. "Kana" are texts of kana and
    #: Han, as Japanese is written.
    name: str
    documents: int
    share: float
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scripts:
    """The scripts of the sampled documents, the most frequent first; their counts add up to ``documents``."""

    documents: int
    scripts: tuple[ScriptCount, ...]


def main_script(text: str) -> str:
    """Return the script of at least two thirds of a text's letters.

    "Kana" if these are kana and Han, and a tenth of them kana; "mixed" if no script has two thirds; "none" if the text
    has no letters. Signs, digits and emoji are not letters.
    """
    found: Counter[str] = Counter()
    for letter, times in Counter(text).items():
        found[_letter_script(letter)] += times
    del found[""]
    letters = found.total()
    if not letters:
        return _NONE
    han_and_kana = found["Han"] + found["Kana"]
    if han_and_kana >= _MAIN_SHARE * letters:
        return "Kana" if found["Kana"] >= _KANA_SHARE * han_and_kana else "Han"
    name, times = max(found.items(), key=lambda item: (item[1], item[0]))
    return name if times >= _MAIN_SHARE * letters else _MIXED


@cache
def _letter_script(character: str) -> str:
    """Return the script of a letter, "" for any other character."""
    if unicodedata.category(character)[0] != "L":
        return ""
    # A fullwidth letter or a ligature counts as the letters it stands for.
    plain = unicodedata.normalize("NFKC", character)[0]
    return _SCRIPT_NAMES.get(unicodedata.name(plain, "").partition(" ")[0], _OTHER)


def count_scripts(texts: Sequence[str], ids: Sequence[str]) -> Scripts:
    """Count texts by script, detected in the first 2,000 characters of each."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for text, name in zip(texts, ids, strict=True):
        members[main_script(text[:_CHARACTERS_READ])].append(name)
    counts = [
        ScriptCount(script, len(names), len(names) / len(texts), tuple(names[:_IDS_OF_SCRIPT]))
        for script, names in members.items()
    ]
    return Scripts(len(texts), tuple(sorted(counts, key=lambda one: (-one.documents, one.name))))


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of the sampled documents in words."""

    documents: int
    #: The edges of logarithmic bins, up to ten per power of ten: bin i holds edges[i] <= length < edges[i + 1].
    #: Documents of length 0 are in no bin but in ``empty``.
    edges: tuple[int, ...]
    #: Documents per bin, one value fewer than ``edges``. The first and last bin are not empty.
    counts: tuple[int, ...]
    #: The quantiles 0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99 and 1, each with its length.
    quantiles: tuple[tuple[float, int], ...]
    mean: float
    total: int
    #: Documents without a word.
    empty: int
    #: Documents of one word.
    one: int


@dataclass(frozen=True, slots=True)
class CopyGroup:
    """Documents with the same text, byte for byte."""

    documents: int
    bytes: int
    ids: tuple[str, ...]
    begins: str


@dataclass(frozen=True, slots=True)
class Copies:
    """The exact copies of a corpus. Empty texts match nothing and are not counted."""

    #: Documents whose text an earlier document has.
    copies: int
    #: Distinct texts that several documents have.
    groups: int
    bytes: int
    largest: tuple[CopyGroup, ...]


@dataclass(frozen=True, slots=True)
class LargeFamily:
    """One of the largest families at a threshold."""

    number: int
    documents: int
    pairs: int
    #: The smallest and the mean similarity of its pairs.
    smallest: float
    mean: float
    #: Whether every member matches every other.
    complete: bool
    ids: tuple[str, ...]
    begins: str


@dataclass(frozen=True, slots=True)
class CorpusProfile:
    """The contents of a corpus."""

    documents: int
    bytes: int
    words: Lengths
    scripts: Scripts
    copies: Copies
    boilerplate: Boilerplate
    templates: tuple[Template, ...]
    #: The largest first; empty if there are no findings.
    families: tuple[LargeFamily, ...]
    families_found: int
    #: The number of templates, listed or not, among the ``families_examined`` largest families.
    templates_found: int = 0
    families_examined: int = 0


#: The most families and templates in a profile.
FAMILIES, TEMPLATES = 20, 10
#: Templates are looked for in this many of the largest families, this many texts of each, and this many characters.
_MOST_EXAMINED, _TEXTS_OF_FAMILY, _MOST_CHARACTERS = 40, 12, 5_000_000
_IDS_OF_FAMILY = 5
#: The length of the beginning of a text in characters.
_BEGINNING_LENGTH = 120


def family_core(
    family: Integers, representative: Integers, left: Integers, right: Integers, texts: Integers
) -> Integers:
    """Return the central text of a family, which matches most others, and then the distinct texts that match it.

    ``family`` (int64[m]) has the documents of the family, ascending. For each document of the corpus,
    ``representative`` and ``texts`` (int64[n]) have the first document with equal features and with the same
    text. ``left`` and ``right`` (int64[k]) are the pairs of representatives.
    """
    family_representatives = representative[family]
    nodes, copies = np.unique(family_representatives, return_counts=True)
    inside = np.isin(left, nodes)
    ends = np.searchsorted(nodes, np.concatenate([left[inside], right[inside]]))
    matched = copies.astype(np.float64)
    matched += np.bincount(ends, copies[np.roll(ends, len(ends) // 2)], len(nodes))
    centre = int(nodes[matched.argmax()])
    matched_nodes = np.unique(
        np.concatenate([[centre], right[inside & (left == centre)], left[inside & (right == centre)]])
    )
    distinct = family[np.isin(family_representatives, matched_nodes) & (texts[family] == family)]
    first = distinct[representative[distinct] == centre][:1]
    return np.concatenate([first, distinct[~np.isin(distinct, first)]])


def beginning(text: str) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text[: 2 * _BEGINNING_LENGTH].split())
    return (
        line
        if len(line) <= _BEGINNING_LENGTH and len(text) <= 2 * _BEGINNING_LENGTH
        else line[:_BEGINNING_LENGTH].rstrip() + " …"
    )


class LargestFamilies:
    """The largest families of a run.

    Parameters
    ----------
    findings : Findings or None
        The findings of the run; without them there are no families.
    texts : int64[n]
        For each document, the first document with the same text.

    Attributes
    ----------
    count : int
        The number of families of the run.
    documents_to_read : int64[k]
        The documents whose texts the summaries and templates need.
    examined_count : int
        The number of families that ``templates`` examined.
    """

    def __init__(self, findings: Findings | None, texts: Integers) -> None:
        self._findings = findings
        self.count = 0 if findings is None else len(findings.families.documents)
        self.examined_count = 0
        #: Of each family: its number, its documents, and the documents to compare.
        self._largest: list[tuple[int, Integers, Integers]] = []
        if findings is not None:
            sizes, family = findings.families.documents, findings.families.family
            for place in np.argsort(-sizes, kind="stable")[:_MOST_EXAMINED].tolist():
                members = np.flatnonzero(family == place + 1)
                self._largest.append((place + 1, members, _evenly_spaced(_core(findings, members, texts))))
        self.documents_to_read = np.concatenate(
            [np.zeros(0, np.int64), *(compared for _, _, compared in self._largest)]
        )

    def summaries(self, reader: DocumentReader) -> tuple[LargeFamily, ...]:
        """Return summaries of the largest families; empty without findings."""
        if self._findings is None:
            return ()
        families = self._findings.families
        return tuple(
            LargeFamily(
                number=number,
                documents=len(members),
                pairs=int(families.pairs[number - 1]),
                smallest=float(families.smallest[number - 1]),
                mean=float(families.mean[number - 1]),
                complete=int(families.pairs[number - 1]) == len(members) * (len(members) - 1) // 2,
                ids=tuple(reader.id(place) for place in members[:_IDS_OF_FAMILY].tolist()),
                begins=beginning(reader.document(int(compared[0])).text),
            )
            for number, members, compared in self._largest[:FAMILIES]
        )

    def templates(self, reader: DocumentReader) -> list[Template]:
        """Return the families that are templates, the largest first."""
        found = []
        left = _MOST_CHARACTERS
        self.examined_count = 0
        for number, members, compared in self._largest:
            if left <= 0:
                break
            self.examined_count += 1
            texts = [reader.document(place).text for place in compared.tolist()]
            left -= sum(min(len(text), LONGEST) for text in texts)
            pattern = find_pattern(texts)
            if pattern is not None:
                ids = tuple(reader.id(int(compared[at])) for at in pattern.members[:_IDS_OF_FAMILY])
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
    return family_core(members, matches.representative, matches.left, matches.right, texts)


def _evenly_spaced(documents: Integers) -> Integers:
    """Return at most 12 documents, evenly spaced, the first among them."""
    if len(documents) <= _TEXTS_OF_FAMILY:
        return documents
    return documents[np.linspace(0, len(documents) - 1, _TEXTS_OF_FAMILY).astype(np.int64)]


#: The most passages and copied texts in a profile.
PASSAGES, COPIES = 20, 10


def profile_corpus(
    survey: Survey,
    sample: Sample,
    corpus: Corpus,
    reader: DocumentReader,
    *,
    findings: Findings | None = None,
    content: str = "",
    threads: int = 1,
    memory: int | None = None,
    report: Progress | None = None,
) -> CorpusProfile:
    """Return the profile of a corpus.

    The corpus is read three times: twice to find boilerplate, and once for the documents that the profile quotes.
    ``findings`` come from a run at the threshold of the families; without them the profile has no families.
    """
    texts = text_representatives(survey.text_digests, survey.text_bytes, np.zeros(len(survey), np.bool_))
    copies = np.bincount(texts[texts >= 0], minlength=len(texts))
    counting = copies > 0
    if findings is not None:
        counting = np.zeros(len(texts), np.bool_)
        counting[texts[findings.kept_mask]] = True
    found = shared_runs(
        corpus,
        copies > 0,
        counting,
        run=RUN,
        least=fewest_texts(int(counting.sum())),
        content=content,
        text_bytes=int(survey.text_bytes.sum()),
        threads=threads,
        memory=memory,
        report=report,
    )
    grown, complete = PassageGrower(found, counting).passages()
    firsts = [_holders(one, counting) for one in grown[:PASSAGES]]
    # A run drops no copies of a document that matches nothing.
    comparable = survey.text_bytes > 0 if findings is None else findings.matches.representative >= 0
    repeated = np.where(comparable, copies, 0)
    # The texts with the most copies; the first of equally frequent ones.
    often = np.argsort(-repeated, kind="stable")[:COPIES]
    often = often[repeated[often] > 1]
    families = LargestFamilies(findings, texts)
    reader.load(
        np.concatenate([[holders[0] for holders in firsts], often, families.documents_to_read]).astype(np.int64)
    )
    documents = len(survey)
    passages = [
        Passage(
            text=written(reader.document(holders[0]).text, int(one.places[one.texts == holders[0]][0]), one.words),
            words=one.words,
            documents=int(copies[one.texts].sum()),
            texts=len(one.texts),
            unlike=None if findings is None else one.often,
            share=int(copies[one.texts].sum()) / documents,
            ids=tuple(map(reader.id, holders)),
        )
        for one, holders in zip(grown, firsts, strict=False)
    ]
    templates = families.templates(reader)
    return CorpusProfile(
        documents=documents,
        bytes=int(survey.text_bytes.sum()),
        words=_lengths(word_counts(sample.texts)),
        scripts=count_scripts(sample.texts, [str(sample.names.name_at(place)) for place in sample.positions.tolist()]),
        copies=_copies(survey, texts, repeated, often, reader),
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
        families=families.summaries(reader),
        families_found=families.count,
        templates_found=len(templates),
        families_examined=families.examined_count,
    )


def _holders(one: ExtendedPassage, counting: Bools) -> list[int]:
    """Return the first counted documents that contain a passage."""
    return [int(first) for first in one.texts[counting[one.texts]][:_IDS_OF_FAMILY]]


def _lengths(lengths: Integers) -> Lengths:
    edges, counts = length_bins(lengths)
    return Lengths(
        documents=len(lengths),
        edges=edges,
        counts=counts,
        quantiles=length_quantiles(lengths),
        mean=float(lengths.mean()) if len(lengths) else 0.0,
        total=int(lengths.sum()),
        empty=int((lengths == 0).sum()),
        one=int((lengths == 1).sum()),
    )


def _copies(survey: Survey, texts: Integers, copies: Integers, often: Integers, reader: DocumentReader) -> Copies:
    surplus = np.maximum(copies - 1, 0)
    largest = []
    for first in often.tolist():
        members = np.flatnonzero(texts == first)
        ids = tuple(reader.id(place) for place in members[:_IDS_OF_FAMILY].tolist())
        size = int(survey.text_bytes[first])
        largest.append(CopyGroup(len(members), size, ids, beginning(reader.document(first).text)))
    return Copies(
        copies=int(surplus.sum()),
        groups=int((copies > 1).sum()),
        bytes=int((surplus * survey.text_bytes).sum()),
        largest=tuple(largest),
    )
