r"""Size-generalization certificates: error bounds for multisets larger than those an operation was tested on.

Three bounds on the error of :math:`\varphi^{-1}(\sum_i \varphi(x_i))` at size :math:`b`, and what each depends on:

- :func:`size_bound`, Theorem 3 of the paper: the error up to size :math:`a` and two Lipschitz constants;
- :func:`merge_bound`: the same numbers, never above Theorem 3;
- :func:`generator_bound`: the true operation, in one dimension, for groups and semigroups.

:func:`assumed_bound` chooses the best bound without the true operation, in one dimension, for any law.

Proofs are in ``docs/theory.md``. The bounds are proved in exact arithmetic; rounding is not accounted for.
"""

from __future__ import annotations

__all__ = [
    "GeneratorBound",
    "Lipschitz",
    "SizeBound",
    "assumed_bound",
    "generator_bound",
    "lipschitz",
    "merge_bound",
    "reach",
    "size_bound",
]

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from abelnet.bijections.slopes import EVERYWHERE, Region
from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.operation import Operation
from abelnet.verify.curves import (
    Curve,
    Line,
    Power,
    deviation,
    largest_excess,
    log_deviation,
    log_grid,
    log_line,
    split_at_zero,
)
from abelnet.verify.lipschitz import Lipschitz, lipschitz

# Number of grid cells to certify a generator bound, and to search its coefficient.
_FINE, _COARSE = 20_000, 1_000
# Products beyond the exponential of this are not finite.
_LARGEST_LOG = 600.0


@dataclass(frozen=True)
class SizeBound:
    """Error bound at a size, given the error up to a smaller size.

    Attributes:
        value: The bound.
        name: Name of the bound.
        epsilon: Error up to size :math:`a`, as given.
        a: Largest size for which ``epsilon`` holds.
        b: Size for which the bound holds.
        constants: Lipschitz constants used.
    """

    value: float
    name: str
    epsilon: float
    a: int
    b: int
    constants: Lipschitz

    @property
    def statement(self) -> str:
        """The proved statement, with its assumption."""
        return (
            f"{self.name}: error at size {self.b} ≤ {self.value:.6g}; proved if the error is at most "
            f"{self.epsilon:.6g} on every multiset of up to {self.a} elements or intermediate "
            f"results; {self.constants.statement}"
        )


@dataclass(frozen=True)
class GeneratorBound:
    """Error bound at a size, given the true operation.

    Attributes:
        value: The bound.
        size: Size of the multisets.
        elements: Range of the elements.
        least: For semigroups, the smallest :math:`|\\psi(x)|` of an element; 0 for groups.
        results: Range of the true results for which the bound holds.
        learned: Range that then contains the learned results; for groups also those of fewer elements.
        coefficient: The coefficient :math:`c` chosen; any :math:`c` gives a bound.
        spread: Range of the latent deviation of an element for this :math:`c`.
    """

    value: float
    size: int
    elements: tuple[float, float]
    least: float
    results: tuple[float, float]
    learned: tuple[float, float]
    coefficient: float
    spread: tuple[float, float]

    @property
    def statement(self) -> str:
        """The proved statement, with its range; nothing is estimated by sampling."""
        away = f" with |ψ| ≥ {self.least:.6g}" if self.least > 0 else ""
        return (
            f"error at size {self.size} ≤ {self.value:.6g}; proved for elements in [{self.elements[0]:.6g}, "
            f"{self.elements[1]:.6g}]{away} and true results in [{self.results[0]:.6g}, {self.results[1]:.6g}]; "
            "nothing is sampled"
        )


