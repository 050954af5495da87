"""Trainable invertible maps with closed-form inverses: normalizing flows and monotonic curves."""

from abelnet.bijections.base import Bijection, Elementwise
from abelnet.bijections.chain import Chain
from abelnet.bijections.coupling import Glow, GlowCoupling, Permutation, glow
from abelnet.bijections.elementwise import Affine, SinhArcsinh
from abelnet.bijections.even import Even
from abelnet.bijections.families import FAMILIES, Family
from abelnet.bijections.generator import Generator
from abelnet.bijections.implicit import Implicit
from abelnet.bijections.invariants import Invariants
from abelnet.bijections.monotonic import Monotonic
from abelnet.bijections.spline import RationalQuadraticSpline
from abelnet.bijections.triangular import Triangular

__all__ = [
    "FAMILIES",
    "Affine",
    "Bijection",
    "Chain",
    "Elementwise",
    "Even",
    "Family",
    "Generator",
    "Glow",
    "GlowCoupling",
    "Implicit",
    "Invariants",
    "Monotonic",
    "Permutation",
    "RationalQuadraticSpline",
    "SinhArcsinh",
    "Triangular",
    "glow",
]
