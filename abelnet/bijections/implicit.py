r"""Additive invariants of any form, inverted by Newton's method."""

from __future__ import annotations

__all__ = ["Implicit"]

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from abelnet.bijections.invariants import Invariants
from abelnet.bijections.terms import Term
from abelnet.checks import check_count, check_number, check_values, peek
from abelnet.errors import AbelnetError
from abelnet.portable import solve

# Newton's method: most steps, halvings of a step, and starts that are tried.
_STEPS, _HALVINGS, _STARTS = 60, 30, 4
# Known points kept as starts, and numbers in the distances of a chunk of values to all of them.
_MOST_KNOWN, _CHUNK = 512, 1 << 22
# Units of rounding of the dtype below which an error of Newton's method says nothing.
_ROUNDING = 64


class Implicit(Invariants):
    r"""Invariants of any form, inverted by Newton's method.

    The inverse of :math:`y` is searched by damped steps, in float64, from the nearest of some known points. Where the
    error of :math:`f(x) = y` stays above the tolerance, relative to the size of the terms of :math:`f`, or above the
    rounding of :math:`y`, the inverse is NaN. It has derivatives, but only the first ones.

    Arguments:
        dim: Number of dimensions :math:`d`.
        invariants: Terms of each invariant.
        coefficients: Coefficients of the terms.
        signs: For each coordinate, 1 if it is at least :math:`o_i`, -1 if it is at most :math:`o_i`, 0 if it may be
            on both sides.
        origin: Point :math:`o` that coordinates are measured from; 0 by default.
        known: Points to start from, with shape :math:`(n, d)`; or their number, if they are to be loaded.
        tolerance: Largest error.

    Example:
        >>> from abelnet.bijections.terms import Monomial, Power
        >>> x, y = Monomial((Power(0),)), Monomial((Power(1),))
        >>> cubes = [Monomial((Power(0, 3.0),)), Monomial((Power(1, 3.0),))]
        >>> known = torch.tensor([[1.0, 1.0]])
        >>> bijection = Implicit(2, [[x, cubes[1]], [y, cubes[0]]], [[3.0, 1.0], [-3.0, 1.0]], known=known)
        >>> bijection.inverse(bijection(torch.tensor([1.5, 0.7]))).detach().round(decimals=4)
        tensor([1.5000, 0.7000])
    """

    def __init__(
        self,
        dim: int,
        invariants: Sequence[Sequence[Term]],
        coefficients: Sequence[Sequence[float] | Tensor],
        signs: Sequence[int] = (),
        origin: Sequence[float] = (),
        *,
        known: Tensor | Sequence[Sequence[float]] | int,
        tolerance: float = 1e-9,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, invariants, coefficients, signs, origin, device=device, dtype=dtype)
        check_number("tolerance", tolerance, above=0, below=1)
        self.tolerance = tolerance
        # As tensors, since ONNX rounds other constants to float32, and turns of large angles add up.
        self._periods = [
            torch.tensor([term.period for term in terms], dtype=torch.float64, device="cpu")
            for terms in self.invariants
        ]
        like = self.coefficients[0].detach()
        if isinstance(known, int):
            points = like.new_zeros(check_count("known", known), dim)
        else:
            points = torch.as_tensor(known, dtype=like.dtype, device=like.device)
        if points.ndim != 2 or points.shape[1] != dim or len(points) == 0:
            raise AbelnetError(f"known: expected points of shape (n, {dim}), got {tuple(points.shape)}")
        self.known: Tensor
        self.register_buffer("known", points[:: max(1, len(points) // _MOST_KNOWN)][:_MOST_KNOWN].clone())
        if not isinstance(known, int):
            self.check_state()

    def check_state(self) -> None:
        super().check_state()
        if not self.known.is_meta and not peek(self._is_sound(self.from_origin(self.known)).any(), True):
            raise AbelnetError(f"known: expected a point of the domain, {self.describe_domain()}, got none")

    def probes(self) -> Tensor:
        known = self.known.double().cpu()
        return known[self._is_sound(self.from_origin(known))][:32]

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        rows = y.reshape(-1, self.dim)
        known = self.from_origin(self.known.double())
        sound = self._is_sound(known)
        known = torch.where(sound[:, None], known, known[sound.int().argmax(keepdim=True)])
        tolerance = max(self.tolerance, _ROUNDING * torch.finfo(y.dtype).eps)
        with torch.no_grad():
            wide = rows.detach().double()
            if torch.compiler.is_exporting():
                x = self._solve_at_once(wide, known, tolerance) + self.origin_like(known)
                return x.to(y.dtype).reshape(y.shape)
            size = max(1, _CHUNK // max(1, known.numel()))
            x = torch.cat([self._solve(part, known, tolerance) for part in torch.split(wide, size)])
            sound = x.isfinite().all(-1, keepdim=True)
            at = torch.where(sound, x, known[0])
            slopes = self.jacobian_from_origin(at)
        # A step from the solution has the value 0 and the derivatives of the inverse.
        step = _solved(slopes, self._gap(at, rows.double()))
        x = torch.where(sound, at - (step - step.detach()), math.nan) + self.origin_like(at)
        return x.to(y.dtype).reshape(y.shape)

    def _gap(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns :math:`f(x) - y`, where periodic invariants differ by at most half a period."""
        return self._wrapped(self.sums_from_origin(x) - y)

    def _wrapped(self, gap: Tensor) -> Tensor:
        columns = list(gap.unbind(-1))
        for j, (one, terms) in enumerate(zip(self.coefficients, self.invariants, strict=True)):
            if any(term.period for term in terms):
                period = (self._periods[j].to(gap.device) * one.detach().abs()).amax(0)
                turned = torch.remainder(columns[j] + period / 2, period) - period / 2
                columns[j] = torch.where(period > 0, turned, columns[j])
        return torch.stack(columns, -1)

    def _sizes(self, x: Tensor) -> Tensor:
        """Returns the size of the terms of each invariant, :math:`(n, d)`."""
        sizes = []
        for one, terms in zip(self.coefficients, self.invariants, strict=True):
            size = x.new_zeros(x.shape[:-1])
            for c, term in zip(one.unbind(), terms, strict=True):
                size = size + (c * term.values(x)).abs()
            sizes.append(size)
        return torch.stack(sizes, -1)

    def _solve(self, y: Tensor, known: Tensor, tolerance: float) -> Tensor:
        """Returns the points measured from the origin at which the invariants are these; NaN if none is found."""
        unit, starts = self._starts(y, known)
        found = torch.full_like(y, math.nan)
        left = y.isfinite().all(-1).nonzero()[:, 0]
        for rank in starts.unbind(-1):
            x = self._newton(known[rank[left]], y[left], unit)
            good = self._error(x, y[left], unit) <= tolerance
            found[left[good]] = x[good]
            left = left[~good]
            if len(left) == 0:
                break
        return found

    def _solve_at_once(self, y: Tensor, known: Tensor, tolerance: float) -> Tensor:
        """Returns :meth:`_solve` in a form that can be exported: all starts, all halvings and all rows at once."""
        unit, starts = self._starts(y, known)
        count = starts.shape[-1]
        goal = y.repeat(count, 1)
        lengths = _halved(range(_HALVINGS), y)

        def goes_on(number: Tensor, x: Tensor, error: Tensor, running: Tensor) -> Tensor:
            return (number < _STEPS) & running.any()

        def advance(number: Tensor, x: Tensor, error: Tensor, running: Tensor) -> tuple[Tensor, ...]:
            step, worth = self._step(x, goal, unit)
            there, new, gains = self._along(x, lengths * step, goal, unit, error)
            moves = running & worth & gains
            return number + 1, torch.where(moves[:, None], there, x), torch.where(moves, new, error), moves

        x = known[starts.mT.flatten()]
        error = self._gap_norm(x, goal, unit)
        state = (torch.zeros((), dtype=torch.int64, device=y.device), x, error, error.isfinite())
        _, x, _, _ = torch.while_loop(goes_on, advance, state)  # type: ignore[no-untyped-call]
        good = self._error(x, goal, unit) <= tolerance
        found = torch.full_like(y, math.nan)
        for one, is_good in zip(x.reshape(count, *y.shape).flip(0), good.reshape(count, -1).flip(0), strict=True):
            found = torch.where(is_good[:, None], one, found)
        return found

    def _starts(self, y: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the unit of each invariant, and for each row the known points to start from, nearest first."""
        of_known = self.sums_from_origin(known)
        unit = of_known.std(0, unbiased=False) + 1e-3 * self._sizes(known).mean(0)
        unit = torch.where(unit > 0, unit, 1)
        distances = (self._wrapped(of_known[None] - y[:, None]) / unit).square().sum(-1)
        return unit, distances.topk(min(_STARTS, len(known)), largest=False).indices

    def _newton(self, x: Tensor, y: Tensor, unit: Tensor) -> Tensor:
        """Returns points after damped steps, which go on until they gain nothing."""
        x = x.clone()
        error = self._gap_norm(x, y, unit)
        running = torch.arange(len(x), device=x.device)
        for _ in range(_STEPS):
            at, goal, best = x[running], y[running], error[running]
            step, worth = self._step(at, goal, unit)
            moved = torch.zeros_like(running, dtype=torch.bool)
            left = worth.nonzero()[:, 0]
            # Full steps first, most of which gain; then all halvings at once.
            for halvings in (range(1), range(1, _HALVINGS)):
                if len(left) == 0:
                    break
                there, new, gains = self._along(
                    at[left], _halved(halvings, x) * step[left], goal[left], unit, best[left]
                )
                rows = left[gains]
                at[rows], best[rows], moved[rows] = there[gains], new[gains], True
                left = left[~gains]
            x[running], error[running] = at, best
            running = running[moved]
            if len(running) == 0:
                break
        return x

    def _step(self, x: Tensor, y: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a step of Newton's method, and whether it is worth taking: not below rounding."""
        step = _solved(self.jacobian_from_origin(x) / unit[:, None], self._gap(x, y) / unit)
        return step, (step.abs() > 2 * torch.finfo(x.dtype).eps * x.abs()).any(-1)

    def _along(self, x: Tensor, steps: Tensor, y: Tensor, unit: Tensor, best: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Takes the longest of steps :math:`(k, n, d)` that gains: returns points, errors, and whether one did."""
        there = x - steps
        sound = self._is_sound(there)
        there = torch.where(sound[..., None], there, x)
        new = self._gap_norm(there, y, unit)
        gains, longest = (sound & (new < best)).int().max(0)
        rows = longest[None, :, None].expand(-1, -1, x.shape[-1])
        return there.gather(0, rows)[0], new.gather(0, longest[None])[0], gains > 0

    def _gap_norm(self, x: Tensor, y: Tensor, unit: Tensor) -> Tensor:
        """Returns the square of the distance of the invariants from these."""
        return (self._gap(x, y) / unit).square().sum(-1)

    def _error(self, x: Tensor, y: Tensor, unit: Tensor) -> Tensor:
        """Returns the largest error of the invariants, relative to the sizes of their terms."""
        return (self._gap(x, y) / (self._sizes(x) + y.abs() + 1e-3 * unit)).abs().amax(-1)

    def _is_sound(self, x: Tensor) -> Tensor:
        return self.is_defined_from_origin(x).all(-1) & x.isfinite().all(-1)

    def config(self) -> dict[str, Any]:
        return super().config() | {"known": len(self.known), "tolerance": self.tolerance}


def _halved(halvings: range, like: Tensor) -> Tensor:
    """Returns the lengths of steps that are halved so many times, with shape :math:`(k, 1, 1)`."""
    return torch.tensor([0.5**k for k in halvings], dtype=like.dtype, device=like.device)[:, None, None]


def _solved(slopes: Tensor, gap: Tensor) -> Tensor:
    """Solves linear systems, of any rank: singular ones by damped least squares; 0 where nothing can be solved."""
    step = solve(slopes, gap)
    singular = ~step.isfinite().all(-1, keepdim=True)
    if torch.compiler.is_exporting() or bool(singular.any()):
        turned = slopes.mT
        size = slopes.square().sum((-2, -1), keepdim=True)
        square = turned @ slopes + 1e-10 * size * torch.eye(slopes.shape[-1], dtype=slopes.dtype, device=slopes.device)
        damped = solve(square, (turned @ gap[..., None])[..., 0])
        step = torch.where(singular, torch.where(damped.isfinite(), damped, 0), step)
    return step
