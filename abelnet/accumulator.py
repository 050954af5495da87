"""Streaming aggregation: elements are added and removed one at a time, in constant memory."""

from __future__ import annotations

__all__ = ["Accumulator"]

import functools
import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from abelnet.bijections import Bijection
from abelnet.bijections.terms import Factor, Term
from abelnet.checks import check_count, check_dtype, check_finite, check_integers, check_range, check_values
from abelnet.errors import AbelnetError
from abelnet.laws import Law
from abelnet.laws.logs import PeakSum
from abelnet.snapshots import Snapshot, bytes_of, has_same_bits, named_tensors

P = ParamSpec("P")
R = TypeVar("R")


def _alone(method: Callable[Concatenate[Accumulator, P], R]) -> Callable[Concatenate[Accumulator, P], R]:
    """Runs a method under the lock of its accumulator: every update reads the state that it replaces."""

    @functools.wraps(method)
    def run(self: Accumulator, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return run


class Accumulator:
    r"""Streaming, mergeable aggregate of elements, in any order and in any number of parts.

    It keeps one running state of the law in float64, whatever the length of the stream: adding is
    :math:`S \leftarrow S + \varphi(x)` for a group, and removing subtracts the same. Exponentials and powers are
    measured from the largest so far, so that nothing overflows. States of two streams merge, so a stream can be split
    over processes. No gradients are tracked, since their memory would grow with the stream;
    ``reduce`` has them. The state is valid for the parameters it was created with: once they change, as in training,
    every method raises an error, and a new accumulator must be created.

    Thread safe: any number of threads may call any of its methods, and no update is lost; each holds a lock while it
    computes, so one accumulator per thread, merged at the end, is faster. :class:`~abelnet.Operation` is thread safe as
    well, since no method of it writes anything.

    Arguments:
        bijection: The bijection :math:`\varphi` of the operation.
        law: The law of the operation.
        shape: Leading shape :math:`(*)`, for a batch of accumulators.

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
        logs = law.in_logs() if bijection.folds_in_logs else None
        self._in_logs = logs is not None
        self._states: Law | PeakSum = law if logs is None else PeakSum(logs.exponent)  # what merges them
        like = next(bijection.parameters(), torch.empty(0))
        self._state = self._states.empty(bijection.dim).to(like.device).expand(*shape, -1).clone()
        self._dtype = like.dtype
        self._started_with = Snapshot(bijection, law)
        self._lock = threading.RLock()
        self.count = 0

    @_alone
    def add(self, x: Tensor) -> None:
        """Adds one element (to each accumulator), with shape :math:`(*, d)`."""
        self._state = self._states.merge(self._state, self._lift(x, ()))
        self.count += 1

    @_alone
    def add_many(self, values: Tensor) -> None:
        """Adds :math:`n` elements (to each accumulator), with shape :math:`(*, n, d)`."""
        n = values.shape[-2] if isinstance(values, Tensor) and values.ndim > 1 else -1
        states = self._lift(values, (n,))
        if n > 0:
            self._state = self._states.merge(self._state, self._states.gather(states))
        self.count += n

    @_alone
    def add_at(self, index: Tensor, values: Tensor) -> None:
        """Adds each of the elements :math:`(N, d)` to one of :math:`G` accumulators, given by ``index`` :math:`(N)`.

        Example:
            >>> from abelnet import AbelianGroup, Affine
            >>> groups = AbelianGroup(Affine(1)).accumulator((3,))
            >>> groups.add_at(torch.tensor([0, 2, 0]), torch.tensor([[1.0], [2.0], [3.0]]))
            >>> groups.value().tolist()
            [[4.0], [0.0], [2.0]]
        """
        self._check_row("add_at")
        index = check_integers("index", index)
        check_values("values", values, self._bijection.dim)
        if values.ndim != 2 or index.shape != values.shape[:1]:
            got = f"{tuple(index.shape)} and {tuple(values.shape)}"
            raise AbelnetError(f"index, values: expected shapes (N) and (N, {self._bijection.dim}), got {got}")
        check_range("index", index, self._shape[0])
        self._state = self._states.scatter(self._state, index, self._encode(values))
        self.count += len(index)

    @_alone
    def grow(self, count: int) -> None:
        """Appends empty accumulators to the :math:`G` existing ones, up to ``count`` in total."""
        self._check_row("grow")
        count = check_count("count", count, self._shape[0])
        more = self._states.empty(self._bijection.dim).to(self._state.device).expand(count - self._shape[0], -1)
        self._state, self._shape = torch.cat((self._state, more)), torch.Size([count])

    @_alone
    def remove(self, x: Tensor) -> None:
        """Removes one element that was added before; groups, capped sums and means only."""
        self._check_parameters()  # training may have changed a group into another law
        if self.count == 0:
            raise AbelnetError("remove: expected an element that was added before, got none; the accumulator is empty")
        if not self._law.has_removal:
            raise AbelnetError(f"remove: expected a law whose states can be subtracted, got {self._law.name}")
        self._state = self._states.remove(self._state, self._lift(x, ()))
        self.count -= 1

    def merge(self, other: Accumulator) -> None:
        """Merges another accumulator of the same operation into this one.

        Operations are the same if law and bijection are identical, or copies that are equal bit for bit, for example
        after two processes have loaded one file.
        """
        if not isinstance(other, Accumulator):
            raise AbelnetError(f"other: expected an Accumulator, got {type(other).__name__}")
        first, second = sorted((self, other), key=id)  # one order for all threads, or two merges could wait for ever
        with first._lock, second._lock:
            self._merge(other)

    def _merge(self, other: Accumulator) -> None:
        if other._shape != self._shape:
            raise AbelnetError(f"other: expected shape {tuple(self._shape)}, got {tuple(other._shape)}")
        for accumulator in (self, other):
            accumulator._check_parameters()
        for name, mine, theirs in (("law", self._law, other._law), ("bijection", self._bijection, other._bijection)):
            difference = _difference(mine, theirs)
            if difference is not None:
                raise AbelnetError(f"other: expected the same {name}, got a different one: {difference}")
        self._state = self._states.merge(self._state, other._state.to(self._state.device))
        self.count += other.count

    @_alone
    @torch.no_grad()
    def value(self) -> Tensor:
        r"""Returns the fold :math:`x_1 \circ \dots \circ x_n`, with shape :math:`(*, d)`; the identity if empty."""
        self._check_parameters()
        if self.count == 0 and self._law.identity(self._bijection.dim) is None:
            raise AbelnetError(f"value: expected at least one element, since {self._law.name} has no identity")
        like = next(self._bijection.parameters(), torch.empty(0, dtype=self._dtype))
        result = self._states.lower(self._state, like.dtype)
        return self._bijection.inverse_of_log(result) if self._in_logs else self._bijection.inverse(result)

    @_alone
    def state_dict(self) -> dict[str, Tensor]:
        """Returns the state as tensors, for saving: the sum, the count, and SHA-256 digests of law and bijection."""
        self._check_parameters()
        return {
            "state": self._state.detach().clone(),
            "count": torch.tensor(self.count),
            "law": _digest(self._law),
            "bijection": _digest(self._bijection),
        }

    @_alone
    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Loads a state saved by an accumulator of the same operation and shape; raises for any other."""
        self._check_parameters()
        keys = ("state", "count", "law", "bijection")
        if not isinstance(state_dict, Mapping) or set(state_dict) != set(keys):
            got = sorted(map(str, state_dict)) if isinstance(state_dict, Mapping) else type(state_dict).__name__
            raise AbelnetError(f"state_dict: expected the keys {', '.join(keys)}, got {got}")
        for name, x in state_dict.items():
            if not isinstance(x, Tensor):
                raise AbelnetError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
        for name, module in (("law", self._law), ("bijection", self._bijection)):
            if not torch.equal(state_dict[name].cpu(), _digest(module)):
                raise AbelnetError(
                    f"state_dict: expected the state of the same {name}, {type(module).__name__} with its parameters, "
                    "got that of another; load it into an accumulator of the operation that saved it"
                )
        count = check_integers("count", state_dict["count"])
        if count.numel() != 1 or int(count) < 0:
            raise AbelnetError(f"count: expected one integer of at least 0, got {count.tolist()}")
        state = state_dict["state"]
        self._check_state(state, int(count))
        self._state = state.detach().to(self._state.device, copy=True)
        self.count = int(count)

    def __repr__(self) -> str:
        return f"Accumulator({self._law.name}, shape={tuple(self._state.shape[:-1])}, count={self.count})"

    @_alone
    def __getstate__(self) -> dict[str, Any]:
        self._check_parameters()
        return {name: value for name, value in vars(self).items() if name not in ("_started_with", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()
        self._started_with = Snapshot(self._bijection, self._law)

    def _check_row(self, name: str) -> None:
        if len(self._shape) != 1:
            raise AbelnetError(f"{name}: expected accumulators of shape (G,), got {tuple(self._shape)}")

    def _check_state(self, state: Tensor, count: int) -> None:
        """Raises unless ``count`` elements can have this state."""
        if state.shape != self._state.shape or state.dtype != self._state.dtype:
            expected = f"shape {tuple(self._state.shape)} and {self._state.dtype}"
            raise AbelnetError(f"state: expected {expected}, got {tuple(state.shape)} and {state.dtype}")
        empty = (state.cpu() == self._states.empty(self._bijection.dim)).all(-1)
        if count == 0 and not self._law.has_removal and not bool(empty.all()):
            raise AbelnetError("state: expected the empty state, since the count is 0, got another")
        # An empty maximum is -inf. A single accumulator with elements is not empty; some of a batch may be.
        may_be_empty = empty if count == 0 or self._shape else torch.zeros_like(empty)
        if not bool((state.cpu().isfinite().all(-1) | may_be_empty).all()):
            raise AbelnetError(f"state: expected finite numbers for a count of {count}, got NaN or infinity")

    def _check_parameters(self) -> None:
        """Raises if the parameters have changed since creation; if they have changed device, moves the state."""
        device = self._started_with.check("accumulator")
        if device is not None:
            self._state = self._state.to(device)

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
        self._check_parameters()
        check_values("x", x, self._bijection.dim)
        check_dtype("x", x, self._bijection)
        check_finite("x", x)
        self._dtype = x.dtype
        return self._states.lift(self._bijection.log(x) if self._in_logs else self._bijection(x)).double()


def _difference(mine: nn.Module, theirs: nn.Module) -> str | None:
    """Describes what makes two modules different functions; None if nothing does."""
    if mine is theirs:
        return None
    parts, others = dict(mine.named_modules()), dict(theirs.named_modules())
    for name, part in parts.items():
        other = others.get(name)
        if type(part) is not type(other) or len(parts) != len(others):
            return f"{_where(name)}{type(other or theirs).__name__} instead of {type(part).__name__}"
        mine_set, theirs_set = _settings(part), _settings(other)
        if mine_set != theirs_set:
            return f"{_where(name)}{theirs_set} instead of {mine_set}"
    tensors, other_tensors = named_tensors(mine), named_tensors(theirs)
    for name in sorted(tensors.keys() | other_tensors.keys()):
        if name not in tensors or name not in other_tensors or not has_same_bits(tensors[name], other_tensors[name]):
            return f"{name} differs"
    return None


def _digest(module: nn.Module) -> Tensor:
    """SHA-256 of what :func:`_difference` compares: classes, plain attributes and tensors, equal in every process."""
    digest = hashlib.sha256()
    for name, part in module.named_modules():
        digest.update(f"{name} {type(part).__qualname__} {_plain(_settings(part))}\n".encode())
    for name, x in sorted(named_tensors(module).items()):
        digest.update(f"{name} {x.dtype} {tuple(x.shape)}\n".encode())
        if not x.is_meta:
            digest.update(bytes_of(x).numpy().data)
    return torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)


def _plain(value: Any) -> str:
    """Describes an attribute by what is the same in every process; other objects by their class."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_plain(value[key])}' for key in sorted(value, key=str))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Term | Factor):
        return f"{type(value).__qualname__}({_plain(value.config())})"
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__qualname__


def _where(name: str) -> str:
    return f"{name}: " if name else ""


def _settings(module: nn.Module | None) -> dict[str, Any]:
    """Returns the plain attributes of a module, such as the bound of a spline."""
    return {
        name: value.tolist() if isinstance(value, Tensor) else value
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "training"
    }
