"""The support vector machine as plain arrays, so that deciding needs no library and gives the same bits everywhere."""

from __future__ import annotations

import hashlib
import io
import json
import os
import unicodedata
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.columns import columns_for, records_of_table
from neardup.classifier.facts import facts_digest
from neardup.classifier.values import Records
from neardup.classifier.vector import Vector
from neardup.errors import InputError, OutputError, RecipeError, option
from neardup.features.statistics import Statistics
from neardup.files import read_file, write_file
from neardup.kernels import Bools, Floats
from neardup.kernels.pairs import discriminant
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.recipe.recipe import dependencies_of, difference
from neardup.recipe.recipe import parse as parse_recipe
from neardup.recipe.second_step import SecondStep, learned_step
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.classifier.domain import Domain, DomainCounts


#: Full documents that share fewer of their three-word shingles have not been seen to be near-duplicates.
CANDIDATE_RULE = "jaccard(words:3) >= 0.1"


def rule_of(text: str = CANDIDATE_RULE, *, content: str = "") -> Recipe:
    """Return the recipe whose pairs a classifier looks at.

    It is written ``MEASURE(FEATURES) >= NUMBER``, with a measure of feature sets. Raising the number gives fewer
    candidate pairs, faster, and may lose near-duplicates for good.
    """
    try:
        step = SecondStep.parse(text)
    except RecipeError as error:
        said, own = str(error).partition(";")[0], f"second_step {text!r}"
        reason = said.removeprefix(own) if said.startswith(own) else f": {said.removeprefix('second_step: ')}"
        raise RecipeError(f"candidate rule {text!r}{reason}; write it like {CANDIDATE_RULE}") from None
    if step.measure not in SET_MEASURES:
        raise RecipeError(
            f"candidate rule {text!r}: {step.measure} is no measure of feature sets; write it like {CANDIDATE_RULE}"
        )
    return Recipe(
        name="candidate_rule", content=content, features=step.features, measure=step.measure, threshold=step.threshold
    )


def rule_text(rule: Recipe) -> str:
    """Return a candidate rule as it is written on the command line."""
    return f"{rule.measure}({rule.features}) >= {rule.threshold:g}"


def platt_probability(f: Floats) -> Floats:
    """Return 1 / (1 + exp(f)), Platt's probability, without overflow."""
    return np.asarray(1 / (1 + np.exp(np.clip(f, -700, 700))), np.float64)


class Machine(NamedTuple):
    """What g(x) = sum of dual_s K(support_s, z) + intercept is made of, with z = (x - center) / scale.

    K is the dot product (linear) or exp(-gamma |u - z|**2) (RBF). Source: ICGICT 2014, 3.2.3 and formula (12).
    """

    #: float64[r]: taken for a measure that is not known of a pair: the median in training.
    fill: Floats
    #: float64[r]: mean and standard deviation of each measure in training.
    center: Floats
    scale: Floats
    #: Of the RBF kernel; 0 for the linear kernel. Raising it makes g follow single training pairs more closely.
    gamma: float
    #: float64[s, r]: support vectors, standardised; for the linear kernel the one row of weights w.
    support: Floats
    #: float64[s]: alpha_s t_s of each; 1 for the row of weights.
    dual: Floats
    intercept: float
    #: Platt's sigmoid: the probability is 1 / (1 + exp(a g + b)); a is below 0, so it rises with g.
    a: float
    b: float

    def score(self, x: Floats, skipped: int = -1) -> Floats:
        """Return g of each row of x; with ``skipped`` = j, as if measure j had its mean."""
        out = np.empty(len(x))
        shape = self.fill, self.center, self.scale, self.gamma, self.support, self.dual, self.intercept
        discriminant(np.ascontiguousarray(x, np.float64), skipped, *shape, out)
        return out

    def probability(self, g: Floats) -> Floats:
        """Return how probable it is that pairs with such a g are near-duplicates."""
        return platt_probability(self.a * g + self.b)

    @property
    def kernel(self) -> str:
        """``linear`` or ``rbf``."""
        return "rbf" if self.gamma else "linear"

    def contributions(self, x: Floats) -> Floats:
        """Return by how much each measure moves g away from where its mean would leave it: float64[n, r].

        With the linear kernel that is w_j z_j, and the contributions and the intercept add up to g.
        """
        whole = self.score(x)
        return np.column_stack([whole - self.score(x, skipped=j) for j in range(x.shape[1])])


