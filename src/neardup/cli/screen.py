"""What a terminal shows, and sizes and times as they are written on the command line."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from neardup.pages.numbers import counted, sized

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table as Grid

    from neardup.documents import Corpus
    from neardup.evaluation.scores import Figure
    from neardup.features.reading import Progress
    from neardup.pipeline.query import Table
    from neardup.recipe import Recipe

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[KMGT]?)(?P<binary>I?)B?", re.IGNORECASE)
_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[smhd]?)", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_seconds(text: str | float) -> float:
    """Return the seconds that a text like ``30s``, ``10m``, ``1.5h``, ``2d`` or ``90`` means."""
    match = _TIME.fullmatch(str(text).strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a time; write it like 30s, 10m or 1h")
    return float(match["number"]) * _SECONDS[match["unit"].lower()]


def parse_size(text: str | int) -> int:
    """Return the bytes that a text like ``512MB`` (10**6), ``1.5GiB`` (2**30) or ``9`` means, at least one."""
    match = _SIZE.fullmatch(str(text).strip())
    size = 0
    if match is not None and (match["prefix"] or not match["binary"]):
        base = 1024 if match["binary"] else 1000
        size = int(float(match["number"]) * base ** _POWER[match["prefix"].upper()])
    if size < 1:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 512MB, 2GB or 1.5GiB")
    return size


count_text, size_text = counted, sized

#: Controls but tab and line feed, line separators, and what turns the direction of writing.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_BREAKS = re.compile(r"\r\n?")


#: The arguments of this call of the command.
TYPED: ContextVar[tuple[str, ...]] = ContextVar("TYPED", default=())


#: What this call of the command exits with when it has done its work.
EXIT_CODE: ContextVar[int] = ContextVar("EXIT_CODE", default=0)
#: Not all of an input could be read.
TORN = 3
#: What a command exits with; help and the manual list them.
EXIT_CODES = {
    0: "done; broken records were counted",
    1: "the reader of stdout went away, or --fail-over of contamination was exceeded",
    2: "refused, with one sentence on stderr; nothing was written",
    TORN: "done, but an input file is cut short",
    130: "interrupted; label, serve and watch end with 0 at the first Ctrl-C",
}


def typed_command() -> str:
    """Return the command as it was typed, quoted so that a shell reads the same arguments."""
    return shlex.join(("neardup", *TYPED.get()))


def visible(text: str, *, lines: bool = True) -> str:
    """Return text with control characters and escapes written out; line feeds and tabs may stay."""
    text = _UNSEEN.sub(_written_out, _LINE_BREAKS.sub("\n", text) if lines else text)
    return text if lines else text.replace("\n", r"\n").replace("\t", r"\t")


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def say(message: str) -> None:
    """Print one line to stderr."""
    typer.echo(f"neardup: {visible(message, lines=False)}", err=True)


def show(content: str) -> None:
    """Print data to stdout."""
    typer.echo(content)


def show_json(content: Any) -> None:
    """Print JSON to stdout."""
    typer.echo(json.dumps(content, ensure_ascii=not speaks_unicode(), indent=2))


def write_json(content: Any, name: str) -> None:
    """Write JSON to a file."""
    from neardup.documents.output import OutputFile

    with OutputFile(name) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n")


def speaks_unicode() -> bool:
    """Return whether the encoding of stdout has every character; if not, JSON writes them as escapes."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def say_notes(corpus: Corpus, *recipes: Recipe) -> None:
    """Print what was chosen on opening the corpus, and that files look like web pages if no recipe takes them so."""
    for note in corpus.notes:
        say(note)
    if corpus.pages and recipes and not any(recipe.content for recipe in recipes):
        files = count_text(corpus.pages, "document is an HTML file", "documents are HTML files")
        say(f"{files}, compared with all tags and navigation; --html compares the main content alone")


def say_rejected(corpus: Corpus) -> None:
    """Print the first of the records that were rejected, and torn files, for which the command exits with 3."""
    found = corpus.rejected
    for example in found.examples:
        say(f"rejected: {example}")
    if found.total > len(found.examples):
        say(f"rejected: {found.total - len(found.examples):,} more; --quarantine FILE writes them all down")
    if corpus.reference is not None:
        for example in corpus.reference.rejected.examples:
            say(f"rejected, of the reference: {example}")
    for torn in corpus.all_torn:
        say(
            f"{torn}" if corpus.allow_torn else f"{torn}; get the whole file, or accept what there is with --allow-torn"
        )
    if corpus.all_torn and not corpus.allow_torn:
        EXIT_CODE.set(TORN)


def show_rows(head: str, rows: Mapping[str, str | None]) -> None:
    """Print a heading to stderr, and below it what there is by name; nothing of what is empty."""
    typer.echo(typer.style(head, bold=True), err=True)
    for name, value in rows.items():
        if value:
            typer.echo(f"  {typer.style(f'{name:<12}', dim=True)}  {visible(value, lines=False)}", err=True)


