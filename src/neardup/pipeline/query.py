"""The most similar documents, and the near-duplicates of a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import EvidenceTable
from neardup.classifier.vector import NO_TIME, Records
from neardup.documents import Corpus
from neardup.documents.records import Names
from neardup.documents.tables import Table
from neardup.errors import InputError, RecipeError, check_count, option, quoted
from neardup.features.extraction import Encoder, extract_features
from neardup.features.reading import Progress, ignore_progress
from neardup.features.store import Vectors
from neardup.pipeline.pipeline import CorpusFeatures, collect_features, load_records, load_texts, thread_count
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, similarities
from neardup.recipe.named import refuse_fields
from neardup.recipe.second_step import SecondStep
from neardup.runtime import Clock, Stage
from neardup.search.matches import Similar
from neardup.search.nearest import RankedDocuments, closest_documents, matching_documents
from neardup.search.second_step import check_classifier, judge_by_classifier, judge_by_measure
from neardup.text.contents import content_of
from neardup.times import TIME_FORMS, microseconds_of


def check_query_options(choices: Mapping[str, Any], *, nearest: bool) -> None:
    """Check that no chosen recipe field is one that the query ignores.

    ``choices`` has fields and their values, None for a field that was not chosen; ``nearest`` asks for the k nearest
    documents, whatever their similarity. Raises ``RecipeError`` for the first such field.
    """
    refuse_fields(
        choices,
        ("search", "recall", "num_perm", "keep"),
        "applies to all pairs of a corpus, and a query compares only some documents; leave it out",
    )
    if nearest:
        # A threshold is accepted, since a measure is seldom named without one; the others would seem to restrict.
        refuse_fields(
            choices,
            ("jaccard_floor", "second_step"),
            "has no effect, since the nearest documents are found whatever their similarity; leave it out",
        )


def read_vectors(
    corpus: Corpus, recipe: Recipe, threads: int, memory: int | str | None, report: Progress, clock: Clock
) -> tuple[CorpusFeatures, Vectors]:
    """Read a corpus; return the documents and their feature vectors."""
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
    """Return the unit of o, a and b: the value that stands for 1."""
    return read.statistics.unit(recipe) if read.statistics is not None and recipe.is_weighted else 1


def check_neighbor_count(k: int, documents: int, max_k: int) -> None:
    """Check that a collection is large enough for k neighbors."""
    if k <= max_k:
        return
    size = f"{documents:,} document{'' if documents == 1 else 's'}"
    hint = f"ask for at most {max_k:,}" if max_k > 0 else "give more documents"
    raise RecipeError(f"k {k:,} is more than a collection of {size} can give; {hint}")


#: Number of ids that are kept for suggestions when an id is not found.
_MAX_SIMILAR_IDS = 1000


def add_similar_ids(similar_ids: list[str], names: Sequence[str], missing: Sequence[str]) -> None:
    """Extend similar_ids by ids that may be meant: the first ones, and those that resemble a missing id."""
    for name in names:
        if len(similar_ids) >= _MAX_SIMILAR_IDS:
            return
        has_prefix = any(name[: len(m) // 2 + 1].casefold() == m[: len(m) // 2 + 1].casefold() for m in missing)
        if len(similar_ids) < 3 or has_prefix or any(m in name or name in m for m in missing):
            similar_ids.append(name)


def unknown_id_message(unknown: str, similar_ids: Sequence[str], documents: int, *, by_row: bool) -> str:
    """Return the error message for an unknown id; ``similar_ids`` were collected by ``add_similar_ids``."""
    import difflib

    if not documents:
        return f"no document has the id {unknown!r}: there are no documents"
    if by_row:
        return (
            f"no document has the row number {unknown!r}: there are no ids, so name documents by row, counted "
            f"from 0, or name a column with {option('--id-column')}"
        )
    ratios = {name: difflib.SequenceMatcher(None, unknown, name).ratio() for name in similar_ids}
    close = sorted((name for name in similar_ids if ratios[name] >= 0.5), key=lambda name: (-ratios[name], name))[:3]
    if close:
        return f"no document has the id {unknown!r}; close ones are {', '.join(map(repr, close))}"
    return f"no document has the id {unknown!r}; ids look like {', '.join(map(repr, similar_ids[:3]))}"


def _apply_classifier(
    corpus: Corpus,
    classifier: Classifier,
    text: str,
    title: str | None,
    time: Any,
    found: RankedDocuments,
    names: Names,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> tuple[RankedDocuments, EvidenceTable, DomainCounts]:
    """Apply a classifier to candidates; return those that pass, the most probable first, with its evidence.

    Documents whose text equals the query pass without being judged, as in a run.

    Raises ``RecipeError`` if most of many candidates are unlike the training pairs.
    """
    if not len(found.document):
        no_evidence = EvidenceTable(classifier, np.empty((0, len(classifier.vector))), np.zeros(0, np.int64))
        return found, no_evidence, DomainCounts()
    documents = np.sort(found.document)
    candidates = load_records(corpus, classifier.candidate_rule, names.rows[documents], threads, classifier)
    text = content_of(text, classifier.candidate_rule.content)
    microseconds = microseconds_of(time)
    records = Records(
        [text, *candidates.texts],
        None if candidates.titles is None else [title, *candidates.titles],
        None
        if candidates.times is None
        else np.append(NO_TIME if microseconds is None else microseconds, candidates.times),
    )
    has_equal_text = np.array([other == text for other in candidates.texts], np.bool_)
    equal, judged = np.flatnonzero(has_equal_text), np.flatnonzero(~has_equal_text)
    decision = judge_by_classifier(
        classifier, records, np.zeros_like(judged), judged + 1, threads=threads, encoder=encoder, progress=progress
    )
    domain_counts = DomainCounts(len(judged), decision.outside or 0, int(decision.passed.sum()))
    # The share that passes is no sign here: the candidates of one document often pass or fail together.
    classifier.check_domain(domain_counts._replace(passed=0))
    rows = np.append(equal, judged[decision.passed])
    similarity = np.append(np.ones(len(equal)), similarities("learned", decision.counts))
    counts = np.concatenate([np.ones((len(equal), 3), np.int64), decision.counts])
    edges = np.append(np.full(len(equal), -1), np.arange(len(decision.vectors)))
    order = np.lexsort((rows, -similarity))
    matching_documents = RankedDocuments(documents[rows[order]], counts[order], similarity[order])
    return matching_documents, EvidenceTable(classifier, decision.vectors, edges[order]), domain_counts


class Answer(Table):
    """The matches or nearest neighbors of a text: rows of document and similarity, the most similar first.

    Attributes
    ----------
    documents : int
        Number of documents that the text was compared with.
    candidates : int
        Number of documents that passed the first of two steps.
    stages : list of Stage
        Cost of each stage.
    learned : EvidenceTable or None
        The evidence of the classifier for each row; None without one.
    counts : DomainCounts or None
        How many pairs the classifier judged, and how many of them are unlike its training pairs; None without a
        classifier, or if it does not record its training domain.
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

        With a classifier, the score and its contributions follow (``EvidenceTable.columns``).

        Parameters
        ----------
        full : bool
            Whether to include all columns of each measure.
        """
        evidence = self.learned.columns(measures=full) if self.learned is not None else {}
        columns = {
            "document": self._names.of_input(self._found.document),
            "similarity": pa.array(self._found.similarity),
        }
        return pa.table(columns | evidence)

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
    name: str = "the text",
    threads: int | None = None,
    memory: int | str | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Find all near-duplicates of a new text in a corpus, the most similar first; of equally similar ones the first.

    Statistics such as idf are those of the corpus. With a second step, the similarity is that of its measure; the k
    nearest are those by the first. ``name`` is how messages call the text, which is an HTML page if the recipe has
    ``content``. The other parameters are those of ``neardup.query``.

    Raises
    ------
    InputError
        If the text is empty or has no features, so that nothing can match it.
    NeardupError
        If the corpus cannot be read, or there are no k documents.
    """
    if k is not None:
        check_count("k", k, "ask for one document at least")
    _check_before_reading(recipe, text, title, time, k, name, encoder, classifier)
    if classifier is not None:
        classifier.check_columns(corpus.columns)
    threads, clock, report = thread_count(threads), Clock(), progress or ignore_progress
    features, vectors = read_vectors(corpus, recipe, threads, memory, report, clock)
    documents, step = len(features.names) + corpus.omitted_count, recipe.parsed_second_step
    if k is not None:
        check_neighbor_count(k, documents, documents)
    with clock.stage("query"):
        matches, learned, counts = _first_step_matches(recipe, text, k, name, features, vectors), None, None
        candidates = len(matches.document)
        if classifier is not None:
            verify_progress = partial(report, "verify")
            matches, learned, counts = _apply_classifier(
                corpus, classifier, text, title, time, matches, features.names, threads, encoder, verify_progress
            )
            counts = None if classifier.domain is None else counts
        elif step is not None and k is None and candidates:
            matches = _second_step_matches(corpus, recipe, step, text, matches, features.names, threads, encoder)
    return Answer(features.names, matches, documents, list(clock.stages), candidates, learned, counts)


