"""The complete synthetic experiment, small: killed and resumed, and its report."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import killed_and_resumed
from typer.testing import CliRunner

from abelnet import AbelnetError, cli
from abelnet.experiments.synthetic.comparison import Experiment, run
from abelnet.reporting import synthetic as report

OPTIONS = [
    "--op",
    "sum",
    "--op",
    "product",
    "--trials",
    "8",
    "--seeds",
    "2",
    "--epochs",
    "8",
    "--jobs",
    "2",
    "--prune",
]


def test_killed_and_resumed_it_comes_to_the_same_results(tmp_path: Path) -> None:
    # One unit still trains or has yet to train its tuned models, then one is done and others are not.
    whole = killed_and_resumed(["synthetic", *OPTIONS], tmp_path, ["search/*/*/values.json", "parts/*.json"])
    page = (tmp_path / "whole" / "table.html").read_text()
    assert "x + y" in page
    assert "class=best" in page
    assert "data:image/png" in page
    assert "| x + y | 2–4 |" in (tmp_path / "whole" / "table.md").read_text()
    assert (tmp_path / "whole" / "error_by_size.png").stat().st_size > 10_000
    for row in whole["rows"]:
        assert len(row["trials"]) == 8
        assert {trial["pruned_after"] for trial in row["trials"]} >= {None, 2}
        assert len(row["small"]) == len(row["large"]) == 2


def test_winners_are_marked_among_ours_and_among_the_papers() -> None:
    rows = [
        {"operation": "cbrt", "model": model, "small": small, "large": [1.0, 2.0, None]}
        for model, small in (("deepsets", [3.0, 1.0, 2.0]), ("agn", [0.5, 9.0, None]), ("asn", [4.0, 4.0, 4.0]))
    ]
    _, heading, table = report.synthetic_table({"rows": rows})
    assert heading[2:] == ["DeepSets", "AGN", "ASN", "DeepSets (paper)", "AGN (paper)", "ASN (paper)"]
    assert [best for _, best in table[0]] == [False, False, True, False, False, True, False, False]
    assert table[0][2][0] == "2.00e+00 (1.0e+00 – 3.0e+00)"


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"op: expected one of sum, .* got 'minus'"):
        Experiment(operations=("minus",))
    for name in ("trials", "batch", "seeds", "epochs"):
        with pytest.raises(AbelnetError, match=f"^{name}: expected at least 1, got 0"):
            Experiment(**{name: 0})  # type: ignore[arg-type]
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(AbelnetError, match=r"folder: expected .* to be empty or of the same settings"):
        run(Experiment(), tmp_path)
    assert "--quick" in CliRunner().invoke(cli.app, ["synthetic", "--help"]).output
