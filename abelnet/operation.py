r"""Operations: a law conjugated by a bijection, :math:`x \circ y = \varphi^{-1}(\varphi(x) * \varphi(y))`."""

from __future__ import annotations

__all__ = ["AbelianGroup", "AbelianNet", "AbelianSemigroup", "Folding", "Operation"]

import math
import numbers
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from abelnet.accumulator import Accumulator
from abelnet.bijections import Affine, Bijection, Chain
from abelnet.checks import (
    check_dtype,
    check_finite,
    check_integers,
    check_one_dtype,
    check_range,
    check_values,
    is_checking,
    peek,
)
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.laws import Law, Mean, Polynomial, Product, Sum
from abelnet.laws.base import check_no_empty
from abelnet.laws.logs import LogSum
from abelnet.multisets import Multisets, MultisetValues
from abelnet.precision import in_own_precision
from abelnet.windows import RollingWindow, rolling

if TYPE_CHECKING:
    from sympy import Expr


class Folding(NamedTuple):
    """How an operation aggregates elements.

    Attributes:
        encode: Map of elements, :math:`(*, d)`, to the coordinates in which they are combined.
        law: How they are combined.
        decode: Map of results back to elements.
    """

    encode: Callable[[Tensor], Tensor]
    law: Law | LogSum
    decode: Callable[[Tensor], Tensor]

    def fold(self, x: Tensor, multisets: Multisets) -> Tensor:
        """Returns the coordinates of the result of each set: rows :math:`(N, d)` to :math:`(*, d)`."""
        if isinstance(self.encode, Bijection) and isinstance(self.law, Law) and self.law.adds_elements:
            return self.law.reduce_sum(self.encode.summed(x, multisets), multisets)
        return self.law.reduce(self.encode(x), multisets)


