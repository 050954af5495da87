"""Verification: law defects, counterexamples, Lipschitz bounds and size-generalization certificates."""

from abelnet.verify.certificates import (
    GeneratorBound,
    SizeBound,
    generator_bound,
    merge_bound,
    reach,
    size_bound,
)
from abelnet.verify.defects import Counterexample, Defect, LawDefects, find_counterexample, law_defects
from abelnet.verify.lipschitz import Lipschitz, lipschitz

__all__ = [
    "Counterexample",
    "Defect",
    "GeneratorBound",
    "LawDefects",
    "Lipschitz",
    "SizeBound",
    "find_counterexample",
    "generator_bound",
    "law_defects",
    "lipschitz",
    "merge_bound",
    "reach",
    "size_bound",
]
