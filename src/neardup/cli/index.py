"""``neardup index``: build, grow and check an index on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from neardup.cli import screen
from neardup.cli.command import MORE, Group, argument, option, output_option, switch
from neardup.cli.options import Inputs, Json, ReadOptions, RecipeOptions, Threads, decode_text
from neardup.pages.numbers import format_count, format_size

if TYPE_CHECKING:
    from neardup.documents import Corpus
    from neardup.index.index import DiskIndex

index_group = Group("index", "Keep an index on disk to compare new documents with.")
StrictIds = Annotated[
    bool,
    switch("--strict-ids", "Refuse ids that the index has; by default the same id and text is skipped.", MORE),
]
Folder = Annotated[str, argument("INDEX", "The folder of an index.")]


@index_group.add()
def build(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    read_options: ReadOptions,
    output: Annotated[str, output_option("The folder of the new index.", "INDEX")],
    threads: Threads = None,
    strict_ids: StrictIds = False,
    as_json: Json = False,
) -> None:
    """Build an index of documents.

    Its recipe is fixed: new documents are compared by it.
    """
    recipe = recipe_options.resolve()
    screen.check_outputs(inputs, {"--quarantine": read_options.quarantine})

    from neardup.index.index import build as build_index
    from neardup.index.index import check_new_path
    from neardup.index.segment import check_recipe

    check_recipe(recipe)
    check_new_path(output)
    with (
        read_options.open(inputs) as corpus,
        screen.reading_progress(corpus, recipe, columns=False) as progress,
    ):
        built_index = build_index(corpus, output, recipe, strict_ids=strict_ids, threads=threads, progress=progress)
    _print_index(built_index, as_json=as_json, corpus=corpus, known=built_index.known_count)


@index_group.add()
def add(
    index: Folder,
    inputs: Inputs,
    read_options: ReadOptions,
    threads: Threads = None,
    strict_ids: StrictIds = False,
    as_json: Json = False,
) -> None:
    """Add documents, even if they match others in the index.

    A document that the index has already, with this id and this text, is skipped.
    """
    screen.check_outputs(inputs, {"--quarantine": read_options.quarantine})

    from neardup.index.index import DiskIndex
    from neardup.index.writer import open_writer

    with (
        open_writer(index) as writer,
        read_options.open(inputs) as corpus,
        screen.reading_progress(corpus, writer.recipe, columns=False) as progress,
    ):
        known = writer.add(corpus, strict_ids=strict_ids, threads=threads, progress=progress)
        writer.commit()
    _print_index(DiskIndex(index), as_json=as_json, corpus=corpus, known=known)


@index_group.add()
def remove(
    index: Folder,
    ids: Annotated[str, option("FILE", "File with the ids of the documents, one per line, in UTF-8.", None, "--ids")],
    as_json: Json = False,
) -> None:
    """Remove documents by their ids."""
    from neardup.files import read_file
    from neardup.index.index import DiskIndex
    from neardup.index.writer import open_writer

    lines = decode_text(read_file(ids, "name a file of ids"), ids).splitlines()
    unique_ids = {line for line in lines if line}
    with open_writer(index) as writer:
        count = writer.remove(unique_ids)
        writer.commit()
    unknown_count = len(unique_ids) - count
    suffix = f"; {format_count(unknown_count, 'id')} of {ids} not found" if unknown_count else ""
    screen.print_message(f"{format_count(count, 'document')} removed from {index}{suffix}")
    _print_index(DiskIndex(index), as_json=as_json)


@index_group.add()
def info(index: Folder, as_json: Json = False) -> None:
    """Print the contents and the recipe of an index."""
    from neardup.index.index import DiskIndex

    _print_index(DiskIndex(index), as_json=as_json)


@index_group.add()
def check(index: Folder) -> None:
    """Verify every byte; exit with 2 if any has changed."""
    from neardup.index.index import DiskIndex

    disk_index = DiskIndex(index)
    disk_index.check()
    screen.print_message(
        f"{index} is intact: {format_count(len(disk_index), 'document')}, {format_size(disk_index.info['bytes'])}"
    )


@index_group.add()
def compact(index: Folder, threads: Threads = None, as_json: Json = False) -> None:
    """Merge small segments and free removed documents.

    No answer changes.
    """
    from neardup.index.index import DiskIndex
    from neardup.index.writer import open_writer

    with open_writer(index) as writer, screen.progress_bar() as progress:
        writer.compact(threads=threads, progress=progress)
        writer.commit()
    _print_index(DiskIndex(index), as_json=as_json)


def _print_index(index: DiskIndex, *, as_json: bool, corpus: Corpus | None = None, known: int = 0) -> None:
    info: dict[str, Any] = index.info | ({} if corpus is None else {"columns": corpus.columns_used, "known": known})
    if as_json:
        screen.print_json(info)
        return
    share = f", {info['bytes'] / info['text_bytes']:.0%} of its texts" if info["text_bytes"] else ""
    screen.print_summary(
        f"{index.path}: {format_count(len(index), 'document')}",
        {
            "size": f"{format_size(info['bytes'])}{share}",
            "segments": f"{info['segments']:,}",
            "known": f"{format_count(known, 'document')}, skipped: the index has them already" if known else "",
            "removed": f"{info['removed']:,}, which compact frees" if info["removed"] else "",
            "columns": "" if corpus is None else screen.describe_columns(corpus),
            "recipe": f"{index.recipe.name}: {index.recipe.in_words()}; fingerprint {info['fingerprint']}",
        },
    )
