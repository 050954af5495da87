r"""Monotonic rational-quadratic splines with linear tails."""

from __future__ import annotations

__all__ = ["RationalQuadraticSpline", "spline_through"]

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from abelnet.bijections.base import Elementwise, Line
from abelnet.bijections.chain import Chain
from abelnet.bijections.elementwise import Affine
from abelnet.bijections.pieces import Pieces
from abelnet.bijections.rational import find, inverses, knots, values, with_tails
from abelnet.checks import check_count, check_values
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.segments import Segments, composed_gradients, has_kernels
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class RationalQuadraticSpline(Elementwise):
    r"""Monotonic rational-quadratic spline with learned knots and linear tails, one per dimension.

    Between two knots :math:`(x_k, y_k)` and :math:`(x_{k+1}, y_{k+1})` with slopes :math:`d_k`, :math:`d_{k+1}`, with
    :math:`h = y_{k+1} - y_k`, :math:`s = h / (x_{k+1} - x_k)` and :math:`z = (x - x_k) / (x_{k+1} - x_k)`,

    .. math:: f(x) = y_k + h \frac{s z^2 + d_k z (1 - z)}{s + (d_k + d_{k+1} - 2 s) z (1 - z)} .

    The knots divide :math:`[-B, B]` on both axes; outside, the curve continues linearly with the slope of the outermost
    knot, so it is smooth everywhere and defined for all inputs. Initialized to the identity.

    References:
        Durkan et al., Neural spline flows, NeurIPS 2019.

    Arguments:
        dim: Number of dimensions :math:`d`.
        bins: Number of bins :math:`K`.
        bound: Half-width :math:`B` of the interval.
        min_slope: Minimum slope at a knot, and minimum ratio of two widths or two heights.

    Example:
        >>> bijection = RationalQuadraticSpline(2, bins=4)
        >>> x = torch.tensor([[-3.0, 1e6]])
        >>> torch.allclose(bijection.inverse(bijection(x)), x)
        True
    """

    def __init__(
        self,
        dim: int,
        bins: int = 8,
        bound: float = 5.0,
        min_slope: float = 1e-3,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        bins = check_count("bins", bins)
        if not (0 < bound < math.inf and 0 < min_slope < 1):
            raise AbelnetError(
                f"bound, min_slope: expected 0 < bound < inf and 0 < min_slope < 1, got {bound} and {min_slope}"
            )
        self.bound, self.min_slope = bound, min_slope
        self.raw_widths = nn.Parameter(torch.empty(dim, bins, device=device, dtype=dtype))
        self.raw_heights = nn.Parameter(torch.empty(dim, bins, device=device, dtype=dtype))
        self.raw_slopes = nn.Parameter(torch.empty(dim, bins + 1, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets to the identity; nothing is random."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return _compiled(x, self, None, False) if has_kernels(x, *self.parameters()) else values(x, *self._knots())

    def inverse(self, y: Tensor) -> Tensor:
        return self.inverse_through(y, None)

    def inverse_through(self, y: Tensor, line: Line | None) -> Tensor:
        check_values("y", y, self.dim)
        if has_kernels(y, *self.parameters()):
            return _compiled(y, self, line, True)
        x = inverses(y, *self._knots())
        return x if line is None else (x - line[1]) / line[0]

    def summed(self, x: Tensor, multisets: Multisets, line: Line | None = None) -> Tensor:
        parameters = list(self.parameters())
        found = multisets.kernels(x, *parameters) if parameters[0].dtype == x.dtype else None
        if found is None:
            return super().summed(x, multisets, line)
        check_values("x", x, self.dim)
        arguments = *self._raw(), _stacked(line), (self.bound, self.min_slope), multisets, found[0]
        total: Tensor = _Summed.apply(x, *arguments)  # type: ignore[no-untyped-call]
        return total.reshape(*multisets.shape, self.dim)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        xs, ys, slopes = self._knots()
        inside, piece = find(x, xs, xs, ys, slopes)
        z = (inside - piece.x0) / piece.width
        top = 2 * piece.mean * z * (1 - z) + piece.slope0 * (1 - z) ** 2 + piece.slope1 * z**2
        log = 2 * piece.mean.log() + top.log() - 2 * (piece.mean + piece.bend * z * (1 - z)).log()
        return with_tails(x, xs, log, slopes[:, 0].log(), slopes[:, -1].log())

    @property
    def has_straight_tails(self) -> bool:
        return True

    @torch.no_grad()
    def turning_points(self, dimension: int = 0) -> Tensor:
        """Returns the knots and, in each bin, the roots of the derivative of the slope, a cubic."""
        xs, ys, slopes = (knots[dimension].double().numpy() for knots in self._knots())
        turns = list(xs)
        for k in range(len(xs) - 1):
            width, mean = xs[k + 1] - xs[k], (ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k])
            start, end = slopes[k], slopes[k + 1]
            bend = start + end - 2 * mean
            top, bottom = np.array([bend, 2 * (mean - start), start]), np.array([-bend, bend, mean])
            cubic = np.polysub(np.polymul(np.polyder(top), bottom), 2 * np.polymul(top, np.polyder(bottom)))
            # A double root may come out with a small imaginary part; a superfluous point is harmless.
            turns += [xs[k] + width * z for z in np.roots(cubic).real if 0 < z < 1]
        return torch.tensor(turns, dtype=torch.float64)

    def pieces(self, x: Expr, dimension: int = 0) -> Pieces:
        xs, ys, slopes = self._symbolic_knots(dimension)
        pieces: list[Any] = [(_line, (xs[0], ys[0], slopes[0]))]
        limits = [x < xs[0]]
        for k in range(len(xs) - 1):
            width, height = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
            mean = height / width
            bend = slopes[k] + slopes[k + 1] - 2 * mean
            pieces.append((_curve, (xs[k], ys[k], slopes[k], width, height, mean, bend)))
            limits.append(x <= xs[k + 1])
        return Pieces(x, [*pieces, (_line, (xs[-1], ys[-1], slopes[-1]))], limits)

    def inverse_pieces(self, y: Expr, dimension: int = 0) -> Pieces:
        xs, ys, slopes = self._symbolic_knots(dimension)
        pieces: list[Any] = [(_inverse_line, (xs[0], ys[0], slopes[0]))]
        limits = [y < ys[0]]
        for k in range(len(xs) - 1):
            width, height = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
            mean = height / width
            bend = slopes[k] + slopes[k + 1] - 2 * mean
            numbers = (xs[k], ys[k], slopes[k], width, height, mean, bend)
            # Each of the two forms of the root is used where it does not subtract nearly equal numbers.
            turn = ys[k] + height * slopes[k] / bend if bend > 0 else ys[k + 1]
            pieces.append((_lower_root, numbers))
            limits.append(y <= (turn if turn < ys[k + 1] else ys[k + 1]))
            if turn < ys[k + 1]:
                pieces.append((_upper_root, numbers))
                limits.append(y <= ys[k + 1])
        return Pieces(y, [*pieces, (_inverse_line, (xs[-1], ys[-1], slopes[-1]))], limits)

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        return self.pieces(x, dimension).expression()

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        return self.inverse_pieces(y, dimension).expression()

    def config(self) -> dict[str, Any]:
        return {
            "dim": self.dim,
            "bins": self.raw_widths.shape[1],
            "bound": self.bound,
            "min_slope": self.min_slope,
        }

    def extra_repr(self) -> str:
        return f"dim={self.dim}, bins={self.raw_widths.shape[1]}, bound={self.bound}, min_slope={self.min_slope}"

    def _raw(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.raw_widths, self.raw_heights, self.raw_slopes

    def _knots(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the knots on both axes and the slopes there, each with shape :math:`(d, K + 1)`."""
        return knots(*self._raw(), None, self.bound, self.min_slope)

    def _symbolic_knots(self, dimension: int) -> list[list[Expr]]:
        with torch.no_grad():
            return [[symbolic_number(value) for value in knots[dimension]] for knots in self._knots()]


@torch.no_grad()
def spline_through(
    xs: np.ndarray[Any, Any], ys: np.ndarray[Any, Any], slopes: np.ndarray[Any, Any] | None = None
) -> Chain:
    """Builds a trainable spline through points, in float64, with affine maps that scale both axes to its interval.

    Arguments:
        xs: Knots :math:`(K + 1)`, ascending.
        ys: Values at the knots, ascending.
        slopes: Slopes at the knots; missing or non-positive ones are estimated from adjacent points.

    Example:
        >>> curve = spline_through(np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.0, 1.0, 2.0, 3.0]))
        >>> curve(torch.tensor([[4.0]], dtype=torch.float64)).item()
        2.0
    """
    x, y = (torch.from_numpy(np.asarray(points, dtype=np.float64)) for points in (xs, ys))
    if len(x) < 2 or x.shape != y.shape or not bool((x.diff() > 0).all() and (y.diff() > 0).all()):
        raise AbelnetError(f"xs, ys: expected two or more ascending numbers in each, got shapes {xs.shape}, {ys.shape}")
    half = [(points[-1] - points[0]) / 2 for points in (x, y)]
    spline = RationalQuadraticSpline(1, len(x) - 1, 1.0, 1e-12, dtype=torch.float64)
    limit = -math.log(spline.min_slope)
    widths, heights = (points.diff() / size for points, size in zip((x, y), half, strict=True))
    means = heights / widths
    # The slope at a knot is a harmonic mean of the adjacent mean slopes, in which longer steps weigh more.
    inner = (widths[:-1] + widths[1:]) / (widths[1:] / means[:-1] + widths[:-1] / means[1:])
    beside = torch.cat((means[:1], inner, means[-1:]))
    given = beside if slopes is None else torch.from_numpy(np.asarray(slopes, np.float64)) * half[0] / half[1]
    # A monotonic curve cannot be much steeper at a knot than next to it without bending sharply.
    steepness = torch.where(given > 0, given, beside).clamp(1e-2 * beside, 1e2 * beside)
    for raw, wanted, reach in (
        (spline.raw_widths, widths.log() - widths.log().mean(), limit / 2),
        (spline.raw_heights, heights.log() - heights.log().mean(), limit / 2),
        (spline.raw_slopes, steepness.log(), limit),
    ):
        wanted = wanted.clamp(-0.9 * reach, 0.9 * reach)
        raw.copy_((wanted / (1 - wanted.abs() / reach))[None])
    before, after = Affine(1, dtype=torch.float64), Affine(1, dtype=torch.float64)
    before.log_scale.copy_(-half[0].log())
    before.shift.copy_(-(x[0] + x[-1]) / 2 / half[0])
    after.log_scale.copy_(half[1].log())
    after.shift.copy_((y[0] + y[-1]) / 2)
    return Chain(before, spline, after)


def _line(x: Expr, x0: Expr, y0: Expr, slope: Expr) -> Expr:
    return y0 + slope * (x - x0)


def _inverse_line(y: Expr, x0: Expr, y0: Expr, slope: Expr) -> Expr:
    return x0 + (y - y0) / slope


def _curve(x: Expr, x0: Expr, y0: Expr, slope: Expr, width: Expr, height: Expr, mean: Expr, bend: Expr) -> Expr:
    z = (x - x0) / width
    return y0 + height * (mean * z**2 + slope * z * (1 - z)) / (mean + bend * z * (1 - z))


def _lower_root(y: Expr, x0: Expr, y0: Expr, slope: Expr, width: Expr, height: Expr, mean: Expr, bend: Expr) -> Expr:
    rise = y - y0
    b, root = _root(rise, slope, height, mean, bend)
    return x0 + width * 2 * mean * rise / (b + root)


def _upper_root(y: Expr, x0: Expr, y0: Expr, slope: Expr, width: Expr, height: Expr, mean: Expr, bend: Expr) -> Expr:
    rise = y - y0
    b, root = _root(rise, slope, height, mean, bend)
    return x0 + width * (root - b) / (2 * (height * (mean - slope) + rise * bend))


def _root(rise: Expr, slope: Expr, height: Expr, mean: Expr, bend: Expr) -> tuple[Expr, Expr]:
    import sympy

    a = height * (mean - slope) + rise * bend
    b = height * slope - rise * bend
    return b, sympy.sqrt(b**2 + 4 * a * mean * rise)


def _stacked(line: Line | None) -> Tensor | None:
    return None if line is None else torch.stack(line)


def _compiled(x: Tensor, spline: RationalQuadraticSpline, line: Line | None, is_inverse: bool) -> Tensor:
    """Returns values or inverses by compiled kernels."""
    limits = spline.bound, spline.min_slope
    arguments = *spline._raw(), _stacked(line), limits, is_inverse
    y: Tensor = _Compiled.apply(x.reshape(-1, x.shape[-1]), *arguments)  # type: ignore[no-untyped-call]
    return y.reshape(x.shape)


class _Bins:
    """Bins of splines after a line as kernels read them, and the way back from sums over bins to parameters."""

    def __init__(self, raw: Sequence[Tensor], line: Tensor | None, limits: tuple[float, float]) -> None:
        from abelnet.bijections import knotting, splining  # numba takes a second to import

        bound, min_slope = limits
        given = torch.tensor([[1.0], [0.0]]).repeat(1, len(raw[0])) if line is None else line
        self._given = *(one.detach().numpy() for one in (*raw, given)), bound, -math.log(min_slope)
        self._known, self._has_line = knotting.knots(*self._given), line is not None
        self._tables, self._gradient = knotting.tables(self._known[1]), knotting.knots_gradient
        self.kernels = splining
        self.for_values, self.for_inverses, self.for_gradients = zip(*self._tables, strict=True)

    def sums(self) -> list[Tensor]:
        """Returns zeros, to which kernels add gradients by bins and by slopes beyond all bins."""
        bins, _, dim = self.for_gradients[0].shape
        shapes = (bins, self.kernels.GRADIENTS, dim), (2, dim)
        return [torch.zeros(shape, dtype=torch.float64) for shape in shapes]

    def of_parameters(self, sums: Sequence[Tensor]) -> list[Tensor | None]:
        """Returns the gradients by all parameters and by the line, from the sums; None if there is no line."""
        found = self._gradient(*self._given, *self._known, *(one.numpy() for one in sums))
        *others, line = (torch.from_numpy(one).float() for one in found)
        return [*others, line if self._has_line else None]


class _Compiled(torch.autograd.Function):
    """Splines after a line, or their inverses, by compiled kernels."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        widths: Tensor,
        heights: Tensor,
        slopes: Tensor,
        line: Tensor | None,
        limits: tuple[float, float],
        is_inverse: bool,
    ) -> Tensor:
        x, result, bins = x.contiguous(), torch.empty(x.shape), _Bins((widths, heights, slopes), line, limits)
        tables = bins.for_inverses if is_inverse else bins.for_values
        bins.kernels.spline(x.detach().numpy(), *tables, is_inverse, result.numpy())
        ctx.bins, ctx.limits, ctx.is_inverse = bins, limits, is_inverse
        ctx.save_for_backward(x, widths, heights, slopes, line, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters, result = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order

            def plain(x: Tensor, widths: Tensor, heights: Tensor, slopes: Tensor, line: Tensor | None) -> Tensor:
                found = knots(widths, heights, slopes, line, *ctx.limits)
                return (inverses if ctx.is_inverse else values)(x, *found)

            return *composed_gradients(plain, (x, *parameters), gradient), None, None
        bins, of_x, sums = ctx.bins, torch.empty(x.shape), ctx.bins.sums()
        # Each row is a set.
        rows = (result if ctx.is_inverse else x).detach().numpy(), np.arange(len(x)), np.arange(len(x) + 1)
        arrays = [one.numpy() for one in (gradient.contiguous(), of_x, *sums)]
        bins.kernels.spline_gradient(*rows, *bins.for_gradients, ctx.is_inverse, *arrays)
        return of_x, *bins.of_parameters(sums), None, None


class _Summed(torch.autograd.Function):
    """Sums over sets of the values of splines after a line, by compiled kernels: no value is stored."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        widths: Tensor,
        heights: Tensor,
        slopes: Tensor,
        line: Tensor | None,
        limits: tuple[float, float],
        multisets: Multisets,
        segments: Segments,
    ) -> Tensor:
        total, bins = torch.empty(segments.count, x.shape[-1]), _Bins((widths, heights, slopes), line, limits)
        segments.fold(bins.kernels.spline_sum, x, bins.for_values, [total])
        ctx.bins, ctx.limits, ctx.multisets, ctx.segments = bins, limits, multisets, segments
        ctx.save_for_backward(x, widths, heights, slopes, line)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order

            def plain(x: Tensor, widths: Tensor, heights: Tensor, slopes: Tensor, line: Tensor | None) -> Tensor:
                found = knots(widths, heights, slopes, line, *ctx.limits)
                total: Tensor = ctx.multisets.sum(values(x, *found))
                return total.reshape(gradient.shape)

            return *composed_gradients(plain, (x, *parameters), gradient), None, None, None
        bins, of_x, sums = ctx.bins, torch.empty(x.shape), ctx.bins.sums()
        kernel, given = bins.kernels.spline_gradient, [*bins.for_gradients, False]
        ctx.segments.run(kernel, x, given, [gradient.contiguous()], [of_x], sums)
        return of_x, *bins.of_parameters(sums), None, None, None
