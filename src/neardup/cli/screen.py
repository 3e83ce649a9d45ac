"""What commands print and write, and how sizes and times are written on the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import click

from neardup.errors import OutputError, RecipeError
from neardup.files import parse_size
from neardup.pages.numbers import format_count, format_size

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from neardup.documents import Corpus
    from neardup.evaluation.intervals import Figure
    from neardup.features.reading import Progress
    from neardup.recipe import Recipe

_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[smhd]?)", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_seconds(text: str | float) -> float:
    """Return the seconds that a text like ``30s``, ``10m``, ``1.5h``, ``2d`` or ``90`` means."""
    match = _TIME.fullmatch(str(text).strip())
    if match is None:
        raise RecipeError(f"{text!r} is not a time; write it like 30s, 10m or 1h")
    return float(match["number"]) * _SECONDS[match["unit"].lower()]


def _format_typed_size(size: int) -> str:
    return format_size(size).replace(".0", "").replace(" ", "")


#: The settings of options with a size, and with a length of time.
SIZE: dict[str, Any] = {"parser": parse_size, "format": _format_typed_size}
DURATION: dict[str, Any] = {"parser": parse_seconds, "format": "{:g}s".format}

#: Control characters other than tab and line feed, line separators, surrogates and marks that change text direction.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_BREAKS = re.compile(r"\r\n?")

#: The arguments of this call of the command.
TYPED_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("TYPED_ARGUMENTS", default=())
#: The exit code of this call once it has done its work.
EXIT_CODE: ContextVar[int] = ContextVar("EXIT_CODE", default=0)
EXIT_TORN = 3
#: What each exit code means; help and the manual list them.
EXIT_CODES = {
    0: "done; broken records were counted",
    1: "stdout was closed early, or contamination exceeded --fail-over",
    2: "refused, with one sentence on stderr; nothing was written",
    EXIT_TORN: "done, but a file is torn or has no usable record, or watch --once left one unread",
    130: "interrupted (by SIGHUP 129, by SIGTERM 143); label, serve and watch end with 0 at the first signal",
}


def typed_command() -> str:
    """Return the command as it was typed, quoted so that a shell reads the same arguments."""
    return shlex.join(("neardup", *TYPED_ARGUMENTS.get()))


def printable(text: str) -> str:
    """Return a text with control characters and escapes written out; line feeds and tabs stay."""
    return _CONTROLS.sub(_escape_control, _LINE_BREAKS.sub("\n", text))


def printable_line(text: str) -> str:
    """Return a text as one line, with control characters, line breaks and tabs written out."""
    return _CONTROLS.sub(_escape_control, text).replace("\n", r"\n").replace("\t", r"\t")


def _escape_control(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


#: Whether this call prints only warnings and errors to stderr.
QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)


def print_message(message: str) -> None:
    """Print one line to stderr, unless the call is quiet."""
    if not QUIET.get():
        print_warning(message)


def print_warning(message: str) -> None:
    """Print one line to stderr: a warning, an error, or what an interactive command cannot do without."""
    click.echo(f"neardup: {printable_line(message)}", err=True)


def print_interrupt(interrupt: KeyboardInterrupt) -> int:
    """Print what was written before an interrupt; return the exit code."""
    number = signal.Signals(getattr(interrupt, "number", signal.SIGINT))
    cause = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    # After a hangup there may be no terminal.
    with suppress(OSError):
        print_warning(f"{cause}; {interrupt.args[0] if interrupt.args else 'nothing was written'}")
    return 128 + number


def print_json(content: Any) -> None:
    """Print JSON to stdout."""
    click.echo(json.dumps(_with_failed_pages(content), ensure_ascii=not stdout_is_unicode(), indent=2))


def _with_failed_pages(content: Any) -> Any:
    """Return an object of JSON with the number of pages without their main content, if there are any."""
    if FAILED_PAGES and isinstance(content, dict):
        return {**content, "failed_pages": dict(FAILED_PAGES)}
    return content


def stdout_is_unicode() -> bool:
    """Return whether the encoding of stdout has every character; if not, JSON escapes those outside ASCII."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def print_summary(heading: str, rows: Mapping[str, str | None]) -> None:
    """Print a heading to stderr and the rows below it; rows without a value are left out."""
    if QUIET.get():
        return
    click.echo(click.style(heading, bold=True), err=True)
    for name, value in rows.items():
        if value:
            click.echo(f"  {click.style(f'{name:<12}', dim=True)}  {printable_line(value)}", err=True)


