"""Set models: DeepSets and multilayer perceptrons, the baselines of the paper."""

from abelnet.nn.baselines import MLP, DeepSets
from abelnet.nn.stacks import DeepSetsStack

__all__ = ["MLP", "DeepSets", "DeepSetsStack"]
