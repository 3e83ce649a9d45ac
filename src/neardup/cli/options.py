"""The options that choose a recipe: its name, and one option for each of its fields."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast, get_type_hints

import typer
from typer.core import TyperCommand

from neardup.cli.screen import count_text, parse_number, parse_seconds, parse_size, whole_number
from neardup.cli.usage import ARGUMENTS, UsageError, help_record, shown, write_exit_codes
from neardup.errors import OutputError, RecipeError
from neardup.recipe.recipe import OPTIONS, command_words

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.classifier.vector import Vector
    from neardup.cli.screen import Report
    from neardup.documents import Corpus, Ids
    from neardup.pages.batch_report import Wanted
    from neardup.recipe import Recipe
    from neardup.spark.command import Answer, Engine

_PANEL = "What matches"


def _of_recipe(name: str) -> Any:
    """Return the option of a field of ``Recipe``, as its metadata has it."""
    known = OPTIONS[name]
    return typer.Option(metavar=known.values, rich_help_panel=_PANEL, help=known.help)


Html = Annotated[bool, typer.Option("--html", rich_help_panel=_PANEL, help="Compare the main content of web pages.")]
Content = Annotated[str | None, _of_recipe("content")]
Keep = Annotated[str | None, typer.Option(metavar=OPTIONS["keep"].values, help=OPTIONS["keep"].help)]


def chosen_content(html: bool, content: str | None) -> str | None:
    """Return what ``--html`` and ``--content`` say together; None where neither is given.

    Raises
    ------
    RecipeError
        If they contradict each other.
    """
    if html and content not in (None, "html"):
        raise RecipeError(f"--html is short for --content html, but --content is {content!r}: give one of the two")
    return "html" if html else content


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions:
    """A recipe, and the fields of it that take another value: options for the common ones, ``--set`` for the rest."""

    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", rich_help_panel=_PANEL, help="A recipe's name or TOML file."),
    ] = None
    html: Html = False
    content: Content = None
    features: Annotated[str | None, _of_recipe("features")] = None
    measure: Annotated[str | None, _of_recipe("measure")] = None
    threshold: Annotated[str | None, _of_recipe("threshold")] = None
    second_step: Annotated[str | None, _of_recipe("second_step")] = None
    search: Annotated[str | None, _of_recipe("search")] = None
    set_fields: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", rich_help_panel=_PANEL, help="Set another field of the recipe."),
    ] = None

    def chosen(self, **others: str | None) -> Recipe:
        """Return the recipe with the given values in it.

        Raises
        ------
        RecipeError
            If there is no such recipe or a value is refused.
        """
        from neardup.recipe.named import chosen

        changes: dict[str, Any] = self.given | {name: value for name, value in others.items() if value is not None}
        name = changes.pop("recipe", "default")
        return chosen(name, {field: _typed(field, value) for field, value in changes.items()})

    @property
    def given(self) -> dict[str, str]:
        """What was asked for, by the names of fields, the recipe among them.

        Raises
        ------
        RecipeError
            If a field cannot be set, or is set twice.
        """
        names = ("recipe", *(name for name, known in OPTIONS.items() if known.common and name != "keep"))
        values = {name: getattr(self, name) for name in names}
        values["content"] = chosen_content(self.html, self.content)
        return {name: value for name, value in values.items() if value is not None} | _set(self.set_fields or ())


def _set(settings: Iterable[str]) -> dict[str, str]:
    """Return the rare fields that ``--set`` names, and their values."""
    rare = [name for name, known in OPTIONS.items() if not known.common]
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise RecipeError(f"--set {setting!r} names no value; write it like --set clip=df:2:0.5")
        if name in OPTIONS and name not in rare:
            raise RecipeError(f"--set {name} has an option of its own; give {' '.join(command_words(name, value))}")
        if name not in rare:
            near = get_close_matches(name, OPTIONS, 1, 0.5)
            way = f"do you mean {near[0]}?" if near else f"the fields are {', '.join(rare)}"
            raise RecipeError(f"--set {name!r} is no field of a recipe; {way}")
        if name in found:
            raise RecipeError(f"--set {name} is given twice, as {found[name]!r} and {value!r}; give it once")
        found[name] = value
    return found


def _typed(name: str, value: str) -> str | float | int:
    """Return the value of a field of a recipe, by the type of the field."""
    kind = type(OPTIONS[name].default)
    option = " ".join(command_words(name, value)).removesuffix(value).removesuffix(" ").removesuffix("=")
    if kind is float:
        return parse_number(value, option)
    return whole_number(value, option, 0) if kind is int else value


_READ, _RUN = "Reading", "Running"
#: This call of a command: it knows which options were typed.
_CALL: ContextVar[typer.Context] = ContextVar("_CALL")

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        show_default=False,
        help="Parquet, JSON lines, CSV, TSV, Arrow or text files, also .gz and .zst; folders, globs, URIs; "
        "- for stdin.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
LABELS_PANEL = "Labels"
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=LABELS_PANEL, help="Column of the labels, by default label or level."),
]
Positive = Annotated[
    str,
    typer.Option(metavar="NUMBER", rich_help_panel=LABELS_PANEL, help="Labels at or above it mean duplicate."),
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        rich_help_panel=LABELS_PANEL,
        help="Only labels with this value in this column, such as split=train.",
    ),
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option("--ignore-unknown", rich_help_panel=LABELS_PANEL, help="Ignore labels of unknown documents."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How documents are read."""

    text_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_READ, help="Column of the texts; detected automatically."),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_READ,
            help="Column of the ids; detected automatically, else row numbers.",
        ),
    ] = None
    max_document: Annotated[
        str | None,
        typer.Option(metavar="SIZE", rich_help_panel=_READ, help="Reject texts larger than this, such as 10MB."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", rich_help_panel=_READ, help="Stop at the first broken record.")
    ] = False
    quarantine: Annotated[
        str | None,
        typer.Option(metavar="FILE", rich_help_panel=_READ, help="Where unreadable records go, as JSON lines."),
    ] = None

    ids: Annotated[
        str,
        typer.Option(
            metavar="column|rows|file+id",
            rich_help_panel=_READ,
            help="What documents are called: by the column of ids, by row numbers, or by file name and id, for shards "
            "that each count from 0.",
        ),
    ] = "column"
    allow_torn: Annotated[
        bool,
        typer.Option("--allow-torn", rich_help_panel=_READ, help="Exit with 0, not 3, where a file is cut short."),
    ] = False

    def open(self, inputs: list[str], *, order_column: str | None = None, write: bool = True) -> Corpus:
        """Open the inputs; without ``write``, nothing goes to the quarantine file."""
        from neardup.documents import open_corpus

        return open_corpus(
            inputs,
            text_column=self.text_column,
            id_column=self.id_column,
            order_column=order_column,
            strict=self.strict,
            quarantine=self.quarantine if write else None,
            max_document=parse_size(self.max_document, "--max-document"),
            ids=cast("Ids", self.ids),
            allow_torn=self.allow_torn,
        )


class Limits(TypedDict):
    """What ``pipeline.run`` takes of ``RunOptions``."""

    threads: int | None
    memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run may use."""

    threads: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_RUN, help="Threads; all processors by default."),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            rich_help_panel=_RUN,
            help="Memory limit, such as 2GB; what does not fit is read again, or goes to disk.",
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Threads and memory for ``pipeline.run``."""
        threads = None if self.threads is None else whole_number(self.threads, "--threads")
        return {"threads": threads, "memory": parse_size(self.memory, "--memory")}


def check_outputs(tables: dict[str, str | None], summary: str | None, inputs: list[str], *, force: bool) -> None:
    """Refuse, before the work starts, outputs that cannot or must not be written, or two of one name.

    Parameters
    ----------
    tables : dict of str to str or None
        Names of tables by the option that gave them.
    summary : str or None
        A name for JSON.
    """
    import os

    from neardup.documents import check_output

    if summary is not None and not summary.endswith(".json"):
        raise OutputError(f"{summary} does not end in .json, but a summary is JSON: name it so")
    quarantine = tables.get("--quarantine")
    if quarantine is not None and not re.search(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", quarantine):
        raise OutputError(f"{quarantine} does not end in .jsonl, but a quarantine is JSON lines: name it so")
    taken: dict[str, str] = {}
    for option, name in (tables | {"--summary": summary}).items():
        if name is None:
            continue
        check_output(name, inputs, force)
        place = name if name == "-" else os.path.realpath(name)
        if place in taken:
            raise OutputError(f"{name} is given for {taken[place]} and for {option}: name two files")
        taken[place] = option


def refuse_ignored(names: Iterable[str], why: str) -> None:
    """Refuse options that were typed and would be ignored.

    Parameters
    ----------
    names : iterable of str
        What the command calls them.
    why : str
        The reason and the way out.

    Raises
    ------
    RecipeError
        Naming the first one.
    """
    context = _CALL.get()
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            raise RecipeError(f"{options[name]} {why}" if value is True else f"{options[name]} {value} {why}")


#: Panels of options that few need, and those of them that most do: help shows the latter, --help-all everything.
MORE = "More"
_USUAL = ("classifier", "text_column", "id_column", "report", "html", "recipe", "set_fields")
_ALL = "neardup.help_all"


class Command(TyperCommand):
    """A command whose help fits a screen, in sections, without Rich, which takes long to import."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, and keep them for what is said of a wrong one."""
        ctx.meta[ARGUMENTS] = tuple(args)
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
    if panel == _PANEL:
        return name in _USUAL or (name in OPTIONS and OPTIONS[name].common and name != "content")
    return panel not in (PANEL, _READ, _RUN, _ENGINE, _REPORT_PANEL, MORE) or name in _USUAL


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show all options and exit.")
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the records that it takes."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        records[name] = kind
        field_hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=field_hints[field.name],
                )
            )

    only = inspect.Parameter.KEYWORD_ONLY
    parameters.append(inspect.Parameter("help_all", only, default=False, annotation=HelpAll))
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


