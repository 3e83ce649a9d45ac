"""The options of commands that run on this machine or on Spark."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.numbers import parse_seconds
from neardup.cli.options import refuse_ignored
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.cli.screen import Report
    from neardup.documents import Corpus
    from neardup.recipe import Recipe
    from neardup.spark.answer import Answer
    from neardup.spark.comparing import Compared
    from neardup.spark.running import Engine

_ENGINE = "Engine"
ENGINES = ("memory", "spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Where the work is done."""

    engine: Annotated[
        str,
        typer.Option(
            metavar="memory|spark", rich_help_panel=_ENGINE, help="This process, or Spark; both give the same answer."
        ),
    ] = "memory"
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            rich_help_panel=_ENGINE,
            help="Spark's master: local[N], spark://HOST:PORT, yarn, k8s://...; by default all processors here.",
        ),
    ] = None
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=_ENGINE,
            help="Keep what Spark has done in this folder, which all workers can write to.",
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", rich_help_panel=_ENGINE, help="Go on from the stages in --stages DIR.")
    ] = False
    ship: Annotated[
        bool, typer.Option("--ship", rich_help_panel=_ENGINE, help="Send this package to Spark's workers.")
    ] = False
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", rich_help_panel=_ENGINE, help="A setting of Spark, as spark.executor.memory=8g."
        ),
    ] = None
    spark_log: Annotated[
        str | None, typer.Option(metavar="FILE", rich_help_panel=_ENGINE, help="Write there what Spark says.")
    ] = None
    wait: Annotated[
        str, typer.Option(metavar="TIME", rich_help_panel=_ENGINE, help="How long to wait for a first worker.")
    ] = "60s"

    def chosen(self, recipe: Recipe | None, **others: object) -> Engine | None:
        """Return the engine where it is Spark, else None; refuse what does not go together.

        Parameters
        ----------
        recipe : Recipe or None
            What is to be done; None where there are several, which are looked at then.
        **others
            Options that Spark does not have, None or False where they were not given.
        """
        if self.engine not in ENGINES:
            raise RecipeError(f"--engine {self.engine} is unknown: give {' or '.join(ENGINES)}")
        own: dict[str, object] = {
            "--master": self.master,
            "--stages": self.stages,
            "--resume": self.resume,
            "--ship": self.ship,
            "--spark-conf": self.spark_conf,
            "--spark-log": self.spark_log,
        }
        if self.engine == "memory":
            for name, value in own.items():
                if value:
                    raise RecipeError(f"{name} is for --engine spark: name that engine, or leave out {name}")
            refuse_ignored(("wait",), "is for --engine spark: name that engine, or leave it out")
            return None
        threads = others.pop("--threads", None)
        for name, value in others.items():
            if value:
                raise RecipeError(f"{name} is for the engine in memory: leave out {name}, or --engine spark")
        if threads and self.master:
            raise RecipeError("--threads and --master both say how much works at a time: give one")
        from neardup.spark.running import Engine

        engine = Engine(
            master=self.master or f"local[{threads or '*'}]",
            stages=self.stages,
            resume=self.resume,
            settings=self._settings(),
            log=self.spark_log,
            wait=parse_seconds(self.wait, "--wait"),
            ship=self.ship,
        )
        if recipe is None:
            engine.check_place()
        else:
            engine.check(recipe)
        return engine

    def _settings(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for setting in self.spark_conf or ():
            name, equals, value = setting.partition("=")
            if not equals or not name.startswith("spark."):
                raise RecipeError(f"--spark-conf {setting} is no setting of Spark: give spark.NAME=VALUE")
            found[name] = value
        return found


def on_spark(
    corpus: Corpus, recipe: Recipe, engine: Engine, progress: Report | None, **options: Any
) -> AbstractContextManager[Answer]:
    """Run on Spark: give the answer, and stop the session at the end."""
    from neardup.spark.running import answered

    return answered(corpus, recipe, engine, progress=progress, **options)


def compared_on_spark(
    corpus: Corpus, engine: Engine, progress: Report | None, *, records: bool
) -> AbstractContextManager[Compared]:
    """Give what finds the pairs of recipes on Spark, all in one session that is stopped at the end."""
    from neardup.spark.comparing import Compared

    return Compared(corpus, engine, progress=progress, records=records)
