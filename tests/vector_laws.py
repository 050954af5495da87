"""Laws on vectors that people use, each with elements to draw, its true result, and its invariants in textbook form."""

from __future__ import annotations

__all__ = [
    "CORE",
    "LAWS",
    "NON_LAWS",
    "WIDER",
    "VectorLaw",
    "draw",
    "is_right",
    "random_law",
    "random_non_law",
    "spoil",
]

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from abelnet import ExtrapolationWarning, LawRegressor

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


def spoil(
    sets: list[Array], target: Array, noise: float, of_elements: float, swapped: float, seed: int
) -> tuple[list[Array], Array]:
    """Adds noise to results and to elements, in standard deviations, and swaps a fraction of the results."""
    generator = np.random.default_rng(seed + 500)
    target = target + noise * target.std(0) * generator.normal(size=target.shape)
    spread = np.concatenate(sets).std(0)
    sets = [one + of_elements * spread * generator.normal(size=one.shape) for one in sets]
    chosen = generator.permutation(len(target))[: round(swapped * len(target))]
    target[chosen] = target[np.roll(chosen, 1)]
    return sets, target


def evaluate(text: str, names: tuple[str, ...], x: Array) -> Array:
    """Returns the values of a printed invariant."""
    known = {name: x[:, i] for i, name in enumerate(names)}
    functions = {"log": np.log, "cos": np.cos, "sin": np.sin, "atan2": np.arctan2, "exp": np.exp}
    code = text.replace("·", "*").replace("^", "**").replace("−", "-")
    return np.asarray(eval(code, {"__builtins__": {}}, known | functions))


def is_right(model: LawRegressor, law: VectorLaw, tolerance: float) -> bool:
    """Returns whether the invariants of one joint law are those of the textbook, up to factors."""
    if len(model.laws_) != 1:
        return _is_right_alone(model, law)
    x = np.concatenate(draw(law, 100, 77)[0])
    left = [evaluate(text, law.names, x) for text in model.laws_[0].invariants]
    for text in law.invariants:
        values = evaluate(text, law.names, x)
        found = [i for i, one in enumerate(left) if _is_multiple(one, values, tolerance)]
        if not found:
            return False
        left.pop(found[0])
    return not left


def _is_right_alone(model: LawRegressor, law: VectorLaw) -> bool:
    """Returns whether each coordinate has a law of its own, as it should: that predicts sets exactly."""
    if any(sum(name in text for name in law.names) > 1 for text in law.invariants):
        return False
    sets, target = draw(law, 100, 78)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return bool(np.allclose(model.predict(sets), target, rtol=0.05, atol=0.05 * target.std(0).max()))


def _is_multiple(one: Array, other: Array, tolerance: float) -> bool:
    factor = (one @ other) / (other @ other)
    return bool(np.sqrt(np.mean((one - factor * other) ** 2)) <= tolerance * one.std())


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


