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

DTYPES = [torch.float32, torch.float64]


def randomise(bijection: Bijection, seed: int = 0) -> Bijection:
    """Moves every parameter away from its start, by about what training does."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bijection.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return bijection


def negative_monotonic(dtype: torch.dtype) -> Bijection:
    bijection = abelnet.Monotonic(3, groups=4, units=5, seed=1, dtype=dtype)
    with torch.no_grad():
        bijection.raw_sign.neg_()
    return bijection


# Exact everywhere, however far out; three dimensions.
ELEMENTWISE: dict[str, Callable[[torch.dtype], Bijection]] = {
    "affine": lambda dtype: randomise(abelnet.Affine(3, dtype=dtype)),
    "sinh_arcsinh": lambda dtype: randomise(abelnet.SinhArcsinh(3, dtype=dtype)),
    "monotonic": lambda dtype: abelnet.Monotonic(3, groups=4, units=5, seed=1, dtype=dtype),
    "monotonic_negative": negative_monotonic,
    "spline": lambda dtype: randomise(abelnet.RationalQuadraticSpline(3, bins=6, dtype=dtype)),
    "chain": lambda dtype: randomise(
        abelnet.Chain(
            abelnet.Affine(3, dtype=dtype), abelnet.SinhArcsinh(3, dtype=dtype), abelnet.Affine(3, dtype=dtype)
        )
    ),
}
COUPLED: dict[str, Callable[[torch.dtype], Bijection]] = {
    "coupling": lambda dtype: abelnet.GlowCoupling(3, hidden=16, gain=1.0, seed=1, dtype=dtype),
    "permutation": lambda dtype: abelnet.Permutation(3, seed=1),
    "glow": lambda dtype: abelnet.glow(3, layers=3, hidden=16, gain=1.0, seed=1, dtype=dtype),
}
BIJECTIONS = ELEMENTWISE | COUPLED

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
    for part in (content, *content["rows"]):
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
