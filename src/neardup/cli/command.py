"""A command: options from data classes, help that fits a screen, and one sentence for wrong usage."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from neardup.cli.screen import EXIT_CODES, QUIET, TYPED_ARGUMENTS
from neardup.errors import RecipeError
from neardup.recipe.recipe import OPTIONS

#: Keys of a context: the typed values by name, and whether --help-all was typed.
_TYPED, _HELP_ALL = "neardup.typed", "neardup.help_all"
#: The options that stand last.
_HELP_OPTIONS = ("-q, --quiet", "--help-all", "-h, --help")
#: The most lines of help without --help-all, unless the options that have no title take more.
_SCREEN_LINES = 40
#: A valid number, for messages.
_EXAMPLE = {int: "10", float: "0.8"}

#: The titles below which help lists options.
MATCHING, READING, RUNNING, CLASSIFIER = "What matches", "Reading", "Running", "A trained classifier"
ENGINE, REPORT, LABELS, FLOW, MORE = "Engine", "Report", "Labels", "The flow", "More"
#: Options that help without --help-all shows whatever their titles.
_MAIN_OPTIONS = ("labels", "clusters", "store", "window")
#: Titles that only --help-all shows, and the options below them that --help shows as well.
_ADVANCED_TITLES = (READING, RUNNING, CLASSIFIER, ENGINE, REPORT, MORE)
_USUAL_OPTIONS = ("classifier", "text_column", "id_column", "report", "html", "recipe", "set_fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """The metadata of a parameter: an option, a switch or an argument.

    ``names``: the spellings, if they differ from the name; ``format``: how help writes the default; ``shown``: what
    holds without the option, if its own default is None.
    """

    help: str
    metavar: str = ""
    title: str | None = None
    names: tuple[str, ...] = ()
    parser: Callable[[str], Any] | None = None
    min: float | None = None
    max: float | None = None
    format: Callable[[Any], str] = "{:g}".format
    shown: str = ""
    is_argument: bool = False


def option(metavar: str, help: str, title: str | None = None, *names: str, **settings: Any) -> Parameter:
    """Return an option with a value; ``names`` are its spellings if they differ from the name of its parameter."""
    return Parameter(metavar=metavar, help=help, title=title, names=names, **settings)


def output_option(help: str, metavar: str = "FILE") -> Parameter:
    """Return the option ``--output``."""
    return option(metavar, help, None, "-o", "--output")


def switch(name: str, help: str, title: str | None = None) -> Parameter:
    """Return an option without a value."""
    return Parameter(help=help, title=title, names=(name,))


def argument(metavar: str, help: str) -> Parameter:
    """Return an argument."""
    return Parameter(metavar=metavar, help=help, is_argument=True)


class _Value(click.ParamType[Any]):
    """A value that is parsed, or refused with the rule that it breaks."""

    name = "value"

    def __init__(self, kind: Any, parameter: Parameter) -> None:
        self._kind, self._parameter = kind, parameter
        self._words: tuple[str, ...] = get_args(kind) if get_origin(kind) is Literal else ()

    @property
    def is_checked(self) -> bool:
        """Whether only some texts are values."""
        return bool(self._words) or self._kind in (int, float) or self._parameter.parser is not None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that a text means."""
        if not isinstance(value, str):
            return value
        if self._parameter.parser is not None:
            try:
                return self._parameter.parser(value)
            except RecipeError as error:
                self.fail(str(error), param, ctx)
        if self._words and value not in self._words:
            self.fail(f"{value!r} is not known: give {', '.join(self._words[:-1])} or {self._words[-1]}", param, ctx)
        return self._number(value, param, ctx) if self._kind in (int, float) else value

    def _number(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        minimum, maximum = self._parameter.min, self._parameter.max
        with suppress(ValueError):
            number = self._kind(value)
            if (-math.inf if minimum is None else minimum) <= number <= (math.inf if maximum is None else maximum):
                return number
        noun = "a whole number" if self._kind is int else "a number"
        if minimum is not None and maximum is not None:
            self.fail(f"{value!r} is not {noun} from {minimum:,} to {maximum:,}: give one in between", param, ctx)
        limit = "" if minimum is None else f" from {minimum:g} on"
        return self.fail(f"{value!r} is not {noun}{limit}: give one such as {_EXAMPLE[self._kind]}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the words that an option takes."""
        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


class Option(click.Option):
    """An option that knows its metadata, and keeps what was typed for messages."""

    def __init__(self, name: str, kind: Any, default: Any, parameter: Parameter) -> None:
        is_list, self.parameter, self.initial = get_origin(kind) is list, parameter, default
        settings: dict[str, Any] = {"is_flag": True} if kind is bool else {"type": _Value(kind, parameter)}
        if default is not MISSING and not is_list:
            settings["default"] = default
        names = parameter.names or (f"--{name.replace('_', '-')}",)
        super().__init__([name, *names], required=default is MISSING, multiple=is_list, help=parameter.help, **settings)

    @property
    def is_checked(self) -> bool:
        """Whether only some texts are values: numbers, sizes, times or one of a few words."""
        return isinstance(self.type, _Value) and self.type.is_checked

    @property
    def usage(self) -> str:
        """How it is written."""
        return max(self.opts, key=len) + ("" if self.is_flag else f" {self.parameter.metavar}")

    def consume_value(self, ctx: click.Context, opts: Any) -> Any:
        """Return the value, and keep what was typed."""
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.COMMANDLINE:
            ctx.meta.setdefault(_TYPED, {})[self.name] = value
        return value, source

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return how it is written and what it means, with its default."""
        names = ", ".join(sorted(self.opts, key=len)) + ("" if self.is_flag else f" {self.parameter.metavar}")
        shown = f"[default: {self.parameter.shown}]" if self.parameter.shown else ""
        remark = "[required]" if self.required else shown
        if self.initial not in (None, "", MISSING) and self.initial is not False:
            text = self.initial if isinstance(self.initial, str) else self.parameter.format(self.initial)
            remark = f"[default: {text}]"
        return names, f"{self.parameter.help}  {remark}".rstrip()


class Argument(click.Argument):
    """An argument with a help text."""

    def __init__(self, name: str, kind: Any, default: Any, parameter: Parameter) -> None:
        self.parameter = parameter
        settings: dict[str, Any] = {} if default is MISSING else {"default": default}
        is_list = get_origin(kind) is list
        super().__init__([name], required=default is MISSING, nargs=-1 if is_list else 1, **settings)

    @property
    def usage(self) -> str:
        """How it is written: its name shows that it is a list, or may be left out."""
        return self.parameter.metavar

    def make_metavar(self, ctx: click.Context) -> str:
        """Return what usage lines show."""
        return self.usage

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return how it is written and what it means."""
        return self.usage, self.parameter.help


def _parameters(function: Callable[..., None]) -> tuple[list[click.Parameter], dict[str, Any]]:
    """Return an option for each parameter of a function, and each field of its data classes; and these by name."""
    found: list[click.Parameter] = []
    records: dict[str, Any] = {}

    def add(name: str, hint: Any, default: Any) -> None:
        kind, metadata = get_args(hint)
        if get_origin(kind) in (Union, UnionType):
            kind = next(member for member in get_args(kind) if member is not type(None))
        found.append((Argument if metadata.is_argument else Option)(name, kind, default, metadata))

    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if not is_dataclass(hints[name]):
            add(name, hints[name], MISSING if parameter.default is parameter.empty else parameter.default)
            continue
        records[name] = hints[name]
        field_hints = get_type_hints(hints[name], include_extras=True)
        for field in fields(hints[name]):
            add(field.name, field_hints[field.name], field.default)
    return found, records


def flag(callback: Callable[[click.Context, click.Parameter, bool], None], help: str, *names: str) -> click.Option:
    """Return an option of every command: a function is called if it is typed, and no command gets its value."""
    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=help)


class Command(click.Command):
    """A command whose options are the parameters of a function, and whose help fits a screen."""

    def __init__(self, name: str, function: Callable[..., None], examples: Sequence[str] = ()) -> None:
        parameters, self._records = _parameters(function)
        self.examples = examples
        quiet = flag(_be_quiet, "Print only warnings and errors to stderr.", "-q", "--quiet")
        help_all = flag(_print_all_help, "Show all options and exit.", "--help-all")
        super().__init__(name, params=[*parameters, quiet, help_all], help=inspect.getdoc(function), callback=function)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, a command that needs some shows examples."""
        if not args and not ctx.resilient_parsing and self.examples and any(one.required for one in self.params):
            raise NoArgumentsError(ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function with the values and the records that it takes."""
        values: dict[str, Any] = {
            name: (list(value) or None) if isinstance(value, tuple) else value for name, value in ctx.params.items()
        }
        # The allocator of Arrow reads it when it is loaded, which no option does.
        os.environ.setdefault("MIMALLOC_PURGE_DELAY", _purge_delay(values.get("memory")))
        records = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in self._records.items()
        }
        return ctx.invoke(self.callback or print, **values, **records)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what follows the name of the command."""
        return ["[OPTIONS]", *(one.usage for one in self.params if isinstance(one, Argument))]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does: its first paragraph, or with --help-all all of them."""
        text = self.help or ""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text if _HELP_ALL in ctx.meta else text.partition("\n\n")[0])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each title: with --help-all every one, else those that fit a screen."""
        everything = _HELP_ALL in ctx.meta
        sections = self._sections(ctx, everything=everything)
        lines = formatter.getvalue().count("\n")
        for title, records in sections.items():
            section = click.HelpFormatter(width=formatter.width)
            section.write("\n")
            section.write_heading(title)
            with section.indentation():
                section.write_dl(records, col_max=34)
            size = section.getvalue().count("\n")
            if everything or title in ("Arguments", "Options") or lines + size <= _SCREEN_LINES:
                formatter.write(section.getvalue())
                lines += size
        if everything:
            write_exit_codes(formatter)

    def _sections(self, ctx: click.Context, *, everything: bool) -> dict[str, list[tuple[str, str]]]:
        """Return the records of help by their titles."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            title = parameter.parameter.title if isinstance(parameter, Option) else None
            record = parameter.get_help_record(ctx)
            if record is not None and (everything or _is_usual(parameter.name or "", title)):
                if not everything:
                    is_main = parameter.required or parameter.name in _MAIN_OPTIONS
                    record, title = (record[0], _first_sentence(record[1])), None if is_main else title
                kind = "Arguments" if isinstance(parameter, Argument) else "Options"
                sections.setdefault(title or kind, []).append(record)
        if everything and any(parameter.name == "set_fields" for parameter in self.params):
            sections["Fields for --set"] = rare_field_records()
        if not everything:
            # A title over one line takes more room than the line.
            for title in [title for title, records in sections.items() if len(records) == 1 and title != "Arguments"]:
                if title != "Options":
                    sections["Options"] += sections.pop(title)
        sections["Options"].sort(key=lambda record: record[0] in _HELP_OPTIONS)
        # The columns of a corpus usually need no option.
        order = sorted(sections, key=lambda title: title == READING and not everything)
        return {title: sections[title] for title in order if sections[title]}


