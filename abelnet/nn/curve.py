r"""Member of a gated bank for laws without a formula: a monotonic spline that trains well."""

from __future__ import annotations

__all__ = ["Curve"]

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.bijections import Affine, Chain, RationalQuadraticSpline
from abelnet.nn.members import Member, Scene, fold_or_mean
from abelnet.operation import Operation

# Sets by which a curve chooses its coordinates, the step of their differences, and the part of the largest curvature
# that is added to all.
_SAMPLE, _NUDGE, _DAMPING = 500, 1e-2, 1e-3


class Curve(Member):
    r"""Sum and mean over a monotonic spline, for laws without a formula.

    The parameters :math:`\theta` of a spline are badly conditioned: many changes of them hardly change a result. Once
    the bank has kept the curve, it trains in coordinates :math:`\psi` in which all directions change results equally,

    .. math:: \theta = \theta_0 + (J^\top J + \lambda)^{-1/2} \psi

    with the Jacobian :math:`J` of the results. For a squared loss this is the metric of Gauss-Newton steps.

    Arguments:
        channels: Number of channels :math:`c`.
        bins: Number of bins of the spline.
        bound: Units within which the spline bends.
    """

    names = ("curve", "mean over a curve")

    def __init__(self, channels: int, bins: int = 16, bound: float = 6.0) -> None:
        super().__init__(channels)
        self.bijection = Chain(Affine(channels), RationalQuadraticSpline(channels, bins=bins, bound=bound))
        self._sizes = [parameter[0].numel() for parameter in self.bijection.parameters()]
        count = sum(self._sizes)
        # Separate from the parameters of the spline, so that optimizers have no moments of them in other coordinates.
        self.steps = nn.Parameter(torch.zeros(channels, count))
        self.basis: Tensor
        self.register_buffer("basis", torch.zeros(channels, count, count))  # 0 until it is refined
        self._is_refined = False

    def reset_parameters(self) -> None:
        self.bijection.reset_parameters()
        with torch.no_grad():
            self.steps.zero_()
            self.basis.zero_()
        self._is_refined = False

    def look(self) -> None:
        self._is_refined = bool(self.basis.any())

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self.look()

    @torch.no_grad()
    def refine(self, scene: Scene) -> None:
        """Chooses the coordinates by the sets of a batch; once."""
        if self._is_refined or torch.compiler.is_compiling():
            return
        count = min(len(scene.multisets), _SAMPLE)
        multisets = scene.multisets.take(torch.arange(count, device=scene.z.device))
        part = Scene(multisets, multisets.values / scene.units, scene.units)

        def results(change: Tensor) -> Tensor:
            names = self._named(self._raw() + change)
            total = self._call(names, "summed", part.z, multisets)
            lowered = [self._call(names, "inverse", u) for u in (total, total / part.count)]
            return torch.where(part.empty, 0, torch.cat(lowered, -1)).reshape(-1, 2, self.channels)

        # Differences are precise enough for a metric, and need the memory of one forward pass.
        axes = torch.eye(self.steps.shape[-1], dtype=scene.z.dtype, device=scene.z.device)
        middle = results(torch.zeros_like(axes[0]))
        jacobian = torch.stack([(results(_NUDGE * axis) - middle) / _NUDGE for axis in axes], -1).double()
        metric = torch.einsum("blcp,blcq->cpq", jacobian, jacobian) / max(count, 1)
        values, vectors = torch.linalg.eigh(torch.where(metric.isfinite().all((1, 2), keepdim=True), metric, 0))
        largest = values[:, -1:]
        scales = torch.where(largest > 0, values.clamp_min(0) + _DAMPING * largest, 1).rsqrt()
        self.basis.copy_((vectors * scales[:, None]) @ vectors.mT)
        self.steps.zero_()
        self._is_refined = True

    def forward(self, method: str, *arguments: Any) -> Tensor:
        """Returns what a method of the bijection does, for calls with other parameters."""
        y: Tensor = getattr(self.bijection, method)(*arguments)
        return y

    def _raw(self) -> Tensor:
        """Returns the parameters of the spline as it was when it was refined, with shape :math:`(c, p)`."""
        return torch.cat([parameter.reshape(self.channels, -1) for parameter in self.bijection.parameters()], -1)

    def _named(self, raw: Tensor) -> dict[str, Tensor]:
        named = dict(self.bijection.named_parameters())
        parts = torch.split(raw, self._sizes, -1)
        return {
            f"bijection.{name}": part.reshape(old.shape) for (name, old), part in zip(named.items(), parts, strict=True)
        }

    def _now(self) -> dict[str, Tensor]:
        """Returns the parameters of the spline that are in use; none if they are its own."""
        if not self._is_refined:
            return {}
        return self._named(self._raw().detach() + torch.einsum("cpq,cq->cp", self.basis, self.steps))

    def _call(self, named: dict[str, Tensor], method: str, *arguments: Any) -> Tensor:
        """Calls a method of the bijection with other parameters."""
        y: Tensor = torch.func.functional_call(self, named, (method, *arguments)) if named else self(method, *arguments)
        return y

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        now, units = self._now(), (1 / scene.divisor, torch.zeros_like(scene.divisor))
        total = self._call(now, "summed", scene.values, scene.multisets, units).reshape(-1, self.channels)
        return [self._call(now, "inverse", u) for u in (total, total / scene.count)]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        bijection = copy.deepcopy(self.bijection)
        with torch.no_grad():
            for name, value in self._now().items():
                bijection.get_parameter(name.removeprefix("bijection.")).copy_(value)
        curves = bijection.curves()
        mask = torch.zeros(self.channels, dtype=torch.bool)
        mask[list(channels)] = True
        for curve in curves:
            curve.select(mask.to(units.device))
        with torch.no_grad():
            curves[0].log_scale -= units.log()  # type: ignore[operator]
        return Operation(Chain(*curves), fold_or_mean(law))
