"""Laws side by side: each is what it is alone, whatever is beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from abelnet import Multisets
from abelnet.bijections import FAMILIES
from abelnet.discovery.entry import Entry, losses
from abelnet.discovery.stack import Stack

VALUES = torch.rand(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 0.8 + 0.1
EXAMPLES = Multisets(VALUES[..., None], 1, targets=VALUES.amin(1) / 2)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize(
    ("form", "coefficients"), [("sum", ()), ("sum", (0.3,)), ("mean", ()), ("product", (0.2, -1.5))]
)
def test_each_family_side_by_side(kind: str, form: str, coefficients: tuple[float, ...]) -> None:
    family = FAMILIES[kind]
    starts = family.starts(EXAMPLES.values, EXAMPLES.targets)
    if not starts:
        pytest.skip("no initial values for these examples")
    stack = Stack(kind, form, np.array(starts), np.tile(coefficients, (len(starts), 1)))
    together = stack.predict(EXAMPLES)
    for theta, results in zip(starts, together, strict=True):
        latent = family.forward(EXAMPLES.values, *theta)
        assert np.isfinite(latent.numpy()).all()
        alone = Entry(kind, form, theta, coefficients).predict(EXAMPLES).numpy()
        np.testing.assert_allclose(results, alone, rtol=1e-12)


def test_capped_sums_and_unsound_laws() -> None:
    entries = [Entry("positive power", "sum", (p,), (), bound=1.0) for p in (1.0, 2.0, 0.0, -1.0)]
    found = losses(entries, EXAMPLES)
    assert found[:2] == pytest.approx([entry.loss(EXAMPLES) for entry in entries[:2]])
    assert found[2] == float("inf")
    assert (Stack("positive power", "sum", np.ones((1, 1)), np.empty((1, 0)), 1.0).predict(EXAMPLES) <= 1).all()
