"""What was learned: the law of one dimension, and the evidence for it."""

from __future__ import annotations

__all__ = ["LearnedLaw", "Tried"]

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from abelnet.config import Configurable
from abelnet.discovery import formula
from abelnet.operation import Operation

if TYPE_CHECKING:
    from sympy import Expr

# Landmarks closer to 0 than this are 0: what rounding leaves of it.
_ZERO = 1e-12


class Tried(NamedTuple):
    """A law that was tried.

    Attributes:
        title: What kind it is.
        parameters: How many numbers were fitted.
        rmse: Error on held-out examples.
    """

    title: str
    parameters: int
    rmse: float


@dataclass
class LearnedLaw(Configurable):
    """The law of one dimension, and why it was chosen.

    Attributes:
        operation: The law, ready to use, in float64.
        title: What kind it is.
        rmse: Error on held-out examples, before the law was fitted to all.
        explained: Part of the variance of the held-out results that it explains.
        tried: Every law that was tried, best first.
        eigenvalues: How far the examples are from any group and from any semigroup.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> law = LearnedLaw(AbelianGroup(Generator(1, "power", [2.0])), "sum of power", 0.0, 1.0)
        >>> law.formula
        'x∘y = (x^2 + y^2)^(1/2)'
        >>> law.identity
        0.0
    """

    operation: Operation
    title: str
    rmse: float
    explained: float
    tried: Sequence[Tried] = ()
    eigenvalues: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tried = [Tried(*row) for row in self.tried]

    @property
    def formula(self) -> str:
        """The law of two elements as text, such as ``x∘y = x + y − x·y``."""
        return formula.formula(self.operation)

    @property
    def latex(self) -> str:
        """The law of two elements as LaTeX."""
        return formula.latex(self.operation)

    @property
    def sympy(self) -> Expr:
        """The law of two real elements ``x`` and ``y`` for sympy, curves of many numbers as the function ``φ``.

        Example:
            >>> from abelnet import AbelianSemigroup, Generator
            >>> LearnedLaw(AbelianSemigroup(Generator(1, "affine")), "product of affine", 0.0, 1.0).sympy
            x*y
        """
        return formula.expression(self.operation)

    @property
    def is_group(self) -> bool:
        """Whether every element has an inverse."""
        return self.operation.is_group

    @property
    def identity(self) -> float | None:
        """The element that changes nothing, if there is one among real numbers."""
        return self._element(self.operation.law.identity(1))

    @property
    def absorbing(self) -> float | None:
        """The element that absorbs all others, if there is one among real numbers."""
        return self._element(self.operation.law.absorbing(1))

    def summary(self) -> str:
        """The law in a few lines."""
        inverses = "of every element" if self.is_group else "of every element but the absorbing one"
        if self.operation.law.identity(1) is None:
            inverses = "none"
        landmarks = {"identity": self.identity, "absorbing element": self.absorbing}
        return "\n".join(
            (
                self.formula,
                f"kind: {'group' if self.is_group else 'semigroup'} ({self.title})",
                *(f"{name}: {'none' if x is None else formula.number(x)}" for name, x in landmarks.items()),
                f"inverses: {inverses}",
                f"held-out error: {self.rmse:.3g} (explains {100 * self.explained:.6g} % of the variance)",
            )
        )

    def config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @torch.no_grad()
    def _element(self, latent: Tensor | None) -> float | None:
        if latent is None:
            return None
        value = float(self.operation.bijection.inverse(latent.double()))
        return (0.0 if abs(value) < _ZERO else value) if math.isfinite(value) else None
