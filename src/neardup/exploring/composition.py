"""Looking at what a corpus is made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup.documents import Corpus
from neardup.exploring.boilerplate import (
    RUN,
    Boilerplate,
    Growing,
    Grown,
    Passage,
    least_texts,
    written,
)
from neardup.exploring.families import TEMPLATES, LargestFamilies, beginning
from neardup.exploring.lengths import binned, quantiles_of, words_of
from neardup.exploring.makeup import Copies, CopyGroup, Lengths, Makeup, Source
from neardup.exploring.sample import Sample, Survey
from neardup.exploring.scripts import scripts_of
from neardup.exploring.shared_runs import shared_runs
from neardup.findings import Findings
from neardup.material import Material
from neardup.reading import Report
from neardup.search.verify import equal_texts

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: What is listed of each kind, at most; what there is more is counted.
PASSAGES, COPIES, SOURCES = 20, 10, 20
_IDS = 5


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
    report: Report | None = None,
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
    return [int(first) for first in one.texts[counting[one.texts]][:_IDS]]


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
        ids = tuple(material.id(place) for place in members[:_IDS].tolist())
        size = int(survey.text_bytes[first])
        largest.append(CopyGroup(len(members), size, ids, beginning(material.shown(first).text)))
    return Copies(
        copies=int(surplus.sum()),
        groups=int((copies > 1).sum()),
        bytes=int((surplus * survey.text_bytes).sum()),
        largest=tuple(largest),
    )
