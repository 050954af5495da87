"""Tables to start from, drawn with a random seed: laws of several kinds, and one table without a law."""

from __future__ import annotations

__all__ = ["PRESETS", "Preset", "list_presets"]

import math
import random
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from abelnet.explore.tasks import Arguments

Element = tuple[float, ...]
Elements = Sequence[Element]
_SETS = 60
_SIZES = (2, 4)


class Preset(NamedTuple):
    """A table in long form: a row per element, with its set and the result of the set.

    Attributes:
        title: Title.
        about: What the table shows, in a sentence.
        columns: The column of sets, those of elements, and those of results.
        draw: Draws an element.
        result: Returns the result of a set.
        digits: Decimals of elements.
    """

    title: str
    about: str
    columns: tuple[str, tuple[str, ...], tuple[str, ...]]
    draw: Callable[[random.Random], Element]
    result: Callable[[Elements], Element]
    digits: int = 2

    @property
    def text(self) -> str:
        """The table as CSV, the same at every call."""
        generator = random.Random(0)
        key, values, targets = self.columns
        lines = [",".join((key, *values, *targets))]
        for number in range(1, _SETS + 1):
            size = generator.randint(*_SIZES)
            elements = [tuple(round(x, self.digits) for x in self.draw(generator)) for _ in range(size)]
            # All digits: a rounded result would be noise.
            result = [f"{x:.12g}" for x in self.result(elements)]
            lines += [",".join((str(number), *map(str, element), *result)) for element in elements]
        return "\n".join(lines) + "\n"


def _uniform(low: float, high: float) -> Callable[[random.Random], Element]:
    return lambda generator: (generator.uniform(low, high),)


def _scalar(function: Callable[[list[float]], float]) -> Callable[[Elements], Element]:
    return lambda elements: (function([x for (x,) in elements]),)


def _body(generator: random.Random) -> Element:
    return generator.uniform(1, 9), generator.uniform(-5, 5), generator.uniform(-5, 5)


def _center(bodies: Elements) -> Element:
    mass = sum(m for m, _, _ in bodies)
    return mass, sum(m * x for m, x, _ in bodies) / mass, sum(m * y for m, _, y in bodies) / mass


def _measurement(generator: random.Random) -> Element:
    return generator.uniform(-3, 3), generator.uniform(0.2, 4)


def _fused(measurements: Elements) -> Element:
    precision = sum(1 / variance for _, variance in measurements)
    return sum(mean / variance for mean, variance in measurements) / precision, 1 / precision


PRESETS = {
    "shifted_product": Preset(
        "x + y + xy/2",
        "One of the paper's operations: it needs a curve that no sum of plain numbers gives.",
        ("set", ("x",), ("result",)),
        _uniform(-1.5, 4),
        _scalar(lambda x: 2 * (math.prod(1 + one / 2 for one in x) - 1)),
    ),
    "returns": Preset(
        "Compound returns",
        "Returns of several periods, and the return over all of them.",
        ("account", ("return",), ("total",)),
        _uniform(-0.2, 0.4),
        _scalar(lambda x: math.prod(1 + one for one in x) - 1),
        3,
    ),
    "resistors": Preset(
        "Parallel resistors",
        "Resistances in ohms, and that of all of them in parallel.",
        ("circuit", ("ohms",), ("parallel",)),
        _uniform(10, 500),
        _scalar(lambda x: 1 / sum(1 / one for one in x)),
        1,
    ),
    "geometric_mean": Preset(
        "Geometric mean",
        "A mean rather than a sum: growth factors, and their average.",
        ("set", ("factor",), ("average",)),
        _uniform(0.5, 3),
        _scalar(lambda x: math.exp(sum(map(math.log, x)) / len(x))),
    ),
    "center_of_mass": Preset(
        "Centers of mass",
        "Vectors whose coordinates mix: masses and places of bodies, and those of the whole.",
        ("system", ("m", "x", "y"), ("total_m", "center_x", "center_y")),
        _body,
        _center,
    ),
    "gaussian_fusion": Preset(
        "Gaussian fusion",
        "Independent measurements with their variances, combined as a Kalman filter does.",
        ("target", ("mean", "variance"), ("fused_mean", "fused_variance")),
        _measurement,
        _fused,
    ),
    "no_law": Preset(
        "No law: the median",
        "The median of a set cannot be found from medians of its parts, and the search says so.",
        ("set", ("x",), ("median",)),
        _uniform(0, 10),
        _scalar(median),
    ),
}
"""Tables by name."""


def list_presets(arguments: Arguments, say: Callable[[str], None]) -> dict[str, Any]:
    """Returns all presets with their tables."""
    return {
        "presets": [
            {
                "name": name,
                "title": preset.title,
                "about": preset.about,
                "text": preset.text,
                "set": preset.columns[0],
                "values": preset.columns[1],
                "targets": preset.columns[2],
            }
            for name, preset in PRESETS.items()
        ]
    }
