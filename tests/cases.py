"""Every bijection and every law, in one table that all tests share; and what tests of experiments compare."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import abelnet
from abelnet import Bijection, Law
from abelnet.bijections import Implicit, Invariants
from abelnet.bijections.terms import Exponential, Factor, Logarithm, Monomial, Planar, Power, Term
from abelnet.nn import GatedBank

DTYPES = [torch.float32, torch.float64]


def randomise(bijection: Bijection, seed: int = 0) -> Bijection:
    """Moves every parameter away from its start, by about what training does."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bijection.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return bijection


def negative_monotonic(dtype: torch.dtype, dim: int = 3) -> Bijection:
    bijection = abelnet.Monotonic(dim, groups=4, units=5, seed=1, dtype=dtype)
    with torch.no_grad():
        bijection.raw_sign.neg_()
    return bijection


# Exact everywhere, however far out; of three dimensions unless another number is given.
ELEMENTWISE: dict[str, Callable[..., Bijection]] = {
    "affine": lambda dtype, dim=3: randomise(abelnet.Affine(dim, dtype=dtype)),
    "sinh_arcsinh": lambda dtype, dim=3: randomise(abelnet.SinhArcsinh(dim, dtype=dtype)),
    "monotonic": lambda dtype, dim=3: abelnet.Monotonic(dim, groups=4, units=5, seed=1, dtype=dtype),
    "monotonic_negative": negative_monotonic,
    "spline": lambda dtype, dim=3: randomise(abelnet.RationalQuadraticSpline(dim, bins=6, dtype=dtype)),
    "chain": lambda dtype, dim=3: randomise(
        abelnet.Chain(
            abelnet.Affine(dim, dtype=dtype), abelnet.SinhArcsinh(dim, dtype=dtype), abelnet.Affine(dim, dtype=dtype)
        )
    ),
}
COUPLED: dict[str, Callable[..., Bijection]] = {
    "coupling": lambda dtype, dim=3: abelnet.GlowCoupling(dim, hidden=16, gain=1.0, seed=1, dtype=dtype),
    "permutation": lambda dtype, dim=3: abelnet.Permutation(dim, seed=1),
    "glow": lambda dtype, dim=3: abelnet.glow(dim, layers=3, hidden=16, gain=1.0, seed=1, dtype=dtype),
}


def monomial(*factors: Factor | int) -> Monomial:
    """A product of factors; numbers stand for coordinates themselves."""
    return Monomial(tuple(Power(factor) if isinstance(factor, int) else factor for factor in factors))


def sheared(dtype: torch.dtype, dim: int = 3) -> Bijection:
    """A triangular map of the whole space onto itself, in another order than that of its coordinates."""
    first = [monomial(1), monomial()]
    second = [monomial(0, Exponential(1, 0.2)), monomial(Power(1, 2.0))]
    third = [monomial(2), monomial(0, 1), monomial(Exponential(1, -0.3, 2.0))]
    more = [[monomial(k), monomial(0)] for k in range(3, dim)]
    coefficients = [[2.0, -0.5], [0.8, 0.25, 1.2], [1.5, 0.3], *([0.7, 0.1] for _ in more)]
    return abelnet.Triangular(dim, [first, third, second, *more], coefficients, dtype=dtype)


TRIANGULAR: dict[str, Callable[..., Bijection]] = {"triangular": sheared}
BIJECTIONS = ELEMENTWISE | COUPLED | TRIANGULAR

IDENTITY_LIKE: dict[str, Callable[[torch.dtype], Bijection]] = {
    "affine": lambda dtype: abelnet.Affine(3, dtype=dtype),
    "sinh_arcsinh": lambda dtype: abelnet.SinhArcsinh(3, dtype=dtype),
    "monotonic": lambda dtype: abelnet.Monotonic(3, near=(1.0, 0.0), seed=1, dtype=dtype),
    "spline": lambda dtype: abelnet.RationalQuadraticSpline(3, dtype=dtype),
    "coupling": lambda dtype: abelnet.GlowCoupling(3, hidden=16, gain=0.0, dtype=dtype),
    "permutation": lambda dtype: abelnet.Permutation(3, order=[0, 1, 2]),
    "glow": lambda dtype: abelnet.glow(3, layers=3, hidden=16, gain=0.0, seed=1, dtype=dtype),
}

