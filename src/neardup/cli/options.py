"""The options that several commands share: recipe, reading, running, engine, report, window, and their outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from difflib import get_close_matches
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import typer

from neardup.cli.command import (
    CLASSIFIER,
    ENGINE,
    FLOW,
    LABELS,
    MATCHES,
    READ,
    REPORT,
    RUN,
    option,
    refuse_ignored,
    switch,
)
from neardup.cli.screen import count_text, parse_seconds, parse_size, say, typed_command
from neardup.errors import InputError, OutputError, RecipeError
from neardup.recipe.recipe import OPTIONS, command_words

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.documents import Corpus
    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex
    from neardup.pages.batch_report import Wanted
    from neardup.pipeline.result import Result
    from neardup.recipe import Recipe
    from neardup.spark.engine import Engine


def _of_recipe(name: str, panel: str | None = MATCHES) -> Any:
    """Return the option of a field of ``Recipe``, as its metadata has it."""
    known = OPTIONS[name]
    return option(known.values, known.help, panel)


Html = Annotated[bool, switch("--html", "Compare the main content of web pages.", MATCHES)]
Content = Annotated[str | None, _of_recipe("content")]
Keep = Annotated[str | None, _of_recipe("keep", None)]


def chosen_content(html: bool, content: str | None) -> str | None:
    """Return what ``--html`` and ``--content`` say together; None where neither is given.

    Raises ``RecipeError`` if they contradict each other.
    """
    if html and content not in (None, "html"):
        raise RecipeError(f"--html is short for --content html, but --content is {content!r}: give one of the two")
    return "html" if html else content


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The recipe to begin with."""

    recipe: Annotated[str | None, option("NAME|FILE", "A recipe's name or TOML file.", MATCHES)] = None
    html: Html = False


#: The fields of ``Recipe`` that have options of their own, but the one that says which document stays, and a text.
_COMMON = {name: known for name, known in OPTIONS.items() if known.common and name not in ("keep", "ignore")}
#: A record of these, each with the option that the metadata of the field gives it; None where it is not given.
_Fields: Any = make_dataclass(
    "_Fields",
    [
        (name, getitem(Annotated, (type(known.default) | None, _of_recipe(name))), None)
        for name, known in _COMMON.items()
    ],
    bases=(_Named,),
    frozen=True,
    slots=True,
    kw_only=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions(_Fields):  # type: ignore[misc]
    """A recipe, and the fields of it that take another value: options for the common ones, ``--set`` for the rest."""

    ignore: Annotated[str | None, _of_recipe("ignore")] = None
    set_fields: Annotated[
        list[str] | None, option("FIELD=VALUE", "Set another field of the recipe.", MATCHES, "--set")
    ] = None

    def chosen(self, **others: str | None) -> Recipe:
        """Return the recipe with the given values in it.

        Raises ``RecipeError`` if there is no such recipe or a value is refused.
        """
        from neardup.recipe.named import chosen

        changes: dict[str, Any] = self.given | {name: value for name, value in others.items() if value is not None}
        return chosen(changes.pop("recipe", "default"), changes)

    @property
    def given(self) -> dict[str, str | float]:
        """What was asked for, by the names of fields, the recipe among them.

        Raises ``RecipeError`` if a field cannot be set, or is set twice.
        """
        values = {name: getattr(self, name) for name in ("recipe", *_COMMON)}
        values["content"] = chosen_content(self.html, self.content)
        values["ignore"] = None if self.ignore is None else _boilerplate(self.ignore)
        return {name: value for name, value in values.items() if value is not None} | _set(self.set_fields or ())


def _boilerplate(path: str) -> str:
    """Return the text of a file of ``--ignore``.

    Raises
    ------
    InputError
        If it cannot be read, or holds no text.
    """
    from neardup import files

    try:
        text = files.read(path, "give --ignore a text file").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}): give --ignore a text file") from None
    if not text.strip():
        raise InputError(f"{path} holds no text, so --ignore would change nothing: leave it out, or give another file")
    return text


def _set(settings: Iterable[str]) -> dict[str, str | float]:
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
    return {name: _typed(name, value) for name, value in found.items()}


