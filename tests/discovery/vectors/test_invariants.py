"""Invariants are found one at a time, each independent of those before it."""

from __future__ import annotations

import pytest
import torch
from vector_laws import CORE, WIDER, draw, spoil

from abelnet import Multisets
from abelnet.bijections.terms import Monomial, Power
from abelnet.discovery.vectors.invariants import Invariant, find_invariants, project, refit


def texts(found: list[Invariant], names: tuple[str, ...]) -> set[str]:
    import sympy

    from abelnet.discovery.printing import FormulaPrinter

    symbols = [sympy.Symbol(name) for name in names]
    return {FormulaPrinter(order=names).doprint(one.expression(symbols)) for one in found}


@pytest.mark.parametrize(
    ("name", "noise"), [("pooled variance", 0.0), ("complex product", 0.1), ("Gaussian fusion", 0.05)]
)
def test_textbook_invariants(name: str, noise: float) -> None:
    law = CORE[name]
    sets, target = spoil(*draw(law, 300, seed=3), noise, 0.0, 0.0, seed=3)
    found = find_invariants(Multisets.from_arrays(sets, target))
    assert texts(found, law.names) == set(law.invariants)
    for one in found:
        assert one.error <= 1.3 * noise + 1e-9


def test_swapped_results_do_not_matter() -> None:
    law = CORE["pooled variance"]
    sets, target = spoil(*draw(law, 300, seed=3), 0.0, 0.0, 0.03, seed=3)
    assert texts(find_invariants(Multisets.from_arrays(sets, target)), law.names) == set(law.invariants)


def test_exponentials_are_found_by_a_search() -> None:
    law = WIDER["mixing by pH"]
    found = find_invariants(Multisets.from_arrays(*draw(law, 200, seed=3)))
    assert texts(found, law.names) == set(law.invariants)


def test_results_are_moved_onto_known_invariants() -> None:
    mass = Invariant((Monomial((Power(0),)),), (1.0,), 0.0)
    results = torch.tensor([[2.0, 3.0], [4.0, 1.0]], dtype=torch.float64)
    sums = torch.tensor([[2.5], [3.9]], dtype=torch.float64)
    moved = project([mass], sums, results, torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(moved, torch.tensor([[2.5, 3.0], [3.9, 1.0]], dtype=torch.float64))


def test_refitted_coefficients() -> None:
    law = CORE["pooled variance"]
    examples = Multisets.from_arrays(*draw(law, 200, seed=4))
    n, mean, m2 = (Monomial((Power(i),)) for i in range(3))
    start = [
        Invariant((n,), (1.0,), 0.0),
        Invariant((Monomial((Power(0), Power(1))),), (1.0,), 0.0),
        Invariant((m2, Monomial((Power(0), Power(1, 2.0)))), (1.0, 0.7), 0.1),
    ]
    assert mean not in start[1].terms
    assert refit(examples, start)[2].coefficients == (1.0, 1.0)
