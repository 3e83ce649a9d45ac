"""A command: options from data classes, help that fits a screen, and one sentence for wrong usage."""

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

from neardup.cli.screen import EXIT_CODES, TYPED_ARGUMENTS
from neardup.errors import RecipeError
from neardup.recipe.recipe import OPTIONS

#: What Typer raises for wrong usage; its module differs between versions.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
#: The running command, which knows the options that were typed.
_CONTEXT: ContextVar[typer.Context] = ContextVar("_CONTEXT")
#: Keys of a context: the typed arguments, and whether --help-all was typed.
_ARGUMENTS, _HELP_ALL = "neardup.arguments", "neardup.help_all"

#: The options that stand last.
_HELP_OPTIONS = ("--help-all", "-h, --help")

#: A valid number, for messages.
_EXAMPLE = {int: "10", float: "0.8"}

#: The titles below which help lists options.
MATCHING, READING, RUNNING, CLASSIFIER = "What matches", "Reading", "Running", "A trained classifier"
ENGINE, REPORT, LABELS, FLOW, MORE = "Engine", "Report", "Labels", "The flow", "More"
#: Titles that only --help-all shows, and the options below them that --help shows, too.
_ADVANCED_TITLES = (READING, RUNNING, CLASSIFIER, ENGINE, REPORT, MORE)
_USUAL_OPTIONS = ("classifier", "text_column", "id_column", "report", "html", "recipe", "set_fields")


def option(metavar: str, help: str, title: str | None = None, *names: str, **settings: Any) -> Any:
    """Return an option with a value; ``names`` are its spellings if they differ from the name of its parameter."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=title, **settings)


def output_option(help: str, metavar: str = "FILE", **settings: Any) -> Any:
    """Return the option ``--output``."""
    return option(metavar, help, None, "--output", "-o", **settings)


def switch(name: str, help: str, title: str | None = None) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=title)


def argument(metavar: str, help: str) -> Any:
    """Return an argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


