"""A run of ``dedup`` or ``pairs``: in memory or on Spark, against files or an index, with what it prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

from neardup.cli.options import RunOptions
from neardup.cli.screen import print_message, reading_progress, stage_names
from neardup.errors import OutputError, RecipeError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.documents import Corpus
    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex
    from neardup.index.writer import IndexWriter
    from neardup.pipeline.result import Result
    from neardup.recipe import Recipe
    from neardup.spark.engine import Engine


def find_index(names: Sequence[str] | None) -> DiskIndex | None:
    """Return the index among the names of a reference or an input; None if they are files.

    Raises ``NeardupError`` if it is damaged, or not alone.
    """
    if not names:
        return None
    from neardup.index.manifest import is_index

    indexes = [name for name in names if is_index(name)]
    if not indexes:
        return None
    if len(names) > 1:
        raise RecipeError(
            f"{indexes[0]} is an index, which must be given alone: leave out the others, or add them to it"
        )
    from neardup.index.index import DiskIndex

    return DiskIndex(indexes[0])


class IndexReference:
    """An index as the reference of a run, which may add what it keeps; without an index it does nothing.

    Parameters
    ----------
    index : DiskIndex or None
        The index.
    add : bool
        Whether to add the kept documents. Inside ``with`` the run is then the one writer of the index.
    dry_run : bool
        Whether nothing may be written.

    Attributes
    ----------
    index : DiskIndex or None
        The state of the index that documents are compared with.

    Raises
    ------
    NeardupError
        If there is no index to add to, or nothing may be written.
    """

    def __init__(self, index: DiskIndex | None, *, add: bool = False, dry_run: bool = False) -> None:
        if add and index is None:
            raise RecipeError("--add needs an index as reference: name one with --against INDEX, or leave --add out")
        if add and dry_run:
            raise OutputError("--add writes to the index, and --dry-run writes nothing: leave out one of the two")
        self.index, self._add = index, add
        self._writer: IndexWriter | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._add and self.index is not None:
            from neardup.index.index import DiskIndex
            from neardup.index.writer import open_writer

            self._writer = self._stack.enter_context(open_writer(self.index.path))
            # Another writer may have changed the index in the meantime.
            self.index = DiskIndex(self.index.path)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of a run in memory, if they are not those of the recipe."""
        return () if self.index is None else ("prefixes.match_ranks", "prefixes.find_partners")

    def attach(
        self, corpus: Corpus, threads: int | None, progress: Progress | None, *, margin: float | None = None
    ) -> None:
        """Make the index the reference of a corpus: all of it if pairs beyond the threshold are wanted."""
        if self.index is not None:
            self.index.set_as_reference(corpus, all_documents=margin is not None, threads=threads, progress=progress)

    def add_kept(self, corpus: Corpus, result: object, threads: int | None, progress: Progress | None) -> None:
        """Write the kept documents of a result to the index, where they do not count before ``commit``."""
        from neardup.pipeline.result import Result

        if self._writer is not None and isinstance(result, Result):
            self._writer.add(corpus, keep=result.kept_rows, threads=threads, progress=progress)

    def commit(self) -> None:
        """Make the added documents count: last of all, so that a killed run can be repeated."""
        if self._writer is not None and self.index is not None:
            self._writer.commit()
            added = self._writer.manifest.documents - len(self.index)
            total = format_count(self._writer.manifest.documents, "document")
            print_message(f"{format_count(added, 'document')} added to {self.index.path}, which now has {total}")


@contextmanager
def run_recipe(
    corpus: Corpus,
    recipe: Recipe,
    reference: IndexReference,
    engine: Engine | None,
    run_options: RunOptions,
    *,
    keep_rejected: bool,
    write: bool,
    pairs_per_document: float | None = None,
    margin: float | None = None,
    **memory_options: Any,
) -> Iterator[tuple[Result, Progress | None]]:
    """Give the result of a recipe on a corpus, from Spark if there is such an engine, and the progress bar.

    ``keep_rejected`` says whether Spark returns rejected records, ``write`` whether the kept documents are written
    inside the block; the other parameters are those of ``pipeline.run``.
    """
    stages = stage_names(recipe, margin=margin is not None, write=write) if engine is None else ()
    kernels = reference.kernels if engine is None else None
    with reading_progress(corpus, recipe, kernels=kernels, stages=stages) as progress:
        if engine is not None:
            from neardup.spark.engine import run_on_spark

            with run_on_spark(
                corpus,
                recipe,
                engine,
                progress=progress,
                records=keep_rejected,
                pairs_per_document=pairs_per_document,
                index=reference.index,
            ) as result:
                yield result, progress
            return
        from neardup.pipeline.pipeline import run

        reference.attach(corpus, run_options.threads, progress, margin=margin)
        result = run(
            corpus,
            recipe,
            progress=progress,
            pairs_per_document=pairs_per_document,
            margin=margin,
            **run_options.limits,
            **memory_options,
        )
        yield result, progress


def describe_classifier(summary: Mapping[str, Any]) -> str:
    """Return the classifier of a summary with its cut and counts; empty if there was none."""
    if "classifier" not in summary:
        return ""
    details = summary["classifier"]
    cut = describe_cut(*(details[name] for name in ("fingerprint", "cut", "training_precision", "training_recall")))
    outside = ""
    if details["outside"] is not None and details["candidates"]:
        outside = f", {details['outside'] / details['candidates']:.0%} are unlike its training"
    return f"{cut}; {details['passed']:,} of {format_count(details['candidates'], 'candidate')} pass{outside}"


#: The pairs that the precision and recall of a cut were measured on; those that ``train`` prints first are others.
FIGURES_OF_A_CUT = "out of fold on the pairs it was trained on, which chose the cut"


def describe_cut(fingerprint: str, cut: float | None, precision: float, recall: float) -> str:
    """Return a classifier's fingerprint and cut, with the figures of the cut on the pairs that it was chosen on."""
    condition = "no cut" if cut is None or cut == float("-inf") else f"score >= {cut:.4g}"
    return f"{fingerprint}, {condition}: precision {precision:.3f} and recall {recall:.3f} {FIGURES_OF_A_CUT}"


def warn_if_outside_domain(classifier: Classifier | None, summary: Mapping[str, Any]) -> None:
    """Print that the documents of a run are unlike a classifier's training, if the run went on nevertheless."""
    details = summary.get("classifier")
    if classifier is None or details is None or details["outside"] is None:
        return
    from neardup.classifier.domain import DomainCounts

    if complaint := classifier.domain_error(DomainCounts(details["candidates"], details["outside"], details["passed"])):
        print_message(f"{complaint}; its training figures do not hold here")
