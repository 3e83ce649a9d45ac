"""The file of records: read, compared with, and written anew on purpose."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from promised_digests import Output, differences

PATH = Path(__file__).with_name("recorded.json")
VERSIONS = "made with"
#: What of others decides an output: their versions stand in the file, so that a difference can be laid at their door.
_DECIDE = ("numpy", "pyarrow", "rapidfuzz", "scikit-learn", "stop-words", "trafilatura")
HINT = "python -m pytest tests/promises --record records what is there now; do so only where it was meant to change"


@dataclass
class Records:
    """What was recorded of each case, by corpus and name."""

    recorded: dict[str, Any]
    recording: bool
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    named: set[tuple[str, str]] | None = None

    @classmethod
    def read(cls, *, recording: bool) -> Records:
        """Read the file."""
        return cls(json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}, recording)

    def entry(self, corpus: str, name: str) -> Any:
        """Return what was recorded of a case; None where nothing was."""
        return self.recorded.get(corpus, {}).get(name)

    def check(self, corpus: str, name: str, command: list[str], outputs: dict[str, Output]) -> None:
        """Compare the outputs of a case with what was recorded; with --record, write them down instead."""
        __tracebackhide__ = True
        if self.recording:
            self.record(corpus, name, {"command": command, "outputs": {k: v.recorded() for k, v in outputs.items()}})
            return
        entry = self.entry(corpus, name)
        assert entry is not None, f"nothing was recorded of {name!r} on {corpus}; {HINT}"
        expected = entry["outputs"]
        changes = [f"{output} was recorded and is not there" for output in sorted({*expected} - {*outputs})]
        changes += [f"{output} is there and was not recorded" for output in sorted({*outputs} - {*expected})]
        for output in sorted({*expected} & {*outputs}):
            changes += differences(output, expected[output], outputs[output])
        if changes:
            lines = ["", f"$ neardup {' '.join(command)}"]
            if command != entry["command"]:
                lines.append(f"recorded as: neardup {' '.join(entry['command'])}")
            raise AssertionError("\n".join([*lines, *changes, *_other_versions(self.recorded), HINT]))

    def record(self, corpus: str, name: str, entry: Any) -> None:
        """Keep what will be written."""
        self.found.setdefault(corpus, {})[name] = entry

    def forget_others(self, named: set[tuple[str, str]]) -> None:
        """With --record, forget what no case is called any more."""
        if self.recording:
            self.named = named

    def close(self) -> None:
        """Write the file, if that is what the run is for: what did not run stays as it was."""
        if not (self.recording and self.found):
            return
        merged = {}
        for corpus in ({*self.recorded} - {VERSIONS}) | {*self.found}:
            entries = self.recorded.get(corpus, {}) | self.found.get(corpus, {})
            merged[corpus] = {k: v for k, v in entries.items() if self.named is None or (corpus, k) in self.named}
        PATH.write_text(_format(merged | {VERSIONS: versions()}) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Return the versions of what else decides an output."""
    versions_by_name = {"unicode": unicodedata.unidata_version}
    for name in _DECIDE:
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:
            versions_by_name[name] = ""
    return versions_by_name


def _other_versions(recorded: dict[str, Any]) -> list[str]:
    here = versions()
    return [
        f"recorded with {name} {before or 'missing'}, here is {here.get(name) or 'none'}"
        for name, before in recorded.get(VERSIONS, {}).items()
        if here.get(name) != before
    ]


def _format(value: Any, depth: int = 0) -> str:
    """Sorted, with a line for each output, so that a change is a line of the difference."""
    if not isinstance(value, dict) or "sha256" in value or not any(isinstance(v, dict | list) for v in value.values()):
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (depth + 1)
    inner = ",\n".join(f"{pad}{json.dumps(key)}: {_format(value[key], depth + 1)}" for key in sorted(value))
    return f"{{\n{inner}\n{' ' * depth}}}"