#: Where help lists these options.
PANEL = "A classifier"
TimeColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=PANEL, help="Column of times, for classifiers that compare them."),
]


ClassifierFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=PANEL, help="A trained classifier, from neardup train, instead of a recipe."
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=PANEL,
        help="The lowest cut that had this precision on the training pairs, such as 0.99; g(x) >= 0 by default.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierOptions:
    """A trained classifier, its working point, and where titles are."""

    classifier: ClassifierFile = None
    precision: Precision = None
    title_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=PANEL, help="Column of titles, for classifiers that compare them."
        ),
    ] = None

    force_domain: Annotated[
        bool,
        typer.Option(
            "--force-domain",
            rich_help_panel=PANEL,
            help="Go on where the documents are unlike those that the classifier was trained on.",
        ),
    ] = False

    def loaded(
        self, time_column: str | None = None, *, also_for: bool = False, titles: bool = False
    ) -> Classifier | None:
        """Return the classifier at its working point; None where none is asked for.

        Parameters
        ----------
        time_column : str, optional
            Where times are.
        also_for : bool
            Whether the command takes that column for something else, too.
        titles : bool
            The same of the column of titles.

        Raises
        ------
        NeardupError
            If it cannot be read, does not reach the precision, or an option says nothing without it.
        """
        options = {"--precision": self.precision, "--title-column": None if titles else self.title_column}
        if self.classifier is None:
            for option, value in (options | {"--time-column": None if also_for else time_column}).items():
                if value is not None:
                    raise RecipeError(f"{option} {value} is for a classifier; give one with --classifier FILE")
            if self.force_domain:
                raise RecipeError("--force-domain is for a classifier; give one with --classifier FILE")
            return None
        from neardup.classifier.classifier import classifier_of

        classifier = classifier_of(self.classifier, title_column=self.title_column, time_column=time_column)
        classifier = replace(classifier, force_domain=self.force_domain)
        if time_column is not None and not (also_for or classifier.vector.needs_times):
            raise RecipeError(
                f"time column {time_column!r} is asked for by no measure of this classifier; leave it out"
            )
        if self.precision is None:
            return classifier
        return classifier.at_precision(parse_number(self.precision, "--precision"))