_ROWS_AT_ONCE = 1 << 16


def print_rows(tables: Iterable[pa.Table], columns: Sequence[str], *, as_json: bool) -> None:
    """Print the rows of tables to stdout: separated by tabs below the names of the columns, or as JSON lines."""
    ascii_only = not stdout_is_unicode()
    if not as_json:
        sys.stdout.write("\t".join(columns) + "\n")
    for table in tables:
        for begin in range(0, len(table), _ROWS_AT_ONCE):
            rows = table.slice(begin, _ROWS_AT_ONCE).to_pylist()
            lines = (
                json.dumps(row, ensure_ascii=ascii_only) if as_json else "\t".join(map(_cell, row.values()))
                for row in rows
            )
            sys.stdout.write("".join(f"{line}\n" for line in lines))
    # A pipe that takes both streams then gets later messages after the rows.
    sys.stdout.flush()


def _cell(value: Any) -> str:
    """Return a value as a field of a line, empty for none; tabs and line breaks of an id are written out."""
    if value is None:
        return ""
    text = printable(str(value)) if sys.stdout.isatty() else str(value)
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")


def make_table(*names: str, left: int = 1, **options: Any) -> Table:
    """Return an empty table for the terminal: the first ``left`` columns hold texts, the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, **({"padding": (0, 0, 0, 1)} | options))
    for position, name in enumerate(names):
        first = position == 0
        table.add_column(
            name,
            justify="left" if position < left else "right",
            overflow="fold" if first else "ellipsis",
            no_wrap=not first,
        )
    return table


def add_row(table: Table, cells: Iterable[str], *, bold: bool = False) -> None:
    """Add a row to a table for the terminal; square brackets in it are no markup."""
    from rich.text import Text

    table.add_row(*map(Text, cells), style="bold" if bold else "")


def format_figure(figure: Figure, gap: str = " ", none: str = "none") -> str:
    """Return a figure followed by its interval."""
    if figure.value is None:
        return none
    interval = "" if figure.low is None or figure.high is None else f"{gap}{figure.low:.2f}-{figure.high:.2f}"
    return f"{figure.value:.3f}{interval}"


def print_corpus_notes(corpus: Corpus, *recipes: Recipe) -> None:
    """Print what was detected on opening a corpus, and that files look like web pages if no recipe extracts these."""
    for note in corpus.notes:
        print_message(note)
    if corpus.page_count and recipes and not any(recipe.content for recipe in recipes):
        files = format_count(corpus.page_count, "document is an HTML file", "documents are HTML files")
        print_message(f"{files}, compared with all tags and navigation; --html compares only the main content")
    if corpus.page_archives and recipes and not any(recipe.content for recipe in recipes):
        print_message(
            f"the pages in {corpus.page_archives[0]} are compared with all tags and navigation; --html compares only "
            "their main content"
        )


def describe_columns(corpus: Corpus) -> str:
    """Return which columns of files are used; empty for texts in files of their own, and for documents in memory."""
    from neardup.documents.column_paths import column_words

    if not corpus.inputs or not corpus.has_columns:
        return ""
    words, reference = column_words(corpus.columns_used), corpus.reference
    of_reference = describe_columns(reference) if reference is not None else ""
    return f"{words}; of the reference: {of_reference}" if of_reference not in ("", words) else words


def print_columns(corpus: Corpus) -> None:
    """Print which columns of files are used."""
    words = describe_columns(corpus)
    if words:
        print_message(f"columns: {words}")


#: The pages without their main content that a command has printed, by reason: its JSON counts them.
FAILED_PAGES: Counter[str] = Counter()
#: Files of one kind that are named.
_NAMED = 5


def print_rejected_records(corpus: Corpus) -> None:
    """Print what was skipped, the first rejected records and all torn files, which make the command exit with 3."""
    if corpus.skipped:
        print_warning(f"skipped: {corpus.skipped}")
    rejected = corpus.rejected
    for example in rejected.examples:
        print_warning(f"rejected: {example}")
    if rejected.total > len(rejected.examples):
        print_warning(f"rejected: {rejected.total - len(rejected.examples):,} more; --quarantine FILE saves them all")
    if corpus.reference is not None:
        for example in corpus.reference.rejected.examples:
            print_warning(f"rejected from the reference: {example}")
    encodings = corpus.encodings
    for name in list(encodings)[:_NAMED]:
        print_warning(f"{name} is not in UTF-8; it was read as {encodings[name]}")
    if len(encodings) > _NAMED:
        print_warning(f"{len(encodings) - _NAMED:,} more files are not in UTF-8; the summary names them")
    corpus.name_failed_pages()
    FAILED_PAGES.update(corpus.failed_pages.counts)
    for example in corpus.failed_pages.examples:
        print_warning(f"page without its main content: {example}; all of its text is compared")
    if corpus.failed_pages.total > len(corpus.failed_pages.examples):
        more = corpus.failed_pages.total - len(corpus.failed_pages.examples)
        print_warning(f"pages without their main content: {more:,} more")
    for torn in corpus.all_torn_files:
        print_warning(str(torn) if corpus.allow_torn else f"{torn}; {torn.way_out()}")
    if corpus.all_torn_files and not corpus.allow_torn:
        EXIT_CODE.set(EXIT_TORN)


@contextmanager
def reading_progress(
    corpus: Corpus,
    *recipes: Recipe,
    stages: Sequence[str] = (),
    columns: bool = True,
) -> Iterator[Progress | None]:
    """Print the notes of a corpus before it is read, and its columns and rejected records afterwards.

    Give a progress callback.

    ``columns`` is False for a command with a summary that names them.
    """
    print_corpus_notes(corpus, *recipes)
    announce_compilation()
    with progress_bar(stages) as progress:
        yield progress
    if columns:
        print_columns(corpus)
    print_rejected_records(corpus)


def announce_compilation() -> None:
    """Print that kernels are compiled, as soon as one is."""
    from neardup.kernels import compilation

    compilation.announce_compilation(print_message)


#: Stages that count bytes of the input; the others count documents or pairs.
_STAGES_IN_BYTES = ("read", "read again", "read times", "read titles", "count")


@contextmanager
def progress_bar(stages: Sequence[str] = ()) -> Iterator[Progress | None]:
    """Give a function that shows (stage, done, total), or None if stderr is no terminal.

    Each of the ``stages`` is numbered, as ``1/3 read``.
    """
    if QUIET.get() or not sys.stderr.isatty():
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

        def update(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                for earlier in tasks.values():
                    bar.update(earlier, total=1, completed=1)
                number = f"{stages.index(stage) + 1}/{len(stages)} " if stage in stages else ""
                tasks[stage] = bar.add_task(number + stage, total=total, amount="")
            task = next(task for task in bar.tasks if task.id == tasks[stage])
            amount = format_amount(done, total, task.speed, in_bytes=stage in _STAGES_IN_BYTES)
            bar.update(tasks[stage], completed=done, total=total, amount=amount)

        yield update


def stage_names(recipe: Recipe, *, margin: bool, write: bool) -> list[str]:
    """Return the stages of a run that show progress, in their order."""
    second = bool(recipe.second_step)
    stages = {
        "count": recipe.needs_statistics,
        "read": not recipe.content,
        "pages": bool(recipe.content),
        "join": True,
        "margin": margin and not second,
        "verify": second,
        "write": write,
    }
    return [stage for stage, due in stages.items() if due]


def format_amount(done: int, total: int | None, rate: float | None, *, in_bytes: bool) -> str:
    """Return how far a stage is and how fast, as ``1.2 GB of 3.5 GB, 44 MB/s``, in bytes or in documents."""
    number_text = format_size if in_bytes else "{:,}".format
    of_total = "" if total is None else f" of {number_text(total)}"
    return number_text(done) + of_total + (f", {number_text(round(rate))}/s" if rate else "")


def describe_lsh(search: dict[str, Any]) -> str:
    """Return the recall and the candidates of LSH; empty for other searches."""
    if "bands" not in search:
        return ""
    expected = f" (expected {search['expected_candidates']:,})" if "expected_candidates" in search else ""
    return (
        f"LSH, {search['bands']} bands of {search['rows']} rows: finds {search['recall_at_threshold']:.2%} of the "
        f"pairs at Jaccard {search['jaccard_at_threshold']:.4g}; {search['candidates']:,} candidates{expected}, all "
        "verified"
    )


#: The pairs that the precision and recall of a cut were measured on; those that ``train`` prints first are others.
FIGURES_OF_A_CUT = "out of fold on the pairs it was trained on, which chose the cut"


def describe_cut(fingerprint: str, cut: float | None, precision: float, recall: float) -> str:
    """Return a classifier's fingerprint and cut, with the figures of the cut on the pairs that it was chosen on."""
    condition = "no cut" if cut is None or cut == float("-inf") else f"score >= {cut:.4g}"
    return f"{fingerprint}, {condition}: precision {precision:.3f} and recall {recall:.3f} {FIGURES_OF_A_CUT}"