#: With a memory limit of this size or more, freed memory may stay with the process for a while.
_LARGE_LIMIT = 2_000_000_000


def _purge_delay(limit: int | None) -> str:
    """Return after how many milliseconds Arrow returns freed memory to the system.

    With a small memory limit that is at once. Otherwise the memory of one batch serves the next one, for 0.1 s or,
    without a limit, for 1 s: a new page costs more than filling it.
    """
    return "1000" if limit is None else "100" if limit >= _LARGE_LIMIT else "0"


class NoArgumentsError(click.UsageError):
    """A command was called without arguments, and needs some."""

    def __init__(self, ctx: click.Context) -> None:
        super().__init__("no arguments", ctx)


def _first_sentence(help: str) -> str:
    """Return the first sentence of a help text, and the remark on the default."""
    text, bracket, remark = help.partition("  [")
    sentence, _, more = text.partition(". ")
    return f"{sentence}.{bracket}{remark}" if more else help


def rare_field_records() -> list[tuple[str, str]]:
    """Return how the fields for --set are written and what they mean, for help."""
    return [(f"{name}={field.values}", field.help) for name, field in OPTIONS.items() if not field.common]


def _is_usual(name: str, title: str | None) -> bool:
    if title == MATCHING and name in OPTIONS:
        return OPTIONS[name].common and name not in ("content", "ignore")
    return name in _USUAL_OPTIONS or name in _MAIN_OPTIONS or title not in (MATCHING, *_ADVANCED_TITLES)


