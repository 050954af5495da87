"""What is released is consistent: one version, extras that exist, and a trial of the wheel that has every command."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import abelnet
from abelnet import cli

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children:
        yield " ".join(path)
    for name, child in children.items():
        yield from commands(child, (*path, name))


def test_there_is_one_version() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "abelnet/__init__.py"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {abelnet.__version__}\n" in citation
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None
    assert first[1] == abelnet.__version__


def test_every_extra_that_is_named_exists() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "abelnet").rglob("*.py")]
    named = {
        name for text in texts for found in re.findall(r"abelnet\[(\w+(?:,\w+)*)\]", text) for name in found.split(",")
    }
    named |= {name for text in texts for name in re.findall(r"needs_extra\(\"(\w+)\"", text)}
    assert {"dask", "hub", "plots", "sql", "tune"} <= named <= set(PROJECT["project"]["optional-dependencies"])


def test_what_make_installs_is_pinned() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {line.partition("==")[0].lower() for line in text.splitlines() if "==" in line}
    extras = PROJECT["project"]["optional-dependencies"]
    for wanted in (*PROJECT["project"]["dependencies"], *extras["dist"]):
        assert re.split(r"[<>=]", wanted)[0] in pinned


def test_the_trial_of_the_wheel_has_every_command() -> None:
    spec = importlib.util.spec_from_file_location("try_wheel", ROOT / "tools" / "try_wheel.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tried = [arguments for arguments, _ in tool.COMMANDS]
    for name in commands(typer.main.get_command(cli.app)):
        assert any(arguments.split()[: len(name.split())] == name.split() for arguments in tried), name
    assert {extra for _, extra in tool.COMMANDS if extra} <= set(PROJECT["project"]["optional-dependencies"])
