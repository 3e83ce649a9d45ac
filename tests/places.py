"""Where things lie that tests read: the project, its sample, the corpora beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "examples" / "newswire.jsonl"
#: Real corpora, which not every machine has.
SHARED = ROOT.parent / "shared" / "data"
