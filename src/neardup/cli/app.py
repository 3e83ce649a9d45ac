"""The command ``neardup``: its commands, and how errors are reported."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from neardup.cli.command import Command, UsageError, usage_message, usage_of, write_exit_codes
from neardup.cli.screen import EXIT_CODE, TYPED_ARGUMENTS, print_interrupt, print_message
from neardup.errors import ForeignDocuments, ManyCandidates, NeardupError, run_as_command
from neardup.version import __version__

#: The commands and what they do. Each is in the module of its name, imported when the command is called.
COMMANDS = {
    "explore": "Show how similar a corpus is to itself, and suggest features and a threshold.",
    "dedup": "Remove the near-duplicates of a corpus.",
    "pairs": "List every pair at or above the threshold.",
    "explain": "Show two documents side by side: what they share, and what would change the verdict.",
    "compare": "Compare recipes on labelled documents: precision, recall, F1 and time.",
    "neighbors": "Find the most similar other documents of each document, whatever the threshold.",
    "query": "Find all near-duplicates of one new document, the most similar first.",
    "label": "Label pairs of texts in the browser: same or different.",
    "train": "Train a classifier on labelled pairs: a support vector machine on several measures.",
    "audit": "Estimate the precision and recall of a result from a random sample of it.",
    "replay": "Run a dated corpus through the window, as if its documents arrived one by one.",
    "watch": "Judge files as they appear in a folder: originals pass, duplicates stop.",
    "serve": "Answer over HTTP whether a document repeats an earlier one.",
    "mcp": "Give agents tools over MCP: check, enter, query, explain.",
    "report": "Write a page on what a flow stopped and why, from its store.",
    "stopped": "List what was stopped and why: the item it repeats, the similarity and the time.",
    "release": "Release a stopped item: its file goes to the originals.",
    "contamination": "Find which items of a test set occur in training texts, and where.",
    "index": "Keep an index on disk to compare new documents with.",
    "recipe": "List, show, check and cite recipes.",
    "demo": "Remove the near-duplicates of 199 sample news items, and explain one of them.",
}
#: Examples of each command: shown if it is called without arguments, and in the manual.
EXAMPLES = {
    "explore": ("explore news.jsonl", "explore news.jsonl -o explored.html"),
    "dedup": ("dedup news.jsonl -o kept.jsonl", "dedup news/*.parquet --dry-run --report report.html"),
    "pairs": ("pairs news.jsonl -o pairs.csv", "pairs news.jsonl --print --threshold 0.7"),
    "explain": ("explain news.jsonl 3 17",),
    "compare": ("compare news.jsonl --labels labels.csv --report compared.html",),
    "neighbors": ("neighbors news.jsonl --k 5 --of 17",),
    "query": ("query news.jsonl --document new.txt",),
    "label": ("label news.jsonl --store labels.db",),
    "train": ("train news.jsonl --labels labels.db -o news.neardup",),
    "audit": ("audit news.jsonl --store audit.db --report audit.html",),
    "replay": ("replay news.jsonl --window 24h -o verdicts.csv",),
    "watch": ("watch inbox --originals news --store news.db",),
    "serve": ("serve --store news.db",),
    "mcp": ("mcp --store memory.db", "mcp --url http://127.0.0.1:8321"),
    "report": ("report news.db -o report.html",),
    "stopped": ("stopped news.db --today",),
    "release": ("release news.db item-17",),
    "contamination": ("contamination train/*.parquet --test test.jsonl --fail-over 0.1%",),
}
#: The modules of commands that share one.
_MODULES = {
    **{"pairs": "dedup", "neighbors": "query", "mcp": "serve"},
    **dict.fromkeys(("stopped", "release", "report"), "store"),
}


@cache
def load_command(name: str) -> Any:
    """Return a command with its options."""
    module = import_module(f"neardup.cli.{_MODULES.get(name, name)}")
    group = getattr(module, f"{name}_group", None)
    typer_app = group or typer.Typer(add_completion=False, rich_markup_mode=None)
    if group is None:
        typer_app.command(name=name, cls=Command, no_args_is_help=name in EXAMPLES)(getattr(module, name))
    command = typer.main.get_command(typer_app)
    command.name, command.help = name, COMMANDS[name] if group else command.help
    # A command whose options all have defaults says itself what is missing.
    needs_arguments = group is not None or any(parameter.required for parameter in command.params)
    command.no_args_is_help = command.no_args_is_help and needs_arguments
    return command


#: What to do if stdout cannot be written, by the number of the error.
_STDOUT_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space"),
    errno.EBADF: "it is closed: leave it open, or send it to a file",
}


class Commands(TyperGroup):
    """Commands that report errors of the user with one sentence and an exit code, never a traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=help, rich_markup_mode=None) for name, help in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the called command with its options; only its module is imported."""
        name, _, arguments = super().resolve_command(ctx, args)
        return name, load_command(str(name)), arguments

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the full help line of each command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        write_exit_codes(formatter)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; wrong usage exits with 2, as every refusal does."""
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except UsageError as error:
            _print_usage_error(error)
            code = 2
        except OSError as error:
            if error.filename is not None or error.errno not in _STDOUT_HINTS:
                raise
            # For files there is an OutputError, so this is stdout.
            _discard_stdout()
            print_message(f"standard output cannot be written: {error.strerror}; {_STDOUT_HINTS[error.errno]}")
            code = 2
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Keep the typed arguments, for reports."""
        TYPED_ARGUMENTS.set(tuple(args))
        EXIT_CODE.set(0)
        try:
            return super().make_context(info_name, args, *more, **extra)
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(print_interrupt(interrupt)) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with 2 if it is refused, with 3 for a torn input, with 128 + n by signal n."""
        try:
            with run_as_command(), warnings.catch_warnings():
                warnings.showwarning = _print_warning
                result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            if EXIT_CODE.get():
                raise typer.Exit(EXIT_CODE.get())
            return result
        except NeardupError as error:
            if isinstance(error.__context__, BrokenPipeError):
                _discard_stdout()
                raise typer.Exit(1) from None
            print_message(str(error))
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(print_interrupt(interrupt)) from None
        except BrokenPipeError:
            _discard_stdout()
            raise typer.Exit(1) from None
        except ValueError as error:
            # A file that was being written when the run was interrupted may fail to close.
            context: BaseException | None = error
            while context is not None and not isinstance(context, KeyboardInterrupt):
                context = context.__context__
            if context is None:
                raise
            raise typer.Exit(print_interrupt(context)) from None


