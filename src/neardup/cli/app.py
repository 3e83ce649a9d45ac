"""The command ``neardup``: its commands, and what an error looks like."""

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

from neardup.cli.screen import EXIT_CODE, EXIT_CODES, TYPED, say
from neardup.errors import ManyCandidates, NeardupError, command_running
from neardup.version import __version__

#: The commands and what they do. Each is a module of its name, imported when the command is called.
COMMANDS = {
    "explore": "Show how similar a corpus is to itself, and advise features and a threshold.",
    "dedup": "Remove the near-duplicates of a corpus.",
    "pairs": "Find every pair at or above the threshold: left, right, similarity.",
    "explain": "Show two documents side by side: what they share, the measures, and what would flip the verdict.",
    "compare": "Compare recipes on labelled documents: precision, recall and F1 with intervals, and time.",
    "neighbors": "Find the most similar others of each document, exactly, whatever the threshold.",
    "query": "Find all near-duplicates of one new document, the most similar first: document, similarity.",
    "label": "Judge pairs of texts in the browser: same, or different.",
    "train": "Learn from labelled pairs what a near-duplicate is: a support vector machine on several measures.",
    "audit": "Estimate how good a result is from a random sample of it: precision, recall, number of duplicates.",
    "replay": "Run a dated corpus through the window, as if its documents arrived one after the other.",
    "watch": "Judge files as they appear in a folder: originals go on, duplicates stop.",
    "report": "Write one page on what a flow stopped and why, from the store that holds its verdicts.",
    "stopped": "List what was stopped and why: the item it repeats, how similar the two are, and when.",
    "release": "Take back that an item was stopped: its file goes to the originals.",
    "recipe": "List, show and check recipes.",
}
#: The modules of commands that share one.
_MODULES = {"release": "stopped"}


@cache
def command_of(name: str) -> Any:
    """Return a command with its options."""
    module = import_module(f"neardup.cli.{_MODULES.get(name, name)}")
    one = module.app if hasattr(module, "app") else typer.Typer(add_completion=False, rich_markup_mode=None)
    if not hasattr(module, "app"):
        from neardup.cli.options import Command

        epilog = EXIT_CODES if name == "dedup" else None
        one.command(name=name, cls=Command, no_args_is_help=True, epilog=epilog)(getattr(module, name))
    command = typer.main.get_command(one)
    command.name = name
    return command


class Commands(TyperGroup):
    """Commands that answer the user's errors with one sentence and an exit code, never a traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=said, rich_markup_mode=None) for name, said in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called; the others stay names with a line of help."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, command_of(str(name)), rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does, whole."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **extra: Any) -> Any:
        """Remember what was typed, for reports."""
        TYPED.set(tuple(args))
        EXIT_CODE.set(0)
        return super().make_context(info_name, args, *others, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command: 2 for an error of the input or the caller, 3 for a torn input, 130 when interrupted."""
        try:
            with command_running(), warnings.catch_warnings():
                warnings.showwarning = _say_warning
                result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            if EXIT_CODE.get():
                raise typer.Exit(EXIT_CODE.get())
            return result
        except NeardupError as error:
            if isinstance(error.__context__, BrokenPipeError):
                _let_go_of_stdout()
                raise typer.Exit(1) from None
            say(str(error))
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interrupt:
            say(f"interrupted; {interrupt.args[0] if interrupt.args else 'nothing was written'}")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            _let_go_of_stdout()
            raise typer.Exit(1) from None
        except OSError as error:
            if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            # Files name themselves in an OutputError; what is left is stdout.
            _let_go_of_stdout()
            say(f"standard output cannot be written: {error.strerror}; free some space")
            raise typer.Exit(2) from None


_show_warning = warnings.showwarning


def _say_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Say what Python would be warned of; others' warnings look as ever."""
    if issubclass(category, ManyCandidates):
        say(str(message))
    else:
        _show_warning(message, category, *where, **more)


def _let_go_of_stdout() -> None:
    """Keep Python from complaining, on its way out, about a reader that has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=Commands,
    name="neardup",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich would take as long to import as the rest of a start.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


@app.callback()
def neardup(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find near-duplicate documents exactly, fast, and say why."""
