"""Set models: an aggregation layer that finds its own law, and the baselines of the paper."""

from abelnet.nn.bank import GatedBank
from abelnet.nn.baselines import MLP, DeepSets
from abelnet.nn.channelwise import Channelwise
from abelnet.nn.stacks import DeepSetsStack

__all__ = ["MLP", "Channelwise", "DeepSets", "DeepSetsStack", "GatedBank"]
