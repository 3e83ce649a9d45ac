"""``neardup explain``: why two documents match or not, side by side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from neardup.cli.options import Json, ReadOptions, RecipeOptions, with_options
from neardup.cli.screen import say_notes, show, visible
from neardup.errors import UnknownDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Corpus
    from neardup.explain import Explanation
    from neardup.passages import Segment

#: As many ids are remembered to name the close ones when one is not found.
_REMEMBERED = 1000


class Wanted(NamedTuple):
    """The texts that were found by their ids, and ids that look like those that were not."""

    texts: dict[str, str]
    alike: list[str]


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
        show(json.dumps({"left": left, "right": right} | why.as_dict(), ensure_ascii=False, indent=2))
    else:
        _show(why, left, right)


def _find(corpus: Corpus, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of the documents with these ids; of two with the same id, the first.

    Raises
    ------
    UnknownDocument
        If there is none.
    """
    found = Wanted({}, [])
    documents, missing = 0, list(ids)
    for batch in corpus.scan():
        names = batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist()
        places: dict[Any, int] = {}
        for place, name in enumerate(names):
            places.setdefault(str(name), place)
        for wanted in ids:
            if wanted not in found.texts and wanted in places:
                found.texts[wanted] = batch.texts[places[wanted]].as_py()
        missing = [wanted for wanted in ids if wanted not in found.texts]
        if not missing:
            return found.texts
        documents += len(names)
        _remember(found.alike, list(places), missing)
    by_row = corpus.id_column is None
    raise UnknownDocument(_unknown(missing[0], found.alike, documents, by_row=by_row))


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
    close = difflib.get_close_matches(wanted, alike, n=3, cutoff=0.5)
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
    table = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1), show_edge=False)
    for name, size in zip((left, right), why.sizes, strict=True):
        head = f"{visible(name, lines=False)}  ({size:,} features)"
        table.add_column(Text(head, "bold"), ratio=1, overflow="fold")
    colours = console.is_terminal and not console.no_color
    table.add_row(
        _marked(why.left, why.left_segments, colours=colours),
        _marked(why.right, why.right_segments, colours=colours),
    )
    console.print(table)
    console.print()
    if why.passages:
        coloured = Text.assemble(("shared passages", "green"), ", ", ("the rest", "bold red"))
        console.print(coloured if colours else "What is not part of a shared passage stands in «».")
    for line in _lines(why):
        console.print(line)


def _marked(text: str, segments: Sequence[Segment], *, colours: bool) -> Any:
    """Return a text in which shared passages and the rest differ: by colour, or by «» around the rest."""
    from rich.text import Text

    marked = Text()
    for segment in segments:
        part = visible(text[segment.start : segment.end])
        if colours:
            marked.append(part, "green" if segment.shared else "bold red")
        elif segment.shared or not any(character.isalnum() for character in part):
            marked.append(part)
        else:
            inner = part.strip()
            before, after = part.split(inner, 1)
            marked.append(f"{before}«{inner}»{after}")
    return marked


def _lines(why: Explanation) -> list[Any]:
    from rich.text import Text

    verdict = "near-duplicates" if why.match else "no near-duplicates"
    longest = max((passage.tokens for passage in why.passages), default=0)
    recipe = why.recipe
    rows = {
        "verdict": f"{verdict}: {why.reason}",
        "needed": "" if why.needed is None else f"{why.needed:,} shared features at these sizes",
        "measures": ", ".join(f"{name} {value:.4f}" for name, value in why.measures.items()),
        "passages": f"{len(why.passages):,} shared, the longest of {longest:,} tokens"
        if longest
        else "none shared",
        "recipe": f"{recipe.name}: {recipe.features} ({recipe.normalize}); fingerprint {recipe.fingerprint}",
    }
    colour = "bold green" if why.match else "bold red"
    lines = [
        Text.assemble(
            (f"{name:<10}", "dim"), (visible(value, lines=False), colour if name == "verdict" else "")
        )
        for name, value in rows.items()
        if value
    ]
    heads = ["flips", *[""] * len(why.flip.sentences)]
    return lines + [
        Text.assemble((f"{head:<10}", "dim"), sentence)
        for head, sentence in zip(heads, why.flip.sentences, strict=False)
    ]
