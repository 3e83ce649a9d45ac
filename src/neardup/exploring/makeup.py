"""What a corpus is made of: lengths, sources, scripts, exact copies, boilerplate, templates, families."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from neardup.exploring.boilerplate import Boilerplate
from neardup.exploring.scripts import Scripts
from neardup.exploring.templates import Template


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