class Command(TyperCommand):
    """A command whose help fits a screen, in sections, without Rich, which takes long to import."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for messages."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name of the command."""
        arguments = [parameter for parameter in self.get_params(ctx) if parameter.param_type_name == "argument"]
        return ["[OPTIONS]", *map(usage_of, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each title."""
        everything = _HELP_ALL in ctx.meta
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = help_record(parameter, ctx)
            if record is not None and not everything:
                record = record[0], _first_sentence(record[1])
            title = getattr(parameter, "rich_help_panel", None)
            if record is not None and (everything or _is_usual(parameter.name or "", title)):
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(title or kind, []).append(record)
        if everything and any(parameter.name == "set_fields" for parameter in self.params):
            sections["Fields for --set"] = rare_field_records()
        if not everything:
            # A title over one line takes more room than the line.
            for title in [title for title, records in sections.items() if len(records) == 1 and title != "Arguments"]:
                if title != "Options":
                    sections["Options"] += sections.pop(title)
        sections["Options"].sort(key=lambda record: record[0] in _HELP_OPTIONS)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=34)
        if everything:
            write_exit_codes(formatter)


def _first_sentence(help: str) -> str:
    """Return the first sentence of a help text, and the default."""
    text, bracket, default = help.partition("[default: ")
    sentence, _, more = text.partition(". ")
    return f"{sentence}.  {bracket}{default}".rstrip() if more else help


def rare_field_records() -> list[tuple[str, str]]:
    """Return how the fields for --set are written and what they mean, for help."""
    return [(f"{name}={field.values}", field.help) for name, field in OPTIONS.items() if not field.common]


def _is_usual(name: str, title: str | None) -> bool:
    if title == MATCHING and name in OPTIONS:
        return OPTIONS[name].common and name not in ("content", "ignore")
    return name in _USUAL_OPTIONS or title not in (MATCHING, *_ADVANCED_TITLES)


def _print_all_help(context: typer.Context, typed: bool) -> None:
    if typed:
        context.meta[_HELP_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_print_all_help, help="Show all options and exit.")
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the data classes among its parameters."""
    hints, keyword_only = get_type_hints(command, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=keyword_only))
            continue
        records[name] = kind
        field_hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(field.name, keyword_only, default=default, annotation=field_hints[field.name])
            )
    parameters.append(inspect.Parameter("help_all", keyword_only, default=False, annotation=_HelpAll))
    parameters.append(inspect.Parameter("context", keyword_only, annotation=typer.Context))

    def call(**values: Any) -> None:
        _CONTEXT.set(values.pop("context"))
        values.pop("help_all")
        options = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in records.items()}
        command(**values, **options)

    call.__doc__, call.__name__ = command.__doc__, command.__name__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def command_group() -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def subcommand(
    group: typer.Typer, name: str | None = None, *, has_arguments: bool = True
) -> Callable[..., Callable[..., None]]:
    """Return a decorator that makes a function a command of a group; without its arguments it shows its help."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        add_command = group.command(name or function.__name__, cls=Command, no_args_is_help=has_arguments)
        add_command(with_options(function))
        return function

    return add


def refuse_ignored(names: Iterable[str], reason: str) -> None:
    """Refuse an option that was typed and would be ignored; the reason says what it is for, and the way out."""
    context = _CONTEXT.get()
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = _typed_value(context, name)
            shown = "" if context.params[name] is True else f" {value[0] if isinstance(value, list) else value}"
            raise RecipeError(f"{options[name]}{shown} {reason}")


def usage_message(error: Any) -> str:
    """Return the message for wrong usage: a bad value, an unknown option, a missing one, too many arguments."""
    context, message = error.ctx, str(error.message).rstrip(".")
    if context is None:
        return message
    command = _command_name(context)
    if (unknown := getattr(error, "option_name", None)) is not None:
        parameter = next((parameter for parameter in context.command.params if unknown in parameter.opts), None)
        if parameter is None:
            return _unknown_option_message(unknown, context)
        if parameter.is_flag:
            return f"{unknown} is a switch and takes no value: give it alone"
        return f"{unknown} has no value: give {unknown} {parameter.metavar}"
    parameter = getattr(error, "param", None)
    if parameter is not None:
        if type(error).__name__ == "MissingParameter":
            help = str(parameter.help or "").rstrip(".")
            return f"{command} needs {usage_of(parameter)}: {help[:1].lower()}{help[1:]}"
        return f"{usage_of(parameter).split()[0]} {_violated_rule(parameter, context) or message}"
    if message.startswith("No such command"):
        word = message.split("'")[1]
        similar = get_close_matches(word, context.command.commands, 1)
        hint = f"do you mean {similar[0]}?" if similar else f"{context.command_path} --help lists the commands"
        return f"{word!r} is no command of {command}; {hint}"
    return f"{message[:1].lower()}{message[1:]}; {context.command_path} --help shows what {command} takes"


def _command_name(context: Any) -> str:
    return str(context.command_path).removeprefix("neardup ")


def _unknown_option_message(name: str, context: Any) -> str:
    options = [word for parameter in context.command.params for word in parameter.opts if word.startswith("--")]
    rare = {field: info for field, info in OPTIONS.items() if not info.common} if "--set" in options else {}
    field = name.removeprefix("--").replace("-", "_")
    # Without the dashes: all options share them, and three equal letters of five would be close enough.
    words = [*(word.removeprefix("--") for word in options), *(word.replace("_", "-") for word in rare)]
    similar = _similar_words(name.removeprefix("--"), words)
    message = f"{_command_name(context)} has no option {name}"
    if field not in rare and similar:
        field = similar[0].replace("-", "_")
    if field in rare:
        return f"{message}; give the field {field} of a recipe as --set {field}={_value_of(name, rare[field].values)}"
    help_option = "--help-all" if "--help-all" in options else "--help"
    hint = f"do you mean --{similar[0]}?" if similar else f"{context.command_path} {help_option} lists them"
    return f"{message}; {hint}"


def _similar_words(typed: str, words: list[str]) -> list[str]:
    """Return words like a typed one, or which begin with it or with a word like it: text for text-column."""
    beginnings = {word.partition("-")[0]: word for word in reversed(words)}
    return (
        get_close_matches(typed, words, 1)
        or [word for word in words if len(typed) > 2 and word.startswith(typed)]
        or [beginnings[word] for word in get_close_matches(typed, beginnings, 1)]
    )


def _value_of(option: str, default: str) -> str:
    """Return the value that was typed after an option, as ``--option value`` or ``--option=value``."""
    words = list(TYPED_ARGUMENTS.get())
    for position, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and position + 1 < len(words) and not words[position + 1].startswith("--"):
            return words[position + 1]
    return default


def usage_of(parameter: Any) -> str:
    """Return how an option or argument is written."""
    metavar = str(parameter.metavar or parameter.name.upper())
    if parameter.param_type_name == "argument":
        return metavar
    return str(max(parameter.opts, key=len)) + ("" if getattr(parameter, "is_flag", False) else f" {metavar}")


def help_record(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Return how an option or argument is written and what it means, for help; None if help leaves it out."""
    record: tuple[str, str] | None = parameter.get_help_record(context)
    if record is None:
        return None
    if parameter.param_type_name != "argument":
        # Messages give the bounds of numbers, and a default is shown as it would be typed.
        help = re.sub(
            r"\[(default: .*?); [0-9<=]*x[<>=][^\]]*\]", r"[\1]", re.sub(r" *\[[0-9<=]*x[<>=][^\]]*\]", "", record[1])
        )
        return record[0], re.sub(r"\[default: \((.*?)\)\]", r"[default: \1]", help)
    # The name of an argument shows already that it is a list, and required.
    return usage_of(parameter), str(parameter.help or "")


def _violated_rule(parameter: Any, context: Any) -> str:
    """Return a value and the rule that it breaks, by the annotation of its option; empty if a parser checks it."""
    callback = context.command.callback
    hint = get_type_hints(inspect.unwrap(callback), include_extras=True).get(parameter.name)
    kind, *extras = get_args(hint) if hint is not None else (None,)
    info = next((extra for extra in extras if isinstance(extra, typer.models.ParameterInfo)), None)
    if info is None or info.parser is not None:
        return ""
    if get_origin(kind) in (Union, UnionType):
        kind = next(member for member in get_args(kind) if member is not type(None))
    if kind not in (int, float) and get_origin(kind) is not Literal:
        return ""
    value = _typed_value(context, parameter.name)
    if get_origin(kind) is Literal:
        *first, last = map(str, get_args(kind))
        return f"{value!r} is not known: give {', '.join(first)} or {last}"
    noun, minimum, maximum = "a whole number" if kind is int else "a number", info.min, info.max
    if minimum is not None and maximum is not None:
        return f"{value!r} is not {noun} from {minimum:,} to {maximum:,}: give one in between"
    limit = "" if minimum is None else f" from {minimum:g} on"
    return f"{value!r} is not {noun}{limit}: give one such as {_EXAMPLE[kind]}"


def _typed_value(context: Any, name: str) -> Any:
    values, _, _ = context.command.make_parser(context).parse_args(list(context.meta[_ARGUMENTS]))
    return values.get(name)


def write_exit_codes(formatter: Any) -> None:
    """Write the section of help on exit codes."""
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])
