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

from neardup.cli.command import Command, UsageError, sentence_of, shown, write_exit_codes
from neardup.cli.screen import EXIT_CODE, TYPED, say
from neardup.errors import ForeignDocuments, ManyCandidates, NeardupError, command_running
from neardup.version import __version__

#: The commands and what they do. Each is a module of its name, imported when the command is called.
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
    "serve": "Answer over HTTP whether a document repeats one that came before.",
    "mcp": "Give agents tools over MCP: check, enter, query, explain.",
    "report": "Write a page on what a flow stopped and why, from its store.",
    "stopped": "List what was stopped and why: the item it repeats, the similarity and the time.",
    "release": "Release a stopped item: its file goes to the originals.",
    "contamination": "Find which items of a test set occur in training texts, and where.",
    "index": "Keep an index on disk, which new documents are compared with.",
    "recipe": "List, show, check and cite recipes.",
    "demo": "Remove the near-duplicates of 199 sample news items, and explain one of them.",
}
#: How each is called; a command without arguments shows it, and so does its page of the manual.
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
_MODULES = {"release": "stopped"}


@cache
def command_of(name: str) -> Any:
    """Return a command with its options."""
    module = import_module(f"neardup.cli.{_MODULES.get(name, name)}")
    one = module.app if hasattr(module, "app") else typer.Typer(add_completion=False, rich_markup_mode=None)
    if not hasattr(module, "app"):
        one.command(name=name, cls=Command, no_args_is_help=name in EXAMPLES)(getattr(module, name))
    command = typer.main.get_command(one)
    command.name = name
    # Where every option has a default, the command itself says what is wanting.
    needs = hasattr(module, "app") or any(one.required for one in command.params)
    command.no_args_is_help = command.no_args_is_help and needs
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
        write_exit_codes(formatter)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; a wrong use ends with 2, as every refusal does."""
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except UsageError as error:
            _say_usage(error)
            code = 2
        sys.exit(code if isinstance(code, int) else 0)

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
            raise _interrupted(interrupt) from None
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
        except ValueError as error:
            # What was being written when it was interrupted may be in no state to be closed.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise _interrupted(error.__context__) from None
            raise


def _interrupted(interrupt: KeyboardInterrupt) -> typer.Exit:
    """Say that the run was interrupted, and return how it ends."""
    say(f"interrupted; {interrupt.args[0] if interrupt.args else 'nothing was written'}")
    return typer.Exit(130)


def _say_usage(error: Any) -> None:
    """Say in a sentence what is wrong with a use; show a command that is called with nothing how to call it."""
    name = error.ctx.command.name if error.ctx is not None else None
    bare = type(error).__name__ == "NoArgsIsHelpError"
    if not bare:
        say(sentence_of(error))
    elif name not in EXAMPLES:
        typer.echo(error.ctx.get_help(), err=True)
    else:
        needed = [one for one in error.ctx.command.params if one.required]
        say(f"{name} needs {' and '.join(map(shown, needed))}")
        lines = ["", COMMANDS[name], "", *(f"  neardup {one}" for one in EXAMPLES[name]), ""]
        lines.append(f"neardup {name} --help shows the usual options, --help-all all of them.")
        typer.echo("\n".join(lines), err=True)


_show_warning = warnings.showwarning


def _say_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Say what Python would be warned of; others' warnings look as ever."""
    if issubclass(category, ManyCandidates | ForeignDocuments):
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
