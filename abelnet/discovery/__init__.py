"""From examples to the law behind them: closed form, families, trained curves, and the choice between them."""

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.search import NoLawError, learn_law

__all__ = ["LawRegressor", "LearnedLaw", "NoLawError", "learn_law"]
