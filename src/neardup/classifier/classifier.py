"""A classifier: its candidate rule, its support vector machine as plain arrays, and its file.

Applying it needs no machine learning library and gives the same bits everywhere.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import unicodedata
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.feature_rows import facts_digest
from neardup.classifier.vector import Records, Vector, needed_columns, read_records
from neardup.errors import InputError, OutputError, RecipeError, option, quoted, with_suggestions
from neardup.features.statistics import Statistics
from neardup.files import read_file, write_file
from neardup.kernels import Bools, Floats, Words
from neardup.kernels.pairs import discriminant
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.recipe.recipe import dependencies_of, difference
from neardup.recipe.recipe import parse as parse_recipe
from neardup.recipe.second_step import SecondStep, learned_step
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.classifier.domain import Domain, DomainCounts


#: The default: full documents below it share too few three-word shingles to be near-duplicates.
CANDIDATE_RULE = "jaccard(words:3) >= 0.1"


def parse_candidate_rule(text: str = CANDIDATE_RULE, *, content: str = "") -> Recipe:
    """Return the recipe that finds a classifier's candidates.

    The rule is written ``MEASURE(FEATURES) >= NUMBER``, with a measure of feature sets. Raising the number gives fewer
    candidates, faster, but a near-duplicate below it is lost. Raises ``RecipeError`` if the text is not such a rule.
    """
    try:
        step = SecondStep.parse(text)
    except RecipeError as error:
        clause, prefix = str(error).partition(";")[0], f"second_step {text!r}"
        reason = (
            clause.removeprefix(prefix) if clause.startswith(prefix) else f": {clause.removeprefix('second_step: ')}"
        )
        raise RecipeError(f"candidate rule {text!r}{reason}; write it like {CANDIDATE_RULE}") from None
    if step.measure not in SET_MEASURES:
        raise RecipeError(
            f"candidate rule {text!r}: {step.measure} is not a measure of feature sets; write it like {CANDIDATE_RULE}"
        )
    return Recipe(
        name="candidate_rule", content=content, features=step.features, measure=step.measure, threshold=step.threshold
    )


def format_candidate_rule(rule: Recipe) -> str:
    """Return a candidate rule as written on the command line."""
    return f"{rule.measure}({rule.features}) >= {rule.threshold:g}"


def platt_probability(exponents: Floats) -> Floats:
    """Return Platt's probability 1 / (1 + exp(exponent)) without overflow."""
    return np.asarray(1 / (1 + np.exp(np.clip(exponents, -700, 700))), np.float64)


class Machine(NamedTuple):
    """A support vector machine: g(x) = sum over s of dual_s K(support_s, z) + intercept, with z = (x - center) / scale.

    K is the dot product (linear) or exp(-gamma |u - z|**2) (RBF). Source: ICGICT 2014, 3.2.3 and formula (12).
    """

    fill: Floats  #: float64[r]: replaces an unknown measure: its median in training
    #: float64[r]: mean and standard deviation of each measure in training.
    center: Floats
    scale: Floats
    #: Gamma of the RBF kernel; 0 for the linear kernel. Raising it makes g follow single training pairs more closely.
    gamma: float
    support: Floats  #: float64[s, r]: standardized support vectors; for the linear kernel a single row, the weights w
    #: float64[s]: alpha_s t_s of each support vector; 1 for the row of weights.
    dual: Floats
    intercept: float
    #: Platt's sigmoid: the probability is 1 / (1 + exp(a g + b)); a is negative, so it rises with g.
    a: float
    b: float

    def score(self, x: Floats, neutral_measure: int = -1) -> Floats:
        """Return g of each row of x, as if the neutral measure had its training mean (-1 for none)."""
        scores = np.empty(len(x))
        arrays = self.fill, self.center, self.scale, self.gamma, self.support, self.dual, self.intercept
        discriminant(np.ascontiguousarray(x, np.float64), neutral_measure, *arrays, scores)
        return scores

    def probability(self, g: Floats) -> Floats:
        """Return the probability that a pair with this g is a near-duplicate, for each g."""
        return platt_probability(self.a * g + self.b)

    @property
    def kernel(self) -> str:
        """``linear`` or ``rbf``."""
        return "rbf" if self.gamma else "linear"

    def contributions(self, x: Floats) -> Floats:
        """Return the contribution of each measure: g minus g with this measure at its mean, float64[n, r].

        With the linear kernel it is w_j z_j, and the contributions and the intercept add up to g.
        """
        scores = self.score(x)
        return np.column_stack([scores - self.score(x, neutral_measure=j) for j in range(x.shape[1])])


