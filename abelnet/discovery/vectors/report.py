"""Result of learning a law on vectors: its invariants, and the evidence for them."""

from __future__ import annotations

__all__ = ["LearnedVectorLaw"]

import keyword
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.bijections import Invariants, Triangular
from abelnet.bijections.terms import Curve, Logarithm, Monomial, Power
from abelnet.config import Configurable
from abelnet.discovery.evidence import Misfit
from abelnet.discovery.formula import number
from abelnet.discovery.intervals import Ensemble
from abelnet.discovery.seen import Seen
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.operation import Operation
from abelnet.sql import select

if TYPE_CHECKING:
    from sympy import Expr

_ROUNDING = 1e-12


@dataclass
class LearnedVectorLaw(Configurable):
    """Learned law on vectors whose coordinates mix, with the evidence for it.

    Attributes:
        operation: The law as an operation over :class:`~abelnet.Triangular` or another map by invariants, in float64.
        names: Names of the coordinates.
        rmse: Root mean squared error on held-out examples, for each coordinate, before the law is refitted to all.
        explained: Fraction of the variance of held-out results that the law explains, for each coordinate.
        errors: Error of each invariant, as a fraction of the spread of the results: noise is about as large.
        seen: Ranges of the examples, for each coordinate.
        misfits: Systematic part of the errors of each coordinate; None where they may be chance.
        outliers: Examples that disagree with the law and were left out, as indices in the order in which they were
            given (in the random sample, if there were more than it holds).
        eigenvalues: Distances from invariance of the best combinations of terms over all examples, one more than there
            are coordinates: those of a law are as small as the noise, and the last one is larger. Empty if unknown.
        ensemble: Laws that the examples hardly tell from this one.

    Example:
        >>> from abelnet import AbelianGroup, Triangular
        >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
        >>> center = AbelianGroup(Triangular(2, [[mass], [moment]], [[1.0], [1.0]], dtype=torch.float64))
        >>> law = LearnedVectorLaw(center, ["m", "x"], [0.0, 0.0], [1.0, 1.0])
        >>> print(law.formula)
        m = Σ m, x = Σ(m·x) / m
        >>> law.words
        'm adds up; x is the mean weighted by m'
    """

    operation: Operation
    names: Sequence[str]
    rmse: Sequence[float]
    explained: Sequence[float]
    errors: Sequence[float] = ()
    seen: Sequence[Seen] | None = None
    misfits: Sequence[Misfit | None] = ()
    outliers: Sequence[int] = ()
    eigenvalues: Sequence[float] = ()
    ensemble: Ensemble | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.operation.bijection, Invariants):
            raise AbelnetError(
                f"operation: expected one over invariants, got one over {type(self.operation.bijection).__name__}"
            )
        for name in ("names", "rmse", "explained", "seen", "misfits"):
            given = getattr(self, name)
            if given and len(given) != self.dim:
                raise AbelnetError(f"{name}: expected {self.dim}, one for each coordinate, got {len(given)}")
        self.misfits = list(self.misfits) or [None] * self.dim

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.operation.dim

    @property
    def bijection(self) -> Invariants:
        """The map by invariants."""
        assert isinstance(self.operation.bijection, Invariants)  # by the constructor
        return self.operation.bijection

    @cached_property
    def sympy(self) -> list[Expr]:
        """The invariants as sympy expressions of the coordinates.

        Example:
            >>> from abelnet import AbelianGroup, Triangular
            >>> terms = [[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]]
            >>> LearnedVectorLaw(AbelianGroup(Triangular(2, terms, [[1.0], [1.0]])), ["m", "x"], [0, 0], [1, 1]).sympy
            [m, m*x]
        """
        return [self._plain.expression(self._symbols, j) for j in range(self.dim)]

    @property
    def _plain(self) -> Invariants:
        """The map of the same law with coordinates measured from 0, as formulas are written."""
        return self.bijection.with_origin([0.0] * self.dim)

    @property
    def _symbols(self) -> list[Expr]:
        import sympy

        return [sympy.Symbol(name, real=True) for name in self.names]

    @property
    def invariants(self) -> list[str]:
        """What adds up, as text, such as ``n·mean``."""
        return [self._text(one) for one in self.sympy]

    def describe_invariants(self) -> str:
        """Returns what adds up in one line, with the error of each as a fraction of the spread of the results."""
        errors = list(self.errors) or [0.0] * self.dim
        return "; ".join(f"{one} ({error:.2g})" for one, error in zip(self.invariants, errors, strict=True))

    @property
    def formula(self) -> str:
        """The result in terms of sums over the elements, such as ``m = Σ m, x = Σ(m·x) / m``."""
        if not isinstance(self._plain, Triangular):
            return ", ".join(f"{one} adds up" for one in self.invariants)
        import sympy

        texts = [f"Σ {text}" if text in self.names else f"Σ({text})" for text in self.invariants]
        sums = [sympy.Symbol(text, real=True) for text in texts]
        found = zip(self.names, self._plain.solved(sums, self._symbols), strict=True)
        return ", ".join(f"{name} = {self._text(one, texts)}" for name, one in found)

    @property
    def latex(self) -> str:
        """The invariants as LaTeX."""
        import sympy

        parts = (sympy.latex(one) for one in self.sympy)
        return r", \quad ".join(rf"\sum \left({part}\right)" for part in parts)

    @property
    def mathml(self) -> str:
        """The result in terms of sums over the elements as MathML, which browsers typeset."""
        import sympy

        from abelnet.discovery import typesetting

        sums = {f"Σ{j}": one for j, one in enumerate(self.sympy)}
        symbols = [sympy.Symbol(name, real=True) for name in sums]
        if not isinstance(self._plain, Triangular):
            return typesetting.mathml([("", symbol) for symbol in symbols], self.formula, sums=sums)
        found = zip(self.names, self._plain.solved(symbols, self._symbols), strict=True)
        equations = [(name.replace(" ", "\u00a0"), one) for name, one in found]
        return typesetting.mathml(equations, self.formula, sums=sums)

    @property
    def words(self) -> str:
        """The law in words, such as ``m adds up; x is the mean weighted by m``."""
        terms = self.bijection.invariants
        alone = {next(iter(one[0].coordinates)) for one in terms if len(one) == 1 and one[0] == _itself(one[0])}
        return "; ".join(self._say(j, alone) for j in range(self.dim))

    def _say(self, j: int, alone: set[int]) -> str:
        text, terms = self.invariants[j], self.bijection.invariants[j]
        if len(terms) == 1 and isinstance(terms[0], Monomial):
            factors = terms[0].factors
            if len(factors) == 1 and isinstance(factors[0], Logarithm):
                return f"{self.names[factors[0].coordinate]} is multiplied"
            if len(factors) == 2:
                for weight, other in (factors, factors[::-1]):
                    if weight == Power(weight.coordinate) and weight.coordinate in alone:
                        kind = _mean_of(other)
                        if other.coordinate not in alone and kind is not None:
                            name = self.names[other.coordinate]
                            return f"{name} is the {kind} weighted by {self.names[weight.coordinate]}"
        return f"{text} adds up"

    def sql(
        self,
        *,
        table: str | Sequence[str],
        set: str | Sequence[str] | None,
        value: Sequence[str] = (),
        dialect: str = "duckdb",
    ) -> str:
        """Returns the SQL query that aggregates the sets of a table by the law, with native aggregates.

        Arguments:
            table: Name of the table, or names of schema and table.
            set: Column with the set of each row, or several; None for one set of all rows.
            value: Column of each coordinate; by default the names of the coordinates.
            dialect: Engine that is to run it: duckdb, postgres, sqlite, datafusion, polars, clickhouse or spark.

        Example:
            >>> from abelnet import AbelianGroup, Triangular
            >>> terms = [[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]]
            >>> center, names = AbelianGroup(Triangular(2, terms, [[1.0], [1.0]])), ["mass", "place"]
            >>> print(LearnedVectorLaw(center, names, [0, 0], [1, 1]).sql(table="bodies", set="system"))
            SELECT ... AS "result_mass", ... AS "result_place" FROM (SELECT ... FROM "bodies" GROUP BY "system") AS "q"
        """
        places, names = range(self.dim), list(value or self.names)
        return select([(self.operation, places)], table=table, set=set, value=names, dialect=dialect)

    @property
    def python(self) -> str:
        """The law as a Python function of two elements, which needs nothing but the module ``math``.

        Example:
            >>> from abelnet import AbelianGroup, Triangular
            >>> terms = [[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]]
            >>> law = LearnedVectorLaw(AbelianGroup(Triangular(2, terms, [[1.0], [1.0]])), ["m", "x"], [0, 0], [1, 1])
            >>> print(law.python)
            def merge(first, second):
                (m_1, x_1), (m_2, x_2) = first, second
                s_1 = m_1 + m_2
                s_2 = m_1*x_1 + m_2*x_2
                m = s_1
                x = s_2/m
                return m, x
        """
        bijection = self.bijection  # with its origin, which keeps digits
        if not isinstance(bijection, Triangular) or self.has_curves:
            raise AbelnetError("python: expected invariants with formulas, inverted in closed form, got others")
        import sympy

        names = _identifiers(self.names)
        both = [[sympy.Symbol(f"{name}_{k}", real=True) for name in names] for k in (1, 2)]
        results = [sympy.Symbol(name, real=True) for name in names]
        sums = [sympy.Symbol(f"s_{j + 1}", real=True) for j in range(self.dim)]
        found = bijection.solved(sums, results)
        lines = [f"    ({', '.join(map(str, both[0]))}), ({', '.join(map(str, both[1]))}) = first, second"]
        for j, name in enumerate(sums):
            total = sympy.Add(*(bijection.expression(one, j) for one in both))
            lines.append(f"    {name} = {sympy.pycode(total)}")
        lines += [f"    {names[i]} = {sympy.pycode(found[i])}" for i in bijection.order]
        code = ["def merge(first, second):", *lines, f"    return {', '.join(names)}"]
        return "\n".join((["import math", "", ""] if any("math." in line for line in lines) else []) + code)

    @property
    def has_curves(self) -> bool:
        """Whether an invariant has a curve, written as ``φ``, in place of a formula."""
        terms = (term for invariant in self.bijection.invariants for term in invariant)
        return any(isinstance(factor, Curve) for term in terms for factor in getattr(term, "factors", ()))

    @property
    def domain(self) -> str:
        """Vectors on which the law is defined, as conditions on the coordinates."""
        return self.bijection.describe_domain_of(self.names)

    @property
    def ranges(self) -> list[Seen]:
        """Ranges of the examples of each coordinate; empty if unknown."""
        return list(self.seen or ())

    def extrapolated(self, sets: Multisets, results: Tensor) -> Tensor:
        """Returns whether each result :math:`(B, d)` needs the law outside the range of the examples, as a mask."""
        if self.seen is None:
            return torch.zeros_like(results, dtype=torch.bool)
        far = torch.stack([~seen.covers(sets.values[:, i]) for i, seen in enumerate(self.seen)], 1)
        outside = torch.stack([~seen.covers(results[:, i]) for i, seen in enumerate(self.seen)], 1)
        # Coordinates mix: a strange element makes all coordinates of the result strange.
        strange = (sets.sum(far.double()) > 0).any(1, keepdim=True)
        return strange | (outside & (sets.sizes > 0)[:, None])

    def std(self, sets: Multisets, results: Tensor) -> Tensor:
        """Returns the standard deviation of each result :math:`(B, d)`, that of the law without noise."""
        return self.std_of(results, lambda limits: self.known_ensemble.std(sets, results, limits))

    def std_of(self, results: Tensor, spread: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the standard deviation of each result :math:`(B, d)`.

        Arguments:
            results: Results :math:`(B, d)`.
            spread: Returns the standard deviation in the ensemble, given the largest deviation of a law that counts.
        """
        least = [0.0] * self.dim if self.seen is None else [max(map(abs, one.numbers)) for one in self.seen]
        size = torch.maximum(results.abs(), torch.tensor(least, dtype=results.dtype))
        return torch.hypot(spread(torch.full_like(results, math.inf)), _ROUNDING * size)

    def interval(self, results: Tensor, std: Tensor, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """Returns the ends of the interval of each result :math:`(B, d)`."""
        width = self.known_ensemble.quantile(level) * std
        return results - width, results + width

    @property
    def known_ensemble(self) -> Ensemble:
        """The ensemble; raises if there is none."""
        if self.ensemble is None:
            raise AbelnetError("law: expected one that was learned with intervals, got one without; learn it again")
        return self.ensemble

    def check_domain(self, values: Tensor, name: Callable[[int], str]) -> None:
        """Raises if an element :math:`(N, d)` is outside the domain of the law.

        Arguments:
            values: Elements :math:`(N, d)`.
            name: Returns the name of an element by its place, for the message.
        """
        outside = ~self.bijection.is_defined(values).all(-1)
        if outside.any():
            i = int(outside.double().argmax())
            got = ", ".join(f"{key} = {value:g}" for key, value in zip(self.names, values[i].tolist(), strict=True))
            raise AbelnetError(f"{name(i)}: expected an element of the domain of the law, {self.domain}, got {got}")

    @property
    def identity(self) -> list[float] | None:
        """Identity element, or None if no vector of the domain is one."""
        with torch.no_grad():
            found = self.bijection.inverse(torch.zeros(self.dim, dtype=torch.float64))
            sound = bool(found.isfinite().all()) and bool(self.bijection.is_defined(found).all())
            if not sound or not bool((self.bijection(found).abs() < 1e-12).all()):
                return None
        return [value if abs(value) >= 1e-12 else 0.0 for value in found.tolist()]

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
            f"adds up: {'; '.join(self.invariants)}",
            f"result: {self.formula}" if isinstance(self.bijection, Triangular) else "result: solved numerically",
            f"in words: {self.words}",
            f"domain: {self.domain}",
        ]
        if self.seen is not None:
            lines += [
                f"learned from: {name}: {seen.describe()}" for name, seen in zip(self.names, self.seen, strict=True)
            ]
            lines.append("beyond, results are extrapolated")
        identity = self.identity
        shown = "none" if identity is None else ", ".join(map(number, identity))
        lines.append(f"identity: {shown}; elements can be removed")
        if self.eigenvalues:
            *own, after = self.eigenvalues
            shown = ", ".join(f"{one:.2g}" for one in own)
            lines.append(f"distances from invariance, all examples: {shown}; the next: {after:.2g}")
        if self.outliers:
            lines.append(f"examples that disagree with the law, and were left out: {len(self.outliers)}")
        for name, rmse, explained, misfit in zip(self.names, self.rmse, self.explained, self.misfits, strict=True):
            lines.append(
                f"held-out error of {name}: {rmse:.3g} (explains {100 * explained:.6g} % of the variance)"
                + ("" if misfit is None else f"; {misfit.describe()}")
            )
        return "\n".join(lines)

    def config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def _text(self, expression: Expr, others: Sequence[str] = ()) -> str:
        from abelnet.discovery.printing import FormulaPrinter

        return str(FormulaPrinter(order=[*self.names, *others]).doprint(expression))


def _itself(term: object) -> object:
    """Returns the monomial of the single coordinate of a term."""
    return Monomial((Power(next(iter(term.coordinates), 0)),)) if isinstance(term, Monomial) else None


def _mean_of(factor: object) -> str | None:
    """Returns the name of the weighted mean that a function of one coordinate gives."""
    if isinstance(factor, Logarithm):
        return "geometric mean"
    if isinstance(factor, Curve):
        return "quasi-arithmetic mean by a curve φ"
    if isinstance(factor, Power):
        names = {1.0: "mean", -1.0: "harmonic mean", 2.0: "root mean square"}
        return names.get(factor.exponent, f"power mean {number(factor.exponent)}")
    return None


def _identifiers(names: Sequence[str]) -> list[str]:
    """Returns names that Python accepts, all different."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "x"
        plain = (
            f"x_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) or plain in ("first", "second") else plain
        )
        while plain in found or re.fullmatch(r"s_\d+", plain):
            plain += "_"
        found.append(plain)
    return found