class WorkingPoint(NamedTuple):
    """A cut of g, and how well it did on the training pairs, each scored by a machine that had not seen it."""

    #: A candidate is a near-duplicate if g(x) >= cut.
    cut: float
    #: The share of near-duplicates among the pairs at or above it; 1 where there are none.
    precision: float
    #: The share of near-duplicates that are at or above it; 1 where there are none.
    recall: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Classifier:
    """What was learned from labelled pairs (ICGICT 2014, 3.2.2 to 3.3), and all that is needed to decide on others.

    Attributes
    ----------
    candidate_rule : Recipe
        Its pairs are the candidates: whatever lies below its threshold is no near-duplicate, unseen.
    vector : Vector
        The measures that make up x.
    statistics : mapping of str to Statistics
        Document frequencies of the training collection, by features, for measures that need them. They are frozen,
        so that a pair's x depends on its two documents alone.
    machine : Machine
        Gives g(x) and the probability.
    cut : float
        A candidate is a near-duplicate if g(x) >= cut; 0 unless a working point was chosen. Raising it finds fewer.
    scores, labels : float64[m], bool[m]
        g and the truth of the training pairs, each scored by a machine that had not seen it: what working points
        are chosen by.
    training : dict
        Figures, counts, options and versions, ready for JSON.
    domain : Domain, optional
        What its training pairs were like; without it nothing is known of where it is at home.
    force_domain : bool
        Whether a run goes on, and a flow says nothing, where it is not at home.
    title_column, time_column : str
        Where titles and times are, for measures that compare them; empty to find them by their names.
    """

    candidate_rule: Recipe
    vector: Vector
    statistics: Mapping[str, Statistics]
    machine: Machine
    scores: Floats
    labels: Bools
    cut: float = 0.0
    title_column: str = ""
    time_column: str = ""
    training: Mapping[str, Any] = field(default_factory=dict)
    domain: Domain | None = None
    force_domain: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits of all that the answer depends on."""
        said = [str(self.vector), repr(self.cut), self.dependencies]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
        for part in self.machine:
            digest.update(np.ascontiguousarray(part, "<f8").tobytes())
        for name, known in sorted(self.statistics.items()):
            digest.update(json.dumps([name, known.documents, known.distinct, known.largest_square_sum]).encode())
            digest.update(known.features.astype("<u8").tobytes())
            digest.update(known.df.astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    @property
    def dependencies(self) -> dict[str, str]:
        """What the candidate rule and the vector depend on, as short texts by name."""
        made = [part.recipe for part in self.vector.parts if part.of_recipe]
        # Titles, prefixes and tokens are words.
        return dependencies_of(self.candidate_rule, Recipe(features="words:1"), *made, tables={"facts": facts_digest()})

    @property
    def recipe(self) -> Recipe:
        """The candidate rule, with the classifier as its second step."""
        return self.candidate_rule.changed(name="learned", second_step=learned_step(self.fingerprint))

    def score(self, x: Floats) -> Floats:
        """Return g of vectors of similarities: float64[n] of float64[n, r]."""
        return self.machine.score(x)

    def probability(self, g: Floats) -> Floats:
        """Return how probable near-duplicates are among pairs with such a g."""
        return self.machine.probability(g)

    def contributions(self, x: Floats) -> Floats:
        """Return by how much each measure moves g away from where its mean would leave it."""
        return self.machine.contributions(x)

    def passes(self, g: Floats) -> Bools:
        """Return which pairs are near-duplicates."""
        return np.asarray(g >= self.cut, np.bool_)

    @property
    def working_point(self) -> WorkingPoint:
        """The cut, with its precision and recall on the training pairs."""
        found = self.labels[self.passes(self.scores)]
        precision = float(found.mean()) if len(found) else 1.0
        recall = float(found.sum() / self.labels.sum()) if self.labels.any() else 1.0
        return WorkingPoint(self.cut, precision, recall)

    def records(self, table: pa.Table, texts: Sequence[str]) -> Records:
        """Return what is compared of the rows of a table, whose texts (or contents) are given.

        Raises
        ------
        RecipeError
            If titles or times are needed and there is no column of them.
        """
        columns = {"title_column": self.title_column, "time_column": self.time_column}
        return records_of_table(table, texts, self.vector, **columns)

    @property
    def needs_columns(self) -> bool:
        """Whether titles or times are compared besides texts."""
        return self.vector.needs_titles or self.vector.needs_times

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse inputs without a column of titles or times that is needed.

        Raises
        ------
        RecipeError
            If there is none among the columns of these names.
        """
        columns_for(self.vector, names, title_column=self.title_column, time_column=self.time_column)

    def everything(self) -> Classifier:
        """Return the classifier that passes every candidate, for those who look at probabilities."""
        return replace(self, cut=float("-inf"))

    def complaint(self, asked: DomainCounts) -> str:
        """Return that it is not at home in the documents it was asked about, and why; empty where nothing says so.

        Where everything passes by intent, nothing does.
        """
        if self.domain is None or self.cut == float("-inf") or not (why := self.domain.complaint(*asked)):
            return ""
        return f"classifier {self.fingerprint} is not at home in these documents: {why}"

    def check_domain(self, asked: DomainCounts) -> None:
        """Refuse a run in which it is not at home, unless that is forced.

        Raises
        ------
        RecipeError
            If too large a share of the pairs that it judged is outside, or passed.
        """
        if self.force_domain:
            return
        if why := self.complaint(asked):
            raise RecipeError(
                f"{why}; train one on labels of such documents, or go on with "
                f"{option('--force-domain', 'force_domain=True')}"
            )

    def at_precision(self, wanted: float) -> Classifier:
        """Return the classifier at the lowest cut that had such a precision on the training pairs, unseen.

        Raises
        ------
        RecipeError
            If no cut had.
        """
        if not 0 < wanted <= 1:
            raise RecipeError(f"precision {wanted} is outside (0, 1]; give a share such as 0.99")
        cut, best = cut_of(self.scores, self.labels, wanted)
        if cut is None:
            raise RecipeError(
                f"precision {wanted:g} was reached at no cut on the training pairs, {best:.3f} was the most; ask for "
                "less, or label more pairs and train again"
            )
        return replace(self, cut=cut)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the classifier to a classifier file, whole or not at all; ``load_classifier`` reads it.

        Raises
        ------
        OutputError
            If there is one already and ``force`` is not given, or it cannot be written.
        """
        name = os.fspath(path)
        if not force and os.path.lexists(name):
            way_out = option("--force", "force=True")
            raise OutputError(f"{name} exists; choose another name, or replace it with {way_out}")
        write_file(name, packed(self))

    def __repr__(self) -> str:
        return f"<classifier {self.fingerprint}: {self.vector} on pairs with {self.candidate_rule.in_words()}>"


def cut_of(scores: Floats, labels: Bools, precision: float) -> tuple[float | None, float]:
    """Return the lowest cut at or above which a share of the pairs are duplicates, and the highest share at any cut.

    The scores are those of machines that had not seen the pairs. Raising ``precision`` raises the cut, or leaves none.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(labels[order])
    # Pairs of one score pass together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], len(ranked) > 0))
    shares = right[ends] / (ends + 1)
    reached = ends[shares >= precision]
    return (float(ranked[reached[-1]]) if len(reached) else None), float(shares.max(initial=0.0))