def size_bound(
    operation: Operation, epsilon: float, a: int, b: int, region: Region = EVERYWHERE, *, samples: int = 256
) -> SizeBound:
    r"""Bounds the error of a group at size :math:`b` by Theorem 3 of the paper, given its error up to size :math:`a`.

    .. math:: \varepsilon \, \frac{(a K_1 K_2)^L - 1}{a K_1 K_2 - 1}, \qquad L = \lceil \log_a b \rceil

    Arguments:
        operation: A group.
        epsilon: Largest error :math:`\varepsilon` on multisets of 2 to :math:`a` elements of the region.
        a: Largest size for which ``epsilon`` holds, at least 2.
        b: Size to bound the error at.
        region: Box that contains all elements, true results and learned results up to size :math:`b`.
        samples: Number of points for the sampled constants, reported with the proved ones.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> size_bound(AbelianGroup(Affine(1)), epsilon=0.1, a=4, b=16).value  # 0.1 · (1 + 4)
        0.5
    """
    constants = _constants(operation, epsilon, a, b, region, samples)
    value = _theorem3(epsilon, a, b, constants.forward * constants.inverse)
    return SizeBound(value, "Theorem 3", epsilon, a, b, constants)


def merge_bound(
    operation: Operation, epsilon: float, a: int, b: int, region: Region = EVERYWHERE, *, samples: int = 256
) -> SizeBound:
    r"""Tightens :func:`size_bound` with the same inputs, counting merges instead of multiplying constants.

    .. math:: \varepsilon \, (1 + (N_b - 1) K_1 K_2), \qquad N_b = 1 + N_{b_1} + \dots + N_{b_a}, \quad N_1 = N_0 = 0

    Here :math:`N_b` counts the merges when :math:`b` elements are recursively divided into :math:`a` even parts: about
    :math:`(b - 1) / (a - 1)`. Latent defects add up: each merge contributes at most :math:`K_1 \varepsilon` in latent
    space, the last one :math:`\varepsilon` in the result, and :math:`K_2` applies once. So the bound grows as :math:`b`
    where Theorem 3 grows as :math:`b^{1 + \log_a K_1 K_2}`, and is never above it.

    Arguments:
        operation: A group.
        epsilon: Largest error :math:`\varepsilon` on multisets of 2 to :math:`a` elements of the region.
        a: Largest size for which ``epsilon`` holds, at least 2.
        b: Size to bound the error at.
        region: Box that contains all elements, true results and learned results up to size :math:`b`.
        samples: Number of points for the sampled constants, reported with the proved ones.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> merge_bound(AbelianGroup(Affine(1)), epsilon=0.1, a=4, b=6).value  # 2 + 2 + 1 + 1: three merges
        0.30000000000000004
    """
    constants = _constants(operation, epsilon, a, b, region, samples)
    value = _by_merges(epsilon, a, b, constants.forward * constants.inverse)
    return SizeBound(value, "merge bound", epsilon, a, b, constants)


def reach(truth: Operation, size: int, elements: tuple[float, float]) -> tuple[float, float]:
    r"""Returns the range of the results of one to ``size`` elements, for a group in one dimension.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> low, high = reach(AbelianGroup(Generator(1, "power", [3.0], dtype=torch.float64)), 8, (-5.0, 5.0))
        >>> round(low, 6), round(high, 6)
        (-10.0, 10.0)
    """
    curve = _curve(truth, "truth")
    if curve.form != "sum":
        raise AbelnetError("truth: expected a group, got a semigroup, whose results have no finite range")
    latent = curve.forward(torch.tensor(elements, dtype=torch.float64))
    ends = curve.inverse(check_count("size", size) * latent).tolist()
    return min(*ends, *elements), max(*ends, *elements)


