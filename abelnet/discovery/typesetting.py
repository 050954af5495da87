"""Formulas as MathML, which browsers typeset without scripts or fonts: sympy's printer, with our order and numbers.

Importing this module imports sympy.
"""

from __future__ import annotations

__all__ = ["mathml"]

import html
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from sympy import Expr, Float, Function, Indexed, Sum, Symbol, cbrt
from sympy.printing.mathml import MathMLPresentationPrinter

from abelnet.discovery.formula import number
from abelnet.discovery.printing import place_of


def mathml(
    equations: Sequence[tuple[str, Expr]],
    text: str,
    *,
    sums: Mapping[str, Expr] | None = None,
    digits: int = 6,
) -> str:
    """Returns equations as one MathML element. All names are escaped.

    Arguments:
        equations: Left sides, or nothing, and right sides; they are separated by commas.
        text: The same as text, for readers that do not show MathML.
        sums: Symbols, by name, that stand for a sum over all elements, and what is summed.
        digits: Most significant digits of a number.

    Example:
        >>> from sympy.abc import x
        >>> mathml([("y", 2 * x)], "y = 2·x")
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block" alttext="y = 2·x"><mi>y</mi><mo>=</mo><mrow>\
<mn>2</mn><mo>\u2062</mo><mi>x</mi></mrow></math>'
    """
    sums = sums or {}
    inside = [*(right for _, right in equations), *sums.values()]
    names = {str(symbol) for one in inside for symbol in one.free_symbols} - set(sums)
    printer = _Printer(sums, digits, dots=any(len(name) > 1 for name in names))
    root = Element("math", xmlns="http://www.w3.org/1998/Math/MathML", display="block", alttext=text)
    for i, (left, right) in enumerate(equations):
        if i:
            SubElement(root, "mo").text = ","
            SubElement(root, "mspace", width="1em")
        for part in left.split(" "):
            if part:
                SubElement(root, "mo" if part == "∘" else "mi").text = part
        if left:
            SubElement(root, "mo").text = "="
        root.append(_element(printer.node(right)))
    return tostring(root, encoding="unicode")


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc]
    """Prints to a tree: names as they are, terms in the order of elements, short numbers."""

    def __init__(self, sums: Mapping[str, Expr], digits: int, *, dots: bool) -> None:
        super().__init__({"mul_symbol": "dot" if dots else None})
        self._sums, self._digits = sums, digits

    def node(self, expression: Expr) -> Any:
        """Returns the tree of an expression."""
        return self._print(expression.replace(Function("cbrt"), cbrt))

    def _print(self, expr: Any, **kwargs: Any) -> Any:
        return super()._print(expr, **kwargs)

    def _as_ordered_terms(self, expr: Expr, order: Any = None) -> list[Expr]:
        terms = sorted(expr.args, key=lambda term: (*place_of(term), str(term)))
        if len(terms) == 2 and terms[0].could_extract_minus_sign() and not terms[1].could_extract_minus_sign():
            terms.reverse()  # 1 − x, not −x + 1
        return terms

    def _print_Symbol(self, sym: Symbol, style: str = "plain") -> Any:
        if sym.name not in self._sums:
            return self._tag("mi", sym.name)
        total = self._sums[sym.name]
        row = self.dom.createElement("mrow")
        row.appendChild(self._tag("mo", "∑"))
        row.appendChild(self._print(total) if total.is_Atom or total.is_Mul else self._in_parentheses(total))
        return row

    def _print_Float(self, expr: Float) -> Any:
        return self._tag("mn", number(float(expr), self._digits))

    def _print_Sum(self, e: Sum) -> Any:
        row = self.dom.createElement("mrow")
        row.appendChild(self._tag("mo", "∑"))
        row.appendChild(self._in_parentheses(e.function) if e.function.is_Add else self._print(e.function))
        return row

    def _print_Indexed(self, e: Indexed) -> Any:
        pair = self.dom.createElement("msub")
        for part in (str(e.base), *map(str, e.indices)):
            pair.appendChild(self._tag("mi", part))
        return pair

    def _print_Exp1(self, e: Expr) -> Any:
        return self._tag("mi", "e")

    def _print_exp(self, expr: Expr) -> Any:
        if not expr.has(Sum):
            return super()._print_exp(expr)
        row = self.dom.createElement("mrow")  # a fraction of sums is too small in an exponent
        row.appendChild(self._tag("mi", "exp"))
        row.appendChild(self._in_parentheses(expr.args[0]))
        return row

    def _in_parentheses(self, expr: Expr) -> Any:
        row = self.dom.createElement("mrow")
        for part in (self._tag("mo", "("), self._print(expr), self._tag("mo", ")")):
            row.appendChild(part)
        return row

    def _tag(self, name: str, text: str) -> Any:
        node = self.dom.createElement(name)
        # sympy leaves text as it is, for the entities that it writes.
        node.appendChild(self.dom.createTextNode(html.escape(text, quote=False)))
        return node


def _element(node: Any) -> Element:
    """Returns a node of sympy's printer, which has entities of HTML in its text, as an element with plain text."""
    element = Element(node.tagName, dict(node.attributes.items()))
    for child in node.childNodes:
        if child.nodeType == child.TEXT_NODE:
            text = html.unescape(child.data)
            element.text = (element.text or "") + (text.replace("-", "−") if node.tagName == "mo" else text)
        else:
            element.append(_element(child))
    return element
