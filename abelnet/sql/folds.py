r"""Aggregation of multisets as sympy expressions, stage by stage, from which SQL and other code is printed.

.. math:: x \to u = \varphi(x) \to \mathrm{lift}(u) \to \textstyle\sum \to w = \mathrm{lower} \to \varphi^{-1}(w)
"""

from __future__ import annotations

__all__ = ["Fold", "Total", "symbolic_fold", "unsigned"]

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from abelnet.bijections.slopes import FROM_ZERO
from abelnet.errors import AbelnetError
from abelnet.operation import Operation
from abelnet.symbols import entry, is_between, named_function, symbolic_number, unfolded

if TYPE_CHECKING:
    from sympy import Expr

    from abelnet.bijections.pieces import Pieces

Expressions = dict[str, Any]

# Numbers closer to 0 than this keep digits in log1p that 1 + z would lose.
_NEAR = 0.5
# Curves of at most so many pieces are written out.
_FEW_PIECES = 4


class Total(NamedTuple):
    """How a column is aggregated over a multiset.

    Attributes:
        kind: ``"sum"``, ``"max"``, ``"min"`` or ``"count"``, of numbers that are not missing.
        of: Name of the column.
    """

    kind: Literal["sum", "max", "min", "count"]
    of: str


@dataclass
class Fold:
    """Aggregation by one operation, as expressions of one stage in terms of the names of the stages before.

    Attributes:
        elements: Names of the coordinates of an element.
        is_defined: Condition on the coordinates for an element to be in the domain.
        prepared: Stages before the latent coordinates, if the bijection has a curve.
        encoded: Latent coordinates.
        peaks: Largest of a latent coordinate over the multiset, which exponentials are measured from.
        lifted: States of an element.
        totals: States of the multiset.
        latent: Latent result.
        is_reached: Condition on the latent result for a result to exist.
        followed: Stages between the latent result and the result, likewise.
        results: Result for each coordinate.
        is_exact: Whether conditions are all that limits results; otherwise a root or a quotient may have no value.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> fold = symbolic_fold(AbelianGroup(Generator(1, "power", [3.0], dtype=torch.float64)), [0])
        >>> fold.encoded, fold.totals, fold.results
        ({'u1': x1**3}, {'t1_1': Total(kind='sum', of='s1_1')}, {'y1': Abs(w1)**(1/3)*sign(w1)})
    """

    elements: list[str]
    is_defined: Any
    prepared: list[Expressions] = field(default_factory=list)
    encoded: Expressions = field(default_factory=dict)
    peaks: dict[str, Total] = field(default_factory=dict)
    lifted: Expressions = field(default_factory=dict)
    totals: dict[str, Total] = field(default_factory=dict)
    latent: Expressions = field(default_factory=dict)
    is_reached: Any = True
    followed: list[Expressions] = field(default_factory=list)
    results: Expressions = field(default_factory=dict)
    is_exact: bool = True


@torch.no_grad()
def symbolic_fold(operation: Operation, coordinates: Sequence[int], *, has_lists: bool = False) -> Fold:
    """Returns the aggregation by an operation as expressions.

    Arguments:
        operation: The operation.
        coordinates: Its coordinates among those of a table; names of columns end with their number, from 1.
        has_lists: Whether the numbers of a curve are looked up in lists, once its piece is found.
    """
    from sympy.core.parameters import distribute

    wide = copy.deepcopy(operation).double()  # expressions are computed in double precision
    try:
        with distribute(False):  # k (x - c) keeps digits that k x - k c loses
            return _folded(wide, coordinates, has_lists)
    except AbelnetError as error:
        if not str(error).startswith(("expression:", "inverse_expression:")):
            raise
        name = type(operation.bijection).__name__
        raise AbelnetError(
            f"law: expected one with a closed form, got one over {name}, which has none; use abelnet apply"
        ) from None


