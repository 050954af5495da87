"""Result of learning: the law of one dimension, and the evidence for it."""

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
from abelnet.errors import AbelnetError
from abelnet.operation import Operation

if TYPE_CHECKING:
    from sympy import Expr

# Identities and absorbing elements below this are 0, up to rounding.
_ZERO = 1e-12


class Tried(NamedTuple):
    """Candidate law that was tried.

    Attributes:
        title: Name of the candidate.
        parameters: Number of fitted parameters.
        rmse: Root mean squared error on held-out examples.
    """

    title: str
    parameters: int
    rmse: float


@dataclass
class LearnedLaw(Configurable):
    """Learned law of one dimension, with the evidence for it.

    Attributes:
        operation: The law as an operation, in float64.
        title: Name of the candidate that was chosen.
        rmse: Root mean squared error on held-out examples, before the law is refitted to all examples.
        explained: Fraction of the variance of the held-out results that the law explains.
        tried: All candidates, best first.
        eigenvalues: Distance of the examples from any group and from any semigroup.

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
        """The law on two elements as text, such as ``x∘y = x + y − x·y``."""
        return formula.formula(self.operation)

    @property
    def latex(self) -> str:
        """The law on two elements as LaTeX."""
        return formula.latex(self.operation)

    @property
    def sympy(self) -> Expr:
        """The law on two real elements ``x`` and ``y`` as a sympy expression; long curves appear as the function ``φ``.

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
        """Identity element, or None if no real number is one."""
        return self._element(self.operation.law.identity(1))

    @property
    def absorbing(self) -> float | None:
        """Absorbing element, or None if no real number is one."""
        return self._element(self.operation.law.absorbing(1))

    def check_identity(self, what: str) -> None:
        """Raises unless the law has an identity, which is the result of an empty set.

        Arguments:
            what: The empty set, for the message.
        """
        if self.identity is None:
            raise AbelnetError(f"{what}: expected at least one element, since {self.formula} has no identity, got none")

    def summary(self) -> str:
        """Returns the law and its properties in a few lines."""
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
