r"""Terms of vector laws: functions of several coordinates, such as :math:`m x` and :math:`\log |a + i b|`.

An *additive invariant* is a sum of terms that adds up when vectors are combined, such as the momentum :math:`m v` of
bodies that stick together. A :class:`~abelnet.Triangular` bijection has one invariant for each coordinate. To add a
term, add a class to one of the modules and to the tuple at its end; learning, saving and formulas then support it.
"""

from __future__ import annotations

__all__ = [
    "FACTORS",
    "PLANES",
    "Curve",
    "Exponential",
    "Factor",
    "Logarithm",
    "Monomial",
    "Planar",
    "Plane",
    "Power",
    "Term",
]

from abelnet.bijections.terms.base import Term
from abelnet.bijections.terms.curve import Curve
from abelnet.bijections.terms.factors import FACTORS, Exponential, Factor, Logarithm, Power
from abelnet.bijections.terms.monomial import Monomial
from abelnet.bijections.terms.planar import PLANES, Planar, Plane
