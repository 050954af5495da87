"""Laws on vectors that people use, each with elements to draw, its true result, and its invariants in textbook form."""

from __future__ import annotations

__all__ = ["CORE", "LAWS", "WIDER", "VectorLaw", "draw"]

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[np.random.Generator, int], Array]


class VectorLaw(NamedTuple):
    """A law on vectors.

    Attributes:
        names: Names of the coordinates.
        elements: Draws n elements, with shape (n, d).
        result: Returns the result of a set of elements.
        invariants: The invariants as printed.
    """

    names: tuple[str, ...]
    elements: Draw
    result: Callable[[Array], Array]
    invariants: tuple[str, ...]


def draw(law: VectorLaw, count: int, seed: int, sizes: tuple[int, int] = (2, 4)) -> tuple[list[Array], Array]:
    """Draws sets of elements with their results."""
    generator = np.random.default_rng(seed)
    sets = [law.elements(generator, int(n)) for n in generator.integers(sizes[0], sizes[1] + 1, count)]
    return sets, np.array([law.result(one) for one in sets])


def columns(*parts: Callable[[np.random.Generator, int], Array]) -> Draw:
    return lambda generator, n: np.stack([part(generator, n) for part in parts], 1)


def uniform(low: float, high: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda generator, n: generator.uniform(low, high, n)


def normal(center: float, spread: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda generator, n: generator.normal(center, spread, n)


def lognormal(center: float, spread: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda generator, n: np.exp(generator.normal(center, spread, n))


def weighted(curve: Callable[[Array], Array], inverse: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Returns the law that keeps w and w·g(x)."""

    def result(x: Array) -> Array:
        return np.array([x[:, 0].sum(), inverse((x[:, 0] * curve(x[:, 1])).sum() / x[:, 0].sum())])

    return result


def pooled(x: Array) -> Array:
    n, mean = x[:, 0].sum(), (x[:, 0] * x[:, 1]).sum() / x[:, 0].sum()
    return np.array([n, mean, x[:, 2].sum() + (x[:, 0] * (x[:, 1] - mean) ** 2).sum()])


def pooled_variance(x: Array) -> Array:
    n, mean = x[:, 0].sum(), (x[:, 0] * x[:, 1]).sum() / x[:, 0].sum()
    return np.array([n, mean, (x[:, 0] * (x[:, 2] + (x[:, 1] - mean) ** 2)).sum() / n])


def pooled_covariance(x: Array) -> Array:
    n = x[:, 0].sum()
    one, other = ((x[:, 0] * x[:, i]).sum() / n for i in (1, 2))
    return np.array([n, one, other, x[:, 3].sum() + (x[:, 0] * (x[:, 1] - one) * (x[:, 2] - other)).sum()])


def pooled_skewness(x: Array) -> Array:
    n, mean = x[:, 0].sum(), (x[:, 0] * x[:, 1]).sum() / x[:, 0].sum()
    d = x[:, 1] - mean
    m2 = (x[:, 2] + x[:, 0] * d**2).sum()
    return np.array([n, mean, m2, (x[:, 3] + 3 * d * x[:, 2] + x[:, 0] * d**3).sum()])


def fusion(x: Array) -> Array:
    v = 1 / (1 / x[:, 1]).sum()
    return np.array([v * (x[:, 0] / x[:, 1]).sum(), v])


def heat(x: Array) -> Array:
    m, mc = x[:, 0].sum(), (x[:, 0] * x[:, 1]).sum()
    return np.array([m, mc / m, x.prod(1).sum() / mc])


def of_complex(fold: Callable[[Any], complex]) -> Callable[[Array], Array]:
    def result(x: Array) -> Array:
        z = fold(x[:, 0] + 1j * x[:, 1])
        return np.array([z.real, z.imag])

    return result


def colours(x: Array) -> Array:  # chromaticities x, y and luminance Y
    total = np.array([(x[:, 2] * x[:, 0] / x[:, 1]).sum(), x[:, 2].sum(), (x[:, 2] / x[:, 1]).sum()])
    return np.array([total[0] / total[2], total[1] / total[2], total[1]])


def collision(x: Array) -> Array:
    m, p = x[:, 0].sum(), (x[:, 0] * x[:, 1]).sum()
    energy = (x[:, 2] + x[:, 0] * x[:, 1] ** 2 / 2).sum()
    return np.array([m, p / m, energy - p**2 / m / 2])


def dual(x: Array) -> Array:
    a = x[:, 0].prod()
    return np.array([a, a * (x[:, 1] / x[:, 0]).sum()])


def product_with_error(x: Array) -> Array:
    v = x[:, 0].prod()
    return np.array([v, v * math.sqrt(((x[:, 1] / x[:, 0]) ** 2).sum())])


def relativistic(x: Array) -> Array:
    energy = x[:, 0] / np.sqrt(1 - x[:, 1] ** 2)
    e, p = energy.sum(), (energy * x[:, 1]).sum()
    return np.array([math.sqrt(e**2 - p**2), p / e])


def split(x: Array) -> Array:
    u, v = (x[:, 0] + x[:, 1]).prod(), (x[:, 0] - x[:, 1]).prod()
    return np.array([(u + v) / 2, (u - v) / 2])


def split_elements(generator: np.random.Generator, n: int) -> Array:
    a = generator.uniform(0.8, 1.6, n)
    return np.stack((a, a * generator.uniform(-0.6, 0.6, n)), 1)


def center_of_plane(x: Array) -> Array:
    return np.concatenate(([x[:, 0].sum()], (x[:, :1] * x[:, 1:]).sum(0) / x[:, 0].sum()))


def inertia(x: Array) -> Array:
    m, place = x[:, 0].sum(), (x[:, 0] * x[:, 1]).sum() / x[:, 0].sum()
    return np.array([m, place, (x[:, 2] + x[:, 0] * (x[:, 1] - place) ** 2).sum()])


def with_errors(generator: np.random.Generator, n: int) -> Array:
    return np.stack((generator.normal(3, 2, n), generator.uniform(0.3, 3, n)), 1)


def phasors(x: Array) -> Array:
    z = (x[:, 0] * np.exp(1j * x[:, 1])).sum()
    return np.array([abs(z), np.angle(z)])


def identity(x: Array) -> Array:
    return x


def reciprocal(x: Array) -> Array:
    return np.asarray(1 / x)


CORE: dict[str, VectorLaw] = {
    "center of mass": VectorLaw(
        ("m", "x"), columns(uniform(0.5, 3), normal(1, 2)), weighted(identity, identity), ("m", "m·x")
    ),
    "weighted harmonic mean": VectorLaw(
        ("w", "x"), columns(uniform(0.5, 3), uniform(1, 5)), weighted(reciprocal, reciprocal), ("w", "w / x")
    ),
    "weighted geometric mean": VectorLaw(
        ("w", "x"), columns(uniform(0.5, 3), uniform(0.5, 5)), weighted(np.log, np.exp), ("w", "w·log(x)")
    ),
    "pooled variance": VectorLaw(
        ("n", "mean", "m2"),
        columns(lambda g, n: g.integers(2, 30, n).astype(float), normal(5, 2), uniform(1, 40)),
        pooled,
        ("n", "n·mean", "m2 + n·mean^2"),
    ),
    "Gaussian fusion": VectorLaw(("mu", "v"), columns(normal(3, 2), uniform(0.3, 3)), fusion, ("1 / v", "mu / v")),
    "complex product": VectorLaw(
        ("a", "b"),
        columns(normal(0.2, 1), normal(0.1, 1)),
        of_complex(np.prod),
        ("log(a^2 + b^2) / 2", "atan2(b, a)"),
    ),
    "parallel impedance": VectorLaw(
        ("r", "x"),
        columns(uniform(0.5, 4), normal(0, 2)),
        of_complex(lambda z: 1 / np.sum(1 / z)),
        ("r / (r^2 + x^2)", "x / (r^2 + x^2)"),
    ),
    "mixing heat": VectorLaw(
        ("m", "c", "T"),
        columns(uniform(0.5, 3), uniform(1, 4), normal(20, 8)),
        heat,
        ("m", "m·c", "m·c·T"),
    ),
}
MORE: dict[str, VectorLaw] = {
    "mixing volumes": VectorLaw(
        ("V", "c"), columns(lognormal(0, 0.7), uniform(0, 2)), weighted(identity, identity), ("V", "V·c")
    ),
    "pooled variance of groups": VectorLaw(
        ("n", "mu", "v"),
        columns(lambda g, n: g.integers(2, 30, n).astype(float), normal(5, 2), uniform(0.5, 4)),
        pooled_variance,
        ("n", "n·mu", "n·v + n·mu^2"),
    ),
    "Beta updates": VectorLaw(
        ("alpha", "beta"),
        columns(uniform(1, 6), uniform(1, 6)),
        lambda x: np.asarray(x.sum(0) - (len(x) - 1)),
        ("alpha − 1", "beta − 1"),
    ),
    "colours": VectorLaw(
        ("x", "y", "Y"),
        columns(uniform(0.2, 0.6), uniform(0.2, 0.6), uniform(1, 10)),
        colours,
        ("Y", "Y / y", "x·Y / y"),
    ),
    "inelastic collision": VectorLaw(
        ("m", "v", "U"),
        columns(uniform(0.5, 3), normal(0, 2), uniform(0, 5)),
        collision,
        ("m", "m·v", "U + 0.5·m·v^2"),
    ),
    "dual numbers": VectorLaw(("a", "b"), columns(uniform(0.5, 2), normal(0, 1)), dual, ("log(a)", "b / a")),
    "product with error": VectorLaw(
        ("v", "s"),
        columns(uniform(0.5, 2), uniform(0.05, 0.3)),
        product_with_error,
        ("log(v)", "s^2 / v^2"),
    ),
    "relativistic": VectorLaw(
        ("m", "v"),
        columns(uniform(0.5, 3), uniform(-0.9, 0.9)),
        relativistic,
        ("m / (1 − v^2)^(1/2)", "m·v / (1 − v^2)^(1/2)"),
    ),
    "split-complex": VectorLaw(("a", "b"), split_elements, split, ("log(a + b)", "log(a − b)")),
    "center of mass in the plane": VectorLaw(
        ("m", "x", "y"), columns(uniform(0.5, 3), normal(1, 2), normal(-1, 3)), center_of_plane, ("m", "m·x", "m·y")
    ),
    "moment of inertia": VectorLaw(
        ("m", "x", "I"),
        columns(uniform(0.5, 3), normal(0, 1.5), uniform(0.1, 3)),
        inertia,
        ("m", "m·x", "I + m·x^2"),
    ),
}
LAWS = CORE | MORE
"""The 19 laws of two and three coordinates."""
WIDER: dict[str, VectorLaw] = {
    "mixing by pH": VectorLaw(
        ("V", "pH"),
        columns(uniform(0.5, 3), uniform(3, 6)),
        weighted(lambda x: 10**-x, lambda u: -np.log10(u)),
        ("V", "V·10^(−pH)"),
    ),
    "exposure by decibel": VectorLaw(
        ("t", "L"),
        columns(uniform(0.5, 4), uniform(60, 95)),
        weighted(lambda x: 10 ** (x / 10), lambda u: 10 * np.log10(u)),
        ("t", "t·10^(0.1·L)"),
    ),
    "weighted root mean square": VectorLaw(
        ("w", "x"), columns(uniform(0.5, 3), uniform(0.5, 5)), weighted(np.square, np.sqrt), ("w", "w·x^2")
    ),
    "weighted power mean": VectorLaw(
        ("w", "x"),
        columns(uniform(0.5, 3), uniform(0.5, 5)),
        weighted(lambda x: x**1.5, lambda u: u ** (1 / 1.5)),
        ("w", "w·x^1.5"),
    ),
    "pooled covariance": VectorLaw(
        ("n", "x", "y", "c"),
        columns(lambda g, n: g.integers(2, 30, n).astype(float), normal(2, 2), normal(-1, 3), normal(5, 10)),
        pooled_covariance,
        ("n", "n·x", "n·y", "c + n·x·y"),
    ),
    "pooled skewness": VectorLaw(
        ("n", "mean", "m2", "m3"),
        columns(lambda g, n: g.integers(2, 30, n).astype(float), normal(2, 2), uniform(1, 40), normal(0, 30)),
        pooled_skewness,
        ("n", "n·mean", "m2 + n·mean^2", "m3 + 3·mean·m2 + n·mean^3"),
    ),
    "sum of phasors": VectorLaw(
        ("r", "phi"), columns(uniform(0.5, 3), uniform(-3.1, 3.1)), phasors, ("r·cos(phi)", "r·sin(phi)")
    ),
}
"""Laws with exponentials, real exponents and four coordinates."""