class WorkingPoint(NamedTuple):
    """A cut of g, with its precision and recall on the training pairs, each scored out of fold."""

    cut: float  #: a candidate is a near-duplicate if g(x) >= cut
    precision: float  #: the share of near-duplicates among the pairs at or above the cut; 1 if there are none
    recall: float  #: the share of near-duplicates at or above the cut; 1 if there are none


@dataclass(frozen=True, eq=False, kw_only=True)
class Classifier:
    """A decision learned from labelled pairs (ICGICT 2014, 3.2.2 to 3.3), and all that it needs for other pairs.

    Attributes
    ----------
    candidate_rule : Recipe
        Finds the candidates: a pair below its threshold is no near-duplicate, and its measures are not computed.
    vector : Vector
        The r measures that make up x.
    statistics : mapping of str to Statistics
        Document frequencies of the training collection by features, for the measures that need them. They are frozen,
        so x depends on the two documents of a pair only.
    machine : Machine
        Gives g(x) and the probability.
    cut : float
        A candidate is a near-duplicate if g(x) >= cut; 0 unless a working point was chosen. Raising it finds fewer.
    scores, labels : float64[m], bool[m]
        g and the label of each training pair, scored by a machine that was not trained on it; working points are
        chosen on them.
    training : dict
        Figures, counts, options and versions, ready for JSON.
    domain : Domain, optional
        Ranges of the training pairs; without it, no run is checked.
    force_domain : bool
        Whether to skip the check that a run lies inside the domain.
    title_column, time_column : str
        Columns of titles and times, for measures that compare them; empty for the usual names.
    training_documents : uint64[d]
        Hashes of the distinct texts it was trained on, ascending (``hash_texts``): figures on these are too high.
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
    training_documents: Words = field(default_factory=lambda: np.zeros(0, np.uint64))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits, a digest of everything that decisions depend on."""
        settings = [str(self.vector), repr(self.cut), self.dependencies]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for array in self.machine:
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        for name, counts in sorted(self.statistics.items()):
            totals = [name, counts.documents, counts.distinct, counts.largest_square_sum]
            digest.update(json.dumps(totals).encode())
            digest.update(counts.features.astype("<u8").tobytes())
            digest.update(counts.df.astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    @property
    def dependencies(self) -> dict[str, str]:
        """Versions of the algorithms and tables that the candidate rule and the vector use, by name."""
        recipes = [component.recipe for component in self.vector.components if component.has_recipe]
        # Titles, prefixes and tokens are words.
        words = Recipe(features="words:1")
        return dependencies_of(self.candidate_rule, words, *recipes, tables={"facts": facts_digest()})

    @property
    def recipe(self) -> Recipe:
        """The candidate rule with the classifier as its second step."""
        return self.candidate_rule.changed(name="learned", second_step=learned_step(self.fingerprint))

    def score(self, x: Floats) -> Floats:
        """Return g of similarity vectors: float64[n] for float64[n, r]."""
        return self.machine.score(x)

    def probability(self, g: Floats) -> Floats:
        """Return the probability that a pair with this g is a near-duplicate, for each g."""
        return self.machine.probability(g)

    def contributions(self, x: Floats) -> Floats:
        """Return the contribution of each measure to g: float64[n, r]."""
        return self.machine.contributions(x)

    def passes(self, g: Floats) -> Bools:
        """Return which pairs with these g are near-duplicates: bool[n]."""
        return np.asarray(g >= self.cut, np.bool_)

    @property
    def working_point(self) -> WorkingPoint:
        """The cut, with its precision and recall on the training pairs."""
        found = self.labels[self.passes(self.scores)]
        precision = float(found.mean()) if len(found) else 1.0
        recall = float(found.sum() / self.labels.sum()) if self.labels.any() else 1.0
        return WorkingPoint(self.cut, precision, recall)

    def records(self, table: pa.Table, texts: Sequence[str]) -> Records:
        """Return the records of a table's rows, whose compared texts are ``texts``.

        Raises ``RecipeError`` if the table lacks a title or time column that the vector needs.
        """
        columns = {"title_column": self.title_column, "time_column": self.time_column}
        return read_records(table, texts, self.vector, **columns)

    def was_trained_on(self, texts: Sequence[str]) -> Bools:
        """Return which of n texts it was trained on: bool[n]."""
        return np.isin(hash_texts(texts), self.training_documents)

    @property
    def needs_columns(self) -> bool:
        """Whether titles or times are compared, too."""
        return self.vector.needs_titles or self.vector.needs_times

    def check_columns(self, names: Sequence[str]) -> None:
        """Check that an input with these column names has the title and time columns that the vector needs.

        Raises ``RecipeError`` if one is missing.
        """
        needed_columns(self.vector, names, title_column=self.title_column, time_column=self.time_column)

    def without_cut(self) -> Classifier:
        """Return the classifier without its cut: every candidate passes, so all probabilities can be examined."""
        return replace(self, cut=float("-inf"))

    def domain_error(self, counts: DomainCounts) -> str:
        """Return the error of a run with these counts that is outside the domain; empty if it is inside.

        A classifier without a cut has no such error.
        """
        if self.domain is None or self.cut == float("-inf") or not (reason := self.domain.mismatch(counts)):
            return ""
        return f"classifier {self.fingerprint} does not fit these documents: {reason}"

    def check_domain(self, counts: DomainCounts) -> None:
        """Check that a run with these counts is inside the domain, unless ``force_domain``.

        Raises ``RecipeError`` if too large a share of the candidates is outside the domain, or passed.
        """
        if self.force_domain:
            return
        if error := self.domain_error(counts):
            raise RecipeError(
                f"{error}; train one on labels of such documents, or continue with "
                f"{option('--force-domain', 'force_domain=True')}"
            )

    def at_precision(self, precision: float) -> Classifier:
        """Return the classifier with the lowest cut that reached a precision in (0, 1] on the training pairs.

        Each training pair is scored by a machine that was not trained on it. Raising the precision raises the cut, so
        that fewer pairs are found.

        Raises
        ------
        RecipeError
            If no cut reached it.
        """
        if not 0 < precision <= 1:
            raise RecipeError(f"precision {precision} is outside (0, 1]; give a share such as 0.99")
        cut, best = find_cut(self.scores, self.labels, precision)
        if cut is None:
            raise RecipeError(
                f"no cut reached precision {precision:g} on the training pairs, where the highest is {best:.3f}; "
                "choose a lower one, or label more pairs and train again"
            )
        return replace(self, cut=cut)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the classifier file atomically; ``load_classifier`` reads it.

        Raises
        ------
        OutputError
            If the file exists and ``force`` is False, or it cannot be written.
        """
        name = os.fspath(path)
        if not force and os.path.lexists(name):
            force_option = option("--force", "force=True")
            raise OutputError(f"{name} exists; choose another name, or replace it with {force_option}")
        write_file(name, pack_classifier(self))

    def __repr__(self) -> str:
        return f"<classifier {self.fingerprint}: {self.vector} on pairs with {self.candidate_rule.in_words()}>"


def find_cut(scores: Floats, labels: Bools, precision: float) -> tuple[float | None, float]:
    """Return the lowest cut with at least this precision (None if no cut has it), and the highest precision of any cut.

    ``scores`` (float64[m]) come from machines that were not trained on the pair. Raising ``precision`` raises the cut.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, duplicates = scores[order], np.cumsum(labels[order])
    # Pairs with equal scores pass together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], len(ranked) > 0))
    precisions = duplicates[ends] / (ends + 1)
    sufficient = ends[precisions >= precision]
    return (float(ranked[sufficient[-1]]) if len(sufficient) else None), float(precisions.max(initial=0.0))


def hash_texts(texts: Sequence[str]) -> Words:
    """Return the first 64 bits of the BLAKE2b hash of each of n texts: uint64[n]."""
    hashes = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)


