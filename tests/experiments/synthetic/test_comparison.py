"""The complete synthetic experiment, small: killed and resumed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases import killed_and_resumed

from abelnet import AbelnetError
from abelnet.experiments.synthetic.comparison import SIZES, Experiment, run
from abelnet.files import read_json

OPTIONS = ["--op", "sum", "--trials", "6", "--seeds", "2", "--epochs", "4", "--jobs", "1", "--prune"]


@pytest.mark.skipif("ABELNET_KILLS" not in os.environ, reason="takes many processes: see make test-kill")
def test_killed_and_resumed_it_comes_to_the_same_results(tmp_path: Path) -> None:
    # One unit is done, one is at work, one has yet to start.
    whole = killed_and_resumed(["synthetic", *OPTIONS], tmp_path, ["parts/*.json"])
    for row in whole["rows"]:
        assert len(row["trials"]) == 6
        assert {trial["pruned_after"] for trial in row["trials"]} >= {None, 2}
        assert len(row["small"]) == len(row["large"]) == 2
        assert len({*row["seeds"], *row["data_seeds"]}) == 4  # a model and its data share no random numbers
        assert set(row["chosen"]) == {"small", "large"}


@pytest.mark.usefixtures("_units_here")
def test_multiset_sizes_are_numbers_when_they_are_read_back(tmp_path: Path) -> None:
    experiment = Experiment(operations=("sum",), models=("agn",), trials=1, batch=1, seeds=2, epochs=1)
    results = run(experiment, tmp_path)
    assert read_json(tmp_path / "results.json") == results
    (row,) = results["rows"]
    assert [entry["size"] for entry in row["by_size"]] == list(SIZES)
    assert all(len(entry["rmse"]) == 2 for entry in row["by_size"])

    tested = next(tmp_path.glob("search/*/*/tested.json"))
    tested.write_text("{}")
    assert run(experiment, tmp_path)["rows"] == results["rows"]  # the part is finished
    part = next(tmp_path.glob("parts/*.json"))
    part.write_text("{}")
    with pytest.raises(AbelnetError, match=r"sum-agn\.json: content: expected the key .*; remove it, and run"):
        run(experiment, tmp_path)
    part.unlink()
    with pytest.raises(AbelnetError, match=r"tested\.json: .* the key 'small', got .*; remove values.json beside it"):
        run(experiment, tmp_path)
    tested.with_name("values.json").unlink()
    again = run(experiment, tmp_path)["rows"][0]
    assert {key: again[key] for key in again if key != "seconds"} == {key: row[key] for key in row if key != "seconds"}


@pytest.mark.usefixtures("_units_here")
def test_results_beyond_float32_have_no_error(tmp_path: Path) -> None:
    experiment = Experiment(operations=("product",), models=("agn",), trials=1, batch=1, seeds=2, epochs=1)
    (row,) = run(experiment, tmp_path)["rows"]
    errors = {entry["size"]: entry["rmse"] for entry in row["by_size"]}
    assert None not in errors[2]
    assert errors[100] == [None, None]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"op: expected one of sum, .* got 'minus'"):
        Experiment(operations=("minus",))
    for name in ("trials", "batch", "seeds", "epochs"):
        with pytest.raises(AbelnetError, match=f"^{name}: expected at least 1, got 0"):
            Experiment(**{name: 0})  # type: ignore[arg-type]
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(AbelnetError, match=r"folder: expected .* to be empty or have the same settings"):
        run(Experiment(), tmp_path)
