r"""Monotonic rational-quadratic splines with linear tails."""

from __future__ import annotations

__all__ = ["RationalQuadraticSpline", "spline_through"]

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from abelnet.bijections.base import Elementwise, Line
from abelnet.bijections.chain import Chain
from abelnet.bijections.elementwise import Affine
from abelnet.bijections.pieces import Pieces
from abelnet.checks import check_count, check_values
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.segments import Segments, composed_gradients, has_kernels
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


# Comparisons of values and edges from which edges are compared one at a time, and edges from which they are bisected.
_LARGE, _MANY = 1 << 19, 30


class _Bin(NamedTuple):
    """Bin of a value: its corners, the slopes there, and its mean slope."""

    x0: Tensor
    width: Tensor
    y0: Tensor
    height: Tensor
    slope0: Tensor
    slope1: Tensor

    @property
    def mean(self) -> Tensor:
        return self.height / self.width

    @property
    def bend(self) -> Tensor:
        return self.slope0 + self.slope1 - 2 * self.mean


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
        xs, ys, slopes = self._knots()
        if has_kernels(x, xs):
            return _compiled(x, (xs, ys, slopes), False)
        return _values(x, xs, ys, slopes)

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        xs, ys, slopes = self._knots()
        if has_kernels(y, xs):
            return _compiled(y, (xs, ys, slopes), True)
        return _inverses(y, xs, ys, slopes)

    def summed(self, x: Tensor, multisets: Multisets, line: Line | None = None) -> Tensor:
        xs, ys, slopes = self._knots()
        found = multisets.kernels(x, xs) if xs.dtype == x.dtype else None
        if found is None:
            return super().summed(x, multisets, line)
        check_values("x", x, self.dim)
        if line is not None:  # which only moves the knots
            scale, shift = (one.expand(self.dim)[:, None] for one in line)
            xs, slopes = (xs - shift) / scale, slopes * scale
        total: Tensor = _Summed.apply(x, xs, ys, slopes, multisets, found[0])  # type: ignore[no-untyped-call]
        return total.reshape(*multisets.shape, self.dim)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        xs, ys, slopes = self._knots()
        inside, piece = _find(x, xs, xs, ys, slopes)
        z = (inside - piece.x0) / piece.width
        top = 2 * piece.mean * z * (1 - z) + piece.slope0 * (1 - z) ** 2 + piece.slope1 * z**2
        log = 2 * piece.mean.log() + top.log() - 2 * (piece.mean + piece.bend * z * (1 - z)).log()
        return _with_tails(x, xs, log, slopes[:, 0].log(), slopes[:, -1].log())

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

    def _knots(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the knots on both axes and the slopes there, each with shape :math:`(d, K + 1)`."""
        limit = -math.log(self.min_slope)
        return (
            self._divide(_soften(self.raw_widths, limit / 2)),
            self._divide(_soften(self.raw_heights, limit / 2)),
            _soften(self.raw_slopes, limit).exp(),
        )

    def _symbolic_knots(self, dimension: int) -> list[list[Expr]]:
        with torch.no_grad():
            return [[symbolic_number(value) for value in knots[dimension]] for knots in self._knots()]

    def _divide(self, logits: Tensor) -> Tensor:
        return self.bound * (2 * F.pad(F.softmax(logits, -1), (1, 0)).cumsum(-1) - 1)


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


def _soften(x: Tensor, limit: float) -> Tensor:
    """Bounds parameters smoothly by the limit; the identity near 0."""
    return x / (1 + x.abs() / limit)


def _values(x: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor) -> Tensor:
    """Returns the values of splines through knots."""
    inside, piece = _find(x, xs, xs, ys, slopes)
    z = (inside - piece.x0) / piece.width
    curve = piece.mean * z**2 + piece.slope0 * z * (1 - z)
    y = piece.y0 + piece.height * curve / (piece.mean + piece.bend * z * (1 - z))
    return _with_tails(x, xs, y, ys[:, 0] + slopes[:, 0] * (x - xs[:, 0]), ys[:, -1] + slopes[:, -1] * (x - xs[:, -1]))


def _inverses(y: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor) -> Tensor:
    """Returns where splines through knots have these values."""
    inside, piece = _find(y, ys, xs, ys, slopes)
    rise = inside - piece.y0
    a = piece.height * (piece.mean - piece.slope0) + rise * piece.bend
    b = piece.height * piece.slope0 - rise * piece.bend
    c = -piece.mean * rise
    # Rounding can make the discriminant negative. Each of the two forms of the root is used where it does not
    # subtract nearly equal numbers.
    root = (b**2 - 4 * a * c).clamp(min=torch.finfo(y.dtype).tiny).sqrt()
    direct = b >= 0
    numerator = torch.where(direct, 2 * c, root - b)
    x = piece.x0 + piece.width * numerator / torch.where(direct, -b - root, 2 * a)
    return _with_tails(y, ys, x, xs[:, 0] + (y - ys[:, 0]) / slopes[:, 0], xs[:, -1] + (y - ys[:, -1]) / slopes[:, -1])


def _compiled(x: Tensor, knots: tuple[Tensor, ...], is_inverse: bool) -> Tensor:
    """Returns values or inverses by compiled kernels."""
    y: Tensor = _Compiled.apply(x.reshape(-1, x.shape[-1]), *knots, is_inverse)  # type: ignore[no-untyped-call]
    return y.reshape(x.shape)


def _pieces(xs: Tensor, ys: Tensor, slopes: Tensor) -> Tensor:
    """Returns the rows of each piece that kernels read; see :mod:`abelnet.bijections.splining`."""
    outside = torch.ones_like(xs[:, :1])
    widths = xs.diff()
    inverse = torch.cat((outside, 1 / torch.where(widths > 0, widths, 1), outside), -1)
    heights = torch.cat((0 * outside, ys.diff(), 0 * outside), -1)
    first, last = torch.cat((slopes[:, :1], slopes), -1), torch.cat((outside, slopes[:, 1:], outside), -1)
    corners = [torch.cat((knots[:, :1], knots), -1) for knots in (xs, ys)]
    numbers = torch.arange(heights.shape[-1], dtype=xs.dtype).expand_as(heights)
    return torch.stack((*corners, inverse, heights, first, last, numbers)).permute(2, 0, 1).contiguous()


class _Compiled(torch.autograd.Function):
    """Splines through knots, or their inverses, by compiled kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor, is_inverse: bool) -> Tensor:
        from abelnet.bijections import splining  # numba takes a second to import

        x = x.contiguous()
        table, result = _pieces(xs, ys, slopes), torch.empty(x.shape)
        kernel = splining.spline_inverse if is_inverse else splining.spline
        kernel(x.detach().numpy(), table.numpy(), result.numpy())
        ctx.is_inverse = is_inverse
        ctx.save_for_backward(x, xs, ys, slopes, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from abelnet.bijections import splining

        x, *knots, result = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order
            return *composed_gradients(_inverses if ctx.is_inverse else _values, (x, *knots), gradient), None
        leaves, table = _double_pieces(knots)
        of_x, sums = torch.empty(x.shape), _sums_of(table, splining.GRADIENTS)
        splining.spline_gradient(
            (result if ctx.is_inverse else x).detach().numpy(),
            table.detach().float().numpy(),
            gradient.contiguous().numpy(),
            ctx.is_inverse,
            of_x.numpy(),
            sums.numpy(),
        )
        return of_x, *_of_knots(leaves, table, sums), None


class _Summed(torch.autograd.Function):
    """Sums over sets of the values of splines through knots, by compiled kernels: no value is stored."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor, multisets: Multisets, segments: Segments
    ) -> Tensor:
        from abelnet.bijections import splining

        total = torch.empty(segments.count, x.shape[-1])
        segments.run(splining.spline_sum, x, [_pieces(xs, ys, slopes).numpy()], [total])
        ctx.multisets, ctx.segments = multisets, segments
        ctx.save_for_backward(x, xs, ys, slopes)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from abelnet.bijections import splining

        x, *knots = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order
            total = lambda x, *knots: ctx.multisets.sum(_values(x, *knots)).reshape(gradient.shape)
            return *composed_gradients(total, (x, *knots), gradient), None, None
        leaves, table = _double_pieces(knots)
        of_x, sums = torch.empty(x.shape), _sums_of(table, splining.GRADIENTS)
        rows = table.detach().float().numpy()
        ctx.segments.run(splining.spline_sum_gradient, x, [rows], [gradient.contiguous()], [of_x], [sums])
        return of_x, *_of_knots(leaves, table, sums), None, None


def _double_pieces(knots: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
    """Returns knots and rows of pieces in double precision, as a function of them."""
    with torch.enable_grad():
        leaves = [knot.detach().double().requires_grad_() for knot in knots]
        return leaves, _pieces(*leaves)


def _sums_of(table: Tensor, gradients: int) -> Tensor:
    """Returns zeros, to which kernels add gradients by pieces."""
    return torch.zeros(len(table), table.shape[-1], gradients, dtype=torch.float64)


def _of_knots(leaves: Sequence[Tensor], table: Tensor, sums: Tensor) -> list[Tensor]:
    """Returns the gradients by knots from those by the pieces between them."""
    rows = table.detach()
    of_rows = torch.zeros_like(rows)
    of_rows[:, : sums.shape[-1]] = sums.transpose(1, 2)
    # The curve of a bin does not change if all three slopes change by one factor, which gives that by the mean one.
    inverse, height, first, last = (rows[1:-1, k] for k in range(2, 6))
    of_log_mean = -(first * of_rows[1:-1, 4] + last * of_rows[1:-1, 5])
    of_rows[1:-1, 2] += of_log_mean / inverse
    of_rows[1:-1, 3] += torch.where(height > 0, of_log_mean / height, 0)
    return [one.float() for one in torch.autograd.grad(table, leaves, of_rows)]


def _find(x: Tensor, edges: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor) -> tuple[Tensor, _Bin]:
    """Returns the values, with those outside the edges moved to the first edge, and the bin of each."""
    low, high = edges[:, 0], edges[:, -1]
    x = torch.where((x < low) | (x > high), low, x)
    k = _count_below(x.detach(), edges.detach()[:, 1:-1])
    k = (k + torch.arange(len(edges), device=x.device) * edges.shape[1]).reshape(-1)

    def pick(knots: Tensor) -> tuple[Tensor, Tensor]:
        flat = knots.reshape(-1)
        return flat.index_select(0, k).reshape(x.shape), flat.index_select(0, k + 1).reshape(x.shape)

    (x0, x1), (y0, y1), (slope0, slope1) = pick(xs), pick(ys), pick(slopes)
    return x, _Bin(x0, x1 - x0, y0, y1 - y0, slope0, slope1)


def _count_below(x: Tensor, edges: Tensor) -> Tensor:
    """Returns how many of the edges :math:`(d, k)` are at most each value :math:`(*, d)`."""
    if torch.compiler.is_compiling() or x.numel() * edges.shape[-1] < _LARGE:
        return (x[..., None] >= edges).sum(-1)
    if edges.shape[-1] > _MANY:
        columns = x.reshape(-1, x.shape[-1]).T.contiguous()
        return torch.searchsorted(edges.contiguous(), columns, right=True).T.reshape(x.shape)
    # One edge at a time needs little memory, and is up to several times faster than all at once.
    count = torch.zeros_like(x, dtype=torch.int16)
    for edge in edges.unbind(-1):
        count = count + (x >= edge)
    return count.long()


def _with_tails(x: Tensor, edges: Tensor, inside: Tensor, below: Tensor, above: Tensor) -> Tensor:
    return torch.where(x < edges[:, 0], below, torch.where(x > edges[:, -1], above, inside))
