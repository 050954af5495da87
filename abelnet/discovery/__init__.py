"""Learns laws from examples: closed form, parametric families, trained curves, and model selection."""

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.evidence import NoLawError
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.search import learn_law

__all__ = ["LawRegressor", "LearnedLaw", "NoLawError", "learn_law"]
