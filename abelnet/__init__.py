"""Learn how things combine: commutative, associative operations learned from examples."""

from abelnet.accumulator import Accumulator
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
    glow,
)
from abelnet.errors import AbelnetError
from abelnet.estimators import LawRegressor
from abelnet.laws import Constant, Law, Maximum, Minimum, Polynomial, Product, Sum
from abelnet.learning import NoLawError
from abelnet.multisets import Multisets
from abelnet.operation import AbelianGroup, AbelianNet, AbelianSemigroup, Operation
from abelnet.theory import law_defects

__version__ = "0.1.0"

__all__ = [
    "AbelianGroup",
    "AbelianNet",
    "AbelianSemigroup",
    "AbelnetError",
    "Accumulator",
    "Affine",
    "Bijection",
    "Chain",
    "Constant",
    "Generator",
    "Glow",
    "GlowCoupling",
    "Law",
    "LawRegressor",
    "Maximum",
    "Minimum",
    "Monotonic",
    "Multisets",
    "NoLawError",
    "Operation",
    "Permutation",
    "Polynomial",
    "Product",
    "RationalQuadraticSpline",
    "SinhArcsinh",
    "Sum",
    "glow",
    "law_defects",
]