# Kind, parameters, and the range in which elements lie.
FAMILY_CASES: dict[str, tuple[str, list[float], float, float]] = {
    "affine": ("affine", [], -1e6, 1e6),
    "power_3": ("power", [3.0], -1e2, 1e2),
    "power_below": ("power", [-1.0], 1e-6, 1e6),
    "power_half": ("power", [0.5], -1e6, 1e6),
    "positive_power": ("positive power", [2.0], 0, 1e3),
    "positive_power_below": ("positive power", [-0.5], 1e-6, 1e6),
    "exponential": ("exponential", [0.7], -20, 20),
    "exponential_falling": ("exponential", [-2.0], -5, 5),
    "logarithm": ("logarithm", [2.0], -1.9, 1e6),
    "logit": ("logit", [], 1e-6, 1 - 1e-6),
    "arctanh": ("arctanh", [3.0], -2.99, 2.99),
    "arcsinh": ("arcsinh", [0.5], -1e6, 1e6),
    "centered_exponential": ("centered exponential", [0.5, 1e6], 1e6 - 20, 1e6 + 20),
    "reflected_logarithm": ("reflected logarithm", [2.0], -1e6, 1.9),
    "reflected_power": ("reflected power", [1.0, 1.5], -1e3, 1.0),
    "reflected_power_below": ("reflected power", [2.0, -1.0], -1e3, 1.9),
    "shifted_power": ("shifted power", [0.5, 2.0], -0.5, 1e3),
    "shifted_power_below": ("shifted power", [1.0, -3.0], -0.9, 9.0),
    "reciprocal_difference": ("reciprocal difference", [0.5], 1e-3, 1e3),
    "log_power": ("power of logarithm", [1.5], 1e-3, 1.0),
    "log_power_half": ("power of logarithm", [0.5], 1e-3, 1.0),
    "log_power_below": ("power of logarithm", [-1.5], 0.0, 0.99),
    "log_power_of_complement": ("power of logarithm of complement", [3.0], 0.01, 0.999),
    "odds_power": ("power of odds", [2.0], 1e-3, 1.0),
    "odds_power_below": ("power of odds", [-0.5], 0.0, 0.999),
    "complement_power_below": ("power of complement", [-0.5, 2.0], 1e-3, 1.0),
    "complement_power": ("power of complement", [3.0, 0.5], 0.01, 1.0),
    "complement_power_turning": ("power of complement", [0.5, 0.5], 0.0, 1.0),
    "complement_power_of_complement": ("power of complement of complement", [2.0, 0.5], 0.0, 0.999),
    "offset_log_power": ("power of offset logarithm", [3.0, 0.3], 1e-3, 1.0),
    "offset_log_power_below": ("power of offset logarithm", [1.0, -2.0], 1e-3, 1.0),
    "exponential_of_power": ("exponential of power", [0.5, 1.0], 1e-2, 1.0),
    "reciprocal_exponential": ("exponential of reciprocal", [1.5], 0.0, 0.95),
    "arcsine_of_power": ("arcsine of power", [1.5], 0.0, 1.0),
}


def _pair(plane: str, *, signs: Sequence[int] = (0, 0)) -> Callable[[torch.dtype], Invariants]:
    terms = [[Planar(plane, part, 0, 1)] for part in (0, 1)]
    return lambda dtype: abelnet.Triangular(2, terms, [[1.0], [1.0]], signs, dtype=dtype)


def _triangular(
    terms: Sequence[Sequence[Term]], signs: Sequence[int], coefficients: Sequence[Sequence[float]] = ()
) -> Callable[[torch.dtype], Invariants]:
    given = coefficients or [[1.0] * len(one) for one in terms]
    return lambda dtype: abelnet.Triangular(len(terms), terms, given, signs, dtype=dtype)


def _implicit(dtype: torch.dtype) -> Invariants:
    """Two sums that mix both coordinates: x + y³ / 3 and 2 y - x³ / 3."""
    terms = [[monomial(0), monomial(Power(1, 3.0))], [monomial(1), monomial(Power(0, 3.0))]]
    known = torch.cartesian_prod(torch.linspace(-2, 2, 9), torch.linspace(-2, 2, 9))
    return Implicit(2, terms, [[1.0, 1 / 3], [2.0, -1 / 3]], known=known, dtype=dtype)


