"""``neardup dedup`` and ``neardup pairs``: what they write and say."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import typer
from commands import FOX, ROSE, RULES, in_terminal, neardup, read_lines, refused, write_lines
from sentences import says

import neardup as nd
from neardup.cli.screen import format_amount, parse_size, printable, printable_line
from neardup.errors import TornInput
from neardup.pages.numbers import format_size


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--keep", "longest"], "fox-edited"),
        (["--keep", "shortest"], "fox"),
        (["--keep", "newest"], "fox-edited"),
        (["--keep", "oldest", "--time-column", "date"], "fox"),
        (["--keep", "score"], "fox-again"),
        (["--keep", "score:lowest"], "fox-edited"),
    ],
)
def test_the_keep_order_decides_which_document_is_kept(
    options: list[str], kept: str, corpus: Path, tmp_path: Path
) -> None:
    neardup("dedup", corpus, "-o", tmp_path / "clean.jsonl", *RULES, *options)
    assert [row["id"] for row in read_lines(tmp_path / "clean.jsonl")] == (
        [kept, "rose", "empty"] if kept == "fox" else ["rose", kept, "empty"]
    )


@pytest.mark.parametrize(
    "command", [["dedup", "--dry-run"], ["pairs", "--print"], ["neighbors", "--print", "--k", "1"]]
)
def test_a_torn_file_is_read_as_far_as_it_goes_and_the_exit_code_says_so(tmp_path: Path, command: list[str]) -> None:
    lines = "".join(json.dumps({"id": n, "text": f"{ROSE} {n}"}) + "\n" for n in range(500))
    whole, torn = gzip.compress(lines.encode()), tmp_path / "torn.jsonl.gz"
    torn.write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.jsonl").write_text(lines[:-30])
    result = neardup(*command, torn, tmp_path / "cut.jsonl", "--ids", "rows", *RULES, code=3)
    said = [line for line in result.stderr.splitlines() if "is torn" in line]
    assert says(said[0], "torn.jsonl.gz", "rows were read", "--allow-torn")
    assert says(said[1], "cut.jsonl", "499 rows were read")
    assert neardup(*command, tmp_path / "cut.jsonl", "--allow-torn", *RULES).stdout == (
        neardup(*command, tmp_path / "cut.jsonl", *RULES, code=3).stdout
    )
    assert "line 500" in refused(*command, tmp_path / "cut.jsonl", "--strict", *RULES)


def test_python_warns_of_a_torn_file_and_the_summary_names_it(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text(json.dumps({"text": FOX}) + '\n{"text": "A ros')
    with pytest.warns(TornInput, match=r"cut\.jsonl is torn .*: 1 row was read of it; .*allow_torn=True"):
        found = nd.dedup_files(cut)
    assert found.summary["torn"] == [{"file": str(cut), "rows_read": 1, "reason": "last line is cut short"}]
    assert nd.dedup_files(cut, allow_torn=True).summary["torn"] == found.summary["torn"]
    with pytest.raises(nd.BrokenRecord):
        nd.dedup_files(cut, strict=True)


def test_ids_with_tabs_stay_one_field(tmp_path: Path) -> None:
    rows = [{"id": "a\tb", "text": FOX}, {"id": "c\nd", "text": FOX}]
    result = neardup("pairs", write_lines(tmp_path / "c.jsonl", rows), "--print")
    assert result.stdout.splitlines()[1] == "a\\tb\tc\\nd\t1.0"


def test_the_first_run_says_that_it_compiles(corpus: Path, warm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "neardup: compiling kernels that this command needs, once on this machine (about 10 s)\n"
    assert line not in neardup("dedup", corpus, "--dry-run").stderr
    monkeypatch.setattr("neardup.kernels.compilation.kernels_are_compiled", lambda *modules: False)
    assert line in neardup("dedup", corpus, "--dry-run").stderr
    assert line in neardup("pairs", corpus, "--print").stderr


def test_exceeding_the_memory_limit_is_reported(corpus: Path, warm: None) -> None:
    stderr = neardup("dedup", corpus, "--dry-run", "--memory", "10MB").stderr
    assert re.search(r"peak memory [\d.]+ [MG]B, more than --memory 10\.0 MB; the program alone takes", stderr)
    assert "more than --memory" not in neardup("dedup", corpus, "--dry-run", "--memory", "64GB").stderr


def test_progress_is_shown_in_a_terminal_only(corpus: Path, warm: None) -> None:
    shown = in_terminal("dedup", corpus, "--dry-run", stream="stderr")
    assert "1/2 read" in shown
    assert "2/2 join" in shown
    size = format_size(corpus.stat().st_size)
    assert f"{size} of {size}" in shown
    assert "\x1b[?25h" in shown
    assert "\x1b" not in neardup("dedup", corpus, "--dry-run").stderr


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ((1_200_000_000, 3_500_000_000, 44_000_000.4, True), "1.2 GB of 3.5 GB, 44.0 MB/s"),
        ((0, None, None, True), "0 bytes"),
        ((1500, 20_000, 0.0, False), "1,500 of 20,000"),
        ((1500, 20_000, 999.6, False), "1,500 of 20,000, 1,000/s"),
    ],
)
def test_the_progress_of_a_stage_is_formatted(amount: tuple[int, int | None, float | None, bool], shown: str) -> None:
    done, total, rate, in_bytes = amount
    assert format_amount(done, total, rate, in_bytes=in_bytes) == shown


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2_000_000_000), ("512MB", 512_000_000), ("1.5GiB", 1_610_612_736), ("10k", 10_000), ("7", 7), ("3 B", 3)],
)
def test_sizes_are_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2 apples", "0", "1iB", "0.1", "nan", "1e9"])
def test_texts_that_are_no_sizes_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        parse_size(text)
    assert says(caught.value.message, repr(text), "size", "512MB, 2GB or 1.5GiB")


def test_sizes_are_formatted() -> None:
    assert [format_size(n) for n in (0, 1, 999, 1000, 12_345, 123_456_789, 10**12)] == [
        "0 bytes",
        "1 bytes",
        "999 bytes",
        "1.0 kB",
        "12.3 kB",
        "123 MB",
        "1.0 TB",
    ]


def test_control_characters_are_written_out() -> None:
    assert printable("a\x1b[31mb\x07\r\nc\td\x7f\x9b\u202e") == "a␛[31mb␇\nc\td␡<U+009B><U+202E>"
    assert printable_line("a\nb\tc") == "a\\nb\\tc"
