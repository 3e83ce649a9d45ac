"""``neardup explain``: why two documents match or not, side by side."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

from neardup.cli import screen
from neardup.cli.command import argument, refuse_ignored
from neardup.cli.options import CorpusClassifierOptions, DropBy, DropShare, Json, ReadOptions, RecipeOptions, TimeColumn
from neardup.errors import InputError, UnknownDocument
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from rich.table import Table

    from neardup.classifier.evidence import Evidence
    from neardup.documents import Batch, Corpus
    from neardup.features.statistics import Statistics
    from neardup.pipeline.explanation import Explanation
    from neardup.pipeline.passages import Segment, Span
    from neardup.recipe import Recipe


def explain(
    arguments: Annotated[
        list[str],
        argument("INPUT... ID1 ID2", "Inputs, as in dedup, then two ids (row numbers from 0 if there are no ids)."),
    ],
    recipe_options: RecipeOptions,
    classifier_options: CorpusClassifierOptions,
    read_options: ReadOptions,
    time_column: TimeColumn = None,
    drop_by: DropBy = None,
    drop_share: DropShare = "1",
    as_json: Json = False,
) -> None:
    """Show two documents side by side: what they share, and what would change the verdict.

    With --drop-by, the whole input is compared, and the verdicts on the groups of the two documents are named.
    """
    if len(arguments) < 3:
        typed = " ".join(arguments)
        raise InputError(f"explain {typed!r} names no pair: give an input and two ids, as in explain news.jsonl 3 17")
    refuse_ignored(("quarantine",), "is for commands that read all documents; leave it out")
    refuse_ignored(("force_domain",), "is for commands that stop, and explain never does; leave it out")
    if drop_by is None:
        refuse_ignored(("drop_share",), "is for --drop-by: give that, too, or leave it out")
    *inputs, left, right = arguments
    classifier = classifier_options.load_for_corpus(time_column)
    recipe = recipe_options.resolve(classifier)

    from neardup.pipeline.explanation import explain as explain_texts
    from neardup.pipeline.resolved_features import needs_kernels

    with read_options.open(inputs, write=False) as corpus:
        screen.print_corpus_notes(corpus, recipe)
        needs_columns = classifier is not None and classifier.needs_columns
        found = _find_documents(corpus, (left, right), read_all=needs_columns)
        texts, rows = [found[left].text, found[right].text], [found[left].row, found[right].row]
        if needs_kernels(recipe) or classifier is not None or drop_by is not None:
            screen.announce_compilation()
        statistics = _gather_statistics(corpus, recipe)
        records = classifier.records(corpus.take(rows), texts) if classifier is not None and needs_columns else None

        groups: tuple[str, ...] = ()
        if drop_by is not None:
            from neardup.pipeline.pipeline import run

            with screen.progress_bar() as progress:
                result = run(
                    corpus, recipe, drop_by=drop_by, drop_share=drop_share, classifier=classifier, progress=progress
                )
            groups = result.describe_groups(rows)

    explanation = explain_texts(texts[0], texts[1], recipe, statistics, classifier=classifier, records=records)
    explanation = replace(explanation, groups=groups)
    screen.print_columns(corpus)
    if as_json:
        screen.print_json({"left": left, "right": right} | explanation.as_dict())
    else:
        _print_explanation(explanation, left, right)


def _gather_statistics(corpus: Corpus, recipe: Recipe) -> Statistics | None:
    """Return the statistics of the corpus, which is read once more, if the recipe needs them."""
    if not recipe.needs_statistics:
        return None
    from neardup.features.reading import gather_statistics

    with screen.progress_bar() as progress:
        return gather_statistics(corpus, recipe, progress=progress)


class _Document(NamedTuple):
    row: int
    text: str


def _find_documents(corpus: Corpus, ids: Sequence[str], *, read_all: bool) -> dict[str, _Document]:
    """Return the first document with each of these ids.

    ``read_all`` reads on after the last of them, as ``Corpus.take`` requires. Raises ``UnknownDocument`` for an id that
    no document has.
    """
    from neardup.pipeline.query import add_similar_ids, unknown_id_message

    found: dict[str, _Document] = {}
    similar_ids: list[str] = []
    unknown_ids, documents = list(ids), 0
    with closing(cast("Generator[Batch]", corpus.scan())) as batches:
        for batch in batches:
            names = batch.rows.tolist() if batch.ids is None else batch.ids.to_pylist()
            places: dict[str, int] = {}
            for place, name in enumerate(names):
                places.setdefault(str(name), place)
            for name in unknown_ids:
                if name in places:
                    position = places[name]
                    found[name] = _Document(int(batch.rows[position]), batch.texts[position].as_py())
            unknown_ids = [name for name in ids if name not in found]
            if not (unknown_ids or read_all):
                return found
            documents += len(names)
            add_similar_ids(similar_ids, list(places), unknown_ids)
    if not unknown_ids:
        return found
    raise UnknownDocument(unknown_id_message(unknown_ids[0], similar_ids, documents, by_row=corpus.id_column is None))


def _print_explanation(explanation: Explanation, left: str, right: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    colours = console.is_terminal and not console.no_color
    table = screen.make_table(expand=True, padding=(0, 1))
    for name, size in zip((left, right), explanation.sizes, strict=True):
        heading = f"{screen.printable_line(name)}  ({format_count(size, 'feature')})"
        table.add_column(Text(heading, "bold"), ratio=1, overflow="fold")
    left_changes, right_changes = (
        (explanation.left_changes, explanation.right_changes) if _shows_changes(explanation) else ((), ())
    )
    table.add_row(
        _marked_text(explanation.left, explanation.left_segments, left_changes, colours=colours),
        _marked_text(explanation.right, explanation.right_segments, right_changes, colours=colours),
    )
    console.print(table)
    console.print()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(explanation, colours=colours):
        colour = ("bold green" if explanation.match else "bold red") if name == "verdict" else ""
        facts.add_row(name, value if isinstance(value, Text) else Text(screen.printable_line(value), colour))
    console.print(facts)
    if explanation.learned is not None and explanation.learned.evidence.contributions:
        console.print()
        console.print(_contributions_table(explanation.learned.evidence))


def _contributions_table(evidence: Evidence) -> Table:
    table = screen.make_table("measure", "value", "contribution", "towards", padding=(0, 1))
    table.columns[-1].justify = "left"
    rows = [("all at their means", "", evidence.start or 0.0)]
    rows += [
        (name, "unknown" if value is None else f"{value:.4f}", amount) for name, value, amount in evidence.contributions
    ]
    for name, value, amount in rows:
        direction = ("together" if amount > 0 else "apart") if round(abs(amount), 4) else ""
        screen.add_row(table, (name, value, f"{amount:+.4f}", direction))
    return table


def _shows_changes(explanation: Explanation) -> bool:
    """Return whether the changed words are few enough to be worth marking."""
    return bool(explanation.passages) or explanation.recipe.parsed_features.kind == "checksum"


def _marked_text(text: str, segments: Sequence[Segment], changes: Sequence[Span], *, colours: bool) -> Any:
    """Return a text with shared passages coloured, and changed words coloured or within «»."""
    from rich.text import Text

    spans = [(segment.start, segment.end, True) for segment in segments if segment.shared]
    spans += [(change.start, change.end, False) for change in changes]
    marked, done = Text(), 0
    for start, end, shared in sorted(spans):
        begin = max(start, done)
        if end <= begin:
            continue
        marked.append(screen.printable(text[done:begin]))
        words = screen.printable(text[begin:end])
        if shared:
            marked.append(words, "green" if colours else "")
        else:
            marked.append(words if colours else f"«{words}»", "bold red" if colours else "")
        done = end
    return marked.append(screen.printable(text[done:]))


def _facts(explanation: Explanation, *, colours: bool) -> Iterator[tuple[str, Any]]:
    from rich.text import Text

    from neardup.pipeline.counterfactual import token_noun

    recipe, token = explanation.recipe, token_noun(explanation.recipe)
    if _shows_changes(explanation):
        legend = Text.assemble(("shared passages", "green"), ", ", (f"{token}s that differ", "bold red"))
        yield "marks", legend if colours else f"{token}s that differ are within «»"
    if explanation.passages:
        longest = max(passage.tokens for passage in explanation.passages)
        yield "passages", f"{explanation.totals.passages:,} shared, the longest of {format_count(longest, token)}"
    else:
        yield "passages", "none shared"
    if recipe.ignore:
        left, right = explanation.ignored
        yield "ignored", f"{left:,} and {right:,} features are in the ignored text and not compared"
    yield "verdict", f"{'near-duplicates' if explanation.match else 'no near-duplicates'}: {explanation.reason}"
    for place, clause in enumerate(explanation.groups):
        yield "" if place else "groups", clause
    if explanation.needed is not None and _counts_features(recipe):
        aim = ", to become candidates" if explanation.learned else ""
        yield "needed", f"{explanation.needed:,} shared features at these sizes{aim}"
    yield "measures", ", ".join(_format_measure(name, value) for name, value in explanation.measures.items())
    for place, sentence in enumerate(explanation.sentences):
        yield "" if place else "flips", sentence
    for place, note in enumerate(explanation.notes):
        yield "" if place else "not all", note
    if explanation.learned is not None:
        classifier = explanation.learned.classifier
        yield "classifier", screen.describe_cut(classifier.fingerprint, *classifier.working_point)
        if explanation.learned.outside:
            yield "outside", f"the pair is unlike those of its training: {'; '.join(explanation.learned.outside)}"
    yield "recipe", f"{recipe.name}: {_describe_recipe(recipe)}; fingerprint {recipe.fingerprint}"


def _counts_features(recipe: Recipe) -> bool:
    """Return whether the number of shared features decides, and there may be more than one."""
    single = recipe.parsed_features.kind == "checksum"
    return not (single or recipe.weights or recipe.signature or recipe.measure == "semantic")


def _format_measure(name: str, value: float) -> str:
    from neardup.pipeline.counterfactual import format_measure
    from neardup.recipe.measures import measure

    return f"{name} {format_measure(value, up=measure(name).distance)}"


def _describe_recipe(recipe: Recipe) -> str:
    stops = f", without stop words of {recipe.stop_words}" if recipe.stop_words not in ("", "none") else ""
    if recipe.parsed_features.kind == "spots":
        stops = f", {f'at {recipe.antecedents}' if recipe.antecedents else f'stop words of {recipe.stop_words}'}"
    options = {
        "clip": recipe.clip,
        "weights": recipe.weights,
        "signature": recipe.signature,
        "then": recipe.second_step,
    }
    extras = "".join(f", {name} {value}" for name, value in options.items() if value)
    content = f"content {recipe.content}, " if recipe.content else ""
    return f"{content}{recipe.features} ({recipe.normalize}{stops}){extras}"
