"""The options that several commands share: recipe, classifier, labels, reading, running, engine, report, window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, make_dataclass, replace
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from neardup.cli.command import (
    CLASSIFIER,
    ENGINE,
    FLOW,
    LABELS,
    MATCHING,
    MORE,
    READING,
    REPORT,
    RUNNING,
    argument,
    option,
    refuse_ignored,
    switch,
)
from neardup.cli.screen import DURATION, SIZE, typed_command
from neardup.errors import InputError, RecipeError, suggestion
from neardup.recipe import Recipe
from neardup.recipe.named import apply_flow_choices
from neardup.recipe.recipe import OPTIONS, command_words

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.documents import Corpus, OrderColumn
    from neardup.index.index import DiskIndex
    from neardup.pipeline.run_report import ReportSettings
    from neardup.spark.engine import Engine


Inputs = Annotated[
    list[str],
    argument(
        "INPUT...",
        "Parquet, JSON lines, CSV, TSV, Arrow or text files, also .gz and .zst; folders, globs, URIs; - for stdin.",
    ),
]
Json = Annotated[bool, switch("--json", "Print JSON on stdout.")]
JsonLines = Annotated[bool, switch("--json", "Print JSON lines on stdout.")]
Against = Annotated[
    list[str] | None, option("REF", "Compare with these files or this index, too. Their documents are never dropped.")
]
Force = Annotated[bool, switch("--force", "Replace outputs that exist.")]
Labeller = Annotated[str | None, option("NAME", "Name of the labeller; otherwise the page asks for it.", LABELS)]


def _recipe_option(name: str, title: str | None = MATCHING, recipe: Recipe | None = None) -> Any:
    field = OPTIONS[name]
    default = field.default if recipe is None else getattr(recipe, name)
    return option(field.values, field.help, title, shown=str(default or ""))


Html = Annotated[bool, switch("--html", "Compare the main content of web pages.", MATCHING)]
Content = Annotated[str | None, _recipe_option("content")]
Keep = Annotated[str | None, _recipe_option("keep", None)]


def resolve_content(html: bool, content: str | None) -> str | None:
    """Return the content that ``--html`` and ``--content`` choose; None if neither is given.

    Raises ``RecipeError`` if they contradict each other.
    """
    if html and content not in (None, "html"):
        raise RecipeError(f"--html is short for --content html, but --content is {content!r}: give one of the two")
    return "html" if html else content


_RECIPE = option("NAME|FILE", "A recipe's name or TOML file.", MATCHING, shown="default")
#: The fields of ``Recipe`` whose options need no code of their own.
_PLAIN_FIELDS = {name: field for name, field in OPTIONS.items() if field.common and name not in ("keep", "ignore")}
#: An option for each of them, as its metadata says; None if it is not given.
_RecipeFields: Any = make_dataclass(
    "_RecipeFields",
    [
        ("recipe", getitem(Annotated, (str | None, _RECIPE)), None),
        ("html", Html, False),
        *(
            (name, getitem(Annotated, (type(field.default) | None, _recipe_option(name))), None)
            for name, field in _PLAIN_FIELDS.items()
        ),
    ],
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(_RecipeFields):  # type: ignore[misc]
    """A recipe and changes to its fields: options for the common ones, ``--set`` for the rare ones."""

    ignore: Annotated[str | None, _recipe_option("ignore")] = None
    set_fields: Annotated[
        list[str] | None, option("FIELD=VALUE", "Set another field of the recipe.", MATCHING, "--set")
    ] = None

    @property
    def settings(self) -> dict[str, str | float]:
        """The fields that were given, and the name of the recipe as ``recipe``.

        Raises ``RecipeError`` if a field cannot be set, or is set twice.
        """
        values = {name: getattr(self, name) for name in ("recipe", *_PLAIN_FIELDS)}
        values["content"] = resolve_content(self.html, self.content)
        values["ignore"] = None if self.ignore is None else read_boilerplate(self.ignore)
        return {name: value for name, value in values.items() if value is not None} | _parse_fields(
            self.set_fields or ()
        )

    def resolve(
        self,
        classifier: Classifier | None = None,
        index: DiskIndex | None = None,
        *,
        keep: str | None = None,
    ) -> Recipe:
        """Return the chosen recipe, or that of a classifier; if none is chosen, that of an index.

        Raises ``RecipeError`` if they contradict each other, or a value is refused.
        """
        from neardup.recipe.named import apply_choices

        settings: dict[str, Any] = self.settings
        if index is not None and classifier is not None:
            raise RecipeError(f"{index.path} is an index, which has its own recipe: leave out --classifier")
        if classifier is not None:
            return self._classifier_recipe(classifier, settings | {"keep": keep})
        if index is not None and not settings:
            return index.recipe if keep is None else index.recipe.changed(keep=keep)
        recipe = apply_choices(settings.pop("recipe", "default"), settings | ({} if keep is None else {"keep": keep}))
        if index is not None:
            index.check_recipe(recipe)
        return recipe

    def _classifier_recipe(self, classifier: Classifier, settings: dict[str, Any]) -> Recipe:
        from neardup.classifier.classifier import classifier_recipe

        def option_text(name: str, value: Any) -> str:
            if name == "content" and self.html:
                return "--html"
            return f"--recipe {value}" if name == "recipe" else " ".join(command_words(name, value))

        return classifier_recipe(classifier, settings, format_option=option_text, precision="--precision 0.99")


_FLOW_RECIPE = apply_flow_choices(None, {})


_FlowFields: Any = make_dataclass(
    "_FlowFields",
    [
        ("recipe", getitem(Annotated, (str | None, replace(_RECIPE, shown=_FLOW_RECIPE.name))), None),
        *(
            (name, getitem(Annotated, (type(field.default) | None, _recipe_option(name, recipe=_FLOW_RECIPE))), None)
            for name, field in _PLAIN_FIELDS.items()
        ),
    ],
    bases=(RecipeOptions,),
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class FlowRecipeOptions(_FlowFields):  # type: ignore[misc]
    """The recipe of a flow, which is another one if none is chosen."""

    def resolve_for_flow(self, classifier: Classifier | None) -> Recipe:
        """Return the chosen recipe, that of a classifier, or that of flows; raises as ``resolve`` does."""
        settings: dict[str, Any] = self.settings
        if classifier is not None:
            return self._classifier_recipe(classifier, settings)  # type: ignore[no-any-return]
        return apply_flow_choices(settings.pop("recipe", None), settings)


def read_boilerplate(path: str) -> str:
    """Return the text of a file for ``--ignore``; raise ``InputError`` if there is none."""
    from neardup import files

    text = decode_text(files.read_file(path, "give --ignore a text file"), path)
    if not text.strip():
        raise InputError(f"{path} holds no text, so --ignore would change nothing: leave it out, or give another file")
    return text


def decode_text(data: bytes, name: str) -> str:
    """Return UTF-8 data as text, without a byte order mark; ``name`` is that of the file in messages."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 at byte {error.start}: convert it first, as with iconv") from None


