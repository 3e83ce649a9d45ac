"""``neardup explain``: why two documents match or not, side by side."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from neardup.cli.options import Json, ReadOptions, RecipeOptions, with_options
from neardup.cli.screen import say_notes, show_json, visible
from neardup.errors import UnknownDocument

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from neardup.documents import Batch, Corpus
    from neardup.explain import Explanation
    from neardup.passages import Segment, Span

#: As many ids are remembered to name the close ones when one is not found.
_REMEMBERED = 1000


@with_options
def explain(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT... ID1 ID2",
            show_default=False,
            help="What to read, as in dedup, then two ids (row numbers from 0 where there are no ids).",
        ),
    ],
    recipe_options: RecipeOptions,
    read: ReadOptions,
    as_json: Json = False,
) -> None:
    """Show two documents side by side: what they share, the measures, and what would flip the verdict."""
    if len(arguments) < 3:
        raise typer.BadParameter("give at least one input, then two ids: neardup explain news.jsonl 3 17")
    *inputs, left, right = arguments
    recipe = recipe_options.chosen()
    with read.open(inputs, write=False) as corpus:
        say_notes(corpus)
        texts = _find(corpus, (left, right))

    from neardup.explain import explain as explain_texts

    why = explain_texts(texts[left], texts[right], recipe)
    if as_json:
        show_json({"left": left, "right": right} | why.as_dict())
    else:
        _show(why, left, right)


def _find(corpus: Corpus, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of the documents with these ids; of two with the same id, the first.

    Raises
    ------
    UnknownDocument
        If there is none.
    """
    texts: dict[str, str] = {}
    alike: list[str] = []
    missing, documents = list(ids), 0
    with closing(cast("Generator[Batch]", corpus.scan())) as batches:
        for batch in batches:
            names = batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist()
            places: dict[str, int] = {}
            for place, name in enumerate(names):
                places.setdefault(str(name), place)
            texts |= {name: batch.texts[places[name]].as_py() for name in missing if name in places}
            missing = [name for name in ids if name not in texts]
            if not missing:
                return texts
            documents += len(names)
            _remember(alike, list(places), missing)
    raise UnknownDocument(_unknown(missing[0], alike, documents, by_row=corpus.id_column is None))


def _remember(alike: list[str], names: list[str], missing: Sequence[str]) -> None:
    """Keep some of the names that may be meant: the first ones, and those that begin or end alike."""
    for name in names:
        if len(alike) >= _REMEMBERED:
            return
        begins = any(name[: len(m) // 2 + 1].casefold() == m[: len(m) // 2 + 1].casefold() for m in missing)
        if len(alike) < 3 or begins or any(m in name or name in m for m in missing):
            alike.append(name)


def _unknown(wanted: str, alike: list[str], documents: int, *, by_row: bool) -> str:
    import difflib

    if not documents:
        return f"no document has the id {wanted!r}: there is no document at all"
    if by_row:
        return (
            f"no document has the row number {wanted!r}: there are no ids, so name documents by row, counted "
            "from 0, or name a column with --id-column"
        )
    likeness = {name: difflib.SequenceMatcher(None, wanted, name).ratio() for name in alike}
    close = sorted((name for name in alike if likeness[name] >= 0.5), key=lambda name: (-likeness[name], name))[:3]
    if close:
        return f"no document has the id {wanted!r}; close ones are {', '.join(map(repr, close))}"
    return f"no document has the id {wanted!r}; ids look like {', '.join(map(repr, alike[:3]))}"


def _show(why: Explanation, left: str, right: str) -> None:
    """Print the two texts side by side and the numbers below them to stdout."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    colours = console.is_terminal and not console.no_color
    table = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1), show_edge=False)
    for name, size in zip((left, right), why.sizes, strict=True):
        head = f"{visible(name, lines=False)}  ({size:,} features)"
        table.add_column(Text(head, "bold"), ratio=1, overflow="fold")
    table.add_row(
        _marked(why.left, why.left_segments, why.left_changes if why.passages else (), colours=colours),
        _marked(why.right, why.right_segments, why.right_changes if why.passages else (), colours=colours),
    )
    console.print(table)
    console.print()
    numbers = Table.grid(padding=(0, 2))
    numbers.add_column(style="dim", no_wrap=True)
    numbers.add_column(overflow="fold")
    for name, value in _rows(why, colours=colours):
        colour = ("bold green" if why.match else "bold red") if name == "verdict" else ""
        numbers.add_row(name, value if isinstance(value, Text) else Text(visible(value, lines=False), colour))
    console.print(numbers)


def _marked(text: str, segments: Sequence[Segment], changes: Sequence[Span], *, colours: bool) -> Any:
    """Return a text in which shared passages have a colour, and changed words have one or stand in «»."""
    from rich.text import Text

    marked = Text()
    for segment in segments:
        if segment.shared:
            marked.append(visible(text[segment.start : segment.end]), "green" if colours else "")
            continue
        done = segment.start
        for change in changes:
            begin, end = max(change.start, done), min(change.end, segment.end)
            if begin >= end:
                continue
            marked.append(visible(text[done:begin]))
            words = visible(text[begin:end])
            marked.append(words if colours else f"«{words}»", "bold red" if colours else "")
            done = end
        marked.append(visible(text[done : segment.end]))
    return marked


def _rows(why: Explanation, *, colours: bool) -> Iterator[tuple[str, Any]]:
    """Yield the names and values below the texts."""
    from rich.text import Text

    from neardup.explain import decimals

    recipe = why.recipe
    if why.passages:
        longest = max(passage.tokens for passage in why.passages)
        legend = Text.assemble(("shared passages", "green"), ", ", ("words that differ", "bold red"))
        yield "marks", legend if colours else "words that differ stand in «»"
        yield "passages", f"{len(why.passages):,} shared, the longest of {longest:,} tokens"
    else:
        yield "passages", "none shared"
    yield "verdict", f"{'near-duplicates' if why.match else 'no near-duplicates'}: {why.reason}"
    if why.needed is not None:
        yield "needed", f"{why.needed:,} shared features at these sizes"
    yield "measures", ", ".join(f"{name} {decimals(value)}" for name, value in why.measures.items())
    for place, sentence in enumerate(why.flip.sentences):
        yield "" if place else "flips", sentence
    yield "recipe", f"{recipe.name}: {recipe.features} ({recipe.normalize}); fingerprint {recipe.fingerprint}"