def chosen_recipe(options: RecipeOptions, classifier: Classifier | None, *, keep: str | None = None) -> Recipe:
    """Return the recipe that options choose, or that of a classifier.

    Raises
    ------
    RecipeError
        If one contradicts the other, or a value is refused.
    """
    if classifier is None:
        return options.chosen(keep=keep)
    from neardup.classifier.classifier import recipe_beside

    def say(name: str, value: Any) -> str:
        if name == "content" and options.html:
            return "--html"
        return f"--recipe {value}" if name == "recipe" else " ".join(command_words(name, value))

    return recipe_beside(classifier, options.given | {"keep": keep}, say=say, precision="--precision 0.99")


def classifier_text(summary: Mapping[str, Any]) -> str:
    """Return what a summary says of its classifier, for people; empty where none decided."""
    if "classifier" not in summary:
        return ""
    found = summary["classifier"]
    cut = cut_text(*(found[name] for name in ("fingerprint", "cut", "training_precision", "training_recall")))
    return f"{cut}; {found['passed']:,} of {count_text(found['candidates'], 'candidate')} pass{outside_text(found)}"


def outside_text(found: Mapping[str, Any]) -> str:
    """Return what share of the candidates is unlike the training pairs of a classifier; empty where it is not known."""
    if found["outside"] is None or not found["candidates"]:
        return ""
    return f", {found['outside'] / found['candidates']:.0%} lie outside of what it was trained on"


