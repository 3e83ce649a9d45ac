"""The command ``neardup``: its commands, and what an error looks like."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from neardup.cli import (
    audit,
    compare,
    dedup,
    explain,
    explore,
    label,
    neighbors,
    pairs,
    query,
    recipe,
    replay,
    report,
    stopped,
    train,
    watch,
)
from neardup.cli.screen import EXIT_CODE, EXIT_CODES, TYPED, say
from neardup.errors import NeardupError, command_running
from neardup.version import __version__


class Commands(TyperGroup):
    """Commands that answer the user's errors with one sentence and an exit code, never a traceback."""

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **extra: Any) -> Any:
        """Remember what was typed, for reports."""
        TYPED.set(tuple(args))
        EXIT_CODE.set(0)
        return super().make_context(info_name, args, *others, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command: 2 for an error of the input or the caller, 3 for a torn input, 130 when interrupted."""
        try:
            with command_running():
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


def _let_go_of_stdout() -> None:
    """Keep Python from complaining, on its way out, about a reader that has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=Commands,
    name="neardup",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="explore", no_args_is_help=True)(explore.explore)
app.command(name="dedup", no_args_is_help=True, epilog=EXIT_CODES)(dedup.dedup)
app.command(name="pairs", no_args_is_help=True)(pairs.pairs)
app.command(name="explain", no_args_is_help=True)(explain.explain)
app.command(name="compare", no_args_is_help=True)(compare.compare)
app.command(name="neighbors", no_args_is_help=True)(neighbors.neighbors)
app.command(name="query", no_args_is_help=True)(query.query)
app.command(name="label", no_args_is_help=True)(label.label)
app.command(name="train", no_args_is_help=True)(train.train)
app.command(name="audit", no_args_is_help=True)(audit.audit)
app.command(name="replay", no_args_is_help=True)(replay.replay)
app.command(name="watch", no_args_is_help=True)(watch.watch)
app.command(name="report", no_args_is_help=True)(report.report)
app.command(name="stopped", no_args_is_help=True)(stopped.stopped)
app.command(name="release", no_args_is_help=True)(stopped.release)
app.add_typer(recipe.app, name="recipe")


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