def _typed(name: str, value: str) -> str | float:
    """Return the value of a field of a recipe, by the type of the field."""
    kind = type(OPTIONS[name].default)
    if kind is str:
        return value
    try:
        return float(value) if kind is float else int(value)
    except ValueError:
        noun = "a number" if kind is float else "a whole number"
        raise RecipeError(f"--set {name} {value!r} is not {noun}; write it like {OPTIONS[name].default}") from None


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        show_default=False,
        help="Parquet, JSON lines, CSV, TSV, Arrow or text files, also .gz and .zst; folders, globs, URIs; "
        "- for stdin.",
    ),
]
Json = Annotated[bool, switch("--json", "Print JSON on stdout.")]
Against = Annotated[
    list[str] | None,
    option("REF", "A reference, files or an index: never dropped and never written."),
]
Force = Annotated[bool, switch("--force", "Replace outputs that exist.")]
Labeller = Annotated[str | None, option("NAME", "Name of the labeller; otherwise the page asks for it.", LABELS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """How a table of labels is read."""

    label_column: Annotated[str | None, option("NAME", "Column of the labels, by default label or level.", LABELS)] = (
        None
    )
    positive: Annotated[float, option("NUMBER", "Labels at or above this value mean duplicate.", LABELS)] = 1.0
    ignore_unknown: Annotated[bool, switch("--ignore-unknown", "Ignore labels of unknown documents.", LABELS)] = False

    @property
    def given(self) -> dict[str, Any]:
        """The options by their names."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions(AnswerOptions):
    """How labels are read of which some may be chosen."""

    only: Annotated[
        str | None, option("COLUMN=VALUE", "Only labels with this value in this column, such as split=train.", LABELS)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How documents are read."""

    text_column: Annotated[
        str | None, option("NAME,...", "Column of the texts, or several; detected automatically.", READ)
    ] = None
    id_column: Annotated[
        str | None, option("NAME", "Column of the ids; detected automatically, else row numbers.", READ)
    ] = None
    max_document: Annotated[
        int | None, option("SIZE", "Reject texts larger than this, such as 10MB.", READ, parser=parse_size)
    ] = None
    strict: Annotated[bool, switch("--strict", "Stop at the first broken record.", READ)] = False
    quarantine: Annotated[str | None, option("FILE", "Write unreadable records to this file, as JSON lines.", READ)] = (
        None
    )
    ids: Annotated[
        Literal["column", "rows", "file+id"],
        option(
            "column|rows|file+id",
            "How to name documents: by the id column, by row number, or by file name and id, for shards that each "
            "count from 0.",
            READ,
        ),
    ] = "column"
    allow_torn: Annotated[bool, switch("--allow-torn", "Exit with 0 instead of 3 if a file is cut short.", READ)] = (
        False
    )

    def open(
        self,
        inputs: list[str],
        *,
        order_column: str | None = None,
        write: bool = True,
        against: list[str] | None = None,
        index: DiskIndex | None = None,
    ) -> Corpus:
        """Open the inputs, and what they stand against; without ``write``, nothing goes to the quarantine file.

        Where that is an index, it stands behind them once they can be read (``DiskIndex.stand_behind``).
        """
        from neardup.documents import open_corpus

        if against and index is None:
            corpus = self.open(inputs, order_column=order_column, write=write)
            try:
                corpus.stand_against(self.open(against, write=False))
            except BaseException:
                corpus.close(commit=False)
                raise
            return corpus
        return open_corpus(
            inputs,
            text_column=self.text_column,
            id_column=self.id_column,
            order_column=order_column,
            strict=self.strict,
            quarantine=self.quarantine if write else None,
            max_document=self.max_document,
            ids=self.ids,
            allow_torn=self.allow_torn,
        )


def refuse_read_options() -> None:
    """Refuse the options of reading files where an index is read, which has columns of its own."""
    names = [field.name for field in fields(ReadOptions)]
    refuse_ignored(names, "is for reading files, and an index has been read: leave it out")


class Limits(TypedDict):
    """What ``pipeline.run`` takes of ``RunOptions``."""

    threads: int | None
    memory: int | None


Threads = Annotated[int | None, option("NUMBER", "Threads; all processors by default.", RUN, min=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run may use."""

    threads: Threads = None
    memory: Annotated[
        int | None,
        option(
            "SIZE",
            "Memory limit, such as 2GB; what does not fit is read again, or goes to disk.",
            RUN,
            parser=parse_size,
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Threads and memory for ``pipeline.run``."""
        return {"threads": self.threads, "memory": self.memory}


#: Refuses an output by its name, the inputs, and whether it may be replaced.
Check = Callable[[str, Sequence[str], bool], None]


def check_outputs(
    inputs: Sequence[str],
    *outputs: tuple[str, str | None],
    force: bool,
    checks: Mapping[str, Check] | None = None,
) -> None:
    """Refuse, before the work starts, outputs that cannot or must not be written, or two of one name.

    ``inputs``: what will be read. ``*outputs``: an option, and the name that it was given. ``checks``: what checks the
    name of an option; tables, summaries, quarantines and reports are known.
    """
    from neardup.documents import check_output

    known: dict[str, Check] = {"--summary": _check_json, "--quarantine": _check_lines, "--report": _check_page}
    known |= checks or {}
    taken: dict[str, str] = {}
    for option_name, name in outputs:
        if name is None:
            continue
        known.get(option_name, check_output)(name, inputs, force)
        place = name if name == "-" or "://" in name else os.path.realpath(name)
        if place in taken:
            raise OutputError(f"{name} is given for {taken[place]} and for {option_name}: name two files")
        taken[place] = option_name


def check_nothing(name: str, inputs: Sequence[str], force: bool) -> None:
    """Take any name: what is there, or could be, is looked at when it is opened."""


def _check_json(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents import check_output

    if not name.endswith(".json"):
        raise OutputError(f"{name} does not end in .json, but a summary is JSON: name it so")
    check_output(name, inputs, force)


def _check_lines(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents import check_output

    if not re.search(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", name):
        raise OutputError(f"{name} does not end in .jsonl, but a quarantine is JSON lines: name it so")
    check_output(name, inputs, force)


def _check_page(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.pages.report_page import check_page

    check_page(name, inputs, force=force)


TitleColumn = Annotated[str | None, option("NAME", "Column of titles, for classifiers that compare them.", CLASSIFIER)]
TimeColumn = Annotated[str | None, option("NAME", "Column of times, for classifiers that compare them.", CLASSIFIER)]
ClassifierFile = Annotated[
    str | None, option("FILE", "A trained classifier, from neardup train, instead of a recipe.", CLASSIFIER)
]
Precision = Annotated[
    float | None,
    option(
        "NUMBER",
        "Use the lowest cut with this precision on the training pairs, such as 0.99; by default g(x) >= 0.",
        CLASSIFIER,
    ),
]

ForceDomain = Annotated[
    bool,
    switch("--force-domain", "Go on even if the documents are unlike those of the training.", CLASSIFIER),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierOptions:
    """A trained classifier, its working point, and where titles are."""

    classifier: ClassifierFile = None
    precision: Precision = None
    title_column: TitleColumn = None
    force_domain: ForceDomain = False

    def loaded(
        self, time_column: str | None = None, *, also_for: bool = False, titles: bool = False
    ) -> Classifier | None:
        """Return the classifier at its working point; None where none is asked for.

        ``time_column``: where times are. ``also_for``: whether the command takes that column for something else, too.
        ``titles``: the same of the column of titles. Raises ``NeardupError`` if it cannot be read, does not reach the
        precision, or an option says nothing without it.
        """
        options = {"--precision": self.precision, "--title-column": None if titles else self.title_column}
        if self.classifier is None:
            for option, value in (options | {"--time-column": None if also_for else time_column}).items():
                if value is not None:
                    raise RecipeError(f"{option} {value} is for a classifier; give one with --classifier FILE")
            if self.force_domain:
                raise RecipeError("--force-domain is for a classifier; give one with --classifier FILE")
            return None
        from neardup.classifier.classifier import resolve_classifier

        classifier = resolve_classifier(self.classifier, title_column=self.title_column, time_column=time_column)
        classifier = replace(classifier, force_domain=self.force_domain)
        if time_column is not None and not (also_for or classifier.vector.needs_times):
            raise RecipeError(
                f"time column {time_column!r} is asked for by no measure of this classifier; leave it out"
            )
        if self.precision is None:
            return classifier
        return classifier.at_precision(self.precision)


def chosen_recipe(options: RecipeOptions, classifier: Classifier | None, *, keep: str | None = None) -> Recipe:
    """Return the recipe that options choose, or that of a classifier.

    Raises ``RecipeError`` if one contradicts the other, or a value is refused.
    """
    if classifier is None:
        return options.chosen(keep=keep)
    from neardup.classifier.classifier import classifier_recipe

    def say(name: str, value: Any) -> str:
        if name == "content" and options.html:
            return "--html"
        return f"--recipe {value}" if name == "recipe" else " ".join(command_words(name, value))

    return classifier_recipe(classifier, options.given | {"keep": keep}, say=say, precision="--precision 0.99")


def opened_index(names: Sequence[str] | None) -> DiskIndex | None:
    """Return the index that a reference, or an input, is; None where it is files.

    Raises ``NeardupError`` if it is damaged, or not alone.
    """
    if not names:
        return None
    from neardup.index.manifest import is_index

    found = [name for name in names if is_index(name)]
    if not found:
        return None
    if len(names) > 1:
        raise RecipeError(f"{found[0]} is an index, which stands alone: leave the others out, or add them to it")
    from neardup.index.index import DiskIndex

    return DiskIndex(found[0])


def recipe_beside_index(
    options: RecipeOptions, classifier: Classifier | None, index: DiskIndex | None, *, keep: str | None = None
) -> Recipe:
    """Return the recipe that options choose, or a classifier's; where they choose none, that of an index.

    Raises ``RecipeError`` if one contradicts the other, or a value is refused.
    """
    if index is None:
        return chosen_recipe(options, classifier, keep=keep)
    if classifier is not None:
        raise RecipeError(f"{index.path} is an index, which has its own recipe: leave out --classifier")
    if not options.given:
        return index.recipe if keep is None else index.recipe.changed(keep=keep)
    recipe = options.chosen(keep=keep)
    index.check_recipe(recipe)
    return recipe


def classifier_text(summary: Mapping[str, Any]) -> str:
    """Return what a summary says of its classifier, for people; empty where none decided."""
    if "classifier" not in summary:
        return ""
    found = summary["classifier"]
    cut = cut_text(*(found[name] for name in ("fingerprint", "cut", "training_precision", "training_recall")))
    return f"{cut}; {found['passed']:,} of {count_text(found['candidates'], 'candidate')} pass{outside_text(found)}"


def say_if_foreign(classifier: Classifier | None, summary: Mapping[str, Any]) -> None:
    """Say that a classifier is not at home in the documents of a run that went on all the same."""
    found = summary.get("classifier")
    if classifier is None or found is None or found["outside"] is None:
        return
    from neardup.classifier.domain import DomainCounts

    if why := classifier.complaint(DomainCounts(found["candidates"], found["outside"], found["passed"])):
        say(f"{why}; what its training says of it does not hold here")


def outside_text(found: Mapping[str, Any]) -> str:
    """Return what share of the candidates is unlike the training pairs of a classifier; empty where it is not known."""
    if found["outside"] is None or not found["candidates"]:
        return ""
    return f", {found['outside'] / found['candidates']:.0%} lie outside of what it was trained on"


def cut_text(fingerprint: str, cut: float | None, precision: float, recall: float) -> str:
    """Return a classifier's name, its cut, and how well that did on the training pairs, by which it was chosen."""
    least = "no cut" if cut is None or cut == float("-inf") else f"score >= {cut:.4g}"
    return f"{fingerprint}, {least}: precision {precision:.3f} and recall {recall:.3f} on the pairs that chose it"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Where the work is done."""

    engine: Annotated[
        Literal["memory", "spark"],
        option("memory|spark", "Where to run: in this process or on Spark; the results are the same.", ENGINE),
    ] = "memory"
    master: Annotated[
        str | None,
        option(
            "URL",
            "Spark master: local[N], spark://HOST:PORT, yarn, k8s://...; by default all local processors.",
            ENGINE,
        ),
    ] = None
    checkpoint_dir: Annotated[
        str | None,
        option("DIR", "Save finished stages in this folder; all workers must be able to write to it.", ENGINE),
    ] = None
    resume: Annotated[bool, switch("--resume", "Resume from the stages in --checkpoint-dir DIR.", ENGINE)] = False
    spark_conf: Annotated[
        list[str] | None, option("NAME=VALUE", "A Spark setting, such as spark.executor.memory=8g.", ENGINE)
    ] = None
    spark_log: Annotated[str | None, option("FILE", "Spark log file.", ENGINE)] = None
    wait: Annotated[
        float,
        option(
            "TIME",
            "How long to wait for the first worker, such as 5m.",
            ENGINE,
            parser=parse_seconds,
            show_default="60s",
        ),
    ] = 60.0

    def chosen(self, recipe: Recipe | None, **others: object) -> Engine | None:
        """Return the engine where it is Spark, else None; refuse what does not go together.

        ``recipe``: what is to be done; None where there are several, which are looked at then. ``**others``: options
        that Spark does not have, None or False where they were not given.
        """
        own: dict[str, object] = {
            "--master": self.master,
            "--checkpoint-dir": self.checkpoint_dir,
            "--resume": self.resume,
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
        from neardup.spark.engine import Engine

        engine = Engine(
            master=self.master or f"local[{threads or '*'}]",
            checkpoint_dir=self.checkpoint_dir,
            resume=self.resume,
            settings=self._settings(),
            log=self.spark_log,
            wait=self.wait,
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
    corpus: Corpus, recipe: Recipe, engine: Engine, progress: Progress | None, **options: Any
) -> AbstractContextManager[Result]:
    """Run on Spark: give the answer, and stop the session at the end."""
    from neardup.spark.engine import run_on_spark

    return run_on_spark(corpus, recipe, engine, progress=progress, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """A report of a run, and how much it shows."""

    report: Annotated[
        str | None,
        option("FILE.html", "Write a page: what was dropped and why, and other thresholds.", REPORT),
    ] = None
    report_families: Annotated[
        int | None,
        option("NUMBER", "Show the N largest families, 50 by default, and half as many at random.", REPORT, min=0),
    ] = None
    report_rows: Annotated[
        int | None,
        option(
            "NUMBER",
            "List up to N dropped documents, 2000 by default, drawn at random if there are more.",
            REPORT,
            min=0,
        ),
    ] = None
    report_margin: Annotated[
        str | None,
        option(
            "NUMBER|none",
            "How far below the threshold the report looks, 0.2 by default (half the threshold below 0.4; 2 bits with "
            "simhash); none to leave that out.",
            REPORT,
        ),
    ] = None

    def margin(self, recipe: Recipe) -> float | None:
        """Return how far beyond the threshold to look; None for nowhere.

        Raises ``RecipeError`` if it is no number, or an option says nothing without a report.
        """
        if self.report is None:
            options = ("report_families", "report_rows", "report_margin")
            refuse_ignored(options, "is for a report; name one with --report FILE.html")
            return None
        if self.report_margin == "none":
            return None
        if self.report_margin is not None:
            try:
                return float(self.report_margin)
            except ValueError:
                raise RecipeError(
                    f"--report-margin {self.report_margin!r} is not a number; write it like 0.2, or none"
                ) from None
        from neardup.search.margin import usual_margin

        return usual_margin(recipe)

    def wanted(self, *, title_column: str | None = None, time_column: str | None = None) -> Wanted:
        """Return what the report is to show."""
        found: Wanted = {"command": typed_command()}
        if self.report_families is not None:
            found["families"] = self.report_families
        if self.report_rows is not None:
            found["rows"] = self.report_rows
        if title_column:
            found["title_column"] = title_column
        if time_column:
            found["time_column"] = time_column
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """What a document that arrives is compared with."""

    window: Annotated[str, option("TIME|COUNT", "24h, 90m, 7d; '8000 documents'; endless for all.", FLOW)] = "24h"
    window_by: Annotated[str, option("time|hour", "Compare exact times, or whole hours, as in the paper.", FLOW)] = (
        "time"
    )
    against: Annotated[
        str, option("originals|everything", "Compare with originals only, or with all documents.", FLOW)
    ] = "originals"
    store: Annotated[str | None, option("FILE", "Store the window and all verdicts in this SQLite file.", FLOW)] = None