def cut_text(fingerprint: str, cut: float | None, precision: float, recall: float) -> str:
    """Return a classifier's name, its cut, and how well it did on the pairs it was trained with."""
    least = "no cut" if cut is None or cut == float("-inf") else f"score >= {cut:.4g}"
    return f"{fingerprint}, {least}: precision {precision:.3f} and recall {recall:.3f} on its training pairs, unseen"


_ENGINE = "Engine"
ENGINES = ("memory", "spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Where the work is done."""

    engine: Annotated[
        str,
        typer.Option(
            metavar="memory|spark",
            rich_help_panel=_ENGINE,
            help="Where to run: in this process or on Spark; the answer is the same.",
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
    checkpoint_dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=_ENGINE,
            help="Keep finished stages in this folder, which all workers can write to.",
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", rich_help_panel=_ENGINE, help="Resume from the stages in --checkpoint-dir DIR.")
    ] = False
    ship: Annotated[
        bool, typer.Option("--ship", rich_help_panel=_ENGINE, help="Send this package to Spark's workers.")
    ] = False
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", rich_help_panel=_ENGINE, help="A Spark setting, such as spark.executor.memory=8g."
        ),
    ] = None
    spark_log: Annotated[str | None, typer.Option(metavar="FILE", rich_help_panel=_ENGINE, help="Spark log file.")] = (
        None
    )
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
            "--checkpoint-dir": self.checkpoint_dir,
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
        from neardup.spark.command import Engine

        engine = Engine(
            master=self.master or f"local[{threads or '*'}]",
            checkpoint_dir=self.checkpoint_dir,
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
    from neardup.spark.command import answered

    return answered(corpus, recipe, engine, progress=progress, **options)


_REPORT_PANEL = "A report"

ReportFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.html",
        rich_help_panel=_REPORT_PANEL,
        help="A page on what was dropped and why, and on other thresholds.",
    ),
]
ReportFamilies = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=_REPORT_PANEL,
        help="Show the N largest families, 50 by default, and half as many others at random.",
    ),
]
ReportRows = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=_REPORT_PANEL,
        help="List up to N dropped documents, 2000 by default, drawn at random if there are more.",
    ),
]