#: Incremented whenever an older version would misread the file.
FORMAT = 4
_KIND = "neardup classifier"
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: Hex digits of the SHA-256 at the end of the file.
_DIGEST_LENGTH = 64
#: The arrays of a machine, with their numbers of dimensions.
_ARRAYS = {"fill": 1, "center": 1, "scale": 1, "support": 2, "dual": 1}


@with_suggestions
def load_classifier(path: str | PathLike[str]) -> Classifier:
    """Return the classifier in a classifier file.

    Raises
    ------
    InputError
        If it is not a classifier file, is truncated, changed or of another format, or was trained with other versions
        of the algorithms or of Unicode.
    """
    return unpack_classifier(read_file(path, "give a file that neardup train wrote"), os.fspath(path))


def pack_classifier(classifier: Classifier) -> bytes:
    """Return the bytes of a classifier file: a zip of a manifest and arrays; equal classifiers give equal bytes."""
    machine = classifier.machine
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(machine, name) for name in _ARRAYS}
    arrays |= {"scores": classifier.scores, "labels": classifier.labels}
    arrays["training_documents"] = classifier.training_documents
    statistics: list[dict[str, Any]] = []
    for number, (features, counts) in enumerate(sorted(classifier.statistics.items())):
        totals = {"documents": counts.documents, "distinct": counts.distinct, "heaviest": counts.largest_square_sum}
        statistics.append({"features": features} | totals)
        arrays |= {f"features-{number}": counts.features, f"df-{number}": counts.df}
    manifest = {
        "kind": _KIND,
        "format": FORMAT,
        "fingerprint": classifier.fingerprint,
        "candidate_rule": classifier.candidate_rule.to_toml(),
        "depends_on": classifier.dependencies,
        "vector": str(classifier.vector),
        # As text, because JSON has no infinity.
        "cut": repr(classifier.cut),
        "columns": {"title": classifier.title_column, "time": classifier.time_column},
        "machine": {"kernel": machine.kernel, "gamma": machine.gamma, "intercept": machine.intercept},
        "calibration": {"a": machine.a, "b": machine.b},
        "statistics": statistics,
        "training": dict(classifier.training),
        "domain": None if classifier.domain is None else classifier.domain.as_dict(),
        "versions": {"neardup": __version__, "unicode": unicodedata.unidata_version},
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True, default=float)
    buffer = io.BytesIO()
    # Stored, because compressed bytes differ between versions of zlib.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"0" * _DIGEST_LENGTH
        archive.writestr(zipfile.ZipInfo("manifest.json", _EPOCH), text)
        for name, values in arrays.items():
            content = io.BytesIO()
            np.save(content, values.astype(values.dtype.newbyteorder("<")), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), content.getvalue())
    body = buffer.getvalue()[:-_DIGEST_LENGTH]
    return body + _digest(body)


