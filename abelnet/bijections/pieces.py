"""Curves of many pieces as sympy expressions: written out, or with their numbers looked up in lists."""

from __future__ import annotations

__all__ = ["Pieces"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from abelnet.symbols import piecewise

if TYPE_CHECKING:
    from sympy import Expr


@dataclass(frozen=True)
class Pieces:
    """Curve of pieces that have few forms, and differ in their numbers.

    Attributes:
        x: Where the curve is evaluated.
        pieces: Form of each piece and its numbers; a form maps :math:`x` and numbers to an expression.
        limits: Conditions for each piece but the last, of which the first that holds decides.

    Example:
        >>> from sympy.abc import a, b, x
        >>> line = lambda x, slope, shift: slope * x + shift
        >>> absolute = Pieces(x, [(line, (-1, 0)), (line, (1, 0))], [x < 0])
        >>> absolute.expression(), absolute.number(), absolute.columns(), absolute.looked_up([a, b])
        (Piecewise((-x, x < 0), (x, True)), Piecewise((1, x < 0), (2, True)), [(-1, 1), (0, 0)], a*x + b)
    """

    x: Expr
    pieces: Sequence[tuple[Callable[..., Expr], Sequence[Any]]]
    limits: Sequence[Any]

    def expression(self) -> Expr:
        """Returns the curve, piece by piece."""
        return piecewise([form(self.x, *numbers) for form, numbers in self.pieces], self.limits)

    def number(self) -> Expr:
        """Returns the number of the piece, from 1."""
        import sympy

        return piecewise([sympy.Integer(k) for k in range(1, len(self.pieces) + 1)], self.limits)

    def columns(self) -> list[tuple[Any, ...]]:
        """Returns the form of each piece, if there are several, the first number of each, the second, and so on."""
        forms = self._forms
        columns = list(zip_longest(*(numbers for _, numbers in self.pieces), fillvalue=0))
        return [tuple(forms.index(form) for form, _ in self.pieces), *columns] if len(forms) > 1 else columns

    def looked_up(self, numbers: Sequence[Expr]) -> Expr:
        """Returns the curve in terms of the numbers of the piece, one from each of the columns."""
        import sympy

        forms = self._forms
        if len(forms) == 1:
            return forms[0](self.x, *numbers)
        kind, *others = numbers
        return piecewise(
            [form(self.x, *others[: self._count(form)]) for form in forms],
            [sympy.Eq(kind, k) for k in range(len(forms) - 1)],
        )

    @property
    def _forms(self) -> list[Callable[..., Expr]]:
        return list(dict.fromkeys(form for form, _ in self.pieces))

    def _count(self, wanted: Callable[..., Expr]) -> int:
        return next(len(numbers) for form, numbers in self.pieces if form is wanted)