def _parse_fields(settings: Iterable[str]) -> dict[str, str | float]:
    rare = [name for name, field in OPTIONS.items() if not field.common]
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise RecipeError(f"--set {setting!r} names no value; write it like --set clip=df:2:0.5")
        if name in OPTIONS and name not in rare:
            raise RecipeError(f"--set {name} has an option of its own; give {' '.join(command_words(name, value))}")
        if name not in rare:
            hint = suggestion(name, OPTIONS) or f"; the fields are {', '.join(rare)}"
            raise RecipeError(f"--set {name!r} is not a field of a recipe{hint}")
        if name in values:
            raise RecipeError(f"--set {name} is given twice, as {values[name]!r} and {value!r}; give it once")
        values[name] = value
    return {name: _parse_value(name, value) for name, value in values.items()}


def _parse_value(name: str, value: str) -> str | float:
    kind = type(OPTIONS[name].default)
    if kind is str:
        return value
    try:
        return float(value) if kind is float else int(value)
    except ValueError:
        noun = "a number" if kind is float else "a whole number"
        raise RecipeError(f"--set {name} {value!r} is not {noun}; write it like {OPTIONS[name].default}") from None


DropBy = Annotated[
    str | None,
    option(
        "COLUMN",
        "Drop or keep groups whole, such as repositories: documents with the same value here; see --drop-share.",
        MORE,
    ),
]
DropShare = Annotated[
    str,
    option(
        "SHARE",
        "Drop a group of --drop-by if at least this share of its documents match kept ones of one other group.",
        MORE,
    ),
]
TitleColumn = Annotated[str | None, option("NAME", "Column of titles, for classifiers that compare them.", CLASSIFIER)]
TimeColumn = Annotated[str | None, option("NAME", "Column of times, for classifiers that compare them.", CLASSIFIER)]
_CLASSIFIER_OPTIONS = ("precision", "title_column", "force_domain")
FOR_CLASSIFIERS = "is for a classifier; give one with --classifier FILE"


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions:
    """A trained classifier and its working point."""

    classifier: Annotated[
        str | None, option("FILE", "A trained classifier, instead of a recipe. neardup train makes one.", CLASSIFIER)
    ] = None
    precision: Annotated[
        float | None,
        option(
            "NUMBER",
            "Use the lowest cut with this precision on the training pairs, such as 0.99; by default score >= 0.",
            CLASSIFIER,
        ),
    ] = None

    def load(self, **columns: str | None) -> Classifier | None:
        """Return the classifier at its working point; None if there is none.

        Raises ``NeardupError`` if it cannot be read, does not reach the precision, or an option is given without it.
        """
        if self.classifier is None:
            refuse_ignored(_CLASSIFIER_OPTIONS, FOR_CLASSIFIERS)
            return None
        from neardup.classifier.classifier import resolve_classifier

        classifier = resolve_classifier(self.classifier, **columns)
        return classifier if self.precision is None else classifier.at_precision(self.precision)