def unpack_classifier(data: bytes, name: str) -> Classifier:
    """Return the classifier in the bytes of a file; messages call it ``name``.

    Raises ``InputError`` as for ``load_classifier``.
    """
    entries = _entries(data, name)
    way_out = "train it again"
    try:
        manifest = json.loads(entries["manifest.json"])
        if manifest["kind"] != _KIND:
            raise InputError(f"{name} is not a classifier file; give a file that neardup train wrote")
        if manifest["format"] != FORMAT:
            raise InputError(f"{name} has format {manifest['format']!r}, and this neardup reads {FORMAT}; {way_out}")
        classifier = _classifier(manifest, entries)
        if clause := difference(dict(manifest.get("depends_on", {})), classifier.dependencies):
            raise InputError(f"{name} was trained {clause}; {way_out}")
        if classifier.fingerprint != manifest["fingerprint"]:
            raise InputError(f"{name} does not give the classifier that was saved; {way_out}")
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"{name} contains no readable classifier ({quoted(str(error))}); {way_out}") from None
    return classifier


#: What reading, checking and converting a manifest and arrays of any content may raise.
_UNREADABLE = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    MemoryError,
    SyntaxError,
    TokenError,
    RecipeError,
)


def _entries(data: bytes, name: str) -> dict[str, bytes]:
    if len(data) < _DIGEST_LENGTH or _digest(data[:-_DIGEST_LENGTH]) != data[-_DIGEST_LENGTH:]:
        raise InputError(
            f"{name} is not a classifier file, or it is truncated or changed; give a file that neardup train wrote"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            is_stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            # Entries that do not overlap are together no larger than the file.
            if is_stored and sum(max(entry.file_size, entry.compress_size) for entry in entries) <= len(data):
                return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, LookupError, ValueError, OSError, EOFError, RuntimeError):
        pass
    raise InputError(f"{name} is not a classifier file; give a file that neardup train wrote")