def check_report(name: str | None, inputs: list[str], others: Iterable[str | None], *, force: bool) -> None:
    """Refuse, before the work starts, a report that cannot or must not be written.

    Parameters
    ----------
    name : str or None
        Of the page; None where none is asked for.
    inputs : list of str
        What will be read.
    others : iterable of str or None
        Names of the other outputs.
    force : bool
        Whether an existing file may be replaced.
    """
    if name is None:
        return
    from neardup.pages.report_page import check_page

    check_page(name, inputs, force=force)
    place = os.path.realpath(name)
    if any(other is not None and other != "-" and os.path.realpath(other) == place for other in others):
        raise OutputError(f"{name} is given for --report and for another output: name two files")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """A report of a run, and how much it shows."""

    report: ReportFile = None
    report_families: ReportFamilies = None
    report_rows: ReportRows = None
    report_margin: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|none",
            rich_help_panel=_REPORT_PANEL,
            help="How far below the threshold the report looks, 0.2 by default (half the threshold below 0.4; 2 bits "
            "with simhash); none for not at all.",
        ),
    ] = None

    def margin(self, recipe: Recipe) -> float | None:
        """Return how far beyond the threshold to look; None for nowhere.

        Raises
        ------
        RecipeError
            If it is no number, or an option says nothing without a report.
        """
        if self.report is None:
            options = ("report_families", "report_rows", "report_margin")
            given = next((name for name in options if getattr(self, name) is not None), None)
            if given is not None:
                option = "--" + given.replace("_", "-")
                raise RecipeError(f"{option} {getattr(self, given)} is for a report; name one with --report FILE.html")
            return None
        if self.report_margin == "none":
            return None
        if self.report_margin is not None:
            return parse_number(self.report_margin, "--report-margin")
        from neardup.search.margin import usual_margin

        return usual_margin(recipe)

    def wanted(self, *, title_column: str | None = None, time_column: str | None = None) -> Wanted:
        """Return what the report is to show.

        Raises
        ------
        RecipeError
            If a number is none.
        """
        from neardup.cli.screen import typed_command

        found: Wanted = {"command": typed_command()}
        if self.report_families is not None:
            found["families"] = whole_number(self.report_families, "--report-families", 0)
        if self.report_rows is not None:
            found["rows"] = whole_number(self.report_rows, "--report-rows", 0)
        if title_column:
            found["title_column"] = title_column
        if time_column:
            found["time_column"] = time_column
        return found


_ASKING, _PAGE, _TABLES = "Which pairs are asked", "The page", "Labels in tables, in place of the page"
_LARGEST_PORT = 65_535


