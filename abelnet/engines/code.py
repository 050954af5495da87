"""Laws as source code: a function that aggregates a multiset, and needs nothing but the language itself."""

from __future__ import annotations

__all__ = ["LANGUAGES", "Language", "function_of"]

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from abelnet.operation import Operation
from abelnet.sql.folds import Fold, symbolic_fold
from abelnet.symbols import unfolded

if TYPE_CHECKING:
    from sympy import Expr


class Language(ABC):
    """How the parts of a function are written in a programming language.

    Attributes:
        name: Name of the language.
    """

    name: ClassVar[str]

    @abstractmethod
    def expression(self, expression: Expr | Any) -> str:
        """Returns a number or a condition."""

    @abstractmethod
    def function(self, formula: str, elements: Sequence[str], peaks: Sequence[tuple[str, str]], body: _Body) -> str:
        """Returns the function.

        Arguments:
            formula: The law, for a comment.
            elements: Names of the coordinates of an element.
            peaks: Names of the largest of some expressions, and the expressions.
            body: All other parts.
        """

    def start(self, kind: str) -> str:
        """Returns the state of no elements."""
        return {"sum": "0.0", "count": "0", "max": self.infinity("-"), "min": self.infinity("")}[kind]

    @abstractmethod
    def infinity(self, sign: str) -> str:
        """Returns infinity with a sign."""


class _Body:
    """Parts of a function: starts, conditions and updates of its states, its latent results and its results."""

    def __init__(self, language: Language, folds: Sequence[Fold]) -> None:
        from sympy import Piecewise, true

        def text(one: Any) -> str:
            return language.expression(unfolded(one))

        self.starts: list[tuple[str, str]] = []
        self.conditions = [text(fold.is_defined) for fold in folds if fold.is_defined != true]
        stages = [stage for fold in folds for stage in (*fold.prepared, fold.encoded)]
        self.encoded = [(name, text(one)) for stage in stages for name, one in stage.items()]
        # Of a total: its name, its kind, what is added or compared, and the condition to do so.
        self.updates: list[tuple[str, str, str, str]] = []
        for fold in folds:
            for name, total in fold.totals.items():
                self.starts.append((name, language.start(total.kind)))
                one, condition = fold.lifted.get(total.of), ""
                if total.kind == "count" and isinstance(one, Piecewise):
                    condition = text(one.args[0][1])
                self.updates.append((name, total.kind, "" if total.kind == "count" else text(one), condition))
        stages = [stage for fold in folds for stage in (fold.latent, *fold.followed)]
        self.latent = [(name, text(one)) for stage in stages for name, one in stage.items()]
        self.reached = [text(fold.is_reached) for fold in folds if fold.is_reached != true]
        found = {name: text(one) for fold in folds for name, one in fold.results.items()}
        self.results = [found[f"y{i + 1}"] for i in range(len(found))]


class _Python(Language):
    name = "python"

    def expression(self, expression: Expr | Any) -> str:
        from sympy import pycode

        return str(pycode(expression))

    def infinity(self, sign: str) -> str:
        return f"{sign}math.inf"

    def function(self, formula: str, elements: Sequence[str], peaks: Sequence[tuple[str, str]], body: _Body) -> str:
        names = ", ".join(elements)
        lines = ["elements = list(elements)", "if not elements:"]
        lines.append('    raise ValueError("elements: expected at least one, got none")')
        lines += [f"{name} = max({one} for {names} in elements)" for name, one in peaks]
        lines += [f"{name} = {start}" for name, start in body.starts]
        lines.append(f"for {names} in elements:")
        for condition in body.conditions:
            lines.append(f"    if not ({condition}):")
            lines.append(f'        raise ValueError(f"elements: expected {condition}, got {{({names})}}")')
        lines += [f"    {name} = {one}" for name, one in body.encoded]
        for name, kind, one, condition in body.updates:
            update = {"sum": f"{name} += {one}", "count": f"{name} += 1"}.get(kind, f"{name} = {kind}({name}, {one})")
            lines.append(f"    if {condition}:\n            {update}" if condition else f"    {update}")
        lines += [f"{name} = {one}" for name, one in body.latent]
        for condition in body.reached:
            lines.append(f"if not ({condition}):")
            lines.append(f"    return {', '.join(['math.nan'] * len(body.results))}")
        lines.append(f"return {', '.join(body.results)}")
        title = " ".join(formula.split()).replace("\\", "/").replace('"', "'")
        head = [
            "import math",
            "",
            "",
            "def aggregate(elements):",
            f'    """Returns the result of a multiset: {title}."""',
        ]
        return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


