"""Checks before a session starts: Java, packages, master and options."""

from __future__ import annotations

import stat
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from sentences import says

from neardup.errors import RecipeError
from neardup.recipe.named import load_recipe
from neardup.spark import session as sessions
from neardup.spark.cluster import check_master
from neardup.spark.engine import Engine


def java(folder: Path, version: str) -> Path:
    """A command that claims to be Java."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the Java of this machine."""
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_java_is_that_of_java_home_else_the_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, other = java(tmp_path / "a", "17.0.15"), java(tmp_path / "b", "21.0.1")
    monkeypatch.setenv("PATH", f"{other.parent}:/bin:/usr/bin")
    assert sessions.find_java() == sessions.Java(other, 21)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a"))
    assert sessions.find_java() == sessions.Java(named, 17)


@pytest.mark.parametrize(
    ("version", "part", "parts"),
    [
        ("", False, ("there is none", "apt-get install openjdk-17-jre-headless")),
        ("1.8.0_402", False, ("Java 8,", "17 or newer")),
        ("11.0.2", True, ("Java 11,", "17 or newer")),
        ("", True, ("JAVA_HOME", "no Java in it")),
    ],
)
def test_a_missing_or_old_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, part: bool, parts: tuple[str, ...]
) -> None:
    path = java(tmp_path, version) if version else tmp_path / "bin" / "java"
    monkeypatch.setenv("PATH", str(path.parent) if version else str(tmp_path))
    if version:
        (path.parent / "sh").symlink_to("/bin/sh")
    if part:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RecipeError) as caught:
        sessions.find_java()
    assert says(caught.value, *parts, "openjdk-17-jre-headless")


def test_missing_or_old_packages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    versions: dict[str, str | None] = {"pyspark": "4.3.0", "pandas": "2.2.3"}

    def version(name: str) -> str:
        if (found := versions[name]) is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr("importlib.metadata.version", version)
    for name, installed, parts in (
        ("pandas", "2.1.4", ("pandas 2.2 or newer", "2.1.4")),
        ("pyspark", "3.5.1", ("pyspark 4.3 or newer", "3.5.1")),
        ("pyspark", None, ("pyspark 4.3 or newer", "not installed")),
    ):
        versions[name] = installed
        with pytest.raises(RecipeError) as caught:
            sessions.check_spark()
        assert says(caught.value, *parts, "pip install 'neardup[spark]'")


@pytest.mark.parametrize("master", ["", "local[x]", "spark://host", "http://host:1", "mesos"])
def test_a_master_that_is_no_address_is_refused(master: str) -> None:
    with pytest.raises(RecipeError) as caught, sessions.session(master):
        pass
    assert says(caught.value, repr(master), "address of a cluster")


def test_workers_on_other_machines_need_a_checkpoint_folder() -> None:
    with pytest.raises(RecipeError) as caught:
        Engine(master="spark://host:7077").check(load_recipe("default"))
    assert says(caught.value, "folder that all can write", "--checkpoint-dir")
    Engine(master="spark://127.0.0.1:7077").check(load_recipe("default"))


def test_a_master_without_a_listener_is_refused_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        check_master("spark://127.0.0.1:9")
    assert says(caught.value, "no master", "spark://127.0.0.1:9 (", "): check")
    check_master("local[2]")
    check_master("yarn")
