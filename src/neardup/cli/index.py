"""``neardup index``: build, grow and check an index on disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from neardup.cli.command import Command, option, with_options
from neardup.cli.options import Inputs, Json, ReadOptions, RecipeOptions, Threads, check_outputs
from neardup.cli.screen import count_text, progress_bar, reading, say, show_json, show_rows, size_text
from neardup.errors import InputError, OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.documents import Corpus
    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex
    from neardup.index.writer import IndexWriter

#: The kernels that a writer uses.
_WRITES = ("counts.prefixes", "prefixes.enter_entries")


class IndexBehind:
    """An index as the reference of a run, which may add what it keeps; without an index it does nothing.

    Parameters
    ----------
    index : DiskIndex or None
        The index.
    add : bool
        Whether to add the kept documents. Inside ``with`` the run is the one writer of the index then.
    dry_run : bool
        Whether nothing must be written.

    Attributes
    ----------
    index : DiskIndex or None
        The state that documents are compared with.

    Raises
    ------
    NeardupError
        If there is nothing to add to, or nothing must be written.
    """

    def __init__(self, index: DiskIndex | None, *, add: bool = False, dry_run: bool = False) -> None:
        if add and index is None:
            raise RecipeError("--add is for an index as reference: name one with --against INDEX, or leave --add out")
        if add and dry_run:
            raise OutputError("--add writes to the index, and --dry-run nothing: leave out one of the two")
        self.index, self._adds = index, add
        self._writer: IndexWriter | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._adds and self.index is not None:
            from neardup.index.index import DiskIndex
            from neardup.index.writer import open_writer

            self._writer = self._stack.enter_context(open_writer(self.index.path))
            # Another writer may have been there before this one.
            self.index = DiskIndex(self.index.path)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that a run in memory uses, where they are not those of the recipe."""
        return () if self.index is None else ("prefixes.match", "prefixes.look_up")

    def look_up(
        self, corpus: Corpus, threads: int | None, report: Progress | None, *, margin: float | None = None
    ) -> None:
        """Make the index the reference of a corpus, all of it where pairs beyond the threshold are wanted."""
        if self.index is not None:
            self.index.stand_behind(corpus, whole=margin is not None, threads=threads, progress=report)

    def add_kept(self, corpus: Corpus, result: object, threads: int | None, report: Progress | None) -> None:
        """Write the documents that a result keeps into the index, where they do not count before ``commit``."""
        from neardup.pipeline.result import Result

        if self._writer is not None and isinstance(result, Result):
            self._writer.add(corpus, keep=result.kept_rows, threads=threads, progress=report)

    def commit(self) -> None:
        """Make them count: last of all, so that whoever is killed before can begin again."""
        if self._writer is not None and self.index is not None:
            self._writer.commit()
            added = self._writer.manifest.documents - len(self.index)
            total = count_text(self._writer.manifest.documents, "document")
            say(f"{count_text(added, 'document')} added to {self.index.path}, which has {total} now")


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Keep an index on disk, which new documents are compared with.",
)
Folder = Annotated[str, typer.Argument(metavar="INDEX", show_default=False, help="The folder of an index.")]


def _command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of that name."""

    def made(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name=name, cls=Command, no_args_is_help=True)(with_options(function))
        return function

    return made


@_command("build")
def build(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    read: ReadOptions,
    output: Annotated[str, option("INDEX", "The folder of the index, which is not there yet.", None, "--output", "-o")],
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make an index of documents.

    The recipe that is chosen here stays: new documents are compared by it.
    """
    recipe = recipe_options.chosen()
    check_outputs(inputs, ("--quarantine", read.quarantine), force=False)

    from neardup.index.index import build as build_index
    from neardup.index.index import check_free
    from neardup.index.segment import check_recipe

    check_recipe(recipe)
    check_free(output)
    with read.open(inputs) as corpus, reading(corpus, recipe, kernels=_WRITES) as report:
        found = build_index(corpus, output, recipe, threads=threads, progress=report)
    _show(found, as_json=as_json)


@_command("add")
def add(
    index: Folder,
    inputs: Inputs,
    read: ReadOptions,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Add documents, whatever they match there."""
    check_outputs(inputs, ("--quarantine", read.quarantine), force=False)

    from neardup.index.index import DiskIndex
    from neardup.index.writer import open_writer

    with (
        open_writer(index) as writer,
        read.open(inputs) as corpus,
        reading(corpus, writer.recipe, kernels=_WRITES) as report,
    ):
        writer.add(corpus, threads=threads, progress=report)
        writer.commit()
    _show(DiskIndex(index), as_json=as_json)


@_command("remove")
def remove(
    index: Folder,
    ids: Annotated[str, option("FILE", "The ids of the documents, one on each line, in UTF-8.", None, "--ids")],
    as_json: Json = False,
) -> None:
    """Remove documents by their ids."""
    from neardup.files import read as read_file
    from neardup.index.index import DiskIndex
    from neardup.index.writer import open_writer

    try:
        named = read_file(ids, "name a file of ids").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{ids} is not UTF-8 at byte {error.start}: convert it first, as with iconv") from None
    wanted = {name for name in named if name}
    with open_writer(index) as writer:
        count = writer.remove(wanted)
        writer.commit()
    missing = len(wanted) - count
    rest = f"; {count_text(missing, 'id')} of {ids} not there" if missing else ""
    say(f"{count_text(count, 'document')} removed from {index}{rest}")
    _show(DiskIndex(index), as_json=as_json)


@_command("info")
def info(index: Folder, as_json: Json = False) -> None:
    """Say what an index holds, and by which recipe."""
    from neardup.index.index import DiskIndex

    _show(DiskIndex(index), as_json=as_json)


@_command("check")
def check(index: Folder) -> None:
    """Read every byte: 0 if all are as written, else 2."""
    from neardup.index.index import DiskIndex

    found = DiskIndex(index)
    found.check()
    say(f"{index} is whole: {count_text(len(found), 'document')}, {size_text(found.info['bytes'])}")


@_command("compact")
def compact(index: Folder, threads: Threads = None, as_json: Json = False) -> None:
    """Merge segments; no answer changes.

    Small segments become few, and removed documents give their room back.
    """
    from neardup.index.index import DiskIndex
    from neardup.index.writer import open_writer

    with open_writer(index) as writer, progress_bar() as report:
        writer.compact(threads=threads, progress=report)
        writer.commit()
    _show(DiskIndex(index), as_json=as_json)


def _show(index: DiskIndex, *, as_json: bool) -> None:
    """Print what an index holds."""
    found: dict[str, Any] = index.info
    if as_json:
        show_json(found)
        return
    share = f", {found['bytes'] / found['text_bytes']:.0%} of its texts" if found["text_bytes"] else ""
    show_rows(
        f"{index.path}: {count_text(len(index), 'document')}",
        {
            "size": f"{size_text(found['bytes'])}{share}",
            "segments": f"{found['segments']:,}",
            "removed": f"{found['removed']:,}, which compact leaves out" if found["removed"] else "",
            "recipe": f"{index.recipe.name}: {index.recipe.in_words()}; fingerprint {found['fingerprint']}",
        },
    )
