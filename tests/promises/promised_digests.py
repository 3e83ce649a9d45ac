"""What is recorded of an output, what is left out of it, and what to say when it is no longer the same."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

#: Fields of JSON outputs that no digest holds, wherever they stand, by what they are.
LEFT_OUT = frozenset(
    {
        # Times, memory and the machine.
        *("stages", "wall_ms_per_document", "cpu_ms_per_document", "cpu_us_median", "cpu_us_p99", "bytes"),
        *("threads", "pid", "check_s", "saved_s", "per_s", "spooled_bytes", "peak_memory_bytes"),
        # Versions, paths and fingerprints; those of the named recipes have a test of their own.
        *("version", "inputs", "command", "fingerprint", "store", "inbox"),
        # The recipe, whose fields are shown by the command recipe.
        "recipe",
        # How the work was done inside: candidates, rounds, lists.
        *("search", "tried", "pairs_of_the_coarse_search"),
        # Sentences for people, which may be said better.
        *("reason", "sentence", "sentences", "warnings", "notes", "note", "description", "in_words"),
        *("message", "evidence", "matches"),
        # Whether empty texts count as copies of each other is no promise.
        "exact_copies",
    }
)

#: The same of tables, by the name of the output.
COLUMNS_LEFT_OUT = {
    "compared.csv": ("wall_ms_per_document", "cpu_ms_per_document"),
    # When a label was taken in, and how long it took.
    "each.csv": ("time", "seconds"),
}

#: Significant digits of numbers in JSON; sums may be added up in another order.
JSON_DIGITS = 9
#: Of what a training made: its last digits belong to scikit-learn, NumPy and the processor.
LEARNED_DIGITS = 5
#: That of a classifier changes with its last digits.
_FINGERPRINT = re.compile(r"\b[0-9a-f]{16}\b")

_BLOCKS, _LINES, _MAX_CHARACTERS, _NAME = 16, 6, 160, 40
_BINARY = (".parquet", ".arrow", ".feather")
_MISSING = object()
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")

Recorded = dict[str, Any]


@dataclass(frozen=True)
class Output:
    """An output as lines of text, and what is to be read of it at a glance.

    Attributes
    ----------
    lines : list of str
        All that a digest is made of.
    facts : dict
        What a person asks first: how many rows, the first and the last id.
    parts : tuple of str
        Of JSON, what the lines are called.
    """

    lines: list[str]
    facts: dict[str, Any]
    parts: tuple[str, ...] = ()

    def recorded(self) -> Recorded:
        """Return what the file of records holds of it."""
        whole = hashlib.sha256("\n".join(self.lines).encode()).hexdigest()
        if self.parts:
            return {**self.facts, "parts": self.signed_parts(), "sha256": whole}
        return {**self.facts, "blocks": " ".join(map(_signature, self.blocks())), "sha256": whole}

    def blocks(self) -> list[list[str]]:
        """Return the lines in at most sixteen blocks, by which the place of a difference is found."""
        size = -(-len(self.lines) // _BLOCKS) or 1
        return [self.lines[begin : begin + size] for begin in range(0, len(self.lines), size)]

    def signed_parts(self) -> dict[str, str]:
        """Return the parts of JSON that are no plain values, each with its signature."""
        named = zip(self.parts, self.lines, strict=True)
        return {part: _signature([line]) for part, line in named if part not in self.facts.get("values", {})}


def _signature(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:4]


def output_of(name: str, content: bytes, *, digits: int | None = None) -> Output:
    """Return an output by its name: a table, JSON lines, JSON, or text."""
    name, content = decompress(name, content)
    if name.endswith(_BINARY):
        return table_output(_read_table(name, content))
    text = content.decode()
    if name in COLUMNS_LEFT_OUT:
        text = drop_columns(text, COLUMNS_LEFT_OUT[name])
    if name.endswith(".json"):
        return json_output(json.loads(text or "null"), digits or JSON_DIGITS)
    lines = text.removesuffix("\n").split("\n") if text else []
    if digits is not None:
        lines = [_NUMBER.sub(lambda found: f"{float(found[0]):.{digits}g}", line) for line in lines]
    if name.endswith(".jsonl"):
        return Output(lines, _glance([next(iter(json.loads(line).values()), "") for line in lines]))
    if name.endswith((".csv", ".tsv")):
        rows = list(csv.reader(io.StringIO(text), delimiter="," if name.endswith(".csv") else "\t"))
        return Output(lines, _glance([row[0] for row in rows[1:]]))
    return Output(lines, {"rows": len(lines)})


def drop_columns(text: str, columns: tuple[str, ...]) -> str:
    rows, left = list(csv.DictReader(io.StringIO(text))), io.StringIO()
    out = csv.DictWriter(left, [name for name in rows[0] if name not in columns], extrasaction="ignore")
    out.writeheader()
    out.writerows(rows)
    return left.getvalue().replace("\r\n", "\n")


def decompress(name: str, content: bytes) -> tuple[str, bytes]:
    if name.endswith(".gz"):
        return name.removesuffix(".gz"), gzip.decompress(content)
    if name.endswith(".zst"):
        with pa.input_stream(pa.BufferReader(content), compression="zstd") as stream:
            return name.removesuffix(".zst"), stream.read()
    return name, content


def rows_of_output(name: str, content: bytes) -> list[dict[str, Any]]:
    """Return the rows of a table in any format; those of CSV are texts."""
    name, content = decompress(name, content)
    if name.endswith(_BINARY):
        return list(_read_table(name, content).to_pylist())
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in content.decode().split("\n") if line]
    lines = io.StringIO(content.decode(), newline="")
    return list(csv.DictReader(lines, delimiter="," if name.endswith(".csv") else "\t"))


def _read_table(name: str, content: bytes) -> pa.Table:
    source = pa.BufferReader(content)
    if name.endswith(".parquet"):
        return pyarrow.parquet.read_table(source)
    return pyarrow.feather.read_table(source) if name.endswith(".feather") else pa.ipc.open_file(source).read_all()


def table_output(table: pa.Table) -> Output:
    """A table in a format whose bytes are the library's: its columns, then its rows."""
    columns = ", ".join(f"{field.name}: {str(field.type).removeprefix('large_')}" for field in table.schema)
    rows = table.to_pylist()
    lines = [columns, *(json.dumps(row, ensure_ascii=False, default=str) for row in rows)]
    return Output(lines, _glance([next(iter(row.values())) for row in rows]))


