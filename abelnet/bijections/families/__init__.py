r"""Parametric families of curves, such as powers and logarithms: the generators of most laws used in practice.

A :class:`Family` is a formula :math:`g_\theta` with its known properties; a :class:`~abelnet.Generator` is a bijection
that applies it. To add a family, add a class to one of the modules and to the tuple at its end; learning, saving,
certificates and formulas then support it.
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