#: Raised whenever an older neardup could not read the file rightly.
FORMAT = 3
_KIND = "neardup classifier"
#: Only files of format 1 have an entry of this name.
_ENTRY_OF_FORMAT_1 = "model.skops"
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: The length of a SHA-256 in hex digits.
_SEAL = 64
#: The arrays of a machine, and how many dimensions each has.
_ARRAYS = {"fill": 1, "center": 1, "scale": 1, "support": 2, "dual": 1}


def load_classifier(path: str | PathLike[str]) -> Classifier:
    """Return the classifier that a classifier file holds.

    Raises
    ------
    InputError
        If it is no such file, torn, changed, of another format, or made by what gives other features than this
        neardup with this Python.
    """
    return unpacked(read_file(path, "give what neardup train wrote"), os.fspath(path))


def packed(classifier: Classifier) -> bytes:
    """Return a classifier as the bytes of its file: a zip of arrays and a manifest; equal ones give equal bytes."""
    machine = classifier.machine
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(machine, name) for name in _ARRAYS}
    arrays |= {"scores": classifier.scores, "labels": classifier.labels}
    counted: list[dict[str, Any]] = []
    for number, (features, one) in enumerate(sorted(classifier.statistics.items())):
        counted.append(
            {
                "features": features,
                "documents": one.documents,
                "distinct": one.distinct,
                "heaviest": one.largest_square_sum,
            }
        )
        arrays |= {f"features-{number}": one.features, f"df-{number}": one.df}
    manifest = {
        "kind": _KIND,
        "format": FORMAT,
        "fingerprint": classifier.fingerprint,
        "candidate_rule": classifier.candidate_rule.to_toml(),
        "depends_on": classifier.dependencies,
        "vector": str(classifier.vector),
        # As text: it may be an infinity, which JSON does not have.
        "cut": repr(classifier.cut),
        "columns": {"title": classifier.title_column, "time": classifier.time_column},
        "machine": {"kernel": machine.kernel, "gamma": machine.gamma, "intercept": machine.intercept},
        "calibration": {"a": machine.a, "b": machine.b},
        "statistics": counted,
        "training": dict(classifier.training),
        "domain": None if classifier.domain is None else classifier.domain.as_dict(),
        "versions": {"neardup": __version__, "unicode": unicodedata.unidata_version},
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True, default=float)
    out = io.BytesIO()
    # Stored, because zlib compresses to other bytes from version to version.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"0" * _SEAL
        archive.writestr(zipfile.ZipInfo("manifest.json", _EPOCH), text)
        for name, values in arrays.items():
            content = io.BytesIO()
            np.save(content, values.astype(values.dtype.newbyteorder("<")), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), content.getvalue())
    body = out.getvalue()[:-_SEAL]
    return body + _digest(body)