@torch.no_grad()
def assumed_bound(operation: Operation, epsilon: float, a: int, b: int, elements: tuple[float, float]) -> float:
    r"""Bounds the error of a one-dimensional operation at size :math:`b` without the true one, for any law.

    The error :math:`\varepsilon` up to size :math:`a` is assumed, and that all results stay in the range that the
    learned operation reaches. A sum is bounded by :func:`merge_bound`. A maximum passes on the largest error of its
    parts, so its error is at most :math:`\varepsilon \lceil \log_a b \rceil`. In a product a latent error is multiplied
    by the other factors, of magnitude at most :math:`w`:

    .. math:: \varepsilon \, (1 + (N_b - 1) K_1 K_2 \max(1, w)^{b - 2}) .

    A cap changes nothing, since clamping enlarges no error. The mean of a multiset is that of the means of equal parts,
    and averages latent errors: if :math:`b` is a product of :math:`L` numbers up to :math:`a`, its error is at most
    :math:`\varepsilon (1 + (L - 1) K_1 K_2)`; other sizes have no such parts, and no bound.

    Arguments:
        operation: The learned operation, in one dimension.
        epsilon: Largest error :math:`\varepsilon` on multisets of 2 to :math:`a` elements.
        a: Largest size for which ``epsilon`` holds, at least 2.
        b: Size to bound the error at.
        elements: Range of the elements.

    Returns:
        The bound; infinite if results of this size have no finite range, or if there is none.

    Example:
        >>> from abelnet import Affine, Maximum
        >>> assumed_bound(Operation(Affine(1), Maximum()), epsilon=0.1, a=4, b=64, elements=(-1.0, 1.0))
        0.30000000000000004
    """
    check_count("a", a, 2)
    check_count("b", b)
    if not epsilon >= 0:
        raise AbelnetError(f"epsilon: expected a number of at least 0, got {epsilon}")
    factor = operation.law.sensitivity
    if factor is not None:
        return epsilon * sum(factor**level for level in range(_levels(a, b)))
    bijection = operation.bijection.injective_part()
    if bijection is not operation.bijection:
        magnitudes = sorted(abs(end) for end in elements)
        elements = (0.0 if elements[0] < 0 < elements[1] else magnitudes[0], magnitudes[1])
        operation = Operation(bijection, operation.law)
        if bool(torch.as_tensor(elements[0] <= bijection.domain[0]).any()):
            return math.inf if b > a else epsilon
    ends = torch.tensor(elements, dtype=torch.float64)
    if not operation.law.is_associative:
        levels = _equal_levels(a, b) if operation.law.is_mean else None
        if levels is None:
            return epsilon if b <= a else math.inf
        constants = lipschitz(operation.bijection, elements, samples=1)
        return epsilon * (1 + (levels - 1) * constants.forward * constants.inverse) if levels > 1 else epsilon * levels
    curve = _curve(Operation(operation.bijection, operation.law.unlimited), "operation")
    latent = curve.forward(ends).sort().values
    growth = 1.0
    if curve.form == "sum":
        copies = operation.law.power(operation.bijection(ends[:, None]), b)
        region = torch.cat((ends, operation.bijection.inverse(copies)[:, 0])).sort().values[[0, -1]]
    else:
        largest = float(latent.abs().max())
        growth = (
            math.inf if largest > 1 and (b - 2) * math.log(largest) > _LARGEST_LOG else max(1.0, largest) ** (b - 2)
        )
        top = largest * max(1.0, largest * growth)
        bottom = -top if latent[0] < 0 else float(latent[0]) ** b if latent[0] < 1 else float(latent[0])
        region = curve.inverse(torch.tensor([bottom, top], dtype=torch.float64)).sort().values
    low, high = operation.bijection.domain
    # A result that is rounded to the end of the domain has no finite slope.
    inside = bool((region.isfinite() & (region > low) & (region < high)).all())
    if not inside or growth == math.inf:
        return math.inf if b > a else epsilon
    box = (min(float(region[0]), elements[0]), max(float(region[1]), elements[1]))
    constants = lipschitz(operation.bijection, box, samples=1)
    return _by_merges(epsilon, a, b, constants.forward * constants.inverse * growth)


