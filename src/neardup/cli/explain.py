"""``neardup explain``: why two documents match or not, side by side."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from neardup.cli.command import refuse_ignored, with_options
from neardup.cli.options import ClassifierOptions, Json, ReadOptions, RecipeOptions, TimeColumn, chosen_recipe, cut_text
from neardup.cli.screen import count_text, grid, progress_bar, say_if_compiling, say_notes, show_json, visible
from neardup.errors import InputError, UnknownDocument

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from neardup.classifier.evidence import Evidence
    from neardup.documents import Batch, Corpus
    from neardup.features.statistics import Statistics
    from neardup.pipeline.explanation import Explanation
    from neardup.pipeline.passages import Segment, Span
    from neardup.recipe import Recipe


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
    decided: ClassifierOptions,
    read: ReadOptions,
    time_column: TimeColumn = None,
    as_json: Json = False,
) -> None:
    """Show two documents side by side: what they share, and what would change the verdict."""
    if len(arguments) < 3:
        given = " ".join(arguments)
        raise InputError(f"explain {given!r} names no pair: give an input and two ids, as in explain news.jsonl 3 17")
    refuse_ignored(("quarantine",), "is for commands that read all documents; leave it out")
    refuse_ignored(("force_domain",), "is for commands that stop, and explain says what is unlike; leave it out")
    *inputs, left, right = arguments
    classifier = decided.loaded(time_column)
    recipe = chosen_recipe(recipe_options, classifier)

    from neardup.pipeline.explanation import explain as explain_texts
    from neardup.pipeline.resolved_features import needs_kernels

    with read.open(inputs, write=False) as corpus:
        say_notes(corpus, recipe)
        # Titles and times are asked of the whole rows.
        asks = classifier if classifier is not None and classifier.needs_columns else None
        found = _find(corpus, (left, right), whole=asks is not None)
        texts, rows = [found[left].text, found[right].text], [found[left].row, found[right].row]
        if needs_kernels(recipe) or classifier is not None:
            say_if_compiling(None)
        statistics = _statistics(corpus, recipe)
        records = asks.records(corpus.take(rows), texts) if asks is not None else None

    why = explain_texts(texts[0], texts[1], recipe, statistics, classifier=classifier, records=records)
    if as_json:
        show_json({"left": left, "right": right} | why.as_dict())
    else:
        _show(why, left, right)


def _statistics(corpus: Corpus, recipe: Recipe) -> Statistics | None:
    """Return what the recipe takes from the whole collection, which is read once more, or None."""
    if not recipe.needs_statistics:
        return None
    from neardup.features.reading import gather_statistics

    with progress_bar() as report:
        return gather_statistics(corpus, recipe, report=report)


class _Found(NamedTuple):
    row: int
    text: str


def _find(corpus: Corpus, ids: Sequence[str], *, whole: bool) -> dict[str, _Found]:
    """Return rows and texts of the documents with these ids; of two with the same id, the first.

    With ``whole`` all is read, which it must be before ``take``.

    Raises
    ------
    UnknownDocument
        If there is none.
    """
    from neardup.pipeline.query import remember, unknown_id

    found: dict[str, _Found] = {}
    alike: list[str] = []
    missing, documents = list(ids), 0
    with closing(cast("Generator[Batch]", corpus.scan())) as batches:
        for batch in batches:
            names = batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist()
            places: dict[str, int] = {}
            for place, name in enumerate(names):
                places.setdefault(str(name), place)
            here = {name: places[name] for name in missing if name in places}
            found |= {name: _Found(int(batch.rows[at]), batch.texts[at].as_py()) for name, at in here.items()}
            missing = [name for name in ids if name not in found]
            if not (missing or whole):
                return found
            documents += len(names)
            remember(alike, list(places), missing)
    if not missing:
        return found
    raise UnknownDocument(unknown_id(missing[0], alike, documents, by_row=corpus.id_column is None))


def _show(why: Explanation, left: str, right: str) -> None:
    """Print the two texts side by side and the numbers below them to stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    colours = console.is_terminal and not console.no_color
    table = grid(expand=True, padding=(0, 1))
    for name, size in zip((left, right), why.sizes, strict=True):
        head = f"{visible(name, lines=False)}  ({count_text(size, 'feature')})"
        table.add_column(Text(head, "bold"), ratio=1, overflow="fold")
    marked = _shows_changes(why)
    table.add_row(
        _marked(why.left, why.left_segments, why.left_changes if marked else (), colours=colours),
        _marked(why.right, why.right_segments, why.right_changes if marked else (), colours=colours),
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
    if why.learned is not None and why.learned.evidence.contributions:
        console.print()
        console.print(_contributions(why.learned.evidence))


def _contributions(evidence: Evidence) -> Any:
    """Return a table of the measures of a classifier, the strongest first, below where the score starts from."""
    table = grid("measure", "value", "contribution", "towards", padding=(0, 1))
    table.columns[-1].justify = "left"
    rows = [("all at their means", "", evidence.start or 0.0)]
    rows += [
        (name, "unknown" if value is None else f"{value:.4f}", amount) for name, value, amount in evidence.contributions
    ]
    for name, shown, amount in rows:
        towards = ("together" if amount > 0 else "apart") if round(abs(amount), 4) else ""
        table.add_row(name, shown, f"{amount:+.4f}", towards)
    return table


def _shows_changes(why: Explanation) -> bool:
    """Return whether the words that differ are few enough to tell something."""
    return bool(why.passages) or why.recipe.parsed_features.kind == "checksum"


def _marked(text: str, segments: Sequence[Segment], changes: Sequence[Span], *, colours: bool) -> Any:
    """Return a text in which shared passages have a colour, and changed words have one or stand in «»."""
    from rich.text import Text

    marked, ends = Text(), [change.end for change in changes]
    for segment in segments:
        if segment.shared:
            marked.append(visible(text[segment.start : segment.end]), "green" if colours else "")
            continue
        done = segment.start
        # The changes of the whole text may be a hundred thousand: only those of this segment are looked at.
        for place in range(bisect_right(ends, segment.start), len(changes)):
            change = changes[place]
            if change.start >= segment.end:
                break
            begin, end = max(change.start, done), min(change.end, segment.end)
            marked.append(visible(text[done:begin]))
            words = visible(text[begin:end])
            marked.append(words if colours else f"«{words}»", "bold red" if colours else "")
            done = end
        marked.append(visible(text[done : segment.end]))
    return marked


def _rows(why: Explanation, *, colours: bool) -> Iterator[tuple[str, Any]]:
    """Yield the names and values below the texts."""
    from rich.text import Text

    from neardup.pipeline.counterfactual import token_noun

    recipe, token = why.recipe, token_noun(why.recipe)
    if _shows_changes(why):
        legend = Text.assemble(("shared passages", "green"), ", ", (f"{token}s that differ", "bold red"))
        yield "marks", legend if colours else f"{token}s that differ stand in «»"
    if why.passages:
        longest = max(passage.tokens for passage in why.passages)
        yield "passages", f"{len(why.passages):,} shared, the longest of {count_text(longest, token)}"
    else:
        yield "passages", "none shared"
    if recipe.ignore:
        left, right = why.ignored
        yield "ignored", f"{left:,} and {right:,} features stand in the ignored text, and count for nothing"
    yield "verdict", f"{'near-duplicates' if why.match else 'no near-duplicates'}: {why.reason}"
    if why.needed is not None and _counts_features(recipe):
        aim = ", to become candidates" if why.learned else ""
        yield "needed", f"{why.needed:,} shared features at these sizes{aim}"
    yield "measures", ", ".join(_measure(name, value) for name, value in why.measures.items())
    for place, sentence in enumerate(why.sentences):
        yield "" if place else "flips", sentence
    if why.learned is not None:
        classifier = why.learned.classifier
        yield "classifier", cut_text(classifier.fingerprint, *classifier.working_point)
        if why.learned.outside:
            yield "outside", f"the pair is unlike those of its training: {'; '.join(why.learned.outside)}"
    yield "recipe", f"{recipe.name}: {_choices(recipe)}; fingerprint {recipe.fingerprint}"


def _counts_features(recipe: Recipe) -> bool:
    """Return whether a number of shared features decides, and there are more than one."""
    single = recipe.parsed_features.kind == "checksum"
    return not (single or recipe.weights or recipe.signature or recipe.measure == "semantic")


def _measure(name: str, value: float) -> str:
    from neardup.pipeline.counterfactual import decimals
    from neardup.recipe.measures import measure

    return f"{name} {decimals(value, up=measure(name).distance)}"


def _choices(recipe: Recipe) -> str:
    """Return how a recipe makes and compares features, in a few words."""
    stops = f", without stop words of {recipe.stop_words}" if recipe.stop_words not in ("", "none") else ""
    if recipe.parsed_features.kind == "spots":
        stops = f", {f'at {recipe.antecedents}' if recipe.antecedents else f'stop words of {recipe.stop_words}'}"
    named = {"clip": recipe.clip, "weights": recipe.weights, "signature": recipe.signature, "then": recipe.second_step}
    others = "".join(f", {name} {value}" for name, value in named.items() if value)
    content = f"content {recipe.content}, " if recipe.content else ""
    return f"{content}{recipe.features} ({recipe.normalize}{stops}){others}"
