"""The result of a run: kept and dropped documents, pairs, families, explanations, other thresholds, output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import EvidenceTable
from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.keep.groups import GroupVerdicts
from neardup.keep.pairs import Pair, Pairs
from neardup.keep.verdicts import DropList, Family, family_list
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, parse_threshold, reaches_threshold
from neardup.runtime import Clock, within_budget
from neardup.search.findings import Documents, Findings, assemble_findings, classifier_details
from neardup.search.margin import Margin, criterion_of, select_pairs
from neardup.search.matches import Matches
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.features.extraction import Encoder
    from neardup.features.statistics import Statistics
    from neardup.pipeline.explanation import Explanation
    from neardup.pipeline.run_report import ReportSettings


#: Dropped groups that a summary names.
_LISTED_GROUPS = 10


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Run:
    """A run up to its matching pairs; the corpus is still open."""

    corpus: Corpus
    recipe: Recipe
    documents: Documents
    matches: Matches
    #: What the engine adds to the summary.
    details: dict[str, Any]
    clock: Clock
    statistics: Statistics | None = None
    encoder: Encoder | None = None
    classifier: Classifier | None = None
    #: The pairs beyond the threshold, if they were searched for.
    margin: Margin | None = None
    #: The memory budget in bytes.
    memory: int | None = None


class Result:
    """The result of a run. It is immutable; ``at`` returns another result.

    Attributes
    ----------
    recipe : Recipe
        The recipe of the run.
    summary : dict
        Counts, stages, recipe and versions, ready for JSON.
    pairs : Pairs
        All pairs at or above the threshold; if ``summary["all_pairs"]`` is False, only pairs of dropped documents
        with kept documents that precede them.
    """

    def __init__(self, run: Run) -> None:
        """Decide which documents are kept.

        Raises
        ------
        ForeignDocuments
            If the documents are unlike those of the classifier's training.
        """
        self._run, self.recipe = run, run.recipe
        self._corpus, self._documents, self._matches = run.corpus, run.documents, run.matches
        classifier, matches = run.classifier, run.matches
        self._evidence = None
        if classifier is not None:
            classifier.check_domain(DomainCounts.from_search(matches.statistics))
            if matches.vectors is not None:
                self._evidence = partial(EvidenceTable, classifier, matches.vectors)
        similarity = criterion_of(run.recipe, classifier).similarities(matches)
        pairs = matches.representative, matches.left, matches.right, similarity
        self.pairs = Pairs(run.documents.names, *pairs, evidence=self._columns if self._evidence else None)
        self._findings = assemble_findings(
            run.corpus, run.recipe, run.documents, matches, self.pairs, classifier=classifier, margin=run.margin
        )
        self._keepers, self._families = self._findings.keepers, self._findings.families

    @property
    def kept(self) -> list[Any]:
        """The ids of the kept documents in input order; row numbers if there are no ids."""
        return list(self._documents.names.of_input(self._findings.kept_mask).to_pylist())

    @property
    def undecidable(self) -> list[Any]:
        """The ids of documents without features, which match nothing: empty texts, or too few terms for I-Match."""
        mask = (self._matches.representative < 0) & self._documents.present
        return list(self._documents.names.of_input(mask).to_pylist())

    @property
    def dropped(self) -> DropList:
        """The dropped documents, each with its keeper."""
        return DropList(
            self._documents.names, np.flatnonzero(self._findings.dropped_mask), self._keepers, self._families.family
        )

    @property
    def families(self) -> list[Family]:
        """The families, in the order of their first documents."""
        return family_list(self._families, self._documents.names)

    @property
    def findings(self) -> Findings:
        """The findings as arrays by position, from which reports and explorations are made."""
        return self._findings

    @property
    def texts(self) -> Integers:
        """For each document the first one with the same text; -1 for documents that match nothing: int64[n]."""
        return self._findings.texts

    @property
    def vectors(self) -> Floats | None:
        """The measures that a classifier used, for each pair of representatives; None without a classifier."""
        return self._matches.vectors

    @property
    def summary(self) -> dict[str, Any]:
        """Counts, stages, recipe and versions, ready for JSON."""
        dropped, present, classifier = self._findings.dropped_mask, self._documents.present, self._run.classifier
        return {
            "documents": int(present.sum()),
            "kept": int(self._findings.kept_mask.sum()),
            "dropped": int(dropped.sum()),
            "exact_copies": int(self._findings.text_copies.sum()),
            "equal_content": int(self._findings.feature_copies.sum()),
            "families": len(self._families.documents),
            "largest_family": int(self._families.documents.max(initial=0)),
            "pairs": len(self.pairs),
            "all_pairs": self._matches.complete,
            "text_bytes": int(self._documents.text_bytes[present].sum()),
            "bytes_saved": int(self._documents.text_bytes[dropped].sum()),
            "columns": self._corpus.columns_used,
            "rejected": dict(self._corpus.rejected.counts),
            **({"skipped": dict(self._corpus.skipped)} if self._corpus.skipped else {}),
            **({"failed_pages": dict(self._corpus.failed_pages.counts)} if self._corpus.failed_pages else {}),
            "stages": list(self._run.clock.stages),
            **self._reference_summary(),
            **self._corpus.torn_summary,
            **({"encodings": self._corpus.encodings} if self._corpus.encodings else {}),
            **({"spooled_bytes": self._corpus.spooled_bytes} if self._corpus.spooled_bytes else {}),
            **({} if self._findings.groups is None else {"drop_by": self._group_summary(self._findings.groups)}),
            "undecidable": int((present & (self._matches.representative < 0)).sum()),
            "version": __version__,
            "recipe": self.recipe.values,
            "fingerprint": self.recipe.fingerprint,
            **(classifier_details(classifier, self._matches.statistics) if classifier is not None else {}),
            **self._run.details,
        }

    def _group_summary(self, verdicts: GroupVerdicts) -> dict[str, Any]:
        """Return the column, the share, and how many groups of the input are dropped; the largest of these by name."""
        rule, dropped = verdicts.rule, verdicts.dropped
        largest = dropped[np.lexsort((dropped, -verdicts.documents[dropped]))][:_LISTED_GROUPS].tolist()
        return {
            "column": rule.column,
            "share": float(rule.share),
            "groups": len(np.unique(rule.groups[: self._documents.names.input_count])),
            "dropped": len(dropped),
            "largest_dropped": [
                {
                    "group": rule.names[group],
                    "of": rule.names[int(verdicts.keeper[group])],
                    "documents": int(verdicts.documents[group]),
                    "matched": int(verdicts.matched[group]),
                }
                for group in largest
            ],
        }

    def _reference_summary(self) -> dict[str, Any]:
        reference = self._corpus.reference
        if reference is None:
            return {}
        keeper = self._keepers.keeper[self._findings.dropped_mask]
        columns = {"reference_columns": reference.columns_used} if reference.inputs else {}
        return columns | {
            "reference": {
                "documents": self._documents.names.reference_count + reference.omitted_count,
                "keepers": len(np.unique(keeper[keeper >= self._documents.names.input_count])),
                "dropped": int((keeper >= self._documents.names.input_count).sum()),
                "rejected": dict(reference.rejected.counts),
                **({} if reference.known_count is None else {"known": reference.known_count}),
            }
        }

    def evidence(self, left: Integers, right: Integers) -> EvidenceTable | None:
        """Return the evidence of the classifier for matching documents, by position; None without a classifier."""
        return self._evidence(self.pairs.edge_of(left, right)) if self._evidence else None

    def _columns(self, edges: Integers, full: bool) -> dict[str, pa.Array]:
        return self._evidence(edges).columns(measures=full) if self._evidence else {}

    def duplicates(self) -> pa.Table:
        """Return a table of the dropped documents: dropped, keeper (ids), similarity, family.

        In a run against a reference, ``keeper_from`` says where the keeper is: ``input`` or ``reference``. With a
        run with ``drop_by``, ``group`` is the group of a document and ``keeper_group`` the one for which it is dropped;
        the similarity of a document that matches none there is 0, and its keeper the first one there. With a
        classifier, the score and its contributions follow (``EvidenceTable.columns``).
        """
        positions = np.flatnonzero(self._findings.dropped_mask)
        names = self._documents.names
        evidence = self.evidence(positions, self._keepers.keeper[positions])
        return pa.table(
            {
                "dropped": names.of_input(positions),
                "keeper": names.take(self._keepers.keeper[positions]),
                "similarity": pa.array(self._keepers.similarity[positions]),
                "family": pa.array(self._families.family[positions]),
            }
            | ({} if names.reference_names is None else {"keeper_from": names.side_of(self._keepers.keeper[positions])})
            | self._group_columns(positions)
            | ({} if evidence is None else evidence.columns())
        )

    def _group_columns(self, positions: Integers) -> dict[str, pa.Array]:
        """Return the group of dropped documents, and that for which it is dropped; nothing without groups."""
        verdicts = self._findings.groups
        if verdicts is None:
            return {}
        names, own = pa.array(verdicts.rule.names, pa.large_string()), verdicts.rule.groups[positions]
        return {"group": names.take(pa.array(own)), "keeper_group": names.take(pa.array(verdicts.keeper[own]))}

    @property
    def kept_rows(self) -> Bools:
        """Whether each raw row of the input is kept: bool[rows].

        It chooses rows of the data: ``frame[result.kept_rows]`` in pandas, ``frame.filter(result.kept_rows)`` in
        Polars, and ``dataset.select(np.flatnonzero(result.kept_rows))`` for a Hugging Face data set.
        """
        mask = np.zeros(self._corpus.raw_rows, np.bool_)
        mask[self._documents.names.rows[np.flatnonzero(self._findings.kept_mask)]] = True
        return mask

    def write(
        self, output: str | PathLike[str], *, force: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        """Write the kept documents, with all columns.

        Parameters
        ----------
        output : path or URI
            A file, whose ending determines the format; or a folder with a trailing slash, which gets a file of the
            same name and format for each input.
        force : bool
            Whether an existing file may be replaced.
        progress : callable, optional
            Called with the number of rows written since the last call.
        """
        self._write(self._findings.kept_mask, output, force, progress, None)

    def write_annotated(
        self,
        output: str | PathLike[str],
        *,
        prefix: str = "neardup_",
        force: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Write all documents that were read, in input order, followed by the columns of ``annotations``.

        The parameters are those of ``write``, and ``prefix`` is that of ``annotations``.
        """
        self._write(self._documents.present, output, force, progress, self.annotations(prefix))

    def _write(
        self,
        chosen: Bools,
        output: str | PathLike[str],
        force: bool,
        progress: Callable[[int], None] | None,
        added: pa.Table | None,
    ) -> None:
        mask = np.zeros(self._corpus.raw_rows, np.bool_)
        mask[self._documents.names.rows[chosen]] = True
        with self._run.clock.stage("write"), within_budget(self._run.memory):
            threads = int(self._run.details.get("threads", 1))
            self._corpus.copy(mask, os.fspath(output), force=force, progress=progress, added=added, threads=threads)

    def annotations(self, prefix: str = "neardup_") -> pa.Table:
        """Return the verdict on each document that was read, in input order, as a table.

        The columns are ``kept``; ``keeper`` and the ``similarity`` to it, null for a kept document; ``family`` (null
        without one) and ``family_size`` (1 without one); in a run against a reference also ``keeper_from``:
        ``input`` or ``reference``.

        Parameters
        ----------
        prefix : str
            Prefix of each column name.
        """
        names, positions = self._documents.names, np.arange(self._documents.names.input_count)
        keeper, kept = self._keepers.keeper[positions], self._findings.kept_mask[positions]
        family = self._families.family[positions]
        sizes = np.concatenate([[1], self._families.documents])
        columns = {
            "kept": pa.array(kept),
            "keeper": pc.if_else(pa.array(kept), None, names.take(keeper)),
            "similarity": pa.array(self._keepers.similarity[positions], mask=kept),
            "family": pa.array(family, mask=family == 0),
            "family_size": pa.array(sizes[family]),
        }
        if names.reference_names is not None:
            columns["keeper_from"] = pc.if_else(pa.array(kept), None, names.side_of(keeper))
        return pa.table({prefix + name: column for name, column in columns.items()})

    def table(self) -> pa.Table:
        """Return the kept documents, with all columns, as a table in memory."""
        return self._corpus.take(self._documents.names.rows[self._findings.kept_mask])

    def at(self, threshold: float) -> Result:
        """Return the result at another threshold, without another search.

        Parameters
        ----------
        threshold : float
            Higher than the threshold of this run (lower for a distance), or lower as far as the ``margin`` of the run
            allows.

        Raises
        ------
        RecipeError
            If the pairs at that threshold are unknown, or if a classifier decided, which has a cut instead of a
            threshold.
        """
        if self._run.classifier is not None:
            raise RecipeError(
                "a classifier has no threshold to move; choose its working point and run again, with "
                "classifier.at_precision(0.99)"
            )
        new, current = parse_threshold(self.recipe.measure, threshold), self.recipe.exact_threshold
        margin, matches = self._run.margin, self._matches
        distance = measure(self.recipe.measure).distance
        if new > current if distance else new < current:
            wide = None if margin is None or self.recipe.second_step else margin.matches
            end = None if margin is None else margin.relaxed_threshold
            if wide is None or end is None or (new > end if distance else new < end):
                side = "above" if distance else "below"
                raise RecipeError(
                    f"threshold {threshold} is {side} this run's {self.recipe.threshold}: such pairs are unknown; "
                    f"run again with threshold={threshold}"
                )
            matches = wide
        if not matches.complete:
            raise RecipeError(
                f"this run has too many pairs to know all of them, so its result at {threshold} is unknown; run again "
                f"with threshold={threshold}, or with pairs_per_document=None"
            )
        recipe = self.recipe.changed(threshold=threshold)
        chosen = select_pairs(matches, reaches_threshold(recipe.measure, matches.counts, new, matches.unit))
        return Result(replace(self._run, recipe=recipe, matches=chosen, margin=None))

    def borderline(self, count: int = 10) -> list[Pair]:
        """Return the pairs that barely match, the least similar first; with a classifier, the least probable first.

        Pairs that a classifier rejected are unknown; ``classifier.without_cut()`` accepts all candidates.
        """
        order = np.lexsort((self.pairs.right, self.pairs.left, self.pairs.similarity))[:count]
        pairs = self.pairs
        return [pairs.pair(int(pairs.left[i]), int(pairs.right[i]), pairs.similarity[i]) for i in order]

    def explain(self, left: Any, right: Any) -> Explanation:
        """Return why two documents match or not.

        Parameters
        ----------
        left, right : id
            Ids of documents; row numbers where there are none.

        Raises
        ------
        UnknownDocument
            If there is no such document.
        """
        from neardup.pipeline.explanation import explain

        names = self._documents.names
        rows = [int(names.rows[names.position_of(name)]) for name in (left, right)]
        table = self._corpus.take(rows)
        texts = table[self._corpus.text_column].to_pylist()
        run, classifier = self._run, self._run.classifier
        records = classifier.records(table, texts) if classifier else None
        found = explain(texts[0], texts[1], self.recipe, run.statistics, run.encoder, classifier, records)
        return replace(found, groups=self.describe_groups(rows))

    def describe_groups(self, rows: Sequence[int]) -> tuple[str, ...]:
        """Return the verdict on each group of documents of the input, as clauses; nothing without ``drop_by``."""
        verdicts, names = self._findings.groups, self._documents.names
        if verdicts is None:
            return ()
        positions = [int(np.flatnonzero(names.rows == row)[0]) for row in rows]
        groups = dict.fromkeys(verdicts.rule.groups[positions].tolist())
        return tuple(map(verdicts.describe, groups))

    def report(self, path: str | PathLike[str], *, force: bool = False, **settings: Unpack[ReportSettings]) -> None:
        """Write the report: one HTML file that shows what was dropped and why. It needs the packages for charts.

        It shows pairs below the threshold as far as the ``margin`` of the run allows.

        Parameters
        ----------
        path : path
            A name that ends in .html.
        force : bool
            Whether an existing file may be replaced.
        **settings
            What is shown: ``families``, ``cases`` and ``rows`` (how many), ``seed``, ``title``, ``command``,
            ``title_column`` and ``time_column``.

        Raises
        ------
        NeardupError
            If it cannot be written or an option does not fit.
        """
        from neardup.pages.page import check_page

        check_page(str(path), self._corpus.inputs, force=force)
        from neardup.pages.report_page import write_page
        from neardup.pipeline.run_report import run_report

        with self._run.clock.stage("report"):
            write_page(str(path), run_report(self._findings, self.summary, **settings))

    def plot_similarity(self) -> Any:
        """Return a histogram of the similarities of dropped documents to their keepers, as an Altair chart.

        A notebook shows it as a picture; ``save("chart.html")`` writes a self-contained page. Neither uses the network.

        Raises
        ------
        OutputError
            If the packages for charts are not installed.
        """
        from neardup.pipeline.run_report import similarity_plot

        return similarity_plot(self._findings)

    def _repr_html_(self) -> str | None:
        # Without jinja2, a notebook falls back to `repr`.
        if find_spec("jinja2") is None:
            return None
        from neardup.pipeline.run_report import notebook_html

        return notebook_html(self._findings, self.summary)

    def close(self) -> None:
        """Move the quarantine file into place and remove temporary files; no text can be read afterwards."""
        self._corpus.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.kept)

    def __repr__(self) -> str:
        sign = "<=" if measure(self.recipe.measure).distance else ">="
        criterion = f"{self.recipe.features} {self.recipe.measure} {sign} {self.recipe.threshold}"
        if self._run.classifier is not None:
            criterion = f"classifier {self._run.classifier.fingerprint}"
        kept, dropped = int(self._findings.kept_mask.sum()), int(self._findings.dropped_mask.sum())
        return f"<neardup result: {kept:,} kept, {dropped:,} dropped, {criterion}>"