class Operation(Configurable, nn.Module):
    r"""Learnable operation that is commutative and associative by construction.

    .. math:: x \circ y = \varphi^{-1}(\varphi(x) * \varphi(y))

    The operation is the conjugate of :math:`*` by the bijection :math:`\varphi` and inherits every algebraic law of
    :math:`*`, whatever the parameters. Aggregation of a multiset is permutation-invariant and takes one pass,
    :math:`\varphi^{-1}(\varphi(x_1) * \dots * \varphi(x_n))`, for any size. Thread safe: no method writes anything,
    so threads may share an operation as long as none of them trains it.

    Arguments:
        bijection: The map :math:`\varphi`.
        law: The law :math:`*`.

    Example:
        >>> from abelnet import Maximum, Monotonic, Operation
        >>> operation = Operation(Monotonic(2, seed=0), Maximum())
        >>> x, y = torch.randn(5, 2), torch.randn(5, 2)
        >>> torch.equal(operation(x, y), operation(y, x))
        True
    """

    def __init__(self, bijection: Bijection, law: Law) -> None:
        super().__init__()
        if not isinstance(bijection, Bijection):
            raise AbelnetError(f"bijection: expected a Bijection, got {type(bijection).__name__}")
        if not isinstance(law, Law):
            raise AbelnetError(f"law: expected a Law, got {type(law).__name__}")
        law.check_dim(bijection.dim)
        self.bijection = bijection
        self.law = law

    @torch.no_grad()
    def check_state(self) -> None:
        check_one_dtype("bijection", self.bijection)
        # Parameters may be finite and yet overflow everywhere. A law has results at elements of its own scale, whatever
        # that is, and folds a single element to itself.
        like = next(self.bijection.parameters(), torch.empty(0, dtype=torch.float64))
        good, tried = torch.zeros(self.dim, dtype=torch.bool), False
        points = self.bijection.probes().to(like)
        if len(points) == 0:
            return
        for x in (points, *torch.split(points, 1)):
            with suppress(AbelnetError):  # some are outside the domain
                pair, single = self.reduce(x[:, None].expand(-1, 2, -1)), self.reduce(x[:, None])
                good |= (pair.isfinite() & ((single - x).abs() <= 1e-2 * x.abs())).any(0).cpu()
                tried = True
            if bool(good.all()):
                return
        if tried:
            raise AbelnetError("parameters: expected an operation with finite results, got none in some dimension")

    @property
    def dim(self) -> int:
        """Number of dimensions :math:`d` of an element."""
        return self.bijection.dim

    @property
    def is_group(self) -> bool:
        r"""Whether elements have inverses: the law is a group and :math:`\varphi` is injective.

        On a part of the numbers, such as the positive ones, inverses may lie outside the domain of :math:`\varphi`.
        """
        return self.law.is_group and self.bijection.is_injective

    @property
    def folding(self) -> Folding:
        r"""How elements are aggregated: by :math:`\varphi` and the law, or by their logarithms where these overflow."""
        logs = self.law.in_logs() if self.bijection.folds_in_logs else None
        if logs is None:
            if self.bijection.is_identity:
                return Folding(_itself, self.law, _itself)
            return Folding(self.bijection, self.law, self.bijection.inverse)
        rate = self.bijection.log_rate
        if rate is None:
            return Folding(self.bijection.log, logs, self.bijection.inverse_of_log)
        # Elements are scaled as their distances from the extreme of each set are, in one pass.
        return Folding(self.bijection.log_base, replace(logs, rate=rate), self.bijection.inverse_of_log_base)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets bijection and law to the initial values of their constructors, drawn anew where they are random.

        Arguments:
            seed: Random seed; torch's global generator is used if not given.

        Example:
            >>> from abelnet import AbelianGroup, Monotonic
            >>> group = AbelianGroup(Monotonic(2, seed=0))
            >>> group.reset_parameters(seed=1)
            >>> torch.equal(group.bijection.bias, Monotonic(2, seed=1).bias)
            True
        """
        self.bijection.reset_parameters(seed)
        self.law.reset_parameters()

    def centered(self) -> Operation:
        r"""Returns the operation with elements moved by the identity :math:`e` of its law, after the bijection.

        Elements near 0, which is what an encoder sends at first, are then near the identity. With products, whose
        absorbing element is 0, results of large sets would otherwise vanish, and their gradients with them. The shift
        is learned on. The operation itself is returned if its law has no absorbing element, or starts at 0 anyway.

        Example:
            >>> from abelnet import AbelianSemigroup, Affine
            >>> x = torch.full((100, 1), 0.1)
            >>> AbelianSemigroup(Affine(1)).reduce(x).item()
            0.0
            >>> round(AbelianSemigroup(Affine(1)).centered().reduce(x).item(), 1)  # 1.1^100 - 1
            13779.6
        """
        identity, absorbing = self.law.identity(self.dim), self.law.absorbing(self.dim)
        if identity is None or absorbing is None or not bool((identity == identity[0]).all()) or identity[0] == 0:
            return self
        like = next(self.bijection.parameters(), identity)
        shift = Affine(self.dim, shift=float(identity[0]), device=like.device, dtype=like.dtype)
        return Operation(Chain(self.bijection, shift), self.law)

    @in_own_precision
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        r"""Combines :math:`x` and :math:`y` of shapes that broadcast to :math:`(*, d)` into :math:`x \circ y`."""
        encode, law, decode = self.folding
        u, v = self._encode(encode, x=x, y=y)
        return decode(law.combine(u, v)).contiguous()

    def identity(self) -> Tensor:
        r"""Returns the identity :math:`e`, with :math:`x \circ e = x` and shape :math:`(d)`.

        Raises if there is none: the law has none, or it is outside the domain, such as the center of no mass or the
        log-sum-exp of nothing.
        """
        identity = self.law.identity(self.dim)
        if identity is None or not self.bijection.is_injective:
            got = self.law.name if identity is None else type(self.bijection).__name__
            raise AbelnetError(f"identity: expected an operation with an identity, got one over {got}")
        like = next(self.bijection.parameters(), identity)
        found = self.bijection.inverse(identity.to(like.device, like.dtype))
        if is_checking() and not peek(found.isfinite().all(), True):
            raise AbelnetError(
                "identity: expected an operation with an identity, got one whose identity is outside the domain, "
                f"{self.bijection.describe_domain()}"
            )
        return found

    def absorbing(self) -> Tensor | None:
        r"""Returns the absorbing element :math:`z`, with :math:`x \circ z = z` and shape :math:`(d)`, or None."""
        absorbing = self.law.absorbing(self.dim)
        if absorbing is None:
            return None
        like = next(self.bijection.parameters(), absorbing)
        return self.bijection.inverse(absorbing.to(like.device, like.dtype))

    @in_own_precision
    def inverse(self, x: Tensor) -> Tensor:
        r"""Returns the inverse :math:`x^{-1}`, with :math:`x \circ x^{-1} = e`; groups only."""
        (u,) = self._encode(self.bijection, x=x)
        return self.bijection.inverse(self._inverted(u))

    @in_own_precision
    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        r"""Returns the quotient :math:`x \circ y^{-1}`, which combined with :math:`y` gives :math:`x`; groups only."""
        u, v = self._encode(self.bijection, x=x, y=y)
        return self.bijection.inverse(self.law.combine(u, self._inverted(v)))

    @in_own_precision
    def analogy(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        r"""Solves :math:`a : b = c : ?` by :math:`b \circ a^{-1} \circ c`; groups only."""
        return self._analogy(*self._encode(self.bijection, a=a, b=b, c=c))

    @in_own_precision
    def analogies(self, elements: Tensor, index: Tensor) -> Tensor:
        r"""Solves a batch of analogies between shared elements, mapping each by :math:`\varphi` once; groups only.

        Arguments:
            elements: Elements, with shape :math:`(m, d)`.
            index: Rows of :math:`a, b, c`, with shape :math:`(*, 3)`.

        Returns:
            The result of :meth:`analogy` for each row of ``index``, with shape :math:`(*, d)`.

        Example:
            >>> from abelnet import AbelianGroup, Affine
            >>> elements = torch.tensor([[1.0], [2.0], [10.0]])
            >>> AbelianGroup(Affine(1)).analogies(elements, torch.tensor([[0, 1, 2], [1, 0, 2]])).tolist()
            [[11.0], [9.0]]
        """
        check_values("elements", elements, self.dim)
        index = check_integers("index", index)
        if elements.ndim != 2 or index.ndim == 0 or index.shape[-1] != 3:
            got = f"{tuple(elements.shape)} and {tuple(index.shape)}"
            raise AbelnetError(f"elements, index: expected shapes (m, {self.dim}) and (*, 3), got {got}")
        check_range("index", index, len(elements))
        (encoded,) = self._encode(self.bijection, elements=elements)
        return self._analogy(*F.embedding(index, encoded).unbind(-2))

    @in_own_precision
    def translation(self, a: Tensor, b: Tensor, how: Literal["mean", "median"] | Tensor = "mean") -> Tensor:
        r"""Returns the element :math:`t` that takes :math:`a_i` to :math:`b_i` on average; groups only.

        .. math:: t = \varphi^{-1}\Bigl(\sum_i w_i (\varphi(b_i) - \varphi(a_i))\Bigr)

        From one pair it is :math:`b \circ a^{-1}`, and :math:`t \circ c` solves :math:`a : b = c : ?` for any number of
        pairs.

        Arguments:
            a: First elements of :math:`k \ge 1` pairs, with shape :math:`(*, k, d)`.
            b: Second elements, with a shape that broadcasts with it.
            how: ``"mean"``, where all :math:`w_i = 1 / k`; ``"median"`` of each coordinate of :math:`\varphi`, which a
                few wrong pairs do not change much; or weights of the pairs, with shape :math:`(*, k)`, at least 0,
                which are divided by their sum.

        Returns:
            One element per set of pairs, with shape :math:`(*, d)`.

        Example:
            >>> from abelnet import AbelianGroup, Generator
            >>> group = AbelianGroup(Generator(1, "logarithm", [0.0]))  # multiplication of positive numbers
            >>> a, b = torch.tensor([[1.0], [10.0], [5.0]]), torch.tensor([[2.0], [80.0], [20.0]])
            >>> translation = group.translation(a, b)  # the geometric mean of 2, 8 and 4
            >>> round(group(translation, torch.tensor([3.0])).item(), 4)
            12.0
            >>> round(group.translation(a, b, torch.tensor([0.0, 0.0, 2.0])).item(), 4)
            4.0
        """
        u, v = self._encode(self.bijection, a=a, b=b)
        offsets = self.law.combine(v, self._inverted(u))
        if offsets.ndim < 2 or offsets.shape[-2] == 0:
            raise AbelnetError(
                f"a, b: expected shapes (*, k, {self.dim}) with at least one pair, got {tuple(a.shape)} and "
                f"{tuple(b.shape)}"
            )
        if isinstance(how, Tensor):
            return self.bijection.inverse(_weighted_mean(offsets, how))
        if how == "mean":
            return self.bijection.inverse(offsets.mean(-2))
        if how == "median":
            # The mean of both middle values where their number is even, unlike torch's median.
            middle, count = offsets.sort(-2).values, offsets.shape[-2]
            return self.bijection.inverse((middle[..., (count - 1) // 2, :] + middle[..., count // 2, :]) / 2)
        raise AbelnetError(f'how: expected "mean", "median" or weights, got {how!r}')

    @in_own_precision
    def power(self, x: Tensor, n: float) -> Tensor:
        r"""Combines ``n`` copies of :math:`x`: :math:`x^n = x \circ \dots \circ x`.

        In a group ``n`` is any real number: :math:`\varphi^{-1}(n \varphi(x))` is the inverse at :math:`-1` and the
        element whose square is :math:`x` at :math:`1/2`. Otherwise it is a positive integer, or 0 if there is an
        identity.
        """
        if not isinstance(n, numbers.Real) or not math.isfinite(n):
            raise AbelnetError(f"n: expected a finite number, got {n!r}")
        least = 0 if self.law.identity(self.dim) is not None else 1
        if not self.is_group and (n != int(n) or n < least):
            raise AbelnetError(
                f"n: expected an integer of at least {least}, since {self.law.name} is not a group, got {n}"
            )
        encode, law, decode = self.folding if n > 0 else Folding(self.bijection, self.law, self.bijection.inverse)
        (u,) = self._encode(encode, x=x)
        return decode(law.power(u, float(n)))

    @in_own_precision
    def reduce(
        self,
        values: MultisetValues,
        *,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
    ) -> Tensor:
        r"""Aggregates each multiset: :math:`x_1 \circ \dots \circ x_n`, or the identity if it is empty.

        Arguments:
            values: Elements, :math:`(*, n, d)`, or :math:`(N, d)` with ``index`` or ``ptr``, or a list of tensors
                :math:`(n_i, d)`, or :class:`~abelnet.Multisets`.
            mask: True for elements, False for padding, :math:`(*, n)`.
            index: Set of each element, :math:`(N)`, in any order.
            ptr: Offset of each set, and :math:`N`, as in CSR, :math:`(B + 1)`.
            dim_size: Number of sets :math:`B`; by default the largest entry of ``index`` plus one.

        Returns:
            One element per set, :math:`(*, d)` or :math:`(B, d)`; no rows if there are no sets.

        Example:
            >>> from abelnet import AbelianGroup, Affine
            >>> group = AbelianGroup(Affine(1))
            >>> x = torch.tensor([[1.0], [2.0], [3.0]])
            >>> group.reduce(x, ptr=torch.tensor([0, 2, 2, 3])).tolist()
            [[3.0], [0.0], [3.0]]
        """
        multisets = Multisets.unchecked(values, self.dim, mask=mask, index=index, ptr=ptr, dim_size=dim_size)
        try:
            check_dtype("values", multisets.values, self.bijection)
            self.law.check_element_weights(multisets)
            folding = self.folding
            if is_checking() and self._misses_identity():
                check_no_empty("the operation", multisets)
            return folding.decode(folding.fold(multisets.values, multisets)).contiguous()
        finally:
            multisets.check_values()

    @in_own_precision
    def mean(
        self,
        values: MultisetValues,
        *,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
    ) -> Tensor:
        r"""Returns the quasi-arithmetic mean of each multiset, :math:`\varphi^{-1}(\frac{1}{n} \sum_i \varphi(x_i))`.

        It depends on the bijection alone, whatever the law. Arguments and shapes are those of :meth:`reduce`; an empty
        set has no mean.

        Example:
            >>> from abelnet import AbelianGroup, Generator
            >>> group = AbelianGroup(Generator(1, "logarithm", [0.0]))
            >>> round(group.mean(torch.tensor([[2.0], [4.0], [8.0]])).item(), 5)  # the geometric mean
            4.0
        """
        mean = Operation(self.bijection, Mean())
        return mean.reduce(values, mask=mask, index=index, ptr=ptr, dim_size=dim_size)

    @in_own_precision
    def cumulative(self, values: Tensor) -> Tensor:
        r"""Returns the prefix scan :math:`x_1, x_1 \circ x_2, \dots` along the elements of :math:`(*, n, d)`."""
        encode, law, decode = self.folding
        (u,) = self._encode(encode, values=values)
        if u.ndim < 2:
            raise AbelnetError(f"values: expected shape (*, n, {self.dim}), got {tuple(u.shape)}")
        return decode(law.cumulative(u))

    def rolling(
        self,
        values: Tensor,
        window: float,
        *,
        times: Tensor | None = None,
        min_periods: int | None = None,
        closed: str = "right",
    ) -> Tensor:
        r"""Aggregates a sliding window: at each step the last elements, by number or by time, as pandas' ``rolling``.

        It takes constant time per step for windows of a number of elements, and the logarithm of the largest one for
        windows of time. Nothing is subtracted: there is no drift, and a large element leaves no error behind.

        Arguments:
            values: Elements in the order of time, :math:`(*, T, d)`. One with NaN is missing and counts for nothing.
            window: Number of elements; with ``times``, the length :math:`s` of the window in their unit.
            times: Time of each element, :math:`(T)`, ascending. The window at :math:`t` contains elements of
                :math:`(t - s, t]`, and of those at :math:`t` itself the ones up to this step.
            min_periods: Number of elements below which there is no result, but NaN: by default ``window``, and 1 with
                ``times``. At 0, empty windows have the identity, or NaN if there is none.
            closed: Which ends of a window of time belong to it: ``"right"``, ``"both"``, ``"left"`` or ``"neither"``.

        Returns:
            The aggregate of each window, :math:`(*, T, d)`.

        Example:
            >>> from abelnet import AbelianGroup, Affine
            >>> group = AbelianGroup(Affine(1))
            >>> x = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
            >>> group.rolling(x, 2).tolist()
            [[nan], [3.0], [6.0], [12.0]]
            >>> group.rolling(x, 10.0, times=torch.tensor([0, 9, 10, 40])).tolist()
            [[1.0], [3.0], [6.0], [8.0]]
        """
        fold = partial(rolling, window=window, times=times, min_periods=min_periods, closed=closed)
        return self._rolling(values, fold)

    @in_own_precision
    def _rolling(self, values: Tensor, fold: Callable[..., Tensor]) -> Tensor:
        # Apart from the times, which are not to be rounded to the precision of elements.
        return fold(self, values)

    def window(self, size: int | None = None, *, span: Any = None, min_periods: int | None = None) -> RollingWindow:
        """Returns an empty :class:`~abelnet.windows.RollingWindow`: the last ``size`` elements of a stream, or those of
        the last ``span`` of time."""
        return RollingWindow(self, size, span=span, min_periods=min_periods)

    def accumulator(self, shape: tuple[int, ...] = ()) -> Accumulator:
        """Returns an empty :class:`Accumulator` for streaming aggregation, or a batch of them with ``shape``."""
        return Accumulator(self.bijection, self.law, shape)

    def expression(self, x: Any, y: Any, dimension: int = 0) -> Expr:
        r"""Returns :math:`x \circ y` in one dimension as a sympy expression; raises if there is no closed form.

        Arguments:
            x: The number in this dimension, or a sequence of all :math:`d` coordinates; the latter is needed if the
                bijection does not map dimensions independently.
            y: Likewise.
            dimension: Index of the dimension.

        Example:
            >>> import sympy
            >>> from abelnet import AbelianGroup, Generator
            >>> x, y = sympy.symbols("x y", positive=True)
            >>> AbelianGroup(Generator(1, "power", [2.0])).expression(x, y)
            sqrt(x**2 + y**2)

            The center of mass, in which coordinates mix:

            >>> from abelnet import Triangular
            >>> from abelnet.bijections.terms import Monomial, Power
            >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
            >>> center = AbelianGroup(Triangular(2, [[mass], [moment]], [[1.0], [1.0]], signs=[1, 0]))
            >>> center.expression(sympy.symbols("m1 x1"), sympy.symbols("m2 x2"), 1)
            (m1*x1 + m2*x2)/(m1 + m2)
        """
        from sympy import Piecewise

        if not self.bijection.is_elementwise:
            places = range(self.dim)
            u, v = ([self.bijection.expression(element, j) for j in places] for element in (x, y))
            combined = [self.law.expression(u[j], v[j], j) for j in places]
            return self.bijection.inverse_expression(combined, dimension)
        x, y = (element[dimension] if isinstance(element, Sequence) else element for element in (x, y))
        u, v = (self.bijection.expression(element, dimension) for element in (x, y))
        if u.has(Piecewise):
            # Pieces of pieces: hundreds, which sympy compares with each other.
            raise AbelnetError(
                f"expression: expected a bijection of one piece, got {type(self.bijection).__name__}; compose "
                "bijection.expression, law.expression and bijection.inverse_expression by a function of your own"
            )
        return self.bijection.inverse_expression(self.law.expression(u, v, dimension), dimension)

    def config(self) -> dict[str, Any]:
        return {"bijection": self.bijection, "law": self.law}

    def _misses_identity(self) -> bool:
        """Whether the bijection, which is positive, does not reach the identity of the law."""
        identity = self.law.identity(self.dim)
        if identity is None or not self.bijection.has_log_form:
            return False
        device = next(self.bijection.parameters(), identity).device
        identity, low, high = (torch.as_tensor(end, device=device) for end in (identity, *self.bijection.codomain))
        return not peek(((identity > low) & (identity < high)).all(), True)

    def _encode(self, encode: Callable[[Tensor], Tensor], **elements: Tensor) -> Sequence[Tensor]:
        """Maps all elements by the bijection, or its logarithm, in one pass if a wider matrix product pays off."""
        for name, x in elements.items():
            check_values(name, x, self.dim)
            check_dtype(name, x, self.bijection)
            check_finite(name, x)
        shapes = [tuple(x.shape) for x in elements.values()]
        if not torch.compiler.is_exporting() and any(  # where sizes are symbolic
            len({*sizes} - {1}) > 1 for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
        ):
            got = " and ".join(map(str, shapes))
            raise AbelnetError(f"{', '.join(elements)}: expected shapes that broadcast, got {got}")
        # Elementwise maps gain nothing from one pass, and separately they are commutative to the last bit: torch may
        # round an element differently at another position of a tensor.
        if len(elements) == 1 or self.bijection.is_elementwise:
            return [encode(x) for x in elements.values()]
        rows = [x.reshape(-1, self.dim) for x in elements.values()]
        encoded = torch.split(encode(torch.cat(rows)), [row.shape[0] for row in rows])
        return [u.reshape(x.shape) for u, x in zip(encoded, elements.values(), strict=True)]

    def _analogy(self, u: Tensor, v: Tensor, w: Tensor) -> Tensor:
        return self.bijection.inverse(self.law.combine(self.law.combine(v, self._inverted(u)), w))

    def _inverted(self, u: Tensor) -> Tensor:
        if not self.bijection.is_injective:
            name = type(self.bijection).__name__
            raise AbelnetError(f"inverse: expected a group, got an operation over {name}, which loses signs")
        return self.law.inverse(u)


def _itself(x: Tensor) -> Tensor:
    return x


def _weighted_mean(offsets: Tensor, weights: Tensor) -> Tensor:
    if weights.ndim == 0 or weights.shape[-1] != offsets.shape[-2]:
        raise AbelnetError(f"how: expected weights of shape (*, {offsets.shape[-2]}), got {tuple(weights.shape)}")
    weights = weights.to(offsets)
    total = weights.sum(-1, keepdim=True)
    if is_checking() and not peek(((weights >= 0).all() & (total > 0).all() & total.isfinite().all()), True):
        raise AbelnetError("how: expected finite weights of at least 0, not all 0, got others")
    return ((weights / total)[..., None] * offsets).sum(-2)


class AbelianGroup(Operation):
    r"""Abelian group network (AGN): addition conjugated by a bijection.

    .. math:: x \circ y = \varphi^{-1}(\varphi(x) + \varphi(y)), \quad
        e = \varphi^{-1}(0), \quad x^{-1} = \varphi^{-1}(-\varphi(x))

    Arguments:
        bijection: The map :math:`\varphi`.

    Example:
        >>> from abelnet import AbelianGroup, Monotonic
        >>> group = AbelianGroup(Monotonic(1, seed=0))
        >>> x = torch.randn(5, 1)
        >>> torch.allclose(group(x, group.inverse(x)), group.identity(), atol=1e-6)
        True
    """

    def __init__(self, bijection: Bijection) -> None:
        super().__init__(bijection, Sum())

    def config(self) -> dict[str, Any]:
        return {"bijection": self.bijection}


class AbelianSemigroup(Operation):
    r"""Abelian semigroup network (ASN): elementwise multiplication conjugated by a bijection.

    .. math:: x \circ y = \varphi^{-1}(\varphi(x) \varphi(y)), \quad e = \varphi^{-1}(1)

    It is a commutative monoid, with the absorbing element :math:`\varphi^{-1}(0)`.

    Arguments:
        bijection: The map :math:`\varphi`.

    Example:
        >>> from abelnet import AbelianSemigroup, Affine
        >>> semigroup = AbelianSemigroup(Affine(1))
        >>> semigroup(torch.tensor([2.0]), torch.tensor([3.0])).item()
        6.0
    """

    def __init__(self, bijection: Bijection) -> None:
        super().__init__(bijection, Product())

    def config(self) -> dict[str, Any]:
        return {"bijection": self.bijection}


class AbelianNet(Operation):
    r"""Network that learns from examples whether it is an Abelian group or a semigroup.

    .. math:: x \circ y = \varphi^{-1}(\varphi(x) + \varphi(y) + \gamma \varphi(x) \varphi(y)), \quad
        e = \varphi^{-1}(0)

    At :math:`\gamma = 0` it is a group, otherwise a commutative monoid with the absorbing element
    :math:`\varphi^{-1}(-1 / \gamma)`. It is smooth in :math:`\gamma`, so training can move from one to the other.

    Arguments:
        bijection: The map :math:`\varphi`.
        gamma: Initial value of the coefficient :math:`\gamma` of every dimension, a number; or a tensor with shape
            :math:`(d)`, or :math:`(1)` for one coefficient that all dimensions share.

    Example:
        >>> from abelnet import AbelianNet, Affine
        >>> net = AbelianNet(Affine(1), gamma=0.5)
        >>> net(torch.tensor([2.0]), torch.tensor([4.0])).item()
        10.0
        >>> net.is_group
        False
    """

    def __init__(self, bijection: Bijection, gamma: float | Sequence[float] | Tensor = 0.0) -> None:
        if isinstance(gamma, int | float) and isinstance(bijection, Bijection):
            gamma = [gamma] * bijection.dim
        super().__init__(bijection, Polynomial(gamma, trainable="gamma"))

    def config(self) -> dict[str, Any]:
        return {"bijection": self.bijection, "gamma": self.law.config()["gamma"]}