def _second(law: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """Returns the aggregation that adds up the first coordinate, and has another result in the second."""
    return lambda x: np.array([x[:, 0].sum(), law(x)])


_MASS_AND_PLACE = columns(uniform(0.5, 3), normal(1, 2))
_MASS_AND_LENGTH = columns(uniform(0.5, 3), uniform(0.5, 5))


def _folded(step: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    def result(x: Array) -> Array:
        found = x[0]
        for one in x[1:]:
            found = step(found, one)
        return found

    return result


NON_LAWS: dict[str, VectorLaw] = {
    "center weighted by m²": VectorLaw(
        ("m", "x"), _MASS_AND_PLACE, _second(lambda x: (x[:, 0] ** 2 * x[:, 1]).sum() / (x[:, 0] ** 2).sum()), ()
    ),
    "center weighted by √m": VectorLaw(
        ("m", "x"), _MASS_AND_PLACE, _second(lambda x: (x[:, 0] ** 0.5 * x[:, 1]).sum() / (x[:, 0] ** 0.5).sum()), ()
    ),
    "place of the heaviest": VectorLaw(("m", "x"), _MASS_AND_PLACE, _second(lambda x: x[np.argmax(x[:, 0]), 1]), ()),
    "weighted median": VectorLaw(
        ("m", "x"),
        _MASS_AND_PLACE,
        _second(lambda x: np.median(np.repeat(x[:, 1], np.ceil(4 * x[:, 0]).astype(int)))),
        (),
    ),
    "sum of m² x over m": VectorLaw(
        ("m", "x"), _MASS_AND_LENGTH, _second(lambda x: (x[:, 0] ** 2 * x[:, 1]).sum() / x[:, 0].sum()), ()
    ),
    "product of sums": VectorLaw(
        ("m", "x"), _MASS_AND_LENGTH, _second(lambda x: x[:, 0].sum() * x[:, 1].sum() / len(x)), ()
    ),
    "largest product": VectorLaw(("m", "x"), _MASS_AND_LENGTH, _second(lambda x: x.prod(1).max()), ()),
    "cross product fold": VectorLaw(
        ("a", "b"),
        columns(normal(0, 1), normal(0, 1)),
        _folded(lambda a, b: np.array([a[0] + b[0] + 0.3 * a[1] * b[0] ** 2, a[1] + b[1] + 0.3 * a[0] * b[1]])),
        (),
    ),
    "unweighted mean with weights summed squared": VectorLaw(
        ("m", "x"),
        _MASS_AND_LENGTH,
        lambda x: np.array([np.sqrt((x[:, 0] ** 2).sum()), (x[:, 0] * x[:, 1]).sum() / x[:, 0].sum()]),
        (),
    ),
    "pooled variance without the means": VectorLaw(
        ("n", "mean", "v"),
        columns(uniform(2, 30), normal(5, 2), uniform(0.5, 4)),
        lambda x: np.array(
            [
                x[:, 0].sum(),
                (x[:, 0] * x[:, 1]).sum() / x[:, 0].sum(),
                ((x[:, 0] - 1) * x[:, 2]).sum() / (x[:, 0].sum() - 1) + x[:, 1].var(),
            ]
        ),
        (),
    ),
    "complex product, real part squared": VectorLaw(
        ("a", "b"),
        columns(uniform(0.5, 2), normal(0, 1)),
        _folded(lambda a, b: np.array([a[0] * b[0] - 0.5 * a[1] * b[1] ** 2, a[0] * b[1] + a[1] * b[0]])),
        (),
    ),
    "wind: mean speed and direction": VectorLaw(
        ("v", "w"),
        columns(uniform(0.5, 3), uniform(0.5, 3)),
        lambda x: np.array([np.hypot(*x.mean(0)), x[:, 0].max() * x[:, 1].min()]),
        (),
    ),
}


def random_law(seed: int) -> VectorLaw:
    """Returns a triangular law of two or three coordinates, drawn from powers, logarithms and exponentials."""
    generator = np.random.default_rng(seed)
    d = int(generator.integers(2, 4))
    curves = [_random_curve(generator) for _ in range(d)]
    names = tuple("abc"[:d])
    # Every coordinate but the first is weighted by one before it, and may have a square or a product added.
    weights = [0, *(int(generator.integers(0, i)) for i in range(1, d))]
    extra = [0.0, *(float(generator.choice([0.0, 0.0, 0.5, 1.0])) for _ in range(1, d))]
    # Only coordinates that are positive divide.
    positive = [True, *(curve.range[0] > 0 for curve in curves[1:])]
    powers = [1.0, *(float(generator.choice([1.0, 1.0, -1.0 if positive[weights[i]] else 1.0])) for i in range(1, d))]
    first = str(generator.choice(["plain", "plain", "log", "reciprocal"]))
    of_first = {"plain": ("a", "a"), "log": ("log(a)", "a"), "reciprocal": ("1 / a", "1 / a")}[first]

    def invariants(x: Array) -> Array:
        a = {"plain": x[:, 0], "log": np.log(x[:, 0]), "reciprocal": 1 / x[:, 0]}[first]
        rows = [a]
        for i in range(1, d):
            w = (1 / x[:, 0] if first == "reciprocal" and weights[i] == 0 else x[:, weights[i]]) ** powers[i]
            rows.append(w * curves[i].forward(x[:, i]) + extra[i] * _added(x, i, weights[i], first))
        return np.stack(rows, 1)

    @np.errstate(all="ignore")
    def result(x: Array) -> Array:
        total = invariants(x).sum(0)
        found = np.zeros((1, d))
        found[0, 0] = {"plain": total[0], "log": np.exp(total[0]), "reciprocal": 1 / total[0]}[first]
        for i in range(1, d):
            base = 1 / found[0, 0] if first == "reciprocal" and weights[i] == 0 else found[0, weights[i]]
            rest = total[i] - extra[i] * _added(found, i, weights[i], first)[0]
            found[0, i] = curves[i].inverse(rest / base ** powers[i])
        return found[0]

    texts = [of_first[0]]
    for i in range(1, d):
        w = ("1 / a" if first == "reciprocal" else "a") if weights[i] == 0 else names[weights[i]]
        lead = curves[i].text.format(x=names[i])
        text = f"({w})^{int(powers[i])}·{lead}" if powers[i] > 0 else f"{lead} / ({w})"
        texts.append(text + (f" + {extra[i]}·{_added_text(i, weights[i], first, names)}" if extra[i] else ""))
    elements = columns(uniform(0.6, 2.5), *(uniform(*curve.range) for curve in curves[1:]))
    law = VectorLaw(names, elements, result, tuple(texts))
    sets, target = draw(law, 2000, seed)
    more = draw(law, 300, seed, (10, 12))[1]
    with np.errstate(all="ignore"):
        # A law of a part of all vectors has results for some of its sets only.
        good = np.isfinite(target).all() and (np.abs(target) < 1e4).all() and (target.std(0) > 1e-3).all()
        good &= np.isfinite(more).all() and (np.abs(more) < 1e6).all()
    if good and all(
        np.allclose(invariants(one).sum(0), invariants(y[None])[0]) for one, y in zip(sets, target, strict=True)
    ):
        return law
    return random_law(seed + 1_000_003)


def _added(x: Array, i: int, weight: int, first: str) -> Array:
    """Returns the term of coordinates before i that is added to its invariant."""
    return np.asarray(x[:, weight] ** 2)


def _added_text(i: int, weight: int, first: str, names: tuple[str, ...]) -> str:
    return f"{names[weight]}^2"


class _Curve(NamedTuple):
    forward: Callable[[Array], Array]
    inverse: Callable[[Any], Any]
    text: str
    range: tuple[float, float]


def _random_curve(generator: np.random.Generator) -> _Curve:
    rate = float(generator.choice([-1.0, -0.5, 0.5, 1.0]))
    power = float(generator.choice([0.5, 1.5, 2.5]))
    options = [
        _Curve(identity, identity, "{x}", (-2.0, 3.0)),
        _Curve(identity, identity, "{x}", (-2.0, 3.0)),
        _Curve(np.log, np.exp, "log({x})", (0.5, 3.0)),
        _Curve(reciprocal, reciprocal, "{x}^(-1)", (0.5, 3.0)),
        _Curve(np.square, np.sqrt, "{x}^2", (0.3, 3.0)),
        _Curve(lambda x: x**power, lambda u: u ** (1 / power), f"{{x}}^{power}", (0.3, 3.0)),
        _Curve(lambda x: np.exp(rate * x), lambda u: np.log(u) / rate, f"exp({rate}*{{x}})", (-2.0, 2.0)),
    ]
    return options[int(generator.integers(len(options)))]


def random_non_law(seed: int) -> VectorLaw:
    """Returns an aggregation of two or three coordinates that is no law: folds of steps that are not associative."""
    generator = np.random.default_rng(seed)
    d = int(generator.integers(2, 4))
    names, kind = tuple("abc"[:d]), int(generator.integers(4))
    c = generator.uniform(0.2, 0.6, (d, d, d)) * generator.choice([-1, 1], (d, d, d))
    exponent = float(generator.choice([0.5, 1.5, 2.0, 3.0]))

    def bilinear(a: Array, b: Array) -> Array:
        return np.asarray(a + b + np.tanh(np.einsum("i,ijk,k->j", a, c, b**2)))

    def weighted_wrongly(x: Array) -> Array:
        w = x[:, 0] ** exponent
        return np.concatenate(([x[:, 0].sum()], (w[:, None] * x[:, 1:]).sum(0) / w.sum()))

    def of_extremes(x: Array) -> Array:
        return np.concatenate(([x[:, 0].sum()], x[np.argmax(x[:, 0]), 1:] + 0.3 * x[:, 1:].sum(0)))

    def bent(x: Array) -> Array:
        total = x.sum(0)
        return np.asarray(total + 0.5 * np.sin(2 * np.roll(total, 1)) + 0.3 * (x**2).sum(0))

    results = (_folded(bilinear), weighted_wrongly, of_extremes, bent)
    return VectorLaw(names, columns(uniform(0.5, 3), *(uniform(-1.5, 1.5) for _ in range(d - 1))), results[kind], ())
