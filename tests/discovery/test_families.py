"""Laws of a few numbers: they fold as their operations do, and keep what the examples tell."""

from __future__ import annotations

import torch

from abelnet import Multisets
from abelnet.discovery.entry import Entry
from abelnet.discovery.families import fit_dictionary


def test_entries_are_what_their_operations_are() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(50, 3, generator=generator, dtype=torch.float64) * 0.8 + 0.1
    examples = Multisets(values[..., None], 1, targets=values.sum(1))
    for entry in (
        Entry("power", "sum", (3.0,), (0.5,)),
        Entry("logit", "sum", (), ()),
        Entry("arctanh", "product", (2.0,), (-0.3, 0.7)),
        Entry("exponential", "product", (0.5,), (0.2, -1.3)),
    ):
        folded = entry.operation().reduce(examples)[:, 0]
        torch.testing.assert_close(folded, entry.predict(examples), rtol=1e-10, atol=1e-10)
    assert next(fit_dictionary(examples)).title == "sum of affine"
