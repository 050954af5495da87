r"""Known commutative, associative operations :math:`u * v` on :math:`\mathbb{R}^d`, applied per dimension."""

from abelnet.laws.base import Law, PlainForm
from abelnet.laws.capped import CappedSum
from abelnet.laws.constant import Constant
from abelnet.laws.maximum import Maximum, Minimum
from abelnet.laws.mean import Mean
from abelnet.laws.polynomial import Polynomial
from abelnet.laws.product import Product
from abelnet.laws.sum import Sum
from abelnet.laws.weighted_mean import WeightedMean

__all__ = [
    "CappedSum",
    "Constant",
    "Law",
    "Maximum",
    "Mean",
    "Minimum",
    "PlainForm",
    "Polynomial",
    "Product",
    "Sum",
    "WeightedMean",
]
