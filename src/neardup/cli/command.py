"""A command: its options from data classes, help that fits a screen, and one sentence for a wrong use."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from neardup.cli.screen import EXIT_CODES, TYPED
from neardup.errors import RecipeError
from neardup.recipe.recipe import OPTIONS

#: What Typer raises for a wrong use; it has moved between its versions.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
#: This call of a command: it knows which options were typed.
_CALL: ContextVar[typer.Context] = ContextVar("_CALL")
#: Where a call keeps the words that it was given, and that all of its help is wanted.
_WORDS, _ALL = "neardup.words", "neardup.help_all"

#: A good number, for messages.
_EXAMPLE = {int: "10", float: "0.8"}

#: Where help lists options.
MATCHES, READ, RUN, CLASSIFIER = "What matches", "Reading", "Running", "A trained classifier"
ENGINE, REPORT, LABELS, FLOW, MORE = "Engine", "A report", "Labels", "The flow", "More"
#: The panels of options that few need, and those of them that most do: help shows the latter, --help-all everything.
_RARE = (READ, RUN, CLASSIFIER, ENGINE, REPORT, MORE)
_USUAL = ("classifier", "text_column", "id_column", "report", "html", "recipe", "set_fields")


def option(metavar: str, what: str, panel: str | None = None, *names: str, **more: Any) -> Any:
    """Return an option with a value; ``names`` are its spellings, where these differ from its parameter's name."""
    return typer.Option(*names, metavar=metavar, help=what, rich_help_panel=panel, **more)


def switch(name: str, what: str, panel: str | None = None) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=what, rich_help_panel=panel)


class Command(TyperCommand):
    """A command whose help fits a screen, in sections, without Rich, which takes long to import."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, and keep them for what is said of a wrong one."""
        ctx.meta[_WORDS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the name of the command."""
        return ["[OPTIONS]", *(shown(one) for one in self.get_params(ctx) if one.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = help_record(parameter, ctx)
            panel = getattr(parameter, "rich_help_panel", None)
            if record is not None and (_ALL in ctx.meta or _is_usual(parameter.name or "", panel)):
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(panel or kind, []).append(record)
        if _ALL in ctx.meta and any(parameter.name == "set_fields" for parameter in self.params):
            rare = {name: known for name, known in OPTIONS.items() if not known.common}
            sections["Fields for --set"] = [(f"{name}={known.values}", known.help) for name, known in rare.items()]
        if _ALL not in ctx.meta:
            # A heading over one line takes more room than the line.
            for title in [title for title, records in sections.items() if len(records) == 1 and title != "Arguments"]:
                if title != "Options":
                    sections["Options"] += sections.pop(title)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=34)
        if _ALL in ctx.meta:
            write_exit_codes(formatter)


def _is_usual(name: str, panel: str | None) -> bool:
    if panel == MATCHES:
        return name in _USUAL or (name in OPTIONS and OPTIONS[name].common and name not in ("content", "ignore"))
    return panel not in _RARE or name in _USUAL


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show all options and exit.")
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the records that it takes."""
    hints, only = get_type_hints(command, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=only))
            continue
        records[name] = kind
        field_hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(inspect.Parameter(field.name, only, default=default, annotation=field_hints[field.name]))
    parameters.append(inspect.Parameter("help_all", only, default=False, annotation=_HelpAll))
    parameters.append(inspect.Parameter("call", only, annotation=typer.Context))

    def call(**values: Any) -> None:
        _CALL.set(values.pop("call"))
        values.pop("help_all")
        made = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in records.items()}
        command(**values, **made)

    call.__doc__, call.__name__ = command.__doc__, command.__name__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def refuse_ignored(names: Iterable[str], why: str) -> None:
    """Refuse an option that was typed and would be ignored, with the reason and the way out."""
    context = _CALL.get()
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = "" if context.params[name] is True else f" {_typed_value(context, name)}"
            raise RecipeError(f"{options[name]}{value} {why}")


def sentence_of(error: Any) -> str:
    """Return what to say of a wrong use: a bad value, an unknown option, a missing one, too many arguments."""
    context, message = error.ctx, str(error.message).rstrip(".")
    if context is None:
        return message
    name = _name(context)
    if (unknown := getattr(error, "option_name", None)) is not None:
        parameter = next((known for known in context.command.params if unknown in known.opts), None)
        if parameter is None:
            return _unknown_option(unknown, context)
        if parameter.is_flag:
            return f"{unknown} takes no value, as it is a switch: give it alone"
        return f"{unknown} has no value: give {unknown} {parameter.metavar}"
    parameter = getattr(error, "param", None)
    if parameter is not None:
        if type(error).__name__ == "MissingParameter":
            what = str(parameter.help or "").rstrip(".")
            return f"{name} needs {shown(parameter)}: {what[:1].lower()}{what[1:]}"
        return f"{shown(parameter).split()[0]} {_rule(parameter, context) or message}"
    if message.startswith("No such command"):
        word = message.split("'")[1]
        near = get_close_matches(word, context.command.commands, 1)
        way = f"do you mean {near[0]}?" if near else f"{context.command_path} --help lists the commands"
        return f"{word!r} is no command of {name}; {way}"
    return f"{message[:1].lower()}{message[1:]}; {context.command_path} --help shows what {name} takes"