#: Refuses an output by its name, the inputs, and whether an existing file may be replaced.
Check = Callable[[str, Sequence[str], bool], None]


def check_outputs(
    inputs: Sequence[str],
    outputs: Mapping[str, str | Sequence[str] | None],
    *,
    force: bool = False,
    checks: Mapping[str, Check] | None = None,
) -> None:
    """Refuse, before the work begins, outputs that cannot or must not be written, or that share a name.

    ``outputs`` has their names by their options, None for one that was not given; ``checks`` has checks by option, for
    outputs that are not tables. Summaries, quarantines and reports have theirs.
    """
    from neardup.documents import check_output

    checks = _CHECKS | dict(checks or {})
    option_of: dict[str, str] = {}
    for option, names in outputs.items():
        for name in [names] if isinstance(names, str) else names or ():
            checks.get(option, check_output)(name, inputs, force)
            place = name if name == "-" or "://" in name else os.path.realpath(name)
            if place in option_of:
                raise OutputError(f"{name} is given for {option_of[place]} and for {option}: name two files")
            option_of[place] = option


def ending_check(reason: str, *endings: str) -> Check:
    """Return a check that refuses names with none of the endings; the reason ends its sentence."""
    *first, last = (ending for ending in endings if not ending.endswith((".gz", ".zst")))
    listed = f"{', '.join(first)} or {last}" if first else last

    def check(name: str, inputs: Sequence[str], force: bool) -> None:
        from neardup.documents import check_output

        if not name.endswith(endings):
            raise OutputError(f"{name} does not end in {listed}, but {reason}: name it so")
        check_output(name, inputs, force)

    return check