def grid(*names: str, left: int = 1, **options: Any) -> Grid:
    """Return an empty table for the terminal: the first ``left`` columns hold texts, the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, **({"padding": (0, 0, 0, 1)} | options))
    for at, name in enumerate(names):
        first = at == 0
        table.add_column(
            name, justify="left" if at < left else "right", overflow="fold" if first else "ellipsis", no_wrap=not first
        )
    return table


def figure_text(figure: Figure, gap: str = " ", none: str = "none") -> str:
    """Return a figure with its interval behind it."""
    if figure.value is None:
        return none
    spread = "" if figure.low is None or figure.high is None else f"{gap}{figure.low:.2f}-{figure.high:.2f}"
    return f"{figure.value:.3f}{spread}"


@contextmanager
def reading(
    corpus: Corpus, *recipes: Recipe, kernels: Sequence[str] | None = (), stages: Sequence[str] = ()
) -> Iterator[Progress | None]:
    """Say what there is to say of a corpus before it is read and after; give what shows progress.

    ``kernels`` are those that will be used, as ``module.function``: by default those of the recipe, None for none.
    """
    say_notes(corpus, *recipes)
    if kernels is not None:
        say_if_compiling(recipes[0] if recipes else None, *kernels)
    with progress_bar(stages) as report:
        yield report
    say_rejected(corpus)


def say_if_compiling(recipe: Recipe | None, *others: str) -> None:
    """Print that kernels will be compiled, where this machine has not done so before.

    ``others`` are the kernels that are used in place of those of the recipe's engine.
    """
    from neardup.kernels.compilation import compilation_notice

    if recipe is not None and not others:
        engine = (
            "hamming.pairs_within_distance"
            if recipe.measure == "hamming"
            else "weighted.fill_postings"
            if recipe.is_weighted
            else "prefixes.match"
        )
        others = (engine, "prefixes.band_pairs") if recipe.search == "lsh" else (engine,)
    if sentence := compilation_notice("grams.feature_sets", *others):
        say(sentence)


@contextmanager
def interruptible(written: list[str]) -> Iterator[None]:
    """Let an interruption of the block say what was written until then."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"written: {', '.join(written)}" if written else "nothing was written") from None


#: Stages whose progress is in bytes of the input; that of the others is in documents or pairs.
_IN_BYTES = ("read", "read again", "read times", "read titles", "count")


@contextmanager
def progress_bar(stages: Sequence[str] = ()) -> Iterator[Progress | None]:
    """Give a function that shows (stage, done, total), or None where stderr is no terminal.

    If the stages are known, each is shown with its number of how many.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                for earlier in tasks.values():
                    bar.update(earlier, total=1, completed=1)
                number = f"{stages.index(stage) + 1}/{len(stages)} " if stage in stages else ""
                tasks[stage] = bar.add_task(number + stage, total=total, amount="")
            task = next(task for task in bar.tasks if task.id == tasks[stage])
            amount = amount_text(done, total, task.speed, in_bytes=stage in _IN_BYTES)
            bar.update(tasks[stage], completed=done, total=total, amount=amount)

        yield report


def stages_of(recipe: Recipe, *, margin: bool, write: bool) -> list[str]:
    """Return the stages of a run that show progress, in their order."""
    second = bool(recipe.second_step)
    due = {
        "count": recipe.needs_statistics,
        "read": True,
        "join": True,
        "margin": margin and not second,
        "verify": second,
        "write": write,
    }
    return [stage for stage, comes in due.items() if comes]


def amount_text(done: int, total: int | None, rate: float | None, *, in_bytes: bool) -> str:
    """Return how far a stage is and how fast, as ``1.2 GB of 3.5 GB, 44 MB/s``, in bytes or in documents."""
    shown = size_text if in_bytes else "{:,}".format
    whole = "" if total is None else f" of {shown(total)}"
    return shown(done) + whole + (f", {shown(round(rate))}/s" if rate else "")


def lsh_text(search: dict[str, Any]) -> str:
    """Return what LSH promised and did; empty for other searches."""
    if "bands" not in search:
        return ""
    expected = f" (expected {search['expected_candidates']:,})" if "expected_candidates" in search else ""
    return (
        f"LSH, {search['bands']} bands of {search['rows']} rows: finds {search['recall_at_threshold']:.2%} of the "
        f"pairs at Jaccard {search['jaccard_at_threshold']:.4g}; {search['candidates']:,} candidates{expected}, all "
        "verified"
    )


_ROWS_AT_A_TIME = 1 << 16


def write_rows(found: Table, output: str, *, force: bool) -> None:
    """Write a table in the format of the name."""
    from neardup.documents import open_writer

    table = found.to_arrow()
    with open_writer(output, table.schema, force) as writer:
        writer.write(table)


def print_rows(tables: Iterable[pa.Table], columns: Sequence[str], *, as_json: bool) -> None:
    """Print tables to stdout one after the other, separated by tabs below the names of columns, or as JSON lines."""
    ascii_only = not speaks_unicode()
    if not as_json:
        sys.stdout.write("\t".join(columns) + "\n")
    for table in tables:
        for begin in range(0, len(table), _ROWS_AT_A_TIME):
            rows = table.slice(begin, _ROWS_AT_A_TIME).to_pylist()
            lines = (json.dumps(row, ensure_ascii=ascii_only) for row in rows) if as_json else map(_line, rows)
            sys.stdout.write("".join(f"{line}\n" for line in lines))
    # What is said on stderr afterwards comes after it in a pipe that takes both, too.
    sys.stdout.flush()


def _line(row: dict[str, Any]) -> str:
    return "\t".join(_field(value) for value in row.values())


def _field(value: Any) -> str:
    """Return a value as a field of a line, empty for none; an id with a tab or a line break has it written out."""
    if value is None:
        return ""
    text = visible(str(value)) if sys.stdout.isatty() else str(value)
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")