def _folded(operation: Operation, coordinates: Sequence[int], has_lists: bool) -> Fold:
    import sympy

    bijection, law = operation.bijection, operation.law
    places = range(operation.dim)
    suffixes = [str(i + 1) for i in coordinates]
    plain = [sympy.Symbol(f"x{suffix}", real=True) for suffix in suffixes]
    domain, codomain = _ends(bijection.domain, operation.dim), _ends(bijection.codomain, operation.dim)
    x = [_symbol(f"x{suffix}", low) for suffix, (low, _) in zip(suffixes, domain, strict=True)]
    elementwise, logs = bijection.is_elementwise, law.in_logs() if bijection.folds_in_logs else None
    fold = Fold([str(one) for one in x], sympy.true, is_exact=elementwise)
    fold.is_defined = sympy.And(
        *(bijection.is_defined_expression(plain[i] if elementwise else plain, i) for i in places)
    )
    # Pieces of a curve, of which there may be hundreds, would each repeat the maps before it.
    first, *others = bijection.parts() if elementwise and not bijection.is_short else [bijection]
    maps = _Maps(suffixes, has_lists and elementwise, fold.prepared)
    images = maps.images(first.expression, first.pieces, x) if elementwise else [first.expression(x, i) for i in places]
    for k, part in enumerate(others, 1):
        given = [sympy.Symbol(f"a{suffix}_{k}", real=True) for suffix in suffixes]
        fold.prepared.append({str(name): one for name, one in zip(given, images, strict=True)})
        images = maps.images(part.expression, part.pieces, given)
    latent = [_symbol(f"w{suffix}", low) for suffix, (low, _) in zip(suffixes, codomain, strict=True)]
    for i, suffix in enumerate(suffixes):
        n = sympy.Symbol(f"n{suffix}", positive=True, integer=True)
        if logs is not None:
            # Measured from the largest exponent of each set, so that nothing overflows.
            u, peak, total = sympy.symbols(f"u{suffix} m{suffix} t{suffix}_1", real=True)
            fold.encoded[f"u{suffix}"] = sympy.log(images[i])
            fold.peaks[f"m{suffix}"] = Total("max", f"u{suffix}")
            fold.lifted[f"s{suffix}_1"] = sympy.exp(u - peak)
            fold.lifted[f"m{suffix}"] = peak
            fold.totals |= {f"t{suffix}_1": Total("sum", f"s{suffix}_1"), f"t{suffix}_2": Total("max", f"m{suffix}")}
            top = sympy.Symbol(f"t{suffix}_2", real=True)
            latent[i] = sympy.Symbol(f"w{suffix}", real=True)
            fold.latent[f"w{suffix}"] = top + sympy.log(total)
            if logs.exponent:
                fold.totals[f"n{suffix}"] = Total("count", f"x{suffix}")
                fold.latent[f"w{suffix}"] -= symbolic_number(logs.exponent) * sympy.log(n)
            latent[i] = sympy.exp(latent[i])
            continue
        u = _symbol(f"u{suffix}", codomain[i][0])
        fold.encoded[f"u{suffix}"] = images[i]
        states: list[Expr] = []
        for k, state in enumerate(law.lift_expression(u, i), 1):
            if state.is_number:
                fold.totals[f"n{suffix}"] = Total("count", f"x{suffix}")
                states.append(state * n)
                continue
            name, kind, sign = f"{suffix}_{k}", law.aggregate, 1
            if isinstance(state, sympy.Piecewise) and [value for value, _ in state.args] == [1, 0]:
                state, kind = sympy.Piecewise(state.args[0]), "count"
            if kind == "max" and state.could_extract_minus_sign():
                state, kind, sign = -state, "min", -1
            fold.lifted[f"s{name}"] = state
            fold.totals[f"t{name}"] = Total(kind, f"s{name}")  # type: ignore[arg-type]
            # Of numbers of one sign, sums and extremes have it as well.
            positive = state.is_positive and kind != "count"
            known = "positive" if positive else "nonnegative" if state.is_nonnegative else "real"
            states.append(sign * sympy.Symbol(f"t{name}", **{known: True}))
        fold.latent[f"w{suffix}"] = law.lower_expression(*states, dimension=i)
        if bijection.is_short:  # where the end of the domain of the law is, a curve does not tell exactly
            own = law.contains_expression(sympy.Symbol(f"u{suffix}", real=True), i)
            if own != sympy.true:
                condition = own.xreplace(
                    {sympy.Symbol(f"u{suffix}", real=True): images[i].xreplace(dict(zip(x, plain, strict=True)))}
                )
                fold.is_defined = sympy.And(fold.is_defined, condition)
    if logs is None:
        fold.is_reached = sympy.And(
            *(_is_reached(*one, *ends) for one, ends in zip(fold.latent.items(), codomain, strict=True))
        )
    maps = _Maps(suffixes, has_lists and elementwise, fold.followed)
    for k, part in enumerate(reversed(others), 1):
        after = [sympy.Symbol(f"b{suffix}_{k}", real=True) for suffix in suffixes]
        images = maps.images(part.inverse_expression, part.inverse_pieces, latent)
        fold.followed.append({str(name): one for name, one in zip(after, images, strict=True)})
        latent = after
    if elementwise:
        images = maps.images(first.inverse_expression, first.inverse_pieces, latent)
    else:
        images = [first.inverse_expression(latent, i) for i in places]
    fold.results = {f"y{suffix}": image for suffix, image in zip(suffixes, images, strict=True)}
    used = {str(name) for expression in fold.latent.values() for name in expression.free_symbols}
    fold.totals = {name: total for name, total in fold.totals.items() if name in used}
    for stage in (*fold.prepared, fold.encoded, fold.lifted, fold.latent, *fold.followed, fold.results):
        stage |= {name: _stable(unfolded(expression)) for name, expression in stage.items()}
    return fold


