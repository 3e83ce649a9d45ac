"""The command ``neardup``: its commands, and how errors are reported."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import Any

import click

from neardup.cli.command import (
    Argument,
    Command,
    Group,
    NoArgumentsError,
    Option,
    flag,
    usage_message,
    write_exit_codes,
)
from neardup.cli.screen import EXIT_CODE, QUIET, TYPED_ARGUMENTS, print_interrupt, print_warning
from neardup.errors import ForeignDocuments, ManyCandidates, NeardupError, run_as_command
from neardup.version import __version__

#: The commands and what they do, in groups. Each is in the module of its name, imported when the command is called.
GROUPS = {
    "Batch": {
        "dedup": "Remove the near-duplicates of a corpus.",
        "pairs": "List every pair at or above the threshold.",
        "similar": "Find the documents most similar to each one, or all near-duplicates of a new one.",
        "explain": "Show two documents side by side: what they share, and what would change the verdict.",
        "contamination": "Find which items of a test set occur in training texts, and where.",
        "index": "Keep an index on disk to compare new documents with.",
    },
    "Choose": {
        "explore": "Show how similar a corpus is to itself, and suggest features and a threshold.",
        "compare": "Compare recipes on labelled documents: precision, recall, F1 and time.",
        "recipe": "List, show and cite recipes.",
    },
    "Learn": {
        "label": "Label pairs of texts in the browser: same or different.",
        "train": "Train a classifier on labelled pairs: a support vector machine on several measures.",
        "audit": "Estimate the precision and recall of a result from a random sample of it.",
    },
    "Flow": {
        "watch": "Judge files as they appear in a folder: originals pass, duplicates stop.",
        "replay": "Run a dated corpus through the window, as if its documents arrived one by one.",
        "serve": "Answer over HTTP whether a document repeats an earlier one.",
        "store": "Report, list and release what a flow stopped, from its store.",
    },
    "Start": {"demo": "Remove the near-duplicates of 199 sample news items, and explain one of them."},
}
COMMANDS = {name: help for commands in GROUPS.values() for name, help in commands.items()}
#: The names that commands had before, and what to type instead.
RENAMED = {
    "neighbors": "similar INPUT",
    "query": "similar INPUT --document FILE",
    "mcp": "serve --mcp",
    "report": "store report STORE",
    "stopped": "store list STORE",
    "release": "store release STORE ID",
    "recipe check": "recipe show FILE",
}
#: Examples of each command: shown if it is called without arguments, and in the manual.
EXAMPLES = {
    "dedup": ("dedup news.jsonl -o kept.jsonl", "dedup news/*.parquet --dry-run --report report.html"),
    "pairs": ("pairs news.jsonl -o pairs.csv", "pairs news.jsonl --print --threshold 0.7"),
    "similar": ("similar news.jsonl --k 5 --of 17", "similar news.jsonl --document new.txt"),
    "explain": ("explain news.jsonl 3 17",),
    "contamination": ("contamination train/*.parquet --test test.jsonl --fail-over 0.1%",),
    "explore": ("explore news.jsonl", "explore news.jsonl -o explored.html"),
    "compare": ("compare news.jsonl --labels labels.csv --report compared.html",),
    "label": ("label news.jsonl --store labels.db",),
    "train": ("train news.jsonl --labels labels.db -o news.neardup",),
    "audit": ("audit news.jsonl --store audit.db --report audit.html",),
    "watch": ("watch inbox --originals news --store news.db",),
    "replay": ("replay news.jsonl --window 24h -o verdicts.csv",),
    "serve": ("serve --store news.db", "serve --mcp --store memory.db", "serve --mcp --url http://127.0.0.1:8321"),
}
#: The modules of commands that share one.
_MODULES = {"pairs": "dedup"}


@cache
def load_command(name: str) -> click.Command:
    """Return a command with its options; its module is imported."""
    module = import_module(f"neardup.cli.{_MODULES.get(name, name)}")
    group: click.Command | None = getattr(module, f"{name}_group", None)
    return group or Command(name, getattr(module, name), EXAMPLES.get(name, ()))


#: What to do if stdout cannot be written, by the number of the error.
_STDOUT_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space"),
    errno.EBADF: "it is closed: leave it open, or send it to a file",
}


class Commands(Group):
    """Commands that report errors of the user with one sentence and an exit code, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command with its options; only its module is imported."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the full help line of each command."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=16)
        write_exit_codes(formatter)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; wrong usage exits with 2, as every refusal does."""
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except click.UsageError as error:
            _print_usage_error(error)
            code = 2
        except OSError as error:
            if error.filename is not None or error.errno not in _STDOUT_HINTS:
                raise
            # For files there is an OutputError, so this is stdout.
            _discard_stdout()
            print_warning(f"standard output cannot be written: {error.strerror}; {_STDOUT_HINTS[error.errno]}")
            code = 2
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Keep the typed arguments, for reports."""
        TYPED_ARGUMENTS.set(tuple(args))
        EXIT_CODE.set(0)
        QUIET.set(False)
        try:
            return super().make_context(info_name, args, *more, **extra)
        except KeyboardInterrupt as interrupt:
            raise click.exceptions.Exit(print_interrupt(interrupt)) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with 2 if it is refused, with 3 for a torn input, with 128 + n by signal n."""
        try:
            with run_as_command(), warnings.catch_warnings():
                warnings.showwarning = _print_warning
                result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            if EXIT_CODE.get():
                raise click.exceptions.Exit(EXIT_CODE.get())
            return result
        except NeardupError as error:
            if isinstance(error.__context__, BrokenPipeError):
                _discard_stdout()
                raise click.exceptions.Exit(1) from None
            print_warning(str(error))
            raise click.exceptions.Exit(2) from None
        except KeyboardInterrupt as interrupt:
            raise click.exceptions.Exit(print_interrupt(interrupt)) from None
        except BrokenPipeError:
            _discard_stdout()
            raise click.exceptions.Exit(1) from None
        except ValueError as error:
            # A file that was being written when the run was interrupted may fail to close.
            context: BaseException | None = error
            while context is not None and not isinstance(context, KeyboardInterrupt):
                context = context.__context__
            if context is None:
                raise
            raise click.exceptions.Exit(print_interrupt(context)) from None


def _print_usage_error(error: click.UsageError) -> None:
    """Print what is wrong with a call; for a call without arguments print examples."""
    context = error.ctx
    if not isinstance(error, NoArgumentsError) or context is None:
        print_warning(usage_message(error, RENAMED))
        return
    command = context.command
    if not isinstance(command, Command):
        click.echo(context.get_help(), err=True)
        return
    needed = [one for one in command.params if isinstance(one, Argument | Option) and one.required]
    print_warning(f"{command.name} needs {' and '.join(one.usage for one in needed)}")
    lines = ["", COMMANDS[str(command.name)], "", *(f"  neardup {example}" for example in command.examples), ""]
    lines.append(f"neardup {command.name} --help shows the usual options, --help-all all options.")
    click.echo("\n".join(lines), err=True)


_show_warning = warnings.showwarning


def _print_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print the warnings of neardup as messages; others keep their form."""
    if issubclass(category, ManyCandidates | ForeignDocuments):
        print_warning(str(message))
    else:
        _show_warning(message, category, *where, **more)


def _discard_stdout() -> None:
    """Keep Python from reporting a closed stdout when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_version(context: click.Context, _option: click.Parameter, typed: bool) -> None:
    if typed and not context.resilient_parsing:
        click.echo(f"neardup {__version__}")
        context.exit()


app = Commands(
    "neardup",
    help="Find near-duplicate documents exactly, fast, and say why.",
    params=[flag(_print_version, "Print the version and exit.", "--version")],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
