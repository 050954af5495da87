"""The commands that run experiments, small."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from abelnet import LawRegressor, cli
from abelnet.experiments import reproduction
from abelnet.experiments import universality as experiment
from abelnet.experiments.graphs.data import TASKS
from abelnet.experiments.graphs.models import FORMS
from abelnet.experiments.graphs.rivals import AGGREGATIONS
from abelnet.experiments.sets.data import TASKS as SET_TASKS
from abelnet.experiments.sets.models import AGGREGATIONS as SET_AGGREGATIONS
from abelnet.experiments.synthetic.comparison import MODELS
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.experiments.universality import read_universality

RUNNER = CliRunner()
pytestmark = pytest.mark.usefixtures("_saved_before_shown", "_units_here")


def test_reproduce_prints_the_experiments_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "_ANALOGIES", ("wv", "wv_mlp"))
    monkeypatch.setattr(reproduction, "_SHOWN", ("wv", "wv_mlp"))
    monkeypatch.setattr(reproduction, "_SEVERAL", "wv_mlp")
    monkeypatch.setattr(reproduction, "_SHOTS", (1,))
    monkeypatch.setattr(reproduction, "_LARGEST", 4)
    monkeypatch.setattr(reproduction, "_MEASURED", 10)
    options = ["--epochs", "1", "--network-epochs", "1", "--out", str(tmp_path)]
    result = RUNNER.invoke(cli.app, ["reproduce", *options])
    assert result.exit_code == 0, result.output
    for text in ("x + y + 1", "cbrt(x³ + y³)", "x + y + 0.5·x·y", "10–12", "assoc.", "Google pairs test", "Syntactic"):
        assert text in result.output
    for text in ("DeepSets (paper)", "joined, AGN", "x∘y = x + y + x·y (compound returns)"):
        assert text in result.output
    assert "…" not in result.output
    assert f"written: {tmp_path / 'index.html'}" in result.output
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 5 + 5 + 3 + 2 + 3  # errors, curves, certificates, example pairs, table
    assert (tmp_path / "returns.csv").is_file()


def test_synthetic(tmp_path: Path) -> None:
    options = ["--op", "sum", "--model", "agn", "--trials", "1", "--seeds", "1", "--epochs", "1", "--jobs", "1"]
    result = RUNNER.invoke(cli.app, ["synthetic", *options, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "done: agn on x + y" in result.output
    assert "AGN (paper)" in result.output
    assert "…" not in result.output
    for name in ("table.md", "table.html", "error_by_size.png", "learned_curves.png"):
        assert f"written: {tmp_path / name}" in result.output
        assert (tmp_path / name).stat().st_size > 500
    assert "| x + y | 2–4 |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "data:image/png" in (tmp_path / "table.html").read_text(encoding="utf-8")


def test_graphs(tmp_path: Path) -> None:
    options = [
        "--task",
        "median",
        "--form",
        "aligned",
        "--model",
        "quann",
        "--steps",
        "2",
        "--seeds",
        "1",
        "--jobs",
        "1",
    ]
    result = RUNNER.invoke(cli.app, ["graphs", *options, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "done: QUANN on median (no law), aligned" in result.output
    assert "200 nodes, degree 15" in result.output
    for name in ("table.md", "table.html", "errors_aligned.png"):
        assert f"written: {tmp_path / name}" in result.output
        assert (tmp_path / name).stat().st_size > 500
    assert "| median (no law) | median x | **" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_sets(tmp_path: Path) -> None:
    options = ["--task", "digits", "--model", "lme", "--epochs", "1", "--runs", "1", "--jobs", "1"]
    result = RUNNER.invoke(cli.app, ["sets", *options, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "done: log-mean-exp (ours) on digits, trained on 20 points" in result.output
    for name in ("table.md", "table.html", "accuracy_digits.png"):
        assert f"written: {tmp_path / name}" in result.output
        assert (tmp_path / name).stat().st_size > 500
    assert "| log-mean-exp (ours) | **" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_help_names_all_operations_and_models() -> None:
    for command, names in (
        ("synthetic", (*OPERATIONS, *MODELS)),
        ("graphs", (*TASKS, *FORMS, *AGGREGATIONS)),
        ("sets", (*SET_TASKS, *SET_AGGREGATIONS)),
    ):
        text = RUNNER.invoke(cli.app, [command, "--help"]).output
        for name in names:
            assert name in text


def test_certify(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(-5, 5, n) for n in generator.integers(2, 5, 40)]
    LawRegressor().fit(sets, [one.sum() + len(one) - 1 for one in sets]).save(tmp_path / "law")
    options = ["--truth", "sum_plus_one", "--size", "6", "--sets", "50", "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(cli.app, ["certify", str(tmp_path / "law"), *options])
    assert result.exit_code == 0, result.output
    assert "Theorem 3" in result.output
    assert "nothing is sampled" in result.output
    text = (tmp_path / "out" / "certificate.md").read_text(encoding="utf-8")
    assert "| size | measured | ours | Theorem 3 |\n|--:|--:|--:|--:|\n| 2 |" in text
    assert (tmp_path / "out" / "certificate.png").stat().st_size > 5_000
    assert (tmp_path / "out" / "certificate.html").stat().st_size > 5_000


def test_universality(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(experiment.universality, networks=((1, 4),), sets=64)
    monkeypatch.setattr(experiment, "universality", small)
    result = RUNNER.invoke(cli.app, ["universality", "--dim", "2", "--epochs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "R^2, seed 0, DeepSets: RMSE at size 2: " in result.output
    rows = read_universality(tmp_path / "universality.json")
    assert [row.model for row in rows] == ["AGN 1 × 4", "DeepSets"]
    for name in ("universality.json", "universality.md", "universality.html", "universality.png"):
        assert f"written: {tmp_path / name}" in result.output
        assert (tmp_path / name).is_file()
