"""Empirical checks of algebraic laws: rounding errors of an operation, and counterexamples for any function."""

from __future__ import annotations

__all__ = ["Counterexample", "Defect", "LawDefects", "find_counterexample", "law_defects"]

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from abelnet.checks import check_values
from abelnet.errors import AbelnetError
from abelnet.operation import Operation


@dataclass(frozen=True)
class Defect:
    """Largest difference between the two sides of a law, absolute and relative to the largest entry involved."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class LawDefects:
    """Largest defect of each law over all samples; None if the law does not apply to the operation."""

    associativity: Defect
    commutativity: Defect
    round_trip: Defect
    identity: Defect | None
    inverse: Defect | None

    def __str__(self) -> str:
        lines = [f"{'law':<14} {'absolute':>10} {'relative':>10}"]
        for name, defect in vars(self).items():
            numbers = f"{defect.absolute:10.2e} {defect.relative:10.2e}" if defect else f"{'–':>10} {'–':>10}"
            lines.append(f"{name.replace('_', ' '):<14} {numbers}")
        return "\n".join(lines)


@torch.no_grad()
def law_defects(operation: Operation, samples: Tensor) -> LawDefects:
    r"""Measures by how much an operation violates each of its laws, over triples of samples.

    The laws hold in exact arithmetic; the defects are rounding errors. The relative defect of a row is its largest
    absolute difference divided by the largest entry among all inputs and outputs of the operation there.

    Arguments:
        operation: The operation :math:`\circ`.
        samples: Elements to test, with shape :math:`(n, d)`.

    Example:
        >>> from abelnet import AbelianGroup, Monotonic
        >>> group = AbelianGroup(Monotonic(1, seed=0, dtype=torch.float64))
        >>> defects = law_defects(group, torch.randn(100, 1, dtype=torch.float64))
        >>> defects.associativity.relative < 1e-12
        True
    """
    check_values("samples", samples, operation.dim)
    if samples.ndim != 2 or len(samples) == 0:
        raise AbelnetError(f"samples: expected shape (n, {operation.dim}) with n > 0, got {tuple(samples.shape)}")
    x, y, z = samples, samples.roll(1, 0), samples.roll(2, 0)
    xy, yz = operation(x, y), operation(y, z)
    identity = inverse = None
    # An operation on a part of the vectors, such as those with a positive mass, may have no identity and no inverses.
    partial = nullcontext() if operation.bijection.is_elementwise else suppress(AbelnetError)
    if operation.law.identity(operation.dim) is not None:
        with partial:
            e = operation.identity().expand_as(x)
            identity = _defect(operation(x, e), x, e)
            if operation.is_group:
                opposite = operation.inverse(x)
                inverse = _defect(operation(x, opposite), e, x, opposite)
    return LawDefects(
        associativity=_defect(operation(xy, z), operation(x, yz), x, y, z, xy, yz),
        commutativity=_defect(xy, operation(y, x), x, y),
        round_trip=_defect(operation.bijection.inverse(operation.bijection(x)), x),
        identity=identity,
        inverse=inverse,
    )


@dataclass(frozen=True)
class Counterexample:
    """Elements that violate a law.

    Attributes:
        law: The violated law: commutativity, associativity, or permutation invariance.
        elements: The elements, :math:`(n, d)`.
        first: First side of the law.
        second: Second side of the law.
        values: Values of both sides, each :math:`(d)`.
    """

    law: str
    elements: Tensor
    first: str
    second: str
    values: tuple[Tensor, Tensor]

    def __str__(self) -> str:
        names = ", ".join(f"x{i + 1} = {x.tolist()}" for i, x in enumerate(self.elements))
        first, second = (value.tolist() for value in self.values)
        return f"no {self.law}: {self.first} = {first}, but {self.second} = {second}, at {names}"


@torch.no_grad()
def find_counterexample(
    function: Callable[..., Any],
    samples: Tensor,
    *,
    form: Literal["binary", "multiset"] = "binary",
    tolerance: float | None = None,
    trials: int = 1000,
    seed: int = 0,
) -> Counterexample | None:
    r"""Searches for elements that prove a function not to be an Abelian semigroup or its aggregation (Proposition 1).

    The aggregation :math:`x_1 \circ \dots \circ x_n` is permutation-invariant iff :math:`\circ` is commutative and
    associative. A binary function is tested for both laws, over triples of samples; a function of a multiset is tested
    under permutations of 2 to 6 samples, smallest sizes first. A counterexample is a proof, up to rounding; finding
    none is evidence, not a proof.

    Arguments:
        function: ``function(x, y)`` of two tensors :math:`(B, d)`, or ``function(elements)`` of one tensor
            :math:`(n, d)`; results have the shape of an element.
        samples: Elements to test, :math:`(n, d)`, at least 3.
        form: ``"binary"`` or ``"multiset"``.
        tolerance: Tolerance for rounding, relative to the largest entry involved; by default
            :math:`\epsilon^{0.4}`, which is 5e-7 in float64 and 2e-3 in float32.
        trials: Number of triples, or of permutations.
        seed: Random seed.

    Returns:
        The counterexample, or None. Non-finite values are not compared; raises if there are no others.

    Example:
        >>> samples = torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float64)
        >>> print(find_counterexample(lambda x, y: (x + y) / 2, samples))
        no associativity: (x1∘x2)∘x3 = [...], but x1∘(x2∘x3) = [...], at x1 = [...], x2 = [...], x3 = [...]
        >>> find_counterexample(lambda x, y: x + y + x * y / 2, samples) is None
        True
        >>> find_counterexample(lambda x: x.cumsum(0)[-1], samples, form="multiset") is None
        True
    """
    if not isinstance(samples, Tensor) or samples.ndim != 2 or len(samples) < 3 or not samples.is_floating_point():
        raise AbelnetError("samples: expected a floating-point tensor of shape (n, d) with n >= 3")
    if form not in ("binary", "multiset"):
        raise AbelnetError(f'form: expected "binary" or "multiset", got {form!r}')
    limit = torch.finfo(samples.dtype).eps ** 0.4 if tolerance is None else tolerance
    generator = torch.Generator().manual_seed(seed)
    compare = _compare_laws if form == "binary" else _compare_orders
    compared = False
    for law, first, second, elements, left, right, others in compare(function, samples, trials, generator):
        if left.shape != right.shape or left.shape != elements.shape[::2]:
            raise AbelnetError(
                f"function: expected results of shape {tuple(elements.shape[::2])} like the elements, "
                f"got {tuple(left.shape)} and {tuple(right.shape)}"
            )
        sound = (left.isfinite() & right.isfinite()).all(-1)
        compared = compared or bool(sound.any())
        sizes = [part.abs().reshape(len(left), -1).amax(1) for part in (left, right, elements, *others)]
        relative = (left - right).abs().amax(-1) / torch.stack(sizes).amax(0).clamp(min=torch.finfo(left.dtype).tiny)
        relative = torch.where(sound, relative, 0)
        worst = int(relative.argmax())
        if relative[worst] > limit:
            return Counterexample(law, elements[worst], first, second, (left[worst], right[worst]))
    if not compared:
        raise AbelnetError("function: expected finite results on some of the samples, got none")
    return None


_Comparison = tuple[str, str, str, Tensor, Tensor, Tensor, tuple[Tensor, ...]]


def _compare_laws(
    function: Callable[..., Any], samples: Tensor, trials: int, generator: torch.Generator
) -> Iterator[_Comparison]:
    """Yields both sides of each law over triples, with the other values involved."""
    picked = samples[torch.randint(len(samples), (trials, 3), generator=generator)]
    x, y, z = picked.unbind(1)
    xy = function(x, y)
    yield "commutativity", "x1∘x2", "x2∘x1", picked[:, :2], xy, function(y, x), ()
    yz = function(y, z)
    left, right = function(xy, z), function(x, yz)
    yield "associativity", "(x1∘x2)∘x3", "x1∘(x2∘x3)", picked, left, right, (xy, yz)


def _compare_orders(
    function: Callable[..., Any], samples: Tensor, trials: int, generator: torch.Generator
) -> Iterator[_Comparison]:
    """Yields the values of a multiset in two orders, one multiset at a time, smallest first."""
    for size in range(2, min(6, len(samples)) + 1):
        for _ in range(max(1, trials // 5)):
            elements = samples[torch.randperm(len(samples), generator=generator)[:size]]
            order = torch.randperm(size, generator=generator)
            left, right = (function(rows).reshape(1, -1) for rows in (elements, elements[order]))
            names = ", ".join(f"x{i + 1}" for i in range(size)), ", ".join(f"x{i + 1}" for i in order.tolist())
            yield "permutation invariance", f"f({names[0]})", f"f({names[1]})", elements[None], left, right, ()


def _defect(left: Tensor, right: Tensor, *others: Tensor) -> Defect:
    difference = (left - right).abs().amax(-1)
    scale = torch.stack([part.abs().amax(-1) for part in (left, right, *others)]).amax(0)
    relative = difference / scale.clamp(min=torch.finfo(scale.dtype).tiny)
    return Defect(difference.max().item(), relative.max().item())