def _print_all_help(context: click.Context, _option: click.Parameter, typed: bool) -> None:
    if typed:
        context.meta[_HELP_ALL] = True
        click.echo(context.get_help())
        context.exit()


def _be_quiet(_context: click.Context, _option: click.Parameter, typed: bool) -> None:
    if typed:
        QUIET.set(True)


class Group(click.Group):
    """Commands below another one, such as those of an index; without arguments it shows its help."""

    def __init__(self, name: str, help: str, **settings: Any) -> None:
        super().__init__(name, help=help, no_args_is_help=False, **settings)

    def add(self, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Return a decorator that makes a function a command of this group."""

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            self.add_command(Command(name or function.__name__, function))
            return function

        return decorate

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they are defined."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first paragraph on each command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (one.help or "").partition("\n\n")[0]) for name, one in self.commands.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, show help."""
        if not args and not ctx.resilient_parsing:
            raise NoArgumentsError(ctx)
        return super().parse_args(ctx, args)


def _typed_values(context: click.Context) -> dict[str, Any]:
    found: dict[str, Any] = context.meta.get(_TYPED, {})
    return found


def refuse_ignored(names: Iterable[str], reason: str) -> None:
    """Refuse an option that was typed and would be ignored; the reason says what it is for, and the way out."""
    context = click.get_current_context()
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        if name in _typed_values(context):
            value = _typed_values(context)[name]
            shown = "" if value is True else f" {value[0] if isinstance(value, (list, tuple)) else value}"
            raise RecipeError(f"{options[name]}{shown} {reason}")


def usage_message(error: click.UsageError, renamed: Mapping[str, str]) -> str:
    """Return the message for wrong usage: a bad value, an unknown option, a missing one, too many arguments.

    ``renamed`` has what to type instead of a name that a command had before.
    """
    context, message = error.ctx, error.message.rstrip(".")
    if context is None:
        return message
    command = _command_name(context)
    if isinstance(error, click.NoSuchOption):
        return _unknown_option_message(error.option_name, context)
    if isinstance(error, click.BadOptionUsage):
        parameter = next(one for one in context.command.params if error.option_name in one.opts)
        if isinstance(parameter, Option) and not parameter.is_flag:
            return f"{error.option_name} has no value: give {error.option_name} {parameter.parameter.metavar}"
        return f"{error.option_name} is a switch and takes no value: give it alone"
    if isinstance(error, click.BadParameter) and isinstance(error.param, Option | Argument):
        parameter = error.param
        if isinstance(error, click.MissingParameter):
            help = parameter.parameter.help.rstrip(".")
            return f"{command} needs {parameter.usage}: {help[:1].lower()}{help[1:]}"
        return f"{parameter.usage.split()[0]} {message}"
    if message.startswith("No such command"):
        word = message.split("'")[1]
        before = f"{context.command_path} {word}".removeprefix("neardup ")
        if before in renamed:
            return f"{before} has a new name: neardup {renamed[before]}"
        similar = get_close_matches(word, context.command.list_commands(context), 1)  # type: ignore[attr-defined]
        hint = f"do you mean {similar[0]}?" if similar else f"{context.command_path} --help lists the commands"
        return f"{word!r} is no command of {command}; {hint}"
    return f"{message[:1].lower()}{message[1:]}; {context.command_path} --help shows what {command} takes"


def _command_name(context: click.Context) -> str:
    return context.command_path.removeprefix("neardup ")


def _unknown_option_message(name: str, context: click.Context) -> str:
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


def write_exit_codes(formatter: click.HelpFormatter) -> None:
    """Write the section of help on exit codes."""
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])
