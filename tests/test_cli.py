"""The command line as a whole: what it imports, its help, and its errors."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from cases import wait_until
from typer.testing import CliRunner

import abelnet
from abelnet import __main__ as entry
from abelnet import cli

RUNNER = CliRunner()
# Runs the help of every command in one process, and prints what that has imported.
ALL_HELP = """
import contextlib, io, sys
from abelnet import cli
import typer

def show_help(command, path):
    command(["--help"], prog_name="abelnet", standalone_mode=False)
    for name, child in getattr(command, "commands", {}).items():
        show_help(child, [*path, name])

with contextlib.redirect_stdout(io.StringIO()) as output:
    show_help(typer.main.get_command(cli.app), [])
assert "--quantise" in output.getvalue()
print(*{name.partition(".")[0] for name in sys.modules})
"""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands and groups, with the words that name them."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


COMMANDS = list(commands(typer.main.get_command(cli.app)))


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", ALL_HELP], check=True, capture_output=True, text=True)
    imported = set(done.stdout.split())
    assert {"abelnet", "typer"} <= imported
    heavy = {"torch", "numpy", "scipy", "sympy", "safetensors", "optuna", "matplotlib", "rich"}
    assert not heavy & imported


def test_errors_are_importable_without_torch() -> None:
    code = "import sys; from abelnet.errors import AbelnetError; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_are_all_commands() -> None:
    names = {" ".join(path) for path, command in COMMANDS if not getattr(command, "commands", {})}
    assert names == {
        "learn",
        "apply",
        "reproduce",
        "sets",
        "synthetic",
        "graphs",
        "certify",
        "explore",
        "export",
        "universality",
        "analogies run",
        "analogies table",
        "analogies several",
        "words evaluate",
        "words ask",
        "words complete",
        "words judge",
        "words convert",
    }


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) or "abelnet" for path, _ in COMMANDS])
def test_help_has_examples_that_parse(path: tuple[str, ...], command: Any) -> None:
    result = RUNNER.invoke(cli.app, [*path, "--help"])
    assert result.exit_code == 0, result.output
    assert "Example" in result.output
    lines = result.output.splitlines()
    assert len(lines) <= 40  # one screen
    assert max(map(len, lines)) <= 80
    joined = result.output.replace("\\\n", " ")
    examples = [line.strip() for line in joined.splitlines() if line.startswith("    abelnet ")]
    assert examples
    by_path = dict(COMMANDS)
    for example in examples:
        words = shlex.split(example)[1:]
        assert tuple(words[: len(path)]) == path
        depth = max(n for n in (1, 2) if tuple(words[:n]) in by_path)
        # Parsed, not run: an option that is unknown, or an argument that is missing, raises.
        by_path[tuple(words[:depth])].make_context("abelnet", words[depth:])


def test_summaries_of_commands_are_not_cut() -> None:
    for path, command in COMMANDS:
        if getattr(command, "commands", {}):
            assert "..." not in RUNNER.invoke(cli.app, [*path, "--help"]).output.partition("Commands:")[2]


def test_version() -> None:
    result = RUNNER.invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"abelnet {abelnet.__version__}\n"


def test_shell_completion() -> None:
    code = "import sys; sys.argv = ['abelnet']; from abelnet.cli import main; main()"
    for words, found in ("uni", ["universality"]), ("export law --dialect po", ["postgres", "polars"]):
        asked = {"COMP_WORDS": f"abelnet {words}", "COMP_CWORD": str(len(words.split()))}
        environment = os.environ | {"_ABELNET_COMPLETE": "complete_bash"} | asked
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.split() == found
    assert "--install-completion" in RUNNER.invoke(cli.app, ["--help"]).output


def test_an_error_of_the_caller_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "seed: expected one of [red] or [/], got " + "x" * 200 + "\nand more"

    def fail(**_: Any) -> None:
        raise abelnet.AbelnetError(message)

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    # Neither folded nor taken for markup.
    assert capsys.readouterr().err == f"abelnet: {message}\n".replace("\nand", " and")


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn", "a", "[red]\x1b[2J", "--value", "x", "--target", "y", "--out", "o"],
        ["[/]\x1b[2J"],
        ["learn", "--x\x1b[2J"],
    ],
)
def test_control_characters_in_arguments_are_escaped(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["abelnet", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert r"\x1b[2J" in error


def test_an_error_of_the_system_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(cli, "app", lambda **_: (tmp_path / "missing").read_text())
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"abelnet: {tmp_path / 'missing'}: No such file or directory\n"


def test_an_early_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupt)
    with pytest.raises(SystemExit) as stop:
        entry.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "abelnet: interrupted\n"


LONG = {
    "synthetic": ["--op", "sum", "--model", "agn", "--model", "asn", "--trials", "2", "--epochs", "10000000"],
    "analogies run": ["--model", "wv_agn", "--model", "wv_mlp", "--seeds", "1", "--epochs", "10000000"],
}
STARTED = {"synthetic": "search/*/*/claim.json", "analogies run": "parts/*.jsonl"}


def descendants(pid: int) -> set[int]:
    """Process ids of all children of a process, and of theirs."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = {int(child) for child in children.read_text().split()} if children.exists() else set()
    return found.union(*map(descendants, found))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("command", "send", "number", "early"),
    [
        ("synthetic", os.kill, signal.SIGINT, False),
        ("analogies run", os.kill, signal.SIGTERM, True),
    ],
)
def test_one_signal_ends_a_run_and_its_workers_in_one_line(
    command: str, send: Callable[[int, int], None], number: signal.Signals, early: bool, tmp_path: Path
) -> None:
    arguments = [sys.executable, "-m", "abelnet", *command.split(), *LONG[command], "--jobs", "2"]
    process = subprocess.Popen(
        [*arguments, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers: set[int] = set()

    def ready() -> bool:
        workers.update(descendants(process.pid))
        return len(workers) >= 3 and (
            early or len(list(tmp_path.glob(STARTED[command]))) >= 2
        )  # and a resource tracker

    try:
        wait_until(ready, process)  # type: ignore[arg-type]
        start = time.monotonic()
        send(process.pid, number)
        output, errors = process.communicate(timeout=60)
        seconds = time.monotonic() - start
    finally:
        process.kill()
        process.wait()
    assert errors == "abelnet: interrupted; run the same command again to resume\n"
    assert output == ""
    assert process.returncode == 128 + number
    assert seconds < 10
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "workers outlived their parent"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_commands_that_start_over_do_not_speak_of_resuming(number: signal.Signals) -> None:
    code = (
        "import sys, time; from abelnet import cli; sys.argv[1:] = ['learn', 'x.csv'];"
        "cli.app = lambda **_: (print('started', flush=True), time.sleep(60)); cli.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(number)
    assert process.communicate(timeout=30)[1] == "abelnet: interrupted\n"
    assert process.returncode == 128 + number


@pytest.mark.parametrize("arguments", [["--debug", "words"], ["words", "--debug"], ["words"]])
def test_a_traceback_is_shown_on_request(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*, args: list[str], **_: Any) -> None:
        assert args == ["words"]
        raise KeyError("x")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr("sys.argv", ["abelnet", *arguments])
    if "--debug" not in arguments:
        monkeypatch.setenv("ABELNET_DEBUG", "1")
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last):")
    line = "abelnet: internal error: KeyError: 'x'; please report it, with the output of --debug\n"
    assert error.endswith(line)
    monkeypatch.setattr("sys.argv", ["abelnet", "words"])
    monkeypatch.setenv("ABELNET_DEBUG", "0")
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["lern"], "abelnet: no such command 'lern'. Did you mean 'learn'? (see abelnet --help)"),
        (["words", "ask"], "abelnet: missing argument 'words' (see abelnet words ask --help)"),
        (["learn", "t.csv", "--seed", "-1"], "abelnet: invalid value for '--seed': -1 is not in the range x>=0 "),
        (["synthetic", "--seed", str(2**63)], f"abelnet: invalid value for '--seed': {2**63} is larger than {2**62} "),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["abelnet", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(line)
