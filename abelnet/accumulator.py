"""The running form of an operation: elements come and go one at a time, and what is kept never grows."""

from __future__ import annotations

__all__ = ["Accumulator"]

import torch
from torch import Tensor

from abelnet.bijections import Bijection
from abelnet.checks import check_dtype, check_finite, check_values
from abelnet.errors import AbelnetError
from abelnet.laws import Law


class Accumulator:
    r"""Folds a stream of elements, in any order and in any number of parts.

    It keeps one running state of the law in float64, whatever the length of the stream: adding is
    :math:`S \leftarrow S + \varphi(x)` for a group, and removing takes the same away again. States of two streams
    merge, so a stream can be split over processes. No gradients are kept, lest the memory of a stream grow with its
    length; ``reduce`` has them. The state belongs to the parameters it was made with: after training goes on, start a
    new one.

    Arguments:
        bijection: The bijection :math:`\varphi` of the operation.
        law: Its law.
        shape: Leading shape :math:`(*)`, to run many accumulators side by side.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> accumulator = AbelianGroup(Affine(1)).accumulator()
        >>> accumulator.add(torch.tensor([1.0]))
        >>> accumulator.add_many(torch.tensor([[2.0], [3.0]]))
        >>> accumulator.remove(torch.tensor([1.0]))
        >>> accumulator.value(), accumulator.count
        (tensor([5.]), 2)
    """

    def __init__(self, bijection: Bijection, law: Law, shape: tuple[int, ...] = ()) -> None:
        self._bijection, self._law, self._shape = bijection, law, torch.Size(shape)
        like = next(bijection.parameters(), torch.empty(0))
        self._state = law.empty(bijection.dim).to(like.device).expand(*shape, -1).clone()
        self._dtype = like.dtype
        self.count = 0

    def add(self, x: Tensor) -> None:
        """Adds one element (to each accumulator), with shape :math:`(*, d)`."""
        self._state = self._law.merge(self._state, self._lift(x, ()))
        self.count += 1

    def add_many(self, values: Tensor) -> None:
        """Adds all elements of a batch, with shape :math:`(*, n, d)`."""
        n = values.shape[-2] if isinstance(values, Tensor) and values.ndim > 1 else -1
        states = self._lift(values, (n,))
        if n > 0:
            self._state = self._law.merge(self._state, self._law.gather(states))
        self.count += n

    def add_at(self, index: Tensor, values: Tensor) -> None:
        """Adds each of the elements :math:`(N, d)` to the accumulator that ``index`` names, of :math:`(G)` of them.

        Example:
            >>> from abelnet import AbelianGroup, Affine
            >>> groups = AbelianGroup(Affine(1)).accumulator((3,))
            >>> groups.add_at(torch.tensor([0, 2, 0]), torch.tensor([[1.0], [2.0], [3.0]]))
            >>> groups.value().tolist()
            [[4.0], [0.0], [2.0]]
        """
        if len(self._shape) != 1 or index.dtype != torch.long or index.shape != values.shape[:1]:
            raise AbelnetError("index: expected one place for each element, and accumulators of shape (G,)")
        if len(index) > 0 and not 0 <= int(index.min()) <= int(index.max()) < self._shape[0]:
            raise AbelnetError(f"index: expected places from 0 to {self._shape[0] - 1}")
        self._state = self._law.scatter(self._state, index, self._encode(values))
        self.count += len(index)

    def grow(self, count: int) -> None:
        """Makes of :math:`G` accumulators side by side ``count``, the new ones empty."""
        more = self._law.empty(self._bijection.dim).expand(count - self._shape[0], -1)
        self._state, self._shape = torch.cat((self._state, more)), torch.Size([count])

    def remove(self, x: Tensor) -> None:
        """Takes away one element that was added before; groups only."""
        if not self._law.is_group:
            raise AbelnetError(f"remove: expected the law of a group, got {self._law.name}, which cannot undo")
        self._state = self._state - self._lift(x, ())
        self.count -= 1

    def merge(self, other: Accumulator) -> None:
        """Adds all that another accumulator of the same operation has taken up."""
        if (
            not isinstance(other, Accumulator)
            or other._state.shape != self._state.shape
            or other._law.name != self._law.name
        ):
            raise AbelnetError(f"other: expected an accumulator like {self}, got {other}")
        self._state = self._law.merge(self._state, other._state)
        self.count += other.count

    @torch.no_grad()
    def value(self) -> Tensor:
        r"""The fold :math:`x_1 \circ \dots \circ x_n` so far, with shape :math:`(*, d)`; the identity of none."""
        if self.count == 0 and self._law.identity(self._bijection.dim) is None:
            raise AbelnetError(f"value: expected at least one element, since {self._law.name} has no identity")
        like = next(self._bijection.parameters(), torch.empty(0, dtype=self._dtype))
        return self._bijection.inverse(self._law.lower(self._state.to(like.device), like.dtype))

    def state_dict(self) -> dict[str, Tensor]:
        """All that is kept, as tensors, to be saved."""
        return {"state": self._state.detach().clone(), "count": torch.tensor(self.count)}

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Takes up what was saved."""
        if set(state_dict) != {"state", "count"}:
            raise AbelnetError(f"state_dict: expected the keys state and count, got {sorted(state_dict)}")
        state = state_dict["state"]
        if state.shape != self._state.shape:
            raise AbelnetError(f"state: expected shape {tuple(self._state.shape)}, got {tuple(state.shape)}")
        self._state = state.to(self._state).clone()
        self.count = int(state_dict["count"])

    def __repr__(self) -> str:
        return f"Accumulator({self._law.name}, shape={tuple(self._state.shape[:-1])}, count={self.count})"

    @torch.no_grad()
    def _lift(self, x: Tensor, elements: tuple[int, ...]) -> Tensor:
        dim = self._bijection.dim
        check_values("x", x, dim)
        if x.shape != (*self._shape, *elements, dim):
            expected = (*self._shape, *("n" for _ in elements), dim)
            raise AbelnetError(f"x: expected shape {expected}, got {tuple(x.shape)}".replace("'n'", "n"))
        return self._encode(x)

    @torch.no_grad()
    def _encode(self, x: Tensor) -> Tensor:
        check_values("x", x, self._bijection.dim)
        check_dtype("x", x, self._bijection)
        check_finite("x", x)
        self._dtype = x.dtype
        return self._law.lift(self._bijection(x)).double()
