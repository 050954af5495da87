"""Axes of charts: places of numbers from 0 to 1, and ticks with labels, for all numbers that a float can hold."""

from __future__ import annotations

__all__ = ["Axis", "linear_axis", "log_axis"]

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

_MARGIN = 0.04  # between the numbers and the ends of the axis, in parts of their range
_SUPERSCRIPTS = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_SMALL, _LARGE = 1e-4, 1e7  # numbers between are written without a power of ten, on linear axes
_PLAIN = range(-3, 5)  # exponents of numbers that are written without a power of ten, on logarithmic axes


class Axis(Protocol):
    """Axis of a chart."""

    def place(self, number: float) -> float:
        """Returns the place of a number: 0 at the start of the axis, 1 at its end."""

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """Returns places and labels of ticks, about ``count`` at most."""


def linear_axis(numbers: Sequence[float]) -> Axis:
    """Returns a linear axis that shows finite numbers. If all are whole, so are its ticks.

    Example:
        >>> [label for _, label in linear_axis([-20, 10]).ticks(5)]
        ['−20', '−10', '0', '10']
        >>> [label for _, label in linear_axis([2, 3]).ticks(5)], [label for _, label in linear_axis([2, 3.5]).ticks(3)]
        (['2', '3'], ['2', '3'])
        >>> [label for _, label in linear_axis([0, 2e9]).ticks(5)]
        ['0', '5×10⁸', '10⁹', '1.5×10⁹', '2×10⁹']
    """
    size = max(map(abs, numbers), default=0.0)
    unit = 10.0 ** max(-300, math.floor(math.log10(size))) if size > 0 else 1.0
    low, high = min(numbers, default=0.0) / unit, max(numbers, default=1.0) / unit
    margin = _MARGIN * (high - low)
    if not margin > 1e-13 * max(abs(low), abs(high)):  # all numbers are equal, up to rounding
        margin = 0.5
    whole = all(float(number).is_integer() for number in numbers)
    return _Linear(low - margin, high + margin, unit, 1 / unit if whole else 0.0)


def log_axis(numbers: Sequence[float]) -> Axis:
    """Returns a logarithmic axis that shows finite, positive numbers.

    Example:
        >>> [label for _, label in log_axis([2, 3, 100]).ticks(8)]
        ['2', '5', '10', '20', '50', '100']
        >>> [label for _, label in log_axis([1e-16, 1]).ticks(5)]
        ['10⁻¹⁶', '10⁻¹²', '10⁻⁸', '10⁻⁴', '10⁰']
    """
    low, high = math.log10(min(numbers, default=1.0)), math.log10(max(numbers, default=10.0))
    margin = _MARGIN * (high - low) if high - low > 1e-9 else 0.5
    return _Log(low - margin, high + margin)


class _Linear(NamedTuple):
    """Axis from ``low`` to ``high``, in units of a power of ten, in which no difference overflows."""

    low: float
    high: float
    unit: float
    least: float = 0.0  # distance of two ticks

    def place(self, number: float) -> float:
        return (number / self.unit - self.low) / (self.high - self.low)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = max(self.least, next(m * power for m in (1, 2, 5, 10) if m * power >= rough))
        digits = math.ceil(math.log10(max(1.0, max(abs(self.low), abs(self.high)) / step))) + 1
        inside = range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        return [
            ((i * step - self.low) / (self.high - self.low), _label(self.unit * (i * step), digits)) for i in inside
        ]


class _Log(NamedTuple):
    """Axis from ``10 ** low`` to ``10 ** high``."""

    low: float
    high: float

    def place(self, number: float) -> float:
        log = math.log10(number) if number > 0 else -math.inf
        return (log - self.low) / (self.high - self.low)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        powers = range(math.ceil(self.low), math.floor(self.high) + 1)
        if len(powers) > 2:
            step = math.ceil(len(powers) / count)
            numbers = [(1.0, power) for power in range(math.ceil(self.low / step) * step, powers.stop, step)]
        else:
            numbers = self._digits(count)
        places = [(math.log10(digit) + power - self.low) / (self.high - self.low) for digit, power in numbers]
        return list(zip(places, _power_labels(numbers), strict=True))

    def _digits(self, count: int) -> list[tuple[float, int]]:
        """Returns digits and powers of ten that are numbers of a short range."""
        around = range(math.floor(self.low), math.ceil(self.high) + 1)
        for digits in ((1, 2, 5), range(1, 10)):
            numbers = [(float(digit), power) for power in around for digit in digits]
            numbers = [(digit, power) for digit, power in numbers if self.low <= math.log10(digit) + power <= self.high]
            if len(numbers) > 1:
                return numbers[:: math.ceil(len(numbers) / count)]
        base = math.floor((self.low + self.high) / 2)
        low, high = 10 ** (self.low - base), 10 ** (self.high - base)
        places = [part for part, _ in _Linear(low, high, 1.0).ticks(count)]
        figures = 3 + max(0, math.ceil(-math.log10(high - low)))
        return [(float(f"{low + part * (high - low):.{figures}g}"), base) for part in places]


def _label(number: float, digits: int) -> str:
    rounded = float(f"{number:.{digits}g}")
    if rounded == 0 or _SMALL <= abs(rounded) < _LARGE:
        return _minus(f"{rounded:,.12g}")
    mantissa, _, exponent = f"{rounded:.12e}".partition("e")
    return _minus(_scientific(float(mantissa), int(exponent)))


def _power_labels(numbers: Sequence[tuple[float, int]]) -> list[str]:
    """Returns the labels of digits times powers of ten, all with or all without a power."""
    if all(power in _PLAIN for _, power in numbers):
        return [f"{digit * 10.0**power:,.12g}" for digit, power in numbers]
    return [_scientific(digit, power) for digit, power in numbers]


def _scientific(mantissa: float, exponent: int) -> str:
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    if abs(mantissa) == 1:
        return power if mantissa > 0 else f"-{power}"
    return f"{mantissa:.12g}×{power}"


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")
