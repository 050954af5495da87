"""The search: deterministic, killed and resumed, shared by processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cases import kill_when, wait_until

from abelnet import AbelnetError
from abelnet.training.tuning import Candidate, Choice, Integer, Pruned, Range, Real, Search, Trial

SPACE: dict[str, Range] = {"x": Real(-5, 5), "n": Integer(0, 3)}
# Hangs for good where it is told to: while trials are drawn, while they are evaluated, or before values are written.
SCRIPT = """
import os, sys, time
from pathlib import Path
import optuna
from abelnet.training import tuning

folder, log, where, number, pause = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])

def say(text):
    with log.open("a") as file:
        file.write(f"{os.getpid()} {text}\\n")

def hang():
    say("hangs")
    time.sleep(600)

def evaluate(candidates, folder):
    for candidate in candidates:
        say(candidate.number)
    if where == "evaluate" and candidates[0].number == number:
        hang()
    time.sleep(pause)
    return [(c.parameters["x"] - 2) ** 2 + c.parameters["n"] for c in candidates]

drawn, write = [], tuning.write_json

def suggest_int(trial, name, low, high, suggest=optuna.Trial.suggest_int):
    drawn.append(name)
    if where == "draw" and len(drawn) == number:
        hang()
    return suggest(trial, name, low, high)

def write_json(path, content):
    if where == "write" and path.parent.name == f"{number:06d}" and path.name == "values.json":
        hang()
    write(path, content)

