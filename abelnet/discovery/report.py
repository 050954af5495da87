"""Result of learning: the law of one dimension, and the evidence for it."""

from __future__ import annotations

__all__ = ["LearnedLaw", "Tried"]

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from abelnet.aggregation import Aggregation
from abelnet.bijections.slopes import FROM_ZERO
from abelnet.config import Configurable
from abelnet.discovery import formula
from abelnet.discovery.evidence import Misfit
from abelnet.discovery.intervals import Ensemble
from abelnet.discovery.seen import Seen
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.operation import Operation
from abelnet.sql import select

if TYPE_CHECKING:
    from sympy import Expr

# Identities and absorbing elements below this are 0, up to rounding.
_ZERO = 1e-12
# Rounding errors of results, relative to the largest number of the examples. Curves are found from squares of the
# examples, which leaves half of the digits.
_ROUNDING, _ROUNDING_OF_CURVES = 1e-12, 1e-8


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
        rmse: Root mean squared error on held-out examples, before the law is refitted to all examples, or after if that
            is larger.
        explained: Fraction of the variance of the held-out results that the law explains; without the most extreme
            result, if that alone has nearly all of the variance; over all examples that agree with the law, if noise is
            proportional to the result.
        tried: All candidates, best first.
        eigenvalues: Distance of the examples from any group and from any semigroup.
        seen: Ranges of the examples; None if unknown.
        misfit: Systematic part of the errors; None if they may be chance.
        name: Name that people use for the law, such as ``"root mean square"``; empty if it has none.
        outliers: Examples that disagree with the law and were left out, as indices in the order in which they were
            given (in the random sample, if there were more than it holds).
        relative_noise: Standard deviation of the noise as a fraction of the result, if it is proportional to the
            result; None if constant. Errors of the search are then weighted by its inverse variance.
        ensemble: Laws that the examples hardly tell from this one; None if unknown, as in models saved before.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> law = LearnedLaw(AbelianGroup(Generator(1, "positive power", [2.0])), "sum of positive power", 0.0, 1.0)
        >>> law.formula, law.domain
        ('x∘y = (x^2 + y^2)^(1/2)', 'x ≥ 0')
        >>> law.identity, law.is_group
        (0.0, False)
    """

    operation: Operation
    title: str
    rmse: float
    explained: float
    tried: Sequence[Tried] = ()
    eigenvalues: dict[str, float] = field(default_factory=dict)
    seen: Seen | None = None
    misfit: Misfit | None = None
    name: str = ""
    outliers: Sequence[int] = ()
    relative_noise: float | None = None
    ensemble: Ensemble | None = None

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
    def mathml(self) -> str:
        """The law on two elements as MathML, which browsers typeset."""
        return formula.mathml(self.operation)

    @property
    def sympy(self) -> Expr:
        """The law on two real elements ``x`` and ``y`` as a sympy expression; long curves appear as the function ``φ``.

        Example:
            >>> from abelnet import AbelianSemigroup, Generator
            >>> LearnedLaw(AbelianSemigroup(Generator(1, "affine")), "product of affine", 0.0, 1.0).sympy
            x*y
        """
        return formula.expression(self.operation)

    def sql(
        self, *, table: str | Sequence[str], set: str | Sequence[str] | None, value: str, dialect: str = "duckdb"
    ) -> str:
        """Returns the SQL query that aggregates the sets of a table by the law, with native aggregates.

        Arguments:
            table: Name of the table, or names of schema and table.
            set: Column with the set of each row, or several; None for one set of all rows.
            value: Column of numbers.
            dialect: Engine that is to run it: duckdb, postgres, sqlite, datafusion, polars, clickhouse or spark.

        Example:
            >>> from abelnet import Generator, Mean
            >>> law = LearnedLaw(Operation(Generator(1, "affine"), Mean()), "mean of affine", 0.0, 1.0)
            >>> print(law.sql(table="sales", set="shop", value="price"))
            SELECT "shop", SUM(CAST("price" AS DOUBLE)) / COUNT(CAST("price" AS DOUBLE)) AS "result"
            FROM "sales" GROUP BY "shop"
        """
        return select([(self.operation, [0])], table=table, set=set, value=value, dialect=dialect)

    @property
    def domain(self) -> str:
        """Numbers on which the law is defined, as a condition such as ``x > 0``."""
        if self._is_capped and self.identity is not None and self.absorbing is not None:
            return f"x {'≥' if self.identity < self.absorbing else '≤'} {formula.number(self.identity)}"
        return self.operation.bijection.describe_domain()

    @property
    def is_group(self) -> bool:
        """Whether every element of the domain has an inverse in the domain."""
        return self.operation.is_group and self._is_onto

    @property
    def identity(self) -> float | None:
        """Identity element, or None if no number of the domain is one."""
        return self._element(self.operation.law.identity(1)) if self.operation.bijection.is_injective else None

    @property
    def absorbing(self) -> float | None:
        """Absorbing element, or None if no number of the domain is one.

        That of a curve is None as well if it lies outside the range of the examples, which tell nothing about it.
        """
        found = self._element(self.operation.law.absorbing(1))
        return None if found is not None and self._is_curve and self._is_outside(found) else found

    @property
    def kind(self) -> str:
        """What the law is on its domain: a group, a monoid, a semigroup, a mean, or not known from the examples."""
        if not self.operation.law.is_associative:
            return "mean" if self.operation.law.is_mean else "sum scaled by a power of the count"
        if self.is_group:
            return "group"
        latent = self.operation.law.absorbing(1)
        if self._is_curve and latent is not None and self.absorbing is None:
            return "group or semigroup: no example came near an absorbing element"
        return "semigroup" if self.identity is None else "monoid"

    @property
    def inverses(self) -> str:
        """Which elements have an inverse in the domain, in words."""
        if self.is_group:
            return "of every element"
        if self.identity is None:
            return "none"
        if self.operation.law.is_group:
            return (
                "of some elements only" if self._is_inside(self.operation.law.identity(1)) else "of the identity only"
            )
        return "of every element but the absorbing one" if self._is_onto else "of some elements only"

    @property
    def ranges(self) -> list[Seen]:
        """Ranges of the examples of each coordinate; empty if unknown."""
        return [] if self.seen is None else [self.seen]

    def aggregation(self, *, trainable: bool = False, fill: float = 0.0) -> Aggregation:
        """Returns the law as a set-pooling layer, in single precision.

        Arguments:
            trainable: Whether the parameters of the law are trained further.
            fill: Result of an empty set if the law has no identity.

        Example:
            >>> from abelnet import LawRegressor
            >>> rows = 1 + torch.rand(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            >>> law = LawRegressor().fit(rows.numpy(), (1 / (1 / rows).sum(1)).numpy()).laws_[0]
            >>> law.aggregation()(torch.tensor([[2.0], [2.0]])).item()
            1.0
        """
        operation = copy.deepcopy(self.operation).float().requires_grad_(trainable)
        return Aggregation(operation, fill=fill)

    def extrapolated(self, sets: Multisets, results: Tensor) -> Tensor:
        """Returns whether each result needs the law outside the range of the examples, as a mask :math:`(B)`.

        Arguments:
            sets: One-dimensional multisets.
            results: Their results :math:`(B)`.
        """
        if self.seen is None:
            return torch.zeros(len(results), dtype=torch.bool)
        strange = sets.sum((~self.seen.covers(sets.values)).double())[:, 0] > 0
        return strange | (~self.seen.covers(results) & (sets.sizes > 0))

    def std(self, sets: Multisets, results: Tensor) -> Tensor:
        """Returns the standard deviation of each result :math:`(B)`, that of the value of the law without noise.

        Arguments:
            sets: One-dimensional multisets.
            results: Their results :math:`(B)`.
        """
        return self.std_of(results, lambda limits: self.known_ensemble.std(sets, results, limits))

    def std_of(self, results: Tensor, spread: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the standard deviation of each result :math:`(B)`.

        Arguments:
            results: Results :math:`(B)`.
            spread: Returns the standard deviation in the ensemble, given the largest deviation of a law that counts.
        """
        rounding = _ROUNDING_OF_CURVES if self._is_curve else _ROUNDING
        if self.seen is None:
            return torch.hypot(spread(torch.full_like(results, math.inf)), rounding * results.abs())
        low, high = self.seen.numbers
        # A law that leaves the range of the examples by far, for a result inside, only says that this is not known.
        limits = torch.where(self.seen.covers(results), high - low, math.inf)
        return torch.hypot(spread(limits), rounding * results.abs().clamp(min=max(abs(low), abs(high))))

    def interval(self, results: Tensor, std: Tensor, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """Returns the ends of the interval of each result, within the numbers that the law can give.

        Arguments:
            results: Results :math:`(B)`.
            std: Their standard deviations :math:`(B)`.
            level: Probability of the intervals.
        """
        width = self.known_ensemble.quantile(level) * std
        least, most = self._image
        return torch.maximum(results - width, results.clamp(max=least)), torch.minimum(
            results + width, results.clamp(min=most)
        )

    @property
    def known_ensemble(self) -> Ensemble:
        """The ensemble; raises if there is none."""
        if self.ensemble is None:
            raise AbelnetError("law: expected one that was learned with intervals, got one without; learn it again")
        return self.ensemble

    @property
    def _image(self) -> tuple[float, float]:
        """Ends of the numbers that the law can give: of its domain, and its bound if it is capped."""
        low, high = (float(torch.as_tensor(end).reshape(-1)[0]) for end in self.operation.bijection.domain)
        if low == FROM_ZERO or not self.operation.bijection.is_injective:
            low = 0.0
        if self._is_capped and self.identity is not None and self.absorbing is not None:
            low, high = (low, self.absorbing) if self.identity < self.absorbing else (self.absorbing, high)
        return low, high

    def check_domain(self, values: Tensor, name: Callable[[int], str]) -> None:
        """Raises if an element is outside the domain of the law.

        Arguments:
            values: Elements :math:`(N)`.
            name: Returns the name of an element by its place, for the message.
        """
        outside = ~self._is_defined(values)
        if outside.any():
            i = int(outside.double().argmax())
            raise AbelnetError(
                f"{name(i)}: expected an element of the domain of the law, {self.domain}, got {float(values[i]):g}"
            )

    def check_identity(self, what: str) -> None:
        """Raises unless the law has an identity, which is the result of an empty set.

        Arguments:
            what: The empty set, for the message.
        """
        if self.identity is None:
            raise AbelnetError(f"{what}: expected at least one element, since {self.formula} has no identity, got none")

    def summary(self) -> str:
        """Returns the law and its properties in a few lines."""
        lines = [
            self.formula,
            *([f"name: {self.name}"] if self.name else []),
            f"kind: {self.kind} ({self.title})",
            f"domain: {self.domain}",
        ]
        if self.seen is not None:
            lines.append(f"learned from: {self.seen.describe()}; beyond, results are extrapolated")
        landmarks = {"identity": self.identity, "absorbing element": self.absorbing}
        if not self.operation.law.is_associative:
            landmarks = {}
        for name, x in landmarks.items():
            far = ", outside the range of the examples" if x is not None and self._is_outside(x) else ""
            lines.append(f"{name}: {'none' if x is None else formula.number(x) + far}")
        if landmarks:
            lines.append(f"inverses: {self.inverses}")
        if self.outliers:
            lines.append(f"examples that disagree with the law, and were left out: {len(self.outliers)}")
        if self.relative_noise is not None:
            lines.append(f"noise: about {100 * self.relative_noise:.2g} % of the result, errors weighted accordingly")
        lines.append(f"held-out error: {self.rmse:.3g} (explains {100 * self.explained:.6g} % of the variance)")
        if self.misfit is not None:
            lines.append(self.misfit.describe())
        return "\n".join(lines)

    def config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @torch.no_grad()
    def _is_defined(self, x: Tensor) -> Tensor:
        """Returns whether each number is in the domain of the bijection, and its image in that of the law."""
        defined = self.operation.bijection.is_defined(x[:, None])[:, 0]
        if self._is_curve:  # where the identity of a capped sum is, a curve does not tell exactly
            return defined
        images = self.operation.bijection(x[defined][:, None])
        return defined.masked_scatter(defined, self.operation.law.contains(images)[:, 0])

    @property
    def _is_onto(self) -> bool:
        """Whether the bijection maps onto all numbers, so that latent results are never outside its image."""
        return all(bool(torch.as_tensor(end).isinf().all()) for end in self.operation.bijection.codomain)

    @property
    def _is_capped(self) -> bool:
        return self.operation.law.unlimited is not self.operation.law

    @property
    def _is_curve(self) -> bool:
        return not self.operation.bijection.is_short

    def _is_outside(self, x: float) -> bool:
        return self.seen is not None and not bool(self.seen.covers(torch.tensor(x, dtype=torch.float64)))

    def _is_inside(self, latent: Tensor | None) -> bool:
        """Whether a latent number has others of the image of the bijection on both sides."""
        low, high = (float(torch.as_tensor(end).reshape(-1)[0]) for end in self.operation.bijection.codomain)
        return latent is not None and (0.0 if low == FROM_ZERO else low) < float(latent) < high

    @torch.no_grad()
    def _element(self, latent: Tensor | None) -> float | None:
        if latent is None:
            return None
        value = float(self.operation.bijection.inverse(latent.double()))
        return (0.0 if abs(value) < _ZERO else value) if math.isfinite(value) else None
