"""Laws of the aggregation literature: found from examples, by the family that generates them, and named."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from abelnet import Multisets
from abelnet.bijections import FAMILIES
from abelnet.discovery.entry import Entry
from abelnet.discovery.families import fit_dictionary

# Family, form, parameters and coefficients, the range of elements, and the name.
LAWS = {
    "einstein": ("positive power", "product", (-1.0,), (0.5, 2.0), 0.01, 1.0, "Einstein product"),
    "hamacher": ("positive power", "product", (-1.0,), (-4.0, 0.2), 0.01, 1.0, "Ali–Mikhail–Haq copula, θ=0.8"),
    "frank": ("exponential", "product", (-2.0,), (1.0, 1 / math.expm1(-2)), 0.0, 1.0, "Frank copula, θ=2"),
    "log-sum-exp": ("exponential", "sum", (1.0,), (), -5.0, 5.0, "log-sum-exp"),
    "far": ("centered exponential", "sum", (2.0, 1e6), (), 1e6 - 3, 1e6 + 3, "log-sum-exp, k=2"),
    "gumbel": ("power of logarithm", "sum", (2.0,), (), 0.01, 1.0, "Gumbel copula, θ=2"),
    "dombi": ("power of odds", "sum", (-2.0,), (), 0.0, 0.99, "Dombi t-conorm, λ=2"),
    "joe": ("reflected power", "product", (1.0, 2.0), (1.0, -1.0), 0.0, 1.0, "Joe copula, θ=2"),
    "nelsen 20": ("exponential of power", "sum", (1.0, 0.5), (), 0.01, 1.0, "Nelsen's copula 4.2.20, θ=0.5"),
}


@torch.no_grad()
def folded(entry: Entry, examples: Multisets) -> torch.Tensor:
    return entry.operation().reduce(examples)[:, 0]


def examples_of(entry: Entry, low: float, high: float, count: int = 200) -> Multisets:
    random = np.random.default_rng(1)
    sets = [torch.from_numpy(random.uniform(low, high, size))[:, None] for size in random.integers(2, 5, count)]
    examples = Multisets(torch.cat(sets), 1, ptr=torch.tensor([0, *np.cumsum([len(one) for one in sets])]))
    return Multisets(examples.values, 1, ptr=examples.ptr, targets=folded(entry, examples))


@pytest.mark.parametrize(("kind", "form", "theta", "coefficients", "low", "high", "name"), LAWS.values(), ids=LAWS)
def test_laws_are_found_and_named(
    kind: str, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...], low: float, high: float, name: str
) -> None:
    truth = Entry(kind, form, theta, coefficients)
    examples = examples_of(truth, low, high)
    found = next(
        entry
        for entry in fit_dictionary(examples, [kind], forms=(form,))
        if entry.kind == kind and entry.loss(examples) < 1e-18 * float(examples.targets.var())
    ).rounded(examples)
    assert found.family.name_of(found.form, found.theta, found.coefficients) == name
    large = examples_of(truth, low, high, 50)
    torch.testing.assert_close(folded(found, large), large.targets, rtol=1e-6, atol=1e-9)


def test_special_families_are_tried_where_they_can_hold() -> None:
    values = torch.linspace(-2, 2, 50, dtype=torch.float64)[:, None]
    for family in FAMILIES.values():
        for theta in family.starts(values, values[:, 0]):
            low, high = family.domain(*theta)
            assert bool(((values > low) & (values < high)).all()), family.name
    unit = (values + 2) / 5 + 0.1
    assert FAMILIES["power of odds"].starts(unit, unit[:, 0] / 2)[0][0] > 0
    assert FAMILIES["power of odds"].starts(unit, unit[:, 0] + 0.05)[0][0] < 0
    assert not FAMILIES["power of odds"].starts(unit, unit[:, 0] + 2)