def check_store(store: str, inputs: list[str]) -> None:
    """Refuse what cannot be a store of labels before the work; a new one is only made once there is something to keep.

    Raises
    ------
    NeardupError
        If it is something else, or cannot be made.
    """
    from neardup.documents.output import check_place
    from neardup.labels.store import labels_of

    if os.path.exists(store):
        labels_of(store)
    else:
        check_place(store, inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which pairs are asked, and how they are shown."""

    candidate_rule: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE>=NUMBER",
            rich_help_panel=_ASKING,
            help="Pairs below it are not asked; jaccard(words:3) >= 0.1 by default.",
        ),
    ] = None
    vector: Annotated[
        str,
        typer.Option(
            metavar="MEASURES",
            rich_help_panel=_ASKING,
            help="What the model that chooses pairs goes by: default, cheap, short, or measures as train takes them.",
        ),
    ] = "default"
    title_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_ASKING, help="Column of titles; detected automatically."),
    ] = None
    time_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_ASKING, help="Column of times, for the measure hours_apart."),
    ] = None
    html: Html = False
    content: Content = None
    pairs: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_ASKING, help="Stop after N answers of each labeller."),
    ] = None
    shared: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=_ASKING,
            help="Share of a labeller's pairs that others have judged too; for agreement.",
        ),
    ] = "0.25"
    seed: Annotated[str, typer.Option(metavar="NUMBER", rich_help_panel=_ASKING, help="Random seed.")] = "0"

    @property
    def recipe(self) -> Recipe:
        """The candidate rule."""
        from neardup.classifier.classifier import CANDIDATE_RULE, rule_of

        return rule_of(
            CANDIDATE_RULE if self.candidate_rule is None else self.candidate_rule,
            content=chosen_content(self.html, self.content) or "",
        )

    @property
    def measures(self) -> Vector:
        """The vector."""
        from neardup.classifier.vector import Vector

        return Vector.parse(self.vector)

    @property
    def number(self) -> int:
        """The seed."""
        return whole_number(self.seed, "--seed", 0)

    @property
    def goal(self) -> int | None:
        """How many answers are enough."""
        return None if self.pairs is None else whole_number(self.pairs, "--pairs")

    @property
    def share(self) -> float:
        """How many of a labeller's pairs others judge, too."""
        share = parse_number(self.shared, "--shared")
        if not 0 <= share <= 1:
            raise RecipeError(f"--shared {self.shared!r} is outside [0, 1]; give a share such as 0.25, or 0 for none")
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where the page is."""

    port: Annotated[
        str, typer.Option(metavar="NUMBER", rich_help_panel=_PAGE, help="Port on this machine; 0 for any that is free.")
    ] = "0"
    no_browser: Annotated[
        bool, typer.Option("--no-browser", rich_help_panel=_PAGE, help="Print the link without opening a browser.")
    ] = False

    @property
    def number(self) -> int:
        """The port."""
        port = whole_number(self.port, "--port", 0)
        if port > _LARGEST_PORT:
            raise RecipeError(f"--port {port} is no port; give one up to {_LARGEST_PORT}, or 0 for any that is free")
        return port


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What is done with labels in place of the page."""

    import_file: Annotated[
        str | None,
        typer.Option(
            "--import", metavar="FILE", rich_help_panel=_TABLES, help="Take labels in: id1,id2,label, perhaps labeller."
        ),
    ] = None
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", rich_help_panel=_TABLES, help="Write labels as CSV: id1,id2,label, as most labellers say."
        ),
    ] = None
    each: Annotated[
        bool, typer.Option("--each", rich_help_panel=_TABLES, help="With --export: a row for each labeller.")
    ] = False
    agreement: Annotated[
        bool, typer.Option("--agreement", rich_help_panel=_TABLES, help="Print how far labellers agree.")
    ] = False

    @property
    def asked(self) -> bool:
        """Whether anything is to be done.

        Raises
        ------
        RecipeError
            If an option is missing the one that it belongs to.
        """
        if self.each and self.export is None:
            raise RecipeError("--each belongs to --export FILE; name a file, or leave it out")
        return self.import_file is not None or self.export is not None or self.agreement


_FLOW = "The flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """What a document that arrives is compared with."""

    window: Annotated[
        str,
        typer.Option(
            metavar="TIME|COUNT", rich_help_panel=_FLOW, help="24h, 90m, 7d; '8000 documents'; endless for all."
        ),
    ] = "24h"
    window_by: Annotated[
        str,
        typer.Option(
            metavar="time|hour",
            rich_help_panel=_FLOW,
            help="Compare times as they are, or by whole hours, as in the paper.",
        ),
    ] = "time"
    against: Annotated[
        str,
        typer.Option(
            metavar="originals|everything", rich_help_panel=_FLOW, help="Compare with originals only, or with all."
        ),
    ] = "originals"
    store: Annotated[
        str | None,
        typer.Option(metavar="FILE", rich_help_panel=_FLOW, help="Keep window and verdicts in this SQLite file."),
    ] = None