def _classifier(manifest: dict[str, Any], entries: dict[str, bytes]) -> Classifier:
    """Return the classifier of a manifest and its arrays, whose shapes must agree."""
    from neardup.classifier.domain import Domain

    def array(entry: str, kind: Any, dimensions: int = 1) -> npt.NDArray[Any]:
        data = entries[f"{entry}.npy"]
        file = io.BytesIO(data)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{entry} has another format")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if len(shape) != dimensions or dtype != np.dtype(kind).newbyteorder("<"):
            raise ValueError(f"{entry} is an array of {dtype}, {len(shape)}-dimensional")
        # Before memory is taken for what the header says.
        if min(shape) < 0 or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
            raise ValueError(f"{entry} has another length")
        values = np.frombuffer(data, dtype, offset=file.tell()).reshape(shape, order="F" if is_fortran else "C")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{entry} is not finite")
        return np.ascontiguousarray(values, kind)

    vector, scalars, sigmoid = Vector.parse(manifest["vector"]), manifest["machine"], manifest["calibration"]
    machine = Machine(
        **{name: array(name, np.float64, dimensions) for name, dimensions in _ARRAYS.items()},
        gamma=float(scalars["gamma"]),
        intercept=float(scalars["intercept"]),
        a=float(sigmoid["a"]),
        b=float(sigmoid["b"]),
    )
    scores, labels = array("scores", np.float64), array("labels", np.bool_)
    statistics = {
        counts["features"]: Statistics(
            int(counts["documents"]),
            int(counts["distinct"]),
            int(counts["heaviest"]),
            array(f"features-{number}", np.uint64),
            array(f"df-{number}", np.int64),
        )
        for number, counts in enumerate(manifest["statistics"])
    }
    shapes = {machine.fill.shape, machine.center.shape, machine.scale.shape}
    is_rectangular = machine.support.shape == (len(machine.dual), len(vector))
    if shapes != {(len(vector),)} or not is_rectangular or scores.shape != labels.shape:
        raise ValueError("its arrays differ in length")
    for counts in statistics.values():
        _check_statistics(counts)
    if {component.df_features for component in vector.components} - {""} - statistics.keys():
        raise ValueError("document frequencies are missing")
    if not (machine.scale > 0).all() or machine.gamma < 0 or machine.a > 0:
        raise ValueError("its machine has a scale, gamma or slope of another sign")
    if math.isnan(cut := float(manifest["cut"])):
        raise ValueError("its cut is not a number")
    if scalars["kernel"] != machine.kernel or not np.isfinite([*machine[-3:], machine.gamma]).all():
        raise ValueError(f"kernel {scalars['kernel']!r}")
    return Classifier(
        candidate_rule=parse_recipe(manifest["candidate_rule"], "its candidate rule"),
        vector=vector,
        statistics=statistics,
        machine=machine,
        scores=scores,
        labels=labels,
        cut=cut,
        title_column=str(manifest["columns"]["title"]),
        time_column=str(manifest["columns"]["time"]),
        training=dict(manifest["training"]),
        domain=None if manifest["domain"] is None else Domain.from_dict(manifest["domain"], len(vector)),
        training_documents=array("training_documents", np.uint64),
    )


