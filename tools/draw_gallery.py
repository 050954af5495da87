"""Writes docs/gallery.md: every law and every family of generators, with formula, domain, curve and a use.

Formulas, domains, names and curves are those of the classes; only the examples are written here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from abelnet import Affine, Generator, Operation
from abelnet.bijections import FAMILIES
from abelnet.discovery.formula import latex, number
from abelnet.laws import (
    CappedSum,
    Constant,
    Law,
    Maximum,
    Mean,
    Minimum,
    Polynomial,
    Product,
    Sum,
    WeightedMean,
)
from abelnet.reporting.charts import CHART_STYLE, Chart, Series, draw_chart

ROOT = Path(__file__).parent.parent
PAGE, FOLDER = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery"
POINTS = 81
# In a file of its own a drawing has no page around it, whose font and width it could take.
STYLE = "\n".join(line for line in CHART_STYLE.splitlines() if not line.startswith(".chart"))
WIDTH = 380
RISKS = "The probability that several dependent risks all happen, from that of each."


class Shown(NamedTuple):
    """Law of the gallery: parameters, the range of its curves, the second elements of these, and an example."""

    law: Law
    span: tuple[float, float]
    seconds: tuple[float, ...]
    example: str


class Use(NamedTuple):
    """Law over a generator, and an example."""

    law: Law
    example: str
    theta: tuple[float, ...] | None = None


class Curve(NamedTuple):
    """Family of the gallery: parameters, the range of its curve, and the laws that it is used in."""

    theta: tuple[float, ...]
    span: tuple[float, float]
    uses: tuple[Use, ...]


LAWS = (
    Shown(Sum(), (-2, 2), (-1, 0, 1), "The items of an invoice and its total."),
    Shown(Product(), (-2, 2), (-1, 0.5, 2), "The factors by which a price changes, one year after another."),
    Shown(
        Polynomial(0.5),
        (-2, 2),
        (-1, 0, 1),
        "With γ = 1, compound returns; with γ = −1, the probability that at least one of several independent events "
        "happens (noisy-or). A learned γ goes smoothly from a sum to a product.",
    ),
    Shown(CappedSum(3.0), (0, 3), (0, 1, 2), "Points that count up to a maximum; the fill of a tank that overflows."),
    Shown(Maximum(), (-2, 2), (-1, 0, 1), "The warmest day; the slowest of several parallel tasks."),
    Shown(Minimum(), (-2, 2), (-1, 0, 1), "The cheapest offer; the weakest link of a chain."),
    Shown(Constant(1.0), (-2, 2), (-1, 0, 1), "A flat fee. It completes the associative symmetric polynomials."),
    Shown(
        Mean(),
        (-2, 2),
        (-1, 0, 1),
        "The average grade. No fold, since the mean of two means is not the mean of all; its state, sum and count, "
        "merges all the same.",
    ),
    Shown(
        WeightedMean(),
        (-4, 4),
        (),
        "The center of mass; attention pooling. Half of the coordinates are logarithms of masses, half are places.",
    ),
)

FAMILY_CURVES = {
    "affine": Curve(
        (),
        (-2, 2),
        (
            Use(Sum(), "Amounts on an invoice."),
            Use(Polynomial(1.0), "Gains of 10 % and then 20 % are a gain of 32 %."),
            Use(Polynomial(-1.0), "At least one of several independent causes has an effect."),
            Use(Polynomial(-2.0), "A bit is flipped an odd number of times."),
            Use(Mean(), "Average grades."),
            Use(Mean(0.5), "Stouffer's method: z-scores of independent studies, combined."),
        ),
    ),
    "power": Curve((3.0,), (-2, 2), (Use(Sum(), "Sums of cubes with their signs; a test law of the paper."),)),
    "positive power": Curve(
        (2.0,),
        (0, 3),
        (
            Use(Sum(), "Independent errors; sides of a box and its diagonal."),
            Use(Sum(), "Resistors in parallel; lenses in contact, by focal length; people who share a job.", (-1.0,)),
            Use(Mean(), "The effective voltage of an alternating current."),
            Use(Mean(), "The average speed over equal distances.", (-1.0,)),
        ),
    ),
    "exponential": Curve(
        (1.0,),
        (-2, 2),
        (
            Use(Sum(), "Probabilities given by their logarithms; with k = log(10)/10, sound levels in dB."),
            Use(Mean(), "A soft maximum; the average of noise levels."),
        ),
    ),
    "centered exponential": Curve(
        (1.0, 1.0), (-1, 3), (Use(Sum(), "Log-sum-exp of numbers far from 0, such as levels around 100 dB."),)
    ),
    "logarithm": Curve(
        (1.0,),
        (-0.95, 3),
        (
            Use(Sum(), "Gains of 10 % and then 20 % are a gain of 32 %."),
            Use(Sum(), "A product of positive numbers: growth factors.", (0.0,)),
            Use(Mean(), "Average growth.", (0.0,)),
        ),
    ),
    "logit": Curve(
        (),
        (0.02, 0.98),
        (
            Use(Sum(), "Independent evidence for a hypothesis, from even odds (naive Bayes)."),
            Use(Mean(), "Forecasts of several experts, pooled."),
        ),
    ),
    "arctanh": Curve(
        (1.0,),
        (-0.98, 0.98),
        (
            Use(Sum(), "Velocities in special relativity, in units of the speed of light."),
            Use(Mean(), "Correlations, averaged by Fisher's z."),
        ),
    ),
    "arcsinh": Curve((1.0,), (-4, 4), (Use(Sum(), "Proper velocities in special relativity: rapidities add."),)),
    "reflected logarithm": Curve(
        (1.0,), (-2, 0.95), (Use(Sum(), "At least one of several independent causes has an effect."),)
    ),
    "reciprocal difference": Curve((0.5,), (0.2, 1), (Use(Polynomial(0.0, shift=0.5), RISKS),)),
    "reflected power": Curve((1.0, 2.0), (-1, 1), (Use(Sum(), "Fuzzy logic: Yager's *and*, 0 where it is negative."),)),
    "shifted power": Curve((1.0, -1.0), (-0.8, 3), (Use(Polynomial(0.0, shift=-0.5), RISKS),)),
    "power of logarithm": Curve(
        (2.0,), (0.05, 1), (Use(Sum(), "Extremes that tend to occur together, such as floods of neighboring rivers."),)
    ),
    "power of logarithm of complement": Curve((2.0,), (0, 0.95), (Use(Sum(), "Fuzzy logic: an *or*."),)),
    "power of odds": Curve(
        (1.0,),
        (0.1, 1),
        (Use(Sum(), "Fuzzy logic: Hamacher's *and*."), Use(Sum(), "Fuzzy logic: Dombi's *and*.", (2.0,))),
    ),
    "power of complement": Curve((-1.5, 2.0), (0.2, 1), (Use(Sum(), f"{RISKS} Two parameters, one for each tail."),)),
    "power of complement of complement": Curve(
        (2.0, -1.0), (0.05, 0.95), (Use(Polynomial(0.0, shift=-1.0), f"{RISKS} Two parameters, one for each tail."),)
    ),
    "exponential of reciprocal": Curve((2.0,), (0, 0.95), (Use(Sum(), RISKS),)),
    "arcsine of power": Curve((1.0,), (0, 1), (Use(Sum(), RISKS),)),
    "power of offset logarithm": Curve((1.0, 2.0), (0.05, 1), (Use(Sum(), RISKS),)),
    "exponential of power": Curve((1.0, 1.0), (0.3, 1), (Use(Sum(), RISKS),)),
}


def pages() -> Iterator[tuple[Path, str]]:
    """Yields all files of the gallery and their contents."""
    lines = [
        "# Gallery of laws",
        "",
        "Every law of the package, and every family of generators φ that it knows, with its curve. An operation is a",
        r"law conjugated by a generator, $x \circ y = \varphi^{-1}(\varphi(x) * \varphi(y))$. `LawRegressor` finds",
        "most of these from examples; where none fits, it learns a curve. [Laws on vectors](vectors.md) has its own",
        "gallery.",
        "",
        "`python tools/draw_gallery.py` writes this page from the classes.",
        "",
        "## Laws",
        "",
    ]
    for shown in LAWS:
        file = FOLDER / f"law-{slug(shown.law.name)}.svg"
        lines += law_section(shown, file)
        yield file, drawing(law_chart(shown))
    lines += ["## Generators", "", "Each with the parameters of its curve, and laws over it.", ""]
    for name, curve in FAMILY_CURVES.items():
        file = FOLDER / f"generator-{slug(name)}.svg"
        lines += family_section(name, curve, file)
        yield file, drawing(family_chart(name, curve))
    yield PAGE, "\n".join(lines).rstrip() + "\n"


def drawing(chart: Chart) -> str:
    """Returns a chart as a file."""
    return draw_chart(chart, STYLE).replace("<svg ", f'<svg width="{WIDTH}" ', 1) + "\n"


def law_section(shown: Shown, file: Path) -> list[str]:
    """Returns the section of a law."""
    law = shown.law
    facts = ["a group" if law.is_group else "associative" if law.is_associative else "mergeable, not associative"]
    for word, element in (("identity", law.identity(1)), ("absorbing element", law.absorbing(1))):
        facts += [f"{word} {number(float(element[0]))}"] if element is not None else []
    facts += ["removal of elements"] if law.has_removal else []
    return [
        f"### {law.name}",
        "",
        f"{formula_of(law)}{'; '.join(facts)}.",
        "",
        shown.example,
        "",
        f"![{law_chart(shown).title}](gallery/{file.name})",
        "",
    ]


def formula_of(law: Law) -> str:
    """Returns the formula of a law, as LaTeX in Markdown."""
    if isinstance(law, WeightedMean):  # on vectors
        return (
            "$x_1 \\circ \\dots \\circ x_n = \\sum_i e^{a_i} v_i / \\sum_i e^{a_i}$, on places $v$ with masses $e^a$; "
        )
    return f"${latex(Operation(Affine(1, dtype=torch.float64), law))}$; "


def law_chart(shown: Shown) -> Chart:
    """Returns the chart of a law: results by the first element, for several second ones."""
    x = torch.linspace(*shown.span, POINTS, dtype=torch.float64)
    if isinstance(shown.law, WeightedMean):
        two = torch.stack((torch.stack((x, torch.ones_like(x)), -1), torch.zeros(POINTS, 2, dtype=torch.float64)), -2)
        places = Operation(Affine(2, dtype=torch.float64), shown.law).reduce(two)[:, 1]
        label = "place of the result of 0 and 1"
        series = [series_of("", x, places)]
        return Chart("Weighted mean of 0 and 1", "logarithm of the mass at 1, if that at 0 is 1", label, series)
    operation = Operation(Affine(1, dtype=torch.float64), shown.law)
    series = []
    for second in shown.seconds:
        pairs = torch.stack((x, torch.full_like(x, second)), -1)[..., None]
        results = operation.reduce(pairs)[:, 0]
        series.append(series_of(f"y = {number(second)}", x, results))
    return Chart(f"{shown.law.name} of x and y", "x", "x ∘ y", series)


def family_section(name: str, curve: Curve, file: Path) -> list[str]:
    """Returns the section of a family."""
    family = FAMILIES[name]
    domain = region_of(*(float(end) for end in family.domain(*curve.theta)))
    lines = [
        f"### {name[0].upper()}{name[1:]}",
        "",
        f"`φ(x) = {family.formula.replace('-', '−')}`; domain{with_values(name, curve.theta)}: {domain}.",
        "",
        "| law | formula | example |",
        "|---|---|---|",
    ]
    for use in curve.uses:
        theta = curve.theta if use.theta is None else use.theta
        operation = Operation(Generator(1, name, theta, dtype=torch.float64), use.law)
        title = name_of(name, theta, use.law)
        lines += [f"| {title} | ${latex(operation).replace('|', chr(92) + 'vert ')}$ | {use.example} |"]
    return [*lines, "", f"![{family_chart(name, curve).title}](gallery/{file.name})", ""]


def name_of(name: str, theta: tuple[float, ...], law: Law) -> str:
    """Returns the name that people use for a law over a generator, or its form."""
    family = FAMILIES[name]
    found = None
    if isinstance(law, Mean) and law.exponent == 1:
        found = family.mean_name(*theta)
    elif isinstance(law, Sum):
        found = family.name_of("sum", theta, ())
    elif isinstance(law, Polynomial):
        gamma, shift = float(law.gamma), float(law.shift)
        # u + v + s, or in terms of the absorbing element -1 / γ.
        form, coefficients = ("product", (-1 / gamma, gamma)) if gamma else ("sum", (shift,))
        found = family.name_of(form, theta, coefficients)
    return found or f"{law.name.lower()}{with_values(name, theta)}"


def with_values(name: str, theta: tuple[float, ...]) -> str:
    """Returns the parameters of a family with their values, as a phrase."""
    pairs = [f"{p} = {number(value)}" for p, value in zip(FAMILIES[name].parameters, theta, strict=True)]
    return f" for {', '.join(pairs)}" if pairs else ""


def family_chart(name: str, curve: Curve) -> Chart:
    """Returns the chart of a generator."""
    x = torch.linspace(*curve.span, POINTS, dtype=torch.float64)
    values = FAMILIES[name].forward(x, *curve.theta)
    title = f"{name[0].upper()}{name[1:]}{with_values(name, curve.theta)}"
    return Chart(title, "x", "φ(x)", [series_of("", x, values)])


def region_of(low: float, high: float) -> str:
    """Returns a domain as text; an end that belongs to it is the next number beyond."""
    ends = [round(end, 9) + 0.0 for end in (low, high)]  # without a negative zero
    lower = f"{number(ends[0])} {'≤' if low < ends[0] else '<'} " if low > -math.inf else ""
    upper = f" {'≤' if high > ends[1] else '<'} {number(ends[1])}" if high < math.inf else ""
    return f"${lower}x{upper}$".replace("≤", r"\le") if lower or upper else "all real numbers"


def series_of(name: str, x: torch.Tensor, y: torch.Tensor) -> Series:
    """Returns a curve in as many digits as every machine agrees on."""
    return Series(name, *([float(f"{value:.6g}") for value in values.tolist()] for values in (x, y)))


def slug(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])| ", "-", name).lower()


def main() -> None:
    """Writes the page and its pictures."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages():
        path.write_text(text, encoding="utf-8")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