def _check_before_reading(
    recipe: Recipe,
    text: str,
    title: str | None,
    time: Any,
    k: int | None,
    name: str,
    encoder: Encoder | None,
    classifier: Classifier | None,
) -> None:
    """Check, before reading, all that would otherwise fail only after the corpus has been read."""
    if not isinstance(text, str):
        raise InputError(f"{name} is of type {type(text).__name__}: give a str, and decode bytes first")
    if not text:
        raise InputError(f"{name} is empty, so nothing can match it; give one with words")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} is not valid Unicode at character {error.start}; decode it with errors='replace'"
        ) from None
    step, compares = recipe.parsed_second_step, {"title": False, "time": False}
    if classifier is not None or (step is not None and step.measure == "learned"):
        vector = check_classifier(classifier, recipe, encoder).vector
        compares = {"title": vector.needs_titles, "time": vector.needs_times}
        if k is not None:
            raise RecipeError(
                f"k {k} asks for the nearest, whatever their similarity, and a classifier looks at candidates "
                "alone; leave one of the two out"
            )
    for field, value in (("title", title), ("time", time)):
        if value is not None and not compares[field]:
            raise RecipeError(f"{field} {value!r} is for a classifier that compares {field}s; leave it out")
    if time is not None and microseconds_of(time) is None:
        raise RecipeError(f"time {quoted(time)} is not a time; give {TIME_FORMS}")
    if step is not None and step.measure == "semantic" and k is None and encoder is None:
        raise RecipeError(
            f"second_step {str(step)!r} needs an encoder, an object with encode(texts): pass one in Python, "
            "nd.query(..., encoder=...)"
        )


