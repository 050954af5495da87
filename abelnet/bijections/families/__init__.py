r"""Parametric families of curves, such as powers and logarithms: the generators of most laws used in practice.

A :class:`Family` is a formula :math:`g_\theta` with its known properties; a :class:`~abelnet.Generator` is a bijection
that applies it. To add a family, add a class to one of the modules and to the tuple at its end; learning, saving,
certificates and formulas then support it.

Many generators of the literature are common families in another form. With :math:`u = g(x)`, a *sum* has the generator
:math:`u`, a *shifted sum* :math:`u + s`, a *product* :math:`\log |u - u_0|`:

========================================  ==================================  ====================================
law                                       form and family                     parameters
========================================  ==================================  ====================================
noisy or, compound returns                product of affine                   :math:`u_0 = 1, -1`
Sugeno λ-measure, Sugeno–Weber            product of affine                   :math:`\gamma = \lambda = -1 / u_0`
Clayton, Schweizer–Sklar                  shifted sum of positive power       :math:`p = -\theta = \lambda, s = -1`
Ali–Mikhail–Haq, Hamacher, Einstein       product of positive power           :math:`p = -1, \gamma = 1 - \theta`
Frank                                     product of exponential              :math:`k = -\theta, u_0 = 1`
Gumbel–Barnett                            product of logarithm                :math:`c = 0, \gamma = -\theta`
3Π uninorm                                sum of logit
velocity addition, Einstein sum           sum of arctanh                      :math:`c`
Gumbel, Aczél–Alsina                      sum of power of logarithm           :math:`p = \theta = \lambda`
Dombi, Hamacher product and sum           sum of power of odds                :math:`p = \lambda`, below 0: t-conorm
Joe                                       product of reflected power          :math:`c = 1, p = \theta, u_0 = 1`
Yager                                     sum of reflected power              :math:`c = 1, p`
BB1; Nelsen 4.2.14 and 15                 sum of power of complement          :math:`a = -\theta`; :math:`\mp 1 / b`
BB7; Nelsen 4.2.21                        shifted sum of power of complement  :math:`s = -1`, of complement
Nelsen 4.2.8                              shifted sum of shifted power        :math:`p = -1, c = 1 / (\theta - 1)`
Nelsen 4.2.17                             product of shifted power            :math:`c = 1, p = -\theta`
Nelsen 4.2.10, 4.2.11                     product of positive power           :math:`u_0 = 1/2, 2`
Nelsen 4.2.13                             sum of power of offset logarithm    :math:`k = 1, p = \theta`
Nelsen 4.2.16                             shifted sum of reciprocal           :math:`c = \theta = 1 - s`, difference
Nelsen 4.2.18                             sum of exponential of reciprocal    :math:`k = \theta`
Nelsen 4.2.19, 4.2.20                     sum of exponential of power         :math:`p = 1` or :math:`k = 1`
Nelsen 4.2.22                             sum of arcsine of power             :math:`p = \theta`
========================================  ==================================  ====================================
"""

from __future__ import annotations

__all__ = ["FAMILIES", "Family"]

from abelnet.bijections.families.base import Family
from abelnet.bijections.families.copulas import COPULAS
from abelnet.bijections.families.exponentials import EXPONENTIALS
from abelnet.bijections.families.powers import POWERS
from abelnet.bijections.families.shifted import SHIFTED
from abelnet.bijections.families.sigmoids import SIGMOIDS
from abelnet.bijections.families.unit import UNIT

FAMILIES: dict[str, Family] = {
    family.name: family for family in (*POWERS, *EXPONENTIALS, *SIGMOIDS, *SHIFTED, *UNIT, *COPULAS)
}
"""Families by name, simplest first."""