def unpacked(data: bytes, name: str) -> Classifier:
    """Return the classifier that bytes hold; ``name`` is what messages call them."""
    entries = _entries(data, name)
    again = "train it again"
    try:
        manifest = json.loads(entries["manifest.json"])
        if manifest["kind"] != _KIND:
            raise InputError(f"{name} is no classifier file; give what neardup train wrote")
        if manifest["format"] != FORMAT:
            raise InputError(f"{name} has format {manifest['format']!r} and only {FORMAT} is known; {again}")
        classifier = _classifier(manifest, entries)
        if clause := difference(dict(manifest.get("depends_on", {})), classifier.dependencies):
            raise InputError(f"{name} was trained {clause}; {again}")
        if classifier.fingerprint != manifest["fingerprint"]:
            raise InputError(f"{name} does not give the classifier that was saved; {again}")
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError, RecipeError) as error:
        raise InputError(f"{name} holds no classifier that can be read ({error}); {again}") from None
    return classifier


def _entries(data: bytes, name: str) -> dict[str, bytes]:
    """Return the entries of a file of which no byte was changed."""
    if len(data) < _SEAL or _digest(data[:-_SEAL]) != data[-_SEAL:]:
        raise InputError(
            f"{name} is no classifier file, or one that is torn or was changed; give what neardup train wrote"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(entry.filename == _ENTRY_OF_FORMAT_1 for entry in entries):
                raise InputError(f"{name} has format 1 and only {FORMAT} is known; train it again")
            # What is stored is no larger than the file that holds it.
            if all(entry.compress_type == zipfile.ZIP_STORED for entry in entries):
                return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, LookupError, ValueError, OSError, EOFError, RuntimeError):
        pass
    raise InputError(f"{name} is no classifier file; give what neardup train wrote")


