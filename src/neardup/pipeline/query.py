"""The most similar documents, and the near-duplicates of a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import EvidenceTable
from neardup.classifier.records import NO_TIME, Records
from neardup.documents import Corpus
from neardup.documents.records import Names
from neardup.errors import InputError, RecipeError, check_count, option, quoted
from neardup.features.embeddings import Encoder
from neardup.features.extraction import extract_features
from neardup.features.reading import Progress, ignore_progress
from neardup.features.store import Vectors
from neardup.pipeline.pipeline import CorpusFeatures, collect_features, load_records, load_texts, thread_count
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, similarities
from neardup.recipe.named import refuse_fields
from neardup.runtime import Clock, Stage
from neardup.search.matches import Matches, Similar
from neardup.search.nearest import RankedDocuments, closest_documents, matching_documents
from neardup.search.second_step import apply_second_step, check_classifier, judge_by_classifier
from neardup.text.html import content_of
from neardup.times import FORMS, microseconds_of

Integers = npt.NDArray[np.int64]


class Table:
    """Rows that Arrow, pandas and others take."""

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def check_query_options(choices: Mapping[str, Any], *, nearest: bool) -> None:
    """Refuse fields of a recipe that somebody chose and that an answer does not go by.

    Parameters
    ----------
    choices : mapping
        Fields and their values; None for what was not chosen.
    nearest : bool
        Whether the most similar documents are asked for, whatever their similarity.

    Raises
    ------
    RecipeError
        Naming the first one.
    """
    refuse_fields(
        choices,
        ("search", "recall", "num_perm", "keep"),
        "is for all pairs of a corpus, and here documents are compared with given ones; leave it out",
    )
    if nearest:
        # A threshold may stand there, for a measure is seldom named without one; the rest would seem to narrow.
        refuse_fields(
            choices,
            ("jaccard_floor", "second_step"),
            "has no say, for the most similar documents are found whatever their similarity; leave it out",
        )


def read_vectors(
    corpus: Corpus, recipe: Recipe, threads: int, memory: int | None, report: Progress, clock: Clock
) -> tuple[CorpusFeatures, Vectors]:
    """Return what is known of the documents, and their features."""
    if recipe.measure == "semantic":
        raise RecipeError(
            "measure 'semantic' compares embeddings, and neighbours are found by features; choose another measure"
        )
    read = collect_features(
        corpus, recipe.changed(keep="first"), threads=threads, memory=memory, report=report, clock=clock
    )
    with read.store as store:
        return read, store.vectors()


def counts_unit(read: CorpusFeatures, recipe: Recipe) -> int:
    """Return how much of o, a and b makes 1."""
    return read.statistics.unit(recipe) if read.statistics is not None and recipe.is_weighted else 1


def check_neighbor_count(k: int, documents: int, most: int) -> None:
    """Refuse a k that a collection of so many documents cannot give."""
    if k <= most:
        return
    size = f"{documents:,} document{'' if documents == 1 else 's'}"
    way = f"ask for at most {most:,}" if most > 0 else "give more documents"
    raise RecipeError(f"k {k:,} is more than a collection of {size} can give; {way}")


#: As many ids are remembered to name the close ones when one is not found.
_REMEMBERED = 1000


def add_similar_ids(alike: list[str], names: Sequence[str], missing: Sequence[str]) -> None:
    """Add to alike some of the names that may be meant: the first ones, and those that begin or end alike."""
    for name in names:
        if len(alike) >= _REMEMBERED:
            return
        begins = any(name[: len(m) // 2 + 1].casefold() == m[: len(m) // 2 + 1].casefold() for m in missing)
        if len(alike) < 3 or begins or any(m in name or name in m for m in missing):
            alike.append(name)


def unknown_id_message(wanted: str, alike: Sequence[str], documents: int, *, by_row: bool) -> str:
    """Return the sentence about an id that is not found.

    Parameters
    ----------
    wanted : str
        The id.
    alike : sequence of str
        What ``remember`` kept.
    documents : int
        How many documents there are.
    by_row : bool
        Whether documents have row numbers in place of ids.
    """
    import difflib

    if not documents:
        return f"no document has the id {wanted!r}: there is no document at all"
    if by_row:
        return (
            f"no document has the row number {wanted!r}: there are no ids, so name documents by row, counted "
            f"from 0, or name a column with {option('--id-column')}"
        )
    likeness = {name: difflib.SequenceMatcher(None, wanted, name).ratio() for name in alike}
    close = sorted((name for name in alike if likeness[name] >= 0.5), key=lambda name: (-likeness[name], name))[:3]
    if close:
        return f"no document has the id {wanted!r}; close ones are {', '.join(map(repr, close))}"
    return f"no document has the id {wanted!r}; ids look like {', '.join(map(repr, alike[:3]))}"


class QueryDocument(NamedTuple):
    """A new document: its text, and where it is known its title and time, as the columns of a collection hold them."""

    text: str
    title: str | None = None
    time: Any = None


def check_query_document(
    recipe: Recipe, asked: QueryDocument, k: int | None, encoder: Encoder | None, classifier: Classifier | None
) -> None:
    """Refuse what does not go with a classifier, or without one.

    Raises
    ------
    RecipeError
        If the classifier is not the recipe's or needs an encoder that is not there, a title or a time is given that
        none compares, or the k nearest are asked for.
    """
    step, compares = recipe.parsed_second_step, {"title": False, "time": False}
    if classifier is not None or (step is not None and step.measure == "learned"):
        vector = check_classifier(classifier, recipe, encoder).vector
        compares = {"title": vector.needs_titles, "time": vector.needs_times}
        if k is not None:
            raise RecipeError(
                f"k {k} asks for the nearest, whatever their similarity, and a classifier looks at candidates "
                "alone; leave one of the two out"
            )
    for name, value in (("title", asked.title), ("time", asked.time)):
        if value is not None and not compares[name]:
            raise RecipeError(f"{name} {value!r} is for a classifier that compares {name}s; leave it out")
    if asked.time is not None and microseconds_of(asked.time) is None:
        raise RecipeError(f"time {quoted(asked.time)} is not a time between the years 1 and 9999; give {FORMS}")


def apply_classifier(
    corpus: Corpus,
    classifier: Classifier,
    asked: QueryDocument,
    found: RankedDocuments,
    names: Names,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> tuple[RankedDocuments, EvidenceTable, DomainCounts]:
    """Return those of the candidates found that a classifier lets pass, the most probable first, and what it went by.

    Documents with the very text that is asked about pass unasked, as in a run.

    Raises
    ------
    RecipeError
        If most of many candidates are unlike the training pairs.
    """
    if not len(found.document):
        nothing = EvidenceTable(classifier, np.empty((0, len(classifier.vector))), np.zeros(0, np.int64))
        return found, nothing, DomainCounts()
    documents = np.sort(found.document)
    others = load_records(corpus, classifier.candidate_rule, names.rows[documents], threads, classifier)
    text = content_of(asked.text, classifier.candidate_rule.content)
    time = microseconds_of(asked.time)
    records = Records(
        [text, *others.texts],
        None if others.titles is None else [asked.title, *others.titles],
        None if others.times is None else np.append(NO_TIME if time is None else time, others.times),
    )
    equal = np.array([other == text for other in others.texts], np.bool_)
    same, other = np.flatnonzero(equal), np.flatnonzero(~equal)
    every = judge_by_classifier(
        classifier, records, np.zeros_like(other), other + 1, threads=threads, encoder=encoder, progress=progress
    )
    asked_about = DomainCounts(len(other), every.outside or 0, int(every.passed.sum()))
    # How many pass is no sign here: those of one document often pass, or fail, all together.
    classifier.check_domain(asked_about._replace(passed=0))
    place = np.append(same, other[every.passed])
    similarity = np.append(np.ones(len(same)), similarities("learned", every.counts))
    counts = np.concatenate([np.ones((len(same), 3), np.int64), every.counts])
    edges = np.append(np.full(len(same), -1), np.arange(len(every.vectors)))
    order = np.lexsort((place, -similarity))
    ranked = RankedDocuments(documents[place[order]], counts[order], similarity[order])
    return ranked, EvidenceTable(classifier, every.vectors, edges[order]), asked_about


class Answer(Table):
    """The documents that a text matches, or is nearest to: rows of document and similarity, the most similar first.

    Attributes
    ----------
    documents : int
        How many documents the text was compared with.
    candidates : int
        How many passed the first of two steps.
    stages : list of Stage
        What each stage cost.
    learned : EvidenceTable or None
        What a classifier went by, for each row; None where none decided.
    counts : DomainCounts or None
        What a classifier was asked, and how much of that is unlike its training; None where none decided, or it does
        not know what it was trained on.
    """

    def __init__(
        self,
        names: Names,
        found: RankedDocuments,
        documents: int,
        stages: list[Stage],
        candidates: int,
        learned: EvidenceTable | None = None,
        counts: DomainCounts | None = None,
    ) -> None:
        self._names, self._found, self.counts = names, found, counts
        self.documents, self.candidates, self.stages, self.learned = documents, candidates, stages, learned

    def __len__(self) -> int:
        return len(self._found.document)

    def __iter__(self) -> Iterator[Similar]:
        return map(Similar, *(column.to_pylist() for column in self.to_arrow().columns[:2]))

    def to_arrow(self, *, full: bool = False) -> pa.Table:
        """Return a table of document and similarity.

        Where a classifier decided, the score and its contributions follow (``EvidenceTable.columns``).

        Parameters
        ----------
        full : bool
            Whether that says everything of each measure.
        """
        more = self.learned.columns(measures=full) if self.learned is not None else {}
        columns = {
            "document": self._names.of_input(self._found.document),
            "similarity": pa.array(self._found.similarity),
        }
        return pa.table(columns | more)

    def __repr__(self) -> str:
        return f"<{len(self):,} similar documents among {self.documents:,}>"


def query_corpus(
    corpus: Corpus,
    recipe: Recipe,
    text: str,
    *,
    k: int | None = None,
    classifier: Classifier | None = None,
    title: str | None = None,
    time: Any = None,
    what: str = "the text",
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Find all near-duplicates of a new text in a corpus, the most similar first; of equally similar ones the first.

    Parameters
    ----------
    corpus : Corpus
        The documents; the text is none of them. What a recipe takes from a collection, as idf, it takes from these.
    recipe : Recipe
        What makes a match, the second step included: then the similarity is that of its measure.
    text : str
        The text; a page where the recipe has a ``content``.
    k : int, optional
        Find the k nearest instead, by the first measure, whatever their similarity; not with a classifier.
    classifier : Classifier, optional
        For the recipe of a classifier: it.
    title, time : optional
        Those of the text, for classifiers that compare them; not known by default. A time is as the column of times
        holds it.
    what : str
        What messages call the text.
    threads, memory, encoder, progress
        As in ``pipeline.run``.

    Raises
    ------
    InputError
        If the text is empty or has no features, so that nothing can match it.
    NeardupError
        If the corpus cannot be read, or there are no k documents.
    """
    if k is not None:
        check_count("k", k, "ask for one document at least")
    asked = QueryDocument(text, title, time)
    _check_before_reading(recipe, asked, k, what, encoder, classifier)
    if classifier is not None:
        classifier.check_columns(corpus.columns)
    threads, clock, report = thread_count(threads), Clock(), progress or ignore_progress
    read, vectors = read_vectors(corpus, recipe, threads, memory, report, clock)
    documents = int(read.present.sum())
    if k is not None:
        check_neighbor_count(k, documents + corpus.omitted_count, documents + corpus.omitted_count)
    with clock.stage("query"):
        found, learned, counts = _first_step_matches(recipe, text, k, what, read, vectors), None, None
        candidates = len(found.document)
        if classifier is not None:
            say = partial(report, "verify")
            found, learned, counts = apply_classifier(
                corpus, classifier, asked, found, read.names, threads, encoder, say
            )
            counts = None if classifier.domain is None else counts
        elif recipe.second_step and k is None and candidates:
            found = _second_step_matches(corpus, recipe, text, found, read.names, threads, encoder)
    return Answer(read.names, found, documents + corpus.omitted_count, list(clock.stages), candidates, learned, counts)


