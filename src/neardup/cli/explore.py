"""``neardup explore``: how similar a corpus is to itself, before a recipe is chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from neardup.cli.command import option, output_option, refuse_ignored, switch
from neardup.cli.options import Content, Force, Html, Inputs, Json, ReadOptions, RunOptions, resolve_content
from neardup.cli.screen import check_outputs, print_json, print_message, reading_progress, written_files
from neardup.errors import OutputError, RecipeError
from neardup.exploration.options import ExplorationOptions

_SAMPLE, _RESULTS = "What is compared", "What is shown"
_DEFAULTS = ExplorationOptions()
_LENGTHS = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?")


def parse_lengths(text: str | tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths that a text like ``1-7``, ``4`` or ``1,3,5-7`` lists, in ascending order."""
    if text == "none" or isinstance(text, tuple):
        return ()
    lengths: set[int] = set()
    for part in text.split(","):
        match = _LENGTHS.fullmatch(part.strip())
        first = int(match[1]) if match is not None else 0
        last = int(match[2] or first) if match is not None else 0
        if not 1 <= first <= last:
            raise RecipeError(f"{text!r} is not a list of lengths from 1 on: write it like 1-7, 4 or 1,3,5")
        lengths.update(range(first, last + 1))
    return tuple(sorted(lengths))


def explore(
    inputs: Inputs,
    read_options: ReadOptions,
    run_options: RunOptions,
    output: Annotated[
        str | None, output_option("Write a page (.html) or all figures (.json) instead of printing a summary.")
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
            "FROM-TO", "Lengths of runs of words to compare: 1-7, 4, or 1,3,5; or none.", _SAMPLE, parser=parse_lengths
        ),
    ] = f"{_DEFAULTS.lengths[0]}-{_DEFAULTS.lengths[-1]}",
    qgrams: Annotated[
        Any,
        option("FROM-TO", "Lengths of runs of characters to compare, too: 3-6 or 5.", _SAMPLE, parser=parse_lengths),
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
            _RESULTS,
        ),
    ] = _DEFAULTS.lowest,
    no_curve: Annotated[bool, switch("--no-curve", "Compare only the sample, not the whole corpus.", _RESULTS)] = False,
    examples: Annotated[
        int, option("NUMBER", "Example pairs to show at each cutoff; 0 for none.", _RESULTS, min=0)
    ] = _DEFAULTS.examples,
    title_column: Annotated[str | None, option("NAME", "Column of titles; detected automatically.", _RESULTS)] = None,
    time_column: Annotated[str | None, option("NAME", "Column of times; detected automatically.", _RESULTS)] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show how similar a corpus is to itself, and suggest features and a threshold.

    Compare all pairs of a random sample by runs of 1 to 7 words (n-grams), and find all similar pairs of the whole
    corpus once. The page shows how similar documents are, pairs to read, and what each threshold would drop.
    """
    from neardup.recipe import load_recipe

    check_outputs(inputs, {"-o": output}, force=force, checks={"-o": _check_output})
    if not 0 < lowest <= 1:
        raise RecipeError(f"--lowest {lowest} is outside (0, 1]: give a similarity, such as 0.2")
    if no_curve:
        refuse_ignored(("lowest",), "is for the whole corpus, and --no-curve compares only the sample: leave out one")
    loaded_recipes = list(map(load_recipe, recipes or []))
    if not lengths and not qgrams and not loaded_recipes:
        raise RecipeError("--lengths none leaves nothing to compare: give --qgrams 3-6 or --recipe NAME")

    from neardup.exploration import messages
    from neardup.exploration.exploration import explore as explore_corpus
    from neardup.pages.page import preload_charts

    options = ExplorationOptions(
        sample=sample,
        seed=seed,
        lengths=lengths,
        qgrams=qgrams or (),
        recipes=loaded_recipes,
        multiset=multiset,
        lowest=lowest,
        content=resolve_content(html, content) or "",
        examples=examples,
        curve=not no_curve,
        title_column=title_column,
        time_column=time_column,
    )

    if output is not None and output.endswith(".html"):
        preload_charts()
    with read_options.open(inputs) as corpus, reading_progress(corpus, *loaded_recipes) as progress:
        exploration = explore_corpus(
            corpus,
            options,
            progress=progress,
            inputs=inputs,
            reading=_typed_options(read_options),
            **run_options.limits,
        )
    for note in exploration.notes:
        print_message(note)
    with written_files() as written:
        if output is not None:
            exploration.write(output, force=force)
            written.append(output)
    if as_json:
        print_json(exploration.as_dict())
    elif output is None:
        from neardup.cli.explore_summary import print_exploration

        print_exploration(exploration)
    elif exploration.advice.given:
        rule = messages.format_advised_rule(exploration.advice)
        print_message(f"begin with {rule}. {messages.describe_drop(exploration)}".rstrip())
    else:
        print_message(messages.explain_missing_advice(exploration.advice))
    if output is not None:
        print_message(f"written: {output}")


def _typed_options(read_options: ReadOptions) -> list[str]:
    """Return the options of reading that were given: the advised command needs them, too."""
    options: list[str] = []
    for name in ("text_column", "id_column", "max_document"):
        if (value := getattr(read_options, name)) is not None:
            options += [f"--{name.replace('_', '-')}", str(value)]
    return [*options, "--strict"] if read_options.strict else options


def _check_output(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents.output import check_place
    from neardup.pages.page import check_drawing

    if not name.endswith((".html", ".json")):
        raise OutputError(f"{name} is neither a page nor JSON: name it .html or .json, or leave out -o")
    check_place(name, inputs, force)
    if name.endswith(".html"):
        check_drawing(name)