def _name(context: Any) -> str:
    """Return what a command is called in a sentence."""
    return str(context.command_path).removeprefix("neardup ")


def _unknown_option(name: str, context: Any) -> str:
    """Return what to say of an option that the command does not have."""
    options = {word: known for known in context.command.params for word in known.opts if word.startswith("--")}
    rare = {field: known for field, known in OPTIONS.items() if not known.common} if "--set" in options else {}
    field = name.removeprefix("--").replace("-", "_")
    # Without the dashes, which are alike in all and would make three letters out of five close enough.
    words = [*(one.removeprefix("--") for one in options), *(one.replace("_", "-") for one in rare)]
    near = get_close_matches(name.removeprefix("--"), words, 1)
    said = f"{_name(context)} has no option {name}"
    if field not in rare and near:
        field = near[0].replace("-", "_")
    if field in rare:
        return f"{said}; give the field {field} of a recipe as --set {field}={_value_of(name, rare[field].values)}"
    everything = "--help-all" if "--help-all" in options else "--help"
    return f"{said}; do you mean --{near[0]}?" if near else f"{said}; {context.command_path} {everything} lists them"


def _value_of(option: str, default: str) -> str:
    """Return the value that was typed behind an option, as ``--option value`` or ``--option=value``."""
    words = list(TYPED.get())
    for at, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and at + 1 < len(words) and not words[at + 1].startswith("--"):
            return words[at + 1]
    return default


def shown(parameter: Any) -> str:
    """Return an option or argument as it is written."""
    metavar = str(parameter.metavar or parameter.name.upper())
    if parameter.param_type_name == "argument":
        return metavar
    return str(max(parameter.opts, key=len)) + ("" if getattr(parameter, "is_flag", False) else f" {metavar}")


def help_record(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Return how an option or argument is written and what it is, for help; None where help leaves it out."""
    record: tuple[str, str] | None = parameter.get_help_record(context)
    if record is None:
        return None
    if parameter.param_type_name != "argument":
        # Bounds are said where they matter, and a default is what would be typed.
        said = re.sub(
            r"\[(default: .*?); [0-9<=]*x[<>=][^\]]*\]", r"[\1]", re.sub(r" *\[[0-9<=]*x[<>=][^\]]*\]", "", record[1])
        )
        return record[0], re.sub(r"\[default: \((.*?)\)\]", r"[default: \1]", said)
    # Typer says that an argument is a list, and required, which its name says already.
    return shown(parameter), str(parameter.help or "")


def _rule(parameter: Any, context: Any) -> str:
    """Return a value and the rule that it breaks, by the annotation of its option; empty where a parser says so."""
    callback = context.command.callback
    hint = get_type_hints(inspect.unwrap(callback), include_extras=True).get(parameter.name)
    kind, *extras = get_args(hint) if hint is not None else (None,)
    info = next((extra for extra in extras if isinstance(extra, typer.models.ParameterInfo)), None)
    if info is None or info.parser is not None:
        return ""
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if kind not in (int, float) and get_origin(kind) is not Literal:
        return ""
    value = _typed_value(context, parameter.name)
    if get_origin(kind) is Literal:
        *others, last = map(str, get_args(kind))
        return f"{value!r} is not known: give {', '.join(others)} or {last}"
    noun, least, most = "a whole number" if kind is int else "a number", info.min, info.max
    if least is not None and most is not None:
        return f"{value!r} is not {noun} from {least:,} to {most:,}: give one in between"
    return f"{value!r} is not {noun}{'' if least is None else f' from {least:g} on'}: give one such as {_EXAMPLE[kind]}"


def _typed_value(context: Any, name: str) -> Any:
    """Return what was typed for an option, as it was typed."""
    given, _, _ = context.command.make_parser(context).parse_args(list(context.meta[_WORDS]))
    return given.get(name)


def write_exit_codes(formatter: Any) -> None:
    """Write what a command exits with, as help lists it."""
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), what) for code, what in EXIT_CODES.items()])