def _check_before_reading(
    recipe: Recipe,
    asked: QueryDocument,
    k: int | None,
    what: str,
    encoder: Encoder | None,
    classifier: Classifier | None,
) -> None:
    """Refuse what could only fail after the corpus has been read."""
    text = asked.text
    if not isinstance(text, str):
        raise InputError(f"{what} is of type {type(text).__name__}: give a str, and decode bytes first")
    if not text:
        raise InputError(f"{what} is empty, so nothing can match it; give one with words")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} is no valid Unicode at character {error.start}; decode it with errors='replace'"
        ) from None
    check_query_document(recipe, asked, k, encoder, classifier)
    step = recipe.parsed_second_step
    if step is not None and step.measure == "semantic" and k is None and encoder is None:
        raise RecipeError(
            f"second_step {str(step)!r} needs an encoder, an object with encode(texts): hand one over in Python, "
            "nd.query(..., encoder=...)"
        )


def _first_step_matches(
    recipe: Recipe, text: str, k: int | None, what: str, read: CorpusFeatures, vectors: Vectors
) -> RankedDocuments:
    """Return the documents that a text matches by the first measure, or the k nearest."""
    block = extract_features(pa.array([text], pa.large_string()), recipe, read.statistics)
    if not len(block.features):
        whose = f"content {recipe.content} of {what}" if recipe.content else what
        raise InputError(
            f"{whose} has no features by {recipe.signature or recipe.features}, so nothing can match it; give a longer "
            "one, or choose another recipe"
        )
    new = vectors, block.features, block.weights
    unit, excluded = counts_unit(read, recipe), ~read.present
    if k is not None:
        return closest_documents(*new, recipe.measure, k, unit=unit, excluded=excluded)
    floor = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    return matching_documents(
        *new, recipe.measure, recipe.exact_threshold, jaccard_floor=floor, unit=unit, excluded=excluded
    )


def _second_step_matches(
    corpus: Corpus,
    recipe: Recipe,
    text: str,
    found: RankedDocuments,
    names: Names,
    threads: int,
    encoder: Encoder | None,
) -> RankedDocuments:
    """Return those of the documents found that pass the second measure, by their similarity in it."""
    documents = np.sort(found.document)
    texts = [content_of(text, recipe.content), *load_texts(corpus, recipe, names.rows[documents], threads)]
    others = np.arange(1, len(texts))
    matches = Matches(
        np.arange(len(texts)), np.zeros(len(others), np.int64), others, np.ones((len(others), 3), np.int64)
    )
    # The new text is document 0, and none counts as equal to another.
    passed = apply_second_step(
        matches,
        recipe,
        np.arange(len(texts)),
        lambda places: Records([texts[i] for i in places]),
        threads=threads,
        encoder=encoder,
    )
    step = recipe.parsed_second_step
    if step is None or passed.second is None:
        return found
    similarity = similarities(step.measure, passed.second)
    order = np.lexsort((passed.right, -similarity))
    return RankedDocuments(documents[passed.right[order] - 1], passed.second[order], similarity[order])
