"""`reduce` over many multisets: overhead over the bare minimum, and comparison with other learned aggregations.

First 10 million numbers in 100,000 sets, compared with hand-written φ → index_add → φ⁻¹. Then a size that all rivals
can run: PyG's LCMAggregation and SetTransformerAggregation, and genagg.
"""

from __future__ import annotations

import warnings

import torch
from _timing import interleave, report
from torch import Tensor

from abelnet import AbelianGroup, AbelianSemigroup, Affine, Bijection, RationalQuadraticSpline, SinhArcsinh, glow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from genagg import GenAgg
    from torch_geometric.nn.aggr import LCMAggregation, SetTransformerAggregation


def bare_minimum(bijection: Bijection, values: Tensor, index: Tensor, sets: int) -> Tensor:
    u = bijection(values)
    return bijection.inverse(u.new_zeros(sets, u.shape[-1]).index_add(0, index, u))


def overhead(elements: int, sets: int) -> None:
    values = torch.randn(elements, 1)
    index = torch.arange(sets).repeat_interleave(elements // sets)
    shuffled = index[torch.randperm(elements)]
    ptr = torch.arange(0, elements + 1, elements // sets)
    for bijection in (SinhArcsinh(1), Affine(1)):
        group = AbelianGroup(bijection)
        candidates = {
            "by hand, index_add": lambda bijection=bijection: bare_minimum(bijection, values, index, sets),
            "reduce(index=)": lambda group=group: group.reduce(values, index=index, dim_size=sets),
            "reduce(ptr=)": lambda group=group: group.reduce(values, ptr=ptr),
            "by hand, index_add, shuffled": lambda bijection=bijection: bare_minimum(bijection, values, shuffled, sets),
            "reduce(index=), shuffled": lambda group=group: group.reduce(values, index=shuffled, dim_size=sets),
        }
        with torch.no_grad():
            medians = interleave(candidates, rounds=7, warm_up=1)
        report(
            f"{elements:,} numbers in {sets:,} sets, {type(bijection).__name__}; times faster than by hand",
            medians,
            "by hand, index_add",
        )
        for order in ("", ", shuffled"):
            ratio = medians[f"reduce(index=){order}"] / medians[f"by hand, index_add{order}"]
            print(f"  reduce(index=){order} costs {ratio:.2f} of the same by hand")


def rivals(elements: int, sets: int, dim: int) -> None:
    values = torch.randn(elements, dim)
    index = torch.arange(sets).repeat_interleave(elements // sets)
    lcm = LCMAggregation(dim, dim, project=False)
    transformer = SetTransformerAggregation(dim, heads=4)
    general = GenAgg()
    operations = {
        "abelnet group, glow(2 layers, 64)": AbelianGroup(glow(dim, layers=2, hidden=64)),
        "abelnet group, spline": AbelianGroup(RationalQuadraticSpline(dim)),
        "abelnet semigroup, sinh-arcsinh": AbelianSemigroup(SinhArcsinh(dim)),
    }
    candidates = {
        "PyG LCMAggregation": lambda: lcm(values, index, dim_size=sets),
        "PyG SetTransformerAggregation": lambda: transformer(values, index, dim_size=sets),
        "genagg GenAgg": lambda: general(values, index, dim_size=sets),
    }
    for name, operation in operations.items():
        candidates[name] = lambda operation=operation: operation.reduce(values, index=index, dim_size=sets)
    with torch.no_grad():
        medians = interleave(candidates, rounds=5, warm_up=1)
    report(
        f"{elements:,} elements of {dim} dimensions in {sets:,} sets; times faster than LCM",
        medians,
        next(iter(medians)),
    )


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, no gradients")
    overhead(10_000_000, 100_000)
    rivals(100_000, 1_000, 32)


if __name__ == "__main__":
    main()