def _glance(names: list[Any]) -> dict[str, Any]:
    """How many rows, the first id and the last; never texts, for not all corpora may be quoted."""
    return {"rows": len(names)} | ({"first": str(names[0])[:60], "last": str(names[-1])[:60]} if names else {})


def json_output(content: Any, digits: int) -> Output:
    """JSON, a line for each of its parts, so that a difference says which part it is in."""
    content = stable(content, digits)
    if not isinstance(content, dict):
        content = {str(i): part for i, part in enumerate(content if isinstance(content, list) else [content])}
    parts: dict[str, Any] = {}
    for name, value in content.items():
        parts |= {f"{name}.{key}": part for key, part in _inner(value)} or {name: value}
    values = {name: parts[name] for name in sorted(parts) if _is_plain(parts[name])}
    lines = [f"{name}: {json.dumps(parts[name], ensure_ascii=False, sort_keys=True)}" for name in sorted(parts)]
    return Output(lines, {"values": values}, tuple(sorted(parts)))


def _inner(value: Any) -> list[tuple[str, Any]]:
    """What a part of JSON is made of: the fields of an object, the items of a list that have names."""
    if isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        return [(item["name"], item) for item in value]
    return list(value.items()) if isinstance(value, dict) else []


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | None) or (isinstance(value, str) and len(value) <= _NAME)


def stable(content: Any, digits: int) -> Any:
    """Return JSON without what is left out of digests, with numbers of so many digits."""
    if isinstance(content, dict):
        return {key: stable(value, digits) for key, value in content.items() if key not in LEFT_OUT}
    if isinstance(content, list):
        return [stable(value, digits) for value in content]
    if isinstance(content, str) and digits == LEARNED_DIGITS:
        return _FINGERPRINT.sub("-", content)
    return float(f"{content:.{digits}g}") if isinstance(content, float) else content


def differences(name: str, recorded: Recorded, output: Output) -> list[str]:
    """Return what differs, in words; nothing where all is as recorded."""
    current = output.recorded()
    if current["sha256"] == recorded["sha256"]:
        return []
    lines = _changes(recorded, current, ("rows", "first", "last"))
    lines += _changes(recorded.get("values", {}), current.get("values", {}))
    lines += _changes(recorded.get("parts", {}), current.get("parts", {}))
    return [f"{name} is not what was recorded:", *lines, *_place(recorded, output)]


def _changes(before: Recorded, after: Recorded, keys: tuple[str, ...] | None = None) -> list[str]:
    return [
        f"  {key}: {_short(before.get(key, 'nothing'))} recorded, {_short(after.get(key, 'nothing'))} now"
        for key in (sorted({*before, *after}) if keys is None else keys)
        if before.get(key, _MISSING) != after.get(key, _MISSING)
    ]


def _place(recorded: Recorded, found: Output) -> list[str]:
    """The first lines that differ, or may: of a short output the very line."""
    if found.parts:
        wrong = [line for part, line in zip(found.parts, found.lines, strict=True) if _is_new(part, recorded, found)]
        return [f"    {_short(line)}" for line in wrong[:_LINES]]
    line, before = 1, recorded.get("blocks", "").split()
    for i, block in enumerate(found.blocks()):
        if before[i : i + 1] != [_signature(block)]:
            where = f"line {line}" if len(block) == 1 else f"lines {line} to {line + len(block) - 1}"
            return [f"  the first difference is in {where}:", *(f"    {_short(row)}" for row in block[:_LINES])]
        line += len(block)
    return [f"  what was recorded goes on after line {line - 1}"]


def _is_new(part: str, recorded: Recorded, found: Output) -> bool:
    return bool(found.signed_parts().get(part) != recorded.get("parts", {}).get(part))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