def _classifier(manifest: dict[str, Any], entries: dict[str, bytes]) -> Classifier:
    """Return the classifier of a manifest and its arrays, in which all shapes go together."""
    from neardup.classifier.domain import Domain

    def array(entry: str, kind: Any, dimensions: int = 1) -> npt.NDArray[Any]:
        values = np.load(io.BytesIO(entries[f"{entry}.npy"]), allow_pickle=False)
        if values.ndim != dimensions or values.dtype != np.dtype(kind).newbyteorder("<"):
            raise ValueError(f"{entry} is an array of {values.dtype}, {values.ndim}-dimensional")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{entry} is not finite")
        return np.ascontiguousarray(values, kind)

    vector, known, sigmoid = Vector.parse(manifest["vector"]), manifest["machine"], manifest["calibration"]
    machine = Machine(
        **{name: array(name, np.float64, dimensions) for name, dimensions in _ARRAYS.items()},
        gamma=float(known["gamma"]),
        intercept=float(known["intercept"]),
        a=float(sigmoid["a"]),
        b=float(sigmoid["b"]),
    )
    scores, labels = array("scores", np.float64), array("labels", np.bool_)
    statistics = {
        one["features"]: Statistics(
            int(one["documents"]),
            int(one["distinct"]),
            int(one["heaviest"]),
            array(f"features-{number}", np.uint64),
            array(f"df-{number}", np.int64),
        )
        for number, one in enumerate(manifest["statistics"])
    }
    columns, rows = {machine.fill.shape, machine.center.shape, machine.scale.shape}, machine.support.shape
    if columns != {(len(vector),)} or rows != (len(machine.dual), len(vector)) or scores.shape != labels.shape:
        raise ValueError("its arrays differ in length")
    if any(one.features.shape != one.df.shape for one in statistics.values()):
        raise ValueError("its counts differ in length")
    if {part.counted for part in vector.parts if part.counted} - statistics.keys():
        raise ValueError("counts are missing")
    if known["kernel"] != machine.kernel or not np.isfinite([*machine[-3:], machine.gamma]).all():
        raise ValueError(f"kernel {known['kernel']!r}")
    return Classifier(
        candidate_rule=parse_recipe(manifest["candidate_rule"], "its candidate rule"),
        vector=vector,
        statistics=statistics,
        machine=machine,
        scores=scores,
        labels=labels,
        cut=float(manifest["cut"]),
        title_column=str(manifest["columns"]["title"]),
        time_column=str(manifest["columns"]["time"]),
        training=dict(manifest["training"]),
        domain=None if manifest["domain"] is None else Domain.from_dict(manifest["domain"], len(vector)),
    )


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


#: A classifier, or the file that holds it.
Given = Classifier | str | os.PathLike[str]
_WHY = {
    "recipe": "brings its own recipe; leave one of the two out",
    "content": "was trained on {content}; leave it out",
    "threshold": "has a cut in its place; choose its working point with {precision}",
}


def classifier_of(given: Given, *, title_column: str | None = None, time_column: str | None = None) -> Classifier:
    """Return a classifier, from its file where a path is given.

    Other columns than those of the training may be given; one of times may be there for other reasons.
    """
    classifier = given if isinstance(given, Classifier) else load_classifier(given)
    if title_column is not None and not classifier.vector.needs_titles:
        raise RecipeError(f"title column {title_column!r} is asked for by no measure of this classifier; leave it out")
    return replace(
        classifier,
        title_column=classifier.title_column if title_column is None else title_column,
        time_column=classifier.time_column if time_column is None else time_column,
    )


def recipe_beside(
    classifier: Classifier,
    choices: Mapping[str, Any],
    *,
    say: Callable[[str, Any], str] = lambda name, value: f"{name}={value!r}",
    precision: str = "classifier.at_precision(0.99)",
) -> Recipe:
    """Return a classifier's recipe, in the keep order that was asked for.

    Of the ``choices`` (None for what was not asked for) only ``keep``, and the ``content`` that it was trained on, go
    with it. ``say`` gives an option as the caller writes it, ``precision`` how the caller chooses a working point.
    """
    for name, value in choices.items():
        if value is None or name == "keep" or (name == "content" and value == classifier.candidate_rule.content):
            continue
        content = (
            f"content {classifier.candidate_rule.content!r}"
            if classifier.candidate_rule.content
            else "texts as they are"
        )
        why = _WHY.get(name, _WHY["recipe"]).format(content=content, precision=precision)
        raise RecipeError(f"{say(name, value)} does not go with a classifier, which {why}")
    return classifier.recipe.changed(keep=choices.get("keep") or classifier.candidate_rule.keep)
