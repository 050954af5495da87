"""The complete set experiment, small: selection, resumption, added runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cases import killed_and_resumed

from abelnet import AbelnetError
from abelnet.experiments.sets.comparison import Experiment, run
from abelnet.experiments.sets.data import TASKS, Split
from abelnet.experiments.sets.models import AGGREGATIONS
from abelnet.files import read_json

pytestmark = pytest.mark.usefixtures("_units_here")


@pytest.mark.skipif("ABELNET_KILLS" not in os.environ, reason="takes many processes: see make test-kill")
def test_killed_and_resumed_it_comes_to_the_same_results(tmp_path: Path) -> None:
    options = ["--task", "digits", "--model", "lme", "--epochs", "2", "--runs", "2"]
    whole = killed_and_resumed(["sets", *options, "--jobs", "1"], tmp_path, ["models/*.json"])
    assert [len(row["runs"]) for row in whole["rows"]] == [2]


def test_selection_and_resumption(tmp_path: Path) -> None:
    options = {"tasks": ("digits",), "models": ("weighted",), "epochs": 1}
    first = run(Experiment(runs=1, **options), tmp_path)  # type: ignore[arg-type]
    assert read_json(tmp_path / "results.json") == first
    (row,) = first["rows"]
    assert [(one["lr"], one["weight_decay"]) for one in row["tried"]] == list(TASKS["digits"].choices)
    selected = row["runs"][0]
    assert selected["validation"] == max(one["validation"] for one in row["tried"])
    assert set(row["runs"][0]["accuracies"]) == {"20", "all"}
    assert row["runs"][0]["tested"] == 360

    # A second run is added, with settings of its own; what is there is not trained again.
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "models").iterdir()}
    second = run(Experiment(runs=2, **options), tmp_path)  # type: ignore[arg-type]
    assert second["rows"][0]["runs"][0] == row["runs"][0]
    assert len(second["rows"][0]["runs"]) == 2
    own = [one["validation"] for one in second["rows"][0]["tried"] if one["run"] == 1]
    assert len(own) == len(TASKS["digits"].choices)
    assert second["rows"][0]["runs"][1]["validation"] == max(own)
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "models").iterdir()}.items()

    # A lost model is trained to the same result.
    file = next(iter(kept))
    before = read_json(file)
    file.unlink()
    run(Experiment(runs=1, **options), tmp_path)  # type: ignore[arg-type]
    assert {**read_json(file), "seconds": 0} == {**before, "seconds": 0}


def test_without_validation_sets_nothing_is_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["digits"]

    def split(data: Path | None, number: int, seed: int) -> Split:
        known, _, test = task.split(data, number, seed)
        return Split(known.take(torch.arange(64)), known.take(torch.arange(0)), test)

    monkeypatch.setitem(TASKS, "digits", replace(task, split=split, choices=task.choices[:1]))
    (row,) = run(Experiment(tasks=("digits",), models=("max",), runs=1, epochs=1), tmp_path)["rows"]
    assert row["runs"][0]["validation"] is None
    assert row["runs"][0]["accuracies"]["all"] > 0


def test_units_and_bad_input() -> None:
    assert len(Experiment().units) == 2 * len(AGGREGATIONS)
    for name, wrong in (("tasks", "iris"), ("models", "median")):
        with pytest.raises(AbelnetError, match=rf"^{name[:-1]}: expected one of .* got '{wrong}'"):
            Experiment(**{name: (wrong,)})  # type: ignore[arg-type]
    for name in ("runs", "epochs"):
        with pytest.raises(AbelnetError, match=f"^{name}: expected at least 1, got 0"):
            Experiment(**{name: 0})  # type: ignore[arg-type]