optuna.Trial.suggest_int, tuning.write_json = suggest_int, write_json
space = {"x": tuning.Real(-5, 5), "n": tuning.Integer(0, 3)}
tuning.Search(folder, "study", space, trials=24, batch=4, seed=1).run(evaluate)
"""


def start(
    folder: Path, log: Path, where: str = "nowhere", number: int = 0, pause: float = 0.0
) -> subprocess.Popen[bytes]:
    options = [str(folder), str(log), where, str(number), str(pause)]
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *options])


def search(folder: Path) -> Search:
    return Search(folder, "study", SPACE, trials=24, batch=4, seed=1)


def test_killed_at_any_point_it_comes_to_the_same_trials(tmp_path: Path) -> None:
    assert start(tmp_path / "whole", tmp_path / "log").wait() == 0
    done = []
    # Past ten finished trials the sampler learns from them, so that whatever a kill has changed would show.
    for where, number in (("write", 4), ("evaluate", 12), ("draw", 3)):
        log = tmp_path / f"{where}{number}"
        kill_when(start(tmp_path / "killed", log, where, number), lambda log=log: "hangs" in _text(log))
        done.append(len(search(tmp_path / "killed").finished()))
    assert done == [4, 12, 16]  # each left work undone
    assert start(tmp_path / "killed", tmp_path / "log").wait() == 0
    whole = search(tmp_path / "whole").finished()
    assert [trial.number for trial in whole] == list(range(24))
    assert search(tmp_path / "killed").finished() == whole
    assert min(trial.value or 0 for trial in whole) < 0.5


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_two_processes_share_a_search(tmp_path: Path) -> None:
    processes = [start(tmp_path / "shared", tmp_path / "log", pause=0.3) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(int(number) for _, number in lines) == list(range(24))  # none lost, none twice
    assert len({owner for owner, _ in lines}) == 2  # and both had work
    assert [trial.number for trial in search(tmp_path / "shared").finished()] == list(range(24))


def test_a_claim_is_free_once_its_process_is_dead_and_not_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start(tmp_path / "one", log, "evaluate", 0)
    taken: list[int] = []

    def evaluate(candidates: list[Candidate], _: Path) -> list[float]:
        taken.append(candidates[0].number)
        if len(taken) == 1:
            kill_when(process, lambda: True)
        return [float(candidate.number) for candidate in candidates]

    wait_until(lambda: "hangs" in _text(log), process)
    search(tmp_path / "one").run(evaluate)
    assert taken == [4, 0, 8, 12, 16, 20]


def test_values_that_are_not_finite_do_not_win(tmp_path: Path) -> None:
    search = Search(tmp_path, "study", {"x": Integer(1, 9)}, trials=6, batch=3)
    best = search.run(lambda candidates, _: [float("nan") if c.number % 2 else float(c.number) for c in candidates])
    assert best.number == 0
    assert [trial.value for trial in search.finished()] == [0.0, None, 2.0, None, 4.0, None]
    counts: list[int] = []
    Search(tmp_path, "other", {"x": Integer(1, 9)}, trials=5, batch=2).run(
        lambda candidates, _: [1.0 for _ in candidates], on_trials=counts.append
    )
    assert counts == [2, 4, 5]


def test_a_resumed_search_learns_from_pruned_trials_and_choices_too(tmp_path: Path) -> None:
    space = {"x": Real(1e-3, 10, log=True), "kind": Choice(("a", "b")), "fixed": Integer(3, 3)}

    def evaluate(candidates: list[Candidate], _: Path) -> list[float | Pruned]:
        values = [abs(c.parameters["x"] - 1) + (c.parameters["kind"] == "a") for c in candidates]
        return [Pruned(v, 5) if c.number % 3 == 1 else v for c, v in zip(candidates, values, strict=True)]

    Search(tmp_path, "whole", space, trials=24, batch=4).run(evaluate)
    whole = Search(tmp_path, "whole", space, trials=24, batch=4).finished()
    for trials in range(4, 25, 4):
        Search(tmp_path, "parts", space, trials=trials, batch=4).run(evaluate)
    assert Search(tmp_path, "parts", space, trials=24, batch=4).finished() == whole
    assert whole[1] == Trial(1, whole[1].parameters, None, pruned_after=5)
    assert {trial.parameters["fixed"] for trial in whole} == {3}


def test_it_needs_nothing_that_windows_lacks() -> None:
    script = "import sys; sys.modules['fcntl'] = None; import abelnet.experiments.synthetic.comparison, abelnet.cli"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"^trials: expected at least 1, got 0"):
        Search(tmp_path, "study", {}, trials=0)
    with pytest.raises(AbelnetError, match=r"^batch: expected at least 1, got -1"):
        Search(tmp_path, "study", {}, trials=1, batch=-1)
    search = Search(tmp_path, "study", {"x": Integer(1, 9)}, trials=2)
    with pytest.raises(AbelnetError, match="evaluate: expected 2 values, got 1"):
        search.run(lambda candidates, _: [1.0])
    with pytest.raises(AbelnetError, match="expected a trial with a finite value"):
        Search(tmp_path, "empty", {"x": Integer(1, 9)}, trials=2).best()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "claim.json",
            "[",
            "claim.json: expected JSON .* a damaged file .*remove the folder .*study to search again",
        ),
        (
            "claim.json",
            "[1]",
            "claim.json: content, element: expected dict, got 1; remove the folder .*study to search again",
        ),
        (
            "claim.json",
            '[{"number": 0, "parameters": {}}]',
            "expected the key 'x', got .*; remove the folder .*study to search again",
        ),
        ("claim.json", '[{"number": 0, "parameters": {"x": 99}}]', "expected trials of the search study, got: .*99"),
        ("values.json", "[", "values.json: expected JSON .*; remove it to evaluate its trials again"),
        ("values.json", "[]", "values.json: expected 1 of COMPLETE, PRUNED, FAIL, got "),
        (
            "values.json",
            '[{"state": "x", "value": 1.0, "steps": null}]',
            r"values.json: expected 1 of .*, got \['x'\]",
        ),
        ("values.json", '[{"state": "COMPLETE", "value": "1", "steps": null}]', "value: expected float .*, got '1'"),
        ("values.json", '[{"state": "COMPLETE", "value": null, "steps": null}]', "expected trials of the search study"),
    ],
)
def test_a_damaged_journal_is_one_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    space = {"x": Integer(1, 9)}
    Search(tmp_path, "study", space, trials=1).run(lambda candidates, _: [1.0 for _ in candidates])
    (tmp_path / "study" / "000000" / name).write_text(content)
    with pytest.raises(AbelnetError, match=message) as caught:
        Search(tmp_path, "study", space, trials=2).run(lambda candidates, _: [1.0 for _ in candidates])
    assert "000000" in str(caught.value)
    assert "\n" not in str(caught.value)