def _implicit_angle(dtype: torch.dtype) -> Invariants:
    """The product of complex numbers, times a power of a third number that depends on their length."""
    terms = [
        [Planar("polar", 0, 0, 1), monomial(2)],
        [Planar("polar", 1, 0, 1)],
        [monomial(2), monomial(Power(2, 3.0))],
    ]
    generator = torch.Generator().manual_seed(0)
    known = 4 * torch.rand(200, 3, generator=generator) - 2
    return Implicit(3, terms, [[1.0, 0.5], [1.0], [1.0, 0.1]], known=known, dtype=dtype)


POOLED = [[monomial(0)], [monomial(0, 1)], [monomial(2), monomial(0, Power(1, 2.0))]]
# Bijections on vectors by additive invariants, and the box in which elements lie.
VECTOR_CASES: dict[str, tuple[Callable[[torch.dtype], Invariants], list[float], list[float]]] = {
    "center_of_mass": (_triangular([[monomial(0)], [monomial(0, 1)]], (1, 0)), [0.1, -5], [3, 5]),
    "harmonic_mean": (_triangular([[monomial(0)], [monomial(0, Power(1, -1.0))]], (1, 1)), [0.1, 0.2], [3, 5]),
    "geometric_mean": (_triangular([[monomial(0)], [monomial(0, Logarithm(1))]], (1, 1)), [0.1, 0.2], [3, 5]),
    "pooled_variance": (_triangular(POOLED, (1, 0, 1)), [1, -3, 0], [20, 3, 9]),
    "fusion": (_triangular([[monomial(Power(1, -1.0))], [monomial(0, Power(1, -1.0))]], (0, 1)), [-5, 0.1], [5, 3]),
    "acids": (_triangular([[monomial(0)], [monomial(0, Exponential(1, -1.0, 10.0))]], (1, 0)), [0.1, 2], [3, 6]),
    "decibels": (_triangular([[monomial(0)], [monomial(0, Exponential(1, 0.1, 10.0))]], (1, 0)), [0.5, 40], [8, 90]),
    "complex_product": (_pair("polar"), [-2, -2], [2, 2]),
    "impedance": (_pair("inversion", signs=(1, 0)), [0.1, -3], [5, 3]),
    "split_complex": (_pair("split"), [2.1, -2], [4, 2]),
    "relativistic": (_pair("Lorentz", signs=(1, 0)), [0.5, -0.95], [3, 0.95]),
    "phasors": (_pair("Cartesian", signs=(1, 0)), [0.5, -3.1], [3, 3.1]),
    "beta": (
        _triangular([[monomial(0), monomial()], [monomial(1), monomial()]], (1, 1), [[1, -1]] * 2),
        [1, 1],
        [9, 9],
    ),
    "root_below": (
        _triangular([[monomial(Power(1, 3.0))], [monomial(Power(0, 2.0)), monomial(1)]], (-1, 0), [[1], [0.5, 2]]),
        [-4, 0.2],
        [-0.1, 2],
    ),
    "real_powers": (
        _triangular([[monomial(Power(0, 1.5))], [monomial(Power(0, -0.5), Power(1, -3.0))]], (1, 1)),
        [0.2, 0.3],
        [4, 3],
    ),
    "heat": (_triangular([[monomial(0)], [monomial(0, 1)], [monomial(0, 1, 2)]], (1, 1, 0)), [0.5, 0.5, -9], [4, 4, 9]),
    "pooled_covariance": (
        _triangular(
            [[monomial(0)], [monomial(0, 1)], [monomial(0, 2)], [monomial(3), monomial(0, 1, 2)]], (1, 0, 0, 0)
        ),
        [1, -2, -2, -9],
        [20, 2, 2, 9],
    ),
    "pooled_skewness": (
        _triangular(
            [*POOLED, [monomial(3), monomial(1, 2), monomial(0, Power(1, 3.0))]],
            (1, 0, 1, 0),
            [[1], [1], [1, 1], [1, 3, 1]],
        ),
        [1, -2, 0, -9],
        [20, 2, 9, 9],
    ),
    "twisted": (
        _triangular(
            [
                [Planar("polar", 1, 2, 0), monomial(Power(1, 2.0))],
                [monomial(1)],
                [Planar("polar", 0, 2, 0), monomial(1), monomial(Exponential(1, 0.5))],
            ],
            (0, 0, 0),
            [[1, 0.2], [1], [2, 0.3, -0.1]],
        ),
        [-1, -1, 0.5],
        [1, 1, 2],
    ),
    "implicit": (_implicit, [-2, -2], [2, 2]),
    "implicit_angle": (_implicit_angle, [-2, -2, -2], [2, 2, 2]),
}