@torch.no_grad()
def generator_bound(
    operation: Operation,
    truth: Operation,
    size: int,
    elements: tuple[float, float],
    *,
    least: float = 0.0,
    largest: float = math.inf,
    cells: int = _FINE,
) -> GeneratorBound:
    r"""Bounds the error of a learned operation with respect to the true one at any size, in one dimension.

    With :math:`\psi` the true and :math:`\varphi` the learned generator, and any :math:`c > 0`, let
    :math:`m \le \varphi(x) - c \psi(x) \le M` on the elements. Since :math:`\psi` is additive, for every multiset of
    :math:`b` elements with the true result :math:`z` the learned result lies between

    .. math:: \varphi^{-1}(c \psi(z) + b m) \quad \text{and} \quad \varphi^{-1}(c \psi(z) + b M) ,

    independent of intermediate results, and with :math:`\varphi^{-1}` evaluated where it is used. For semigroups the
    same holds for :math:`\log |\varphi|` and :math:`\log |\psi|`, provided that elements are bounded away from the
    absorbing element and both generators agree in sign: the learned result lies between
    :math:`\varphi^{-1}(\pm |\psi(z)|^c e^{b m})` and :math:`\varphi^{-1}(\pm |\psi(z)|^c e^{b M})`.

    The largest distance to :math:`z` over all :math:`z` is bounded on a grid, with :math:`c` chosen to make it small.

    Arguments:
        operation: The learned operation, in one dimension.
        truth: The true operation, also a group or also a semigroup.
        size: Number of elements :math:`b`.
        elements: Range of the elements.
        least: For semigroups, the smallest :math:`|\psi(x)|` of an element, above 0.
        largest: For semigroups, the largest :math:`|\psi(z)|` of a true result, finite.
        cells: Number of grid cells; more cells tighten the bound, which holds for any number.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> truth, learned = (AbelianGroup(Affine(1, dtype=torch.float64)) for _ in range(2))
        >>> _ = torch.nn.init.constant_(learned.bijection.shift, 0.001)  # each merge adds 0.001
        >>> round(generator_bound(learned, truth, 1000, (-5.0, 5.0)).value, 9)
        0.999
    """
    size = check_count("size", size)
    low, high = elements
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise AbelnetError(f"elements: expected a finite range, got {elements}")
    learned, true = _curve(operation, "operation"), _curve(truth, "truth")
    if learned.form != true.form:
        raise AbelnetError(f"operation: expected a {true.form} like the truth, got a {learned.form}")
    if true.form == "sum":
        return _group_bound(learned.rising(*elements), true.rising(*elements), size, elements, cells)
    if not (0 < least < math.inf and 0 < largest < math.inf):
        raise AbelnetError(f"least, largest: expected finite values above 0 for semigroups, got {least}, {largest}")
    return _semigroup_bound(learned, true, size, elements, least, largest, cells)


def _group_bound(learned: Curve, true: Curve, size: int, elements: tuple[float, float], cells: int) -> GeneratorBound:
    ends = torch.tensor(elements, dtype=torch.float64)
    low, high = true.inverse(size * true.forward(ends)).tolist()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise AbelnetError(f"size: expected a finite range of results, got {low} to {high}; use a smaller size")

    def bound(c: float, cells: int) -> tuple[float, float, float]:
        m, M = deviation(learned, true, c, _line(*elements, cells))
        above = largest_excess(learned, true, Line(c, size * M), _line(low, high, cells), 1)
        below = largest_excess(learned, true, Line(c, size * m), _line(low, high, cells), -1)
        return max(above, below), m, M

    x = _line(*elements, _COARSE)
    value, c, m, M = _best(bound, learned.forward(x), true.forward(x), cells)
    # Latent values and deviations of fewer elements are smaller, or those of one element.
    latent = true.forward(ends)
    wide = torch.stack((torch.minimum(latent[0], size * latent[0]), torch.maximum(latent[1], size * latent[1])))
    results = learned.inverse(c * wide + size * torch.tensor([min(m, 0.0), max(M, 0.0)], dtype=torch.float64))
    found = (float(results[0]), float(results[1]))
    return GeneratorBound(0.0 if size == 1 else value, size, elements, 0.0, (low, high), found, c, (m, M))