def _first_step_matches(
    recipe: Recipe, text: str, k: int | None, name: str, features: CorpusFeatures, vectors: Vectors
) -> RankedDocuments:
    block = extract_features(pa.array([text], pa.large_string()), recipe, features.statistics)
    if not len(block.features):
        subject = f"content {recipe.content} of {name}" if recipe.content else name
        raise InputError(
            f"{subject} has no features by {recipe.signature or recipe.features}, so nothing can match it; give a "
            "longer one, or choose another recipe"
        )
    arguments = vectors, block.features, block.weights
    unit = counts_unit(features, recipe)
    if k is not None:
        return closest_documents(*arguments, recipe.measure, k, unit=unit)
    floor = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    return matching_documents(*arguments, recipe.measure, recipe.exact_threshold, jaccard_floor=floor, unit=unit)


def _second_step_matches(
    corpus: Corpus,
    recipe: Recipe,
    step: SecondStep,
    text: str,
    found: RankedDocuments,
    names: Names,
    threads: int,
    encoder: Encoder | None,
) -> RankedDocuments:
    """Return the documents that also pass the second step, the most similar first."""
    documents = np.sort(found.document)
    texts = [content_of(text, recipe.content), *load_texts(corpus, recipe, names.rows[documents], threads)]
    right = np.arange(1, len(texts))
    passed, counts = judge_by_measure(step, texts, np.zeros_like(right), right, threads, encoder)
    similarity = similarities(step.measure, counts)
    documents = documents[passed]
    order = np.lexsort((documents, -similarity))
    return RankedDocuments(documents[order], counts[order], similarity[order])