def _check_statistics(counts: Statistics) -> None:
    """Check document frequencies that a file contains; raises ``ValueError`` if no collection has them."""
    totals = counts.documents, counts.distinct, counts.largest_square_sum
    if not all(0 <= total < 1 << 62 for total in totals) or counts.features.shape != counts.df.shape:
        raise ValueError("its document frequencies differ in length, or are too large")
    is_ascending = (counts.features[1:] > counts.features[:-1]).all()
    if not is_ascending or not ((counts.df > 0) & (counts.df <= counts.documents)).all():
        raise ValueError("its document frequencies are not those of a collection")


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


#: A classifier or the path of its file.
ClassifierLike = Classifier | str | os.PathLike[str]
_CONFLICTS = {
    "recipe": "brings its own recipe; leave one of the two out",
    "content": "was trained on {content}; leave it out",
    "threshold": "has a cut instead; choose its working point with {precision}",
}


def resolve_classifier(
    classifier: ClassifierLike, *, title_column: str | None = None, time_column: str | None = None
) -> Classifier:
    """Return a classifier, loaded if it is a path, with the chosen columns in place of those of its training.

    Raises ``RecipeError`` if a title column is chosen and no measure compares titles. A time column may serve another
    purpose.
    """
    loaded = classifier if isinstance(classifier, Classifier) else load_classifier(classifier)
    if title_column is not None and not loaded.vector.needs_titles:
        raise RecipeError(f"title column {title_column!r}: no measure of this classifier compares titles; leave it out")
    return replace(
        loaded,
        title_column=loaded.title_column if title_column is None else title_column,
        time_column=loaded.time_column if time_column is None else time_column,
    )


def classifier_recipe(
    classifier: Classifier,
    choices: Mapping[str, Any],
    *,
    format_option: Callable[[str, Any], str] = lambda name, value: f"{name}={value!r}",
    precision: str = "classifier.at_precision(0.99)",
) -> Recipe:
    """Return a classifier's recipe with the chosen keep order.

    ``choices`` are options of a recipe, None if not chosen; only ``keep`` may differ from the classifier's own, or
    ``RecipeError`` is raised. Its message writes an option by ``format_option``, and ``precision`` is the caller's way
    to choose a working point.
    """
    rule = classifier.candidate_rule
    for name, value in choices.items():
        if value is None or name == "keep" or (name == "content" and value == rule.content):
            continue
        content = f"content {rule.content!r}" if rule.content else "texts as they are"
        reason = _CONFLICTS.get(name, _CONFLICTS["recipe"]).format(content=content, precision=precision)
        raise RecipeError(f"{format_option(name, value)} does not go with a classifier, which {reason}")
    return classifier.recipe.changed(keep=choices.get("keep") or rule.keep)