def check_nothing(name: str, inputs: Sequence[str], force: bool) -> None:
    """Accept any name: a store is checked when it is opened."""


def check_local_file(name: str, inputs: Sequence[str], force: bool) -> None:
    """Refuse a place where no file can be, whatever its format."""
    from neardup.documents.output import check_place

    if name == "-":
        raise OutputError("- is stdout, and this is written to a file: name one")
    check_place(name, inputs, force)


def _check_page(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.pages.page import check_page

    check_page(name, inputs, force=force)


_CHECKS: dict[str, Check] = {
    "--summary": ending_check("a summary is JSON", ".json"),
    "--quarantine": ending_check(
        "a quarantine is JSON lines",
        *(f".{kind}{codec}" for kind in ("jsonl", "ndjson") for codec in ("", ".gz", ".zst")),
    ),
    "--report": _check_page,
}


@contextmanager
def written_files(*names: str | None) -> Iterator[list[str]]:
    """Give the list of files written so far, to be appended to; an interruption of the block names them.

    ``names`` are those that were written before.
    """
    written = [name for name in names if name is not None]
    try:
        yield written
    except KeyboardInterrupt as interrupt:
        if written:
            interrupt.args = (f"written: {', '.join(written)}",)
        raise


def write_json(content: Any, name: str) -> None:
    """Write JSON to a file."""
    from neardup.documents.output import OutputFile

    with OutputFile(name) as file:
        file.write(json.dumps(_with_failed_pages(content), ensure_ascii=False, indent=2).encode() + b"\n")
