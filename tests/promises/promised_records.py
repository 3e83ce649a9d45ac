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
MADE_WITH = "made with"
#: What of others decides an output: their versions stand in the file, so that a difference can be laid at their door.
_DECIDE = ("numpy", "pyarrow", "rapidfuzz", "scikit-learn", "stop-words", "trafilatura")
AGAIN = "python -m pytest tests/promises --record records what is there now; do so only where it was meant to change"


@dataclass
class Records:
    """What was recorded of each case, by corpus and name."""

    known: dict[str, Any]
    recording: bool
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    named: set[tuple[str, str]] | None = None

    @classmethod
    def read(cls, *, recording: bool) -> Records:
        """Read the file."""
        return cls(json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}, recording)

    def of(self, corpus: str, name: str) -> Any:
        """Return what was recorded of a case; None where nothing was."""
        return self.known.get(corpus, {}).get(name)

    def hold(self, corpus: str, name: str, command: list[str], outputs: dict[str, Output]) -> None:
        """Compare the outputs of a case with what was recorded; with --record, write them down instead."""
        __tracebackhide__ = True
        if self.recording:
            self.note(corpus, name, {"command": command, "outputs": {k: v.recorded() for k, v in outputs.items()}})
            return
        recorded = self.of(corpus, name)
        assert recorded is not None, f"nothing was recorded of {name!r} on {corpus}; {AGAIN}"
        before = recorded["outputs"]
        told = [f"{one} was recorded and is not there" for one in sorted({*before} - {*outputs})]
        told += [f"{one} is there and was not recorded" for one in sorted({*outputs} - {*before})]
        for one in sorted({*before} & {*outputs}):
            told += differences(one, before[one], outputs[one])
        if told:
            shown = ["", f"$ neardup {' '.join(command)}"]
            if command != recorded["command"]:
                shown.append(f"recorded as: neardup {' '.join(recorded['command'])}")
            raise AssertionError("\n".join([*shown, *told, *_other_versions(self.known), AGAIN]))

    def note(self, corpus: str, name: str, entry: Any) -> None:
        """Keep what will be written."""
        self.found.setdefault(corpus, {})[name] = entry

    def keep(self, named: set[tuple[str, str]]) -> None:
        """With --record, forget what no case is called any more."""
        if self.recording:
            self.named = named

    def close(self) -> None:
        """Write the file, if that is what the run is for: what did not run stays as it was."""
        if not (self.recording and self.found):
            return
        merged = {}
        for corpus in ({*self.known} - {MADE_WITH}) | {*self.found}:
            entries = self.known.get(corpus, {}) | self.found.get(corpus, {})
            merged[corpus] = {k: v for k, v in entries.items() if self.named is None or (corpus, k) in self.named}
        PATH.write_text(_written(merged | {MADE_WITH: made_with()}) + "\n", encoding="utf-8")


def made_with() -> dict[str, str]:
    """Return the versions of what else decides an output."""
    found = {"unicode": unicodedata.unidata_version}
    for name in _DECIDE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _other_versions(known: dict[str, Any]) -> list[str]:
    here = made_with()
    return [
        f"recorded with {name} {before or 'missing'}, here is {here.get(name) or 'none'}"
        for name, before in known.get(MADE_WITH, {}).items()
        if here.get(name) != before
    ]


def _written(value: Any, depth: int = 0) -> str:
    """Sorted, with a line for each output, so that a change is a line of the difference."""
    if not isinstance(value, dict) or "sha256" in value or not any(isinstance(v, dict | list) for v in value.values()):
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (depth + 1)
    inner = ",\n".join(f"{pad}{json.dumps(key)}: {_written(value[key], depth + 1)}" for key in sorted(value))
    return f"{{\n{inner}\n{' ' * depth}}}"
