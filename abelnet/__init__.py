"""Learn how things combine: commutative, associative operations learned from examples.

Names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abelnet.accumulator import Accumulator
    from abelnet.aggregation import Aggregation
    from abelnet.bijections import (
        Affine,
        Bijection,
        Chain,
        Generator,
        Glow,
        GlowCoupling,
        Monotonic,
        Permutation,
        RationalQuadraticSpline,
        SinhArcsinh,
        Triangular,
        glow,
    )
    from abelnet.checks import set_checks_enabled
    from abelnet.discovery import LawRegressor, NoLawError
    from abelnet.errors import AbelnetError, ExtrapolationWarning
    from abelnet.laws import CappedSum, Constant, Law, Maximum, Mean, Minimum, Polynomial, Product, Sum, WeightedMean
    from abelnet.multisets import Multisets
    from abelnet.operation import AbelianGroup, AbelianNet, AbelianSemigroup, Operation
    from abelnet.saving import load, save
    from abelnet.segments import set_kernels_enabled
    from abelnet.verify import find_counterexample, generator_bound, law_defects, lipschitz, merge_bound, size_bound

__version__ = "0.2.0"

_HOMES = {
    "accumulator": ("Accumulator",),
    "aggregation": ("Aggregation",),
    "bijections": (
        "Affine",
        "Bijection",
        "Chain",
        "Even",
        "Generator",
        "Glow",
        "GlowCoupling",
        "Monotonic",
        "Permutation",
        "RationalQuadraticSpline",
        "SinhArcsinh",
        "Triangular",
        "glow",
    ),
    "checks": ("set_checks_enabled",),
    "discovery": ("LawRegressor", "NoLawError"),
    "errors": ("AbelnetError", "ExtrapolationWarning"),
    "laws": (
        "CappedSum",
        "Constant",
        "Law",
        "Maximum",
        "Mean",
        "Minimum",
        "Polynomial",
        "Product",
        "Sum",
        "WeightedMean",
    ),
    "multisets": ("Multisets",),
    "operation": ("AbelianGroup", "AbelianNet", "AbelianSemigroup", "Operation"),
    "saving": ("load", "save"),
    "segments": ("set_kernels_enabled",),
    "verify": ("find_counterexample", "generator_bound", "law_defects", "lipschitz", "merge_bound", "size_bound"),
}
_HOME_OF = {name: f"abelnet.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "__version__",
    *_HOME_OF,
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'abelnet' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