class _Maps:
    """Maps of each coordinate; curves of many pieces get stages before, which find the piece and its numbers.

    Arguments:
        suffixes: Ends of the names of the coordinates.
        has_lists: Whether there are lists to find numbers in.
        stages: Where stages are added.
    """

    def __init__(self, suffixes: Sequence[str], has_lists: bool, stages: list[Expressions]) -> None:
        self._suffixes, self._has_lists, self._stages = suffixes, has_lists, stages

    def images(
        self,
        expression: Callable[[Any, int], Expr],
        pieces: Callable[[Any, int], Pieces | None],
        given: Sequence[Expr],
    ) -> list[Expr]:
        """Returns the images of the coordinates under one map."""
        import sympy

        numbers: Expressions = {}
        columns: Expressions = {}
        images = []
        for i, (x, suffix) in enumerate(zip(given, self._suffixes, strict=True)):
            found = pieces(x, i) if self._has_lists else None
            if found is None or len(found.pieces) <= _FEW_PIECES:
                images.append(expression(x, i))
                continue
            place = sympy.Symbol(f"p{suffix}_{len(self._stages)}")
            own = {f"{place}_{j}": entry(column, place) for j, column in enumerate(found.columns())}
            numbers[str(place)] = found.number()
            columns |= own
            images.append(found.looked_up([sympy.Symbol(name, real=True) for name in own]))
        self._stages += [numbers, columns] if numbers else []
        return images


def unsigned(fold: Fold) -> Fold:
    """Returns a fold that counts no negative factors and zeros: where an element is one, it has no state.

    Example:
        >>> from abelnet import Generator, Operation, Product
        >>> fold = symbolic_fold(Operation(Generator(1, "affine", dtype=torch.float64), Product()), [0])
        >>> sorted(fold.totals), sorted(unsigned(fold).totals)
        (['t1_1', 't1_2', 't1_3'], ['t1_1'])
    """
    import sympy

    counted = {name: total.of for name, total in fold.totals.items() if total.kind == "count"}
    counted = {name: of for name, of in counted.items() if isinstance(fold.lifted.get(of), sympy.Piecewise)}
    if not counted:
        return fold
    conditions = [fold.lifted[of].args[0][1] for of in counted.values()]
    is_other = sympy.And(*map(sympy.Not, conditions))
    others = {
        name: one.xreplace(dict.fromkeys(conditions, sympy.false))
        for name, one in fold.lifted.items()
        if name not in counted.values()
    }
    symbols = {one for latent in fold.latent.values() for one in latent.free_symbols if one.name in counted}
    return replace(
        fold,
        lifted={name: sympy.Piecewise((one, is_other), evaluate=False) for name, one in others.items()},
        totals={name: total for name, total in fold.totals.items() if name not in counted},
        latent={name: one.xreplace(dict.fromkeys(symbols, sympy.S.Zero)) for name, one in fold.latent.items()},
    )


def _is_reached(name: str, latent: Expr, low: float, high: float) -> Any:
    """Returns the condition that a latent result is in the codomain, without a lower limit that is known to hold."""
    import sympy

    if (low == 0 and latent.is_positive) or (low == FROM_ZERO and latent.is_nonnegative):
        low = -math.inf
    return is_between(sympy.Symbol(name, real=True), low, high)


def _ends(region: Any, dim: int) -> list[tuple[float, float]]:
    low, high = (torch.as_tensor(end, dtype=torch.float64).expand(dim).tolist() for end in region)
    return list(zip(low, high, strict=True))


def _symbol(name: str, low: float) -> Expr:
    """Returns a symbol that is known to be positive, or at least 0, if its lower limit says so."""
    import sympy

    kind = "positive" if low >= 0 else "nonnegative" if low == FROM_ZERO else "real"
    return sympy.Symbol(name, **{kind: True})


def _log_abs_1p(z: Expr) -> Expr:
    import sympy
    from sympy.codegen.cfunctions import log1p

    far = sympy.log(sympy.Abs(1 + z))
    return sympy.Piecewise((log1p(z), z > symbolic_number(-_NEAR)), (far, True), evaluate=False)


def _stable(expression: Expr) -> Expr:
    """Writes logarithms near 1 by log1p, or log_abs_1p where signs differ, and exponentials less 1 by expm1."""
    import sympy
    from sympy.codegen.cfunctions import expm1, log1p

    log_abs_1p = named_function("log_abs_1p", _log_abs_1p)

    if expression.has(sympy.Piecewise) and expression.count(sympy.functions.elementary.piecewise.ExprCondPair) > 8:
        return expression  # a curve has neither, and takes sympy long to rebuild

    def near_one(part: Expr) -> Expr:
        (argument,) = part.args
        size = argument.args[0] if isinstance(argument, sympy.Abs) else argument
        rest = size - 1
        if not isinstance(size, sympy.Add) or 1 not in size.args:
            return part
        return log1p(rest) if size is argument else log_abs_1p(rest)

    def less_one(part: Expr) -> Expr:
        for term in part.args:
            factor, power = term.as_coeff_Mul()
            if isinstance(power, sympy.exp) and -factor in part.args:
                return factor * expm1(power.args[0]) + (part - term + factor)
        return part

    with sympy.core.parameters.distribute(False):
        expression = expression.replace(lambda part: isinstance(part, sympy.log), near_one)
        return expression.replace(lambda part: isinstance(part, sympy.Add), less_one)
