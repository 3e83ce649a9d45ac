"""The options that commands share: a command that takes such a record takes an option for each field."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_type_hints

import typer

from neardup.cli.numbers import parse_size, whole_number
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.documents import Corpus

_READ, _RUN = "Reading", "Running"
#: This call of a command: it knows which options were typed.
_CALL: ContextVar[typer.Context] = ContextVar("_CALL")

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        show_default=False,
        help="Parquet, JSON lines, CSV, TSV or Arrow, plain, .gz or .zst; folders and globs of them or of "
        "text files; URIs; - for stdin.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
LABELS_PANEL = "Labels"
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=LABELS_PANEL, help="Column of the labels, by default label or level."),
]
Positive = Annotated[
    str,
    typer.Option(metavar="NUMBER", rich_help_panel=LABELS_PANEL, help="Labels at or above it say duplicate."),
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        rich_help_panel=LABELS_PANEL,
        help="Take the labels with that value in that column, as split=train.",
    ),
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option("--ignore-unknown", rich_help_panel=LABELS_PANEL, help="Leave out labels of unknown documents."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How documents are read."""

    text_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_READ, help="Column of the texts; found by itself when obvious."),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_READ,
            help="Column of the ids; found by itself when obvious, else row numbers from 0.",
        ),
    ] = None
    max_document: Annotated[
        str | None,
        typer.Option(metavar="SIZE", rich_help_panel=_READ, help="Set larger texts aside, such as 10MB."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", rich_help_panel=_READ, help="Stop at the first broken record.")
    ] = False
    quarantine: Annotated[
        str | None,
        typer.Option(metavar="FILE", rich_help_panel=_READ, help="Write broken records there, as JSON lines."),
    ] = None

    def open(self, inputs: list[str], *, order_column: str | None = None, write: bool = True) -> Corpus:
        """Open the inputs; without ``write``, nothing goes to the quarantine file."""
        from neardup.documents import open_corpus

        return open_corpus(
            inputs,
            text_column=self.text_column,
            id_column=self.id_column,
            order_column=order_column,
            strict=self.strict,
            quarantine=self.quarantine if write else None,
            max_document=parse_size(self.max_document, "--max-document"),
        )


class Limits(TypedDict):
    """What ``pipeline.run`` takes of ``RunOptions``."""

    threads: int | None
    memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run may use."""

    threads: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_RUN, help="Threads; all processors by default."),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            rich_help_panel=_RUN,
            help="Memory to stay within, such as 2GB; the rest goes to disk.",
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Threads and memory for ``pipeline.run``."""
        threads = None if self.threads is None else whole_number(self.threads, "--threads")
        return {"threads": threads, "memory": parse_size(self.memory, "--memory")}


def check_outputs(tables: dict[str, str | None], summary: str | None, inputs: list[str], *, force: bool) -> None:
    """Refuse, before the work starts, outputs that cannot or must not be written, or two of one name.

    Parameters
    ----------
    tables : dict of str to str or None
        Names of tables by the option that gave them.
    summary : str or None
        A name for JSON.
    """
    import os

    from neardup.documents import check_output

    if summary is not None and not summary.endswith(".json"):
        raise OutputError(f"{summary} does not end in .json, but a summary is JSON: name it so")
    quarantine = tables.get("--quarantine")
    if quarantine is not None and not re.search(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", quarantine):
        raise OutputError(f"{quarantine} does not end in .jsonl, but a quarantine is JSON lines: name it so")
    taken: dict[str, str] = {}
    for option, name in (tables | {"--summary": summary}).items():
        if name is None:
            continue
        check_output(name, inputs, force)
        place = name if name == "-" else os.path.realpath(name)
        if place in taken:
            raise OutputError(f"{name} is given for {taken[place]} and for {option}: name two files")
        taken[place] = option


def refuse_ignored(names: Iterable[str], why: str) -> None:
    """Refuse options that were typed and would be ignored.

    Parameters
    ----------
    names : iterable of str
        What the command calls them.
    why : str
        The reason and the way out.

    Raises
    ------
    RecipeError
        Naming the first one.
    """
    context = _CALL.get()
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            raise RecipeError(f"{options[name]} {why}" if value is True else f"{options[name]} {value} {why}")


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the records that it takes."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        records[name] = kind
        field_hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=field_hints[field.name],
                )
            )

    parameters.append(inspect.Parameter("call", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))

    def call(**values: Any) -> None:
        _CALL.set(values.pop("call"))
        made = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in records.items()}
        command(**values, **made)

    call.__doc__, call.__name__ = command.__doc__, command.__name__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