def vectors(name: str, count: int, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Elements of a case of ``VECTOR_CASES``."""
    _, low, high = VECTOR_CASES[name]
    ends = torch.tensor([low, high], dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    return torch.lerp(ends[0], ends[1], torch.rand(count, len(low), generator=generator, dtype=torch.float64)).to(dtype)


# Every curve in float64, three dimensions, and the range in which elements lie.
CURVES: dict[str, tuple[Callable[[], Bijection], float, float]] = {
    name: (lambda make=make: make(torch.float64), -9.0, 9.0)  # type: ignore[misc]
    for name, make in ELEMENTWISE.items()
} | {
    name: (lambda case=case: abelnet.Generator(3, case[0], case[1], dtype=torch.float64), case[2], case[3])  # type: ignore[misc]
    for name, case in FAMILY_CASES.items()
}

LAWS: dict[str, Callable[[], Law]] = {
    "sum": abelnet.Sum,
    "product": abelnet.Product,
    "polynomial_zero": lambda: abelnet.Polynomial(gamma=0.0),
    "polynomial_small": lambda: abelnet.Polynomial(gamma=1e-9),
    "polynomial": lambda: abelnet.Polynomial(gamma=0.5),
    "polynomial_negative": lambda: abelnet.Polynomial(gamma=-0.5, shift=0.3),
    "polynomial_shifted": lambda: abelnet.Polynomial(gamma=0.0, shift=0.7),
    "polynomial_mixed": lambda: abelnet.Polynomial(gamma=torch.tensor([0.0, 0.5, -2.0]), dtype=torch.float64),
    "constant": lambda: abelnet.Constant(0.7),
    "maximum": abelnet.Maximum,
    "minimum": abelnet.Minimum,
}
GROUPS = [name for name, law in LAWS.items() if law().is_group]


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest error over the largest entry of its row, or over 1 where that is less."""
    scale = expected.abs().amax(-1, keepdim=True).clamp(min=1)
    return ((got - expected).abs() / scale).max().item()


def without_times(path: Path) -> dict[str, Any]:
    """The results of an experiment, but for the times it took."""
    content: dict[str, Any] = json.loads(path.read_text())
    for part in (content, *content["rows"], *(run for row in content["rows"] for run in row.get("runs", ()))):
        for key in [key for key in part if key.startswith("seconds")]:
            del part[key]
    return content


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    """Waits for a condition that a process brings about while it runs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"the process ended with {process.returncode} before it could be killed"
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.005)


def kill_when(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    """Kills a process, which has to be running still, as soon as a condition holds."""
    try:
        wait_until(condition, process)
        assert process.poll() is None, f"the process ended with {process.returncode} before it was killed"
    finally:
        process.kill()
        process.wait()
    assert process.returncode != 0


def _written(folder: Path, pattern: str) -> set[tuple[Path, int]]:
    """Files and when each was written; some may go while we look."""
    return {(path, path.stat().st_mtime_ns) for path in folder.glob(pattern) if path.exists()}


def chosen(bank: GatedBank, *names: str) -> GatedBank:
    """Returns a bank whose channels have kept these laws."""
    with torch.no_grad():
        for channel, name in enumerate(names):
            bank.logits[channel, bank.names.index(name)] = 1.0
    bank.anneal(1.0)
    return bank


def killed_and_resumed(arguments: list[str], folder: Path, kills: Sequence[str]) -> dict[str, Any]:
    """Results of a command that runs through, once it is sure that one that was killed comes to the same.

    Arguments:
        arguments: The command.
        folder: A folder for the output of both.
        kills: Patterns of files: each time, the command is killed as soon as it has written one.
    """
    command = [sys.executable, "-m", "abelnet", *arguments, "--out"]
    whole, killed = folder / "whole", folder / "killed"
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    for pattern in kills:
        before = _written(killed, pattern)
        process = subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL)
        kill_when(process, lambda pattern=pattern, before=before: bool(_written(killed, pattern) - before))
        assert not (killed / "results.json").exists()
    subprocess.run([*command, str(killed)], check=True, capture_output=True)
    results = without_times(whole / "results.json")
    assert json.dumps(results) == json.dumps(without_times(killed / "results.json"))
    return results