def _print_usage_error(error: Any) -> None:
    """Print what is wrong with a call; for a call without arguments print examples."""
    name = error.ctx.command.name if error.ctx is not None else None
    if type(error).__name__ != "NoArgsIsHelpError":
        print_message(usage_message(error))
    elif name not in EXAMPLES:
        typer.echo(error.ctx.get_help(), err=True)
    else:
        needed = [parameter for parameter in error.ctx.command.params if parameter.required]
        print_message(f"{name} needs {' and '.join(map(usage_of, needed))}")
        lines = ["", COMMANDS[name], "", *(f"  neardup {example}" for example in EXAMPLES[name]), ""]
        lines.append(f"neardup {name} --help shows the usual options, --help-all all options.")
        typer.echo("\n".join(lines), err=True)


_show_warning = warnings.showwarning


def _print_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print the warnings of neardup as messages; others keep their form."""
    if issubclass(category, ManyCandidates | ForeignDocuments):
        print_message(str(message))
    else:
        _show_warning(message, category, *where, **more)


def _discard_stdout() -> None:
    """Keep Python from reporting a closed stdout when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=Commands,
    name="neardup",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Rich takes as long to import as everything else at the start.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(typed: bool) -> None:
    if typed:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


@app.callback()
def neardup(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find near-duplicate documents exactly, fast, and say why."""