class _JavaScript(Language):
    name = "javascript"

    def expression(self, expression: Expr | Any) -> str:
        from sympy import jscode

        own = {"log1p": "Math.log1p", "expm1": "Math.expm1"}
        return " ".join(str(jscode(expression, user_functions=own)).split())

    def infinity(self, sign: str) -> str:
        return f"{sign}Infinity"

    def function(self, formula: str, elements: Sequence[str], peaks: Sequence[tuple[str, str]], body: _Body) -> str:
        names = elements[0] if len(elements) == 1 else f"[{', '.join(elements)}]"
        lines = ["if (elements.length === 0) {"]
        lines += ['  throw new RangeError("elements: expected at least one, got none");', "}"]
        for name, one in peaks:
            lines += [f"let {name} = -Infinity;", f"for (const {names} of elements) {{"]
            lines += [f"  {name} = Math.max({name}, {one});", "}"]
        lines += [f"let {name} = {start};" for name, start in body.starts]
        lines.append(f"for (const {names} of elements) {{")
        for condition in body.conditions:
            lines += [
                f"  if (!({condition})) {{",
                f"    throw new RangeError(`elements: expected {condition}`);",
                "  }",
            ]
        lines += [f"  const {name} = {one};" for name, one in body.encoded]
        for name, kind, one, condition in body.updates:
            extreme = f"{name} = Math.{kind}({name}, {one});"
            update = {"sum": f"{name} += {one};", "count": f"{name} += 1;"}.get(kind, extreme)
            lines.append(f"  if ({condition}) {{ {update} }}" if condition else f"  {update}")
        lines.append("}")
        lines += [f"const {name} = {one};" for name, one in body.latent]
        many = len(body.results) > 1
        for condition in body.reached:
            missing = f"[{', '.join(['NaN'] * len(body.results))}]" if many else "NaN"
            lines.append(f"if (!({condition})) {{ return {missing}; }}")
        lines.append(f"return {'[' if many else ''}{', '.join(body.results)}{']' if many else ''};")
        title = " ".join(formula.split()).replace("*/", "* /")
        head = [f"/* Returns the result of a multiset: {title}. */", "export function aggregate(elements) {"]
        return "\n".join([*head, *(f"  {line}" for line in lines), "}"]) + "\n"


LANGUAGES: dict[str, Language] = {language.name: language for language in (_Python(), _JavaScript())}
"""Languages by name."""


def function_of(laws: Sequence[tuple[Operation, Sequence[int]]], language: str, formula: str) -> str:
    """Returns the source code of a function that aggregates a multiset of numbers, or of vectors.

    Elements outside the domain raise an error; a result that a law does not have is NaN.

    Arguments:
        laws: Operations, each with its coordinates.
        language: A key of :data:`LANGUAGES`.
        formula: The law, for a comment.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> print(function_of([(AbelianGroup(Generator(1, "positive power", [2.0])), [0])], "python", "the length"))
        import math
        <BLANKLINE>
        <BLANKLINE>
        def aggregate(elements):
            \"\"\"Returns the result of a multiset: the length.\"\"\"
            elements = list(elements)
            if not elements:
                raise ValueError("elements: expected at least one, got none")
            t1_1 = 0.0
            for x1 in elements:
                if not ((x1 >= 0)):
                    raise ValueError(f"elements: expected (x1 >= 0), got {(x1)}")
                u1 = x1**2
                t1_1 += u1
            w1 = t1_1
            return math.sqrt(w1)
        <BLANKLINE>
    """
    folds = [symbolic_fold(operation, block) for operation, block in laws]
    elements = sorted((name for fold in folds for name in fold.elements), key=lambda name: int(name[1:]))
    own = LANGUAGES[language]
    encoded = {name: one for fold in folds for name, one in fold.encoded.items()}
    peaks = [
        (name, own.expression(unfolded(encoded[total.of]))) for fold in folds for name, total in fold.peaks.items()
    ]
    return own.function(formula, elements, peaks, _Body(own, folds))