@dataclass(frozen=True, kw_only=True)
class FlowClassifierOptions(ClassifierOptions):
    """A classifier that may judge documents unlike those of its training."""

    force_domain: Annotated[
        bool, switch("--force-domain", "Go on even if the documents are unlike those of the training.", CLASSIFIER)
    ] = False

    def load(self, **columns: str | None) -> Classifier | None:
        """As in ``ClassifierOptions``."""
        classifier = super().load(**columns)
        return None if classifier is None else replace(classifier, force_domain=self.force_domain)


@dataclass(frozen=True, kw_only=True)
class CorpusClassifierOptions(FlowClassifierOptions):
    """A classifier, and the column of titles in a corpus."""

    title_column: TitleColumn = None

    def load_for_corpus(
        self, time_column: str | None = None, *, times_used: bool = False, titles_used: bool = False
    ) -> Classifier | None:
        """Return the classifier at its working point, with its columns; None if there is none.

        ``times_used`` and ``titles_used`` say whether the command uses these columns without a classifier, too.
        Raises ``NeardupError`` as ``load`` does, or if the classifier does not compare times.
        """
        if self.classifier is None:
            ignored = [*(() if titles_used else ["title_column"]), *(() if times_used else ["time_column"])]
            refuse_ignored(["precision", *ignored, "force_domain"], FOR_CLASSIFIERS)
            return None
        classifier = self.load(title_column=self.title_column, time_column=time_column)
        if time_column is not None and not times_used and classifier and not classifier.vector.needs_times:
            raise RecipeError(f"time column {time_column!r} is not compared by this classifier; leave it out")
        return classifier


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelColumnOptions:
    """How a table of labels is read."""

    label_column: Annotated[
        str | None, option("NAME", "Column of the labels, by default label, answer or level.", LABELS)
    ] = None
    positive: Annotated[float, option("NUMBER", "Labels at or above this value mean duplicate.", LABELS)] = 1.0
    ignore_unknown: Annotated[bool, switch("--ignore-unknown", "Ignore labels of unknown documents.", LABELS)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions(LabelColumnOptions):
    """How a table of labels is read, and which of its rows."""

    only: Annotated[
        str | None, option("COLUMN=VALUE", "Only labels with this value in this column, such as split=train.", LABELS)
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How documents are read."""

    text_column: Annotated[
        str | None,
        option(
            "NAME,...",
            "Column of the texts, several, or a path such as messages[].content. By default the one with a usual name.",
            READING,
        ),
    ] = None
    id_column: Annotated[
        str | None,
        option(
            "NAME", "Column of the ids, or a path. By default the one with a usual name, else row numbers.", READING
        ),
    ] = None
    max_document: Annotated[
        int | None, option("SIZE", "Reject texts larger than this, such as 10MB.", READING, **SIZE)
    ] = None
    strict: Annotated[bool, switch("--strict", "Stop at the first broken record.", READING)] = False
    quarantine: Annotated[
        str | None, option("FILE", "Write unreadable records to this file, as JSON lines.", READING)
    ] = None
    ids: Annotated[
        Literal["column", "rows", "file+id"],
        option(
            "column|rows|file+id",
            "How to name documents: by the id column, by row number, or by file name and id (for shards that each "
            "count from 0).",
            READING,
        ),
    ] = "column"
    quoting: Annotated[
        Literal["standard", "none"],
        option("standard|none", "How to read quotes in CSV and TSV; none: as characters.", READING),
    ] = "standard"
    allow_torn: Annotated[
        bool, switch("--allow-torn", "Exit with 0 instead of 3 if a file is torn or has no usable record.", READING)
    ] = False

    def open(
        self,
        inputs: list[str],
        *,
        order_column: OrderColumn | str | None = None,
        write: bool = True,
        against: list[str] | None = None,
    ) -> Corpus:
        """Open the inputs, and the files of a reference; without ``write``, no quarantine file is written."""
        if self.strict:
            refuse_ignored(("allow_torn",), "accepts a torn file, and --strict stops at one: leave out one of the two")
        from neardup.documents import open_corpus

        corpus = open_corpus(
            inputs,
            text_column=self.text_column,
            id_column=self.id_column,
            order_column=order_column,
            strict=self.strict,
            quarantine=self.quarantine if write else None,
            max_document=self.max_document,
            ids=self.ids,
            allow_torn=self.allow_torn,
            quoting=self.quoting,
        )
        if against:
            try:
                corpus.set_reference(self.open(against, write=False))
            except BaseException:
                corpus.close(commit=False)
                raise
        return corpus


def refuse_read_options() -> None:
    """Refuse the options of reading if the input is an index, which has read its documents."""
    names = [field.name for field in fields(ReadOptions)]
    refuse_ignored(names, "is for reading files, and the input is an index: leave it out")


def find_index(names: Sequence[str] | None) -> DiskIndex | None:
    """Return the index among the names of a reference or an input; None if they are files.

    Raises ``NeardupError`` if it is damaged, or not alone.
    """
    if not names:
        return None
    from neardup.index.manifest import is_index

    indexes = [name for name in names if is_index(name)]
    if not indexes:
        return None
    if len(names) > 1:
        raise RecipeError(
            f"{indexes[0]} is an index, which must be given alone: leave out the others, or add them to it"
        )
    from neardup.index.index import DiskIndex

    return DiskIndex(indexes[0])


class Limits(TypedDict):
    """The parameters of ``pipeline.run`` that ``RunOptions`` sets."""

    threads: int | None
    memory: int | None


Threads = Annotated[int | None, option("NUMBER", "Threads; all processors by default.", RUNNING, min=1)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Threads and memory of a run."""

    threads: Threads = None
    memory: Annotated[
        int | None,
        option(
            "SIZE",
            "Memory limit, such as 2GB; what does not fit is read again, or goes to disk.",
            RUNNING,
            **SIZE,
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Threads and memory for ``pipeline.run``."""
        return {"threads": self.threads, "memory": self.memory}


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The engine of a run: this process or Spark."""

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
            **DURATION,
        ),
    ] = 60.0

    def spark_engine(self, recipe: Recipe, threads: int | None) -> Engine | None:
        """Return the engine if it is Spark, else None.

        Raises ``RecipeError`` for options of the other engine, and if the recipe cannot run on Spark.
        """
        if self.engine == "memory":
            names = ("master", "checkpoint_dir", "resume", "spark_conf", "spark_log", "wait")
            refuse_ignored(names, "is for --engine spark: name that engine, or leave it out")
            return None
        memory_only = ("memory", "classifier", "report", "within", "prefer", "drop_by")
        refuse_ignored(memory_only, "is for the engine in memory: leave it out, or leave out --engine spark")
        if threads and self.master:
            raise RecipeError("--threads and --master both set the number of parallel tasks: give one of them")
        from neardup.spark.engine import Engine

        engine = Engine(
            master=self.master or f"local[{threads or '*'}]",
            checkpoint_dir=self.checkpoint_dir,
            resume=self.resume,
            settings=dict(map(_parse_spark_setting, self.spark_conf or ())),
            log=self.spark_log,
            wait=self.wait,
        )
        engine.check(recipe)
        return engine


def _parse_spark_setting(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals or not name.startswith("spark."):
        raise RecipeError(f"--spark-conf {setting} is no setting of Spark: give spark.NAME=VALUE")
    return name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """A report of a run, and how much it shows."""

    report: Annotated[
        str | None,
        option("FILE.html", "Write a page: what was dropped, and why. It shows other thresholds, too.", REPORT),
    ] = None
    report_families: Annotated[
        int, option("NUMBER", "Show the N largest families, and half as many at random.", REPORT, min=0)
    ] = 50
    report_rows: Annotated[
        int, option("NUMBER", "List up to N dropped documents; a random sample if there are more.", REPORT, min=0)
    ] = 2000
    report_margin: Annotated[
        str | None,
        option(
            "NUMBER|none",
            "How far below the threshold the report looks: 0.2 by default (half the threshold below 0.4, 2 bits with "
            "simhash), or none.",
            REPORT,
        ),
    ] = None

    def margin(self, recipe: Recipe) -> float | None:
        """Return how far beyond the threshold to search; None for nowhere.

        Raises ``RecipeError`` if it is no number, or an option is given without a report.
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
        from neardup.search.margin import default_margin

        return default_margin(recipe)

    def page_options(self, *, title_column: str | None = None, time_column: str | None = None) -> ReportSettings:
        """Return the options of the page."""
        options: ReportSettings = {
            "command": typed_command(),
            "families": self.report_families,
            "rows": self.report_rows,
        }
        if title_column:
            options["title_column"] = title_column
        if time_column:
            options["time_column"] = time_column
        return options


Window = Annotated[
    str, option("TIME|COUNT", "How far back to compare: 24h, 90m, 7d, '8000 documents', or endless.", FLOW)
]
FlowAgainst = Annotated[
    Literal["originals", "everything"],
    option("originals|everything", "Compare with originals only, or with all documents.", FLOW),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """The documents that a new one is compared with."""

    window: Window = "24h"
    window_by: Annotated[
        Literal["time", "hour"], option("time|hour", "Compare exact times, or whole hours, as in the paper.", FLOW)
    ] = "time"
    against: FlowAgainst = "originals"
    store: Annotated[str | None, option("FILE", "Store the window and all verdicts in this SQLite file.", FLOW)] = None
