"""Models with settings that were chosen before, trained as one stack."""

from __future__ import annotations

import pytest
import torch

from abelnet.experiments.synthetic.chosen import CHOSEN, train_chosen
from abelnet.experiments.synthetic.comparison import MODELS, SIZES
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.operation import Operation


@pytest.mark.parametrize("model", MODELS)
def test_settings_are_of_the_search_space(model: str) -> None:
    assert list(CHOSEN[model]) == list(OPERATIONS)
    for parameters in CHOSEN[model].values():
        assert set(parameters) == set(MODELS[model].space)


@pytest.mark.parametrize("model", ["deepsets", "asn"])
def test_rows(model: str) -> None:
    epochs = 0

    def on_epoch() -> None:
        nonlocal epochs
        epochs += 1

    names = ("sum", "cbrt")
    rows, models = train_chosen(model, operations=names, epochs=2, on_epoch=on_epoch)
    assert epochs == 2
    assert [(row.operation, row.model) for row in rows] == [(name, model) for name in names]
    for row in rows:
        assert len(row.small) == len(row.large) == 2
        assert [entry["size"] for entry in row.by_size] == list(SIZES)
        assert all(len(entry["rmse"]) == 2 and entry["scale"] > 0 for entry in row.by_size)
        assert (row.curve is None) == (model == "deepsets")
    assert list(models) == list(names)


def test_results_are_those_of_the_model_returned() -> None:
    rows, models = train_chosen("agn", operations=("sum",), seeds=1, epochs=1)
    operation = models["sum"]
    assert isinstance(operation, Operation)
    with torch.no_grad():
        values = operation.bijection(torch.linspace(-5, 5, 101)[:, None])[:, 0].tolist()
    assert rows[0].curve == values
    again, _ = train_chosen("agn", operations=("cbrt", "sum"), seeds=1, epochs=1)
    assert again[1].small == pytest.approx(rows[0].small, rel=1e-4)  # models of a stack do not depend on each other
