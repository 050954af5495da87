"""Set models: DeepSets and multilayer perceptrons, the baselines of the paper."""

from abelnet.nn.baselines import MLP, DeepSets

__all__ = ["MLP", "DeepSets"]
