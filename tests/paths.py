"""Paths that tests read: the project, its sample, and the corpora beside the project."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "examples" / "newswire.jsonl"
#: Real corpora, which only some machines have.
SHARED = ROOT.parent / "shared" / "data"
