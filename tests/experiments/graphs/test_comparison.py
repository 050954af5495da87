"""The complete graph experiment, small: selection, resumption, added seeds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases import killed_and_resumed

from abelnet import AbelnetError
from abelnet.experiments.graphs.comparison import PLACES, RATES, Experiment, median, run
from abelnet.experiments.graphs.data import TASKS
from abelnet.experiments.graphs.models import CHANNELS, FORMS
from abelnet.experiments.graphs.rivals import AGGREGATIONS, BARE
from abelnet.files import read_json

pytest.importorskip("torch_geometric")
pytestmark = pytest.mark.usefixtures("_units_here")


@pytest.mark.skipif("ABELNET_KILLS" not in os.environ, reason="takes many processes: see make test-kill")
def test_killed_and_resumed_it_comes_to_the_same_results(tmp_path: Path) -> None:
    options = ["--task", "median", "--form", "aligned", "--model", "quann", "--steps", "20", "--seeds", "2"]
    whole = killed_and_resumed(["graphs", *options, "--jobs", "1"], tmp_path, ["models/*.json"])
    assert [len(row["runs"]) for row in whole["rows"]] == [2]


def test_selection_and_resumption(tmp_path: Path) -> None:
    options = {"tasks": ("min_plus",), "forms": ("aligned",), "models": ("min", "quann"), "steps": 4}
    first = run(Experiment(seeds=1, **options), tmp_path)  # type: ignore[arg-type]
    assert read_json(tmp_path / "results.json") == first
    exact, other = first["rows"]
    assert exact["selected"]["start"] == BARE
    assert max(exact["runs"][0]["errors"].values()) < 1e-6
    assert len(other["tried"]) == len(RATES["aligned"]) + 1
    best = min(other["tried"], key=lambda one: one["validation"])
    assert other["selected"] == {key: best[key] for key in ("start", "lr", "loss")}
    assert set(other["runs"][0]["errors"]) == set(PLACES)

    # A second seed is added; what is there is not trained again.
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "models").iterdir()}
    second = run(Experiment(seeds=2, **options), tmp_path)  # type: ignore[arg-type]
    assert [row["runs"][0] for row in second["rows"]] == [row["runs"][0] for row in first["rows"]]
    assert [len(row["runs"]) for row in second["rows"]] == [2, 2]
    assert second["rows"][1]["runs"][1]["errors"] != other["runs"][0]["errors"]
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "models").iterdir()}.items()

    # A lost model is trained to the same result.
    file = next(path for path in kept if "quann" in path.name)
    before = read_json(file)
    file.unlink()
    run(Experiment(seeds=1, **options), tmp_path)  # type: ignore[arg-type]
    again = read_json(file)
    assert {**again, "seconds": 0} == {**before, "seconds": 0}
    file.write_text("{}")
    with pytest.raises(AbelnetError, match=r"expected the key 'seed', got .*; remove it, and run the same command"):
        run(Experiment(seeds=1, **options), tmp_path)  # type: ignore[arg-type]


def test_units_and_median() -> None:
    units = Experiment(tasks=("median",)).units
    assert len(units) == 2 * len(AGGREGATIONS) - 1  # the minimum is aligned alone
    assert len(set(units)) == len(units)
    assert len(Experiment().units) == len(units) * len(TASKS)
    assert median([1.0, None, 2.0]) == 2
    assert median([None, None, 2.0]) == float("inf")


def test_bad_input(tmp_path: Path) -> None:
    for name, wrong in (("tasks", "xor"), ("forms", "free"), ("models", "gcn")):
        with pytest.raises(AbelnetError, match=rf"^{name[:-1]}: expected one of .* got '{wrong}'"):
            Experiment(**{name: (wrong,)})  # type: ignore[arg-type]
    for name in ("seeds", "steps"):
        with pytest.raises(AbelnetError, match=f"^{name}: expected at least 1, got 0"):
            Experiment(**{name: 0})  # type: ignore[arg-type]
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(AbelnetError, match=r"folder: expected .* to be empty or have the same settings"):
        run(Experiment(models=("quann",)), tmp_path)


def test_ours_has_one_loss_and_names_its_laws(tmp_path: Path) -> None:
    experiment = Experiment(tasks=("parallel",), models=("bank",), seeds=1, steps=4)
    for row, form in zip(run(experiment, tmp_path)["rows"], FORMS, strict=True):
        assert {one["loss"] for one in row["tried"]} == {"robust"}
        assert {one["lr"] for one in row["tried"]} == set(RATES[form])
        assert len(row["runs"][0]["laws"]) == CHANNELS[form]
        assert all(row["runs"][0]["laws"])