def _semigroup_bound(
    learned: Curve, true: Curve, size: int, elements: tuple[float, float], least: float, largest: float, cells: int
) -> GeneratorBound:
    sides = split_at_zero(true, elements, least)
    results = true.inverse(torch.tensor([-largest, largest], dtype=torch.float64)).sort().values
    for side in sides:
        if not bool((learned.forward(side).sign() == true.forward(side).sign()).all()):
            raise AbelnetError(
                f"least: expected a distance from the absorbing element beyond which both generators agree in sign, "
                f"got {least}; use a larger one"
            )

    def bound(c: float, cells: int) -> tuple[float, float, float]:
        spread = [log_deviation(learned, true, c, log_line(true, side, cells)) for side in sides]
        m, M = min(low for low, _ in spread), max(high for _, high in spread)
        if size * max(-m, M) > 700:  # beyond the largest floating-point number
            return math.inf, m, M
        grid = log_grid(true, largest, cells)
        links = [Power(c, math.exp(size * shift)) for shift in (m, M)]
        return max(largest_excess(learned, true, link, grid, sign) for link in links for sign in (1, -1)), m, M

    x = torch.cat([log_line(true, side, _COARSE) for side in sides])
    value, c, m, M = _best(bound, learned.forward(x).abs().log(), true.forward(x).abs().log(), cells)
    ends = (float(results[0]), float(results[1]))
    top = largest**c * math.exp(size * M) if size * M < 700 else math.inf
    reached = learned.inverse(torch.tensor([-top, top], dtype=torch.float64)).sort().values
    found = (float(reached[0]), float(reached[1]))
    return GeneratorBound(0.0 if size == 1 else value, size, elements, least, ends, found, c, (m, M))


def _best(
    bound: Callable[[float, int], tuple[float, float, float]], learned: Tensor, true: Tensor, cells: int
) -> tuple[float, float, float, float]:
    """Returns the smallest bound over coefficients near the least-squares one, with its coefficient and spread."""
    start = float(learned @ true / (true @ true))
    if not start > 0:
        raise AbelnetError("operation: expected an approximation of the truth, got an uncorrelated generator")
    width = float((learned - start * true).abs().max() / (start * true.abs().max()))
    best = start
    for _ in range(3):
        tried = [c for c in (best * (1 + width * k / 2) for k in range(-4, 5)) if c > 0]
        best = min(tried, key=lambda c: bound(c, min(cells, _COARSE))[0])
        width /= 4
    (value, m, M), c = min((bound(c, cells), c) for c in {best, start})
    return value, c, m, M


def _levels(a: int, b: int) -> int:
    levels, size = 0, 1
    while size < b:
        levels, size = levels + 1, size * a
    return levels


def _equal_levels(a: int, b: int) -> int | None:
    """Returns the depth of the flattest tree with ``b`` leaves and nodes of 2 to ``a`` equal parts, if there is one."""
    if b == 1:
        return 0
    depths = [_equal_levels(a, b // part) for part in range(2, a + 1) if b % part == 0]
    found = [depth for depth in depths if depth is not None]
    return 1 + min(found) if found else None


def _theorem3(epsilon: float, a: int, b: int, constant: float) -> float:
    total, size, factor = 0.0, 1, 1.0
    while size < b:
        total, size, factor = total + factor, size * a, factor * a * constant
    return epsilon * total if epsilon > 0 else 0.0


def _by_merges(epsilon: float, a: int, b: int, constant: float) -> float:
    merges = _merges(a, b)
    return epsilon * (1 + (merges - 1) * constant) if merges > 1 and epsilon > 0 else epsilon * merges


@cache
def _merges(a: int, b: int) -> int:
    if b <= a:
        return int(b > 1)
    part, larger = divmod(b, a)
    return 1 + larger * _merges(a, part + 1) + (a - larger) * _merges(a, part)


def _constants(operation: Operation, epsilon: float, a: int, b: int, region: Region, samples: int) -> Lipschitz:
    if not operation.is_group:
        raise AbelnetError(f"operation: expected a group, got {operation.law.name}; use generator_bound")
    if not epsilon >= 0:
        raise AbelnetError(f"epsilon: expected a number of at least 0, got {epsilon}")
    check_count("a", a, 2)
    check_count("b", b)
    return lipschitz(operation.bijection, region, samples=samples)


def _curve(operation: Operation, name: str) -> Curve:
    if operation.dim != 1:
        raise AbelnetError(f"{name}: expected an operation in one dimension, got {operation.dim}")
    return Curve.of(operation)


def _line(low: float, high: float, cells: int) -> Tensor:
    return torch.linspace(low, high, cells + 1, dtype=torch.float64)
