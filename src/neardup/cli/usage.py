"""What a wrong command line is answered with: one sentence of the value, the rule and the way out."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from neardup.cli.screen import EXIT_CODES, TYPED
from neardup.recipe.recipe import OPTIONS

#: What Typer raises for a wrong use; it has moved between its versions.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
#: Where a call of a command keeps the words that it was given.
ARGUMENTS = "neardup.arguments"


def sentence_of(error: Any) -> str:
    """Return what to say of a wrong use.

    Parameters
    ----------
    error : UsageError
        What Typer raised: a bad value, an unknown option, a missing one, too many arguments.
    """
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
    near = get_close_matches(name, [*options, *(f"--{one.replace('_', '-')}" for one in rare)], 1)
    said = f"{_name(context)} has no option {name}"
    if field not in rare and near:
        field = near[0].removeprefix("--").replace("-", "_")
    if field in rare:
        return f"{said}; give the field {field} of a recipe as --set {field}={_value_of(name, rare[field].values)}"
    everything = "--help-all" if "--help-all" in options else "--help"
    return f"{said}; do you mean {near[0]}?" if near else f"{said}; {context.command_path} {everything} lists them"


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
    if record is None or parameter.param_type_name != "argument":
        return record
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
    given, _, _ = context.command.make_parser(context).parse_args(list(context.meta[ARGUMENTS]))
    value = given.get(parameter.name)
    if get_origin(kind) is Literal:
        return f"{value!r} is not known: give {' or '.join(map(str, get_args(kind)))}"
    noun = "a whole number" if kind is int else "a number"
    least, most = info.min, info.max
    if least is not None and most is not None:
        return f"{value!r} is not {noun} from {least:g} to {most:g}"
    return f"{value!r} is not {noun}" + ("" if least is None else f" from {least:g} on")


def write_exit_codes(formatter: Any) -> None:
    """Write what a command exits with, as help lists it."""
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), what) for code, what in EXIT_CODES.items()])
