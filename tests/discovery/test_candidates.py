"""Networks that are trained where no formula fits."""

from __future__ import annotations

import pytest

from abelnet.discovery.candidates import train_abelian_net
from abelnet.experiments.synthetic.data import make_dataset


def test_abelian_net_becomes_what_the_examples_are() -> None:
    for name, wanted in (("sum_plus_one", 0.0), ("shifted_product", 0.5)):
        data = make_dataset(name, 0)
        fitted, held_out = data.train, data.validation
        candidate = train_abelian_net(fitted, held_out, epochs=500).judge(held_out)
        assert candidate.rmse < 1e-2 * float(held_out.targets.std())
        # γ times the slope of φ is the coefficient of xy near the identity, whatever the units of φ.
        operation = candidate.operation
        slope = operation.bijection.log_abs_det(operation.identity()).exp()
        mixed = float((operation.law.gamma * slope).detach())  # type: ignore[operator]
        assert mixed == pytest.approx(wanted, abs=1e-2)
