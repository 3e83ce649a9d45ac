"""``neardup explore``: how similar a corpus is to itself, before a recipe is chosen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.command import option, switch, with_options
from neardup.cli.options import Content, Force, Html, Inputs, Json, ReadOptions, RunOptions, chosen_content
from neardup.cli.screen import interruptible, reading, say, show_json
from neardup.errors import OutputError, RecipeError
from neardup.exploration.options import ExplorationOptions

if TYPE_CHECKING:
    from neardup.exploration.exploration import Exploration

_SAMPLE, _SHOWN = "What is compared", "What is shown"
_DEFAULTS = ExplorationOptions()
_LENGTHS = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?")


def parse_lengths(text: str | tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths that a text like ``1-7``, ``4`` or ``1,3,5-7`` names, ascending."""
    if text == "none" or isinstance(text, tuple):
        return ()
    found: set[int] = set()
    for part in text.split(","):
        match = _LENGTHS.fullmatch(part.strip())
        first = int(match[1]) if match is not None else 0
        last = int(match[2] or first) if match is not None else 0
        if not 1 <= first <= last:
            raise typer.BadParameter(f"{text!r} names no lengths: write it like 1-7, 4 or 1,3,5, from 1 on")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


@with_options
def explore(
    inputs: Inputs,
    read: ReadOptions,
    running: RunOptions,
    output: Annotated[
        str | None,
        option(
            "FILE",
            "Write a page (.html) or all figures (.json) instead of printing a summary.",
            None,
            "--output",
            "-o",
        ),
    ] = None,
    sample: Annotated[
        int,
        option(
            "NUMBER", "How many documents to compare pairwise; time and memory grow with its square.", _SAMPLE, min=2
        ),
    ] = _DEFAULTS.sample,
    seed: Annotated[int, option("NUMBER", "Random seed of the sample.", _SAMPLE, min=0)] = _DEFAULTS.seed,
    lengths: Annotated[
        Any,
        option(
            "FROM-TO",
            "Words in a run: 1-7, 4, or 1,3,5; or none.",
            _SAMPLE,
            parser=parse_lengths,
        ),
    ] = f"{_DEFAULTS.lengths[0]}-{_DEFAULTS.lengths[-1]}",
    qgrams: Annotated[
        Any, option("FROM-TO", "Characters in a run, to compare these, too: 3-6 or 5.", _SAMPLE, parser=parse_lengths)
    ] = None,
    recipes: Annotated[
        list[str] | None,
        option(
            "NAME|FILE",
            "Compare a recipe as well, by its features, weights and measure; repeatable.",
            _SAMPLE,
            "--recipe",
        ),
    ] = None,
    multiset: Annotated[bool, switch("--multiset", "Count how often a run occurs, not only whether.", _SAMPLE)] = False,
    html: Html = False,
    content: Content = None,
    lowest: Annotated[
        float,
        option(
            "NUMBER",
            "Lowest threshold to try on the whole corpus; a lower one finds more pairs and takes longer.",
            _SHOWN,
        ),
    ] = _DEFAULTS.lowest,
    no_curve: Annotated[bool, switch("--no-curve", "Compare only the sample, not the whole corpus.", _SHOWN)] = False,
    examples: Annotated[
        int, option("NUMBER", "Pairs to read at each cutoff; 0 for none.", _SHOWN, min=0)
    ] = _DEFAULTS.examples,
    title_column: Annotated[str | None, option("NAME", "Column of titles; detected automatically.", _SHOWN)] = None,
    time_column: Annotated[str | None, option("NAME", "Column of times; detected automatically.", _SHOWN)] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show how similar a corpus is to itself, and suggest features and a threshold.

    Compare all pairs of a random sample by runs of 1 to 7 words (n-grams), and find all similar pairs of the whole
    corpus once. The page shows how similar documents are, pairs to read, and what each threshold would drop.
    """
    from neardup.recipe import load_recipe

    _check_output(output, inputs, force=force)
    of_words, of_characters = lengths, qgrams or ()
    if not 0 < lowest <= 1:
        raise RecipeError(f"--lowest {lowest} is outside (0, 1]: give a similarity, such as 0.2")
    chosen = list(map(load_recipe, recipes or []))
    if not of_words and not of_characters and not chosen:
        raise RecipeError("--lengths none leaves nothing to compare: give --qgrams 3-6 or a --recipe NAME")
    of_texts = chosen_content(html, content) or ""

    from neardup.exploration.exploration import explore as run
    from neardup.pages.page import make_ready

    options = ExplorationOptions(
        sample=sample,
        seed=seed,
        lengths=of_words,
        qgrams=of_characters,
        recipes=chosen,
        multiset=multiset,
        lowest=lowest,
        content=of_texts,
        examples=examples,
        curve=not no_curve,
        title_column=title_column,
        time_column=time_column,
    )

    if output is not None and output.endswith(".html"):
        make_ready()
    with read.open(inputs) as corpus:
        kernels = ["prefixes.match", "postings.count_pairs"]
        with reading(corpus, *chosen, kernels=kernels) as report:
            found = run(corpus, options, progress=report, inputs=inputs, reading=_as_typed(read), **running.limits)
    for note in found.notes:
        say(note)
    _give(found, output, force=force, as_json=as_json)


def _as_typed(read: ReadOptions) -> list[str]:
    """Return the options of reading that were given, as the advised command needs them, too."""
    given: list[str] = []
    for name, value in (
        ("--text-column", read.text_column),
        ("--id-column", read.id_column),
        ("--max-document", read.max_document),
    ):
        given += [] if value is None else [name, str(value)]
    return [*given, "--strict"] if read.strict else given


def _check_output(output: str | None, inputs: list[str], *, force: bool) -> None:
    """Refuse an output before the work starts."""
    if output is None:
        return
    if not output.endswith((".html", ".json")):
        raise OutputError(f"{output} is neither a page nor JSON: name it .html or .json, or leave out -o")
    from neardup.documents.output import check_place
    from neardup.pages.page import check_drawing

    check_place(output, inputs, force)
    if output.endswith(".html"):
        check_drawing(output)


def _give(found: Exploration, output: str | None, *, force: bool, as_json: bool) -> None:
    """Write the file, or print the summary."""
    written: list[str] = []
    with interruptible(written):
        if output is not None:
            found.write(output, force=force)
            written.append(output)
    if as_json:
        show_json(found.as_dict())
    elif output is None:
        from neardup.cli.explore_summary import show_exploration

        show_exploration(found)
    else:
        from neardup.exploration import messages

        begin = f"begin with {messages.advised_rule(found.advice)}. {messages.would_drop(found)}".rstrip()
        say(begin if found.advice.given else messages.no_advice(found.advice))
    for name in written:
        say(f"written: {name}")
