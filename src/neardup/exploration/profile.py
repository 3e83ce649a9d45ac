"""The profile of a corpus: lengths, scripts, exact copies, shared passages, templates and families."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.documents import Corpus
from neardup.exploration.boilerplate import (
    RUN,
    Boilerplate,
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
from neardup.keep.keepers import Families
from neardup.kernels import Integers
from neardup.kernels.grams import LISTED
from neardup.pages.documents import DocumentReader
from neardup.recipe import Recipe
from neardup.search.findings import Findings
from neardup.search.second_step import text_representatives

QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
#: Bins per power of ten; the smallest have fewer, because their edges are whole numbers.
_BINS_PER_DECADE = 10


def word_counts(texts: Sequence[str]) -> Integers:
    """Return the number of words of each text after the normalizer ``words``: int64[n]."""
    counting = Extractor(Recipe(features="words:1", normalize="words"), None, LISTED)
    return counting(pa.array(texts, pa.large_string())).sizes


def length_bins(lengths: Integers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the edges of logarithmic bins from the shortest to the longest length above 0, and the number in each.

    Bin i holds edges[i] <= length < edges[i + 1].
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
    empty: int
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
    smallest: float
    mean: float
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


FAMILIES, TEMPLATES = 20, 10
#: Templates are looked for in this many of the largest families, this many texts of each, and this many characters.
_MOST_EXAMINED, _TEXTS_OF_FAMILY, _MOST_CHARACTERS = 40, 12, 5_000_000
_IDS_OF_FAMILY = 5
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
    if len(line) <= _BEGINNING_LENGTH and len(text) <= 2 * _BEGINNING_LENGTH:
        return line
    return line[:_BEGINNING_LENGTH].rstrip() + " …"


class _Family(NamedTuple):
    """A large family: its number, its documents, and those to compare, the central one first."""

    number: int
    members: Integers
    compared: Integers


def _largest_families(findings: Findings | None, texts: Integers) -> list[_Family]:
    if findings is None:
        return []
    found, matches = [], findings.matches
    for place in np.argsort(-findings.families.documents, kind="stable")[:_MOST_EXAMINED].tolist():
        members = np.flatnonzero(findings.families.family == place + 1)
        core = family_core(members, matches.representative, matches.left, matches.right, texts)
        if len(core) > _TEXTS_OF_FAMILY:
            core = core[np.linspace(0, len(core) - 1, _TEXTS_OF_FAMILY).astype(np.int64)]
        found.append(_Family(place + 1, members, core))
    return found


def _summarize(families: Families, family: _Family, reader: DocumentReader) -> LargeFamily:
    at, size = family.number - 1, len(family.members)
    return LargeFamily(
        number=family.number,
        documents=size,
        pairs=int(families.pairs[at]),
        smallest=float(families.smallest[at]),
        mean=float(families.mean[at]),
        complete=int(families.pairs[at]) == size * (size - 1) // 2,
        ids=tuple(map(reader.id, family.members[:_IDS_OF_FAMILY].tolist())),
        begins=beginning(reader.document(int(family.compared[0])).text),
    )


def _find_templates(largest: Sequence[_Family], reader: DocumentReader) -> tuple[list[Template], int]:
    """Return the families that are templates, the largest first, and the number of examined families."""
    found: list[Template] = []
    left = _MOST_CHARACTERS
    for examined, family in enumerate(largest):
        if left <= 0:
            return found, examined
        texts = [reader.document(place).text for place in family.compared.tolist()]
        left -= sum(min(len(text), LONGEST) for text in texts)
        pattern = find_pattern(texts)
        if pattern is not None:
            compared = family.compared[list(pattern.members)].tolist()
            found.append(
                Template(
                    family=family.number,
                    documents=len(family.members),
                    compared=len(compared),
                    ids=tuple(map(reader.id, compared[:_IDS_OF_FAMILY])),
                    constant=pattern.constant,
                    share=pattern.share,
                    pieces=pattern.pieces,
                    slots=pattern.slots,
                    left_out=len(texts) - len(compared),
                )
            )
    return found, len(largest)


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
    """Return the profile of a corpus, which is read twice to find boilerplate, and once for the quoted documents.

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
    firsts = [one.texts[counting[one.texts]][:_IDS_OF_FAMILY].tolist() for one in grown[:PASSAGES]]
    # A run drops no copies of a document that matches nothing.
    comparable = survey.text_bytes > 0 if findings is None else findings.matches.representative >= 0
    repeated = np.where(comparable, copies, 0)
    # The texts with the most copies; the first of equally frequent ones.
    often = np.argsort(-repeated, kind="stable")[:COPIES]
    often = often[repeated[often] > 1]
    largest = _largest_families(findings, texts)
    quoted = np.array([holders[0] for holders in firsts], np.int64)
    reader.load(np.concatenate([quoted, often, *(family.compared for family in largest)]))
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
    templates, examined = _find_templates(largest, reader)
    families = None if findings is None else findings.families
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
        families=() if families is None else tuple(_summarize(families, one, reader) for one in largest[:FAMILIES]),
        families_found=0 if families is None else len(families.documents),
        templates_found=len(templates),
        families_examined=examined,
    )


def _lengths(lengths: Integers) -> Lengths:
    edges, counts = length_bins(lengths)
    return Lengths(
        documents=len(lengths),
        edges=edges,
        counts=counts,
        quantiles=length_quantiles(lengths),
        mean=float(lengths.mean()),
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
