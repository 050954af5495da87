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
from abelnet.certificates import generator_bound, lipschitz, merge_bound, size_bound
from abelnet.errors import AbelnetError
from abelnet.estimators import LawRegressor
from abelnet.laws import Constant, Law, Maximum, Minimum, Polynomial, Product, Sum
from abelnet.learning import NoLawError
from abelnet.multisets import Multisets
from abelnet.operation import AbelianGroup, AbelianNet, AbelianSemigroup, Operation
from abelnet.theory import find_counterexample, law_defects

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
    "find_counterexample",
    "generator_bound",
    "glow",
    "law_defects",
    "lipschitz",
    "merge_bound",
    "size_bound",
]
